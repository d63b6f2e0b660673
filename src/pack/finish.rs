//! The tables of every part, the rows that were left out, and last of all the manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::order::{Part, SCHEME};
use super::resume::Sums;
use super::shelf::{self, Kept};
use super::{Done, Filled, Known, Options, Order, Report};
use crate::decode::{Alpha, Icc};
use crate::error::{Error, Result};
use crate::fault::{Fault, Status};
use crate::names::{plural, shown};
use crate::out::{self};
use crate::shards::sum::SummedFile;
use crate::shards::tables::{self, Content, Counts};
use crate::shards::{
    ALIGNMENT, FileSum, LEFT_OUT, MANIFEST, READER, READER_TEXT, SCHEMA, Shard, Store, beton, flag, seal,
};
use crate::source::Listing;
use crate::table::csv_out;

/// A part, finished.
struct Finished<'a> {
    part: &'a Part,
    shards: Vec<Shard>,
    kept: Vec<Kept>,
    sums: Sums,
    tables: BTreeMap<String, FileSum>,
    counts: Counts,
}

/// Writes everything beside the shards.
///
/// # Errors
/// [`Error::Write`]; [`Error::Internal`] when a row is in no shard and not left out, or in both.
pub fn run(
    listing: &Listing,
    known: &Known,
    folder: &Path,
    options: &Options,
    (parts, before): (&[Part], &[String]),
    done: Done,
) -> Result<Report> {
    account(listing, &done)?;
    let Done { shards, left, resumed } = done;
    let mut finished = Vec::with_capacity(parts.len());
    for (part, shards) in parts.iter().zip(shards) {
        finished.push(finish_part(listing, folder, options, part, shards.into_values().collect())?);
    }
    finished.retain(|f| !f.kept.is_empty());
    if finished.is_empty() {
        let path = |row: u32| listing.entries[row as usize].path.as_str();
        let faults = left.iter().map(|(row, fault)| (path(*row), fault));
        return Err(none_usable(listing.entries.len(), faults));
    }
    let mut files = BTreeMap::new();
    files.insert(LEFT_OUT.to_owned(), left_out(listing, folder, &left)?);
    files.insert(READER.to_owned(), reader(folder)?);
    // A part of which no row turned out usable is none.
    let begun: BTreeSet<&str> =
        parts.iter().map(|part| part.folder.as_str()).chain(before.iter().map(String::as_str)).collect();
    sweep(folder, &finished, &begun)?;
    let report = report(listing, folder, &finished, &left, resumed);
    let manifest = manifest(listing, known, options, &finished, &files, &report);
    out::sync_batch(folder)?;
    out::write_whole(
        "writing the manifest",
        &folder.join(MANIFEST),
        seal::sealed(&manifest).as_bytes(),
        true,
    )?;
    Ok(report)
}

/// What is said where nothing can be packed: of the commonest reasons three, each with its first row.
pub fn none_usable<'a>(rows: usize, faults: impl Iterator<Item = (&'a str, &'a Fault)>) -> Error {
    let mut reasons: BTreeMap<&str, (usize, String)> = BTreeMap::new();
    for (path, fault) in faults {
        let first = || format!("{}: {}", shown(path), shown(&fault.to_string()));
        reasons.entry(fault.cause.code()).or_insert_with(|| (0, first())).0 += 1;
    }
    let mut reasons: Vec<(usize, String)> = reasons.into_values().collect();
    reasons.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
    let told: Vec<String> = reasons
        .iter()
        .take(3)
        .map(|(n, first)| if *n == 1 { first.clone() } else { format!("{first} ({n} such rows)") })
        .collect();
    let more = if reasons.len() > told.len() { "; and others" } else { "" };
    let what = if rows == 1 {
        "the one row is not".into()
    } else {
        format!("none of the {} is", plural(rows, "row"))
    };
    Error::Usage(format!("{what} a usable picture: {}{more}", told.join("; ")))
}

/// Every row is in exactly one of the shards and the rows left out.
fn account(listing: &Listing, done: &Done) -> Result<()> {
    let mut times = vec![0_u8; listing.entries.len()];
    let packed = done.shards.iter().flat_map(BTreeMap::values).flat_map(|(_, kept, _)| kept);
    for row in packed.map(|kept| kept.row.row).chain(done.left.keys().copied()) {
        if let Some(times) = times.get_mut(row as usize) {
            *times = times.saturating_add(1);
        }
    }
    match times.iter().position(|n| *n != 1) {
        None => Ok(()),
        Some(row) => {
            let path = &listing.entries[row].path;
            Err(Error::Internal(format!("row {row} ({path}) is in the cache {} times", times[row])))
        }
    }
}

fn finish_part<'a>(
    listing: &Listing,
    folder: &Path,
    options: &Options,
    part: &'a Part,
    done: Vec<Filled>,
) -> Result<Finished<'a>> {
    let mut finished = Finished {
        part,
        shards: Vec::new(),
        kept: Vec::new(),
        sums: Sums::default(),
        tables: BTreeMap::new(),
        counts: Counts::default(),
    };
    for (shard, mut kept, sums) in done {
        finished.shards.push(shard);
        finished.kept.append(&mut kept);
        finished.sums.merge(&sums);
    }
    if finished.kept.is_empty() {
        return Ok(finished);
    }
    let texts = |row: u32| {
        let entry = &listing.entries[row as usize];
        (entry.path.as_str(), entry.label.as_str(), entry.group.as_str())
    };
    // In one string, so that records can borrow them.
    let hashes: String = finished.kept.iter().map(Kept::hex).collect();
    let record = |i: usize| shelf::record(&texts, &finished.kept[i], &hashes[i * 32..(i + 1) * 32]);
    let content = Content {
        form: &options.form,
        split: &part.name,
        folder: &part.folder,
        shards: &finished.shards,
        record: &record,
        samples: finished.kept.len(),
        classes: &listing.classes,
    };
    (finished.tables, finished.counts) = tables::write(folder, &content)?;
    Ok(finished)
}

fn left_out(listing: &Listing, folder: &Path, left: &BTreeMap<u32, Fault>) -> Result<FileSum> {
    let doing = "writing what was left out";
    let path = folder.join(LEFT_OUT);
    let mut file = SummedFile::create(doing, &path)?;
    let mut csv = csv_out(&mut file);
    let trouble = |e: csv::Error| Error::write(doing, &path, e.into());
    csv.write_record(["row", "path", "status", "reason"]).map_err(trouble)?;
    for (row, fault) in left {
        let path = &listing.entries[*row as usize].path;
        csv.write_record([&row.to_string(), path, fault.status().as_str(), &fault.to_string()])
            .map_err(trouble)?;
    }
    csv.flush().map_err(|e| Error::write(doing, &path, e))?;
    drop(csv);
    file.commit()
}

/// Lays the reader beside the shards, so that the cache can be read where nothing of prep is installed.
fn reader(folder: &Path) -> Result<FileSum> {
    let path = folder.join(READER);
    let mut file = SummedFile::create("writing the reader", &path)?;
    file.put(READER_TEXT)?;
    file.commit()
}

/// Removes what an earlier run has left of shards and tables that this one does not have.
fn sweep(folder: &Path, finished: &[Finished<'_>], begun: &BTreeSet<&str>) -> Result<()> {
    let mut wanted = BTreeSet::new();
    for f in finished {
        let below = folder.join(&f.part.folder);
        wanted.extend(f.shards.iter().map(|shard| below.join(&shard.name)));
        wanted.extend(f.tables.keys().map(|name| below.join(name)));
    }
    let doing = "looking for what an earlier run has left";
    // Folders of parts alone, of this cache and of the one that was here: whatever else lies here is not ours.
    for part in begun {
        let below = folder.join(part);
        if !below.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            continue;
        }
        let files = fs::read_dir(&below).map_err(|e| Error::read(doing, &below, e))?;
        for file in files.flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            if is_ours(&name, part) && !wanted.contains(&file.path()) {
                out::remove("removing what an earlier run has left", &file.path())?;
            }
        }
        if !finished.iter().any(|f| f.part.folder == *part) {
            out::remove_folder(&below);
        }
    }
    Ok(())
}

/// Is it a name that prep gives in the folder of `part`?
fn is_ours(name: &str, part: &str) -> bool {
    let tables =
        ["rows.npy", "labels.npy", "class_ptr.npy", "class_rows.npy", "ids.csv", "index.json", "wids.json"];
    let numbered = |before: &str, after: &str| {
        name.strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            .is_some_and(|digits| digits.len() >= 5 && digits.bytes().all(|b| b.is_ascii_digit()))
    };
    tables.contains(&name)
        || numbered("shard.", ".mds")
        || numbered("images-", ".npy")
        || numbered("labels-", ".npy")
        || numbered("records-", ".json")
        || numbered(&format!("{part}-"), ".tar")
        || numbered(&format!("{part}-"), ".idx")
        || name == format!("{part}.beton")
}

fn report(
    listing: &Listing,
    folder: &Path,
    finished: &[Finished<'_>],
    left: &BTreeMap<u32, Fault>,
    resumed: usize,
) -> Report {
    let mut report = Report {
        folder: folder.to_owned(),
        packed: finished.iter().map(|f| (f.part.name.clone(), f.kept.len())).collect(),
        total: listing.entries.len(),
        shards: finished.iter().map(|f| f.shards.len()).sum(),
        resumed,
        ..Report::default()
    };
    for f in finished {
        report.bytes += f.shards.iter().map(|shard| shard.sum.bytes).sum::<u64>();
        report.payload += f.kept.iter().map(|kept| u64::from(kept.row.size)).sum::<u64>();
        report.copied += f.kept.iter().filter(|kept| kept.row.flags & flag::COPIED != 0).count();
    }
    for (row, fault) in left {
        let first = || format!("{}: {}", listing.entries[*row as usize].path, fault.detail);
        report.left_out.entry(fault.cause.code()).or_insert_with(|| (0, first())).0 += 1;
        let bad = matches!(fault.status(), Status::Damaged | Status::Bad | Status::Unsupported);
        report.bad += usize::from(bad);
    }
    report
}

fn sum_json(sum: &FileSum) -> Value {
    json!({"bytes": sum.bytes, "xxh3_64": sum.hex()})
}

fn sums_json(sums: &BTreeMap<String, FileSum>) -> Value {
    Value::Object(sums.iter().map(|(name, sum)| (name.clone(), sum_json(sum))).collect())
}

fn manifest(
    listing: &Listing,
    known: &Known,
    options: &Options,
    finished: &[Finished<'_>],
    files: &BTreeMap<String, FileSum>,
    report: &Report,
) -> Value {
    let form = &options.form;
    let packed: usize = finished.iter().map(|f| f.kept.len()).sum();
    let groups: BTreeSet<&str> =
        listing.entries.iter().map(|e| e.group.as_str()).filter(|g| !g.is_empty()).collect();
    let class_to_idx: Map<String, Value> =
        listing.classes.iter().zip(0_u64..).map(|(class, i)| (class.clone(), i.into())).collect();
    let splits: Map<String, Value> = finished.iter().map(|f| (f.part.name.clone(), split_json(f))).collect();
    json!({
        "schema": SCHEMA,
        "kind": "prep-cache",
        "version": env!("CARGO_PKG_VERSION"),
        "options": options.heading(),
        "layout": form.layout.as_str(),
        "store": form.store.as_str(),
        "source": known.source,
        "source_kind": format!("{:?}", listing.kind).to_lowercase(),
        "image": image_json(options),
        "alignment": ALIGNMENT,
        "shard_size": form.shard_size,
        "page_size": (form.layout == crate::shards::Layout::Beton).then(|| beton::page(form)),
        "order": {
            "kind": options.order_word(),
            "scheme": (options.order == Order::Shuffled).then_some(SCHEME),
            "seed": (options.order == Order::Shuffled).then_some(options.seed),
        },
        "split": {"seed": known.split.0, "group_key": known.split.1},
        "classes": listing.classes,
        "class_to_idx": class_to_idx,
        "groups": groups.len(),
        "rows": {"packed": packed, "left_out": report.total - packed, "total": report.total},
        "stats": stats_json(known, finished),
        "bytes": bytes_json(listing, finished, report),
        "splits": splits,
        "files": sums_json(files),
    })
}

fn image_json(options: &Options) -> Value {
    let form = &options.form;
    let jpeg = form.store == Store::Jpeg;
    let frame = &options.frame;
    let alpha = match options.contract.alpha {
        Alpha::White => "white".to_owned(),
        Alpha::Black => "black".to_owned(),
        Alpha::Drop => "drop".to_owned(),
        Alpha::Rgb([r, g, b]) => format!("#{r:02x}{g:02x}{b:02x}"),
    };
    json!({
        "dtype": "uint8", "space": "sRGB", "order": "NHWC", "channels": 3,
        "height": form.fixed.map(|(h, _)| h), "width": form.fixed.map(|(_, w)| w), "stride": form.stride(),
        "fit": frame.size.map(|_| frame.fit.as_str()), "short_edge": frame.short_edge,
        "filter": frame.filter.as_str(), "upscale": frame.size.is_some(),
        "quality": jpeg.then_some(options.quality), "chroma": jpeg.then(|| options.chroma.as_str()),
        "progressive": false, "alpha": alpha,
        "icc": if options.contract.icc == Icc::ToSrgb { "srgb" } else { "ignore" }, "oriented": true,
    })
}

fn split_json(f: &Finished<'_>) -> Value {
    let shards: Vec<Value> = f
        .shards
        .iter()
        .map(|shard| {
            let mut entry = json!({"name": shard.name, "rows": shard.rows, "image0": shard.image0});
            entry["bytes"] = shard.sum.bytes.into();
            entry["xxh3_64"] = shard.sum.hex().into();
            entry
        })
        .collect();
    let occurring = f.counts.by_class.iter().filter(|n| **n > 0).count() as f64;
    let labelled = f.counts.by_class.iter().sum::<u64>() as f64;
    let weights: Vec<f64> = f
        .counts
        .by_class
        .iter()
        .map(|n| if *n == 0 { 0.0 } else { labelled / (occurring * *n as f64) })
        .collect();
    let mut value = json!({
        "rows": f.kept.len(), "counts": f.counts.by_class, "unlabelled": f.counts.unlabelled,
        "several": f.counts.several, "weights": weights, "shards": shards, "tables": sums_json(&f.tables),
    });
    if f.part.folder != f.part.name {
        value["folder"] = f.part.folder.clone().into();
    }
    value
}

/// The constants for the normalization: of the pixels that were packed for training, or what `prep stats` recorded.
fn stats_json(known: &Known, finished: &[Finished<'_>]) -> Value {
    let train = finished.iter().find(|f| f.part.name == "train" || f.part.name == "all");
    let seen = train.filter(|f| f.sums.unseen == 0 && f.sums.pixels > 0);
    let scaled = |values: [f64; 3]| values.map(|v| v * 255.0);
    if let Some(f) = seen {
        let (mean, std) = f.sums.moments();
        return json!({
            "split": f.part.name,
            "definition": "pixel: all packed pixels of the part in one pool, values 0 to 1, std of the population",
            "pixels": f.sums.pixels,
            "mean": mean, "std": std, "mean_255": scaled(mean), "std_255": scaled(std),
        });
    }
    let three = |key: &str| -> Option<[f64; 3]> {
        let values = known.stats.get(key)?.as_array()?.iter().map(Value::as_f64);
        values.collect::<Option<Vec<f64>>>()?.try_into().ok()
    };
    let (Some(mean), Some(std)) = (three("mean"), three("std")) else { return Value::Null };
    let definition = known.stats.get("definition").and_then(Value::as_str).unwrap_or_default();
    json!({
        "split": train.map(|f| f.part.name.as_str()),
        "definition": format!("{definition}; as `prep stats` recorded of {}", known.stats["rows"].as_str().unwrap_or("the input")),
        "pixels": known.stats.get("pixels"),
        "mean": mean, "std": std, "mean_255": scaled(mean), "std_255": scaled(std),
    })
}

fn bytes_json(listing: &Listing, finished: &[Finished<'_>], report: &Report) -> Value {
    let all = || finished.iter().flat_map(|f| &f.kept);
    let source: u64 = all().map(|kept| listing.entries[kept.row.row as usize].bytes).sum();
    let pixels: u64 = all().map(|kept| u64::from(kept.row.h) * u64::from(kept.row.w) * 3).sum();
    let overhead = report.bytes as f64 / report.payload.max(1) as f64 - 1.0;
    json!({
        "source": source, "payload": report.payload, "shards": report.bytes, "overhead": overhead,
        "epoch_uint8": pixels, "epoch_fp16": pixels * 2, "epoch_fp32": pixels * 4,
    })
}

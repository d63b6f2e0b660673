//! A cache against its manifest.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{Depth, Report, Sample, Trouble, open, unreadable};
use crate::engine::crew::Crew;
use crate::engine::progress::{Tally, Watch};
use crate::error::Result;
use crate::fault::Fault;
use crate::shards::check::{Flaw, Kind, check};
use crate::shards::tables::Loaded;
use crate::shards::{Cache, FileSum, LEFT_OUT, MANIFEST, Part, Place, Record, Split, index, sum};
use crate::table;

/// A shard to be read.
struct Job<'a> {
    split: &'a Split,
    loaded: &'a Loaded,
    number: usize,
    first: usize,
    key: String,
}

pub fn run(cache: &Cache, depth: Depth, crew: &Crew<'_>, watch: &mut dyn Watch) -> Result<Report> {
    let mut report = Report { kind: "cache", files: 1, ..Report::default() };
    report.samples = cache.splits.iter().map(|split| split.rows).sum();
    if !cache.sealed {
        let why = "was altered after it was written: its seal does not hold";
        report.trouble(MANIFEST, "manifest", why);
    }
    check_sums(&mut report, &cache.folder, "", &cache.files);
    let mut tables = Vec::with_capacity(cache.splits.len());
    for split in &cache.splits {
        let before = report.troubles.len();
        let below = format!("{}/", split.folder);
        check_sums(&mut report, &cache.folder_of(split), &below, &split.tables);
        check_sizes(&mut report, cache, split);
        match cache.load(split) {
            Ok(loaded) => tables.push(Some(loaded)),
            Err(e) => {
                // A table whose sum is wrong was named already.
                if !report.troubles[before..].iter().any(|t| matches!(t.code, "hash" | "missing" | "size")) {
                    report.trouble(below, "table", e.to_string());
                }
                tables.push(None);
            }
        }
    }
    check_account(&mut report, cache, &tables);
    let pairs: Vec<(&Split, &Loaded)> = cache
        .splits
        .iter()
        .zip(&tables)
        .filter_map(|(split, loaded)| Some((split, loaded.as_ref()?)))
        .collect();
    if depth != Depth::Sizes {
        read_data(cache, &pairs, depth, crew, watch, &mut report)?;
    }
    Ok(report)
}

/// Every table is what it was.
fn check_sums(report: &mut Report, folder: &Path, below: &str, sums: &BTreeMap<String, FileSum>) {
    for (name, wanted) in sums {
        report.files += 1;
        let file = format!("{below}{name}");
        match open(&folder.join(name)).and_then(|mut file| FileSum::read(&mut file)) {
            Err(e) => {
                let (code, why) = unreadable(&e);
                report.trouble(file, code, why);
            }
            Ok(sum) if sum.bytes != wanted.bytes => {
                report.trouble(file, "size", format!("{} bytes, {} were written", sum.bytes, wanted.bytes));
            }
            Ok(sum) if sum != *wanted => {
                report.trouble(file, "hash", "its bytes are not those that were written");
            }
            Ok(sum) => report.bytes += sum.bytes,
        }
    }
}

fn check_sizes(report: &mut Report, cache: &Cache, split: &Split) {
    for shard in &split.shards {
        report.files += 1;
        let file = format!("{}/{}", split.folder, shard.name);
        match open(&cache.folder_of(split).join(&shard.name)).and_then(|file| file.metadata()) {
            Err(e) => {
                let (code, why) = unreadable(&e);
                report.trouble(file, code, why);
            }
            Ok(meta) if meta.len() != shard.sum.bytes => {
                let detail = format!("{} bytes, {} were written", meta.len(), shard.sum.bytes);
                report.trouble(file, "size", detail);
            }
            Ok(_) => {}
        }
    }
}

/// Every source row is in one shard or left out.
fn check_account(report: &mut Report, cache: &Cache, tables: &[Option<Loaded>]) {
    let Ok(left) = table::read(&cache.folder.join(LEFT_OUT)) else { return };
    if tables.iter().any(Option::is_none) {
        return;
    }
    let rows = tables.iter().flatten().flat_map(|loaded| loaded.rows.iter().map(|row| row.row));
    let mut all: Vec<u32> = rows.collect();
    all.extend((0..left.len()).filter_map(|i| left.cell(i, 0).parse::<u32>().ok()));
    all.sort_unstable();
    let whole = all.len() == cache.total && all.iter().zip(0..).all(|(row, i)| *row == i);
    if !whole {
        let why = format!("with the tables it does not tell of each of the {} source rows once", cache.total);
        report.trouble(LEFT_OUT, "table", why);
    }
}

fn read_data(
    cache: &Cache,
    pairs: &[(&Split, &Loaded)],
    depth: Depth,
    crew: &Crew<'_>,
    watch: &mut dyn Watch,
    report: &mut Report,
) -> Result<()> {
    let mut jobs = Vec::new();
    for (split, loaded) in pairs.iter().copied() {
        let mut first = 0;
        for (number, shard) in split.shards.iter().enumerate() {
            let key = format!("{}/{}", split.folder, shard.name);
            jobs.push(Job { split, loaded, number, first, key });
            first += shard.rows;
        }
    }
    let keys: Vec<&str> = jobs.iter().map(|job| job.key.as_str()).collect();
    let bytes = |job: &Job<'_>| job.split.shards[job.number].sum.bytes;
    // A manifest can say anything.
    let total_bytes = jobs.iter().map(bytes).fold(0, u64::saturating_add);
    let mut tally = Tally { total: jobs.len(), total_bytes, ..Tally::default() };
    crew.run(
        &keys,
        || (),
        |(), item| match depth {
            Depth::Share(..) => read_some(cache, &jobs[item.index], depth),
            _ => read_all(cache, &jobs[item.index]),
        },
        |k, fault: Fault| Found::trouble(&jobs[k].key, "io", fault.to_string()),
        |k, found: Found| {
            tally.done += 1;
            tally.bytes = tally.bytes.saturating_add(bytes(&jobs[k]));
            tally.bad += usize::from(!found.troubles.is_empty());
            report.read += found.read;
            report.bytes += found.bytes;
            // Its size is wrong: that was said, and what is missing of it is said now.
            report.troubles.extend(found.troubles);
            watch.step(&tally);
            Ok(())
        },
    )
}

/// What reading a shard gave.
#[derive(Default)]
struct Found {
    troubles: Vec<Trouble>,
    read: usize,
    bytes: u64,
}

impl Found {
    fn trouble(file: &str, code: &'static str, detail: impl Into<String>) -> Self {
        let trouble = Trouble { file: file.to_owned(), code, detail: detail.into(), sample: None };
        Self { troubles: vec![trouble], ..Self::default() }
    }
}

fn read_all(cache: &Cache, job: &Job<'_>) -> Found {
    let shard = &job.split.shards[job.number];
    let records: Vec<Record<'_>> =
        (job.first..job.first + shard.rows).map(|i| job.loaded.record(i)).collect();
    let place = Place { split: &job.split.name, first: job.first, image0: index::image0(&cache.form, shard) };
    let sheet = match cache.form.sheet(&place, &records) {
        Ok(sheet) if sheet.offsets.iter().zip(&records).all(|(at, record)| *at == record.row.offset) => sheet,
        _ => return Found::trouble(&job.key, "table", "rows.npy tells of samples that cannot lie there"),
    };
    let rows = &job.loaded.rows[job.first..job.first + shard.rows];
    let path = cache.folder_of(job.split).join(&shard.name);
    let checked = match open(&path).and_then(|mut file| check(&mut file, &sheet, rows, shard.sum)) {
        Ok(checked) => checked,
        Err(e) => {
            let (code, why) = unreadable(&e);
            return Found::trouble(&job.key, code, why);
        }
    };
    let name = |i: usize| Sample::of(&job.split.name, job.first + i, &records[i]);
    let troubles = checked.flaws.iter().map(|flaw| trouble_of(&job.key, flaw, &name)).collect();
    Found { troubles, read: shard.rows, bytes: checked.sum.bytes }
}

/// A flaw as it is told.
pub fn trouble_of(file: &str, flaw: &Flaw, name: &dyn Fn(usize) -> Sample) -> Trouble {
    let at = flaw.at;
    let (code, detail, sample) = match flaw.kind {
        Kind::Differs(Part::Payload(i)) => {
            ("payload", format!("the image at byte {at} is not the one that was written"), Some(i))
        }
        Kind::Differs(Part::Frame(i)) => {
            ("frame", format!("byte {at}: size, label or description of this sample differ"), Some(i))
        }
        Kind::Differs(Part::Header) => ("header", format!("byte {at} of the head differs"), None),
        Kind::Differs(Part::Padding) => ("padding", format!("byte {at} between samples is not zero"), None),
        Kind::Ends(Part::Payload(i) | Part::Frame(i)) => {
            ("payload", format!("the file ends at byte {at}, before or within this sample"), Some(i))
        }
        Kind::Ends(_) => ("size", format!("the file ends at byte {at}, too early"), None),
        Kind::Longer => ("size", format!("bytes after its end at {at}"), None),
        Kind::Hash => {
            ("hash", "its hash is not the one in the manifest, though all samples are whole".into(), None)
        }
    };
    Trouble { file: file.to_owned(), code, detail, sample: sample.map(name) }
}

/// Some samples, each by its CRC.
fn read_some(cache: &Cache, job: &Job<'_>, depth: Depth) -> Found {
    let shard = &job.split.shards[job.number];
    let path = cache.folder_of(job.split).join(&shard.name);
    let file = match open(&path) {
        Ok(file) => file,
        Err(e) => {
            let (code, why) = unreadable(&e);
            return Found::trouble(&job.key, code, why);
        }
    };
    let mut found = Found::default();
    let mut payload = Vec::new();
    let len = file.metadata().map_or(0, |meta| meta.len());
    for i in job.first..job.first + shard.rows {
        if !depth.takes(&format!("{} {i}", job.split.name)) {
            continue;
        }
        let record = job.loaded.record(i);
        found.read += 1;
        found.bytes += u64::from(record.row.size);
        // Nothing is allocated that the file cannot fill.
        let there = record.row.offset.saturating_add(u64::from(record.row.size)) <= len;
        payload.resize(if there { record.row.size as usize } else { 0 }, 0);
        let right = there
            && file.read_exact_at(&mut payload, record.row.offset).is_ok()
            && sum::crc32(&payload) == record.row.crc32;
        if !right {
            let flaw = Flaw { at: record.row.offset, kind: Kind::Differs(Part::Payload(0)) };
            let name = |_: usize| Sample::of(&job.split.name, i, &record);
            found.troubles.push(trouble_of(&job.key, &flaw, &name));
        }
    }
    found
}

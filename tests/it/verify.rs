//! What is damaged is found and named; what is hostile is an error and nothing more.

use std::path::Path;

use imgprep::engine::cancel::Cancel;
use imgprep::engine::crew::Crew;
use imgprep::engine::progress::Unwatched;
use imgprep::shards::check::{Kind, check};
use imgprep::shards::{Cache, FileSum, Part, Piece, Place, Record, seal};
use imgprep::unpack;
use imgprep::verify::{self, Depth, Report};
use serde_json::{Value, json};

use crate::env::{Env, jpeg, png};
use crate::pack::{manifest, read, set};

/// A cache of one shard of about `kb` kilobytes.
fn one_shard(env: &Env, out: &str, args: &[&str], images: u32) {
    for i in 0..images {
        let name = format!("in-{images}/{}/{i:02}", ["a", "b"][i as usize % 2]);
        if i % 3 == 0 {
            env.write(format!("{name}.png"), &png(40, 32, i));
        } else {
            env.write(format!("{name}.jpg"), &jpeg(40, 32, i));
        }
    }
    let input = format!("in-{images}");
    env.ok(&[&["pack", &input, "-o", out, "-q"], args].concat());
}

fn run(folder: &Path, depth: Depth) -> imgprep::error::Result<Report> {
    let cancel = Cancel::default();
    verify::run(folder, depth, &Crew { threads: 2, cancel: &cancel, flight: None }, &mut Unwatched)
}

/// Flips one bit of every byte of the shard, and cuts it at every length.
fn exhaust(folder: &Path, from: usize, step: usize) -> usize {
    let cache = Cache::open(folder).unwrap();
    let split = &cache.splits[0];
    assert_eq!(split.shards.len(), 1);
    let shard = &split.shards[0];
    let loaded = cache.load(split).unwrap();
    let records: Vec<Record<'_>> = (0..split.rows).map(|i| loaded.record(i)).collect();
    let sheet =
        cache.form.sheet(&Place { split: &split.name, first: 0, image0: shard.image0 }, &records).unwrap();
    let mut bytes = std::fs::read(cache.folder_of(split).join(&shard.name)).unwrap();
    assert_eq!(bytes.len() as u64, shard.sum.bytes);
    let look = |bytes: &[u8]| check(&mut &*bytes, &sheet, &loaded.rows, shard.sum).unwrap();
    assert!(look(&bytes).flaws.is_empty());
    // What each byte belongs to.
    let mut parts = Vec::with_capacity(bytes.len());
    for piece in &sheet.pieces {
        parts.extend(std::iter::repeat_n(piece.part(), piece.len() as usize));
    }
    assert_eq!(parts.len(), bytes.len());
    let payloads: usize = sheet.pieces.iter().filter(|p| matches!(p, Piece::Payload(..))).count();
    assert_eq!(payloads, split.rows);
    let ends: Vec<usize> = loaded.rows.iter().map(|row| row.offset as usize + row.size as usize).collect();
    for at in (from..bytes.len()).step_by(step) {
        let bit = 1 << (at % 8);
        bytes[at] ^= bit;
        let flaws = look(&bytes).flaws;
        bytes[at] ^= bit;
        let named: Vec<Kind> = flaws.iter().map(|flaw| flaw.kind).collect();
        assert_eq!(named, [Kind::Differs(parts[at])], "byte {at}");
        if !matches!(parts[at], Part::Payload(_)) {
            assert_eq!(flaws[0].at, at as u64);
        }
        let flaws = look(&bytes[..at]).flaws;
        assert!(matches!(flaws.first().map(|flaw| flaw.kind), Some(Kind::Ends(_))), "cut at {at}: {flaws:?}");
        // Every sample that lost a byte is named: all from the first whose payload ends behind the cut.
        let first = ends.partition_point(|end| *end <= at);
        let told: std::collections::BTreeSet<usize> = flaws
            .iter()
            .filter_map(|f| match f.kind {
                Kind::Ends(Part::Payload(i) | Part::Frame(i)) => Some(i),
                _ => None,
            })
            .collect();
        assert!((first..split.rows).all(|i| told.contains(&i)), "cut at {at}: {first} {told:?}");
    }
    bytes.push(0);
    assert_eq!(look(&bytes).flaws[0].kind, Kind::Longer);
    bytes.len()
}

/// Every byte in a release build (`cargo test --release`) or with PREP_TEST_EXHAUSTIVE=1; unoptimised that takes minutes,
/// so else one in `few`.
fn step(few: usize) -> usize {
    let all = !cfg!(debug_assertions) || std::env::var_os("PREP_TEST_EXHAUSTIVE").is_some();
    if all { 1 } else { few }
}

#[test]
fn every_flip_and_every_cut_of_a_shard_of_64_kb_is_found_and_named() {
    let env = Env::new();
    one_shard(&env, "raw", &["--size", "32x40"], 15);
    let step = step(23);
    let bytes = exhaust(&env.path("raw"), 0, step);
    assert!((50_000..70_000).contains(&bytes), "{bytes}");
}

#[test]
fn every_flip_and_every_cut_is_found_in_the_other_layouts() {
    let env = Env::new();
    let step = step(31);
    for (out, args) in [
        ("jpeg", vec!["--store", "jpeg"]),
        ("wds", vec!["--layout", "wds", "--store", "jpeg"]),
        ("npy", vec!["--layout", "npy", "--size", "32x40"]),
    ] {
        one_shard(&env, out, &args, 4);
        exhaust(&env.path(out), 0, step);
    }
    // 8 MiB a page: a sample of the bytes.
    one_shard(&env, "beton", &["--layout", "beton", "--store", "jpeg"], 4);
    exhaust(&env.path("beton"), 100, 1_500_007);
}

#[test]
fn the_command_names_row_source_and_label_of_a_flipped_bit_and_exits_with_1() {
    let env = Env::new();
    set(&env, "in", 40);
    for layout in ["mds", "wds", "npy", "beton"] {
        env.ok(&["pack", "in", "-o", layout, "--layout", layout, "--size", "32x40", "-q"]);
        env.ok(&["verify", layout, "--read-data", "-q"]);
        let samples = read(&env.path(layout), "train");
        let victim = &samples[samples.len() / 2];
        let shard = manifest(&env.path(layout))["splits"]["train"]["shards"][victim.shard]["name"].clone();
        let path = env.path(format!("{layout}/train/{}", shard.as_str().unwrap()));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[victim.offset + 77] ^= 16;
        std::fs::write(&path, bytes).unwrap();
        // The sizes are right: only reading tells.
        env.ok(&["verify", layout, "-q"]);
        let ran = env.run(&["verify", layout, "--read-data"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stdout.contains(&victim.path) && ran.stdout.contains("payload"), "{}", ran.stdout);
        assert!(ran.stdout.contains(&format!("row {}", victim.row)), "{}", ran.stdout);
        let ran = env.run(&["verify", layout, "--read-data", "--json"]);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["troubles"].as_array().unwrap().len(), 1);
        let label = if victim.label == 0 { "rust" } else { "scab" };
        assert_eq!(report["troubles"][0]["sample"]["label"], label);
        // A subset reads some, and with all of it finds it too.
        let ran = env.run(&["verify", layout, "--read-data-subset", "100%", "--json"]);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((ran.code, report["samples_read"].as_u64()), (Some(1), Some(40)));
        let ran = env.run(&["verify", layout, "--read-data-subset", "25%", "--json"]);
        let some = serde_json::from_str::<Value>(&ran.stdout).unwrap()["samples_read"].as_u64().unwrap();
        assert!((3..20).contains(&some), "{some}");
        // Unpacking leaves it out and says so; repairing refuses.
        let ran = env.run(&["unpack", layout, "-o", &format!("{layout}-files")]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stdout.contains(&victim.path), "{}", ran.stdout);
        assert_eq!(env.rows(format!("{layout}-files/labels.csv")).len(), 39);
        let ran = env.run(&["verify", layout, "--repair-index"]);
        assert_eq!(ran.code, Some(1), "{} {}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_flip_anywhere_in_tables_and_manifest_is_found_without_reading_the_data() {
    let env = Env::new();
    one_shard(&env, "out", &[], 6);
    let folder = env.path("out");
    let mut files = 0;
    for (name, bytes) in env.tree("out") {
        if name.starts_with(".prep/") || name.ends_with(".mds") {
            continue;
        }
        files += 1;
        let step = (bytes.len() / 40).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1 << (at % 7);
            std::fs::write(folder.join(&name), &wrong).unwrap();
            let report = run(&folder, Depth::Sizes);
            assert!(report.as_ref().is_ok_and(|r| !r.troubles.is_empty()), "{name} at {at}: {report:?}");
            std::fs::write(folder.join(&name), &wrong[..at]).unwrap();
            assert!(run(&folder, Depth::Sizes).is_ok_and(|r| !r.troubles.is_empty()), "{name} cut at {at}");
        }
        std::fs::write(folder.join(&name), &bytes).unwrap();
    }
    assert!(files >= 8, "{files}");
    assert!(run(&folder, Depth::All).unwrap().troubles.is_empty());
}

#[test]
fn tables_and_index_are_made_anew_from_the_shards() {
    let env = Env::new();
    set(&env, "in", 30);
    for (layout, args) in [
        ("mds", vec!["--store", "jpeg"]),
        ("mds", vec!["--store", "raw"]),
        ("wds", vec!["--size", "32x40"]),
        ("wds", vec!["--store", "jpeg"]),
        ("npy", vec!["--size", "32x40"]),
        ("beton", vec!["--store", "jpeg"]),
    ] {
        let out = format!("{layout}-{}", args[1]);
        env.ok(&[&["pack", "in", "-o", &out, "--layout", layout, "--shard-size", "80k", "-q"], &args[..]]
            .concat());
        let mut want = env.tree(&out);
        want.retain(|(name, _)| !name.starts_with(".prep/"));
        for part in ["train", "val"] {
            for name in ["rows.npy", "labels.npy", "class_rows.npy", "index.json", "wids.json"] {
                let path = env.path(format!("{out}/{part}/{name}"));
                let _ = std::fs::remove_file(&path);
            }
            env.write(format!("{out}/{part}/ids.csv"), b"sample,row\n");
        }
        std::fs::remove_file(env.path(format!("{out}/prep_cache.py"))).unwrap();
        assert_eq!(env.run(&["verify", &out]).code, Some(1));
        let ran = env.ok(&["verify", &out, "--repair-index"]);
        assert!(ran.stdout.contains("train/rows.npy"), "{}", ran.stdout);
        let mut got = env.tree(&out);
        got.retain(|(name, _)| !name.starts_with(".prep/"));
        assert!(got == want, "{out}");
        env.ok(&["verify", &out, "--read-data", "-q"]);
    }
}

#[test]
fn files_come_back_bit_for_bit_with_their_labels() {
    let env = Env::new();
    set(&env, "in", 20);
    env.ok(&["pack", "in", "-o", "jpegs", "-q"]);
    env.ok(&["pack", "in", "-o", "pixels", "--size", "32x40", "-q"]);
    env.ok(&["unpack", "jpegs", "-o", "files"]);
    env.ok(&["unpack", "pixels", "-o", "pngs", "--split", "val"]);
    let labels = env.rows("files/labels.csv");
    assert_eq!(labels.len(), 20);
    for part in ["train", "val"] {
        for sample in read(&env.path("jpegs"), part) {
            let name = sample.path.replace(".png", ".jpg");
            let row = labels.iter().find(|row| row["path"] == name).unwrap();
            assert_eq!(
                (row["split"].as_str(), row["label"].as_str()),
                (part, ["rust", "scab"][sample.label as usize])
            );
            assert_eq!(std::fs::read(env.path("files").join(&name)).unwrap(), sample.payload);
        }
    }
    let samples = read(&env.path("pixels"), "val");
    assert_eq!(env.rows("pngs/labels.csv").len(), samples.len());
    for sample in samples {
        let name = sample.path.replace(".jpg", ".png");
        let png = std::fs::read(env.path("pngs").join(name)).unwrap();
        assert_eq!(crate::pictures::whole(&png, "x.png").0.data, sample.payload);
    }
    // The table is one that prep reads: the files are an input again.
    env.ok(&["pack", "files", "-o", "again", "-q"]);
    assert_eq!(read(&env.path("again"), "train").len(), 15);
    assert!(env.refused(&["unpack", "jpegs", "-o", "files"]).contains("not empty"));
    assert!(env.refused(&["unpack", "jpegs", "-o", "x", "--split", "nope"]).contains("train"));
}

#[test]
fn the_images_of_a_workspace_are_held_against_their_hashes() {
    let env = Env::new();
    set(&env, "in", 12);
    env.ok(&["shrink", "in", "-o", "work", "--short-edge", "40", "-q"]);
    let ran = env.ok(&["verify", "work", "--read-data"]);
    assert!(ran.stdout.contains("workspace of 12 images"), "{}", ran.stdout);
    let path = env.path("work/images/train/rust/000.jpg");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 2;
    std::fs::write(&path, &bytes).unwrap();
    env.ok(&["verify", "work", "-q"]);
    let ran = env.run(&["verify", "work", "--read-data"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("rust/000.jpg") && ran.stdout.contains("label rust"), "{}", ran.stdout);
    std::fs::write(&path, &bytes[1..]).unwrap();
    assert_eq!(env.run(&["verify", "work"]).code, Some(1));
    std::fs::remove_file(&path).unwrap();
    let ran = env.run(&["verify", "work"]);
    assert!(ran.code == Some(1) && ran.stdout.contains("missing"), "{}", ran.stdout);
}

/// Every leaf of a JSON document, as the keys that lead to it.
fn leaves(value: &Value, at: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    found.push(at.clone());
    let mut below = |key: String, value: &Value| {
        at.push(key);
        leaves(value, at, found);
        at.pop();
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| below(key.clone(), value)),
        Value::Array(list) => list.iter().enumerate().for_each(|(i, value)| below(i.to_string(), value)),
        _ => {}
    }
}

fn put(value: &mut Value, path: &[String], new: Value) {
    match path.split_first() {
        None => *value = new,
        Some((key, rest)) => match value {
            Value::Array(list) => put(&mut list[key.parse::<usize>().unwrap()], rest, new),
            other => put(&mut other[key.as_str()], rest, new),
        },
    }
}

#[test]
fn no_manifest_makes_it_panic_leave_its_folder_or_take_memory() {
    let env = Env::new();
    for (layout, args) in [
        ("mds", vec![]),
        ("beton", vec!["--layout", "beton"]),
        ("npy", vec!["--layout", "npy", "--size", "32x40"]),
    ] {
        one_shard(&env, layout, &args, 4);
        let folder = env.path(layout);
        let mut whole = manifest(&folder);
        whole.as_object_mut().unwrap().shift_remove("seal");
        let mut paths = Vec::new();
        leaves(&whole, &mut Vec::new(), &mut paths);
        paths.retain(|path| !path.is_empty());
        assert!(paths.len() > 80, "{}", paths.len());
        let hostile = [
            Value::Null,
            json!(-1),
            json!(0),
            json!(u64::MAX),
            json!(u32::MAX),
            json!(1e300),
            json!("../../../etc/passwd"),
            json!("/dev/zero"),
            json!("\u{0}"),
            json!([]),
            json!({}),
            json!([[[[]]]]),
        ];
        let mut noticed = 0;
        for (i, path) in paths.iter().enumerate() {
            for j in 0..3 {
                let mut value = whole.clone();
                put(&mut value, path, hostile[(i + j * 4) % hostile.len()].clone());
                // Sealed, so that the seal does not save us.
                std::fs::write(folder.join("manifest.json"), seal::sealed(&value)).unwrap();
                // A page of FFCV is 8 MiB: reading them all each time would take minutes.
                let depth = if layout == "beton" && i % 16 > 0 { Depth::Sizes } else { Depth::All };
                let report = run(&folder, depth);
                noticed += usize::from(report.is_err() || report.is_ok_and(|r| !r.troubles.is_empty()));
                let _ = verify_repair(&folder);
            }
        }
        // The rest are words that nobody checks: version, constants, counts of bytes.
        assert!(noticed > paths.len(), "{layout}: {noticed} of {}", paths.len() * 3);
    }
    assert!(!env.path("etc").exists());
}

fn verify_repair(folder: &Path) -> Result<(), imgprep::error::Error> {
    // What a repair that was led astray would change is put right again by the next manifest.
    Cache::open(folder).map(|cache| cache.splits.iter().for_each(|split| drop(cache.load(split))))
}

#[test]
fn no_table_of_rows_makes_it_panic_or_read_outside() {
    let env = Env::new();
    for (layout, args) in [
        ("mds", vec!["--store", "raw"]),
        ("wds", vec!["--layout", "wds"]),
        ("beton", vec!["--layout", "beton"]),
    ] {
        one_shard(&env, layout, &args, 4);
        let folder = env.path(layout);
        let mut document = manifest(&folder);
        document.as_object_mut().unwrap().shift_remove("seal");
        let path = folder.join("all/rows.npy");
        let whole = std::fs::read(&path).unwrap();
        let data = whole.len() - 4 * 40;
        for field in 0..10_usize {
            let (at, len) =
                [(0, 8), (8, 4), (12, 4), (16, 2), (18, 2), (20, 4), (24, 4), (28, 4), (32, 4), (36, 4)]
                    [field];
            for fill in [0x00, 0x01, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[data + 40 + at..data + 40 + at + len].fill(fill);
                // Groups and flags of FFCV's samples are nowhere but here.
                if bytes == whole || (layout == "beton" && matches!(field, 6 | 9)) {
                    continue;
                }
                std::fs::write(&path, &bytes).unwrap();
                let sum = FileSum::of(&bytes);
                document["splits"]["all"]["tables"]["rows.npy"] =
                    json!({"bytes": sum.bytes, "xxh3_64": sum.hex()});
                std::fs::write(folder.join("manifest.json"), seal::sealed(&document)).unwrap();
                let report = run(&folder, Depth::All);
                assert!(
                    report.as_ref().is_ok_and(|r| !r.troubles.is_empty()),
                    "{layout} {field} {fill}: {report:?}"
                );
                // Unpacking ends with an error or without what is not whole.
                let out = env.path(format!("files-{layout}-{field}-{fill}"));
                let cancel = Cancel::default();
                let crew = Crew { threads: 2, cancel: &cancel, flight: None };
                let cache = Cache::open(&folder).unwrap();
                if let Ok(report) = unpack::run(&cache, None, &out, &crew, &mut Unwatched) {
                    assert!(report.files + report.damaged.len() == 4, "{report:?}");
                }
            }
        }
    }
}

#[test]
fn hostile_paths_in_a_cache_do_not_leave_the_folder_of_unpack() {
    let env = Env::new();
    one_shard(&env, "out", &[], 4);
    let folder = env.path("out");
    let ids = folder.join("all/ids.csv");
    let text = std::fs::read_to_string(&ids).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (i, evil) in
        ["../../evil.jpg", "/tmp/prep-evil.jpg", "a/../../evil.jpg", "%2E%2E/evil.jpg"].iter().enumerate()
    {
        let mut cells: Vec<String> = lines[i + 1].split(',').map(str::to_owned).collect();
        cells[2] = (*evil).to_owned();
        lines[i + 1] = cells.join(",");
    }
    let text = lines.join("\n") + "\n";
    std::fs::write(&ids, &text).unwrap();
    let mut document = manifest(&folder);
    document.as_object_mut().unwrap().shift_remove("seal");
    let sum = FileSum::of(text.as_bytes());
    document["splits"]["all"]["tables"]["ids.csv"] = json!({"bytes": sum.bytes, "xxh3_64": sum.hex()});
    std::fs::write(folder.join("manifest.json"), seal::sealed(&document)).unwrap();
    let before = env.tree("").len();
    env.ok(&["unpack", "out", "-o", "deep/files", "-q"]);
    let inside = env.tree("deep/files").len();
    assert_eq!((env.tree("").len() - before, inside), (5, 5));
    assert!(!Path::new("/tmp/prep-evil.jpg").exists());
}

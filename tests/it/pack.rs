//! Shards: every row is in them once, the bytes are those of the page in `docs/cache.md`, and nothing that happens on
//! the way changes them. The re-reader here knows that page alone, not the code that writes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use imgprep::decode::{Chroma, Shape};
use imgprep::out::TEMP_PREFIX;
use imgprep::pixels::Rgb8;
use serde_json::Value;

use crate::env::{Env, jpeg, picture, png};
use crate::pictures;

/// A sample as the re-reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub payload: Vec<u8>,
    pub size: (usize, usize),
    pub label: i64,
    pub group: i32,
    pub row: u32,
    pub flags: u32,
    pub path: String,
    pub offset: usize,
    pub shard: usize,
}

fn le(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// The data of a `.npy` file behind its header.
fn npy(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    assert!(bytes.starts_with(b"\x93NUMPY\x01\x00"), "{}", path.display());
    let start = 10 + le(&bytes[8..10]) as usize;
    assert_eq!(start % 64, 0);
    bytes[start..].to_vec()
}

pub fn manifest(cache: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(cache.join("manifest.json")).unwrap()).unwrap()
}

/// All samples of a part, by the page.
pub fn read(cache: &Path, split: &str) -> Vec<Seen> {
    let manifest = manifest(cache);
    let part = &manifest["splits"][split];
    let folder = cache.join(part.get("folder").map_or(split, |f| f.as_str().unwrap()));
    let shards: Vec<Vec<u8>> = part["shards"]
        .as_array()
        .unwrap()
        .iter()
        .map(|shard| std::fs::read(folder.join(shard["name"].as_str().unwrap())).unwrap())
        .collect();
    let labels = npy(&folder.join("labels.npy"));
    let ids: Vec<BTreeMap<String, String>> =
        csv::Reader::from_path(folder.join("ids.csv")).unwrap().deserialize().map(Result::unwrap).collect();
    let rows = npy(&folder.join("rows.npy"));
    assert_eq!((rows.len() / 40, labels.len() / 8), (ids.len(), ids.len()));
    let mut seen = Vec::new();
    for (i, b) in rows.chunks_exact(40).enumerate() {
        let (offset, shard, size) = (le(&b[..8]) as usize, le(&b[8..12]) as usize, le(&b[12..16]) as usize);
        let payload = shards[shard][offset..offset + size].to_vec();
        assert_eq!(pictures::crc32(&payload), le(&b[28..32]) as u32, "{split} {i}");
        assert_eq!(ids[i]["sample"], i.to_string());
        assert_eq!(ids[i]["row"], le(&b[32..36]).to_string());
        let label = le(&labels[i * 8..i * 8 + 8]) as i64;
        assert_eq!(label, i64::from(le(&b[20..24]) as i32));
        seen.push(Seen {
            payload,
            size: (le(&b[18..20]) as usize, le(&b[16..18]) as usize),
            label,
            group: le(&b[24..28]) as i32,
            row: le(&b[32..36]) as u32,
            flags: le(&b[36..40]) as u32,
            path: ids[i]["path"].clone(),
            offset,
            shard,
        });
    }
    seen
}

/// The samples of an mds shard by MosaicML's rules: image and label of each.
fn mds(shard: &[u8]) -> Vec<(Vec<u8>, i64)> {
    let n = le(&shard[..4]) as usize;
    let at = |i: usize| le(&shard[4 + 4 * i..8 + 4 * i]) as usize;
    assert_eq!(at(n), shard.len());
    assert_eq!(shard.len() % 4096, 0);
    (0..n)
        .map(|i| {
            let sample = &shard[at(i)..at(i + 1)];
            let (image, label) = (le(&sample[..4]) as usize, le(&sample[4..8]) as usize);
            assert_eq!(label, 8);
            (sample[8..8 + image].to_vec(), le(&sample[8 + image..16 + image]) as i64)
        })
        .collect()
}

/// The members of a tar by POSIX's rules.
fn tar(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    assert_eq!(archive.len() % 10_240, 0);
    let (mut at, mut members) = (0, Vec::new());
    while archive[at] != 0 {
        let head = &archive[at..at + 512];
        let text = |from: usize, to: usize| {
            String::from_utf8(head[from..to].split(|b| *b == 0).next().unwrap().to_vec()).unwrap()
        };
        let octal = |from, to| usize::from_str_radix(text(from, to).trim(), 8).unwrap();
        let sum: usize = head
            .iter()
            .enumerate()
            .map(|(i, b)| if (148..156).contains(&i) { 32 } else { usize::from(*b) })
            .sum();
        assert_eq!(octal(148, 156), sum);
        assert_eq!((&text(257, 263)[..], octal(136, 148), head[156]), ("ustar", 0, b'0'));
        let size = octal(124, 136);
        members.push((text(0, 100), archive[at + 512..at + 512 + size].to_vec()));
        at += 512 + size.div_ceil(512) * 512;
    }
    members
}

/// Pictures in two classes and two parts, and some that are not usable.
pub fn set(env: &Env, name: &str, n: u32) {
    for i in 0..n {
        let part = if i % 4 == 3 { "val" } else { "train" };
        let class = if i % 3 == 0 { "rust" } else { "scab" };
        let file = format!("{name}/{part}/{class}/{i:03}");
        match i % 5 {
            4 => env.write(format!("{file}.png"), &png(96, 64, i)),
            _ => env.write(format!("{file}.jpg"), &jpeg(64 + i % 7, 48, i)),
        };
    }
    let whole = jpeg(300, 200, 1);
    env.write(format!("{name}/train/rust/cut.jpg"), &whole[..whole.len() * 2 / 3]);
    env.write(format!("{name}/train/scab/none.jpg"), b"");
}

fn options(layout: &str, raw: bool) -> Vec<&'static str> {
    let mut args = match layout {
        "mds" => vec!["--layout", "mds"],
        "wds" => vec!["--layout", "wds"],
        "npy" => vec!["--layout", "npy"],
        _ => vec!["--layout", "beton"],
    };
    args.extend(if raw { ["--size", "32x40"].as_slice() } else { ["--store", "jpeg"].as_slice() });
    args.extend(["--shard-size", "64k", "-q"]);
    args
}

fn pack(env: &Env, input: &str, out: &str, args: &[&str]) {
    let mut all = vec!["pack", input, "-o", out];
    all.extend(args);
    env.ok(&all);
}

/// Everything that a run leaves, but for its own corner.
fn result(env: &Env, folder: &str) -> Vec<(String, Vec<u8>)> {
    let mut tree = env.tree(folder);
    tree.retain(|(name, _)| !name.starts_with(".prep/"));
    assert!(tree.len() > 8, "{} files", tree.len());
    tree
}

#[test]
fn every_row_is_in_one_part_or_left_out_and_every_layout_holds_the_same_samples() {
    let env = Env::new();
    set(&env, "in", 40);
    for raw in [true, false] {
        let mut all: Vec<BTreeMap<u32, (Vec<u8>, i64)>> = Vec::new();
        for layout in ["mds", "wds", "npy", "beton"] {
            if layout == "npy" && !raw {
                continue;
            }
            let out = format!("{layout}-{raw}");
            pack(&env, "in", &out, &options(layout, raw));
            let (train, val) = (read(&env.path(&out), "train"), read(&env.path(&out), "val"));
            assert_eq!((train.len(), val.len()), (30, 10), "{out}");
            let left = env.rows(format!("{out}/left_out.csv"));
            let reasons: Vec<&str> = left.iter().map(|r| r["reason"].split(':').next().unwrap()).collect();
            assert_eq!(reasons, ["truncated", "empty"]);
            let mut rows: BTreeSet<u32> = train.iter().chain(&val).map(|s| s.row).collect();
            rows.extend(left.iter().map(|r| r["row"].parse::<u32>().unwrap()));
            assert_eq!(rows, (0..42).collect());
            for sample in train.iter().chain(&val) {
                let class = if sample.path.contains("/rust/") { 0 } else { 1 };
                assert_eq!(sample.label, class, "{}", sample.path);
                assert_eq!(sample.group, -1);
                if raw {
                    assert_eq!((sample.size, sample.payload.len()), ((40, 32), 40 * 32 * 3));
                }
            }
            let samples = train.into_iter().chain(val).map(|s| (s.row, (s.payload, s.label)));
            all.push(samples.collect());
        }
        assert!(all.len() >= 3 && all.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

#[test]
fn mds_shards_are_read_by_the_rules_of_mosaicml_of_litdata_and_of_numpy() {
    let env = Env::new();
    set(&env, "in", 40);
    let more: [(&str, &[&str], &str); 3] = [
        ("fixed", &["--size", "32x40"], "ndarray:uint8:32,40,3"),
        ("jpeg", &[], "jpeg"),
        ("pil", &["--store", "raw"], "pil"),
    ];
    for (out, args, encoding) in more {
        pack(&env, "in", out, &[args, &["--shard-size", "100k", "-q"]].concat());
        let samples = read(&env.path(out), "train");
        let index: Value =
            serde_json::from_slice(&std::fs::read(env.path(format!("{out}/train/index.json"))).unwrap())
                .unwrap();
        let (shards, chunks) = (index["shards"].as_array().unwrap(), index["chunks"].as_array().unwrap());
        assert!(shards.len() > 1 && shards.len() == chunks.len(), "{out}: {} shards", shards.len());
        let document = manifest(&env.path(out));
        let mut at = 0;
        for (number, (shard, chunk)) in shards.iter().zip(chunks).enumerate() {
            let name = shard["raw_data"]["basename"].as_str().unwrap();
            assert_eq!(chunk["filename"], name);
            let bytes = std::fs::read(env.path(format!("{out}/train/{name}"))).unwrap();
            assert!(bytes.len() <= 100_000);
            assert_eq!(shard["raw_data"]["bytes"], bytes.len());
            assert_eq!(chunk["chunk_bytes"], bytes.len());
            assert_eq!(shard["column_encodings"][0], encoding);
            assert_eq!(shard["column_sizes"], serde_json::json!([null, null]));
            let known = [
                "version",
                "format",
                "compression",
                "hashes",
                "size_limit",
                "column_names",
                "column_encodings",
                "column_sizes",
                "samples",
                "raw_data",
                "zip_data",
            ];
            assert!(
                shard.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())),
                "MosaicML refuses others"
            );
            let entry = &document["splits"]["train"]["shards"][number];
            let (image0, stride) = (entry["image0"].as_u64().unwrap() as usize, &document["image"]["stride"]);
            let read = mds(&bytes);
            assert_eq!(shard["samples"], read.len());
            for (i, (image, label)) in read.iter().enumerate() {
                let sample = &samples[at + i];
                assert_eq!((sample.shard, sample.label, sample.offset % 4096), (number, *label, 0));
                let pixels = if encoding == "pil" { &image[15..] } else { &image[..] };
                assert_eq!(pixels, sample.payload);
                if encoding == "pil" {
                    assert_eq!((le(&image[..4]) as usize, le(&image[4..8]) as usize), sample.size);
                    assert_eq!((le(&image[8..12]), &image[12..15]), (3, &b"RGB"[..]));
                }
                if let Some(stride) = stride.as_u64() {
                    assert_eq!(sample.offset, image0 + i * stride as usize);
                }
            }
            at += read.len();
        }
        assert_eq!(at, samples.len());
    }
}

#[test]
fn tars_hold_adjacent_members_and_their_indexes_point_into_them() {
    let env = Env::new();
    set(&env, "in", 20);
    pack(&env, "in", "out", &options("wds", false));
    let samples = read(&env.path("out"), "train");
    let wids: Value =
        serde_json::from_slice(&std::fs::read(env.path("out/train/wids.json")).unwrap()).unwrap();
    let mut at = 0;
    for shard in wids["shardlist"].as_array().unwrap() {
        let name = shard["url"].as_str().unwrap();
        let archive = std::fs::read(env.path(format!("out/train/{name}"))).unwrap();
        assert_eq!(shard["filesize"], archive.len());
        let members = tar(&archive);
        let index =
            std::fs::read_to_string(env.path(format!("out/train/{}", name.replace(".tar", ".idx")))).unwrap();
        let mut lines = index.lines();
        assert_eq!(lines.next().unwrap(), format!("v1.2 {}", shard["nsamples"]));
        for group in members.chunks(3) {
            let sample = &samples[at];
            let key = format!("{:09}", sample.row);
            let names: Vec<&str> =
                group.iter().map(|(name, _)| name.strip_prefix(&key[..]).unwrap()).collect();
            assert_eq!(names, [".cls", ".jpg", ".json"]);
            assert_eq!(group[0].1, sample.label.to_string().as_bytes());
            assert_eq!(group[1].1, sample.payload);
            let about: Value = serde_json::from_slice(&group[2].1).unwrap();
            assert_eq!(
                (about["path"].as_str().unwrap(), about["row"].as_u64().unwrap()),
                (&sample.path[..], u64::from(sample.row))
            );
            let words: Vec<&str> = lines.next().unwrap().split(' ').collect();
            for (four, (name, content)) in words.chunks(4).zip(group) {
                let (from, size): (usize, usize) = (four[1].parse().unwrap(), four[2].parse().unwrap());
                assert_eq!((four[3], &archive[from..from + size]), (&name[..], &content[..]));
            }
            at += 1;
        }
        assert!(lines.next().is_none());
    }
    assert_eq!(at, samples.len());
}

#[test]
fn betons_are_read_by_the_rules_of_ffcv_and_npy_shards_by_those_of_numpy() {
    let env = Env::new();
    set(&env, "in", 20);
    pack(&env, "in", "out", &options("beton", true));
    let samples = read(&env.path("out"), "train");
    let file = std::fs::read(env.path("out/train/train.beton")).unwrap();
    let page = le(&file[4..8]) as usize;
    assert_eq!((le(&file[..2]), le(&file[2..4]), le(&file[8..16]) as usize), (2, 2, samples.len()));
    assert!(page >= 2 << 20 && page.is_power_of_two());
    assert_eq!(
        (file[24], &file[25..30], file[24 + 1041], &file[24 + 1042..24 + 1047]),
        (2, &b"image"[..], 1, &b"label"[..])
    );
    let table = le(&file[16..24]) as usize;
    assert_eq!(file.len(), table + 24 * samples.len());
    for (i, sample) in samples.iter().enumerate() {
        let meta = &file[24 + 2 * 1041 + 24 * i..][..24];
        let at = le(&meta[5..13]) as usize;
        assert_eq!((meta[0], le(&meta[1..3]), le(&meta[3..5])), (1, 40, 32));
        assert_eq!(le(&meta[16..24]) as i64, sample.label);
        assert_eq!(&file[at..at + 32 * 40 * 3], sample.payload);
        assert_eq!(at / page, (at + 32 * 40 * 3 - 1) / page, "a sample crosses a page");
        let entry = &file[table + 24 * i..][..24];
        assert_eq!(
            (le(&entry[..8]) as usize, le(&entry[8..16]) as usize, le(&entry[16..]) as usize),
            (i, at, 32 * 40 * 3)
        );
    }
    pack(&env, "in", "npy", &options("npy", true));
    let samples = read(&env.path("npy"), "train");
    let first = std::fs::read(env.path("npy/train/images-00000.npy")).unwrap();
    let n = (first.len() - 4096) / (32 * 40 * 3);
    let header = String::from_utf8_lossy(&first[10..4096]).into_owned();
    assert!(header.contains(&format!("'shape': ({n}, 32, 40, 3)")) && header.contains("'|u1'"), "{header}");
    for (i, sample) in samples.iter().take(n).enumerate() {
        assert_eq!(&first[4096 + i * 3840..4096 + (i + 1) * 3840], sample.payload);
    }
}

#[test]
fn the_bytes_of_every_layout_are_those_of_the_golden_run() {
    let env = Env::new();
    // PNGs at the size that is asked for: no JPEG codec and no filter decides these bytes.
    for i in 0..12 {
        env.write(format!("in/{}/{i:02}.png", ["a", "b", "c"][i as usize % 3]), &png(40, 32, i));
    }
    let golden = [
        ("mds", "1a0f4862d044511d0f094e42a438ac44"),
        ("wds", "c6d28ede2606102e18986ec782f2d79f"),
        ("npy", "e0d8466fdc4b5a8cb0ea999aa1ddc14c"),
        ("beton", "12b2167c7d4a2485e4d80d15cb688518"),
    ];
    let mut got = Vec::new();
    for (layout, _) in golden {
        pack(&env, "in", layout, &options(layout, true));
        let mut hasher = blake3::Hasher::new();
        for (name, bytes) in result(&env, layout) {
            // The manifest names the version, and the reader beside it changes.
            if name != "manifest.json" && name != "prep_cache.py" {
                hasher.update(name.as_bytes()).update(&bytes);
            }
        }
        got.push((layout, hasher.finalize().to_hex()[..32].to_owned()));
    }
    let got: Vec<(&str, &str)> = got.iter().map(|(layout, hash)| (*layout, hash.as_str())).collect();
    assert_eq!(got, golden, "old caches must stay readable: when the format must change, so must SCHEMA");
}

#[test]
fn threads_do_not_change_a_byte() {
    let env = Env::new();
    set(&env, "in", 40);
    for (layout, raw) in [("mds", false), ("wds", true), ("beton", false)] {
        let first = format!("{layout}-1");
        pack(&env, "in", &first, &[options(layout, raw), vec!["-j", "1"]].concat());
        for threads in ["2", "8"] {
            let out = format!("{layout}-{threads}");
            pack(&env, "in", &out, &[options(layout, raw), vec!["-j", threads]].concat());
            assert!(result(&env, &first) == result(&env, &out), "{layout} on {threads} threads");
        }
    }
}

#[test]
fn the_order_is_that_of_the_page_and_depends_on_the_seed() {
    let env = Env::new();
    set(&env, "in", 30);
    let paths =
        |out: &str| -> Vec<String> { read(&env.path(out), "train").into_iter().map(|s| s.path).collect() };
    pack(&env, "in", "source", &["--order", "source", "-q"]);
    let sorted = paths("source");
    assert!(sorted.is_sorted() && sorted.len() > 20);
    for seed in [0_u64, 7] {
        let out = format!("seed-{seed}");
        pack(&env, "in", &out, &["--seed", &seed.to_string(), "-q"]);
        let key = blake3::derive_key("imgprep 2026 pack order 1", &seed.to_le_bytes());
        let mut want = sorted.clone();
        want.sort_by_key(|path| *blake3::keyed_hash(&key, path.as_bytes()).as_bytes());
        assert_eq!(paths(&out), want);
        assert_ne!(want, sorted);
    }
}

#[test]
fn every_jpeg_in_a_shard_is_one_that_gpus_take_and_what_is_one_already_is_not_coded_again() {
    let env = Env::new();
    let photo = pictures::picture(160, 120, 5);
    let shape =
        |chroma, progressive| Shape { quality: 90, chroma, progressive, restart_rows: 0, arithmetic: false };
    let baseline = pictures::jpeg(&photo, shape(Chroma::Yuv420, false));
    let exif = [b"Exif\0\0".as_slice(), &pictures::exif(6)].concat();
    let turned = pictures::after_soi(&baseline, &pictures::segment(0xe1, &exif));
    let noted = pictures::after_soi(&baseline, &pictures::segment(0xfe, b"a comment that stays behind"));
    let files = [
        ("baseline.jpg", baseline.clone()),
        ("noted.jpg", noted),
        ("progressive.jpg", pictures::jpeg(&photo, shape(Chroma::Yuv420, true))),
        ("fine.jpg", pictures::jpeg(&photo, shape(Chroma::Yuv444, false))),
        ("gray.jpg", pictures::jpeg(&photo, shape(Chroma::Gray, false))),
        ("turned.jpg", turned),
        ("lossless.png", png(160, 120, 3)),
    ];
    for (name, bytes) in &files {
        env.write(format!("in/{name}"), bytes);
    }
    for (sub, chroma, copied) in [
        ("420", Chroma::Yuv420, vec!["baseline.jpg", "noted.jpg"]),
        ("444", Chroma::Yuv444, vec!["fine.jpg"]),
    ] {
        let out = format!("out-{sub}");
        pack(&env, "in", &out, &["--chroma", sub, "-q"]);
        let samples = read(&env.path(&out), "all");
        assert_eq!(samples.len(), files.len());
        let mut as_they_were = Vec::new();
        for sample in &samples {
            let opened =
                imgprep::decode::open(&sample.payload, Path::new("x.jpg"), &Default::default()).unwrap();
            let header = opened.header();
            let kind = header.jpeg.unwrap();
            assert!(kind.plain && !kind.progressive && kind.chroma == chroma, "{}: {kind:?}", sample.path);
            assert_eq!((header.orientation as u8, header.src_mode().as_str()), (1, "RGB"));
            let want = if sample.path == "turned.jpg" { (120, 160) } else { (160, 120) };
            assert_eq!(sample.size, want, "{}", sample.path);
            assert_eq!(sample.flags & 1, 1);
            assert!(!sample.payload.windows(9).any(|w| w == b"a comment"));
            if sample.flags & 2 != 0 {
                as_they_were.push(sample.path.as_str());
                let source = &files.iter().find(|(name, _)| *name == sample.path).unwrap().1;
                let start = pictures::entropy_start(source);
                assert!(sample.payload.ends_with(&source[start..]), "{}: the coded data differ", sample.path);
            }
        }
        as_they_were.sort_unstable();
        assert_eq!(as_they_were, copied);
    }
}

#[test]
fn pixels_are_those_of_the_decoder_fitted_as_asked() {
    let env = Env::new();
    let photo = picture(80, 40, 2);
    env.write("in/a.png", &png(80, 40, 2));
    let one = |out: &str, args: &[&str]| -> (Rgb8, u32) {
        pack(&env, "in", out, &[args, &["-q"]].concat());
        let sample = read(&env.path(out), "all").remove(0);
        (Rgb8::new(sample.size.0 as u32, sample.size.1 as u32, sample.payload), sample.flags)
    };
    assert_eq!(one("whole", &["--store", "raw"]).0, photo);
    let (crop, _) = one("crop", &["--size", "40x40"]);
    let middle: Vec<u8> =
        (0..40).flat_map(|y| photo.data[(y * 80 + 20) * 3..(y * 80 + 60) * 3].to_vec()).collect();
    assert_eq!(crop.data, middle);
    let (pad, flags) = one("pad", &["--size", "80x80", "--fit", "pad"]);
    assert_eq!((flags, &pad.data[20 * 240..60 * 240], pad.data[0]), (8, &photo.data[..], 0));
    let (stretch, _) = one("stretch", &["--size", "40x40", "--fit", "stretch"]);
    assert_eq!(stretch.size(), (40, 40));
    assert_eq!(one("short", &["--store", "raw", "--short-edge", "20"]).0.size(), (40, 20));
}

#[test]
fn labels_groups_and_parts_come_from_the_table() {
    let env = Env::new();
    let mut table = "path,label,group,split\n".to_owned();
    let rows = [
        ("a", "x", "p1", "train"),
        ("b", "x|y", "p2", "train"),
        ("c", "", "", "../evil"),
        ("d", "z", "p1", ""),
    ];
    for (i, (name, label, group, split)) in rows.iter().enumerate() {
        env.write(format!("in/{name}.png"), &png(30 + i as u32, 20, i as u32));
        table.push_str(&format!("{name}.png,{label},{group},{split}\n"));
    }
    env.write("in/labels.csv", table.as_bytes());
    pack(&env, "in", "out", &["--order", "source", "-q"]);
    let document = manifest(&env.path("out"));
    assert_eq!(document["classes"], serde_json::json!(["x", "y", "z"]));
    let names: Vec<&String> = document["splits"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["train", "../evil", "unassigned"]);
    assert!(!env.path("evil").exists() && env.path("out/%2E.%2Fevil/rows.npy").exists());
    let train = read(&env.path("out"), "train");
    assert_eq!((train[0].label, train[0].group, train[0].flags & 4), (0, 0, 0));
    assert_eq!((train[1].label, train[1].group, train[1].flags & 4), (-1, 1, 4));
    let evil = read(&env.path("out"), "../evil");
    assert_eq!((evil[0].label, evil[0].group), (-1, -1));
    assert_eq!(
        read(&env.path("out"), "unassigned")[0].group,
        0,
        "the same group has the same index in all parts"
    );
    // Sample 1 is in both of its classes.
    let ptr: Vec<u64> = npy(&env.path("out/train/class_ptr.npy")).chunks(8).map(le).collect();
    let of: Vec<u64> = npy(&env.path("out/train/class_rows.npy")).chunks(4).map(le).collect();
    assert_eq!((ptr, of), (vec![0, 2, 3, 3], vec![0, 1, 1]));
    env.ok(&["verify", "out", "--read-data", "-q"]);
}

#[test]
fn the_constants_of_the_manifest_are_those_of_the_packed_pixels() {
    let env = Env::new();
    set(&env, "in", 20);
    pack(&env, "in", "out", &options("mds", true));
    let (mut n, mut sum, mut squares) = (0.0, [0.0; 3], [0.0; 3]);
    for sample in read(&env.path("out"), "train") {
        for pixel in sample.payload.chunks_exact(3) {
            n += 1.0;
            for c in 0..3 {
                let v = f64::from(pixel[c]) / 255.0;
                sum[c] += v;
                squares[c] += v * v;
            }
        }
    }
    let document = manifest(&env.path("out"));
    assert_eq!(document["stats"]["pixels"].as_f64(), Some(n));
    for c in 0..3 {
        let mean = sum[c] / n;
        let std = (squares[c] / n - mean * mean).sqrt();
        assert!((document["stats"]["mean"][c].as_f64().unwrap() - mean).abs() < 1e-9);
        assert!((document["stats"]["std"][c].as_f64().unwrap() - std).abs() < 1e-9);
    }
}

#[test]
fn a_workspace_gets_its_shards_inside_and_its_copies_bit_for_bit() {
    let env = Env::new();
    set(&env, "in", 20);
    env.ok(&["shrink", "in", "-o", "work", "--short-edge", "40", "-q"]);
    env.ok(&["pack", "work", "-q"]);
    let samples = read(&env.path("work/shards"), "train");
    assert_eq!(samples.len(), 15);
    for sample in &samples {
        assert_eq!(
            sample.payload,
            std::fs::read(env.path("work").join(&sample.path)).unwrap(),
            "{}",
            sample.path
        );
        assert_eq!(sample.flags, 3);
    }
    // The copies were not decoded: what they are like on average, only stats can tell.
    assert!(manifest(&env.path("work/shards"))["stats"].is_null());
    env.ok(&["stats", "work", "-q"]);
    env.ok(&["pack", "work", "--force", "-q"]);
    assert!(manifest(&env.path("work/shards"))["stats"]["mean"][0].as_f64().is_some());
    // One that a person or an audit has excluded stays out, with its reason.
    let table = std::fs::read_to_string(env.path("work/manifest.csv")).unwrap();
    let victim = format!("{},rust,", samples.iter().find(|s| s.label == 0).unwrap().path);
    let line = table.lines().find(|line| line.starts_with(&victim)).unwrap();
    let excluded = line.replacen(",ok,,", ",excluded,excluded: blurred,", 1);
    assert_ne!(line, excluded);
    std::fs::write(env.path("work/manifest.csv"), table.replace(line, &excluded)).unwrap();
    env.ok(&["pack", "work", "--force", "-q"]);
    let left = env.rows("work/shards/left_out.csv");
    assert!(left.iter().any(|r| r["status"] == "excluded" && r["reason"] == "excluded: blurred"), "{left:?}");
    assert_eq!(read(&env.path("work/shards"), "train").len(), 14);
    std::fs::write(env.path("work/manifest.csv"), table).unwrap();
    // One that was changed since is decoded, and found out.
    let victim = env.path("work").join(&samples[0].path);
    let bytes = std::fs::read(&victim).unwrap();
    std::fs::write(&victim, &bytes[..bytes.len() / 2]).unwrap();
    env.ok(&["pack", "work", "--force", "-q"]);
    assert!(env.rows("work/shards/left_out.csv").iter().any(|r| r["reason"].starts_with("truncated")));
    assert_eq!(read(&env.path("work/shards"), "train").len(), 14);
}

#[test]
fn a_resumed_run_keeps_whole_shards_and_makes_only_the_others_anew() {
    let env = Env::new();
    set(&env, "in", 60);
    let args = options("mds", false);
    pack(&env, "in", "out", &args);
    let want = result(&env, "out");
    let refused = env.refused(&["pack", "in", "-o", "out", "--shard-size", "64k"]);
    assert!(refused.contains("--resume") && refused.contains("--force"), "{refused}");
    // A flipped bit, a missing shard, no manifest.
    let shard = env.path("out/train/shard.00001.mds");
    let mut bytes = std::fs::read(&shard).unwrap();
    bytes[9000] ^= 1;
    std::fs::write(&shard, bytes).unwrap();
    std::fs::remove_file(env.path("out/val/shard.00000.mds")).unwrap();
    std::fs::remove_file(env.path("out/manifest.json")).unwrap();
    let args: Vec<&str> = args.iter().copied().filter(|a| *a != "-q").collect();
    let ran = env.ok(&[&["pack", "in", "-o", "out", "--resume", "--json"], &args[..]].concat());
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let shards = report["shards"].as_u64().unwrap();
    assert!(shards >= 4, "{report}");
    assert_eq!(report["resumed_shards"].as_u64().unwrap(), shards - 2, "{report}");
    assert!(result(&env, "out") == want);
    // A source that changed is packed anew.
    env.write("in/train/rust/000.jpg", &jpeg(64, 48, 99));
    let ran = env.ok(&[&["pack", "in", "-o", "out", "--resume", "-q"], &args[..]].concat());
    assert!(result(&env, "out") != want, "{}", ran.stderr);
    pack(&env, "in", "fresh", &args);
    let sources = |tree: Vec<(String, Vec<u8>)>| tree;
    assert!(sources(result(&env, "out")) == sources(result(&env, "fresh")));
    let refused = env.refused(&["pack", "in", "-o", "out", "--resume", "--quality", "50"]);
    assert!(refused.contains("--force"), "{refused}");
}

#[test]
fn kills_leave_no_manifest_or_a_whole_cache_and_the_resumed_result_is_the_same() {
    // One is written whole from memory, the other as it grows.
    for layout in ["mds", "wds"] {
        kills(layout);
    }
}

fn kills(layout: &str) {
    let env = Env::new();
    set(&env, "in", 80);
    let args = options(layout, false);
    let begun = std::time::Instant::now();
    pack(&env, "in", "whole", &args);
    let whole_run = begun.elapsed();
    let want = result(&env, "whole");
    let rounds: u64 = std::env::var("PREP_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(8);
    let (mut unfinished, mut finished) = (0, 0);
    for round in 0..rounds {
        let pause = whole_run.mul_f64(0.15 + 0.9 * ((round * 7) % rounds) as f64 / rounds as f64);
        let mut command =
            env.command(&[&["pack", "in", "-o", "out", "--resume", "-j", "2"], &args[..]].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        std::thread::sleep(pause);
        let group = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        child.wait().unwrap();
        if !env.path("out").exists() {
            continue;
        }
        if env.path("out/manifest.json").exists() {
            finished += 1;
            env.ok(&["verify", "out", "--read-data", "-q"]);
            assert!(result_of_kill(&env) == want);
            std::fs::remove_dir_all(env.path("out")).unwrap();
        } else {
            unfinished += 1;
            // What has a final name is whole.
            for (name, bytes) in result_of_kill(&env) {
                let whole = want.iter().find(|(n, _)| *n == name);
                assert!(whole.is_some_and(|(_, b)| *b == bytes), "{name} is half a file");
            }
            let ran = env.run(&["verify", "out"]);
            assert_eq!(ran.code, Some(2), "{} {}", ran.stdout, ran.stderr);
            assert!(ran.stderr.contains("--resume"), "{}", ran.stderr);
        }
    }
    println!("{layout}: {unfinished} kills before the manifest, {finished} after");
    assert!(unfinished >= 2, "only {unfinished} kills met a run at work");
    env.ok(&[&["pack", "in", "-o", "out", "--resume"], &args[..]].concat());
    assert!(result(&env, "out") == want);
}

fn result_of_kill(env: &Env) -> Vec<(String, Vec<u8>)> {
    let mut tree = env.tree("out");
    tree.retain(|(name, _)| !name.starts_with(".prep/") && !name.contains(TEMP_PREFIX));
    tree
}

#[test]
fn a_crash_of_a_decoder_costs_one_row_and_the_run_goes_on_by_itself() {
    let env = Env::new();
    set(&env, "in", 20);
    env.write("in/train/rust/rehearse-abort.jpg", &jpeg(64, 48, 1));
    env.write("in/train/rust/rehearse-panic.jpg", &jpeg(64, 48, 2));
    pack(&env, "in", "out", &options("mds", false));
    let left = env.rows("out/left_out.csv");
    let reasons: BTreeSet<&str> = left.iter().map(|r| r["reason"].split(':').next().unwrap()).collect();
    assert_eq!(reasons, ["crash", "empty", "panic", "truncated"].into());
    assert_eq!(read(&env.path("out"), "train").len(), 15);
}

#[test]
fn what_cannot_be_meant_is_refused_with_a_sentence() {
    let env = Env::new();
    set(&env, "in", 5);
    env.write("other/notes.txt", b"mine");
    for (args, word) in [
        (vec!["pack", "in", "-o", "other"], "not empty"),
        (vec!["pack", "in", "-o", "in/shards"], "inside the input"),
        (vec!["pack", "in", "-o", "out", "--layout", "npy"], "--size"),
        (vec!["pack", "in", "-o", "out", "--layout", "npy", "--size", "8x8", "--store", "jpeg"], "--size"),
        (vec!["pack", "in", "-o", "out", "--size", "8x8", "--fit", "pad", "--short-edge", "9"], "--fit crop"),
        (vec!["pack", "in", "-o", "out", "--memory", "64M"], "--shard-size"),
        (vec!["verify", "other"], "manifest.json"),
        (vec!["unpack", "other", "-o", "out"], "manifest.json"),
    ] {
        let said = env.refused(&args);
        assert!(said.contains(word), "{args:?}: {said}");
    }
    assert_eq!(env.tree("other").len(), 1);
    env.write("empty/a.jpg", b"");
    env.refused(&["pack", "empty", "-o", "none"]);
    assert!(!env.path("none/manifest.json").exists());
}

#[test]
fn what_others_keep_in_the_folder_of_a_cache_stays() {
    let env = Env::new();
    for i in 0..4_u32 {
        env.write(format!("set/a/{i}.jpg"), &jpeg(40, 30, i));
    }
    env.ok(&["pack", "set", "-o", "cache"]);
    env.write("cache/backup/photos.tar", b"mine");
    env.write("cache/backup/labels.npy", b"mine");
    env.ok(&["pack", "set", "-o", "cache", "--resume"]);
    env.ok(&["pack", "set", "-o", "cache", "--force", "--layout", "wds"]);
    assert_eq!(env.tree("cache/backup").len(), 2);
    // Shards of the other layout are gone.
    assert!(env.tree("cache").iter().all(|(name, _)| !name.ends_with(".mds")));
    // A lock that leads elsewhere is not written through.
    env.write("precious", b"precious");
    std::fs::remove_file(env.path("cache/.prep/lock")).unwrap();
    std::os::unix::fs::symlink(env.path("precious"), env.path("cache/.prep/lock")).unwrap();
    env.refused(&["pack", "set", "-o", "cache", "--force"]);
    assert_eq!(std::fs::read(env.path("precious")).unwrap(), b"precious");
}

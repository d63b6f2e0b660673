//! Caches that earlier versions wrote, one folder a schema: they stay readable, and hold the pictures that they held.
//! `WRITE_GOLDEN=1 cargo test --test it golden_cache` writes those of the present schema where there are none;
//! `tests/references/cache.py` reads the same folders with the reader.

use std::path::{Path, PathBuf};

use imgprep::decode::{self, Codec, Contract, Limits};
use imgprep::pixels::Scale;
use imgprep::shards::{Cache, SCHEMA};

use crate::env::Env;

const SIZE: (u32, u32) = (20, 12);

/// Picture `i`: smooth, so that a JPEG of it is near, and each another.
fn picture(i: u32) -> Vec<u8> {
    let (w, h) = SIZE;
    let value = |x: u32, y: u32, c: u32| 20 + 4 * x + 3 * y + 9 * i + 20 * c;
    (0..h).flat_map(|y| (0..w).flat_map(move |x| (0..3).map(move |c| value(x, y, c) as u8))).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, target) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// Packs what the golden caches hold.
fn write(to: &Path) {
    let env = Env::new();
    for i in 0..8 {
        let (part, class) = (["train", "val"][usize::from(i % 4 == 3)], ["ant", "bee"][i as usize % 2]);
        let mut file = format!("P6 {} {} 255\n", SIZE.0, SIZE.1).into_bytes();
        file.extend(picture(i));
        env.write(format!("in/{part}/{class}/{i}.ppm"), &file);
    }
    env.write("in/train/ant/broken.ppm", b"P6 20 12 255\n");
    let size = format!("{}x{}", SIZE.1, SIZE.0);
    for (name, args) in [
        ("mds-raw", vec!["--size", &size]),
        ("mds-jpeg", vec!["--chroma", "444"]),
        ("wds-raw", vec!["--layout", "wds", "--size", &size]),
        ("npy-raw", vec!["--layout", "npy", "--size", &size]),
    ] {
        env.ok(&[&["pack", "in", "-o", name, "-q"], &args[..]].concat());
        std::fs::remove_dir_all(env.path(name).join(".prep")).unwrap();
        copy(&env.path(name), &to.join(name));
    }
}

#[test]
fn caches_of_every_schema_stay_readable_and_hold_what_they_held() {
    let own = folder().join(format!("cache-{SCHEMA}"));
    if std::env::var_os("WRITE_GOLDEN").is_some() && !own.exists() {
        write(&own);
    }
    let mut seen = 0;
    for schema in 1..=SCHEMA {
        let caches = folder().join(format!("cache-{schema}"));
        for cache in std::fs::read_dir(&caches).expect("every schema has its golden caches").flatten() {
            check(&cache.path());
            seen += 1;
        }
    }
    assert!(seen >= 4, "{seen}");
}

fn check(golden: &Path) {
    let env = Env::new();
    copy(golden, &env.path("cache"));
    let cache = Cache::open(&env.path("cache")).unwrap();
    assert!(cache.sealed && cache.classes == ["ant", "bee"] && cache.left_out == 1, "{}", golden.display());
    env.ok(&["verify", "cache", "--read-data"]);
    env.ok(&["unpack", "cache", "-o", "out"]);
    // What an old version wrote can be made anew by this one, too.
    std::fs::remove_file(env.path("cache/train/rows.npy")).unwrap();
    env.ok(&["verify", "cache", "--repair-index"]);
    env.ok(&["verify", "cache", "--read-data"]);
    let labels = env.rows("out/labels.csv");
    assert_eq!(labels.len(), 8);
    for row in labels {
        let path = Path::new(&row["path"]);
        let i: u32 = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        assert_eq!(
            (&*row["split"], &*row["label"]),
            (["train", "val"][usize::from(i % 4 == 3)], ["ant", "bee"][i as usize % 2])
        );
        let bytes = std::fs::read(env.path("out").join(path)).unwrap();
        let opened = decode::open(&bytes, path, &Limits::default()).unwrap();
        let seen = opened.pixels(Scale::FULL, &Contract::default(), &mut Codec::new()).unwrap().rgb;
        assert_eq!(seen.size(), SIZE);
        let off = seen.data.iter().zip(picture(i)).map(|(a, b)| a.abs_diff(b)).max().unwrap();
        let most = if path.extension().unwrap() == "jpg" { 12 } else { 0 };
        assert!(off <= most, "{} {}: off by {off}", golden.display(), path.display());
    }
}

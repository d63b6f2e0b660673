//! A developer's tool: how well near-duplicates are found. Searches the photos below BASE for false pairs, and their
//! edited copies in EDITS (made by `bench/near.py BASE EDITS`) for recall, with the options that audit has by default.
//!
//! `cargo run --release --example near_report -- BASE [EDITS]`
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use imgprep::decode::{self, Codec, Contract, Limits};
use imgprep::engine::blocks;
use imgprep::engine::cancel::Cancel;
use imgprep::measure::{Luma, PLANE, Print};
use imgprep::near::{self, Found, Options, Pair, Tier};
use imgprep::normal::upright_srgb;
use imgprep::pixels::Scale;

const EXTENSIONS: [&str; 6] = ["jpg", "jpeg", "png", "bmp", "webp", "tif"];

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(base) = arguments.next() else {
        eprintln!("near_report BASE [EDITS]");
        return;
    };
    let options = Options { threads: 2, ..Options::default() };
    let photos = pictures(&base);
    let prints = prints_of(&photos);
    let found = search(&prints, &options);
    let n = prints.iter().flatten().count();
    println!("{} pictures, {n} with a print, {} pairs compared", photos.len(), n * n.saturating_sub(1) / 2);
    for tier in [Tier::Sure, Tier::Suspected, Tier::Scene] {
        let of_tier: Vec<&Pair> = found.pairs.iter().filter(|pair| pair.tier == tier).collect();
        println!("\n{} {}:", of_tier.len(), tier.as_str());
        for pair in of_tier {
            let name = |at: usize| photos[at].strip_prefix(&base).unwrap_or(&photos[at]).display();
            println!(
                "{:3} bits {:.3} {:?} {:?}\t{}\t{}",
                pair.distance,
                pair.agreement,
                pair.turn,
                pair.part,
                name(pair.a),
                name(pair.b)
            );
        }
    }
    if let Some(edits) = arguments.next() {
        recall(&prints, &pictures(&edits), &found, &options);
    }
}

fn search(prints: &[Option<Print>], options: &Options) -> Found {
    near::search(prints, options, &Cancel::default(), &mut |_, _| ()).expect("nothing interrupts")
}

/// Finds each edited copy among the photos, and says which share of each edit led to its own photo.
fn recall(prints: &[Option<Print>], edits: &[PathBuf], among: &Found, options: &Options) {
    let copies = prints_of(edits);
    let found = near::against(prints, &copies[..], options, &Cancel::default(), &mut |_, _| ());
    let found = found.expect("nothing interrupts");
    let mut sums: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    let (mut own, mut strangers) = (BTreeMap::new(), 0);
    let names: Vec<(usize, String)> = edits.iter().map(|path| origin(path)).collect();
    let alike = |a: usize, b: usize| among.pairs.iter().any(|p| (p.a, p.b) == (a.min(b), a.max(b)));
    for pair in &found.pairs {
        let from = names[pair.b].0;
        if pair.a == from {
            own.insert(pair.b, pair.tier);
        } else if !alike(pair.a, from) {
            strangers += 1;
        }
    }
    for (at, (_, edit)) in names.iter().enumerate() {
        let group = edit.split('@').next().unwrap_or(edit);
        let keys = if group.starts_with("random") { vec![group] } else { vec![group, edit] };
        for key in keys {
            let sum = sums.entry(key.to_owned()).or_default();
            sum[0] += 1;
            sum[1] += usize::from(own.contains_key(&at));
            sum[2] += usize::from(own.get(&at).is_some_and(|tier| *tier <= Tier::Suspected));
            sum[3] += usize::from(own.get(&at) == Some(&Tier::Sure));
        }
    }
    println!("\nedit\tcopies\tfound %\tsure or suspected %\tsure %");
    for (edit, [all, found, suspected, sure]) in &sums {
        let share = |part: usize| 100.0 * part as f64 / *all as f64;
        println!("{edit}\t{all}\t{:.2}\t{:.1}\t{:.1}", share(*found), share(*suspected), share(*sure));
    }
    println!(
        "{strangers} pairs of a photo with a copy of another that is no near-duplicate, of {}",
        prints.len() * copies.len()
    );
}

/// The place of the photo that a copy was made of, and the edit: `000012@easy@half.jpg`.
fn origin(path: &Path) -> (usize, String) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let (place, edit) = stem.split_once('@').expect("copies are named by bench/near.py");
    (place.parse().expect("a place"), edit.to_owned())
}

/// Every picture below `folder`, sorted by the bytes of its path.
fn pictures(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
            if path.is_dir() {
                folders.push(path);
            } else if extension.is_some_and(|e| EXTENSIONS.contains(&e.as_str())) {
                found.push(path);
            }
        }
    }
    found.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
    found
}

fn prints_of(files: &[PathBuf]) -> Vec<Option<Print>> {
    let step = 32;
    let block = |block: usize| -> Vec<Option<Print>> {
        let mut codec = Codec::new();
        files[block * step..].iter().take(step).map(|file| print_of(file, &mut codec)).collect()
    };
    let blocks = files.len().div_ceil(step);
    blocks::run(2, &Cancel::default(), blocks, block, |_| ()).expect("nothing interrupts").concat()
}

fn print_of(file: &Path, codec: &mut Codec) -> Option<Print> {
    let bytes = std::fs::read(file).ok()?;
    let opened = decode::open(&bytes, file, &Limits::default()).ok()?;
    let decoded = opened.pixels(Scale::FULL, &Contract::default(), codec).ok()?;
    Print::of(&Luma::of(&upright_srgb(decoded.rgb, &decoded.finish), PLANE))
}

//! Our decoder against libjpeg-turbo: the same pictures, and never a clean file that the other calls damaged.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use super::{Decoder, Layout, SCALES};
use crate::decode::complaint::{Pixels, Want};
use crate::decode::jpeg::colour;
use crate::decode::turbo::{self, Compressor};
use crate::decode::walk;
use crate::decode::{Chroma, Shape};
use crate::pixels::{Rgb8, Scale};

const SAMPLINGS: [Chroma; 5] = [Chroma::Yuv420, Chroma::Yuv422, Chroma::Yuv444, Chroma::Yuv440, Chroma::Gray];

/// A small generator of numbers, the same everywhere.
struct Random(u32);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as usize % most.max(1)
    }
}

/// Waves of all lengths and `grain`.
fn picture(width: u32, height: u32, grain: usize) -> Rgb8 {
    let mut random = Random(width * 31 + height);
    let mut data = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let (x, y) = (f64::from(x), f64::from(y));
            for channel in 0..3 {
                let slow = (x / 37.0 + f64::from(channel)).sin() * 50.0 + (y / 23.0).cos() * 40.0;
                let fast = (x * y / 700.0).sin() * 25.0;
                data.push((128.0 + slow + fast) as u8 ^ random.below(grain) as u8);
            }
        }
    }
    Rgb8::new(width, height, data)
}

fn jpeg(picture: &Rgb8, chroma: Chroma, quality: u8, restart_rows: u16) -> Vec<u8> {
    let mut out = Vec::new();
    let shape = Shape { quality, chroma, progressive: false, restart_rows, arithmetic: false };
    Compressor::new().compress_as(picture, shape, &mut out).unwrap();
    out
}

/// What our decoder makes of `bytes`, whatever they are.
fn ours(decoder: &mut Decoder, bytes: &[u8], scale: Scale) -> Option<Pixels> {
    let walk = walk::walk(bytes, 0).ok()?;
    let layout = Layout::of(bytes, &walk, colour(&walk, walk.frame.as_ref()?))?;
    decoder.decode(bytes, &layout, walk.scans.first()?, scale)
}

fn theirs(bytes: &[u8], scale: Scale) -> Pixels {
    let frame = walk::walk(bytes, 0).unwrap().frame.unwrap();
    turbo::decode(bytes, (frame.width, frame.height), scale, Want::Rgb, &mut Vec::new()).unwrap()
}

/// Mean difference by channel (signed), and mean of the absolute ones.
fn difference(a: &Pixels, b: &Pixels) -> ([f64; 3], f64) {
    assert_eq!((a.width, a.height), (b.width, b.height));
    let (mut signed, mut total) = ([0.0; 3], 0.0);
    for (i, (a, b)) in a.data.iter().zip(&b.data).enumerate() {
        let gap = f64::from(*a) - f64::from(*b);
        signed[i % 3] += gap;
        total += gap.abs();
    }
    let count = a.data.len() as f64;
    (signed.map(|sum| sum * 3.0 / count), total / count)
}

#[test]
fn pictures_of_all_sizes_and_samplings_are_those_of_libjpeg_turbo() {
    let mut decoder = Decoder::default();
    let mut worst: f64 = 0.0;
    let sizes = [(1, 1), (8, 8), (17, 33), (31, 7), (64, 48), (129, 127), (640, 11), (333, 250)];
    for (width, height) in sizes {
        for chroma in SAMPLINGS {
            for (quality, restart_rows) in [(75, 0), (95, 1), (100, 2)] {
                let file = jpeg(&picture(width, height, 8), chroma, quality, restart_rows);
                for eighths in SCALES {
                    let scale = Scale::eighths(eighths);
                    let what = format!("{width}x{height} {chroma:?} q{quality} {eighths}/8");
                    let own = ours(&mut decoder, &file, scale).unwrap_or_else(|| panic!("{what}: refused"));
                    let (signed, mean) = difference(&own, &theirs(&file, scale));
                    // Where chroma is half as wide alone, the other repeats its samples: a few pixels may differ.
                    let large = own.width * own.height > 2000;
                    let (shift, most) = if large { (0.3, 1.5) } else { (5.0, 5.0) };
                    assert!(signed.iter().all(|gap| gap.abs() < shift), "{what}: {signed:?}");
                    assert!(mean < most, "{what}: {mean}");
                    worst = worst.max(mean);
                }
            }
        }
    }
    assert!(worst > 0.0, "no two decoders are equal: something compares with itself");
}

#[test]
fn flat_pictures_have_the_colours_of_libjpeg_turbo() {
    let mut decoder = Decoder::default();
    let mut random = Random(5);
    for _ in 0..200 {
        let colour: Vec<u8> = (0..3).map(|_| random.below(256) as u8).collect();
        let flat = Rgb8::new(40, 40, colour.repeat(1600));
        for chroma in SAMPLINGS {
            let file = jpeg(&flat, chroma, 90, 0);
            for eighths in SCALES {
                let own = ours(&mut decoder, &file, Scale::eighths(eighths)).unwrap();
                let other = theirs(&file, Scale::eighths(eighths));
                let most = own.data.iter().zip(&other.data).map(|(a, b)| a.abs_diff(*b)).max();
                assert!(most <= Some(1), "{colour:?} {chroma:?} {eighths}/8: {most:?}");
            }
        }
    }
}

/// The mean of the squares of `side` x `side` pixels, for sizes that they divide.
fn boxes(whole: &Pixels, side: usize) -> Vec<f64> {
    let (width, height) = (whole.width as usize, whole.height as usize);
    let mut out = vec![0.0; width / side * (height / side) * 3];
    for (i, value) in whole.data.iter().enumerate() {
        let (x, y) = (i / 3 % width / side, i / 3 / width / side);
        out[(y * (width / side) + x) * 3 + i % 3] += f64::from(*value) / (side * side) as f64;
    }
    out
}

#[test]
fn a_reduced_picture_lies_where_the_whole_one_does() {
    let mut decoder = Decoder::default();
    for chroma in SAMPLINGS {
        let file = jpeg(&picture(320, 240, 1), chroma, 95, 0);
        let whole = theirs(&file, Scale::FULL);
        for (eighths, side) in [(1, 8), (2, 4), (4, 2)] {
            let own = ours(&mut decoder, &file, Scale::eighths(eighths)).unwrap();
            let want = boxes(&whole, side);
            let width = own.width as usize * 3;
            let gap = |shift: usize| {
                let pairs = own.data.iter().enumerate().filter(|(i, _)| i % width + shift < width);
                let gaps = pairs.map(|(i, v)| (f64::from(*v) - want[i + shift]).abs());
                let all: Vec<f64> = gaps.collect();
                all.iter().sum::<f64>() / all.len() as f64
            };
            // One pixel of the reduced picture to the right is far worse.
            assert!(gap(0) < 1.6 && gap(0) * 2.0 < gap(3), "{chroma:?} {eighths}/8: {} {}", gap(0), gap(3));
        }
    }
}

#[test]
fn damaged_files_are_left_to_libjpeg_turbo() {
    let mut decoder = Decoder::default();
    let mut random = Random(99);
    let (mut accepted, mut refused) = (0, 0);
    let files: Vec<Vec<u8>> = SAMPLINGS
        .iter()
        .enumerate()
        .map(|(i, chroma)| jpeg(&picture(90 + i as u32, 70, 16), *chroma, 88, (i % 2) as u16))
        .collect();
    for round in 0..6000 {
        let mut file = files[round % files.len()].clone();
        let changes = 1 + random.below(3);
        // Half of them in the picture data, half anywhere.
        let from = if round % 2 == 0 { file.len() / 3 } else { 2 };
        // Changes may shorten the file.
        for _ in 0..changes {
            let at = from + random.below(file.len().saturating_sub(from));
            match random.below(5) {
                0 => file.truncate(at.max(4)),
                1 => drop(file.drain(at.min(file.len())..(at + 1 + random.below(40)).min(file.len()))),
                2 => file.insert(at.min(file.len()), random.below(256) as u8),
                _ if at < file.len() => file[at] ^= 1 << random.below(8),
                _ => {}
            }
        }
        let scale = Scale::eighths(1 + random.below(4) as u8);
        match ours(&mut decoder, &file, scale) {
            None => refused += 1,
            Some(_) => {
                accepted += 1;
                let complaint = theirs(&file, scale).complaint;
                assert_eq!(complaint, None, "round {round}");
            }
        }
    }
    assert!(accepted > 300 && refused > 2000, "{accepted} accepted, {refused} refused");
}

#[test]
fn what_is_not_needed_to_the_end_is_refused() {
    let file = jpeg(&picture(200, 150, 8), Chroma::Yuv420, 90, 0);
    let mut decoder = Decoder::default();
    let scale = Scale::eighths(3);
    assert!(ours(&mut decoder, &file, scale).is_some());
    let eoi = file.len() - 2;
    let with = |at: usize, bytes: &[u8]| [&file[..at], bytes, &file[at..]].concat();
    let odd = [
        ("a byte too many", with(eoi, &[0x55])),
        ("a byte too few", [&file[..eoi - 1], &file[eoi..]].concat()),
        ("no end", file[..eoi].to_vec()),
        ("a restart nobody asked for", with(eoi, &[0xff, 0xd0])),
        ("junk in the header", with(2, &[1, 2, 3])),
        ("a second picture header", with(2, &[0xff, 0xd8])),
    ];
    for (name, file) in odd {
        assert!(ours(&mut decoder, &file, scale).is_none(), "{name}");
    }
    assert!(ours(&mut decoder, &with(2, &[0xff, 0xff]), scale).is_some(), "fill bytes are no fault");
    assert!(ours(&mut decoder, &file, Scale::FULL).is_none());
}

fn jpegs_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            jpegs_below(&path, found);
        } else if std::fs::read(&path).is_ok_and(|bytes| bytes.starts_with(&[0xff, 0xd8])) {
            found.push(path);
        }
    }
}

#[test]
fn files_of_the_world_are_those_of_libjpeg_turbo() {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let shared = std::env::var_os("PREP_SHARED").map_or_else(beside, PathBuf::from);
    if !shared.join("corpus").is_dir() {
        return;
    }
    let mut files = Vec::new();
    jpegs_below(&shared.join("corpus"), &mut files);
    let mut decoder = Decoder::default();
    let mut compared = 0;
    for file in &files {
        let bytes = std::fs::read(file).unwrap();
        if bytes.len() > 150_000 {
            // Minutes without optimisation, and nothing that smaller ones do not show.
            continue;
        }
        for eighths in SCALES {
            let scale = Scale::eighths(eighths);
            let Some(own) = ours(&mut decoder, &bytes, scale) else { continue };
            let other = theirs(&bytes, scale);
            assert_eq!(other.complaint, None, "{}", file.display());
            let (signed, mean) = difference(&own, &other);
            // Its reduced transforms keep some of the frequencies that we drop: edges of type and cloth differ, and
            // beside pure white ours ring, of which the upper half is clipped: text comes out darker by a level.
            // In small pictures a few clipped pixels shift the mean.
            let large = own.width * own.height > 2500;
            assert!(!large || signed.iter().all(|g| g.abs() < 4.0), "{}: {signed:?}", file.display());
            assert!(!large || mean < 8.0, "{} {eighths}/8: {mean}", file.display());
            compared += 1;
        }
    }
    assert!(compared > 1000, "only {compared} pictures of {} files", files.len());
}

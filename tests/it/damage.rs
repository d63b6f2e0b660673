//! The table of damage: what is done to a file, and what must be said of it. The kinds are those in which the decoders
//! of the field were compared; most of them accept two thirds of this table without a word.
#![allow(clippy::unwrap_used)]

use image::ImageFormat;
use imgprep::fault::{Cause, Status};

use crate::pictures::*;

type Maker = fn(&Files) -> Vec<u8>;

/// What the damage is done to.
struct Files {
    base: Vec<u8>,
    prog: Vec<u8>,
    rst: Vec<u8>,
    other: Vec<u8>,
}

impl Files {
    fn new() -> Self {
        let (one, two) = (picture(640, 480, 1), picture(640, 480, 2));
        Self {
            base: jpeg(&one, BASELINE),
            prog: jpeg(&one, PROGRESSIVE),
            rst: jpeg(&one, RESTARTS),
            other: jpeg(&two, BASELINE),
        }
    }
}

fn cut(file: &[u8], percent: usize) -> Vec<u8> {
    file[..file.len() * percent / 100].to_vec()
}

fn ended(mut file: Vec<u8>) -> Vec<u8> {
    file.extend([0xff, 0xd9]);
    file
}

/// Overwrites bytes at a share of the entropy-coded data.
fn over(file: &[u8], percent: usize, with: &[u8]) -> Vec<u8> {
    let start = entropy_start(file);
    let at = start + (file.len() - start) * percent / 100;
    let mut out = file.to_vec();
    out[at..at + with.len()].copy_from_slice(with);
    out
}

fn flip(file: &[u8], percent: usize, bit: u8) -> Vec<u8> {
    let start = entropy_start(file);
    let mut at = start + (file.len() - start) * percent / 100;
    // Not next to a stuffed byte: a flip there makes a marker, which anybody sees.
    while file[at - 1..at + 2].contains(&0xff) {
        at += 1;
    }
    let mut out = file.to_vec();
    out[at] ^= 1 << bit;
    out
}

fn noise(count: usize) -> Vec<u8> {
    picture(count as u32, 1, 77).data.chunks_exact(3).map(|p| p[0].wrapping_mul(97) ^ p[2]).collect()
}

fn without(file: &[u8], from: usize, count: usize) -> Vec<u8> {
    [&file[..from], &file[from + count..]].concat()
}

fn restart(file: &[u8], number: usize) -> usize {
    let start = entropy_start(file);
    let at = (start..file.len() - 1).filter(|at| file[*at] == 0xff && (0xd0..=0xd7).contains(&file[at + 1]));
    at.into_iter().nth(number).expect("a restart marker")
}

/// Changes the height (at 5) or width (at 7) in the frame header.
fn sized(file: &[u8], at: usize, size: u16) -> Vec<u8> {
    let sof = find_segment(file, 0xc0);
    let mut out = file.to_vec();
    out[sof + at..sof + at + 2].copy_from_slice(&size.to_be_bytes());
    out
}

fn table(file: &[u8], change: impl Fn(&mut [u8])) -> Vec<u8> {
    let dqt = find_segment(file, 0xdb);
    let mut out = file.to_vec();
    change(&mut out[dqt + 5..dqt + 69]);
    out
}

fn crlf(file: &[u8]) -> Vec<u8> {
    file.iter().flat_map(|b| if *b == b'\n' { vec![b'\r', b'\n'] } else { vec![*b] }).collect()
}

/// 33 kinds of damage to a JPEG.
const JPEG: [(&str, Maker); 33] = [
    ("cut at 5 %", |f| cut(&f.base, 5)),
    ("cut at 10 %", |f| cut(&f.base, 10)),
    ("cut at 50 %", |f| cut(&f.base, 50)),
    ("cut at 90 %", |f| cut(&f.base, 90)),
    ("cut at 99 %", |f| cut(&f.base, 99)),
    ("the last 64 bytes lost", |f| f.base[..f.base.len() - 64].to_vec()),
    ("cut at 50 % and ended", |f| ended(cut(&f.base, 50))),
    ("cut at 90 % and ended", |f| ended(cut(&f.base, 90))),
    ("restarts, cut at 60 %", |f| cut(&f.rst, 60)),
    ("progressive, cut at 30 %", |f| cut(&f.prog, 30)),
    ("progressive, cut at 70 %", |f| cut(&f.prog, 70)),
    ("progressive, the last 64 bytes lost", |f| f.prog[..f.prog.len() - 64].to_vec()),
    ("progressive, cut at 50 % and ended", |f| ended(cut(&f.prog, 50))),
    ("progressive, only the first scan, ended", |f| ended(f.prog[..scans(&f.prog)[1]].to_vec())),
    ("progressive, the last scan lost, ended", |f| ended(f.prog[..*scans(&f.prog).last().unwrap()].to_vec())),
    ("one bit flipped", |f| flip(&f.base, 10, 3)),
    ("a bit flipped in ten places", |f| (1..=10).fold(f.base.clone(), |file, i| flip(&file, i * 9, 3))),
    ("progressive, a bit flipped in ten places", |f| {
        (1..=10).fold(f.prog.clone(), |file, i| flip(&file, i * 9, 3))
    }),
    ("16 random bytes in three places", |f| {
        [20, 40, 60].iter().fold(f.base.clone(), |file, at| over(&file, *at, &noise(16)))
    }),
    ("64 random bytes", |f| over(&f.base, 55, &noise(64))),
    ("a sector of zeros", |f| over(&f.base, 30, &[0; 512])),
    ("a page of zeros", |f| over(&f.base, 30, &[0; 4096])),
    ("progressive, a page of zeros", |f| over(&f.prog, 30, &[0; 4096])),
    ("zeros from the middle on", |f| {
        let half = f.base.len() / 2;
        [&f.base[..half], &vec![0; half]].concat()
    }),
    ("512 bytes twice", |f| {
        let at = f.base.len() / 2;
        [&f.base[..at], &f.base[at - 512..]].concat()
    }),
    ("the second half of another file", |f| {
        let half = f.base.len() / 2;
        [&f.base[..half], &f.other[half..]].concat()
    }),
    ("100 bytes deleted", |f| without(&f.base, f.base.len() * 2 / 5, 100)),
    ("a quantization table of zeros", |f| table(&f.base, |t| t.fill(0))),
    ("one bit of a quantization table", |f| table(&f.base, |t| t[5] ^= 16)),
    ("a restart marker lost", |f| without(&f.rst, restart(&f.rst, 9), 2)),
    ("a restart interval lost", |f| {
        without(&f.rst, restart(&f.rst, 9), restart(&f.rst, 10) - restart(&f.rst, 9))
    }),
    ("twice the height in the header", |f| sized(&f.base, 5, 960)),
    ("line ends rewritten", |f| crlf(&f.base)),
];

/// What nobody can see without a checksum.
pub const UNSEEN: [&str; 3] = ["one bit of a quantization table", "100 bytes deleted", "one bit flipped"];

/// Every kind of damage: what it is, the file, and a name that makes its format known.
pub fn broken() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let files = Files::new();
    JPEG.iter().map(|(name, make)| (*name, make(&files), "a.jpg")).chain(others()).collect()
}

#[test]
fn the_makers_change_something_and_their_files_are_whole_before() {
    let files = Files::new();
    for file in [&files.base, &files.prog, &files.rst, &files.other] {
        let (_, notes) = whole(file, "a.jpg");
        assert!(notes.is_empty(), "{notes:?}");
    }
    for (name, make) in JPEG {
        let made = make(&files);
        assert!(![&files.base, &files.prog, &files.rst].contains(&&made), "{name}");
    }
}

#[test]
#[cfg(feature = "turbo")]
fn damage_to_a_jpeg_is_never_taken_for_a_picture() {
    let files = Files::new();
    let mut missed = Vec::new();
    for (name, make) in JPEG {
        match decode(&make(&files), "a.jpg") {
            Err(fault) => assert_ne!(fault.status(), Status::Ok, "{name}"),
            Ok((_, decoded)) if decoded.damage.is_some() => {}
            Ok(_) => missed.push(name),
        }
    }
    assert!(missed.len() <= 3, "{missed:?}");
    assert!(missed.iter().all(|name| UNSEEN.contains(name)), "{missed:?}");
}

#[test]
#[cfg(not(feature = "turbo"))]
fn without_libjpeg_turbo_what_is_cut_is_still_seen() {
    let files = Files::new();
    for (name, make) in JPEG
        .iter()
        .filter(|(name, _)| !name.contains("ended") && (name.contains("cut") || name.contains("lost")))
    {
        let seen = match decode(&make(&files), "a.jpg") {
            Err(fault) => fault.status() != Status::Ok,
            Ok((_, decoded)) => decoded.damage.is_some(),
        };
        assert!(seen || name.contains("restart"), "{name}");
    }
    assert!(!UNSEEN.is_empty());
}

/// How many of 40 random damages of a kind are seen, at least. Overwritten data after which the decoder falls into step
/// again with no block too many or too few cannot be told from a picture; a run of zeros can.
#[test]
#[cfg(feature = "turbo")]
fn random_damage_is_seen_wherever_it_can_be() {
    let files = Files::new();
    let mut state = 12345_u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    let start = entropy_start(&files.base);
    let data = files.base.len() - start;
    let mut seen = [0; 5];
    for _ in 0..40 {
        let at = random(90);
        let cut_at = start + random(data - 2);
        let made = [
            over(&files.base, at, &noise(200)[random(100)..][..16]),
            over(&files.base, at, &[0; 512]),
            over(&files.base, at, &[0; 4096]),
            files.base[..cut_at].to_vec(),
            ended(files.base[..cut_at].to_vec()),
        ];
        for (seen, file) in seen.iter_mut().zip(made) {
            let outcome = decode(&file, "a.jpg");
            *seen +=
                u32::from(outcome.is_err() || outcome.is_ok_and(|(_, decoded)| decoded.damage.is_some()));
        }
    }
    let least = [20, 40, 40, 40, 40];
    assert!(seen.iter().zip(least).all(|(seen, least)| *seen >= least), "{seen:?} of 40, wanted {least:?}");
}

#[test]
#[cfg(feature = "turbo")]
fn a_cut_file_says_how_much_of_it_came() {
    let files = Files::new();
    let (_, decoded) = decode(&cut(&files.base, 47), "a.jpg").unwrap();
    let fault = decoded.damage.expect("damage");
    assert_eq!(fault.cause, Cause::Truncated);
    let percent: f64 =
        fault.detail.split("about ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    // Bytes are not spread evenly over rows; grain makes them nearly so.
    assert!((percent - 47.0).abs() < 6.0, "{fault}");
}

/// PNG whose zlib stream and chunks can be operated on.
fn png_file() -> Vec<u8> {
    let picture = picture(160, 120, 3);
    png((160, 120), png::ColorType::Rgb, png::BitDepth::Eight, &picture.data)
}

fn half(file: &[u8]) -> Vec<u8> {
    file[..file.len() / 2].to_vec()
}

/// 13 kinds of damage to other formats, with the name that makes the format known.
fn others() -> [(&'static str, Vec<u8>, &'static str); 14] {
    let picture = picture(160, 120, 3);
    let png = png_file();
    let idat = png.windows(4).position(|w| w == b"IDAT").unwrap();
    let mut text = chunk(b"tEXt", b"Comment\0rot");
    text[10] ^= 1;
    let bad_text = after_ihdr(&png, &text);
    let mut bad_crc = png.clone();
    bad_crc[idat + 60] ^= 1;
    let palette = {
        let mut out = png::Encoder::new(Vec::new(), 1, 1);
        out.set_color(png::ColorType::Indexed);
        out.set_palette(vec![1, 2, 3]);
        drop(out);
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 8, 8);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_palette(vec![10, 20, 30, 40, 50, 60]);
        encoder.write_header().unwrap().write_image_data(&[1; 64]).unwrap();
        let plte = file.windows(4).position(|w| w == b"PLTE").unwrap();
        file[plte + 5] ^= 64;
        file
    };
    [
        ("PNG, a byte of the picture data", bad_crc, "a.png"),
        ("PNG, a byte of a text chunk", bad_text, "a.png"),
        ("PNG, the checksum of zlib", change_chunk(&png, b"IDAT", |b| *b.last_mut().unwrap() ^= 1), "a.png"),
        ("PNG, a bit under a mended CRC", change_chunk(&png, b"IDAT", |b| b[4000] ^= 4), "a.png"),
        (
            "PNG, half the rows",
            change_chunk(&png, b"IHDR", |b| b[4..8].copy_from_slice(&240_u32.to_be_bytes())),
            "a.png",
        ),
        ("PNG, cut", half(&png), "a.png"),
        ("PNG, a byte of the palette", palette, "a.png"),
        ("GIF, cut", half(&lossless(&picture, ImageFormat::Gif)), "a.gif"),
        ("WebP, cut", half(&lossless(&picture, ImageFormat::WebP)), "a.webp"),
        ("BMP, cut", half(&lossless(&picture, ImageFormat::Bmp)), "a.bmp"),
        ("TIFF, cut", half(&lossless(&picture, ImageFormat::Tiff)), "a.tif"),
        ("PPM, cut", half(&lossless(&picture, ImageFormat::Pnm)), "a.ppm"),
        ("QOI, cut", half(&lossless(&picture, ImageFormat::Qoi)), "a.qoi"),
        ("TGA, cut", half(&lossless(&picture, ImageFormat::Tga)), "a.tga"),
    ]
}

#[test]
fn damage_to_other_formats_is_named() {
    let mut missed = Vec::new();
    for (name, bytes, file) in others() {
        match decode(&bytes, file) {
            Err(fault) => assert!(!fault.detail.is_empty(), "{name}"),
            Ok((_, decoded)) if decoded.damage.is_some() => {}
            Ok(_) => missed.push(name),
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn a_checksum_that_fails_is_called_so() {
    for (name, bytes, file) in
        others().into_iter().filter(|(name, ..)| name.contains("checksum") || name.contains("palette"))
    {
        // A palette that cannot be trusted leaves no pixels to salvage.
        let fault = match decode(&bytes, file) {
            Ok((_, decoded)) => decoded.damage,
            Err(fault) => Some(fault),
        };
        assert_eq!(fault.map(|fault| fault.cause), Some(Cause::Checksum), "{name}");
    }
}

//! Kinds of TIFF and GIF that libraries like to get wrong, made byte by byte.

use std::path::Path;

use imgprep::decode::{self, Limits};
use imgprep::fault::{Cause, Oddity};

use crate::pictures::*;

/// A tag with one or more values: shorts, or longs where they do not fit.
type Tag = (u16, Vec<u32>);

/// A little-endian TIFF of one page in one uncompressed strip.
fn tiff(size: (u32, u32), tags: &[Tag], data: &[u8]) -> Vec<u8> {
    let mut all: Vec<Tag> = vec![
        (256, vec![size.0]),
        (257, vec![size.1]),
        (259, vec![1]),
        (273, vec![8]),
        (278, vec![size.1]),
        (279, vec![data.len() as u32]),
    ];
    all.extend(tags.iter().cloned());
    all.sort();
    let directory = 8 + data.len() + data.len() % 2;
    let mut far = directory + 2 + all.len() * 12 + 4;
    let mut out = b"II\x2a\0".to_vec();
    out.extend((directory as u32).to_le_bytes());
    out.extend(data);
    out.resize(directory, 0);
    out.extend((all.len() as u16).to_le_bytes());
    let mut values = Vec::new();
    for (tag, list) in &all {
        let long = list.iter().any(|v| *v > 65535);
        out.extend(tag.to_le_bytes());
        out.extend(if long { [4, 0] } else { [3, 0] });
        out.extend((list.len() as u32).to_le_bytes());
        let size = if long { 4 } else { 2 };
        let mut bytes: Vec<u8> = list.iter().flat_map(|v| v.to_le_bytes()[..size].to_vec()).collect();
        if bytes.len() <= 4 {
            bytes.resize(4, 0);
            out.extend(bytes);
        } else {
            out.extend((far as u32).to_le_bytes());
            far += bytes.len();
            values.extend(bytes);
        }
    }
    out.extend([0; 4]);
    out.extend(values);
    out
}

/// Bits a sample, samples a pixel, photometric interpretation.
fn kind(bits: u32, samples: usize, photometric: u32) -> Vec<Tag> {
    vec![(258, vec![bits; samples]), (262, vec![photometric]), (277, vec![samples as u32])]
}

fn with(mut tags: Vec<Tag>, more: &[Tag]) -> Vec<Tag> {
    tags.extend(more.iter().cloned());
    tags
}

/// The red samples of a decoded TIFF, which must be gray.
fn grays(bytes: &[u8]) -> Vec<u8> {
    let (rgb, _) = whole(bytes, "a.tif");
    assert!(rgb.data.chunks_exact(3).all(|p| p == [p[0]; 3]), "{:?}", rgb.data);
    rgb.data.iter().step_by(3).copied().collect()
}

#[test]
fn few_bits_are_spread_over_the_whole_range() {
    assert_eq!(grays(&tiff((4, 1), &kind(2, 1, 1), &[0b00_01_10_11])), [0, 85, 170, 255]);
    assert_eq!(grays(&tiff((2, 2), &kind(4, 1, 1), &[0x0f, 0x80])), [0, 255, 136, 0]);
    assert_eq!(grays(&tiff((9, 1), &kind(1, 1, 1), &[0b1010_0000, 0x80])), [255, 0, 255, 0, 0, 0, 0, 0, 255]);
    assert_eq!(grays(&tiff((2, 1), &kind(8, 1, 0), &[0, 200])), [255, 55], "white is zero");
}

#[test]
fn fill_order_2_turns_the_bits_of_each_byte() {
    let tags = with(kind(1, 1, 1), &[(266, vec![2])]);
    assert_eq!(grays(&tiff((8, 1), &tags, &[0b0000_0101])), [255, 0, 255, 0, 0, 0, 0, 0]);
}

#[test]
fn a_tiff_palette_gives_its_colours() {
    let mut map = vec![0; 48];
    (map[1], map[16 + 1], map[32 + 1]) = (65535, 128 * 257, 0);
    (map[2], map[16 + 2], map[32 + 2]) = (10 * 257, 20 * 257, 30 * 257);
    let (rgb, notes) = whole(&tiff((2, 1), &with(kind(4, 1, 3), &[(320, map)]), &[0x12]), "a.tif");
    assert_eq!(rgb.data, [255, 128, 0, 10, 20, 30]);
    assert!(noted(&notes, Oddity::Palette));
}

#[test]
fn a_palette_that_was_scaled_by_256_was_one_level_too_dark() {
    let mut map = vec![0; 48];
    (map[1], map[16 + 1], map[32 + 1]) = (255 * 256, 146 * 256, 256);
    let (rgb, _) = whole(&tiff((1, 1), &with(kind(4, 1, 3), &[(320, map)]), &[0x10]), "a.tif");
    assert_eq!(rgb.data, [255, 146, 1]);
}

#[test]
fn a_palette_that_is_too_short_is_no_picture_and_no_panic() {
    let bytes = tiff((2, 1), &with(kind(4, 1, 3), &[(320, vec![1; 9])]), &[0x12]);
    assert_eq!(decode(&bytes, "a.tif").map(drop).expect_err("a fault").cause, Cause::Undecodable);
}

#[test]
fn planes_are_put_together() {
    let data = [1_u16, 2, 3, 4, 5, 6].map(|v| (v * 257 * 10).to_le_bytes()).concat();
    let mut tags = with(kind(16, 3, 2), &[(284, vec![2])]);
    // A strip for each plane.
    tags.extend([(273, vec![8, 12, 16]), (279, vec![4, 4, 4])]);
    let mut bytes = tiff((2, 1), &tags, &data);
    // The single-strip tags of the maker come first; make them private ones.
    let directory = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
    for i in 0..usize::from(bytes[directory]) {
        let at = directory + 2 + i * 12;
        let (tag, count) = (u16::from_le_bytes([bytes[at], bytes[at + 1]]), bytes[at + 4]);
        if matches!(tag, 273 | 279) && count == 1 {
            bytes[at..at + 2].copy_from_slice(&(40000 + tag).to_le_bytes());
        }
    }
    let (rgb, notes) = whole(&bytes, "a.tif");
    assert_eq!(rgb.data, [10, 30, 50, 20, 40, 60]);
    assert!(noted(&notes, Oddity::DeepBits));
}

#[test]
fn floats_from_0_to_1_are_black_to_white() {
    let data = [0.0_f32, 0.25, 1.0, f32::NAN].map(f32::to_le_bytes).concat();
    let bytes = tiff((4, 1), &with(kind(32, 1, 1), &[(339, vec![3])]), &data);
    assert_eq!(grays(&bytes), [0, 64, 255, 0]);
    let (_, notes) = whole(&bytes, "a.tif");
    assert!(noted(&notes, Oddity::FloatSamples));
    let data = [-10.0_f32, 0.0, 10.0].map(f32::to_le_bytes).concat();
    let bytes = tiff((3, 1), &with(kind(32, 1, 1), &[(339, vec![3])]), &data);
    assert_eq!(grays(&bytes), [0, 128, 255], "from the least to the largest");
}

#[test]
fn associated_alpha_is_not_multiplied_twice() {
    // Half-transparent red: stored as 128 when associated, as 255 when not.
    for (extra, red) in [(1, 128), (2, 255)] {
        let tags = with(kind(8, 4, 2), &[(338, vec![extra])]);
        let (rgb, notes) = whole(&tiff((1, 1), &tags, &[red, 0, 0, 128]), "a.tif");
        assert_eq!(rgb.data, [255, 127, 127], "extra sample {extra}");
        assert!(noted(&notes, Oddity::AlphaFlattened));
    }
    let (rgb, _) = whole(&tiff((1, 1), &with(kind(8, 4, 2), &[(338, vec![0])]), &[9, 8, 7, 0]), "a.tif");
    assert_eq!(rgb.data, [9, 8, 7], "an extra sample that is no alpha");
}

#[test]
fn the_orientation_tag_of_a_tiff_counts() {
    let bytes = tiff((2, 1), &with(kind(8, 1, 1), &[(274, vec![6])]), &[10, 20]);
    let opened = decode::open(&bytes, Path::new("a.tif"), &Limits::default()).expect("a TIFF");
    assert_eq!((opened.header().size(), opened.header().upright_size()), ((2, 1), (1, 2)));
    assert_eq!(grays(&bytes), [10, 20]);
}

/// A GIF of two colours, black and white, with one frame of `frame` (left, top, width, height), all white.
fn gif(canvas: (u16, u16), frame: [u16; 4], transparent: bool, frames: usize) -> Vec<u8> {
    let mut out = b"GIF89a".to_vec();
    out.extend([canvas.0.to_le_bytes(), canvas.1.to_le_bytes()].concat());
    out.extend([0x80, 1, 0, 0, 0, 0, 255, 255, 255]);
    for _ in 0..frames {
        out.extend([0x21, 0xf9, 4, u8::from(transparent), 0, 0, 0, 0]);
        // An extension that nobody knows.
        out.extend([0x21, 0x77, 2, 1, 2, 0]);
        out.push(0x2c);
        out.extend(frame.map(u16::to_le_bytes).concat());
        out.push(0);
        // LZW of 2-bit codes for one pixel value each: clear (4), then pixels (1), each followed by a clear code.
        let mut bits: Vec<bool> = Vec::new();
        let mut code = |value: u8| bits.extend((0..3).map(|i| value >> i & 1 == 1));
        for _ in 0..frame[2] * frame[3] {
            code(4);
            code(1);
        }
        code(5);
        let bytes: Vec<u8> = bits
            .chunks(8)
            .map(|b| b.iter().enumerate().fold(0, |v, (i, bit)| v | u8::from(*bit) << i))
            .collect();
        out.extend([2, bytes.len() as u8]);
        out.extend(bytes);
        out.push(0);
    }
    out.push(0x3b);
    out
}

#[test]
fn a_gif_is_its_canvas_and_its_first_frame() {
    let (rgb, notes) = whole(&gif((3, 2), [1, 0, 1, 1], false, 3), "a.gif");
    assert_eq!(rgb.size(), (3, 2));
    assert_eq!(rgb.data.iter().step_by(3).copied().collect::<Vec<_>>(), [0, 255, 0, 0, 0, 0]);
    assert!(notes.contains(&(Oddity::Frames, "3".to_owned())), "{notes:?}");
    let (rgb, notes) = whole(&gif((3, 2), [1, 0, 1, 1], true, 1), "a.gif");
    assert!(
        rgb.data.iter().all(|v| *v == 255),
        "bare canvas is transparent when the frame has a transparent colour"
    );
    assert!(noted(&notes, Oddity::AlphaFlattened) && !noted(&notes, Oddity::Frames));
}

#[test]
fn a_canvas_grows_to_its_first_frame() {
    let (rgb, notes) = whole(&gif((1, 1), [1, 1, 2, 1], false, 1), "a.gif");
    assert_eq!(rgb.size(), (3, 2));
    assert!(noted(&notes, Oddity::OddParameters));
}

#[test]
fn the_largest_picture_of_an_icon_counts() {
    let small = lossless(&picture(16, 16, 1), image::ImageFormat::Png);
    let large = picture(48, 48, 2);
    let png = lossless(&large, image::ImageFormat::Png);
    let mut out = vec![0, 0, 1, 0, 2, 0];
    for (side, file, at) in [(16, &small, 38), (48, &png, 38 + small.len())] {
        out.extend([side, side, 0, 0, 1, 0, 24, 0]);
        out.extend((file.len() as u32).to_le_bytes());
        out.extend((at as u32).to_le_bytes());
    }
    out.extend(&small);
    out.extend(&png);
    let (rgb, notes) = whole(&out, "a.ico");
    assert_eq!(rgb, large);
    assert!(noted(&notes, Oddity::Frames));
}

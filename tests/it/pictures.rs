//! Pictures made in code, in every format, and the surgery that tests do on them.

use std::io::Cursor;
use std::path::Path;

use image::{DynamicImage, ImageFormat};
use imgprep::decode::{self, Chroma, Codec, Compressor, Contract, Decoded, Limits, Shape};
use imgprep::fault::{Fault, Oddity};
use imgprep::normal::upright_srgb;
use imgprep::pixels::{Rgb8, Scale};

/// A picture as photographs are: smooth and rough parts, edges, a little grain. The same on every machine.
pub fn picture(width: u32, height: u32, seed: u32) -> Rgb8 {
    let mut data = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let rough = smooth(x, y, 64, seed);
            let texture = smooth(x, y, 3, seed + 1) * rough / 255;
            let light = smooth(x, y, 96, seed + 2) * 2 / 5 + texture / 2 + hash(x, y, seed + 3) % 6;
            let edge = if (x + y / 2) / 40 % 3 == 0 { 40 } else { 0 };
            data.push((light + edge) as u8);
            data.push((light + x * 60 / width) as u8);
            data.push((light / 2 + y * 100 / height) as u8);
        }
    }
    Rgb8::new(width, height, data)
}

/// Noise of 0 to 255 with features of `size` pixels.
fn smooth(x: u32, y: u32, size: u32, seed: u32) -> u32 {
    let corner = |dx, dy| hash(x / size + dx, y / size + dy, seed) % 256;
    let (fx, fy) = (x % size, y % size);
    let top = corner(0, 0) * (size - fx) + corner(1, 0) * fx;
    let bottom = corner(0, 1) * (size - fx) + corner(1, 1) * fx;
    (top * (size - fy) + bottom * fy) / (size * size)
}

fn hash(x: u32, y: u32, seed: u32) -> u32 {
    let mut h = x.wrapping_mul(0x9e37_79b1) ^ y.wrapping_mul(0x85eb_ca77) ^ seed.wrapping_mul(0xc2b2_ae3d);
    h = (h ^ h >> 15).wrapping_mul(0x2c1b_3c6d);
    h = (h ^ h >> 12).wrapping_mul(0x297a_2d39);
    h ^ h >> 15
}

/// `picture` as a JPEG.
pub fn jpeg(picture: &Rgb8, shape: Shape) -> Vec<u8> {
    let mut out = Vec::new();
    Compressor::new().compress_as(picture, shape, &mut out).expect("a JPEG");
    out
}

pub const BASELINE: Shape =
    Shape { quality: 90, chroma: Chroma::Yuv420, progressive: false, restart_rows: 0, arithmetic: false };
pub const PROGRESSIVE: Shape = Shape { progressive: true, ..BASELINE };
pub const RESTARTS: Shape = Shape { restart_rows: 1, ..BASELINE };

/// `picture` in a format that `image` writes without loss.
pub fn lossless(picture: &Rgb8, format: ImageFormat) -> Vec<u8> {
    let buffer =
        image::RgbImage::from_raw(picture.width, picture.height, picture.data.clone()).expect("its size");
    let mut out = Cursor::new(Vec::new());
    DynamicImage::from(buffer).write_to(&mut out, format).expect("a picture");
    out.into_inner()
}

/// A PNG of raw rows.
pub fn png(size: (u32, u32), colour: png::ColorType, depth: png::BitDepth, rows: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, size.0, size.1);
    encoder.set_color(colour);
    encoder.set_depth(depth);
    let mut writer = encoder.write_header().expect("a PNG header");
    writer.write_image_data(rows).expect("PNG rows");
    writer.finish().expect("a PNG end");
    out
}

/// Decodes all of it, by the default contract.
pub fn decode(bytes: &[u8], name: &str) -> Result<(Rgb8, Decoded), Fault> {
    decode_as(bytes, name, &Contract::default())
}

/// Decodes all of it: upright sRGB beside what came with it.
pub fn decode_as(bytes: &[u8], name: &str, contract: &Contract) -> Result<(Rgb8, Decoded), Fault> {
    let opened = decode::open(bytes, Path::new(name), &Limits::default())?;
    let decoded = opened.pixels(Scale::FULL, contract, &mut Codec::new())?;
    let rgb = upright_srgb(decoded.rgb.clone(), &decoded.finish);
    Ok((rgb, decoded))
}

/// Decodes a picture that must be whole.
pub fn whole(bytes: &[u8], name: &str) -> (Rgb8, Vec<(Oddity, String)>) {
    let (rgb, decoded) = decode(bytes, name).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    assert_eq!(decoded.damage, None, "{name}");
    (rgb, decoded.notes.into_iter().map(|note| (note.kind, note.detail)).collect())
}

/// Does `notes` have one of this kind?
pub fn noted(notes: &[(Oddity, String)], kind: Oddity) -> bool {
    notes.iter().any(|(k, _)| *k == kind)
}

/// The mean and the largest difference between two pictures of one size.
pub fn difference(a: &Rgb8, b: &Rgb8) -> (f64, u8) {
    assert_eq!(a.size(), b.size());
    let gaps = a.data.iter().zip(&b.data).map(|(a, b)| a.abs_diff(*b));
    let sum: u64 = gaps.clone().map(u64::from).sum();
    (sum as f64 / a.data.len() as f64, gaps.max().unwrap_or(0))
}

/// An EXIF block with an orientation, big-endian as phones write it.
pub fn exif(orientation: u16) -> Vec<u8> {
    let mut out = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01".to_vec();
    out.extend(orientation.to_be_bytes());
    out.extend([0; 6]);
    out
}

/// A JPEG segment.
pub fn segment(marker: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0xff, marker];
    out.extend(((body.len() + 2) as u16).to_be_bytes());
    out.extend(body);
    out
}

/// `jpeg` with `insert` behind its SOI.
pub fn after_soi(jpeg: &[u8], insert: &[u8]) -> Vec<u8> {
    [&jpeg[..2], insert, &jpeg[2..]].concat()
}

/// Where the first segment with this marker begins in a JPEG's header.
pub fn find_segment(jpeg: &[u8], marker: u8) -> usize {
    let mut at = 2;
    while jpeg[at + 1] != marker {
        at += 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
    }
    at
}

/// Where the entropy-coded data of the first scan begin.
pub fn entropy_start(jpeg: &[u8]) -> usize {
    let at = find_segment(jpeg, 0xda);
    at + 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]))
}

/// Where the SOS markers of a JPEG stand.
pub fn scans(jpeg: &[u8]) -> Vec<usize> {
    let first = find_segment(jpeg, 0xda);
    (first..jpeg.len() - 1).filter(|at| jpeg[*at..].starts_with(&[0xff, 0xda])).collect()
}

/// A PNG chunk.
pub fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut out = (body.len() as u32).to_be_bytes().to_vec();
    out.extend(name);
    out.extend(body);
    let crc = crc32(&out[4..]);
    out.extend(crc.to_be_bytes());
    out
}

/// `png` with another chunk put behind its IHDR.
pub fn after_ihdr(png: &[u8], insert: &[u8]) -> Vec<u8> {
    [&png[..33], insert, &png[33..]].concat()
}

/// Changes the body of the first chunk with this name and mends its CRC.
pub fn change_chunk(png: &[u8], name: &[u8; 4], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let at = png.windows(4).position(|w| w == name).expect("the chunk") - 4;
    let length = u32::from_be_bytes([png[at], png[at + 1], png[at + 2], png[at + 3]]) as usize;
    let mut body = png[at + 8..at + 8 + length].to_vec();
    change(&mut body);
    [&png[..at], &chunk(name, &body), &png[at + 12 + length..]].concat()
}

/// CRC-32 bit by bit: another way than the one under test.
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

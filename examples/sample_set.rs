//! Draws a small, messy leaf data set: `sample_set DIR`. Several photos of each plant, classes out of balance, and the
//! mess of real folders: turned photos, gray and transparent pictures, truncated files, a web page called .jpg,
//! duplicates, a label table with faults. Always the same bytes.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a generator of test data, not part of prep"
)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use imgprep::decode::Chroma;
use imgprep::encode::{Encoder, Encoding};
use imgprep::pixels::Rgb8;

/// Photos are this large: cameras make them larger, but the demo should take seconds.
const SIZE: (u32, u32) = (1600, 1200);

fn main() -> io::Result<()> {
    let Some(root) = std::env::args_os().nth(1).map(PathBuf::from) else {
        println!("usage: sample_set DIR");
        return Ok(());
    };
    if root.exists() {
        return Err(io::Error::other(format!("{} is there already", root.display())));
    }
    let mut set = Set { root, rows: vec!["image,label,plant_id".into()], encoder: Encoder::default() };
    for (class, plants, spots) in [("healthy", 9, 0), ("leaf_rust", 6, 1), ("scab", 3, 2)] {
        for plant in 0..plants {
            let plant_id = format!("{}{plant:02}", &class[..1]);
            for photo in 0..3 {
                let name = format!("{class}/IMG_{plant:02}{photo}.jpg");
                let seed = u64::from(spots) * 1000 + plant * 10 + photo;
                let picture = leaf(SIZE.0, SIZE.1, seed, spots);
                let mut bytes = set.jpeg(&picture)?;
                if photo == 2 {
                    bytes = with_orientation(&bytes, 6);
                }
                set.put(&name, &bytes, class, &plant_id)?;
            }
        }
    }
    set.mess()?;
    let table = set.rows.join("\n") + "\n";
    fs::write(set.root.join("labels.csv"), table)?;
    println!("{}: {} rows in labels.csv", set.root.display(), set.rows.len() - 1);
    Ok(())
}

struct Set {
    root: PathBuf,
    rows: Vec<String>,
    encoder: Encoder,
}

impl Set {
    fn encode(&mut self, picture: &Rgb8, encoding: Encoding) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.encoder.encode(picture, encoding, &mut bytes).map_err(io::Error::other)?;
        Ok(bytes)
    }

    fn jpeg(&mut self, picture: &Rgb8) -> io::Result<Vec<u8>> {
        self.encode(picture, Encoding::Jpeg { quality: 93, chroma: Chroma::Yuv420 })
    }

    fn put(&mut self, name: &str, bytes: &[u8], label: &str, plant: &str) -> io::Result<()> {
        self.file(name, bytes)?;
        self.rows.push(format!("{name},{label},{plant}"));
        Ok(())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(path, bytes)
    }

    /// What makes loaders crash, leak or learn the wrong thing.
    fn mess(&mut self) -> io::Result<()> {
        let picture = leaf(SIZE.0, SIZE.1, 77, 1);
        let whole = self.jpeg(&picture)?;
        self.put("leaf_rust/cut.jpg", &whole[..whole.len() * 3 / 5], "leaf_rust", "l90")?;
        self.put("leaf_rust/empty.jpg", b"", "leaf_rust", "l91")?;
        self.put("scab/not_found.jpg", b"<!DOCTYPE html>\n<html><h1>404</h1></html>\n", "scab", "s90")?;
        let png = self.encode(&leaf(900, 700, 78, 0), Encoding::Png)?;
        self.put("healthy/really_a_png.jpg", &png, "healthy", "h90")?;
        self.put("healthy/mask.png", &gray_alpha(700, 900), "healthy", "h91")?;
        self.put("healthy/IMG_000.png", &self_twin(), "healthy", "h92")?;
        // The same photo under two labels, and once more under its own.
        self.put("scab/copy of IMG_000.jpg", &whole, "scab", "s91")?;
        self.put("leaf_rust/IMG_000 (1).jpg", &whole, "leaf_rust", "l92")?;
        self.file("leaf_rust/.DS_Store", b"\0\0\0\x01Bud1")?;
        self.file("healthy/Thumbs.db", b"\xd0\xcf\x11\xe0")?;
        self.file("healthy/not_in_the_table.jpg", &whole)?;
        self.rows.push("healthy/IMG_001.jpg,healthy,h00".into());
        self.rows.push("healthy/IMG_002.jpg,scab,h00".into());
        self.rows.push("healthy/lost.jpg,healthy,h93".into());
        self.rows.push("Scab/IMG_010.jpg,scab ,s01".into());
        Ok(())
    }
}

/// A gray picture with a transparent border, 8 bits.
fn gray_alpha(width: u32, height: u32) -> Vec<u8> {
    let mut pixels = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let inside = x > 60 && y > 60 && x < width - 60 && y < height - 60;
            pixels.extend([((x + y) % 200 + 30) as u8, if inside { 255 } else { 0 }]);
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::GrayscaleAlpha);
    encoder.set_depth(png::BitDepth::Eight);
    if let Ok(mut writer) = encoder.write_header() {
        let _ = writer.write_image_data(&pixels);
    }
    bytes
}

/// A 16-bit gray ramp with the name of a photo but for the extension.
fn self_twin() -> Vec<u8> {
    let pixels: Vec<u8> = (0..512_u32 * 512).flat_map(|i| ((i % 512 * 128) as u16).to_be_bytes()).collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 512, 512);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Sixteen);
    if let Ok(mut writer) = encoder.write_header() {
        let _ = writer.write_image_data(&pixels);
    }
    bytes
}

/// `jpeg` with an EXIF block that says how to turn it.
fn with_orientation(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let exif =
        [b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".as_slice(), &[orientation], &[0; 6]]
            .concat();
    let mut out = jpeg[..2].to_vec();
    out.extend([0xff, 0xe1]);
    out.extend((exif.len() as u16 + 2).to_be_bytes());
    out.extend(exif);
    out.extend(&jpeg[2..]);
    out
}

/// A leaf on soil, with `spots` kinds of damage.
fn leaf(width: u32, height: u32, seed: u64, spots: u32) -> Rgb8 {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (cx, cy) = (0.4 + 0.2 * draw.unit(), 0.4 + 0.2 * draw.unit());
    let (turn, round) = (draw.unit() * 3.1, 0.20 + 0.08 * draw.unit());
    let green = [60.0 + 40.0 * draw.unit(), 120.0 + 40.0 * draw.unit(), 40.0 + 20.0 * draw.unit()];
    let marks: Vec<(f32, f32, f32)> = (0..spots * 30)
        .map(|_| (draw.unit() * 1.6 - 0.8, draw.unit() * 1.6 - 0.8, 0.02 + 0.06 * draw.unit()))
        .collect();
    let mut data = Vec::with_capacity((width * height * 3) as usize);
    for y in 0..height {
        for x in 0..width {
            let (u, v) = (x as f32 / width as f32 - cx, (y as f32 / height as f32 - cy) * 0.75);
            let (a, b) = (u * turn.cos() + v * turn.sin(), v * turn.cos() - u * turn.sin());
            let (a, b) = (a / (round * 1.9), b / round);
            let noise = (draw.next() % 23) as f32 - 11.0;
            let rim = a * a + b * b * (1.0 + 0.5 * a);
            let mut colour = if rim < 1.0 {
                let vein =
                    if b.abs() < 0.03 || (b.abs() * 9.0 - a * 4.0).fract().abs() < 0.06 { 28.0 } else { 0.0 };
                green.map(|c| c + vein + 18.0 * (1.0 - rim))
            } else {
                let soil = 12.0 * ((x / 31) ^ (y / 29)).count_ones() as f32;
                [88.0 + soil, 66.0 + soil, 48.0 + soil * 0.7]
            };
            for (p, q, r) in &marks {
                let near = (a - p).powi(2) + (b - q).powi(2);
                if rim < 1.0 && near < r * r {
                    colour = if spots == 1 { [170.0, 92.0, 30.0] } else { [58.0, 50.0, 38.0] };
                }
            }
            data.extend(colour.map(|c| (c + noise).clamp(0.0, 255.0) as u8));
        }
    }
    Rgb8::new(width, height, data)
}

/// xorshift64*: a short generator whose numbers never change.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
    }

    /// From 0 to below 1.
    fn unit(&mut self) -> f32 {
        (self.next() % 10_000) as f32 / 10_000.0
    }
}

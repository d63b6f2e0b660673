//! A developer's tool: decodes every file below a folder and prints what came of it as CSV, one row a file.
//!
//! `cargo run --example decode_report -- FOLDER [EIGHTHS]`
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use imgprep::decode::{self, Codec, Contract, Limits};
use imgprep::fault::{Cause, Fault, Status, join_notes};
use imgprep::names;
use imgprep::normal::upright_srgb;
use imgprep::pixels::{Rgb8, Scale};

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        eprintln!("decode_report FOLDER [EIGHTHS]");
        return;
    };
    let eighths = arguments.next().and_then(|a| a.to_str()?.parse().ok()).unwrap_or(8);
    std::panic::set_hook(Box::new(|_| {}));
    let mut files = Vec::new();
    walk(&folder, &mut files);
    files.sort();
    let mut out = csv::Writer::from_writer(std::io::stdout());
    let head = [
        "path",
        "status",
        "fault",
        "notes",
        "format",
        "width",
        "height",
        "orientation",
        "mode",
        "r",
        "g",
        "b",
        "grid",
        "ms",
    ];
    let _ = out.write_record(head);
    let mut codec = Codec::new();
    for file in &files {
        let name = spelled(file.strip_prefix(&folder).unwrap_or(file));
        let row = catch_unwind(AssertUnwindSafe(|| report(file, Scale::eighths(eighths), &mut codec)));
        let row = row.unwrap_or_else(|_| failed(&Fault::new(Cause::Panic, "")));
        let _ = out.write_record(std::iter::once(name).chain(row));
    }
    let _ = out.flush();
}

/// The truth files of the corpora escape only the names that need it.
fn spelled(path: &Path) -> String {
    match path.to_str() {
        Some(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => names::encode(path),
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}

fn report(file: &Path, scale: Scale, codec: &mut Codec) -> Vec<String> {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(why) => return failed(&Fault::new(Cause::Io, why.to_string())),
    };
    let begun = Instant::now();
    let opened = match decode::open(&bytes, file, &Limits::default()) {
        Ok(opened) => opened,
        Err(fault) => return failed(&fault),
    };
    let decoded = match opened.pixels(scale, &Contract::default(), codec) {
        Ok(decoded) => decoded,
        Err(fault) => return failed(&fault),
    };
    let rgb = upright_srgb(decoded.rgb, &decoded.finish);
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    let (status, fault) = match &decoded.damage {
        Some(fault) => (fault.status(), fault.to_string()),
        None => (Status::Ok, String::new()),
    };
    let header = opened.header();
    let pixels = f64::from(rgb.width) * f64::from(rgb.height);
    let mean = |channel: usize| {
        let sum: u64 = rgb.data.iter().skip(channel).step_by(3).map(|v| u64::from(*v)).sum();
        format!("{:.3}", sum as f64 / pixels)
    };
    vec![
        status.as_str().to_owned(),
        fault,
        join_notes(&decoded.notes),
        header.format.name().to_owned(),
        rgb.width.to_string(),
        rgb.height.to_string(),
        (header.orientation as u8).to_string(),
        header.src_mode(),
        mean(0),
        mean(1),
        mean(2),
        grid(&rgb),
        format!("{ms:.2}"),
    ]
}

/// The means of 4x4 equal parts, row by row, as hexadecimal RGB. Parts may begin within a pixel.
fn grid(rgb: &Rgb8) -> String {
    let (w, h) = (f64::from(rgb.width), f64::from(rgb.height));
    let mut sums = [[0.0; 3]; 16];
    // The share of pixel `at` that lies in part `part` of four along a side of `side` pixels.
    let share = |at: u32, side: f64, part: usize| {
        let (from, to) = (side * part as f64 / 4.0, side * (part + 1) as f64 / 4.0);
        (f64::from(at + 1).min(to) - f64::from(at).max(from)).max(0.0)
    };
    for (y, row) in (0..).zip(rgb.data.chunks_exact(rgb.width as usize * 3)) {
        for (x, pixel) in (0..).zip(row.chunks_exact(3)) {
            for (part, sum) in sums.iter_mut().enumerate() {
                let weight = share(x, w, part % 4) * share(y, h, part / 4);
                if weight > 0.0 {
                    sum.iter_mut().zip(pixel).for_each(|(s, v)| *s += weight * f64::from(*v));
                }
            }
        }
    }
    let part = w * h / 16.0;
    sums.iter().flatten().map(|s| format!("{:02x}", (s / part + 0.5) as u8)).collect()
}

fn failed(fault: &Fault) -> Vec<String> {
    let mut row = vec![String::new(); 13];
    row[0] = fault.status().as_str().to_owned();
    row[1] = fault.to_string();
    row
}

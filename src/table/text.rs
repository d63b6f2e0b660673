//! Bytes to text: byte order marks, UTF-16, and errors that say how to get UTF-8.

use std::path::Path;

use crate::error::{Error, Result};

/// The text of a table file, without its byte order mark.
pub(super) fn decoded(path: &Path, mut bytes: Vec<u8>) -> Result<String> {
    if let Some(what) = other_format(&bytes) {
        return Err(Error::table(path, None, format!("this is {what}, not text; save it as CSV")));
    }
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => return utf16(path, rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => return utf16(path, rest, u16::from_be_bytes),
        [0, a, 0, b, ..] | [a, 0, b, 0, ..] if *a != 0 && *b != 0 => {
            let why = "this looks like UTF-16 without a byte order mark; save it as UTF-8";
            return Err(Error::table(path, None, why));
        }
        [0xef, 0xbb, 0xbf, ..] => {
            bytes.drain(..3);
        }
        _ => {}
    }
    String::from_utf8(bytes).map_err(|e| {
        let good = e.utf8_error().valid_up_to();
        let bytes = e.as_bytes();
        let why = format!(
            "byte 0x{:02X} is not UTF-8 (from a Windows program?); convert the file with: \
             iconv -f WINDOWS-1252 -t UTF-8",
            bytes.get(good).copied().unwrap_or_default()
        );
        Error::table(path, Some(lines_before(&bytes[..good])), why)
    })
}

/// The line (from 1) that comes after these bytes.
fn lines_before(bytes: &[u8]) -> u64 {
    let feeds = bytes.iter().filter(|b| **b == b'\n').count();
    let returns = bytes.iter().filter(|b| **b == b'\r').count();
    1 + if feeds > 0 { feeds } else { returns } as u64
}

fn utf16(path: &Path, bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String> {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: std::result::Result<String, _> = char::decode_utf16(units).collect();
    match text {
        Ok(text) if bytes.len().is_multiple_of(2) => Ok(text),
        _ => Err(Error::table(path, None, "broken UTF-16; save it as UTF-8")),
    }
}

/// What people rename to `.csv`.
fn other_format(bytes: &[u8]) -> Option<&'static str> {
    [
        (&b"PK\x03\x04"[..], "a spreadsheet or ZIP archive"),
        (b"\x1f\x8b", "a gzip file"),
        (b"PAR1", "a Parquet file"),
        (b"\xd0\xcf\x11\xe0", "an old Excel file"),
        (b"\x89PNG", "a picture"),
        (b"\xff\xd8\xff", "a picture"),
        (b"SQLite format 3", "an SQLite data base"),
        (b"ARROW1", "an Arrow file"),
        (b"%PDF", "a PDF"),
    ]
    .into_iter()
    .find_map(|(magic, what)| bytes.starts_with(magic).then_some(what))
}

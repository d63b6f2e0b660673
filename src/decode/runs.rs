//! Formats whose decoders fill what is missing and say nothing: do the runs of a BMP or TGA fill the picture, are all
//! the bytes of a WebP there?

use super::Format;
use crate::fault::{Cause, Fault};

/// What is wrong with the runs of a whole file; `None` where they fill the picture, or there are none.
pub(super) fn damage(bytes: &[u8], format: Format) -> Option<Fault> {
    match format {
        Format::Tga => tga(bytes).filter(|excess| *excess > 0).map(|excess| {
            Fault::new(
                Cause::SizeMismatch,
                format!("the last run goes {excess} pixels past the end of the picture"),
            )
        }),
        Format::Bmp => {
            let (filled, height) = bmp(bytes)?;
            (filled < height).then(|| {
                Fault::new(Cause::Truncated, format!("the runs end after {filled} of {height} rows"))
            })
        }
        Format::WebP => {
            let said = le(bytes, 4, 4)?.saturating_add(8);
            (said > bytes.len()).then(|| {
                let detail =
                    format!("{} of the {said} bytes that the header promises are there", bytes.len());
                Fault::new(Cause::Truncated, detail)
            })
        }
        _ => None,
    }
}

fn le(bytes: &[u8], at: usize, count: usize) -> Option<usize> {
    let cell = bytes.get(at..at.checked_add(count)?)?;
    Some(cell.iter().rev().fold(0, |value, b| value << 8 | usize::from(*b)))
}

/// Pixels beyond the picture, for a TGA of type 9 to 11.
fn tga(bytes: &[u8]) -> Option<usize> {
    if !matches!(bytes.get(2)?, 9..=11) {
        return None;
    }
    let pixels = le(bytes, 12, 2)?.checked_mul(le(bytes, 14, 2)?)?;
    let palette = if bytes[1] == 1 { le(bytes, 5, 2)? * usize::from(bytes[7]).div_ceil(8) } else { 0 };
    let depth = usize::from(bytes[16]).div_ceil(8);
    let mut at = 18 + usize::from(bytes[0]) + palette;
    let mut done = 0;
    while done < pixels {
        let packet = *bytes.get(at)?;
        let count = usize::from(packet & 127) + 1;
        at += 1 + if packet & 128 == 0 { count * depth } else { depth };
        done += count;
    }
    Some(done - pixels)
}

/// Rows that the runs reach, and rows of the picture, for a BMP of compression 1 or 2 (RLE8, RLE4). Runs may stop
/// within a row, or jump: what they leave out is background by intent, but rows that they never reach are missing.
fn bmp(bytes: &[u8]) -> Option<(usize, usize)> {
    let compression = le(bytes, 30, 4)?;
    if le(bytes, 14, 4)? < 40 || !matches!(compression, 1 | 2) {
        return None;
    }
    let (width, height) = (le(bytes, 18, 4)?, le(bytes, 22, 4)?);
    let (mut at, mut x, mut y) = (le(bytes, 10, 4)?, 0, 0);
    while let (Some(&count), Some(&second)) = (bytes.get(at), bytes.get(at + 1)) {
        at += 2;
        match (count, second) {
            (0, 0) => (x, y) = (0, y + 1),
            (0, 1) => break,
            (0, 2) => {
                x += le(bytes, at, 1).unwrap_or(0);
                y += le(bytes, at + 1, 1).unwrap_or(0);
                at += 2;
            }
            (0, n) => {
                let n = usize::from(n);
                x += n;
                let coded = if compression == 1 { n } else { n.div_ceil(2) };
                at += coded + coded % 2;
            }
            (n, _) => x += usize::from(n),
        }
    }
    // A last row that was filled needs no end of line.
    let reached = y + usize::from(x >= width.max(1));
    Some((reached.min(height), height))
}

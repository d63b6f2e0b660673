//! Icons and cursors: the largest picture counts. Inside stands a PNG, or a BMP without its file header.

use super::{Body, Format, Found, Limits, plain, png};
use crate::fault::{Cause, Fault, Note, Oddity};

/// Finds the largest entry and opens what it holds.
pub(super) fn open<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Found<'a>, Fault> {
    let count = usize::from(bytes[4]) | usize::from(bytes[5]) << 8;
    let entries = bytes[6..].chunks_exact(16).take(count);
    // A side of 0 means 256.
    let side = |b: u8| if b == 0 { 256 } else { u32::from(b) };
    let largest = entries.max_by_key(|e| (side(e[0]) * side(e[1]), u32::from(e[6])));
    let largest = largest.ok_or_else(|| Fault::new(Cause::Undecodable, "the icon has no picture"))?;
    let number = |at: usize| {
        u32::from_le_bytes([largest[at], largest[at + 1], largest[at + 2], largest[at + 3]]) as usize
    };
    let (size, from) = (number(8), number(12));
    let inside = bytes.get(from..from.saturating_add(size).min(bytes.len())).unwrap_or_default();
    let mut found = if inside.starts_with(b"\x89PNG") {
        png::open(inside, limits)?
    } else {
        plain::open(bytes, Format::Ico, limits)?
    };
    found.header.format = Format::Ico;
    if count > 1 {
        found.header.frames = count as u32;
        found.notes.push(Note::new(Oddity::Frames, format!("{count}, the largest was taken")));
    }
    debug_assert!(matches!(found.body, Body::Png(_) | Body::Plain(_)));
    Ok(found)
}

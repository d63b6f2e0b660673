//! The orientation in EXIF data, and nothing else of it. Tolerant: an entry that can be read counts, whatever comes
//! after it; nothing that the data say is trusted with a length.

use crate::fault::{Note, Oddity};
use crate::pixels::Orientation;

/// The tag of the orientation (0x0112).
const ORIENTATION: u16 = 0x0112;
/// IFD0 of real cameras has fewer than 60 entries.
const MOST_ENTRIES: u16 = 512;

/// The orientation that an EXIF block asks for; upright, with a note, where it cannot be used. `block` is a TIFF
/// structure, with or without the `Exif\0\0` of JPEG before it.
pub(super) fn orientation(block: &[u8], notes: &mut Vec<Note>) -> Orientation {
    let tiff = block.strip_prefix(b"Exif\0\0").unwrap_or(block);
    let (value, whole) = find(tiff);
    if !whole {
        notes.push(Note::plain(Oddity::ExifBroken));
    }
    match value {
        None => Orientation::Upright,
        Some(tag) => Orientation::from_tag(tag).unwrap_or_else(|| {
            notes.push(Note::new(Oddity::OrientationInvalid, tag));
            Orientation::Upright
        }),
    }
}

/// The value of the orientation entry, and whether IFD0 could be read to its end.
fn find(tiff: &[u8]) -> (Option<u32>, bool) {
    let Some(reader) = Reader::new(tiff) else { return (None, false) };
    let Some(ifd) = reader.u32_at(4).map(|at| at as usize) else { return (None, false) };
    let Some(count) = reader.u16_at(ifd) else { return (None, false) };
    let mut whole = count <= MOST_ENTRIES;
    let mut value = None;
    for i in 0..count.min(MOST_ENTRIES) {
        let at = ifd.saturating_add(2 + usize::from(i) * 12);
        let Some(tag) = reader.u16_at(at) else {
            whole = false;
            break;
        };
        if tag == ORIENTATION && value.is_none() {
            value = reader.entry_value(at);
        }
    }
    (value, whole)
}

struct Reader<'a> {
    bytes: &'a [u8],
    little: bool,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let little = match bytes.get(..2)? {
            b"II" => true,
            b"MM" => false,
            _ => return None,
        };
        Some(Self { bytes, little })
    }

    fn u16_at(&self, at: usize) -> Option<u16> {
        let b = self.bytes.get(at..at.checked_add(2)?)?;
        let pair = [b[0], b[1]];
        Some(if self.little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) })
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        let b = self.bytes.get(at..at.checked_add(4)?)?;
        let four = [b[0], b[1], b[2], b[3]];
        Some(if self.little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) })
    }

    /// The first value of the entry at `at`: a byte, a short (what the standard asks for) or a long.
    fn entry_value(&self, at: usize) -> Option<u32> {
        let kind = self.u16_at(at.checked_add(2)?)?;
        let value = at.checked_add(8)?;
        match kind {
            1 => self.bytes.get(value).map(|b| u32::from(*b)),
            4 | 9 => self.u32_at(value),
            _ => self.u16_at(value).map(u32::from),
        }
    }
}

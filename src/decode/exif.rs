//! The orientation in EXIF data, and nothing else of it. Tolerant: an entry that can be read counts, whatever comes
//! after it.

use super::ifd::Tags;
use crate::fault::{Note, Oddity};
use crate::pixels::Orientation;

/// The tag of the orientation, in EXIF and in TIFF.
const ORIENTATION: u16 = 0x0112;

/// The orientation that an EXIF block asks for; upright, with a note, where it cannot be used. `block` is a TIFF
/// structure, with or without the `Exif\0\0` of JPEG before it.
pub(super) fn orientation(block: &[u8], notes: &mut Vec<Note>) -> Orientation {
    let tiff = block.strip_prefix(b"Exif\0\0").unwrap_or(block);
    let directory = Tags::new(tiff).and_then(|tags| Some((tags, tags.first()?)));
    let Some((tags, ifd)) = directory else {
        notes.push(Note::plain(Oddity::ExifBroken));
        return Orientation::Upright;
    };
    let (entries, whole) = tags.entries(ifd);
    if !whole {
        notes.push(Note::plain(Oddity::ExifBroken));
    }
    let value = entries.into_iter().find(|e| e.tag == ORIENTATION).and_then(|e| tags.value(e));
    value.map_or(Orientation::Upright, |tag| named(tag, notes))
}

/// The orientation of a tag's value; upright, with a note, outside 1 to 8.
fn named(tag: u32, notes: &mut Vec<Note>) -> Orientation {
    Orientation::from_tag(tag).unwrap_or_else(|| {
        notes.push(Note::new(Oddity::OrientationInvalid, tag));
        Orientation::Upright
    })
}

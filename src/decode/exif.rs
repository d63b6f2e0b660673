//! The orientation and the camera in EXIF data, and nothing else of it. Tolerant: an entry that can be read counts, whatever comes
//! after it.

use super::header::Header;
use super::ifd::Tags;
use crate::fault::{Note, Oddity};
use crate::pixels::Orientation;

/// The tag of the orientation, in EXIF and in TIFF.
const ORIENTATION: u16 = 0x0112;

/// The tags of the maker and the model of the camera.
const CAMERA: [u16; 2] = [0x010F, 0x0110];

/// Puts into `header` what an EXIF block says: the orientation (upright, with a note, where it cannot be used) and the
/// camera. `block` is a TIFF structure, with or without the `Exif\0\0` of JPEG before it.
pub(super) fn read(block: &[u8], header: &mut Header, notes: &mut Vec<Note>) {
    let tiff = block.strip_prefix(b"Exif\0\0").unwrap_or(block);
    let directory = Tags::new(tiff).and_then(|tags| Some((tags, tags.first()?)));
    let Some((tags, ifd)) = directory else {
        notes.push(Note::plain(Oddity::ExifBroken));
        return;
    };
    let (entries, whole) = tags.entries(ifd);
    if !whole {
        notes.push(Note::plain(Oddity::ExifBroken));
    }
    let words = CAMERA.map(|tag| {
        let entry = entries.iter().find(|e| e.tag == tag);
        entry.and_then(|e| tags.text(*e)).unwrap_or_default()
    });
    header.camera = camera(&words);
    let value = entries.into_iter().find(|e| e.tag == ORIENTATION).and_then(|e| tags.value(e));
    header.orientation = value.map_or(Orientation::Upright, |tag| named(tag, notes));
}

/// Maker and model as one name; many models begin with the maker's name already.
fn camera([maker, model]: &[String; 2]) -> String {
    if model.starts_with(maker.as_str()) {
        model.clone()
    } else {
        format!("{maker} {model}").trim().to_owned()
    }
}

/// The orientation of a tag's value; upright, with a note, outside 1 to 8.
fn named(tag: u32, notes: &mut Vec<Note>) -> Orientation {
    Orientation::from_tag(tag).unwrap_or_else(|| {
        notes.push(Note::new(Oddity::OrientationInvalid, tag));
        Orientation::Upright
    })
}

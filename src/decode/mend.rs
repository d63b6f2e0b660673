//! Clean copies of JPEGs. libjpeg-turbo keeps only its first complaint, so what is known to be harmless must not reach
//! it: then every complaint that is left means damage. And the lossless copy without metadata for those who keep it.

use std::borrow::Cow;

use super::jpeg::{Colour, kind};
use super::walk::{self, APP0, DHT, DQT, DRI, EOI, SOI, SOS, Walk};
use crate::fault::{Note, Oddity};

/// JFIF 1.01, aspect ratio 1:1, no thumbnail.
const JFIF: [u8; 18] = [0xff, 0xe0, 0, 16, b'J', b'F', b'I', b'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0];

/// The stream that the decoder is shown: from SOI to EOI, without what would make it complain about nothing. Notes
/// what was mended. `None` where there is no scan.
pub(super) fn mended<'a>(
    bytes: &'a [u8],
    walk: &Walk,
    colour: Colour,
    notes: &mut Vec<Note>,
) -> Option<Cow<'a, [u8]>> {
    let first_scan = walk.segments.iter().find(|s| s.marker == SOS)?.whole.start;
    let odd_adobe = walk.adobe.is_some_and(|t| match colour {
        Colour::Cmyk | Colour::Ycck => t != 0 && t != 2,
        _ => t > 1,
    });
    let rewrite_header = walk.junk > 0 || walk.jfif == Some(false) || odd_adobe;
    let patches = patches(walk, notes);
    if walk.junk > 0 {
        notes.push(Note::new(Oddity::JunkBetweenSegments, format!("{} bytes", walk.junk)));
    }
    if walk.jfif == Some(false) || odd_adobe {
        notes.push(Note::new(Oddity::OddParameters, "JFIF or Adobe segment of an unknown version"));
    }
    if let (Some(end), false, true) = (walk.end, rewrite_header, patches.is_empty()) {
        return Some(Cow::Borrowed(&bytes[walk.start..end]));
    }
    let mut out = Vec::with_capacity(bytes.len() - walk.start + 2);
    if rewrite_header {
        out.extend([0xff, SOI]);
        push_header(bytes, walk, colour, &mut out);
    } else {
        out.extend_from_slice(&bytes[walk.start..first_scan]);
    }
    let moved = out.len();
    out.extend_from_slice(&bytes[first_scan..walk.end.unwrap_or(bytes.len())]);
    for (at, value) in patches {
        if let Some(byte) = out.get_mut(at - first_scan + moved) {
            *byte = value;
        }
    }
    // libjpeg-turbo then complains about what is missing before the end and about nothing else; zune-jpeg would be
    // content with what it got.
    if walk.end.is_none() && cfg!(feature = "turbo") {
        // Half an end marker, or a fill byte.
        while out.last() == Some(&0xff) {
            out.pop();
        }
        out.extend([0xff, EOI]);
    }
    Some(Cow::Owned(out))
}

/// The segments before the first scan, without junk and without metadata.
fn push_header(bytes: &[u8], walk: &Walk, colour: Colour, out: &mut Vec<u8>) {
    for segment in walk.segments.iter().take_while(|s| s.marker != SOS) {
        let body = &bytes[segment.body.clone()];
        match segment.marker {
            APP0 if body.starts_with(b"JFIF\0") && body.len() >= 14 => out.extend(JFIF),
            0xee if body.starts_with(b"Adobe") && body.len() >= 12 => {
                let at = out.len();
                out.extend_from_slice(&bytes[segment.whole.clone()]);
                out[at + 15] = match colour {
                    Colour::YCbCr => 1,
                    Colour::Ycck => 2,
                    _ => 0,
                };
            }
            0xe0..=0xef | 0xfe => {}
            _ => out.extend_from_slice(&bytes[segment.whole.clone()]),
        }
    }
}

/// Bytes that must change: scan parameters that a sequential JPEG does not use, and restart markers that are all there
/// and count wrongly.
fn patches(walk: &Walk, notes: &mut Vec<Note>) -> Vec<(usize, u8)> {
    let mut patches = Vec::new();
    let Some(frame) = &walk.frame else { return patches };
    if !frame.progressive() && !frame.lossless() {
        for scan in walk.scans.iter().filter(|s| s.spectral != (0, 63) || s.approx != (0, 0)) {
            let at = scan.parameters_at;
            patches.extend([(at, 0), (at + 1, 63), (at + 2, 0)]);
        }
        if !patches.is_empty() {
            notes.push(Note::new(
                Oddity::OddParameters,
                "scan parameters that a sequential JPEG does not use",
            ));
        }
    }
    if let ([scan], Some(mcus)) = (walk.scans.as_slice(), walk.only_scan_mcus()) {
        let interval = u64::from(scan.interval);
        let expected = if interval == 0 { 0 } else { mcus.div_ceil(interval).saturating_sub(1) };
        let count = scan.restarts.len() as u64;
        if count == expected && !scan.restarts_in_step {
            patches.extend(scan.restarts.iter().enumerate().map(|(i, at)| (at + 1, 0xd0 | (i % 8) as u8)));
            notes.push(Note::new(Oddity::RestartOrder, "numbered out of order"));
        } else if count != expected {
            notes.push(Note::new(
                Oddity::RestartOrder,
                format!("{count} restart markers, {expected} expected"),
            ));
        }
    }
    patches
}

/// A lossless copy of a plain JPEG: SOI, JFIF, tables, frame, scans, EOI; no metadata, nothing after the end. `None`
/// where the file is not [plain](super::JpegKind::plain), so that a copy would not be what every loader reads.
pub fn strip_jpeg(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.starts_with(&[0xff, SOI]) {
        return None;
    }
    stripped(bytes, &walk::walk(bytes, 0).ok()?)
}

/// See [`strip_jpeg`], for a file that was walked before.
pub(super) fn stripped(bytes: &[u8], walk: &Walk) -> Option<Vec<u8>> {
    if !kind(walk)?.plain {
        return None;
    }
    let mut out = Vec::with_capacity(walk.end? + JFIF.len());
    out.extend([0xff, SOI]);
    out.extend(JFIF);
    let mut scans = walk.scans.iter();
    for segment in &walk.segments {
        match segment.marker {
            0xe0..=0xef | 0xfe => {}
            DQT | DHT | DRI | 0xc0 | 0xc2 => out.extend_from_slice(&bytes[segment.whole.clone()]),
            SOS => {
                out.extend_from_slice(&bytes[segment.whole.clone()]);
                out.extend_from_slice(&bytes[scans.next()?.data.clone()]);
            }
            _ => return None,
        }
    }
    out.extend([0xff, EOI]);
    Some(out)
}

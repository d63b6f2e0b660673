//! What an engine complains about while it decodes a JPEG, and whether that is a note or damage.

use super::Paint;
use super::walk::{Frame, Walk};
use crate::fault::{Cause, Fault, Note, Oddity};

/// What the samples are wanted as.
#[cfg(feature = "turbo")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// R G B.
    Rgb,
    /// C M Y K, as stored (Adobe's are inverted).
    Cmyk,
}

/// Pixels of a JPEG engine, and what it complained about.
pub(super) struct Pixels {
    pub width: u32,
    pub height: u32,
    /// 3 or 4 bytes a pixel, as wanted; filled as far as the engine came.
    pub data: Vec<u8>,
    /// The first complaint.
    pub complaint: Option<Complaint>,
}

/// A complaint of either engine; zune-jpeg does not know them all.
#[cfg_attr(not(feature = "turbo"), allow(dead_code))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Complaint {
    /// Entropy-coded bytes are left over where a scan is done.
    LeftOver {
        bytes: u64,
        /// The last scan: the end marker comes next.
        last: bool,
    },
    /// Data end before the pixels do.
    EndsEarly,
    /// Restart markers are not where they should be.
    Restarts,
    /// A code that no table has.
    ImpossibleCode,
    /// A scan refines what none has begun.
    Refinement,
    /// Something that changes no pixel.
    Harmless(String),
    /// The engine gave up.
    Fatal(String),
}

/// Padding that some encoders leave at the end. More means that the decoder came through with less than was written.
const MOST_PADDING: u64 = 8;

/// What a complaint means for the picture: `None` where it is only a note.
pub(super) fn judge(
    complaint: &Complaint,
    pixels: &Pixels,
    walk: &Walk,
    notes: &mut Vec<Note>,
) -> Result<Option<Fault>, Fault> {
    let damage = |detail: String| Ok(Some(Fault::new(Cause::EntropyDamage, detail)));
    match complaint {
        // In a file of several scans a later complaint may hide behind one that is not about the last.
        Complaint::LeftOver { bytes, last: true } if *bytes <= MOST_PADDING => {
            notes
                .push(Note::new(Oddity::JunkBetweenSegments, format!("{bytes} bytes before the end marker")));
            Ok(None)
        }
        Complaint::LeftOver { bytes, .. } => damage(format!("{bytes} bytes of picture data are left over")),
        Complaint::EndsEarly => {
            let blank = blank_rows(pixels);
            if walk.end.is_some() && blank == 0 {
                return damage("the data of a scan end too early".to_owned());
            }
            let progressive = walk.frame.as_ref().is_some_and(Frame::progressive);
            let detail = if progressive {
                format!("the data end early, in scan {}", walk.scans.len())
            } else {
                let done = 100.0 * f64::from(pixels.height - blank) / f64::from(pixels.height.max(1));
                format!("the data end after about {done:.0} % of the rows")
            };
            Ok(Some(Fault::new(Cause::Truncated, detail)))
        }
        Complaint::Restarts => {
            damage("restart markers are lost or out of order, and data with them".to_owned())
        }
        Complaint::ImpossibleCode => damage("the data hold an impossible code".to_owned()),
        Complaint::Refinement => damage("scans refine coefficients that none has begun".to_owned()),
        Complaint::Harmless(text) => {
            notes.push(Note::new(Oddity::OddParameters, text));
            Ok(None)
        }
        // Random bytes in the picture data look like markers, at which the engine gives up.
        Complaint::Fatal(text) if !walk.scans.is_empty() && text.contains("arker") => {
            let detail = format!("stray markers in the picture data: {text}");
            Err(Fault::new(Cause::EntropyDamage, detail))
        }
        Complaint::Fatal(text) => Err(refused(text)),
    }
}

/// A refusal in our words.
pub(super) fn refused(text: &str) -> Fault {
    let unsupported = ["Unsupported JPEG", "not implemented", "colorspace", "unsupported"];
    let cause = if unsupported.iter().any(|word| text.contains(word)) {
        Cause::UnsupportedKind
    } else if text.contains("more than") && text.contains("scans") {
        Cause::TooManyScans
    } else {
        Cause::Undecodable
    };
    Fault::new(cause, text)
}

/// Rows at the bottom that the engine filled with mid-gray because no data came.
fn blank_rows(pixels: &Pixels) -> u32 {
    let row = (pixels.data.len() / pixels.height.max(1) as usize).max(1);
    let blank = |row: &&[u8]| row.iter().all(|v| *v == 128);
    pixels.data.chunks_exact(row).rev().take_while(blank).count() as u32
}

/// CMYK as stored to RGB. Adobe stores ink inverted, and so does everybody who follows; Pillow reads all of them so.
pub(super) fn light(mut stored: Vec<u8>, paint: &Paint<'_>) -> Vec<u8> {
    stored.iter_mut().for_each(|v| *v = !*v);
    let mut rgb = vec![0; stored.len() / 4 * 3];
    super::flatten::light(&stored, paint.cmyk, &mut rgb);
    rgb
}

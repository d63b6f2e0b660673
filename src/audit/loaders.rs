//! What common loaders do with a file, as measured on the kinds of damage and oddity that prep names.

use crate::decode::{Format, Mode};
use crate::facts::Facts;
use crate::fault::{Cause, Oddity, Status};

/// What one loader does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// Gives the whole picture.
    Loads,
    /// Stops with an exception.
    Raises,
    /// Gives a picture that is wrong or partly gray, and no error.
    Wrong,
    /// Decodes on the CPU instead.
    FallsBack,
}

impl Does {
    /// The word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loads => "loads",
            Self::Raises => "raises",
            Self::Wrong => "wrong",
            Self::FallsBack => "falls_back",
        }
    }
}

/// Pillow's `Image.open(…).load()`, torchvision's `decode_image`, and a GPU decoder (nvJPEG through DALI or torchvision).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaders {
    /// Pillow.
    pub pillow: Does,
    /// torchvision.io.
    pub torchvision: Does,
    /// A GPU decoder.
    pub gpu: Does,
}

/// What they do with an image of these facts.
pub fn of(facts: &Facts) -> Loaders {
    use Does::*;
    let all = |does| Loaders { pillow: does, torchvision: does, gpu: does };
    let Some(header) = &facts.header else { return all(Raises) };
    if let Some(fault) = &facts.fault {
        return match (fault.status(), fault.cause) {
            // Bits that still decode to something: nobody says a word.
            (Status::Damaged, Cause::EntropyDamage | Cause::ZeroQuantization) => {
                Loaders { pillow: Wrong, torchvision: Wrong, gpu: Wrong }
            }
            (Status::Damaged, Cause::Truncated) if header.format == Format::Jpeg => {
                Loaders { pillow: Raises, torchvision: Raises, gpu: Wrong }
            }
            _ => all(Raises),
        };
    }
    let has = |kind: Oddity| facts.notes.iter().any(|n| n.kind == kind);
    let by_torchvision = matches!(header.format, Format::Jpeg | Format::Png | Format::Gif | Format::WebP);
    let gpu = match &header.jpeg {
        Some(jpeg) if jpeg.plain && !jpeg.progressive && !header.mode.is_ink() => Loads,
        _ => FallsBack,
    };
    let torchvision = match header.mode {
        _ if !by_torchvision || has(Oddity::MissingEnd) => Raises,
        Mode::Cmyk | Mode::Ycck => Wrong,
        _ => Loads,
    };
    Loaders { pillow: if has(Oddity::MissingEnd) { Raises } else { Loads }, torchvision, gpu }
}

//! Embedded profiles: read here, applied by [`crate::normal`] on the resized picture (CMYK while decoding).
//!
//! Perceptual intent, as Pillow's ImageCms takes by default. A profile that cannot be used is a note, never a fault.

use std::fmt;
use std::sync::Arc;

use moxcms::{
    ColorProfile, DataColorSpace, Layout, ProfileText, RenderingIntent, TransformExecutor, TransformOptions,
};

use super::Mode;
use crate::fault::{Note, Oddity};

/// Press profiles have 2-3 MB; what is larger is not read.
pub(super) const MOST_BYTES: usize = 8 << 20;

/// What a file brings.
pub(super) enum Embedded {
    /// Nothing.
    None,
    /// Something that is no profile for these samples; why.
    Broken(String),
    /// A profile that may be used.
    Usable { profile: Box<ColorProfile>, name: String },
}

impl Embedded {
    /// Reads a profile for samples of `mode`.
    pub fn parse(bytes: Option<&[u8]>, mode: Mode) -> Self {
        let Some(bytes) = bytes else { return Self::None };
        if bytes.len() > MOST_BYTES {
            return Self::Broken(format!("{} bytes", bytes.len()));
        }
        let profile = match ColorProfile::new_from_slice(bytes) {
            Ok(profile) => profile,
            Err(why) => return Self::Broken(why.to_string()),
        };
        let wanted = match mode {
            Mode::L | Mode::La => DataColorSpace::Gray,
            Mode::Cmyk | Mode::Ycck => DataColorSpace::Cmyk,
            Mode::Lab => DataColorSpace::Lab,
            Mode::Rgb | Mode::Rgba | Mode::P | Mode::Pa => DataColorSpace::Rgb,
        };
        if profile.color_space != wanted {
            return Self::Broken(format!("a {:?} profile on {} samples", profile.color_space, mode.as_str()));
        }
        let name = describe(&profile);
        Self::Usable { profile: Box::new(profile), name }
    }

    /// A short description, or why it cannot be used.
    pub fn describe(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Broken(why) => Some(format!("broken: {why}")),
            Self::Usable { name, .. } => Some(name.clone()),
        }
    }

    /// Is there a profile that could change pixels?
    pub fn matters(&self) -> bool {
        matches!(self, Self::Usable { .. })
    }

    /// The way to sRGB; `None` where there is nothing to do. Notes what was found.
    pub fn transform(&self, notes: &mut Vec<Note>) -> Option<Transform> {
        match self {
            Self::None => None,
            Self::Broken(why) => {
                notes.push(Note::new(Oddity::IccBroken, why));
                None
            }
            Self::Usable { profile, name } => match Transform::new(profile) {
                Ok(transform) if transform.changes_nothing() => None,
                Ok(transform) => {
                    notes.push(Note::new(Oddity::IccConverted, name));
                    Some(transform)
                }
                Err(why) => {
                    notes.push(Note::new(Oddity::IccBroken, why));
                    None
                }
            },
        }
    }
}

/// What the samples are before a [`Transform`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Gray,
    Rgb,
    Cmyk,
}

/// The way from an embedded profile to sRGB.
#[derive(Clone)]
pub struct Transform {
    from: From,
    run: Arc<dyn TransformExecutor<u8> + Send + Sync>,
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transform from {:?}", self.from)
    }
}

impl Transform {
    fn new(profile: &ColorProfile) -> Result<Self, String> {
        let (from, layout) = match profile.color_space {
            DataColorSpace::Gray => (From::Gray, Layout::Gray),
            DataColorSpace::Rgb => (From::Rgb, Layout::Rgb),
            DataColorSpace::Cmyk => (From::Cmyk, Layout::Rgba),
            other => return Err(format!("no way from {other:?} to sRGB")),
        };
        let options =
            TransformOptions { rendering_intent: RenderingIntent::Perceptual, ..TransformOptions::default() };
        let run = profile
            .create_transform_8bit(layout, &ColorProfile::new_srgb(), Layout::Rgb, options)
            .map_err(|why| why.to_string())?;
        Ok(Self { from, run })
    }

    /// Converts RGB pixels (gray ones as R = G = B) in place.
    pub fn apply(&self, rgb: &mut [u8]) {
        // One row of a small picture at a time: the copy stays in the cache.
        const CHUNK: usize = 4096;
        let mut out = [0; CHUNK * 3];
        for chunk in rgb.chunks_mut(CHUNK * 3) {
            let out = &mut out[..chunk.len()];
            let done = match self.from {
                From::Gray => {
                    let gray: Vec<u8> = chunk.iter().copied().step_by(3).collect();
                    self.run.transform(&gray, out)
                }
                From::Rgb => self.run.transform(chunk, out),
                From::Cmyk => return,
            };
            // The only error is a length that does not fit, and these fit.
            if done.is_ok() {
                chunk.copy_from_slice(out);
            }
        }
    }

    /// Converts CMYK (0 = no ink) to RGB. `rgb` has 3 bytes for every 4 of `cmyk`.
    pub(super) fn light(&self, cmyk: &[u8], rgb: &mut [u8]) {
        if self.from != From::Cmyk || self.run.transform(cmyk, rgb).is_err() {
            super::flatten::naive_light(cmyk, rgb);
        }
    }

    /// Does this leave every colour within one level? Then the profile is sRGB by another name.
    fn changes_nothing(&self) -> bool {
        if self.from == From::Cmyk {
            return false;
        }
        let levels = [0, 1, 8, 30, 64, 100, 128, 160, 200, 230, 254, 255];
        let mut probe = Vec::with_capacity(levels.len().pow(3) * 3);
        for r in levels {
            for g in levels {
                for b in levels {
                    let colour = if self.from == From::Gray { [r, r, r] } else { [r, g, b] };
                    probe.extend(colour);
                }
            }
        }
        let mut seen = probe.clone();
        self.apply(&mut seen);
        seen.iter().zip(&probe).all(|(a, b)| a.abs_diff(*b) <= 1)
    }
}

/// The profile's own description, or its colour space.
fn describe(profile: &ColorProfile) -> String {
    let text = match &profile.description {
        Some(ProfileText::PlainString(text)) => text.clone(),
        Some(ProfileText::Localizable(all)) => all.first().map(|one| one.value.clone()).unwrap_or_default(),
        Some(ProfileText::Description(text)) if !text.ascii_string.is_empty() => text.ascii_string.clone(),
        Some(ProfileText::Description(text)) => text.unicode_string.clone(),
        None => String::new(),
    };
    let text: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
    let text = text.trim();
    if text.is_empty() {
        format!("{:?} profile without a name", profile.color_space)
    } else {
        text.to_owned()
    }
}

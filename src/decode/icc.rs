//! Embedded profiles: read here, applied by [`crate::normal`] on the resized picture (CMYK while decoding).
//!
//! Perceptual intent, as Pillow's ImageCms takes by default. A profile that cannot be used is a note, never a fault.

use std::fmt;
use std::sync::Arc;

use moxcms::{ColorProfile, DataColorSpace, Layout, RenderingIntent, TransformExecutor, TransformOptions};

use super::Mode;
use crate::fault::{Note, Oddity};

/// Press profiles have 2-3 MB; what is larger is not read.
pub(super) const MOST_BYTES: usize = 8 << 20;

/// The profile of a file as it stands there, and the samples that it must fit.
pub(super) struct Embedded {
    bytes: Vec<u8>,
    mode: Mode,
}

/// What a profile comes to.
#[derive(Clone)]
enum Outcome {
    /// The samples are sRGB already.
    Same,
    /// There is a way to sRGB.
    Convert(Transform),
    /// It is no profile for these samples; why.
    Broken(String),
}

impl Embedded {
    /// `bytes` from a file whose samples are of `mode`.
    pub fn new(bytes: Vec<u8>, mode: Mode) -> Self {
        Self { bytes, mode }
    }

    /// Its own description, or that it has none.
    pub fn describe(&self) -> String {
        description(&self.bytes).unwrap_or_else(|| "a profile without a name".to_owned())
    }

    fn outcome(&self) -> Outcome {
        if self.bytes.len() > MOST_BYTES {
            return Outcome::Broken(format!("{} bytes", self.bytes.len()));
        }
        let profile = match ColorProfile::new_from_slice(&self.bytes) {
            Ok(profile) => profile,
            Err(why) => return Outcome::Broken(why.to_string()),
        };
        let wanted = match self.mode {
            Mode::L | Mode::La => DataColorSpace::Gray,
            Mode::Cmyk | Mode::Ycck => DataColorSpace::Cmyk,
            Mode::Lab => DataColorSpace::Lab,
            Mode::Rgb | Mode::Rgba | Mode::P | Mode::Pa => DataColorSpace::Rgb,
        };
        if profile.color_space != wanted {
            let why = format!("a {:?} profile on {} samples", profile.color_space, self.mode.as_str());
            return Outcome::Broken(why);
        }
        match Transform::new(&profile) {
            Ok(transform) if transform.changes_nothing() => Outcome::Same,
            Ok(transform) => Outcome::Convert(transform),
            Err(why) => Outcome::Broken(why),
        }
    }
}

/// Profiles that a worker met lately. The pictures of one camera bring the same one again and again, and making a
/// transform costs as much as decoding a small picture.
#[derive(Default)]
pub(super) struct Met {
    /// The latest first.
    profiles: Vec<(Vec<u8>, Mode, Outcome)>,
}

/// How many are kept.
const KEPT: usize = 4;

impl Met {
    /// The way to sRGB; `None` where there is nothing to do. Notes what was found.
    pub fn transform(&mut self, embedded: &Embedded, notes: &mut Vec<Note>) -> Option<Transform> {
        match self.outcome(embedded) {
            Outcome::Same => None,
            Outcome::Convert(transform) => {
                notes.push(Note::new(Oddity::IccConverted, embedded.describe()));
                Some(transform)
            }
            Outcome::Broken(why) => {
                notes.push(Note::new(Oddity::IccBroken, why));
                None
            }
        }
    }

    fn outcome(&mut self, embedded: &Embedded) -> Outcome {
        let known =
            |(bytes, mode, _): &(Vec<u8>, Mode, Outcome)| *mode == embedded.mode && *bytes == embedded.bytes;
        let found = match self.profiles.iter().position(known) {
            Some(at) => self.profiles.remove(at),
            None => (embedded.bytes.clone(), embedded.mode, embedded.outcome()),
        };
        let outcome = found.2.clone();
        self.profiles.insert(0, found);
        self.profiles.truncate(KEPT);
        outcome
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

/// The text of the `desc` tag, as ICC.1 has it in version 2 (`desc`, ASCII) and 4 (`mluc`, UTF-16).
fn description(profile: &[u8]) -> Option<String> {
    let number = |at: usize| Some(u32::from_be_bytes(*profile.get(at..)?.first_chunk()?) as usize);
    // The tag table follows the header of 128 bytes; profiles have some ten tags.
    let tags = number(128)?.min(200);
    let entry = (0..tags).map(|i| 132 + i * 12).find(|at| profile.get(*at..*at + 4) == Some(b"desc"))?;
    let tag = profile.get(number(entry + 4)?..)?;
    let within = |at: usize| Some(u32::from_be_bytes(*tag.get(at..)?.first_chunk()?) as usize);
    let text = match tag.get(..4)? {
        b"desc" => {
            let ascii = tag.get(12..12_usize.checked_add(within(8)?)?)?;
            ascii.iter().map(|b| char::from(*b)).collect::<String>()
        }
        b"mluc" => {
            let (length, from) = (within(20)?, within(24)?);
            let units = tag.get(from..from.checked_add(length)?)?.chunks_exact(2);
            char::decode_utf16(units.map(|u| u16::from_be_bytes([u[0], u[1]])))
                .filter_map(Result::ok)
                .collect()
        }
        _ => return None,
    };
    let text: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

//! Samples of any kind to 8-bit RGB: gray spread, 16 bit scaled with rounding, alpha composited, ink made light.

use super::{Paint, Transform};
use crate::fault::{Note, Oddity};

/// Rows of samples become rows of RGB; what was met on the way becomes notes.
pub(super) struct Flattener {
    background: Option<[u8; 3]>,
    /// An alpha below its maximum was met.
    transparent: bool,
    /// The largest 16-bit colour sample.
    most: u16,
}

impl Flattener {
    pub fn new(paint: &Paint<'_>) -> Self {
        Self { background: paint.background, transparent: false, most: 0 }
    }

    /// Appends a row of 8-bit samples with 1 (L), 2 (LA), 3 (RGB) or 4 (RGBA) channels.
    pub fn row8(&mut self, row: &[u8], channels: usize, out: &mut Vec<u8>) {
        match channels {
            1 => out.extend(row.iter().flat_map(|v| [*v; 3])),
            3 => out.extend_from_slice(row),
            2 => row.chunks_exact(2).for_each(|p| out.extend(self.over8([p[0]; 3], p[1]))),
            _ => row.chunks_exact(4).for_each(|p| out.extend(self.over8([p[0], p[1], p[2]], p[3]))),
        }
    }

    /// Appends a row of 16-bit samples, channels as in [`row8`](Self::row8).
    pub fn row16(&mut self, row: impl Iterator<Item = u16>, channels: usize, out: &mut Vec<u8>) {
        let mut pixel = [0; 4];
        let mut have = 0;
        for value in row {
            pixel[have] = value;
            have += 1;
            if have < channels {
                continue;
            }
            have = 0;
            let (colour, alpha) = match channels {
                1 => ([pixel[0]; 3], u16::MAX),
                2 => ([pixel[0]; 3], pixel[1]),
                3 => ([pixel[0], pixel[1], pixel[2]], u16::MAX),
                _ => ([pixel[0], pixel[1], pixel[2]], pixel[3]),
            };
            self.most = self.most.max(colour[0]).max(colour[1]).max(colour[2]);
            out.extend(self.over16(colour, alpha));
        }
    }

    fn over8(&mut self, colour: [u8; 3], alpha: u8) -> [u8; 3] {
        if alpha == u8::MAX {
            return colour;
        }
        self.transparent = true;
        let Some(back) = self.background else { return colour };
        let mix = |c: u8, b: u8| {
            let (c, b, a) = (u32::from(c), u32::from(b), u32::from(alpha));
            ((c * a + b * (255 - a) + 127) / 255) as u8
        };
        [mix(colour[0], back[0]), mix(colour[1], back[1]), mix(colour[2], back[2])]
    }

    fn over16(&mut self, colour: [u16; 3], alpha: u16) -> [u8; 3] {
        if alpha == u16::MAX {
            return colour.map(to8);
        }
        self.transparent = true;
        let Some(back) = self.background else { return colour.map(to8) };
        let mix = |c: u16, b: u8| {
            let (c, b, a) = (u64::from(c), u64::from(b) * 257, u64::from(alpha));
            to8(((c * a + b * (65535 - a) + 32767) / 65535) as u16)
        };
        [mix(colour[0], back[0]), mix(colour[1], back[1]), mix(colour[2], back[2])]
    }

    /// What was met. `deep` where samples had 16 bits.
    pub fn notes(&self, deep: bool, notes: &mut Vec<Note>) {
        if self.transparent && self.background.is_some() {
            notes.push(Note::plain(Oddity::AlphaFlattened));
        }
        // A picture of nothing but black says nothing about its range.
        if deep && (1..4096).contains(&self.most) {
            notes.push(Note::new(Oddity::LowRange, format!("largest value {}", self.most)));
        }
    }
}

/// 16 bits to 8 by exact scaling with rounding: 0 to 0, 65535 to 255.
pub(super) fn to8(value: u16) -> u8 {
    ((u32::from(value) * 255 + 32767) / 65535) as u8
}

/// CMYK (0 = no ink) to RGB: by its profile, else as Pillow does.
pub(super) fn light(cmyk: &[u8], profile: Option<&Transform>, rgb: &mut [u8]) {
    match profile {
        Some(transform) => transform.light(cmyk, rgb),
        None => naive_light(cmyk, rgb),
    }
}

/// `R = (255 - C) (255 - K) / 255` and so on: what Pillow's `convert("RGB")` does.
pub(super) fn naive_light(cmyk: &[u8], rgb: &mut [u8]) {
    for (ink, out) in cmyk.chunks_exact(4).zip(rgb.chunks_exact_mut(3)) {
        let white = 255 - u32::from(ink[3]);
        for (out, ink) in out.iter_mut().zip(ink) {
            *out = (((255 - u32::from(*ink)) * white + 127) / 255) as u8;
        }
    }
}

//! The samples of a TIFF as its decoder lays them out: planes or pixels, 1 to 64 bits, signed, floating; brought to
//! 8 or 16 bits row by row.

use tiff::decoder::BufferLayoutPreference;

use super::Samples;
use crate::fault::{Cause, Fault, Note, Oddity};

/// The samples as the decoder laid them out.
pub(super) struct Planes<'b> {
    data: &'b [u8],
    row_stride: usize,
    plane_stride: usize,
    planes: usize,
    /// Channels a pixel, of all planes.
    pub channels: usize,
    width: usize,
    bits: u8,
}

/// How wide samples become 16 bits: `(value - low) * factor`.
pub(super) struct Stretch {
    low: f64,
    factor: f64,
}

impl<'b> Planes<'b> {
    pub fn new(layout: &BufferLayoutPreference, data: &'b [u8], width: u32, bits: u8) -> Result<Self, Fault> {
        let width = width as usize;
        let row_stride = layout.row_stride.map_or(0, usize::from);
        let planes = layout.planes.max(1);
        let channels =
            if planes > 1 { planes } else { (row_stride * 8 / usize::from(bits).max(1)) / width.max(1) };
        if row_stride == 0 || channels == 0 {
            return Err(Fault::new(Cause::Undecodable, "the TIFF has rows of no length"));
        }
        // Rows of less than 8 bits a sample are padded to bytes, which must not count as a channel.
        let channels =
            if bits < 8 && planes == 1 { channels_of_packed(row_stride, width, bits) } else { channels };
        let plane_stride = layout.plane_stride.map_or(data.len(), usize::from);
        Ok(Self { data, row_stride, plane_stride, planes, channels, width, bits })
    }

    fn plane_row(&self, plane: usize, y: usize) -> &'b [u8] {
        let at = plane * self.plane_stride + y * self.row_stride;
        self.data.get(at..at + self.row_stride).unwrap_or_default()
    }

    /// Bytes of a sample, for those of whole bytes.
    fn size(&self) -> usize {
        usize::from(self.bits / 8).max(1)
    }

    /// The samples of a row in pixel order, `take` gets the bytes of each.
    fn each(&self, y: usize, mut take: impl FnMut(&[u8])) {
        let size = self.size();
        if self.planes == 1 {
            self.plane_row(0, y).chunks_exact(size).take(self.width * self.channels).for_each(take);
            return;
        }
        for x in 0..self.width {
            for plane in 0..self.planes {
                if let Some(sample) = self.plane_row(plane, y).get(x * size..(x + 1) * size) {
                    take(sample);
                }
            }
        }
    }

    /// Samples of up to 8 bits; `scale` spreads fewer bits over 0 to 255.
    pub fn row8(&self, y: usize, scale: bool, out: &mut Vec<u8>) {
        out.clear();
        if self.bits == 8 {
            self.each(y, |b| out.push(b[0]));
            return;
        }
        let bits = usize::from(self.bits);
        let most = (1_u16 << bits) - 1;
        let row = self.plane_row(0, y);
        for i in 0..self.width * self.channels {
            let bit = i * bits;
            let byte = row.get(bit / 8).copied().unwrap_or_default();
            let value = u16::from(byte >> (8 - bits - bit % 8)) & most;
            out.push(if scale { (value * 255 / most) as u8 } else { value as u8 });
        }
    }

    pub fn row16(&self, y: usize, out: &mut Vec<u16>) {
        out.clear();
        self.each(y, |b| out.push(u16::from_ne_bytes([b[0], b[1]])));
    }

    pub fn row_stretched(&self, y: usize, stretch: &Stretch, samples: Samples, out: &mut Vec<u16>) {
        out.clear();
        self.each(y, |b| {
            let value = (number(b, samples) - stretch.low) * stretch.factor;
            out.push(if value.is_finite() { (value + 0.5).clamp(0.0, 65535.0) as u16 } else { 0 });
        });
    }

    /// Chooses the range of float, signed and wide samples by what is in them: 0 to 1, else 0 to 255, else 0 to 65535,
    /// else from the least to the largest.
    pub fn stretch(&self, height: u32, samples: Samples, notes: &mut Vec<Note>) -> Stretch {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for y in 0..height as usize {
            self.each(y, |b| {
                let value = number(b, samples);
                if value.is_finite() {
                    low = low.min(value);
                    high = high.max(value);
                }
            });
        }
        let ranges =
            [1.0, 255.0, 65535.0].into_iter().filter(|most| *most > 1.0 || samples == Samples::Float);
        let whole = ranges.filter(|most| low >= 0.0 && high <= *most).map(|most| (0.0, most)).next();
        let (from, to) = whole.unwrap_or(if low < high { (low, high) } else { (low.min(0.0), low.max(1.0)) });
        notes.push(Note::new(Oddity::FloatSamples, format!("{from} to {to} taken as black to white")));
        Stretch { low: from, factor: 65535.0 / (to - from) }
    }
}

/// Channels of a row whose samples have less than 8 bits.
fn channels_of_packed(row_stride: usize, width: usize, bits: u8) -> usize {
    (1..=4).rev().find(|c| (width * c * usize::from(bits)).div_ceil(8) == row_stride).unwrap_or(1)
}

/// The value of a sample in the machine's byte order.
fn number(b: &[u8], samples: Samples) -> f64 {
    match (b, samples) {
        (&[a], Samples::Signed) => f64::from(a as i8),
        (&[a], _) => f64::from(a),
        (&[a, b], Samples::Float) => half(u16::from_ne_bytes([a, b])),
        (&[a, b], Samples::Signed) => f64::from(i16::from_ne_bytes([a, b])),
        (&[a, b], Samples::Unsigned) => f64::from(u16::from_ne_bytes([a, b])),
        (&[a, b, c, d], Samples::Float) => f64::from(f32::from_ne_bytes([a, b, c, d])),
        (&[a, b, c, d], Samples::Signed) => f64::from(i32::from_ne_bytes([a, b, c, d])),
        (&[a, b, c, d], Samples::Unsigned) => f64::from(u32::from_ne_bytes([a, b, c, d])),
        (b, samples) => b.first_chunk::<8>().map_or(0.0, |b| match samples {
            Samples::Float => f64::from_ne_bytes(*b),
            Samples::Signed => i64::from_ne_bytes(*b) as f64,
            Samples::Unsigned => u64::from_ne_bytes(*b) as f64,
        }),
    }
}

/// A 16-bit float (IEEE 754 binary16).
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    match exponent {
        0 => sign * fraction * 2_f64.powi(-24),
        31 => f64::NAN,
        _ => sign * (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
    }
}

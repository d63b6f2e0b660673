//! Exact sums of the values of one picture.

use serde::{Deserialize, Serialize};

use crate::pixels::Rgb8;

/// Bytes that are summed side by side: whole pixels, and whole registers of the processor.
const LANES: usize = 24;

/// Sums over one image: pixels, and per channel the values and their squares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ImageSums {
    /// Pixels, above 0.
    pub pixels: u64,
    /// Sum of the values, 0-255 each: R, G, B.
    pub sum: [u64; 3],
    /// Sum of the squares.
    pub squares: [u64; 3],
}

impl ImageSums {
    /// The sums of `picture`. 2^48 pixels fit, a million times the largest picture.
    pub fn of(picture: &Rgb8) -> Self {
        let mut sums = Self::default();
        sums.add(&picture.data);
        sums
    }

    /// Adds pixels of the same picture: interleaved R, G, B.
    pub(super) fn add(&mut self, data: &[u8]) {
        self.pixels += data.len() as u64 / 3;
        for turn in data.chunks(LANES * 4096) {
            let (mut sum, mut squares) = ([0_u32; LANES], [0_u32; LANES]);
            let (blocks, rest) = turn.as_chunks::<LANES>();
            for block in blocks {
                for lane in 0..LANES {
                    let value = u16::from(block[lane]);
                    // 4096 squares of 255 fit 32 bits; wrapping, so that the compiler adds several at a time.
                    sum[lane] = sum[lane].wrapping_add(u32::from(value));
                    squares[lane] = squares[lane].wrapping_add(u32::from(value.wrapping_mul(value)));
                }
            }
            for (lane, value) in rest.iter().enumerate() {
                sum[lane] += u32::from(*value);
                squares[lane] += u32::from(*value) * u32::from(*value);
            }
            for lane in 0..LANES {
                self.sum[lane % 3] += u64::from(sum[lane]);
                self.squares[lane % 3] += u64::from(squares[lane]);
            }
        }
    }

    /// Are all three channels the same, as in a gray picture? (Equal sums of values and squares.)
    pub fn is_gray(&self) -> bool {
        self.sum[0] == self.sum[1]
            && self.sum[1] == self.sum[2]
            && self.squares[0] == self.squares[1]
            && self.squares[1] == self.squares[2]
    }
}

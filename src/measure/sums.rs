//! Exact sums of the values of one picture.

use serde::{Deserialize, Serialize};

use crate::pixels::Rgb8;

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
        // 4096 pixels a turn: squares of a turn fit 32 bits, which the compiler adds several at a time.
        for turn in data.chunks(3 * 4096) {
            let (mut sum, mut squares) = ([0_u32; 3], [0_u32; 3]);
            for pixel in turn.chunks_exact(3) {
                for c in 0..3 {
                    let value = u32::from(pixel[c]);
                    sum[c] += value;
                    squares[c] += value * value;
                }
            }
            for c in 0..3 {
                self.sum[c] += u64::from(sum[c]);
                self.squares[c] += u64::from(squares[c]);
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

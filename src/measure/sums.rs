//! Exact sums of the values of one picture.

use serde::{Deserialize, Serialize};

use crate::pixels::Rgb8;
use crate::simd::{Loops, widest};

/// Values that are summed side by side: whole pixels, and whole registers of the processor.
const LANES: usize = 48;

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
        // Values of a piece are still in the cache when their squares are added.
        for piece in picture.data.chunks(LANES * 256) {
            widest(Add(&mut sums, piece));
        }
        sums
    }

    /// Adds the values of pixels, and counts the pixels.
    #[inline(always)]
    pub(super) fn add_values(&mut self, data: &[u8]) {
        self.pixels += data.len() as u64 / 3;
        let lanes = lanes(data, u32::from);
        self.sum.iter_mut().zip(lanes).for_each(|(sum, lane)| *sum += lane);
    }

    /// Adds the values of `rows` rows of pixels that were added up by column, and counts the pixels.
    #[inline(always)]
    pub(super) fn add_columns(&mut self, columns: &[u16], rows: usize) {
        self.pixels += (columns.len() / 3 * rows) as u64;
        let lanes = lanes(columns, u32::from);
        self.sum.iter_mut().zip(lanes).for_each(|(sum, lane)| *sum += lane);
    }

    /// Adds the squares of pixels.
    #[inline(always)]
    pub(super) fn add_squares(&mut self, data: &[u8]) {
        // 255 squared fits 16 bits.
        let lanes = lanes(data, |value| u32::from(u16::from(value).wrapping_mul(u16::from(value))));
        self.squares.iter_mut().zip(lanes).for_each(|(sum, lane)| *sum += lane);
    }

    /// Are all three channels the same, as in a gray picture? (Equal sums of values and squares.)
    pub fn is_gray(&self) -> bool {
        self.sum[0] == self.sum[1]
            && self.sum[1] == self.sum[2]
            && self.squares[0] == self.squares[1]
            && self.squares[1] == self.squares[2]
    }
}

/// Pixels that are added to sums.
struct Add<'a>(&'a mut ImageSums, &'a [u8]);

impl Loops for Add<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        self.0.add_values(self.1);
        self.0.add_squares(self.1);
    }
}

/// The sums of `of` over R, G and B.
#[inline(always)]
fn lanes<T: Copy>(data: &[T], of: impl Fn(T) -> u32) -> [u64; 3] {
    let mut totals = [0_u64; 3];
    // 65,536 values of 65,535 fit 32 bits.
    for turn in data.chunks(LANES * 65_536) {
        let (blocks, rest) = turn.as_chunks::<LANES>();
        // Seen from the end, lanes three apart belong together; the compiler shall not see that and load bytes one by one.
        let sums = std::hint::black_box(block_sums(blocks, &of));
        for pixel in sums.as_chunks::<3>().0 {
            for c in 0..3 {
                totals[c] = totals[c].wrapping_add(u64::from(pixel[c]));
            }
        }
        for pixel in rest.as_chunks::<3>().0 {
            for c in 0..3 {
                totals[c] = totals[c].wrapping_add(u64::from(of(pixel[c])));
            }
        }
    }
    totals
}

/// The sums of each lane; apart, so that they stay in registers.
#[inline(always)]
fn block_sums<T: Copy>(blocks: &[[T; LANES]], of: &impl Fn(T) -> u32) -> [u32; LANES] {
    let mut sums = [0_u32; LANES];
    for block in blocks {
        for lane in 0..LANES {
            // Nothing wraps; so the compiler adds several at a time.
            sums[lane] = sums[lane].wrapping_add(of(block[lane]));
        }
    }
    sums
}

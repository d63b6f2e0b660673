//! Inverse DCT at reduced sizes: the N lowest frequencies give N samples where the whole block had 8. Many blocks at
//! once, each step over all lanes, which the compiler turns into vector code.
//!
//! Arithmetic is in f32, with nothing but additions, subtractions and multiplications in a fixed order: IEEE 754 gives
//! the same bits on every machine (Rust never fuses or reorders them).

#![allow(clippy::needless_range_loop, reason = "one index runs along several arrays of lanes")]

use super::scan::{LANES, Lanes, ZIGZAG};
use crate::simd::{Loops, widest};

/// Blocks in one step.
const STEP: usize = 16;
type Step = [f32; STEP];
/// What is half done: columns transformed, rows not yet.
pub(super) type Half = [Step; 64];

/// What [`line`] expects each frequency of N to be multiplied with, the basis of the 8-point DCT included: 1/√8 for the
/// lowest and 1/2 for the others, and a cosine that is then needed nowhere else.
#[allow(clippy::excessive_precision)]
fn weights(points: usize) -> [f64; 8] {
    const LOW: f64 = 0.353_553_390_593_273_8;
    match points {
        1 => [LOW, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        // cos(π/4)
        2 => [LOW, LOW, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        // cos(π/6), cos(2π/6)
        3 => [LOW, 0.433_012_701_892_219_3, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0],
        // cos(π/4) for the third
        4 => [LOW, 0.5, LOW, 0.5, 0.0, 0.0, 0.0, 0.0],
        // as 3 for the even ones; cos(π/4) for the fourth
        6 => [LOW, 0.5, 0.433_012_701_892_219_3, LOW, 0.25, 0.5, 0.0, 0.0],
        // cos(kπ/16)
        _ => [
            LOW,
            0.490_392_640_201_615_2,
            0.461_939_766_255_643_4,
            0.415_734_806_151_272_6,
            LOW,
            0.277_785_116_509_801_1,
            0.191_341_716_182_544_9,
            0.097_545_161_008_064_1,
        ],
    }
}

/// What each kept coefficient is multiplied with: its quantization step and the weights of both directions.
pub(super) fn factors(quant: &[u8; 64], (width, height): (usize, usize)) -> [f32; 64] {
    let (across, down) = (weights(width), weights(height));
    let mut out = [0.0; 64];
    for (step, natural) in quant.iter().zip(ZIGZAG) {
        let (row, column) = (usize::from(natural / 8), usize::from(natural % 8));
        if row < height && column < width {
            out[row * width + column] = (f64::from(*step) * down[row] * across[column]) as f32;
        }
    }
    out
}

/// N weighted frequencies to N samples. Below, `cN` is a cosine of the odd frequencies.
#[inline(always)]
fn line<const N: usize>(x: [f32; N]) -> [f32; N] {
    let mut out = [0.0; N];
    match N {
        2 => {
            out[0] = x[0] + x[1];
            out[1] = x[0] - x[1];
        }
        3 => {
            let [a, b, c] = three(x[0], x[1], x[2]);
            (out[0], out[1], out[2]) = (a, b, c);
        }
        4 => {
            let even = [x[0] + x[2], x[0] - x[2]];
            // cos(π/8), cos(3π/8)
            const C1: f32 = 0.923_879_5;
            const C3: f32 = 0.382_683_43;
            let odd = [C1 * x[1] + C3 * x[3], C3 * x[1] - C1 * x[3]];
            for i in 0..2 {
                out[i] = even[i] + odd[i];
                out[3 - i] = even[i] - odd[i];
            }
        }
        6 => {
            let even = three(x[0], x[2], x[4]);
            // cos(π/12), cos(5π/12); their difference is cos(3π/12).
            const C1: f32 = 0.965_925_8;
            const C5: f32 = 0.258_819_05;
            let (near, far) = (C1 * x[1] + C5 * x[5], C5 * x[1] + C1 * x[5]);
            let odd = [near + x[3], near - far - x[3], far - x[3]];
            for i in 0..3 {
                out[i] = even[i] + odd[i];
                out[5 - i] = even[i] - odd[i];
            }
        }
        8 => {
            let all = eight([x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]]);
            out.copy_from_slice(&all);
        }
        _ => out = x,
    }
    out
}

/// Three points; the weights hold all cosines.
#[inline(always)]
fn three(x0: f32, x1: f32, x2: f32) -> [f32; 3] {
    let side = x0 + x2;
    [side + x1, x0 - (x2 + x2), side - x1]
}

/// Eight points with five multiplications: Arai, Agui, Nakajima, "A fast DCT-SQ scheme for images" (1988), inverted.
#[inline(always)]
fn eight(x: [f32; 8]) -> [f32; 8] {
    const SQRT2: f32 = std::f32::consts::SQRT_2;
    // 2cos(π/8), √2(c2 - c6) = 2(cos(π/8) - cos(3π/8)), 2(cos(π/8) + cos(3π/8))
    const C2: f32 = 1.847_759_1;
    const LESS: f32 = 1.082_392_2;
    const MORE: f32 = 2.613_125_9;
    let (sum, gap) = (x[0] + x[4], x[0] - x[4]);
    let mid = x[2] + x[6];
    let turned = (x[2] - x[6]) * SQRT2 - mid;
    let even = [sum + mid, gap + turned, gap - turned, sum - mid];

    let (a, b) = (x[5] + x[3], x[5] - x[3]);
    let (c, d) = (x[1] + x[7], x[1] - x[7]);
    let o7 = c + a;
    let shared = (b + d) * C2;
    let o6 = shared - b * MORE - o7;
    let o5 = (c - a) * SQRT2 - o6;
    let o4 = shared - d * LESS - o5;
    [
        even[0] + o7,
        even[1] + o6,
        even[2] + o5,
        even[3] + o4,
        even[3] - o4,
        even[2] - o5,
        even[1] - o6,
        even[0] - o7,
    ]
}

/// A rectangle of a plane into which blocks are written.
pub(super) struct Target<'a> {
    /// The plane's rows from the first of these blocks on.
    pub rows: &'a mut [u8],
    /// Bytes from row to row.
    pub pitch: usize,
    /// Bytes before the first block of a row.
    pub left: usize,
    /// Scratch.
    pub half: &'a mut Half,
}

/// Transforms the first `count` blocks of `lanes` (rounded up to a step) to blocks of `size` samples side by side in
/// `target`. Up to 7 bytes behind them are overwritten.
pub(super) fn transform(
    lanes: &Lanes,
    factors: &[f32; 64],
    size: (usize, usize),
    count: usize,
    target: Target<'_>,
) {
    let blocks = Blocks { lanes, factors, count, target };
    match size {
        (1, 1) => blocks.to::<1, 1>(),
        (2, 2) => blocks.to::<2, 2>(),
        (3, 3) => blocks.to::<3, 3>(),
        (4, 4) => blocks.to::<4, 4>(),
        (6, 6) => blocks.to::<6, 6>(),
        (8, 8) => blocks.to::<8, 8>(),
        (2, 1) => blocks.to::<2, 1>(),
        (4, 2) => blocks.to::<4, 2>(),
        (6, 3) => blocks.to::<6, 3>(),
        (8, 4) => blocks.to::<8, 4>(),
        (1, 2) => blocks.to::<1, 2>(),
        (2, 4) => blocks.to::<2, 4>(),
        (3, 6) => blocks.to::<3, 6>(),
        (4, 8) => blocks.to::<4, 8>(),
        _ => {}
    }
}

/// Blocks on their way to samples.
struct Blocks<'a> {
    lanes: &'a Lanes,
    factors: &'a [f32; 64],
    count: usize,
    target: Target<'a>,
}

impl Blocks<'_> {
    fn to<const W: usize, const H: usize>(self) {
        widest(Scaled::<W, H>(self));
    }
}

/// The same, each to `W` times `H` samples.
struct Scaled<'a, const W: usize, const H: usize>(Blocks<'a>);

impl<const W: usize, const H: usize> Loops for Scaled<'_, W, H> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Blocks { lanes, factors, count, target: Target { rows, pitch, left, half } } = self.0;
        for first in (0..count.min(LANES)).step_by(STEP) {
            columns::<W, H>(lanes, first, factors, half);
            for (y, row) in rows.chunks_mut(pitch).take(H).enumerate() {
                let words = samples::<W>(half, y);
                store::<W>(&words, &mut row[left + first * W..]);
            }
        }
    }
}

/// Dequantizes, and transforms down each column.
#[inline(always)]
fn columns<const W: usize, const H: usize>(
    lanes: &Lanes,
    first: usize,
    factors: &[f32; 64],
    half: &mut Half,
) {
    for u in 0..W {
        for i in 0..STEP {
            let mut x = [0.0; H];
            for v in 0..H {
                let at = (v * W + u) * LANES + (first & (LANES - STEP)) + i;
                x[v] = f32::from(lanes[at]) * factors[v * W + u];
            }
            if u == 0 {
                // Level shift: samples are stored without their middle.
                x[0] += 128.0;
            }
            let y = line::<H>(x);
            for v in 0..H {
                half[v * W + u][i] = y[v];
            }
        }
    }
}

/// Transforms along row `y` of each block; its samples as bytes of a number, the leftmost lowest.
#[inline(always)]
fn samples<const W: usize>(half: &Half, y: usize) -> [[u32; STEP]; 2] {
    let mut words = [[0; STEP]; 2];
    for i in 0..STEP {
        let mut x = [0.0; W];
        for u in 0..W {
            x[u] = half[(y & 7) * W + u][i];
        }
        let x = line::<W>(x);
        for u in 0..W {
            // At 2^23 the steps of f32 are whole numbers: adding it rounds, and leaves the number in the low bits.
            let bits = (x[u].clamp(0.0, 255.0) + 8_388_608.0).to_bits() & 255;
            words[u / 4][i] |= bits << (8 * (u % 4));
        }
    }
    words
}

/// Writes the bytes side by side. A store may reach into the next block, which is written after it.
#[inline(always)]
fn store<const W: usize>(words: &[[u32; STEP]; 2], row: &mut [u8]) {
    let Some(row) = row.get_mut(..W * STEP + 7) else { return };
    for i in 0..STEP {
        let at = i * W;
        let all = u64::from(words[0][i]) | u64::from(words[1][i]) << 32;
        match W {
            1 => row[at] = all as u8,
            2 => row[at..at + 2].copy_from_slice(&(all as u16).to_le_bytes()),
            3 | 4 => row[at..at + 4].copy_from_slice(&(all as u32).to_le_bytes()),
            _ => row[at..at + 8].copy_from_slice(&all.to_le_bytes()),
        }
    }
}

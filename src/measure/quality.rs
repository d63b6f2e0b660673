//! How good a picture is to look at, in numbers. All are taken from the small picture of [`super::pass`], so that a
//! photo of 12 megapixels and its copy at training size get nearly the same ones.

use serde::{Deserialize, Serialize};

use crate::pixels::Rgb8;
use crate::simd::{Loops, widest};

/// Cells a side of the colour grid.
pub const GRID: usize = 4;

/// Luma may differ by this much within a border.
const BORDER_STEP: u8 = 6;
/// Squares of a Laplacian, at most 1,020 either way, whose sum fits 32 bits.
const SQUARES_OF_U32: usize = 4_096;

/// Measures of one picture. Luma is that of ITU-R BT.601, 0 to 255, rounded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Mean luma.
    pub brightness: f32,
    /// Standard deviation of luma.
    pub contrast: f32,
    /// Luma that 5 % of the pixels are not above.
    pub dark: u8,
    /// Luma that 5 % of the pixels are not below.
    pub bright: u8,
    /// Entropy of the histogram of luma, in bits: 0 for one tone, 8 for all tones alike.
    pub entropy: f32,
    /// Variance of the four-neighbour Laplacian of luma (Pech-Pacheco et al. 2000): small where nothing is sharp.
    pub sharpness: f32,
    /// Mean of the largest less the smallest of R, G and B: 0 for gray.
    pub colour: f32,
    /// Share of the picture that is a border of one tone (letterbox, frame), 0 to 1.
    pub border: f32,
    /// Share of the picture that is a run of rows or columns at one side of exactly 128 gray: what a decoder leaves
    /// where data were missing, baked in by saving the picture again. 0 to 1.
    pub fill: f32,
    /// Mean R, G, B of [`GRID`] x [`GRID`] cells, row by row.
    #[serde(with = "serde_bytes_of_grid")]
    pub grid: [u8; GRID * GRID * 3],
}

/// 48 bytes as a sequence: serde itself stops at arrays of 32.
mod serde_bytes_of_grid {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub fn serialize<S: Serializer>(grid: &[u8; 48], to: S) -> Result<S::Ok, S::Error> {
        grid.as_slice().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 48], D::Error> {
        let bytes = Vec::<u8>::deserialize(from)?;
        bytes.try_into().map_err(|_| D::Error::custom("a colour grid of another size"))
    }
}

impl Quality {
    /// Measures `small`, which has at least one pixel.
    pub fn of(small: &Rgb8) -> Self {
        widest(Look(small))
    }
}

/// A picture to be measured.
struct Look<'a>(&'a Rgb8);

impl Loops for Look<'_> {
    type Out = Quality;

    #[inline(always)]
    fn run(self) -> Quality {
        let small = self.0;
        let (width, height) = (small.width as usize, small.height as usize);
        let (luma, spread) = luma_and_spread(small);
        let histogram = histogram(&luma);
        let n = f64::from(small.width) * f64::from(small.height);
        let (mut sum, mut squares) = (0_u64, 0_u64);
        for (value, count) in histogram.iter().enumerate() {
            sum += value as u64 * u64::from(*count);
            squares += (value * value) as u64 * u64::from(*count);
        }
        let mean = sum as f64 / n;
        Quality {
            brightness: mean as f32,
            contrast: (squares as f64 / n - mean * mean).max(0.0).sqrt() as f32,
            dark: quantile(&histogram, n, 0.05),
            bright: quantile(&histogram, n, 0.95),
            entropy: entropy(&histogram, n),
            sharpness: laplacian_variance(&luma, width, height),
            colour: (spread as f64 / n) as f32,
            border: border(&luma, width, height),
            fill: fill(small),
            grid: grid(small),
        }
    }
}

/// BT.601 luma with the weights and the rounding of Pillow's `convert("L")`, and the sum over all pixels of the largest
/// less the smallest of R, G and B.
#[inline(always)]
fn luma_and_spread(picture: &Rgb8) -> (Vec<u8>, u64) {
    let (pixels, _) = picture.data.as_chunks::<3>();
    let mut luma = vec![0; pixels.len()];
    let mut spread = 0_u64;
    // So many values of a byte fit 32 bits.
    for (luma, pixels) in luma.chunks_mut(1 << 24).zip(pixels.chunks(1 << 24)) {
        let mut of_part = 0_u32;
        for (luma, [r, g, b]) in luma.iter_mut().zip(pixels) {
            of_part =
                of_part.wrapping_add(u32::from((*r).max(*g).max(*b).wrapping_sub((*r).min(*g).min(*b))));
            let [r, g, b] = [u32::from(*r), u32::from(*g), u32::from(*b)];
            // The weights add up to 65,536: nothing wraps.
            let sum = r
                .wrapping_mul(19_595)
                .wrapping_add(g.wrapping_mul(38_470))
                .wrapping_add(b.wrapping_mul(7_471));
            *luma = (sum.wrapping_add(0x8000) >> 16) as u8;
        }
        spread += u64::from(of_part);
    }
    (luma, spread)
}

/// How often each value stands. Neighbours are counted apart: one counter would have to wait for itself.
#[inline(always)]
fn histogram(luma: &[u8]) -> [u32; 256] {
    let mut parts = [[0_u32; 256]; 4];
    let (fours, rest) = luma.as_chunks::<4>();
    for four in fours {
        for (part, value) in parts.iter_mut().zip(four) {
            part[usize::from(*value)] = part[usize::from(*value)].wrapping_add(1);
        }
    }
    for value in rest {
        parts[0][usize::from(*value)] += 1;
    }
    let mut histogram = [0; 256];
    for part in parts {
        histogram.iter_mut().zip(part).for_each(|(all, count)| *all += count);
    }
    histogram
}

/// The smallest value that the share `part` of all pixels is not above.
fn quantile(histogram: &[u32; 256], n: f64, part: f64) -> u8 {
    let mut seen = 0.0;
    for (value, count) in histogram.iter().enumerate() {
        seen += f64::from(*count);
        if seen >= part * n {
            return value as u8;
        }
    }
    255
}

fn entropy(histogram: &[u32; 256], n: f64) -> f32 {
    let bits = |count: u32| {
        let p = f64::from(count) / n;
        -p * p.log2()
    };
    histogram.iter().filter(|c| **c > 0).map(|c| bits(*c)).sum::<f64>().abs() as f32
}

/// Integers up to the last division: the same on every machine.
#[inline(always)]
fn laplacian_variance(luma: &[u8], width: usize, height: usize) -> f32 {
    if width < 3 || height < 3 {
        return 0.0;
    }
    let (mut sum, mut squares) = (0_i64, 0_i64);
    for y in 1..height - 1 {
        let above = &luma[(y - 1) * width..y * width];
        let here = &luma[y * width..(y + 1) * width];
        let below = &luma[(y + 1) * width..(y + 2) * width];
        for from in (1..width - 1).step_by(SQUARES_OF_U32) {
            let here = &here[from - 1..(from + SQUARES_OF_U32 + 1).min(width)];
            let (mut part_sum, mut part_squares) = (0_i32, 0_i32);
            for (((left, middle), right), (above, below)) in
                here.iter().zip(&here[1..]).zip(&here[2..]).zip(above[from..].iter().zip(&below[from..]))
            {
                let across = i16::from(*left).wrapping_add(i16::from(*right));
                let around = i16::from(*above).wrapping_add(i16::from(*below)).wrapping_add(across);
                let value = i32::from(around.wrapping_sub(i16::from(*middle).wrapping_mul(4)));
                part_sum = part_sum.wrapping_add(value);
                part_squares = part_squares.wrapping_add(value.wrapping_mul(value));
            }
            sum += i64::from(part_sum);
            squares += i64::from(part_squares as u32);
        }
    }
    let n = ((width - 2) * (height - 2)) as f64;
    let mean = sum as f64 / n;
    (squares as f64 / n - mean * mean).max(0.0) as f32
}

/// The share outside the rectangle that is left when rows and columns of one tone are taken from the four sides, each
/// side in its own tone. A picture of one tone has no border.
#[inline(always)]
fn border(luma: &[u8], width: usize, height: usize) -> f32 {
    let row = |y: usize| luma[y * width..(y + 1) * width].iter().copied();
    let column = |x: usize| luma.iter().skip(x).step_by(width).copied();
    let top = run((0..height).map(|y| span(row(y))));
    if top == height {
        return 0.0;
    }
    let bottom = run((0..height).rev().map(|y| span(row(y))));
    let left = run((0..width).map(|x| span(column(x))));
    let right = run((0..width).rev().map(|x| span(column(x))));
    let inner = (width.saturating_sub(left + right)) * (height.saturating_sub(top + bottom));
    1.0 - inner as f32 / (width * height) as f32
}

fn span(line: impl Iterator<Item = u8>) -> (u8, u8) {
    line.fold((255, 0), |(low, high), v| (low.min(v), high.max(v)))
}

/// How many lines from the first on are of the tone of the first.
fn run(lines: impl Iterator<Item = (u8, u8)>) -> usize {
    let (mut low, mut high) = (255_u8, 0_u8);
    lines
        .take_while(|(l, h)| {
            (low, high) = (low.min(*l), high.max(*h));
            high.saturating_sub(low) <= BORDER_STEP
        })
        .count()
}

/// The longest run of 128-gray lines at one of the sides, as a share of that side.
#[inline(always)]
fn fill(picture: &Rgb8) -> f32 {
    let (width, height) = (picture.width as usize, picture.height as usize);
    let is_fill = |p: &[u8]| p == [128; 3];
    let row = |y: &usize| picture.data[y * width * 3..(y + 1) * width * 3].chunks_exact(3).all(is_fill);
    let column = |x: &usize| (0..height).all(|y| is_fill(&picture.data[(y * width + x) * 3..][..3]));
    let rows = (0..height).take_while(row).count().max((0..height).rev().take_while(row).count());
    let columns = (0..width).take_while(column).count().max((0..width).rev().take_while(column).count());
    if rows == height { 0.0 } else { (rows as f32 / height as f32).max(columns as f32 / width as f32) }
}

#[inline(always)]
fn grid(picture: &Rgb8) -> [u8; GRID * GRID * 3] {
    let (width, height) = (picture.width as usize, picture.height as usize);
    let mut grid = [0; GRID * GRID * 3];
    let mut columns = vec![0_u64; width * 3];
    for (y, cells) in grid.chunks_exact_mut(GRID * 3).enumerate() {
        let down = part(y, height);
        columns.fill(0);
        for row in picture.data[down.start * width * 3..down.end * width * 3].chunks_exact(width * 3) {
            for (sum, value) in columns.iter_mut().zip(row) {
                *sum = sum.wrapping_add(u64::from(*value));
            }
        }
        for (x, out) in cells.as_chunks_mut::<3>().0.iter_mut().enumerate() {
            let across = part(x, width);
            let n = (across.len() * down.len()) as u64;
            let mut sum = [0_u64; 3];
            for pixel in columns[across.start * 3..across.end * 3].as_chunks::<3>().0 {
                for c in 0..3 {
                    sum[c] = sum[c].wrapping_add(pixel[c]);
                }
            }
            *out = sum.map(|sum| ((sum + n / 2) / n.max(1)) as u8);
        }
    }
    grid
}

/// Cell `i` of a side cut into [`GRID`]; at least one pixel wide, so that tiny pictures have a grid too.
fn part(i: usize, side: usize) -> std::ops::Range<usize> {
    let start = (i * side / GRID).min(side - 1);
    start..((i + 1) * side / GRID).max(start + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 3]) -> Rgb8 {
        let data = (0..height)
            .flat_map(|y| (0..width).map(move |x| (x, y)))
            .flat_map(|(x, y)| pixel(x, y))
            .collect();
        Rgb8::new(width, height, data)
    }

    #[test]
    fn a_letterbox_is_a_border_and_one_tone_is_none() {
        let boxed =
            painted(100, 100, |x, y| if (10..90).contains(&y) { [(x * 2) as u8, 90, 30] } else { [0; 3] });
        assert!((Quality::of(&boxed).border - 0.2).abs() < 0.001);
        assert_eq!(Quality::of(&painted(50, 50, |_, _| [7; 3])).border, 0.0);
    }

    #[test]
    fn gray_rows_at_the_bottom_are_fill() {
        let broken = painted(64, 64, |x, y| if y < 48 { [(x * 4) as u8, 10, y as u8] } else { [128; 3] });
        assert_eq!(Quality::of(&broken).fill, 0.25);
    }

    #[test]
    fn blur_lowers_sharpness_and_one_tone_has_no_entropy() {
        let sharp = painted(64, 64, |x, y| if (x / 4 + y / 4) % 2 == 0 { [250; 3] } else { [5; 3] });
        let smooth = painted(64, 64, |x, _| [(x * 4) as u8; 3]);
        assert!(Quality::of(&sharp).sharpness > 50.0 * Quality::of(&smooth).sharpness.max(1.0));
        assert_eq!(Quality::of(&painted(9, 9, |_, _| [3; 3])).entropy, 0.0);
    }

    #[test]
    fn one_pixel_is_measured() {
        let quality = Quality::of(&painted(1, 1, |_, _| [10, 20, 30]));
        assert_eq!(quality.grid[45..], [10, 20, 30]);
    }

    #[test]
    fn without_vectors_the_measures_are_the_same() {
        for (width, height) in [(1, 1), (2, 3), (163, 201), (319, 170)] {
            let picture =
                painted(width, height, |x, y| [(x * 7 + y) as u8, (y * 5) as u8, (x * y % 251) as u8]);
            assert_eq!(Quality::of(&picture), Look(&picture).run());
        }
    }
}

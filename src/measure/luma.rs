//! A small gray plane of a picture: area averages, exact and the same on every machine.

use std::ops::Range;

use crate::pixels::{Orientation, Rgb8};
use crate::simd::{Loops, widest};

/// Weights of R, G, B in luma, in 1/65536 (ITU-R BT.601, as Pillow's mode L and libjpeg have them).
const WEIGHTS: [u64; 3] = [19_595, 38_470, 7_471];
/// Rows of bytes whose sum fits 16 bits.
const ROWS_OF_U16: usize = 257;

/// A square plane of luma: cell (x, y) is the mean luma of that part of the picture, whatever its shape was.
#[derive(Debug, Clone, PartialEq)]
pub struct Luma {
    /// Cells a row and rows.
    pub side: usize,
    /// Width and height of the picture in pixels.
    pub source: (u32, u32),
    /// `side * side` values of 0 to 255, rows from top to bottom.
    pub data: Vec<f32>,
}

impl Luma {
    /// The plane of `side * side` cells of `picture`, whose sides are at least 1 pixel; `side` is 1 to 128. One pass
    /// over the pixels.
    ///
    /// Each cell is an exact integer sum (pixels that a cell covers in part count in part) and one multiplication, so the
    /// order of adding does not matter and turning the picture turns the plane.
    pub fn of(picture: &Rgb8, side: usize) -> Self {
        widest(Averages { picture, side: side.clamp(1, 128) })
    }

    /// The plane of the picture turned upright.
    pub fn upright(&self, orientation: Orientation) -> Self {
        use Orientation as O;
        let (n, end) = (self.side, self.side.saturating_sub(1));
        let from = |x: usize, y: usize| match orientation {
            O::Upright => (x, y),
            O::FlipH => (end - x, y),
            O::Rotate180 => (end - x, end - y),
            O::FlipV => (x, end - y),
            O::Transpose => (y, x),
            O::Rotate90 => (y, end - x),
            O::Transverse => (end - y, end - x),
            O::Rotate270 => (end - y, x),
        };
        let cell = |at: usize| {
            let (x, y) = from(at % n, at / n);
            self.data[y * n + x]
        };
        let data = (0..n * n).map(cell).collect();
        Self { side: n, source: orientation.upright(self.source), data }
    }

    /// The plane of half the side (an even one): means of 2x2 cells.
    pub fn halved(&self) -> Self {
        let n = self.side / 2;
        let mut data = Vec::with_capacity(n * n);
        for pair in self.data.chunks_exact((2 * self.side).max(1)) {
            let (above, below) = pair.split_at(self.side);
            let cells = above.as_chunks::<2>().0.iter().zip(below.as_chunks::<2>().0);
            data.extend(cells.map(|(a, b)| (a[0] + a[1] + (b[0] + b[1])) / 4.0));
        }
        Self { side: n, source: self.source, data }
    }

    /// Mean and standard deviation (of all cells, not of a sample).
    pub fn mean_and_std(&self) -> (f32, f32) {
        let n = self.data.len().max(1) as f64;
        let mean = self.data.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
        let square =
            self.data.iter().map(|v| (f64::from(*v) - mean) * (f64::from(*v) - mean)).sum::<f64>() / n;
        (mean as f32, square.sqrt() as f32)
    }
}

/// A plane to be made.
struct Averages<'a> {
    picture: &'a Rgb8,
    side: usize,
}

impl Loops for Averages<'_> {
    type Out = Luma;

    #[inline(always)]
    fn run(self) -> Luma {
        let Self { picture, side } = self;
        let (w, h) = (picture.width as usize, picture.height as usize);
        let mut rows = Rows::new(w * 3, side);
        let mut data = vec![0.0; side * side];
        // One pixel more, of nothing: the right edge of the last cell lies at its start.
        let mut luma = vec![0_u64; w + 1];
        // Of the pixels before each. What a cell holds is the difference between its two edges, however many pixels it
        // covers.
        let mut before = vec![0_u64; w + 1];
        // The pixel in which the right edge of each cell lies, and how far, in units of 1/side of a pixel.
        let edges: Vec<(usize, u64)> = (1..=side).map(|at| (at * w / side, (at * w % side) as u64)).collect();
        let mut cells = vec![0_u64; side];
        // In units of 1/side of a pixel along both sides, and the weights of luma.
        let share = 1.0 / ((w * h) as f64 * 65_536.0);
        for (cell, data) in data.chunks_exact_mut(side).enumerate() {
            cells.fill(0);
            let span = Span::of(cell, h, side);
            for part in span.parts() {
                rows.sum(&picture.data, &span, part);
                for (luma, rgb) in luma.iter_mut().zip(rows.line.as_chunks::<3>().0) {
                    let [r, g, b] = [u64::from(rgb[0]), u64::from(rgb[1]), u64::from(rgb[2])];
                    let (r, g, b) =
                        (r.wrapping_mul(WEIGHTS[0]), g.wrapping_mul(WEIGHTS[1]), b.wrapping_mul(WEIGHTS[2]));
                    *luma = r.wrapping_add(g).wrapping_add(b);
                }
                let mut sum = 0_u64;
                for (before, luma) in before[1..].iter_mut().zip(&luma) {
                    sum = sum.wrapping_add(*luma);
                    *before = sum;
                }
                let mut left = 0_u64;
                for (cell, (at, units)) in cells.iter_mut().zip(&edges) {
                    let whole = before[*at].wrapping_mul(side as u64);
                    let right = whole.wrapping_add(luma[*at].wrapping_mul(*units));
                    *cell = cell.wrapping_add(right.wrapping_sub(left));
                    left = right;
                }
            }
            for (out, sum) in data.iter_mut().zip(&cells) {
                *out = (*sum as f64 * share) as f32;
            }
        }
        Luma { side, source: picture.size(), data }
    }
}

/// The pixels that a cell covers, along one side of the picture. In units of 1/side of a pixel, pixel i covers
/// side*i to side*(i+1) and cell j of n pixels covers n*j to n*(j+1).
struct Span {
    first: usize,
    last: usize,
    /// Units of the first and of the last pixel that lie in the cell, at most `side`; of the last 0 where it is the
    /// first.
    ends: (u16, u16),
}

impl Span {
    fn of(cell: usize, pixels: usize, side: usize) -> Self {
        let (from, to) = (cell * pixels, (cell + 1) * pixels);
        let (first, last) = (from / side, (to - 1) / side);
        let left = ((first + 1) * side).min(to) - from;
        let right = if last > first { to - last * side } else { 0 };
        Self { first, last, ends: (left as u16, right as u16) }
    }

    /// The pixels between the first and the last: covered whole.
    fn inner(&self) -> Range<usize> {
        self.first + 1..self.last.max(self.first + 1)
    }

    /// The inner pixels in parts of [`ROWS_OF_U16`]; one part, an empty one, where there are none.
    fn parts(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let inner = self.inner();
        let count = inner.len().div_ceil(ROWS_OF_U16).max(1);
        (0..count).map(move |part| {
            let from = inner.start + part * ROWS_OF_U16;
            from..(from + ROWS_OF_U16).min(inner.end)
        })
    }
}

/// Sums down the columns of the rows of a cell, in units of 1/side of a row.
///
/// Nothing here can overflow (16 bits: 257 rows of 255; 32 bits: 128 units of each and the ends; 64 bits: all luma of
/// 2^40 pixels); `wrapping` says so to the compiler, whose checks would cost several times the work.
struct Rows {
    side: u32,
    short: Vec<u16>,
    line: Vec<u32>,
}

impl Rows {
    fn new(row: usize, side: usize) -> Self {
        Self { side: side as u32, short: vec![0; row], line: vec![0; row] }
    }

    /// The sums of rows `part` of `span`; with the first part those of its two ends.
    #[inline(always)]
    fn sum(&mut self, data: &[u8], span: &Span, part: Range<usize>) {
        let row = self.line.len();
        if part.start == span.inner().start {
            let (first, last) = span.ends;
            let (a, b) = (&data[span.first * row..][..row], &data[span.last * row..][..row]);
            for ((sum, a), b) in self.line.iter_mut().zip(a).zip(b) {
                // At most 128 * 255 twice.
                let both = u16::from(*a).wrapping_mul(first).wrapping_add(u16::from(*b).wrapping_mul(last));
                *sum = u32::from(both);
            }
        } else {
            self.line.fill(0);
        }
        if part.len() == 1 {
            for (sum, value) in self.line.iter_mut().zip(&data[part.start * row..]) {
                *sum = sum.wrapping_add(u32::from(*value).wrapping_mul(self.side));
            }
        } else if !part.is_empty() {
            self.short.fill(0);
            add_rows(&mut self.short, &data[part.start * row..part.end * row]);
            for (sum, short) in self.line.iter_mut().zip(&self.short) {
                *sum = sum.wrapping_add(u32::from(*short).wrapping_mul(self.side));
            }
        }
    }
}

/// Adds rows of bytes to `sums`, four at a time: the sums go through memory a quarter as often.
#[inline(always)]
fn add_rows(sums: &mut [u16], rows: &[u8]) {
    let row = sums.len();
    let mut fours = rows.chunks_exact(row * 4);
    for four in &mut fours {
        let (ab, cd) = four.split_at(row * 2);
        let ((a, b), (c, d)) = (ab.split_at(row), cd.split_at(row));
        for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            let ab = u16::from(*a).wrapping_add(u16::from(*b));
            let cd = u16::from(*c).wrapping_add(u16::from(*d));
            *sum = sum.wrapping_add(ab.wrapping_add(cd));
        }
    }
    for one in fours.remainder().chunks_exact(row) {
        for (sum, value) in sums.iter_mut().zip(one) {
            *sum = sum.wrapping_add(u16::from(*value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise with a slope.
    fn picture(width: u32, height: u32) -> Rgb8 {
        let byte = |i: u32| (i / 3 % width / 2).wrapping_add(i.wrapping_mul(2_654_435_761) >> 25) as u8;
        Rgb8::new(width, height, (0..width * height * 3).map(byte).collect())
    }

    #[test]
    fn cells_are_means_of_the_pixels_that_they_cover() {
        for (width, height, side) in [(1, 1, 4), (7, 3, 4), (64, 32, 32), (101, 67, 16), (300, 700, 128)] {
            let picture = picture(width, height);
            let plane = Luma::of(&picture, side);
            let share = |at: u32, cell: usize, pixels: u32| {
                // In units of 1/side of a pixel.
                let (from, to) = (cell as u32 * pixels, (cell as u32 + 1) * pixels);
                f64::from((to.min((at + 1) * side as u32)).saturating_sub(from.max(at * side as u32)))
            };
            for cell in [0, 1, side * side / 2 + side / 3, side * side - 1] {
                let mut sum = 0.0;
                for (at, [r, g, b]) in picture.data.as_chunks::<3>().0.iter().enumerate() {
                    let (x, y) = (at as u32 % width, at as u32 / width);
                    let luma = 19_595.0 * f64::from(*r) + 38_470.0 * f64::from(*g) + 7_471.0 * f64::from(*b);
                    sum += luma * share(x, cell % side, width) * share(y, cell / side, height);
                }
                let wanted = sum / 65_536.0 / f64::from(width) / f64::from(height);
                assert!(
                    (f64::from(plane.data[cell]) - wanted).abs() < 1e-4,
                    "{width}x{height} {side} {cell}"
                );
            }
        }
    }

    #[test]
    fn without_vectors_the_plane_is_the_same() {
        for (width, height) in [(1, 1), (5, 900), (163, 201), (321, 1_170)] {
            let picture = picture(width, height);
            assert_eq!(Luma::of(&picture, 128), Averages { picture: &picture, side: 128 }.run());
        }
    }
}

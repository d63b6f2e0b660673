//! A small gray plane of a picture: area averages, exact and the same on every machine.

use crate::pixels::{Orientation, Rgb8};

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
    /// The plane of `side * side` cells of `picture`, whose sides are at least 1 pixel. One pass over the pixels.
    ///
    /// Each cell is an exact integer sum (pixels that a cell covers in part count in part) and one division, so the
    /// order of adding does not matter and turning the picture turns the plane.
    pub fn of(picture: &Rgb8, side: usize) -> Self {
        let (w, h) = (picture.width as usize, picture.height as usize);
        let mut data = Vec::with_capacity(side * side);
        let mut columns = Columns::new(w * 3);
        let mut luma = vec![0_u64; w];
        // In units of 1/side of a pixel, pixel i covers side*i .. side*(i+1) and cell j covers w*j .. w*(j+1).
        let whole = (w * h) as f64 * 65_536.0;
        for cell in 0..side {
            columns.sum(&picture.data, Span::of(cell, h, side), side as u32);
            for (sum, rgb) in luma.iter_mut().zip(columns.total.chunks_exact(3)) {
                let part = |c: usize| WEIGHTS[c].wrapping_mul(rgb[c]);
                *sum = part(0).wrapping_add(part(1)).wrapping_add(part(2));
            }
            data.extend((0..side).map(|cell| {
                let span = Span::of(cell, w, side);
                let inner: u64 = luma[span.inner()].iter().sum();
                let sum = span.weighed(inner * side as u64, |edge| luma[edge]);
                (sum as f64 / whole) as f32
            }));
        }
        Self { side, source: picture.size(), data }
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
        let cell = |at: usize| {
            let first = (at / n * 2) * self.side + at % n * 2;
            let below = first + self.side;
            (self.data[first] + self.data[first + 1] + (self.data[below] + self.data[below + 1])) / 4.0
        };
        Self { side: n, source: self.source, data: (0..n * n).map(cell).collect() }
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

/// The pixels that a cell covers, along one side of the picture.
struct Span {
    first: usize,
    last: usize,
    /// Units of the first and of the last pixel that lie in the cell.
    ends: (u64, u64),
}

impl Span {
    fn of(cell: usize, pixels: usize, side: usize) -> Self {
        let (from, to) = (cell * pixels, (cell + 1) * pixels);
        let (first, last) = (from / side, (to - 1) / side);
        let left = ((first + 1) * side).min(to) - from;
        let right = if last > first { to - last * side } else { 0 };
        Self { first, last, ends: (left as u64, right as u64) }
    }

    /// Those that are covered whole, without the first and the last.
    fn inner(&self) -> std::ops::Range<usize> {
        self.first + 1..self.last.max(self.first + 1)
    }

    /// `inner` and what the ends add.
    fn weighed(&self, inner: u64, value: impl Fn(usize) -> u64) -> u64 {
        let right = if self.ends.1 > 0 { self.ends.1 * value(self.last) } else { 0 };
        inner + self.ends.0 * value(self.first) + right
    }
}

/// Sums down the columns of some rows.
struct Columns {
    /// Of at most 257 rows: half the memory to go through.
    short: Vec<u16>,
    total: Vec<u64>,
}

impl Columns {
    fn new(row: usize) -> Self {
        Self { short: vec![0; row], total: vec![0; row] }
    }

    /// `total` becomes the sums over the rows of `span`, in units of 1/`side`: at most 255 times the rows of the
    /// picture, hence the `wrapping` here too.
    fn sum(&mut self, data: &[u8], span: Span, side: u32) {
        let row = self.total.len();
        let rows = |y: usize| &data[y * row..(y + 1) * row];
        let ends = [(span.first, span.ends.0), (span.last, span.ends.1)];
        for (total, value) in self.total.iter_mut().zip(rows(span.first)) {
            *total = ends[0].1.wrapping_mul(u64::from(*value));
        }
        if ends[1].1 > 0 {
            for (total, value) in self.total.iter_mut().zip(rows(span.last)) {
                *total = total.wrapping_add(ends[1].1.wrapping_mul(u64::from(*value)));
            }
        }
        let inner = span.inner();
        for from in inner.clone().step_by(ROWS_OF_U16) {
            let some = &data[from * row..(from + ROWS_OF_U16).min(inner.end) * row];
            self.short.fill(0);
            add_rows(&mut self.short, some);
            for (total, short) in self.total.iter_mut().zip(&self.short) {
                *total = total.wrapping_add(u64::from(u32::from(*short).wrapping_mul(side)));
            }
        }
    }
}

/// Adds rows of bytes to `sums`, four at a time: the sums go through memory a quarter as often.
/// No sum can overflow; `wrapping` says so to the compiler, whose checks would cost four times the work.
fn add_rows(sums: &mut [u16], rows: &[u8]) {
    let row = sums.len();
    let mut fours = rows.chunks_exact(row * 4);
    for four in &mut fours {
        let (ab, cd) = four.split_at(row * 2);
        let ((a, b), (c, d)) = (ab.split_at(row), cd.split_at(row));
        for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            let pairs = (u16::from(*a) + u16::from(*b), u16::from(*c) + u16::from(*d));
            *sum = sum.wrapping_add(pairs.0.wrapping_add(pairs.1));
        }
    }
    for one in fours.remainder().chunks_exact(row) {
        for (sum, value) in sums.iter_mut().zip(one) {
            *sum = sum.wrapping_add(u16::from(*value));
        }
    }
}

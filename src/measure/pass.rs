//! The one pass over all pixels of a picture: while a strip of rows is in the cache it is hashed, summed, and averaged
//! into a small picture, from which every other measure is taken.

use twox_hash::XxHash3_128;

use super::ImageSums;
use crate::normal::strips;
use crate::pixels::{Orientation, Rgb8};
use crate::simd::{Loops, widest};

/// The short edge of the small picture is at least this, and less than twice this, where the picture is that large.
pub const SMALL_EDGE: u32 = 160;

/// What is hashed, squared and averaged before the next rows come: a part of the second cache of a core.
const STRIP_BYTES: usize = 1 << 16;
/// At least so many rows: a turned picture is read down its columns, 64 bytes at a time whatever is used of them.
const STRIP_ROWS: usize = 32;

/// What one pass over a picture gives.
#[derive(Debug, Clone)]
pub struct Pass {
    /// XXH3-128 over width, height (little-endian, 4 bytes each) and the interleaved RGB rows; big-endian, as it is
    /// written. It tells pictures apart, it does not withstand who makes two of one hash on purpose.
    pub hash: [u8; 16],
    /// Exact sums of values and squares.
    pub sums: ImageSums,
    /// The picture averaged over squares of a whole number of pixels; the picture itself where it is small. Pixels at
    /// the right and at the bottom that fill no square are left out.
    pub small: Rgb8,
}

/// Goes once over `picture`, as it looks upright.
pub fn pass(picture: &Rgb8, orientation: Orientation) -> Pass {
    let (width, height) = orientation.upright(picture.size());
    let side = (width.min(height) / SMALL_EDGE).clamp(1, 256);
    let mut hasher = XxHash3_128::new();
    hasher.write(&width.to_le_bytes());
    hasher.write(&height.to_le_bytes());
    let mut sums = ImageSums::default();
    let mut small = Small::new(width, height, side);
    // Whole rows of squares, and so many that turning finds the lines of the cache that it has loaded.
    let (row, high) = (3 * width.max(1) as usize, side as usize);
    let rows = high * (STRIP_BYTES / (row * high)).max(STRIP_ROWS.div_ceil(high));
    strips(picture, orientation, rows, |strip| {
        hasher.write(strip);
        widest(Strip { rows: strip, sums: &mut sums, small: &mut small });
    });
    Pass { hash: hasher.finish_128().to_be_bytes(), sums, small: small.picture }
}

/// Rows on their way into the sums and the small picture.
struct Strip<'a> {
    rows: &'a [u8],
    sums: &'a mut ImageSums,
    small: &'a mut Small,
}

impl Loops for Strip<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        self.sums.add_squares(self.rows);
        self.small.add(self.rows, self.sums);
    }
}

/// The small picture while it grows.
struct Small {
    picture: Rgb8,
    side: usize,
    /// Sums of the rows of one row of squares.
    columns: Vec<u16>,
    means: Vec<u8>,
}

impl Small {
    fn new(width: u32, height: u32, side: u32) -> Self {
        let (across, down) = (width / side, height / side);
        let data = Vec::with_capacity(3 * across as usize * down as usize);
        let columns = vec![0; 3 * width as usize];
        Self {
            picture: Rgb8 { width: across, height: down, data },
            side: side as usize,
            columns,
            means: Vec::new(),
        }
    }

    /// Adds rows to the picture, and their values to `sums`.
    #[inline(always)]
    fn add(&mut self, strip: &[u8], sums: &mut ImageSums) {
        if self.side == 1 {
            sums.add_values(strip);
            self.picture.data.extend_from_slice(strip);
            return;
        }
        let row = self.columns.len();
        let squares = strip.chunks_exact(row * self.side);
        sums.add_values(squares.remainder());
        for square in squares {
            add_rows(&mut self.columns, square);
            sums.add_columns(&self.columns, self.side);
            match self.side {
                2 => self.average_few::<2>(),
                3 => self.average_few::<3>(),
                _ => self.average(),
            }
        }
    }

    /// The next row of pixels, to be filled.
    #[inline(always)]
    fn next_row(&mut self) -> &mut [[u8; 3]] {
        let from = self.picture.data.len();
        self.picture.data.resize(from + 3 * self.picture.width as usize, 0);
        self.picture.data[from..].as_chunks_mut().0
    }

    /// A row of squares: each pixel is the rounded mean of its square.
    #[inline(always)]
    fn average(&mut self) {
        let (side, columns) = (self.side, std::mem::take(&mut self.columns));
        let area = (side * side) as u32;
        // To divide, rounded down, is to multiply with this and to drop 48 bits: sums are below 256 * area, and area
        // is at most 2^16.
        let reciprocal = (1_u64 << 48) / u64::from(area) + 1;
        for (out, square) in self.next_row().iter_mut().zip(columns.chunks_exact(3 * side)) {
            let mut sum = [area / 2; 3];
            for pixel in square.as_chunks::<3>().0 {
                for c in 0..3 {
                    sum[c] = sum[c].wrapping_add(u32::from(pixel[c]));
                }
            }
            for c in 0..3 {
                out[c] = (u64::from(sum[c]).wrapping_mul(reciprocal) >> 48) as u8;
            }
        }
        self.columns = columns;
    }

    /// The same for small squares: the mean of the square that begins at each column, many at a time, and then every
    /// `SIDE`th of them.
    #[inline(always)]
    fn average_few<const SIDE: usize>(&mut self) {
        let columns = std::mem::take(&mut self.columns);
        // As above, with 16 bits: sums are below 256 * 9.
        let area = (SIDE * SIDE) as u16;
        let reciprocal = (1 << 16) / u32::from(area) + u32::from(SIDE == 3);
        let mut means = std::mem::take(&mut self.means);
        means.resize(columns.len(), 0);
        let (second, third) = (&columns[3..], &columns[3 * (SIDE - 1)..]);
        for (((mean, a), b), c) in means.iter_mut().zip(&columns).zip(second).zip(third) {
            let sum = a.wrapping_add(*b).wrapping_add(area / 2);
            let sum = if SIDE == 3 { sum.wrapping_add(*c) } else { sum };
            *mean = (u32::from(sum).wrapping_mul(reciprocal) >> 16) as u8;
        }
        let (fours, rest) = self.next_row().as_chunks_mut::<4>();
        let mut groups = means.chunks_exact(12 * SIDE);
        for (out, group) in fours.iter_mut().zip(&mut groups) {
            for (i, out) in out.iter_mut().enumerate() {
                *out = [group[3 * SIDE * i], group[3 * SIDE * i + 1], group[3 * SIDE * i + 2]];
            }
        }
        for (out, mean) in rest.iter_mut().zip(groups.remainder().chunks_exact(3 * SIDE)) {
            *out = [mean[0], mean[1], mean[2]];
        }
        (self.columns, self.means) = (columns, means);
    }
}

/// The sums of `rows` by column, two rows at a time: the sums go through memory half as often. 256 rows of 255 fit 16
/// bits; wrapping, so that the compiler adds several at a time.
#[inline(always)]
fn add_rows(columns: &mut [u16], rows: &[u8]) {
    let row = columns.len().max(1);
    let mut pairs = rows.chunks_exact(2 * row);
    if let Some((a, b)) = pairs.next().map(|pair| pair.split_at(row)) {
        for ((column, a), b) in columns.iter_mut().zip(a).zip(b) {
            *column = u16::from(*a).wrapping_add(u16::from(*b));
        }
    } else {
        columns.fill(0);
    }
    for (a, b) in (&mut pairs).map(|pair| pair.split_at(row)) {
        for ((column, a), b) in columns.iter_mut().zip(a).zip(b) {
            *column = column.wrapping_add(u16::from(*a).wrapping_add(u16::from(*b)));
        }
    }
    for (column, value) in columns.iter_mut().zip(pairs.remainder()) {
        *column = column.wrapping_add(u16::from(*value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32) -> Rgb8 {
        let data = (0..width * height * 3).map(|i| (i * 7 % 251) as u8).collect();
        Rgb8::new(width, height, data)
    }

    #[test]
    fn the_sums_do_not_depend_on_strips() {
        let picture = picture(1201, 1037);
        assert_eq!(pass(&picture, Orientation::Upright).sums, ImageSums::of(&picture));
    }

    #[test]
    fn squares_are_averaged() {
        for (side, width, height) in
            [(2, 400, 321), (2, 403, 320), (3, 490, 481), (3, 492, 480), (4, 643, 701), (7, 1_121, 1_300)]
        {
            let picture = picture(width, height);
            let small = pass(&picture, Orientation::Upright).small;
            assert_eq!(small.size(), (width / side, height / side));
            let at = |x: u32, y: u32, c: u32| u32::from(picture.data[((y * width + x) * 3 + c) as usize]);
            let (mut wanted, cells) = (Vec::new(), (0..side).flat_map(|y| (0..side).map(move |x| (x, y))));
            for y in 0..small.height {
                for x in 0..small.width {
                    for c in 0..3 {
                        let sum: u32 = cells.clone().map(|(i, j)| at(x * side + i, y * side + j, c)).sum();
                        wanted.push(((sum + side * side / 2) / (side * side)) as u8);
                    }
                }
            }
            assert!(small.data == wanted, "squares of {side}");
        }
    }

    #[test]
    fn the_shape_is_part_of_the_hash() {
        let (a, b) = (Rgb8::new(4, 1, vec![9; 12]), Rgb8::new(2, 2, vec![9; 12]));
        assert_ne!(pass(&a, Orientation::Upright).hash, pass(&b, Orientation::Upright).hash);
    }
}

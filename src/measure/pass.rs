//! The one pass over all pixels of a picture: while a strip of rows is in the cache it is hashed, summed, and averaged
//! into a small picture, from which every other measure is taken.

use super::ImageSums;
use crate::pixels::Rgb8;

/// The short edge of the small picture is at least this, and less than twice this, where the picture is that large.
pub const SMALL_EDGE: u32 = 160;

/// What one pass over a picture gives.
#[derive(Debug, Clone)]
pub struct Pass {
    /// 128 bits of BLAKE3 over width, height (little-endian, 4 bytes each) and the interleaved RGB rows.
    pub hash: [u8; 16],
    /// Exact sums of values and squares.
    pub sums: ImageSums,
    /// The picture averaged over squares of a whole number of pixels; the picture itself where it is small. Pixels at
    /// the right and at the bottom that fill no square are left out.
    pub small: Rgb8,
}

/// Goes over `picture` once.
pub fn pass(picture: &Rgb8) -> Pass {
    let (width, height) = picture.size();
    let side = (width.min(height) / SMALL_EDGE).clamp(1, 256) as usize;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&width.to_le_bytes());
    hasher.update(&height.to_le_bytes());
    let mut sums = ImageSums::default();
    let row = 3 * width as usize;
    let (across, down) = (width as usize / side, height as usize / side);
    let mut small = Vec::with_capacity(3 * across * down);
    let mut columns = vec![0_u16; row];
    // A strip of at least 64 KiB, so that the hash works on many blocks at once, and whole rows of squares.
    let rows = side * (65_536 / (row * side).max(1)).max(1);
    for strip in picture.data.chunks((row * rows).max(1)) {
        hasher.update(strip);
        if side == 1 {
            sums.add(strip);
            continue;
        }
        sums.add_squares(strip);
        let squares = strip.chunks_exact(row * side);
        sums.add_values(squares.remainder());
        for square in squares {
            average(square, row, side, across, &mut columns, &mut small);
            sums.add_columns(&columns, side);
        }
    }
    let small = if side > 1 { Rgb8::new(across as u32, down as u32, small) } else { picture.clone() };
    let mut hash = [0; 16];
    hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    Pass { hash, sums, small }
}

/// One row of squares: `side` rows of `row` bytes become `across` pixels, each the rounded mean of its square.
fn average(rows: &[u8], row: usize, side: usize, across: usize, columns: &mut [u16], small: &mut Vec<u8>) {
    // 256 rows of 255 fit 16 bits; wrapping, so that the compiler adds several at a time.
    columns.fill(0);
    for line in rows.chunks_exact(row) {
        for (column, value) in columns.iter_mut().zip(line) {
            *column = column.wrapping_add(u16::from(*value));
        }
    }
    let area = (side * side) as u32;
    for square in columns.chunks_exact(3 * side).take(across) {
        let mut sum = [0_u32; 3];
        for pixel in square.chunks_exact(3) {
            for c in 0..3 {
                sum[c] = sum[c].wrapping_add(u32::from(pixel[c]));
            }
        }
        small.extend(sum.map(|s| ((s + area / 2) / area) as u8));
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
        assert_eq!(pass(&picture).sums, ImageSums::of(&picture));
    }

    #[test]
    fn squares_are_averaged() {
        let (side, edge) = (2, 2 * SMALL_EDGE);
        let picture = picture(edge + 1, edge);
        let small = pass(&picture).small;
        assert_eq!(small.size(), ((edge + 1) / side, edge / side));
        let at = |x: u32, y: u32, c: u32| u32::from(picture.data[((y * (edge + 1) + x) * 3 + c) as usize]);
        let wanted = (at(2, 4, 1) + at(3, 4, 1) + at(2, 5, 1) + at(3, 5, 1) + 2) / 4;
        let got = small.data[((2 * small.width + 1) * 3 + 1) as usize];
        assert_eq!(u32::from(got), wanted);
    }

    #[test]
    fn the_shape_is_part_of_the_hash() {
        let (a, b) = (Rgb8::new(4, 1, vec![9; 12]), Rgb8::new(2, 2, vec![9; 12]));
        assert_ne!(pass(&a).hash, pass(&b).hash);
    }
}

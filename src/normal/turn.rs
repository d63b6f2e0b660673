//! The eight EXIF orientations.

use crate::pixels::{Orientation, Rgb8};

/// Tiles of this side are turned one after another, so that both sides of the copy stay in the cache.
const TILE: usize = 32;

/// Turns a stored picture upright. Those that keep width and height work in place.
pub fn upright(mut rgb: Rgb8, orientation: Orientation) -> Rgb8 {
    let row = rgb.width as usize * 3;
    if row == 0 {
        return rgb;
    }
    match orientation {
        Orientation::Upright => {}
        Orientation::FlipH => rgb.data.chunks_exact_mut(row).for_each(reverse_pixels),
        Orientation::Rotate180 => reverse_pixels(&mut rgb.data),
        Orientation::FlipV => {
            // Reversing the whole and then each row leaves the rows in reverse order.
            reverse_pixels(&mut rgb.data);
            rgb.data.chunks_exact_mut(row).for_each(reverse_pixels);
        }
        Orientation::Transpose => return swapped(&rgb, false, false),
        Orientation::Rotate90 => return swapped(&rgb, true, false),
        Orientation::Transverse => return swapped(&rgb, true, true),
        Orientation::Rotate270 => return swapped(&rgb, false, true),
    }
    rgb
}

fn reverse_pixels(pixels: &mut [u8]) {
    pixels.reverse();
    pixels.chunks_exact_mut(3).for_each(<[u8]>::reverse);
}

/// Gives `take` the rows of the upright picture from top to bottom, `rows` (at least 1) at a time. No second picture
/// is made: what goes over the pixels once finds them in the cache.
pub fn strips(rgb: &Rgb8, orientation: Orientation, rows: usize, mut take: impl FnMut(&[u8])) {
    let (width, height) = orientation.upright(rgb.size());
    let row = width as usize * 3;
    if row == 0 {
        return;
    }
    if orientation == Orientation::Upright {
        return rgb.data.chunks(row * rows).for_each(take);
    }
    let mut strip = Vec::new();
    for first in (0..height as usize).step_by(rows) {
        strip.resize(row * rows.min(height as usize - first), 0);
        fill(rgb, orientation, first, &mut strip);
        take(&strip);
    }
}

/// Writes the rows of the upright picture from `first` on.
fn fill(rgb: &Rgb8, orientation: Orientation, first: usize, out: &mut [u8]) {
    let (row, height) = (rgb.width as usize * 3, rgb.height as usize);
    let stored = |y: usize| &rgb.data[y * row..(y + 1) * row];
    let reverse = |from: &[u8], to: &mut [u8]| {
        for (from, to) in from.as_chunks::<3>().0.iter().rev().zip(to.as_chunks_mut::<3>().0) {
            *to = *from;
        }
    };
    let rows = |out| <[u8]>::chunks_exact_mut(out, row).zip(first..);
    match orientation {
        Orientation::Upright => rows(out).for_each(|(out, y)| out.copy_from_slice(stored(y))),
        Orientation::FlipH => rows(out).for_each(|(out, y)| reverse(stored(y), out)),
        Orientation::Rotate180 => rows(out).for_each(|(out, y)| reverse(stored(height - 1 - y), out)),
        Orientation::FlipV => rows(out).for_each(|(out, y)| out.copy_from_slice(stored(height - 1 - y))),
        Orientation::Transpose => fill_swapped(rgb, (false, false), first, out),
        Orientation::Rotate90 => fill_swapped(rgb, (true, false), first, out),
        Orientation::Transverse => fill_swapped(rgb, (true, true), first, out),
        Orientation::Rotate270 => fill_swapped(rgb, (false, true), first, out),
    }
}

/// The whole picture, with width and height in each other's place.
fn swapped(rgb: &Rgb8, from_bottom: bool, from_right: bool) -> Rgb8 {
    let mut data = vec![0; rgb.data.len()];
    fill_swapped(rgb, (from_bottom, from_right), 0, &mut data);
    Rgb8::new(rgb.height, rgb.width, data)
}

/// Width and height change places: pixel (x, y) of the result is (column y, row x) of the source, rows counted from
/// the bottom with `from_bottom`, columns from the right with `from_right`. Writes the rows from `first` on.
fn fill_swapped(rgb: &Rgb8, (from_bottom, from_right): (bool, bool), first: usize, out: &mut [u8]) {
    let (w, h) = (rgb.width as usize, rgb.height as usize);
    let (from, to) = (rgb.data.as_chunks::<3>().0, out.as_chunks_mut::<3>().0);
    let rows = to.len() / h.max(1);
    // From one pixel of a row of the result to the next: one row of the source down, or up.
    let step = if from_bottom { w.wrapping_neg() } else { w };
    for tile_y in (0..rows).step_by(TILE) {
        for tile_x in (0..h).step_by(TILE) {
            let end = (tile_x + TILE).min(h);
            let first_row = if from_bottom { h - 1 - tile_x } else { tile_x };
            for y in tile_y..(tile_y + TILE).min(rows) {
                let column = if from_right { w - 1 - (first + y) } else { first + y };
                let mut at = first_row * w + column;
                for pixel in &mut to[y * h + tile_x..y * h + end] {
                    *pixel = from[at];
                    at = at.wrapping_add(step);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_are_the_rows_of_the_upright_picture() {
        let data: Vec<u8> = (0..101 * 67 * 3_u32).map(|i| (i * 31 % 253) as u8).collect();
        let picture = Rgb8::new(101, 67, data);
        for number in 1..=8 {
            let orientation = Orientation::from_tag(number).unwrap();
            let whole = upright(picture.clone(), orientation);
            for rows in [1, 5, 40, 1_000] {
                let mut seen = Vec::new();
                strips(&picture, orientation, rows, |strip| seen.extend_from_slice(strip));
                assert_eq!(seen, whole.data, "{orientation:?}, {rows} rows");
            }
        }
    }
}

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

/// Width and height change places: pixel (x, y) of the result is (column y, row x) of the source, rows counted from
/// the bottom with `from_bottom`, columns from the right with `from_right`.
fn swapped(rgb: &Rgb8, from_bottom: bool, from_right: bool) -> Rgb8 {
    let (w, h) = (rgb.width as usize, rgb.height as usize);
    let mut data = vec![0; rgb.data.len()];
    let (from, to) = (rgb.data.as_chunks::<3>().0, data.as_chunks_mut::<3>().0);
    // From one pixel of a row of the result to the next: one row of the source down, or up.
    let step = if from_bottom { w.wrapping_neg() } else { w };
    for tile_y in (0..w).step_by(TILE) {
        for tile_x in (0..h).step_by(TILE) {
            let end = (tile_x + TILE).min(h);
            let first_row = if from_bottom { h - 1 - tile_x } else { tile_x };
            for y in tile_y..(tile_y + TILE).min(w) {
                let column = if from_right { w - 1 - y } else { y };
                let mut at = first_row * w + column;
                for pixel in &mut to[y * h + tile_x..y * h + end] {
                    *pixel = from[at];
                    at = at.wrapping_add(step);
                }
            }
        }
    }
    Rgb8::new(rgb.height, rgb.width, data)
}

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
    for tile_y in (0..w).step_by(TILE) {
        for tile_x in (0..h).step_by(TILE) {
            for y in tile_y..(tile_y + TILE).min(w) {
                let column = if from_right { w - 1 - y } else { y };
                for x in tile_x..(tile_x + TILE).min(h) {
                    let row = if from_bottom { h - 1 - x } else { x };
                    let (from, to) = ((row * w + column) * 3, (y * h + x) * 3);
                    data[to..to + 3].copy_from_slice(&rgb.data[from..from + 3]);
                }
            }
        }
    }
    Rgb8::new(rgb.height, rgb.width, data)
}

//! What is left to do after decoding and resizing: to sRGB, then upright. On the resized picture it costs next to
//! nothing; on the full one it would be a good part of the whole.

mod turn;

use crate::decode::Finish;
use crate::pixels::Rgb8;

pub use turn::{strips, upright};

/// The picture in sRGB and upright. Call it on the resized picture.
pub fn upright_srgb(mut rgb: Rgb8, finish: &Finish) -> Rgb8 {
    srgb(&mut rgb, finish);
    upright(rgb, finish.orientation)
}

/// Brings the pixels to sRGB and leaves the picture as it lies, for what asks nothing of its orientation or takes it
/// in [`strips`].
pub fn srgb(rgb: &mut Rgb8, finish: &Finish) {
    if let Some(transform) = &finish.to_srgb {
        transform.apply(&mut rgb.data);
    }
}

//! What the pixels of one upright sRGB picture tell: exact sums, a hash, quality. Nothing here knows of files.

mod pass;
mod quality;
mod sums;

pub use pass::{Pass, SMALL_EDGE, pass};
pub use quality::{GRID, Quality};
pub use sums::ImageSums;

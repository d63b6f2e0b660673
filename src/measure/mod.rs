//! What the pixels of one upright sRGB picture tell: exact sums, a hash, quality, a print that its copies share. Knows
//! no files, threads or data sets.

mod luma;
mod pass;
mod print;
mod quality;
mod sums;

pub use luma::Luma;
pub use pass::{Pass, SMALL_EDGE, pass};
pub use print::{Code, PLANE, Print, THUMB, View, Window};
pub use quality::{GRID, Quality};
pub use sums::ImageSums;

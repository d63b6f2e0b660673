//! What is measured of one picture. Knows no files, threads or data sets.

mod luma;
mod print;

pub use luma::Luma;
pub use print::{Code, PLANE, Print, THUMB, View, Window};

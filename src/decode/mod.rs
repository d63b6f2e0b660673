//! Bytes to pixels. One face for every format and every job: [`open`] reads the header and refuses what must be
//! refused before memory is taken; [`Opened::pixels`] decodes, at a reduced scale where the format can.
//!
//! Nothing here knows of data sets, files or threads. What is missing in a picture is a [`Fault`]; what is only odd
//! is a [`Note`]. Both come back, never a message on stderr.

use crate::fault::{Fault, Note};
use crate::pixels::{Orientation, Rgb8, Scale};

/// A format that the content shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    Jpeg,
    Png,
    WebP,
    Tiff,
    Bmp,
    Gif,
    Pnm,
    Qoi,
    Ico,
    Tga,
}

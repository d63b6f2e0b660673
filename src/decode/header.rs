//! The words of a header: format, mode, chroma, and what the user may choose of the pixel contract.

use std::path::Path;

use crate::pixels::Orientation;

/// A format that the content shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Format {
    /// JFIF, EXIF or bare JPEG.
    Jpeg,
    /// PNG and APNG.
    Png,
    /// WebP, lossy or lossless.
    WebP,
    /// TIFF and BigTIFF.
    Tiff,
    /// Windows bitmap.
    Bmp,
    /// GIF.
    Gif,
    /// PBM, PGM, PPM, PAM.
    Pnm,
    /// Quite OK Image.
    Qoi,
    /// Windows icon or cursor.
    Ico,
    /// Truevision TGA.
    Tga,
}

impl Format {
    /// The name in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "jpeg",
            Self::Png => "png",
            Self::WebP => "webp",
            Self::Tiff => "tiff",
            Self::Bmp => "bmp",
            Self::Gif => "gif",
            Self::Pnm => "pnm",
            Self::Qoi => "qoi",
            Self::Ico => "ico",
            Self::Tga => "tga",
        }
    }

    /// The usual extension, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Tiff => "tif",
            Self::Pnm => "ppm",
            _ => self.name(),
        }
    }

    /// The format that the extension of `name` promises, in any case.
    pub fn from_extension(name: &Path) -> Option<Self> {
        let extension = name.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "jpg" | "jpeg" | "jpe" | "jfif" | "jfi" | "jif" | "mpo" => Self::Jpeg,
            "png" | "apng" => Self::Png,
            "webp" => Self::WebP,
            "tif" | "tiff" => Self::Tiff,
            "bmp" | "dib" => Self::Bmp,
            "gif" => Self::Gif,
            "pbm" | "pgm" | "ppm" | "pnm" | "pam" => Self::Pnm,
            "qoi" => Self::Qoi,
            "ico" | "cur" => Self::Ico,
            "tga" | "icb" | "vda" | "vst" => Self::Tga,
            _ => return None,
        })
    }
}

/// What a pixel is made of in the file. Spelled as in Pillow where Pillow has a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Mode {
    /// Gray.
    L,
    /// Gray and alpha.
    La,
    /// Red, green, blue (or YCbCr in a JPEG).
    Rgb,
    /// Red, green, blue, alpha.
    Rgba,
    /// Palette.
    P,
    /// Palette with transparent entries.
    Pa,
    /// Ink.
    Cmyk,
    /// Ink stored as luma, chroma and black.
    Ycck,
    /// CIE L*a*b*.
    Lab,
}

impl Mode {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::L => "L",
            Self::La => "LA",
            Self::Rgb => "RGB",
            Self::Rgba => "RGBA",
            Self::P => "P",
            Self::Pa => "PA",
            Self::Cmyk => "CMYK",
            Self::Ycck => "YCCK",
            Self::Lab => "LAB",
        }
    }

    /// Gray, with or without alpha.
    pub fn is_gray(self) -> bool {
        matches!(self, Self::L | Self::La)
    }

    /// CMYK in either storage.
    pub fn is_ink(self) -> bool {
        matches!(self, Self::Cmyk | Self::Ycck)
    }
}

/// What a sample is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Samples {
    /// Unsigned whole numbers.
    Unsigned,
    /// Signed whole numbers.
    Signed,
    /// Floating point.
    Float,
}

/// What the caller sets bounds to.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Stored width times height.
    pub max_pixels: u64,
}

impl Default for Limits {
    /// 250 million pixels, as `--max-pixels`.
    fn default() -> Self {
        Self { max_pixels: 250_000_000 }
    }
}

/// What transparent pixels become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Alpha {
    /// Composited over white.
    #[default]
    White,
    /// Composited over black.
    Black,
    /// Composited over this colour.
    Rgb([u8; 3]),
    /// The alpha channel is dropped; hidden colours show.
    Drop,
}

impl Alpha {
    /// The colour behind transparent pixels, `None` to drop alpha.
    pub fn background(self) -> Option<[u8; 3]> {
        match self {
            Self::White => Some([255; 3]),
            Self::Black => Some([0; 3]),
            Self::Rgb(colour) => Some(colour),
            Self::Drop => None,
        }
    }
}

/// What an embedded profile is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Icc {
    /// The picture is converted to sRGB.
    #[default]
    ToSrgb,
    /// Nothing: the samples are taken as sRGB, as loaders do that know no profiles.
    Ignore,
}

/// What the user chose of the pixel contract; the default is the contract of the design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// What transparent pixels become.
    pub alpha: Alpha,
    /// What an embedded profile is used for.
    pub icc: Icc,
    /// Turn the picture upright.
    pub orient: bool,
}

impl Default for Contract {
    fn default() -> Self {
        Self { alpha: Alpha::White, icc: Icc::ToSrgb, orient: true }
    }
}

/// What the header says, before any pixel is decoded.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Header {
    /// By content.
    pub format: Format,
    /// Pixels a row, as stored (not turned).
    pub width: u32,
    /// Rows, as stored (not turned).
    pub height: u32,
    /// The turn that the file asks for.
    pub orientation: Orientation,
    /// What a pixel is made of.
    pub mode: Mode,
    /// Bits a sample.
    pub bits: u8,
    /// What a sample is.
    pub samples: Samples,
    /// An embedded profile in a few words.
    pub icc: Option<String>,
    /// Frames or pages; 1 when unknown.
    pub frames: u32,
    /// Maker and model of the camera, from EXIF; empty where nothing names it.
    pub camera: String,
    /// Only for a JPEG.
    pub jpeg: Option<JpegKind>,
}

impl Header {
    /// A header with the words that most formats share: unsigned samples, upright, one frame.
    pub(super) fn new(format: Format, (width, height): (u32, u32), mode: Mode, bits: u8) -> Self {
        let (orientation, samples) = (Orientation::Upright, Samples::Unsigned);
        Self {
            format,
            width,
            height,
            orientation,
            mode,
            bits,
            samples,
            icc: None,
            frames: 1,
            camera: String::new(),
            jpeg: None,
        }
    }

    /// The `src_mode` of manifests: `RGB`, `L;16`, `RGB;32F`, `P;4` …
    pub fn src_mode(&self) -> String {
        let mode = self.mode.as_str();
        match (self.bits, self.samples) {
            (8, Samples::Unsigned) => mode.to_owned(),
            (bits, Samples::Unsigned) => format!("{mode};{bits}"),
            (bits, Samples::Signed) => format!("{mode};{bits}S"),
            (bits, Samples::Float) => format!("{mode};{bits}F"),
        }
    }

    /// The size as (width, height), as stored.
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// May its coded data become a copy of the same size as it is: a plain JPEG, upright or not to be turned?
    pub fn is_copied_whole(&self, orient: bool) -> bool {
        let plain = self.jpeg.as_ref().is_some_and(|jpeg| jpeg.plain);
        plain && (self.orientation == Orientation::Upright || !orient)
    }

    /// The size after turning.
    pub fn upright_size(&self) -> (u32, u32) {
        self.orientation.upright(self.size())
    }
}

/// How the chroma of a JPEG is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Chroma {
    /// As fine as luma.
    Yuv444,
    /// Halved across.
    Yuv422,
    /// Halved across and down.
    Yuv420,
    /// Halved down.
    Yuv440,
    /// Quartered across.
    Yuv411,
    /// No chroma.
    Gray,
    /// Anything else.
    Other,
}

impl Chroma {
    /// `4:2:0` and the like.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Yuv444 => "4:4:4",
            Self::Yuv422 => "4:2:2",
            Self::Yuv420 => "4:2:0",
            Self::Yuv440 => "4:4:0",
            Self::Yuv411 => "4:1:1",
            Self::Gray => "gray",
            Self::Other => "other",
        }
    }
}

/// What a lossless copy of a JPEG depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct JpegKind {
    /// Progressive (SOF2) rather than baseline.
    pub progressive: bool,
    /// How chroma is sampled.
    pub chroma: Chroma,
    /// Every loader reads it as it stands: 8-bit baseline or progressive Huffman, YCbCr in three components, an end
    /// marker, nothing odd between. A profile or an orientation must be looked at beside this.
    pub plain: bool,
}

/// How a JPEG is to be written.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// 1 to 100.
    pub quality: u8,
    /// Anything but [`Chroma::Other`].
    pub chroma: Chroma,
    /// Progressive scans.
    pub progressive: bool,
    /// MCU rows between restart markers; 0 for none.
    pub restart_rows: u16,
    /// Arithmetic coding.
    pub arithmetic: bool,
}

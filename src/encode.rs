//! Pixels to bytes: JPEG, PNG, WebP. No metadata is written: sRGB is what readers assume.

use image::{ExtendedColorType, ImageEncoder as _, codecs::webp::WebPEncoder};

use crate::decode::{Chroma, Compressor};
use crate::pixels::Rgb8;

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Baseline JPEG.
    Jpeg {
        /// libjpeg quality, 1 to 100.
        quality: u8,
        /// Colour resolution; 4:2:0 and 4:4:4 are written.
        chroma: Chroma,
    },
    /// Lossless, 8-bit RGB.
    Png,
    /// Lossless WebP.
    WebP,
}

impl Encoding {
    /// The extension of such files.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Jpeg { .. } => "jpg",
            Self::Png => "png",
            Self::WebP => "webp",
        }
    }

    /// The largest side that the format can hold.
    pub fn max_side(self) -> u32 {
        match self {
            Self::Jpeg { .. } => 65_500,
            Self::Png => i32::MAX as u32,
            Self::WebP => 16_383,
        }
    }
}

/// Writes pictures; keeps its codec state from one to the next.
#[derive(Default)]
pub struct Encoder {
    jpeg: Compressor,
}

impl Encoder {
    /// Appends `picture`, encoded, to `out`.
    ///
    /// # Errors
    /// A sentence, when the picture is too large for the format or the codec fails.
    pub fn encode(&mut self, picture: &Rgb8, encoding: Encoding, out: &mut Vec<u8>) -> Result<(), String> {
        let (width, height) = picture.size();
        let most = encoding.max_side();
        if width.max(height) > most {
            let name = encoding.extension();
            return Err(format!("{width}x{height} is too large for {name}, which ends at {most} a side"));
        }
        match encoding {
            Encoding::Jpeg { quality, chroma } => self.jpeg.compress(picture, quality, chroma, out),
            Encoding::Png => png(picture, out).map_err(|e| e.to_string()),
            Encoding::WebP => WebPEncoder::new_lossless(out)
                .write_image(&picture.data, width, height, ExtendedColorType::Rgb8)
                .map_err(|e| e.to_string()),
        }
    }
}

fn png(picture: &Rgb8, out: &mut Vec<u8>) -> Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(out, picture.width, picture.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Balanced);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&picture.data)?;
    writer.finish()
}

/// The engine that reads and writes JPEG in this build.
pub fn jpeg_engine() -> &'static str {
    if cfg!(feature = "turbo") {
        "libjpeg-turbo 3.1 with SIMD"
    } else {
        "zune-jpeg and jpeg-encoder (built without libjpeg-turbo)"
    }
}

//! The build without libjpeg-turbo: zune-jpeg decodes, jpeg-encoder writes; rustc and a linker are enough.
//!
//! zune-jpeg 0.5.15 decodes some kinds to wrong colours without a word, so those are refused here. It sees a file that
//! is cut, but not one whose data were overwritten: the full build does.

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

use super::complaint::{Complaint, Pixels};
use super::jpeg::Colour;
use super::walk::{MOST_SCANS, Walk};
use super::{Chroma, Shape};
use crate::fault::{Cause, Fault};
use crate::pixels::Rgb8;

/// Decodes a whole JPEG to RGB.
///
/// # Errors
/// Kinds that zune-jpeg gets wrong, and files that it refuses.
pub(super) fn decode(jpeg: &[u8], walk: &Walk, colour: Colour) -> Result<Pixels, Fault> {
    if let Some(what) = unreadable(walk, colour) {
        let detail = format!("{what}; the full build of prep (with libjpeg-turbo) reads it");
        return Err(Fault::new(Cause::UnsupportedKind, detail));
    }
    let size = walk.frame.as_ref().map(|f| (f.width, f.height)).unwrap_or_default();
    let bytes = size.0 as usize * size.1 as usize * 3;
    let mut data = vec![0; bytes];
    let complaint = match run(jpeg, true, size, &mut data) {
        Ok(()) => None,
        Err(why) => {
            // Strict decoding leaves nothing; the lenient one fills what it can.
            run(jpeg, false, size, &mut data).map_err(|why| refused(&why))?;
            Some(understood(&why))
        }
    };
    Ok(Pixels { width: size.0, height: size.1, data, complaint })
}

fn run(jpeg: &[u8], strict: bool, size: (u32, u32), data: &mut [u8]) -> Result<(), DecodeErrors> {
    let options = DecoderOptions::default()
        .set_strict_mode(strict)
        .set_max_width(1 << 16)
        .set_max_height(1 << 16)
        .jpeg_set_max_scans(MOST_SCANS)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(jpeg), options);
    decoder.decode_headers()?;
    let said = decoder.info().map(|info| (u32::from(info.width), u32::from(info.height)));
    if said != Some(size) || decoder.output_buffer_size() != Some(data.len()) {
        return Err(DecodeErrors::FormatStatic("the header says another size"));
    }
    decoder.decode_into(data)
}

/// Kinds that zune-jpeg 0.5.15 refuses or decodes wrongly without an error.
fn unreadable(walk: &Walk, colour: Colour) -> Option<&'static str> {
    let frame = walk.frame.as_ref()?;
    if frame.arithmetic() {
        return Some("arithmetic JPEG");
    }
    if frame.lossless() {
        return Some("lossless JPEG");
    }
    if matches!(colour, Colour::Cmyk | Colour::Ycck) {
        return Some("CMYK JPEG");
    }
    if colour == Colour::Rgb && walk.adobe.is_none() {
        return Some("RGB JPEG without an Adobe marker");
    }
    if !frame.progressive() && walk.scans.len() > 1 {
        return Some("non-interleaved baseline JPEG");
    }
    let luma = frame.components.first().map(|c| (c.h, c.v));
    if frame.max_sampling() != luma.map_or((1, 1), |(h, v)| (h.into(), v.into())) {
        return Some("JPEG with luma coarser than chroma");
    }
    None
}

fn understood(why: &DecodeErrors) -> Complaint {
    let text = why.to_string();
    match why {
        DecodeErrors::ExhaustedData | DecodeErrors::IoErrors(_) => Complaint::EndsEarly,
        DecodeErrors::HuffmanDecode(_) | DecodeErrors::MCUError(_) => Complaint::ImpossibleCode,
        _ if text.contains("emature end") || text.contains("xhausted") || text.contains("No more") => {
            Complaint::EndsEarly
        }
        _ => Complaint::Fatal(format!("zune-jpeg: {text}")),
    }
}

fn refused(why: &DecodeErrors) -> Fault {
    let cause =
        if matches!(why, DecodeErrors::Unsupported(_)) { Cause::UnsupportedKind } else { Cause::Undecodable };
    Fault::new(cause, format!("zune-jpeg: {why}"))
}

/// Writes JPEGs with standard Huffman tables.
#[derive(Default)]
pub struct Compressor;

impl Compressor {
    /// Without state.
    pub fn new() -> Self {
        Self
    }

    /// Writes `rgb` to `out`, which is emptied first. `quality` is 1 to 100.
    ///
    /// # Errors
    /// What the encoder says: sides above 65,535 pixels.
    pub fn compress(
        &mut self,
        rgb: &Rgb8,
        quality: u8,
        chroma: Chroma,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let shape = Shape { quality, chroma, progressive: false, restart_rows: 0, arithmetic: false };
        self.compress_as(rgb, shape, out)
    }

    /// Writes `rgb` in any shape that this encoder knows: no arithmetic coding.
    ///
    /// # Errors
    /// As [`compress`](Self::compress), and shapes that it does not know.
    pub fn compress_as(&mut self, rgb: &Rgb8, shape: Shape, out: &mut Vec<u8>) -> Result<(), String> {
        use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
        let (sampling, mcu) = match shape.chroma {
            Chroma::Yuv444 => (SamplingFactor::F_1_1, 8),
            Chroma::Yuv422 => (SamplingFactor::F_2_1, 16),
            Chroma::Yuv420 => (SamplingFactor::F_2_2, 16),
            Chroma::Yuv440 => (SamplingFactor::F_1_2, 8),
            Chroma::Yuv411 => (SamplingFactor::F_4_1, 32),
            Chroma::Gray | Chroma::Other => return Err("no such chroma sampling in this build".to_owned()),
        };
        if shape.arithmetic {
            return Err("no arithmetic coding in this build".to_owned());
        }
        let side =
            |side: u32| u16::try_from(side).map_err(|_| format!("{side} pixels are too many for a JPEG"));
        let (width, height) = (side(rgb.width)?, side(rgb.height)?);
        out.clear();
        let mut encoder = Encoder::new(&mut *out, shape.quality.clamp(1, 100));
        encoder.set_sampling_factor(sampling);
        encoder.set_progressive(shape.progressive);
        if shape.restart_rows > 0 {
            encoder.set_restart_interval(width.div_ceil(mcu).saturating_mul(shape.restart_rows));
        }
        encoder.encode(&rgb.data, width, height, ColorType::Rgb).map_err(|why| why.to_string())
    }
}

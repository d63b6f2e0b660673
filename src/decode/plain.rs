//! The formats that come through the `image` crate, with limits set.

use std::io::Cursor;

use image::codecs::{bmp, ico, pnm, qoi, tga, webp};
use image::{ColorType, ImageDecoder, ImageError};

use super::flatten::Flattener;
use super::{Body, Format, Found, Header, Limits, Mode, Paint, Raw, Samples, check_size, exif};
use crate::fault::{Cause, Fault, Note, Oddity};
use crate::pixels::Rgb8;

/// A picture between header and pixels.
pub(super) struct Plain<'a> {
    bytes: &'a [u8],
    format: Format,
    width: u32,
    height: u32,
    /// Bytes of a pixel as the decoder hands it over.
    sample_bytes: u64,
}

type Source<'a> = Box<dyn ImageDecoder + 'a>;

/// Reads the header.
pub(super) fn open<'a>(bytes: &'a [u8], format: Format, limits: &Limits) -> Result<Found<'a>, Fault> {
    if let (Format::Qoi, Some(&[a, b, c, d, e, f, g, h])) = (format, bytes.get(4..12)) {
        // The decoder has a limit of its own and another word for it.
        check_size(u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]), limits)?;
    }
    let mut decoder = decoder(bytes, format)?;
    let (width, height) = decoder.dimensions();
    check_size(width, height, limits)?;
    let (mode, bits, samples) = words(decoder.color_type());
    let mut notes = Vec::new();
    let mut header = Header::new(format, (width, height), mode, bits);
    header.samples = samples;
    if let Ok(Some(block)) = decoder.exif_metadata() {
        exif::read(&block, &mut header, &mut notes);
    }
    if format == Format::WebP {
        header.frames = webp_frames(bytes);
        if header.frames > 1 {
            notes.push(Note::new(Oddity::Frames, header.frames));
        }
    }
    let profile = decoder.icc_profile().ok().flatten();
    let sample_bytes = u64::from(decoder.color_type().bytes_per_pixel());
    Ok(Found {
        header,
        notes,
        profile,
        body: Body::Plain(Plain { bytes, format, width, height, sample_bytes }),
    })
}

/// Frames of a WebP: its ANMF chunks, or 1.
fn webp_frames(bytes: &[u8]) -> u32 {
    let mut frames = 0;
    let mut at = 12_usize;
    while let Some(head) = bytes.get(at..at.saturating_add(8)) {
        frames += u32::from(head.starts_with(b"ANMF"));
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        // Chunks are padded to an even length.
        at = at.saturating_add(8).saturating_add(length).saturating_add(length & 1);
    }
    frames.max(1)
}

fn decoder(bytes: &[u8], format: Format) -> Result<Source<'_>, Fault> {
    let from = Cursor::new(bytes);
    let made = match format {
        Format::WebP => webp::WebPDecoder::new(from).map(|d| Box::new(d) as Source<'_>),
        Format::Bmp => bmp::BmpDecoder::new(from).map(|d| Box::new(d) as Source<'_>),
        Format::Pnm => pnm::PnmDecoder::new(from).map(|d| Box::new(d) as Source<'_>),
        Format::Qoi => qoi::QoiDecoder::new(from).map(|d| Box::new(d) as Source<'_>),
        Format::Ico => ico::IcoDecoder::new(from).map(|d| Box::new(d) as Source<'_>),
        Format::Tga => tga::TgaDecoder::new(from).map(|d| Box::new(d) as Source<'_>),
        Format::Jpeg | Format::Png | Format::Tiff | Format::Gif => {
            return Err(Fault::new(Cause::Undecodable, "wrong door"));
        }
    };
    made.map_err(|why| fault(&why))
}

fn words(colour: ColorType) -> (Mode, u8, Samples) {
    match colour {
        ColorType::L8 => (Mode::L, 8, Samples::Unsigned),
        ColorType::La8 => (Mode::La, 8, Samples::Unsigned),
        ColorType::Rgb8 => (Mode::Rgb, 8, Samples::Unsigned),
        ColorType::L16 => (Mode::L, 16, Samples::Unsigned),
        ColorType::La16 => (Mode::La, 16, Samples::Unsigned),
        ColorType::Rgb16 => (Mode::Rgb, 16, Samples::Unsigned),
        ColorType::Rgba16 => (Mode::Rgba, 16, Samples::Unsigned),
        ColorType::Rgb32F => (Mode::Rgb, 32, Samples::Float),
        ColorType::Rgba32F => (Mode::Rgba, 32, Samples::Float),
        _ => (Mode::Rgba, 8, Samples::Unsigned),
    }
}

/// What an error of `image` means.
pub(super) fn fault(why: &ImageError) -> Fault {
    let cause = match why {
        ImageError::Unsupported(_) => Cause::UnsupportedKind,
        ImageError::Limits(_) => Cause::TooLarge,
        ImageError::IoError(_) => Cause::Truncated,
        _ => Cause::Undecodable,
    };
    Fault::new(cause, why.to_string())
}

impl Plain<'_> {
    /// The samples, as much again inside the decoder (measured peaks of `image` are 5.9 to 7.2 bytes a pixel of RGB or
    /// RGBA), and the result.
    pub fn need_bytes(&self) -> u64 {
        let pixels = u64::from(self.width) * u64::from(self.height);
        pixels * (2 * self.sample_bytes + 3) + (1 << 20)
    }

    /// Decodes.
    pub fn pixels(&self, paint: &Paint<'_>) -> Result<Raw, Fault> {
        let mut decoder = decoder(self.bytes, self.format)?;
        let colour = decoder.color_type();
        let bytes = usize::try_from(decoder.total_bytes()).unwrap_or(usize::MAX);
        let mut limits = image::Limits::no_limits();
        limits.max_alloc = Some(decoder.total_bytes().saturating_mul(3).saturating_add(64 << 20));
        decoder.set_limits(limits).map_err(|why| fault(&why))?;
        let mut samples = vec![0; bytes];
        // What is known to be missing says more than where the decoder gave up.
        let known = super::runs::damage(self.bytes, self.format);
        decoder.read_image_boxed(&mut samples).map_err(|why| known.clone().unwrap_or_else(|| fault(&why)))?;
        let mut flat = Flattener::new(paint);
        let mut data = Vec::with_capacity(self.width as usize * self.height as usize * 3);
        let channels = usize::from(colour.channel_count());
        let (mode, bits, _) = words(colour);
        let mut notes = Vec::new();
        match bits {
            16 => {
                let samples = samples.chunks_exact(2).map(|b| u16::from_ne_bytes([b[0], b[1]]));
                flat.row16(samples, channels, &mut data);
                notes.push(Note::new(Oddity::DeepBits, 16));
            }
            32 => {
                let samples = samples.chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
                flat.row16(
                    samples.map(|v| (v.clamp(0.0, 1.0) * 65535.0).round() as u16),
                    channels,
                    &mut data,
                );
                notes.push(Note::plain(Oddity::FloatSamples));
            }
            _ => flat.row8(&samples, channels, &mut data),
        }
        if mode.is_gray() {
            notes.push(Note::plain(Oddity::Gray));
        }
        flat.notes(bits == 16, &mut notes);
        Ok(Raw { rgb: Rgb8::new(self.width, self.height, data), notes, damage: known })
    }
}

//! JPEG: what the walker saw, what the decoder said, and what both together mean.

use super::baseline::{self, Layout};
use super::complaint::{self, Pixels, judge};
#[cfg(feature = "turbo")]
use super::complaint::{Want, refused};
use super::walk::{self, Walk};
use super::{
    Body, Chroma, Codec, Format, Found, Header, JpegKind, Limits, Mode, Paint, Raw, check_size, exif, mend,
    sniff,
};
use crate::fault::{Cause, Fault, Note, Oddity};
use crate::pixels::{Rgb8, Scale};

/// The eighths that are worth decoding at, beside the whole. libjpeg-turbo has SIMD code for 1/2 and 1/4, and 1/8
/// needs no transform; its 3/8 in plain C was measured slower than 1/2 (60 against 56 ms for 12 MP), at equal quality.
pub const FAST_SCALES: [u8; 3] = [1, 2, 4];

/// What the components are, by the rules of libjpeg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Gray,
    YCbCr,
    Rgb,
    Cmyk,
    Ycck,
    Unknown,
}

/// A JPEG between header and pixels.
pub(super) struct Jpeg<'a> {
    bytes: &'a [u8],
    walk: Walk,
    frame: walk::Frame,
    colour: Colour,
    /// Where our own decoder may try.
    baseline: Option<Layout>,
}

/// Reads the structure.
pub(super) fn open<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Found<'a>, Fault> {
    let start = sniff::jpeg_after_text(bytes).unwrap_or(0);
    let walk = walk::walk(bytes, start)?;
    let Some(frame) = walk.frame.clone() else {
        let why = if walk.end.is_some() { "has no frame header" } else { "ends inside its header" };
        return Err(Fault::new(Cause::Undecodable, format!("the JPEG {why}")));
    };
    if frame.height == 0 && frame.width > 0 {
        return Err(Fault::new(
            Cause::NoPixels,
            "the JPEG header leaves the height open (DNL), which is not read",
        ));
    }
    check_size(frame.width, frame.height, limits)?;
    if walk.scans.is_empty() {
        let why = if walk.end.is_some() { "has no scan" } else { "ends before its first scan" };
        return Err(Fault::new(Cause::Undecodable, format!("the JPEG {why}")));
    }
    check_kind(&frame)?;
    check_density(&walk, &frame)?;
    let colour = colour(&walk, &frame);
    let mut notes = Vec::new();
    let mode = match colour {
        Colour::Gray => Mode::L,
        Colour::Cmyk => Mode::Cmyk,
        Colour::Ycck => Mode::Ycck,
        Colour::Unknown => {
            let detail = format!("JPEG with {} components", frame.components.len());
            return Err(Fault::new(Cause::UnsupportedKind, detail));
        }
        Colour::YCbCr | Colour::Rgb => Mode::Rgb,
    };
    let profile = profile(bytes, &walk);
    let mut header = Header::new(Format::Jpeg, (frame.width, frame.height), mode, frame.precision);
    read_exif(bytes, &walk, &mut header, &mut notes);
    note_surroundings(bytes, &walk, &mut notes);
    header.jpeg = kind(&walk);
    let baseline = Layout::of(bytes, &walk, colour);
    Ok(Found { header, notes, profile, body: Body::Jpeg(Jpeg { bytes, walk, frame, colour, baseline }) })
}

/// Kinds that no decoder here reads.
fn check_kind(frame: &walk::Frame) -> Result<(), Fault> {
    let advice = "convert it to an 8-bit JPEG or to PNG first";
    let what = match (frame.marker, frame.precision) {
        (0xc0 | 0xc1 | 0xc2 | 0xc9 | 0xca, 8) | (0xc3, 2..=8) => return Ok(()),
        (0xc0..=0xc2 | 0xc9 | 0xca, 12) => "12-bit JPEG".to_owned(),
        (0xc3, bits @ 9..=16) => format!("lossless JPEG with {bits} bits"),
        (0xc0..=0xc3 | 0xc9 | 0xca, bits) => {
            return Err(Fault::new(Cause::Undecodable, format!("a JPEG cannot have {bits} bits a sample")));
        }
        (0xcb, _) => "lossless arithmetic JPEG".to_owned(),
        _ => "hierarchical JPEG".to_owned(),
    };
    Err(Fault::new(Cause::UnsupportedKind, format!("{what}; {advice}")))
}

/// Huffman coding takes at least one bit a block (its DC); a header that promises more blocks than the data have bits
/// is a lie or the file is cut. Refused here, before memory for all those pixels is taken.
fn check_density(walk: &Walk, frame: &walk::Frame) -> Result<(), Fault> {
    if frame.arithmetic() || frame.lossless() {
        return Ok(());
    }
    let bits = 8 * walk.scans.iter().map(|s| s.data.len() as u64).sum::<u64>();
    let blocks = coefficient_blocks(frame);
    if bits >= blocks {
        return Ok(());
    }
    let detail = format!(
        "{}x{} pixels need at least {} bytes of picture data, the file has {}",
        frame.width,
        frame.height,
        blocks.div_ceil(8),
        bits / 8
    );
    let cause = if walk.end.is_none() { Cause::Truncated } else { Cause::SizeMismatch };
    Err(Fault::new(cause, detail))
}

/// Blocks of 8x8 coefficients in all components, without the padding of MCUs.
fn coefficient_blocks(frame: &walk::Frame) -> u64 {
    let (h, v) = frame.max_sampling();
    let side = |pixels: u32, own: u8, most: u32| {
        (u64::from(pixels) * u64::from(own)).div_ceil(u64::from(most)).div_ceil(8)
    };
    frame.components.iter().map(|c| side(frame.width, c.h, h) * side(frame.height, c.v, v)).sum()
}

/// The colours of a file with this header.
pub(super) fn colour(walk: &Walk, frame: &walk::Frame) -> Colour {
    let ids: Vec<u8> = frame.components.iter().map(|c| c.id).collect();
    match (frame.components.len(), walk.jfif, walk.adobe) {
        (1, ..) => Colour::Gray,
        (3, Some(_), _) => Colour::YCbCr,
        (3, None, Some(0)) => Colour::Rgb,
        (3, None, Some(_)) => Colour::YCbCr,
        (3, None, None) if ids == *b"RGB" || (frame.lossless() && ids != [1, 2, 3]) => Colour::Rgb,
        (3, None, None) => Colour::YCbCr,
        (4, _, Some(0) | None) => Colour::Cmyk,
        (4, _, Some(_)) => Colour::Ycck,
        _ => Colour::Unknown,
    }
}

/// What a lossless copy depends on; `None` without a frame header.
pub(super) fn kind(walk: &Walk) -> Option<JpegKind> {
    let frame = walk.frame.as_ref()?;
    let chroma = chroma(frame);
    let sequential = frame.marker == 0xc0 && walk.scans.len() == 1;
    let regular =
        walk.scans.iter().all(|s| frame.progressive() || (s.spectral == (0, 63) && s.approx == (0, 0)));
    let plain = (sequential || frame.marker == 0xc2)
        && frame.precision == 8
        && colour(walk, frame) == Colour::YCbCr
        && !matches!(chroma, Chroma::Other | Chroma::Gray)
        && (walk.start, walk.junk) == (0, 0)
        && walk.end.is_some()
        && walk.jfif != Some(false)
        && walk.adobe.is_none_or(|t| t == 1)
        && regular
        && walk.scans.iter().all(|s| s.restarts_in_step)
        && walk.zero_table().is_none()
        && walk.incomplete().is_none();
    Some(JpegKind { progressive: frame.progressive(), chroma, plain })
}

fn chroma(frame: &walk::Frame) -> Chroma {
    let sampling: Vec<(u8, u8)> = frame.components.iter().map(|c| (c.h, c.v)).collect();
    match sampling[..] {
        [_] => Chroma::Gray,
        [(1, 1), (1, 1), (1, 1)] => Chroma::Yuv444,
        [(2, 1), (1, 1), (1, 1)] => Chroma::Yuv422,
        [(2, 2), (1, 1), (1, 1)] => Chroma::Yuv420,
        [(1, 2), (1, 1), (1, 1)] => Chroma::Yuv440,
        [(4, 1), (1, 1), (1, 1)] => Chroma::Yuv411,
        _ => Chroma::Other,
    }
}

fn read_exif(bytes: &[u8], walk: &Walk, header: &mut Header, notes: &mut Vec<Note>) {
    let block = walk.bodies(bytes, 0xe1, b"Exif\0").next();
    // The sixth byte of the signature is padding; some write something else there.
    if let Some(tiff) = block.and_then(|b| b.get(1..)) {
        exif::read(tiff, header, notes);
    }
}

/// Joins the ICC profile, whose segments may stand in any order. A set with gaps gives nothing that parses.
fn profile(bytes: &[u8], walk: &Walk) -> Option<Vec<u8>> {
    let mut parts: Vec<(u8, u8, &[u8])> = walk
        .bodies(bytes, 0xe2, b"ICC_PROFILE\0")
        .filter_map(|b| if let [number, count, part @ ..] = b { Some((*number, *count, part)) } else { None })
        .collect();
    parts.sort_by_key(|(number, ..)| *number);
    let (_, count, _) = parts.first()?;
    let whole =
        parts.iter().enumerate().all(|(i, (number, of, _))| usize::from(*number) == i + 1 && of == count)
            && parts.len() == usize::from(*count);
    Some(if whole { parts.iter().flat_map(|(.., part)| part.iter().copied()).collect() } else { Vec::new() })
}

fn note_surroundings(bytes: &[u8], walk: &Walk, notes: &mut Vec<Note>) {
    if walk.start > 0 {
        notes.push(Note::new(Oddity::LeadingBytes, format!("{} bytes", walk.start)));
    }
    let Some(end) = walk.end.filter(|end| *end < bytes.len()) else { return };
    let after = &bytes[end..];
    let padded = after.iter().position(|b| *b != 0).map_or(&[][..], |at| &after[at..]);
    let second = padded.starts_with(&[0xff, walk::SOI, 0xff]);
    if second || walk.bodies(bytes, 0xe2, b"MPF\0").next().is_some() {
        notes.push(Note::new(Oddity::MultiPicture, format!("{} bytes after the first", after.len())));
    } else {
        notes.push(Note::new(Oddity::TrailingBytes, format!("{} bytes", after.len())));
    }
}

impl Jpeg<'_> {
    /// See [`super::strip_jpeg`].
    pub fn stripped(&self) -> Option<Vec<u8>> {
        mend::stripped(self.bytes, &self.walk)
    }

    /// The eighths that are worth decoding at, beside the whole.
    pub fn fast_scales(&self) -> &'static [u8] {
        if self.baseline.is_some() { &baseline::SCALES } else { &FAST_SCALES }
    }

    /// The output, the decoder's strips, and the coefficients where the whole picture of them must be held.
    pub fn need_bytes(&self, scale: Scale) -> u64 {
        let scale = self.usable_scale(scale);
        let (w, h) = (u64::from(scale.of(self.frame.width)), u64::from(scale.of(self.frame.height)));
        let out = w * h * if self.ink() { 7 } else { 3 };
        // Strips: some MCU rows of every component, with context for upsampling.
        let strips = w * 4 * 64 + (1 << 16);
        let held = self.frame.progressive() || self.walk.scans.len() > 1;
        let coefficients = if held { coefficient_blocks(&self.frame) * 128 } else { 0 };
        let copy = if self.walk.end.is_none() || self.walk.junk > 0 { self.bytes.len() as u64 } else { 0 };
        out + strips + coefficients + copy
    }

    /// Lossless JPEG has no smaller sizes.
    fn usable_scale(&self, scale: Scale) -> Scale {
        if self.frame.lossless() || cfg!(not(feature = "turbo")) { Scale::FULL } else { scale }
    }

    /// Decodes, and judges what was said.
    pub fn pixels(&self, scale: Scale, paint: &Paint<'_>, codec: &mut Codec) -> Result<Raw, Fault> {
        let mut notes = Vec::new();
        let stream = mend::mended(self.bytes, &self.walk, self.colour, &mut notes)
            .ok_or_else(|| Fault::new(Cause::Undecodable, "the JPEG has no scan"))?;
        let pixels = match self.decode_clean(scale, codec) {
            Some(pixels) => pixels,
            None => self.decode(&stream, self.usable_scale(scale), codec)?,
        };
        let mut damage = match &pixels.complaint {
            None => None,
            Some(said) => judge(said, &pixels, &self.walk, &mut notes)?,
        };
        if let Some(table) = self.walk.zero_table() {
            let detail = format!("quantization table {table} is all zeros");
            damage = Some(Fault::new(Cause::ZeroQuantization, detail));
        }
        if damage.is_none()
            && let Some(hole) = self.walk.scans.iter().find_map(|s| s.hole.clone())
        {
            let detail =
                format!("{} zeros stand at byte {} in place of picture data", hole.len(), hole.start);
            damage = Some(Fault::new(Cause::EntropyDamage, detail));
        }
        if damage.is_none()
            && let Some(what) = self.walk.incomplete()
        {
            damage = Some(Fault::new(Cause::ProgressiveIncomplete, what));
        }
        if damage.is_none() && self.walk.end.is_none() {
            if self.frame.arithmetic() {
                // The arithmetic decoder makes up bits for ever: whether rows are missing cannot be told.
                damage = Some(Fault::new(
                    Cause::Truncated,
                    "no end marker, and arithmetic coding does not tell where",
                ));
            } else {
                notes.push(Note::plain(Oddity::MissingEnd));
            }
        }
        let rgb = self.light(pixels, paint, &mut notes);
        Ok(Raw { rgb, notes, damage })
    }

    /// Our own decoder, which says nothing of a file but that it is clean.
    fn decode_clean(&self, scale: Scale, codec: &mut Codec) -> Option<Pixels> {
        let (layout, scan) = (self.baseline.as_ref()?, self.walk.scans.first()?);
        codec.baseline.decode(self.bytes, layout, scan, scale)
    }

    #[cfg(feature = "turbo")]
    fn decode(&self, stream: &[u8], scale: Scale, codec: &mut Codec) -> Result<Pixels, Fault> {
        let want = if self.ink() { Want::Cmyk } else { Want::Rgb };
        let size = (self.frame.width, self.frame.height);
        super::turbo::decode(stream, size, scale, want, &mut codec.spare)
            .map_err(|text: String| refused(&text))
    }

    #[cfg(not(feature = "turbo"))]
    fn decode(&self, stream: &[u8], _scale: Scale, _codec: &mut Codec) -> Result<Pixels, Fault> {
        super::zune::decode(stream, &self.walk, self.colour)
    }

    fn ink(&self) -> bool {
        matches!(self.colour, Colour::Cmyk | Colour::Ycck)
    }

    fn light(&self, pixels: Pixels, paint: &Paint<'_>, notes: &mut Vec<Note>) -> Rgb8 {
        let Pixels { width, height, data, .. } = pixels;
        if self.colour == Colour::Gray {
            notes.push(Note::plain(Oddity::Gray));
        }
        if !self.ink() {
            return Rgb8::new(width, height, data);
        }
        notes.push(Note::plain(Oddity::Cmyk));
        if self.walk.adobe.is_none() {
            notes.push(Note::plain(Oddity::CmykPolarity));
        }
        Rgb8::new(width, height, complaint::light(data, paint))
    }
}

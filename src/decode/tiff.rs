//! TIFF through the `tiff` crate: gray of 1 to 64 bits, palettes, RGB, CMYK, YCbCr, in strips, tiles or planes. The
//! first page counts.

use std::borrow::Cow;
use std::io::Cursor;

use tiff::decoder::{Decoder, Limits as TiffLimits};
use tiff::tags::{SampleFormat, Tag};
use tiff::{ColorType, TiffError};

use super::flatten::{self, Flattener};
use super::ifd::Tags;
use super::planes::Planes;
use super::{Body, Format, Found, Header, Limits, Mode, Paint, Raw, Samples, check_size, exif, icc};
use crate::fault::{Cause, Fault, Note, Oddity};
use crate::pixels::Rgb8;

const PHOTOMETRIC: u16 = 262;
const PALETTE: u32 = 3;
const BLACK_IS_ZERO: u16 = 1;
const FILL_ORDER: u16 = 266;
const LOW_BITS_FIRST: u32 = 2;

/// A TIFF between header and pixels.
pub(super) struct Tiff<'a> {
    /// The file; a palette file says "gray" here, so that its indices come as they are.
    bytes: Cow<'a, [u8]>,
    width: u32,
    height: u32,
    kind: Kind,
    bits: u8,
    samples: Samples,
    /// Bytes of the samples of all planes.
    sample_bytes: u64,
}

/// What the channels are.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Gray,
    GrayAlpha(Alpha),
    Palette(Vec<[u8; 3]>),
    Rgb,
    Rgba(Alpha),
    Cmyk,
    YCbCr,
}

/// What an extra sample does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alpha {
    /// Colours are not multiplied by it.
    Straight,
    /// Colours are multiplied by it already.
    Associated,
}

type Source<'b> = Decoder<Cursor<&'b [u8]>>;

/// Reads the first directory.
pub(super) fn open<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Found<'a>, Fault> {
    let tags = Tags::new(bytes).ok_or_else(|| Fault::new(Cause::Undecodable, "the TIFF has no header"))?;
    let palette = tags.find(PHOTOMETRIC) == Some(PALETTE);
    let mut file = if palette { as_gray(bytes, &tags) } else { Cow::Borrowed(bytes) };
    if tags.find(FILL_ORDER) == Some(LOW_BITS_FIRST) {
        file = turned_bits(file)?;
    }
    let mut decoder = decoder(&file)?;
    let (width, height) = decoder.dimensions().map_err(|why| fault(&why))?;
    check_size(width, height, limits)?;
    let (kind, bits) = kind(&mut decoder, palette)?;
    let layout = decoder.image_buffer_layout().map_err(|why| fault(&why))?;
    let samples = match layout.sample_format {
        SampleFormat::Int => Samples::Signed,
        SampleFormat::IEEEFP => Samples::Float,
        _ => Samples::Unsigned,
    };
    let mode = match &kind {
        Kind::Gray => Mode::L,
        Kind::GrayAlpha(_) => Mode::La,
        Kind::Palette(_) => Mode::P,
        Kind::Rgb | Kind::YCbCr => Mode::Rgb,
        Kind::Rgba(_) => Mode::Rgba,
        Kind::Cmyk => Mode::Cmyk,
    };
    let mut notes = Vec::new();
    let mut header = Header::new(Format::Tiff, (width, height), mode, bits);
    header.samples = samples;
    exif::read(bytes, &mut header, &mut notes);
    header.frames = tags.pages().max(1);
    if header.frames > 1 {
        notes.push(Note::new(Oddity::Frames, header.frames));
    }
    let profile = decoder.get_tag_u8_vec(Tag::IccProfile).ok();
    let sample_bytes = layout.complete_len as u64;
    let body = Body::Tiff(Tiff { bytes: file, width, height, kind, bits, samples, sample_bytes });
    Ok(Found { header, notes, profile, body })
}

/// A copy of the file whose first page says "black is zero" in place of "palette".
fn as_gray<'a>(bytes: &'a [u8], tags: &Tags<'_>) -> Cow<'a, [u8]> {
    let mut copy = bytes.to_vec();
    let entries = tags.first().map(|ifd| tags.entries(ifd).0).unwrap_or_default();
    for entry in entries.into_iter().filter(|e| e.tag == PHOTOMETRIC) {
        if let Some(value) = copy.get_mut(entry.value_at..entry.value_at + 2) {
            value.copy_from_slice(&tags.short(BLACK_IS_ZERO));
        }
    }
    Cow::Owned(copy)
}

/// A copy of the file whose strips or tiles have the bits of each byte turned round, for fill order 2.
fn turned_bits(file: Cow<'_, [u8]>) -> Result<Cow<'_, [u8]>, Fault> {
    let mut decoder = decoder(&file)?;
    let mut numbers = |strips: Tag, tiles: Tag| {
        let strips = decoder.get_tag_u64_vec(strips).or_else(|_| decoder.get_tag_u64_vec(tiles));
        strips.map_err(|why| fault(&why))
    };
    let offsets = numbers(Tag::StripOffsets, Tag::TileOffsets)?;
    let counts = numbers(Tag::StripByteCounts, Tag::TileByteCounts)?;
    let mut copy = file.into_owned();
    let mut turned = 0;
    for (offset, count) in offsets.into_iter().zip(counts) {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let to = from.saturating_add(usize::try_from(count).unwrap_or(usize::MAX)).min(copy.len());
        // Strips that lie on one another would make this quadratic; honest ones have no more bytes than the file.
        turned += to.saturating_sub(from);
        if turned > copy.len() {
            return Err(Fault::new(Cause::Undecodable, "the strips of the TIFF lie on one another"));
        }
        if let Some(strip) = copy.get_mut(from..to) {
            strip.iter_mut().for_each(|b| *b = b.reverse_bits());
        }
    }
    Ok(Cow::Owned(copy))
}

fn decoder(bytes: &[u8]) -> Result<Source<'_>, Fault> {
    let mut limits = TiffLimits::default();
    // The size is checked by `check_size`; a strip holds no more bytes than the file.
    limits.decoding_buffer_size = usize::MAX;
    limits.intermediate_buffer_size = bytes.len().max(1 << 20);
    limits.ifd_value_size = icc::MOST_BYTES;
    Ok(Decoder::new(Cursor::new(bytes)).map_err(|why| fault(&why))?.with_limits(limits))
}

fn kind(decoder: &mut Source<'_>, palette: bool) -> Result<(Kind, u8), Fault> {
    let extra: Vec<u16> = decoder.find_tag_unsigned_vec(Tag::ExtraSamples).ok().flatten().unwrap_or_default();
    let colour = decoder.colortype().map_err(|why| fault(&why))?;
    let alpha = match extra.first() {
        Some(1) => Some(Alpha::Associated),
        Some(2) | None => Some(Alpha::Straight),
        // Unspecified: not alpha.
        Some(_) => None,
    };
    Ok(match (colour, alpha) {
        (ColorType::Gray(bits), _) | (ColorType::Multiband { bit_depth: bits, .. }, _)
            if palette && bits <= 16 =>
        {
            (Kind::Palette(colours(decoder, bits)?), bits)
        }
        (ColorType::Gray(bits), _) => (Kind::Gray, bits),
        (ColorType::Multiband { bit_depth, num_samples: 2 }, Some(alpha)) => {
            (Kind::GrayAlpha(alpha), bit_depth)
        }
        (ColorType::Multiband { bit_depth, num_samples: 2 }, None) => (Kind::Gray, bit_depth),
        (ColorType::RGB(bits), _) | (ColorType::RGBA(bits), None) => (Kind::Rgb, bits),
        (ColorType::RGBA(bits), Some(alpha)) => (Kind::Rgba(alpha), bits),
        (ColorType::CMYK(bits @ (8 | 16)) | ColorType::CMYKA(bits @ (8 | 16)), _) => (Kind::Cmyk, bits),
        (ColorType::YCbCr(8), _) => (Kind::YCbCr, 8),
        (other, _) => return Err(Fault::new(Cause::UnsupportedKind, format!("TIFF with {other:?} samples"))),
    })
}

/// The colours of a palette: all reds, all greens, all blues, with 16 bits, or 8 where a writer forgot to scale.
fn colours(decoder: &mut Source<'_>, bits: u8) -> Result<Vec<[u8; 3]>, Fault> {
    let map = decoder.get_tag_u16_vec(Tag::ColorMap).map_err(|why| fault(&why))?;
    let count = 1 << bits;
    if map.len() < count * 3 {
        return Err(Fault::new(Cause::Undecodable, format!("a TIFF palette of {} values", map.len())));
    }
    let narrow = map.iter().all(|v| *v < 256);
    // Half of all writers scale by 257 and half by 256; the upper byte is right for both.
    let level = |v: u16| if narrow { v as u8 } else { (v >> 8) as u8 };
    Ok((0..count).map(|i| [map[i], map[count + i], map[2 * count + i]].map(level)).collect())
}

/// What an error of the decoder means.
fn fault(why: &TiffError) -> Fault {
    let cause = match why {
        TiffError::UnsupportedError(_) => Cause::UnsupportedKind,
        TiffError::IoError(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Cause::Truncated,
        _ => Cause::Undecodable,
    };
    Fault::new(cause, format!("TIFF: {why}"))
}

impl Tiff<'_> {
    /// The samples of all planes, the strip being decoded (at most as much again), and the result.
    pub fn need_bytes(&self) -> u64 {
        let copy = if matches!(self.bytes, Cow::Owned(_)) { self.bytes.len() as u64 } else { 0 };
        self.sample_bytes * 2 + u64::from(self.width) * u64::from(self.height) * 3 + copy + (1 << 18)
    }

    /// Decodes the first page.
    pub fn pixels(&self, paint: &Paint<'_>) -> Result<Raw, Fault> {
        let mut decoder = decoder(&self.bytes)?;
        let layout = decoder.image_buffer_layout().map_err(|why| fault(&why))?;
        let mut data = vec![0; layout.complete_len];
        let outcome = decoder.read_image_bytes(&mut data);
        let damage = match outcome {
            Ok(()) => None,
            // Strips before the broken one are there.
            Err(why @ (TiffError::IoError(_) | TiffError::FormatError(_)))
                if data.iter().any(|b| *b != 0) =>
            {
                Some(Fault::new(Cause::Truncated, format!("TIFF: {why}")))
            }
            Err(why) => return Err(fault(&why)),
        };
        let mut notes = Vec::new();
        let rgb = self.paint(&Planes::new(&layout, &data, self.width, self.bits)?, paint, &mut notes);
        Ok(Raw { rgb, notes, damage })
    }

    fn paint(&self, planes: &Planes<'_>, paint: &Paint<'_>, notes: &mut Vec<Note>) -> Rgb8 {
        let mut flat = Flattener::new(paint);
        let width = self.width as usize;
        let mut out = Vec::with_capacity(width * self.height as usize * 3);
        let stretch = (self.bits > 16 || self.samples != Samples::Unsigned)
            .then(|| planes.stretch(self.height, self.samples, notes));
        let (mut row8, mut row16) = (Vec::new(), Vec::new());
        for y in 0..self.height as usize {
            match (&stretch, self.bits) {
                (Some(stretch), _) => planes.row_stretched(y, stretch, self.samples, &mut row16),
                (None, 9..) => planes.row16(y, &mut row16),
                (None, _) => planes.row8(y, !matches!(self.kind, Kind::Palette(_)), &mut row8),
            }
            if stretch.is_some() || self.bits > 8 {
                self.row_deep(&row16, planes.channels, paint, &mut flat, &mut out);
            } else {
                self.row_flat(&row8, planes.channels, paint, &mut flat, &mut out);
            }
        }
        match self.kind {
            Kind::Gray | Kind::GrayAlpha(_) => notes.push(Note::plain(Oddity::Gray)),
            Kind::Palette(_) => notes.push(Note::plain(Oddity::Palette)),
            Kind::Cmyk => notes.push(Note::plain(Oddity::Cmyk)),
            _ => {}
        }
        if self.bits == 16 && stretch.is_none() {
            notes.push(Note::new(Oddity::DeepBits, 16));
        }
        flat.notes(self.bits == 16 && stretch.is_none() && !matches!(self.kind, Kind::Palette(_)), notes);
        Rgb8::new(self.width, self.height, out)
    }

    /// A row of 8-bit samples with `channels` a pixel, of which the kind says how many count.
    fn row_flat(
        &self,
        row: &[u8],
        channels: usize,
        paint: &Paint<'_>,
        flat: &mut Flattener,
        out: &mut Vec<u8>,
    ) {
        let pixels = row.chunks_exact(channels);
        match &self.kind {
            Kind::Palette(colours) => {
                out.extend(pixels.flat_map(|p| colours.get(usize::from(p[0])).copied().unwrap_or_default()));
            }
            Kind::Cmyk => {
                let ink: Vec<u8> = pixels.flat_map(|p| [p[0], p[1], p[2], p[3]]).collect();
                let at = out.len();
                out.resize(at + ink.len() / 4 * 3, 0);
                flatten::light(&ink, paint.cmyk, &mut out[at..]);
            }
            Kind::YCbCr => out.extend(pixels.flat_map(|p| ycbcr(p[0], p[1], p[2]))),
            Kind::Gray => out.extend(pixels.flat_map(|p| [p[0]; 3])),
            Kind::Rgb => out.extend(pixels.flat_map(|p| [p[0], p[1], p[2]])),
            Kind::GrayAlpha(alpha) => pixels.for_each(|p| {
                let value = if *alpha == Alpha::Associated {
                    straight(p[0].into(), p[1].into(), 255) as u8
                } else {
                    p[0]
                };
                flat.row8(&[value, p[1]], 2, out);
            }),
            Kind::Rgba(alpha) => pixels.for_each(|p| {
                let level = |v: u8| {
                    if *alpha == Alpha::Associated { straight(v.into(), p[3].into(), 255) as u8 } else { v }
                };
                flat.row8(&[level(p[0]), level(p[1]), level(p[2]), p[3]], 4, out);
            }),
        }
    }

    /// The same for samples that were brought to 16 bits.
    fn row_deep(
        &self,
        row: &[u16],
        channels: usize,
        paint: &Paint<'_>,
        flat: &mut Flattener,
        out: &mut Vec<u8>,
    ) {
        let pixels = row.chunks_exact(channels);
        match &self.kind {
            Kind::Palette(colours) => {
                out.extend(pixels.flat_map(|p| colours.get(usize::from(p[0])).copied().unwrap_or_default()));
            }
            Kind::Cmyk => {
                let ink: Vec<u8> = pixels.flat_map(|p| [p[0], p[1], p[2], p[3]].map(flatten::to8)).collect();
                let at = out.len();
                out.resize(at + ink.len() / 4 * 3, 0);
                flatten::light(&ink, paint.cmyk, &mut out[at..]);
            }
            Kind::Gray => flat.row16(pixels.map(|p| p[0]), 1, out),
            Kind::Rgb | Kind::YCbCr => flat.row16(pixels.flat_map(|p| [p[0], p[1], p[2]]), 3, out),
            Kind::GrayAlpha(alpha) => {
                flat.row16(pixels.flat_map(|p| unassociated([p[0], p[1]], *alpha)), 2, out);
            }
            Kind::Rgba(alpha) => {
                flat.row16(pixels.flat_map(|p| unassociated([p[0], p[1], p[2], p[3]], *alpha)), 4, out);
            }
        }
    }
}

/// Divides colours by the alpha that they were multiplied with; alpha is the last.
fn unassociated<const N: usize>(mut pixel: [u16; N], alpha: Alpha) -> [u16; N] {
    if let (Alpha::Associated, [colours @ .., a]) = (alpha, &mut pixel[..]) {
        for colour in colours {
            *colour = straight((*colour).into(), (*a).into(), 65535) as u16;
        }
    }
    pixel
}

fn straight(colour: u32, alpha: u32, most: u32) -> u32 {
    (colour * most + alpha / 2).checked_div(alpha).unwrap_or(0).min(most)
}

/// Full-range YCbCr as JPEG has it (ITU-T T.871).
fn ycbcr(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let (y, cb, cr) = (f32::from(y), f32::from(cb) - 128.0, f32::from(cr) - 128.0);
    let rgb = [y + 1.402 * cr, y - 0.344_136 * cb - 0.714_136 * cr, y + 1.772 * cb];
    rgb.map(|v| (v + 0.5).clamp(0.0, 255.0) as u8)
}

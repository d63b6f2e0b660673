//! PNG through the `png` crate, with every checksum looked at. The chunks are walked here first: what the decoder does
//! not need (text, profiles, animation) never reaches it.

use std::borrow::Cow;
use std::io::Cursor;
use std::ops::Range;

use png::{BitDepth, ColorType, DecodeOptions, Decoder, DecodingError, Reader, Transformations};

use super::flatten::Flattener;
use super::{Body, Format, Found, Header, Limits, Mode, Paint, Raw, check_size, exif, icc};
use crate::fault::{Cause, Fault, Note, Oddity};
use crate::pixels::Rgb8;

const SIGNATURE: usize = 8;
/// IEND with its CRC.
const IEND: [u8; 12] = [0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82];
/// What the decoder may take beside rows: it holds a row or two and the inflate window.
const DECODER_BYTES: usize = 64 << 20;

/// A PNG between header and pixels.
pub(super) struct Png<'a> {
    bytes: &'a [u8],
    chunks: Chunks,
    width: u32,
    height: u32,
    mode: Mode,
    bits: u8,
    interlaced: bool,
}

/// What the chunk walk saw.
#[derive(Default)]
struct Chunks {
    /// Chunks that pixels depend on, each whole.
    needed: Vec<Range<usize>>,
    /// The needed chunks are the whole file as it stands.
    alone: bool,
    exif: Option<Range<usize>>,
    icc: Option<Range<usize>>,
    transparency: bool,
    gamma: bool,
    srgb: bool,
    cicp: bool,
    frames: u32,
    /// IDAT bytes.
    data: usize,
    /// The byte after IEND.
    end: Option<usize>,
    /// A chunk beside the picture data whose CRC fails.
    wrong: Option<Wrong>,
    /// Other chunks stand between the picture data.
    split_data: bool,
}

/// A chunk whose CRC fails.
struct Wrong {
    name: String,
    /// Pixels depend on it.
    needed: bool,
}

/// Reads the chunk headers.
pub(super) fn open<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Found<'a>, Fault> {
    let broken = |why: &str| Fault::new(Cause::Undecodable, why);
    let ihdr = bytes.get(SIGNATURE..SIGNATURE + 25).filter(|b| b[..8] == *b"\0\0\0\x0dIHDR");
    let ihdr = ihdr.ok_or_else(|| broken("the PNG ends inside its header, or has none"))?;
    let side = |at: usize| u32::from_be_bytes([ihdr[at], ihdr[at + 1], ihdr[at + 2], ihdr[at + 3]]);
    let (width, height, bits, colour, interlaced) = (side(8), side(12), ihdr[16], ihdr[17], ihdr[20] == 1);
    check_size(width, height, limits)?;
    let chunks = walk(bytes);
    if chunks.data == 0 {
        return Err(broken("the PNG has no picture data"));
    }
    let mode = match (colour, chunks.transparency) {
        (0, false) => Mode::L,
        (0, true) | (4, _) => Mode::La,
        (2, false) => Mode::Rgb,
        (2, true) | (6, _) => Mode::Rgba,
        (3, false) => Mode::P,
        (3, true) => Mode::Pa,
        _ => return Err(broken(&format!("a PNG cannot have colour type {colour}"))),
    };
    let mut notes = Vec::new();
    let mut header = Header::new(Format::Png, (width, height), mode, bits);
    if let Some(block) = &chunks.exif {
        exif::read(&bytes[block.clone()], &mut header, &mut notes);
    }
    header.frames = chunks.frames.max(1);
    let profile = chunks.icc.clone().and_then(|at| inflate_profile(&bytes[at], &mut notes));
    if chunks.cicp {
        notes.push(Note::plain(Oddity::CicpIgnored));
    } else if chunks.gamma && !chunks.srgb && chunks.icc.is_none() {
        notes.push(Note::plain(Oddity::GammaIgnored));
    }
    if chunks.frames > 1 {
        notes.push(Note::new(Oddity::Frames, chunks.frames));
    }
    match chunks.end {
        Some(end) if end < bytes.len() => {
            notes.push(Note::new(Oddity::TrailingBytes, format!("{} bytes", bytes.len() - end)));
        }
        _ => {}
    }
    let body = Body::Png(Png { bytes, chunks, width, height, mode, bits, interlaced });
    Ok(Found { header, notes, profile, body })
}

/// Walks the chunks by their lengths; a chunk that the file cuts off counts as far as it goes if it is picture data.
fn walk(bytes: &[u8]) -> Chunks {
    let mut chunks = Chunks { alone: true, ..Chunks::default() };
    let mut at = SIGNATURE;
    let mut after_data = false;
    while let Some(head) = bytes.get(at..at + 8) {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let end = at.saturating_add(length).saturating_add(12);
        let whole = at..end.min(bytes.len());
        let body = at + 8..(at + 8).saturating_add(length).min(bytes.len());
        let cut = end > bytes.len();
        match &head[4..8] {
            b"IEND" => {
                chunks.end = (!cut).then_some(end);
                break;
            }
            // The decoder checks the CRC of these.
            b"IDAT" => {
                chunks.split_data |= chunks.data > 0 && !after_data;
                chunks.data += body.len();
                chunks.needed.push(whole);
                after_data = true;
            }
            name => {
                after_data = false;
                let needed = matches!(name, b"IHDR" | b"PLTE" | b"tRNS");
                if !cut
                    && !crc_holds(&bytes[whole.clone()])
                    && chunks.wrong.as_ref().is_none_or(|w| !w.needed)
                {
                    chunks.wrong = Some(Wrong { name: name.escape_ascii().to_string(), needed });
                }
                if needed {
                    chunks.transparency |= name == b"tRNS";
                    chunks.needed.push(whole);
                } else {
                    chunks.alone = false;
                    if !cut {
                        chunks.note_metadata(name, bytes, body);
                    }
                }
            }
        }
        at = end;
        if cut {
            break;
        }
    }
    chunks
}

/// Does the CRC-32 at the end of a whole chunk match its name and body? (PNG specification, annex D.)
fn crc_holds(chunk: &[u8]) -> bool {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut i = 0;
        while i < 256 {
            let mut c = i as u32;
            let mut bit = 0;
            while bit < 8 {
                c = if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 };
                bit += 1;
            }
            table[i] = c;
            i += 1;
        }
        table
    };
    let Some((checked, crc)) = chunk.get(4..).and_then(<[u8]>::split_last_chunk::<4>) else { return false };
    let sum = checked.iter().fold(u32::MAX, |c, b| TABLE[usize::from(c as u8 ^ b)] ^ (c >> 8));
    !sum == u32::from_be_bytes(*crc)
}

impl Chunks {
    fn note_metadata(&mut self, name: &[u8], bytes: &[u8], body: Range<usize>) {
        match name {
            b"eXIf" if self.exif.is_none() => self.exif = Some(body),
            b"iCCP" if self.icc.is_none() && self.data == 0 => self.icc = Some(body),
            b"gAMA" | b"cHRM" => self.gamma = true,
            b"sRGB" => self.srgb = true,
            b"cICP" => self.cicp = true,
            b"acTL" => {
                let count = bytes.get(body).and_then(|b| b.first_chunk::<4>());
                self.frames = count.map_or(0, |b| u32::from_be_bytes(*b));
            }
            _ => {}
        }
    }
}

/// The profile of an iCCP chunk, inflated to at most [`icc::MOST_BYTES`]. A broken one comes back empty, so that it is
/// noted as broken.
fn inflate_profile(body: &[u8], notes: &mut Vec<Note>) -> Option<Vec<u8>> {
    // `png` inflates it when it stands in a PNG of its own; its limit is the cap.
    let mut tiny = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\0\0\0\0".to_vec();
    tiny.extend((body.len() as u32).to_be_bytes());
    tiny.extend(b"iCCP");
    tiny.extend(body);
    tiny.extend([0; 4]);
    tiny.extend(b"\0\0\0\x01IDAT\0\0\0\0\0");
    let mut options = DecodeOptions::default();
    options.set_ignore_checksums(true);
    let mut decoder = Decoder::new_with_options(Cursor::new(tiny), options);
    decoder.set_limits(png::Limits { bytes: icc::MOST_BYTES });
    let profile =
        decoder.read_info().ok().and_then(|reader| reader.info().icc_profile.as_deref().map(<[u8]>::to_vec));
    if profile.is_none() && body.len() > 1 << 15 {
        // Small chunks that do not inflate are broken; large ones may well be too large.
        notes.push(Note::new(Oddity::MetadataBomb, "iCCP"));
        return None;
    }
    Some(profile.unwrap_or_default())
}

impl Png<'_> {
    /// RGB, plus the samples of an interlaced picture, which come out of order.
    pub fn need_bytes(&self) -> u64 {
        let pixels = u64::from(self.width) * u64::from(self.height);
        let sample = if self.bits == 16 { 2 } else { 1 };
        let held = if self.interlaced { 4 * sample } else { 0 };
        pixels * (3 + held) + u64::from(self.width) * 4 * sample * 4 + (1 << 18) + self.bytes.len() as u64
    }

    /// Decodes; a failed checksum or missing rows are damage.
    pub fn pixels(&self, paint: &Paint<'_>) -> Result<Raw, Fault> {
        let stream = self.stream();
        let mut options = DecodeOptions::default();
        options.set_ignore_adler32(false);
        options.set_ignore_crc(false);
        let mut decoder = Decoder::new_with_options(Cursor::new(&*stream), options);
        decoder.set_limits(png::Limits { bytes: DECODER_BYTES });
        decoder.set_transformations(Transformations::EXPAND);
        let mut reader = decoder.read_info().map_err(|why| self.fault(&why, 0))?;
        let (colour, depth) = reader.output_color_type();
        let channels = colour.samples();
        let deep = depth == BitDepth::Sixteen;
        let mut flat = Flattener::new(paint);
        let size = self.width as usize * self.height as usize * 3;
        let mut data = Vec::with_capacity(size);
        let outcome = if self.interlaced {
            rows_interlaced(&mut reader, channels, deep, &mut flat, &mut data)
        } else {
            rows(&mut reader, channels, deep, &mut flat, &mut data)
        };
        let mut notes = Vec::new();
        let done = (data.len() / (self.width as usize * 3)) as u32;
        let mut damage = outcome.err().map(|why| self.fault(&why, done));
        if damage.is_none() {
            damage = reader.finish().err().map(|why| self.fault(&why, self.height));
        }
        if damage.as_ref().is_some_and(|fault| fault.cause.status() == crate::fault::Status::Bad) {
            return Err(damage.unwrap_or_else(|| Fault::new(Cause::Undecodable, "")));
        }
        if let Some(wrong) = self.chunks.wrong.as_ref().filter(|_| damage.is_none()) {
            // Also in metadata: Pillow refuses such a file, and bytes that rotted there may have rotted elsewhere.
            let whose = if wrong.needed { "" } else { ", which holds no pixels," };
            damage = Some(Fault::new(
                Cause::Checksum,
                format!("the CRC of chunk {}{whose} does not match", wrong.name),
            ));
        }
        if self.chunks.split_data && damage.is_none() {
            // libpng, and so nearly every loader, takes the first piece for all there is.
            let detail = "other chunks stand between the picture data, where most decoders stop";
            damage = Some(Fault::new(Cause::Truncated, detail));
        }
        if damage.is_none() && self.chunks.end.is_none() {
            notes.push(Note::plain(Oddity::MissingEnd));
        }
        data.resize(size, 0);
        self.note_samples(colour, deep, &mut notes);
        flat.notes(deep, &mut notes);
        Ok(Raw { rgb: Rgb8::new(self.width, self.height, data), notes, damage })
    }

    /// What the decoder is shown: the chunks that pixels depend on, and an end.
    fn stream(&self) -> Cow<'_, [u8]> {
        if self.chunks.alone && self.chunks.end.is_some() {
            return Cow::Borrowed(self.bytes);
        }
        let mut out = self.bytes[..SIGNATURE].to_vec();
        for chunk in &self.chunks.needed {
            out.extend_from_slice(&self.bytes[chunk.clone()]);
        }
        out.extend(IEND);
        Cow::Owned(out)
    }

    fn note_samples(&self, colour: ColorType, deep: bool, notes: &mut Vec<Note>) {
        match self.mode {
            Mode::P | Mode::Pa => notes.push(Note::plain(Oddity::Palette)),
            _ if matches!(colour, ColorType::Grayscale | ColorType::GrayscaleAlpha) => {
                notes.push(Note::plain(Oddity::Gray));
            }
            _ => {}
        }
        if deep {
            notes.push(Note::new(Oddity::DeepBits, 16));
        }
    }

    /// What an error of the decoder means when `done` rows have come.
    fn fault(&self, why: &DecodingError, done: u32) -> Fault {
        let text = why.to_string();
        let rows = format!("{done} of {} rows came", self.height);
        let cause = match why {
            DecodingError::IoError(_) => Cause::Truncated,
            _ if text.contains("CRC") || text.contains("hecksum") => Cause::Checksum,
            _ if text.contains("IDAT or fDAT")
                || text.contains("too short")
                || text.contains("NoMoreImageData") =>
            {
                Cause::Truncated
            }
            DecodingError::LimitsExceeded => Cause::TooLarge,
            _ if done == 0 && !text.contains("orrupt") => Cause::Undecodable,
            _ => Cause::EntropyDamage,
        };
        Fault::new(cause, format!("{text}; {rows}"))
    }
}

type PngReader<'b> = Reader<Cursor<&'b [u8]>>;

fn rows(
    reader: &mut PngReader<'_>,
    channels: usize,
    deep: bool,
    flat: &mut Flattener,
    out: &mut Vec<u8>,
) -> Result<(), DecodingError> {
    while let Some(row) = reader.next_row()? {
        push(row.data(), channels, deep, flat, out);
    }
    Ok(())
}

fn rows_interlaced(
    reader: &mut PngReader<'_>,
    channels: usize,
    deep: bool,
    flat: &mut Flattener,
    out: &mut Vec<u8>,
) -> Result<(), DecodingError> {
    let mut frame = vec![0; reader.output_buffer_size().ok_or(DecodingError::LimitsExceeded)?];
    let outcome = reader.next_frame(&mut frame).map(drop);
    push(&frame, channels, deep, flat, out);
    outcome
}

fn push(row: &[u8], channels: usize, deep: bool, flat: &mut Flattener, out: &mut Vec<u8>) {
    if deep {
        let samples = row.chunks_exact(2).map(|b| u16::from_be_bytes([b[0], b[1]]));
        flat.row16(samples, channels, out);
    } else {
        flat.row8(row, channels, out);
    }
}

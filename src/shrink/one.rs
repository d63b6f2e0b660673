//! One image: decoded once, at the smallest scale that serves, resampled, made upright sRGB, encoded, written.

use std::path::Path;

use super::Options;
use super::ledger::written;
use super::size::Geometry;
use crate::decode::{Codec, Format, Header, Icc};
use crate::encode::{Encoder, Encoding};
use crate::engine::crew::Item;
use crate::engine::pipe::{Pipe, Read, Scratch};
use crate::entry::Entry;
use crate::error::Error;
use crate::fault::{Cause, Fault, Note, Oddity};
use crate::normal;
use crate::out;
use crate::pixels::Scale;
use crate::resize::{Resizer, Window};

/// The decoded picture has at least this many pixels a side for each pixel of the copy, so that the reduced decode
/// cannot be told from a full one (Pillow's reducing_gap; 41.4 dB against 40.8 of vipsthumbnail).
const GAP: f64 = 2.0;

/// What a worker keeps from image to image.
#[derive(Default)]
pub struct Bench {
    scratch: Scratch,
    resizer: Resizer,
    encoder: Encoder,
    encoded: Vec<u8>,
}

/// What became of one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Size of the copy.
    pub size: (u32, u32),
    /// Bytes of the copy.
    pub bytes: u64,
    /// blake3 of the copy, 32 hex digits.
    pub hash: String,
    /// When it was written, in nanoseconds.
    pub written: i64,
    /// What the source was.
    pub source: Source,
    /// What was odd about it, and what was done.
    pub notes: Vec<Note>,
}

/// What the header of the source said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// Stored size.
    pub size: (u32, u32),
    /// Format's name.
    pub format: String,
    /// Mode (RGB, L, CMYK, P, I;16 …).
    pub mode: String,
    /// EXIF orientation, 1 to 8.
    pub orientation: u8,
    /// blake3 of the file, 32 hex digits.
    pub hash: String,
}

/// Why there is no copy: the image's fault, or the run's end.
#[derive(Debug)]
pub enum Failed {
    /// This image is not usable; what is known of it.
    Fault(Fault, Source),
    /// The copy cannot be written: the run ends.
    Run(Error),
}

/// 128 bits of a hash in hexadecimal.
pub fn short_hex(hash: &blake3::Hash) -> String {
    hash.to_hex()[..32].to_owned()
}

/// The encoding of the copy of a source that is called a `format`. Only `keep` asks.
pub fn encoding_for(options: &Options, format: Format) -> Encoding {
    use super::OutputFormat::*;
    let jpeg = Encoding::Jpeg { quality: options.quality, chroma: options.chroma };
    match (options.format, format) {
        (Jpg, _) | (Keep, Format::Jpeg) => jpeg,
        (Webp, _) | (Keep, Format::WebP) => Encoding::WebP,
        (Png | Keep, _) => Encoding::Png,
    }
}

/// Makes the copy of `entry` as `target`.
pub fn make(
    bench: &mut Bench,
    pipe: &Pipe,
    options: &Options,
    entry: &Entry,
    target: (&Path, Encoding),
    item: &Item<'_>,
) -> Result<Made, Failed> {
    let (target, encoding) = target;
    let mut made =
        encode(bench, pipe, options, entry, encoding, item).map_err(|(fault, s)| Failed::Fault(fault, s))?;
    out::write_whole("writing a copy", target, &bench.encoded, false).map_err(Failed::Run)?;
    made.written = target.symlink_metadata().map_or(0, |meta| written(&meta));
    made.hash = short_hex(&blake3::hash(&bench.encoded));
    Ok(made)
}

/// Makes the copy of `entry` in the worker's buffer; nothing is written, and the hash stays empty.
pub fn encode(
    bench: &mut Bench,
    pipe: &Pipe,
    options: &Options,
    entry: &Entry,
    encoding: Encoding,
    item: &Item<'_>,
) -> Result<Made, (Fault, Source)> {
    let (mut source, mut notes) = (Source::default(), Vec::new());
    let Bench { scratch, resizer, encoder, encoded } = bench;
    encoded.clear();
    let outcome = pipe.read(entry, item, scratch, |read, codec| {
        source = source_of(read);
        let mut work = Work { pipe, options, encoding, item, resizer, encoder, encoded, notes: &mut notes };
        work.encode(read, codec)
    });
    match outcome {
        Ok(size) => {
            Ok(Made { size, bytes: encoded.len() as u64, hash: String::new(), written: 0, source, notes })
        }
        Err(fault) => Err((fault, source)),
    }
}

fn source_of(read: &Read<'_>) -> Source {
    let header = read.header();
    Source {
        size: (header.width, header.height),
        format: header.format.name().to_owned(),
        mode: header.src_mode(),
        orientation: header.orientation as u8,
        hash: short_hex(&read.hash),
    }
}

/// The upright geometry of a picture with this header.
pub fn geometry(options: &Options, header: &Header) -> Geometry {
    options.fit.of(upright_size(options, header), options.upscale)
}

fn upright_size(options: &Options, header: &Header) -> (u32, u32) {
    let stored = (header.width, header.height);
    if options.contract.orient { header.orientation.upright(stored) } else { stored }
}

struct Work<'a> {
    pipe: &'a Pipe,
    options: &'a Options,
    encoding: Encoding,
    item: &'a Item<'a>,
    resizer: &'a mut Resizer,
    encoder: &'a mut Encoder,
    encoded: &'a mut Vec<u8>,
    notes: &'a mut Vec<Note>,
}

impl Work<'_> {
    /// Fills `encoded` and gives the size of the copy.
    fn encode(&mut self, read: &Read<'_>, codec: &mut Codec) -> Result<(u32, u32), Fault> {
        let header = read.header();
        let geometry = geometry(self.options, header);
        if self.may_copy(header, &geometry) && !self.converts(read, codec) {
            return self.copy(read, codec);
        }
        let turn = self.options.contract.orient;
        let stored = if turn { geometry.stored(header.orientation) } else { geometry };
        let part = (stored.window.width as u32, stored.window.height as u32);
        let scale = read.scale_for(part, stored.size, GAP);
        let extra = Resizer::need_bytes(scale.of(header.height), stored.size) + 9 * pixels(geometry.size);
        let mut held = self.pipe.pixels(read, scale, extra, self.item, codec)?;
        self.notes.append(&mut held.decoded.notes);

        let identity = stored.is_identity((header.width, header.height));
        let small = if identity {
            std::mem::take(&mut held.decoded.rgb)
        } else {
            let (full, reduced) = ((header.width, header.height), held.decoded.true_size);
            let window = reduce(stored.window, full, reduced);
            self.resizer
                .resize(&held.decoded.rgb, window, stored.size, self.options.filter)
                .map_err(|why| Fault::new(Cause::Encode, why))?
        };
        let upright = normal::upright_srgb(small, &held.decoded.finish);
        self.encoder
            .encode(&upright, self.encoding, self.encoded)
            .map_err(|why| Fault::new(Cause::Encode, why))?;
        let size = upright.size();
        Ok(size)
    }

    /// Is the source already what is asked for, so that its bytes may be copied without a second JPEG generation?
    fn may_copy(&self, header: &Header, geometry: &Geometry) -> bool {
        matches!(self.encoding, Encoding::Jpeg { .. })
            && header.is_copied_whole(self.options.contract.orient)
            && geometry.is_identity((header.width, header.height))
    }

    /// Is there a profile to be converted? A copy without it would be another picture.
    fn converts(&self, read: &Read<'_>, codec: &mut Codec) -> bool {
        self.options.contract.icc == Icc::ToSrgb && read.needs_profile(codec)
    }

    /// Decodes the whole picture to prove it, then copies its coded data without metadata.
    fn copy(&mut self, read: &Read<'_>, codec: &mut Codec) -> Result<(u32, u32), Fault> {
        let mut held = self.pipe.pixels(read, Scale::FULL, 0, self.item, codec)?;
        self.notes.append(&mut held.decoded.notes);
        let size = held.decoded.rgb.size();
        let salvaged = self.notes.iter().any(|note| note.kind == Oddity::Salvaged);
        match read.stripped().filter(|_| !salvaged) {
            Some(bytes) => {
                *self.encoded = bytes;
                self.notes.push(Note::plain(Oddity::Copied));
            }
            // Salvaged, or coded in a way that cannot be cut out cleanly: written anew.
            None => {
                let upright =
                    normal::upright_srgb(std::mem::take(&mut held.decoded.rgb), &held.decoded.finish);
                self.encoder
                    .encode(&upright, self.encoding, self.encoded)
                    .map_err(|why| Fault::new(Cause::Encode, why))?;
            }
        }
        Ok(size)
    }
}

fn pixels(size: (u32, u32)) -> u64 {
    u64::from(size.0) * u64::from(size.1)
}

/// A window of the full picture as a window of the reduced one, whose fractional size is `reduced`.
fn reduce(window: Window, full: (u32, u32), reduced: (f64, f64)) -> Window {
    let (x, y) = (reduced.0 / f64::from(full.0), reduced.1 / f64::from(full.1));
    Window { left: window.left * x, top: window.top * y, width: window.width * x, height: window.height * y }
}

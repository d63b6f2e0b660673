//! One image: decoded once, resampled, made upright sRGB, and turned into the payload of a sample.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Options;
use super::frame::Geometry;
use crate::decode::{self, Codec, Header, Icc, Mode};
use crate::encode::{Encoder, Encoding};
use crate::engine::crew::Item;
use crate::engine::gate::Gate;
use crate::engine::pipe::{Pipe, Pixels, Read, Scratch};
use crate::entry::Entry;
use crate::fault::{Cause, Fault};
use crate::measure::ImageSums;
use crate::normal;
use crate::pixels::{Rgb8, Scale};
use crate::resize::{Resizer, Window};
use crate::shards::{Store, flag, sum};

/// See `GAP` of shrink: what a filter needs to work as on the whole picture.
const GAP: f64 = 2.0;

/// What a worker keeps from image to image.
#[derive(Default)]
pub struct Bench {
    scratch: Scratch,
    resizer: Resizer,
    encoder: Encoder,
}

/// A payload, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// A JPEG file, or pixels.
    pub payload: Vec<u8>,
    /// Width and height.
    pub size: (u16, u16),
    /// Bits of [`flag`].
    pub flags: u32,
    /// Of the payload.
    pub crc32: u32,
    /// blake3 of the source, the first half.
    pub hash: [u8; 16],
    /// Sums of its pixels; none where it was proven without decoding.
    pub sums: Option<ImageSums>,
}

/// How a source file is told to be the same as before: bytes, time in nanoseconds, inode.
pub fn stamp(file: &Path) -> [u64; 3] {
    fs::metadata(file).map_or([0; 3], |meta| {
        let time = meta.mtime().wrapping_mul(1_000_000_000).wrapping_add(meta.mtime_nsec());
        [meta.len(), time as u64, meta.ino()]
    })
}

/// Makes the payload of `entry`. `proven` is the hash of the copy that an earlier run of prep encoded here: a JPEG with
/// this hash need not be decoded again to be known whole. `gate` bounds the payloads that wait.
///
/// # Errors
/// Why the image cannot be used.
pub fn make(
    bench: &mut Bench,
    pipe: &Pipe,
    options: &Options,
    entry: &Entry,
    (proven, gate): (Option<&str>, Option<&Gate>),
    item: &Item<'_>,
) -> Result<Packed, Fault> {
    let Bench { scratch, resizer, encoder } = bench;
    let mut waited = gate.is_none();
    loop {
        let attempt = pipe.read(entry, item, scratch, |read, codec| {
            if let Some(gate) = gate.filter(|_| !waited) {
                let need = most_bytes(options, read);
                if !gate.try_enter(item.index, need) {
                    return Ok(Attempt::Full(need));
                }
            }
            let mut work = Work { pipe, options, item, resizer, encoder };
            let made = work.make(read, codec, proven)?;
            packed(options, read, made).map(Attempt::Packed)
        })?;
        match (attempt, gate) {
            (Attempt::Packed(packed), _) => return Ok(packed),
            // The file is let go while there is no room, and read again.
            (Attempt::Full(need), Some(gate)) => item.aside(|| gate.enter(item.index, need)),
            (Attempt::Full(_), None) => {}
        }
        waited = true;
    }
}

enum Attempt {
    Packed(Packed),
    Full(u64),
}

/// Bytes that the payload will have, at most or nearly so.
fn most_bytes(options: &Options, read: &Read<'_>) -> u64 {
    let (w, h) = options.frame.of(read.header().upright_size()).size;
    let pixels = u64::from(w) * u64::from(h);
    match options.form.store {
        Store::Raw => pixels * 3,
        Store::Jpeg => pixels.max(read.bytes.len() as u64),
    }
}

fn packed(options: &Options, read: &Read<'_>, made: Made) -> Result<Packed, Fault> {
    let crc32 = sum::crc32(&made.payload);
    let mut hash = [0; 16];
    hash.copy_from_slice(&read.hash.as_bytes()[..16]);
    let side = |n: u32| {
        u16::try_from(n)
            .map_err(|_| Fault::new(Cause::Encode, format!("{n} pixels a side; a sample has at most 65535")))
    };
    let size = (side(made.size.0)?, side(made.size.1)?);
    if made.payload.len() as u64 > options.most_payload() {
        let why = format!(
            "{} bytes; a sample of these shards has at most {}: --short-edge shrinks on the way",
            made.payload.len(),
            options.most_payload()
        );
        return Err(Fault::new(Cause::Encode, why));
    }
    Ok(Packed { payload: made.payload, size, flags: made.flags, crc32, hash, sums: made.sums })
}

struct Made {
    payload: Vec<u8>,
    size: (u32, u32),
    flags: u32,
    sums: Option<ImageSums>,
}

struct Work<'a> {
    pipe: &'a Pipe,
    options: &'a Options,
    item: &'a Item<'a>,
    resizer: &'a mut Resizer,
    encoder: &'a mut Encoder,
}

impl<'a> Work<'a> {
    fn make(&mut self, read: &Read<'_>, codec: &mut Codec, proven: Option<&str>) -> Result<Made, Fault> {
        let header = read.header();
        let geometry = self.options.frame.of(header.upright_size());
        let copies = self.may_copy(header, &geometry) && !self.converts(read, codec);
        if let Some(made) = if copies { self.copy(read, codec, proven)? } else { None } {
            return Ok(made);
        }
        // The memory is held until the payload is made.
        let (picture, _held) = self.picture(read, codec, &geometry)?;
        let padded = if geometry.is_padded() { flag::PADDED } else { 0 };
        if self.options.form.store == Store::Raw {
            let (size, sums) = (picture.size(), Some(ImageSums::of(&picture)));
            return Ok(Made { payload: picture.data, size, flags: padded, sums });
        }
        let (payload, seen) = self.encode(&picture, codec)?;
        Ok(Made {
            payload,
            size: picture.size(),
            flags: flag::JPEG | padded,
            sums: Some(ImageSums::of(&seen)),
        })
    }

    /// Is the source already what every GPU decoder takes, as it is asked for? Then its coded data are not touched.
    fn may_copy(&self, header: &Header, geometry: &Geometry) -> bool {
        let safe = |jpeg: &decode::JpegKind| {
            jpeg.plain && !jpeg.progressive && jpeg.chroma == self.options.chroma && header.mode == Mode::Rgb
        };
        self.options.form.store == Store::Jpeg
            && header.jpeg.as_ref().is_some_and(safe)
            && header.orientation as u8 == 1
            && geometry.is_identity(header.size())
    }

    fn converts(&self, read: &Read<'_>, codec: &mut Codec) -> bool {
        self.options.icc() == Icc::ToSrgb && read.needs_profile(codec)
    }

    /// The coded data without metadata, after the whole picture was decoded, or its hash has proven that it was before.
    fn copy(&self, read: &Read<'_>, codec: &mut Codec, proven: Option<&str>) -> Result<Option<Made>, Fault> {
        let flags = flag::JPEG | flag::COPIED;
        let size = read.header().size();
        if proven.is_some_and(|hash| read.hash.to_hex()[..32] == *hash) {
            let stripped = read.stripped();
            return Ok(stripped.map(|payload| Made { payload, size, flags, sums: None }));
        }
        let held = self.pipe.pixels(read, Scale::FULL, 0, self.item, codec)?;
        let sums = Some(ImageSums::of(&held.decoded.rgb));
        drop(held);
        Ok(read.stripped().map(|payload| Made { payload, size, flags, sums }))
    }

    /// The upright sRGB picture at the sample's size, and the memory that was taken for it.
    fn picture(
        &mut self,
        read: &Read<'_>,
        codec: &mut Codec,
        geometry: &Geometry,
    ) -> Result<(Rgb8, Pixels<'a>), Fault> {
        let header = read.header();
        let (window, inner) = geometry.stored(header.orientation);
        let part = (window.width as u32, window.height as u32);
        let scale = read.scale_for(part, inner, GAP);
        let pixels = |size: (u32, u32)| u64::from(size.0) * u64::from(size.1);
        let full = (f64::from(header.width), f64::from(header.height));
        let whole = inner == header.size() && (window.width, window.height) == full;
        let resized = if whole { 0 } else { Resizer::need_bytes(scale.of(header.height), inner) };
        let turned = if header.orientation as u8 == 1 { 0 } else { 6 * pixels(geometry.inner) };
        let padded = if geometry.is_padded() { 3 * pixels(geometry.size) } else { 0 };
        // The coder's worst case, and what is decoded from it.
        let coded = if self.options.form.store == Store::Jpeg { 12 * pixels(geometry.size) } else { 0 };
        let extra = resized + turned + padded + coded;
        let mut held = self.pipe.pixels(read, scale, extra, self.item, codec)?;
        let small = if whole {
            std::mem::take(&mut held.decoded.rgb)
        } else {
            let (x, y) = (held.decoded.true_size.0 / full.0, held.decoded.true_size.1 / full.1);
            let window = Window {
                left: window.left * x,
                top: window.top * y,
                width: window.width * x,
                height: window.height * y,
            };
            self.resizer
                .resize(&held.decoded.rgb, window, inner, self.options.frame.filter)
                .map_err(|why| Fault::new(Cause::Encode, why))?
        };
        // Only its memory is still wanted.
        held.decoded.rgb = Rgb8::default();
        Ok((geometry.pad(normal::upright_srgb(small, &held.decoded.finish)), held))
    }

    /// A JPEG of `picture` and what comes out of it again: nothing is written that was not decoded.
    fn encode(&mut self, picture: &Rgb8, codec: &mut Codec) -> Result<(Vec<u8>, Rgb8), Fault> {
        let broken = |why: String| Fault::new(Cause::Encode, why);
        let encoding = Encoding::Jpeg { quality: self.options.quality, chroma: self.options.chroma };
        let mut jpeg = Vec::new();
        self.encoder.encode(picture, encoding, &mut jpeg).map_err(broken)?;
        // The encoder reserves for the worst case.
        jpeg.shrink_to_fit();
        let opened = decode::open(&jpeg, Path::new("sample.jpg"), &self.pipe.limits)?;
        let seen = opened.pixels(Scale::FULL, &self.pipe.contract, codec)?;
        if let Some(damage) = seen.damage {
            return Err(broken(format!("the JPEG that was just written does not decode: {damage}")));
        }
        if seen.rgb.size() != picture.size() {
            return Err(broken("the JPEG that was just written has another size".into()));
        }
        Ok((jpeg, seen.rgb))
    }
}

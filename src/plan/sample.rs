//! A sample of the real pictures, decoded on this machine: how large they are, how large they would be shrunk, and how
//! long a loader takes for each.
//!
//! One worker, one core: decode, make upright, resize to the training size, as a loader does. Once as the files are,
//! once of the shrunk copy. Bounded in pictures and in time; the pictures come evenly from the whole listing.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::net::Size;
use crate::decode::{self, Chroma, Codec};
use crate::encode::{Encoder, Encoding};
use crate::engine::crew::{Crew, Item};
use crate::engine::pipe::{Pipe, Read, Scratch};
use crate::entry::Entry;
use crate::error::Result;
use crate::fault::{Cause, Fault};
use crate::normal;
use crate::pixels::{Rgb8, Scale};
use crate::resize::{Filter, Resizer, Window};
use crate::source::Listing;

/// Pictures that are decoded at most.
const PICTURES: usize = 24;
/// The time after which no further picture is begun.
const TIME: Duration = Duration::from_millis(1200);
/// The time after which no further header is looked at.
const HEADERS: Duration = Duration::from_millis(300);
/// Pictures that are decoded at least, whatever the time.
const LEAST: usize = 3;
/// The largest files, of which only the header is looked at.
const LARGEST: usize = 32;
/// The short edge of the shrunk copy: what `prep shrink` makes when nothing is said.
const SHORT_EDGE: f64 = 512.0;
/// As `prep shrink` decodes: at most so much smaller by the decoder that the filter still has two pixels for one.
const GAP: f64 = 2.0;
/// Its JPEG quality.
const QUALITY: u8 = 92;

/// What the sample told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// The pictures that could be decoded.
    pub pictures: Vec<Picture>,
    /// Sizes of the largest files.
    pub largest: Vec<(u32, u32)>,
    /// Pictures of the sample that could not be used.
    pub failed: usize,
    /// The first of them, and why.
    pub why: Option<(String, String)>,
    /// Did one fail for a reason that may pass (no memory, no time, no right to read)?
    pub passing: bool,
    /// When it was taken, in seconds since 1970.
    pub taken: u64,
}

/// One picture of the sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Stored width and height.
    pub size: (u32, u32),
    /// Bytes on disk.
    pub bytes: u64,
    /// Seconds to read, decode and resize it to the training size, on one core.
    pub seconds: f64,
    /// Its shrunk copy.
    pub shrunk: Option<Shrunk>,
}

/// The shrunk copy of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shrunk {
    /// Width and height.
    pub size: (u32, u32),
    /// Bytes as JPEG.
    pub bytes: u64,
    /// Seconds to decode and resize it to the training size, on one core.
    pub seconds: f64,
}

impl Sampled {
    /// Images a second of one worker, as they are.
    pub fn rate(&self) -> Option<f64> {
        rate(self.pictures.iter().map(|p| p.seconds))
    }

    /// Images a second of one worker, shrunk.
    pub fn shrunk_rate(&self) -> Option<f64> {
        rate(self.pictures.iter().filter_map(|p| p.shrunk.map(|s| s.seconds)))
    }
}

/// One over the median: other programs of the machine lengthen some pictures and not most.
fn rate(seconds: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = seconds.filter(|s| *s > 0.0 && s.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).map(|middle| 1.0 / middle)
}

/// Decodes a sample of `listing` for training at `size`.
///
/// # Errors
/// An interrupt.
pub fn sample(listing: &Listing, size: Size, pipe: &Pipe, crew: &Crew<'_>) -> Result<Sampled> {
    let usable: Vec<usize> =
        (0..listing.entries.len()).filter(|i| listing.entries[*i].fault.is_none()).collect();
    let chosen: Vec<usize> = spread(usable.len(), PICTURES).into_iter().map(|at| usable[at]).collect();
    let mut largest = usable.clone();
    largest.sort_by_key(|i| (std::cmp::Reverse(listing.entries[*i].bytes), *i));
    largest.truncate(LARGEST);

    let mut sampled =
        Sampled { pictures: Vec::new(), largest: Vec::new(), failed: 0, why: None, passing: false, taken: 0 };
    let mut decoded = |row: usize, picture: Result<Picture, Fault>| match picture {
        Ok(picture) => sampled.pictures.push(picture),
        Err(fault) => {
            sampled.failed += 1;
            // A decoder that crashed does so again.
            sampled.passing |= fault.cause.is_transient() && fault.cause != Cause::Crash;
            let path = || listing.entries[row].path.clone();
            sampled.why.get_or_insert_with(|| (path(), fault.to_string()));
        }
    };
    let picture = |bench: &mut Bench, entry: &Entry, item: &Item<'_>| {
        let Bench { scratch, work } = bench;
        let at = Instant::now();
        pipe.read(entry, item, scratch, |read, codec| work.picture(pipe, item, read, codec, size, at))
    };
    timed(listing, &chosen, TIME, crew, picture, &mut decoded)?;
    let stored = |bench: &mut Bench, entry: &Entry, item: &Item<'_>| {
        pipe.read(entry, item, &mut bench.scratch, |read, _| Ok((read.header().width, read.header().height)))
    };
    timed(listing, &largest, HEADERS, crew, stored, &mut |_, size| sampled.largest.extend(size))?;
    Ok(sampled)
}

/// Looks at these rows one after the other on one worker until the time is over, at a few whatever the time.
///
/// # Errors
/// An interrupt.
fn timed<T: Send>(
    listing: &Listing,
    rows: &[usize],
    limit: Duration,
    crew: &Crew<'_>,
    look: impl Fn(&mut Bench, &Entry, &Item<'_>) -> Result<T, Fault> + Sync,
    take: &mut dyn FnMut(usize, Result<T, Fault>),
) -> Result<()> {
    let one = Crew { threads: 1, cancel: crew.cancel, flight: crew.flight };
    let keys: Vec<&str> = rows.iter().map(|row| listing.entries[*row].path.as_str()).collect();
    let begun = Instant::now();
    one.run(
        &keys,
        Bench::default,
        |bench, item| {
            let late = item.index >= LEAST && begun.elapsed() > limit;
            (!late).then(|| look(bench, &listing.entries[rows[item.index]], item))
        },
        |_, fault| Some(Err(fault)),
        |at, found| {
            if let Some(found) = found {
                take(rows[at], found);
            }
            Ok(())
        },
    )
}

/// `most` of `n` places, evenly, those first that halve what is left: any beginning of it is spread too.
fn spread(n: usize, most: usize) -> Vec<usize> {
    let count = n.min(most);
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|i| (*i as u32).reverse_bits());
    order.into_iter().map(|i| i * n / count).collect()
}

#[derive(Default)]
struct Bench {
    scratch: Scratch,
    work: Work,
}

#[derive(Default)]
struct Work {
    resizer: Resizer,
    encoder: Encoder,
    encoded: Vec<u8>,
}

impl Work {
    fn picture(
        &mut self,
        pipe: &Pipe,
        item: &Item<'_>,
        read: &Read<'_>,
        codec: &mut Codec,
        size: Size,
        begun: Instant,
    ) -> Result<Picture, Fault> {
        let header = read.header();
        let stored = (header.width, header.height);
        let extra = Resizer::need_bytes(header.height, (size.1, size.0)) + 12 * 512 * 1024;
        let held = pipe.pixels(read, Scale::FULL, extra, item, codec)?;
        let small = self.resize(&held.decoded.rgb, (size.1, size.0))?;
        normal::upright_srgb(small, &held.decoded.finish);
        let seconds = begun.elapsed().as_secs_f64();
        drop(held);
        let shrunk = self.shrunk(pipe, item, read, codec, size)?;
        Ok(Picture { size: stored, bytes: read.bytes.len() as u64, seconds, shrunk: Some(shrunk) })
    }

    /// The copy that `prep shrink` would make: of the short edge, or the picture's own bytes where it is small enough.
    fn shrunk(
        &mut self,
        pipe: &Pipe,
        item: &Item<'_>,
        read: &Read<'_>,
        codec: &mut Codec,
        size: Size,
    ) -> Result<Shrunk, Fault> {
        self.encode(pipe, item, read, codec)?;
        let begun = Instant::now();
        let limits = decode::Limits { max_pixels: u64::MAX };
        let opened = decode::open(&self.encoded, std::path::Path::new("sample.jpg"), &limits)?;
        let decoded = opened.pixels(Scale::FULL, &decode::Contract::default(), codec)?;
        let small = self.resize(&decoded.rgb, (size.1, size.0))?;
        let seconds = begun.elapsed().as_secs_f64();
        drop(small);
        Ok(Shrunk { size: decoded.rgb.size(), bytes: self.encoded.len() as u64, seconds })
    }

    fn encode(
        &mut self,
        pipe: &Pipe,
        item: &Item<'_>,
        read: &Read<'_>,
        codec: &mut Codec,
    ) -> Result<(), Fault> {
        let header = read.header();
        let stored = (header.width, header.height);
        let factor = (SHORT_EDGE / f64::from(stored.0.min(stored.1))).min(1.0);
        let side = |n: u32| ((f64::from(n) * factor).round() as u32).max(1);
        let to = (side(stored.0), side(stored.1));
        self.encoded.clear();
        if to == stored
            && header.is_copied_whole(true)
            && !read.needs_profile(codec)
            && let Some(bytes) = decode::strip_jpeg(read.bytes)
        {
            self.encoded = bytes;
            return Ok(());
        }
        let scale = read.scale_for(stored, to, GAP);
        let extra = Resizer::need_bytes(scale.of(header.height), to) + 12 * u64::from(to.0) * u64::from(to.1);
        let mut held = pipe.pixels(read, scale, extra, item, codec)?;
        let small = if to == stored {
            std::mem::take(&mut held.decoded.rgb)
        } else {
            let rgb = &held.decoded.rgb;
            let (width, height) = held.decoded.true_size;
            let whole = Window { left: 0.0, top: 0.0, width, height };
            self.resizer
                .resize(rgb, whole, to, Filter::default())
                .map_err(|why| Fault::new(Cause::Encode, why))?
        };
        let upright = normal::upright_srgb(small, &held.decoded.finish);
        let encoding = Encoding::Jpeg { quality: QUALITY, chroma: Chroma::Yuv420 };
        self.encoder
            .encode(&upright, encoding, &mut self.encoded)
            .map_err(|why| Fault::new(Cause::Encode, why))
    }

    fn resize(&mut self, rgb: &Rgb8, to: (u32, u32)) -> Result<Rgb8, Fault> {
        let whole = Window { left: 0.0, top: 0.0, width: rgb.width.into(), height: rgb.height.into() };
        self.resizer.resize(rgb, whole, to, Filter::Bilinear).map_err(|why| Fault::new(Cause::Encode, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_and_so_is_its_beginning() {
        assert_eq!(spread(0, 24), Vec::<usize>::new());
        assert_eq!(spread(2, 24), [0, 1]);
        let places = spread(1000, 24);
        let mut sorted = places.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 24);
        assert!(places[..3].iter().max().unwrap() - places[..3].iter().min().unwrap() > 500, "{places:?}");
    }
}

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
/// Pictures that are decoded at least, whatever the time.
const LEAST: usize = 3;
/// The largest files, of which only the header is looked at.
const LARGEST: usize = 3;
/// The short edge of the shrunk copy: what `prep shrink` makes when nothing is said.
const SHORT_EDGE: f64 = 512.0;
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

fn rate(seconds: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum) = seconds.fold((0_u32, 0.0), |(n, sum), s| (n + 1, sum + s));
    (n > 0 && sum > 0.0).then(|| f64::from(n) / sum)
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

    let one = Crew { threads: 1, cancel: crew.cancel, flight: crew.flight };
    let keys: Vec<&str> = chosen.iter().map(|i| listing.entries[*i].path.as_str()).collect();
    let begun = Instant::now();
    let mut sampled = Sampled { pictures: Vec::new(), largest: Vec::new(), failed: 0 };
    one.run(
        &keys,
        Bench::default,
        |bench, item| {
            if item.index >= LEAST && begun.elapsed() > TIME {
                return None;
            }
            let entry = &listing.entries[chosen[item.index]];
            let Bench { scratch, work } = bench;
            let at = Instant::now();
            Some(
                pipe.read(entry, item, scratch, |read, codec| {
                    work.picture(pipe, item, read, codec, size, at)
                }),
            )
        },
        |_, fault| Some(Err(fault)),
        |_, picture| {
            match picture {
                Some(Ok(picture)) => sampled.pictures.push(picture),
                Some(Err(_)) => sampled.failed += 1,
                None => {}
            }
            Ok(())
        },
    )?;
    let keys: Vec<&str> = largest.iter().map(|i| listing.entries[*i].path.as_str()).collect();
    one.run(
        &keys,
        Scratch::default,
        |scratch, item| {
            let entry = &listing.entries[largest[item.index]];
            pipe.read(entry, item, scratch, |read, _| Ok((read.header().width, read.header().height)))
        },
        |_, fault| Err(fault),
        |_, size| {
            sampled.largest.extend(size);
            Ok(())
        },
    )?;
    Ok(sampled)
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
        let shrunk = self.shrunk(&held.decoded.rgb, codec, size)?;
        Ok(Picture { size: stored, bytes: read.bytes.len() as u64, seconds, shrunk: Some(shrunk) })
    }

    fn shrunk(&mut self, rgb: &Rgb8, codec: &mut Codec, size: Size) -> Result<Shrunk, Fault> {
        let factor = (SHORT_EDGE / f64::from(rgb.width.min(rgb.height))).min(1.0);
        let side = |n: u32| ((f64::from(n) * factor).round() as u32).max(1);
        let small = self.resize(rgb, (side(rgb.width), side(rgb.height)))?;
        self.encoded.clear();
        let encoding = Encoding::Jpeg { quality: QUALITY, chroma: Chroma::Yuv420 };
        self.encoder
            .encode(&small, encoding, &mut self.encoded)
            .map_err(|why| Fault::new(Cause::Encode, why))?;
        let begun = Instant::now();
        let limits = decode::Limits { max_pixels: u64::MAX };
        let opened = decode::open(&self.encoded, std::path::Path::new("sample.jpg"), &limits)?;
        let decoded = opened.pixels(Scale::FULL, &decode::Contract::default(), codec)?;
        let small = self.resize(&decoded.rgb, (size.1, size.0))?;
        let seconds = begun.elapsed().as_secs_f64();
        drop(small);
        Ok(Shrunk { size: decoded.rgb.size(), bytes: self.encoded.len() as u64, seconds })
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

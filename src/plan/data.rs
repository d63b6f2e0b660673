//! What is known of the pictures of a set, and the ledger of it: one image, a batch, an epoch, the disk.

use super::gpu::shown_size;
use super::host::{Decoded, sample_line};
use super::ledger::Line;
use super::net::Size;
use super::sample::Sampled;
use crate::entry::Entry;
use crate::manifest::{Places, Row};
use crate::source::Listing;

/// The longest side of a picture that a manifest is believed.
const SIDE: u32 = 1 << 20;
/// What tar adds to a file: a heading of 512 bytes, and half a block of 512 at its end, on average.
const PACKED: u64 = 768;
/// Bytes of a shard of packed images.
const SHARD: u64 = 64 << 20;

/// What is known of a set.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Usable images, as far as the listing tells.
    pub images: u64,
    /// Of these, the ones that are trained on: the part called `train`, else all.
    pub trained: u64,
    /// Bytes of all usable images on disk.
    pub bytes: u64,
    /// Width and height of the median picture by pixels, upright or not.
    pub usual: (u32, u32),
    /// Of the largest.
    pub largest: (u32, u32),
    /// Pixels of a picture, on average.
    pub mean_pixels: f64,
    /// Pictures whose size is known.
    pub sized: u64,
    /// Are these all, from the manifest? Else a sample was looked at.
    pub exact: bool,
    /// Bytes of a shrunk copy and its pixels, on average, where a sample was shrunk.
    pub shrunk: Option<(f64, f64)>,
    /// The usual shrunk copy.
    pub shrunk_size: Option<(u32, u32)>,
}

/// What the listing, its manifest and the sample tell. None where no picture's size is known.
pub fn facts(listing: &Listing, sampled: Option<&Sampled>) -> Option<Facts> {
    let usable: Vec<&Entry> = listing.entries.iter().filter(|e| e.fault.is_none()).collect();
    let trained = usable.iter().filter(|e| e.split == "train").count();
    let written = sizes_of_manifest(listing, &usable);
    let exact = written.len() == usable.len() && !written.is_empty();
    let mut sizes = if exact {
        written
    } else {
        sampled.map(|s| s.pictures.iter().map(|p| p.size).collect()).unwrap_or_default()
    };
    if let (false, Some(sampled)) = (exact, sampled) {
        sizes.extend(&sampled.largest);
    }
    let pixels = |(w, h): (u32, u32)| u64::from(w) * u64::from(h);
    sizes.sort_by_key(|size| (pixels(*size), *size));
    let largest = *sizes.last()?;
    // The largest files were looked at for their size alone; they are not the usual ones.
    let of_all = if exact { sizes.len() } else { sampled.map_or(0, |s| s.pictures.len()).max(1) };
    let middle = sizes.get(of_all / 2).copied().unwrap_or(largest);
    let sum: u64 = if exact {
        sizes.iter().fold(0, |all: u64, s| all.saturating_add(pixels(*s)))
    } else {
        let pictures = sampled.map_or(&[][..], |s| &s.pictures);
        pictures.iter().fold(0, |all: u64, p| all.saturating_add(pixels(p.size)))
    };
    let shrunk: Vec<_> =
        sampled.map(|s| s.pictures.iter().filter_map(|p| p.shrunk).collect()).unwrap_or_default();
    let mean =
        |f: &dyn Fn(&super::sample::Shrunk) -> f64| shrunk.iter().map(f).sum::<f64>() / shrunk.len() as f64;
    let mut small: Vec<_> = shrunk.iter().map(|s| s.size).collect();
    small.sort_by_key(|size| (pixels(*size), *size));
    Some(Facts {
        images: usable.len() as u64,
        trained: if trained > 0 { trained } else { usable.len() } as u64,
        bytes: usable.iter().fold(0, |all: u64, e| all.saturating_add(e.bytes)),
        usual: middle,
        largest,
        mean_pixels: sum as f64 / of_all.max(1) as f64,
        sized: sizes.len() as u64,
        exact,
        shrunk: (!shrunk.is_empty()).then(|| (mean(&|s| s.bytes as f64), mean(&|s| pixels(s.size) as f64))),
        shrunk_size: small.get(small.len() / 2).copied(),
    })
}

fn sizes_of_manifest(listing: &Listing, usable: &[&Entry]) -> Vec<(u32, u32)> {
    let Some(table) = &listing.table else { return Vec::new() };
    let Some(places) = Places::find(table) else { return Vec::new() };
    usable
        .iter()
        .filter_map(|entry| {
            let row = Row::read(table, &places, entry.row?).ok()?;
            // A size that no picture has is a mistake of the table, and not known.
            Some((row.width?, row.height?)).filter(|(w, h)| (1..=SIDE).contains(w) && (1..=SIDE).contains(h))
        })
        .collect()
}

impl Facts {
    /// As the loader's memory wants it.
    pub fn decoded(&self) -> Decoded {
        let all_bytes = (self.mean_pixels * 3.0 * self.images as f64) as u64;
        Decoded { usual: self.usual, largest: self.largest, images: self.images, all_bytes }
    }
}

/// One image, a batch, the way to the card.
pub fn tensor_lines(size: Size, batch: u64, value_bytes: u64) -> Vec<Line> {
    let square = |key, what: String, bytes| Line { key, what, ..sample_line(size, bytes) };
    let name = shown_size(size);
    let batch_of = [
        ("images", batch),
        ("high", size.0.into()),
        ("wide", size.1.into()),
        ("channels", 3),
        ("bytes", value_bytes),
    ];
    vec![
        square("tensor_uint8", format!("one image at {name}, uint8"), 1),
        square("tensor_fp16", format!("one image at {name}, fp16"), 2),
        square("tensor_fp32", format!("one image at {name}, fp32"), 4),
        Line::product("batch", format!("a batch of {batch}, as it goes to the card each step"), &batch_of),
    ]
}

/// The set: on disk, as it is, shrunk and packed; and what an epoch moves.
pub fn set_lines(facts: &Facts, size: Size, batch: u64, value_bytes: u64) -> Vec<Line> {
    let decoded = |key, what: String, (w, h): (u32, u32)| {
        Line::product(key, what, &[("wide", w.into()), ("high", h.into()), ("channels", 3)])
    };
    let mut lines = vec![
        Line::given(
            "image_disk",
            "one image on disk, on average",
            "bytes of all / images",
            facts.bytes.checked_div(facts.images).unwrap_or(0),
        ),
        decoded("image_decoded", "the usual image, decoded".into(), facts.usual),
        decoded(
            "image_largest",
            if facts.exact { "the largest image, decoded" } else { "the largest image seen, decoded" }.into(),
            facts.largest,
        ),
    ];
    if let Some(size) = facts.shrunk_size {
        lines.push(decoded("image_shrunk", "the usual image, shrunk, decoded".into(), size));
    }
    lines.push(Line::given("disk", "the set on disk, as it is", "bytes of all files", facts.bytes));
    if let Some((bytes, _)) = facts.shrunk {
        let each = bytes.round() as u64;
        lines.push(Line::product(
            "disk_shrunk",
            "the set, as `prep shrink` makes it (short edge 512)",
            &[("images", facts.images), ("bytes on average", each)],
        ));
    }
    if let Some((bytes, _)) = facts.shrunk {
        let packed = (bytes.round() as u64).saturating_add(PACKED);
        lines.push(Line::product(
            "disk_packed",
            "the same packed into shards (tar), JPEG as it is",
            &[("images", facts.images), ("bytes with heading", packed)],
        ));
    }
    let pixels = facts.shrunk.map_or(facts.mean_pixels, |(_, pixels)| pixels).round() as u64;
    if pixels > 0 {
        lines.push(Line::product(
            "disk_decoded",
            if facts.shrunk.is_some() {
                "the same packed as decoded pixels"
            } else {
                "the set packed as decoded pixels"
            },
            &[("images", facts.images), ("pixels on average", pixels), ("channels", 3)],
        ));
    }
    let sample = sample_line(size, value_bytes).bytes;
    let whole = facts.trained.div_ceil(batch.max(1));
    lines.push(Line::product(
        "epoch_h2d",
        format!("what an epoch sends to the card, in {whole} {}", if whole == 1 { "step" } else { "steps" }),
        &[("images", facts.trained), ("bytes", sample)],
    ));
    lines
}

/// Files (and inodes) as it is, and in shards of 64 MiB when packed.
pub fn inodes(facts: &Facts) -> (u64, u64) {
    let packed = facts.shrunk.map_or(facts.bytes, |(bytes, _)| (bytes * facts.images as f64) as u64);
    (facts.images, packed.div_ceil(SHARD).max(1))
}

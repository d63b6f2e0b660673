//! `prep stats`: exact normalization constants of the rows that a network trains on, and what sizes and modes they have.

mod emit;
mod sums;
mod view;

use std::collections::BTreeMap;

pub use self::emit::{Emit, emit};
pub use self::sums::{Moments, Sums, Weight};
pub use self::view::View;
use crate::decode::Codec;
use crate::engine::crew::{Crew, Item};
use crate::engine::pipe::{Pipe, Read, Scratch};
use crate::engine::progress::{Tally, Watch};
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::fault::{Cause, Fault};
use crate::home::{Training, Which};
use crate::measure::ImageSums;
use crate::normal;
use crate::pixels::Scale;
use crate::resize::Resizer;
use crate::source::{Listing, labels_of};

/// The constants that pretrained models of torchvision and timm expect.
pub const IMAGENET: Moments = Moments { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };

/// See `GAP` of shrink: what a filter needs to work as on the whole picture.
const GAP: f64 = 2.0;

/// What is computed.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// After this resize and crop; `None`: every pixel of the upright sRGB picture.
    pub view: Option<View>,
    /// Parts that get numbers of their own.
    pub by: By,
}

/// How rows are parted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Not at all.
    Nothing,
    /// By label; an image with several counts in each.
    Class,
    /// By part of the split.
    Split,
}

/// What a picture is like.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    sums: ImageSums,
    size: (u32, u32),
    mode: String,
}

/// The upright size of a picture, or why it is not usable.
pub type Found = Result<(u32, u32), Fault>;

/// The numbers.
#[derive(Debug, Clone)]
pub struct Report {
    /// Which rows.
    pub rows: Which,
    /// All of them together.
    pub all: Sums,
    /// Each part, by name.
    pub parts: BTreeMap<String, Sums>,
    /// Upright sizes and how many images have them.
    pub sizes: BTreeMap<(u32, u32), usize>,
    /// Modes and how many images have them.
    pub modes: BTreeMap<String, usize>,
    /// Rows that were left out although they belong here, by the fault's code; with the first path and sentence.
    pub left_out: BTreeMap<&'static str, (usize, String)>,
    /// What was found of each row, by place in the listing, ascending: its upright size, or why it is not usable.
    pub found: Vec<(usize, Found)>,
}

/// Measures the rows `training` of `listing`.
///
/// # Errors
/// An interrupt, or no usable row.
pub fn run(
    listing: &Listing,
    training: &Training,
    options: &Options,
    pipe: &Pipe,
    crew: &Crew<'_>,
    watch: &mut dyn Watch,
) -> Result<Report> {
    let chosen = &training.rows;
    let keys: Vec<&str> = chosen.iter().map(|i| listing.entries[*i].path.as_str()).collect();
    let total_bytes = chosen.iter().map(|i| listing.entries[*i].bytes).sum();
    let mut tally = Tally { total: chosen.len(), total_bytes, ..Tally::default() };
    let mut report = Report::new(training);
    let outcome = crew.run(
        &keys,
        || (Scratch::default(), Resizer::default()),
        |(scratch, resizer), item| {
            let entry = &listing.entries[chosen[item.index]];
            pipe.read(entry, item, scratch, |read, codec| look(options, pipe, read, item, codec, resizer))
        },
        |_, fault| Err(fault),
        |k, seen| {
            tally.done += 1;
            tally.bytes += listing.entries[chosen[k]].bytes;
            tally.bad += usize::from(seen.is_err());
            report.take(listing, chosen[k], options.by, seen);
            watch.step(&tally);
            Ok(())
        },
    );
    watch.end();
    outcome?;
    report.finished()
}

/// The same of every pixel, from what is known of the rows: `facts`, one for each of `rows`, in their order.
///
/// # Errors
/// No usable row.
pub fn of_facts(listing: &Listing, training: &Training, by: By, facts: &[Facts]) -> Result<Report> {
    let mut report = Report::new(training);
    for (at, facts) in training.rows.iter().zip(facts) {
        // A file that the table does not name is looked at, but no row of the set.
        let fault = listing.entries[*at].fault.as_ref().or(facts.fault.as_ref());
        let seen = match (fault, &facts.seen, &facts.header) {
            (None, Some(seen), Some(header)) => {
                Ok(Seen { sums: seen.sums, size: header.upright_size(), mode: header.src_mode() })
            }
            (Some(fault), ..) => Err(fault.clone()),
            _ => return Err(Error::Internal("facts without a fault and without pixels".into())),
        };
        report.take(listing, *at, by, seen);
    }
    report.finished()
}

impl Report {
    fn new(training: &Training) -> Self {
        Self {
            rows: training.which.clone(),
            all: Sums::default(),
            parts: BTreeMap::new(),
            sizes: BTreeMap::new(),
            modes: BTreeMap::new(),
            left_out: BTreeMap::new(),
            found: Vec::with_capacity(training.rows.len()),
        }
    }

    /// Takes what was found of entry `at`.
    fn take(&mut self, listing: &Listing, at: usize, by: By, seen: Result<Seen, Fault>) {
        let entry = &listing.entries[at];
        match &seen {
            Ok(seen) => self.add(seen, &parts_of(by, &entry.label, &entry.split)),
            Err(fault) => self.leave(&entry.path, fault),
        }
        self.found.push((at, seen.map(|seen| seen.size)));
    }

    fn finished(self) -> Result<Self> {
        if self.all.images == 0 {
            return Err(Error::Usage("none of these rows is a usable picture".into()));
        }
        Ok(self)
    }

    fn add(&mut self, seen: &Seen, parts: &[String]) {
        self.all.add(&seen.sums);
        for part in parts {
            self.parts.entry(part.clone()).or_default().add(&seen.sums);
        }
        *self.sizes.entry(seen.size).or_default() += 1;
        *self.modes.entry(seen.mode.clone()).or_default() += 1;
    }

    fn leave(&mut self, path: &str, fault: &Fault) {
        let first = || (0, format!("{path}: {}", fault.detail));
        self.left_out.entry(fault.cause.code()).or_insert_with(first).0 += 1;
    }
}

fn parts_of(by: By, label: &str, split: &str) -> Vec<String> {
    match by {
        By::Nothing => Vec::new(),
        By::Class if label.is_empty() => vec!["(no label)".into()],
        By::Class => labels_of(label).map(str::to_owned).collect(),
        By::Split if split.is_empty() => vec!["(no part)".into()],
        By::Split => vec![split.to_owned()],
    }
}

fn look(
    options: &Options,
    pipe: &Pipe,
    read: &Read<'_>,
    item: &Item<'_>,
    codec: &mut Codec,
    resizer: &mut Resizer,
) -> Result<Seen, Fault> {
    let header = read.header();
    let size = header.upright_size();
    let mode = header.src_mode();
    let Some(view) = options.view else {
        let mut held = pipe.pixels(read, Scale::FULL, 0, item, codec)?;
        normal::srgb(&mut held.decoded.rgb, &held.decoded.finish);
        return Ok(Seen { sums: ImageSums::of(&held.decoded.rgb), size, mode });
    };
    let to = view.resized(size);
    let stored_to = if header.orientation.swaps() { (to.1, to.0) } else { to };
    let scale = read.scale_for((header.width, header.height), stored_to, GAP);
    let extra = Resizer::need_bytes(scale.of(size.1), to) + 6 * u64::from(to.0) * u64::from(to.1);
    let held = pipe.pixels(read, scale, extra, item, codec)?;
    let (w, h) = held.decoded.true_size;
    let reduced = if header.orientation.swaps() { (h, w) } else { (w, h) };
    let picture = normal::upright_srgb(held.decoded.rgb, &held.decoded.finish);
    let seen = view.of(&picture, reduced, size, resizer).map_err(|why| Fault::new(Cause::Encode, why))?;
    Ok(Seen { sums: ImageSums::of(&seen), size, mode })
}

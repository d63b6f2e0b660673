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
use crate::fault::{Cause, Fault};
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

/// Which rows the numbers are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rows {
    /// The training part of a split.
    Train,
    /// The part that was asked for.
    Part(String),
    /// All, since there is no split.
    All,
    /// All, whatever their part.
    Every,
    /// All, since there are folds and no parts.
    Folds,
}

impl Rows {
    /// In words.
    pub fn sentence(&self) -> String {
        match self {
            Self::Train => "training rows".into(),
            Self::Part(name) => format!("rows of the part `{name}`"),
            Self::All => "all rows (there is no split)".into(),
            Self::Every => "all rows".into(),
            Self::Folds => "all rows (there are folds and no parts)".into(),
        }
    }
}

/// What a picture is like.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    sums: ImageSums,
    size: (u32, u32),
    mode: String,
}

/// The numbers.
#[derive(Debug, Clone)]
pub struct Report {
    /// Which rows.
    pub rows: Rows,
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
}

/// The rows to measure: the training part where there is a split.
///
/// # Errors
/// [`Error::Usage`] when the split has no part `train`.
pub fn choose(listing: &Listing, asked: Option<&str>, by: By) -> Result<(Rows, Vec<usize>)> {
    let all: Vec<usize> = (0..listing.entries.len()).collect();
    if let Some(name) = asked {
        return Ok((Rows::Part(name.to_owned()), all));
    }
    let has_split = listing.entries.iter().any(|e| !e.split.is_empty());
    if !has_split || by == By::Split {
        return Ok((if has_split { Rows::Every } else { Rows::All }, all));
    }
    let train: Vec<usize> = all.into_iter().filter(|i| listing.entries[*i].split == "train").collect();
    if train.is_empty() {
        let why = "the split has no part called `train`; say with --split NAME which part is trained on";
        return Err(Error::Usage(why.into()));
    }
    Ok((Rows::Train, train))
}

/// Measures the rows `chosen` of `listing`.
///
/// # Errors
/// An interrupt, or no usable row.
pub fn run(
    listing: &Listing,
    (rows, chosen): (Rows, &[usize]),
    options: &Options,
    pipe: &Pipe,
    crew: &Crew<'_>,
    watch: &mut dyn Watch,
) -> Result<Report> {
    let keys: Vec<&str> = chosen.iter().map(|i| listing.entries[*i].path.as_str()).collect();
    let total_bytes = chosen.iter().map(|i| listing.entries[*i].bytes).sum();
    let mut tally = Tally { total: chosen.len(), total_bytes, ..Tally::default() };
    let mut report = Report {
        rows,
        all: Sums::default(),
        parts: BTreeMap::new(),
        sizes: BTreeMap::new(),
        modes: BTreeMap::new(),
        left_out: BTreeMap::new(),
    };
    let outcome = crew.run(
        &keys,
        || (Scratch::default(), Resizer::default()),
        |(scratch, resizer), item| {
            let entry = &listing.entries[chosen[item.index]];
            pipe.read(entry, item, scratch, |read, codec| look(options, pipe, read, item, codec, resizer))
        },
        |_, fault| Err(fault),
        |k, seen| {
            let entry = &listing.entries[chosen[k]];
            tally.done += 1;
            tally.bytes += entry.bytes;
            match seen {
                Ok(seen) => report.add(&seen, &parts_of(options.by, &entry.label, &entry.split)),
                Err(fault) => {
                    tally.bad += 1;
                    report.leave(&entry.path, &fault);
                }
            }
            watch.step(&tally);
            Ok(())
        },
    );
    watch.end();
    outcome?;
    if report.all.images == 0 {
        return Err(Error::Usage("none of these rows is a usable picture".into()));
    }
    Ok(report)
}

impl Report {
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
        let held = pipe.pixels(read, Scale::FULL, 0, item, codec)?;
        let picture = normal::upright_srgb(held.decoded.rgb, &held.decoded.finish);
        return Ok(Seen { sums: ImageSums::of(&picture), size, mode });
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

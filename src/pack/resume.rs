//! What an earlier run has finished: one line of the journal a shard, and what of it still holds.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::one::stamp;
use super::order::Part;
use super::shelf::Kept;
use crate::entry::Entry;
use crate::fault::Fault;
use crate::measure::ImageSums;
use crate::shards::{FileSum, Form, Row, Shard};
use crate::source::{Listing, labels_of};

/// Pixel sums of a shard, for the normalization constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sums {
    /// Pixels.
    pub pixels: u64,
    /// Sums of values.
    pub sum: [u64; 3],
    /// Sums of squares.
    pub squares: [u64; 3],
    /// Samples that were not decoded, whose pixels are not among these.
    pub unseen: u64,
}

impl Sums {
    /// Adds a sample.
    pub fn add(&mut self, sums: Option<&ImageSums>) {
        let Some(sums) = sums else {
            self.unseen += 1;
            return;
        };
        self.pixels += sums.pixels;
        for c in 0..3 {
            self.sum[c] += sums.sum[c];
            self.squares[c] += sums.squares[c];
        }
    }
}

impl Sums {
    /// Adds the sums of another shard.
    pub fn merge(&mut self, other: &Self) {
        self.pixels += other.pixels;
        self.unseen += other.unseen;
        for c in 0..3 {
            self.sum[c] += other.sum[c];
            self.squares[c] += other.squares[c];
        }
    }

    /// Mean and standard deviation of the population per channel, of values from 0 to 1. Exact up to the last division.
    pub fn moments(&self) -> ([f64; 3], [f64; 3]) {
        let n = u128::from(self.pixels.max(1));
        let mean = self.sum.map(|sum| sum as f64 / n as f64 / 255.0);
        let mut std = [0.0; 3];
        for (c, std) in std.iter_mut().enumerate() {
            let (sum, squares) = (u128::from(self.sum[c]), u128::from(self.squares[c]));
            let spread = (n * squares).saturating_sub(sum * sum);
            *std = (spread as f64).sqrt() / n as f64 / 255.0;
        }
        (mean, std)
    }
}

/// A finished shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The part.
    pub split: String,
    /// Its place among the part's shards.
    pub number: usize,
    /// The file.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its hash.
    pub xxh3: u64,
    /// Where the first payload begins.
    pub image0: u64,
    /// The part's rows from here …
    pub from: usize,
    /// … to here (not included) are in this shard or left out.
    pub to: usize,
    /// Its samples: row, size, h, w, label, group, crc32, flags, offset; hash of the source.
    samples: Vec<([u64; 9], String)>,
    /// Rows of the stretch that are not usable, with their faults.
    pub left: Vec<(u32, String)>,
    /// The source of each row of the stretch, in order.
    stamps: Vec<[u64; 3]>,
    /// What the input said of these rows, and of the one after them that did not fit: see [`digest`].
    said: String,
    /// The source of the row that did not fit; none at the end of the part.
    next: Option<[u64; 3]>,
    /// Sums of the pixels.
    pub sums: Sums,
}

/// What a stretch of rows became.
pub struct Stretch<'a> {
    /// The part.
    pub part: &'a Part,
    /// The shard's place.
    pub number: usize,
    /// Rows of the part.
    pub from: usize,
    /// Not included.
    pub to: usize,
    /// Rows that are not usable.
    pub left: Vec<(u32, String)>,
    /// Stamps of all rows in order, taken before they were read.
    pub stamps: Vec<[u64; 3]>,
    /// See [`digest`]; of one row more, where there is one.
    pub said: String,
    /// The stamp of that row.
    pub next: Option<[u64; 3]>,
    /// Sums of the pixels.
    pub sums: Sums,
}

impl Line {
    /// The line of a shard that is on disk under its name.
    pub fn new(stretch: Stretch<'_>, shard: &Shard, kept: &[Kept]) -> Self {
        let numbers = |row: &Row| {
            [
                u64::from(row.row),
                u64::from(row.size),
                u64::from(row.h),
                u64::from(row.w),
                i64::from(row.label) as u64,
                i64::from(row.group) as u64,
                u64::from(row.crc32),
                u64::from(row.flags),
                row.offset,
            ]
        };
        Self {
            split: stretch.part.name.clone(),
            number: stretch.number,
            name: shard.name.clone(),
            bytes: shard.sum.bytes,
            xxh3: shard.sum.xxh3,
            image0: shard.image0,
            from: stretch.from,
            to: stretch.to,
            samples: kept.iter().map(|kept| (numbers(&kept.row), kept.hex())).collect(),
            left: stretch.left,
            stamps: stretch.stamps,
            said: stretch.said,
            next: stretch.next,
            sums: stretch.sums,
        }
    }

    /// As a line of the journal.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The line that was written as `text`; `None` when it is of another version.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The shard.
    pub fn shard(&self) -> Shard {
        let sum = FileSum { bytes: self.bytes, xxh3: self.xxh3 };
        Shard { name: self.name.clone(), sum, rows: self.samples.len(), image0: self.image0 }
    }

    /// Its samples.
    pub fn kept(&self) -> Vec<Kept> {
        self.samples.iter().map(|(numbers, hash)| kept_of(numbers, hash, self.number)).collect()
    }

    /// Would the shard be the same again: the same rows, of which the input says the same, from sources that did not
    /// change; and after them the row that did not fit, or the end of the part? Faults that may be gone by now are tried again unless `same_run`.
    fn sources_hold(&self, part: &Part, input: &Input<'_>, same_run: bool) -> bool {
        let listing = input.listing;
        let rows = part.rows.get(self.from..self.to);
        let Some(rows) = rows.filter(|rows| rows.len() == self.stamps.len()) else { return false };
        let now = |row: &u32| stamp(&listing.entries[*row as usize].file);
        let with_next = &part.rows[self.from..part.rows.len().min(self.to + 1)];
        if self.said != digest(input, with_next) || self.next != part.rows.get(self.to).map(now) {
            return false;
        }
        let lasting = |(_, text): &(u32, String)| {
            Fault::parse(text).is_some_and(|fault| same_run || !fault.cause.is_transient())
        };
        let in_range = self.samples.iter().all(|(numbers, _)| rows.contains(&(numbers[0] as u32)));
        in_range
            && self.left.iter().all(lasting)
            && rows.iter().zip(&self.stamps).all(|(row, before)| now(row) == *before)
    }
}

/// What a shard takes from the input beside pictures.
pub struct Input<'a> {
    /// The rows.
    pub listing: &'a Listing,
    classes: HashMap<&'a str, i32>,
    groups: HashMap<&'a str, i32>,
}

impl<'a> Input<'a> {
    /// Gives classes and groups their indices.
    pub fn new(listing: &'a Listing) -> Self {
        let classes = listing.classes.iter().zip(0..).map(|(name, i)| (name.as_str(), i)).collect();
        let mut groups: Vec<&str> = listing
            .entries
            .iter()
            .map(|entry| entry.group.as_str())
            .filter(|group| !group.is_empty())
            .collect();
        groups.sort_unstable();
        groups.dedup();
        Self { listing, classes, groups: groups.into_iter().zip(0..).collect() }
    }

    /// The index of the one class of `entry`, else -1; and how many classes it has.
    pub fn label(&self, entry: &Entry) -> (i32, usize) {
        let mut labels: Vec<&str> = labels_of(&entry.label).collect();
        labels.dedup();
        let label = match labels.as_slice() {
            [one] => self.classes.get(one).copied().unwrap_or(-1),
            _ => -1,
        };
        (label, labels.len())
    }

    /// The index of its group, -1 without one.
    pub fn group(&self, entry: &Entry) -> i32 {
        self.groups.get(entry.group.as_str()).copied().unwrap_or(-1)
    }
}

/// Everything that the input says of `rows` and a shard repeats, in few characters: their places, paths, labels and groups
/// with their indices. A file that was added elsewhere changes none of it where it comes after them in the input.
pub fn digest(input: &Input<'_>, rows: &[u32]) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut text = |text: &str, index: i64| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
        hasher.update(&index.to_le_bytes());
    };
    for row in rows {
        let entry = &input.listing.entries[*row as usize];
        text(&entry.path, i64::from(*row));
        text(&entry.label, i64::from(input.label(entry).0));
        text(&entry.group, i64::from(input.group(entry)));
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

fn kept_of(n: &[u64; 9], hash: &str, number: usize) -> Kept {
    let mut bytes = [0; 16];
    for (byte, digits) in bytes.iter_mut().zip(hash.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).unwrap_or("0");
        *byte = u8::from_str_radix(digits, 16).unwrap_or(0);
    }
    let row = Row {
        offset: n[8],
        shard: number as u32,
        size: n[1] as u32,
        h: n[2] as u16,
        w: n[3] as u16,
        label: n[4] as i64 as i32,
        group: n[5] as i64 as i32,
        crc32: n[6] as u32,
        row: n[0] as u32,
        flags: n[7] as u32,
    };
    Kept { row, hash: bytes }
}

/// Rows of a part that go into one shard, or, at the end of a part, into as many as they fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The part, by place.
    pub part: usize,
    /// The first shard.
    pub number: usize,
    /// Rows of the part.
    pub from: usize,
    /// Not included.
    pub to: usize,
    /// Exactly one shard, of so many samples: the one that was there before had these rows.
    pub one: Option<usize>,
}

/// What is to be done, and the shards that hold.
#[derive(Debug, Default)]
pub struct Plan {
    /// In the order of the parts and their rows.
    pub runs: Vec<Run>,
    /// Shards that hold, by part and number.
    pub kept: HashMap<(usize, usize), Line>,
}

/// Looks which shards of the journal `lines` still hold below `root`: their sources are the same and so are their
/// bytes. A part whose sources changed is made anew from the first shard that this touches.
pub fn plan(
    root: &Path,
    parts: &[Part],
    input: &Input<'_>,
    form: &Form,
    lines: Vec<Line>,
    same_run: bool,
) -> Plan {
    let mut by_place: HashMap<(String, usize), Line> =
        lines.into_iter().map(|line| ((line.split.clone(), line.number), line)).collect();
    let mut plan = Plan::default();
    for (index, part) in parts.iter().enumerate() {
        let (mut number, mut at) = (0, 0);
        while let Some(line) = by_place.remove(&(part.name.clone(), number)) {
            let named = line.name == form.shard_name(&part.folder, number);
            if !named || line.from != at || line.to <= at || !line.sources_hold(part, input, same_run) {
                break;
            }
            let (from, to) = (at, line.to);
            let path = root.join(&part.folder).join(&line.name);
            if FileSum::of_file(&path).is_ok_and(|sum| sum == line.shard().sum) {
                plan.kept.insert((index, number), line);
            } else {
                plan.runs.push(Run { part: index, number, from, to, one: Some(line.samples.len()) });
            }
            (number, at) = (number + 1, to);
        }
        if at < part.rows.len() {
            plan.runs.push(Run { part: index, number, from: at, to: part.rows.len(), one: None });
        }
    }
    plan
}

//! Which rows a split is about, and why the others are not.

use std::collections::BTreeMap;

use super::groups::{Column, no_column, only_one};
use super::options::{Method, Options};
use super::{Earlier, Place};
use crate::entry::Entry;
use crate::error::Result;
use crate::fault::{Cause, Oddity, Status};
use crate::names::shown;
use crate::source::{Listing, is_null};

/// Why a row is in no part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It is not usable; the code of its fault.
    Fault(Cause),
    /// Its rows in the table disagree about the label.
    Conflicting,
    /// It has no label, and labels are to be spread.
    NoLabel,
    /// It has no time, and time decides.
    NoTime,
}

impl Why {
    /// A stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Fault(cause) => cause.code(),
            Self::Conflicting => "conflicting_rows",
            Self::NoLabel => "no_label",
            Self::NoTime => "no_time",
        }
    }

    /// For a person, after a number of images.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Fault(Cause::Missing) => "named by the table, not on disk",
            Self::Fault(Cause::Unlisted) => "on disk, not named by the table",
            Self::Fault(Cause::Excluded) => "excluded",
            Self::Fault(cause) if cause.status() == Status::Damaged => "damaged",
            Self::Fault(cause) if cause.status() == Status::Unsupported => "of an unsupported format",
            Self::Fault(cause) if cause.status() == Status::Skipped => "not readable",
            Self::Fault(_) => "bad",
            Self::Conflicting => "with rows that disagree about the label",
            Self::NoLabel => "without a label",
            Self::NoTime => "without a time",
        }
    }
}

/// Rows that are left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The reason.
    pub why: Why,
    /// How many.
    pub n: usize,
    /// The paths of the first few.
    pub first: Vec<String>,
}

/// How many paths are kept of each reason.
const FIRST: usize = 5;

/// The rows of a split.
pub(super) struct Rows {
    /// As places in the listing.
    pub(super) rows: Vec<u32>,
    /// For each of them where it stays; none where it is to be dealt.
    pub(super) fixed: Vec<Option<Place>>,
    /// The others, by reason.
    pub(super) left_out: Vec<LeftOut>,
}

/// The rows to split, with those that stay where they are.
///
/// # Errors
/// A time column that is not there.
pub(super) fn rows(listing: &Listing, options: &Options, earlier: &Earlier) -> Result<Rows> {
    let by_label = options.method != Method::Hash && options.stratify.iter().any(Option::is_none);
    let by_label = by_label && listing.entries.iter().any(|e| !e.label.is_empty());
    let time = match &options.method {
        Method::Time(name) => {
            only_one(listing, "--time", name)?;
            Some(Column::find(listing, name).ok_or_else(|| no_column("--time", name, listing))?)
        }
        _ => None,
    };
    let why = |at: usize, entry: &Entry| -> Option<Why> {
        if let Some(fault) = &entry.fault {
            return Some(Why::Fault(fault.cause));
        }
        // Files are not opened here, but one of no bytes is no picture.
        if entry.bytes == 0 && !entry.file.as_os_str().is_empty() {
            return Some(Why::Fault(Cause::Empty));
        }
        if entry.label.is_empty() && by_label {
            let conflict = entry.notes.iter().any(|n| n.kind == Oddity::ConflictingRows);
            return Some(if conflict { Why::Conflicting } else { Why::NoLabel });
        }
        time.filter(|column| is_null(column.cell(listing, at))).map(|_| Why::NoTime)
    };
    let mut rows = Vec::with_capacity(listing.entries.len());
    let mut fixed = Vec::with_capacity(listing.entries.len());
    let mut out: BTreeMap<Why, LeftOut> = BTreeMap::new();
    for (at, entry) in listing.entries.iter().enumerate() {
        let stays = earlier.fixed.get(at).copied().flatten();
        let outside = earlier.outside.get(at).copied().unwrap_or_default();
        if stays.is_some() && entry.fault.is_none() {
            rows.push(at as u32);
            fixed.push(stays);
            continue;
        }
        if outside {
            continue;
        }
        match why(at, entry) {
            None => {
                rows.push(at as u32);
                fixed.push(None);
            }
            Some(why) => {
                let left = out.entry(why).or_insert_with(|| LeftOut { why, n: 0, first: Vec::new() });
                left.n += 1;
                if left.first.len() < FIRST {
                    left.first.push(entry.path.clone());
                }
            }
        }
    }
    Ok(Rows { rows, fixed, left_out: out.into_values().collect() })
}

/// "3 without a label (a.jpg, …), 2 bad (b.jpg, …)".
pub fn sentence(left_out: &[LeftOut]) -> String {
    let parts: Vec<String> = left_out
        .iter()
        .map(|l| {
            let first = l.first.first().map(|p| shown(p).to_string()).unwrap_or_default();
            let more = if l.n > 1 { ", …" } else { "" };
            format!("{} {} ({first}{more})", l.n, l.why.sentence())
        })
        .collect();
    parts.join(", ")
}

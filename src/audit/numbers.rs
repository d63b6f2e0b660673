//! Labels that are measured numbers (regression): there are no classes, but a scale on which labels can be near or far.

use super::finding::Finding;
use crate::names::shown;
use crate::source::{Listing, are_measurements, number_of};

/// A number so many times the middle half's width beyond it is far from all others.
const FAR: f64 = 10.0;

/// How the labels are spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbers {
    /// The smallest.
    pub least: f64,
    /// A quarter is below it.
    pub lower: f64,
    /// The one in the middle.
    pub median: f64,
    /// A quarter is above it.
    pub upper: f64,
    /// The largest.
    pub most: f64,
}

impl Numbers {
    /// The labels of `listing`, where they are measurements.
    pub fn of(listing: &Listing) -> Option<Self> {
        if !are_measurements(&listing.classes) {
            return None;
        }
        let mut all: Vec<f64> = listing.entries.iter().filter_map(|e| number_of(&e.label)).collect();
        all.sort_by(f64::total_cmp);
        let at = |share: usize| all.get(share * all.len().saturating_sub(1) / 4).copied();
        Some(Self { least: at(0)?, lower: at(1)?, median: at(2)?, upper: at(3)?, most: at(4)? })
    }

    /// The width of the middle half; of all where that half is one number.
    pub fn spread(&self) -> f64 {
        let middle = self.upper - self.lower;
        if middle > 0.0 { middle } else { self.most - self.least }
    }

    /// "numbers from 1.5 to 93, half of them from 20 to 51".
    pub fn sentence(&self) -> String {
        let [least, lower, upper, most] = [self.least, self.lower, self.upper, self.most].map(short);
        format!("labels are numbers from {least} to {most}, half of them from {lower} to {upper}")
    }

    /// Rows whose label is no number, and numbers that are far from all others.
    pub(super) fn findings(&self, listing: &Listing) -> Vec<Finding> {
        let (below, above) = (self.lower - FAR * self.spread(), self.upper + FAR * self.spread());
        let labelled = listing.entries.iter().enumerate().filter(|(_, e)| !e.label.is_empty());
        labelled
            .filter_map(|(at, entry)| match number_of(&entry.label) {
                None => {
                    let detail = format!("`{}` is no number, and the other labels are", shown(&entry.label));
                    Finding::image("L008", at, detail)
                }
                Some(n) if n < below || n > above => {
                    let [n, lower, upper] = [n, self.lower, self.upper].map(short);
                    Finding::image("L018", at, format!("{n}, and half of all are from {lower} to {upper}"))
                }
                Some(_) => None,
            })
            .collect()
    }
}

/// A number as people write it; very large and very small ones with a power of ten.
fn short(number: f64) -> String {
    if number == 0.0 || (1e-6..1e15).contains(&number.abs()) {
        number.to_string()
    } else {
        format!("{number:e}")
    }
}

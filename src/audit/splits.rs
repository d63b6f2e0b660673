//! Findings about the parts of a split (S).

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use crate::source::{Listing, labels_of};

/// A class's share may be off by this many points.
const POINTS: f64 = 2.0;
/// Shares of fewer images than this say little.
const ENOUGH: usize = 50;

/// Groups in two parts, and where there are classes, those that are missing in a part and shares that are off. `usable`
/// tells which rows count.
pub fn findings(listing: &Listing, usable: &[bool], classes: bool) -> Vec<Finding> {
    let rows =
        || listing.entries.iter().zip(usable).enumerate().filter(|(_, (e, u))| **u && !e.split.is_empty());
    let parts: BTreeSet<&str> = rows().map(|(_, (e, _))| e.split.as_str()).collect();
    if parts.len() < 2 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut groups: BTreeMap<&str, (BTreeSet<&str>, Vec<usize>)> = BTreeMap::new();
    for (i, (entry, _)) in rows().filter(|(_, (e, _))| !e.group.is_empty()) {
        let (parts, images) = groups.entry(&entry.group).or_default();
        parts.insert(&entry.split);
        images.push(i);
    }
    for (group, (parts, images)) in groups.into_iter().filter(|(_, (parts, _))| parts.len() > 1) {
        let names: Vec<&str> = parts.into_iter().collect();
        let detail = format!("group {group} is in {}", names.join(" and "));
        found.extend(Finding::set("S001", images, detail).map(|f| Finding { at: group.to_owned(), ..f }));
    }
    if classes {
        found.extend(of_classes(listing, usable, &parts));
    }
    found
}

fn of_classes(listing: &Listing, usable: &[bool], parts: &BTreeSet<&str>) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut totals: BTreeMap<&str, usize> = BTreeMap::new();
    for (entry, _) in listing.entries.iter().zip(usable).filter(|(e, u)| **u && !e.split.is_empty()) {
        *totals.entry(&entry.split).or_default() += 1;
        for label in labels_of(&entry.label) {
            *counts.entry(label).or_default().entry(&entry.split).or_default() += 1;
        }
    }
    let all: usize = totals.values().sum();
    let mut found = Vec::new();
    for (class, by_part) in &counts {
        let n: usize = by_part.values().sum();
        for part in parts {
            let here = by_part.get(part).copied().unwrap_or(0);
            if here == 0 && n >= parts.len() {
                let detail = format!("none of {n} images of {class} is in {part}");
                found.extend(Finding::place("S002", *class, None, detail));
                continue;
            }
            let wanted = 100.0 * totals[part] as f64 / all as f64;
            let share = 100.0 * here as f64 / n as f64;
            // One image more or less is no fault of a small class.
            let grain = 100.0 / n as f64;
            if n >= ENOUGH && (share - wanted).abs() > POINTS.max(grain) {
                let detail = format!("{share:.1} % of {class} is in {part}, of all {wanted:.1} %");
                found.extend(Finding::place("S003", *class, None, detail));
            }
        }
    }
    found
}

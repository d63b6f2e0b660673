//! Findings about pictures that are alike (D), from hashes and from the search for near-duplicates.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use crate::entry::Entry;
use crate::facts::Facts;
use crate::names::shown;

/// Two pictures that look alike, as the search tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Alike {
    /// A row.
    pub a: usize,
    /// A later row.
    pub b: usize,
    /// Versions of one shot; else only the same scene.
    pub is_copy: bool,
    /// How they are alike, for a person.
    pub how: String,
}

/// A set of rows around the one to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Set {
    /// The one to keep comes first, the others by path.
    images: Vec<usize>,
    how: String,
}

/// Sets of the same bytes and the same pixels, and stars of near-duplicates; leaks and conflicts among them.
pub fn findings(entries: &[Entry], facts: &[Facts], alike: &[Alike]) -> Vec<Finding> {
    let mut found = Vec::new();
    let usable = |i: &usize| facts[*i].fault.is_none();
    let rank = |i: &usize| rank(*i, &facts[*i]);
    let by_bytes = sets((0..facts.len()).filter(usable), |i| facts[i].hash, rank);
    for images in &by_bytes {
        found.extend(Finding::set("D001", images.clone(), format!("{} files", images.len())));
    }
    let pixel_hash = |i: usize| facts[i].seen.as_ref().map(|s| s.pixel_hash);
    let by_pixels = sets((0..facts.len()).filter(usable), pixel_hash, rank);
    for images in &by_pixels {
        let mut hashes = BTreeSet::new();
        let others: Vec<usize> = images.iter().copied().filter(|i| hashes.insert(facts[*i].hash)).collect();
        if others.len() > 1 {
            let sizes: Vec<String> = others.iter().map(|i| facts[*i].bytes.to_string()).collect();
            found.extend(Finding::set("D002", others, format!("files of {} bytes", sizes.join(", "))));
        }
        found.extend(conflict(entries, images, "D004", "the same picture"));
        found.extend(leak(entries, images, "D005", "the same picture"));
    }
    let stars = |is_copy: bool| {
        let pairs = alike
            .iter()
            .filter(|p| p.is_copy == is_copy && usable(&p.a) && usable(&p.b))
            .filter(|p| pixel_hash(p.a) != pixel_hash(p.b));
        stars(pairs, &rank)
    };
    for set in stars(true) {
        found.extend(conflict(entries, &set.images, "D007", &set.how));
        found.extend(leak(entries, &set.images, "D006", &set.how));
        found.extend(Finding::set("D003", set.images, set.how));
    }
    for set in stars(false) {
        found.extend(Finding::set("D008", set.images, set.how));
    }
    found
}

/// Which one is kept: the most pixels, then the most bytes, then the first path. Smaller is better.
pub fn rank(at: usize, facts: &Facts) -> (u64, u64, usize) {
    let pixels = facts.size().map_or(0, |(w, h)| u64::from(w) * u64::from(h));
    (u64::MAX - pixels, u64::MAX - facts.bytes, at)
}

/// Rows with equal keys, two or more, the best first; ordered by the first row of each.
fn sets<K: Ord>(
    rows: impl Iterator<Item = usize>,
    key: impl Fn(usize) -> Option<K>,
    rank: impl Fn(&usize) -> (u64, u64, usize),
) -> Vec<Vec<usize>> {
    let mut by_key: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for row in rows {
        if let Some(key) = key(row) {
            by_key.entry(key).or_default().push(row);
        }
    }
    let mut sets: Vec<Vec<usize>> = by_key.into_values().filter(|rows| rows.len() > 1).collect();
    sets.sort_by_key(|rows| rows[0]);
    for rows in &mut sets {
        if let Some(best) = (0..rows.len()).min_by_key(|i| rank(&rows[*i])) {
            let kept = rows.remove(best);
            rows.insert(0, kept);
        }
    }
    sets
}

/// Stars: the best picture of all that are left takes those that are like itself, then the next best. Never chains:
/// that A is like B and B like C does not make C a copy of A.
fn stars<'a>(
    pairs: impl Iterator<Item = &'a Alike>,
    rank: &impl Fn(&usize) -> (u64, u64, usize),
) -> Vec<Set> {
    let mut near: BTreeMap<usize, Vec<(usize, &str)>> = BTreeMap::new();
    for pair in pairs {
        near.entry(pair.a).or_default().push((pair.b, &pair.how));
        near.entry(pair.b).or_default().push((pair.a, &pair.how));
    }
    let mut order: Vec<usize> = near.keys().copied().collect();
    order.sort_by_key(rank);
    let mut taken = BTreeSet::new();
    let mut stars = Vec::new();
    for kept in order {
        if taken.contains(&kept) {
            continue;
        }
        let mut rays: Vec<&(usize, &str)> = near[&kept].iter().filter(|(i, _)| !taken.contains(i)).collect();
        if rays.is_empty() {
            continue;
        }
        rays.sort();
        rays.dedup_by_key(|(i, _)| *i);
        taken.insert(kept);
        taken.extend(rays.iter().map(|(i, _)| *i));
        let mut hows: Vec<&str> = rays.iter().map(|(_, how)| *how).collect();
        hows.sort_unstable();
        hows.dedup();
        let how = hows.join("; ");
        stars.push(Set { images: std::iter::once(kept).chain(rays.iter().map(|(i, _)| *i)).collect(), how });
    }
    stars.sort_by_key(|set| set.images[0]);
    stars
}

/// Labels that differ by more than case and spaces.
fn conflict(entries: &[Entry], images: &[usize], id: &str, how: &str) -> Option<Finding> {
    let labels: BTreeMap<String, &str> = images
        .iter()
        .map(|i| entries[*i].label.as_str())
        .filter(|label| !label.is_empty())
        .map(|label| (label.trim().to_lowercase(), label))
        .collect();
    let names: Vec<String> = labels.values().map(|l| shown(l).to_string()).collect();
    let detail = || format!("{how}, labelled {}", names.join(" and "));
    (names.len() > 1).then(|| Finding::set(id, images.to_vec(), detail())).flatten()
}

fn leak(entries: &[Entry], images: &[usize], id: &str, how: &str) -> Option<Finding> {
    let splits: BTreeSet<&str> =
        images.iter().map(|i| entries[*i].split.as_str()).filter(|split| !split.is_empty()).collect();
    let names: Vec<String> = splits.iter().map(|s| shown(s).to_string()).collect();
    let detail = || format!("{how}, in {}", names.join(" and "));
    (names.len() > 1).then(|| Finding::set(id, images.to_vec(), detail())).flatten()
}

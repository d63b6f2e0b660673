//! Findings about pictures that are alike (D), from hashes and from the search for near-duplicates.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::numbers::Numbers;
use crate::entry::Entry;
use crate::facts::Facts;
use crate::names::shown;
use crate::near::{self, Pair, Part, Tier};
use crate::pixels::Orientation;
use crate::source::number_of;

/// Sets of the same bytes and the same pixels, and stars of near-duplicates; leaks and conflicts among them.
///
/// Where labels are numbers, those of one picture may differ by a hundredth of their spread, those of versions of one
/// shot by half of it.
pub fn findings(
    entries: &[Entry],
    facts: &[Facts],
    alike: &[Pair],
    numbers: Option<&Numbers>,
) -> Vec<Finding> {
    let near = |share: f64| numbers.map(|numbers| share * numbers.spread());
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
        found.extend(conflict(entries, images, "D004", "the same picture", near(0.01)));
        found.extend(leak(entries, images, "D005", "the same picture"));
    }
    let stars = |tier: Tier| {
        let pairs: Vec<Pair> = alike
            .iter()
            .filter(|p| p.tier == tier && usable(&p.a) && usable(&p.b) && pixel_hash(p.a) != pixel_hash(p.b))
            .copied()
            .collect();
        near::stars(&pairs, |i| rank(&i))
    };
    for star in stars(Tier::Sure) {
        let (images, how) = told(&star);
        found.extend(conflict(entries, &images, "D007", &how, near(0.5)));
        found.extend(leak(entries, &images, "D006", &how));
        found.extend(Finding::set("D003", images, how));
    }
    for (tier, id) in [(Tier::Suspected, "D011"), (Tier::Scene, "D008")] {
        for star in stars(tier) {
            let (images, how) = told(&star);
            found.extend(Finding::set(id, images, how));
        }
    }
    found
}

/// The rows of a star, the kept one first, and how the others are like it.
fn told(star: &near::Star) -> (Vec<usize>, String) {
    let images = std::iter::once(star.kept).chain(star.others.iter().map(|(i, _)| *i)).collect();
    let mut hows: Vec<String> = star.others.iter().map(|(_, pair)| how(pair)).collect();
    hows.dedup();
    (images, hows.join("; "))
}

/// How the pictures of a pair are alike, for a person.
pub fn how(pair: &Pair) -> String {
    let turn = match pair.turn {
        Orientation::Upright => "",
        Orientation::FlipH => ", mirrored",
        Orientation::FlipV => ", upside down and mirrored",
        Orientation::Rotate180 => ", turned by 180 degrees",
        Orientation::Rotate90 | Orientation::Rotate270 => ", turned by 90 degrees",
        Orientation::Transpose | Orientation::Transverse => ", turned by 90 degrees and mirrored",
    };
    let part = match pair.part {
        None => "",
        Some(Part::OfA(_) | Part::OfB(_)) => ", one a part of the other or tilted",
    };
    format!("{} of 255 bits differ, correlation {:.2}{turn}{part}", pair.distance, pair.agreement)
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

/// Labels that differ by more than case and spaces; numbers by more than `near`.
fn conflict(entries: &[Entry], images: &[usize], id: &str, how: &str, near: Option<f64>) -> Option<Finding> {
    let numbers: Option<Vec<f64>> =
        near.and_then(|_| images.iter().map(|i| number_of(&entries[*i].label)).collect());
    if let (Some(near), Some(numbers)) = (near, numbers) {
        let (least, most) = numbers.iter().fold((f64::MAX, f64::MIN), |(a, b), n| (a.min(*n), b.max(*n)));
        if most - least <= near {
            return None;
        }
    }
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

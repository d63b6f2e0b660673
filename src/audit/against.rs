//! Pictures that are in another set too: a benchmark's test set, last year's data.

use std::collections::BTreeMap;

use super::duplicates::how;
use super::finding::Finding;
use crate::facts::Facts;
use crate::names::shown;
use crate::near::{Pair, Tier};
use crate::source::Listing;

/// Findings about the rows of this set whose bytes, pixels or looks are in `other`; `alike` are pairs of a place here
/// and a place there.
pub fn against(facts: &[Facts], other: &Listing, others: &[Facts], alike: &[Pair]) -> Vec<Finding> {
    let name = |at: usize| shown(&other.entries[at].path).to_string();
    let usable = |facts: &Facts| facts.fault.is_none();
    let mut by_bytes = BTreeMap::new();
    let mut by_pixels = BTreeMap::new();
    for (at, there) in others.iter().enumerate().filter(|(_, f)| usable(f)) {
        if let (Some(hash), Some(seen)) = (there.hash, &there.seen) {
            by_bytes.entry(hash).or_insert(at);
            by_pixels.entry(seen.pixel_hash).or_insert(at);
        }
    }
    let mut found = Vec::new();
    let mut same = vec![false; facts.len()];
    for (at, here) in facts.iter().enumerate().filter(|(_, f)| usable(f)) {
        let bytes = here.hash.and_then(|hash| by_bytes.get(&hash)).map(|there| ("same bytes", *there));
        let pixels = || Some(("same pixels", *by_pixels.get(&here.seen.as_ref()?.pixel_hash)?));
        if let Some((what, there)) = bytes.or_else(pixels) {
            same[at] = true;
            found.extend(Finding::image("D009", at, format!("{what} as {}", name(there))));
        }
    }
    let near = alike.iter().filter(|p| p.tier == Tier::Sure && !same[p.a]);
    let mut best: BTreeMap<usize, &Pair> = BTreeMap::new();
    for pair in near.filter(|p| usable(&facts[p.a]) && usable(&others[p.b])) {
        let kept = best.entry(pair.a).or_insert(pair);
        if (pair.distance, pair.b) < (kept.distance, kept.b) {
            *kept = pair;
        }
    }
    found.extend(
        best.into_iter()
            .filter_map(|(at, pair)| Finding::image("D010", at, format!("{}: {}", name(pair.b), how(pair)))),
    );
    found
}

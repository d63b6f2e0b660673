//! Which images of a group are shown. Every order comes from keys of path and seed, never from a generator's state: the
//! same data give the same picks on any machine, and an image that is added changes few of them.

use super::unlike::{Worst, ranked};
use crate::facts::Facts;
use crate::near::Prints;
use crate::source::Listing;

/// Names the way in which keys are made; grows when the same data give other picks.
const SCHEME: &str = "sheet-1";

/// How the images are picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// By lot.
    Random,
    /// The first by path.
    First,
    /// The worst first.
    Worst(Worst),
    /// Far apart: each the farthest from those before it, by the bits in which the prints differ.
    Spread,
}

impl Pick {
    /// Must every image have been looked at?
    pub fn needs_facts(self) -> bool {
        matches!(self, Self::Worst(_) | Self::Spread)
    }
}

/// What is known of the images, by place in the listing.
pub struct Known<'a> {
    /// Facts of every entry.
    pub facts: &'a [Facts],
    /// Their prints.
    pub prints: &'a dyn Prints,
}

/// At most `most` of `rows`, each once, in the order of the cells.
pub fn picked(
    pick: Pick,
    listing: &Listing,
    rows: &[usize],
    most: usize,
    seed: u64,
    known: Option<&Known<'_>>,
) -> Vec<usize> {
    let key = |row: usize| key(seed, &listing.entries[row].path);
    match (pick, known) {
        (Pick::First, _) => rows.iter().copied().take(most).collect(),
        (Pick::Worst(worst), Some(known)) => {
            let mut all = ranked(worst, rows, known, &key);
            all.truncate(most);
            all
        }
        (Pick::Spread, Some(known)) => spread(rows, most, known, &key),
        _ => by_lot(rows, most, key),
    }
}

/// The key of an image.
fn key(seed: u64, path: &str) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(SCHEME.as_bytes()).update(&[0]).update(&seed.to_le_bytes()).update(path.as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

/// Each cell takes, of the images that are left, the one whose key mixed with the cell's number is smallest. So an
/// image that is added takes the place of few others, and moves none.
fn by_lot(rows: &[usize], most: usize, key: impl Fn(usize) -> u64) -> Vec<usize> {
    let mut left: Vec<(u64, usize)> = rows.iter().map(|row| (key(*row), *row)).collect();
    let mut picks = Vec::new();
    for cell in 0..most.min(rows.len()) as u64 {
        let best = (0..left.len()).min_by_key(|at| (mixed(left[*at].0, cell), left[*at].1));
        picks.extend(best.map(|at| left.swap_remove(at).1));
    }
    picks
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit of the key and the number changes half of the rest.
fn mixed(key: u64, number: u64) -> u64 {
    let mut z = key.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Begins with the image of the smallest key; those without a print (flat, or not decoded) come last, by their keys.
fn spread(rows: &[usize], most: usize, known: &Known<'_>, key: &dyn Fn(usize) -> u64) -> Vec<usize> {
    let code = |row: usize| known.prints.print(row).map(|print| print.code);
    let mut keyed: Vec<(u64, usize)> = rows.iter().map(|row| (key(*row), *row)).collect();
    keyed.sort_unstable();
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for (_, row) in keyed {
        match code(row) {
            // The distance to the nearest of those that are picked.
            Some(code) => with.push((row, code, u32::MAX)),
            None => without.push(row),
        }
    }
    let mut picks = Vec::new();
    while picks.len() < most && !with.is_empty() {
        let farthest = with.iter().map(|(.., far)| *far).max();
        let Some(at) = with.iter().position(|(.., far)| Some(*far) == farthest) else { break };
        let (row, picked, _) = with.remove(at);
        picks.push(row);
        for (_, code, far) in &mut with {
            *far = (*far).min(code.distance(&picked));
        }
    }
    picks.extend(without);
    picks.truncate(most);
    picks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lot(paths: &[String], seed: u64) -> Vec<String> {
        let rows: Vec<usize> = (0..paths.len()).collect();
        let picks = by_lot(&rows, 9, |row| key(seed, &paths[row]));
        picks.into_iter().map(|row| paths[row].clone()).collect()
    }

    #[test]
    fn images_that_are_added_change_few_cells() {
        let paths: Vec<String> = (0..1100).map(|i| format!("cat/{i:04}.jpg")).collect();
        let mut changed = 0;
        for seed in 0..40 {
            let (before, after) = (lot(&paths[..1000], seed), lot(&paths, seed));
            assert_eq!(before.len(), 9);
            changed += before.iter().zip(&after).filter(|(a, b)| a != b).count();
        }
        // 100 images among 1,100: each of the 360 cells changes with a chance of one in eleven.
        assert!((15..60).contains(&changed), "{changed}");
    }

    #[test]
    fn another_seed_gives_other_images_and_none_comes_twice() {
        let paths: Vec<String> = (0..500).map(|i| format!("{i}")).collect();
        let (a, b) = (lot(&paths, 0), lot(&paths, 1));
        assert!(a.iter().filter(|path| b.contains(path)).count() < 3);
        let mut once = a.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), 9);
        assert_eq!(lot(&paths[..4], 0).len(), 4);
    }
}

//! Images beside each other: copies with both labels and splits, and each validation image with the training image that
//! is most like it.

use std::collections::HashSet;

use super::group::is_shown;
use super::page::Block;
use crate::engine::blocks;
use crate::engine::cancel::Cancel;
use crate::error::{Error, Result};
use crate::measure::Code;
use crate::near::Prints;
use crate::source::Listing;

/// Images that look alike: the one to keep first, and what is known of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// Places in the listing.
    pub images: Vec<usize>,
    /// Its code and what it is, as in "D002 same pixels".
    pub what: String,
}

/// Pairs to be drawn, and how many there are in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Each with two images.
    pub blocks: Vec<Block>,
    /// With those that were too many.
    pub total: usize,
}

/// The first of each set beside each other one: first those where labels differ, then where splits do.
pub fn of_sets(listing: &Listing, sets: &[Set], most: usize) -> Found {
    let mut pairs: Vec<(usize, usize, usize, &str)> = Vec::new();
    for set in sets {
        let Some((first, others)) = set.images.split_first() else { continue };
        for other in others.iter().filter(|other| is_shown(&listing.entries[**other])) {
            pairs.push((rank(listing, *first, *other), *first, *other, &set.what));
        }
    }
    // By what they are: the same bytes before the same scene.
    pairs.sort_by_key(|(rank, first, other, what)| (*rank, what.get(..4), *first, *other));
    let mut told = HashSet::new();
    pairs.retain(|(_, first, other, _)| told.insert((*first, *other)));
    let total = pairs.len();
    pairs.truncate(most);
    let blocks = pairs.into_iter().map(|(_, a, b, what)| block(listing, a, b, what)).collect();
    Found { blocks, total }
}

fn rank(listing: &Listing, a: usize, b: usize) -> usize {
    let (a, b) = (&listing.entries[a], &listing.entries[b]);
    match (differ(&a.label, &b.label), differ(&a.split, &b.split)) {
        (true, _) => 0,
        (_, true) => 1,
        _ => 2,
    }
}

fn differ(a: &str, b: &str) -> bool {
    a != b && !a.is_empty() && !b.is_empty()
}

fn block(listing: &Listing, a: usize, b: usize, what: &str) -> Block {
    let title = match rank(listing, a, b) {
        0 => "labels differ",
        1 => "splits differ",
        _ => "",
    };
    Block { title: title.into(), note: what.into(), cells: vec![Some(a), Some(b)] }
}

/// Each image of split `val` (`valid`, `validation`, `dev`, else `test`) beside the training image whose print differs
/// in the fewest of 255 bits; the most alike first, at most `most`.
///
/// # Errors
/// [`Error::Usage`] where the input has no such splits; an interrupt.
pub fn val_train(
    listing: &Listing,
    prints: &dyn Prints,
    most: usize,
    threads: usize,
    cancel: &Cancel,
) -> Result<Found> {
    let of = |names: &[&str]| -> Vec<(usize, Code)> {
        let wanted = |at: &usize| {
            let entry = &listing.entries[*at];
            names.contains(&entry.split.as_str()) && is_shown(entry)
        };
        let print = |at: usize| Some((at, prints.print(at)?.code));
        (0..listing.entries.len()).filter(wanted).filter_map(print).collect()
    };
    let train = of(&["train", "training"]);
    let mut val = of(&["val", "valid", "validation", "dev"]);
    if val.is_empty() {
        val = of(&["test"]);
    }
    if train.is_empty() || val.is_empty() {
        let why = "--pairs val-train: the input has no images of splits train and val; prep split makes them";
        return Err(Error::Usage(why.into()));
    }
    const TILE: usize = 64;
    let tile = |tile: usize| -> Vec<(u32, usize, usize)> {
        let nearest = |(at, code): &(usize, Code)| {
            train.iter().map(|(other, theirs)| (code.distance(theirs), *at, *other)).min()
        };
        val[tile * TILE..].iter().take(TILE).filter_map(nearest).collect()
    };
    let mut pairs = blocks::run(threads, cancel, val.len().div_ceil(TILE), tile, |_| ())?.concat();
    pairs.sort_unstable();
    let total = pairs.len();
    pairs.truncate(most);
    let told = |(bits, val, train): (u32, usize, usize)| {
        let mut pair = block(listing, val, train, &format!("{bits} of 255 bits differ"));
        // Their splits differ by what they are.
        if pair.title == "splits differ" {
            pair.title.clear();
        }
        pair
    };
    Ok(Found { blocks: pairs.into_iter().map(told).collect(), total })
}

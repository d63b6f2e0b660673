//! Which rows go into which part, and in which order they lie there.

use std::collections::BTreeMap;

use super::Order;
use crate::shards::folder_of;
use crate::source::Listing;

/// The name of the scheme, which changes when the same seed gives another order.
pub const SCHEME: &str = "blake3-1";
const CONTEXT: &str = "imgprep 2026 pack order 1";

/// A part of the cache before anything was decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// `train` and the like.
    pub name: String,
    /// The folder of it.
    pub folder: String,
    /// Its rows, as places in the listing, in the order in which they are written.
    pub rows: Vec<u32>,
}

/// The parts of a listing in the order of the manifest. Rows that are known not to be usable are in none.
pub fn parts(listing: &Listing, order: Order, seed: u64) -> Vec<Part> {
    let has_split = listing.entries.iter().any(|entry| !entry.split.is_empty());
    let mut rows: BTreeMap<(usize, &str), Vec<u32>> = BTreeMap::new();
    for (row, entry) in (0..).zip(&listing.entries).filter(|(_, entry)| entry.fault.is_none()) {
        let name = match entry.split.as_str() {
            "" if has_split => "unassigned",
            "" => "all",
            name => name,
        };
        let rank = ["train", "val", "test"].iter().position(|known| *known == name).unwrap_or(3);
        rows.entry((rank, name)).or_default().push(row);
    }
    let key = blake3::derive_key(CONTEXT, &seed.to_le_bytes());
    rows.into_iter()
        .map(|((_, name), mut rows)| {
            if order == Order::Shuffled {
                let path = |row: u32| listing.entries[row as usize].path.as_str();
                rows.sort_by_cached_key(|row| {
                    let hash = blake3::keyed_hash(&key, path(*row).as_bytes());
                    (*hash.as_bytes(), *row)
                });
            }
            Part { name: name.to_owned(), folder: folder_of(name), rows }
        })
        .collect()
}

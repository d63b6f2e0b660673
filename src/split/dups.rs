//! Equal files: by the hashes that the manifest knows, else by reading those that have the same size.

use std::borrow::Cow;
use std::collections::HashMap;

use super::groups::Keys;
use crate::engine::crew::Crew;
use crate::engine::progress::{Tally, Watch};
use crate::error::Result;
use crate::source::{Listing, read_file};

/// What the source of their keys is called.
pub(super) const EQUAL: &str = "equal files";

/// The keys of equal pictures among `rows`: texts of entries that come again.
pub fn equal_pictures<'a>(rows: &[u32], keys: &'a [String]) -> Keys<'a> {
    let key = |row: &u32| keys.get(*row as usize).map_or("", String::as_str);
    let mut n: HashMap<&str, u32> = HashMap::new();
    rows.iter().for_each(|row| *n.entry(key(row)).or_default() += 1);
    Keys::new(EQUAL, rows.iter().map(|row| Some(key(row)).filter(|key| n.get(key) > Some(&1))))
}

/// Pairs of entries as pairs of the rows that are there.
pub fn pairs_of_rows(rows: &[u32], alike: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let row = |entry: u32| rows.binary_search(&entry).ok().map(|row| row as u32);
    alike.iter().filter_map(|(a, b)| Some((row(*a)?, row(*b)?))).collect()
}

/// The keys of equal files among `rows` (places in the listing), and the hashes that were worked out, by row.
///
/// A file that cannot be read has no key: it is equal to none.
///
/// # Errors
/// An interrupt.
pub fn equal_files<'a>(
    listing: &Listing,
    rows: &[u32],
    known: &[&'a str],
    crew: &Crew<'_>,
    watch: &mut dyn Watch,
) -> Result<(Keys<'a>, Vec<Option<String>>)> {
    let entry = |at: usize| &listing.entries[rows[at] as usize];
    let mut by_size: HashMap<u64, u32> = HashMap::new();
    for at in 0..rows.len() {
        *by_size.entry(entry(at).bytes).or_default() += 1;
    }
    // A file of a size of its own is equal to none.
    let asked: Vec<usize> = (0..rows.len())
        .filter(|at| {
            known[*at].is_empty() && entry(*at).bytes > 0 && by_size.get(&entry(*at).bytes) > Some(&1)
        })
        .collect();
    let mut hashes: Vec<Option<String>> = vec![None; rows.len()];
    let mut tally = Tally { total: asked.len(), ..Tally::default() };
    tally.total_bytes = asked.iter().map(|at| entry(*at).bytes).sum();
    let keys: Vec<&str> = asked.iter().map(|at| entry(*at).path.as_str()).collect();
    let outcome = crew.run(
        &keys,
        Vec::new,
        |buf, item| {
            read_file(entry(asked[item.index]), buf).ok().map(|()| blake3::hash(buf).to_hex().to_string())
        },
        |_, _| None,
        |index, hash| {
            tally.done += 1;
            tally.bytes += entry(asked[index]).bytes;
            tally.bad += usize::from(hash.is_none());
            hashes[asked[index]] = hash;
            watch.step(&tally);
            Ok(())
        },
    );
    watch.end();
    outcome?;
    let of = (0..rows.len()).map(|at| match &hashes[at] {
        Some(hash) => Some(Cow::Owned(hash.clone())),
        None => Some(Cow::Borrowed(known[at])),
    });
    let keys = Keys::new(EQUAL, of);
    Ok((keys, hashes))
}

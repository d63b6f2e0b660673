//! Looks for leaks in a finished split, by another way than the one that made it: keys are sorted, neighbours compared.

use super::groups::{Keys, NONE};

/// A key whose rows are in two parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// The source of the key.
    pub source: String,
    /// The key.
    pub key: String,
    /// Two rows that have it.
    pub rows: (u32, u32),
}

/// The first leak of `parts` (the part of each row; rows without one are in no part) over all sources.
pub fn first_leak(sources: &[Keys<'_>], parts: &[Option<u8>]) -> Option<Leak> {
    sources.iter().find_map(|keys| {
        let mut rows: Vec<(u32, u8, u32)> = (keys.of.iter().zip(parts).zip(0_u32..))
            .filter_map(|((key, part), row)| (*key != NONE).then_some((*key, (*part)?, row)))
            .collect();
        rows.sort_unstable();
        rows.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1).map(|pair| Leak {
            source: keys.name.clone(),
            key: keys.texts[pair[0].0 as usize].to_string(),
            rows: (pair[0].2, pair[1].2),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_two_parts_is_found() {
        let keys = [Keys::new("plant", ["a", "b", "a", ""].map(Some).into_iter())];
        assert_eq!(first_leak(&keys, &[Some(0), Some(1), Some(0), Some(1)]), None);
        assert_eq!(first_leak(&keys, &[Some(0), Some(1), None, Some(1)]), None);
        let leak = first_leak(&keys, &[Some(0), Some(1), Some(1), Some(1)]).unwrap();
        assert_eq!((leak.key.as_str(), leak.rows), ("a", (0, 2)));
    }
}

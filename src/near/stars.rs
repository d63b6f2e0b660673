//! Sets of near-duplicates as stars: one file to keep and those that look like it themselves. Never chains, in which
//! the ends need not look alike: leaf 1 like leaf 2, leaf 2 like leaf 3, and so on through a whole class.

use std::collections::BTreeMap;

use super::Pair;

/// A picture and its near-duplicates.
#[derive(Debug, Clone, PartialEq)]
pub struct Star {
    /// The picture to keep.
    pub kept: usize,
    /// The others, each with the pair that says how it looks like `kept`, ascending by place.
    pub others: Vec<(usize, Pair)>,
}

/// The stars of `pairs`: the picture that `rank` puts first among those left is kept and takes all its partners that
/// are left. A picture is in one star at most; stars come in the order of rank.
pub fn stars<K: Ord>(pairs: &[Pair], rank: impl Fn(usize) -> K) -> Vec<Star> {
    let mut partners: BTreeMap<usize, Vec<(usize, Pair)>> = BTreeMap::new();
    for pair in pairs {
        partners.entry(pair.a).or_default().push((pair.b, *pair));
        partners.entry(pair.b).or_default().push((pair.a, *pair));
    }
    let mut order: Vec<usize> = partners.keys().copied().collect();
    order.sort_by_cached_key(|at| (rank(*at), *at));
    let mut stars = Vec::new();
    for kept in order {
        // A picture that a better one has taken is gone from the table.
        let Some(mut others) = partners.remove(&kept) else { continue };
        others.retain(|(other, _)| partners.contains_key(other));
        others.sort_by_key(|(other, _)| *other);
        others.dedup_by_key(|(other, _)| *other);
        for (other, _) in &others {
            partners.remove(other);
        }
        if !others.is_empty() {
            stars.push(Star { kept, others });
        }
    }
    stars
}

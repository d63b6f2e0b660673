//! From groups and aims to a part for each group.

use super::bound::least_gap;
use super::lot::Lot;
use super::search::{Attend, LEAST, anneal, descend, nearest_first, part_at};
use super::sparse::{Cell, Sparse};
use super::tally::{Aims, Tally};
use crate::error::Result;

/// A result this near to the bound of its classes is not worth a longer search.
const NEAR_ENOUGH: f64 = 1.05;
/// Work of the search for each group, and at most: strata looked at.
const WORK_PER_GROUP: u64 = 50_000;
const MOST_WORK: u64 = 20_000_000;
/// What a group that was assigned before must gain to move: a fifth of a point of one class.
const WORTH_MOVING: f64 = 0.002;

/// What is to be solved.
#[derive(Debug)]
pub struct Problem<'a> {
    /// Rows by group and stratum.
    pub sparse: &'a Sparse,
    /// What is wanted.
    pub aims: &'a Aims,
    /// Where each group lies by lot.
    pub places: &'a [u64],
    /// The part that a group had before.
    pub before: &'a [Option<u8>],
    /// Groups that must stay in the part that they had.
    pub pinned: &'a [bool],
    /// Groups that had a part before must not move at all.
    pub keep: bool,
}

/// The reachable deviation of each stratum in each part: `[stratum * parts + part]`.
pub fn bounds(sparse: &Sparse, aims: &Aims) -> Vec<f64> {
    let (starts, cells) = sparse.by_stratum();
    let n_parts = aims.n_parts();
    let mut bounds = Vec::with_capacity(sparse.n_strata() * n_parts);
    for stratum in 0..sparse.n_strata() {
        let cells: &[Cell] = &cells[starts[stratum] as usize..starts[stratum + 1] as usize];
        let every = aims.required[stratum] && cells.len() >= n_parts;
        for share in &aims.shares {
            bounds.push(least_gap(cells, *share, n_parts, every));
        }
    }
    bounds
}

/// The weighted mean of bounds over held-out parts: what [`Tally::mean_gap`] could be at best.
fn mean_bound(sparse: &Sparse, aims: &Aims, bounds: &[f64]) -> f64 {
    let n_parts = aims.n_parts();
    let held: Vec<usize> = (0..n_parts).filter(|s| aims.training != Some(*s)).collect();
    let (mut sum, mut weights) = (0.0, 0.0);
    for c in (0..sparse.n_strata()).filter(|c| sparse.rows[*c] > 0) {
        sum += aims.weights[c] * held.iter().map(|s| bounds[c * n_parts + s]).sum::<f64>();
        weights += aims.weights[c] * held.len() as f64;
    }
    if weights > 0.0 { sum / weights } else { 0.0 }
}

/// Gives every group a part so that the classes have their shares.
///
/// # Errors
/// Those of `attend`.
pub fn balanced(
    problem: &Problem<'_>,
    lot: &Lot,
    bounds: &[f64],
    attend: &mut Attend<'_>,
) -> Result<Vec<u8>> {
    let Problem { sparse, aims, places, before, .. } = *problem;
    let n = sparse.n_groups();
    let alone = if aims.training.is_some() { only_groups(sparse, aims) } else { vec![false; n] };
    let known = |g: usize| before.get(g).copied().flatten();
    let start = (0..n).map(|g| match known(g) {
        Some(part) => part,
        None if alone[g] => aims.training.unwrap_or(0) as u8,
        None => part_at(places[g], &aims.shares) as u8,
    });
    let mut tally = Tally::new(sparse, aims, start.collect());
    let growing = before.iter().any(Option::is_some);
    let free: Vec<bool> = (0..n).map(|g| known(g).is_none() && !alone[g]).collect();
    let goal = mean_bound(sparse, aims, bounds) * NEAR_ENOUGH + LEAST;
    let order = nearest_first(places, &aims.shares, |g| free[g]);
    descend(&mut tally, &order, LEAST, goal);
    if !tally.is_within(goal) {
        let budget = MOST_WORK.min(WORK_PER_GROUP * order.len() as u64);
        anneal(&mut tally, &free, budget, goal, &mut lot.stream("anneal"), attend)?;
        descend(&mut tally, &order, LEAST, goal);
    }
    if growing && !problem.keep && !tally.is_within(goal) {
        let order = nearest_first(places, &aims.shares, |g| !alone[g] && !problem.pinned[g]);
        descend(&mut tally, &order, WORTH_MOVING, goal);
    }
    Ok(tally.part)
}

/// The groups that alone hold a required stratum: they go to training.
pub fn only_groups(sparse: &Sparse, aims: &Aims) -> Vec<bool> {
    let alone = |g: usize| {
        let mut cells = sparse.of(g).iter().map(|c| c.stratum as usize);
        cells.any(|c| aims.required[c] && sparse.groups[c] == 1)
    };
    (0..sparse.n_groups()).map(alone).collect()
}

/// Gives the groups, in the order of their times, to the parts one after the other, each part as near to its share of
/// rows as whole groups allow.
pub fn in_time(rows_of: &[u32], times: &[usize], shares: &[f64]) -> Vec<u8> {
    let mut order: Vec<usize> = (0..rows_of.len()).collect();
    order.sort_by_key(|g| (times[*g], *g));
    let total: f64 = rows_of.iter().map(|n| f64::from(*n)).sum();
    let mut part = vec![0_u8; rows_of.len()];
    let (mut at, mut end, mut done) = (0, shares[0] * total, 0.0);
    for g in order {
        let rows = f64::from(rows_of[g]);
        while at + 1 < shares.len() && done + rows / 2.0 > end {
            at += 1;
            end += shares[at] * total;
        }
        part[g] = at as u8;
        done += rows;
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_from_part_to_part() {
        let part = in_time(&[10, 10, 10, 10, 10], &[4, 3, 2, 1, 0], &[0.6, 0.2, 0.2]);
        assert_eq!(part, [2, 1, 0, 0, 0]);
    }
}

//! An assignment of groups to parts and what it costs, kept up to date move by move.
//!
//! The cost is one number whose pieces are so far apart that they count one after the other: a class without training,
//! a class missing from a part that could have it, then the deviations from the wanted shares.

use super::sparse::Sparse;

/// A class without any training row.
const UNTRAINED: f64 = 1e6;
/// A class that is missing from a part although it has enough groups.
const MISSING: f64 = 1e3;
/// One point of share of groups against one point of share of rows: a tie-breaker that keeps large groups from being
/// all on one side.
const GROUP_SHARE: f64 = 0.01;

/// What is wanted.
#[derive(Debug, Clone)]
pub struct Aims {
    /// The share of each part; the sum is 1.
    pub shares: Vec<f64>,
    /// The part that models learn from; none for folds, where each part is held out in turn.
    pub training: Option<usize>,
    /// The weight of each stratum's deviation; as many as strata.
    pub weights: Vec<f64>,
    /// Strata that must be in every part where that is possible.
    pub required: Vec<bool>,
}

impl Aims {
    /// Parts.
    pub fn n_parts(&self) -> usize {
        self.shares.len()
    }

    /// Must `stratum` with so many groups be in `part`?
    pub fn needs(&self, stratum: usize, groups: u32, part: usize) -> bool {
        self.required[stratum]
            && (groups as usize >= self.n_parts() || (self.training == Some(part) && groups > 0))
    }
}

/// The assignment.
#[derive(Debug, Clone)]
pub struct Tally<'a> {
    /// The table.
    pub sparse: &'a Sparse,
    /// What is wanted.
    pub aims: &'a Aims,
    /// The part of each group.
    pub part: Vec<u8>,
    n_parts: usize,
    slots: Vec<Slot>,
    inverse: Vec<Inverse>,
}

/// A stratum in a part.
#[derive(Debug, Clone, Copy)]
struct Slot {
    rows: u32,
    groups: u32,
    /// Its piece of the cost.
    cost: f64,
    /// What an empty slot costs.
    price: f64,
    /// The wanted share.
    share: f64,
    /// 1 where the part is held out, 0 for training.
    held_out: f64,
}

/// One by the totals of a stratum, with its weight.
#[derive(Debug, Clone, Copy)]
struct Inverse {
    rows: f64,
    groups: f64,
    weight: f64,
    /// The number of groups that must not be all in one part; 0 where that is no matter.
    not_all: u32,
}

impl Slot {
    /// What the slot would cost with so many rows and groups.
    #[inline]
    fn cost_with(&self, inverse: &Inverse, rows: u32, groups: u32) -> f64 {
        let by_rows = (f64::from(rows) * inverse.rows - self.share).abs() * self.held_out;
        let by_groups = (f64::from(groups) * inverse.groups - self.share).abs();
        let mut cost = inverse.weight * (by_rows + GROUP_SHARE * by_groups);
        if groups == 0 {
            cost += self.price;
        } else if groups == inverse.not_all {
            cost += UNTRAINED;
        }
        cost
    }
}

impl<'a> Tally<'a> {
    /// The tally of the assignment `part`.
    pub fn new(sparse: &'a Sparse, aims: &'a Aims, part: Vec<u8>) -> Self {
        let n_parts = aims.n_parts();
        let inverse = (0..sparse.n_strata())
            .map(|c| Inverse {
                rows: 1.0 / f64::from(sparse.rows[c].max(1)),
                groups: 1.0 / f64::from(sparse.groups[c].max(1)),
                weight: aims.weights[c],
                // A fold that has all groups of a class leaves none to learn from.
                not_all: if aims.training.is_none() && aims.required[c] && sparse.groups[c] > 1 {
                    sparse.groups[c]
                } else {
                    0
                },
            })
            .collect();
        let empty = |c: usize, s: usize| {
            let needed = aims.needs(c, sparse.groups[c], s);
            let price = match (needed, aims.training == Some(s)) {
                (false, _) => 0.0,
                (true, true) => UNTRAINED,
                (true, false) => MISSING,
            };
            let held_out = if aims.training == Some(s) { 0.0 } else { 1.0 };
            Slot { rows: 0, groups: 0, cost: 0.0, price, share: aims.shares[s], held_out }
        };
        let slots = (0..sparse.n_strata() * n_parts).map(|at| empty(at / n_parts, at % n_parts)).collect();
        let mut tally = Self { sparse, aims, part, n_parts, slots, inverse };
        for group in 0..sparse.n_groups() {
            let part = tally.part[group] as usize;
            for cell in sparse.of(group) {
                let slot = &mut tally.slots[cell.stratum as usize * n_parts + part];
                slot.rows += cell.rows;
                slot.groups += 1;
            }
        }
        for at in 0..tally.slots.len() {
            let slot = tally.slots[at];
            tally.slots[at].cost = slot.cost_with(&tally.inverse[at / n_parts], slot.rows, slot.groups);
        }
        tally
    }

    /// The whole cost.
    pub fn cost(&self) -> f64 {
        self.slots.iter().map(|slot| slot.cost).sum()
    }

    /// Rows of `stratum` in `part`.
    pub fn rows(&self, stratum: usize, part: usize) -> u32 {
        self.slots[stratum * self.n_parts + part].rows
    }

    /// Groups of `stratum` in `part`.
    pub fn groups(&self, stratum: usize, part: usize) -> u32 {
        self.slots[stratum * self.n_parts + part].groups
    }

    /// The share of `stratum` in `part` less the wanted one.
    pub fn gap(&self, stratum: usize, part: usize) -> f64 {
        f64::from(self.rows(stratum, part)) * self.inverse[stratum].rows - self.aims.shares[part]
    }

    /// The mean of the deviations that count, weighted; the figure that the search lowers.
    pub fn mean_gap(&self) -> f64 {
        let held: Vec<usize> = (0..self.n_parts).filter(|s| self.aims.training != Some(*s)).collect();
        let (mut sum, mut weights) = (0.0, 0.0);
        for c in (0..self.sparse.n_strata()).filter(|c| self.sparse.rows[*c] > 0) {
            sum += self.inverse[c].weight * held.iter().map(|s| self.gap(c, *s).abs()).sum::<f64>();
            weights += self.inverse[c].weight * held.len() as f64;
        }
        if weights > 0.0 { sum / weights } else { 0.0 }
    }

    /// Is nothing missing that could be there, and the mean deviation at most `goal`?
    pub fn is_within(&self, goal: f64) -> bool {
        self.mean_gap() <= goal && self.cost() < MISSING
    }

    /// What the cost would change by if `group` went to `to`.
    #[inline]
    pub fn delta(&self, group: usize, to: usize) -> f64 {
        let from = self.part[group] as usize;
        let mut delta = 0.0;
        for cell in self.sparse.of(group) {
            let base = cell.stratum as usize * self.n_parts;
            let (a, b) = (&self.slots[base + from], &self.slots[base + to]);
            let inverse = &self.inverse[cell.stratum as usize];
            delta += a.cost_with(inverse, a.rows - cell.rows, a.groups - 1) - a.cost;
            delta += b.cost_with(inverse, b.rows + cell.rows, b.groups + 1) - b.cost;
        }
        delta
    }

    /// Moves `group` to `to`.
    #[inline]
    pub fn shift(&mut self, group: usize, to: usize) {
        let from = self.part[group] as usize;
        for cell in self.sparse.of(group) {
            let base = cell.stratum as usize * self.n_parts;
            let inverse = &self.inverse[cell.stratum as usize];
            let a = &mut self.slots[base + from];
            (a.rows, a.groups) = (a.rows - cell.rows, a.groups - 1);
            a.cost = a.cost_with(inverse, a.rows, a.groups);
            let b = &mut self.slots[base + to];
            (b.rows, b.groups) = (b.rows + cell.rows, b.groups + 1);
            b.cost = b.cost_with(inverse, b.rows, b.groups);
        }
        self.part[group] = to as u8;
    }
}

//! From a start to an assignment that nothing small improves: moves nearest to where a key's lot would have fallen to the
//! other side, then swaps and uphill steps by lot, with a budget of work and not of time, so that every machine ends alike.

use super::lot::Stream;
use super::tally::Tally;
use crate::error::Result;

/// Improvements below this are rounding.
pub const LEAST: f64 = 1e-12;
/// Sweeps over all groups.
const SWEEPS: usize = 12;
/// Stages of a cooling.
const STAGES: u32 = 200;
/// How hot each cycle begins, in typical steps, and its share of the budget. Those that begin hot find the valley where
/// groups mix classes; later ones, cooler, its bottom where a few large groups decide.
const CYCLES: [(f64, f64); 5] = [(0.05, 0.15), (1.0, 0.3), (0.5, 0.25), (0.2, 0.2), (0.05, 0.1)];
/// How cold a cycle ends, against its beginning.
const COLD: f64 = 1e-5;

/// The part of a place on the line, when the parts lie on it one after the other with these shares.
pub fn part_at(place: u64, shares: &[f64]) -> usize {
    let at = place as f64 / 18_446_744_073_709_551_616.0;
    let mut end = 0.0;
    for (part, share) in shares.iter().enumerate() {
        end += share;
        if at < end {
            return part;
        }
    }
    // Rounding of the sum; the last part that wants anything.
    shares.iter().rposition(|s| *s > 0.0).unwrap_or(0)
}

/// The free groups, those first that lie nearest to a border between two parts: they moved by a little more data or a
/// little other shares.
pub fn nearest_first(places: &[u64], shares: &[f64], is_free: impl Fn(usize) -> bool) -> Vec<u32> {
    let mut borders = Vec::new();
    let mut end = 0.0;
    for share in &shares[..shares.len() - 1] {
        end += share;
        borders.push((end * 18_446_744_073_709_551_616.0) as u64);
    }
    let far = |place: u64| borders.iter().map(|b| place.abs_diff(*b)).min().unwrap_or(0);
    let mut order: Vec<(u64, u32)> =
        (0..places.len()).filter(|g| is_free(*g)).map(|g| (far(places[g]), g as u32)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, g)| g).collect()
}

/// Moves groups, in this order, as long as a move lowers the cost by more than `least` and the mean deviation is above `goal`.
pub fn descend(tally: &mut Tally<'_>, order: &[u32], least: f64, goal: f64) {
    let n_parts = tally.aims.n_parts();
    for _ in 0..SWEEPS {
        let mut moved = 0_usize;
        for group in order.iter().map(|g| *g as usize) {
            let from = tally.part[group] as usize;
            let best = (0..n_parts)
                .filter(|to| *to != from && tally.aims.shares[*to] > 0.0)
                .map(|to| (tally.delta(group, to), to))
                .min_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((delta, to)) = best
                && delta < -least
            {
                tally.shift(group, to);
                moved += 1;
            }
        }
        if moved == 0 || tally.is_within(goal) {
            return;
        }
    }
}

/// Who is told how far a search is, done and in all, and may end it.
pub type Attend<'w> = dyn FnMut(u64, u64) -> Result<()> + 'w;

/// Looks for something better by steps that may also go up, less and less so. Ends with the best that was met.
///
/// # Errors
/// Those of `attend`, which is asked after every stage.
pub fn anneal(
    tally: &mut Tally<'_>,
    free: &[bool],
    budget: u64,
    goal: f64,
    stream: &mut Stream,
    attend: &mut Attend<'_>,
) -> Result<()> {
    let Some(mut walk) = Walk::new(tally, free, stream) else { return Ok(()) };
    let step = walk.typical_step();
    let mut begun = 0.0;
    for (heat, share) in CYCLES {
        let mut stage = |at: u32| {
            let done = begun + share * f64::from(at) / f64::from(STAGES);
            attend((done * 1000.0) as u64, 1000)
        };
        walk.cycle(step * heat, step * heat * COLD, (budget as f64 * share) as u64, &mut stage)?;
        begun += share;
        walk.back_to_best();
        if walk.tally.is_within(goal) {
            break;
        }
    }
    Ok(())
}

/// A walk through assignments.
struct Walk<'t, 'a> {
    tally: &'t mut Tally<'a>,
    free: Vec<u32>,
    is_free: &'t [bool],
    stream: &'t mut Stream,
    /// Groups of each stratum.
    starts: Vec<u32>,
    groups: Vec<u32>,
    /// Strata that have more than one group.
    strata: Vec<u32>,
    cost: f64,
    best: f64,
    /// Shifts since the best, as group and the part it came from.
    since: Vec<(u32, u8)>,
}

impl<'t, 'a> Walk<'t, 'a> {
    fn new(tally: &'t mut Tally<'a>, is_free: &'t [bool], stream: &'t mut Stream) -> Option<Self> {
        let free: Vec<u32> = (0..is_free.len()).filter(|g| is_free[*g]).map(|g| g as u32).collect();
        if free.len() < 2 || tally.aims.n_parts() < 2 {
            return None;
        }
        let (starts, cells) = tally.sparse.by_stratum();
        let strata =
            (0..tally.sparse.n_strata() as u32).filter(|c| tally.sparse.groups[*c as usize] > 1).collect();
        let cost = tally.cost();
        let groups = cells.into_iter().map(|cell| cell.stratum).collect();
        Some(Self {
            tally,
            free,
            is_free,
            stream,
            starts,
            groups,
            strata,
            cost,
            best: cost,
            since: Vec::new(),
        })
    }

    /// The mean change of moves by lot, whether up or down.
    fn typical_step(&mut self) -> f64 {
        let n = 500;
        let sum: f64 = (0..n)
            .map(|_| {
                let group = self.any_free();
                let to = self.other_part(group);
                // Leaving out what no later move would dare.
                self.tally.delta(group, to).abs().min(1.0)
            })
            .sum();
        (sum / f64::from(n)).max(LEAST)
    }

    fn any_free(&mut self) -> usize {
        self.free[self.stream.below(self.free.len())] as usize
    }

    fn other_part(&mut self, group: usize) -> usize {
        let n = self.tally.aims.n_parts();
        (self.tally.part[group] as usize + 1 + self.stream.below(n - 1)) % n
    }

    /// Cools from `hot` to `cold` in stages, each by the same factor.
    fn cycle(
        &mut self,
        hot: f64,
        cold: f64,
        budget: u64,
        after: &mut dyn FnMut(u32) -> Result<()>,
    ) -> Result<()> {
        let factor = root(cold / hot, STAGES);
        let mut temperature = hot;
        for stage in 0..STAGES {
            after(stage)?;
            let mut work = budget / u64::from(STAGES);
            while work > 0 {
                work = work.saturating_sub(self.step(temperature));
            }
            temperature *= factor;
        }
        Ok(())
    }

    /// Tries one change and gives the work that it was.
    fn step(&mut self, temperature: f64) -> u64 {
        let roll = self.stream.next_u64();
        let (first, second) = if roll & 1 == 0 { self.by_stratum(roll >> 1) } else { self.by_lot(roll >> 1) };
        let Some((group, to)) = first else { return 1 };
        let mut work = 2 + self.tally.sparse.of(group).len() as u64;
        let from = self.tally.part[group];
        let Some(other) = second.filter(|other| *other != group) else {
            let delta = self.tally.delta(group, to);
            if self.accepts(delta, temperature) {
                self.tally.shift(group, to);
                self.keep(delta, &[(group as u32, from)]);
            }
            return work;
        };
        work += 2 * self.tally.sparse.of(other).len() as u64;
        let other_from = self.tally.part[other];
        let before = self.tally.delta(group, to);
        self.tally.shift(group, to);
        let delta = before + self.tally.delta(other, from as usize);
        if self.accepts(delta, temperature) {
            self.tally.shift(other, from as usize);
            self.keep(delta, &[(group as u32, from), (other as u32, other_from)]);
        } else {
            self.tally.shift(group, from as usize);
        }
        work
    }

    fn accepts(&mut self, delta: f64, temperature: f64) -> bool {
        delta <= 0.0 || self.stream.unit() < decay(delta / temperature)
    }

    fn keep(&mut self, delta: f64, shifts: &[(u32, u8)]) {
        self.cost += delta;
        self.since.extend_from_slice(shifts);
        if self.cost < self.best - LEAST {
            self.best = self.cost;
            self.since.clear();
        }
    }

    fn back_to_best(&mut self) {
        while let Some((group, from)) = self.since.pop() {
            self.tally.shift(group as usize, from as usize);
        }
        self.cost = self.best;
    }

    /// Any group to any other part, alone or for another one from there.
    fn by_lot(&mut self, roll: u64) -> (Option<(usize, usize)>, Option<usize>) {
        let group = self.any_free();
        let to = self.other_part(group);
        let other = if roll & 1 == 0 { None } else { Some(self.any_free()) };
        (Some((group, to)), other.filter(|o| self.tally.part[*o] as usize == to))
    }

    /// From the fullest to the emptiest part of a stratum that is off, alone or for a smaller group of it.
    fn by_stratum(&mut self, roll: u64) -> (Option<(usize, usize)>, Option<usize>) {
        if self.strata.is_empty() {
            return (None, None);
        }
        let n_parts = self.tally.aims.n_parts();
        let off = |tally: &Tally<'_>, c: u32| {
            (0..n_parts).map(|s| tally.gap(c as usize, s).abs()).fold(0.0, f64::max)
                * tally.aims.weights[c as usize]
        };
        let mut stratum = self.strata[self.stream.below(self.strata.len())];
        for _ in 0..2 {
            let rival = self.strata[self.stream.below(self.strata.len())];
            if off(self.tally, rival) > off(self.tally, stratum) {
                stratum = rival;
            }
        }
        let gap = |s: &usize| self.tally.gap(stratum as usize, *s);
        let by_gap = |a: &usize, b: &usize| gap(a).total_cmp(&gap(b));
        let (Some(full), Some(scant)) = ((0..n_parts).max_by(by_gap), (0..n_parts).min_by(by_gap)) else {
            return (None, None);
        };
        if full == scant {
            return (None, None);
        }
        let Some(group) = self.member(stratum, full) else { return (None, None) };
        let other = if roll & 1 == 0 { None } else { self.member(stratum, scant) };
        (Some((group, scant)), other)
    }

    /// A free group of a stratum in a part, by lot; none where a few tries met none.
    fn member(&mut self, stratum: u32, part: usize) -> Option<usize> {
        let (from, to) = (self.starts[stratum as usize] as usize, self.starts[stratum as usize + 1] as usize);
        (0..6).find_map(|_| {
            let group = self.groups[from + self.stream.below(to - from)] as usize;
            (self.tally.part[group] as usize == part && self.is_free[group]).then_some(group)
        })
    }
}

/// About e^-x, by multiplication alone: the exponential of the system's library differs from machine to machine.
fn decay(x: f64) -> f64 {
    if x >= 32.0 {
        return 0.0;
    }
    let mut y = 1.0 - x / 1024.0;
    for _ in 0..10 {
        y *= y;
    }
    y
}

/// The `n`-th root of `x`, from 0 to 1, by bisection.
fn root(x: f64, n: u32) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let power = (0..n).fold(1.0, |p, _| p * middle);
        if power < x { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decay_falls_like_the_exponential() {
        for x in [0.0_f64, 0.1, 1.0, 5.0, 20.0] {
            assert!((decay(x) - (-x).exp()).abs() < 2e-3, "{x}");
        }
        assert!((root(1e-4, 400) - 1e-4_f64.powf(1.0 / 400.0)).abs() < 1e-9);
    }

    #[test]
    fn places_fall_into_parts_by_share() {
        let shares = [0.8, 0.1, 0.1];
        assert_eq!(part_at(0, &shares), 0);
        assert_eq!(part_at(u64::MAX, &shares), 2);
        assert_eq!(part_at(u64::MAX / 20 * 17, &shares), 1);
    }
}

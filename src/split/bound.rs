//! How near to its share a class can come at all: its groups are whole, so only some sums of their sizes exist.

use super::sparse::Cell;

/// Sums up to this are looked at one by one; larger classes with few small groups are taken as if they could be cut anywhere.
const MOST_ROWS: u64 = 4 << 20;

/// The least deviation (a share, 0 to 1) of one part that wants `share` of a stratum with these groups.
///
/// With `every_part`, the part must have a group and leave at least `n_parts - 1` for the others. A lower bound: other
/// parts and other classes may make it unreachable.
pub fn least_gap(cells: &[Cell], share: f64, n_parts: usize, every_part: bool) -> f64 {
    let total: u64 = cells.iter().map(|c| u64::from(c.rows)).sum();
    if total == 0 {
        return 0.0;
    }
    let least = usize::from(every_part);
    let most = if every_part { cells.len().saturating_sub(n_parts - 1) } else { cells.len() };
    let wanted = share * total as f64;
    let off = |sum: u64| (sum as f64 - wanted).abs() / total as f64;
    if cells.len() <= 12 {
        let subsets =
            (0..1_u32 << cells.len()).filter(|s| (least..=most).contains(&(s.count_ones() as usize)));
        let sum =
            |s: u32| (0..cells.len()).filter(|g| s >> g & 1 == 1).map(|g| u64::from(cells[g].rows)).sum();
        return subsets.map(|s| off(sum(s))).fold(1.0, f64::min);
    }
    let ones = cells.iter().filter(|c| c.rows == 1).count() as u64;
    let largest = cells.iter().map(|c| u64::from(c.rows)).max().unwrap_or(0);
    let (low, high) = if every_part { (1, total - 1) } else { (0, total) };
    if ones + 1 >= largest || total > MOST_ROWS {
        // Every sum exists.
        let near = wanted.floor() as u64;
        return off(near.clamp(low, high)).min(off((near + 1).clamp(low, high)));
    }
    let sums = Sums::of(cells, total);
    sums.nearest(wanted, low, high).map_or(1.0, off)
}

/// Ways of giving groups to parts up to this are all looked at.
const MOST_WAYS: u64 = 4096;

/// What the held-out parts of a stratum can have at best together, since the parts sum up: the largest deviation and the
/// mean of all. `alone` is [`least_gap`] of each part; `training` is not held out, and without it all shares are equal.
///
/// Lower bounds, each for itself.
pub fn least_together(
    cells: &[Cell],
    shares: &[f64],
    alone: &[f64],
    training: Option<usize>,
    every_part: bool,
) -> (f64, f64) {
    let k = shares.len();
    let held: Vec<usize> = (0..k).filter(|s| training != Some(*s)).collect();
    let largest = held.iter().map(|s| alone[*s]).fold(0.0, f64::max);
    let mean = held.iter().map(|s| alone[*s]).sum::<f64>() / held.len().max(1) as f64;
    let total: u64 = cells.iter().map(|c| u64::from(c.rows)).sum();
    if total == 0 || held.len() < 2 {
        return (largest, mean);
    }
    if (k as u64).checked_pow(cells.len() as u32).is_some_and(|ways| ways <= MOST_WAYS) {
        let least = all_ways(cells, shares, &held, every_part);
        return (largest.max(least.0), mean.max(least.1));
    }
    if training.is_some() {
        return (largest, mean);
    }
    // All sizes are multiples of `unit`, so folds get `units / k` of them, and `left` folds one more.
    let unit = cells.iter().fold(0, |unit, c| gcd(unit, u64::from(c.rows)));
    let (step, left, k) = (unit as f64 / total as f64, (total / unit % k as u64) as f64, k as f64);
    let uneven = if left > 0.0 { (left / k).max(1.0 - left / k) * step } else { 0.0 };
    (largest.max(uneven), mean.max(2.0 * left * (k - left) / (k * k) * step))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The least largest and the least mean deviation over all ways.
fn all_ways(cells: &[Cell], shares: &[f64], held: &[usize], every_part: bool) -> (f64, f64) {
    let total: f64 = cells.iter().map(|c| f64::from(c.rows)).sum();
    let mut best = (f64::MAX, f64::MAX);
    let mut part = vec![0_usize; cells.len()];
    loop {
        let mut rows = vec![0_u32; shares.len()];
        part.iter().zip(cells).for_each(|(part, cell)| rows[*part] += cell.rows);
        if !every_part || rows.iter().all(|n| *n > 0) {
            let off = |s: &usize| (f64::from(rows[*s]) / total - shares[*s]).abs();
            best.0 = best.0.min(held.iter().map(off).fold(0.0, f64::max));
            best.1 = best.1.min(held.iter().map(off).sum::<f64>() / held.len() as f64);
        }
        // The next way, as one counts.
        let Some(at) = part.iter().position(|p| p + 1 < shares.len()) else { break };
        part[at] += 1;
        part[..at].fill(0);
    }
    if best.0 == f64::MAX { (0.0, 0.0) } else { best }
}

/// Which sums exist, a bit each.
struct Sums {
    bits: Vec<u64>,
    total: u64,
}

impl Sums {
    fn of(cells: &[Cell], total: u64) -> Self {
        let mut sizes: Vec<u64> = cells.iter().map(|c| u64::from(c.rows)).collect();
        sizes.sort_unstable();
        let mut sums = Self { bits: vec![0; (total / 64 + 1) as usize], total };
        sums.bits[0] = 1;
        for same in sizes.chunk_by(|a, b| a == b) {
            // So many of one size as 1, 2, 4 … of them.
            let (mut left, mut times) = (same.len() as u64, 1);
            while left > 0 {
                let now = times.min(left);
                sums.add(same[0] * now);
                left -= now;
                times *= 2;
            }
        }
        sums
    }

    /// Every sum may have `size` more.
    fn add(&mut self, size: u64) {
        let (words, shift) = ((size / 64) as usize, size % 64);
        for at in (words..self.bits.len()).rev() {
            let mut word = self.bits[at - words] << shift;
            if shift > 0 && at > words {
                word |= self.bits[at - words - 1] >> (64 - shift);
            }
            self.bits[at] |= word;
        }
    }

    fn has(&self, sum: u64) -> bool {
        sum <= self.total && self.bits[(sum / 64) as usize] >> (sum % 64) & 1 == 1
    }

    fn nearest(&self, wanted: f64, low: u64, high: u64) -> Option<u64> {
        let near = wanted.floor() as u64;
        let below = (low..=near.min(high)).rev().find(|s| self.has(*s));
        let above = ((near + 1).max(low)..=high).find(|s| self.has(*s));
        let off = |s: &u64| (*s as f64 - wanted).abs();
        below.into_iter().chain(above).min_by(|a, b| off(a).total_cmp(&off(b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(sizes: &[u32]) -> Vec<Cell> {
        sizes.iter().map(|rows| Cell { stratum: 0, rows: *rows }).collect()
    }

    #[test]
    fn few_groups_are_tried_in_all_ways() {
        assert!((least_gap(&cells(&[5, 5]), 0.2, 2, false) - 0.2).abs() < 1e-12, "empty is nearer than half");
        assert!((least_gap(&cells(&[5, 5]), 0.2, 2, true) - 0.3).abs() < 1e-12);
        assert!((least_gap(&cells(&[7]), 0.2, 2, false) - 0.2).abs() < 1e-12);
        assert!((least_gap(&cells(&[1, 1, 1, 1]), 0.1, 3, true) - 0.15).abs() < 1e-12);
    }

    #[test]
    fn folds_share_what_is_there() {
        let thirds = [1.0 / 3.0; 3];
        for n in [10_usize, 3 * 40 + 1, 3 * 40 + 2] {
            let cells = cells(&vec![2; n]);
            let alone = thirds.map(|share| least_gap(&cells, share, 3, true));
            let (largest, mean) = least_together(&cells, &thirds, &alone, None, true);
            // n = 3q + 1 gives one fold of q + 1, n = 3q + 2 two.
            let q = (n / 3) as f64;
            let sizes = if n % 3 == 1 { [q + 1.0, q, q] } else { [q + 1.0, q + 1.0, q] };
            let off = sizes.map(|size| (size / n as f64 - 1.0 / 3.0).abs());
            assert!((largest - off.into_iter().fold(0.0, f64::max)).abs() < 1e-12, "{n}: {largest}");
            assert!((mean - off.iter().sum::<f64>() / 3.0).abs() < 1e-12, "{n}: {mean}");
        }
    }

    #[test]
    fn two_held_out_parts_cannot_have_the_same_group() {
        // 1 of 10 is wanted in both, and there is one group of that size.
        let (cells, shares) = (cells(&[1, 4, 5]), [0.8, 0.1, 0.1]);
        let alone = shares.map(|share| least_gap(&cells, share, 3, true));
        assert!(alone[1] < 1e-12 && alone[2] < 1e-12);
        let (largest, mean) = least_together(&cells, &shares, &alone, Some(0), true);
        assert!((largest - 0.3).abs() < 1e-12 && (mean - 0.15).abs() < 1e-12, "{largest} {mean}");
    }

    #[test]
    fn many_groups_are_summed_by_bits() {
        let mut sizes = vec![30_u32; 20];
        assert!((least_gap(&cells(&sizes), 0.22, 2, true) - (132.0_f64 - 120.0) / 600.0).abs() < 1e-12);
        sizes.push(7);
        // 607 rows, 133.54 wanted: 127 is nearest.
        assert!((least_gap(&cells(&sizes), 0.22, 2, true) - (133.54 - 127.0) / 607.0).abs() < 1e-12);
        // 153 groups of 2 and one of 3: 61.8 is wanted, and 62 exists beside 61.
        let mut twos = vec![2; 153];
        twos.push(3);
        assert!((least_gap(&cells(&twos), 0.2, 2, true) - 0.2 / 309.0).abs() < 1e-9);
        assert!(least_gap(&cells(&vec![1; 1000]), 0.2, 2, true) < 1e-12);
    }
}

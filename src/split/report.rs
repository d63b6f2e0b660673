//! What came out of a split, class by class: counts, shares, what was wanted and reachable, and why it is not nearer.

use super::bound::least_together;
use super::sparse::{Cell, Sparse};
use super::tally::{Aims, Tally};
use crate::names::thousands;

/// A class (or another stratum) in the parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: u32,
    /// Its groups.
    pub groups: u32,
    /// What each part has of it.
    pub parts: Vec<Share>,
    /// The largest deviation of a held-out part from the wanted share, 0 to 1.
    pub gap: f64,
    /// What it would be at best for this class alone, with whole groups.
    pub bound: f64,
    /// The mean deviation of held-out parts at best.
    pub mean_bound: f64,
    /// Why it is not nearer; empty where it is near.
    pub why: String,
}

/// What a part has of a class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Rows.
    pub rows: u32,
    /// Groups.
    pub groups: u32,
    /// Effective groups, (sum n)^2 / sum n^2 over their rows: one large group beside ten of one image is hardly more than one.
    pub effective: f64,
    /// Of the rows of the class, 0 to 1.
    pub share: f64,
}

/// A gap below this is not worth a reason.
const SMALL_GAP: f64 = 0.005;

/// What the reasons are told with.
#[derive(Debug, Clone, Copy)]
pub struct Reasons {
    /// What is not torn: image or group.
    pub one: &'static str,
    /// Nobody sought even shares: why.
    pub decided: Option<&'static str>,
    /// The first so many strata are classes.
    pub n_classes: usize,
    /// Groups had parts before.
    pub growing: bool,
}

/// The lines of all strata; the last is every row.
pub fn lines(
    sparse: &Sparse,
    aims: &Aims,
    part: &[u8],
    bounds: &[f64],
    names: &[String],
    reasons: Reasons,
) -> Vec<Line> {
    let tally = Tally::new(sparse, aims, part.to_vec());
    let (starts, cells) = sparse.by_stratum();
    let n_parts = aims.n_parts();
    (0..sparse.n_strata())
        .map(|c| {
            let cells: &[Cell] = &cells[starts[c] as usize..starts[c + 1] as usize];
            let mut squares = vec![0.0; n_parts];
            for cell in cells {
                squares[part[cell.stratum as usize] as usize] += f64::from(cell.rows) * f64::from(cell.rows);
            }
            let share = |s: usize| {
                let rows = tally.rows(c, s);
                let effective = if rows > 0 { f64::from(rows) * f64::from(rows) / squares[s] } else { 0.0 };
                let share = f64::from(rows) / f64::from(sparse.rows[c].max(1));
                Share { rows, groups: tally.groups(c, s), effective, share }
            };
            let held = (0..n_parts).filter(|s| aims.training != Some(*s));
            let worst =
                held.max_by(|a, b| tally.gap(c, *a).abs().total_cmp(&tally.gap(c, *b).abs())).unwrap_or(0);
            let gap = tally.gap(c, worst).abs();
            let alone = &bounds[c * n_parts..(c + 1) * n_parts];
            let every = aims.required[c] && cells.len() >= n_parts;
            let (bound, mean_bound) = least_together(cells, &aims.shares, alone, aims.training, every);
            let name = names.get(c).cloned().unwrap_or_default();
            let why = if aims.weights[c] > 0.0 {
                let all_trained = aims.training.is_some_and(|t| tally.rows(c, t) == sparse.rows[c]);
                why(sparse, aims, (c, cells), (gap, bound), all_trained, reasons)
            } else {
                String::new()
            };
            Line {
                name,
                rows: sparse.rows[c],
                groups: sparse.groups[c],
                parts: (0..n_parts).map(share).collect(),
                gap,
                bound,
                mean_bound,
                why,
            }
        })
        .collect()
}

fn why(
    sparse: &Sparse,
    aims: &Aims,
    (stratum, cells): (usize, &[Cell]),
    (gap, bound): (f64, f64),
    all_trained: bool,
    reasons: Reasons,
) -> String {
    let rows = sparse.rows[stratum];
    if gap < SMALL_GAP || rows == 0 {
        return String::new();
    }
    let one = reasons.one;
    let largest = cells.iter().map(|c| c.rows).max().unwrap_or(0);
    let percent = 100.0 * f64::from(largest) / f64::from(rows);
    if cells.len() == 1 && all_trained {
        return format!("one {one}: all in training");
    }
    if cells.len() < aims.n_parts() {
        let s = if cells.len() == 1 { "" } else { "s" };
        return format!("{} {one}{s} for {} parts", cells.len(), aims.n_parts());
    }
    if gap <= bound * 1.05 + 1e-9 {
        return if largest == 1 {
            format!("{} images cannot be cut finer", thousands(rows))
        } else {
            format!("whole groups allow no less; the largest has {percent:.0}% of it")
        };
    }
    if let Some(decided) = reasons.decided {
        return decided.into();
    }
    // Other strata that pull at the same groups.
    let last = sparse.n_strata() - 1;
    let others = || {
        let of = |cell: &Cell| sparse.of(cell.stratum as usize).iter().map(|c| c.stratum as usize);
        cells
            .iter()
            .flat_map(of)
            .filter(|other| *other != stratum && *other != last && aims.weights[*other] > 0.0)
    };
    let is_class = |s: usize| s < reasons.n_classes;
    if is_class(stratum) && others().any(is_class) {
        return match one {
            "image" => "its images have other classes too".into(),
            _ => "its groups hold other classes too".into(),
        };
    }
    if others().next().is_some() {
        return "other columns count too".into();
    }
    if reasons.growing { "few move after an earlier split" } else { "the sizes of the parts count too" }
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::sparse::Membership;

    #[test]
    fn effective_groups_tell_one_large_group_from_many() {
        let group_of: Vec<u32> = (0..20).map(|row| if row < 10 { 0 } else { row - 9 }).collect();
        let membership = Membership { starts: (0..=20).collect(), strata: vec![0; 20] };
        let sparse = Sparse::new(&group_of, 11, &membership, 1);
        let aims = Aims {
            shares: vec![0.5, 0.5],
            training: Some(0),
            weights: vec![1.0; 2],
            required: vec![true, false],
        };
        let reasons = Reasons { one: "group", decided: None, n_classes: 1, growing: false };
        let part: Vec<u8> = (0..11).map(|g| u8::from(g > 0)).collect();
        let lines = lines(&sparse, &aims, &part, &[0.0; 4], &["x".into()], reasons);
        assert!((lines[0].parts[0].effective - 1.0).abs() < 1e-9);
        assert!((lines[0].parts[1].effective - 10.0).abs() < 1e-9);
        assert_eq!(lines[0].gap, 0.0);
    }
}

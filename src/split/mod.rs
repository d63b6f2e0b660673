//! The split: every usable image gets a part or a fold, groups stay whole, classes have their shares.
//!
//! Rows become groups ([`groups`]) and strata ([`strata`]), those a sparse table ([`sparse`]); [`solve`] starts from the
//! lots of the groups' keys and improves by moves with a fixed amount of work, so that the same input gives the same split
//! on every machine, whatever the order of rows or the number of threads; [`check`] looks for leaks by another way.

pub mod bound;
pub mod check;
mod dups;
mod eligible;
pub mod export;
pub mod groups;
pub mod lot;
pub mod options;
mod outcome;
mod record;
pub mod report;
pub mod search;
pub mod solve;
pub mod sparse;
pub mod strata;
pub mod tally;
mod time;

use crate::engine::crew::Crew;
use crate::engine::progress::Watch;
use crate::error::{Error, Result};
use crate::names::shown;
use crate::source::Listing;

pub use eligible::{LeftOut, Why};
pub use options::{GroupBy, Method, Options, Part, Pattern};
pub use outcome::{Outcome, Place, Report};

use groups::{Groups, Keys};
use lot::Lot;
use sparse::Sparse;
use strata::Strata;
use tally::Aims;

/// What earlier commands know of the entries; as long as the listing, or empty.
#[derive(Debug, Clone, Default)]
pub struct Earlier {
    /// The part or fold that an entry had.
    pub places: Vec<Option<Place>>,
    /// Groups that had a part must not move.
    pub keep: bool,
    /// Hashes of files, hexadecimal; empty where none is known.
    pub hashes: Vec<String>,
}

/// A split to be made: rows, groups and strata.
struct Job<'a> {
    listing: &'a Listing,
    options: &'a Options,
    lot: Lot,
    /// The rows, as places in the listing.
    rows: Vec<u32>,
    sources: Vec<Keys<'a>>,
    groups: Groups,
    strata: Strata,
}

/// Splits the usable entries of `listing`.
///
/// # Errors
/// A column that is not there; a class that would be missing from a part; kept rows that contradict each other.
pub fn run<'a>(
    listing: &'a Listing,
    options: &'a Options,
    earlier: &'a Earlier,
    crew: &Crew<'_>,
    watch: &mut dyn Watch,
) -> Result<Outcome<'a>> {
    let (rows, left_out) = eligible::rows(listing, options)?;
    if rows.is_empty() {
        return Err(Error::Usage(format!("there is nothing to split: {}", eligible::sentence(&left_out))));
    }
    let mut sources = groups::keys(listing, &rows, options)?;
    let mut hashes = Vec::new();
    if options.group_dups {
        let known: Vec<&str> =
            rows.iter().map(|row| earlier.hashes.get(*row as usize).map_or("", String::as_str)).collect();
        let (keys, found) = dups::equal_files(listing, &rows, &known, crew, watch)?;
        sources.push(keys);
        hashes = found;
    }
    // Near duplicates will come as pairs.
    let groups = Groups::join(rows.len(), &sources, &[]);
    let strata = strata::strata(listing, &rows, options)?;
    let job = Job { listing, options, lot: Lot::new(options.seed), rows, sources, groups, strata };
    let mut outcome = job.solve(earlier)?;
    outcome.left_out = left_out;
    outcome.hashes =
        job.rows.iter().zip(hashes).filter_map(|(row, hash)| Some((*row as usize, hash?))).collect();
    outcome.name_groups(job.groups, job.sources);
    Ok(outcome)
}

/// Everything that one round of giving groups to parts needs.
struct Round {
    /// Positions in `Job::rows`.
    rows: Vec<u32>,
    /// For each group of the job its number in this round, where it takes part.
    sparse: Sparse,
    aims: Aims,
    places: Vec<u64>,
    before: Vec<Option<u8>>,
    /// The reachable deviations, see [`solve::bounds`].
    bounds: Vec<f64>,
    group_of: Vec<u32>,
    /// The place of each row in the order of times, where time decides.
    times: Vec<usize>,
    /// The job's number of each group of this round.
    groups: Vec<u32>,
}

impl<'a> Job<'a> {
    fn solve(&self, earlier: &Earlier) -> Result<Outcome<'a>> {
        let options = self.options;
        let mut outcome = Outcome::begin(self);
        let all: Vec<u32> = (0..self.rows.len() as u32).collect();
        let names: Vec<String> = options.parts.iter().map(|p| p.name.clone()).collect();
        let mut rest = all;
        if options.parts.len() > 1 {
            let aims = self.aims(options.parts.iter().map(|p| p.share).collect(), Some(options.training()));
            let round = self.round(rest, aims, earlier, |place| place.part)?;
            let part = self.assign(&round, earlier.keep);
            self.settle(&mut outcome, &round, &part, &names, earlier)?;
            let training = options.training() as u8;
            rest = round
                .rows
                .iter()
                .zip(&round.group_of)
                .filter(|(_, g)| part[**g as usize] == training)
                .map(|(r, _)| *r)
                .collect();
        }
        if let Some(k) = options.folds {
            let aims = self.aims(vec![1.0 / k as f64; k], None);
            let rest = self.to_validate(rest, &aims, &mut outcome);
            let round =
                self.round(rest, aims, earlier, |place| place.fold.filter(|fold| usize::from(*fold) < k))?;
            let part = self.assign(&round, earlier.keep);
            let names: Vec<String> = (0..k).map(|fold| format!("fold {fold}")).collect();
            self.settle(&mut outcome, &round, &part, &names, earlier)?;
        }
        outcome.finish(self)?;
        Ok(outcome)
    }

    /// The rows without the groups that alone hold a class: no fold may validate on what the others cannot learn.
    fn to_validate(&self, rows: Vec<u32>, aims: &Aims, outcome: &mut Outcome<'_>) -> Vec<u32> {
        let group_of: Vec<u32> = rows.iter().map(|row| self.groups.of[*row as usize]).collect();
        let membership = self.strata.membership.of_rows(&rows);
        let sparse = Sparse::new(&group_of, self.groups.n, &membership, self.strata.names.len());
        let alone = solve::only_groups(&sparse, aims);
        let classes: Vec<String> = (0..self.strata.names.len())
            .filter(|c| aims.required[*c] && sparse.groups[*c] == 1)
            .map(|c| format!("`{}`", shown(&self.strata.names[c])))
            .collect();
        if classes.is_empty() {
            return rows;
        }
        outcome.warnings.push(format!(
            "{}: one {}, so it is in no fold (column `fold` is empty) and always trained on",
            outcome::listed(&classes),
            outcome::one(outcome)
        ));
        rows.into_iter().filter(|row| !alone[self.groups.of[*row as usize] as usize]).collect()
    }

    fn aims(&self, shares: Vec<f64>, training: Option<usize>) -> Aims {
        let strata = &self.strata;
        let balanced = self.options.method == Method::Balanced;
        // The size of the parts counts like two classes.
        let weights = strata.weights.iter().copied().chain([2.0]).collect();
        let required = strata.required.iter().map(|r| *r && balanced).chain([false]).collect();
        Aims { shares, training, weights, required }
    }

    /// The rows at these positions with their groups numbered anew, and the parts that they had.
    fn round(
        &self,
        rows: Vec<u32>,
        aims: Aims,
        earlier: &Earlier,
        before: impl Fn(&Place) -> Option<u8>,
    ) -> Result<Round> {
        let mut number = vec![groups::NONE; self.groups.n];
        let mut groups = Vec::new();
        let mut group_of = Vec::with_capacity(rows.len());
        for row in &rows {
            let group = self.groups.of[*row as usize];
            let at = &mut number[group as usize];
            if *at == groups::NONE {
                *at = groups.len() as u32;
                groups.push(group);
            }
            group_of.push(*at);
        }
        let whole = rows.len() == self.rows.len();
        let part_of_all = if whole { None } else { Some(self.strata.membership.of_rows(&rows)) };
        let membership = part_of_all.as_ref().unwrap_or(&self.strata.membership);
        let sparse = Sparse::new(&group_of, groups.len(), membership, self.strata.names.len());
        let lots = self.groups.places(&self.lot, &self.sources, |row| self.path(row));
        let places = groups.iter().map(|g| lots[*g as usize]).collect();
        let before = self.before(&rows, &group_of, groups.len(), earlier, before)?;
        let bounds = solve::bounds(&sparse, &aims);
        let times = match &self.options.method {
            Method::Time(column) => {
                time::of_rows(self.listing, column, rows.iter().map(|row| self.rows[*row as usize]))?
            }
            _ => Vec::new(),
        };
        Ok(Round { rows, sparse, aims, places, before, bounds, group_of, times, groups })
    }

    /// The part that each group had; of a group whose rows had several, the first by path, and with `keep` an error.
    fn before(
        &self,
        rows: &[u32],
        group_of: &[u32],
        n_groups: usize,
        earlier: &Earlier,
        part: impl Fn(&Place) -> Option<u8>,
    ) -> Result<Vec<Option<u8>>> {
        if earlier.places.iter().all(Option::is_none) {
            return Ok(Vec::new());
        }
        let mut before: Vec<Option<u8>> = vec![None; n_groups];
        let mut first: Vec<u32> = vec![0; n_groups];
        for (row, group) in rows.iter().zip(group_of) {
            let place = earlier.places.get(self.rows[*row as usize] as usize).and_then(Option::as_ref);
            let Some(had) = place.and_then(&part) else { continue };
            match before[*group as usize] {
                None => {
                    before[*group as usize] = Some(had);
                    first[*group as usize] = *row;
                }
                Some(other) if other != had && earlier.keep => {
                    return Err(Error::Usage(format!(
                        "--keep: {} and {} belong together now, but were in two parts; drop --keep (as few groups as \
                         possible move) or leave one of them out",
                        shown(self.path(first[*group as usize])),
                        shown(self.path(*row))
                    )));
                }
                Some(_) => {}
            }
        }
        Ok(before)
    }

    fn path(&self, row: u32) -> &str {
        &self.listing.entries[self.rows[row as usize] as usize].path
    }

    /// The part of each group.
    fn assign(&self, round: &Round, keep: bool) -> Vec<u8> {
        let problem = solve::Problem {
            sparse: &round.sparse,
            aims: &round.aims,
            places: &round.places,
            before: &round.before,
            keep,
        };
        let kept = |g: usize| round.before.get(g).copied().flatten().filter(|_| keep);
        match &self.options.method {
            Method::Balanced => solve::balanced(&problem, &self.lot, &round.bounds),
            Method::Hash => {
                let by_lot = |(g, place): (usize, &u64)| {
                    kept(g).unwrap_or_else(|| search::part_at(*place, &round.aims.shares) as u8)
                };
                round.places.iter().enumerate().map(by_lot).collect()
            }
            Method::Time(_) => {
                let times = time::of_groups(&round.times, &round.group_of, round.groups.len());
                let every = round.sparse.n_strata() as u32 - 1;
                let rows: Vec<u32> = (0..round.sparse.n_groups())
                    .map(|g| round.sparse.of(g).iter().filter(|c| c.stratum == every).map(|c| c.rows).sum())
                    .collect();
                let parts = solve::in_time(&rows, &times, &round.aims.shares);
                parts.into_iter().enumerate().map(|(g, part)| kept(g).unwrap_or(part)).collect()
            }
        }
    }
}

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
mod wishes;

use crate::engine::crew::Crew;
use crate::engine::progress::Watch;
use crate::error::{Error, Result};
use crate::names::{plural, shown};
use crate::source::Listing;

pub use eligible::{LeftOut, Why};
pub use options::{Dups, GroupBy, Method, Options, Part, Pattern};
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
    /// Where an entry is that stays as it is: outside of what was asked for, or in a part that nothing is dealt to. Its
    /// group stays with it.
    pub fixed: Vec<Option<Place>>,
    /// Entries that are not asked for: without a place they are as if they were not there.
    pub outside: Vec<bool>,
    /// Pairs of entries that are one picture, or one scene.
    pub alike: Vec<(u32, u32)>,
    /// Keys of entries that are equal, for [`Dups::Near`] and [`Dups::Scene`]; empty where there is none.
    pub equal: Vec<String>,
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
    /// For each row where it stays.
    fixed: Vec<Option<Place>>,
    sources: Vec<Keys<'a>>,
    /// Rows that are alike.
    pairs: Vec<(u32, u32)>,
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
    let eligible::Rows { rows, fixed, left_out } = eligible::rows(listing, options, earlier)?;
    if fixed.iter().all(Option::is_some) {
        return Err(Error::Usage(format!("there is nothing to split: {}", eligible::sentence(&left_out))));
    }
    let mut sources = groups::keys(listing, &rows, options)?;
    let mut hashes = Vec::new();
    if options.dups == Some(Dups::Exact) {
        let known: Vec<&str> =
            rows.iter().map(|row| earlier.hashes.get(*row as usize).map_or("", String::as_str)).collect();
        let (keys, found) = dups::equal_files(listing, &rows, &known, crew, watch)?;
        sources.push(keys);
        hashes = found;
    } else if options.dups.is_some() {
        sources.push(dups::equal_pictures(&rows, &earlier.equal));
    }
    let pairs = dups::pairs_of_rows(&rows, &earlier.alike);
    let groups = Groups::join(rows.len(), &sources, &pairs);
    let strata = strata::strata(listing, &rows, options)?;
    let job =
        Job { listing, options, lot: Lot::new(options.seed), rows, fixed, sources, pairs, groups, strata };
    job.stays_whole()?;
    let attend = &mut |done, total| {
        watch.think("looking for the best split", done, total);
        if crew.cancel.is_set() { Err(Error::Interrupted) } else { Ok(()) }
    };
    let outcome = job.solve(earlier, attend);
    watch.end();
    let mut outcome = outcome?;
    outcome.left_out = left_out;
    outcome.hashes =
        job.rows.iter().zip(hashes).filter_map(|(row, hash)| Some((*row as usize, hash?))).collect();
    outcome.name_groups(job);
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
    /// Groups that stay where they were, since rows of them do.
    pinned: Vec<bool>,
    /// The reachable deviations, see [`solve::bounds`].
    bounds: Vec<f64>,
    group_of: Vec<u32>,
    /// The place of each row in the order of times, where time decides.
    times: Vec<usize>,
    /// The job's number of each group of this round.
    groups: Vec<u32>,
}

impl<'a> Job<'a> {
    fn solve(&self, earlier: &Earlier, attend: &mut search::Attend<'_>) -> Result<Outcome<'a>> {
        let options = self.options;
        let mut outcome = Outcome::begin(self);
        for (row, place) in self.rows.iter().zip(&self.fixed) {
            outcome.places[*row as usize] = place.unwrap_or_default();
        }
        let dealt = options.dealt();
        let names: Vec<String> = dealt.iter().map(|p| p.name.clone()).collect();
        let mut rest: Vec<u32> =
            (0..self.rows.len() as u32).filter(|row| self.fixed[*row as usize].is_none()).collect();
        if dealt.len() == 1 && options.parts.len() > 1 {
            // Beside parts that stay, what has folds is a part too.
            let training = Some(options.training() as u8);
            rest.iter().for_each(|row| outcome.places[self.rows[*row as usize] as usize].part = training);
        }
        if dealt.len() > 1 {
            let aims = self.aims(dealt.iter().map(|p| p.share).collect(), Some(options.training()));
            let round = self.round(rest, aims, earlier, |place| place.part)?;
            let part = self.assign(&round, earlier.keep, attend)?;
            self.settle(&mut outcome, &round, &part, &names, earlier)?;
            self.joined(&mut outcome, &round);
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
            let part = self.assign(&round, earlier.keep, attend)?;
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
            "{}: one {}, so it is in no fold (column `fold` says `train`) and always trained on",
            wishes::listed(&classes),
            wishes::one(outcome)
        ));
        let (always, rest): (Vec<u32>, Vec<u32>) =
            rows.into_iter().partition(|row| alone[self.groups.of[*row as usize] as usize]);
        always.iter().for_each(|row| outcome.places[self.rows[*row as usize] as usize].always = true);
        rest
    }

    /// Refuses groups that are in a part that stays and among what is dealt: they would be torn.
    fn stays_whole(&self) -> Result<()> {
        let n_dealt = self.options.dealt().len();
        let mut stays: Vec<Option<(u32, u8)>> = vec![None; self.groups.n];
        for (row, place) in self.fixed.iter().enumerate() {
            if let Some(part) =
                place.and_then(|place| place.part).filter(|part| usize::from(*part) >= n_dealt)
            {
                stays[self.groups.of[row] as usize].get_or_insert((row as u32, part));
            }
        }
        let torn = |row: &usize| self.fixed[*row].is_none() && stays[self.groups.of[*row] as usize].is_some();
        let Some(row) = (0..self.rows.len()).find(torn) else { return Ok(()) };
        let group = self.groups.of[row] as usize;
        let (other, part) = stays[group].unwrap_or_default();
        let name = self
            .groups
            .text(group, &self.sources)
            .map_or(String::new(), |name| format!(" ({})", shown(name)));
        Err(Error::Usage(format!(
            "{} is in {}, which stays as it is, and {} of the same group{name} is to be dealt: the group would be torn; \
             --reset deals all anew, --exclude leaves images out",
            shown(self.path(other)),
            shown(&self.options.parts[usize::from(part)].name),
            shown(self.path(row as u32)),
        )))
    }

    /// Says how many groups had their place from images that were not asked for.
    fn joined(&self, outcome: &mut Outcome<'_>, round: &Round) {
        let n = round.pinned.iter().filter(|pinned| **pinned).count();
        if n > 0 {
            outcome.said.push(format!(
                "{} with images beside what was asked for {} them in their part",
                plural(n, "group"),
                if n == 1 { "joins" } else { "join" }
            ));
        }
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
        let (before, pinned) = self.before(&rows, &group_of, &number, earlier, before)?;
        let bounds = solve::bounds(&sparse, &aims);
        let times = match &self.options.method {
            Method::Time(column) => {
                time::of_rows(self.listing, column, rows.iter().map(|row| self.rows[*row as usize]))?
            }
            _ => Vec::new(),
        };
        Ok(Round { rows, sparse, aims, places, before, pinned, bounds, group_of, times, groups })
    }

    /// The part that each group had, and whether it must stay there; of a group whose rows had several, the first by
    /// path, and with `keep` an error. `number` is the group in this round of each group of the job.
    fn before(
        &self,
        rows: &[u32],
        group_of: &[u32],
        number: &[u32],
        earlier: &Earlier,
        part: impl Fn(&Place) -> Option<u8>,
    ) -> Result<(Vec<Option<u8>>, Vec<bool>)> {
        let n_groups = number.iter().filter(|n| **n != groups::NONE).count();
        let mut pinned = vec![false; n_groups];
        if earlier.places.iter().all(Option::is_none) && self.fixed.iter().all(Option::is_none) {
            return Ok((Vec::new(), pinned));
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
        for (row, place) in self.fixed.iter().enumerate() {
            let group = number[self.groups.of[row] as usize];
            if let (Some(at), true) = (place.as_ref().and_then(&part), group != groups::NONE) {
                before[group as usize] = Some(at);
                pinned[group as usize] = true;
            }
        }
        Ok((before, pinned))
    }

    fn path(&self, row: u32) -> &str {
        &self.listing.entries[self.rows[row as usize] as usize].path
    }

    /// The part of each group.
    fn assign(&self, round: &Round, keep: bool, attend: &mut search::Attend<'_>) -> Result<Vec<u8>> {
        let problem = solve::Problem {
            sparse: &round.sparse,
            aims: &round.aims,
            places: &round.places,
            before: &round.before,
            pinned: &round.pinned,
            keep,
        };
        let kept = |g: usize| round.before.get(g).copied().flatten().filter(|_| keep || round.pinned[g]);
        Ok(match &self.options.method {
            Method::Balanced => solve::balanced(&problem, &self.lot, &round.bounds, attend)?,
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
        })
    }
}

//! A finished split as plain data.

use super::check::first_leak;
use super::dups::EQUAL;
use super::eligible::LeftOut;
use super::groups::{Keys, NONE, looks_like_groups};
use super::options::{Method, Part};
use super::report::{Line, Reasons, lines};
use super::wishes::{Wishes, listed, one};
use super::{Earlier, Job, Round, time};
use crate::error::{Error, Result};
use crate::names::{plural, shown};
use crate::source::Trouble;

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The part, as a place in the parts of the options.
    pub part: Option<u8>,
    /// The fold, from 0.
    pub fold: Option<u8>,
    /// In no fold, and trained on by all.
    pub always: bool,
}

impl Place {
    /// The cell of column `fold`: a number; `train` for what all folds train on; empty for what takes no part.
    pub fn fold_text(self) -> String {
        match self.fold {
            Some(fold) => fold.to_string(),
            None if self.always => "train".into(),
            None => String::new(),
        }
    }
}

/// What one round of giving groups to parts came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The parts, or the folds.
    pub parts: Vec<Part>,
    /// The part for training; none for folds.
    pub training: Option<usize>,
    /// The classes.
    pub classes: Vec<Line>,
    /// Other strata: values of other columns, combinations.
    pub others: Vec<Line>,
    /// All rows.
    pub size: Line,
    /// The mean deviation of classes in held-out parts, 0 to 1; 0 without classes.
    pub mean_gap: f64,
    /// What it would be at best, each class for itself.
    pub mean_bound: f64,
}

/// A finished split.
#[derive(Debug, Clone, Default)]
pub struct Outcome<'a> {
    /// For each entry of the listing.
    pub places: Vec<Place>,
    /// The rounds: parts, folds.
    pub reports: Vec<Report>,
    /// Rows in no part.
    pub left_out: Vec<LeftOut>,
    /// Rows that were given a part.
    pub n_rows: usize,
    /// Groups.
    pub n_groups: usize,
    /// Images of the largest group, and its name.
    pub largest: (usize, String),
    /// Groups with images of several classes.
    pub n_mixed: usize,
    /// What each source of groups has: its name, its keys, and rows without a key.
    pub sources: Vec<(String, usize, usize)>,
    /// Sets of equal files with different labels, with the path of one.
    pub conflicts: Option<(usize, String)>,
    /// Old groups that changed their part, of those that had one.
    pub moved: Option<(usize, usize)>,
    /// What cannot be as wished.
    pub warnings: Vec<String>,
    /// What was understood.
    pub said: Vec<String>,
    /// Hashes that were worked out: entry and hexadecimal text.
    pub hashes: Vec<(usize, String)>,
    /// The group of each entry, or [`NONE`].
    group_of: Vec<u32>,
    /// The source and key that name each group, and the texts of the keys.
    named: Vec<(u32, u32)>,
    keys: Vec<Keys<'a>>,
    /// The path of the first image of each group without a key that has several.
    paths: Vec<Option<&'a str>>,
}

impl<'a> Outcome<'a> {
    /// The name of the group of an entry; empty for an image of its own.
    pub fn group(&self, entry: usize) -> &str {
        let named = self.group_of.get(entry).and_then(|group| self.named.get(*group as usize));
        match named {
            Some((source, key)) if *source != NONE => &self.keys[*source as usize].texts[*key as usize],
            Some(_) => self.paths[self.group_of[entry] as usize].unwrap_or_default(),
            None => "",
        }
    }

    /// Keeps the names of the groups.
    pub(super) fn name_groups(&mut self, job: Job<'a>) {
        let mut n = vec![0_u32; job.groups.n];
        job.groups.of.iter().for_each(|group| n[*group as usize] += 1);
        let first = |group: usize| {
            job.listing.entries[job.rows[job.groups.first[group] as usize] as usize].path.as_str()
        };
        self.paths = (0..job.groups.n).map(|group| (n[group] > 1).then(|| first(group))).collect();
        self.named = job.groups.named;
        self.keys = job.sources;
    }

    /// Was anything said about groups?
    pub fn has_groups(&self) -> bool {
        !self.sources.is_empty()
    }

    pub(super) fn begin(job: &Job<'a>) -> Self {
        let n = job.listing.entries.len();
        let mut outcome = Self {
            places: vec![Place::default(); n],
            n_rows: job.fixed.iter().filter(|place| place.is_none()).count(),
            n_groups: job.sizes().into_iter().filter(|n| *n > 0).count(),
            said: job.strata.said.clone(),
            ..Self::default()
        };
        outcome.sources =
            job.sources.iter().map(|keys| (keys.name.clone(), keys.texts.len(), keys.n_without())).collect();
        if !job.sources.is_empty() {
            outcome.group_of = vec![NONE; n];
            for (row, group) in job.rows.iter().zip(&job.groups.of) {
                outcome.group_of[*row as usize] = *group;
            }
        }
        outcome
    }

    /// What concerns the whole.
    pub(super) fn finish(&mut self, job: &Job<'a>) -> Result<()> {
        let sizes = job.sizes();
        let largest = (0..sizes.len()).max_by(|a, b| sizes[*a].cmp(&sizes[*b]).then(b.cmp(a)));
        if let Some(g) = largest.filter(|_| self.has_groups()) {
            self.largest = (sizes[g], job.groups.text(g, &job.sources).unwrap_or_default().to_owned());
        }
        if self.has_groups() {
            self.mixed(job);
        } else if !matches!(job.options.method, Method::Time(_)) {
            let columns: Vec<String> =
                looks_like_groups(job.listing, &job.rows).iter().map(|c| format!("`{}`", shown(c))).collect();
            if !columns.is_empty() {
                self.warnings.push(format!(
                    "{} looks like groups that must not be torn: images of one group in training and validation make \
                     the score too good; --group-by keeps them together",
                    columns.join(" or ")
                ));
            }
        }
        self.variants(job);
        self.doubtful_keys(job);
        for (name, keys, without) in &self.sources {
            if *without > 0 && name != EQUAL {
                let rest = if *without == 1 { "has no" } else { "have no" };
                let name = shown(name);
                self.said.push(format!(
                    "{} {rest} `{name}`: {} a group of its own",
                    plural(*without, "image"),
                    if *without == 1 { "it is" } else { "each is" }
                ));
            }
            if *keys == 0 && name != EQUAL {
                let why = "no image has one: is the pattern or column right?";
                self.warnings.push(format!("--group-by `{}`: {why}", shown(name)));
            }
        }
        self.leaks(job)
    }

    /// Keys that may be one but count as two leak; words for "no value" are no group.
    fn doubtful_keys(&mut self, job: &Job<'_>) {
        for keys in job.sources.iter().filter(|keys| keys.name != EQUAL) {
            let name = shown(&keys.name);
            if let Some((a, b, n)) = keys.variants() {
                let more = if n > 1 { format!(" ({n} such pairs)") } else { String::new() };
                self.warnings.push(format!(
                    "`{name}` has `{}` and `{}`{more}: they count as two groups, and leak if they are one; mend the table \
                     if so",
                    shown(a),
                    shown(b)
                ));
            }
            if !keys.nulls.is_empty() {
                let words: Vec<String> =
                    keys.nulls.iter().map(|(word, n)| format!("`{}` ({n})", shown(word))).collect();
                self.said.push(format!("`{name}`: {} taken as no value", listed(&words)));
            }
        }
    }

    /// Classes that differ in case or spaces alone are split as classes of their own, which is hardly meant.
    fn variants(&mut self, job: &Job<'_>) {
        let mut classes: Vec<String> = (job.listing.findings.iter())
            .filter(|f| matches!(f.kind, Trouble::LabelCase | Trouble::LabelSpace | Trouble::LabelUnicode))
            .map(|f| format!("`{}`", shown(&f.at)))
            .collect();
        classes.sort();
        classes.dedup();
        if !classes.is_empty() && job.options.stratify.contains(&None) {
            self.warnings.push(format!(
                "{} differ from other classes in case or spaces alone and count as classes of their own; are they meant \
                 as one? (-v shows the lines)",
                listed(&classes)
            ));
        }
    }

    /// Counts groups that hold several classes, and sets of equal files that do.
    fn mixed(&mut self, job: &Job<'_>) {
        let label = |row: usize| job.listing.entries[job.rows[row] as usize].label.as_str();
        let mut mixed = vec![false; job.groups.n];
        for (row, group) in job.groups.of.iter().enumerate() {
            mixed[*group as usize] |= label(row) != label(job.groups.first[*group as usize] as usize);
        }
        self.n_mixed = mixed.iter().filter(|m| **m).count();
        let Some(keys) = job.sources.iter().find(|keys| keys.name == EQUAL) else { return };
        let mut first = vec![NONE; keys.texts.len()];
        let mut differ = vec![false; keys.texts.len()];
        for (row, key) in keys.of.iter().enumerate().filter(|(_, key)| **key != NONE) {
            let at = &mut first[*key as usize];
            if *at == NONE {
                *at = row as u32;
            } else {
                differ[*key as usize] |= label(*at as usize) != label(row);
            }
        }
        let n = differ.iter().filter(|d| **d).count();
        if let Some(key) = differ.iter().position(|d| *d) {
            self.conflicts = Some((n, job.path(first[key]).to_owned()));
        }
    }

    /// No group may be in two parts or folds. Found here it is our mistake; nothing has been written yet.
    fn leaks(&mut self, job: &Job<'a>) -> Result<()> {
        let torn = job.torn_before();
        let n = torn.iter().filter(|torn| **torn).count();
        if n > 0 {
            let groups = plural(n, "group");
            self.warnings
                .push(format!("{groups} had images in several parts before, and those stay where they are"));
        }
        for of in [|p: &Place| p.part, |p: &Place| p.fold] {
            let part = |(row, group): (&u32, &u32)| {
                of(&self.places[*row as usize]).filter(|_| !torn[*group as usize])
            };
            let parts: Vec<Option<u8>> = job.rows.iter().zip(&job.groups.of).map(part).collect();
            let apart = |(a, b): &&(u32, u32)| {
                parts[*a as usize].zip(parts[*b as usize]).is_some_and(|(a, b)| a != b)
            };
            if let Some((a, b)) = job.pairs.iter().find(apart) {
                let (a, b) = (job.path(*a), job.path(*b));
                return Err(Error::Internal(format!("the split tears near-duplicates: {a} and {b}")));
            }
            if let Some(leak) = first_leak(&job.sources, &parts) {
                return Err(Error::Internal(format!(
                    "the split tears {} `{}`: {} and {}",
                    leak.source,
                    leak.key,
                    job.path(leak.rows.0),
                    job.path(leak.rows.1)
                )));
            }
        }
        Ok(())
    }
}

impl Job<'_> {
    /// How many rows of each group are dealt.
    fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0_usize; self.groups.n];
        let dealt = self.groups.of.iter().zip(&self.fixed).filter(|(_, fixed)| fixed.is_none());
        dealt.for_each(|(group, _)| sizes[*group as usize] += 1);
        sizes
    }

    /// The groups whose rows that stay are in different parts.
    fn torn_before(&self) -> Vec<bool> {
        let mut first: Vec<Option<Place>> = vec![None; self.groups.n];
        let mut torn = vec![false; self.groups.n];
        for (group, place) in self.groups.of.iter().zip(&self.fixed) {
            let Some(place) = place else { continue };
            let first = first[*group as usize].get_or_insert(*place);
            torn[*group as usize] |= first.part != place.part || first.fold != place.fold;
        }
        torn
    }

    /// Takes over what a round came to.
    pub(super) fn settle(
        &self,
        outcome: &mut Outcome<'_>,
        round: &Round,
        part: &[u8],
        names: &[String],
        earlier: &Earlier,
    ) -> Result<()> {
        for (row, group) in round.rows.iter().zip(&round.group_of) {
            let place = &mut outcome.places[self.rows[*row as usize] as usize];
            match round.aims.training {
                Some(_) => place.part = Some(part[*group as usize]),
                None => place.fold = Some(part[*group as usize]),
            }
        }
        let had = round.before.iter().zip(part).filter_map(|(before, now)| before.map(|b| b != *now));
        let (moved, all) = had.fold((0, 0), |(moved, all), m| (moved + usize::from(m), all + 1));
        if all > 0 {
            let so_far = outcome.moved.unwrap_or_default();
            outcome.moved = Some((so_far.0 + moved, so_far.1 + all));
        }
        let part_of: Vec<u8> = round.group_of.iter().map(|group| part[*group as usize]).collect();
        let why = if earlier.keep { "images stay where they were" } else { "groups are whole" };
        outcome.warnings.extend(time::overlaps(&round.times, &part_of, names, why));
        let bounds = &round.bounds;
        let decided = match &self.options.method {
            Method::Hash => Some("each lies where its hash says"),
            Method::Time(_) => Some("time decides"),
            Method::Balanced => earlier.keep.then_some("images stay where they were"),
        };
        let growing = round.before.iter().any(Option::is_some);
        let reasons = Reasons { one: one(outcome), decided, n_classes: self.strata.n_classes, growing };
        let mut all = lines(&round.sparse, &round.aims, part, bounds, &self.strata.names, reasons);
        let Some(mut size) = all.pop() else { return Err(Error::Internal("a split without a size".into())) };
        size.name = "all".into();
        let wishes = Wishes { job: self, round, names, earlier };
        wishes.check(outcome, &all, &size)?;
        let others = all.split_off(self.strata.n_classes);
        let n_held = names.len() - usize::from(round.aims.training.is_some());
        let held =
            |at: usize| (0..names.len()).filter(|s| round.aims.training != Some(*s)).map(move |s| (at, s));
        let cells = (all.len() * n_held).max(1) as f64;
        let gaps =
            (0..all.len()).flat_map(held).map(|(c, s)| (all[c].parts[s].share - round.aims.shares[s]).abs());
        let best = all.iter().map(|line| line.mean_bound * n_held as f64);
        let parts = names
            .iter()
            .zip(&round.aims.shares)
            .map(|(name, share)| Part { name: name.clone(), share: *share });
        outcome.reports.push(Report {
            parts: parts.collect(),
            training: round.aims.training,
            mean_gap: gaps.sum::<f64>() / cells,
            mean_bound: best.sum::<f64>() / cells,
            classes: all,
            others,
            size,
        });
        Ok(())
    }
}

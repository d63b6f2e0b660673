//! A finished split as plain data.

use super::check::first_leak;
use super::eligible::LeftOut;
use super::groups::{Groups, Keys, NONE, looks_like_groups};
use super::options::{Method, Part};
use super::report::{Line, Reasons, lines};
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
}

impl<'a> Outcome<'a> {
    /// The name of the group of an entry; empty for an image of its own.
    pub fn group(&self, entry: usize) -> &str {
        let named = self.group_of.get(entry).and_then(|group| self.named.get(*group as usize));
        match named {
            Some((source, key)) if *source != NONE => &self.keys[*source as usize].texts[*key as usize],
            _ => "",
        }
    }

    /// Keeps the names of the groups.
    pub(super) fn name_groups(&mut self, groups: Groups, sources: Vec<Keys<'a>>) {
        self.named = groups.named;
        self.keys = sources;
    }

    /// Was anything said about groups?
    pub fn has_groups(&self) -> bool {
        !self.sources.is_empty()
    }

    pub(super) fn begin(job: &Job<'a>) -> Self {
        let n = job.listing.entries.len();
        let mut outcome = Self {
            places: vec![Place::default(); n],
            n_rows: job.rows.len(),
            n_groups: job.groups.n,
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
        let mut sizes = vec![0_usize; job.groups.n];
        job.groups.of.iter().for_each(|g| sizes[*g as usize] += 1);
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
        for (name, keys, without) in &self.sources {
            if *without > 0 && name != "equal files" {
                let rest = if *without == 1 { "has no" } else { "have no" };
                let name = shown(name);
                self.said.push(format!(
                    "{} {rest} `{name}`: {} a group of its own",
                    plural(*without, "image"),
                    if *without == 1 { "it is" } else { "each is" }
                ));
            }
            if *keys == 0 && name != "equal files" {
                let why = "no image has one: is the pattern or column right?";
                self.warnings.push(format!("--group-by `{}`: {why}", shown(name)));
            }
        }
        self.leaks(job)
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
        let Some(keys) = job.sources.iter().find(|keys| keys.name == "equal files") else { return };
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
    fn leaks(&self, job: &Job<'_>) -> Result<()> {
        for of in [|p: &Place| p.part, |p: &Place| p.fold] {
            let parts: Vec<Option<u8>> = job.rows.iter().map(|row| of(&self.places[*row as usize])).collect();
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
        self.possible(outcome, round, &all, &size, names, earlier)?;
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

    /// What cannot be as wished: said, and an error where a class would be missing without leave.
    fn possible(
        &self,
        outcome: &mut Outcome<'_>,
        round: &Round,
        lines: &[Line],
        size: &Line,
        names: &[String],
        earlier: &Earlier,
    ) -> Result<()> {
        let aims = &round.aims;
        self.not_empty(outcome, round, size, names)?;
        let by_lot = self.options.method == Method::Balanced && !earlier.keep;
        let mut untrained = Vec::new();
        let mut alone = Vec::new();
        let (mut missing, mut unasked) = (Vec::new(), Vec::new());
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.rows > 0) {
            let absent: Vec<String> = (0..names.len())
                .filter(|s| line.parts[*s].rows == 0 && aims.shares[*s] > 0.0)
                .map(|s| shown(&names[s]).to_string())
                .collect();
            if absent.is_empty() || at >= self.strata.n_classes && !aims.required[at] {
                continue;
            }
            let name = format!("`{}`", shown(&line.name));
            if by_lot && at < self.strata.n_classes && aims.training.is_some_and(|t| line.parts[t].rows == 0)
            {
                untrained.push(name);
                continue;
            }
            let trained = aims.training.is_none_or(|t| line.parts[t].rows > 0);
            if line.groups == 1 && trained && aims.required[at] {
                alone.push(name);
            } else {
                let wanted = aims.required[at] && !earlier.keep;
                let list = if wanted { &mut missing } else { &mut unasked };
                let n = plural(line.groups as usize, one(outcome));
                list.push(format!("{name} ({n}) is not in {}", absent.join(" and ")));
            }
        }
        if !alone.is_empty() {
            let all = listed(&alone);
            let one = one(outcome);
            outcome.warnings.push(match aims.training {
                Some(t) => format!(
                    "{all}: one {one}, so all of it is in {}; there is nothing to validate on",
                    names[t]
                ),
                None => format!("{all}: one {one}, so one fold has all of it and the others none"),
            });
        }
        if let (Some(t), false) = (aims.training, untrained.is_empty()) {
            let all = format!("{}: no image of it is in {}", listed(&untrained), shown(&names[t]));
            if !self.options.allow_missing {
                let advice = if aims.required.contains(&true) {
                    "other groups may avoid it, --allow-missing accepts it"
                } else {
                    "--stratify avoids it, --allow-missing accepts it"
                };
                return Err(Error::Usage(format!("{all}, so it cannot be learnt; {advice}")));
            }
            outcome.warnings.push(all);
        }
        if !missing.is_empty() {
            let all = listed(&missing);
            if !self.options.allow_missing {
                let advice =
                    "--allow-missing accepts that; fewer parts or folds, or other groups, may avoid it";
                return Err(Error::Usage(format!("{all}; {advice}")));
            }
            outcome.warnings.push(all);
        }
        if !unasked.is_empty() {
            outcome.warnings.push(listed(&unasked));
        }
        if size.gap > size.bound.max(0.005) + 0.02 || size.gap > 0.1 {
            let why = match (&self.options.method, earlier.keep) {
                (_, true) => "images stay where they were",
                (Method::Hash, _) => "each group lies where its hash says",
                _ if outcome.has_groups() => "the groups are whole and hold many images each",
                _ if size.rows < 100 => "there are few images",
                _ => "the classes have their shares first",
            };
            outcome.warnings.push(format!(
                "a part has up to {:.1} points more or less of all images than its share: {why}",
                size.gap * 100.0
            ));
        }
        Ok(())
    }
}

impl Job<'_> {
    /// A part without an image is hardly meant.
    fn not_empty(
        &self,
        outcome: &mut Outcome<'_>,
        round: &Round,
        size: &Line,
        names: &[String],
    ) -> Result<()> {
        let empty: Vec<String> = (0..names.len())
            .filter(|s| size.parts[*s].rows == 0)
            .map(|s| format!("`{}`", shown(&names[s])))
            .collect();
        if empty.is_empty() {
            return Ok(());
        }
        let there = plural(size.groups as usize, one(outcome));
        let all = format!(
            "no image is in {}: there {} {there} for {} parts",
            listed(&empty),
            if size.groups == 1 { "is" } else { "are" },
            round.aims.n_parts()
        );
        if !self.options.allow_missing {
            let advice = "--allow-missing accepts that; fewer parts or folds, larger shares or smaller groups may avoid it";
            return Err(Error::Usage(format!("{all}; {advice}")));
        }
        outcome.warnings.push(all);
        Ok(())
    }
}

/// What cannot be torn.
pub(super) fn one(outcome: &Outcome<'_>) -> &'static str {
    if outcome.has_groups() { "group" } else { "image" }
}

/// "a, b, c and 12 others".
pub(super) fn listed(names: &[String]) -> String {
    const MOST: usize = 6;
    match names.len() {
        n if n > MOST => format!("{} and {} others", names[..MOST].join(", "), n - MOST),
        _ => names.join(", "),
    }
}

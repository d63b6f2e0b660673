//! What a finished round could not do as wished: said, or an error where nobody gave leave.

use super::options::Method;
use super::outcome::Outcome;
use super::report::Line;
use super::{Earlier, Job, Round};
use crate::error::{Error, Result};
use crate::names::{plural, shown};

/// A round and what was wanted of it.
pub(super) struct Wishes<'a, 'j> {
    pub(super) job: &'a Job<'j>,
    pub(super) round: &'a Round,
    /// Of the parts or folds.
    pub(super) names: &'a [String],
    pub(super) earlier: &'a Earlier,
}

/// Classes that are not everywhere.
#[derive(Default)]
struct Absent {
    /// Of one group, which is in training.
    alone: Vec<String>,
    /// Not in training.
    untrained: Vec<String>,
    /// Not where they should be.
    missing: Vec<String>,
    /// Not in a part, and nobody asked for it.
    unasked: Vec<String>,
    /// The fewest groups of a missing one.
    fewest: Option<u32>,
}

impl Wishes<'_, '_> {
    /// Says what is not as wished.
    ///
    /// # Errors
    /// An empty part, or a class missing from one, without leave.
    pub(super) fn check(&self, outcome: &mut Outcome<'_>, lines: &[Line], size: &Line) -> Result<()> {
        self.not_empty(outcome, size)?;
        let absent = self.absent(lines, one(outcome));
        let aims = &self.round.aims;
        if !absent.alone.is_empty() {
            let (all, one) = (listed(&absent.alone), one(outcome));
            outcome.warnings.push(match aims.training {
                Some(t) => {
                    let part = shown(&self.names[t]);
                    format!("{all}: one {one}, so all of it is in {part}; there is nothing to validate on")
                }
                None => format!("{all}: one {one}, so one fold has all of it and the others none"),
            });
        }
        if let (Some(t), false) = (aims.training, absent.untrained.is_empty()) {
            let advice = if aims.required.contains(&true) {
                "other groups may avoid that, --allow-missing accepts it"
            } else {
                "--stratify avoids that, --allow-missing accepts it"
            };
            let all = format!(
                "{}: no image of it is in {}, so it cannot be learnt",
                listed(&absent.untrained),
                shown(&self.names[t])
            );
            self.with_leave(outcome, all, advice)?;
        }
        if !absent.missing.is_empty() {
            let fewest = absent.fewest.filter(|n| aims.training.is_none() && *n >= 2);
            let advice = match fewest {
                Some(n) => format!(
                    "--kfold {n} can have all classes in every fold; --allow-missing accepts that some lack"
                ),
                None => {
                    "--allow-missing accepts that; fewer parts or folds, or other groups, may avoid it".into()
                }
            };
            self.with_leave(outcome, listed(&absent.missing), &advice)?;
        }
        if !absent.unasked.is_empty() {
            outcome.warnings.push(listed(&absent.unasked));
        }
        self.sizes(outcome, size);
        Ok(())
    }

    /// A warning with --allow-missing, else an error with this advice.
    fn with_leave(&self, outcome: &mut Outcome<'_>, what: String, advice: &str) -> Result<()> {
        if !self.job.options.allow_missing {
            return Err(Error::Usage(format!("{what}; {advice}")));
        }
        outcome.warnings.push(what);
        Ok(())
    }

    fn absent(&self, lines: &[Line], one: &str) -> Absent {
        let (aims, names, n_classes) = (&self.round.aims, self.names, self.job.strata.n_classes);
        // By hash, in time or kept it cannot be otherwise.
        let by_lot = self.job.options.method == Method::Balanced && !self.earlier.keep;
        let mut all = Absent::default();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.rows > 0) {
            let absent: Vec<String> = (0..names.len())
                .filter(|s| line.parts[*s].rows == 0 && aims.shares[*s] > 0.0)
                .map(|s| shown(&names[s]).to_string())
                .collect();
            if absent.is_empty() || at >= n_classes && !aims.required[at] {
                continue;
            }
            let name = format!("`{}`", shown(&line.name));
            let trained = aims.training.is_none_or(|t| line.parts[t].rows > 0);
            if by_lot && at < n_classes && !trained {
                all.untrained.push(name);
            } else if line.groups == 1 && trained && aims.required[at] {
                all.alone.push(name);
            } else {
                let wanted = aims.required[at] && !self.earlier.keep;
                if wanted {
                    all.fewest = Some(all.fewest.map_or(line.groups, |n| n.min(line.groups)));
                }
                let n = plural(line.groups as usize, one);
                let list = if wanted { &mut all.missing } else { &mut all.unasked };
                list.push(format!("{name} ({n}) is not in {}", absent.join(" and ")));
            }
        }
        all
    }

    fn sizes(&self, outcome: &mut Outcome<'_>, size: &Line) {
        if size.gap <= size.bound.max(0.005) + 0.02 && size.gap <= 0.1 {
            return;
        }
        let why = match (&self.job.options.method, self.earlier.keep) {
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

    /// A part without an image is hardly meant.
    fn not_empty(&self, outcome: &mut Outcome<'_>, size: &Line) -> Result<()> {
        let names = self.names;
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
            names.len()
        );
        let advice = "--allow-missing accepts that; fewer parts or folds, larger shares or smaller groups may avoid it";
        self.with_leave(outcome, all, advice)
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

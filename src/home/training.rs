//! Which rows a model is trained on: one rule for every command that counts them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Home;
use crate::error::{Error, Result};
use crate::names::shown;
use crate::source::Listing;

/// Rows that a model is trained on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Training {
    /// Why these.
    pub which: Which,
    /// Places in the listing, ascending; usable or not.
    pub rows: Vec<usize>,
}

/// Which rows were taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The part of a split that is called `train`, or that `prep split` named as the one for training.
    Train(String),
    /// The part that was asked for.
    Part(String),
    /// What is trained on while this fold validates.
    Fold(u8),
    /// All, since there is no split.
    All,
    /// All, whatever their part.
    Every,
    /// All, since there are folds and no parts.
    Folds,
}

impl Which {
    /// In words.
    pub fn sentence(&self) -> String {
        match self {
            Self::Train(name) if name == "train" => "training rows".into(),
            Self::Train(name) => format!("training rows (`{}`)", shown(name)),
            Self::Part(name) => format!("rows of the part `{}`", shown(name)),
            Self::Fold(fold) => format!("training rows of fold {fold}"),
            Self::All => "all rows (there is no split)".into(),
            Self::Every => "all rows".into(),
            Self::Folds => {
                "all rows (there are folds and no parts; --fold K takes those that fold K trains on)".into()
            }
        }
    }

    /// The name of the part.
    pub fn part(&self) -> Option<&str> {
        match self {
            Self::Train(name) | Self::Part(name) => Some(name),
            _ => None,
        }
    }

    /// Are these the rows that the whole set is trained on?
    fn is_of_the_set(&self) -> bool {
        !matches!(self, Self::Part(_) | Self::Fold(_))
    }
}

/// Is a part called so the one that is trained on?
pub fn is_training(name: &str) -> bool {
    matches!(name.to_lowercase().as_str(), "train" | "training")
}

impl Home {
    /// Do numbers of these rows stand for the whole set, so that its sidecar should keep them?
    pub fn keeps(&self, which: &Which) -> bool {
        which.is_of_the_set() && !self.narrowed
    }

    /// The rows of `listing` that a model is trained on: those of the part `asked`, where the listing was opened with it;
    /// those that `fold` trains on; else of the part that a split named for training, or that is called so; else all.
    ///
    /// # Errors
    /// [`Error::Usage`] where no part is for training, or for a fold that is not there.
    pub fn training(&self, listing: &Listing, asked: Option<&str>, fold: Option<u8>) -> Result<Training> {
        let all = || (0..listing.entries.len()).collect();
        if let Some(part) = asked {
            // Where no other part is for training, the one that is asked for is.
            let other = self.training_part(self.whole(listing).0).ok().flatten().filter(|p| p != part);
            let which = if other.is_some() { Which::Part } else { Which::Train };
            return Ok(Training { which: which(part.to_owned()), rows: all() });
        }
        let part = self.training_part(listing);
        if let Some(fold) = fold {
            // Without parts all rows with a fold belong to it.
            return self.of_fold(listing, fold, part?.as_deref());
        }
        let Some(part) = part? else {
            if !self.has_folds(listing) {
                return Ok(Training { which: Which::All, rows: all() });
            }
            let folds = self.folds(listing)?;
            let rows = (0..listing.entries.len()).filter(|at| !folds[*at].is_empty()).collect();
            return Ok(Training { which: Which::Folds, rows });
        };
        let rows = (0..listing.entries.len()).filter(|at| listing.entries[*at].split == part).collect();
        Ok(Training { which: Which::Train(part), rows })
    }

    /// The fold of each row of `listing`; `train` for those that are always trained on.
    ///
    /// # Errors
    /// Rows that are not as prep writes them.
    pub fn folds(&self, listing: &Listing) -> Result<Vec<String>> {
        (0..listing.entries.len())
            .map(|at| Ok(self.row(listing, at)?.map(|row| row.fold).unwrap_or_default()))
            .collect()
    }

    fn of_fold(&self, listing: &Listing, fold: u8, part: Option<&str>) -> Result<Training> {
        let folds = self.folds(listing)?;
        let own = fold.to_string();
        if !folds.contains(&own) {
            let there: BTreeSet<u8> = folds.iter().filter_map(|f| f.parse().ok()).collect();
            let why = match there.last() {
                None => "the input has no folds; prep split --kfold 5 makes them".to_owned(),
                Some(last) => format!("the folds are 0 to {last}"),
            };
            return Err(Error::Usage(format!("--fold {fold}: {why}")));
        }
        let trains = |at: &usize| {
            let split = listing.entries[*at].split.as_str();
            !folds[*at].is_empty()
                && folds[*at] != own
                && (split.is_empty() || part.is_none_or(|p| p == split))
        };
        Ok(Training { which: Which::Fold(fold), rows: (0..listing.entries.len()).filter(trains).collect() })
    }

    /// The part that is trained on; none where there are no parts.
    fn training_part(&self, listing: &Listing) -> Result<Option<String>> {
        let parts: BTreeSet<&str> =
            listing.entries.iter().map(|e| e.split.as_str()).filter(|s| !s.is_empty()).collect();
        if parts.is_empty() {
            return Ok(None);
        }
        let told = self.sidecar().and_then(|s| s.rest.get("split")).and_then(|s| s.get("training"));
        let told = told.and_then(Value::as_str).filter(|part| parts.contains(part));
        let usual = || parts.iter().copied().find(|part| is_training(part));
        match told.or_else(usual) {
            Some(part) => Ok(Some(part.to_owned())),
            None => {
                let there: Vec<String> = parts.iter().map(|p| format!("`{}`", shown(p))).collect();
                Err(Error::Usage(format!(
                    "the parts are {}, and none is called train: say with --split which one is trained on",
                    there.join(", ")
                )))
            }
        }
    }
}

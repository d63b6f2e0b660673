//! Which columns a manifest has, and where they stand in one that is read.

use std::collections::HashMap;

use crate::table::Table;

use super::{COLUMNS, SOURCE_COLUMNS};

/// What a column of ours is called where the user has its name.
fn prefixed(name: &str) -> String {
    format!("prep_{name}")
}

/// Where our columns stand in a table that is a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    at: HashMap<&'static str, usize>,
}

impl Places {
    /// Our columns in `table`; none where it is no manifest, that is, lacks one of [`COLUMNS`].
    pub fn find(table: &Table) -> Option<Self> {
        let find = |name: &str| table.columns.iter().position(|c| c == name);
        let place = |name: &'static str| find(&prefixed(name)).or_else(|| find(name)).map(|at| (name, at));
        let mut at: HashMap<_, _> = COLUMNS.into_iter().map(place).collect::<Option<_>>()?;
        at.extend(SOURCE_COLUMNS.into_iter().filter_map(place));
        Some(Self { at })
    }

    /// As [`find`](Self::find), of a table whose rows are to be read.
    ///
    /// # Errors
    /// [`Error::Table`](crate::error::Error::Table) where two columns have a name of ours.
    pub fn of(table: &Table) -> crate::error::Result<Option<Self>> {
        let Some(places) = Self::find(table) else { return Ok(None) };
        let mut columns: Vec<usize> = places.at.values().copied().collect();
        columns.sort_unstable();
        columns.into_iter().try_for_each(|at| table.check_sole(at, true))?;
        Ok(Some(places))
    }

    /// The cell of our column `name` in row `row`; empty where the manifest lacks the column.
    pub fn cell<'t>(&self, table: &'t Table, row: usize, name: &str) -> &'t str {
        self.at.get(name).map_or("", |column| table.cell(row, *column))
    }

    /// Is column `column` ours?
    pub fn is_ours(&self, column: usize) -> bool {
        self.at.values().any(|at| *at == column)
    }
}

/// The columns of a manifest to be written: ours, then the user's in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Our name, and what it is called in the header.
    ours: Vec<(&'static str, String)>,
    theirs: Vec<usize>,
    names: Vec<String>,
}

impl Layout {
    /// The layout for rows that come from `table`, with [`SOURCE_COLUMNS`] where `with_source`.
    ///
    /// From a manifest our columns are continued under the names they have. From a table of the user's, `taken` are the
    /// columns whose content the entries carry (see [`crate::source::Listing::taken`]): one of those that is called as
    /// ours is continued too, since it says the same.
    pub fn new(table: Option<&Table>, taken: &[usize], with_source: bool) -> Self {
        let places = table.and_then(Places::find);
        let columns = table.map(|t| t.columns.as_slice()).unwrap_or_default();
        let continued = |column: usize| match &places {
            Some(places) => places.is_ours(column),
            None => taken.contains(&column) && COLUMNS.contains(&columns[column].as_str()),
        };
        let theirs: Vec<usize> = (0..columns.len()).filter(|column| !continued(*column)).collect();
        let names: Vec<String> = theirs.iter().map(|column| columns[*column].clone()).collect();
        let source = if with_source { &SOURCE_COLUMNS[..] } else { &[] };
        let ours = COLUMNS.iter().chain(source).map(|name| {
            let theirs = names.iter().any(|n| n == name);
            (*name, if theirs { prefixed(name) } else { (*name).to_owned() })
        });
        Self { ours: ours.collect(), theirs, names }
    }

    /// The names in the header.
    pub fn header(&self) -> Vec<String> {
        self.ours.iter().map(|(_, called)| called.clone()).chain(self.names.iter().cloned()).collect()
    }

    /// Our columns, in order, by the names of [`COLUMNS`] and [`SOURCE_COLUMNS`].
    pub fn ours(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.ours.iter().map(|(name, _)| *name)
    }

    /// The user's columns, by their place in the table.
    pub fn theirs(&self) -> &[usize] {
        &self.theirs
    }

    /// Says which of our columns had to be renamed, for the person.
    pub fn sentence(&self) -> Option<String> {
        let renamed: Vec<&str> = self
            .ours
            .iter()
            .filter(|(name, called)| name != called)
            .map(|(_, called)| called.as_str())
            .collect();
        (!renamed.is_empty())
            .then(|| format!("your columns keep their names; prep's own are {}", renamed.join(", ")))
    }
}

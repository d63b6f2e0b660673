//! Which images belong together: every source of groups gives each row a key or none, and rows that share a key of any
//! source are one group.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::lot::Lot;
use super::options::{GroupBy, Options};
use crate::error::{Error, Result};
use crate::names::shown;
use crate::source::{Listing, is_null};

/// A row without a key.
pub const NONE: u32 = u32::MAX;

/// One source of groups.
#[derive(Debug, Clone)]
pub struct Keys<'a> {
    /// What the person calls it, such as `plant_id` or `equal files`.
    pub name: String,
    /// The key of each row, or [`NONE`].
    pub of: Vec<u32>,
    /// The text of each key.
    pub texts: Vec<Cow<'a, str>>,
    /// Cells such as `nan` that were taken as no key, and how many rows have one.
    pub nulls: BTreeMap<&'a str, usize>,
}

impl<'a> Keys<'a> {
    /// Keys from the text of each row; rows without text have none.
    pub fn new<T: Into<Cow<'a, str>>>(
        name: impl Into<String>,
        texts: impl Iterator<Item = Option<T>>,
    ) -> Self {
        let mut ids: HashMap<Cow<'a, str>, u32> = HashMap::new();
        let mut keys = Self {
            name: name.into(),
            of: Vec::with_capacity(texts.size_hint().0),
            texts: Vec::new(),
            nulls: BTreeMap::new(),
        };
        for text in texts {
            let Some(text) = text.map(Into::into).filter(|t| !t.is_empty()) else {
                keys.of.push(NONE);
                continue;
            };
            let next = keys.texts.len() as u32;
            let id = *ids.entry(text).or_insert_with_key(|text| {
                keys.texts.push(text.clone());
                next
            });
            keys.of.push(id);
        }
        keys
    }

    /// Keys from the cells of a column: those that say that there is no value are none.
    fn of_cells(name: &str, cells: impl Iterator<Item = &'a str>) -> Self {
        let mut nulls: BTreeMap<&'a str, usize> = BTreeMap::new();
        let value = |cell: &'a str| {
            let cell = cell.trim();
            let null = is_null(cell);
            if null && !cell.is_empty() {
                *nulls.entry(cell).or_default() += 1;
            }
            (!null).then_some(cell)
        };
        let mut keys = Self::new(name, cells.map(value));
        keys.nulls = nulls;
        keys
    }

    /// The first pair of keys that may be one (`P0` and `p0`, `1` and `01` and `1.0`), and how many keys have such a twin.
    pub fn variants(&self) -> Option<(&str, &str, usize)> {
        // 16 bytes a key: a million keys as text would cost more than all the rest of a split.
        let hash = |at: usize| {
            let mut hasher = DefaultHasher::new();
            plain(&self.texts[at]).hash(&mut hasher);
            (hasher.finish(), at)
        };
        let mut keys: Vec<(u64, usize)> = (0..self.texts.len()).map(hash).collect();
        keys.sort_unstable();
        let mut twins: Option<(usize, usize)> = None;
        let mut n = 0;
        for same in keys.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
            let first = same[0].1;
            let is_twin = |at: &usize| plain(&self.texts[*at]) == plain(&self.texts[first]);
            for at in same[1..].iter().map(|(_, at)| *at).filter(is_twin) {
                n += 1;
                twins = Some(twins.map_or((at, first), |known| known.min((at, first))));
            }
        }
        let pair = twins.map(|(at, first)| (self.texts[first].as_ref(), self.texts[at].as_ref()));
        pair.map(|(a, b)| (a, b, n))
    }

    /// Rows without a key.
    pub fn n_without(&self) -> usize {
        self.of.iter().filter(|key| **key == NONE).count()
    }
}

/// A key without what spellings of one key differ in: case, spaces inside, zeros before and `.0` behind a number.
fn plain(text: &str) -> String {
    let text: String = text.to_lowercase().split_whitespace().collect();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let number = !whole.is_empty() && whole.bytes().all(|b| b.is_ascii_digit());
    if !number || !fraction.bytes().all(|b| b == b'0') {
        return text;
    }
    match whole.trim_start_matches('0') {
        "" => "0".into(),
        digits => digits.to_owned(),
    }
}

/// The sources of groups that the options name, for these rows (places in the listing).
///
/// # Errors
/// [`Error::Usage`] for a name that neither a column nor a pattern has.
pub fn keys<'a>(listing: &'a Listing, rows: &[u32], options: &Options) -> Result<Vec<Keys<'a>>> {
    options.group_by.iter().map(|by| one(listing, rows, options, by)).collect()
}

fn one<'a>(listing: &'a Listing, rows: &[u32], options: &Options, by: &GroupBy) -> Result<Keys<'a>> {
    let path = |row: &u32| listing.entries[*row as usize].path.as_str();
    match by {
        GroupBy::Parent => {
            let parents =
                rows.iter().map(|row| Some(path(row).rsplit_once('/').map_or(".", |(parent, _)| parent)));
            Ok(Keys::new("parent", parents))
        }
        GroupBy::Pattern(pattern) => {
            let name = pattern.names().next().unwrap_or("pattern");
            Ok(Keys::new(name, rows.iter().map(|row| pattern.all(path(row)))))
        }
        GroupBy::Name(name) => {
            only_one(listing, "--group-by", name)?;
            if let Some(column) = Column::find(listing, name) {
                let cells = rows.iter().map(|row| column.cell(listing, *row as usize));
                return Ok(Keys::of_cells(name, cells));
            }
            match options.patterns.iter().find(|p| p.captures(name)) {
                Some(pattern) => {
                    Ok(Keys::new(name.as_str(), rows.iter().map(|row| pattern.named(path(row), name))))
                }
                None => Err(no_column("--group-by", name, listing)),
            }
        }
    }
}

/// A column of the listing by its name: the user's own, or one of ours that entries carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Of the table.
    Table(usize),
    /// The label.
    Label,
    /// The group.
    Group,
    /// The part of an earlier split.
    Split,
}

impl Column {
    /// The column called `name`.
    pub fn find(listing: &Listing, name: &str) -> Option<Self> {
        if let Some(at) = listing.table.as_ref().and_then(|table| table.column(name)) {
            return Some(Self::Table(at));
        }
        match name {
            "label" if !listing.classes.is_empty() => Some(Self::Label),
            "group" if listing.entries.iter().any(|e| !e.group.is_empty()) => Some(Self::Group),
            "split" if listing.entries.iter().any(|e| !e.split.is_empty()) => Some(Self::Split),
            _ => None,
        }
    }

    /// The cell of an entry; empty where it has no row in the table.
    pub fn cell(self, listing: &Listing, entry: usize) -> &str {
        let entry = &listing.entries[entry];
        match self {
            Self::Table(column) => {
                listing.table.as_ref().zip(entry.row).map_or("", |(table, row)| table.cell(row, column))
            }
            Self::Label => &entry.label,
            Self::Group => &entry.group,
            Self::Split => &entry.split,
        }
    }
}

/// Refuses a name that two columns have.
///
/// # Errors
/// [`Error::Usage`].
pub fn only_one(listing: &Listing, flag: &str, name: &str) -> Result<()> {
    let n = listing.table.as_ref().map_or(0, |t| t.columns.iter().filter(|c| *c == name).count());
    if n > 1 {
        let name = shown(name);
        return Err(Error::Usage(format!(
            "{flag} {name}: the table has {n} columns of this name: rename all but one"
        )));
    }
    Ok(())
}

/// What is said of a column that is not there.
pub fn no_column(flag: &str, name: &str, listing: &Listing) -> Error {
    let columns: Vec<String> = match &listing.table {
        Some(table) => table.columns.iter().map(|c| format!("`{}`", shown(c))).collect(),
        None => Vec::new(),
    };
    let there = match columns.len() {
        0 => "the input has no table; folders know `parent`, and --group-regex '(?<name>…)' takes names from paths".into(),
        _ => format!("the table has {}; --group-regex '(?<name>…)' takes names from paths", columns.join(", ")),
    };
    Error::Usage(format!("{flag} {}: there is no such column: {there}", shown(name)))
}

/// The groups of the rows.
#[derive(Debug, Clone)]
pub struct Groups {
    /// The group of each row, 0 to `n - 1`, numbered by their first rows.
    pub of: Vec<u32>,
    /// Groups.
    pub n: usize,
    /// The source and key that name each group: of all its keys the smallest text; [`NONE`] for a row of its own.
    pub named: Vec<(u32, u32)>,
    /// The first row of each group.
    pub first: Vec<u32>,
}

impl Groups {
    /// Joins rows that share a key of any source, and the pairs (of near duplicates, say).
    pub fn join(n_rows: usize, sources: &[Keys<'_>], pairs: &[(u32, u32)]) -> Self {
        let mut parent: Vec<u32> =
            if sources.is_empty() && pairs.is_empty() { Vec::new() } else { (0..n_rows as u32).collect() };
        for keys in sources {
            let mut first = vec![NONE; keys.texts.len()];
            for (row, key) in keys.of.iter().enumerate().filter(|(_, key)| **key != NONE) {
                let at = &mut first[*key as usize];
                if *at == NONE {
                    *at = row as u32;
                } else {
                    union(&mut parent, *at, row as u32);
                }
            }
        }
        for (a, b) in pairs {
            union(&mut parent, *a, *b);
        }
        let mut groups = Self { of: vec![NONE; n_rows], n: 0, named: Vec::new(), first: Vec::new() };
        for row in 0..n_rows {
            // A root is the smallest row of its group, so it has its number before the others ask.
            let root = if parent.is_empty() { row } else { root(&mut parent, row as u32) as usize };
            if groups.of[root] == NONE {
                groups.of[root] = groups.n as u32;
                groups.n += 1;
                groups.first.push(root as u32);
                groups.named.push((NONE, NONE));
            }
            groups.of[row] = groups.of[root];
        }
        groups.name(sources);
        groups
    }

    fn name(&mut self, sources: &[Keys<'_>]) {
        for (source, keys) in sources.iter().enumerate() {
            for (row, key) in keys.of.iter().enumerate().filter(|(_, key)| **key != NONE) {
                let named = &mut self.named[self.of[row] as usize];
                let better = named.0 == NONE
                    || (named.0 == source as u32
                        && named.1 != *key
                        && keys.texts[*key as usize] < keys.texts[named.1 as usize]);
                if better {
                    *named = (source as u32, *key);
                }
            }
        }
    }

    /// The name of a group; none for a row of its own.
    pub fn text<'s>(&self, group: usize, sources: &'s [Keys<'_>]) -> Option<&'s str> {
        let (source, key) = self.named[group];
        (source != NONE).then(|| sources[source as usize].texts[key as usize].as_ref())
    }

    /// Where each group lies by lot: by its name, or by the path of its only row, so that it does not depend on the rest.
    pub fn places<'p>(&self, lot: &Lot, sources: &[Keys<'_>], path: impl Fn(u32) -> &'p str) -> Vec<u64> {
        (0..self.n)
            .map(|group| {
                lot.place(self.text(group, sources).unwrap_or_else(|| path(self.first[group])).as_bytes())
            })
            .collect()
    }
}

fn root(parent: &mut [u32], mut row: u32) -> u32 {
    while parent[row as usize] != row {
        let above = parent[parent[row as usize] as usize];
        parent[row as usize] = above;
        row = above;
    }
    row
}

fn union(parent: &mut [u32], a: u32, b: u32) {
    let (a, b) = (root(parent, a), root(parent, b));
    // The smaller row is the root, whatever the order of unions.
    if a < b {
        parent[b as usize] = a;
    } else {
        parent[a as usize] = b;
    }
}

/// Names of columns that mostly mean "these belong together", without `_`, `-` and in lower case.
const GROUP_NAMES: [&str; 28] = [
    "plant",
    "patient",
    "subject",
    "person",
    "animal",
    "individual",
    "specimen",
    "group",
    "session",
    "video",
    "clip",
    "sequence",
    "series",
    "scene",
    "case",
    "study",
    "slide",
    "lesion",
    "eye",
    "tree",
    "leaf",
    "field",
    "plot",
    "visit",
    "donor",
    "mouse",
    "camera",
    "burst",
];

/// The columns that look like groups although nobody named them: telling names, values that come again.
pub fn looks_like_groups(listing: &Listing, rows: &[u32]) -> Vec<String> {
    let Some(table) = &listing.table else { return Vec::new() };
    let rows = &rows[..rows.len().min(50_000)];
    let telling = |name: &str| {
        let plain: String = name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
        let stem = ["identifier", "number", "name", "uid", "id", "nr", "no"]
            .iter()
            .find_map(|end| plain.strip_suffix(end))
            .filter(|s| !s.is_empty())
            .unwrap_or(&plain);
        GROUP_NAMES.contains(&stem) || GROUP_NAMES.iter().any(|g| stem.strip_suffix('s') == Some(g))
    };
    (0..table.columns.len())
        .filter(|column| telling(&table.columns[*column]))
        .filter(|column| {
            let keys = Keys::new(
                "",
                rows.iter().map(|row| Some(Column::Table(*column).cell(listing, *row as usize).trim())),
            );
            let filled = rows.len() - keys.n_without();
            keys.texts.len() > 1 && keys.texts.len() * 10 < filled * 9
        })
        .map(|column| table.columns[column].clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys<'a>(name: &str, texts: &[&'a str]) -> Keys<'a> {
        Keys::new(name, texts.iter().map(|t| Some(*t)))
    }

    #[test]
    fn rows_that_share_any_key_are_one_group() {
        let sources = [keys("plant", &["b", "a", "", "c", ""]), keys("hash", &["", "x", "x", "", ""])];
        let groups = Groups::join(5, &sources, &[(0, 3)]);
        assert_eq!(groups.of, [0, 1, 1, 0, 2]);
        assert_eq!(groups.text(0, &sources), Some("b"));
        assert_eq!(groups.text(1, &sources), Some("a"), "the first source names it");
        assert_eq!(groups.text(2, &sources), None);
        assert_eq!(groups.first, [0, 1, 4]);
    }

    #[test]
    fn spellings_of_one_key_are_noticed_and_null_words_are_none() {
        let of = |cells: &[&'static str]| Keys::of_cells("k", cells.iter().copied());
        assert_eq!(of(&["P0", "p1", "p0"]).variants(), Some(("P0", "p0", 1)));
        assert_eq!(of(&["1", "01", "1.0", "2"]).variants(), Some(("1", "01", 2)));
        assert_eq!(of(&["1", "10", "1.5", "a1", "a01"]).variants(), None);
        let keys = of(&["nan", "a", "N/A", "", "nan"]);
        assert_eq!((keys.texts.len(), keys.n_without()), (1, 4));
        assert_eq!(keys.nulls.into_iter().collect::<Vec<_>>(), [("N/A", 1), ("nan", 2)]);
    }

    #[test]
    fn the_order_of_rows_does_not_change_who_is_together() {
        let one = Groups::join(4, &[keys("k", &["a", "b", "a", "b"]), keys("l", &["", "z", "z", ""])], &[]);
        assert_eq!(one.n, 1);
    }
}

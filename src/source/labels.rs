//! The labels of a table: a column, several labels in a cell, or a column a class with 0 and 1.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use unicode_normalization::UnicodeNormalization;

use crate::names::shown;
use crate::table::Table;

use super::columns::{looks_like_image, tally};
use super::finding::quoted;
use super::{Finding, Trouble};

/// Where the labels of a row are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Labels {
    /// The table has none.
    None,
    /// One label a cell.
    Column(usize),
    /// Several labels a cell, parted by this character.
    Several(usize, char),
    /// A column a class.
    OneHot(Vec<usize>),
}

/// Columns that are numbers of 0 and 1 and no classes.
const NO_CLASS: [&str; 8] =
    ["width", "height", "fold", "index", "is_train", "is_valid", "is_test", "unnamed: 0"];

impl Labels {
    /// Looks for the labels: in `column` where its name told it, else in one-hot columns, else in the one column of
    /// words that come again.
    pub(super) fn find(table: &Table, column: Option<usize>, taken: &[usize]) -> Self {
        if let Some(column) = column {
            return match separator(table, column) {
                Some(c) => Self::Several(column, c),
                None => Self::Column(column),
            };
        }
        let one_hot = one_hot(table, taken);
        if one_hot.len() > 1 {
            return Self::OneHot(one_hot);
        }
        let words: Vec<usize> =
            (0..table.columns.len()).filter(|c| !taken.contains(c) && are_words(table, *c)).collect();
        match words.as_slice() {
            [only] => Self::find(table, Some(*only), taken),
            _ => Self::None,
        }
    }

    /// The labels of a row: sorted, each once, joined by `|`; empty where there is none.
    pub(super) fn of(&self, table: &Table, row: usize) -> String {
        match self {
            Self::None => String::new(),
            Self::Column(column) | Self::Several(column, _) => self.of_cell(table.cell(row, *column)),
            Self::OneHot(columns) => joined(
                columns.iter().filter(|c| is_one(table.cell(row, **c))).map(|c| table.columns[*c].trim()),
            ),
        }
    }

    /// The columns that tell labels.
    pub(super) fn columns(&self) -> &[usize] {
        match self {
            Self::None => &[],
            Self::Column(column) | Self::Several(column, _) => std::slice::from_ref(column),
            Self::OneHot(columns) => columns,
        }
    }

    /// How many rows name each label.
    pub(super) fn counts(&self, table: &Table) -> BTreeMap<String, usize> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut add = |told: &str, n: usize| {
            for label in super::labels_of(told) {
                match counts.get_mut(label) {
                    Some(so_far) => *so_far += n,
                    None => {
                        counts.insert(label.to_owned(), n);
                    }
                }
            }
        };
        match self {
            Self::None => {}
            // Cells come again and again: each is looked at once.
            Self::Column(column) | Self::Several(column, _) => {
                for (cell, n) in tally(table, *column) {
                    add(&self.of_cell(cell), n);
                }
            }
            Self::OneHot(_) => (0..table.len()).for_each(|row| add(&self.of(table, row), 1)),
        }
        counts
    }

    /// The labels that a cell tells; empty for columns of 0 and 1, which have no such cell.
    fn of_cell(&self, cell: &str) -> String {
        match self {
            Self::None | Self::OneHot(_) => String::new(),
            // Spaces alone are no name of a class.
            Self::Column(_) if cell.trim().is_empty() => String::new(),
            Self::Column(_) => cell.to_owned(),
            Self::Several(_, c) => joined(cell.split(*c).map(str::trim)),
        }
    }

    /// What was understood, for the person.
    pub(super) fn sentence(&self, table: &Table) -> String {
        let name = |column: usize| quoted(std::iter::once(table.columns[column].as_str()));
        match self {
            Self::None => "no column of labels (--label-col names one)".into(),
            Self::Column(column) => format!("labels from column {}", name(*column)),
            Self::Several(column, c) => {
                let c = if *c == ' ' { "spaces".to_owned() } else { format!("`{c}`") };
                format!("labels from column {}, several in a cell parted by {c}", name(*column))
            }
            Self::OneHot(columns) => {
                let names = columns.iter().take(4).map(|c| table.columns[*c].as_str());
                format!(
                    "one label a column of 0 and 1: {}{}",
                    quoted(names),
                    if columns.len() > 4 { " …" } else { "" }
                )
            }
        }
    }
}

/// Labels sorted by code point, each once, joined by `|`.
pub(super) fn joined<'a>(labels: impl Iterator<Item = &'a str>) -> String {
    let set: BTreeSet<&str> = labels.filter(|l| !l.is_empty()).collect();
    set.into_iter().collect::<Vec<_>>().join("|")
}

fn is_one(cell: &str) -> bool {
    matches!(cell.trim(), "1" | "1.0" | "1.")
}

fn is_zero(cell: &str) -> bool {
    matches!(cell.trim(), "0" | "0.0" | "0.")
}

/// The columns of 0 and 1 that together name a class in most rows; none where they do not. Rows without any ("no
/// finding") are common where several labels may be true.
fn one_hot(table: &Table, taken: &[usize]) -> Vec<usize> {
    let of_01 = |column: &usize| {
        let (mut zeros, mut ones) = (0, 0);
        let all = (0..table.len()).all(|row| {
            let cell = table.cell(row, *column);
            zeros += usize::from(is_zero(cell));
            ones += usize::from(is_one(cell));
            is_zero(cell) || is_one(cell)
        });
        all && zeros > 0 && ones > 0
    };
    let columns: Vec<usize> = (0..table.columns.len())
        .filter(|c| {
            !taken.contains(c) && !NO_CLASS.contains(&table.columns[*c].trim().to_lowercase().as_str())
        })
        .filter(of_01)
        .collect();
    let named = (0..table.len()).filter(|row| columns.iter().any(|c| is_one(table.cell(*row, *c)))).count();
    if columns.len() > 1 && named * 2 > table.len() { columns } else { Vec::new() }
}

/// Words that come again and again, no numbers, no file names: what a class looks like.
fn are_words(table: &Table, column: usize) -> bool {
    const OTHER: [&str; 8] = ["group", "id", "date", "source", "author", "license", "license_url", "comment"];
    let name = table.columns[column].trim().to_lowercase();
    if OTHER.contains(&name.as_str()) || name.ends_with("_id") {
        return false;
    }
    let tally = tally(table, column);
    let words = tally.keys().all(|cell| cell.trim().parse::<f64>().is_err() && !looks_like_image(cell));
    words && tally.len() > 1 && tally.len() * 4 <= table.len().max(8)
}

/// The character that parts several labels in the cells of a column; none where cells are single labels.
///
/// A class name may hold spaces and commas, so these part only where the parts are also whole cells elsewhere.
fn separator(table: &Table, column: usize) -> Option<char> {
    let tally = tally(table, column);
    ['|', ';', ',', ' '].into_iter().find(|c| {
        let mut parts: HashMap<&str, usize> = HashMap::new();
        for (cell, n) in tally.iter().filter(|(cell, _)| cell.trim().contains(*c)) {
            for part in cell.split(*c).map(str::trim).filter(|p| !p.is_empty()) {
                *parts.entry(part).or_default() += n;
            }
        }
        let all: usize = parts.values().sum();
        let whole: usize = parts.iter().filter(|(part, _)| tally.contains_key(*part)).map(|(_, n)| n).sum();
        let again: usize =
            parts.iter().filter(|(part, n)| **n > 1 || tally.contains_key(*part)).map(|(_, n)| n).sum();
        let numbers = parts.keys().all(|part| part.parse::<u32>().is_ok());
        let told = match c {
            '|' => all,
            ';' => again,
            ' ' if numbers => all,
            ',' if numbers => again,
            ',' => whole * 2,
            _ => whole,
        };
        all > 0 && told * 10 >= all * 9
    })
}

/// What two spellings of one class share: no case, no spaces around or doubled, one Unicode form.
fn key(label: &str) -> String {
    let text: String = label.nfkc().flat_map(char::to_lowercase).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The classes that differ from another one in case, spaces or Unicode form alone, with the spelling that most use.
/// They are told, never merged: which is right is the user's to say.
pub(super) fn variants(counts: &BTreeMap<&str, usize>) -> BTreeMap<String, (Trouble, String)> {
    let mut by_key: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for label in counts.keys() {
        by_key.entry(key(label)).or_default().push(label);
    }
    let mut variants = BTreeMap::new();
    for spellings in by_key.into_values().filter(|s| s.len() > 1) {
        let n = |label: &str| counts.get(label).copied().unwrap_or_default();
        let Some(most) = spellings.iter().copied().max_by(|a, b| n(a).cmp(&n(b)).then(b.cmp(a))) else {
            continue;
        };
        for rare in spellings.into_iter().filter(|s| *s != most) {
            let spaces = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
            let kind = if spaces(rare) != rare || spaces(most) != most {
                Trouble::LabelSpace
            } else if rare.nfc().eq(most.nfc()) || rare.to_lowercase() != most.to_lowercase() {
                Trouble::LabelUnicode
            } else {
                Trouble::LabelCase
            };
            let why = format!("`{}` ({}) and `{}` ({})", shown(rare), n(rare), shown(most), n(most));
            variants
                .insert(rare.to_owned(), (kind, format!("{why} are two classes; are they meant as one?")));
        }
    }
    variants
}

/// A finding for each class folder that is a variant of another.
pub(super) fn variant_findings(counts: &BTreeMap<&str, usize>) -> Vec<Finding> {
    variants(counts).into_iter().map(|(label, (kind, why))| Finding::new(kind, label, None, why)).collect()
}

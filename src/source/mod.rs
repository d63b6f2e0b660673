//! Which samples there are, and what is said about them: a folder tree, a label table, a list or a manifest becomes one
//! [`Listing`], sorted by path. Nothing is decoded here, and nothing that was met is dropped without being counted.

mod columns;
mod disk;
mod filter;
mod finding;
mod input;
mod labelled;
mod labels;
mod list;
mod made;
mod read;
mod resolve;
mod rows;
mod saved;
mod spelled;
mod stamp;
mod tree;
mod walk;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::table::Table;

pub use finding::{Finding, Trouble};
pub use made::{FACTS, SAMPLES, SHEETS, SHEETS_COLUMNS, SHEETS_PAGE};
pub use read::read_file;
pub use spelled::ByPath;
pub use stamp::Stamp;

use filter::Filter;

/// What the user says about the input.
#[derive(Debug, Clone)]
pub struct Options {
    /// The label table; without it one that lies at the top of the folder is looked for.
    pub labels: Option<PathBuf>,
    /// Look for no table: the folders are the labels, whatever lies beside them.
    pub folders_only: bool,
    /// The column of paths; without it found by name and content.
    pub path_col: Option<String>,
    /// The column of labels; without it found by name and content.
    pub label_col: Option<String>,
    /// Take only files that one of these globs names (gitignore rules: without `/` at any depth).
    pub globs: Vec<String>,
    /// Leave out what one of these globs names.
    pub exclude: Vec<String>,
    /// Take files and folders whose name starts with a dot.
    pub hidden: bool,
    /// Take only this part of the split.
    pub split: Option<String>,
    /// A list of the files to take; `-` is standard input.
    pub files_from: Option<PathBuf>,
    /// Take rows of tables and lists whose path leaves the root.
    pub allow_outside: bool,
    /// Look for the files of a table or manifest on disk. Without it the table alone tells what there is.
    pub files: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            labels: None,
            folders_only: false,
            path_col: None,
            label_col: None,
            globs: Vec::new(),
            exclude: Vec::new(),
            hidden: false,
            split: None,
            files_from: None,
            allow_outside: false,
            files: true,
        }
    }
}

/// What an input turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A folder whose first level names the classes.
    Classes,
    /// A folder with `train`, `val`, `test` above the classes.
    Splits,
    /// A folder of images without labels.
    Flat,
    /// A label table.
    Table,
    /// A list of files.
    List,
    /// A manifest that prep wrote.
    Manifest,
}

/// All samples of an input.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The folder that the paths of the entries are relative to.
    pub root: PathBuf,
    /// What the input is.
    pub kind: Kind,
    /// Sorted by the bytes of the path, each path once.
    pub entries: Vec<Entry>,
    /// In code point order, as torchvision counts them. Class folders without images are among them.
    pub classes: Vec<String>,
    /// The table that named the entries, with the user's own columns.
    pub table: Option<Table>,
    /// The columns of the table whose content the entries carry: path, label, split, group.
    pub taken: Vec<usize>,
    /// What is odd about the table or the tree, ordered by kind and place.
    pub findings: Vec<Finding>,
    /// What was left out without becoming a row.
    pub ignored: Ignored,
    /// Sentences for the person: what was understood, and how to say otherwise.
    pub said: Vec<String>,
}

/// How many files and folders were left out, and why. A folder counts once, with all that is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ignored {
    /// `Thumbs.db`, `.DS_Store`, `._*`, `.ipynb_checkpoints`, `__MACOSX`, `@eaDir` …
    pub junk: usize,
    /// Folders that earlier runs of prep made, below the root.
    pub made: Vec<String>,
    /// Names that start with a dot.
    pub hidden: usize,
    /// Well-known files that are no pictures, by extension in lower case.
    pub sidecars: BTreeMap<String, usize>,
    /// Named by a `.prepignore`.
    pub by_ignore_file: usize,
    /// Not wanted by `--glob` or `--exclude`.
    pub by_glob: usize,
    /// In another part of the split than asked for.
    pub other_split: usize,
}

/// Lists the samples of `input`: a folder, a label table, a manifest, a workspace or one image.
///
/// # Errors
/// Where `input` cannot be read, a table is not usable or names nothing, or an option cannot be meant.
pub fn open(input: &Path, options: &Options) -> Result<Listing> {
    let filter = Filter::new(options)?;
    let mut listing = input::open(input, options, &filter)?;
    // Before rows are left out: the index of a class must not depend on the part of the split that is asked for.
    listing.count_classes();
    if let Some(split) = &options.split {
        keep_split(&mut listing, split)?;
    }
    listing.entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    listing.findings.sort();
    listing.said.extend(listing.ignored.sentence());
    listing.said.extend(unused(&listing, options));
    Ok(listing)
}

/// Says of options that name columns why they name none here.
fn unused(listing: &Listing, options: &Options) -> Vec<String> {
    let why = |column: &str| match listing.kind {
        Kind::Table => None,
        Kind::Classes | Kind::Splits | Kind::Flat => Some("there is no table".to_owned()),
        Kind::List => Some("a list has paths, and labels behind them".to_owned()),
        Kind::Manifest => Some(format!("a manifest has its own column `{column}`")),
    };
    let told = [("--path-col", "path", &options.path_col), ("--label-col", "label", &options.label_col)];
    told.into_iter()
        .filter_map(|(flag, column, name)| Some((flag, column, name.as_deref()?)))
        .filter(|(_, column, name)| *name != *column && *name != format!("prep_{column}"))
        .filter_map(|(flag, column, name)| {
            Some(format!("{flag} {} is not used: {}", crate::names::shown(name), why(column)?))
        })
        .collect()
}

/// Leaves only the entries of one part of the split.
///
/// # Errors
/// [`Error::Usage`] for a part that no entry has.
pub fn keep_split(listing: &mut Listing, split: &str) -> Result<()> {
    let parts: BTreeSet<&str> =
        listing.entries.iter().map(|e| e.split.as_str()).filter(|s| !s.is_empty()).collect();
    if !parts.contains(split) {
        let there = match parts.len() {
            0 => "the input has no split: no train/ val/ test/ folders and no column `split`".to_owned(),
            _ => format!("the input has {}", finding::quoted(parts.into_iter())),
        };
        let split = crate::names::shown(split);
        return Err(Error::Usage(format!("--split {split}: {there}")));
    }
    listing.ignored.other_split = keep(listing, |e| e.split == split);
    Ok(())
}

/// Leaves only wanted entries, drops what was found about the others, and tells how many those were.
fn keep(listing: &mut Listing, wanted: impl Fn(&Entry) -> bool) -> usize {
    let mut dropped: HashSet<String> = HashSet::new();
    listing.entries.retain(|entry| {
        let wanted = wanted(entry);
        if !wanted {
            dropped.insert(entry.path.clone());
        }
        wanted
    });
    listing.findings.retain(|finding| !dropped.contains(&finding.at));
    dropped.len()
}

impl Listing {
    /// Adds to the classes those that labels of entries name.
    pub fn count_classes(&mut self) {
        let mut classes: BTreeSet<&str> = self.classes.iter().map(String::as_str).collect();
        for entry in &self.entries {
            classes.extend(labels_of(&entry.label));
        }
        self.classes = classes.into_iter().map(str::to_owned).collect();
    }
}

/// The labels in the `label` of an entry: none, one, or several joined by `|`.
pub fn labels_of(label: &str) -> impl Iterator<Item = &str> {
    label.split('|').filter(|part| !part.is_empty())
}

/// Numbers with fewer different values than this are classes.
pub const FEW_NUMBERS: usize = 20;

/// The number that a cell says, with `.` or `,` before the fraction; none for nan and infinity.
pub fn number_of(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    let plain = cell.parse().ok();
    let comma = || (cell.matches(',').count() == 1 && !cell.contains('.')).then(|| cell.replace(',', "."));
    plain.or_else(|| comma()?.parse().ok()).filter(|n: &f64| n.is_finite())
}

/// Is this what programs write into a cell that has no value?
pub fn is_null(cell: &str) -> bool {
    let cell = cell.trim();
    ["", "nan", "na", "n/a", "none", "null", "nil", "?", "-", "--", "<na>", "#n/a"]
        .iter()
        .any(|null| cell.eq_ignore_ascii_case(null))
}

/// Classes that differ from another one in case, spaces or Unicode form alone, each with a sentence that names both.
pub fn spellings(listing: &Listing) -> BTreeMap<String, String> {
    let mut counts: BTreeMap<&str, usize> = listing.classes.iter().map(|c| (c.as_str(), 0)).collect();
    for label in listing.entries.iter().flat_map(|entry| labels_of(&entry.label)) {
        *counts.entry(label).or_default() += 1;
    }
    labels::variants(&counts).into_iter().map(|(label, (_, why))| (label, why)).collect()
}

/// Are the labels measurements, which are predicted as numbers (regression), and no classes? So many different numbers
/// with fractions, up to a tenth that are none.
pub fn are_measurements(classes: &[String]) -> bool {
    let numbers = classes.iter().filter(|c| number_of(c).is_some()).count();
    let whole = classes.iter().all(|c| number_of(c).is_none() || c.trim().parse::<i64>().is_ok());
    numbers > FEW_NUMBERS && numbers * 10 >= classes.len() * 9 && !whole
}

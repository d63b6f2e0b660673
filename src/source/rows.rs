//! From the rows of a table to entries: rows of one image come together, rows without a file and files without a row
//! stay as rows with their fault.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::entry::Entry;
use crate::fault::{Cause, Fault, Note, Oddity};
use crate::names;
use crate::table::Table;

use super::columns::Roles;
use super::disk::Disk;
use super::labels::{self, Labels};
use super::resolve::{How, Resolver};
use super::{Finding, Trouble};

/// After so many findings of one kind about one class the next ones only count.
const SHOWN: usize = 100;

/// One row with what its path means.
struct Named {
    path: String,
    bytes: u64,
    place: Option<usize>,
    row: usize,
    fault: Option<Box<Fault>>,
    how: Vec<How>,
}

/// What the rows of a table came to.
pub(super) struct Told {
    pub(super) entries: Vec<Entry>,
    pub(super) findings: Vec<Finding>,
    /// Which walked files have a row.
    pub(super) named: Vec<bool>,
    pub(super) said: Vec<String>,
}

struct Teller<'a> {
    root: &'a Path,
    looks: bool,
    table: &'a Table,
    roles: &'a Roles,
    findings: Vec<Finding>,
    /// Rows are boxes or regions: several an image are no mistake.
    many: bool,
}

/// The entries of all rows, sorted by path.
pub(super) fn tell(root: &Path, table: &Table, roles: &Roles, resolver: &Resolver, disk: &Disk) -> Told {
    let mut teller = Teller { root, looks: resolver.looks, table, roles, findings: Vec::new(), many: false };
    let mut rows = teller.resolve(resolver);
    let mut named = vec![false; disk.files().len()];
    for place in rows.iter().filter_map(|row| row.place) {
        named[place] = true;
    }
    let mut said = teller.spellings(&mut rows);
    rows.sort_unstable_by(|a, b| (&a.path, a.row).cmp(&(&b.path, b.row)));
    // The same row again is a mistake; rows that differ are boxes or regions.
    let differ = |a: &Named, b: &Named| {
        (0..table.columns.len()).any(|c| c != roles.path && table.cell(a.row, c) != table.cell(b.row, c))
    };
    let (mut images, mut several) = (0, 0);
    for rows in rows.chunk_by(|a, b| a.path == b.path) {
        images += 1;
        several += usize::from(rows[1..].iter().any(|row| differ(&rows[0], row)));
    }
    teller.many = several * 2 > images && several > 1;
    if teller.many {
        let most = "most images have several: the labels of an image are all that its rows say";
        said.push(format!("{} rows for {images} images; {most}", table.len()));
        if table.columns.len() > 2 {
            // Boxes, for one: they are of the source's pixels, and one row an image cannot hold them.
            said.push(
                "of their other columns the manifest keeps the first row of each image, as it stands".into(),
            );
        }
    }
    let mut entries = Vec::with_capacity(images);
    entries.extend(rows.chunk_by_mut(|a, b| a.path == b.path).map(|rows| teller.entry(rows)));
    teller.variants();
    Told { entries, findings: teller.findings, named, said }
}

impl Teller<'_> {
    fn find(&mut self, kind: Trouble, at: &str, row: usize, detail: impl Into<String>) {
        self.findings.push(Finding::new(kind, at, self.table.line(row), detail));
    }

    fn resolve(&mut self, resolver: &Resolver) -> Vec<Named> {
        let mut rows = Vec::with_capacity(self.table.len());
        for row in 0..self.table.len() {
            let cell = self.table.cell(row, self.roles.path);
            if cell.trim().is_empty() {
                self.find(Trouble::EmptyPath, "", row, "the row names no file");
                continue;
            }
            let meant = resolver.resolve(cell);
            let path = match meant.path.into_os_string().into_string() {
                Ok(path) if names::is_plain(&path) => path,
                Ok(path) => names::encode(Path::new(&path)),
                Err(path) => names::encode(Path::new(&path)),
            };
            let (bytes, place, fault) = match meant.hit {
                Ok(hit) => (hit.bytes, hit.place, hit.fault),
                // Where nobody looks for the files, none is missing.
                Err(fault) if !resolver.looks && fault.cause == Cause::Missing && !cell.contains('\0') => {
                    (0, None, None)
                }
                Err(fault) => (0, None, Some(fault)),
            };
            rows.push(Named { path, bytes, place, row, fault: fault.map(Box::new), how: meant.how });
        }
        rows
    }

    /// Odd spellings are findings; one that most rows have is the table's style, and said once.
    fn spellings(&mut self, rows: &mut [Named]) -> Vec<String> {
        let styles = [
            (How::Backslash, Trouble::Backslash, "paths have `\\` for `/`"),
            (How::DotSlash, Trouble::DotSlash, "paths begin with `./`"),
            (How::Trimmed, Trouble::PathSpace, "paths have spaces around them"),
            (How::Case, Trouble::PathCase, "the case of paths differs from the disk's"),
            (How::Unicode, Trouble::PathUnicode, "the Unicode form of paths differs from the disk's"),
            (
                How::NameOnly,
                Trouble::NameOnly,
                "the table gives names without folders, found below the input",
            ),
        ];
        let mut said = Vec::new();
        if rows.iter().filter(|row| row.how.contains(&How::Extension)).count() * 2 > rows.len() {
            said.push("the table gives names without extension".to_owned());
        }
        for (how, kind, style) in styles {
            let n = rows.iter().filter(|row| row.how.contains(&how)).count();
            if n * 2 > rows.len() {
                said.push(style.to_owned());
                continue;
            }
            for row in rows.iter().filter(|row| row.how.contains(&how)) {
                let cell = self.table.cell(row.row, self.roles.path);
                self.find(kind, &row.path, row.row, format!("written as `{}`", names::shown(cell)));
            }
        }
        said
    }

    /// The entry of the rows of one image.
    fn entry(&mut self, rows: &mut [Named]) -> Entry {
        let first = &rows[0];
        if let Some(fault) = &first.fault {
            self.find(trouble_of(fault.cause), &first.path, first.row, fault.detail.clone());
        }
        let mut notes = notes_of(&first.how);
        let label = self.label(rows, &mut notes);
        let split = self.agreed(rows, self.roles.split, &mut notes);
        let group = self.agreed(rows, self.roles.group, &mut notes);
        let first = &mut rows[0];
        let file = if !self.looks {
            PathBuf::new()
        } else if names::is_plain(&first.path) {
            self.root.join(&first.path)
        } else {
            self.root.join(names::decode(&first.path))
        };
        Entry {
            path: std::mem::take(&mut first.path),
            file,
            bytes: first.bytes,
            label,
            group,
            split,
            row: Some(first.row),
            fault: first.fault.take().map(|fault| *fault),
            notes,
        }
    }

    fn label(&mut self, rows: &[Named], notes: &mut Vec<Note>) -> String {
        let first = &rows[0];
        if rows.len() == 1 {
            let label = self.roles.labels.of(self.table, first.row);
            if label.is_empty() && self.roles.labels != Labels::None {
                self.find(Trouble::EmptyLabel, &first.path, first.row, "the row has no label");
            }
            return if label.contains('|') { labels::joined(super::labels_of(&label)) } else { label };
        }
        let told: Vec<String> = rows.iter().map(|row| self.roles.labels.of(self.table, row.row)).collect();
        let distinct: BTreeSet<&str> = told.iter().map(String::as_str).filter(|l| !l.is_empty()).collect();
        if distinct.is_empty() && self.roles.labels != Labels::None {
            self.find(Trouble::EmptyLabel, &first.path, first.row, "the row has no label");
        }
        if self.many {
            return labels::joined(distinct.into_iter().flat_map(super::labels_of));
        }
        if distinct.len() > 1 {
            let says = distinct.iter().copied().collect::<Vec<_>>().join("|");
            let lines: Vec<String> = rows.iter().map(|row| self.table.line(row.row).to_string()).collect();
            let why = format!("lines {} say {}", lines.join(", "), quoted_all(&distinct));
            notes.push(Note::new(Oddity::ConflictingRows, says));
            self.find(Trouble::ConflictingRows, &first.path, first.row, why);
            return String::new();
        }
        notes.push(Note::new(Oddity::DuplicateRows, rows.len() - 1));
        for row in &rows[1..] {
            let why = format!("line {} already names it", self.table.line(first.row));
            self.find(Trouble::DuplicateRow, &first.path, row.row, why);
        }
        distinct.into_iter().next().unwrap_or_default().to_owned()
    }

    /// The cell of `column` that all rows of an image agree on; empty where they do not.
    fn agreed(&mut self, rows: &[Named], column: Option<usize>, notes: &mut Vec<Note>) -> String {
        let Some(column) = column else { return String::new() };
        if let [only] = rows {
            return self.table.cell(only.row, column).trim().to_owned();
        }
        let cells: BTreeSet<&str> = rows
            .iter()
            .map(|row| self.table.cell(row.row, column).trim())
            .filter(|c| !c.is_empty())
            .collect();
        if cells.len() > 1 {
            let name = self.table.columns[column].clone();
            notes.push(Note::new(
                Oddity::ConflictingRows,
                cells.iter().copied().collect::<Vec<_>>().join("|"),
            ));
            let why = format!("its rows say {} in column `{}`", quoted_all(&cells), names::shown(&name));
            let (path, row) = (rows[0].path.clone(), rows[0].row);
            self.find(Trouble::ConflictingRows, &path, row, why);
            return String::new();
        }
        cells.into_iter().next().unwrap_or_default().to_owned()
    }

    /// Classes that differ in case, spaces or Unicode form alone, row by row: the rare spelling is the suspect.
    fn variants(&mut self) {
        let counts = self.roles.labels.counts(self.table);
        let counts = counts.iter().map(|(label, n)| (label.as_str(), *n)).collect();
        let mut variants: BTreeMap<String, (Trouble, String, usize)> =
            labels::variants(&counts).into_iter().map(|(l, (kind, why))| (l, (kind, why, 0))).collect();
        if variants.is_empty() {
            return;
        }
        for row in 0..self.table.len() {
            let label = self.roles.labels.of(self.table, row);
            for part in super::labels_of(&label) {
                let Some((kind, why, n)) = variants.get_mut(part) else { continue };
                *n += 1;
                if *n <= SHOWN {
                    let line = self.table.line(row);
                    self.findings.push(Finding::new(*kind, part, line, why.clone()));
                }
            }
        }
    }
}

fn trouble_of(cause: Cause) -> Trouble {
    match cause {
        Cause::OutsideRoot => Trouble::OutsideRoot,
        Cause::Ambiguous => Trouble::AmbiguousName,
        Cause::Missing => Trouble::MissingFile,
        Cause::DanglingLink => Trouble::DanglingLink,
        Cause::LinkLoop => Trouble::LinkLoop,
        Cause::NotRegular => Trouble::NotRegular,
        _ => Trouble::Unreadable,
    }
}

fn notes_of(how: &[How]) -> Vec<Note> {
    how.iter()
        .filter_map(|how| match how {
            How::Trimmed => Some(Note::plain(Oddity::Trimmed)),
            How::Extension => Some(Note::plain(Oddity::ExtensionAdded)),
            How::Case => Some(Note::plain(Oddity::CaseDiffers)),
            How::Unicode => Some(Note::plain(Oddity::UnicodeForm)),
            How::Backslash | How::DotSlash | How::NameOnly => None,
        })
        .collect()
}

fn quoted_all(names: &BTreeSet<&str>) -> String {
    super::finding::quoted(names.iter().copied())
}

//! What an earlier manifest knows, carried over to a listing by path.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::error::Result;
use crate::fault::{Cause, Fault, Note, Oddity, Status};
use crate::manifest::{Places, Row, parse_notes};
use crate::names::{decode, encode};
use crate::out::place;
use crate::source::{self, Listing, Options};
use crate::table::Table;

use super::is_lasting;

/// The folder of a file, as it can be opened.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path `text`, relative to the folder `from`, as it is called below `root`; empty where it is not there. Both
/// folders by their real paths.
pub fn below(root: &Path, from: &Path, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut path = PathBuf::new();
    for part in from.join(decode(text)).components() {
        match part {
            Component::ParentDir => _ = path.pop(),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path.strip_prefix(root).map(encode).unwrap_or_default()
}

/// An earlier manifest.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) table: Table,
    pub(super) places: Places,
    /// Rows by path; none where they lie in that order already, as prep writes them.
    order: Option<Vec<u32>>,
    /// What the listing calls the rows, where the manifest lies elsewhere.
    names: Option<Vec<String>>,
}

impl Known {
    /// The manifest `table`, for a listing of the folder `root`.
    pub(super) fn new(table: Table, places: Places, root: &Path) -> Self {
        let mut known = Self { table, places, order: None, names: None };
        known.names = known.seen_from(root);
        let sorted = (1..known.len()).all(|row| known.path(row - 1) < known.path(row));
        if !sorted {
            let mut order: Vec<u32> = (0..known.len() as u32).collect();
            order.sort_by_key(|row| known.path(*row as usize));
            known.order = Some(order);
        }
        known
    }

    /// The paths of the rows as seen from `root`; none where the manifest lies there, so that they are the same. Those
    /// that were written when nobody looked for the files are the table's own, and stay.
    fn seen_from(&self, root: &Path) -> Option<Vec<String>> {
        let from = place::real_of_planned(folder_of(&self.table.path));
        let root = place::real_of_planned(root);
        if from == root {
            return None;
        }
        let name = |row| {
            let path = self.places.cell(&self.table, row, "path");
            let seen = below(&root, &from, path);
            if seen.is_empty() { path.to_owned() } else { seen }
        };
        Some((0..self.len()).map(name).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// The place in the table of the `nth` row by path.
    pub(super) fn nth(&self, nth: usize) -> usize {
        self.order.as_ref().map_or(nth, |order| order[nth] as usize)
    }

    pub(super) fn path(&self, row: usize) -> &str {
        match &self.names {
            Some(names) => &names[row],
            None => self.places.cell(&self.table, row, "path"),
        }
    }

    /// The row of an image.
    pub(super) fn row(&self, path: &str) -> Result<Option<Row>> {
        let row = self.find(path).map(|row| Row::read(&self.table, &self.places, row)).transpose()?;
        Ok(row.map(|row| Row { path: path.to_owned(), ..row }))
    }

    fn find(&self, path: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.path(self.nth(middle)) < path { low = middle + 1 } else { high = middle }
        }
        (low < self.len()).then(|| self.nth(low)).filter(|row| self.path(*row) == path)
    }

    /// Gives the entries the parts, groups and lasting faults that are known.
    pub(super) fn carry_to(&self, listing: &mut Listing) {
        for entry in &mut listing.entries {
            let Some(row) = self.find(&entry.path) else { continue };
            let cell = |name: &str| self.places.cell(&self.table, row, name);
            if !cell("split").is_empty() {
                cell("split").clone_into(&mut entry.split);
            }
            if entry.group.is_empty() {
                cell("group").clone_into(&mut entry.group);
            }
            let decided: Vec<Note> =
                parse_notes(cell("notes")).into_iter().filter(|n| n.kind.is_decision()).collect();
            carry_label(&mut entry.label, cell("label"), &decided);
            if !entry.notes.iter().any(|n| n.kind.is_decision()) {
                entry.notes.extend(decided);
            }
            let unchanged =
                cell("bytes").parse().is_ok_and(|bytes: u64| bytes == entry.bytes) || entry.bytes == 0;
            let fault = Fault::parse(cell("fault")).filter(|f| is_lasting(f.cause));
            let by_hand = Status::parse(cell("status")) == Some(Status::Excluded);
            if entry.fault.is_none() && (unchanged || by_hand) {
                entry.fault = fault.or_else(|| by_hand.then(|| Fault::new(Cause::Excluded, cell("fault"))));
            }
        }
        listing.count_classes();
    }
}

/// A label that the user gave stays while the source says what it said then; a label that was corrected there wins.
fn carry_label(label: &mut String, given: &str, decided: &[Note]) {
    let then = Note::new(Oddity::Relabelled, &*label).to_string();
    if decided.iter().any(|note| note.kind == Oddity::Relabelled && note.to_string() == then) {
        given.clone_into(label);
    }
}

/// Images that lie in a plain folder but not in its manifest, which was edited by hand, get the label of their folder.
pub(super) fn tree_labels(
    input: &Path,
    options: &Options,
    origin: &Value,
    listing: &mut Listing,
) -> Result<()> {
    listing.said.push("the manifest was edited by hand: it is taken as it is".into());
    let folder = origin.get("kind").and_then(Value::as_str) == Some("folder");
    let unlisted = |e: &crate::entry::Entry| e.fault.as_ref().is_some_and(|f| f.cause == Cause::Unlisted);
    if !folder || !listing.entries.iter().any(unlisted) {
        return Ok(());
    }
    let tree = source::open(input, &Options { folders_only: true, split: None, ..options.clone() })?;
    let labels: HashMap<&str, &str> =
        tree.entries.iter().map(|e| (e.path.as_str(), e.label.as_str())).collect();
    for entry in listing.entries.iter_mut().filter(|e| unlisted(e)) {
        if let Some(label) = labels.get(entry.path.as_str()) {
            (*label).clone_into(&mut entry.label);
            entry.fault = None;
        }
    }
    listing.findings.retain(|f| f.kind != source::Trouble::UnlistedFile);
    Ok(())
}

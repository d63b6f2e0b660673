//! `prep apply`: what somebody marked on sheets goes into the manifest: labels, exclusions, doubts. Files are never
//! touched, and nothing is applied unless all of it can be.

mod fixes;

use std::collections::{BTreeMap, BTreeSet, HashSet};

pub use self::fixes::{Action, Fix, read};
use crate::error::{Error, Result};
use crate::fault::{Cause, Fault, Note, Oddity};
use crate::home::{Home, Kept};
use crate::manifest::Row;
use crate::names::{plural, shown, spreadsheet_plain};
use crate::source::{ByPath, Listing, labels_of};

/// Troubles that are told one by one.
const TOLD: usize = 5;

/// One change of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Place in the listing.
    pub row: usize,
    /// Its label now.
    pub before: String,
    /// What is done.
    pub action: Action,
    /// Why, as somebody noted.
    pub note: String,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// By place in the listing; each row once.
    pub changes: Vec<Change>,
    /// Lines that ask for what is so already.
    pub already: usize,
    /// Labels that the data set did not have.
    pub new_labels: Vec<String>,
}

/// Holds the lines of a file of fixes against the rows of the manifest.
///
/// # Errors
/// [`Error::Table`] with all that is wrong: paths that are not in the manifest, labels that are new (unless
/// `new_labels`), rows whose label is another one than the file says it was, lines that contradict each other.
pub fn plan(listing: &Listing, fixes: &[Fix], file: &std::path::Path, new_labels: bool) -> Result<Plan> {
    let rows = ByPath::new(&listing.entries);
    let known: HashSet<&str> = listing.entries.iter().map(|entry| entry.label.as_str()).collect();
    let mut troubles: Vec<(u64, String)> = Vec::new();
    let mut by_row: BTreeMap<usize, Vec<Fix>> = BTreeMap::new();
    for fix in fixes {
        match rows.find(&fix.path)[..] {
            [row] => by_row.entry(row).or_default().push(meant(fix, listing, &known)),
            [] => troubles.push((fix.line, format!("`{}` is not in the manifest", shown(&fix.path)))),
            _ => {
                let why = "can mean two images, with and without the `'`";
                troubles.push((fix.line, format!("`{}` {why}", shown(&fix.path))));
            }
        }
    }
    let mut plan = Plan::default();
    for (row, fixes) in by_row {
        match changes(listing, row, &fixes) {
            Ok(Some(change)) => plan.changes.push(change),
            Ok(None) => plan.already += 1,
            Err(trouble) => troubles.push(trouble),
        }
    }
    plan.new_labels = unknown(listing, &plan.changes);
    if !new_labels {
        troubles.extend(plan.new_labels.iter().map(|label| (0, new_label(listing, label))));
    }
    match told(troubles) {
        None => Ok(plan),
        Some((line, why)) => Err(Error::table(file, line, why)),
    }
}

/// The fix with its label as manifests write it: several each once and sorted, without the `'` of spreadsheets. What is
/// a label of the set by the letter is that label.
fn meant(fix: &Fix, listing: &Listing, known: &HashSet<&str>) -> Fix {
    let Action::Relabel(told) = &fix.action else { return fix.clone() };
    let is_known = |text: &str| known.contains(text) || listing.classes.iter().any(|class| class == text);
    let plain = spreadsheet_plain(told).unwrap_or(told);
    let label = [told.as_str(), plain].into_iter().find(|text| is_known(text)).map_or_else(
        || {
            let parts: BTreeSet<&str> = plain.split('|').map(str::trim).collect();
            parts.into_iter().collect::<Vec<_>>().join("|")
        },
        str::to_owned,
    );
    Fix { action: Action::Relabel(label), ..fix.clone() }
}

/// What the lines about one row come to, or the first line that is wrong.
fn changes(listing: &Listing, row: usize, fixes: &[Fix]) -> Result<Option<Change>, (u64, String)> {
    let Some(first) = fixes.first() else { return Ok(None) };
    if let Some(other) = fixes.iter().find(|fix| fix.action != first.action) {
        let path = shown(&other.path);
        return Err((other.line, format!("line {} wants something else of `{path}`", first.line)));
    }
    let mut done = None;
    for fix in fixes.iter().rev() {
        // The first line decides what is noted; each line must be right.
        done = change(listing, row, fix).map_err(|why| (fix.line, why))?;
    }
    Ok(done)
}

/// The first troubles as one sentence, with the line of the first.
fn told(mut troubles: Vec<(u64, String)>) -> Option<(Option<u64>, String)> {
    troubles.sort();
    let line = troubles.first()?.0;
    let more = troubles.len().saturating_sub(TOLD);
    let sentence = |(at, why): &(u64, String)| match *at {
        0 => why.clone(),
        at if at == line => why.clone(),
        at => format!("line {at}: {why}"),
    };
    let mut text: Vec<String> = troubles.iter().take(TOLD).map(sentence).collect();
    if more > 0 {
        text.push(format!("and {more} more"));
    }
    text.push("nothing was changed".into());
    Some(((line > 0).then_some(line), text.join("; ")))
}

/// What a line means for its row; none where it is so already.
fn change(listing: &Listing, row: usize, fix: &Fix) -> Result<Option<Change>, String> {
    let entry = &listing.entries[row];
    let label = &entry.label;
    let cause = entry.fault.as_ref().map(|fault| fault.cause);
    if cause == Some(Cause::Unlisted) {
        return Err(format!("`{}` is on disk, but no row names it", shown(&fix.path)));
    }
    let is_so = match &fix.action {
        Action::Relabel(new) => new == label,
        Action::Exclude => cause == Some(Cause::Excluded),
        Action::Doubtful => {
            let note = doubt(&fix.note).to_string();
            entry.notes.iter().any(|n| n.to_string() == note)
        }
    };
    if is_so {
        return Ok(None);
    }
    if let Some(was) = fix.was.as_ref().filter(|was| !is_same(was, label)) {
        let (path, was, now) = (shown(&fix.path), named(was), named(label));
        return Err(format!(
            "`{path}` had {was} when it was marked and has {now} now: somebody changed it since; look again on a \
             new sheet, or take the line out"
        ));
    }
    let (before, action, note) = (label.clone(), fix.action.clone(), fix.note.clone());
    Ok(Some(Change { row, before, action, note }))
}

/// Does a cell name this label, whatever the order of several, and with the `'` of spreadsheets or without?
fn is_same(cell: &str, label: &str) -> bool {
    let parts = |text: &str| labels_of(text).map(|part| part.trim().to_owned()).collect::<BTreeSet<String>>();
    cell == label
        || spreadsheet_plain(cell) == Some(label)
        || cell.contains('|') && parts(cell) == parts(label)
}

fn named(label: &str) -> String {
    if label.is_empty() { "no label".into() } else { format!("label `{}`", shown(label)) }
}

fn doubt(note: &str) -> Note {
    Note::new(Oddity::Doubtful, note)
}

/// The labels of changes that are no class yet, sorted.
fn unknown(listing: &Listing, changes: &[Change]) -> Vec<String> {
    let mut new: Vec<String> = changes
        .iter()
        .filter_map(|change| match &change.action {
            Action::Relabel(label) => Some(label),
            _ => None,
        })
        .flat_map(|label| labels_of(label))
        .filter(|label| !listing.classes.iter().any(|class| class == label))
        .map(str::to_owned)
        .collect();
    new.sort();
    new.dedup();
    new
}

fn new_label(listing: &Listing, label: &str) -> String {
    let plain = |text: &str| text.trim().to_lowercase();
    let alike = listing.classes.iter().find(|class| plain(class) == plain(label));
    let label = shown(label);
    match alike {
        Some(class) => format!(
            "`{label}` is no class, but `{}` is: correct it, or --new-labels allows both",
            shown(class)
        ),
        None => format!(
            "`{label}` is none of the {}: correct it, or allow it with --new-labels",
            plural(listing.classes.len(), "class")
        ),
    }
}

/// Writes the manifest with the changes of `plan`.
///
/// # Errors
/// [`Error::Write`].
pub fn write(plan: &Plan, mut listing: Listing, home: &Home) -> Result<Kept> {
    let mut changes: BTreeMap<usize, (&Change, Option<Note>)> = BTreeMap::new();
    for change in &plan.changes {
        let entry = &mut listing.entries[change.row];
        // The source's own label is noted once, however often an image is relabelled.
        let known = entry.notes.iter().any(|n| n.kind == Oddity::Relabelled);
        let note = match &change.action {
            Action::Relabel(label) => {
                let note = (!known).then(|| Note::new(Oddity::Relabelled, &entry.label));
                entry.label.clone_from(label);
                note
            }
            Action::Doubtful => Some(doubt(&change.note)),
            Action::Exclude => None,
        };
        changes.insert(change.row, (change, note));
    }
    listing.count_classes();
    let mark = |at: usize, row: &mut Row| {
        let Some((change, note)) = changes.get(&at) else { return };
        match &change.action {
            Action::Relabel(label) => row.label.clone_from(label),
            Action::Exclude => {
                let why = if change.note.is_empty() { "marked as junk" } else { change.note.as_str() };
                let fault = Fault::new(Cause::Excluded, why);
                row.status = fault.status();
                row.fault = Some(fault);
            }
            Action::Doubtful => {}
        }
        if let Some(note) = note {
            let separator = if row.notes.is_empty() { "" } else { ";" };
            row.notes = format!("{}{separator}{note}", row.notes);
        }
    };
    home.rewrite(&listing, "apply", mark, |_| {})
}

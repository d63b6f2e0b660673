//! `prep apply`: what somebody marked on sheets goes into the manifest: labels, exclusions, doubts. Files are never
//! touched, and nothing is applied unless all of it can be.

mod fixes;

use std::collections::{BTreeMap, HashMap};

pub use self::fixes::{Action, Fix, read};
use crate::error::{Error, Result};
use crate::fault::{Cause, Fault, Note, Oddity};
use crate::home::{Home, Kept};
use crate::manifest::Row;
use crate::names::{self, plural, shown};
use crate::source::{Listing, labels_of};

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
    let rows: HashMap<&str, usize> =
        listing.entries.iter().enumerate().map(|(at, entry)| (entry.path.as_str(), at)).collect();
    let mut troubles: Vec<(u64, String)> = Vec::new();
    let mut by_row: BTreeMap<usize, &Fix> = BTreeMap::new();
    for fix in fixes {
        let spelled = names::encode(&names::decode(&fix.path));
        let Some(row) = rows.get(fix.path.as_str()).or_else(|| rows.get(spelled.as_str())) else {
            troubles.push((fix.line, format!("`{}` is not in the manifest", shown(&fix.path))));
            continue;
        };
        match by_row.get(row) {
            Some(first) if first.action != fix.action => {
                let path = shown(&fix.path);
                troubles.push((fix.line, format!("line {} wants something else of `{path}`", first.line)));
            }
            Some(_) => {}
            None => {
                by_row.insert(*row, fix);
            }
        }
    }
    let mut plan = Plan::default();
    for (row, fix) in by_row {
        match change(listing, row, fix) {
            Ok(Some(change)) => plan.changes.push(change),
            Ok(None) => plan.already += 1,
            Err(why) => troubles.push((fix.line, why)),
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
    if let Some(was) = fix.was.as_ref().filter(|was| *was != label) {
        let (path, was, now) = (shown(&fix.path), named(was), named(label));
        return Err(format!(
            "`{path}` had {was} when it was marked and has {now} now: somebody changed it since; look again on a \
             new sheet, or take the line out"
        ));
    }
    let (before, action, note) = (label.clone(), fix.action.clone(), fix.note.clone());
    Ok(Some(Change { row, before, action, note }))
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
        Some(class) => format!("`{label}` is no class, but `{}` is: correct it, or --new-labels allows both", shown(class)),
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

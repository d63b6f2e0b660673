//! A folder tree: its shape, and the class and split that each path tells.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use crate::entry::Entry;
use crate::error::Result;
use crate::names;

use super::filter::Filter;
use super::finding::quoted;
use super::labels::variant_findings;
use super::walk::{Found, Walked, walk};
use super::{Finding, Kind, Listing, Trouble};

/// The split that a folder name means: `train`, `val` or `test`.
pub(super) fn split_of(name: &OsStr) -> Option<&'static str> {
    let lower = name.as_bytes().to_ascii_lowercase();
    Some(match lower.as_slice() {
        b"train" | b"training" | b"trn" => "train",
        b"val" | b"valid" | b"validation" | b"dev" | b"eval" => "val",
        b"test" | b"testing" | b"tst" => "test",
        _ => return None,
    })
}

/// Lists the folder `root` by its tree alone.
///
/// # Errors
/// Where the folder itself cannot be read.
pub(super) fn open(root: &Path, filter: &Filter) -> Result<Listing> {
    Ok(listing(root, walk(root, Path::new(""), filter)?))
}

/// The listing of a walked tree.
pub(super) fn listing(root: &Path, walked: Walked) -> Listing {
    let Walked { files, junk, folders, ignored, mut findings } = walked;
    let kind = shape(files.iter().map(|f| f.path.as_path()));
    let classes = class_folders(kind, &folders);
    let mut used = BTreeSet::new();
    let mut entries = Vec::with_capacity(files.len());
    for found in files {
        let (label, split) = meaning(kind, &found.path);
        let entry = entry(root, found, label, split);
        if kind != Kind::Flat && entry.label.is_empty() && entry.fault.is_none() {
            let why = "it lies beside the class folders, so it has no class";
            findings.push(Finding::new(Trouble::Unlabelled, entry.path.clone(), None, why));
        }
        if !entry.label.is_empty() && !used.contains(&entry.label) {
            used.insert(entry.label.clone());
        }
        entries.push(entry);
    }
    entries.extend(junk.into_iter().map(|found| entry(root, found, String::new(), String::new())));
    for class in classes.difference(&used) {
        let why = "a class folder without images; torchvision's ImageFolder refuses it";
        findings.push(Finding::new(Trouble::EmptyClass, class.clone(), None, why));
    }
    let mut counts: BTreeMap<&str, usize> = classes.iter().map(|c| (c.as_str(), 0)).collect();
    for entry in &entries {
        if let Some(n) = counts.get_mut(entry.label.as_str()) {
            *n += 1;
        }
    }
    findings.extend(variant_findings(&counts));
    let said = vec![sentence(kind, &entries, &classes)];
    let classes = classes.into_iter().collect();
    Listing {
        root: root.to_owned(),
        kind,
        entries,
        classes,
        table: None,
        taken: Vec::new(),
        findings,
        ignored,
        said,
    }
}

/// Does the first level name splits, classes or nothing?
pub(super) fn shape<'a>(files: impl Iterator<Item = &'a Path>) -> Kind {
    let mut tops: BTreeSet<&OsStr> = BTreeSet::new();
    let mut below_two = false;
    for path in files {
        let mut parts = path.components();
        if let (Some(Component::Normal(top)), Some(_)) = (parts.next(), parts.next()) {
            tops.insert(top);
            below_two |= parts.next().is_some();
        }
    }
    if tops.is_empty() {
        return Kind::Flat;
    }
    let splits = tops.iter().all(|top| split_of(top).is_some());
    // A lone `test` folder full of images is more likely what somebody calls a class.
    if splits && (below_two || tops.len() > 1) { Kind::Splits } else { Kind::Classes }
}

/// The folders that are classes, with or without images.
fn class_folders(kind: Kind, folders: &[std::path::PathBuf]) -> BTreeSet<String> {
    let mut classes = BTreeSet::new();
    for folder in folders {
        let mut parts = folder.components();
        let name = match (kind, parts.next(), parts.next()) {
            (Kind::Classes, Some(top), None) => top,
            (Kind::Splits, Some(top), Some(class)) if split_of(top.as_os_str()).is_some() => class,
            _ => continue,
        };
        classes.insert(class_name(name.as_os_str()));
    }
    classes
}

/// The class and the split of a path, empty where it tells none.
pub(super) fn meaning(kind: Kind, path: &Path) -> (String, String) {
    let mut parts = path.components();
    let first = parts.next();
    let (mut label, mut split) = (String::new(), String::new());
    let Some(first) = first else { return (label, split) };
    let second = parts.next();
    match kind {
        Kind::Classes if second.is_some() => label = class_name(first.as_os_str()),
        Kind::Splits => {
            if second.is_some() {
                split = split_of(first.as_os_str()).unwrap_or_default().to_owned();
            }
            if let (Some(class), Some(_)) = (second, parts.next()) {
                label = class_name(class.as_os_str());
            }
        }
        _ => {}
    }
    (label, split)
}

/// A folder's name as a label. `|` would make two labels of it.
fn class_name(name: &OsStr) -> String {
    names::encode(Path::new(name)).replace('|', "%7C")
}

/// The entry of a file that the walk found.
pub(super) fn entry(root: &Path, found: Found, label: String, split: String) -> Entry {
    Entry {
        path: names::encode(&found.path),
        file: root.join(&found.path),
        bytes: found.bytes,
        label,
        group: String::new(),
        split,
        row: None,
        fault: found.fault,
        notes: Vec::new(),
    }
}

fn sentence(kind: Kind, entries: &[Entry], classes: &BTreeSet<String>) -> String {
    let n = match entries.len() {
        1 => "one file".to_owned(),
        n => format!("{n} files"),
    };
    match kind {
        Kind::Splits => {
            let splits: BTreeSet<&str> =
                entries.iter().map(|e| e.split.as_str()).filter(|s| !s.is_empty()).collect();
            format!("{n} in {} with {} class folders", quoted(splits.into_iter()), classes.len())
        }
        Kind::Classes if classes.len() == 1 => {
            let class = quoted(classes.iter().map(String::as_str));
            format!("{n} in one class folder {class}; if it holds the classes, give it as INPUT")
        }
        Kind::Classes => format!("{n} in {} class folders", classes.len()),
        _ => format!("{n} without labels: there are neither class folders nor a label table"),
    }
}

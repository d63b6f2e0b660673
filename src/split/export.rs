//! A split for programs that know no manifest: a table, lists, or a tree of class folders that `ImageFolder` reads.
//!
//! All of it lies in a folder of its own beside the input. What an earlier export put there and this one does not is
//! removed; what prep did not put there, or what was changed since, stays.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::record::{Print, Record};
use super::{Options, Outcome, Place};
use crate::decode::signature;
use crate::error::{Error, Result};
use crate::names::{self, plural, shown};
use crate::out::link::{Link, link, symbolic};
use crate::out::plan::plan;
use crate::out::{self, Claim, place};
use crate::source::{Kind, Listing, labels_of};
use crate::table::csv_out;

/// The record of what an export put into its folder.
const FILES: &str = "split-files";

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `split.csv`: path, label, split, fold, group.
    Csv,
    /// `train.txt`, `val.txt` …, `fold0.train.txt` …: a path a line, relative to the input.
    Lists,
    /// `train/<class>/…`, `val/<class>/…`; for folds `fold0/<class>/…`.
    Tree(Link),
}

/// An export that is ready to be written: nothing is in its way.
#[derive(Debug)]
pub struct Prepared<'a> {
    listing: &'a Listing,
    folder: PathBuf,
    /// What is there from an earlier export.
    before: Record,
    /// What will be there.
    after: Record,
    texts: BTreeMap<String, Vec<u8>>,
    tree: Vec<(usize, PathBuf)>,
    link: Link,
    /// What a loader may get wrong.
    pub warnings: Vec<String>,
}

/// Plans the export of the split into `folder` and looks at what lies there; writes nothing.
///
/// # Errors
/// A folder that is not ours or inside the input; classes that cannot be folders; a file in the way that is not, or no
/// longer, as prep exported it.
pub fn prepare<'a>(
    listing: &'a Listing,
    options: &Options,
    outcome: &Outcome<'_>,
    forms: &[Form],
    folder: &Path,
) -> Result<Prepared<'a>> {
    place::check_apart(&listing.root, folder).map_err(|e| match e {
        Error::Outputs(why) => Error::Outputs(why.replace("with -o", "with --export-dir")),
        e => e,
    })?;
    let ours = Prepared::record_of(folder);
    if fs::metadata(folder).is_ok_and(|meta| !meta.is_dir()) {
        return Err(Error::Outputs(format!(
            "{} is no folder; choose another with --export-dir",
            shown(folder)
        )));
    }
    if !ours.is_file() && fs::read_dir(folder).is_ok_and(|mut members| members.next().is_some()) {
        let why = "is not empty and was not made by prep split; choose another with --export-dir";
        return Err(Error::Outputs(format!("the folder {} {why}", shown(folder))));
    }
    let export = Export { listing, options, outcome };
    let mut prepared = Prepared {
        listing,
        folder: folder.to_owned(),
        before: Record::read(&ours),
        after: Record::default(),
        texts: BTreeMap::new(),
        tree: Vec::new(),
        link: Link::Hard,
        warnings: Vec::new(),
    };
    for form in forms {
        match form {
            Form::Csv => _ = prepared.texts.insert("split.csv".into(), export.csv()?),
            Form::Lists => prepared.texts.extend(export.lists()),
            Form::Tree(how) => {
                (prepared.tree, prepared.link) = (export.tree(&mut prepared.warnings)?, *how);
            }
        }
    }
    prepared.note()?;
    prepared.check()?;
    Ok(prepared)
}

impl Prepared<'_> {
    fn record_of(folder: &Path) -> PathBuf {
        folder.join(Claim::CORNER).join(FILES)
    }

    /// Where it will be.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Notes how each file will be known again.
    fn note(&mut self) -> Result<()> {
        for (name, bytes) in &self.texts {
            let hash = blake3::hash(bytes).to_hex().to_string();
            self.after.add(names::encode(Path::new(name)), Print::Text(hash));
        }
        let root = &self.listing.root;
        let seen_root = place::relative(&self.folder, root);
        for (entry, path) in &self.tree {
            let source = &self.listing.entries[*entry].file;
            let print = match self.link {
                Link::Symbolic => Print::Symbolic(symbolic(source, &self.folder.join(path))),
                Link::Hard | Link::Copy => {
                    let seen = source.strip_prefix(root).map(|below| seen_root.join(below));
                    Print::of_image(source, seen.unwrap_or_else(|_| place::relative(&self.folder, source)))?
                }
            };
            self.after.add(names::encode(path), print);
        }
        Ok(())
    }

    /// Refuses to touch what is not as prep exported it.
    fn check(&self) -> Result<()> {
        let all = self.before.with(&self.after);
        let corner = PathBuf::from(Claim::CORNER).join(FILES);
        let paths: Vec<PathBuf> = all.names().map(names::decode).chain([corner]).collect();
        place::check_no_links(&self.folder, paths.iter().map(PathBuf::as_path))?;
        match all.first_other(&self.folder) {
            None => Ok(()),
            Some(path) => Err(Error::Outputs(format!(
                "{} is not as prep split exported it: move it elsewhere, or choose another folder with --export-dir",
                shown(&path)
            ))),
        }
    }

    /// Writes it. What an earlier export put there and this one does not is removed.
    ///
    /// # Errors
    /// [`Error::Write`]; links that the file system does not have.
    pub fn write(&self) -> Result<()> {
        let doing = "exporting the split";
        let claim = Claim::take(&self.folder)?;
        claim.sweep();
        for name in self.before.names().filter(|name| !self.after.has(name)) {
            let path = names::decode(name);
            out::remove(doing, &self.folder.join(&path))?;
            for above in path.ancestors().skip(1).filter(|p| !p.as_os_str().is_empty()) {
                // Only empty folders go.
                let _ = fs::remove_dir(self.folder.join(above));
            }
        }
        // Before they are there, so that a kill leaves nothing that the next run does not know.
        let record = Self::record_of(&self.folder);
        self.before.with(&self.after).write(doing, &record)?;
        for (name, bytes) in &self.texts {
            out::write_whole(doing, &self.folder.join(name), bytes, false)?;
        }
        for (entry, path) in &self.tree {
            link(self.link, &self.listing.entries[*entry].file, &self.folder.join(path))?;
        }
        out::sync_batch(&self.folder)?;
        self.after.write(doing, &record)
    }
}

struct Export<'a> {
    listing: &'a Listing,
    options: &'a Options,
    outcome: &'a Outcome<'a>,
}

impl Export<'_> {
    fn placed(&self) -> impl Iterator<Item = (usize, Place)> + '_ {
        self.outcome.places.iter().copied().enumerate().filter(|(_, place)| *place != Place::default())
    }

    fn part(&self, place: Place) -> &str {
        place.part.map_or("", |part| self.options.parts[usize::from(part)].name.as_str())
    }

    fn csv(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut csv = csv_out(&mut bytes);
        let failed = |e: csv::Error| Error::Internal(format!("a table in memory: {e}"));
        csv.write_record(["path", "label", "split", "fold", "group"]).map_err(failed)?;
        for (at, place) in self.placed() {
            let entry = &self.listing.entries[at];
            let fold = place.fold_text();
            let group = self.outcome.group(at);
            csv.write_record([&entry.path, &entry.label, self.part(place), &fold, group]).map_err(failed)?;
        }
        csv.flush().map_err(|e| failed(e.into()))?;
        drop(csv);
        Ok(bytes)
    }

    fn lists(&self) -> BTreeMap<String, Vec<u8>> {
        let mut lists: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let mut add = |name: String, path: &str| {
            let list = lists.entry(name).or_default();
            list.extend_from_slice(path.as_bytes());
            list.push(b'\n');
        };
        let training = &self.options.parts[self.options.training()].name;
        for (at, place) in self.placed() {
            let path = &self.listing.entries[at].path;
            if place.part.is_some() {
                add(format!("{}.txt", self.part(place)), path);
            }
            let trains = place.part.is_none() || self.part(place) == training || place.always;
            for fold in (0..self.options.folds.unwrap_or(0)).filter(|_| trains) {
                let part =
                    if place.fold.is_some_and(|own| usize::from(own) == fold) { "val" } else { "train" };
                add(format!("fold{fold}.{part}.txt"), path);
            }
        }
        lists
    }

    /// For each placed entry its path in the tree.
    fn tree(&self, warnings: &mut Vec<String>) -> Result<Vec<(usize, PathBuf)>> {
        let mut entries = Vec::new();
        let mut paths = Vec::new();
        let mut classes: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        let labelled = !self.listing.classes.is_empty();
        let (mut bare, mut skipped) = (Vec::new(), Vec::new());
        for (at, place) in self.placed() {
            let entry = &self.listing.entries[at];
            // A file beside the class folders is what ImageFolder stops at or skips.
            if labelled && entry.label.is_empty() {
                bare.push(entry.path.as_str());
                continue;
            }
            if labels_of(&entry.label).nth(1).is_some() {
                let why = "has several labels, and a tree has one folder for each; --export csv has them all";
                return Err(Error::Usage(format!("--export tree: {} {why}", shown(&entry.path))));
            }
            let top = match place.fold {
                Some(fold) => format!("fold{fold}"),
                None if place.always && place.part.is_none() => "train".into(),
                None => self.part(place).to_owned(),
            };
            let mut path = PathBuf::from(&top);
            if !entry.label.is_empty() {
                path.push(class_folder(&entry.label)?);
                classes.entry(top).or_default().insert(&entry.label);
            }
            path.push(self.below_class(&entry.path));
            entries.push(at);
            paths.push(path);
        }
        self.compare(&classes, warnings);
        let mut names: Vec<String> = Vec::with_capacity(paths.len());
        for (at, path) in entries.iter().zip(&paths) {
            let entry = &self.listing.entries[*at];
            let name = loaders_name(path, &entry.file);
            if !LOADED.contains(&name.to_lowercase().as_str()) {
                skipped.push(entry.path.as_str());
            }
            names.push(name);
        }
        let mut warn = |paths: &[&str], what: &str| {
            if let Some(first) = paths.first() {
                let n = plural(paths.len(), "image");
                warnings.push(format!("{n} {what}, the first is {}", shown(first)));
            }
        };
        warn(&bare, "without a label: not in the tree");
        warn(&skipped, "of a kind that ImageFolder skips (prep shrink makes JPEGs of them)");
        let extension = |i: usize| names[i].clone();
        let plans = plan(&paths, extension);
        Ok(entries.into_iter().zip(plans.into_iter().map(|p| p.path)).collect())
    }

    /// The path of an image below the folder of its class.
    fn below_class(&self, path: &str) -> PathBuf {
        let path = names::decode(path);
        let skip = match self.listing.kind {
            Kind::Classes => 1,
            Kind::Splits => 2,
            _ => path.components().count().saturating_sub(1),
        };
        let below: PathBuf = path.components().skip(skip).collect();
        if below.as_os_str().is_empty() { PathBuf::from(path.file_name().unwrap_or_default()) } else { below }
    }

    /// Loaders number the folders that they see: a class without a folder shifts those after it.
    fn compare(&self, classes: &BTreeMap<String, BTreeSet<&str>>, warnings: &mut Vec<String>) {
        let all: BTreeSet<&str> = classes.values().flatten().copied().collect();
        for (part, there) in classes {
            let missing: Vec<String> = all.difference(there).map(|c| format!("`{}`", shown(c))).collect();
            if !missing.is_empty() {
                warnings.push(format!(
                    "{part}/ has no folder of {}: ImageFolder numbers the classes after it otherwise there; take \
                     class_to_idx from the manifest's sidecar",
                    missing.join(", ")
                ));
            }
        }
    }
}

/// The extensions of files that torchvision's ImageFolder loads.
const LOADED: [&str; 9] = ["jpg", "jpeg", "png", "ppm", "bmp", "pgm", "tif", "tiff", "webp"];

/// The extension of a file in the tree: its own where loaders know it, else that of its content.
fn loaders_name(path: &Path, file: &Path) -> String {
    let own = path.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
    if LOADED.contains(&own.to_lowercase().as_str()) {
        return own;
    }
    let mut begin = [0; 64];
    let read = fs::File::open(file).and_then(|mut file| std::io::Read::read(&mut file, &mut begin));
    match signature(&begin[..read.unwrap_or(0)]) {
        Some(format) => format.extension().to_owned(),
        None if own.is_empty() => "unknown".into(),
        None => own,
    }
}

/// The folder of a class.
fn class_folder(label: &str) -> Result<PathBuf> {
    let path = names::decode(label);
    let mut parts = path.components();
    let one = matches!((parts.next(), parts.next()), (Some(Component::Normal(name)), None) if name == path.as_os_str());
    if !one || path.as_os_str().len() > 200 || label.starts_with('.') {
        let why = "cannot be the name of a folder; --export csv or lists will do";
        return Err(Error::Usage(format!("--export tree: the class `{}` {why}", shown(label))));
    }
    Ok(path)
}

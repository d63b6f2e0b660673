//! Whose the output folder is, and what earlier runs have left in it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Options;
use super::order::Part;
use super::resume::Line;
use crate::error::{Error, Result};
use crate::names::shown;
use crate::out::Claim;
use crate::out::journal::{self, Journal};
use crate::shards::{Cache, LEFT_OUT, MANIFEST, READER, folder_of};

/// The journal, in prep's corner of the cache.
const JOURNAL: &str = "pack.journal";

/// A line of the journal that is about no shard: parts of which shards lay here before this run began to change them.
/// Without it a run that is killed after it has taken the manifest away would leave them behind for good.
#[derive(Debug, Serialize, Deserialize)]
struct Before {
    before: BTreeSet<String>,
}

/// The journal, open, and what it tells of earlier runs.
pub struct Begun {
    /// For the lines of this run.
    pub journal: Journal,
    /// Finished shards, where they are to be continued.
    pub lines: Vec<Line>,
    /// Folders of the parts that lie here.
    pub before: Vec<String>,
}

fn journal_of(folder: &Path) -> PathBuf {
    folder.join(Claim::CORNER).join(JOURNAL)
}

/// Refuses a folder in which something else lies.
///
/// # Errors
/// [`Error::Outputs`].
pub fn check(folder: &Path, parts: &[Part]) -> Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::read("looking into the output folder", folder, e)),
    };
    let (begun, lines) = journal::read_any(&journal_of(folder)).unwrap_or_default();
    let ours = Cache::open(folder).is_ok() || !lines.is_empty();
    // A run that was stopped before its first shard has left empty folders of its parts at most; when it was to replace
    // another cache, what is beside them too.
    let begun_here = |name: &std::ffi::OsString| {
        let beside = [LEFT_OUT, READER].iter().any(|file| name == *file);
        begun.is_some() && (beside || parts.iter().any(|p| name == p.folder.as_str()))
    };
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.retain(|name| name != Claim::CORNER && !begun_here(name));
    match names.into_iter().min() {
        Some(name) if !ours => Err(Error::Outputs(format!(
            "the output folder {} was not made by `prep pack` and is not empty ({} lies there); choose another with -o",
            shown(folder),
            shown(&name)
        ))),
        _ => Ok(()),
    }
}

/// Opens the journal. What earlier runs have left is in it before anything of that is changed.
///
/// # Errors
/// [`Error::Outputs`] for a cache that is finished, or of other options, where that is not meant; else of the journal.
pub fn begin(folder: &Path, options: &Options) -> Result<Begun> {
    let path = &journal_of(folder);
    let heading = &options.heading();
    let (earlier, texts) = journal::read_any(path)?;
    // One that --force has emptied is of no options.
    let earlier = earlier.filter(|heading| !heading.is_empty());
    let finished = folder.join(MANIFEST).exists();
    // Where nothing was finished, the same command continues, and another one begins anew.
    if !options.resume && !options.force && finished {
        let why = "holds a finished cache: --resume keeps its shards that are whole, --force makes all anew";
        return Err(Error::Outputs(format!("{} {why}", shown(folder))));
    }
    if options.resume
        && !options.force
        && earlier.as_deref().is_some_and(|earlier| earlier != heading.as_str())
    {
        let why = "was made with other options, which give other shards: --force makes all anew";
        return Err(Error::Outputs(format!("{} {why}", shown(folder))));
    }
    let mut before = parts_of(&texts);
    before.extend(Cache::open(folder).into_iter().flat_map(|cache| cache.splits).map(|split| split.name));
    if options.force && earlier.is_some() {
        // A heading that no run has empties it; then it is begun as usual.
        drop(Journal::open(path, folder, "")?);
    }
    let (mut journal, texts) = Journal::open(path, folder, heading)?;
    if !before.is_subset(&parts_of(&texts)) {
        let line = Before { before: before.clone() };
        journal.claim(serde_json::to_string(&line).unwrap_or_default())?;
        journal.settle()?;
    }
    let lines = texts.iter().filter_map(|text| Line::parse(text)).collect();
    Ok(Begun { journal, lines, before: before.iter().map(|part| folder_of(part)).collect() })
}

/// The parts that lines of a journal tell of.
fn parts_of(texts: &[String]) -> BTreeSet<String> {
    let mut parts = BTreeSet::new();
    for text in texts {
        if let Some(line) = Line::parse(text) {
            parts.insert(line.split);
        } else if let Ok(line) = serde_json::from_str::<Before>(text) {
            parts.extend(line.before);
        }
    }
    parts
}

//! The workspace around the copies: whose folder it is, its manifest, and the sidecar that says it is whole.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::ledger::Line;
use super::{IMAGES, Options};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fault::{Fault, Note, Oddity, Status, join_notes};
use crate::manifest::{Layout, Places, Row, Sidecar, Source, Writer};
use crate::names::{self, shown};
use crate::out::plan::Planned;
use crate::out::{self, Atomic, Claim, place};
use crate::source::Listing;
use crate::table;

/// The table of a workspace.
pub const MANIFEST: &str = "manifest.csv";
/// Where the sidecar waits while the workspace changes, so that what later commands wrote into it is not lost.
const SET_ASIDE: &str = "manifest.prep.json.before";

/// Refuses a folder in which something else lies: prep fills only folders of its own.
///
/// # Errors
/// [`Error::Outputs`] naming what lies there.
pub fn check_ours(folder: &Path) -> Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::read("looking into the output folder", folder, e)),
    };
    if folder.join(Claim::CORNER).is_dir() {
        return Ok(());
    }
    let other = entries.flatten().map(|entry| entry.file_name()).min();
    match other {
        None => Ok(()),
        Some(name) => Err(Error::Outputs(format!(
            "the output folder {} was not made by prep and is not empty ({} lies there); choose another with -o",
            shown(folder),
            shown(&name)
        ))),
    }
}

/// Takes the sidecar away: from now on, and until [`finish`], the workspace is not whole.
///
/// # Errors
/// [`Error::Write`].
pub fn begin_change(folder: &Path) -> Result<()> {
    let sidecar = Sidecar::path_of(&folder.join(MANIFEST));
    out::set_aside("beginning to change the workspace", &sidecar, &folder.join(Claim::CORNER).join(SET_ASIDE))
}

/// Writes the manifest and then the sidecar, after everything that they claim is on disk.
///
/// # Errors
/// [`Error::Write`].
pub fn finish(
    folder: &Path,
    listing: &Listing,
    options: &Options,
    plans: &[Planned],
    lines: &[Line],
) -> Result<PathBuf> {
    let path = folder.join(MANIFEST);
    let earlier = earlier_choices(&path);
    let mut rows: Vec<(Row, Option<usize>)> = listing
        .entries
        .iter()
        .zip(plans.iter().zip(lines))
        .map(|(entry, (plan, line))| {
            let mut row = row(entry, plan, line, listing);
            if let Some(choices) = earlier.get(&row.path) {
                choices.carry_to(&mut row);
            }
            (row, entry.row)
        })
        .collect();
    rows.sort_by(|a, b| a.0.path.cmp(&b.0.path));

    out::sync_batch(folder)?;
    let layout = Layout::new(listing.table.as_ref(), &listing.taken, true);
    let file = Atomic::create("writing the manifest", &path)?;
    let mut writer = Writer::new(file, &path, layout, listing.table.as_ref())?;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut splits: BTreeMap<String, u64> = BTreeMap::new();
    for (row, of) in &rows {
        writer.write(row, *of)?;
        *counts.entry(row.status.as_str().to_owned()).or_default() += 1;
        if row.status == Status::Ok && !row.split.is_empty() {
            *splits.entry(row.split.clone()).or_default() += 1;
        }
    }
    let (file, written) = writer.finish()?;
    file.commit(true)?;
    counts.insert("rows".into(), written.rows);

    let set_aside = folder.join(Claim::CORNER).join(SET_ASIDE);
    let mut sidecar = earlier_sidecar(&path, &set_aside).unwrap_or_else(|| Sidecar::new(""));
    if sidecar.hash != written.hash {
        // Numbers of other pictures are not the numbers of these.
        (sidecar.stats, sidecar.weights) = (Value::Null, Value::Null);
    }
    sidecar.version = env!("CARGO_PKG_VERSION").into();
    sidecar.command = "shrink".into();
    sidecar.options = options_of(folder, listing, options);
    sidecar.set_classes(listing.classes.iter().map(String::as_str));
    sidecar.counts = counts;
    sidecar.splits = splits;
    sidecar.hash = written.hash;
    let sidecar_path = Sidecar::path_of(&path);
    out::write_whole("writing the sidecar", &sidecar_path, sidecar.to_json().as_bytes(), true)?;
    out::remove("tidying up the workspace", &set_aside)?;
    Ok(path)
}

fn row(entry: &Entry, plan: &Planned, line: &Line, listing: &Listing) -> Row {
    let fault = line.fault();
    let mut notes = entry.notes.clone();
    notes.extend(line.notes());
    if let Some(twin) = plan.twin {
        notes.push(Note::new(Oddity::Renamed, format!("beside {}", listing.entries[twin].path)));
    }
    let some = |n: u32| (n > 0).then_some(n);
    Row {
        path: format!("{IMAGES}/{}", line.out),
        label: entry.label.clone(),
        split: entry.split.clone(),
        fold: String::new(),
        group: entry.group.clone(),
        status: fault.as_ref().map_or(Status::Ok, Fault::status),
        fault,
        notes: join_notes(&notes),
        width: some(line.size.0),
        height: some(line.size.1),
        bytes: (line.bytes > 0).then_some(line.bytes),
        hash: line.hash.clone(),
        source: Source {
            path: line.src.clone(),
            width: some(line.src_size.0),
            height: some(line.src_size.1),
            format: line.src_format.clone(),
            mode: line.src_mode.clone(),
            orientation: (line.src_orientation > 0).then_some(line.src_orientation),
            hash: line.src_hash.clone(),
        },
    }
}

/// What later commands had decided about an image, which a new run of shrink must not forget.
struct Choices {
    source: String,
    split: String,
    fold: String,
    group: String,
    excluded: Option<Fault>,
}

impl Choices {
    fn carry_to(&self, row: &mut Row) {
        if self.source != row.source.path {
            return;
        }
        for (ours, earlier) in
            [(&mut row.split, &self.split), (&mut row.fold, &self.fold), (&mut row.group, &self.group)]
        {
            if ours.is_empty() {
                ours.clone_from(earlier);
            }
        }
        if let (Status::Ok, Some(fault)) = (row.status, &self.excluded) {
            row.status = Status::Excluded;
            row.fault = Some(fault.clone());
        }
    }
}

/// By path; nothing where there is no manifest or it cannot be read: then there is nothing to keep.
fn earlier_choices(manifest: &Path) -> HashMap<String, Choices> {
    let Ok(table) = table::read(manifest) else { return HashMap::new() };
    let Some(places) = Places::find(&table) else { return HashMap::new() };
    (0..table.len())
        .filter_map(|i| Row::read(&table, &places, i).ok())
        .map(|row| {
            let excluded = row.fault.filter(|_| row.status == Status::Excluded);
            let choices = Choices {
                source: row.source.path,
                split: row.split,
                fold: row.fold,
                group: row.group,
                excluded,
            };
            (row.path, choices)
        })
        .collect()
}

fn earlier_sidecar(manifest: &Path, set_aside: &Path) -> Option<Sidecar> {
    if let Ok(Some(sidecar)) = Sidecar::read(manifest) {
        return Some(sidecar);
    }
    serde_json::from_slice(&fs::read(set_aside).ok()?).ok()
}

/// The options in the sidecar. The place of the sources is told relative to the workspace: no home folders.
fn options_of(folder: &Path, listing: &Listing, options: &Options) -> Map<String, Value> {
    let source = names::encode(&place::relative(folder, &listing.root));
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
    put("source", source.into());
    put("fit", options.fit.to_string().into());
    put("upscale", options.upscale.into());
    put("filter", options.filter.as_str().into());
    put("format", options.format.as_str().into());
    put("quality", options.quality.into());
    put("chroma", options.chroma.as_str().into());
    put("alpha", format!("{:?}", options.contract.alpha).to_lowercase().into());
    put("icc", format!("{:?}", options.contract.icc).to_lowercase().into());
    put("orient", options.contract.orient.into());
    put("salvage", options.salvage.into());
    put("heading", options.heading().into());
    map
}

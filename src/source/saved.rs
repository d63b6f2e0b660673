//! A manifest as input: its rows as they were left, and what changed on disk since.

use std::path::{Path, PathBuf};

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fault::{Cause, Fault, Status};
use crate::manifest::{Places, Row, Sidecar, parse_notes, repeated};
use crate::names::{self, shown};
use crate::table::Table;

use super::disk::{Disk, normal};
use super::filter::Filter;
use super::labelled::{common_folder, unlisted};
use super::walk::{Walked, walk};
use super::{Finding, Kind, Listing, Options, Trouble, keep};

/// The listing of a manifest. Rows that were not usable keep their fault, so later commands leave them out and never
/// lose them.
///
/// # Errors
/// Rows that are not as prep writes them, or a sidecar of a newer prep.
pub(super) fn open(
    root: &Path,
    table: Table,
    places: &Places,
    options: &Options,
    filter: &Filter,
) -> Result<Listing> {
    if let Some((path, line)) = repeated(&table, places) {
        let why = format!("a second row for `{}`; a manifest has one row an image", shown(&path));
        return Err(Error::table(&table.path, Some(line), why));
    }
    let mut rows: Vec<Row> =
        (0..table.len()).map(|row| Row::read(&table, places, row)).collect::<Result<_>>()?;
    let mut findings = Vec::new();
    let sidecar = Sidecar::read(&table.path)?;
    let mut said = state(&table, sidecar.as_ref(), &mut findings)?;
    let away = sidecar.and_then(|s| s.root).map(|text| away(root, &text, options));
    if let Some((folder, prefix)) = &away {
        said.push(format!("its images are in {}", shown(folder)));
        for row in &mut rows {
            if let Some(path) = row.path.strip_prefix(prefix.as_str()) {
                row.path = path.to_owned();
            }
        }
    }
    let root = away.as_ref().map_or(root, |(folder, _)| folder.as_path());
    let mut walked = Walked::default();
    if options.files {
        let usable = rows.iter().filter(|row| row.status == Status::Ok);
        walked = walk_known(root, usable, filter)?;
    }
    findings.append(&mut walked.findings);
    let disk = Disk::with_files(root, std::mem::take(&mut walked.files));
    let named = vec![false; disk.files().len()];
    let mut now = Now { root, disk: &disk, options, named, findings };
    let mut entries: Vec<Entry> =
        rows.into_iter().zip(0..).map(|(row, at)| now.entry(row, at, table.line(at))).collect();
    let Now { named, mut findings, .. } = now;
    for (found, named) in disk.into_files().into_iter().zip(named) {
        if !named {
            entries.push(unlisted(root, found, &mut findings));
        }
    }
    let mut listing = Listing {
        root: root.to_owned(),
        kind: Kind::Manifest,
        entries,
        classes: Vec::new(),
        table: Some(table),
        taken: Vec::new(),
        findings,
        ignored: walked.ignored,
        said,
    };
    let dropped = keep(&mut listing, |e| filter.wants(&names::decode(&e.path)));
    // The walk has counted those of them that are there.
    listing.ignored.by_glob = listing.ignored.by_glob.max(dropped);
    Ok(listing)
}

/// The folder of the images of a manifest that lies elsewhere, and what its paths begin with. A folder that the user
/// names beside the manifest is the folder.
fn away(root: &Path, text: &str, options: &Options) -> (PathBuf, String) {
    let folder = if options.labels.is_some() { root.to_owned() } else { root.join(names::decode(text)) };
    (folder, format!("{text}/"))
}

/// Walks the folder that holds the usable rows. A workspace that lost it has lost its files, which rows tell.
fn walk_known<'a>(root: &Path, rows: impl Iterator<Item = &'a Row>, filter: &Filter) -> Result<Walked> {
    let scope = common_folder(rows.filter_map(|row| normal(&names::decode(&row.path))));
    if root.join(&scope).is_dir() { walk(root, &scope, filter) } else { Ok(Walked::default()) }
}

/// Is the manifest whole and as prep wrote it?
fn state(table: &Table, sidecar: Option<&Sidecar>, findings: &mut Vec<Finding>) -> Result<Vec<String>> {
    let name = table.path.file_name().unwrap_or(table.path.as_os_str()).to_string_lossy().into_owned();
    let beside = Sidecar::path_of(&table.path);
    let mut said = vec![format!("using the manifest {}: {} rows", shown(&name), table.len())];
    let why = match sidecar {
        None => format!("{} is not there: the manifest may be unfinished", shown(&beside)),
        Some(sidecar) => {
            let bytes = crate::table::load(&table.path)?;
            if blake3::hash(&bytes).to_hex().as_str() == sidecar.hash {
                return Ok(said);
            }
            format!("{} was changed since prep {} wrote it", shown(&name), shown(&sidecar.version))
        }
    };
    findings.push(Finding::new(Trouble::Manifest, name, None, why.clone()));
    said.push(why);
    Ok(said)
}

/// What the rows of a manifest are held against.
struct Now<'a> {
    root: &'a Path,
    disk: &'a Disk,
    options: &'a Options,
    /// Which walked files have a row.
    named: Vec<bool>,
    findings: Vec<Finding>,
}

impl Now<'_> {
    /// The entry of row `at`, which stands at `line`.
    fn entry(&mut self, row: Row, at: usize, line: u64) -> Entry {
        let written = names::decode(&row.path);
        let inside = normal(&written);
        let leaves = inside.is_none();
        let place: PathBuf = inside.unwrap_or(written);
        let (mut bytes, mut fault) = (row.bytes.unwrap_or_default(), row.fault);
        if leaves && !self.options.allow_outside {
            let why = "the path leaves the manifest's folder; --allow-outside takes such rows";
            self.findings.push(Finding::new(Trouble::OutsideRoot, row.path.clone(), line, why));
            fault = fault.or_else(|| Some(Fault::new(Cause::OutsideRoot, why)));
        } else if self.options.files {
            (bytes, fault) = self.on_disk(&place, fault, &row.path, line);
        }
        Entry {
            path: row.path,
            file: self.root.join(&place),
            bytes,
            label: row.label,
            group: row.group,
            split: row.split,
            row: Some(at),
            fault,
            notes: parse_notes(&row.notes),
        }
    }

    /// The bytes on disk and the fault of a row that had `fault` when the manifest was written.
    fn on_disk(&mut self, place: &Path, fault: Option<Fault>, path: &str, line: u64) -> (u64, Option<Fault>) {
        let Some(hit) = self.disk.exact(place) else {
            let why = "the manifest names it, the disk does not have it";
            if fault.is_none() {
                self.findings.push(Finding::new(Trouble::MissingFile, path, line, why));
            }
            return (0, fault.or_else(|| Some(Fault::new(Cause::Missing, why))));
        };
        if let Some(place) = hit.place {
            self.named[place] = true;
        }
        // What may have healed gets another try.
        (hit.bytes, fault.filter(|f| !f.cause.is_transient()).or(hit.fault))
    }
}

//! `--keep`: where a manifest has the images of a listing, wherever it lies and whatever its paths are relative to.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Error, Result};
use crate::home;
use crate::manifest::{Places, Sidecar};
use crate::names::{decode, shown};
use crate::out::place;
use crate::source::{Kind, Listing};
use crate::split::{Options, Place};
use crate::table::Table;

/// The places of the entries of `listing` in the manifest at `path`.
///
/// # Errors
/// No manifest; parts that are none of the options; rows none of which is in the listing.
pub fn places(path: &Path, listing: &Listing, options: &Options) -> Result<Vec<Option<Place>>> {
    let (table, columns) = home::earlier(path)?;
    let rows: Vec<Place> = (0..table.len())
        .map(|row| {
            let name = columns.cell(&table, row, "split");
            let part = options.parts.iter().position(|p| p.name == name).map(|p| p as u8);
            if part.is_none() && !name.is_empty() {
                let why =
                    format!("its part `{}` is none of --ratio: name the same parts as before", shown(name));
                return Err(Error::table(path, Some(table.line(row)), why));
            }
            let fold = columns.cell(&table, row, "fold").parse().ok();
            Ok(Place { part, fold, ..Place::default() })
        })
        .collect::<Result<_>>()?;
    check_folds(path, &table, &rows, options)?;
    let theirs = Names::of_manifest(path, &table, &columns)?;
    let ours = Names::of_listing(listing)?;
    let mut best: (usize, Vec<Option<Place>>) = (0, Vec::new());
    for (names, own) in theirs
        .seen
        .iter()
        .flat_map(|names| ours.seen.iter().map(move |own| (names, own)))
        .chain(theirs.written.iter().flat_map(|names| ours.written.iter().map(move |own| (names, own))))
    {
        let by_name: HashMap<&str, Place> = (names.iter().zip(&rows))
            .filter(|(name, place)| !name.is_empty() && **place != Place::default())
            .map(|(name, place)| (name.as_str(), *place))
            .collect();
        let found: Vec<Option<Place>> = own.iter().map(|name| by_name.get(name.as_str()).copied()).collect();
        let n = found.iter().flatten().count();
        if n > best.0 {
            best = (n, found);
        }
    }
    if best.0 == 0 {
        let why = "none of its rows that have a part is in the input, neither by path nor by the column src; is it of \
                   other images?";
        return Err(Error::table(path, None, why));
    }
    Ok(best.1)
}

/// Refuses folds that this split does not have.
fn check_folds(path: &Path, table: &Table, rows: &[Place], options: &Options) -> Result<()> {
    let parts = rows.iter().any(|place| place.part.is_some());
    for (row, fold) in rows.iter().enumerate().filter_map(|(row, place)| Some((row, place.fold?))) {
        let line = Some(table.line(row));
        match options.folds {
            Some(k) if usize::from(fold) < k => {}
            Some(k) => {
                let why = format!("its fold {fold} is none of --kfold {k}: ask for as many folds as before");
                return Err(Error::table(path, line, why));
            }
            None if parts => {}
            None => {
                let why = "it has folds and no parts, and parts are asked for: add --kfold";
                return Err(Error::table(path, line, why));
            }
        }
    }
    Ok(())
}

/// What rows may be called: by the real places of the images or of what those were made from, and as it is written. One
/// of them is right for all rows, that by which most are found.
struct Names {
    seen: Vec<Vec<String>>,
    written: Vec<Vec<String>>,
}

impl Names {
    /// Of the rows of a manifest.
    fn of_manifest(path: &Path, table: &Table, columns: &Places) -> Result<Self> {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let cells = |column: &str| -> Vec<String> {
            (0..table.len()).map(|row| columns.cell(table, row, column).to_owned()).collect()
        };
        let mut names = Self { seen: vec![seen(folder, &cells("path"))], written: vec![cells("path")] };
        let sources = cells("src");
        if sources.iter().all(String::is_empty) {
            return Ok(names);
        }
        if let Some(source) = source_of(path)? {
            names.seen.push(seen(&folder.join(source), &sources));
        }
        names.written.push(sources);
        Ok(names)
    }

    /// Of the entries of a listing.
    fn of_listing(listing: &Listing) -> Result<Self> {
        let paths: Vec<String> = listing.entries.iter().map(|e| e.path.clone()).collect();
        let mut names = Self { seen: vec![seen(&listing.root, &paths)], written: vec![paths] };
        let table = listing.table.as_ref().filter(|_| listing.kind == Kind::Manifest);
        let Some((table, columns)) = table.and_then(|table| Some((table, Places::find(table)?))) else {
            return Ok(names);
        };
        let source = |row: Option<usize>| row.map_or("", |row| columns.cell(table, row, "src")).to_owned();
        let sources: Vec<String> = listing.entries.iter().map(|e| source(e.row)).collect();
        if let Some(folder) = source_of(&table.path)? {
            names.seen.push(seen(&listing.root.join(folder), &sources));
        }
        names.written.push(sources);
        Ok(names)
    }
}

/// The folder that a workspace was made from, as seen from its manifest.
fn source_of(manifest: &Path) -> Result<Option<PathBuf>> {
    let sidecar = Sidecar::read(manifest)?;
    Ok(sidecar.and_then(|s| s.options.get("source").and_then(Value::as_str).map(decode)))
}

/// Paths that are relative to `folder` as absolute ones; empty ones stay so.
fn seen(folder: &Path, paths: &[String]) -> Vec<String> {
    let folder = place::real_of_planned(folder);
    paths.iter().map(|path| home::below(Path::new("/"), &folder, path)).collect()
}

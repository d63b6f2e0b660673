//! `--keep`: where a manifest has the images of a listing, wherever it lies and whatever its paths are relative to.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::error::{Error, Result};
use crate::home;
use crate::manifest::{Places, Sidecar};
use crate::names::{decode, encode, shown};
use crate::out::place;
use crate::source::Listing;
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
            Ok(Place { part, fold: columns.cell(&table, row, "fold").parse().ok() })
        })
        .collect::<Result<_>>()?;
    let mut best: (usize, Vec<Option<Place>>) = (0, Vec::new());
    for names in spellings(path, &table, &columns, listing)? {
        let by_path: HashMap<&str, Place> = (names.iter().zip(&rows))
            .filter(|(name, place)| !name.is_empty() && **place != Place::default())
            .map(|(name, place)| (name.as_str(), *place))
            .collect();
        let found: Vec<Option<Place>> =
            listing.entries.iter().map(|e| by_path.get(e.path.as_str()).copied()).collect();
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

/// What the listing may call the rows: by their paths as seen from the manifest, by what they were made from, and as they
/// are written. One spelling is right for all rows, that with most of them in the listing.
fn spellings(path: &Path, table: &Table, columns: &Places, listing: &Listing) -> Result<Vec<Vec<String>>> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let root = place::real_of_planned(&listing.root);
    let seen = |from: &Path, column: &str| -> Vec<String> {
        let from = place::real_of_planned(from);
        let name = |row| below(&root, &from, columns.cell(table, row, column));
        (0..table.len()).map(name).collect()
    };
    let as_written =
        |column: &str| (0..table.len()).map(|row| columns.cell(table, row, column).to_owned()).collect();
    let mut all = vec![seen(folder, "path")];
    let source =
        Sidecar::read(path)?.and_then(|s| s.options.get("source").and_then(Value::as_str).map(decode));
    if let Some(source) = source {
        all.push(seen(&folder.join(source), "src"));
    }
    all.push(as_written("path"));
    all.push(as_written("src"));
    Ok(all)
}

/// The path `text`, relative to `from`, as it is called below `root`; empty where it is not there.
fn below(root: &Path, from: &Path, text: &str) -> String {
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

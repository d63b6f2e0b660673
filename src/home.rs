//! Where the manifest of an input lies, what it already knows, and the one door through which commands change it.
//!
//! A workspace or a folder with a manifest keeps it; a plain folder gets `manifest.csv` and `manifest.prep.json` at its
//! top and nothing else; a table gets `train.manifest.csv` beside it. The manifest of a plain folder or table is a
//! record of what prep decided: the input is listed anew each time, and what was decided is carried over by path, so
//! that new images and corrected labels are seen. One that was edited by hand is taken as it is.

mod carry;
pub mod history;
mod rewrite;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::fault::Cause;
use crate::manifest::{Places, Row, Sidecar};
use crate::names::shown;
use crate::out::place;
use crate::source::{self, Kind, Listing, Options};
use crate::table::{self, Table};

pub use rewrite::Kept;

use carry::Known;

/// The key in the sidecar that tells what a manifest was listed from.
const ORIGIN: &str = "origin";

/// The manifest of an input.
#[derive(Debug)]
pub struct Home {
    /// Where it lies or will lie.
    pub manifest: PathBuf,
    /// What an earlier command left there.
    known: Option<Known>,
    /// What its `manifest.prep.json` said.
    sidecar: Option<Sidecar>,
    /// How the input can be listed again.
    origin: Option<Value>,
    /// Rows outside this listing are kept: only a part of the input was asked for.
    partial: bool,
    /// Then: the row of the table for each path, for the rows outside.
    others: Vec<(String, usize)>,
}

/// Lists `input` with what its manifest knows, and finds the manifest's place; `out` is the one that the user wants.
///
/// # Errors
/// What [`source::open`] says; a place that something else has taken.
pub fn open(input: &Path, options: &Options, out: Option<&Path>) -> Result<(Listing, Home)> {
    let mut listing = source::open(input, options)?;
    let at_top = input.is_dir() && listing.table.as_ref().is_some_and(|t| t.path.parent() == Some(input));
    let mut sidecar = None;
    if let (Kind::Manifest, Some(table)) = (listing.kind, &listing.table) {
        sidecar = Sidecar::read(&table.path)?;
        let origin = sidecar.as_ref().and_then(|s| s.rest.get(ORIGIN)).cloned();
        let path = table.path.clone();
        if let Some(origin) = origin.filter(|_| at_top && !is_partial(options)) {
            if is_as_written(&path, sidecar.as_ref())? {
                listing = relist(input, options, &origin, listing)?;
            } else {
                carry::tree_labels(input, options, &origin, &mut listing)?;
            }
            let manifest = out.map_or(path, Path::to_owned);
            return with_home(input, listing, manifest, sidecar, Some(origin), options);
        }
    }
    let manifest = match out {
        Some(path) => path.to_owned(),
        None => default_place(input, &listing)?,
    };
    let origin = origin_of(input, &listing, options);
    with_home(input, listing, manifest, sidecar, origin, options)
}

fn with_home(
    input: &Path,
    mut listing: Listing,
    manifest: PathBuf,
    sidecar: Option<Sidecar>,
    origin: Option<Value>,
    options: &Options,
) -> Result<(Listing, Home)> {
    let partial = is_partial(options);
    let mut home = Home { manifest, known: None, sidecar, origin, partial, others: Vec::new() };
    let is_itself = listing.kind == Kind::Manifest
        && listing
            .table
            .as_ref()
            .is_some_and(|t| t.path.canonicalize().ok() == home.manifest.canonicalize().ok());
    if !is_itself && home.manifest.exists() {
        let table = table::read(&home.manifest)?;
        let Some(places) = Places::find(&table) else {
            let why = "is there and no manifest of prep; say with -o where to write";
            return Err(Error::Outputs(format!("{} {why}", shown(&home.manifest))));
        };
        if listing.kind != Kind::Manifest {
            let known = Known::new(table, places);
            known.carry_to(&mut listing);
            home.known = Some(known);
            if partial {
                home.others = rows_of_all(input, options)?;
            }
        }
        if home.sidecar.is_none() {
            home.sidecar = Sidecar::read(&home.manifest)?;
        }
    }
    if let (true, true, Some(table)) = (is_itself, partial, &listing.table) {
        home.known = Places::find(table).map(|places| Known::new(table.clone(), places));
        home.others = rows_of_all(input, options)?;
    }
    Ok((listing, home))
}

/// Is only a part of the input asked for?
fn is_partial(options: &Options) -> bool {
    options.split.is_some() || !options.globs.is_empty() || !options.exclude.is_empty()
}

/// The row of the table for each path of the whole input, sorted by path.
fn rows_of_all(input: &Path, options: &Options) -> Result<Vec<(String, usize)>> {
    let whole = Options { split: None, globs: Vec::new(), exclude: Vec::new(), ..options.clone() };
    let listing = source::open(input, &whole)?;
    Ok(listing.entries.into_iter().filter_map(|e| Some((e.path, e.row?))).collect())
}

/// Has nobody changed the manifest since prep wrote it?
fn is_as_written(manifest: &Path, sidecar: Option<&Sidecar>) -> Result<bool> {
    let Some(sidecar) = sidecar else { return Ok(false) };
    Ok(blake3::hash(&table::load(manifest)?).to_hex().as_str() == sidecar.hash)
}

/// Where the manifest goes when nobody says.
fn default_place(input: &Path, listing: &Listing) -> Result<PathBuf> {
    let beside = |table: &Path| table.with_extension("manifest.csv");
    match (&listing.table, listing.kind) {
        (Some(table), Kind::Manifest) => Ok(table.path.clone()),
        _ if input.is_dir() => {
            let top = input.join("manifest.csv");
            // The user's own table may be called so.
            let theirs = listing
                .table
                .as_ref()
                .is_some_and(|t| t.path.file_name() == top.file_name() && t.path == top);
            Ok(if theirs { beside(&top) } else { top })
        }
        (Some(table), Kind::Table | Kind::List) if table.path != Path::new("-") => Ok(beside(&table.path)),
        _ => {
            let why = "the input is neither a folder nor a table: say with -o where the manifest goes";
            Err(Error::Outputs(why.into()))
        }
    }
}

/// How `input` can be listed again; none for a manifest and for what only the command line can tell.
fn origin_of(input: &Path, listing: &Listing, options: &Options) -> Option<Value> {
    if !input.is_dir() || options.files_from.is_some() || !options.files {
        return None;
    }
    let told = |text: &Option<String>| text.clone().map_or(Value::Null, Value::String);
    match listing.kind {
        Kind::Classes | Kind::Splits | Kind::Flat => {
            Some(json!({"kind": "folder", "hidden": options.hidden}))
        }
        Kind::Table => {
            let table = place::relative(input, &listing.table.as_ref()?.path);
            Some(json!({
                "kind": "table", "table": crate::names::encode(&table), "hidden": options.hidden,
                "path_col": told(&options.path_col), "label_col": told(&options.label_col),
            }))
        }
        Kind::List | Kind::Manifest => None,
    }
}

/// Lists the input of an earlier command again; where that cannot be done any more, the manifest stands.
fn relist(input: &Path, options: &Options, origin: &Value, manifest: Listing) -> Result<Listing> {
    let told = |key: &str| origin.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut again = options.clone();
    again.hidden |= origin.get("hidden").and_then(Value::as_bool).unwrap_or_default();
    match told("table") {
        _ if again.labels.is_some() || again.folders_only => {}
        Some(table) => {
            let path = input.join(crate::names::decode(&table));
            if !path.is_file() {
                let mut listing = manifest;
                listing.said.push(format!("{} is gone: the manifest alone tells the labels", shown(&path)));
                return Ok(listing);
            }
            again.labels = Some(path);
            again.path_col = again.path_col.or_else(|| told("path_col"));
            again.label_col = again.label_col.or_else(|| told("label_col"));
        }
        None => again.folders_only = true,
    }
    let mut listing = source::open(input, &again)?;
    listing.said.push(format!(
        "what earlier commands decided is in {}",
        shown(manifest.table.as_ref().map_or(Path::new(""), |t| t.path.as_path()))
    ));
    Ok(listing)
}

impl Home {
    /// What the sidecar of the manifest said before.
    pub fn sidecar(&self) -> Option<&Sidecar> {
        self.sidecar.as_ref()
    }

    /// Has an earlier command opened the pictures, so that damaged ones are known?
    pub fn is_measured(&self, listing: &Listing) -> bool {
        self.has_any(listing, "width")
    }

    /// Has an earlier split made folds?
    pub fn has_folds(&self, listing: &Listing) -> bool {
        self.has_any(listing, "fold")
    }

    /// Does some row of the earlier manifest say anything in our column `name`?
    fn has_any(&self, listing: &Listing, name: &str) -> bool {
        let table = match &self.known {
            Some(known) => Some(&known.table),
            None => listing.table.as_ref().filter(|_| listing.kind == Kind::Manifest),
        };
        let Some((table, places)) = table.and_then(|table| Some((table, Places::find(table)?))) else {
            return false;
        };
        (0..table.len()).any(|row| !places.cell(table, row, name).is_empty())
    }

    /// The row that an earlier command left for entry `at` of `listing`.
    ///
    /// # Errors
    /// A row that is not as prep writes it.
    pub fn row(&self, listing: &Listing, at: usize) -> Result<Option<Row>> {
        let entry = &listing.entries[at];
        match (&self.known, &listing.table, entry.row) {
            (Some(known), _, _) => known.row(&entry.path),
            (None, Some(table), Some(row)) if listing.kind == Kind::Manifest => {
                let places = Places::find(table);
                places.map(|places| Row::read(table, &places, row)).transpose()
            }
            _ => Ok(None),
        }
    }
}

/// Is a fault one that only a decoder can have found, so that it stays until the file changes?
fn is_lasting(cause: Cause) -> bool {
    !cause.is_transient() && !matches!(cause, Cause::Unlisted | Cause::OutsideRoot | Cause::Ambiguous)
}

/// The rows of a manifest at `path`, for `--keep`.
///
/// # Errors
/// A table that is not there or no manifest.
pub fn earlier(path: &Path) -> Result<(Table, Places)> {
    let table = table::read(path)?;
    match Places::find(&table) {
        Some(places) => Ok((table, places)),
        None => Err(Error::table(
            path,
            None,
            "this is no manifest of prep: columns path, split, status … are missing",
        )),
    }
}

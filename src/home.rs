//! Where the manifest of an input lies, what it already knows, and the one door through which commands change it.
//!
//! A workspace or a folder with a manifest keeps it; a plain folder gets `manifest.csv` and `manifest.prep.json` at its
//! top and nothing else; a table gets `train.manifest.csv` beside it. The manifest of a plain folder or table is a
//! record of what prep decided: the input is listed anew each time, and what was decided is carried over by path, so
//! that new images and corrected labels are seen. One that was edited by hand is taken as it is.

mod carry;
pub mod history;
mod rewrite;
mod training;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fault::Cause;
use crate::manifest::{Places, Row, Sidecar};
use crate::names::shown;
use crate::out::place;
use crate::source::{self, Kind, Listing, Options, Stamp};
use crate::table::{self, Table};

pub use carry::below;
pub use rewrite::Kept;
pub use training::{Training, Which};

use carry::Known;

/// The key in the sidecar that tells what a manifest was listed from.
const ORIGIN: &str = "origin";

/// The manifest of an input.
#[derive(Debug)]
pub struct Home {
    /// Where it lies or will lie.
    pub manifest: PathBuf,
    /// The file that lay there when it was read.
    found: Stamp,
    /// What an earlier command left there.
    known: Option<Known>,
    /// What its `manifest.prep.json` said.
    sidecar: Option<Sidecar>,
    /// How the input can be listed again.
    origin: Option<Value>,
    /// The whole input, where only a part of it was asked for.
    whole: Option<Listing>,
    /// Globs left something out.
    narrowed: bool,
}

/// Lists `input` with what its manifest knows, and finds the manifest's place; `out` is the one that the user wants.
///
/// # Errors
/// What [`source::open`] says; a place that something else has taken.
pub fn open(input: &Path, options: &Options, out: Option<&Path>) -> Result<(Listing, Home)> {
    out.map_or(Ok(()), check_name)?;
    // Parts are known after the manifest was asked.
    let asked = Options { split: None, ..options.clone() };
    let (mut listing, mut home) = look(input, &asked, out)?;
    if !(options.globs.is_empty() && options.exclude.is_empty()) {
        let all = Options { globs: Vec::new(), exclude: Vec::new(), ..asked };
        home.whole = Some(look(input, &all, out)?.0);
        home.narrowed = true;
    }
    if let Some(split) = &options.split {
        home.whole.get_or_insert_with(|| listing.clone());
        let before = listing.ignored.sentence();
        source::keep_split(&mut listing, split)?;
        listing.said.retain(|sentence| Some(sentence) != before.as_ref());
        listing.said.extend(listing.ignored.sentence());
    }
    Ok((listing, home))
}

/// Lists all that `options` take, with what is known of it.
fn look(input: &Path, options: &Options, out: Option<&Path>) -> Result<(Listing, Home)> {
    let mut listing = source::open(input, options)?;
    let mut home = Home {
        manifest: PathBuf::new(),
        found: Stamp::default(),
        known: None,
        sidecar: None,
        origin: None,
        whole: None,
        narrowed: false,
    };
    let mut relisted = None;
    if let (Kind::Manifest, Some(table)) = (listing.kind, &listing.table) {
        home.sidecar = Sidecar::read(&table.path)?;
        let origin = home.sidecar.as_ref().and_then(|s| s.rest.get(ORIGIN)).cloned();
        if let Some(origin) = origin.filter(|_| input.is_dir() && table.path.parent() == Some(input)) {
            let path = table.path.clone();
            if is_as_written(&path, home.sidecar.as_ref())? {
                listing = relist(input, options, &origin, listing)?;
                relisted = (listing.kind != Kind::Manifest).then_some(path);
            } else {
                carry::tree_labels(input, options, &origin, &mut listing)?;
            }
            home.origin = Some(origin);
        }
    }
    home.manifest = match (out, &relisted) {
        (Some(path), _) => path.to_owned(),
        (None, Some(path)) => path.clone(),
        (None, None) => default_place(input, &listing)?,
    };
    if home.origin.is_none() {
        home.origin = origin_of(input, &listing, options);
    }
    home.found = Stamp::of(&home.manifest);
    home.learn(&mut listing, relisted.as_deref())?;
    Ok((listing, home))
}

/// A manifest is read again by its name.
fn check_name(out: &Path) -> Result<()> {
    if out.as_os_str() == "-" {
        let why = "-o -: a manifest is a file, for the next command; --json prints the result";
        return Err(Error::Usage(why.into()));
    }
    if out.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
        return Ok(());
    }
    let path = shown(out);
    Err(Error::Usage(format!("-o {path}: a manifest is a CSV file, as in -o {path}.csv")))
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
        // A list names a part of a folder: what is decided about the part must not stand for the folder.
        (Some(table), Kind::List) if table.path == Path::new("-") => {
            place::beside(input, "-list.manifest.csv")
        }
        (Some(table), Kind::List) => Ok(beside(&table.path)),
        _ if input.is_dir() => {
            let top = input.join("manifest.csv");
            // The user's own table may be called so.
            let theirs = listing
                .table
                .as_ref()
                .is_some_and(|t| t.path.file_name() == top.file_name() && t.path == top);
            Ok(if theirs { beside(&top) } else { top })
        }
        (Some(table), Kind::Table) if table.path != Path::new("-") => Ok(beside(&table.path)),
        // One image: whoever wants to write has to say where.
        _ => Ok(PathBuf::new()),
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
    /// Reads what an earlier command left at the manifest's place, or, where that is a new one, in the manifest of the
    /// input, from which the listing was made anew; and gives it to the entries.
    fn learn(&mut self, listing: &mut Listing, relisted: Option<&Path>) -> Result<()> {
        if listing.kind == Kind::Manifest {
            return Ok(());
        }
        let there = self.manifest.exists();
        let Some(path) = there.then_some(self.manifest.as_path()).or(relisted) else { return Ok(()) };
        let table = table::read(path)?;
        let Some(places) = Places::of(&table)? else {
            let why = "is there and no manifest of prep; say with -o where to write";
            return Err(Error::Outputs(format!("{} {why}", shown(path))));
        };
        self.sidecar = Sidecar::read(path)?;
        let known = Known::new(table, places, &listing.root);
        known.carry_to(listing);
        self.known = Some(known);
        Ok(())
    }

    /// Refuses a place where no manifest can be written, before anything that takes long is done.
    ///
    /// # Errors
    /// [`Error::Outputs`] where the input is one image and nobody said where; [`Error::Write`].
    pub fn check_place(&self) -> Result<()> {
        if self.manifest.as_os_str().is_empty() {
            let why = "the input is neither a folder nor a table: say with -o where the manifest goes";
            return Err(Error::Outputs(why.into()));
        }
        place::check_writable("writing the manifest", &self.manifest)
    }

    /// Refuses to write over what another command has made of the manifest since it was read.
    fn check_unchanged(&self) -> Result<()> {
        if Stamp::of(&self.manifest) == self.found {
            return Ok(());
        }
        let place = shown(&self.manifest);
        Err(Error::Outputs(format!(
            "{place} was written by another command while this one was at work; nothing was changed: type it again"
        )))
    }

    /// Was only a part of the input asked for?
    pub fn is_partial(&self) -> bool {
        self.whole.is_some()
    }

    /// The whole input, and which of its entries `listing` has; the listing itself where all was asked for.
    pub fn whole<'a>(&'a self, listing: &'a Listing) -> (&'a Listing, Vec<bool>) {
        let Some(whole) = &self.whole else { return (listing, vec![true; listing.entries.len()]) };
        let mut asked = listing.entries.iter().peekable();
        let is_asked = |entry: &Entry| {
            while asked.next_if(|e| e.path < entry.path).is_some() {}
            asked.next_if(|e| e.path == entry.path).is_some()
        };
        (whole, whole.entries.iter().map(is_asked).collect())
    }

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
                let row = places.map(|places| Row::read(table, &places, row)).transpose()?;
                Ok(row.map(|row| Row { path: entry.path.clone(), ..row }))
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
    match Places::of(&table)? {
        Some(places) => Ok((table, places)),
        None => Err(Error::table(
            path,
            None,
            "this is no manifest of prep: columns path, split, status … are missing",
        )),
    }
}

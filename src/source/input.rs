//! What an input is: a folder, a table in it or beside it, a list, a manifest, or one image.

use std::path::{Path, PathBuf};

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::manifest;
use crate::names::{self, shown};
use crate::table::{self, Header, Table};

use super::columns::{is_headerless, looks_like_image};
use super::disk::Disk;
use super::filter::Filter;
use super::finding::quoted;
use super::resolve::{Base, Resolver, sample};
use super::walk::walk;
use super::{Ignored, Kind, Listing, Options, labelled, list, saved, tree};

/// Names that label tables have, most telling first, without extension and in lower case.
const TABLES: [&str; 12] = [
    "labels",
    "label",
    "train",
    "metadata",
    "manifest",
    "train_labels",
    "annotations",
    "ground_truth",
    "groundtruth",
    "dataset",
    "data",
    "index",
];

/// Lists `input`, whatever it is.
///
/// # Errors
/// As [`super::open`].
pub(super) fn open(input: &Path, options: &Options, filter: &Filter) -> Result<Listing> {
    let meta = std::fs::metadata(input).map_err(|e| Error::read("opening the input", input, e))?;
    if meta.is_dir() {
        return folder(input, options, filter);
    }
    if options.labels.is_some() || options.files_from.is_some() {
        let why = "is no folder; with --labels or --files-from INPUT is the folder of the images";
        return Err(Error::Usage(format!("{} {why}", shown(input))));
    }
    let root = match input.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let is = |extensions: &[&str]| {
        input.extension().is_some_and(|e| extensions.iter().any(|known| e.eq_ignore_ascii_case(known)))
    };
    if looks_like_image(&input.to_string_lossy()) {
        return Ok(one_image(root, input, meta.len()));
    }
    if is(&["txt", "lst", "list"]) {
        return labelled::open_list(root, list::read(input, root)?, options, filter);
    }
    if is(&["csv", "tsv", "tab", "jsonl", "ndjson", "json"]) || !meta.is_file() {
        return from_table(root, read_table(input)?, options, filter);
    }
    let why = "is neither a folder, nor a label table (.csv, .tsv, .jsonl), nor a list (.txt), nor an image by its name";
    Err(Error::Usage(format!("{} {why}", shown(input))))
}

fn folder(root: &Path, options: &Options, filter: &Filter) -> Result<Listing> {
    if let Some(path) = &options.files_from {
        return labelled::open_list(root, list::read(path, root)?, options, filter);
    }
    if let Some(path) = &options.labels {
        let inside = root.join(path);
        let path = if !path.exists() && inside.exists() { &inside } else { path };
        return from_table(root, read_table(path)?, options, filter);
    }
    if options.folders_only {
        return tree::open(root, filter);
    }
    let (table, said) = table_at_top(root, options, filter)?;
    let mut listing = match table {
        Some(table) => from_table(root, table, options, filter)?,
        None => tree::open(root, filter)?,
    };
    listing.said.extend(said);
    Ok(listing)
}

fn from_table(root: &Path, table: Table, options: &Options, filter: &Filter) -> Result<Listing> {
    match manifest::Places::of(&table)? {
        Some(places) => saved::open(root, table, &places, options, filter),
        None => labelled::open(root, table, options, filter),
    }
}

/// Reads a table; one whose first row is data gets names of ours.
fn read_table(path: &Path) -> Result<Table> {
    let bytes = table::load(path)?;
    // A pipe cannot be read again.
    let spare = if path.is_file() { None } else { Some(bytes.clone()) };
    let table = table::parse(path, bytes, Header::Names)?;
    if !is_headerless(&table) {
        return Ok(table);
    }
    table::parse(path, spare.map_or_else(|| table::load(path), Ok)?, Header::None)
}

/// The one table at the top of a folder that names files in it, and what there is to say about others.
fn table_at_top(root: &Path, options: &Options, filter: &Filter) -> Result<(Option<Table>, Vec<String>)> {
    let mut said = Vec::new();
    let mut chosen: Option<Table> = None;
    let mut others = Vec::new();
    for (rank, path) in candidates(root) {
        let known = rank < TABLES.len();
        let name = path.file_name().unwrap_or_default().to_owned();
        let table = match read_table(&path) {
            Ok(table) => table,
            // A table with a telling name is meant; what is wrong with it must not become "there are no labels".
            Err(e) if known && chosen.is_none() => return Err(e),
            Err(e) => {
                said.push(format!("{} is not used: {e}", shown(&name)));
                continue;
            }
        };
        if is_report(&table) {
            continue;
        }
        if manifest::Places::find(&table).is_some() && name == *"manifest.csv" {
            return Ok((Some(table), said));
        }
        if !names_files(root, &table, known, options, filter)? {
            if known {
                said.push(format!("{} is not used: no column of it names files here", shown(&name)));
            }
            continue;
        }
        match &chosen {
            None => chosen = Some(table),
            Some(_) => others.push(name.to_string_lossy().into_owned()),
        }
    }
    let unknown = chosen.as_ref().is_some_and(|t| rank(&t.path) == TABLES.len());
    if others.is_empty() {
        return Ok((chosen, said));
    }
    let shown_others = quoted(others.iter().map(String::as_str));
    match chosen {
        Some(table) if unknown => {
            let name = table.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let all = quoted(std::iter::once(name.as_str()).chain(others.iter().map(String::as_str)));
            said.push(format!("{all} all name files here, so none is used; --labels FILE chooses one"));
            Ok((None, said))
        }
        chosen => {
            said.push(format!("{shown_others} names files here too; --labels FILE chooses another table"));
            Ok((chosen, said))
        }
    }
}

/// Tables that prep writes for people and that tell no labels: fixes, the index of sheets, facts, findings.
fn is_report(table: &Table) -> bool {
    let begins = [
        "path,action,label,was,note",
        "sheet,row,column,path,label",
        "path,label,split,group,status,fault,notes,format,width,height",
        "code,severity,title,set,path",
    ];
    let columns = table.columns.join(",");
    begins.iter().any(|begin| columns.starts_with(begin))
}

fn rank(path: &Path) -> usize {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    TABLES.iter().position(|name| *name == stem).unwrap_or(TABLES.len())
}

/// The tables at the top of a folder, the most telling name first. A manifest goes before all.
fn candidates(root: &Path) -> Vec<(usize, PathBuf)> {
    let mut tables: Vec<(bool, usize, PathBuf)> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .filter_map(|member| Some(member.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let kind = path.extension().unwrap_or_default().to_ascii_lowercase();
            ["csv", "tsv", "jsonl", "ndjson"].iter().any(|k| kind == *k)
                && !name.starts_with('.')
                && !name.ends_with(".manifest.csv")
                && path.is_file()
        })
        .map(|path| (path.file_name().is_none_or(|name| name != "manifest.csv"), rank(&path), path))
        .collect();
    tables.sort();
    tables.into_iter().map(|(_, rank, path)| (rank, path)).collect()
}

/// Does a table name files below the root? One with a telling name need not do so often.
fn names_files(root: &Path, table: &Table, known: bool, options: &Options, filter: &Filter) -> Result<bool> {
    let disk = Disk::new(root);
    let (asked, hits) = (sample(table).count(), best_hits(root, table, &disk, options));
    if hits > 0 || !known || asked == 0 {
        return Ok(hits > 0 && (known || hits * 10 >= asked));
    }
    // Names without folders are found by the walk alone.
    let disk = Disk::with_files(root, walk(root, Path::new(""), filter)?.files);
    Ok(best_hits(root, table, &disk, options) > 0)
}

fn best_hits(root: &Path, table: &Table, disk: &Disk, options: &Options) -> usize {
    let bases = Base::candidates(root, &table.path);
    let resolver = Resolver { disk, root, bases, allow_outside: options.allow_outside, looks: true };
    let only = options.path_col.as_deref().and_then(|name| table.column(name));
    (0..table.columns.len())
        .filter(|column| only.is_none_or(|only| only == *column))
        .map(|column| resolver.score(table, column).0)
        .max()
        .unwrap_or(0)
}

fn one_image(root: &Path, input: &Path, bytes: u64) -> Listing {
    let name = Path::new(input.file_name().unwrap_or_default());
    let entry = Entry {
        path: names::encode(name),
        file: input.to_owned(),
        bytes,
        label: String::new(),
        group: String::new(),
        split: String::new(),
        row: None,
        fault: None,
        notes: Vec::new(),
    };
    Listing {
        root: root.to_owned(),
        kind: Kind::List,
        entries: vec![entry],
        classes: Vec::new(),
        table: None,
        taken: Vec::new(),
        findings: Vec::new(),
        ignored: Ignored::default(),
        said: vec!["one image".into()],
    }
}

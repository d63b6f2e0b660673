//! An input whose rows come from a table or list: the rows first, then the files that have none.

use std::path::{Path, PathBuf};

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fault::{Cause, Fault};
use crate::names::{self, shown};
use crate::table::Table;

use super::columns::{Roles, understand};
use super::disk::Disk;
use super::filter::Filter;
use super::labels::Labels;
use super::resolve::{Base, Resolver};
use super::rows::tell;
use super::tree::{self, meaning, shape};
use super::walk::{Found, Walked, walk};
use super::{Finding, Ignored, Kind, Listing, Options, Trouble, keep};

/// The listing of a label table.
///
/// # Errors
/// A table that names nothing on disk, or whose columns cannot be told.
pub(super) fn open(root: &Path, table: Table, options: &Options, filter: &Filter) -> Result<Listing> {
    let mut disk = Disk::new(root);
    let mut roles = understand(&table, resolver(root, &table, &disk, options), options)?;
    let mut walked = Walked::default();
    let mut scope = PathBuf::new();
    if options.files {
        // Nobody wants a walk of the whole home folder because a table lies there.
        let found = Resolver { bases: roles.bases.clone(), ..resolver(root, &table, &disk, options) };
        scope = common_folder(found.sampled_files(&table, roles.path));
        walked = walk(root, &scope, filter)?;
        disk = Disk::with_files(root, std::mem::take(&mut walked.files));
        if roles.hits.0 == 0 {
            roles = understand(&table, resolver(root, &table, &disk, options), options)?;
        }
    }
    let mut listing = listing(root, Kind::Table, table, &roles, disk, options);
    listing.ignored = std::mem::take(&mut walked.ignored);
    listing.findings.append(&mut walked.findings);
    if !scope.as_os_str().is_empty() {
        listing.said.push(format!("only files in `{}` are looked at", shown(&scope)));
    }
    finish(listing, &roles, &scope, options, filter)
}

/// The listing of a list of files, whose first column are paths and whose second are labels. Only what it names is
/// looked at.
///
/// # Errors
/// A list that names nothing on disk.
pub(super) fn open_list(root: &Path, table: Table, options: &Options, filter: &Filter) -> Result<Listing> {
    let disk = Disk::new(root);
    let labels = if table.columns.len() > 1 { Labels::Column(1) } else { Labels::None };
    let found = resolver(root, &table, &disk, options);
    let (hits, base) = if options.files { found.score(&table, 0) } else { (0, None) };
    let mut bases = found.bases.clone();
    if let Some(base) = base {
        bases.retain(|b| b != base);
        bases.insert(0, base.clone());
    }
    let roles = Roles { path: 0, labels, split: None, group: None, bases, hits: (hits, 0) };
    let listing = listing(root, Kind::List, table, &roles, disk, options);
    finish(listing, &roles, Path::new(""), options, filter)
}

fn resolver<'a>(root: &'a Path, table: &Table, disk: &'a Disk, options: &Options) -> Resolver<'a> {
    Resolver {
        disk,
        root,
        bases: Base::candidates(root, &table.path),
        allow_outside: options.allow_outside,
        looks: options.files,
    }
}

/// All rows, and the walked files without one.
fn listing(root: &Path, kind: Kind, table: Table, roles: &Roles, disk: Disk, options: &Options) -> Listing {
    let name = table.path.file_name().unwrap_or(table.path.as_os_str()).to_owned();
    let path = super::finding::quoted(std::iter::once(table.columns[roles.path].as_str()));
    let mut said = vec![format!(
        "using {}: {} rows, paths from column {path}, {}",
        shown(&name),
        table.len(),
        roles.labels.sentence(&table)
    )];
    let resolver = Resolver { bases: roles.bases.clone(), ..resolver(root, &table, &disk, options) };
    let mut told = tell(root, &table, roles, &resolver, &disk);
    said.append(&mut told.said);
    let (mut entries, mut findings) = (told.entries, told.findings);
    for (found, named) in disk.into_files().into_iter().zip(told.named) {
        if !named {
            entries.push(unlisted(root, found, &mut findings));
        }
    }
    let ignored = Ignored::default();
    let taken = roles.taken();
    Listing {
        root: root.to_owned(),
        kind,
        entries,
        classes: Vec::new(),
        table: Some(table),
        taken,
        findings,
        ignored,
        said,
    }
}

/// The row of a file that the table does not name.
pub(super) fn unlisted(root: &Path, found: Found, findings: &mut Vec<Finding>) -> Entry {
    let mut entry = tree::entry(root, found, String::new(), String::new());
    if entry.fault.is_none() {
        let fault = Fault::new(Cause::Unlisted, "on disk, but the table does not name it");
        findings.push(Finding::new(Trouble::UnlistedFile, entry.path.clone(), None, fault.detail.clone()));
        entry.fault = Some(fault);
    }
    entry
}

/// What the tree tells where the table does not; globs; and the error of a table that names nothing.
fn finish(
    mut listing: Listing,
    roles: &Roles,
    scope: &Path,
    options: &Options,
    filter: &Filter,
) -> Result<Listing> {
    if options.files && !listing.entries.iter().any(|e| e.row.is_some() && e.fault.is_none()) {
        return Err(nothing_named(&listing, roles));
    }
    if !filter.takes_all() {
        let dropped = keep(&mut listing, |e| filter.wants(&names::decode(&e.path)));
        // The walk has counted those of them that are there.
        listing.ignored.by_glob = listing.ignored.by_glob.max(dropped);
    }
    by_tree(&mut listing, roles, scope);
    if let Some(table) = &listing.table {
        listing.findings.extend(empty_cells(table, roles));
    }
    Ok(listing)
}

/// Labels and splits that the folders tell and the table does not.
fn by_tree(listing: &mut Listing, roles: &Roles, scope: &Path) {
    // The shape is that of the folders, so one file of each will do.
    let folder = |path: &str| path.rfind('/').map_or(0, |at| at);
    let mut usable = listing.entries.iter().filter(|e| e.fault.is_none()).map(|e| e.path.as_str()).peekable();
    let mut paths: Vec<PathBuf> = Vec::new();
    while let Some(path) = usable.next() {
        if usable.peek().is_none_or(|next| next[..folder(next)] != path[..folder(path)]) {
            paths.push(names::decode(path));
        }
    }
    let mut kind = shape(paths.iter().map(PathBuf::as_path));
    let mut strip = Path::new("");
    if kind != Kind::Splits {
        strip = scope;
        kind = shape(paths.iter().filter_map(|path| path.strip_prefix(scope).ok()));
    }
    let labels = roles.labels == Labels::None && kind != Kind::Flat;
    let splits = roles.split.is_none() && kind == Kind::Splits;
    if labels {
        listing.said.push("labels from the folders".into());
    }
    if splits {
        listing.said.push("splits from the folders".into());
    }
    if !labels && !splits {
        return;
    }
    for entry in listing.entries.iter_mut().filter(|e| e.row.is_some()) {
        let path = names::decode(&entry.path);
        let (label, split) = meaning(kind, path.strip_prefix(strip).unwrap_or(&path));
        if labels {
            entry.label = label;
        }
        if splits {
            entry.split = split;
        }
    }
}

/// Cells that are empty in a column that nine rows of ten fill: group and other columns of the user.
fn empty_cells(table: &Table, roles: &Roles) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (column, name) in table.columns.iter().enumerate() {
        let label = matches!(&roles.labels, Labels::Column(c) | Labels::Several(c, _) if *c == column);
        if column == roles.path || label {
            continue;
        }
        let empty: Vec<usize> =
            (0..table.len()).filter(|row| table.cell(*row, column).trim().is_empty()).collect();
        if empty.len() * 10 > table.len() {
            continue;
        }
        findings.extend(empty.into_iter().map(|row| {
            let why = format!("the row has no `{}`, nearly all others have", shown(name));
            Finding::new(Trouble::EmptyCell, name.clone(), table.line(row), why)
        }));
    }
    findings
}

fn nothing_named(listing: &Listing, roles: &Roles) -> Error {
    let Some(table) = &listing.table else { return Error::Internal("a table without a table".into()) };
    if table.is_empty() {
        return Error::table(&table.path, None, "the table has no rows");
    }
    let column = super::finding::quoted(std::iter::once(table.columns[roles.path].as_str()));
    let example = shown(table.cell(0, roles.path)).to_string();
    let outside =
        listing.entries.iter().filter(|e| e.fault.as_ref().is_some_and(|f| f.cause == Cause::OutsideRoot));
    let advice = if outside.count() > 0 {
        "the paths leave the input folder: give the folder that holds both as INPUT and the table with --labels, \
         or allow it with --allow-outside"
    } else {
        "if another column holds the paths, name it with --path-col; if the images lie elsewhere, give their folder \
         as INPUT and the table with --labels"
    };
    let place = shown(&listing.root);
    let why = format!(
        "none of its {} rows names a file below {place}: column {column} begins with `{example}`; {advice}",
        table.len()
    );
    Error::table(&table.path, Some(table.line(0)), why)
}

/// The deepest folder that holds all these files; files outside the root do not count.
pub(super) fn common_folder(files: impl Iterator<Item = PathBuf>) -> PathBuf {
    let mut common: Option<PathBuf> = None;
    for file in files {
        if file.is_absolute() || file.starts_with("..") {
            continue;
        }
        let folder = file.parent().unwrap_or(Path::new(""));
        common = Some(match common {
            None => folder.to_owned(),
            Some(so_far) => so_far
                .components()
                .zip(folder.components())
                .take_while(|(a, b)| a == b)
                .map(|(a, _)| a)
                .collect(),
        });
    }
    common.unwrap_or_default()
}

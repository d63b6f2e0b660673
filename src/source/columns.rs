//! Which column says what: by its name where the name is one of the field's, else by what is in it.

use std::collections::HashMap;
use std::path::Path;

use crate::error::{Error, Result};
use crate::names::shown;
use crate::table::Table;

use super::Options;
use super::finding::quoted;
use super::labels::Labels;
use super::resolve::{Base, Resolver, sample};

/// Names of path columns, most telling first; in lower case, without `_`, `-` and spaces.
const PATHS: [&str; 26] = [
    "path",
    "filepath",
    "file",
    "filename",
    "imagepath",
    "imgpath",
    "imagefile",
    "imagename",
    "imgname",
    "image",
    "img",
    "images",
    "imageid",
    "imgid",
    "idcode",
    "picture",
    "photo",
    "photopath",
    "relpath",
    "relativepath",
    "name",
    "uri",
    "url",
    "src",
    "id",
    "uuid",
];

/// Names of label columns, most telling first.
const LABELS: [&str; 30] = [
    "label",
    "labels",
    "class",
    "classes",
    "classname",
    "labelname",
    "category",
    "categories",
    "categoryname",
    "target",
    "targets",
    "y",
    "species",
    "diagnosis",
    "dx",
    "disease",
    "variety",
    "breed",
    "emotion",
    "celltype",
    "tag",
    "tags",
    "genus",
    "cultivar",
    "defect",
    "grade",
    "finding",
    "findinglabels",
    "classid",
    "labelid",
];

/// Names of columns that tell the part of a split.
const SPLITS: [&str; 6] = ["split", "set", "subset", "partition", "datasplit", "usage"];

/// What the columns of a table mean.
pub(super) struct Roles {
    pub(super) path: usize,
    pub(super) labels: Labels,
    pub(super) split: Option<usize>,
    /// A column called `group` exactly, as manifests have it. Others are kept for `split --group-by`.
    pub(super) group: Option<usize>,
    /// The base that the paths start from, most likely first.
    pub(super) bases: Vec<Base>,
    /// The sampled rows that name files, and how many were sampled.
    pub(super) hits: (usize, usize),
}

impl Roles {
    /// The columns whose content the entries carry.
    pub(super) fn taken(&self) -> Vec<usize> {
        let label = match &self.labels {
            Labels::Column(column) | Labels::Several(column, _) => Some(*column),
            Labels::None | Labels::OneHot(_) => None,
        };
        [Some(self.path), label, self.split, self.group].into_iter().flatten().collect()
    }
}

/// Lower case without what people put between words.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ' | '.')).flat_map(char::to_lowercase).collect()
}

/// Is this the name of a column of paths?
pub(super) fn is_path_name(name: &str) -> bool {
    PATHS.contains(&plain(name).as_str())
}

/// The first of `names` that a column of the table has.
fn named(table: &Table, names: &[&str], not: &[usize]) -> Option<usize> {
    let plains: Vec<String> = table.columns.iter().map(|c| plain(c)).collect();
    names.iter().find_map(|name| (0..plains.len()).find(|at| plains[*at] == *name && !not.contains(at)))
}

/// The column that an option names.
fn asked(table: &Table, flag: &str, name: &str) -> Result<usize> {
    table.column(name).ok_or_else(|| {
        let there = quoted(table.columns.iter().map(String::as_str));
        Error::Usage(format!("{flag} {name}: {} has no such column, only {there}", shown(&table.path)))
    })
}

/// Has the first row names, or is it data already? A name that looks like a picture's file is none.
pub(super) fn is_headerless(table: &Table) -> bool {
    table.columns.iter().any(|name| looks_like_image(name))
}

/// Does the text end like the name of a picture?
pub(super) fn looks_like_image(text: &str) -> bool {
    const IMAGES: [&str; 12] =
        ["jpg", "jpeg", "png", "webp", "tif", "tiff", "bmp", "gif", "ppm", "pgm", "heic", "jpe"];
    Path::new(text.trim()).extension().is_some_and(|e| IMAGES.iter().any(|i| e.eq_ignore_ascii_case(i)))
}

/// Finds out what the columns of `table` mean. The bases of `resolver` come back sorted by how well they serve.
///
/// # Errors
/// An option that names no column; a table in which no column can be paths.
pub(super) fn understand(table: &Table, mut resolver: Resolver, options: &Options) -> Result<Roles> {
    let candidates: Vec<usize> = match &options.path_col {
        Some(name) => vec![asked(table, "--path-col", name)?],
        None => (0..table.columns.len()).collect(),
    };
    let mut best: (usize, usize, Option<Base>) = (0, 0, None);
    if options.files {
        for column in by_name_first(table, candidates.clone()) {
            let (hits, base) = resolver.score(table, column);
            if hits > best.0 {
                best = (hits, column, base.cloned());
            }
        }
    }
    let path = match best.0 {
        0 => path_unseen(table, &candidates)?,
        _ => best.1,
    };
    let label = options.label_col.as_deref().map(|name| asked(table, "--label-col", name)).transpose()?;
    if let (Some(name), true) = (&options.label_col, label == Some(path)) {
        let name = shown(name);
        let why = "is the column of the paths: each image would be a class of its own";
        return Err(Error::Usage(format!("--label-col {name}: this {why}")));
    }
    let split = named(table, &SPLITS, &[path]).filter(|at| Some(*at) != label && few_values(table, *at, 12));
    let group =
        table.columns.iter().position(|c| c == "group").filter(|at| *at != path && Some(*at) != label);
    let taken: Vec<usize> = [Some(path), split, group].into_iter().flatten().collect();
    let labels = Labels::find(table, label.or_else(|| named(table, &LABELS, &taken)), &taken);
    table.check_sole(path, options.path_col.is_some())?;
    labels.columns().iter().try_for_each(|at| table.check_sole(*at, label.is_some()))?;
    [split, group].into_iter().flatten().try_for_each(|at| table.check_sole(at, false))?;
    if let Some(base) = best.2 {
        resolver.bases.retain(|b| *b != base);
        resolver.bases.insert(0, base);
    }
    Ok(Roles { path, labels, split, group, bases: resolver.bases, hits: (best.0, sample(table).count()) })
}

/// Columns with the name of a path column first, so that a tie goes to them.
fn by_name_first(table: &Table, mut columns: Vec<usize>) -> Vec<usize> {
    let rank =
        |at: &usize| PATHS.iter().position(|name| *name == plain(&table.columns[*at])).unwrap_or(PATHS.len());
    columns.sort_by_key(|at| (rank(at), *at));
    columns
}

/// The path column of a table whose files are not there: the one that looks like file names, else by its name.
fn path_unseen(table: &Table, candidates: &[usize]) -> Result<usize> {
    let looks =
        |column: &usize| sample(table).filter(|row| looks_like_image(table.cell(*row, *column))).count();
    let columns = by_name_first(table, candidates.to_vec());
    let best = columns
        .iter()
        .copied()
        .max_by_key(|c| (looks(c), std::cmp::Reverse(columns.iter().position(|d| d == c))));
    match best {
        Some(column) if candidates.len() == 1 || looks(&column) > 0 => Ok(column),
        Some(column) if PATHS.contains(&plain(&table.columns[column]).as_str()) => Ok(column),
        _ => {
            let there = quoted(table.columns.iter().map(String::as_str));
            let why =
                format!("none of its columns ({there}) holds names of images; say which with --path-col");
            Err(Error::table(&table.path, None, why))
        }
    }
}

/// Has the column at most `most` different values, in its first 100,000 rows?
fn few_values(table: &Table, column: usize, most: usize) -> bool {
    let mut seen: Vec<&str> = Vec::new();
    for row in 0..table.len().min(100_000) {
        let cell = table.cell(row, column);
        if !seen.contains(&cell) {
            seen.push(cell);
        }
        if seen.len() > most {
            return false;
        }
    }
    true
}

/// How often each value of a column occurs, for asking only.
pub(super) fn tally(table: &Table, column: usize) -> HashMap<&str, usize> {
    let mut tally = HashMap::new();
    for row in 0..table.len() {
        *tally.entry(table.cell(row, column)).or_default() += 1;
    }
    tally
}

//! From a cell of a table to a file: which folder the paths start from, and which spelling was meant.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::fault::{Cause, Fault};
use crate::names;
use crate::table::Table;

use super::columns::is_path_name;
use super::disk::{Alike, Disk, Hit, normal};

/// Folders that people keep images in, in lower case.
const IMAGE_FOLDERS: [&str; 21] = [
    "images",
    "image",
    "imgs",
    "img",
    "train",
    "train_images",
    "train_imgs",
    "training",
    "train_data",
    "jpegimages",
    "jpeg",
    "jpg",
    "png",
    "photos",
    "pictures",
    "data",
    "dataset",
    "val",
    "test",
    "test_images",
    "input",
];

/// How many rows are asked to choose the path column and the folder that paths start from.
const SAMPLE: usize = 300;

/// Where the paths of a table start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    /// Below the root.
    pub(super) folder: PathBuf,
    /// The paths begin with the name of the root itself, which goes.
    strip: Option<OsString>,
}

/// In what the spelling of the table differs from the disk's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Backslash,
    DotSlash,
    Trimmed,
    Extension,
    Case,
    Unicode,
    NameOnly,
}

/// What a cell means.
pub(super) struct Meant {
    /// The path of the row: below the root, or, outside it, as written.
    pub(super) path: PathBuf,
    pub(super) how: Vec<How>,
    pub(super) hit: Result<Hit, Fault>,
}

/// Resolves the paths of one table.
pub(super) struct Resolver<'a> {
    pub(super) disk: &'a Disk,
    pub(super) root: &'a Path,
    /// The most likely first.
    pub(super) bases: Vec<Base>,
    pub(super) allow_outside: bool,
    /// Are the files looked for? Else a cell is taken by its spelling alone.
    pub(super) looks: bool,
}

/// A spelling of a cell, cleaner than the one before.
struct Form {
    text: PathBuf,
    how: Vec<How>,
}

impl Form {
    fn new(text: &str, mut how: Vec<How>) -> Self {
        if text.starts_with("./") || text.contains("/./") {
            how.push(How::DotSlash);
        }
        Self { text: PathBuf::from(text), how }
    }
}

impl Resolver<'_> {
    /// The file that `cell` means, or why there is none.
    pub(super) fn resolve(&self, cell: &str) -> Meant {
        if cell.contains('\0') {
            let fault = Fault::new(Cause::Missing, "the path holds a NUL byte, which no file name can");
            return Meant { path: PathBuf::from(cell), how: Vec::new(), hit: Err(fault) };
        }
        if !self.looks {
            return match self.as_it_is(cell) {
                Some(path) => Meant { path, how: Vec::new(), hit: Err(Fault::new(Cause::Missing, "")) },
                None => self.nothing(&forms(cell)),
            };
        }
        let forms = forms(cell);
        for form in &forms {
            if let Some(meant) = self.exact(form) {
                return meant;
            }
        }
        for form in &forms {
            if let Some(meant) = self.alike(form) {
                return meant;
            }
        }
        self.nothing(&forms)
    }

    /// The path of a cell that has nothing to be cleaned, below the root.
    fn as_it_is(&self, cell: &str) -> Option<PathBuf> {
        let clean = |part: &str| !matches!(part, "" | "." | "..");
        let simple = names::is_plain(cell)
            && !cell.contains(['\\', ':'])
            && !cell.starts_with(' ')
            && !cell.ends_with(' ')
            && cell.split('/').all(clean);
        match self.bases.first() {
            Some(Base { folder, strip: None }) if simple => Some(folder.join(cell)),
            _ => None,
        }
    }

    /// Does `cell` name a file by the spelling itself, at `base`?
    fn names_file(&self, cell: &str, base: &Base) -> bool {
        let one = |alike: Alike| matches!(alike, Alike::One(_));
        forms(cell).iter().any(|form| {
            let Some(path) = base.place(&form.text) else { return false };
            self.disk.exact(&path).is_some()
                || one(self.disk.with_extension(&path))
                || one(self.disk.loosely(&path))
                || path
                    .file_name()
                    .is_some_and(|name| name == path.as_os_str() && one(self.disk.by_name(name).0))
        })
    }

    fn exact(&self, form: &Form) -> Option<Meant> {
        let below = self.below_root(&form.text);
        let text = below.as_deref().unwrap_or(&form.text);
        for path in self.bases.iter().filter_map(|base| base.place(text)) {
            if let Some(hit) = self.disk.exact(&path) {
                // A file that the walk did not meet may lie behind a link that leads away.
                if hit.place.is_none() && !self.allow_outside && leads_away(self.root, &path) {
                    return Some(outside(
                        path,
                        "a link on its way leads out of the input folder; --allow-outside takes such rows",
                    ));
                }
                return Some(found(hit, form.how.clone()));
            }
        }
        let leaves = self.bases.iter().all(|base| base.place(text).is_none());
        if leaves && self.allow_outside {
            // `join` takes an absolute path as it is.
            let path = self.bases.first().map_or_else(|| text.to_owned(), |base| base.folder.join(text));
            return self.disk.exact(&path).map(|hit| found(hit, form.how.clone()));
        }
        None
    }

    /// An absolute path that leads below the root, from there.
    fn below_root(&self, path: &Path) -> Option<PathBuf> {
        if !path.is_absolute() {
            return None;
        }
        let root = std::path::absolute(self.root).ok()?;
        path.strip_prefix(&root).or_else(|_| path.strip_prefix(self.root)).ok().map(Path::to_owned)
    }

    /// Without extension, in another case or Unicode form, or without its folder.
    fn alike(&self, form: &Form) -> Option<Meant> {
        for path in self.bases.iter().filter_map(|base| base.place(&form.text)) {
            match self.disk.with_extension(&path) {
                Alike::One(hit) => return Some(found(hit, with(&form.how, How::Extension))),
                Alike::Several(files) => return Some(ambiguous(path, &files)),
                Alike::None => {}
            }
            match self.disk.loosely(&path) {
                Alike::One(hit) => {
                    let case =
                        hit.path.to_string_lossy().to_lowercase() != path.to_string_lossy().to_lowercase();
                    let how = if case { How::Unicode } else { How::Case };
                    return Some(found(hit, with(&form.how, how)));
                }
                Alike::Several(files) => return Some(ambiguous(path, &files)),
                Alike::None => {}
            }
        }
        let name = form.text.file_name().filter(|name| *name == form.text.as_os_str())?;
        match self.disk.by_name(name) {
            (Alike::One(hit), false) => Some(found(hit, with(&form.how, How::NameOnly))),
            (Alike::One(hit), true) => {
                Some(found(hit, with(&with(&form.how, How::NameOnly), How::Extension)))
            }
            (Alike::Several(files), _) => Some(ambiguous(form.text.clone(), &files)),
            (Alike::None, _) => None,
        }
    }

    fn nothing(&self, forms: &[Form]) -> Meant {
        // The cleanest spelling says best what was looked for.
        let Some(last) = forms.last() else { return outside(PathBuf::new(), "an empty path") };
        let text = self.below_root(&last.text).unwrap_or_else(|| last.text.clone());
        let place = self.bases.iter().find_map(|base| base.place(&text));
        match place {
            Some(path) if !drive(&text) => {
                let fault = Fault::new(Cause::Missing, "the table names it, the disk does not have it");
                Meant { path, how: last.how.clone(), hit: Err(fault) }
            }
            _ if self.allow_outside => {
                let fault = Fault::new(Cause::Missing, "there is no such file outside the input folder");
                Meant { path: text, how: last.how.clone(), hit: Err(fault) }
            }
            _ => outside(text, "the path leaves the input folder; --allow-outside takes such rows"),
        }
    }

    /// How many of the sampled rows of `column` name files, from the base where most do.
    pub(super) fn score(&self, table: &Table, column: usize) -> (usize, Option<&Base>) {
        let mut best = (0, None);
        if is_one_word(table, column) {
            return best;
        }
        for base in &self.bases {
            let hits = sample(table).filter(|row| self.names_file(table.cell(*row, column), base)).count();
            if hits > best.0 {
                best = (hits, Some(base));
            }
        }
        best
    }

    /// The files that the sampled rows of `column` name.
    pub(super) fn sampled_files<'t>(
        &'t self,
        table: &'t Table,
        column: usize,
    ) -> impl Iterator<Item = PathBuf> + 't {
        sample(table)
            .filter_map(move |row| self.resolve(table.cell(row, column)).hit.ok())
            .map(|hit| hit.path)
    }
}

/// Says the column the same in all of several rows, under a name that no path column has? A word that happens to be a
/// file's name is no path.
fn is_one_word(table: &Table, column: usize) -> bool {
    !is_path_name(&table.columns[column])
        && table.len() > 1
        && sample(table).all(|row| table.cell(row, column) == table.cell(0, column))
}

/// At most [`SAMPLE`] rows, evenly over the table.
pub(super) fn sample(table: &Table) -> impl Iterator<Item = usize> {
    let (all, n) = (table.len(), table.len().min(SAMPLE));
    (0..n).map(move |at| at * all / n)
}

impl Base {
    /// The root itself, the folder of the table, the usual image folders, and the folder above the root.
    pub(super) fn candidates(root: &Path, table: &Path) -> Vec<Self> {
        let base = |folder: PathBuf| Self { folder, strip: None };
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        let mut bases = Vec::new();
        if let (Some(root), Some(folder)) = (real(root), table.parent().and_then(|p| real(&or_dot(p)))) {
            bases.extend(folder.strip_prefix(&root).ok().map(|below| base(below.to_owned())));
        }
        bases.push(base(PathBuf::new()));
        let mut folders: Vec<(usize, OsString)> = std::fs::read_dir(or_dot(root))
            .into_iter()
            .flatten()
            .filter_map(|member| {
                let name = member.ok()?.file_name();
                let lower = name.to_str()?.to_lowercase();
                Some((IMAGE_FOLDERS.iter().position(|f| *f == lower)?, name))
            })
            .filter(|(_, name)| root.join(name).is_dir())
            .collect();
        folders.sort();
        bases.extend(folders.into_iter().map(|(_, name)| base(name.into())));
        if let Some(name) = real(root).and_then(|r| r.file_name().map(ToOwned::to_owned)) {
            bases.push(Self { folder: PathBuf::new(), strip: Some(name) });
        }
        let mut seen = Vec::new();
        bases.retain(|b| {
            !seen.contains(b) && {
                seen.push(b.clone());
                true
            }
        });
        bases
    }

    /// Where `path` lies below the root; none where it leaves it.
    fn place(&self, path: &Path) -> Option<PathBuf> {
        if drive(path) {
            return None;
        }
        match &self.strip {
            None if path.is_absolute() => None,
            None => normal(&self.folder.join(path)),
            Some(name) => normal(normal(path)?.strip_prefix(name).ok()?),
        }
    }
}

/// `C:/…` or `C:\…`
fn drive(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    matches!(path.as_os_str().as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

/// An empty path is the folder where we are.
fn or_dot(path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path.to_owned() }
}

/// The cell as it is, and cleaner spellings of it.
fn forms(cell: &str) -> Vec<Form> {
    let mut forms = vec![Form::new(cell, Vec::new())];
    let decoded = names::decode(cell);
    if decoded != Path::new(cell) {
        forms.push(Form { text: decoded, how: Vec::new() });
        return forms;
    }
    let slashed = cell.contains('\\').then(|| cell.replace('\\', "/"));
    if let Some(slashed) = &slashed {
        forms.push(Form::new(slashed, vec![How::Backslash]));
    }
    let text = slashed.as_deref().unwrap_or(cell);
    if text.trim() != text && !text.trim().is_empty() {
        let how = if slashed.is_some() { vec![How::Backslash, How::Trimmed] } else { vec![How::Trimmed] };
        forms.push(Form::new(text.trim(), how));
    }
    forms
}

fn with(how: &[How], more: How) -> Vec<How> {
    how.iter().copied().chain([more]).collect()
}

fn found(hit: Hit, how: Vec<How>) -> Meant {
    Meant { path: hit.path.clone(), how, hit: Ok(hit) }
}

fn outside(path: PathBuf, why: &str) -> Meant {
    Meant { path, how: Vec::new(), hit: Err(Fault::new(Cause::OutsideRoot, why)) }
}

fn ambiguous(path: PathBuf, files: &[PathBuf]) -> Meant {
    let shown: Vec<String> = files.iter().map(|f| names::encode(f)).collect();
    let fault = Fault::new(Cause::Ambiguous, format!("it can mean {}", shown.join(" or ")));
    Meant { path, how: Vec::new(), hit: Err(fault) }
}

/// Does the file at `path` lie outside the root once its links are followed?
fn leads_away(root: &Path, path: &Path) -> bool {
    match (std::fs::canonicalize(or_dot(root)), std::fs::canonicalize(root.join(path))) {
        (Ok(root), Ok(file)) => !file.starts_with(root),
        // Its fault is told elsewhere.
        _ => false,
    }
}

//! What the walk takes, leaves and counts: globs, `.prepignore`, hidden files, junk and files that are no pictures by
//! their name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::error::{Error, Result};

use super::Options;

/// The choice of the user, ready to be asked.
pub(super) struct Filter {
    only: Option<Gitignore>,
    not: Option<Gitignore>,
    hidden: bool,
}

/// Why a name is left out without becoming a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Droppings of operating systems and tools.
    Junk,
    /// Starts with a dot.
    Hidden,
    /// A well-known file beside pictures.
    Sidecar,
    /// Not what `--glob` and `--exclude` ask for.
    Glob,
}

impl Filter {
    /// # Errors
    /// A glob that cannot be understood.
    pub(super) fn new(options: &Options) -> Result<Self> {
        Ok(Self {
            only: globs("--glob", &options.globs)?,
            not: globs("--exclude", &options.exclude)?,
            hidden: options.hidden,
        })
    }

    /// Do `--glob` and `--exclude` leave out nothing?
    pub(super) fn takes_all(&self) -> bool {
        self.only.is_none() && self.not.is_none()
    }

    /// Is the folder at `path` (below the root) left out with all that is in it?
    pub(super) fn leaves_folder(&self, path: &Path) -> Option<Left> {
        let name = path.file_name().unwrap_or(path.as_os_str()).as_bytes();
        if JUNK_FOLDERS.iter().any(|junk| junk.as_bytes() == name) {
            return Some(Left::Junk);
        }
        if name.starts_with(b".") && (!self.hidden || name.starts_with(b".prep")) {
            return Some(Left::Hidden);
        }
        self.not.as_ref().is_some_and(|not| not.matched(path, true).is_ignore()).then_some(Left::Glob)
    }

    /// Is the file at `path` (below the root) left out?
    pub(super) fn leaves_file(&self, path: &Path) -> Option<Left> {
        let name = path.file_name().unwrap_or(path.as_os_str());
        let bytes = name.as_bytes();
        if bytes.starts_with(b"._") || JUNK_FILES.iter().any(|j| j.as_bytes().eq_ignore_ascii_case(bytes)) {
            return Some(Left::Junk);
        }
        if bytes.starts_with(b".") && (!self.hidden || bytes.starts_with(b".prep")) {
            return Some(Left::Hidden);
        }
        if is_sidecar(name) {
            return Some(Left::Sidecar);
        }
        (!self.wants(path)).then_some(Left::Glob)
    }

    /// Do `--glob` and `--exclude` want the file at `path`, by any of its folders or itself?
    pub(super) fn wants(&self, path: &Path) -> bool {
        if path.has_root() {
            return true;
        }
        let hit = |globs: &Gitignore| globs.matched_path_or_any_parents(path, false).is_ignore();
        self.only.as_ref().is_none_or(hit) && !self.not.as_ref().is_some_and(hit)
    }
}

fn globs(flag: &str, globs: &[String]) -> Result<Option<Gitignore>> {
    if globs.is_empty() {
        return Ok(None);
    }
    let mut builder = GitignoreBuilder::new("");
    for glob in globs {
        // In an ignore file these two are a comment and an exception; on a command line nobody means that.
        let literal = match glob.as_bytes().first() {
            Some(b'#' | b'!') => format!("\\{glob}"),
            _ => glob.clone(),
        };
        builder
            .add_line(None, &literal)
            .map_err(|e| Error::Usage(format!("{flag} {glob:?} is no glob: {e}")))?;
    }
    let built = builder.build().map_err(|e| Error::Usage(format!("{flag}: {e}")))?;
    if built.is_empty() {
        return Err(Error::Usage(format!("{flag} is empty; leave it out to take every file")));
    }
    Ok(Some(built))
}

/// Folders that tools leave behind; never classes.
const JUNK_FOLDERS: [&str; 5] = [".ipynb_checkpoints", "__MACOSX", "@eaDir", "$RECYCLE.BIN", "lost+found"];

/// Files that operating systems leave behind.
const JUNK_FILES: [&str; 5] = ["Thumbs.db", "desktop.ini", ".DS_Store", "ehthumbs.db", "Icon\r"];

/// What lies beside pictures and is none, by its extension.
const SIDECARS: [&str; 62] = [
    "txt",
    "csv",
    "tsv",
    "json",
    "jsonl",
    "ndjson",
    "geojson",
    "xml",
    "md",
    "rst",
    "yaml",
    "yml",
    "toml",
    "ini",
    "cfg",
    "html",
    "htm",
    "css",
    "js",
    "py",
    "pyc",
    "ipynb",
    "sh",
    "bat",
    "r",
    "m",
    "c",
    "h",
    "cpp",
    "npy",
    "npz",
    "pkl",
    "pickle",
    "pt",
    "pth",
    "ckpt",
    "onnx",
    "h5",
    "hdf5",
    "mat",
    "parquet",
    "arrow",
    "feather",
    "xls",
    "xlsx",
    "doc",
    "docx",
    "log",
    "lst",
    "names",
    "tfrecord",
    "tfrecords",
    "rec",
    "idx",
    "zip",
    "tar",
    "gz",
    "bz2",
    "xz",
    "zst",
    "7z",
    "rar",
];

/// Papers that come without an extension.
const PAPERS: [&str; 9] =
    ["LICENSE", "LICENCE", "README", "COPYING", "NOTICE", "CHANGELOG", "AUTHORS", "Makefile", "Dockerfile"];

/// Is this the name of a well-known file that is no picture? Content is never asked: an HTML page called `x.jpg` is a row.
pub(super) fn is_sidecar(name: &OsStr) -> bool {
    !sidecar_kind(name).is_empty()
}

/// The kind of a sidecar for counting: its extension in lower case, or its name; empty for everything else.
pub(super) fn sidecar_kind(name: &OsStr) -> &'static str {
    let text = name.as_bytes();
    if let Some(paper) = PAPERS.iter().find(|paper| {
        text.strip_prefix(paper.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"-"))
            && Path::new(name).extension().is_none()
    }) {
        return paper;
    }
    let Some(extension) = Path::new(name).extension() else { return "" };
    SIDECARS.iter().find(|s| s.as_bytes().eq_ignore_ascii_case(extension.as_bytes())).copied().unwrap_or("")
}

/// The rules of one `.prepignore`, and the lines that are none.
pub(super) fn ignore_rules(text: &str) -> (Gitignore, Vec<(u64, String)>) {
    let mut builder = GitignoreBuilder::new("");
    let mut wrong = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if let Err(e) = builder.add_line(None, line) {
            wrong.push((number, e.to_string()));
        }
    }
    let rules = builder.build().unwrap_or_else(|e| {
        wrong.push((1, e.to_string()));
        Gitignore::empty()
    });
    (rules, wrong)
}

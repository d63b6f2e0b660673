//! `prep verify`: is what lies on the disk what was written? Structure and sizes at once, every byte on request, and the
//! row, source and label of whatever is not.

mod cache;
mod repair;
mod workspace;

use std::fs::{self, File};
use std::io;
use std::path::Path;

pub use self::repair::{Repaired, repair};
use crate::engine::crew::Crew;
use crate::engine::progress::Watch;
use crate::error::{Error, Result, io_reason};
use crate::names::shown;
use crate::out::Claim;
use crate::shards::{Cache, MANIFEST, Record};

/// What is read of the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Depth {
    /// Tables whole, of shards and images the sizes.
    Sizes,
    /// This share of the samples or images, 0 to 1, drawn from the seed.
    Share(f64, u64),
    /// Everything.
    All,
}

impl Depth {
    /// Is the item `key` to be read?
    fn takes(self, key: &str) -> bool {
        match self {
            Self::Sizes => false,
            Self::All => true,
            Self::Share(share, _) if share >= 1.0 => true,
            Self::Share(share, seed) => {
                let hash = blake3::keyed_hash(
                    &blake3::derive_key("imgprep 2026 verify subset 1", &seed.to_le_bytes()),
                    key.as_bytes(),
                );
                let mut first = [0; 8];
                first.copy_from_slice(&hash.as_bytes()[..8]);
                (u64::from_le_bytes(first) as f64) < share * 2_f64.powi(64)
            }
        }
    }
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The file, relative to what was verified.
    pub file: String,
    /// A stable code: `missing`, `size`, `hash`, `payload`, `frame`, `header`, `padding`, `table`, `manifest`, `io`.
    pub code: &'static str,
    /// What and where, in words.
    pub detail: String,
    /// The sample that it hits.
    pub sample: Option<Sample>,
}

/// A sample, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The part of the split; empty in a workspace.
    pub split: String,
    /// Its place in the part.
    pub sample: usize,
    /// Its place in the input.
    pub row: u32,
    /// Its source.
    pub path: String,
    /// Its label.
    pub label: String,
}

impl Sample {
    fn of(split: &str, sample: usize, record: &Record<'_>) -> Self {
        Self {
            split: split.to_owned(),
            sample,
            row: record.row.row,
            path: record.path.to_owned(),
            label: record.label.to_owned(),
        }
    }
}

/// What was looked at and what was found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// `cache` or `workspace`.
    pub kind: &'static str,
    /// Files whose existence and size were checked.
    pub files: usize,
    /// Samples or images.
    pub samples: usize,
    /// Of these, read and compared with their checksums.
    pub read: usize,
    /// Bytes that were read.
    pub bytes: u64,
    /// In the order of the files.
    pub troubles: Vec<Trouble>,
}

impl Report {
    fn trouble(&mut self, file: impl Into<String>, code: &'static str, detail: impl Into<String>) {
        self.troubles.push(Trouble { file: file.into(), code, detail: detail.into(), sample: None });
    }
}

/// Verifies the cache or the workspace in `folder`.
///
/// # Errors
/// Where `folder` is neither, or cannot be read at all. What is damaged is in the report.
pub fn run(folder: &Path, depth: Depth, crew: &Crew<'_>, watch: &mut dyn Watch) -> Result<Report> {
    let is_cache = folder.join(MANIFEST).exists();
    let outcome = if is_cache {
        match Cache::open(folder) {
            Ok(cache) => cache::run(&cache, depth, crew, watch),
            // It is there and cannot be understood: that is what was asked for.
            Err(Error::Table { why, .. }) => {
                let mut report = Report { kind: "cache", files: 1, ..Report::default() };
                report.trouble(MANIFEST, "manifest", why);
                Ok(report)
            }
            Err(e) => Err(e),
        }
    } else if folder.join("manifest.csv").exists() {
        workspace::run(folder, depth, crew, watch)
    } else if folder.join(Claim::CORNER).is_dir() {
        Err(Cache::open(folder).err().unwrap_or(Error::Interrupted))
    } else {
        let why = "is neither a cache of `prep pack` (manifest.json) nor a workspace (manifest.csv)";
        Err(Error::Usage(format!("{} {why}", shown(folder))))
    };
    watch.end();
    outcome
}

/// Opens a regular file for reading; a FIFO in its place must not be waited for.
fn open(path: &Path) -> io::Result<File> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("this is no regular file"));
    }
    File::open(path)
}

/// The code of a file that cannot be read, and why.
fn unreadable(e: &io::Error) -> (&'static str, String) {
    let code = if e.kind() == io::ErrorKind::NotFound { "missing" } else { "io" };
    (code, io_reason(e))
}

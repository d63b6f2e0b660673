//! What an earlier run of shrink has finished: one line of the journal an entry.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::one::{Made, Source};
use crate::entry::Entry;
use crate::fault::{Fault, Note, Oddity};
use crate::source::Stamp;

/// When a file was last written, in nanoseconds.
pub fn written(meta: &fs::Metadata) -> i64 {
    meta.mtime().wrapping_mul(1_000_000_000).wrapping_add(meta.mtime_nsec())
}

/// One finished entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The entry's path.
    pub src: String,
    /// The copy's path below the images folder, encoded; planned only where there is a fault.
    pub out: String,
    /// The source when it was read.
    pub stamp: Stamp,
    /// The fault, where there is no copy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fault: String,
    /// What was odd: (code, detail).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<(String, String)>,
    /// Size of the copy.
    pub size: (u32, u32),
    /// Bytes of the copy.
    pub bytes: u64,
    /// Hash of the copy.
    pub hash: String,
    /// When the copy was last written, in nanoseconds; a copy that something else has changed is made anew.
    #[serde(default)]
    pub written: i64,
    /// Stored size of the source.
    pub src_size: (u32, u32),
    /// Format of the source.
    pub src_format: String,
    /// Mode of the source.
    pub src_mode: String,
    /// Orientation of the source.
    pub src_orientation: u8,
    /// Hash of the source.
    pub src_hash: String,
}

impl Line {
    /// The line of a copy that was made.
    pub fn made(entry: &Entry, out: String, stamp: Stamp, made: Made) -> Self {
        let mut line = Self::begin(entry, out, stamp, made.source);
        line.notes = made.notes.iter().map(|n| (n.kind.code().to_owned(), n.detail.clone())).collect();
        line.size = made.size;
        line.bytes = made.bytes;
        line.hash = made.hash;
        line.written = made.written;
        line
    }

    /// The line of an entry that has no copy.
    pub fn failed(entry: &Entry, out: String, stamp: Stamp, fault: &Fault, source: Source) -> Self {
        let mut line = Self::begin(entry, out, stamp, source);
        line.fault = fault.to_string();
        line
    }

    fn begin(entry: &Entry, out: String, stamp: Stamp, source: Source) -> Self {
        Self {
            src: entry.path.clone(),
            out,
            stamp,
            fault: String::new(),
            notes: Vec::new(),
            size: (0, 0),
            bytes: 0,
            hash: String::new(),
            written: 0,
            src_size: source.size,
            src_format: source.format,
            src_mode: source.mode,
            src_orientation: source.orientation,
            src_hash: source.hash,
        }
    }

    /// As a line of the journal.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The line that was written as `text`; `None` when it is of another version.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The fault.
    pub fn fault(&self) -> Option<Fault> {
        Fault::parse(&self.fault)
    }

    /// The notes.
    pub fn notes(&self) -> Vec<Note> {
        self.notes.iter().filter_map(|(code, detail)| Some(Note::new(Oddity::parse(code)?, detail))).collect()
    }

    /// Does this line still answer for `entry`, whose copy is planned as `out` below `images`?
    pub fn holds(&self, entry: &Entry, out: &str, images: &Path) -> bool {
        if self.out != out || entry.fault.is_some() {
            return false;
        }
        match self.fault() {
            Some(fault) if fault.cause.is_transient() => false,
            Some(_) => self.stamp == Stamp::of(&entry.file),
            None => {
                let copy = images.join(crate::names::decode(&self.out));
                let whole = |meta: &fs::Metadata| meta.is_file() && meta.len() == self.bytes;
                fs::symlink_metadata(copy).is_ok_and(|meta| whole(&meta) && written(&meta) == self.written)
                    && self.stamp == Stamp::of(&entry.file)
            }
        }
    }
}

//! One sample before anything was decoded: where its file is, what the user says about it.

use std::path::PathBuf;

use crate::fault::{Fault, Note};

/// One input of a run; its place in the listing is its id.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Path relative to the root as manifests spell it (see [`crate::names::encode`]): `/`, UTF-8. Unique; the sort key.
    pub path: String,
    /// The file to open. Links are not resolved. Empty where nobody looks for the files.
    pub file: PathBuf,
    /// Bytes on disk when it was listed; 0 where there is no file.
    pub bytes: u64,
    /// The class, or several joined by `|`; empty where nothing names one.
    pub label: String,
    /// The group whose images must stay together; empty where nothing names one.
    pub group: String,
    /// The part of a split (`train`, `val`, `test` …); empty where nothing names one.
    pub split: String,
    /// The row of [`Listing::table`](crate::source::Listing) that names it, counted from 0.
    pub row: Option<usize>,
    /// Known before opening it: missing, a device, outside the root, unlisted …
    pub fault: Option<Fault>,
    /// Oddities of the listing (case, Unicode form, repeated rows).
    pub notes: Vec<Note>,
}

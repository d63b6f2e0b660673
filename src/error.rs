//! What ends a run. Each error says what was being done, to which path or line, why it failed and what to do.
//!
//! A [`Fault`](crate::fault::Fault) is about one image and never becomes an `Error`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::names::shown;

/// This run cannot go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// What was typed cannot be meant; the sentence says what to type instead.
    Usage(String),
    /// A file or folder that the whole run needs cannot be read.
    Read {
        /// What was being done, as in "reading the label table".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An output cannot be written.
    Write {
        /// What was being done, as in "writing the manifest".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A table (CSV, TSV, JSON lines, list, manifest) is not usable.
    Table {
        /// The table.
        path: PathBuf,
        /// The line, counted from 1, where one is known.
        line: Option<u64>,
        /// Why, and what to do.
        why: String,
    },
    /// The outputs cannot be placed (inside the input, taken by something else).
    Outputs(String),
    /// Another run works on the same output.
    Locked {
        /// The output folder.
        path: PathBuf,
        /// Who holds it, as far as the lock file tells.
        holder: String,
    },
    /// SIGINT or SIGTERM; what is done stays done.
    Interrupted,
    /// A mistake of ours.
    Internal(String),
}

/// The result of everything that can end a run.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Reading `path` failed while `doing` something.
    pub fn read(doing: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Read { doing, path: path.as_ref().to_owned(), source }
    }

    /// Writing `path` failed while `doing` something.
    pub fn write(doing: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Write { doing, path: path.as_ref().to_owned(), source }
    }

    /// `path` is not usable as a table, at `line` (from 1) where one is known.
    pub fn table(path: impl AsRef<Path>, line: Option<u64>, why: impl Into<String>) -> Self {
        Self::Table { path: path.as_ref().to_owned(), line, why: why.into() }
    }

    /// 2 for everything that is wrong with a run, 130 for an interrupt.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Interrupted => 130,
            _ => 2,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(why) | Self::Outputs(why) => f.write_str(why),
            Self::Read { doing, path, source } => {
                write!(f, "{doing}: {}: {}", shown(path), io_reason(source))
            }
            Self::Write { doing, path, source } => {
                write!(f, "{doing}: {}: {}", shown(path), io_reason(source))?;
                match source.kind() {
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => f.write_str(
                        "; make room and type the same command again: it continues where it stopped",
                    ),
                    io::ErrorKind::PermissionDenied
                    | io::ErrorKind::ReadOnlyFilesystem
                    | io::ErrorKind::NotFound
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::AlreadyExists => f.write_str("; choose another place with -o"),
                    _ => Ok(()),
                }
            }
            Self::Table { path, line: Some(line), why } => write!(f, "{}:{line}: {why}", shown(path)),
            Self::Table { path, line: None, why } => write!(f, "{}: {why}", shown(path)),
            Self::Locked { path, holder } => write!(
                f,
                "another prep is writing to {} ({holder}); wait until it has ended, or choose another place with -o",
                shown(path)
            ),
            Self::Interrupted => {
                f.write_str("interrupted; type the same command again to continue where it stopped")
            }
            Self::Internal(why) => write!(f, "a mistake in prep itself, please report it: {why}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } | Self::Write { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// What the system said, without "(os error 2)".
pub fn io_reason(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => "there is no such file or folder".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::StorageFull => "the disk is full".into(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up".into(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".into(),
        _ => {
            let text = e.to_string();
            match text.find(" (os error") {
                Some(at) => text[..at].to_owned(),
                None => text,
            }
        }
    }
}

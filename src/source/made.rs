//! Folders in a data set that prep itself wrote: copies, shards, sheets, caches. They are no sources of the set that
//! they lie in. A name alone never makes one ours: what is in it must be as prep writes it, and what prep did not write
//! stays a file of the user's.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use crate::manifest::Sidecar;
use crate::out::Claim;
use crate::shards;
use crate::table::{self, Header};

use super::read::kind_of;

/// The index of a folder of sheets.
pub const SHEETS: &str = "sheets.csv";
/// The page for a browser in a folder of sheets.
pub const SHEETS_PAGE: &str = "sheets.html";
/// The columns of that index.
pub const SHEETS_COLUMNS: [&str; 10] =
    ["sheet", "row", "column", "path", "label", "split", "width", "height", "fault", "findings"];
/// The folder of all caches of facts.
pub const FACTS: &str = "prep-facts";
/// The folder of the samples that `prep plan` measured.
pub const SAMPLES: &str = "prep-plan";

/// The longest index, manifest or sidecar that is looked into, in bytes.
const LIMIT: u64 = 64 << 20;
/// Where the sidecar of a workspace lies.
const SIDECAR: &str = "manifest.prep.json";

/// What of a folder prep wrote.
pub(super) enum Made {
    /// All of it.
    Whole,
    /// A workspace: what else lies beside its copies is the user's.
    Workspace,
    /// Shards: what their manifest names, and it.
    Shards(HashSet<OsString>),
    /// These files, and what is named as sheets are while a first run was stopped before it wrote its index.
    Sheets(HashSet<OsString>),
}

impl Made {
    /// Did prep write the member `name`?
    pub(super) fn has(&self, name: &OsStr) -> bool {
        match self {
            Self::Whole => true,
            Self::Workspace => {
                ["images", "manifest.csv", SIDECAR, Claim::CORNER].iter().any(|ours| name == *ours)
            }
            Self::Shards(parts) => name == shards::MANIFEST || name == Claim::CORNER || parts.contains(name),
            Self::Sheets(names) => name == SHEETS || name == SHEETS_PAGE || names.contains(name),
        }
    }
}

/// What of the folder `fd`, whose members are `names`, prep wrote; none where nothing in it is prep's.
pub(super) fn made(fd: &OwnedFd, names: &[(OsString, FileType)]) -> Option<Made> {
    let has = |wanted: &str| names.iter().any(|(name, _)| name == wanted);
    // What is finished says what of it is ours. Of what is at work, or was exported, all is.
    if has(SIDECAR) && is_workspace(fd) {
        return Some(Made::Workspace);
    }
    if let Some(parts) = has(shards::MANIFEST).then(|| parts(fd)).flatten() {
        return Some(Made::Shards(parts));
    }
    if has(Claim::CORNER) && is_corner(fd) || is_caches(fd, names) {
        return Some(Made::Whole);
    }
    has(SHEETS).then(|| sheets(fd, names)).flatten().map(Made::Sheets)
}

/// Our corner has a lock that says which process had it.
fn is_corner(fd: &OwnedFd) -> bool {
    let Some(corner) = folder(fd, Claim::CORNER) else { return false };
    let is_lock = |head: &[u8]| head.is_empty() || head.starts_with(b"process ");
    open(&corner, "lock").and_then(|lock| head(lock, 64)).is_some_and(|head| is_lock(&head))
}

/// The folders and files that the manifest of shards names, where it says that it is one.
fn parts(fd: &OwnedFd) -> Option<HashSet<OsString>> {
    #[derive(serde::Deserialize)]
    struct Told {
        kind: String,
        #[serde(default)]
        splits: BTreeMap<String, serde::de::IgnoredAny>,
        #[serde(default)]
        files: BTreeMap<String, serde::de::IgnoredAny>,
    }
    let text = open(fd, shards::MANIFEST).and_then(|file| head(file, LIMIT))?;
    let told = serde_json::from_slice::<Told>(&text).ok()?;
    (told.kind == "prep-cache")
        .then(|| told.splits.into_keys().chain(told.files.into_keys()).map(OsString::from).collect())
}

/// The sidecar of a workspace has what decides the bytes of its copies; that of a set of the user's has not.
fn is_workspace(fd: &OwnedFd) -> bool {
    let text = open(fd, SIDECAR).and_then(|file| head(file, LIMIT));
    text.and_then(|text| serde_json::from_slice::<Sidecar>(&text).ok()).is_some_and(|sidecar| {
        ["heading", "source", "fit"].iter().all(|key| sidecar.options.contains_key(*key))
    })
}

/// A folder that `--cache-dir` named, or one in it.
fn is_caches(fd: &OwnedFd, names: &[(OsString, FileType)]) -> bool {
    let is_folder = |name: &OsStr| name == FACTS || name == SAMPLES;
    let all = |wanted: &dyn Fn(&OsStr) -> bool| {
        let mut names = names.iter().map(|(name, _)| name).peekable();
        names.peek().is_some() && names.all(|name| wanted(name))
    };
    let inside = |name: &str| match folder(fd, name) {
        None => true,
        Some(below) => members(&below).is_some_and(|members| members.iter().all(|m| is_hex(m))),
    };
    all(&is_folder) && [FACTS, SAMPLES].into_iter().all(inside) || all(&is_hex) && is_facts(fd, names)
}

/// Is one of these folders the cache of a data set?
fn is_facts(fd: &OwnedFd, names: &[(OsString, FileType)]) -> bool {
    names.iter().all(|(name, _)| {
        let Some(below) = name.to_str().and_then(|name| folder(fd, name)) else { return false };
        members(&below).is_some_and(|members| {
            let ours = |name: &OsString| name == "root.txt" || name.as_bytes().ends_with(b".facts");
            members.iter().any(|name| name == "root.txt") && members.iter().all(ours)
        })
    })
}

/// Is this how caches and samples are called: 32 hexadecimal digits, and maybe `.json`?
fn is_hex(name: &OsStr) -> bool {
    let name = name.as_bytes();
    let name = name.strip_suffix(b".json").unwrap_or(name);
    name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit)
}

/// The sheets that an index names. Where it names none yet, all that are called like sheets.
fn sheets(fd: &OwnedFd, names: &[(OsString, FileType)]) -> Option<HashSet<OsString>> {
    let text = open(fd, SHEETS).and_then(|file| head(file, LIMIT))?;
    let index = table::parse(std::path::Path::new(SHEETS), text, Header::Names).ok()?;
    if index.columns != SHEETS_COLUMNS {
        return None;
    }
    if index.is_empty() {
        let like = |name: &OsStr| [&b".jpg"[..], b".png"].iter().any(|end| name.as_bytes().ends_with(end));
        return Some(names.iter().map(|(name, _)| name.clone()).filter(|name| like(name)).collect());
    }
    Some((0..index.len()).map(|row| OsString::from(index.cell(row, 0))).collect())
}

/// A folder in a folder, no link.
fn folder(fd: &OwnedFd, name: &str) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(fd, name, flags, Mode::empty()).ok()
}

/// A regular file in a folder, no link; nothing that could wait is opened.
fn open(fd: &OwnedFd, name: &str) -> Option<File> {
    let stat = rustix::fs::statat(fd.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if kind_of(&stat) != FileType::RegularFile {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(fd, name, flags, Mode::empty()).ok().map(File::from)
}

/// A file's bytes; none for one of more than `limit`.
fn head(file: File, limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= limit).then_some(bytes)
}

fn members(fd: &OwnedFd) -> Option<Vec<OsString>> {
    use std::os::unix::ffi::OsStringExt;
    let mut names = Vec::new();
    for member in Dir::read_from(fd).ok()? {
        let name = member.ok()?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Some(names)
}

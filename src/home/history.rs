//! What a manifest was before each change, so that `prep undo` can take the last one back.
//!
//! In a workspace the history lies in prep's corner of it. A plain folder or table gets nothing beside its manifest (a
//! folder there would become a class), so its history lies below the user's state folder, by the manifest's path.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::manifest::Sidecar;
use crate::names::shown;
use crate::out::{self, Claim};

/// Changes that can be taken back.
const KEPT: usize = 20;
const RECORD: &str = "change.json";
const TABLE: &str = "manifest.csv";
const SIDECAR: &str = "manifest.prep.json";

/// One change of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The command that made it.
    pub command: String,
    /// The manifest.
    pub manifest: PathBuf,
    /// Was there a manifest before?
    pub existed: bool,
    /// The hash of the manifest that it wrote, as in the sidecar.
    pub wrote: String,
    /// When, in seconds since 1970; earlier versions did not say.
    #[serde(default)]
    pub time: Option<u64>,
    #[serde(skip)]
    folder: PathBuf,
}

/// Keeps the manifest at `manifest` as it is now, before `command` puts one of hash `wrote` in its place, with the
/// sidecar `text`. False where there is no place for it. Where both are there already, nothing changes and there is
/// nothing to take back.
///
/// # Errors
/// [`Error::Write`].
pub(super) fn keep(manifest: &Path, command: &str, wrote: &str, text: &str) -> Result<bool> {
    let Some(folder) = place(manifest) else { return Ok(false) };
    let is_same = || fs::read(manifest).is_ok_and(|bytes| blake3::hash(&bytes).to_hex().as_str() == wrote);
    if fs::read(Sidecar::path_of(manifest)).is_ok_and(|before| before == text.as_bytes()) && is_same() {
        return Ok(true);
    }
    let doing = "keeping the manifest as it was";
    let changes = changes(manifest);
    let next = changes.last().and_then(|c| number(&c.folder)).unwrap_or(0) + 1;
    for old in changes.iter().take((changes.len() + 1).saturating_sub(KEPT)) {
        forget(doing, &old.folder)?;
    }
    let here = folder.join(format!("{next:06}"));
    let existed = manifest.is_file();
    if existed {
        out::keep_copy(doing, manifest, &here.join(TABLE))?;
        let sidecar = Sidecar::path_of(manifest);
        if sidecar.is_file() {
            out::keep_copy(doing, &sidecar, &here.join(SIDECAR))?;
        }
    }
    let change = Change {
        command: command.to_owned(),
        manifest: real(manifest),
        existed,
        wrote: wrote.to_owned(),
        time: seconds(SystemTime::now()),
        folder: PathBuf::new(),
    };
    let text = serde_json::to_string_pretty(&change).map_err(|e| Error::Internal(e.to_string()))?;
    // Last: without it the entry does not count.
    out::write_whole(doing, &here.join(RECORD), text.as_bytes(), false)?;
    Ok(true)
}

/// The changes of the manifest at `manifest`, oldest first.
pub fn changes(manifest: &Path) -> Vec<Change> {
    let entries = place(manifest).and_then(|folder| fs::read_dir(folder).ok());
    let mut folders: Vec<PathBuf> =
        entries.into_iter().flatten().flatten().map(|e| e.path()).filter(|p| number(p).is_some()).collect();
    folders.sort();
    let read = |folder: PathBuf| {
        let text = fs::read(folder.join(RECORD)).ok()?;
        let change: Change = serde_json::from_slice(&text).ok()?;
        let written = || fs::metadata(folder.join(RECORD)).ok()?.modified().ok();
        let time = change.time.or_else(|| seconds(written()?));
        Some(Change { time, folder, ..change })
    };
    folders.into_iter().filter_map(read).collect()
}

/// Takes the last change of the manifest at `manifest` back, and gives it.
///
/// # Errors
/// [`Error::Usage`] where there is none, or where the manifest is no longer as that change wrote it (unless `force`).
pub fn undo(manifest: &Path, force: bool) -> Result<Change> {
    let doing = "taking the last change back";
    let _lock = out::lock_folder(super::carry::folder_of(manifest));
    let change = last(manifest, force)?;
    let _claim = manifest
        .parent()
        .filter(|folder| folder.join(Claim::CORNER).is_dir())
        .map(Claim::take)
        .transpose()?;
    let sidecar = Sidecar::path_of(manifest);
    let before = change.folder.join(SIDECAR);
    if change.existed {
        out::copy_whole(doing, &change.folder.join(TABLE), manifest)?;
    } else {
        out::remove(doing, manifest)?;
    }
    if change.existed && before.is_file() {
        out::copy_whole(doing, &before, &sidecar)?;
    } else {
        out::remove(doing, &sidecar)?;
    }
    forget(doing, &change.folder)?;
    Ok(change)
}

/// The change that [`undo`] would take back.
///
/// # Errors
/// As [`undo`].
pub fn last(manifest: &Path, force: bool) -> Result<Change> {
    let Some(change) = changes(manifest).pop() else {
        return Err(Error::Usage(format!(
            "no change of {} is known that could be taken back",
            shown(manifest)
        )));
    };
    let now = fs::read(manifest).map(|bytes| blake3::hash(&bytes).to_hex().to_string()).unwrap_or_default();
    if now != change.wrote && !force {
        return Err(Error::Usage(format!(
            "{} is not as `prep {}` wrote it: it was changed since, by hand or by prep shrink; --force puts back what was \
             there before that command all the same",
            shown(manifest),
            shown(&change.command)
        )));
    }
    Ok(change)
}

fn forget(doing: &'static str, folder: &Path) -> Result<()> {
    for name in [RECORD, TABLE, SIDECAR] {
        out::remove(doing, &folder.join(name))?;
    }
    out::remove_folder(folder);
    Ok(())
}

fn seconds(time: SystemTime) -> Option<u64> {
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

fn number(folder: &Path) -> Option<u64> {
    folder.file_name()?.to_str()?.parse().ok()
}

/// Where the history of a manifest lies.
fn place(manifest: &Path) -> Option<PathBuf> {
    let folder = manifest.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = manifest.file_name()?;
    let key = |bytes: &[u8]| blake3::hash(bytes).to_hex()[..32].to_owned();
    let corner = folder.join(Claim::CORNER);
    if corner.is_dir() {
        return Some(corner.join("history").join(key(name.as_encoded_bytes())));
    }
    let told = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = told("XDG_STATE_HOME").or_else(|| Some(told("HOME")?.join(".local/state")))?;
    Some(state.join("prep-history").join(key(real(manifest).as_os_str().as_encoded_bytes())))
}

/// The real path of a manifest, whether it is there or not.
fn real(manifest: &Path) -> PathBuf {
    let folder = manifest.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    manifest.file_name().map_or(folder.clone(), |name| folder.join(name))
}

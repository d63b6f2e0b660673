//! Where caches lie: one folder a data set, below the user's cache folder.

use std::fs;
use std::path::{Path, PathBuf};

use super::cache::{self, Info};
use crate::error::{Error, Result};
use crate::out;
use crate::source::FACTS;

/// The folder of all caches: `own`, else `$XDG_CACHE_HOME`, `~/Library/Caches` on a Mac, `~/.cache`; and `prep-facts`
/// in it. None where the user has no home.
pub fn home(own: Option<&Path>) -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let users = || {
        let below = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
        folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(below)))
    };
    Some(own.map(Path::to_owned).or_else(users)?.join(FACTS))
}

/// The folder of the cache of the data set at `root`.
pub(super) fn folder_of(home: &Path, root: &Path) -> PathBuf {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    home.join(&blake3::hash(real.as_os_str().as_encoded_bytes()).to_hex()[..32])
}

/// The caches below `home`, sorted by the data set's folder.
///
/// # Errors
/// [`Error::Read`] where `home` is there and cannot be listed.
pub fn info(home: &Path) -> Result<Vec<Info>> {
    let mut all: Vec<Info> = folders(home)?.iter().map(|folder| cache::info(folder)).collect();
    all.sort_by(|a, b| a.root.cmp(&b.root));
    Ok(all)
}

/// Has an earlier run left anything of the data set at `root`?
pub fn knows(home: &Path, root: &Path) -> bool {
    folder_of(home, root).is_dir()
}

/// Removes these caches below `home`, which [`info`] told of. Files that prep did not make stay.
///
/// # Errors
/// [`Error::Write`].
pub fn clear(home: &Path, caches: &[Info]) -> Result<()> {
    let doing = "clearing the cache";
    for cache in caches {
        cache::files(&cache.folder).iter().try_for_each(|file| out::remove(doing, file))?;
        out::remove_folder(&cache.folder);
    }
    out::remove_folder(home);
    Ok(())
}

fn folders(home: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(home) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::read("looking into the cache", home, e)),
    };
    let is_ours = |name: &str| name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let mut folders: Vec<PathBuf> = entries
        .flatten()
        .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()) && e.file_name().to_str().is_some_and(is_ours))
        .map(|e| e.path())
        .collect();
    folders.sort();
    Ok(folders)
}

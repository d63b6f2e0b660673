//! A file under a second name: as a hard link, a symbolic link or a copy.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::{Atomic, place};
use crate::error::{Error, Result};

/// How a file gets its second name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// The same file: no space, and changing one changes both.
    Hard,
    /// A relative symbolic link: no space, and it needs the source to stay where it is.
    Symbolic,
    /// A copy, with the time of its source.
    Copy,
}

/// What a symbolic link at `target` says to lead to `source`.
pub fn symbolic(source: &Path, target: &Path) -> PathBuf {
    place::relative(target.parent().unwrap_or(Path::new(".")), source)
}

/// Gives `source` the name `target` too. Folders above it are made; a target that is there is replaced.
///
/// # Errors
/// [`Error::Write`], or [`Error::Outputs`] with advice where the file system has no such links.
pub fn link(how: Link, source: &Path, target: &Path) -> Result<()> {
    let doing = "linking an image";
    let failed = |e: io::Error| Error::write(doing, target, e);
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    if how == Link::Copy {
        let mut from = File::open(source).map_err(|e| Error::read("copying an image", source, e))?;
        let mut file = Atomic::create("copying an image", target)?;
        io::copy(&mut from, &mut file).map_err(failed)?;
        if let Ok(time) = from.metadata().and_then(|meta| meta.modified()) {
            file.set_modified(time)?;
        }
        return file.commit(false);
    }
    super::remove(doing, target)?;
    let outcome = match how {
        // The file, not the link that names it: a relative one would lead nowhere from there.
        Link::Hard => source.canonicalize().and_then(|real| fs::hard_link(real, target)),
        _ => std::os::unix::fs::symlink(symbolic(source, target), target),
    };
    outcome.map_err(|e| match e.kind() {
        io::ErrorKind::CrossesDevices
        | io::ErrorKind::Unsupported
        | io::ErrorKind::TooManyLinks
        | io::ErrorKind::PermissionDenied => {
            let reason = crate::error::io_reason(&e);
            Error::Outputs(format!(
                "{}: no such link can be made here ({reason}); try --link copy or --link sym",
                crate::names::shown(target)
            ))
        }
        _ => failed(e),
    })
}

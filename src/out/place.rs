//! Where an output folder may be: never inside, equal to or above the input, whatever links are on the way.

use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};
use crate::names::shown;

/// The folder beside `input` that a command writes to by default: `photos` with suffix `-512` gives `photos-512`. For a
/// table or an image it is the folder in which that lies. The input's real name is used, so that `.` works.
///
/// # Errors
/// [`Error::Read`] where `input` does not exist; [`Error::Outputs`] for the root of the file system, which has no beside.
pub fn beside(input: &Path, suffix: &str) -> Result<PathBuf> {
    let real = input.canonicalize().map_err(|e| Error::read("looking at the input", input, e))?;
    let folder = if real.is_dir() { real } else { real.parent().map(Path::to_owned).unwrap_or_default() };
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(Error::Outputs(
            "the input is the root of the file system: say with -o where to write".into(),
        ));
    };
    let mut beside = name.to_owned();
    beside.push(suffix);
    Ok(parent.join(beside))
}

/// Refuses an output folder that is inside, equal to or above the input folder. Compares real paths, so links do not
/// hide it.
///
/// # Errors
/// [`Error::Outputs`] with what to do instead.
pub fn check_apart(input: &Path, output: &Path) -> Result<()> {
    let input_real = input.canonicalize().map_err(|e| Error::read("looking at the input", input, e))?;
    let output_real = real_of_planned(output);
    let trouble = if output_real == input_real {
        "is the input itself"
    } else if output_real.starts_with(&input_real) {
        "is inside the input"
    } else if input_real.starts_with(&output_real) {
        "is a folder above the input"
    } else {
        return Ok(());
    };
    Err(Error::Outputs(format!(
        "the output folder {} {trouble} ({}); prep never writes among the sources: choose a folder beside it with -o",
        shown(output),
        shown(input),
    )))
}

/// Refuses an output folder in whose place, or above whose place, lies something else: a file, a device, a link to nothing.
///
/// # Errors
/// [`Error::Outputs`] naming it.
pub fn check_folder(folder: &Path) -> Result<()> {
    let there = folder.ancestors().filter(|at| !at.as_os_str().is_empty());
    for at in there {
        let Ok(meta) = at.symlink_metadata() else { continue };
        let what = match (meta.file_type().is_symlink(), at.metadata()) {
            (_, Ok(meta)) if meta.is_dir() => return Ok(()),
            (true, Err(_)) => "a symbolic link that leads nowhere",
            (_, Ok(meta)) if meta.is_file() => "a file",
            _ => "no folder",
        };
        let below = if at == folder { "" } else { ", so nothing can be made below it" };
        return Err(Error::Outputs(format!(
            "the output folder {}: {} is {what}{below}; choose another with -o",
            shown(folder),
            shown(at)
        )));
    }
    Ok(())
}

/// Refuses a place inside the input folder for what `option` names.
///
/// # Errors
/// [`Error::Usage`].
pub fn check_outside(input: &Path, place: &Path, option: &str) -> Result<()> {
    let inside = input.is_dir() && real_of_planned(place).starts_with(real_of_planned(input));
    if inside {
        let place = shown(place);
        return Err(Error::Usage(format!(
            "{option} {place} lies inside the data set: name a place outside of it"
        )));
    }
    Ok(())
}

/// Refuses a file that could not be written: its folder, or the nearest one above that is there, does not allow it.
/// Nothing is made.
///
/// # Errors
/// [`Error::Write`].
pub fn check_writable(doing: &'static str, file: &Path) -> Result<()> {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let Some(folder) = absolute.ancestors().skip(1).find(|folder| folder.exists()) else { return Ok(()) };
    let allowed = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
    allowed.map_err(|errno| Error::write(doing, file, errno.into()))
}

/// The real path of something that may not exist yet: its nearest existing folder is resolved, the rest is kept.
pub fn real_of_planned(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut rest = Vec::new();
    let mut at = absolute.as_path();
    loop {
        if let Ok(real) = at.canonicalize() {
            return rest.iter().rev().fold(real, |p, name| p.join(name));
        }
        match (at.parent(), at.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name.to_owned());
                at = parent;
            }
            _ => return absolute,
        }
    }
}

/// The place of `below` in `folder`, for writing and for removing; nothing that could leave the folder is accepted.
///
/// # Errors
/// [`Error::Internal`] when `below` is absolute or has `..` in it, which no plan of ours has.
pub fn inside(folder: &Path, below: &Path) -> Result<PathBuf> {
    let plain = below.components().all(|c| matches!(c, Component::Normal(_)));
    if !plain || below.as_os_str().is_empty() {
        return Err(Error::Internal(format!("{} is no path below {}", shown(below), shown(folder))));
    }
    Ok(folder.join(below))
}

/// Refuses links where outputs will be written: through one that leads to the sources a copy would overwrite them.
/// `below` are the files that will be written in `folder`.
///
/// # Errors
/// [`Error::Outputs`] naming the link.
pub fn check_no_links<'a>(folder: &Path, below: impl Iterator<Item = &'a Path>) -> Result<()> {
    let mut seen: std::collections::HashSet<&Path> = std::collections::HashSet::new();
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_symlink());
    let found = is_link(folder).then(|| folder.to_owned()).or_else(|| {
        below
            .flat_map(|file| file.ancestors().skip(1).take_while(|a| !a.as_os_str().is_empty()))
            .filter(|parent| seen.insert(parent))
            .map(|parent| folder.join(parent))
            .find(|parent| is_link(parent))
    });
    match found {
        None => Ok(()),
        Some(link) => Err(Error::Outputs(format!(
            "{} is a symbolic link; prep does not write through links: remove it, or choose another folder with -o",
            shown(&link)
        ))),
    }
}

/// `to` as seen from the folder `from`, for records that must not carry the user's home: `../photos`. The absolute
/// path where there is no way between them.
pub fn relative(from: &Path, to: &Path) -> PathBuf {
    let (from, to) = (real_of_planned(from), real_of_planned(to));
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    if shared == 0 {
        return to;
    }
    let up = from.components().count() - shared;
    let mut path: PathBuf = std::iter::repeat_n("..", up).collect();
    path.extend(to.components().skip(shared));
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_never_among_the_sources() {
        let dir = tempfile::tempdir().unwrap();
        let photos = dir.path().join("photos");
        std::fs::create_dir(&photos).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&photos, &link).unwrap();
        for bad in [
            photos.clone(),
            photos.join("out"),
            link.join("deep/out"),
            dir.path().to_owned(),
            photos.join("../photos/x"),
        ] {
            assert!(check_apart(&photos, &bad).is_err(), "{}", bad.display());
        }
        for good in [dir.path().join("photos-512"), dir.path().join("other/out")] {
            check_apart(&photos, &good).unwrap();
        }
        assert_eq!(beside(&photos, "-512").unwrap(), dir.path().canonicalize().unwrap().join("photos-512"));
        assert_eq!(relative(&dir.path().join("photos-512"), &photos), Path::new("../photos"));
    }
}

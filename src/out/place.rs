//! Where an output folder may be: never inside, equal to or above the input, whatever links are on the way.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::names::shown;

/// The folder beside `input` that a command writes to by default: `photos` with suffix `-512` gives `photos-512`.
/// The input's real name is used, so that `.` works.
///
/// # Errors
/// [`Error::Read`] where `input` does not exist; [`Error::Outputs`] for the root of the file system, which has no beside.
pub fn beside(input: &Path, suffix: &str) -> Result<PathBuf> {
    let real = input.canonicalize().map_err(|e| Error::read("looking at the input", input, e))?;
    let folder = if real.is_dir() { real } else { real.with_extension("") };
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

/// The real path of something that may not exist yet: its nearest existing folder is resolved, the rest is kept.
fn real_of_planned(path: &Path) -> PathBuf {
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

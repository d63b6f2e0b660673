//! Output paths: one for each entry, all different even on a file system that folds case or Unicode forms, known
//! before the first byte is written, and the same whatever the order of the entries.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

/// The longest file name that common file systems take, in bytes.
const MAX_NAME: usize = 255;

/// Where an entry's output goes, below the folder of outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The relative path to write.
    pub path: PathBuf,
    /// The entry (its position) that would have had this path otherwise.
    pub twin: Option<usize>,
}

/// Plans the output path of each source path (relative, as on disk), replacing the last extension by what
/// `extension` says of it. Where two would collide — `a.jpg` with `a.png`, twins that differ in case or Unicode form,
/// a file with a folder — the one that comes first in byte order keeps its name and the others carry their old
/// extension (`a.png` becomes `a_png.jpg`), then a number.
///
/// Every planned path stays below the folder of outputs: a source that is absolute or climbs out keeps its name alone.
pub fn plan(sources: &[PathBuf], extension: impl Fn(usize) -> String) -> Vec<Planned> {
    let sources: Vec<PathBuf> = sources.iter().map(|source| below(source)).collect();
    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.sort_by(|a, b| sources[*a].as_os_str().cmp(sources[*b].as_os_str()));

    let mut taken: HashMap<String, usize> = HashMap::new();
    // Folders first: a file must not take the name of a folder that another file needs.
    let mut folders: HashMap<String, usize> = HashMap::new();
    for &i in &order {
        for folder in sources[i].ancestors().skip(1).filter(|p| !p.as_os_str().is_empty()) {
            if folders.insert(fold(folder), i).is_some() {
                break;
            }
        }
    }

    let mut plans: Vec<Option<Planned>> = vec![None; sources.len()];
    for &i in &order {
        let wanted = extension(i);
        let mut twin = None;
        let mut attempt = 0;
        let path = loop {
            let path = candidate(&sources[i], &wanted, attempt);
            let key = fold(&path);
            match taken.get(&key).or_else(|| folders.get(&key)) {
                None => {
                    taken.insert(key, i);
                    break path;
                }
                Some(other) => {
                    twin.get_or_insert(*other);
                    attempt += 1;
                }
            }
        };
        plans[i] = Some(Planned { path, twin });
    }
    plans.into_iter().flatten().collect()
}

/// The folder of copies of sources that lie outside the root.
const OUTSIDE: &str = "outside";

/// A relative path of plain names for a source; without NUL, which no file system takes.
fn below(source: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let plain = source.components().all(|c| matches!(c, Component::Normal(_)));
    let path = match source.file_name() {
        Some(_) if plain => source.to_owned(),
        Some(name) => Path::new(OUTSIDE).join(name),
        None => Path::new(OUTSIDE).join("nameless"),
    };
    let mut bytes = path.into_os_string().into_vec();
    bytes.iter_mut().filter(|b| **b == 0).for_each(|b| *b = b'_');
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// Attempt 0: `stem.ext`; 1: `stem_oldext.ext`; then `stem_oldext_2.ext` and so on. Names stay within 255 bytes.
fn candidate(source: &Path, extension: &str, attempt: usize) -> PathBuf {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let stem = source.file_stem().unwrap_or_default().as_bytes();
    let old = source.extension().map(|e| e.as_bytes().to_vec()).unwrap_or_default();
    let mut tail = Vec::new();
    if attempt >= 1 && !old.is_empty() {
        tail.push(b'_');
        tail.extend_from_slice(&old);
    }
    if attempt >= 2 || (attempt == 1 && old.is_empty()) {
        tail.extend_from_slice(format!("_{}", attempt.max(2)).as_bytes());
    }
    tail.push(b'.');
    tail.extend_from_slice(extension.as_bytes());

    let mut name = stem.to_vec();
    let room = MAX_NAME.saturating_sub(tail.len());
    if name.len() > room {
        // Cut at a character's border, so that a valid name stays valid.
        let mut at = room;
        while at > 0 && name[at] & 0xC0 == 0x80 {
            at -= 1;
        }
        name.truncate(at);
    }
    name.extend_from_slice(&tail);
    let name = PathBuf::from(std::ffi::OsString::from_vec(name));
    source.parent().map_or_else(|| name.clone(), |p| p.join(&name))
}

/// Two paths with one key may be one file on some file system (macOS, Windows, case-folding ext4).
fn fold(path: &Path) -> String {
    let parts: Vec<String> = path
        .components()
        .filter_map(|c| match c {
            Component::Normal(name) => {
                let text = crate::names::encode(Path::new(name));
                // Lower, compose, lower again: capital letters with marks compose differently from small ones.
                Some(text.nfc().flat_map(char::to_lowercase).nfc().collect())
            }
            _ => None,
        })
        .collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(names: &[&str]) -> Vec<String> {
        let sources: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
        plan(&sources, |_| "jpg".into()).into_iter().map(|p| p.path.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn only_the_last_extension_is_replaced() {
        assert_eq!(planned(&["x/a.b.jpg.c.png", "x/none"]), ["x/a.b.jpg.c.jpg", "x/none.jpg"]);
    }

    #[test]
    fn twins_get_names_of_their_own_in_any_order() {
        let names = ["a.jpg", "a.png", "A.jpg", "e\u{301}.jpg", "\u{e9}.jpg"];
        let forward = planned(&names);
        let mut reversed: Vec<&str> = names.to_vec();
        reversed.reverse();
        let mut backward = planned(&reversed);
        backward.reverse();
        assert_eq!(forward, backward);
        assert_eq!(forward[1], "a_png.jpg");
        let mut keys: Vec<String> = forward.iter().map(|p| fold(Path::new(p))).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), names.len(), "{forward:?}");
    }

    #[test]
    fn a_file_does_not_take_the_name_of_a_folder() {
        let plans = planned(&["a.png", "a.jpg/b.png"]);
        assert_eq!(plans[1], "a.jpg/b.jpg");
        assert_ne!(plans[0], "a.jpg");
    }

    #[test]
    fn no_planned_path_leaves_the_folder_of_outputs() {
        let plans = planned(&[
            "/etc/passwd.png",
            "../../x/a.png",
            "a/../../b.png",
            "/",
            "..",
            "nul\0.png",
            "ok/a.png",
        ]);
        assert_eq!(plans[6], "ok/a.jpg");
        for path in &plans {
            let inside = Path::new(path).components().all(|c| matches!(c, Component::Normal(_)));
            assert!(inside && !path.contains('\0'), "{plans:?}");
        }
    }

    #[test]
    fn long_names_stay_writable_and_apart() {
        let long = "é".repeat(126);
        let plans = planned(&[&format!("{long}.jp"), &format!("{long}.pn")]);
        assert!(plans.iter().all(|p| p.len() <= MAX_NAME), "{plans:?}");
        assert_ne!(plans[0], plans[1]);
    }
}

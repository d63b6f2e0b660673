//! The files below a root, and the many ways in which a table can mean one of them.

use std::cell::OnceCell;
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsStr;
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

use crate::fault::Fault;

use super::read::{fault_of, kind_of, not_regular, stat_path};
use super::walk::Found;

/// Extensions that are tried where nothing was walked.
const TRIED: [&str; 10] = ["jpg", "png", "jpeg", "JPG", "PNG", "JPEG", "tif", "tiff", "bmp", "webp"];

/// The disk as tables see it: what the walk found, and behind it the disk itself.
pub(super) struct Disk {
    root: PathBuf,
    /// Sorted by the bytes of the path; empty before the walk.
    files: Vec<Found>,
    /// Hash of the loose spelling of a path, and its place in `files`; built when first asked.
    loose: OnceCell<Vec<(u64, u32)>>,
    /// The same for names without folder and extension.
    names: OnceCell<Vec<(u64, u32)>>,
}

/// A file that exists.
#[derive(Debug, Clone)]
pub(super) struct Hit {
    /// Below the root; or, outside it, as it is opened.
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// Its place among the walked files; none for one that the walk left out.
    pub(super) place: Option<usize>,
    /// Found, but not usable: a FIFO, no permission.
    pub(super) fault: Option<Fault>,
}

/// What was found for a spelling that does not exist exactly.
pub(super) enum Alike {
    None,
    One(Hit),
    /// The first few of several.
    Several(Vec<PathBuf>),
}

impl Disk {
    /// The disk below `root` before a walk.
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), files: Vec::new(), loose: OnceCell::new(), names: OnceCell::new() }
    }

    /// The same with the files of a walk.
    pub(super) fn with_files(root: &Path, mut files: Vec<Found>) -> Self {
        files.sort_unstable_by(|a, b| bytes(&a.path).cmp(bytes(&b.path)));
        Self { files, ..Self::new(root) }
    }

    /// The walked files, sorted by the bytes of their paths.
    pub(super) fn into_files(self) -> Vec<Found> {
        self.files
    }

    pub(super) fn files(&self) -> &[Found] {
        &self.files
    }

    /// The file at exactly this path below the root.
    pub(super) fn exact(&self, path: &Path) -> Option<Hit> {
        if let Ok(place) = self.files.binary_search_by(|f| bytes(&f.path).cmp(bytes(path))) {
            return Some(self.hit(place));
        }
        if path.as_os_str().is_empty() || bytes(path).contains(&0) {
            return None;
        }
        let stat = stat_path(&self.root.join(path));
        let (size, fault) = match stat {
            Ok(stat) => match kind_of(&stat) {
                rustix::fs::FileType::RegularFile => (stat.st_size.max(0) as u64, None),
                // A folder is not what a row means.
                rustix::fs::FileType::Directory => return None,
                kind => (0, Some(not_regular(kind))),
            },
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::NAMETOOLONG) => {
                return None;
            }
            Err(errno) => (0, Some(fault_of(errno))),
        };
        Some(Hit { path: path.to_owned(), bytes: size, place: None, fault })
    }

    fn hit(&self, place: usize) -> Hit {
        let found = &self.files[place];
        Hit { path: found.path.clone(), bytes: found.bytes, place: Some(place), fault: found.fault.clone() }
    }

    /// The file of this path with an extension added.
    pub(super) fn with_extension(&self, path: &Path) -> Alike {
        let mut stem = path.as_os_str().to_owned();
        if stem.is_empty() || bytes(path).contains(&0) {
            return Alike::None;
        }
        stem.push(".");
        if self.files.is_empty() {
            let tried = TRIED.iter().find_map(|extension| {
                let mut name = stem.clone();
                name.push(extension);
                self.exact(Path::new(&name))
            });
            return tried.map_or(Alike::None, Alike::One);
        }
        // Sorted, so all that begin alike lie together.
        let from = self.files.partition_point(|f| bytes(&f.path) < stem.as_bytes());
        let alike = self.files[from..].iter().take_while(|f| bytes(&f.path).starts_with(stem.as_bytes()));
        let places = alike
            .enumerate()
            .filter(|(_, f)| !bytes(&f.path)[stem.len()..].iter().any(|b| matches!(b, b'/' | b'.')))
            .map(|(at, _)| from + at);
        self.alike(places)
    }

    /// The file whose path differs in case or Unicode form alone.
    pub(super) fn loosely(&self, path: &Path) -> Alike {
        let key = loose_key(path.as_os_str());
        let index = self.loose.get_or_init(|| self.index(|f| loose_key(f.path.as_os_str())));
        self.alike(places(index, &key).filter(|at| loose_key(self.files[*at].path.as_os_str()) == key))
    }

    /// The file of this name, in whatever folder; and, where there is none, the file of this name with an extension.
    /// Tells whether one was added.
    pub(super) fn by_name(&self, name: &OsStr) -> (Alike, bool) {
        let index = self.names.get_or_init(|| self.index(|f| stem(&f.path).to_owned()));
        let named = |at: &usize| self.files[*at].path.file_name() == Some(name);
        match self.alike(places(index, stem(Path::new(name))).filter(named)) {
            Alike::None => {
                let stems = |at: &usize| stem(&self.files[*at].path) == name.as_bytes();
                (self.alike(places(index, name.as_bytes()).filter(stems)), true)
            }
            alike => (alike, false),
        }
    }

    fn index(&self, key: impl Fn(&Found) -> Vec<u8>) -> Vec<(u64, u32)> {
        let mut index: Vec<(u64, u32)> =
            self.files.iter().zip(0_u32..).map(|(f, at)| (hash(&key(f)), at)).collect();
        index.sort_unstable();
        index
    }

    fn alike(&self, places: impl Iterator<Item = usize>) -> Alike {
        let mut places = places.peekable();
        match (places.next(), places.peek()) {
            (None, _) => Alike::None,
            (Some(only), None) => Alike::One(self.hit(only)),
            (Some(first), Some(_)) => Alike::Several(
                std::iter::once(first).chain(places.take(3)).map(|at| self.files[at].path.clone()).collect(),
            ),
        }
    }
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn stem(path: &Path) -> &[u8] {
    path.file_stem().unwrap_or_default().as_bytes()
}

/// Two paths with one key differ in case or Unicode form alone.
fn loose_key(path: &OsStr) -> Vec<u8> {
    match path.to_str() {
        Some(text) => text.nfc().flat_map(char::to_lowercase).collect::<String>().into_bytes(),
        None => path.as_bytes().to_ascii_lowercase(),
    }
}

/// Not for anything that is written: the hash may change with the standard library.
fn hash(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

fn places<'a>(index: &'a [(u64, u32)], key: &[u8]) -> impl Iterator<Item = usize> + 'a {
    let wanted = hash(key);
    let from = index.partition_point(|(h, _)| *h < wanted);
    index[from..].iter().take_while(move |(h, _)| *h == wanted).map(|(_, at)| *at as usize)
}

/// `path` without `.`, `..` and doubled `/`; none where it leaves what it is relative to, or is absolute.
pub(super) fn normal(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            Component::ParentDir if out.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

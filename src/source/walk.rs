//! The walk below a root: every file once, in one order whatever the disk's, links followed as torchvision's
//! `ImageFolder` follows them, loops found, nothing opened but folders.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use ignore::gitignore::Gitignore;
use rustix::fs::{AtFlags, Dir, FileType, OFlags};
use rustix::io::Errno;

use crate::decode::{Format, signature};
use crate::error::{Error, Result};
use crate::fault::{Cause, Fault};
use crate::names;

use super::filter::{Filter, Left, ignore_rules, sidecar_kind};
use super::made::made;
use super::read::{fault_of, kind_of, not_regular, open_path};
use super::{Finding, Ignored, Trouble};

/// The name of the ignore file; `.gitignore` is not asked, since training repositories ignore their images.
const IGNORE_FILE: &str = ".prepignore";

/// The largest ignore file that is read, in bytes.
const IGNORE_LIMIT: u64 = 1 << 20;

/// How often one folder may be entered through links: nobody needs more, and folders full of links to each other
/// would have more paths than stars.
const ENTRIES_BY_LINK: u32 = 64;

/// A file, or what else ends as a row.
pub(super) struct Found {
    /// Below the root, not encoded.
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) fault: Option<Fault>,
}

/// What a walk met.
#[derive(Default)]
pub(super) struct Walked {
    /// In no promised order.
    pub(super) files: Vec<Found>,
    /// Files that operating systems and tools leave behind: rows of a folder, but of no class.
    pub(super) junk: Vec<Found>,
    /// The folders of the first two levels below the start, in which classes are looked for.
    pub(super) folders: Vec<PathBuf>,
    pub(super) ignored: Ignored,
    pub(super) findings: Vec<Finding>,
}

/// A folder that waits for its turn.
struct Folder {
    path: PathBuf,
    depth: usize,
    by_link: bool,
}

struct Walk<'a> {
    root: &'a Path,
    filter: &'a Filter,
    out: Walked,
    waiting: Vec<Folder>,
    /// The depth of the folder where the walk starts.
    top: usize,
    /// Device and inode of the folders above the one at work, outermost first.
    above: Vec<(u64, u64)>,
    /// The ignore files that hold, each with the depth and the folder that it lies in.
    rules: Vec<(usize, PathBuf, Gitignore)>,
    entered: HashMap<(u64, u64), u32>,
}

/// Walks everything below `start`, a folder below `root` (empty: the root itself). Paths are relative to `root`, and
/// the ignore files between the two hold.
///
/// # Errors
/// Where `start` itself cannot be read. Trouble below it becomes rows and findings.
pub(super) fn walk(root: &Path, start: &Path, filter: &Filter) -> Result<Walked> {
    let mut walk = Walk {
        root,
        filter,
        out: Walked::default(),
        waiting: Vec::new(),
        top: start.components().count(),
        above: Vec::new(),
        rules: Vec::new(),
        entered: HashMap::new(),
    };
    let fail = |errno: Errno| Error::read("listing the images", root.join(start), errno.into());
    walk.lead_to(start).map_err(fail)?;
    while let Some(folder) = walk.waiting.pop() {
        if let Err(errno) = walk.folder(&folder) {
            if folder.depth == walk.top {
                return Err(fail(errno));
            }
            walk.trouble(folder.path, fault_of(errno));
        }
    }
    Ok(walk.out)
}

impl Walk<'_> {
    /// Passes through the folders above `start` without listing them.
    fn lead_to(&mut self, start: &Path) -> Result<(), Errno> {
        let mut path = PathBuf::new();
        for (depth, part) in start.components().enumerate() {
            let folder = Folder { path: path.clone(), depth, by_link: false };
            let fd = self.enter(&folder)?;
            self.ignore_file(&fd, &folder);
            path.push(part);
        }
        self.waiting.push(Folder { path, depth: self.top, by_link: false });
        Ok(())
    }

    /// Opens a folder and puts it on the way.
    fn enter(&mut self, folder: &Folder) -> Result<OwnedFd, Errno> {
        let place = if folder.depth == 0 { self.root.to_owned() } else { self.root.join(&folder.path) };
        let fd = open_path(&place, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let stat = rustix::fs::fstat(&fd)?;
        self.above.push((stat.st_dev, stat.st_ino));
        Ok(fd)
    }

    fn folder(&mut self, folder: &Folder) -> Result<(), Errno> {
        self.above.truncate(folder.depth);
        self.rules.retain(|(depth, ..)| *depth < folder.depth);
        let fd = self.enter(folder)?;
        if folder.by_link && !self.may_go_on(&folder.path) {
            return Ok(());
        }
        self.ignore_file(&fd, folder);
        let mut names = names_in(&fd)?;
        if folder.depth > self.top
            && let Some(made) = made(&fd, &names)
        {
            self.out.ignored.made.push(names::encode(&folder.path));
            names.retain(|(name, _)| !made.has(name));
            let counts = |(name, kind): &(OsString, FileType)| {
                *kind == FileType::Directory || self.filter.leaves_file(&folder.path.join(name)).is_none()
            };
            if !names.iter().any(counts) {
                self.out.folders.retain(|path| *path != folder.path);
                return Ok(());
            }
        }
        for (name, kind) in names {
            let path = folder.path.join(&name);
            self.member(&fd, &name, kind, path, folder.depth);
        }
        Ok(())
    }

    /// Asked of the last folder on the way, which was entered through a link.
    fn may_go_on(&mut self, path: &Path) -> bool {
        let Some((id, above)) = self.above.split_last() else { return true };
        let why = if above.contains(id) {
            "a link to a folder that it lies in"
        } else {
            let times = self.entered.entry(*id).or_default();
            *times += 1;
            if *times <= ENTRIES_BY_LINK {
                return true;
            }
            "a link to a folder that was already entered through 64 links"
        };
        self.trouble(path.to_owned(), Fault::new(Cause::LinkLoop, why));
        false
    }

    /// One name of a folder: a file becomes a row, a folder waits.
    fn member(&mut self, fd: &OwnedFd, name: &OsStr, kind: FileType, path: PathBuf, depth: usize) {
        let stat = |flags| rustix::fs::statat(fd, name, flags);
        let (kind, link, size) = match kind {
            FileType::Directory => (kind, false, 0),
            _ => match stat(AtFlags::empty()) {
                Ok(now) => {
                    // Some file systems do not tell the kind with the name.
                    let link = kind == FileType::Symlink
                        || (kind == FileType::Unknown
                            && stat(AtFlags::SYMLINK_NOFOLLOW)
                                .is_ok_and(|s| kind_of(&s) == FileType::Symlink));
                    (kind_of(&now), link, now.st_size.max(0) as u64)
                }
                Err(errno) => return self.unreadable(name, kind, path, errno),
            },
        };
        if kind == FileType::Directory {
            if let Some(left) = self.filter.leaves_folder(&path) {
                self.leave(left, name);
            } else if self.ignores(&path, true) {
                self.out.ignored.by_ignore_file += 1;
            } else {
                if depth < self.top + 2 {
                    self.out.folders.push(path.clone());
                }
                self.waiting.push(Folder { path, depth: depth + 1, by_link: link });
            }
            return;
        }
        if let Some(left) = self.filter.leaves_file(&path).filter(|left| !self.lies(*left, fd, name, kind)) {
            self.leave(left, name);
            if left == Left::Junk {
                let fault = Some(Fault::new(Cause::Junk, "left behind by an operating system or a tool"));
                self.out.junk.push(Found { path, bytes: size, fault });
            }
        } else if self.ignores(&path, false) {
            self.out.ignored.by_ignore_file += 1;
        } else if kind == FileType::RegularFile {
            self.out.files.push(Found { path, bytes: size, fault: None });
        } else {
            self.trouble(path, not_regular(kind));
        }
    }

    /// Is this a picture under the name of something else? Only what is called a sidecar is looked into.
    fn lies(&self, left: Left, fd: &OwnedFd, name: &OsStr, kind: FileType) -> bool {
        use std::io::Read;
        if left != Left::Sidecar || kind != FileType::RegularFile {
            return false;
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(fd, name, flags, rustix::fs::Mode::empty()) else { return false };
        let mut head = [0; 64];
        let Ok(n) = std::fs::File::from(file).read(&mut head) else { return false };
        // The others have signatures that a text may begin with.
        matches!(
            signature(&head[..n]),
            Some(Format::Jpeg | Format::Png | Format::Gif | Format::WebP | Format::Tiff)
        )
    }

    /// A name whose file cannot be asked: a link to nothing or to itself, or a folder without permission.
    fn unreadable(&mut self, name: &OsStr, kind: FileType, path: PathBuf, errno: Errno) {
        if let Some(left) = self.filter.leaves_file(&path) {
            return self.leave(left, name);
        }
        let fault = match errno {
            Errno::NOENT | Errno::NOTDIR if kind == FileType::Symlink => {
                Fault::new(Cause::DanglingLink, "a link to nothing")
            }
            errno => fault_of(errno),
        };
        self.trouble(path, fault);
    }

    /// A row that is no picture for a reason of the file system, and the finding that tells it.
    fn trouble(&mut self, path: PathBuf, fault: Fault) {
        let kind = match fault.cause {
            Cause::LinkLoop => Trouble::LinkLoop,
            Cause::DanglingLink => Trouble::DanglingLink,
            Cause::NotRegular => Trouble::NotRegular,
            _ => Trouble::Unreadable,
        };
        self.out.findings.push(Finding::new(kind, names::encode(&path), None, fault.detail.clone()));
        self.out.files.push(Found { path, bytes: 0, fault: Some(fault) });
    }

    fn leave(&mut self, left: Left, name: &OsStr) {
        let ignored = &mut self.out.ignored;
        match left {
            Left::Junk => ignored.junk += 1,
            Left::Hidden => ignored.hidden += 1,
            Left::Glob => ignored.by_glob += 1,
            Left::Sidecar => *ignored.sidecars.entry(sidecar_kind(name).to_owned()).or_default() += 1,
        }
    }

    /// Does an ignore file above say no? The nearest one that has an opinion decides, as in git.
    fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        for (_, folder, rules) in self.rules.iter().rev() {
            let Ok(below) = path.strip_prefix(folder) else { continue };
            let verdict = rules.matched(below, is_folder);
            if !verdict.is_none() {
                return verdict.is_ignore();
            }
        }
        false
    }

    fn ignore_file(&mut self, fd: &OwnedFd, folder: &Folder) {
        let path = folder.path.join(IGNORE_FILE);
        let text = match read_ignore_file(fd) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(why) => {
                self.out.findings.push(Finding::new(Trouble::IgnoreFile, names::encode(&path), None, why));
                return;
            }
        };
        let (rules, wrong) = ignore_rules(&text);
        for (line, why) in wrong {
            self.out.findings.push(Finding::new(Trouble::IgnoreFile, names::encode(&path), Some(line), why));
        }
        self.rules.push((folder.depth, folder.path.clone(), rules));
    }
}

fn read_ignore_file(fd: &OwnedFd) -> Result<Option<String>, String> {
    use std::io::Read;
    let say = |errno: Errno| crate::error::io_reason(&errno.into());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(fd, IGNORE_FILE, flags, rustix::fs::Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(say(errno)),
    };
    let stat = rustix::fs::fstat(&file).map_err(say)?;
    if kind_of(&stat) != FileType::RegularFile || stat.st_size as u64 > IGNORE_LIMIT {
        return Err("no regular file of at most 1 MiB; its rules are not followed".into());
    }
    let mut text = Vec::new();
    let file = std::fs::File::from(file);
    file.take(IGNORE_LIMIT).read_to_end(&mut text).map_err(|e| crate::error::io_reason(&e))?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// The names in a folder with their kinds as far as the disk tells, in byte order. A folder of the last name comes
/// first off the stack, so files and folders are reported in one order whatever the disk's.
fn names_in(fd: &OwnedFd) -> Result<Vec<(OsString, FileType)>, Errno> {
    let mut names = Vec::new();
    for member in Dir::read_from(fd)? {
        let member = member?;
        let name = member.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push((OsString::from_vec(name.to_vec()), member.file_type()));
        }
    }
    names.sort_unstable_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    Ok(names)
}

impl Ignored {
    /// How many files and folders in all.
    pub fn total(&self) -> usize {
        let sidecars: usize = self.sidecars.values().sum();
        self.junk
            + self.made.len()
            + self.hidden
            + self.by_ignore_file
            + self.by_glob
            + self.other_split
            + sidecars
    }

    /// One sentence for the person, or none where nothing was left out.
    pub fn sentence(&self) -> Option<String> {
        let mut parts: Vec<String> = Vec::new();
        let mut part = |n: usize, what: &str| {
            if n > 0 {
                parts.push(format!("{n} {what}"));
            }
        };
        part(self.junk, "left by systems and tools (Thumbs.db and the like)");
        part(self.hidden, "hidden (-H takes such)");
        part(self.made.len(), &format!("made by prep ({})", some(&self.made)));
        part(self.by_ignore_file, "named in .prepignore");
        part(self.by_glob, "not wanted by --glob or --exclude");
        part(self.other_split, "of other splits");
        part(self.sidecars.values().sum(), &format!("of other kinds ({})", kinds(&self.sidecars)));
        (!parts.is_empty()).then(|| format!("left out: {}", parts.join(", ")))
    }
}

/// The first of some folders.
fn some(folders: &[String]) -> String {
    let mut sorted: Vec<&String> = folders.iter().collect();
    sorted.sort();
    let mut shown: Vec<String> =
        sorted.iter().take(3).map(|f| names::shown(f.as_str()).to_string()).collect();
    if sorted.len() > 3 {
        shown.push("…".into());
    }
    shown.join(", ")
}

/// "csv 2, txt 1", the most frequent first.
fn kinds(sidecars: &BTreeMap<String, usize>) -> String {
    let mut kinds: Vec<(&String, &usize)> = sidecars.iter().collect();
    kinds.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let shown: Vec<String> = kinds.iter().take(5).map(|(kind, n)| format!("{kind} {n}")).collect();
    shown.join(", ")
}

//! Reading one file whole: no memory maps (a file that shrinks would kill the process), nothing that can block, and a
//! fault instead of an error.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::entry::Entry;
use crate::fault::{Cause, Fault};

/// The longest path that the system takes in one piece, with room for the final NUL (Linux: `PATH_MAX` is 4096).
const PIECE: usize = 4000;

/// Reads the whole file of `entry` into `buf`, whose old content is dropped.
///
/// # Errors
/// The fault that the listing already knew; `permission`, `missing`, `not_regular`, `io_error`; `changed_during_read`
/// where size or time changed while reading, twice in a row.
pub fn read_file(entry: &Entry, buf: &mut Vec<u8>) -> Result<(), Fault> {
    buf.clear();
    if let Some(fault) = &entry.fault {
        return Err(fault.clone());
    }
    for _ in 0..2 {
        if read_once(&entry.file, buf)? {
            return Ok(());
        }
    }
    buf.clear();
    Err(Fault::new(
        Cause::Changed,
        "its size or time changed while it was read, twice; is something still writing it?",
    ))
}

/// One try; false where the file changed meanwhile.
fn read_once(path: &Path, buf: &mut Vec<u8>) -> Result<bool, Fault> {
    buf.clear();
    // Asked before opening: to open a device can already do something.
    let stat = stat_path(path).map_err(fault_of)?;
    regular(&stat)?;
    let fd = open_path(path, OFlags::RDONLY | OFlags::NONBLOCK).map_err(fault_of)?;
    let before = rustix::fs::fstat(&fd).map_err(fault_of)?;
    regular(&before)?;
    let size = usize::try_from(before.st_size).unwrap_or(usize::MAX);
    // One byte more, so that a file of the promised size ends without another allocation.
    if buf.try_reserve_exact(size.saturating_add(1)).is_err() {
        return Err(Fault::new(Cause::TooLargeForMemory, format!("a file of {size} bytes")));
    }
    let mut file = std::fs::File::from(fd);
    // Not past what it promised: a file that grows without end must not fill the memory.
    let got = Read::by_ref(&mut file)
        .take(before.st_size as u64 + 1)
        .read_to_end(buf)
        .map_err(|e| fault_of_io(&e))?;
    let after = rustix::fs::fstat(&file).map_err(fault_of)?;
    let same = (before.st_size, before.st_mtime, before.st_mtime_nsec)
        == (after.st_size, after.st_mtime, after.st_mtime_nsec);
    Ok(same && got == size)
}

fn regular(stat: &Stat) -> Result<(), Fault> {
    match kind_of(stat) {
        FileType::RegularFile => Ok(()),
        kind => Err(not_regular(kind)),
    }
}

/// The kind that a `stat` tells.
pub(super) fn kind_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The fault of something that is no file.
pub(super) fn not_regular(kind: FileType) -> Fault {
    let what = match kind {
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Directory => "a folder",
        _ => "no regular file",
    };
    Fault::new(Cause::NotRegular, what)
}

/// What an errno says about one file.
pub(super) fn fault_of(errno: Errno) -> Fault {
    match errno {
        Errno::NOENT | Errno::NOTDIR => Fault::new(Cause::Missing, "there is no such file"),
        Errno::ACCESS | Errno::PERM => Fault::new(Cause::Permission, "permission denied"),
        Errno::LOOP => Fault::new(Cause::LinkLoop, "symbolic links that lead into themselves"),
        Errno::NXIO | Errno::NODEV => Fault::new(Cause::NotRegular, "no regular file"),
        _ => Fault::new(Cause::Io, crate::error::io_reason(&errno.into())),
    }
}

fn fault_of_io(e: &io::Error) -> Fault {
    e.raw_os_error().map_or_else(
        || Fault::new(Cause::Io, crate::error::io_reason(e)),
        |raw| fault_of(Errno::from_raw_os_error(raw)),
    )
}

/// `stat` (links followed) of a path of any length.
pub(super) fn stat_path(path: &Path) -> Result<Stat, Errno> {
    match long(path)? {
        None => rustix::fs::stat(path),
        Some((folder, rest)) => rustix::fs::statat(&folder, &rest, rustix::fs::AtFlags::empty()),
    }
}

/// Opens a path of any length, links followed; the descriptor is not inherited.
pub(super) fn open_path(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    match long(path)? {
        None => rustix::fs::open(path, flags, Mode::empty()),
        Some((folder, rest)) => rustix::fs::openat(&folder, &rest, flags, Mode::empty()),
    }
}

/// For a path that is longer than the system takes: the open folder as far as needed, and the rest of the path.
fn long(path: &Path) -> Result<Option<(OwnedFd, PathBuf)>, Errno> {
    if path.as_os_str().as_bytes().len() < PIECE {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder: Option<OwnedFd> = None;
    let mut piece = PathBuf::new();
    for part in path.components() {
        let full = piece.as_os_str().len() + part.as_os_str().len() + 1 >= PIECE;
        if full && !piece.as_os_str().is_empty() {
            folder = Some(match &folder {
                None => rustix::fs::open(&piece, flags, Mode::empty())?,
                Some(at) => rustix::fs::openat(at, &piece, flags, Mode::empty())?,
            });
            piece.clear();
        }
        piece.push(part);
    }
    Ok(folder.map(|folder| (folder, piece)))
}

//! The one door for everything that prep writes: whole files or none, places planned before the first byte.
//!
//! [`Atomic`] writes beside the final name and renames; [`Claim`] keeps two runs on one output apart;
//! [`journal`] remembers what is finished, and claims it only after the disk has it; [`plan`] gives every entry an
//! output path that no other entry has.

pub mod journal;
pub mod link;
pub mod place;
pub mod plan;
mod spool;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

pub use spool::Spool;

/// What temporary names begin with. Leftovers of a killed run are swept by [`Claim::sweep`].
pub const TEMP_PREFIX: &str = ".prep-tmp-";

static NEXT_TEMP: AtomicU64 = AtomicU64::new(0);

/// A file that gets its final name when [`commit`](Self::commit) is called, and disappears when it is dropped before.
#[derive(Debug)]
pub struct Atomic {
    file: Option<BufWriter<File>>,
    temp: PathBuf,
    target: PathBuf,
    doing: &'static str,
}

impl Atomic {
    /// Begins a file that will be called `target`; folders above it are made. `doing` is for the error sentence.
    ///
    /// # Errors
    /// [`Error::Write`] where the folder or the file cannot be made.
    pub fn create(doing: &'static str, target: &Path) -> Result<Self> {
        let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|e| Error::write(doing, folder, e))?;
        let id = NEXT_TEMP.fetch_add(1, Ordering::Relaxed);
        let temp = folder.join(format!("{TEMP_PREFIX}{}-{id}", std::process::id()));
        let file = open_new(&temp).map_err(|e| Error::write(doing, &temp, e))?;
        Ok(Self { file: Some(BufWriter::new(file)), temp, target: target.to_owned(), doing })
    }

    /// Gives the file this time of its last change; call it after the last write.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn set_modified(&mut self, time: std::time::SystemTime) -> Result<()> {
        let Some(buffered) = &mut self.file else { return Ok(()) };
        let done = buffered.flush().and_then(|()| buffered.get_ref().set_modified(time));
        done.map_err(|e| Error::write(self.doing, &self.target, e))
    }

    /// Gives the file its final name, after its bytes are on disk when `durable`.
    ///
    /// # Errors
    /// [`Error::Write`]; the final name then has its old content or none.
    pub fn commit(mut self, durable: bool) -> Result<()> {
        let doing = self.doing;
        let target = self.target.clone();
        self.finish(durable).map_err(|e| Error::write(doing, target, e))
    }

    #[allow(clippy::disallowed_methods, reason = "this is the door")]
    fn finish(&mut self, durable: bool) -> io::Result<()> {
        let Some(buffered) = self.file.take() else { return Ok(()) };
        let file = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
        if durable {
            file.sync_all()?;
        }
        drop(file);
        fs::rename(&self.temp, &self.target)?;
        self.temp = PathBuf::new();
        if durable {
            sync_folder(&self.target)?;
        }
        Ok(())
    }
}

impl Write for Atomic {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(buf),
            None => Err(io::Error::other("the file is already committed")),
        }
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write_vectored(slices),
            None => Err(io::Error::other("the file is already committed")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Seek for Atomic {
    /// For formats whose head counts what follows it; a gap that is never written reads as zeros.
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        match &mut self.file {
            Some(file) => file.seek(to),
            None => Err(io::Error::other("the file is already committed")),
        }
    }
}

impl Drop for Atomic {
    fn drop(&mut self) {
        if !self.temp.as_os_str().is_empty() {
            // Nothing can be done about a failure here; the sweep of the next run removes what is left.
            let _ = fs::remove_file(&self.temp);
        }
    }
}

/// Writes `bytes` as `target`, whole or not at all, and waits for the disk when `durable`.
///
/// # Errors
/// [`Error::Write`].
pub fn write_whole(doing: &'static str, target: &Path, bytes: &[u8], durable: bool) -> Result<()> {
    let mut file = Atomic::create(doing, target)?;
    file.write_all(bytes).map_err(|e| Error::write(doing, target, e))?;
    file.commit(durable)
}

/// Adds one line to a file of lines, made where it is missing, and waits for the disk. The file is locked meanwhile; a
/// last line that a killed run left half is ended first, so that it spoils no other.
///
/// # Errors
/// [`Error::Write`].
#[allow(clippy::disallowed_methods, reason = "this is the door")]
pub fn append_line(doing: &'static str, path: &Path, line: &str) -> Result<()> {
    let attempt = || -> io::Result<()> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        file.lock()?;
        let mut bytes = format!("{line}\n").into_bytes();
        if file.metadata()?.len() > 0 {
            let mut last = [0];
            file.seek(io::SeekFrom::End(-1))?;
            io::Read::read_exact(&mut file, &mut last)?;
            if last != *b"\n" {
                bytes.insert(0, b'\n');
            }
        }
        file.write_all(&bytes)?;
        file.sync_all()
    };
    attempt().map_err(|e| Error::write(doing, path, e))
}

/// Waits until no other prep changes a manifest in `folder`, and keeps others waiting until the handle is dropped. None
/// where folders cannot be locked, as on some network disks.
pub fn lock_folder(folder: &Path) -> Option<File> {
    let handle = File::open(folder).ok()?;
    handle.lock().ok()?;
    Some(handle)
}

/// Removes a file that prep itself wrote. Not being there is success.
///
/// # Errors
/// [`Error::Write`].
pub fn remove(doing: &'static str, path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::write(doing, path, e)),
        _ => Ok(()),
    }
}

/// Copies the file `from` to `to`, whole or not at all.
///
/// # Errors
/// [`Error::Read`], [`Error::Write`].
pub fn copy_whole(doing: &'static str, from: &Path, to: &Path) -> Result<()> {
    let mut source = File::open(from).map_err(|e| Error::read(doing, from, e))?;
    let mut file = Atomic::create(doing, to)?;
    io::copy(&mut source, &mut file).map_err(|e| Error::write(doing, to, e))?;
    file.commit(true)
}

/// Keeps the file `from` as it is now under the name `to` too: as a second name where the file system can, since
/// prep replaces files and never changes them; else as a copy.
///
/// # Errors
/// [`Error::Read`], [`Error::Write`].
pub fn keep_copy(doing: &'static str, from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|e| Error::write(doing, folder, e))?;
    match fs::hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(_) => copy_whole(doing, from, to),
    }
}

/// Removes `folder` if it is empty; else it stays.
#[allow(clippy::disallowed_methods, reason = "this is the door")]
pub fn remove_folder(folder: &Path) {
    let _ = fs::remove_dir(folder);
}

/// Moves a file of prep's own out of the way. Not being there is success.
///
/// # Errors
/// [`Error::Write`].
#[allow(clippy::disallowed_methods, reason = "this is the door")]
pub fn set_aside(doing: &'static str, from: &Path, to: &Path) -> Result<()> {
    match fs::rename(from, to) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::write(doing, from, e)),
        _ => Ok(()),
    }
}

/// Waits until everything written so far to the file system of `folder` is on disk: one `syncfs` for a whole batch of
/// files costs a fortieth of an fsync for each and loses nothing.
///
/// # Errors
/// [`Error::Write`]; what was written since the last sync must then not be claimed.
pub fn sync_batch(folder: &Path) -> Result<()> {
    let doing = "waiting for the disk";
    let handle = File::open(folder).map_err(|e| Error::write(doing, folder, e))?;
    #[cfg(target_os = "linux")]
    return rustix::fs::syncfs(&handle).map_err(|e| Error::write(doing, folder, e.into()));
    #[cfg(not(target_os = "linux"))]
    return handle.sync_all().map_err(|e| Error::write(doing, folder, e));
}

#[allow(clippy::disallowed_methods, reason = "this is the door")]
fn open_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

fn sync_folder(target: &Path) -> io::Result<()> {
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// A link in the place of a file is not followed: the folder may come from somebody else.
const NO_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// An output folder that this run alone writes to, until it is dropped.
#[derive(Debug)]
pub struct Claim {
    folder: PathBuf,
    _lock: File,
}

impl Claim {
    /// prep's own corner of an output folder.
    pub const CORNER: &str = ".prep";

    /// Makes `folder` where it is missing and locks it against other runs. The lock belongs to the open file, so it
    /// ends with this process however it dies.
    ///
    /// # Errors
    /// [`Error::Locked`] when another run has it, [`Error::Write`] when it cannot be made.
    #[allow(clippy::disallowed_methods, reason = "this is the door")]
    pub fn take(folder: &Path) -> Result<Self> {
        let doing = "preparing the output folder";
        let corner = folder.join(Self::CORNER);
        fs::create_dir_all(&corner).map_err(|e| Error::write(doing, &corner, e))?;
        if corner.is_symlink() {
            let corner = crate::names::shown(&corner).to_string();
            return Err(Error::Outputs(format!("{corner} is a link: prep does not write through links")));
        }
        let path = corner.join("lock");
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(NO_LINK)
            .open(&path)
            .map_err(|e| Error::write(doing, &path, e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).unwrap_or_default();
                let holder = if holder.trim().is_empty() {
                    "unknown process".into()
                } else {
                    holder.trim().to_owned()
                };
                return Err(Error::Locked { path: folder.to_owned(), holder });
            }
            Err(fs::TryLockError::Error(e)) => return Err(Error::write(doing, &path, e)),
        }
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "process {}", std::process::id()))
            .map_err(|e| Error::write(doing, &path, e))?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes temporary files that a killed run left. Safe since nobody else writes here.
    pub fn sweep(&self) {
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    Ok(kind)
                        if kind.is_file() && entry.file_name().to_string_lossy().starts_with(TEMP_PREFIX) =>
                    {
                        let _ = fs::remove_file(entry.path());
                    }
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/a.txt");
        let mut file = Atomic::create("testing", &path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0, "the temporary file is gone");
        write_whole("testing", &path, b"whole", true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn a_second_run_is_kept_out_and_leftovers_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        let claim = Claim::take(dir.path()).unwrap();
        assert!(matches!(Claim::take(dir.path()), Err(Error::Locked { .. })));
        let left = dir.path().join("images").join(format!("{TEMP_PREFIX}1-1"));
        fs::create_dir_all(left.parent().unwrap()).unwrap();
        drop(open_new(&left).unwrap());
        claim.sweep();
        assert!(!left.exists());
        drop(claim);
        Claim::take(dir.path()).unwrap();
    }
}

//! What is finished, remembered so that a killed run continues where it was.
//!
//! A journal is a text file of lines, each with a checksum of its own; the first names what the run was (options,
//! version). A line is written only after the disk has the files that it claims ([`sync_batch`]),
//! so a claim is never false; a torn last line is dropped.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::sync_batch;
use crate::error::{Error, Result};

/// Claims waiting for one sync.
const BATCH: usize = 64;
const DOING: &str = "writing the journal";

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// The folder whose file system must be synced before a claim.
    outputs: PathBuf,
    waiting: Vec<String>,
}

impl Journal {
    /// Opens the journal at `path` for outputs below `outputs`. Gives the lines of an earlier run that had the same
    /// `heading`; a journal with another heading, or none, is begun anew and `None` is given with the old lines lost
    /// to the caller only after [`read_any`] was asked.
    ///
    /// # Errors
    /// [`Error::Read`] and [`Error::Write`].
    #[allow(clippy::disallowed_methods, reason = "part of the door")]
    pub fn open(path: &Path, outputs: &Path, heading: &str) -> Result<(Self, Vec<String>)> {
        let (old_heading, lines) = read_any(path)?;
        let keep = old_heading.as_deref() == Some(heading);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(super::NO_LINK)
            .open(path)
            .map_err(|e| Error::write(DOING, path, e))?;
        if keep {
            // What follows the last whole line is torn; go on right after it.
            let whole = whole_bytes(path)?;
            file.set_len(whole).map_err(|e| Error::write(DOING, path, e))?;
            io::Seek::seek(&mut file, io::SeekFrom::End(0)).map_err(|e| Error::write(DOING, path, e))?;
        } else {
            file.set_len(0).map_err(|e| Error::write(DOING, path, e))?;
            file.write_all(sealed(heading).as_bytes()).map_err(|e| Error::write(DOING, path, e))?;
        }
        let journal = Self { file, path: path.to_owned(), outputs: outputs.to_owned(), waiting: Vec::new() };
        Ok((journal, if keep { lines } else { Vec::new() }))
    }

    /// Claims `line` (no line breaks) with the next batch.
    ///
    /// # Errors
    /// [`Error::Write`] when the batch cannot be synced or written.
    pub fn claim(&mut self, line: String) -> Result<()> {
        debug_assert!(!line.contains('\n'));
        self.waiting.push(line);
        if self.waiting.len() >= BATCH { self.settle() } else { Ok(()) }
    }

    /// Syncs and writes what waits.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn settle(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        sync_batch(&self.outputs)?;
        let text: String = self.waiting.iter().map(|line| sealed(line)).collect();
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(|e| Error::write(DOING, &self.path, e))?;
        self.waiting.clear();
        Ok(())
    }
}

/// The heading and the whole lines of the journal at `path`; nothing where there is none.
///
/// # Errors
/// [`Error::Read`] when it is there but cannot be read.
pub fn read_any(path: &Path) -> Result<(Option<String>, Vec<String>)> {
    let text = read_bytes(path)?;
    let mut lines = whole_lines(&text).map(|(line, _)| line.to_owned());
    let heading = lines.next();
    Ok((heading, lines.collect()))
}

fn whole_bytes(path: &Path) -> Result<u64> {
    let text = read_bytes(path)?;
    Ok(whole_lines(&text).last().map_or(0, |(_, end)| end as u64))
}

fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    match fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(Error::read("reading the journal of an earlier run", path, e)),
    }
}

/// Each whole line without its seal, with the position after it. Ends at the first that is torn or altered.
fn whole_lines(bytes: &[u8]) -> impl Iterator<Item = (&str, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let end = at + bytes[at..].iter().position(|b| *b == b'\n')?;
        let line = std::str::from_utf8(&bytes[at..end]).ok()?;
        let (seal, content) = line.split_once(' ')?;
        (seal == seal_of(content)).then_some(())?;
        at = end + 1;
        Some((content, at))
    })
}

fn sealed(line: &str) -> String {
    format!("{} {line}\n", seal_of(line))
}

fn seal_of(line: &str) -> String {
    blake3::hash(line.as_bytes()).to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test tears a journal")]
    fn a_torn_or_altered_tail_is_dropped_and_the_rest_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (mut journal, old) = Journal::open(&path, dir.path(), "options 1").unwrap();
        assert!(old.is_empty());
        for i in 0..70 {
            journal.claim(format!("line {i}")).unwrap();
        }
        assert_eq!(read_any(&path).unwrap().1.len(), 64, "a batch is claimed together");
        journal.settle().unwrap();
        drop(journal);
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            let lines = whole_lines(&whole[..cut]).count();
            assert_eq!(lines, whole[..cut].iter().filter(|b| **b == b'\n').count());
        }
        let mut altered = whole.clone();
        let at = altered.len() / 2;
        altered[at] ^= 1;
        assert!(whole_lines(&altered).count() < 71);

        let mut torn = OpenOptions::new().append(true).open(&path).unwrap();
        torn.write_all(b"0123456789abcdef half a li").unwrap();
        let (mut journal, old) = Journal::open(&path, dir.path(), "options 1").unwrap();
        assert_eq!(old.len(), 70);
        journal.claim("after".into()).unwrap();
        journal.settle().unwrap();
        assert_eq!(read_any(&path).unwrap().1.last().map(String::as_str), Some("after"));
        let (_, old) = Journal::open(&path, dir.path(), "options 2").unwrap();
        assert!(old.is_empty(), "other options begin anew");
    }
}

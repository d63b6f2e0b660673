//! Sums over files: XXH3 of the whole, CRC-32 of a payload; and a file that is summed while it is written.

use std::fs::File;
use std::hash::Hasher as _;
use std::io::{self, Read, Write};
use std::path::Path;

use twox_hash::XxHash3_64;

use crate::error::{Error, Result};
use crate::out::Atomic;

/// The most that is handed to one `write`: from 1 MiB on, the kernel takes four times the time for the same bytes.
const WRITE: usize = 512 << 10;
/// The most that is read at once.
pub const READ: usize = 256 << 10;

/// Length and hash of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileSum {
    /// Bytes.
    pub bytes: u64,
    /// XXH3, 64 bits, seed 0.
    pub xxh3: u64,
}

impl FileSum {
    /// Of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, xxh3: XxHash3_64::oneshot(bytes) }
    }

    /// 16 hexadecimal digits, as `xxh3_64_hexdigest` prints them.
    pub fn hex(&self) -> String {
        format!("{:016x}", self.xxh3)
    }

    /// Of everything that `from` gives.
    ///
    /// # Errors
    /// Those of `from`.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut sum = Summing::default();
        let mut buffer = vec![0; READ];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok(sum.finish()),
                Ok(n) => sum.add(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Of the file at `path`.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        Self::read(&mut File::open(path)?)
    }
}

/// A sum that is not finished.
pub struct Summing {
    bytes: u64,
    hash: XxHash3_64,
}

impl Default for Summing {
    fn default() -> Self {
        Self { bytes: 0, hash: XxHash3_64::with_seed(0) }
    }
}

impl Summing {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.hash.write(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// The sum so far.
    pub fn finish(&self) -> FileSum {
        FileSum { bytes: self.bytes, xxh3: self.hash.finish() }
    }
}

/// A file that is written whole or not at all, and summed on the way.
pub struct SummedFile<'a> {
    file: Atomic,
    path: &'a Path,
    doing: &'static str,
    sum: Summing,
}

impl<'a> SummedFile<'a> {
    /// Begins the file at `path`.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn create(doing: &'static str, path: &'a Path) -> Result<Self> {
        Ok(Self { file: Atomic::create(doing, path)?, path, doing, sum: Summing::default() })
    }

    /// Adds bytes, in calls of at most 512 KiB.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(|e| Error::write(self.doing, self.path, e))
    }

    /// Gives the file its name; the disk is waited for elsewhere, once for many files.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn commit(self) -> Result<FileSum> {
        self.file.commit(false)?;
        Ok(self.sum.finish())
    }
}

impl Write for SummedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(WRITE)];
        self.file.write_all(piece)?;
        self.sum.add(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// CRC-32 as zlib, gzip and PNG have it.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_reference_implementations() {
        // python: xxhash.xxh3_64_hexdigest(b"") and zlib.crc32(b"123456789").
        assert_eq!(FileSum::of(b"").hex(), "2d06800538d394c2");
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|i| (i * 7 % 251) as u8).collect();
        assert_eq!(FileSum::read(&mut bytes.as_slice()).unwrap(), FileSum::of(&bytes));
    }
}

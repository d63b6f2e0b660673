//! Sums over files: XXH3 of the whole, CRC-32 of a payload; and a file that is summed while it is written.

use std::fs::File;
use std::hash::Hasher as _;
use std::io::{self, IoSlice, Read, Write};
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

use crate::error::{Error, Result};
use crate::out::Atomic;

/// What is handed to one `write`, from a multiple of it. Small pieces cost calls and pages of 4 KiB (16 KiB: 1.7 times the
/// CPU time); larger ones make the kernel look for large free blocks, which a virtual machine has given back to its host
/// (512 KiB: the same time at best, ten times at worst).
const WRITE: usize = 128 << 10;
/// The most pieces of one call; the system takes 1,024.
const SLICES: usize = 1000;
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
///
/// What is put in is gathered into pieces of `WRITE` bytes, so that every call to the kernel but the last has this
/// size and begins at a multiple of it: the page cache then takes whole large folios.
pub struct SummedFile {
    file: Atomic,
    path: PathBuf,
    doing: &'static str,
    gathered: Vec<u8>,
    sum: Summing,
}

impl SummedFile {
    /// Begins the file at `path`.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn create(doing: &'static str, path: &Path) -> Result<Self> {
        let (file, path) = (Atomic::create(doing, path)?, path.to_owned());
        Ok(Self { file, path, doing, gathered: Vec::with_capacity(WRITE), sum: Summing::default() })
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(|e| Error::write(self.doing, &self.path, e))
    }

    /// Adds pieces that lie in memory already, without gathering them first.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn put_slices<'s>(&mut self, slices: impl Iterator<Item = &'s [u8]>) -> Result<()> {
        let mut batch: Vec<IoSlice<'s>> = Vec::new();
        let mut left = WRITE - self.gathered.len();
        let hand_over = |file: &mut Self, batch: &mut Vec<IoSlice<'s>>| {
            file.hand_over_slices(batch).map_err(|e| Error::write(file.doing, &file.path, e))
        };
        for mut slice in slices {
            while !slice.is_empty() {
                let (piece, rest) = slice.split_at(slice.len().min(left));
                batch.push(IoSlice::new(piece));
                (slice, left) = (rest, left - piece.len());
                if left == 0 || batch.len() == SLICES {
                    hand_over(self, &mut batch)?;
                    left = if left == 0 { WRITE } else { left };
                }
            }
        }
        hand_over(self, &mut batch)
    }

    fn hand_over_slices(&mut self, batch: &mut Vec<IoSlice<'_>>) -> io::Result<()> {
        if !self.gathered.is_empty() {
            self.hand_over()?;
        }
        batch.iter().for_each(|slice| self.sum.add(slice));
        let mut slices = batch.as_mut_slice();
        while !slices.is_empty() {
            match self.file.write_vectored(slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => IoSlice::advance_slices(&mut slices, n),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        batch.clear();
        Ok(())
    }

    /// Adds `n` zeros.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn put_zeros(&mut self, n: u64) -> Result<()> {
        zeros(n).try_for_each(|zeros| self.put(zeros))
    }

    /// Gives the file its name; the disk is waited for elsewhere, once for many files.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn commit(mut self) -> Result<FileSum> {
        self.flush().map_err(|e| Error::write(self.doing, &self.path, e))?;
        self.file.commit(false)?;
        Ok(self.sum.finish())
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.sum.add(&self.gathered);
        self.file.write_all(&self.gathered)?;
        self.gathered.clear();
        Ok(())
    }
}

impl Write for SummedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(WRITE - self.gathered.len())];
        self.gathered.extend_from_slice(piece);
        if self.gathered.len() == WRITE {
            self.hand_over()?;
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hand_over()?;
        self.file.flush()
    }
}

/// `n` zeros in pieces.
pub fn zeros<'z>(n: u64) -> impl Iterator<Item = &'z [u8]> {
    static ZEROS: [u8; 4096] = [0; 4096];
    let step = ZEROS.len() as u64;
    (0..n.div_ceil(step)).map(move |i| &ZEROS[..(n - i * step).min(step) as usize])
}

/// CRC-32 as zlib, gzip and PNG have it.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out_in_order_and_is_summed_however_it_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| (i * 7 % 251) as u8).collect();
        for step in [1, 700, 4096, 511 << 10, 3_000_000] {
            let path = dir.path().join(step.to_string());
            let mut file = SummedFile::create("testing", &path).unwrap();
            file.put(&bytes[..99]).unwrap();
            file.put_slices(bytes[99..2_000_000].chunks(step)).unwrap();
            file.put(&bytes[2_000_000..]).unwrap();
            file.put_zeros(9_000).unwrap();
            let mut want = bytes.clone();
            want.resize(3_009_000, 0);
            assert_eq!(file.commit().unwrap(), FileSum::of(&want), "{step}");
            assert!(std::fs::read(&path).unwrap() == want, "{step}");
        }
    }

    #[test]
    fn sums_are_those_of_the_reference_implementations() {
        // python: xxhash.xxh3_64_hexdigest(b"") and zlib.crc32(b"123456789").
        assert_eq!(FileSum::of(b"").hex(), "2d06800538d394c2");
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|i| (i * 7 % 251) as u8).collect();
        assert_eq!(FileSum::read(&mut bytes.as_slice()).unwrap(), FileSum::of(&bytes));
    }
}

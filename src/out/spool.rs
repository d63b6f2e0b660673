//! A nameless temporary file: it is gone with the process, however that ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::error::{Error, Result};

/// Bytes by place, on disk.
#[derive(Debug)]
pub struct Spool {
    file: File,
    doing: &'static str,
}

impl Spool {
    /// An empty one, in the system's folder for temporary files.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn create(doing: &'static str) -> Result<Self> {
        let file = tempfile::tempfile().map_err(|e| Error::write(doing, std::env::temp_dir(), e))?;
        Ok(Self { file, doing })
    }

    /// Writes `bytes` at `at`.
    ///
    /// # Errors
    /// [`Error::Write`]: the disk is full.
    pub fn write_at(&self, bytes: &[u8], at: u64) -> Result<()> {
        self.file.write_all_at(bytes, at).map_err(|e| Error::write(self.doing, std::env::temp_dir(), e))
    }

    /// Fills `bytes` from `at`.
    ///
    /// # Errors
    /// What the system says.
    pub fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)
    }
}

//! The shard that is being filled: held in memory until it is full, since its head tells what follows; or, for the one
//! large file of `beton`, written as it comes.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::one::Packed;
use crate::error::{Error, Result};
use crate::out::Atomic;
use crate::shards::sum::SummedFile;
use crate::shards::{FileSum, Form, Layout, Piece, Place, Record, Row, Shard, Sheet, beton};

const DOING: &str = "writing a shard";
const ZEROS: [u8; 4096] = [0; 4096];

/// A sample that is in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Numbers.
    pub row: Row,
    /// blake3 of the source, the first half.
    pub hash: [u8; 16],
}

impl Kept {
    /// The hash in hexadecimal.
    pub fn hex(&self) -> String {
        let digit = |n: u8| char::from(b"0123456789abcdef"[usize::from(n)]);
        self.hash.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect()
    }
}

/// The texts of a row: path, label, group.
pub type Texts<'a> = &'a dyn Fn(u32) -> (&'a str, &'a str, &'a str);

/// A shard being filled.
pub struct Shelf<'a> {
    form: Form,
    texts: Texts<'a>,
    path: PathBuf,
    /// Bytes that the file will have, at most.
    bytes: u64,
    kept: Vec<Kept>,
    body: Body,
}

enum Body {
    Held(Vec<Vec<u8>>),
    Streamed { file: Atomic, image0: u64, end: u64 },
}

impl<'a> Shelf<'a> {
    /// An empty shard that will be the file at `path` and can get at most `most` samples.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn new(form: Form, texts: Texts<'a>, path: &Path, most: usize) -> Result<Self> {
        let body = if form.layout == Layout::Beton {
            let image0 = beton::pages_at(&form, most);
            Body::Streamed { file: Atomic::create(DOING, path)?, image0, end: image0 }
        } else {
            Body::Held(Vec::new())
        };
        Ok(Self { form, texts, path: path.to_owned(), bytes: form.base(), kept: Vec::new(), body })
    }

    /// Is nothing in it?
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Would `kept` make it larger than a shard shall be? Always false for the first sample and for `beton`.
    pub fn is_full_for(&self, kept: &Kept) -> bool {
        !self.is_empty() && self.bytes + self.cost(kept) > self.form.shard_size
    }

    fn cost(&self, kept: &Kept) -> u64 {
        let hash = kept.hex();
        self.form.cost(&record(self.texts, kept, &hash))
    }

    /// Takes a sample.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn put(&mut self, mut kept: Kept, packed: Packed) -> Result<()> {
        self.bytes += self.cost(&kept);
        match &mut self.body {
            Body::Held(payloads) => payloads.push(packed.payload),
            Body::Streamed { file, end, .. } => {
                let at = beton::next(&self.form, *end, kept.row.size);
                let written = file
                    .seek(SeekFrom::Start(at))
                    .and_then(|_| packed.payload.chunks(512 << 10).try_for_each(|part| file.write_all(part)));
                written.map_err(|e| Error::write(DOING, &self.path, e))?;
                kept.row.offset = at;
                *end = at + u64::from(kept.row.size);
            }
        }
        self.kept.push(kept);
        Ok(())
    }

    /// Writes what is left to write, gives the file its name, and tells the shard and its samples, whose offsets are
    /// now known. `split` and `first` as in [`Place`].
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn finish(mut self, split: &str, first: usize) -> Result<(Shard, Vec<Kept>)> {
        let hashes: Vec<String> = self.kept.iter().map(Kept::hex).collect();
        let records: Vec<Record<'_>> =
            self.kept.iter().zip(&hashes).map(|(kept, hash)| record(self.texts, kept, hash)).collect();
        let image0 = match &self.body {
            Body::Held(_) => 0,
            Body::Streamed { image0, .. } => *image0,
        };
        let sheet = self.form.sheet(&Place { split, first, image0 }, &records)?;
        drop(records);
        let sum = match self.body {
            Body::Held(payloads) => write(&self.path, &sheet, payloads)?,
            Body::Streamed { file, .. } => fill_in(file, &self.path, &sheet)?,
        };
        if sum.bytes != sheet.len {
            return Err(Error::Internal(format!("a shard has {} bytes of {}", sum.bytes, sheet.len)));
        }
        for (kept, offset) in self.kept.iter_mut().zip(&sheet.offsets) {
            kept.row.offset = *offset;
        }
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let image0 = if image0 > 0 { image0 } else { sheet.image0() };
        Ok((Shard { name, sum, rows: self.kept.len(), image0 }, self.kept))
    }
}

/// The whole record of a sample.
pub fn record<'a: 'b, 'b>(texts: Texts<'a>, kept: &Kept, hash: &'b str) -> Record<'b> {
    let (path, label, group) = texts(kept.row.row);
    Record { row: kept.row, path, hash, label, group }
}

fn write(path: &Path, sheet: &Sheet, mut payloads: Vec<Vec<u8>>) -> Result<FileSum> {
    let mut file = SummedFile::create(DOING, path)?;
    for piece in &sheet.pieces {
        match piece {
            Piece::Bytes(_, bytes) => file.put(bytes)?,
            Piece::Zeros(_, n) => {
                let mut left = *n as usize;
                while left > 0 {
                    let now = left.min(ZEROS.len());
                    file.put(&ZEROS[..now])?;
                    left -= now;
                }
            }
            Piece::Payload(i, _) => {
                // Freed as it is written.
                let payload = payloads.get_mut(*i).map(std::mem::take).unwrap_or_default();
                file.put(&payload)?;
            }
        }
    }
    file.commit()
}

/// Everything but payloads, which are there, and zeros, which a gap is.
fn fill_in(mut file: Atomic, path: &Path, sheet: &Sheet) -> Result<FileSum> {
    let trouble = |e| Error::write(DOING, path, e);
    let mut at = 0;
    for piece in &sheet.pieces {
        if let Piece::Bytes(_, bytes) = piece {
            file.seek(SeekFrom::Start(at)).and_then(|_| file.write_all(bytes)).map_err(trouble)?;
        }
        at += piece.len();
    }
    file.commit(false)?;
    FileSum::of_file(path).map_err(|e| Error::read("reading a shard back", path, e))
}

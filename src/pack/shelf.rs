//! The shard that is being filled: held in memory until it is full, where its head tells what follows; or written as it
//! comes: a tar, and the one large file of `beton`.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::one::Packed;
use crate::error::{Error, Result};
use crate::out::Atomic;
use crate::shards::sum::{SummedFile, zeros};
use crate::shards::{FileSum, Form, Layout, Piece, Place, Record, Row, Shard, Sheet, beton, tar};

const DOING: &str = "writing a shard";

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

/// Memory that shards are held in, one after the other: fresh memory would cost more than writing it to the disk.
pub type Memory = Vec<u8>;

/// A shard being filled.
pub struct Shelf<'a> {
    form: Form,
    texts: Texts<'a>,
    path: PathBuf,
    /// Bytes that the file will have, at most.
    bytes: u64,
    kept: Vec<Kept>,
    body: Body,
    /// The payloads of [`Body::Held`], back to back.
    memory: Memory,
}

enum Body {
    /// In memory, until the head can be written.
    Held,
    /// A tar, written as it grows; the sheet has its length alone.
    Growing { file: Box<SummedFile>, sheet: Sheet },
    /// A `beton`: payloads are written as they come, the head last.
    Streamed { file: Atomic, image0: u64, end: u64 },
}

impl<'a> Shelf<'a> {
    /// An empty shard that will be the file at `path` and can get at most `most` samples. `memory` is what an earlier
    /// shard gave back, or empty.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn new(form: Form, texts: Texts<'a>, path: &Path, most: usize, mut memory: Memory) -> Result<Self> {
        let body = match form.layout {
            Layout::Beton => {
                let image0 = beton::pages_at(&form, most);
                Body::Streamed { file: Atomic::create(DOING, path)?, image0, end: image0 }
            }
            Layout::Wds => {
                Body::Growing { file: Box::new(SummedFile::create(DOING, path)?), sheet: Sheet::default() }
            }
            Layout::Mds | Layout::Npy => Body::Held,
        };
        memory.clear();
        Ok(Self { form, texts, path: path.to_owned(), bytes: form.base(), kept: Vec::new(), body, memory })
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
    pub fn put(&mut self, mut kept: Kept, packed: &Packed) -> Result<()> {
        self.bytes += self.cost(&kept);
        match &mut self.body {
            Body::Held => self.memory.extend_from_slice(&packed.payload),
            Body::Growing { file, sheet } => {
                let hash = kept.hex();
                tar::add(sheet, 0, &record(self.texts, &kept, &hash));
                kept.row.offset = sheet.offsets.pop().unwrap_or_default();
                slices(sheet, &packed.payload)?.into_iter().try_for_each(|slice| file.put(slice))?;
                sheet.pieces.clear();
            }
            Body::Streamed { file, end, .. } => {
                let at = beton::next(&self.form, *end, kept.row.size);
                let written = file
                    .seek(SeekFrom::Start(at))
                    .and_then(|_| packed.payload.chunks(128 << 10).try_for_each(|part| file.write_all(part)));
                written.map_err(|e| Error::write(DOING, &self.path, e))?;
                kept.row.offset = at;
                *end = at + u64::from(kept.row.size);
            }
        }
        self.kept.push(kept);
        Ok(())
    }

    /// Writes what is left to write, gives the file its name, and tells the shard and its samples, whose offsets are
    /// now known; and gives the memory back. `split` and `first` as in [`Place`].
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn finish(self, split: &str, first: usize) -> Result<(Shard, Vec<Kept>, Memory)> {
        let Self { form, texts, path, mut kept, body, memory, .. } = self;
        let (sum, image0) = match body {
            Body::Growing { mut file, mut sheet } => {
                tar::end(&mut sheet);
                slices(&sheet, &[])?.into_iter().try_for_each(|slice| file.put(slice))?;
                (file.commit()?, kept.first().map_or(0, |kept| kept.row.offset))
            }
            Body::Held => {
                let sheet = sheet_of(&form, texts, &Place { split, first, image0: 0 }, &mut kept)?;
                let mut file = SummedFile::create(DOING, &path)?;
                file.put_slices(slices(&sheet, &memory)?.into_iter())?;
                (whole(file.commit()?, &sheet)?, sheet.image0())
            }
            Body::Streamed { file, image0, .. } => {
                let sheet = sheet_of(&form, texts, &Place { split, first, image0 }, &mut kept)?;
                (whole(fill_in(file, &path, &sheet)?, &sheet)?, image0)
            }
        };
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok((Shard { name, sum, rows: kept.len(), image0 }, kept, memory))
    }
}

/// The plan of the shard; the samples learn their offsets.
fn sheet_of(form: &Form, texts: Texts<'_>, place: &Place<'_>, kept: &mut [Kept]) -> Result<Sheet> {
    let hashes: Vec<String> = kept.iter().map(Kept::hex).collect();
    let records: Vec<Record<'_>> =
        kept.iter().zip(&hashes).map(|(kept, hash)| record(texts, kept, hash)).collect();
    let sheet = form.sheet(place, &records)?;
    drop(records);
    for (kept, offset) in kept.iter_mut().zip(&sheet.offsets) {
        kept.row.offset = *offset;
    }
    Ok(sheet)
}

/// `sum`, when the file came out as planned.
fn whole(sum: FileSum, sheet: &Sheet) -> Result<FileSum> {
    if sum.bytes == sheet.len {
        Ok(sum)
    } else {
        Err(Error::Internal(format!("a shard has {} bytes of {}", sum.bytes, sheet.len)))
    }
}

/// The whole record of a sample.
pub fn record<'a: 'b, 'b>(texts: Texts<'a>, kept: &Kept, hash: &'b str) -> Record<'b> {
    let (path, label, group) = texts(kept.row.row);
    Record { row: kept.row, path, hash, label, group }
}

/// The bytes of the pieces of a sheet, in order; `payloads` has those of its samples, back to back.
fn slices<'s>(sheet: &'s Sheet, payloads: &'s [u8]) -> Result<Vec<&'s [u8]>> {
    let mut out = Vec::with_capacity(sheet.pieces.len());
    let mut left = payloads;
    for piece in &sheet.pieces {
        match piece {
            Piece::Bytes(_, bytes) => out.push(bytes.as_slice()),
            Piece::Zeros(_, n) => out.extend(zeros(*n)),
            Piece::Payload(_, n) => {
                let (payload, rest) = left
                    .split_at_checked(*n as usize)
                    .ok_or_else(|| Error::Internal("a payload is not as long as its record says".into()))?;
                out.push(payload);
                left = rest;
            }
        }
    }
    Ok(out)
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

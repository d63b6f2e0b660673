//! A shard's bytes against what its records say they must be: every byte belongs to something that has a name.

use std::io::{self, Read};

use super::sum::{READ, Summing};
use super::{FileSum, Part, Piece, Row, Sheet};

/// Something that is wrong in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flaw {
    /// The first byte that is wrong, or the first of a payload whose CRC is.
    pub at: u64,
    /// What.
    pub kind: Kind,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Bytes of this part differ.
    Differs(Part),
    /// The file ends within or before this part.
    Ends(Part),
    /// Bytes after the end.
    Longer,
    /// All parts are right, the hash of the whole is not: the manifest and the tables were made for another file.
    Hash,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// In order; one a part at most.
    pub flaws: Vec<Flaw>,
    /// The file as it was read.
    pub sum: FileSum,
}

/// Reads a whole shard once and compares it with its sheet, the CRCs of `rows` and the hash `wanted`.
///
/// # Errors
/// Those of `from`.
pub fn check(from: &mut impl Read, sheet: &Sheet, rows: &[Row], wanted: FileSum) -> io::Result<Checked> {
    let mut reader = Reader { from, sum: Summing::default(), buffer: vec![0; READ], at: 0 };
    let mut flaws: Vec<Flaw> = Vec::new();
    let mut note = |at: u64, kind: Kind| {
        let known = match (flaws.last().map(|flaw| flaw.kind), kind) {
            // Past the end, only further samples are news.
            (
                Some(Kind::Ends(Part::Frame(a) | Part::Payload(a))),
                Kind::Ends(Part::Frame(b) | Part::Payload(b)),
            ) => a == b,
            (Some(Kind::Ends(_)), Kind::Ends(Part::Header | Part::Padding)) => true,
            (last, kind) => last == Some(kind),
        };
        if !known {
            flaws.push(Flaw { at, kind });
        }
    };
    for piece in &sheet.pieces {
        let (start, part) = (reader.at, piece.part());
        let whole = match piece {
            Piece::Bytes(_, bytes) => reader.compare(bytes)?,
            Piece::Zeros(_, n) => reader.zeros(*n)?,
            Piece::Payload(sample, n) => {
                let wanted = rows.get(*sample).map(|row| row.crc32);
                reader.crc(u64::from(*n), wanted)?
            }
        };
        match whole {
            Found::Right => {}
            Found::Wrong(at) => note(at, Kind::Differs(part)),
            Found::Ends if piece.is_empty() => {}
            Found::Ends => note(start.max(reader.at), Kind::Ends(part)),
        }
    }
    let expected = reader.at;
    if reader.rest()? {
        note(expected, Kind::Longer);
    }
    let sum = reader.sum.finish();
    if flaws.is_empty() && sum != wanted {
        flaws.push(Flaw { at: 0, kind: Kind::Hash });
    }
    Ok(Checked { flaws, sum })
}

enum Found {
    Right,
    Wrong(u64),
    Ends,
}

struct Reader<'r, R> {
    from: &'r mut R,
    sum: Summing,
    buffer: Vec<u8>,
    at: u64,
}

impl<R: Read> Reader<'_, R> {
    /// Fills the buffer with at most `want` bytes; how many came.
    fn fill(&mut self, want: u64) -> io::Result<usize> {
        let most = (self.buffer.len() as u64).min(want) as usize;
        let mut got = 0;
        while got < most {
            match self.from.read(&mut self.buffer[got..most]) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.sum.add(&self.buffer[..got]);
        Ok(got)
    }

    /// Reads `n` bytes in pieces, which `right` compares; `right` gets where a piece begins in the stretch.
    fn stretch(&mut self, n: u64, mut right: impl FnMut(u64, &[u8]) -> Option<usize>) -> io::Result<Found> {
        let (mut done, mut wrong) = (0, None);
        while done < n {
            let got = self.fill(n - done)?;
            if got == 0 {
                return Ok(wrong.map_or(Found::Ends, Found::Wrong));
            }
            let differs = right(done, &self.buffer[..got]);
            wrong = wrong.or(differs.map(|at| self.at + at as u64));
            done += got as u64;
            self.at += got as u64;
        }
        Ok(wrong.map_or(Found::Right, Found::Wrong))
    }

    fn compare(&mut self, bytes: &[u8]) -> io::Result<Found> {
        self.stretch(bytes.len() as u64, |done, got| {
            let wanted = &bytes[done as usize..done as usize + got.len()];
            if wanted == got { None } else { wanted.iter().zip(got).position(|(a, b)| a != b) }
        })
    }

    fn zeros(&mut self, n: u64) -> io::Result<Found> {
        const ZEROS: [u8; 4096] = [0; 4096];
        self.stretch(n, |_, got| {
            let clean = got.chunks(ZEROS.len()).all(|chunk| *chunk == ZEROS[..chunk.len()]);
            if clean { None } else { got.iter().position(|b| *b != 0) }
        })
    }

    fn crc(&mut self, n: u64, wanted: Option<u32>) -> io::Result<Found> {
        let (start, mut crc) = (self.at, crc32fast::Hasher::new());
        let found = self.stretch(n, |_, got| {
            crc.update(got);
            None
        })?;
        Ok(match found {
            Found::Right if Some(crc.finalize()) != wanted => Found::Wrong(start),
            found => found,
        })
    }

    /// Reads to the end; was there anything?
    fn rest(&mut self) -> io::Result<bool> {
        let mut any = false;
        loop {
            match self.fill(READ as u64)? {
                0 => return Ok(any),
                _ => any = true,
            }
        }
    }
}

//! The plan of a shard's bytes: everything but the payloads, in order.

use super::short;

/// What bytes of a shard belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Counts, offsets, configuration.
    Header,
    /// The sizes, label or member headers of a sample, by its place in the shard.
    Frame(usize),
    /// The image of a sample.
    Payload(usize),
    /// Padding after a sample, or at the end.
    Padding,
}

/// A stretch of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// These.
    Bytes(Part, Vec<u8>),
    /// So many zeros.
    Zeros(Part, u64),
    /// The payload of a sample, by its place in the shard, and its length.
    Payload(usize, u32),
}

impl Piece {
    /// How many bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(_, bytes) => bytes.len() as u64,
            Self::Zeros(_, n) => *n,
            Self::Payload(_, n) => u64::from(*n),
        }
    }

    /// None?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What they belong to.
    pub fn part(&self) -> Part {
        match self {
            Self::Bytes(part, _) | Self::Zeros(part, _) => *part,
            Self::Payload(sample, _) => Part::Payload(*sample),
        }
    }
}

/// A whole shard but for the bytes of its payloads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sheet {
    /// In order, without gaps.
    pub pieces: Vec<Piece>,
    /// Where each payload begins.
    pub offsets: Vec<u64>,
    /// Bytes of the file.
    pub len: u64,
}

impl Sheet {
    pub(super) fn bytes(&mut self, part: Part, bytes: Vec<u8>) {
        self.len += bytes.len() as u64;
        self.pieces.push(Piece::Bytes(part, bytes));
    }

    /// Zeros up to `end`.
    pub(super) fn zeros_to(&mut self, part: Part, end: u64) {
        let n = end.saturating_sub(self.len);
        if n > 0 {
            self.pieces.push(Piece::Zeros(part, n));
            self.len += n;
        }
    }

    pub(super) fn payload(&mut self, sample: usize, size: u32) {
        self.offsets.push(self.len);
        self.pieces.push(Piece::Payload(sample, size));
        self.len += u64::from(size);
    }

    /// Where the first payload begins; 0 in an empty shard.
    pub fn image0(&self) -> u64 {
        self.offsets.first().copied().unwrap_or(0)
    }

    /// The length in 32 bits, for formats that count so.
    pub(super) fn short_len(&self) -> u32 {
        short(self.len)
    }
}

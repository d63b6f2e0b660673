//! Shards: what `pack` writes and `verify` and `unpack` read. `docs/cache.md` is the format on one page.
//!
//! Every byte of a shard but the payloads follows from its records, so one [`Sheet`] serves the writer, which puts the
//! payloads in, and the verifier, which compares.

pub mod beton;
pub mod cache;
pub mod check;
pub mod index;
pub mod mds;
pub mod npy;
pub mod read;
pub mod seal;
pub mod sheet;
pub mod strided;
pub mod sum;
pub mod tables;
pub mod tar;

pub use cache::{Cache, Shard, Split};
pub use sheet::{Part, Piece, Sheet};
pub use sum::FileSum;

use crate::error::{Error, Result};

/// The schema of the cache that this version writes; it grows when an old reader would be wrong.
pub const SCHEMA: u64 = 1;
/// The commit record of a cache.
pub const MANIFEST: &str = "manifest.json";
/// Rows that are in no shard.
pub const LEFT_OUT: &str = "left_out.csv";
/// The reader that lies beside the shards.
pub const READER: &str = "prep_cache.py";
/// Its text.
pub const READER_TEXT: &[u8] = include_bytes!("../../python/prep_cache.py");
/// Payloads of an `mds` shard begin at multiples of this, as direct reads and GPU storage want.
pub const ALIGNMENT: u64 = 4096;

/// How shards are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// MosaicML MDS v2, LitData and an aligned array in one.
    Mds,
    /// tar, for WebDataset and everybody else.
    Wds,
    /// NumPy arrays.
    Npy,
    /// FFCV.
    Beton,
}

impl Layout {
    /// The word in the manifest and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mds => "mds",
            Self::Wds => "wds",
            Self::Npy => "npy",
            Self::Beton => "beton",
        }
    }

    /// The layout of this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Mds, Self::Wds, Self::Npy, Self::Beton].into_iter().find(|l| l.as_str() == text)
    }
}

/// What a payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// Pixels.
    Raw,
    /// JPEG files.
    Jpeg,
}

impl Store {
    /// The word in the manifest and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Jpeg => "jpeg",
        }
    }
}

/// Bits of [`Row::flags`].
pub mod flag {
    /// The payload is a JPEG file.
    pub const JPEG: u32 = 1;
    /// Its coded data are the source's.
    pub const COPIED: u32 = 2;
    /// The row has several labels.
    pub const SEVERAL: u32 = 4;
    /// The picture does not fill the frame.
    pub const PADDED: u32 = 8;
}

/// A record of `rows.npy`: where a sample lies and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Row {
    /// First byte of the payload in its shard.
    pub offset: u64,
    /// Which shard of the part.
    pub shard: u32,
    /// Bytes of the payload.
    pub size: u32,
    /// Height in pixels.
    pub h: u16,
    /// Width in pixels.
    pub w: u16,
    /// Index of the class, -1 without exactly one.
    pub label: i32,
    /// Index of the group, -1 without one.
    pub group: i32,
    /// CRC-32 (zlib) of the payload.
    pub crc32: u32,
    /// Place in the input.
    pub row: u32,
    /// See [`flag`].
    pub flags: u32,
}

impl Row {
    /// Bytes of a record.
    pub const BYTES: usize = 40;
    /// The dtype, as NumPy writes it into a header.
    pub const DESCR: &str = "[('offset', '<u8'), ('shard', '<u4'), ('size', '<u4'), ('h', '<u2'), ('w', '<u2'), \
        ('label', '<i4'), ('group', '<i4'), ('crc32', '<u4'), ('row', '<u4'), ('flags', '<u4')]";

    /// As in the file.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[0..8].copy_from_slice(&self.offset.to_le_bytes());
        out[8..12].copy_from_slice(&self.shard.to_le_bytes());
        out[12..16].copy_from_slice(&self.size.to_le_bytes());
        out[16..18].copy_from_slice(&self.h.to_le_bytes());
        out[18..20].copy_from_slice(&self.w.to_le_bytes());
        out[20..24].copy_from_slice(&self.label.to_le_bytes());
        out[24..28].copy_from_slice(&self.group.to_le_bytes());
        out[28..32].copy_from_slice(&self.crc32.to_le_bytes());
        out[32..36].copy_from_slice(&self.row.to_le_bytes());
        out[36..40].copy_from_slice(&self.flags.to_le_bytes());
        out
    }

    /// From the file.
    pub fn from_bytes(b: &[u8; Self::BYTES]) -> Self {
        let four = |at: usize| [b[at], b[at + 1], b[at + 2], b[at + 3]];
        Self {
            offset: u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]),
            shard: u32::from_le_bytes(four(8)),
            size: u32::from_le_bytes(four(12)),
            h: u16::from_le_bytes([b[16], b[17]]),
            w: u16::from_le_bytes([b[18], b[19]]),
            label: i32::from_le_bytes(four(20)),
            group: i32::from_le_bytes(four(24)),
            crc32: u32::from_le_bytes(four(28)),
            row: u32::from_le_bytes(four(32)),
            flags: u32::from_le_bytes(four(36)),
        }
    }

    /// Is the payload a JPEG file?
    pub fn is_jpeg(&self) -> bool {
        self.flags & flag::JPEG != 0
    }
}

/// All that is known of a sample: its row, and the texts of `ids.csv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Numbers.
    pub row: Row,
    /// Source path, as manifests spell it.
    pub path: &'a str,
    /// blake3 of the source file, 32 hex digits.
    pub hash: &'a str,
    /// The label's text; several joined by `|`.
    pub label: &'a str,
    /// The group's text.
    pub group: &'a str,
}

/// A [`Record`] that owns its texts: as it is read from a shard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owned {
    /// Numbers.
    pub row: Row,
    /// See [`Record::path`].
    pub path: String,
    /// See [`Record::hash`].
    pub hash: String,
    /// See [`Record::label`].
    pub label: String,
    /// See [`Record::group`].
    pub group: String,
}

impl Owned {
    /// The same, borrowed.
    pub fn record(&self) -> Record<'_> {
        Record { row: self.row, path: &self.path, hash: &self.hash, label: &self.label, group: &self.group }
    }
}

/// What all shards of a cache have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// How they are laid out.
    pub layout: Layout,
    /// What a payload is.
    pub store: Store,
    /// Height and width, where all samples have the same.
    pub fixed: Option<(u16, u16)>,
    /// The size at which a shard is full, in bytes.
    pub shard_size: u64,
}

impl Form {
    /// Bytes from one payload of a shard to the next, where they are constant.
    pub fn stride(&self) -> Option<u64> {
        let (h, w) = self.fixed.filter(|_| self.store == Store::Raw)?;
        let size = u64::from(h) * u64::from(w) * 3;
        match self.layout {
            Layout::Mds => Some(mds::span(self, size)),
            Layout::Npy => Some(size),
            Layout::Wds | Layout::Beton => None,
        }
    }

    /// The name of shard `number` in the folder `folder`.
    pub fn shard_name(&self, folder: &str, number: usize) -> String {
        match self.layout {
            Layout::Mds => format!("shard.{number:05}.mds"),
            Layout::Wds => format!("{folder}-{number:06}.tar"),
            Layout::Npy => format!("images-{number:05}.npy"),
            Layout::Beton => format!("{folder}.beton"),
        }
    }

    /// Bytes that a shard has before its first sample, at most.
    pub fn base(&self) -> u64 {
        match self.layout {
            Layout::Mds => mds::base(self),
            Layout::Wds => tar::END,
            Layout::Npy => ALIGNMENT,
            Layout::Beton => 0,
        }
    }

    /// Bytes that a sample adds to a shard, at most.
    pub fn cost(&self, record: &Record<'_>) -> u64 {
        match self.layout {
            Layout::Mds => mds::cost(self, record),
            Layout::Wds => tar::cost(record),
            Layout::Npy => u64::from(record.row.size),
            Layout::Beton => 0,
        }
    }

    /// The whole shard but for its payloads.
    ///
    /// # Errors
    /// [`Error::Internal`] for a shard that its format cannot hold: the writer cuts shards before.
    pub fn sheet(&self, place: &Place<'_>, records: &[Record<'_>]) -> Result<Sheet> {
        let sheet = match self.layout {
            Layout::Mds => mds::sheet(self, place, records),
            Layout::Wds => tar::sheet(records),
            Layout::Npy => strided::sheet(self, records),
            Layout::Beton => beton::sheet(self, place, records),
        };
        // Offsets within an mds shard have 32 bits.
        if self.layout == Layout::Mds && sheet.len > u64::from(u32::MAX) {
            return Err(Error::Internal(format!("a shard of {} bytes", sheet.len)));
        }
        Ok(sheet)
    }
}

/// Where a shard stands in its part.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The part of the split.
    pub split: &'a str,
    /// The sample with which it begins.
    pub first: usize,
    /// Where the first payload lies; only `beton` does not follow from the records.
    pub image0: u64,
}

/// The next multiple of `step`.
pub(crate) fn align(at: u64, step: u64) -> u64 {
    at.div_ceil(step) * step
}

/// Bytes beyond what fits `u32` are refused long before: see [`Form::sheet`].
pub(crate) fn short(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The folder of a part: its name where that is a plain one, else percent-encoded, so that it can be nothing else.
pub fn folder_of(split: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    let special = [MANIFEST, LEFT_OUT, READER].iter().any(|name| split.eq_ignore_ascii_case(name));
    for (at, b) in split.bytes().enumerate() {
        let plain = b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || (b == b'.' && at > 0 && !special);
        if plain {
            out.push(b as char);
        } else {
            let _ = write!(out, "%{b:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back_and_a_folder_is_always_a_plain_name() {
        let row = Row {
            offset: 1 << 33,
            shard: 2,
            size: 3,
            h: 4,
            w: 5,
            label: -1,
            group: 7,
            crc32: 8,
            row: 9,
            flags: 10,
        };
        assert_eq!(Row::from_bytes(&row.to_bytes()), row);
        assert_eq!(folder_of("train"), "train");
        for odd in ["..", "a/b", ".prep", "manifest.json", "é", "a\\b", "a b"] {
            let folder = folder_of(odd);
            assert!(!folder.starts_with('.') && !folder.contains(['/', '\\']), "{folder}");
            assert_ne!(folder, odd);
        }
    }
}

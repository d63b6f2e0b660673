//! The one table that flows through everything: `manifest.csv`, one row an image, sorted by path, with the user's own
//! columns kept in order; and beside it `manifest.prep.json`, written last, which says that the table is whole.
//!
//! A column of ours whose name the user already has is called `prep_<name>`; the user's is never overwritten.

mod layout;
mod sidecar;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fault::{Cause, Fault, Note, Oddity, Status, join_notes};
use crate::table::{Table, csv_out};

pub use layout::{Layout, Places};
pub use sidecar::{SCHEMA, Sidecar};

/// Our columns, in order.
pub const COLUMNS: [&str; 12] = [
    "path", "label", "split", "fold", "group", "status", "fault", "notes", "width", "height", "bytes", "hash",
];

/// Our columns about the source of an image that `shrink` wrote, in order, after [`COLUMNS`].
pub const SOURCE_COLUMNS: [&str; 7] =
    ["src", "src_width", "src_height", "src_format", "src_mode", "src_orientation", "src_hash"];

/// What a manifest says about one image. Texts are empty and numbers none where nothing is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// Relative to the manifest's folder, as [`crate::names::encode`] spells it.
    pub path: String,
    /// The class, or several joined by `|`.
    pub label: String,
    /// The part of the split.
    pub split: String,
    /// The fold, counted from 0, as text.
    pub fold: String,
    /// The group whose images stay together.
    pub group: String,
    /// What became of it.
    pub status: Status,
    /// Why it is not usable.
    pub fault: Option<Fault>,
    /// Codes with details, joined by `;`.
    pub notes: String,
    /// Upright width in pixels.
    pub width: Option<u32>,
    /// Upright height in pixels.
    pub height: Option<u32>,
    /// Bytes of the file.
    pub bytes: Option<u64>,
    /// BLAKE3 of the file, hexadecimal.
    pub hash: String,
    /// Where `shrink` took it from.
    pub source: Source,
}

/// The source of an image that `shrink` wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// Path of the source, relative to the source's root or to the manifest.
    pub path: String,
    /// Stored width in pixels.
    pub width: Option<u32>,
    /// Stored height in pixels.
    pub height: Option<u32>,
    /// The format that the content showed, such as `jpeg`.
    pub format: String,
    /// The kind of its samples, such as `rgb`, `gray`, `cmyk`.
    pub mode: String,
    /// EXIF orientation, 1 to 8.
    pub orientation: Option<u8>,
    /// BLAKE3 of the source file, hexadecimal.
    pub hash: String,
}

impl Row {
    /// The same as [`Row::of`] in the place of another row, whose memory is used again.
    pub fn refill(&mut self, entry: &Entry) {
        self.path.clone_from(&entry.path);
        self.label.clone_from(&entry.label);
        self.split.clone_from(&entry.split);
        self.group.clone_from(&entry.group);
        self.fold.clear();
        self.hash.clear();
        self.status = entry.fault.as_ref().map_or(Status::Ok, Fault::status);
        self.fault.clone_from(&entry.fault);
        self.notes = join_notes(&entry.notes);
        (self.width, self.height, self.bytes) = (None, None, (entry.bytes > 0).then_some(entry.bytes));
        self.source = Source::default();
    }

    /// What the listing alone tells of an entry; `bytes` where the file was seen.
    pub fn of(entry: &Entry) -> Self {
        Self {
            path: entry.path.clone(),
            label: entry.label.clone(),
            split: entry.split.clone(),
            fold: String::new(),
            group: entry.group.clone(),
            status: entry.fault.as_ref().map_or(Status::Ok, Fault::status),
            fault: entry.fault.clone(),
            notes: join_notes(&entry.notes),
            width: None,
            height: None,
            bytes: (entry.bytes > 0).then_some(entry.bytes),
            hash: String::new(),
            source: Source::default(),
        }
    }

    /// Row `row` of a manifest.
    ///
    /// # Errors
    /// A status that is none, a number that is none; with the line.
    pub fn read(table: &Table, places: &Places, row: usize) -> Result<Self> {
        let text = |name: &str| places.cell(table, row, name);
        let status = Status::parse(text("status")).ok_or_else(|| {
            let why = format!(
                "status `{}` is none of ok, damaged, bad, unsupported, skipped, excluded",
                crate::names::shown(text("status"))
            );
            Error::table(&table.path, Some(table.line(row)), why)
        })?;
        Ok(Self {
            path: text("path").to_owned(),
            label: text("label").to_owned(),
            split: text("split").to_owned(),
            fold: text("fold").to_owned(),
            group: text("group").to_owned(),
            status,
            fault: fault_of(status, text("fault")),
            notes: text("notes").to_owned(),
            width: number(table, places, row, "width")?,
            height: number(table, places, row, "height")?,
            bytes: number(table, places, row, "bytes")?,
            hash: text("hash").to_owned(),
            source: Source {
                path: text("src").to_owned(),
                width: number(table, places, row, "src_width")?,
                height: number(table, places, row, "src_height")?,
                format: text("src_format").to_owned(),
                mode: text("src_mode").to_owned(),
                orientation: number(table, places, row, "src_orientation")?,
                hash: text("src_hash").to_owned(),
            },
        })
    }

    /// The cell of our column `name`.
    fn cell(&self, name: &str) -> Cow<'_, str> {
        fn text(n: Option<impl ToString>) -> Cow<'static, str> {
            n.map(|n| n.to_string()).unwrap_or_default().into()
        }
        match name {
            "path" => (&self.path).into(),
            "label" => (&self.label).into(),
            "split" => (&self.split).into(),
            "fold" => (&self.fold).into(),
            "group" => (&self.group).into(),
            "status" => self.status.as_str().into(),
            "fault" => text(self.fault.as_ref()),
            "notes" => (&self.notes).into(),
            "width" => text(self.width),
            "height" => text(self.height),
            "bytes" => text(self.bytes),
            "hash" => (&self.hash).into(),
            "src" => (&self.source.path).into(),
            "src_width" => text(self.source.width),
            "src_height" => text(self.source.height),
            "src_format" => (&self.source.format).into(),
            "src_mode" => (&self.source.mode).into(),
            "src_orientation" => text(self.source.orientation),
            "src_hash" => (&self.source.hash).into(),
            _ => "".into(),
        }
    }
}

/// The fault of a row with this status: what its cell says, or, where a person changed the status by hand, a plain one.
fn fault_of(status: Status, text: &str) -> Option<Fault> {
    let told = Fault::parse(text).filter(|fault| fault.status() == status);
    let plain = |cause| Some(told.clone().unwrap_or_else(|| Fault::new(cause, text)));
    match status {
        Status::Ok => None,
        Status::Damaged => plain(Cause::EntropyDamage),
        Status::Bad => plain(Cause::Undecodable),
        Status::Unsupported => plain(Cause::UnsupportedFormat),
        Status::Skipped => plain(Cause::Io),
        Status::Excluded => plain(Cause::Excluded),
    }
}

fn number<T: std::str::FromStr>(table: &Table, places: &Places, row: usize, name: &str) -> Result<Option<T>> {
    let cell = places.cell(table, row, name).trim();
    if cell.is_empty() {
        return Ok(None);
    }
    cell.parse().map(Some).map_err(|_| {
        let why = format!("`{}` in column `{name}` is no whole number in range", crate::names::shown(cell));
        Error::table(&table.path, Some(table.line(row)), why)
    })
}

/// The notes that [`join_notes`] wrote; codes that this version does not know are left out.
pub fn parse_notes(text: &str) -> Vec<Note> {
    text.split(';')
        .filter_map(|part| {
            let (code, detail) = match part.strip_suffix(')').and_then(|p| p.split_once('(')) {
                Some((code, detail)) => (code, detail),
                None => (part, ""),
            };
            Some(Note::new(Oddity::parse(code)?, detail))
        })
        .collect()
}

/// Writes a manifest row by row; what it writes to decides where the bytes land and when they count.
pub struct Writer<'a, W: Write> {
    csv: csv::Writer<Hashing<W>>,
    path: PathBuf,
    layout: Layout,
    /// The table with the user's own columns.
    table: Option<&'a Table>,
    /// The path of the last row.
    last: String,
    rows: u64,
}

/// What a finished manifest is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// BLAKE3 of the bytes, hexadecimal; goes into [`Sidecar::hash`].
    pub hash: String,
    /// Rows without the header.
    pub rows: u64,
}

impl<'a, W: Write> Writer<'a, W> {
    /// Begins a manifest that will be at `path` (for error sentences) and writes its header.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W, path: &Path, layout: Layout, table: Option<&'a Table>) -> Result<Self> {
        let csv = csv_out(Hashing { out, hasher: blake3::Hasher::new() });
        let mut writer = Self { csv, path: path.to_owned(), layout, table, last: String::new(), rows: 0 };
        let header = writer.layout.header();
        writer.record(header.iter().map(String::as_str))?;
        Ok(writer)
    }

    /// Writes one row with the user's cells of row `of` of the table.
    ///
    /// # Errors
    /// Those of `out`; a row out of order is a mistake of ours.
    pub fn write(&mut self, row: &Row, of: Option<usize>) -> Result<()> {
        if self.rows > 0 && self.last >= row.path {
            let why = format!("the manifest row {:?} comes after {:?}", row.path, self.last);
            return Err(Error::Internal(why));
        }
        self.last.clone_from(&row.path);
        let ours = self.layout.ours().map(|name| row.cell(name));
        let theirs = self.layout.theirs().iter().map(|column| {
            self.table.zip(of).map_or(Cow::Borrowed(""), |(table, row)| table.cell(row, *column).into())
        });
        for cell in ours.chain(theirs) {
            self.csv.write_field(cell.as_bytes()).map_err(|e| write_error(&self.path, e.into()))?;
        }
        self.csv.write_record(None::<&[u8]>).map_err(|e| write_error(&self.path, e.into()))?;
        self.rows += 1;
        Ok(())
    }

    /// Ends the manifest and gives back what it was written to.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(self) -> Result<(W, Written)> {
        let path = self.path;
        let mut hashing = self.csv.into_inner().map_err(|e| write_error(&path, e.into_error()))?;
        hashing.flush().map_err(|e| write_error(&path, e))?;
        let hash = hashing.hasher.finalize().to_hex().to_string();
        Ok((hashing.out, Written { hash, rows: self.rows }))
    }

    fn record<'r>(&mut self, cells: impl Iterator<Item = &'r str>) -> Result<()> {
        self.csv.write_record(cells).map_err(|e| write_error(&self.path, e.into()))
    }
}

fn write_error(path: &Path, e: io::Error) -> Error {
    Error::write("writing the manifest", path, e)
}

/// Passes bytes on and hashes what was taken.
struct Hashing<W> {
    out: W,
    hasher: blake3::Hasher,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.hasher.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The first path that two rows of a manifest have, with the line of the second.
pub fn repeated(table: &Table, places: &Places) -> Option<(String, u64)> {
    let mut seen = BTreeSet::new();
    (0..table.len()).find_map(|row| {
        let path = places.cell(table, row, "path");
        (!seen.insert(path)).then(|| (path.to_owned(), table.line(row)))
    })
}

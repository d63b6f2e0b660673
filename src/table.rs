//! Tables: CSV, TSV, `;` or `|` between cells, JSON lines; CSV out. Every row knows its line, unknown columns are kept
//! in order, and what cannot be read says where and why.
//!
//! One string holds all cells, so a table of a million rows costs its text and four bytes a cell.

mod csv_text;
mod json_lines;
mod text;

use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

pub use csv_text::CELL_LIMIT;

/// The largest table, in bytes of its file.
const FILE_LIMIT: u64 = 2 << 30;

/// A table in memory.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The file it was read from.
    pub path: PathBuf,
    /// The names of its columns, in order. Names may be empty or repeated, as users write them.
    pub columns: Vec<String>,
    text: String,
    /// Where each cell ends in `text`, row by row.
    ends: Vec<u32>,
    lines: Vec<u32>,
}

/// Has the table a first row of names?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// The first row names the columns.
    Names,
    /// All rows are data; the columns are called `column_1`, `column_2` …
    None,
}

/// Reads a table whose first row names its columns. JSON lines by the extension (`.jsonl`, `.ndjson`) or a first `{`;
/// else the cells are parted by the one of `,` tab `;` `|` that parts every row alike.
///
/// # Errors
/// A file that cannot be read or is no UTF-8 or UTF-16 text; unclosed quotes, ragged rows, cells above 1 MiB and broken
/// JSON, each with its line.
pub fn read(path: &Path) -> Result<Table> {
    parse(path, load(path)?, Header::Names)
}

/// Like [`read`], of bytes that came from `path`.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, bytes: Vec<u8>, header: Header) -> Result<Table> {
    let text = text::decoded(path, bytes)?;
    if json_lines::is_json_lines(path, &text) {
        json_lines::parse(path, &text)
    } else {
        csv_text::parse(path, &text, header)
    }
}

/// The bytes of a table or list file of at most 2 GiB; pipes are fine.
///
/// # Errors
/// Where it cannot be read or is larger.
pub fn load(path: &Path) -> Result<Vec<u8>> {
    let doing = "reading the table";
    // Opening a FIFO that nobody writes to would wait for ever; a shell's `<(…)` is a pipe that is open already.
    let is_fifo = std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo());
    if is_fifo && !path.starts_with("/dev") && !path.starts_with("/proc") {
        return Err(Error::table(path, None, "a FIFO, which may never end: give a file, or `-` for lists"));
    }
    let file = std::fs::File::open(path).map_err(|e| Error::read(doing, path, e))?;
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(|e| Error::read(doing, path, e))?;
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(Error::table(path, None, "larger than 2 GiB; cut it into several tables"));
    }
    Ok(bytes)
}

impl Table {
    /// An empty table.
    pub fn new(path: impl Into<PathBuf>, columns: Vec<String>) -> Self {
        Self { path: path.into(), columns, ..Self::default() }
    }

    /// Adds a row of as many cells as there are columns, which stood at `line` (from 1).
    ///
    /// # Errors
    /// Where the table grows past 4 GiB of text or 4 G lines, or the row has too few or many cells.
    pub fn push<'a>(&mut self, line: u64, cells: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let too_large = || Error::table(&self.path, Some(line), "the table has more than 4 GiB of text");
        let short = u32::try_from(line).map_err(|_| too_large())?;
        let before = self.ends.len();
        for cell in cells {
            self.text.push_str(cell);
            self.ends.push(u32::try_from(self.text.len()).map_err(|_| {
                Error::table(&self.path, Some(line), "the table has more than 4 GiB of text")
            })?);
        }
        let got = self.ends.len() - before;
        if got != self.columns.len() {
            return Err(Error::table(&self.path, Some(line), ragged(got, self.columns.len())));
        }
        self.lines.push(short);
        Ok(())
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// No rows?
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The cell of row `row` and column `column`, both from 0; empty outside the table.
    pub fn cell(&self, row: usize, column: usize) -> &str {
        if column >= self.columns.len() || row >= self.len() {
            return "";
        }
        let at = row * self.columns.len() + column;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.text[start..self.ends[at] as usize]
    }

    /// The cells of a row, in order.
    pub fn row(&self, row: usize) -> impl Iterator<Item = &str> {
        (0..self.columns.len()).map(move |column| self.cell(row, column))
    }

    /// The line that row `row` began on, counted from 1; 0 outside the table.
    pub fn line(&self, row: usize) -> u64 {
        self.lines.get(row).map_or(0, |line| u64::from(*line))
    }

    /// The column of this name: exact, else without regard to case and spaces around it.
    pub fn column(&self, name: &str) -> Option<usize> {
        let loose = |s: &str| s.trim().to_lowercase();
        self.columns
            .iter()
            .position(|c| c == name)
            .or_else(|| self.columns.iter().position(|c| loose(c) == loose(name)))
    }

    /// Refuses a name that another column has too: nobody can know which of them is meant. Unless it was `typed` just so,
    /// names that differ in case and spaces are the same one. Columns without a name are told by what is in them.
    ///
    /// # Errors
    /// [`Error::Table`] naming both columns.
    pub fn check_sole(&self, at: usize, typed: bool) -> Result<()> {
        let loose = |name: &str| name.trim().to_lowercase();
        let name = self.columns[at].as_str();
        let same = |other: &str| other == name || !typed && loose(other) == loose(name);
        let twin = (0..self.columns.len()).find(|other| *other != at && same(&self.columns[*other]));
        let Some(twin) = twin.filter(|_| !name.trim().is_empty()) else { return Ok(()) };
        let (first, second) = (at.min(twin), at.max(twin));
        let told = |column: usize| crate::names::shown(&self.columns[column]).to_string();
        let (one, other) = (told(first), told(second));
        let (first, second) = (first + 1, second + 1);
        let why = match one == other {
            true => format!("columns {first} and {second} are both called `{one}`, and one of them is meant"),
            false => format!(
                "columns {first} and {second} are called `{one}` and `{other}`, and one of them is meant"
            ),
        };
        Err(Error::table(&self.path, Some(1), format!("{why}: rename the other")))
    }

    /// Writes the table as CSV: UTF-8, `,`, `\n`, quotes only where needed.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut csv = csv_out(out);
        csv.write_record(&self.columns)?;
        for row in 0..self.len() {
            csv.write_record(self.row(row))?;
        }
        csv.flush()
    }
}

/// A CSV writer as all our files have it: UTF-8, `,`, `\n`, quotes only where needed.
pub fn csv_out<W: Write>(out: W) -> csv::Writer<W> {
    csv::WriterBuilder::new().terminator(csv::Terminator::Any(b'\n')).flexible(false).from_writer(out)
}

fn ragged(got: usize, wanted: usize) -> String {
    format!(
        "{got} cells where the first row has {wanted}; put \"quotes\" around a cell that holds the separator, \
         or fill the row up"
    )
}

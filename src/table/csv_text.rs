//! CSV as people write it. A reader of our own, because it must say the line of a quote that is never closed, count
//! lines that end in a lone CR, and refuse what is ambiguous instead of guessing.

use std::path::Path;

use crate::error::{Error, Result};

use super::{Header, Table, ragged};

/// The largest cell, in bytes.
pub const CELL_LIMIT: usize = 1 << 20;

/// How many rows are looked at to find out how cells are parted.
const LOOK: usize = 32;

/// Reads delimited text.
pub(super) fn parse(path: &Path, text: &str, header: Header) -> Result<Table> {
    let style = style(path, text);
    let mut rows = Rows::new(text, style);
    let mut cells = Cells::default();
    let fail = |(line, why): (u64, String)| Error::table(path, Some(line), why);
    let Some(mut line) = rows.next_row(&mut cells).map_err(fail)? else {
        return Err(Error::table(path, None, "the table is empty: not even a row of column names"));
    };
    let mut table = Table::new(path, names(&cells, header));
    table.text.reserve(text.len());
    if header == Header::Names {
        match rows.next_row(&mut cells).map_err(fail)? {
            Some(next) => line = next,
            None => return Ok(table),
        }
    }
    let wanted = table.columns.len();
    loop {
        // Spreadsheets leave separators at the end of rows.
        while cells.len() > wanted && cells.get(cells.len() - 1).is_empty() {
            cells.ends.pop();
        }
        if cells.len() != wanted {
            return Err(Error::table(path, Some(line), ragged(cells.len(), wanted)));
        }
        table.push(line, cells.iter())?;
        match rows.next_row(&mut cells).map_err(fail)? {
            Some(next) => line = next,
            None => return Ok(table),
        }
    }
}

fn names(cells: &Cells, header: Header) -> Vec<String> {
    match header {
        Header::None => (1..=cells.len()).map(|n| format!("column_{n}")).collect(),
        Header::Names => {
            let mut names: Vec<String> = cells.iter().map(str::to_owned).collect();
            // Cells that the row of names has too many, as spreadsheets leave them.
            while names.len() > 1 && names.last().is_some_and(String::is_empty) {
                names.pop();
            }
            names
        }
    }
}

/// How cells are parted.
#[derive(Clone, Copy)]
struct Style {
    separator: u8,
    /// `a, b, c`: the space after the separator belongs to the separator.
    spaced: bool,
}

/// The separator that parts the first rows alike, into the most cells.
fn style(path: &Path, text: &str) -> Style {
    let tsv =
        path.extension().is_some_and(|e| e.eq_ignore_ascii_case("tsv") || e.eq_ignore_ascii_case("tab"));
    let order: [u8; 4] = if tsv { *b"\t,;|" } else { *b",\t;|" };
    let mut best = (false, 1, Style { separator: order[0], spaced: false });
    for separator in order {
        let (alike, width, spaced) = try_style(text, separator);
        if width > 1 && (alike, width) > (best.0, best.1) {
            best = (alike, width, Style { separator, spaced });
        }
    }
    best.2
}

/// Are the first rows alike with this separator, how many cells has the first, and does a space follow everywhere?
fn try_style(text: &str, separator: u8) -> (bool, usize, bool) {
    let mut rows = Rows::new(text, Style { separator, spaced: false });
    let mut cells = Cells::default();
    let (mut alike, mut width, mut spaced) = (true, 0, true);
    for row in 0..LOOK {
        match rows.next_row(&mut cells) {
            Ok(Some(_)) if row == 0 => width = cells.len(),
            Ok(Some(_)) => alike &= cells.len() == width,
            Ok(None) => break,
            Err(_) => {
                alike = false;
                break;
            }
        }
        spaced &= cells.iter().skip(1).all(|cell| cell.starts_with(' '));
    }
    (alike, width, spaced && width > 1)
}

/// The cells of one row.
#[derive(Default)]
struct Cells {
    text: String,
    ends: Vec<usize>,
}

impl Cells {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|at| self.get(at))
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }
}

/// A line (from 1) and what is wrong there.
type Wrong = (u64, String);

/// The rows of a text, one after the other.
struct Rows<'a> {
    rest: &'a str,
    line: u64,
    style: Style,
}

impl<'a> Rows<'a> {
    fn new(text: &'a str, style: Style) -> Self {
        Self { rest: text, line: 1, style }
    }

    /// Reads the next row that is not blank and tells the line where it begins.
    fn next_row(&mut self, cells: &mut Cells) -> Result<Option<u64>, Wrong> {
        loop {
            if self.rest.is_empty() {
                return Ok(None);
            }
            let line = self.line;
            cells.clear();
            self.row(cells)?;
            if cells.len() > 1 || cells.text.chars().any(|c| !c.is_whitespace()) {
                return Ok(Some(line));
            }
        }
    }

    fn row(&mut self, cells: &mut Cells) -> Result<(), Wrong> {
        loop {
            if self.style.spaced && cells.len() > 0 {
                self.rest = self.rest.trim_start_matches(' ');
            }
            if self.rest.starts_with('"') {
                self.quoted(cells)?;
            } else {
                self.plain(cells)?;
            }
            cells.ends.push(cells.text.len());
            match self.rest.as_bytes().first() {
                Some(b) if *b == self.style.separator => self.rest = &self.rest[1..],
                None => return Ok(()),
                Some(_) => {
                    self.end_of_line();
                    return Ok(());
                }
            }
        }
    }

    /// A cell without quotes around it; quotes inside are ordinary characters.
    fn plain(&mut self, cells: &mut Cells) -> Result<(), Wrong> {
        let separator = self.style.separator;
        let end = self.rest.bytes().position(|b| b == separator || b == b'\n' || b == b'\r');
        let (cell, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if cell.len() > CELL_LIMIT {
            return Err((self.line, too_long()));
        }
        cells.text.push_str(cell);
        self.rest = rest;
        Ok(())
    }

    fn quoted(&mut self, cells: &mut Cells) -> Result<(), Wrong> {
        let opened = self.line;
        let start = cells.text.len();
        self.rest = &self.rest[1..];
        loop {
            let Some(end) = self.rest.find('"') else {
                let why =
                    "a quote that is opened here is never closed; close it, or write a quote as two (\"\")";
                return Err((opened, why.into()));
            };
            let (part, rest) = self.rest.split_at(end);
            cells.text.push_str(part);
            self.line += line_breaks(part);
            if cells.text.len() - start > CELL_LIMIT {
                return Err((opened, format!("{} (is a quote missing?)", too_long())));
            }
            self.rest = &rest[1..];
            if !self.rest.starts_with('"') {
                break;
            }
            cells.text.push('"');
            self.rest = &self.rest[1..];
        }
        let after = self.rest.trim_start_matches(' ');
        match after.as_bytes().first() {
            None | Some(b'\n' | b'\r') => self.rest = after,
            Some(b) if *b == self.style.separator => self.rest = after,
            Some(_) => {
                let why = "text after a closing quote; a quote inside a quoted cell is written as two (\"\")";
                return Err((self.line, why.into()));
            }
        }
        Ok(())
    }

    fn end_of_line(&mut self) {
        self.line += 1;
        self.rest = self.rest.strip_prefix("\r\n").unwrap_or_else(|| &self.rest[1..]);
    }
}

fn line_breaks(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let ends = |at: usize| bytes[at] == b'\n' || (bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
    (0..bytes.len()).filter(|at| ends(*at)).count() as u64
}

fn too_long() -> String {
    "a cell of more than 1 MiB; this is no label table".into()
}

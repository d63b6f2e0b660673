//! Lists of files: a path a line, or parted by NUL; `path label` and `path, id, id` too.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::names;
use crate::table::{self, Table};

use super::columns::looks_like_image;

/// Reads the list at `path`; `-` is standard input. The columns are `path`, `label`, `column_3` …
///
/// # Errors
/// A list that cannot be read or is empty.
pub(super) fn read(path: &Path, root: &Path) -> Result<Table> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map_err(|e| Error::read("reading the list", path, e))?;
        bytes
    } else {
        table::load(path)?
    };
    let nul = bytes.contains(&0);
    let items = items(&bytes, if nul { 0 } else { b'\n' });
    if items.is_empty() {
        return Err(Error::table(path, None, "the list is empty"));
    }
    let style = if nul { Style::Whole } else { style(&items, root) };
    let rows: Vec<(u64, Vec<&str>)> = items.iter().map(|(line, item)| (*line, cells(item, style))).collect();
    let width = rows.iter().map(|(_, cells)| cells.len()).max().unwrap_or(1);
    let columns = (1..=width).map(|n| match n {
        1 => "path".to_owned(),
        2 => "label".to_owned(),
        n => format!("column_{n}"),
    });
    let mut table = Table::new(path, columns.collect());
    for (line, cells) in rows {
        table.push(line, cells)?;
    }
    Ok(table)
}

/// The items that are not blank, with their lines; bytes outside UTF-8 are spelled as in manifests.
fn items(bytes: &[u8], end: u8) -> Vec<(u64, String)> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes
        .split(|b| *b == end)
        .zip(1..)
        .map(|(item, line)| {
            (line, if end == b'\n' { item.strip_suffix(b"\r").unwrap_or(item) } else { item })
        })
        .filter(|(_, item)| !item.trim_ascii().is_empty())
        .map(|(line, item)| match std::str::from_utf8(item) {
            Ok(text) => (line, text.to_owned()),
            Err(_) => (line, names::encode(Path::new(OsStr::from_bytes(item)))),
        })
        .collect()
}

/// How an item is cut into cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// The whole item is the path.
    Whole,
    /// Parted by this character everywhere.
    By(char),
    /// The last word is the label; the path may hold spaces.
    LastWord,
}

/// The style in which most first cells are files, or at least look like images; the whole item wins a tie.
fn style(items: &[(u64, String)], root: &Path) -> Style {
    let all = items.len();
    let sample: Vec<&str> = (0..all.min(300)).map(|at| items[at * all / all.min(300)].1.as_str()).collect();
    let is_file = |path: &str| root.join(path).is_file() || Path::new(path).is_file();
    let mut best = (Style::Whole, (0, 0));
    for style in
        [Style::Whole, Style::By('\t'), Style::By(','), Style::By(';'), Style::By(' '), Style::LastWord]
    {
        let width = cells(sample[0], style).len();
        if !items.iter().all(|(_, item)| cells(item, style).len() == width) {
            continue;
        }
        let firsts = sample.iter().map(|item| cells(item, style)[0]);
        let score = firsts.fold((0, 0), |(files, looks), first| {
            (files + usize::from(is_file(first)), looks + usize::from(looks_like_image(first)))
        });
        if score > best.1 {
            best = (style, score);
        }
    }
    best.0
}

/// The cells of an item, without spaces around them unless the whole item is the path.
fn cells(item: &str, style: Style) -> Vec<&str> {
    match style {
        Style::Whole => vec![item],
        Style::By(' ') => item.split_whitespace().collect(),
        Style::By(c) => item.split(c).map(str::trim).collect(),
        Style::LastWord => match item.trim().rsplit_once(char::is_whitespace) {
            Some((path, label)) => vec![path.trim_end(), label],
            None => vec![item.trim()],
        },
    }
}

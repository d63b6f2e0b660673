//! Sheets before anything is drawn: which image lies in which cell, and what the headers say.

use std::collections::{BTreeMap, HashSet};

use super::group::Group;
use super::layout::Shape;
use super::pairs::Found;
use crate::error::{Error, Result};
use crate::names::{plural, thousands};
use crate::source::Listing;

/// More groups than this lie on common sheets, one row each.
const MOST_SHEETS: usize = 40;
/// Sheets with several blocks are about this high at most, px.
const HIGH: u64 = 2600;
/// The largest sheet, pixels: 300 MB of memory.
const LARGEST: u64 = 100_000_000;
/// Bytes of a file's name that are taken from a class.
const NAME: usize = 100;

/// How groups lie on sheets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Sheets up to 40 groups, rows for more.
    Auto,
    /// A sheet for each group.
    Sheets,
    /// A row for each group, many rows on a sheet.
    Rows,
}

/// The grid that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Grid {
    /// How groups lie on sheets.
    pub layout: Layout,
    /// Images of a group.
    pub per_group: usize,
    /// Cells in a row; by default as many as make a square, or one row. Of pairs: pairs beside each other.
    pub columns: Option<u32>,
    /// Side of a cell, px; by default 256, in rows 160.
    pub cell: Option<u32>,
    /// Lines of caption below a cell.
    pub lines: u32,
}

/// One sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The file's name without extension: plain, and unlike all others of the run whatever their case.
    pub name: String,
    /// First line of the header.
    pub title: String,
    /// Second line of the header: what is on the sheet, without seed and data.
    pub about: String,
    /// The end of the second line: seed and data.
    pub stamp: String,
    /// Where things lie.
    pub shape: Shape,
    /// In the order of reading.
    pub blocks: Vec<Block>,
}

/// A group of cells with a title of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// In dark letters.
    pub title: String,
    /// In gray letters behind it.
    pub note: String,
    /// `columns * rows` places in the listing; none for an empty cell.
    pub cells: Vec<Option<usize>>,
}

/// A hash of which images there are, with labels, splits, groups and sizes: ten hexadecimal digits.
pub fn data_hash(listing: &Listing) -> String {
    let mut hasher = blake3::Hasher::new();
    for entry in &listing.entries {
        for text in [&entry.path, &entry.label, &entry.split, &entry.group] {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        hasher.update(&entry.bytes.to_le_bytes());
    }
    hasher.finalize().to_hex()[..10].to_owned()
}

/// The sheets of some groups and the images that were picked of each. `title` is the data set's, for sheets of many
/// groups; `stamp` is what all headers end with.
///
/// # Errors
/// [`Error::Usage`] where a sheet would be larger than any machine draws.
pub fn of_groups(
    listing: &Listing,
    groups: &[(Group, Vec<usize>)],
    grid: &Grid,
    (title, stamp): (&str, &str),
) -> Result<Vec<Page>> {
    let many = groups.len() > MOST_SHEETS;
    match grid.layout {
        Layout::Rows => rows(listing, groups, grid, (title, stamp)),
        Layout::Auto if many => rows(listing, groups, grid, (title, stamp)),
        _ => sheets(listing, groups, grid, stamp),
    }
}

fn sheets(listing: &Listing, groups: &[(Group, Vec<usize>)], grid: &Grid, stamp: &str) -> Result<Vec<Page>> {
    // One width for all sheets, a square of the largest, so that they can be leafed through; as high as a class needs.
    let wanted = wanted(grid);
    let most = most(groups, wanted);
    let square = (f64::from(most).sqrt().ceil()) as u32;
    let columns = grid.columns.unwrap_or(square.max(2)).clamp(1, wanted);
    let shape = Shape {
        cell: grid.cell.unwrap_or(256),
        lines: grid.lines,
        columns,
        rows: most.div_ceil(columns),
        across: 1,
        down: 1,
        titled: false,
        grounded: false,
    };
    check(&shape)?;
    let mut names = Names::default();
    let page = |(group, picks): &(Group, Vec<usize>)| {
        let shape = Shape { rows: (picks.len().max(1) as u32).div_ceil(columns), ..shape };
        Page {
            name: names.take(&group.name),
            title: group.name.clone(),
            about: about(listing, group, picks),
            stamp: stamp.to_owned(),
            shape,
            blocks: vec![Block { title: String::new(), note: String::new(), cells: filled(picks, &shape) }],
        }
    };
    Ok(groups.iter().map(page).collect())
}

/// Cells of a group.
fn wanted(grid: &Grid) -> u32 {
    u32::try_from(grid.per_group.max(1)).unwrap_or(u32::MAX)
}

/// The images of the largest group: at least one, at most `wanted`.
fn most(groups: &[(Group, Vec<usize>)], wanted: u32) -> u32 {
    let most = groups.iter().map(|(_, picks)| picks.len()).max().unwrap_or_default();
    u32::try_from(most).unwrap_or(u32::MAX).clamp(1, wanted)
}

fn rows(
    listing: &Listing,
    groups: &[(Group, Vec<usize>)],
    grid: &Grid,
    (title, stamp): (&str, &str),
) -> Result<Vec<Page>> {
    let wanted = wanted(grid);
    let columns = grid.columns.unwrap_or(wanted.min(16)).clamp(1, wanted);
    let mut shape = Shape {
        cell: grid.cell.unwrap_or(160),
        lines: grid.lines,
        columns,
        rows: most(groups, wanted).div_ceil(columns),
        across: 1,
        down: 1,
        titled: true,
        grounded: false,
    };
    shape.down = fitting(shape);
    check(&shape)?;
    let block = |(group, picks): &(Group, Vec<usize>)| Block {
        title: group.name.clone(),
        note: about(listing, group, picks),
        cells: filled(picks, &shape),
    };
    let blocks: Vec<Block> = groups.iter().map(block).collect();
    Ok(cut(&blocks, groups.len(), shape, "sheet", (title, stamp)))
}

/// Sheets of pairs: each with a title and two images.
///
/// # Errors
/// As for [`of_groups`].
pub fn of_pairs(pairs: &Found, grid: &Grid, name: &str, (title, stamp): (&str, &str)) -> Result<Vec<Page>> {
    let across = grid.columns.unwrap_or(2).clamp(1, 64);
    let mut shape = Shape {
        cell: grid.cell.unwrap_or(256),
        lines: grid.lines,
        columns: 2,
        rows: 1,
        across,
        down: 1,
        titled: true,
        grounded: true,
    };
    shape.down = fitting(shape);
    check(&shape)?;
    Ok(cut(&pairs.blocks, pairs.total, shape, name, (title, stamp)))
}

/// Blocks in sheets of as many as fit; the last sheet is no larger than it must be.
fn cut(blocks: &[Block], total: usize, shape: Shape, name: &str, (title, stamp): (&str, &str)) -> Vec<Page> {
    let on_page = (shape.across * shape.down) as usize;
    let mut pages = Vec::new();
    for (at, blocks) in blocks.chunks(on_page).enumerate() {
        let first = at * on_page + 1;
        let down = (blocks.len() as u32).div_ceil(shape.across);
        let across = if down == 1 { blocks.len() as u32 } else { shape.across };
        let shape = Shape { down, across, ..shape };
        let number = |n: usize| thousands(n as u64);
        pages.push(Page {
            name: format!("{name}-{:03}", at + 1),
            title: title.to_owned(),
            about: format!("{}–{} of {}", number(first), number(first + blocks.len() - 1), number(total)),
            stamp: stamp.to_owned(),
            shape,
            blocks: blocks.to_vec(),
        });
    }
    pages
}

fn fitting(shape: Shape) -> u32 {
    let fits = |down: u32| Shape { down, ..shape }.size().1 <= HIGH;
    (1..=64).rev().find(|down| fits(*down)).unwrap_or(1)
}

fn check(shape: &Shape) -> Result<()> {
    let (width, height) = shape.size();
    if width.saturating_mul(height) <= LARGEST && width.max(height) <= 65_500 {
        return Ok(());
    }
    let why =
        "a sheet may have 100 million pixels and 65,500 a side: fewer images (--per-class) or smaller cells";
    Err(Error::Usage(format!("a sheet would be {width}x{height}; {why} (--cell)")))
}

fn filled(picks: &[usize], shape: &Shape) -> Vec<Option<usize>> {
    let mut cells: Vec<Option<usize>> = picks.iter().copied().map(Some).collect();
    cells.resize((shape.columns * shape.rows) as usize, None);
    cells
}

/// "9 of 4,072 images · train 3,262, val 810".
pub fn about(listing: &Listing, group: &Group, picks: &[usize]) -> String {
    let total = group.rows.len();
    let mut text = match picks.len() == total {
        true => plural(total, "image"),
        false => format!("{} of {}", thousands(picks.len() as u64), plural(total, "image")),
    };
    let mut parts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &group.rows {
        let split = listing.entries[*row].split.as_str();
        if !split.is_empty() {
            *parts.entry(split).or_default() += 1;
        }
    }
    let mut parts: Vec<(&str, usize)> = parts.into_iter().collect();
    parts.sort_by_key(|(name, n)| (std::cmp::Reverse(*n), *name));
    if parts.len() > 6 {
        text.push_str(&format!(" · {}", plural(parts.len(), "split")));
    } else if !parts.is_empty() {
        let told: Vec<String> =
            parts.iter().map(|(name, n)| format!("{name} {}", thousands(*n as u64))).collect();
        text.push_str(&format!(" · {}", told.join(", ")));
    }
    if !group.note.is_empty() {
        text = format!("{} · {text}", group.note);
    }
    text
}

/// Names of files that no file system folds into one.
#[derive(Default)]
struct Names {
    taken: HashSet<String>,
}

impl Names {
    fn take(&mut self, name: &str) -> String {
        let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        // Nor one that a shell takes for an option or a spreadsheet for a formula.
        let start = plain.trim_start_matches(['.', ' ', '_', '-', '=', '+', '@']);
        let mut stem = start.trim_end_matches(['.', ' ', '_']).to_owned();
        while stem.len() > NAME {
            stem.pop();
        }
        if stem.is_empty() {
            stem.push_str("sheet");
        }
        let mut free = stem.clone();
        let mut number = 1;
        while !self.taken.insert(folded(&free)) {
            number += 1;
            free = format!("{stem}-{number}");
        }
        free
    }
}

fn is_plain(c: char) -> bool {
    !c.is_control() && !c.is_whitespace() && !"/\\:*?\"<>|'`$;&%#".contains(c) && shown_as_it_is(c)
}

fn shown_as_it_is(c: char) -> bool {
    crate::names::shown(c.encode_utf8(&mut [0; 4])).to_string().chars().eq([c])
}

fn folded(name: &str) -> String {
    use unicode_normalization::UnicodeNormalization;
    name.nfd().collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain_and_unlike() {
        let mut names = Names::default();
        let taken: Vec<String> = ["cat", "Cat", "a/b", "..", "a b", &"長".repeat(200), "x\u{1b}y", "cat"]
            .map(|n| names.take(n))
            .into();
        assert_eq!(taken[..5], ["cat", "Cat-2", "a_b", "sheet", "a_b-2"]);
        assert!(taken[5].len() <= NAME && taken[5].starts_with("長"));
        assert_eq!(taken[6..], ["x_y", "cat-3"]);
        assert_eq!(["-rf", "=1+1", "@x", "+"].map(|n| names.take(n)), ["rf", "1+1", "x", "sheet-2"]);
    }
}

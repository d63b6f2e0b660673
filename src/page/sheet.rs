//! Contact sheets as a page: look, press a key, save what is wrong.
//!
//! The page saves `fixes.csv` with the columns `path,action,label,was,note`: `action` is `relabel` (`label` is the new
//! one), `exclude` (junk) or `doubtful`; `was` is the label that the page showed, so that a file that grew stale is
//! noticed. Quoting is that of RFC 4180, lines end with a line feed. A path or label that begins like a formula
//! (`=cmd…`) keeps its exact spelling, for `prep apply` must find it; the page says so.

use std::io::{self, Write};

use serde::Serialize;

use super::{Page, sheet_html};

/// All that the page shows.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Sheet {
    /// Name of the data set.
    pub title: String,
    /// "9 of each class, seed 0, data 4f1c…".
    #[serde(skip)]
    pub summary: String,
    /// The command line that made the page.
    #[serde(skip)]
    pub command: String,
    /// Names the data for the marks that browsers keep: sheets with one key share their marks, whatever their seed.
    pub key: String,
    /// The data set as seen from the page's folder, as in [`super::audit::Head::root`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// All classes, for the completion; sorted as the class indices are.
    pub classes: Vec<String>,
    /// What can be done with the saved file: command lines that name `fixes.csv`.
    pub uses: Vec<String>,
    /// The sheets, in order.
    pub sections: Vec<Section>,
    /// Width of a cell, CSS px.
    pub cell: u32,
}

/// One sheet: a class, a split, a finding, a pair.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Section {
    /// Its name.
    pub title: String,
    /// "9 of 4,072, train".
    pub note: String,
    /// Cells in a row; `None` for as many as fit. 2 for pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<u32>,
    /// The images.
    pub cells: Vec<Cell>,
}

/// One image on a sheet.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Cell {
    /// Its path, spelled as in tables. One image may lie on several sheets; its mark is one.
    pub path: String,
    /// Its label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// Lines below the picture, beside its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caption: Vec<String>,
    /// Findings about it: code and text. The frame is red where there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<(String, String)>,
    /// Width of the picture, px; 0 where unknown.
    pub width: u32,
    /// Height, px.
    pub height: u32,
    /// "jpeg".
    pub format: String,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Which of the thumbnails handed to [`write()`] it is, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thumb: Option<usize>,
}

/// Writes the page. `thumbs` are files of the web's formats, best as wide as a cell.
///
/// # Errors
/// Those of `w`.
pub fn write<T: AsRef<[u8]>>(
    w: &mut dyn Write,
    sheet: &Sheet,
    thumbs: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    let page = Page {
        name: "sheet",
        template: include_str!("web/sheet.html"),
        script: concat!(include_str!("web/sheet_label.js"), include_str!("web/sheet.js")),
        title: &sheet.title,
        slots: sheet_html::slots(sheet),
    };
    page.write(w, sheet, thumbs)
}

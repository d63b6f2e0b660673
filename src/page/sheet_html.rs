//! The parts of the sheet page that need no script: its head, and which sheets there are.

use crate::names::{plural, thousands};

use super::escape::text;
use super::sheet::Sheet;

/// The content of each slot of `web/sheet.html`.
pub(super) fn slots(sheet: &Sheet) -> Vec<(&'static str, String)> {
    let cells: usize = sheet.sections.iter().map(|s| s.cells.len()).sum();
    let sections: String = sheet
        .sections
        .iter()
        .map(|s| {
            format!(
                "<li>{} <small>{} ({})</small>",
                text(&s.title),
                text(&s.note),
                thousands(s.cells.len() as u64)
            )
        })
        .collect();
    vec![
        ("summary", text(&sheet.summary)),
        ("command", text(&sheet.command)),
        ("n_cells", plural(cells, "image")),
        ("sections", sections),
    ]
}

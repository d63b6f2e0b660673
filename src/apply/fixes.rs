//! The file of fixes: columns `path`, `action`, and where they are there `label`, `was`, `note`.

use std::path::Path;

use crate::error::{Error, Result};
use crate::names::shown;
use crate::table::{self, Table};

/// What is done with a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It gets this label (several joined by `|`).
    Relabel(String),
    /// It is left out from now on.
    Exclude,
    /// It is noted that somebody doubts the label.
    Doubtful,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// The line, counted from 1.
    pub line: u64,
    /// The image, as manifests spell it.
    pub path: String,
    /// What is done.
    pub action: Action,
    /// The label that it had; none where the file does not say.
    pub was: Option<String>,
    /// What somebody noted.
    pub note: String,
}

/// Reads a file of fixes.
///
/// # Errors
/// [`Error::Table`] for a table without the columns, an action that is none, or a new label that is missing.
pub fn read(path: &Path) -> Result<Vec<Fix>> {
    let table = table::read(path)?;
    let need = |name: &str| {
        table.column(name).ok_or_else(|| {
            let there: Vec<String> = table.columns.iter().map(|c| shown(c).to_string()).collect();
            let there = there.join(", ");
            let why = format!(
                "there is no column `{name}`; fixes have the columns path, action, label, was, note, and this has {there}"
            );
            Error::table(path, None, why)
        })
    };
    let (paths, actions) = (need("path")?, need("action")?);
    let others = ["label", "was", "note"].map(|name| table.column(name));
    let all = [Some(paths), Some(actions)].into_iter().chain(others);
    all.flatten().try_for_each(|at| table.check_sole(at, false))?;
    (0..table.len()).map(|row| fix(&table, row, paths, actions, others)).collect()
}

fn fix(table: &Table, row: usize, path: usize, action: usize, others: [Option<usize>; 3]) -> Result<Fix> {
    let [label, was, note] = others.map(|column| column.map(|column| table.cell(row, column)));
    let line = table.line(row);
    let wrong = |why: String| Error::table(&table.path, Some(line), why);
    let word = table.cell(row, action).trim().to_lowercase();
    let action = match word.as_str() {
        "relabel" => {
            let label = label.unwrap_or_default();
            if label.split('|').any(|part| part.trim().is_empty()) {
                return Err(wrong("relabel needs the new label in column `label`".into()));
            }
            Action::Relabel(label.to_owned())
        }
        "exclude" => Action::Exclude,
        "doubtful" => Action::Doubtful,
        other => {
            return Err(wrong(format!("`{}` is no action: relabel, exclude or doubtful", shown(other))));
        }
    };
    let path = table.cell(row, path).to_owned();
    if path.is_empty() {
        return Err(wrong("the path is empty".into()));
    }
    let note = note.unwrap_or_default().trim().to_owned();
    Ok(Fix { line, path, action, was: was.map(str::to_owned), note })
}

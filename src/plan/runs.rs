//! The experiment ledger: a file of JSON lines, one a configuration with its predictions, and several side by side.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::out;

/// The largest ledger that is read.
const LIMIT: u64 = 64 << 20;

/// Adds one line.
///
/// # Errors
/// [`Error::Write`].
pub fn append(path: &Path, run: &Value) -> Result<()> {
    out::append_line("adding to the experiment ledger", path, &run.to_string())
}

/// The lines of a ledger.
///
/// # Errors
/// [`Error::Read`]; [`Error::Table`] with the line that is no JSON object.
pub fn read(path: &Path) -> Result<Vec<Value>> {
    let doing = "reading the experiment ledger";
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|e| Error::read(doing, path, e))?;
    file.take(LIMIT + 1).read_to_string(&mut text).map_err(|e| Error::read(doing, path, e))?;
    if text.len() as u64 > LIMIT {
        return Err(Error::table(path, None, "more than 64 MiB: this is no ledger that prep wrote"));
    }
    let mut runs = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim().is_empty() {
            continue;
        }
        let run: Value = serde_json::from_str(line)
            .map_err(|e| Error::table(path, Some(number), format!("this is no JSON line: {e}")))?;
        if !run.get("configuration").is_some_and(Value::is_object) {
            let why = "no `configuration` in it: `prep plan --log` writes such lines";
            return Err(Error::table(path, Some(number), why));
        }
        runs.push(run);
    }
    if runs.is_empty() {
        return Err(Error::table(
            path,
            None,
            "there are no runs in it; `prep plan --model … --log FILE` adds one",
        ));
    }
    Ok(runs)
}

/// Runs side by side: a row for each field, a column for each run.
pub fn side_by_side(runs: &[Value]) -> Vec<Vec<String>> {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for (column, run) in runs.iter().enumerate() {
        for section in ["configuration", "predictions"] {
            let Some(fields) = run.get(section).and_then(Value::as_object) else { continue };
            for (name, value) in fields {
                if value.is_object() || value.is_array() {
                    continue;
                }
                let at = match rows.iter().position(|(known, _)| known == name) {
                    Some(at) => at,
                    None => {
                        rows.push((name.clone(), vec!["-".into(); runs.len()]));
                        rows.len() - 1
                    }
                };
                rows[at].1[column] = cell(value);
            }
        }
    }
    rows.into_iter().map(|(name, cells)| std::iter::once(name).chain(cells).collect()).collect()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => crate::names::shown(text).to_string(),
        Value::Number(n) => n
            .as_u64()
            .map_or_else(|| format!("{:.1}", n.as_f64().unwrap_or_default()), super::ledger::grouped),
        other => other.to_string(),
    }
}

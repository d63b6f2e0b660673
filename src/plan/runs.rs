//! The experiment ledger: a file of JSON lines, one a configuration with its predictions, and several side by side.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::out;

/// The largest ledger that is read.
const LIMIT: u64 = 16 << 20;
/// The most runs that are put side by side.
pub const RUNS: usize = 1000;
/// The most fields of them, all runs together.
const FIELDS: usize = 100;
/// The most characters of a cell.
const CELL: usize = 60;

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
    // Asked before opening: a pipe would wait for ever.
    let meta = std::fs::metadata(path).map_err(|e| Error::read(doing, path, e))?;
    if !meta.is_file() {
        return Err(Error::table(path, None, "this is no file"));
    }
    let file = std::fs::File::open(path).map_err(|e| Error::read(doing, path, e))?;
    file.take(LIMIT + 1).read_to_string(&mut text).map_err(|e| Error::read(doing, path, e))?;
    if text.len() as u64 > LIMIT {
        return Err(Error::table(path, None, "more than 16 MiB: this is no ledger that prep wrote"));
    }
    let mut runs = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim().is_empty() {
            continue;
        }
        if runs.len() == RUNS {
            let why = format!("more than {RUNS} runs; `tail -n 20 FILE` takes the last ones");
            return Err(Error::table(path, Some(number), why));
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
///
/// # Errors
/// [`Error::Usage`] for more fields than prep writes, by far.
pub fn side_by_side(runs: &[Value]) -> Result<Vec<Vec<String>>> {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    let times = runs.iter().map(|run| run.get("unix_time").map_or_else(|| "-".into(), time)).collect();
    rows.push(("time".into(), times));
    for (column, run) in runs.iter().enumerate() {
        for section in ["configuration", "predictions"] {
            let Some(fields) = run.get(section).and_then(Value::as_object) else { continue };
            for (name, value) in fields {
                if value.is_object() || value.is_array() {
                    continue;
                }
                let at = match rows.iter().position(|(known, _)| known == name) {
                    Some(at) => at,
                    None if rows.len() == FIELDS => {
                        let why = format!("--compare: more than {FIELDS} fields; --json gives all of them");
                        return Err(Error::Usage(why));
                    }
                    None => {
                        rows.push((name.clone(), vec!["-".into(); runs.len()]));
                        rows.len() - 1
                    }
                };
                rows[at].1[column] = cell(value);
            }
        }
    }
    Ok(rows.into_iter().map(|(name, cells)| std::iter::once(short(&name)).chain(cells).collect()).collect())
}

/// A text of the file as a terminal may see it, and not longer than a cell.
fn short(text: &str) -> String {
    let mut short: String = text.chars().take(CELL).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    crate::names::shown(&short).to_string()
}

/// When a run was logged, in UTC: `2026-11-29 23:40`.
fn time(value: &Value) -> String {
    let Some(seconds) = value.as_u64().filter(|s| *s < 1 << 37) else { return "-".into() };
    let (days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    // Days to a date of the Gregorian calendar, in years that begin in March (H. Hinnant, "chrono-compatible low-level
    // date algorithms").
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}", minutes / 60, minutes % 60)
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => short(text),
        Value::Number(n) => n
            .as_u64()
            .map_or_else(|| format!("{:.1}", n.as_f64().unwrap_or_default()), super::ledger::grouped),
        other => other.to_string(),
    }
}

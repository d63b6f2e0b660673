//! JSON lines: one object a line. Columns are the keys in the order of their first appearance.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::error::{Error, Result};

use super::{CELL_LIMIT, Table};

/// By its extension, or by a first line that is an object.
pub(super) fn is_json_lines(path: &Path, text: &str) -> bool {
    path.extension().is_some_and(|e| ["jsonl", "ndjson"].iter().any(|j| e.eq_ignore_ascii_case(j)))
        || text.trim_start().starts_with('{')
}

/// Reads JSON lines. Lists become cells joined by `|`, objects stay JSON text, `null` is empty.
pub(super) fn parse(path: &Path, text: &str) -> Result<Table> {
    let mut columns: Vec<String> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    // The columns first: a key may turn up in the last line only.
    each(path, text, |_, object| {
        for key in object.keys() {
            if !places.contains_key(key) {
                places.insert(key.clone(), columns.len());
                columns.push(key.clone());
            }
        }
        Ok(())
    })?;
    if columns.is_empty() {
        return Err(Error::table(path, None, "the table is empty: no line has an object with keys"));
    }
    let mut table = Table::new(path, columns);
    let mut cells = vec![String::new(); table.columns.len()];
    each(path, text, |line, object| {
        cells.iter_mut().for_each(String::clear);
        for (key, value) in &object {
            if let Some(cell) = places.get(key).and_then(|at| cells.get_mut(*at)) {
                write_value(cell, value);
            }
        }
        table.push(line, cells.iter().map(String::as_str))
    })?;
    Ok(table)
}

fn each(path: &Path, text: &str, mut take: impl FnMut(u64, Map<String, Value>) -> Result<()>) -> Result<()> {
    // A lone CR is white space in JSON, so only LF can part the lines; files with CR alone are one line to JSON.
    for (line, number) in text.split('\n').zip(1..) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if line.len() > CELL_LIMIT {
            return Err(Error::table(
                path,
                Some(number),
                "a line of more than 1 MiB; this is no label table",
            ));
        }
        match serde_json::from_str(line) {
            Ok(Value::Object(object)) => take(number, object)?,
            Ok(_) => {
                let why = "not an object; JSON lines hold one {\"path\": …} a line";
                return Err(Error::table(path, Some(number), why));
            }
            Err(e) => {
                let why =
                    format!("not JSON at column {}: JSON lines hold one whole object a line", e.column());
                return Err(Error::table(path, Some(number), why));
            }
        }
    }
    Ok(())
}

fn write_value(cell: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::String(text) => cell.push_str(text),
        Value::Array(items) if items.iter().all(|i| !i.is_array() && !i.is_object()) => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    cell.push('|');
                }
                write_value(cell, item);
            }
        }
        _ => cell.push_str(&value.to_string()),
    }
}

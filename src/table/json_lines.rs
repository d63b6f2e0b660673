//! JSON lines: one object a line. Columns are the keys in the order of their first appearance.

use std::collections::HashMap;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

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
    let mut last_seen: Vec<u64> = Vec::new();
    each(path, text, |line, Object(members)| {
        for (key, _) in &members {
            match places.get(key) {
                None => {
                    places.insert(key.clone(), columns.len());
                    columns.push(key.clone());
                    last_seen.push(line);
                }
                Some(at) if last_seen[*at] == line => {
                    let key = crate::names::shown(key);
                    let why = format!("the line has two values for `{key}`: leave one of them");
                    return Err(Error::table(path, Some(line), why));
                }
                Some(at) => last_seen[*at] = line,
            }
        }
        Ok(())
    })?;
    if columns.is_empty() {
        return Err(Error::table(path, None, "the table is empty: no line has an object with keys"));
    }
    let mut table = Table::new(path, columns);
    let mut cells = vec![String::new(); table.columns.len()];
    each(path, text, |line, Object(members)| {
        cells.iter_mut().for_each(String::clear);
        for (key, value) in &members {
            if let Some(cell) = places.get(key).and_then(|at| cells.get_mut(*at)) {
                write_value(cell, value);
            }
        }
        table.push(line, cells.iter().map(String::as_str))
    })?;
    Ok(table)
}

/// An object with all its members, also those whose key is there twice.
struct Object(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Object, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Object(members))
            }
        }
        from.deserialize_map(Members)
    }
}

fn each(path: &Path, text: &str, mut take: impl FnMut(u64, Object) -> Result<()>) -> Result<()> {
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
            Ok(object) => take(number, object)?,
            Err(e) if e.is_data() => {
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

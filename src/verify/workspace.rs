//! The images of a workspace against the hashes in its manifest.

use std::io::{self, Read};
use std::path::Path;

use super::{Depth, Report, Sample, Trouble, open, unreadable};
use crate::engine::crew::Crew;
use crate::engine::progress::{Tally, Watch};
use crate::error::{Error, Result};
use crate::fault::{Fault, Status};
use crate::manifest::{Places, Row};
use crate::names;
use crate::table;

pub fn run(folder: &Path, depth: Depth, crew: &Crew<'_>, watch: &mut dyn Watch) -> Result<Report> {
    let path = folder.join("manifest.csv");
    let table = table::read(&path)?;
    let Some(places) = Places::of(&table)? else {
        return Err(Error::table(
            &path,
            None,
            "this is no manifest of prep: columns path, status, hash … are missing",
        ));
    };
    let mut rows = Vec::new();
    for i in 0..table.len() {
        let row = Row::read(&table, &places, i)?;
        // What is not usable has no copy of which anything was promised.
        if row.status == Status::Ok {
            rows.push((i, row));
        }
    }
    let mut report =
        Report { kind: "workspace", files: 1 + rows.len(), samples: rows.len(), ..Report::default() };
    if rows.iter().all(|(_, row)| row.hash.is_empty()) {
        let why = "has no hashes: `prep shrink` and `prep audit` write them";
        return Err(Error::table(&path, None, why));
    }
    let keys: Vec<&str> = rows.iter().map(|(_, row)| row.path.as_str()).collect();
    let mut tally = Tally { total: rows.len(), ..Tally::default() };
    tally.total_bytes = rows.iter().filter_map(|(_, row)| row.bytes).sum();
    crew.run(
        &keys,
        || (),
        |(), item| {
            let (at, row) = &rows[item.index];
            look(folder, *at, row, depth)
        },
        |k, fault: Fault| {
            let (at, row) = &rows[k];
            (Some(trouble(*at, row, "io", fault.to_string())), None)
        },
        |k, (trouble, read): (Option<Trouble>, Option<u64>)| {
            tally.done += 1;
            tally.bytes += rows[k].1.bytes.unwrap_or(0);
            tally.bad += usize::from(trouble.is_some());
            report.read += usize::from(read.is_some());
            report.bytes += read.unwrap_or(0);
            report.troubles.extend(trouble);
            watch.step(&tally);
            Ok(())
        },
    )?;
    Ok(report)
}

fn trouble(at: usize, row: &Row, code: &'static str, detail: impl Into<String>) -> Trouble {
    let sample = Sample {
        split: row.split.clone(),
        sample: at,
        row: at as u32,
        path: if row.source.path.is_empty() { row.path.clone() } else { row.source.path.clone() },
        label: row.label.clone(),
    };
    Trouble { file: row.path.clone(), code, detail: detail.into(), sample: Some(sample) }
}

/// What is wrong with an image, and how many bytes of it were read.
fn look(folder: &Path, at: usize, row: &Row, depth: Depth) -> (Option<Trouble>, Option<u64>) {
    let unread = |e: &io::Error| {
        let (code, why) = unreadable(e);
        (Some(trouble(at, row, code, why)), None)
    };
    let path = folder.join(names::decode(&row.path));
    let mut file = match open(&path) {
        Ok(file) => file,
        Err(e) => return unread(&e),
    };
    let len = match file.metadata() {
        Ok(meta) => meta.len(),
        Err(e) => return unread(&e),
    };
    if let Some(bytes) = row.bytes.filter(|bytes| *bytes != len) {
        return (Some(trouble(at, row, "size", format!("{len} bytes, {bytes} were written"))), None);
    }
    if row.hash.is_empty() || !depth.takes(&row.path) {
        return (None, None);
    }
    match hash(&mut file) {
        Err(e) => unread(&e),
        // Some commands write half of the digits, some all.
        Ok(hash) if row.hash.len() >= 32 && hash.starts_with(&row.hash) => (None, Some(len)),
        Ok(_) => (Some(trouble(at, row, "hash", "its bytes are not those that were written")), Some(len)),
    }
}

fn hash(file: &mut impl Read) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finalize().to_hex().to_string()),
            Ok(n) => hasher.update(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
    }
}

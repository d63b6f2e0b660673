//! `prep undo`: the last change of a manifest is taken back.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::args::Global;
use super::terminal::{Terminal, columns, near};
use crate::error::{Error, Result};
use crate::home::history::{self, Change};
use crate::names::{plural, shown};

/// The JSON document's version.
const SCHEMA: u32 = 1;

/// Takes back the last change that prep made to a manifest: a split, weights, statistics, exclusions, applied fixes.
/// Files of images are never touched.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The folder, the table or the manifest that was changed
    #[arg(value_name = "INPUT", default_value = ".", help_heading = "Arguments")]
    pub path: PathBuf,
    /// Show the changes that can be taken back, the last one first
    #[arg(long)]
    list: bool,
    /// Also where the manifest was changed by hand since
    #[arg(long, conflicts_with = "list")]
    force: bool,
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// Nothing to take back, or a manifest that was changed since.
pub fn run(args: &Args, global: &Global, terminal: &Terminal) -> Result<u8> {
    let manifest = manifest_of(&args.path);
    let place = shown(&near(&manifest)).to_string();
    if args.list {
        let changes = history::changes(&manifest);
        if changes.is_empty() && !args.path.exists() {
            let why = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(Error::read("looking for its history", &args.path, why));
        }
        let text = match (global.json, changes.is_empty()) {
            (true, _) => {
                document(&manifest, json!({"changes": changes.iter().rev().map(told).collect::<Vec<_>>()}))
            }
            (false, true) => format!("No change of {place} is known.\n"),
            (false, false) => {
                let rows: Vec<Vec<String>> = changes.iter().rev().map(line).collect();
                columns(&rows, &[false, true, false])
            }
        };
        return terminal.result(&text).map(|()| 0);
    }
    let change = match global.dry_run {
        true => history::last(&manifest, args.force)?,
        false => history::undo(&manifest, args.force)?,
    };
    if global.json {
        let taken = json!({"dry_run": global.dry_run, "undone": told(&change)});
        return terminal.result(&document(&manifest, taken)).map(|()| 0);
    }
    let command = shown(&change.command);
    let what = if change.existed { "is as it was before" } else { "is gone: there was none before" };
    terminal.say(&match global.dry_run {
        true => format!("Would take back `prep {command}` in {place}"),
        false => format!("{place} {what} `prep {command}`"),
    });
    Ok(0)
}

fn document(manifest: &Path, more: Value) -> String {
    let mut document = json!({"schema": SCHEMA, "command": "undo", "manifest": manifest.to_string_lossy()});
    if let (Some(all), Value::Object(more)) = (document.as_object_mut(), more) {
        all.extend(more);
    }
    format!("{document:#}\n")
}

fn told(change: &Change) -> Value {
    json!({"command": change.command, "time": change.time.map(utc), "made_the_manifest": !change.existed})
}

fn line(change: &Change) -> Vec<String> {
    let first = if change.existed { "" } else { "made the manifest" };
    let when = change
        .time
        .map(|time| format!("{}  {}", utc(time).replace('T', " ").replace('Z', " UTC"), ago(time)));
    vec![format!("prep {}", shown(&change.command)), when.unwrap_or_default(), first.into()]
}

/// How long ago `time` was, in seconds since 1970.
fn ago(time: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let units = [("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)];
    let past = now.saturating_sub(time);
    units
        .iter()
        .find(|(_, length)| past >= *length)
        .map_or("just now".into(), |(unit, length)| format!("{} ago", plural((past / length) as usize, unit)))
}

/// Seconds since 1970 as 2026-11-30T01:59:07Z: days are counted from the first of March of the year 0, so that the leap
/// day is the last of its year, and in 146,097 days the calendar repeats.
fn utc(time: u64) -> String {
    let days = time / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + next;
    let (hour, minute, second) = (time / 3600 % 24, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// What to type after `prep undo` for the manifest that a command on `input` has written: the input where that means
/// the same manifest.
pub fn word(input: &Path, manifest: &Path) -> PathBuf {
    let real = |path: &Path| crate::out::place::real_of_planned(path);
    if real(&manifest_of(input)) == real(manifest) { input.to_owned() } else { near(manifest) }
}

/// The manifest of an input that has a history: its own, or the one beside a table of the user's.
fn manifest_of(input: &Path) -> PathBuf {
    let own = if input.is_dir() { input.join("manifest.csv") } else { input.to_owned() };
    let beside = own.with_extension("manifest.csv");
    if history::changes(&own).is_empty() && !history::changes(&beside).is_empty() { beside } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let days = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (time, text) in days {
            assert_eq!(utc(time), text);
        }
    }
}

//! `prep verify`: what is held against what, and what is said of it.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::args::Global;
use super::run;
use super::terminal::{Terminal, bytes, near, plural, thousands};
use super::watch::watcher;
use crate::engine::cancel::Cancel;
use crate::error::{Error, Result};
use crate::names::shown;
use crate::verify::{self, Depth, Repaired, Report, Trouble};

/// The JSON document's version.
const SCHEMA: u32 = 1;
/// Troubles that are printed; all of them with -v or --json.
const FIRST: usize = 20;

/// Holds a cache of `prep pack` against its manifest, or the images of a workspace against theirs. Tables and sizes are
/// always checked; --read-data reads every byte, and names the row, the source and the label of whatever is damaged.
/// Exit code 1 when something is.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The cache or the workspace
    #[arg(default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
    /// Read every byte
    #[arg(long)]
    read_data: bool,
    /// Read this share of the samples, drawn by --seed: another seed reads others
    #[arg(long, value_name = "P%", value_parser = percent, conflicts_with = "read_data")]
    read_data_subset: Option<f64>,
    /// Make the index and the tables of a cache anew from its shards
    #[arg(long, conflicts_with_all = ["read_data", "read_data_subset"])]
    repair_index: bool,
}

fn percent(text: &str) -> std::result::Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let number = number.filter(|n| *n > 0.0 && *n <= 100.0);
    number.map(|n| n / 100.0).ok_or_else(|| "a share above 0 and up to 100%, as in 5%".into())
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// What ends the run.
pub fn run(args: &Args, global: &Global, terminal: &Terminal) -> Result<u8> {
    if args.repair_index {
        if global.dry_run {
            let why = "--repair-index writes and --dry-run does not: leave one out, or verify without both";
            return Err(Error::Usage(why.into()));
        }
        return tell_repair(args, global, terminal, &verify::repair(&args.dir)?);
    }
    let depth = match args.read_data_subset {
        Some(share) => Depth::Share(share, global.seed),
        None if args.read_data => Depth::All,
        None => Depth::Sizes,
    };
    let cancel = Cancel::on_signals();
    let crew = run::crew(global, &cancel, None)?;
    let mut watch = watcher(global);
    let report = verify::run(&args.dir, depth, &crew, watch.as_mut())?;
    if global.json {
        let document = json!({
            "schema": SCHEMA, "command": "verify", "kind": report.kind, "folder": args.dir.to_string_lossy(),
            "files": report.files, "samples": report.samples, "samples_read": report.read,
            "bytes_read": report.bytes, "troubles": troubles_json(&report.troubles),
        });
        terminal.result(&format!("{document:#}\n"))?;
    } else if !(terminal.is_quiet() && report.troubles.is_empty()) {
        terminal.result(&text(&report, depth, args, terminal.verbose > 0))?;
    }
    Ok(u8::from(!report.troubles.is_empty()))
}

fn text(report: &Report, depth: Depth, args: &Args, all: bool) -> String {
    let noun = if report.kind == "cache" { "sample" } else { "image" };
    let read = match depth {
        Depth::Sizes => "sizes and tables alone (--read-data reads the rest)".to_owned(),
        _ => format!("{} of them read, {}", thousands(report.read as u64), bytes(report.bytes)),
    };
    let what = if report.kind == "cache" { "cache" } else { "workspace" };
    let head = format!(
        "{}: {what} of {} in {}, {read}",
        shown(&near(&args.dir)),
        plural(report.samples, noun),
        plural(report.files, "file")
    );
    if report.troubles.is_empty() {
        return format!("{head}: all whole\n");
    }
    let mut out = format!("{head}\n{} found:\n", plural(report.troubles.len(), "trouble"));
    out.push_str(&troubles_text(&report.troubles, all));
    if report.kind == "cache" && report.troubles.iter().all(|t| is_table(&t.file)) {
        out.push_str("Next: prep verify --repair-index makes tables and index anew from the shards\n");
    } else if report.kind == "cache" {
        out.push_str("Next: the `prep pack` that made it with --resume makes the damaged shards anew\n");
    } else {
        out.push_str("Next: the `prep shrink` that made it makes anew what is missing or was changed\n");
    }
    out
}

/// Is the file one that can be made anew from the shards?
fn is_table(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or_default();
    let kept = name.starts_with("images-") || name.starts_with("records-") || !file.contains('/');
    name.is_empty()
        || file == crate::shards::READER
        || (!kept && [".npy", ".csv", ".json", ".idx"].iter().any(|end| name.ends_with(end)))
}

fn troubles_text(troubles: &[Trouble], all: bool) -> String {
    let mut out = String::new();
    let shown_now = if all { troubles.len() } else { troubles.len().min(FIRST) };
    for trouble in &troubles[..shown_now] {
        out.push_str(&format!("  {} {}: {}\n", trouble.code, shown(&trouble.file), shown(&trouble.detail)));
        if let Some(sample) = &trouble.sample {
            out.push_str(&format!(
                "      row {}, sample {} of {}, source {}, label {}\n",
                sample.row,
                sample.sample,
                if sample.split.is_empty() { "the table".into() } else { shown(&sample.split).to_string() },
                shown(&sample.path),
                if sample.label.is_empty() { "(none)".into() } else { shown(&sample.label).to_string() },
            ));
        }
    }
    if shown_now < troubles.len() {
        out.push_str(&format!("  and {} more (-v lists them)\n", troubles.len() - shown_now));
    }
    out
}

fn troubles_json(troubles: &[Trouble]) -> Value {
    let one = |t: &Trouble| {
        let sample = t.sample.as_ref().map(|s| {
            json!({
                "split": s.split, "sample": s.sample, "row": s.row, "source": s.path, "label": s.label,
            })
        });
        json!({"code": t.code, "file": t.file, "detail": t.detail, "sample": sample})
    };
    troubles.iter().map(one).collect()
}

fn tell_repair(args: &Args, global: &Global, terminal: &Terminal, repaired: &Repaired) -> Result<u8> {
    if global.json {
        let document = json!({
            "schema": SCHEMA, "command": "verify", "repair": true, "folder": args.dir.to_string_lossy(),
            "changed": repaired.changed, "troubles": troubles_json(&repaired.troubles),
        });
        terminal.result(&format!("{document:#}\n"))?;
    } else if repaired.troubles.is_empty() {
        let mut text = format!("{}: ", shown(&near(&args.dir)));
        text.push_str(&match repaired.changed.as_slice() {
            [] => "all shards are whole, and index and tables were right\n".to_owned(),
            changed => format!(
                "all shards are whole; made anew: {}\n",
                changed.iter().map(|name| shown(name).to_string()).collect::<Vec<_>>().join(", ")
            ),
        });
        terminal.result(&text)?;
    } else {
        let mut text = "nothing was changed, since shards are damaged:\n".to_owned();
        text.push_str(&troubles_text(&repaired.troubles, terminal.verbose > 0));
        text.push_str("Next: the `prep pack` that made it with --resume makes these shards anew\n");
        terminal.result(&text)?;
    }
    Ok(u8::from(!repaired.troubles.is_empty()))
}

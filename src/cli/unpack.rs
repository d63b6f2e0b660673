//! `prep unpack`: options, and what is said at the end.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::args::Global;
use super::run;
use super::terminal::{Terminal, bytes, near, plural};
use super::watch::watcher;
use crate::engine::cancel::Cancel;
use crate::error::Result;
use crate::names::shown;
use crate::shards::Cache;
use crate::unpack::{self, Report};

/// The JSON document's version.
const SCHEMA: u32 = 1;

/// Gives the files of a cache back under the names of their sources: JPEGs bit for bit as they were packed, pixels as
/// PNG, with a table of labels. Samples that are not whole are named and left out; exit code 1 when there are some.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The cache
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// The folder to make; it must be new or empty, or left by the same command that was stopped
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Only this part of the split
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// What ends the run.
pub fn run(args: &Args, global: &Global, terminal: &Terminal) -> Result<u8> {
    let cache = Cache::open(&args.dir)?;
    if !cache.sealed {
        terminal.warn(
            "manifest.json was altered after it was written: `prep verify` tells whether the rest is whole",
        );
    }
    if global.dry_run {
        let (parts, begun) = unpack::check(&cache, args.split.as_deref(), &args.out)?;
        let samples = parts.iter().map(|split| split.rows).sum();
        let again = if begun { ", where a run was stopped" } else { "" };
        let text = format!("would write {} to {}{again}\n", plural(samples, "file"), shown(&near(&args.out)));
        let document = json!({
            "schema": SCHEMA, "command": "unpack", "dry_run": true, "folder": args.out.to_string_lossy(),
            "files": samples,
        });
        terminal.result(&if global.json { format!("{document:#}\n") } else { text })?;
        return Ok(0);
    }
    let cancel = Cancel::on_signals();
    let crew = run::crew(global, &cancel, None)?;
    let mut watch = watcher(global);
    let report = unpack::run(&cache, args.split.as_deref(), &args.out, &crew, watch.as_mut())?;
    if global.json {
        let damaged: Vec<Value> = report
            .damaged
            .iter()
            .map(|(split, sample, path, why)| json!({"split": split, "sample": sample, "source": path, "why": why}))
            .collect();
        let document = json!({
            "schema": SCHEMA, "command": "unpack", "folder": args.out.to_string_lossy(), "files": report.files,
            "bytes": report.bytes, "damaged": damaged,
        });
        terminal.result(&format!("{document:#}\n"))?;
    } else if !terminal.is_quiet() || !report.damaged.is_empty() {
        terminal.result(&text(&report))?;
    }
    Ok(u8::from(!report.damaged.is_empty()))
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "{}: {}, {}; their labels are in {}\n",
        shown(&near(&report.folder)),
        plural(report.files, "file"),
        bytes(report.bytes),
        shown(unpack::LABELS)
    );
    if !report.damaged.is_empty() {
        text.push_str(&format!("{} not whole and not written:\n", plural(report.damaged.len(), "sample")));
    }
    for (split, sample, path, why) in report.damaged.iter().take(20) {
        text.push_str(&format!("  {} {sample}: {}: {}\n", shown(split), shown(path), shown(why)));
    }
    text
}

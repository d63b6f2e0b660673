//! `prep cache`: what is kept of pictures between runs.

use super::args::{Global, Input};
use super::run;
use super::terminal::{Terminal, bytes, columns, plural, thousands};
use crate::error::{Error, Result};
use crate::facts;
use crate::names::shown;

/// What prep knows of pictures that it has decoded is kept in a cache, so that the next command need not decode them
/// again. It can be removed at any time.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    pub input: Input,
    /// Show where the cache lies and what is in it (the default)
    #[arg(long)]
    info: bool,
    /// Remove all of it
    #[arg(long, conflicts_with = "info")]
    clear: bool,
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// A cache that cannot be read or removed.
pub fn run(args: &Args, global: &Global, terminal: &Terminal) -> Result<u8> {
    let home = run::cache_home(global).ok_or_else(|| {
        Error::Usage("there is no home folder for a cache; --cache-dir names a place".into())
    })?;
    if args.clear && global.dry_run {
        let caches = facts::info(&home)?;
        let size = bytes(caches.iter().map(|c| c.bytes).sum());
        terminal.say(&format!(
            "Would remove {} ({size}) from {}",
            plural(caches.len(), "cache"),
            shown(&home)
        ));
        return Ok(0);
    }
    if args.clear {
        let (caches, size) = facts::clear(&home)?;
        terminal.say(&format!("Removed {} ({}) from {}", plural(caches, "cache"), bytes(size), shown(&home)));
        return Ok(0);
    }
    let caches = facts::info(&home)?;
    if global.json {
        let sets: Vec<_> = caches
            .iter()
            .map(|c| serde_json::json!({"root": c.root, "images": c.images, "bytes": c.bytes}))
            .collect();
        let document = serde_json::json!({"schema": 1, "command": "cache", "folder": home, "sets": sets});
        return terminal.result(&format!("{document:#}\n")).map(|()| 0);
    }
    let total = caches.iter().map(|c| c.bytes).sum();
    let mut text = format!("{}: {}, {}\n", shown(&home), plural(caches.len(), "data set"), bytes(total));
    let rows: Vec<Vec<String>> = caches
        .iter()
        .map(|c| {
            vec![thousands(c.images as u64), "images".into(), bytes(c.bytes), shown(&c.root).to_string()]
        })
        .collect();
    text.push_str(&columns(&rows, &[true, false, true, false]));
    terminal.result(&text).map(|()| 0)
}

//! `prep undo`: the last change of a manifest is taken back.

use std::path::{Path, PathBuf};

use super::args::{Global, Input};
use super::terminal::{Terminal, near};
use crate::error::Result;
use crate::home::history::{self, Change};
use crate::names::shown;

/// Takes back the last change that prep made to a manifest: a split, weights, statistics, exclusions, applied fixes.
/// Files of images are never touched.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    pub input: Input,
    /// Show the changes that can be taken back, the last one first
    #[arg(long)]
    list: bool,
    /// Also where the manifest was changed by hand since
    #[arg(long)]
    force: bool,
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// Nothing to take back, or a manifest that was changed since.
pub fn run(args: &Args, global: &Global, terminal: &Terminal) -> Result<u8> {
    let manifest = manifest_of(&args.input.input);
    let place = shown(&near(&manifest)).to_string();
    if args.list {
        let lines: Vec<String> = history::changes(&manifest).iter().rev().map(line).collect();
        let text =
            if lines.is_empty() { format!("No change of {place} is known.\n") } else { lines.concat() };
        return terminal.result(&text).map(|()| 0);
    }
    if global.dry_run {
        let change = history::last(&manifest, args.force)?;
        terminal.say(&format!("Would take back `prep {}` in {place}", shown(&change.command)));
        return Ok(0);
    }
    let change = history::undo(&manifest, args.force)?;
    let what = if change.existed { "is as it was before" } else { "is gone: there was none before" };
    terminal.say(&format!("{place} {what} `prep {}`", shown(&change.command)));
    Ok(0)
}

fn line(change: &Change) -> String {
    let first = if change.existed { "" } else { " (made the manifest)" };
    format!("prep {}{first}\n", shown(&change.command))
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

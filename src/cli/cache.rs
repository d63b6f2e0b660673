//! `prep cache`: what is kept of pictures between runs.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::args::Global;
use super::run;
use super::terminal::{Terminal, bytes, columns, plural, thousands};
use crate::error::{Error, Result};
use crate::facts;
use crate::manifest::Sidecar;
use crate::names::{self, shown};
use crate::out::place;
use crate::plan::cache as samples;
use crate::source::SAMPLES;

/// The JSON document's version.
const SCHEMA: u32 = 1;

/// What prep knows of pictures that it has decoded, and how fast `prep plan` saw them decoded, is kept in a cache, so
/// that the next command need not decode them again. It can be removed at any time.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Only what is kept of this data set, which may be gone [default: of all]
    #[arg(value_name = "INPUT", help_heading = "Arguments")]
    pub path: Option<PathBuf>,
    /// Show where the cache lies and what is in it (the default)
    #[arg(long)]
    info: bool,
    /// Remove it
    #[arg(long, conflicts_with = "info")]
    clear: bool,
}

/// What is kept, of all sets or of one.
struct Kept {
    facts: Vec<facts::Info>,
    samples: Vec<samples::Info>,
}

impl Kept {
    fn bytes(&self) -> u64 {
        self.facts.iter().map(|c| c.bytes).sum::<u64>() + self.samples.iter().map(|s| s.bytes).sum::<u64>()
    }

    /// "2 caches and 1 sample".
    fn sentence(&self) -> String {
        let samples = match self.samples.len() {
            0 => String::new(),
            n => format!(" and {} of prep plan", plural(n, "sample")),
        };
        format!("{}{samples} ({})", plural(self.facts.len(), "cache"), bytes(self.bytes()))
    }
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// A cache that cannot be read or removed.
pub fn run(args: &Args, global: &Global, terminal: &Terminal) -> Result<u8> {
    if args.clear && !std::env::args_os().any(|word| word == "--clear") {
        // A prep.toml comes with a data set, perhaps from somebody else.
        let why = "clear is typed, and taken neither from prep.toml nor from a variable";
        return Err(Error::Usage(why.into()));
    }
    let home = run::cache_home(global).ok_or_else(|| {
        Error::Usage("there is no home folder for a cache; --cache-dir names a place".into())
    })?;
    let plans = home.with_file_name(SAMPLES);
    let mut kept = Kept { facts: facts::info(&home)?, samples: samples::info(&plans)? };
    if let Some(input) = &args.path {
        let roots = roots(input);
        let is_asked = |root: &str| roots.iter().any(|asked| asked.display().to_string() == root);
        kept.facts.retain(|cache| is_asked(&cache.root));
        kept.samples.retain(|sample| is_asked(&sample.root));
        if kept.facts.is_empty() && kept.samples.is_empty() && !input.exists() {
            let why = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(Error::read("looking for what is kept of it", input, why));
        }
    }
    if !args.clear {
        let text = if global.json { document(&home, &kept, json!({})) } else { text(&home, &kept) };
        return terminal.result(&text).map(|()| 0);
    }
    if !global.dry_run {
        facts::clear(&home, &kept.facts)?;
        samples::clear(&plans, &kept.samples)?;
    }
    if global.json {
        let cleared = json!({"cleared": true, "dry_run": global.dry_run});
        return terminal.result(&document(&home, &kept, cleared)).map(|()| 0);
    }
    let verb = if global.dry_run { "Would remove" } else { "Removed" };
    terminal.say(&format!("{verb} {} from {}", kept.sentence(), shown(home.parent().unwrap_or(&home))));
    Ok(0)
}

/// The folders that an input's caches can be those of: its own, and the one in which a manifest says that its images
/// are.
fn roots(input: &Path) -> Vec<PathBuf> {
    let is_file = input.is_file();
    let folder = match (is_file, input.parent()) {
        (true, Some(parent)) if !parent.as_os_str().is_empty() => parent,
        (true, _) => Path::new("."),
        (false, _) => input,
    };
    let manifest = if is_file { input.to_owned() } else { input.join("manifest.csv") };
    // What is wrong with a manifest is no reason to keep a cache.
    let away = Sidecar::read(&manifest).ok().flatten().and_then(|sidecar| sidecar.root);
    let away = away.map(|root| place::real_of_planned(&folder.join(names::decode(&root))));
    [place::real_of_planned(folder)].into_iter().chain(away).collect()
}

fn document(home: &Path, kept: &Kept, more: Value) -> String {
    let sets: Vec<Value> =
        kept.facts.iter().map(|c| json!({"root": c.root, "images": c.images, "bytes": c.bytes})).collect();
    let samples: Vec<Value> = kept
        .samples
        .iter()
        .map(|s| json!({"root": s.root, "pictures": s.pictures, "bytes": s.bytes}))
        .collect();
    let mut document = json!({
        "schema": SCHEMA, "command": "cache", "folder": home.to_string_lossy(), "bytes": kept.bytes(), "sets": sets,
        "samples": samples,
    });
    if let (Some(all), Value::Object(more)) = (document.as_object_mut(), more) {
        all.extend(more);
    }
    format!("{document:#}\n")
}

fn text(home: &Path, kept: &Kept) -> String {
    let samples = match kept.samples.len() {
        0 => String::new(),
        n => format!(", {} of prep plan", plural(n, "sample")),
    };
    let sets = plural(kept.facts.len(), "data set");
    let mut text = format!("{}: {sets}{samples}, {}\n", shown(home), bytes(kept.bytes()));
    let line = |n: usize, what: &str, size: u64, root: &str| {
        let gone = if root.is_empty() || Path::new(root).exists() { "" } else { " (no longer there)" };
        vec![thousands(n as u64), what.to_owned(), bytes(size), format!("{}{gone}", shown(root))]
    };
    let facts = kept.facts.iter().map(|c| line(c.images, "images", c.bytes, &c.root));
    let samples = kept.samples.iter().map(|s| line(s.pictures, "sampled", s.bytes, &s.root));
    let rows: Vec<Vec<String>> = facts.chain(samples).collect();
    text.push_str(&columns(&rows, &[true, false, true, false]));
    text
}

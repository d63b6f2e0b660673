//! `prep pack`: options, and what is said at the end.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::args::{self, Coding, Global, Input, dimensions, side};
use super::run;
use super::terminal::{Terminal, bytes, columns, near, plural, shell_word, thousands};
use super::watch::watcher;
use crate::engine::cancel::Cancel;
use crate::engine::flight::Flight;
use crate::engine::pipe::Damage;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fault::Cause;
use crate::home::Home;
use crate::names::{encode, shown};
use crate::out::{Claim, place};
use crate::pack::frame::{Fit, Frame};
use crate::pack::{self, Known, Options, Order, Report};
use crate::shards::{Form, Layout, Store};
use crate::source::{Kind, Listing};

/// The JSON document's version.
const SCHEMA: u32 = 1;

/// Packs images into shards for loaders, decoding each once. The default layout is at once a MosaicML MDS set, a LitData
/// set and an aligned NumPy array; manifest.json is written last, and every payload has a checksum. Rows that were
/// excluded or do not decode stay out, with their reasons in left_out.csv. Without a size, samples are JPEGs that every
/// GPU decoder takes (baseline, 8 bit, upright); with --size they are pixels.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    pub input: Input,
    /// The cache to make; by default INPUT-shards beside INPUT, or shards in a workspace
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// mds: MosaicML, LitData and NumPy in one; wds: tar for WebDataset and others; npy; beton: FFCV
    #[arg(long, value_enum, default_value = "mds", value_name = "NAME")]
    layout: LayoutName,
    /// Samples as JPEG files or as pixels [default: raw with --size, else jpeg]
    #[arg(long, value_enum, value_name = "WHAT")]
    store: Option<StoreName>,
    /// Every sample has this size, as in 224x224 (height first)
    #[arg(long, value_name = "HxW", value_parser = dimensions)]
    size: Option<(u32, u32)>,
    /// How pictures of another shape get this size: cut evenly, with black around, or with their aspect ratio changed
    #[arg(long, value_enum, default_value = "crop", value_name = "HOW")]
    fit: FitName,
    /// Shrink on the way, to this shorter side; with --size, cut from that
    #[arg(long, value_name = "PX", value_parser = side)]
    short_edge: Option<u32>,
    #[command(flatten)]
    coding: Coding,
    /// A shard is full at this size, from 64k to 3.5G
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = shard_size)]
    shard_size: u64,
    /// Order of the samples: by lot from --seed, so that reading in order gives mixed batches; or that of the input
    #[arg(long, value_enum, default_value = "shuffled", value_name = "HOW")]
    order: OrderName,
    /// Of an input with folds: fold K becomes the part `val` and all others `train`; without it each fold is a part
    #[arg(long, value_name = "K", conflicts_with = "split")]
    fold: Option<u8>,
    /// Complete a finished cache, or insist on continuing a run that was stopped: shards whose sources and bytes are
    /// the same stay
    #[arg(long)]
    resume: bool,
    /// Replace what is there
    #[arg(long)]
    force: bool,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum LayoutName {
    Mds,
    Wds,
    Npy,
    Beton,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum StoreName {
    Jpeg,
    Raw,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum FitName {
    Crop,
    Pad,
    Stretch,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum OrderName {
    Shuffled,
    Source,
}

fn shard_size(text: &str) -> std::result::Result<u64, String> {
    args::size(text).and_then(|n| {
        let fits = (64_000..=3_500_000_000).contains(&n);
        if fits { Ok(n) } else { Err("a size from 64k to 3.5G, as in 64M".into()) }
    })
}

impl Args {
    fn options(&self, seed: u64) -> Result<Options> {
        let layout = match self.layout {
            LayoutName::Mds => Layout::Mds,
            LayoutName::Wds => Layout::Wds,
            LayoutName::Npy => Layout::Npy,
            LayoutName::Beton => Layout::Beton,
        };
        let store = match self.store {
            Some(StoreName::Jpeg) => Store::Jpeg,
            Some(StoreName::Raw) => Store::Raw,
            None if self.size.is_some() || layout == Layout::Npy => Store::Raw,
            None => Store::Jpeg,
        };
        let fixed = match self.size {
            None => None,
            Some((h, w)) => u16::try_from(h).ok().zip(u16::try_from(w).ok()),
        };
        if layout == Layout::Npy && (fixed.is_none() || store == Store::Jpeg) {
            let why = "--layout npy holds pixels of one size: give it with --size, as in --size 224x224";
            return Err(Error::Usage(why.into()));
        }
        let form = Form { layout, store, fixed, shard_size: self.shard_size };
        let fit = match self.fit {
            FitName::Crop => Fit::Crop,
            FitName::Pad => Fit::Pad,
            FitName::Stretch => Fit::Stretch,
        };
        if self.size.is_some() && self.short_edge.is_some() && fit != Fit::Crop {
            let why =
                "--short-edge with --size cuts from the shrunken picture: it goes with --fit crop alone";
            return Err(Error::Usage(why.into()));
        }
        Ok(Options {
            form,
            frame: Frame {
                size: self.size.map(|(h, w)| (w, h)),
                fit,
                short_edge: self.short_edge,
                filter: self.coding.filter.into(),
            },
            quality: self.coding.quality,
            chroma: self.coding.chroma.into(),
            contract: self.coding.contract(true),
            order: match self.order {
                OrderName::Shuffled => Order::Shuffled,
                OrderName::Source => Order::Source,
            },
            seed,
            resume: self.resume,
            force: self.force,
            waiting: 0,
        })
    }

    /// Where the cache goes.
    fn folder(&self, listing: &Listing) -> Result<PathBuf> {
        let input = &self.input.input;
        let inside = listing.kind == Kind::Manifest && input.is_dir() && input.join(Claim::CORNER).is_dir();
        let folder = match &self.out {
            Some(folder) => folder.clone(),
            // The folder that a workspace has for it.
            None if inside => return Ok(input.join("shards")),
            None => place::beside(input, "-shards")?,
        };
        let own = inside && place::real_of_planned(&folder) == place::real_of_planned(&input.join("shards"));
        if !own {
            place::check_apart(&listing.root, &folder)?;
        }
        Ok(folder)
    }
}

/// Makes parts of the folds that `prep split --kfold` recorded: `fold0`, `fold1` …, beside `train` for what all folds
/// train on; or `train` and `val`, where one of them is asked for. Rows without a fold keep the part that they have. True
/// where parts of folds were made that nobody asked for.
fn part_by_folds(listing: &mut Listing, home: &Home, asked: Option<u8>) -> Result<bool> {
    if let Some(fold) = asked {
        // Says which folds there are.
        home.training(listing, None, Some(fold))?;
    }
    if !home.has_folds(listing) {
        return Ok(false);
    }
    let folds = home.folds(listing)?;
    let taken = |entry: &Entry, fold: &String| fold.is_empty() && entry.split == "val";
    if asked.is_some() && listing.entries.iter().zip(&folds).any(|(entry, fold)| taken(entry, fold)) {
        let why = "--fold makes a part `val`, and the split has one already beside its folds: pack without --fold, \
                   then each fold is a part of its own";
        return Err(Error::Usage(why.into()));
    }
    for (entry, text) in listing.entries.iter_mut().zip(folds) {
        let fold = text.parse::<u8>().ok();
        match (fold, asked) {
            (None, _) if text.is_empty() => {}
            (Some(fold), None) => entry.split = format!("fold{fold}"),
            (Some(fold), Some(asked)) if fold == asked => entry.split = "val".into(),
            _ => entry.split = "train".into(),
        }
    }
    Ok(asked.is_none())
}

/// What the manifest of the input knows.
fn known(listing: &Listing, home: &Home, folder: &Path) -> Result<Known> {
    let mut known = Known { source: encode(&place::relative(folder, &listing.root)), ..Known::default() };
    if let Some(sidecar) = home.sidecar() {
        known.stats = sidecar.stats.clone();
        // The constants of a crop are not those of the whole pictures.
        if sidecar.stats.get("at").is_some_and(|at| !at.is_null()) {
            known.stats = Value::Null;
        }
        let split = sidecar.options.get("split");
        let groups = split
            .and_then(|split| split.get("group_by"))
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","));
        known.split = (sidecar.seed.filter(|_| sidecar.scheme.is_some()), groups.filter(|g| !g.is_empty()));
    }
    if listing.kind == Kind::Manifest {
        for at in 0..listing.entries.len() {
            let row = home.row(listing, at)?.unwrap_or_default();
            // Only what shrink wrote has a source: prep itself has encoded it.
            known.proven.push(if row.source.hash.is_empty() { String::new() } else { row.hash });
        }
    }
    Ok(known)
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// What ends the run.
pub fn run(args: &Args, global: &Global, terminal: &Terminal, flight: Option<&Flight>) -> Result<u8> {
    let begun = Instant::now();
    let mut options = args.options(global.seed)?;
    let cancel = Cancel::on_signals();
    let (mut listing, home) = run::list_at_home(&args.input, &args.input.options(), None, terminal)?;
    if part_by_folds(&mut listing, &home, args.fold)? {
        terminal.say(
            "the input has folds: each becomes a part of its own, fold0, fold1 …; --fold K packs train and val",
        );
    }
    let folder = args.folder(&listing)?;
    if global.dry_run {
        let usable = listing.entries.iter().filter(|entry| entry.fault.is_none()).count();
        let text = format!(
            "would pack {} of {} into {}\n",
            plural(usable, "image"),
            plural(listing.entries.len(), "row"),
            shown(&near(&folder))
        );
        let document = json!({
            "schema": SCHEMA, "command": "pack", "dry_run": true, "folder": folder.to_string_lossy(),
            "usable": usable, "rows": listing.entries.len(),
        });
        terminal.result(&if global.json { format!("{document:#}\n") } else { text })?;
        return Ok(0);
    }
    // A worker process that died is followed by one that goes on.
    options.resume |= flight.is_some_and(Flight::has_verdicts);
    let known = known(&listing, &home, &folder)?;
    let mut global = global.clone();
    let total = global.memory.unwrap_or_else(crate::engine::budget::Budget::default_total);
    options.waiting = (total / 8).max(32 << 20);
    let held = options.held();
    if total < held + (32 << 20) {
        return Err(Error::Usage(format!(
            "--memory {}: a shard of {} is held while it is filled; at least {} are needed, or a smaller --shard-size",
            bytes(total),
            bytes(options.form.shard_size),
            bytes(held + (32 << 20)),
        )));
    }
    global.memory = Some(total - held);
    let pipe = run::pipe(&args.input, &global, options.contract, Damage::Refuse)?;
    let crew = run::crew(&global, &cancel, flight)?;
    let mut watch = watcher(&global);
    let report = pack::run(&listing, &known, &folder, &options, &pipe, &crew, watch.as_mut())?;
    let seconds = begun.elapsed().as_secs_f64();
    if global.json {
        terminal.result(&report_json(&report, seconds))?;
    } else if !terminal.is_quiet() {
        terminal.result(&report_text(&report, &options, seconds))?;
    }
    let exceeded = args.input.max_bad.exceeded(report.bad, report.total);
    if exceeded {
        terminal.warn(&format!(
            "{} of {} images are not usable: more than --max-bad allows",
            report.bad, report.total
        ));
    }
    Ok(u8::from(exceeded))
}

fn report_text(report: &Report, options: &Options, seconds: f64) -> String {
    let samples: usize = report.packed.iter().map(|(_, n)| n).sum();
    let overhead = 100.0 * (report.bytes as f64 / report.payload.max(1) as f64 - 1.0);
    let mut text = format!(
        "{}: {} in {}, {} ({overhead:.1} % more than the {} themselves), in {seconds:.1} s\n",
        shown(&near(&report.folder)),
        plural(samples, "sample"),
        plural(report.shards, "shard"),
        bytes(report.bytes),
        if options.form.store == Store::Raw { "pixels" } else { "JPEGs" },
    );
    if report.resumed > 0 {
        text.push_str(&format!("{} from an earlier run\n", plural(report.resumed, "shard")));
    }
    let rows: Vec<Vec<String>> =
        report.packed.iter().map(|(name, n)| vec![shown(name).to_string(), thousands(*n as u64)]).collect();
    text.push_str(&columns(&rows, &[false, true]));
    if options.form.store == Store::Jpeg {
        let anew = samples - report.copied;
        text.push_str(&format!(
            "{} of the source's coded data, {} coded anew\n",
            plural(report.copied, "copy"),
            thousands(anew as u64)
        ));
    }
    let mut faults: Vec<_> =
        report.left_out.iter().filter(|(code, _)| **code != Cause::Junk.code()).collect();
    let out: usize = faults.iter().map(|(_, (n, _))| n).sum();
    if out > 0 {
        faults.sort_by_key(|(code, (n, _))| (std::cmp::Reverse(*n), **code));
        let rows: Vec<Vec<String>> = faults
            .into_iter()
            .map(|(code, (n, first))| {
                vec![thousands(*n as u64), (*code).to_owned(), shown(first).to_string()]
            })
            .collect();
        let list = near(&report.folder.join(crate::shards::LEFT_OUT));
        text.push_str(&format!("{} left out (all in {}):\n", plural(out, "row"), shown(&list)));
        text.push_str(&columns(&rows, &[true, false, false]));
    }
    text.push_str(&format!("Next: prep verify {} --read-data\n", shell_word(&near(&report.folder))));
    text
}

fn report_json(report: &Report, seconds: f64) -> String {
    let map = |pairs: Vec<(String, Value)>| Value::Object(pairs.into_iter().collect());
    let left = report
        .left_out
        .iter()
        .map(|(code, (n, first))| ((*code).to_owned(), json!({"count": n, "first": first})))
        .collect();
    let packed = report.packed.iter().map(|(name, n)| (name.clone(), json!(n))).collect();
    let document = json!({
        "schema": SCHEMA, "command": "pack", "folder": report.folder.to_string_lossy(),
        "rows": report.total, "packed": map(packed), "left_out": map(left), "shards": report.shards,
        "resumed_shards": report.resumed, "payload_bytes": report.payload, "shard_bytes": report.bytes,
        "copied": report.copied, "seconds": seconds,
    });
    format!("{document:#}\n")
}

//! `prep stats`: options, and the numbers as a table, a snippet or JSON.

use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::args::{FilterName, Global, IccName, Input};
use super::run;
use super::terminal::{Terminal, class_name, columns, plural, thousands};
use super::watch::watcher;
use crate::decode::{Contract, Icc};
use crate::engine::cancel::Cancel;
use crate::engine::crew::Crew;
use crate::engine::flight::Flight;
use crate::engine::pipe::Damage;
use crate::error::{Error, Result};
use crate::fault::Cause;
use crate::home::{Home, Training, Which};
use crate::manifest::Row;
use crate::names::shown;
use crate::source::Listing;
use crate::stats::{self, By, Emit, IMAGENET, Moments, Options, Report, Sums, View, Weight};
use crate::survey;

/// The JSON document's version.
const SCHEMA: u32 = 1;

/// Exact normalization constants of the training rows (of all rows where there is no split), from integer sums over
/// the upright sRGB pictures. The result also goes into manifest.prep.json.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    pub input: Input,
    /// The manifest to write; by default the input's own
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// What weighs the same: images, pixels; or the mean of the images' own deviations, as ImageNet's constants were made
    #[arg(long, value_enum, default_value = "image", value_name = "WHAT")]
    weight: WeightName,
    /// As the network will see it: short edge after the resize, then the side of the centre crop, as in 256,224
    #[arg(long, value_name = "SHORT[,CROP]", value_parser = at)]
    at: Option<(u32, Option<u32>)>,
    /// Resampling filter of --at, with antialiasing
    #[arg(long, value_enum, default_value = "bilinear", value_name = "NAME")]
    filter: FilterName,
    /// Numbers of each part too
    #[arg(long, value_enum, value_name = "PART")]
    by: Option<ByName>,
    /// Print a snippet for this library and nothing else (again for more)
    #[arg(long, value_enum, value_name = "LIBRARY")]
    emit: Vec<EmitName>,
    /// Embedded colour profiles: to sRGB, or ignored as many loaders do
    #[arg(long, value_enum, default_value = "srgb", value_name = "HOW")]
    icc: IccName,
    /// What fold K trains on: the rows of all other folds, and those that are always trained on
    #[arg(long, value_name = "K", conflicts_with = "split")]
    fold: Option<u8>,
    /// Only print: write no manifest
    #[arg(long)]
    no_write: bool,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum WeightName {
    Image,
    Pixel,
    Imagenet,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum ByName {
    Class,
    Split,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum EmitName {
    Torchvision,
    Albumentations,
    Timm,
    Keras,
    Dali,
    Jax,
    Toml,
}

fn at(text: &str) -> std::result::Result<(u32, Option<u32>), String> {
    let side = |s: &str| s.trim().parse::<u32>().ok().filter(|n| (1..=16_384).contains(n));
    let wrong = || "a short edge and perhaps a crop, as in 256,224; both from 1 to 16384".to_owned();
    let (short, crop) = match text.split_once(',') {
        Some((short, crop)) => (side(short).ok_or_else(wrong)?, Some(side(crop).ok_or_else(wrong)?)),
        None => (side(text).ok_or_else(wrong)?, None),
    };
    if crop.is_some_and(|crop| crop > short) {
        return Err(format!("a crop of {} does not fit into a short edge of {short}", crop.unwrap_or(0)));
    }
    Ok((short, crop))
}

impl Args {
    fn options(&self) -> Options {
        Options {
            view: self.at.map(|(short, crop)| View { short, crop, filter: self.filter.into() }),
            by: match self.by {
                None => By::Nothing,
                Some(ByName::Class) => By::Class,
                Some(ByName::Split) => By::Split,
            },
        }
    }

    /// The rows that count.
    fn rows(&self, listing: &Listing, home: &Home) -> Result<Training> {
        let has_parts = listing.entries.iter().any(|e| !e.split.is_empty());
        if self.input.split.is_none() && has_parts && matches!(self.by, Some(ByName::Split)) {
            return Ok(Training { which: Which::Every, rows: (0..listing.entries.len()).collect() });
        }
        home.training(listing, self.input.split.as_deref(), self.fold)
    }

    fn weight(&self) -> Weight {
        match self.weight {
            WeightName::Image => Weight::Image,
            WeightName::Pixel => Weight::Pixel,
            WeightName::Imagenet => Weight::ImageNet,
        }
    }
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// What ends the run.
pub fn run(args: &Args, global: &Global, terminal: &Terminal, flight: Option<&Flight>) -> Result<u8> {
    if global.json && !args.emit.is_empty() {
        return Err(Error::Usage("--emit prints a snippet and --json a document: drop one".into()));
    }
    let options = args.options();
    let weight = args.weight();
    let cancel = Cancel::on_signals();
    let (listing, home) =
        run::list_at_home(&args.input, &args.input.options(), args.out.as_deref(), terminal)?;
    let writes = !(global.dry_run || args.no_write);
    if writes && args.emit.is_empty() {
        home.check_place().map_err(|e| Error::Outputs(format!("{e}, or print only with --no-write")))?;
    }
    let training = args.rows(&listing, &home)?;
    let contract = Contract { icc: args.icc.into(), ..Contract::default() };
    let crew = run::crew(global, &cancel, flight)?;
    let report = measure(args, global, (&listing, &training), contract, &crew, terminal)?;
    let moments =
        report.all.moments(weight).ok_or_else(|| Error::Internal("no moments of some images".into()))?;
    let document = document(&report, &options, weight, contract.icc);
    let keeps = home.keeps(&training.which);
    if writes {
        match write(&home, &listing, &report, keeps.then_some(&document)) {
            // What was asked for is printed all the same.
            Err(e @ (Error::Write { .. } | Error::Outputs(_))) if !args.emit.is_empty() => {
                terminal.warn(&format!("the numbers are not kept in the sidecar (--no-write says so): {e}"));
            }
            written => written?,
        }
    }
    if !args.emit.is_empty() {
        for library in &args.emit {
            terminal.result(&stats::emit((*library).into(), &moments))?;
        }
    } else if global.json {
        let mut whole =
            Map::from_iter([("schema".to_owned(), json!(SCHEMA)), ("command".to_owned(), json!("stats"))]);
        whole.extend(document.as_object().cloned().unwrap_or_default());
        whole.insert("sizes".into(), sizes_json(&report));
        whole.insert("modes".into(), json!(report.modes));
        terminal.result(&format!("{:#}\n", Value::Object(whole)))?;
    } else {
        terminal.result(&text(&report, &options, weight, &moments))?;
        if writes && keeps {
            terminal
                .say(&format!("Written to {}", shown(&crate::manifest::Sidecar::path_of(&home.manifest))));
        } else if writes {
            terminal.say("these are numbers of a part of the set: printed, not kept in the sidecar");
        }
    }
    let bad = report.left_out.values().map(|(n, _)| n).sum();
    Ok(u8::from(args.input.max_bad.exceeded(bad, training.rows.len())))
}

/// The numbers: of every pixel from what the cache knows, where it may; else by a decode for this alone.
fn measure(
    args: &Args,
    global: &Global,
    (listing, training): (&Listing, &Training),
    contract: Contract,
    crew: &Crew<'_>,
    terminal: &Terminal,
) -> Result<Report> {
    let options = args.options();
    let mut watch = watcher(global);
    // Facts are of every pixel, under the default contract.
    let mut cache =
        run::cache(global, listing).filter(|_| options.view.is_none() && contract == Contract::default());
    if cache.is_none() {
        let pipe = run::pipe(&args.input, global, contract, Damage::Refuse)?;
        return stats::run(listing, training, &options, &pipe, crew, watch.as_mut());
    }
    let pipe = run::pipe(&args.input, global, contract, Damage::Tell)?;
    let survey = survey::run(listing, &training.rows, &pipe, crew, cache.as_mut(), watch.as_mut())?;
    run::tell_cache(cache.as_ref(), survey.decoded, terminal);
    stats::of_facts(listing, training, options.by, &survey.facts)
}

/// Writes what was found into the manifest: the numbers, and which pictures are not usable, since all were decoded.
fn write(home: &Home, listing: &Listing, report: &Report, document: Option<&Value>) -> Result<()> {
    let mut found = report.found.iter().peekable();
    let change = |at: usize, row: &mut Row| {
        let Some((_, found)) = found.next_if(|(entry, _)| *entry == at) else { return };
        match found {
            Ok((width, height)) => (row.width, row.height) = (Some(*width), Some(*height)),
            // What may be otherwise on the next run is said, but not kept.
            Err(fault) if fault.cause.is_transient() || fault.cause == Cause::TooLarge => {}
            Err(fault) => (row.status, row.fault) = (fault.status(), Some(fault.clone())),
        }
    };
    home.rewrite(listing, "stats", change, |sidecar| {
        if let Some(document) = document {
            sidecar.stats = document.clone();
        }
    })?;
    Ok(())
}

impl From<EmitName> for Emit {
    fn from(name: EmitName) -> Self {
        match name {
            EmitName::Torchvision => Self::Torchvision,
            EmitName::Albumentations => Self::Albumentations,
            EmitName::Timm => Self::Timm,
            EmitName::Keras => Self::Keras,
            EmitName::Dali => Self::Dali,
            EmitName::Jax => Self::Jax,
            EmitName::Toml => Self::Toml,
        }
    }
}

fn text(report: &Report, options: &Options, weight: Weight, moments: &Moments) -> String {
    let all = &report.all;
    let seen = match options.view {
        Some(view) => {
            let crop = view.crop.map(|c| format!(", centre {c}x{c}")).unwrap_or_default();
            format!(
                "as seen at short edge {}{crop} ({}, antialiased; large JPEGs decoded at a reduced scale of twice that \
                 or more, so the fourth digit may differ)",
                view.short,
                view.filter.as_str()
            )
        }
        None => "every pixel of the upright sRGB pictures".into(),
    };
    let mut out = format!(
        "{}, {}: {}, {seen}\n\n",
        plural(all.images as usize, "image"),
        match all.pixels {
            n if n < 10_000_000 => format!("{} pixels", thousands(n)),
            n => format!("{} million pixels", thousands((n + 500_000) / 1_000_000)),
        },
        report.rows.sentence(),
    );
    let mut rows = vec![["", "R", "G", "B", ""].map(str::to_owned).to_vec()];
    let row = |name: &str, values: [f64; 3], what: &str| {
        let mut row = vec![name.to_owned()];
        let digits = if options.view.is_some() { 3 } else { 4 };
        row.extend(values.iter().map(|v| format!("{v:.digits$}")));
        row.push(what.to_owned());
        row
    };
    rows.push(row("mean", moments.mean, weight.as_str()));
    rows.push(row("std", moments.std, &format!("{}: {}", weight.as_str(), weight.definition())));
    for other in [Weight::Image, Weight::Pixel, Weight::ImageNet].into_iter().filter(|w| *w != weight) {
        if let Some(m) = all.moments(other) {
            rows.push(row("", m.std, &format!("{}: {}", other.as_str(), other.definition())));
        }
    }
    rows.push(row("ImageNet", IMAGENET.mean, "mean of pretrained models"));
    rows.push(row("", IMAGENET.std, "std of pretrained models"));
    out.push_str(&columns(&rows, &[false, true, true, true, false]));
    out.push('\n');
    out.push_str(&advice(all, moments));
    out.push_str(&parts(report, weight));
    out.push_str(&bars(report));
    for (code, (n, first)) in &report.left_out {
        out.push_str(&format!("left out: {} {code}, the first is {}\n", thousands(*n as u64), shown(first)));
    }
    out
}

fn advice(sums: &Sums, moments: &Moments) -> String {
    let far = (0..3)
        .map(|c| {
            let shift = (moments.mean[c] - IMAGENET.mean[c]).abs() / IMAGENET.std[c];
            let ratio = (moments.std[c] / IMAGENET.std[c]).ln().abs();
            shift.max(ratio)
        })
        .fold(0.0, f64::max);
    let mut out = String::from(if far < 0.1 {
        "These are ImageNet's constants but for little: use either.\n"
    } else if far < 0.5 {
        "With a pretrained model use ImageNet's constants, which its weights expect; from scratch, these.\n"
    } else {
        "These pictures are unlike ImageNet's. A pretrained model still expects ImageNet's constants; its first layers \
         will need to adapt, so train them too. From scratch use these.\n"
    });
    if sums.gray == sums.images {
        out.push_str(&format!(
            "All pictures are gray: for one channel use mean {:.4}, std {:.4}.\n",
            moments.mean[0], moments.std[0]
        ));
    } else if sums.gray > 0 {
        out.push_str(&format!("{} of {} pictures are gray.\n", thousands(sums.gray), thousands(sums.images)));
    }
    out
}

fn parts(report: &Report, weight: Weight) -> String {
    if report.parts.is_empty() {
        return String::new();
    }
    let mut rows = vec![["", "images", "mean R", "G", "B", "std R", "G", "B"].map(str::to_owned).to_vec()];
    for (name, sums) in &report.parts {
        let Some(m) = sums.moments(weight) else { continue };
        let mut row = vec![class_name(name), thousands(sums.images)];
        row.extend(m.mean.iter().chain(&m.std).map(|v| format!("{v:.4}")));
        rows.push(row);
    }
    format!("\n{}", columns(&rows, &[false, true, true, true, true, true, true, true]))
}

/// Sizes, aspect ratios and modes as bars of text.
fn bars(report: &Report) -> String {
    let mut out = String::new();
    let mut edges: Vec<(String, usize)> = Vec::new();
    let mut shapes: Vec<(String, usize)> = Vec::new();
    let steps = [64, 128, 256, 512, 1024, 2048, 4096, u32::MAX];
    let ratios =
        [(0.5, "taller than 1:2"), (0.7, "1:2 to 7:10"), (0.95, "7:10 to square"), (1.0526, "square")];
    let ratios: Vec<(f64, &str)> = ratios
        .into_iter()
        .chain([(1.43, "square to 10:7"), (2.0, "10:7 to 2:1"), (f64::MAX, "wider than 2:1")])
        .collect();
    let mut below = 0;
    for step in steps {
        let n =
            report.sizes.iter().filter(|((w, h), _)| (below..step).contains(w.min(h))).map(|(_, n)| n).sum();
        let name = if step == u32::MAX {
            format!("short edge {below} or more")
        } else {
            format!("short edge below {step}")
        };
        edges.push((name, n));
        below = step;
    }
    let mut from = 0.0;
    for (to, name) in ratios {
        let inside = |(w, h): &(u32, u32)| (from..to).contains(&(f64::from(*w) / f64::from(*h)));
        let n = report.sizes.iter().filter(|(size, _)| inside(size)).map(|(_, n)| n).sum();
        shapes.push((name.to_owned(), n));
        from = to;
    }
    let modes: Vec<(String, usize)> =
        report.modes.iter().map(|(mode, n)| (format!("mode {mode}"), *n)).collect();
    for block in [edges, shapes, modes] {
        out.push('\n');
        let most = block.iter().map(|(_, n)| *n).max().unwrap_or(1).max(1);
        let rows: Vec<Vec<String>> = block
            .into_iter()
            .filter(|(_, n)| *n > 0)
            .map(|(name, n)| vec![name, thousands(n as u64), "█".repeat((n * 32).div_ceil(most))])
            .collect();
        out.push_str(&columns(&rows, &[false, true, false]));
    }
    out
}

fn sizes_json(report: &Report) -> Value {
    report.sizes.iter().map(|((w, h), n)| json!({"width": w, "height": h, "images": n})).collect()
}

/// The numbers with their definitions, as they go into the sidecar.
fn document(report: &Report, options: &Options, weight: Weight, icc: Icc) -> Value {
    let moments = |sums: &Sums| -> Map<String, Value> {
        [Weight::Image, Weight::Pixel, Weight::ImageNet]
            .into_iter()
            .filter_map(|w| {
                let m = sums.moments(w)?;
                Some((
                    w.as_str().to_owned(),
                    json!({"mean": m.mean, "std": m.std, "definition": w.definition()}),
                ))
            })
            .collect()
    };
    let chosen = report.all.moments(weight);
    let view =
        options.view.map(|v| json!({"short_edge": v.short, "crop": v.crop, "filter": v.filter.as_str()}));
    let mut document = json!({
        "mean": chosen.map(|m| m.mean),
        "std": chosen.map(|m| m.std),
        "weight": weight.as_str(),
        "definition": weight.definition(),
        "rows": report.rows.sentence(),
        "images": report.all.images,
        "pixels": u64::try_from(report.all.pixels).map_or_else(|_| json!(report.all.pixels.to_string()), Value::from),
        "gray": report.all.gray,
        "at": view,
        "exact": options.view.is_none(),
        "icc": if icc == Icc::ToSrgb { "srgb" } else { "ignore" },
        "range": "values from 0 to 1; std of the population",
        "all": moments(&report.all),
    });
    if !report.parts.is_empty() {
        let parts: Map<String, Value> = report
            .parts
            .iter()
            .map(|(name, sums)| {
                let mut part = moments(sums);
                part.insert("images".into(), json!(sums.images));
                (name.clone(), Value::Object(part))
            })
            .collect();
        document["parts"] = Value::Object(parts);
    }
    document
}

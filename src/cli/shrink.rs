//! `prep shrink`: options, and what is said at the end.

use std::path::PathBuf;
use std::time::Instant;

use clap::ValueEnum;

use super::args::{Coding, Global, Input, dimensions, side};
use super::run;
use super::terminal::{Terminal, bytes, columns, near, plural, shell_word, thousands};
use super::watch::watcher;
use crate::engine::cancel::Cancel;
use crate::engine::flight::Flight;
use crate::engine::pipe::Damage;
use crate::error::{Error, Result};
use crate::fault::Cause;
use crate::names::shown;
use crate::out::place;
use crate::shrink::size::Fit;
use crate::shrink::{self, Options, OutputFormat, Report};

/// The JSON document's version.
const SCHEMA: u32 = 1;

/// Makes one upright, sRGB, 8-bit, three-channel copy of every image at training size, with a manifest of what became
/// of each. Sources are only read. A run that was stopped continues where it was; type the same command again.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    pub input: Input,
    /// The workspace to make; by default a folder beside INPUT with the size at its name
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Length of the shorter side [default: 512]
    #[arg(long, value_name = "PX", value_parser = side, overrides_with_all = ["long_edge", "cover", "no_resize"])]
    short_edge: Option<u32>,
    /// Length of the longer side
    #[arg(long, visible_alias = "max-edge", value_name = "PX", value_parser = side, overrides_with_all = ["short_edge", "cover", "no_resize"])]
    long_edge: Option<u32>,
    /// Fill a box of this size, cutting evenly what does not fit
    #[arg(long, value_name = "WxH", value_parser = dimensions, overrides_with_all = ["short_edge", "long_edge", "no_resize"])]
    cover: Option<(u32, u32)>,
    /// Keep the size
    #[arg(long, overrides_with_all = ["short_edge", "long_edge", "cover"])]
    no_resize: bool,
    /// Enlarge what is smaller
    #[arg(long)]
    upscale: bool,
    /// Format of the copies; webp is lossless
    #[arg(long, value_enum, default_value = "jpg", value_name = "NAME")]
    format: FormatName,
    #[command(flatten)]
    coding: Coding,
    /// Leave pictures as they are stored, whatever EXIF says
    #[arg(long)]
    no_orient: bool,
    /// Damaged pictures: reject, or keep what can be decoded and mark it
    #[arg(long, value_enum, default_value = "reject", value_name = "HOW")]
    on_damage: OnDamage,
    /// Make everything anew
    #[arg(long)]
    force: bool,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum FormatName {
    Jpg,
    Png,
    Webp,
    Keep,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq)]
enum OnDamage {
    Reject,
    Keep,
}

impl Args {
    fn options(&self) -> Options {
        let fit = match (self.short_edge, self.long_edge, self.cover) {
            _ if self.no_resize => Fit::Keep,
            (_, _, Some((w, h))) => Fit::Cover(w, h),
            (_, Some(n), _) => Fit::LongEdge(n),
            (n, _, _) => Fit::ShortEdge(n.unwrap_or(512)),
        };
        Options {
            fit,
            upscale: self.upscale,
            filter: self.coding.filter.into(),
            format: match self.format {
                FormatName::Jpg => OutputFormat::Jpg,
                FormatName::Png => OutputFormat::Png,
                FormatName::Webp => OutputFormat::Webp,
                FormatName::Keep => OutputFormat::Keep,
            },
            quality: self.coding.quality,
            chroma: self.coding.chroma.into(),
            contract: self.coding.contract(!self.no_orient),
            salvage: self.on_damage == OnDamage::Keep,
            force: self.force,
        }
    }

    fn folder(&self, options: &Options) -> Result<PathBuf> {
        let suffix = match options.fit {
            Fit::ShortEdge(n) | Fit::LongEdge(n) => format!("-{n}"),
            Fit::Cover(w, h) => format!("-{w}x{h}"),
            Fit::Keep => "-clean".into(),
        };
        match &self.out {
            Some(folder) => Ok(folder.clone()),
            None => place::beside(&self.input.input, &suffix),
        }
    }
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// What ends the run.
pub fn run(args: &Args, global: &Global, terminal: &Terminal, flight: Option<&Flight>) -> Result<u8> {
    let begun = Instant::now();
    one_size(std::env::args())?;
    let options = args.options();
    let folder = args.folder(&options)?;
    let cancel = Cancel::on_signals();
    let listing = run::list(&args.input, terminal)?;
    let damage = if options.salvage { Damage::Salvage } else { Damage::Refuse };
    let pipe = run::pipe(&args.input, global, options.contract, damage)?;
    let crew = run::crew(global, &cancel, flight)?;
    let mut watch = watcher(global);
    if global.dry_run {
        let estimate = shrink::estimate(&listing, &folder, &options, &pipe, &crew, watch.as_mut())?;
        terminal.result(&if global.json { estimate_json(&estimate) } else { estimate_text(&estimate) })?;
        return Ok(0);
    }
    let report = shrink::run(&listing, &folder, &options, &pipe, &crew, watch.as_mut())?;
    let seconds = begun.elapsed().as_secs_f64();
    if global.json {
        terminal.result(&report_json(&report, seconds))?;
    } else if !terminal.is_quiet() {
        terminal.result(&report_text(&report, seconds))?;
    }
    let exceeded = args.input.max_bad.exceeded(report.bad(), report.total());
    if exceeded {
        terminal.warn(&format!(
            "{} of {} images are not usable: more than --max-bad allows",
            report.bad(),
            report.total()
        ));
    }
    Ok(u8::from(exceeded))
}

/// What is typed overrides prep.toml, so the parser lets the last size win; two sizes typed at once are a mistake.
fn one_size(typed: impl Iterator<Item = String>) -> Result<()> {
    let sizes = ["--short-edge", "--long-edge", "--max-edge", "--cover", "--no-resize"];
    let mut given: Vec<&str> = typed
        .filter_map(|word| sizes.iter().copied().find(|size| word.split('=').next() == Some(*size)))
        .map(|size| if size == "--max-edge" { "--long-edge" } else { size })
        .collect();
    given.sort_unstable();
    given.dedup();
    match given.as_slice() {
        [first, second, ..] => {
            Err(Error::Usage(format!("{first} and {second} ask for different sizes: give one")))
        }
        _ => Ok(()),
    }
}

fn report_text(report: &Report, seconds: f64) -> String {
    let ok = report.ok();
    let mut text =
        format!("{}: {}, {}", shown(&near(&report.folder)), plural(ok, "image"), bytes(report.bytes_out));
    if report.bytes_out > 0 {
        let ratio = report.bytes_in as f64 / report.bytes_out as f64;
        text.push_str(&format!(" from {} ({ratio:.1}x smaller)", bytes(report.bytes_in)));
    }
    if report.made == ok {
        text.push_str(&format!(" in {seconds:.1} s ({:.0} images/s)\n", ok as f64 / seconds.max(1e-3)));
    } else if report.made == 0 {
        text.push_str("\nnothing to do: all of them were finished before\n");
    } else {
        text.push_str(&format!(
            "\n{} made now in {seconds:.1} s, the others were finished before\n",
            plural(report.made, "copy")
        ));
    }
    if report.changed {
        text.push_str("the options were others before: everything was made anew\n");
    }
    if report.removed > 0 {
        text.push_str(&format!("{} removed\n", plural(report.removed, "outdated copy")));
    }
    if report.small > 0 {
        text.push_str(&format!(
            "{} smaller than asked for and left so (--upscale enlarges)\n",
            plural(report.small, "image")
        ));
    }
    text.push_str(&left_out(report));
    if report.astray > 0 {
        text.push_str(&format!(
            "{} in another folder than the label says: take labels from the manifest, not from folders\n",
            plural(report.astray, "image")
        ));
    }
    text.push_str(&format!("Every row: {}\n", shown(&near(&report.manifest))));
    text.push_str(&format!("Next: prep split {} --stratify\n", shell_word(&near(&report.folder))));
    text
}

/// The rows without a copy, but for junk, which was counted before.
fn left_out(report: &Report) -> String {
    let mut faults: Vec<_> = report.faults.iter().filter(|(code, _)| **code != Cause::Junk.code()).collect();
    let out: usize = faults.iter().map(|(_, (n, _))| n).sum();
    if out == 0 {
        return String::new();
    }
    faults.sort_by_key(|(code, (n, _))| (std::cmp::Reverse(*n), **code));
    let rows: Vec<Vec<String>> = faults
        .into_iter()
        .map(|(code, (n, first))| vec![thousands(*n as u64), (*code).to_owned(), shown(first).to_string()])
        .collect();
    format!("{} without a copy:\n{}", plural(out, "row"), columns(&rows, &[true, false, false]))
}

fn report_json(report: &Report, seconds: f64) -> String {
    let faults: serde_json::Map<String, serde_json::Value> = report
        .faults
        .iter()
        .map(|(code, (n, first))| ((*code).to_owned(), serde_json::json!({"count": n, "first": first})))
        .collect();
    let document = serde_json::json!({
        "schema": SCHEMA,
        "command": "shrink",
        "folder": report.folder.to_string_lossy(),
        "manifest": report.manifest.to_string_lossy(),
        "rows": report.total(),
        "status": report.by_status,
        "faults": faults,
        "notes": report.notes,
        "resumed": report.resumed,
        "made": report.made,
        "removed": report.removed,
        "options_changed": report.changed,
        "smaller_than_asked": report.small,
        "label_is_not_folder": report.astray,
        "bytes_in": report.bytes_in,
        "bytes_out": report.bytes_out,
        "seconds": seconds,
    });
    format!("{document:#}\n")
}

fn estimate_text(estimate: &shrink::Estimate) -> String {
    let mut text = format!(
        "would write {} to {}, about {} from {}; {} cannot be used (missing, unlisted, or by their headers)\n",
        plural(estimate.images, "copy"),
        shown(&near(&estimate.folder.join(shrink::IMAGES))),
        bytes(estimate.bytes_out),
        bytes(estimate.bytes_in),
        plural(estimate.refused, "row"),
    );
    if estimate.finished > 0 {
        text.push_str(&format!("{} of them are finished already\n", thousands(estimate.finished as u64)));
    }
    let mut rows = vec![vec!["from".to_owned(), "to".to_owned(), "images".to_owned()]];
    for size in estimate.sizes.iter().take(12) {
        let turn = if size.orientation == 1 { String::new() } else { format!(" turn {}", size.orientation) };
        rows.push(vec![
            format!("{}x{} {}{turn}", size.from.0, size.from.1, size.mode),
            format!("{}x{}", size.to.0, size.to.1),
            thousands(size.images as u64),
        ]);
    }
    text.push_str(&columns(&rows, &[false, false, true]));
    if estimate.sizes.len() > 12 {
        text.push_str(&format!("  and {} other sizes\n", estimate.sizes.len() - 12));
    }
    text
}

fn estimate_json(estimate: &shrink::Estimate) -> String {
    let sizes: Vec<_> = estimate
        .sizes
        .iter()
        .map(|s| {
            serde_json::json!({
                "from": [s.from.0, s.from.1], "mode": s.mode, "orientation": s.orientation,
                "to": [s.to.0, s.to.1], "images": s.images,
            })
        })
        .collect();
    let document = serde_json::json!({
        "schema": SCHEMA, "command": "shrink", "dry_run": true, "folder": estimate.folder.to_string_lossy(),
        "images": estimate.images, "refused": estimate.refused, "finished": estimate.finished,
        "bytes_in": estimate.bytes_in, "bytes_out_estimate": estimate.bytes_out, "sizes": sizes,
    });
    format!("{document:#}\n")
}

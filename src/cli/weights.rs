//! `prep weights`: options, and what is said at the end.

use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::args::{Global, Input};
use super::run;
use super::terminal::{Terminal, class_name, columns, shell_word, thousands};
use crate::error::{Error, Result};
use crate::home::Home;
use crate::names::shown;
use crate::out::Atomic;
use crate::source::Listing;
use crate::weights::{self, Count, Method, Options, Weights, emit};

/// The JSON document's version.
const SCHEMA: u32 = 1;

/// Weights of classes for a loss, counted over the training images alone, always with names and indices; weights of rows
/// for a sampler. They are kept in the manifest's sidecar too.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    pub input: Input,
    /// The manifest to write; by default that of INPUT
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The formula; balanced is scikit-learn's n / (k count)
    #[arg(long, value_enum, default_value = "balanced", value_name = "HOW")]
    method: MethodName,
    /// Beta of --method effective, from 0 to below 1
    #[arg(long, value_name = "B", default_value_t = 0.999, value_parser = beta)]
    beta: f64,
    /// No weight above this; the mean stays 1 unless --normalize none
    #[arg(long, value_name = "W", value_parser = positive)]
    cap: Option<f64>,
    /// Scale to a mean of 1 over the counted images (balanced has it anyway), or leave the bare formula
    #[arg(long, value_enum, default_value = "mean", value_name = "HOW")]
    normalize: Normalize,
    /// Count images, or groups
    #[arg(long, value_enum, default_value = "images", value_name = "WHAT")]
    count: CountName,
    /// Write the weight of each counted image for a sampler; `-` is standard output
    #[arg(long, value_name = "FILE")]
    per_row: Option<PathBuf>,
    /// Print as code or data instead of a table
    #[arg(long, value_enum, value_name = "FOR")]
    emit: Option<Emit>,
    /// The table alone tells: the images need not be there
    #[arg(long)]
    no_files: bool,
    /// Count what fold K trains on: the rows of all other folds, and those that are always trained on
    #[arg(long, value_name = "K", conflicts_with = "split")]
    fold: Option<u8>,
    /// Only print: write no manifest
    #[arg(long)]
    no_write: bool,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum MethodName {
    Balanced,
    Inverse,
    Sqrt,
    Effective,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq)]
enum Normalize {
    Mean,
    None,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum CountName {
    Images,
    Groups,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq)]
enum Emit {
    Torch,
    Keras,
    Sklearn,
    Csv,
    Json,
}

fn beta(text: &str) -> std::result::Result<f64, String> {
    text.parse().ok().filter(|b| (0.0..1.0).contains(b)).ok_or_else(|| "a number from 0 to below 1".into())
}

fn positive(text: &str) -> std::result::Result<f64, String> {
    text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0).ok_or_else(|| "a number above 0".into())
}

impl Args {
    fn options(&self) -> Options {
        Options {
            method: match self.method {
                MethodName::Balanced => Method::Balanced,
                MethodName::Inverse => Method::Inverse,
                MethodName::Sqrt => Method::Sqrt,
                MethodName::Effective => Method::Effective(self.beta),
            },
            count: match self.count {
                CountName::Images => Count::Images,
                CountName::Groups => Count::Groups,
            },
            cap: self.cap,
            to_mean: self.normalize == Normalize::Mean,
        }
    }

    /// Refuses two results for one standard output, and tells whether the sampler weights go there.
    fn one_output(&self, global: &Global) -> Result<bool> {
        if global.json && self.emit.is_some_and(|emit| emit != Emit::Json) {
            return Err(Error::Usage("--emit prints code and --json a document: drop one".into()));
        }
        let rows = self.per_row.as_ref().is_some_and(|path| path.as_os_str() == "-");
        if rows && (global.json || self.emit.is_some()) {
            let why = "--per-row - prints a table on standard output: name a file, or drop --emit and --json";
            return Err(Error::Usage(why.into()));
        }
        Ok(rows)
    }
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// What ends the run.
pub fn run(args: &Args, global: &Global, terminal: &Terminal) -> Result<u8> {
    let to_output = args.one_output(global)?;
    let options = args.options();
    let mut input = args.input.options();
    input.files = !args.no_files;
    let (listing, home) = run::list_at_home(&args.input, &input, args.out.as_deref(), terminal)?;
    if listing.classes.is_empty() {
        let why = "there are no labels to weigh: neither class folders nor a column of labels (--label-col names one)";
        return Err(Error::Usage(why.into()));
    }
    let to_file = args.per_row.as_ref().filter(|path| path.as_os_str() != "-");
    if let Some(path) = to_file {
        emit::check_per_row(path, &listing, &home.manifest)?;
    }
    let training = home.training(&listing, args.input.split.as_deref(), args.fold)?;
    let weights = weights::weigh(&listing, &training, &options)?;
    if !args.no_files && !home.is_measured(&listing) {
        terminal.say("the pictures were not opened: damaged ones are known after prep shrink");
    }
    warn(&weights, &listing, &options, terminal);
    let document = emit::json(&weights, &options, training.which.part());
    let mut is_kept = false;
    if !global.dry_run {
        if let Some(path) = to_file {
            let doing = "writing the sampler weights";
            let mut file = Atomic::create(doing, path)?;
            emit::per_row(&weights, &listing, &mut file).map_err(|e| Error::write(doing, path, e))?;
            file.commit(true)?;
        }
        if !home.keeps(&training.which) {
            terminal.say("these are weights of a part of the set: printed, not kept in the sidecar");
        } else if !args.no_write {
            let kept = document.clone();
            let written = home.rewrite(&listing, "weights", |_, _| {}, |sidecar| sidecar.weights = kept);
            let printed = args.emit.is_some() || args.per_row.is_some();
            match written {
                // What was asked for is printed all the same.
                Err(e @ Error::Write { .. }) if printed => {
                    terminal
                        .warn(&format!("the weights are not kept in the sidecar (--no-write says so): {e}"));
                }
                written => is_kept = written.map(|_| true)?,
            }
        }
    }
    let whole = match (global.json, args.emit) {
        (true, _) | (_, Some(Emit::Json)) => {
            let mut whole = json!({
                "schema": SCHEMA, "command": "weights", "manifest": home.manifest.to_string_lossy(), "dry_run": global.dry_run,
            });
            if let (Value::Object(whole), Value::Object(document)) = (&mut whole, document) {
                whole.extend(document);
            }
            format!("{whole:#}\n")
        }
        (_, Some(Emit::Torch)) => emit::torch(&weights),
        (_, Some(Emit::Keras)) => emit::keras(&weights),
        (_, Some(Emit::Sklearn)) => emit::sklearn(&weights),
        (_, Some(Emit::Csv)) => in_memory(|bytes| {
            *bytes = emit::csv(&weights)?;
            Ok(())
        })?,
        (_, None) if to_output => in_memory(|bytes| emit::per_row(&weights, &listing, bytes))?,
        (_, None) => text(&weights, &options, is_kept.then_some(&home), args),
    };
    terminal.result(&whole)?;
    let bad = training.rows.iter().filter(|at| listing.entries[**at].fault.is_some()).count();
    Ok(u8::from(args.input.max_bad.exceeded(bad, training.rows.len())))
}

fn in_memory(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Result<String> {
    let mut bytes = Vec::new();
    write(&mut bytes).map_err(|e| Error::Internal(format!("writing to memory: {e}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What may be applied to the wrong class, or to none.
fn warn(weights: &Weights, listing: &Listing, options: &Options, terminal: &Terminal) {
    let empty: Vec<String> =
        weights.classes.iter().filter(|c| c.images == 0).map(|c| class_name(&c.name)).collect();
    if !empty.is_empty() {
        terminal.warn(&format!("no image that counts, so weight 0: {}", empty.join(", ")));
    }
    let other: Vec<&weights::Class> = weights.classes.iter().filter(|c| c.index != c.timm_index).collect();
    if let Some(first) = other.first() {
        terminal.warn(&format!(
            "timm numbers {} of {} classes otherwise than torchvision ({}: {} in timm, {} here): give timm the names \
             (--class-map), or use the column timm_index of --emit csv",
            other.len(),
            weights.classes.len(),
            class_name(&first.name),
            first.timm_index,
            first.index
        ));
    }
    if let Some(heavy) = heavy_single(weights, options) {
        terminal.warn(&heavy);
    }
    let rows = || weights.rows.iter().map(|(row, _)| &listing.entries[*row]);
    if options.count == Count::Groups && rows().all(|e| e.group.is_empty()) {
        terminal.warn("--count groups: the input knows no groups, so every image is one; prep split --group-by finds them");
    }
}

/// Classes of one image whose weight is far above the others' are often misspelt labels.
fn heavy_single(weights: &Weights, options: &Options) -> Option<String> {
    let heavy: Vec<String> = (weights.classes.iter())
        .filter(|c| c.images == 1 && c.weight >= 10.0 && options.cap.is_none())
        .map(|c| format!("{} (weight {:.1})", class_name(&c.name), c.weight))
        .collect();
    (!heavy.is_empty()).then(|| {
        let more = if heavy.len() > 5 { format!(" and {} more", heavy.len() - 5) } else { String::new() };
        format!(
            "one image outweighs ten and more: {}{more}; is the label misspelt (prep audit finds such)? --cap 10 limits \
             weights",
            heavy[..heavy.len().min(5)].join(", ")
        )
    })
}

fn text(weights: &Weights, options: &Options, kept: Option<&Home>, args: &Args) -> String {
    let formula = match options.method {
        Method::Effective(beta) => format!("effective number, beta {beta}"),
        method => method.as_str().to_owned(),
    };
    let mut text = format!("{formula} weights from {}\n\n", weights.which);
    let groups = options.count == Count::Groups || weights.classes.iter().any(|c| c.groups != c.images);
    let mut head = vec!["index".to_owned(), "class".into(), "images".into()];
    let mut right = vec![true, false, true];
    if groups {
        head.push("groups".into());
        right.push(true);
    }
    head.push("weight".into());
    right.push(true);
    if weights.is_multi_label {
        head.push("pos_weight".into());
        right.push(true);
    }
    let mut rows = vec![head];
    for c in &weights.classes {
        let mut row = vec![c.index.to_string(), class_name(&c.name), thousands(c.images)];
        if groups {
            row.push(thousands(c.groups));
        }
        row.push(format!("{:.4}", c.weight));
        if weights.is_multi_label {
            row.push(format!("{:.4}", c.pos_weight));
        }
        rows.push(row);
    }
    text.push_str(&columns(&rows, &right));
    text.push_str("\nIndices in code point order, as torchvision counts.");
    if let Some(home) = kept {
        let place = crate::manifest::Sidecar::path_of(&home.manifest);
        text.push_str(&format!(" Kept in {}", shown(&place)));
    }
    let input = args.out.as_ref().filter(|_| kept.is_some()).unwrap_or(&args.input.input);
    text.push_str(&format!("\nNext: prep weights {} --emit torch\n", shell_word(input)));
    text
}

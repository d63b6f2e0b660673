//! `prep weights`: options, and what is said at the end.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::args::{Global, Input};
use super::run;
use super::terminal::{Terminal, class_name, columns, plural, shell_word, thousands};
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
    /// No weight above this
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

    /// The part whose images count; none where the input has no parts.
    fn part(&self, listing: &Listing, home: &Home) -> Result<Option<String>> {
        if let Some(part) = &self.input.split {
            return Ok(Some(part.clone()));
        }
        let parts: BTreeSet<&str> =
            listing.entries.iter().map(|e| e.split.as_str()).filter(|s| !s.is_empty()).collect();
        if parts.is_empty() {
            return Ok(None);
        }
        let told = home
            .sidecar()
            .and_then(|s| s.rest.get("split"))
            .and_then(|s| s.get("training"))
            .and_then(Value::as_str);
        let usual =
            || parts.iter().copied().find(|p| ["train", "training"].contains(&p.to_lowercase().as_str()));
        match told.filter(|part| parts.contains(part)).or_else(usual) {
            Some(part) => Ok(Some(part.to_owned())),
            None => {
                let there: Vec<String> = parts.iter().map(|p| format!("`{}`", shown(p))).collect();
                Err(Error::Usage(format!(
                    "the parts are {}, and none is called train: say with --split which one is trained on",
                    there.join(", ")
                )))
            }
        }
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
    let part = args.part(&listing, &home)?;
    let mut weights = weights::weigh(&listing, part.as_deref(), &options)?;
    if part.is_none() && home.has_folds(&listing) {
        let all = plural(weights.rows.len(), "usable image");
        weights.which = format!("all {all}: there are folds and no parts");
    }
    if !args.no_files && !home.is_measured(&listing) {
        terminal.say("the pictures were not opened: damaged ones are known after prep shrink");
    }
    warn(&weights, &listing, &options, terminal);
    let document = emit::json(&weights, &options, part.as_deref());
    if !global.dry_run {
        if let Some(path) = to_file {
            let doing = "writing the sampler weights";
            let mut file = Atomic::create(doing, path)?;
            emit::per_row(&weights, &listing, &mut file).map_err(|e| Error::write(doing, path, e))?;
            file.commit(true)?;
        }
        let kept = document.clone();
        home.rewrite(&listing, "weights", |_, _| {}, |sidecar| sidecar.weights = kept)?;
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
        (_, None) => text(&weights, &options, &home, args),
    };
    terminal.result(&whole)?;
    Ok(0)
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
    let rows = || weights.rows.iter().map(|(row, _)| &listing.entries[*row]);
    if options.count == Count::Groups && rows().all(|e| e.group.is_empty()) {
        terminal.warn("--count groups: the input knows no groups, so every image is one; prep split --group-by finds them");
    }
}

fn text(weights: &Weights, options: &Options, home: &Home, args: &Args) -> String {
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
    text.push_str(&format!(
        "\nIndices in code point order, as torchvision counts. Kept in {}\n",
        shown(&crate::manifest::Sidecar::path_of(&home.manifest))
    ));
    text.push_str(&format!("Next: prep weights {} --emit torch\n", shell_word(&args.input.input)));
    text
}

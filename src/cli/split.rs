//! `prep split`: options, and what is said at the end.

mod earlier;
mod keep;
mod words;

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Instant;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::args::{Global, Input};
use super::run;
use super::terminal::Terminal;
use super::watch::watcher;
use crate::engine::cancel::Cancel;
use crate::engine::flight::Flight;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fault::{Cause, Fault, Status};
use crate::home::{self, Home};
use crate::manifest::Row;
use crate::names::shown;
use crate::out::link::Link;
use crate::out::place;
use crate::source::{Kind, Listing};
use crate::split::export::{self, Form};
use crate::split::{self, Dups, GroupBy, Method, Options, Outcome, Part, Pattern, Place, Why, lot, options};

use self::earlier::{All, alike};

/// The key of the sidecar under which a split is described.
const SPLIT: &str = "split";

/// Gives every usable image a part (train, val, test …) or a fold. Images of one group stay together, classes have their
/// shares in every part as nearly as whole groups allow, and the table says how near that is. The result is written into
/// the manifest; a second run after more data came moves as little as possible.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    pub input: Input,
    /// The manifest to write; by default that of INPUT
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Spread the classes evenly, or these columns (with `=`, as in --stratify=label,site); numbers are cut into bins
    #[arg(long, value_name = "COL,…", num_args = 0..=1, require_equals = true, default_missing_value = "", value_delimiter = ',')]
    stratify: Option<Vec<String>>,
    /// Keep together what shares a column, `parent` (the folder) or what `regex:…` captures in the path
    #[arg(long, value_name = "BY,…")]
    group_by: Vec<String>,
    /// A pattern over paths whose (?<name>…) --group-by may use
    #[arg(long, value_name = "REGEX")]
    group_regex: Vec<String>,
    /// Keep duplicates together: exact copies; near ones too; or all that may be of one scene (decodes the pictures)
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "near")]
    group_dups: Option<DupsName>,
    /// Parts and their shares [default: train=0.8,val=0.2]
    #[arg(long, value_name = "NAME=SHARE,…")]
    ratio: Option<String>,
    /// So many folds (column `fold`); with --ratio test=0.1 of what is not held out
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u8).range(2..=200))]
    kfold: Option<u8>,
    /// Balanced classes, or by the hash of each group's key alone
    #[arg(long, value_enum, default_value = "balanced", value_name = "HOW")]
    method: MethodName,
    /// In the order of this column: the parts follow each other in time
    #[arg(long, value_name = "COL", conflicts_with = "method")]
    time: Option<String>,
    /// Bins of numeric columns; 0 for none
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(0..=1000))]
    bins: u16,
    /// Leave every image where this manifest has it; only new ones are placed
    #[arg(long, value_name = "MANIFEST", conflicts_with = "reset")]
    keep: Option<PathBuf>,
    /// Forget an earlier split, and deal the parts too that --ratio does not name
    #[arg(long)]
    reset: bool,
    /// The table alone tells: the images need not be there
    #[arg(long)]
    no_files: bool,
    /// A class may be missing from a part
    #[arg(long)]
    allow_missing: bool,
    /// Write it for other programs too: split.csv, train.txt and val.txt, or train/CLASS/… for ImageFolder
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FORM,…")]
    export: Vec<ExportForm>,
    /// How the tree gets its images; hard links share one file with the source: changing one changes both
    #[arg(long, value_enum, default_value = "hard", value_name = "HOW")]
    link: LinkName,
    /// Where exports go [default: a folder beside INPUT with -split at its name]
    #[arg(long, value_name = "DIR")]
    export_dir: Option<PathBuf>,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq)]
enum DupsName {
    Exact,
    Near,
    Scene,
}

impl From<DupsName> for Dups {
    fn from(name: DupsName) -> Self {
        match name {
            DupsName::Exact => Self::Exact,
            DupsName::Near => Self::Near,
            DupsName::Scene => Self::Scene,
        }
    }
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq)]
enum ExportForm {
    Csv,
    Lists,
    Tree,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq)]
enum LinkName {
    Hard,
    Sym,
    Copy,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq)]
enum MethodName {
    Balanced,
    Hash,
}

impl Args {
    /// Does it decode, so that a crash of a decoder must be survived?
    pub fn decodes(&self) -> bool {
        matches!(self.group_dups, Some(DupsName::Near | DupsName::Scene))
    }

    /// The input; a column that was meant for --stratify is no folder.
    fn check_input(&self) -> Result<()> {
        let input = &self.input.input;
        let bare = self.stratify.as_ref().is_some_and(|columns| columns.iter().all(|c| c.trim().is_empty()));
        if bare && !input.exists() && input.components().count() == 1 {
            let name = shown(input);
            return Err(Error::Usage(format!(
                "there is no {name} here; if it is a column, write --stratify={name}, with `=`"
            )));
        }
        Ok(())
    }

    /// Lists the whole input, and what of it was asked for.
    fn open(&self, options: &Options, terminal: &Terminal) -> Result<(All, Home)> {
        let mut input = self.input.options();
        input.files = !self.no_files;
        if self.no_files && options.dups.is_some() {
            return Err(Error::Usage(
                "--group-dups reads the files, --no-files leaves them: drop one".into(),
            ));
        }
        if self.no_files && self.export.contains(&ExportForm::Tree) {
            return Err(Error::Usage(
                "--export tree links the files, --no-files leaves them: drop one".into(),
            ));
        }
        let (listing, home) = run::list_at_home(&self.input, &input, self.out.as_deref(), terminal)?;
        let asked = home.whole(&listing).1;
        let listing = if home.is_partial() { home.whole(&listing).0.clone() } else { listing };
        if !options.stratify.is_empty() && options.stratify.contains(&None) && listing.classes.is_empty() {
            let why = "there are no labels to stratify by: neither class folders nor a column of labels (--label-col names one)";
            return Err(Error::Usage(why.into()));
        }
        Ok((All { listing, asked, sizes: Vec::new() }, home))
    }

    fn options(&self, global: &Global, terminal: &Terminal) -> Result<Options> {
        let parts = match (&self.ratio, self.kfold) {
            (None, Some(_)) => vec![Part { name: "train".into(), share: 1.0 }],
            (text, _) => {
                let ratio = options::parse_ratio(text.as_deref().unwrap_or("train=0.8,val=0.2"))?;
                ratio.said.iter().for_each(|sentence| terminal.say(sentence));
                ratio.parts
            }
        };
        let mut group_by = Vec::new();
        for text in &self.group_by {
            group_by.extend(options::parse_group_by(text)?);
        }
        let patterns: Vec<Pattern> =
            self.group_regex.iter().map(|p| Pattern::parse(p)).collect::<Result<_>>()?;
        if let Some(nameless) = patterns.iter().position(|p| p.names().next().is_none()) {
            return Err(Error::Usage(format!(
                "--group-regex {}: it names nothing; write the part that tells the group as (?<plant_id>…)",
                shown(&self.group_regex[nameless])
            )));
        }
        let named = |name: &str| group_by.iter().any(|by| matches!(by, GroupBy::Name(n) if n == name));
        if let Some(unused) = patterns.iter().position(|p| !p.names().any(named)) {
            let names: Vec<&str> = patterns[unused].names().collect();
            return Err(Error::Usage(format!(
                "--group-regex {} alone groups nothing: add --group-by {}",
                shown(&self.group_regex[unused]),
                shown(names[0])
            )));
        }
        if self.time.is_some() && self.kfold.is_some() {
            terminal.warn("--time with --kfold: the folds follow each other in time, so most folds validate on the past");
        } else if self.time.is_some() && self.stratify.is_some() {
            terminal.warn("--time alone decides: --stratify changes nothing but what the table shows");
        }
        let column = |name: &String| (!name.trim().is_empty()).then(|| name.trim().to_owned());
        Ok(Options {
            parts,
            folds: self.kfold.map(usize::from),
            stratify: self.stratify.iter().flatten().map(column).collect(),
            bins: self.bins.into(),
            group_by,
            patterns,
            dups: self.group_dups.map(Into::into),
            method: match (&self.time, self.method) {
                (Some(column), _) => Method::Time(column.clone()),
                (None, MethodName::Balanced) => Method::Balanced,
                (None, MethodName::Hash) => Method::Hash,
            },
            seed: global.seed,
            allow_missing: self.allow_missing,
        })
    }

    fn forms(&self) -> Vec<Form> {
        let link = match self.link {
            LinkName::Hard => Link::Hard,
            LinkName::Sym => Link::Symbolic,
            LinkName::Copy => Link::Copy,
        };
        let form = |form: &ExportForm| match form {
            ExportForm::Csv => Form::Csv,
            ExportForm::Lists => Form::Lists,
            ExportForm::Tree => Form::Tree(link),
        };
        self.export.iter().map(form).collect()
    }

    /// The exports, ready to be written.
    fn exports<'a>(
        &self,
        listing: &'a Listing,
        options: &Options,
        outcome: &Outcome<'_>,
        terminal: &Terminal,
    ) -> Result<Option<export::Prepared<'a>>> {
        let forms = self.forms();
        if forms.is_empty() {
            return Ok(None);
        }
        let folder = match &self.export_dir {
            Some(folder) => folder.clone(),
            None => place::beside(&self.input.input, "-split")?,
        };
        let prepared = export::prepare(listing, options, outcome, &forms, &folder)?;
        prepared.warnings.iter().for_each(|sentence| terminal.warn(sentence));
        Ok(Some(prepared))
    }
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// What ends the run.
pub fn run(args: &Args, global: &Global, terminal: &Terminal, flight: Option<&Flight>) -> Result<u8> {
    let begun = Instant::now();
    args.check_input()?;
    let mut options = args.options(global, terminal)?;
    let cancel = Cancel::on_signals();
    let (all, home) = args.open(&options, terminal)?;
    // A million entries are not worth freeing one by one at the end.
    let mut all = std::mem::ManuallyDrop::new(all);
    let mut earlier = args.earlier(&all, &home, &mut options, terminal)?;
    if !global.dry_run {
        home.check_place()?;
    }
    let crew = run::crew(global, &cancel, flight)?;
    if let Some(dups @ (Dups::Near | Dups::Scene)) = options.dups {
        alike(&mut all, &mut earlier, dups, (args, global), &crew, terminal)?;
    }
    let listing = &all.listing;
    let mut outcome = split::run(listing, &options, &earlier, &crew, watcher(global).as_mut())?;
    for (place, asked) in outcome.places.iter_mut().zip(&all.asked) {
        *place = if *asked { *place } else { Place::default() };
    }
    if !args.no_files && all.sizes.is_empty() && !home.is_measured(listing) {
        terminal
            .say("the pictures were not opened: damaged ones are known after prep stats, audit or shrink");
    }
    outcome.said.iter().for_each(|sentence| terminal.say(sentence));
    outcome.warnings.iter().for_each(|sentence| terminal.warn(sentence));
    let mut kept = home::Kept::default();
    let exports = args.exports(listing, &options, &outcome, terminal)?;
    if !global.dry_run {
        // The manifest last: it tells what is done.
        exports.as_ref().map_or(Ok(()), export::Prepared::write)?;
        kept = write(&all, &home, &options, &outcome)?;
        kept.renamed.iter().for_each(|sentence| terminal.say(sentence));
    }
    let ending = words::Ending {
        input: args.out.as_ref().unwrap_or(&args.input.input),
        manifest: &home.manifest,
        gone: kept.gone,
        exports: exports.as_ref().map(export::Prepared::folder),
        lists: args.export.iter().any(|form| matches!(form, ExportForm::Csv | ExportForm::Lists)),
        root: &listing.root,
        dry_run: global.dry_run,
        seconds: begun.elapsed().as_secs_f64(),
    };
    if global.json {
        terminal.result(&words::json(&outcome, &options, &ending))?;
    } else if !terminal.is_quiet() {
        terminal.result(&words::text(&outcome, &ending, terminal.verbose > 0))?;
    }
    let bad = outcome.left_out.iter().filter(|l| matches!(l.why, Why::Fault(_))).map(|l| l.n).sum();
    let asked = all.asked.iter().filter(|asked| **asked).count();
    Ok(u8::from(args.input.max_bad.exceeded(bad, asked)))
}

/// Writes the split into the manifest.
fn write(all: &All, home: &Home, options: &Options, outcome: &Outcome<'_>) -> Result<home::Kept> {
    let listing = &all.listing;
    // A user's own column `group` that the manifest continues is theirs.
    let theirs = |column: &usize| listing.table.as_ref().is_some_and(|t| t.columns[*column] == "group");
    let theirs = listing.kind == Kind::Table && listing.taken.iter().any(theirs);
    // Groups of an earlier split would be taken for those of this one.
    let before = home.sidecar().and_then(|s| s.rest.get(SPLIT));
    let had =
        before.and_then(|s| s.get("group_sources")).and_then(Value::as_array).is_some_and(|a| !a.is_empty());
    let groups = !theirs && (outcome.has_groups() || had);
    let mut hashes = outcome.hashes.iter().peekable();
    let changed = Cell::new(false);
    let change = |at: usize, row: &mut Row| {
        let hash = hashes.next_if(|(entry, _)| *entry == at);
        if !all.asked[at] {
            return;
        }
        let place = outcome.places[at];
        let name = place.part.map_or("", |part| options.parts[usize::from(part)].name.as_str());
        let fold = place.fold_text();
        if row.split != name || row.fold != fold {
            name.clone_into(&mut row.split);
            row.fold = fold;
            changed.set(true);
        }
        if groups {
            outcome.group(at).clone_into(&mut row.group);
        }
        if let Some((_, hash)) = hash {
            row.hash.clone_from(hash);
        }
        let size = all.sizes.get(at).copied().flatten();
        mark(row, &listing.entries[at], size);
    };
    home.rewrite(listing, "split", change, |sidecar| {
        sidecar.seed = Some(options.seed);
        sidecar.scheme = Some(lot::SCHEME.into());
        let summary = words::summary(outcome, options);
        match sidecar.rest.get_mut(SPLIT).and_then(Value::as_object_mut).filter(|_| home.is_partial()) {
            // The description of the whole stays, with what was done to a part of it since.
            Some(whole) => {
                let later = whole.entry("of_a_part").or_insert_with(|| json!([]));
                if let Some(later) = later.as_array_mut() {
                    later.push(summary);
                }
            }
            None => {
                sidecar.options.insert(SPLIT.into(), Value::Object(described(options)));
                sidecar.rest.insert(SPLIT.into(), summary);
            }
        }
        if changed.get() {
            // Numbers of other training rows are not the numbers of these.
            (sidecar.stats, sidecar.weights) = (Value::Null, Value::Null);
        }
    })
}

/// Notes what was seen of a picture: its size where it was decoded, and that it is not usable.
fn mark(row: &mut Row, entry: &Entry, size: Option<(u32, u32)>) {
    if let Some((width, height)) = size {
        (row.width, row.height) = (Some(width), Some(height));
        // What may be otherwise on the next run is not kept.
        let lasting = |f: &&Fault| !f.cause.is_transient() && f.cause != Cause::TooLarge;
        row.fault = entry.fault.as_ref().filter(lasting).cloned();
    } else if entry.fault.is_none() && entry.bytes == 0 && !entry.file.as_os_str().is_empty() {
        row.fault = Some(Fault::new(Cause::Empty, "no bytes"));
    }
    row.status = row.fault.as_ref().map_or(Status::Ok, Fault::status);
}

/// The options in the sidecar.
fn described(options: &Options) -> Map<String, Value> {
    let groups: Vec<String> = options.group_by.iter().map(|g| g.text(&options.patterns)).collect();
    let stratify: Vec<&str> = options.stratify.iter().map(|c| c.as_deref().unwrap_or("label")).collect();
    let parts: Map<String, Value> =
        options.dealt().iter().map(|p| (p.name.clone(), p.share.into())).collect();
    let method = match &options.method {
        Method::Balanced => json!("balanced"),
        Method::Hash => json!("hash"),
        Method::Time(column) => json!({"time": column}),
    };
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
    put("parts", parts.into());
    put("folds", options.folds.into());
    put("stratify", stratify.into());
    put("bins", options.bins.into());
    put("group_by", groups.into());
    put("group_dups", options.dups.map(Dups::as_str).into());
    put("method", method);
    put("seed", options.seed.into());
    map
}

//! `prep split`: options, and what is said at the end.

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
use crate::error::{Error, Result};
use crate::home::{self, Home};
use crate::manifest::Row;
use crate::names::shown;
use crate::out::link::Link;
use crate::out::place;
use crate::source::{Kind, Listing};
use crate::split::export::{self, Form};
use crate::split::{self, Earlier, Method, Options, Outcome, Part, Pattern, Place, lot, options};

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
    /// Spread the classes evenly, or these columns (write the `=`); numbers are cut into bins
    #[arg(long, value_name = "COL,…", num_args = 0..=1, require_equals = true, default_missing_value = "", value_delimiter = ',')]
    stratify: Option<Vec<String>>,
    /// Keep together what shares a column, `parent` (the folder) or what `regex:…` captures in the path
    #[arg(long, value_name = "BY,…")]
    group_by: Vec<String>,
    /// A pattern over paths whose (?<name>…) --group-by may use
    #[arg(long, value_name = "REGEX")]
    group_regex: Vec<String>,
    /// Keep equal files together
    #[arg(long)]
    group_dups: bool,
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
    /// Forget an earlier split
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
    /// How the tree gets its images
    #[arg(long, value_enum, default_value = "hard", value_name = "HOW")]
    link: LinkName,
    /// Where exports go [default: a folder beside INPUT with -split at its name]
    #[arg(long, value_name = "DIR")]
    export_dir: Option<PathBuf>,
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
        let column = |name: &String| (!name.trim().is_empty()).then(|| name.trim().to_owned());
        Ok(Options {
            parts,
            folds: self.kfold.map(usize::from),
            stratify: self.stratify.iter().flatten().map(column).collect(),
            bins: self.bins.into(),
            group_by,
            patterns,
            group_dups: self.group_dups,
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

    /// What is known of the entries: where they were, and their hashes.
    fn earlier(
        &self,
        listing: &Listing,
        home: &Home,
        options: &Options,
    ) -> Result<(Earlier, Option<String>)> {
        let mut earlier = Earlier { keep: self.keep.is_some(), ..Earlier::default() };
        let mut said = None;
        if options.group_dups {
            let hash = |at| Ok(home.row(listing, at)?.map(|row| row.hash).unwrap_or_default());
            earlier.hashes = (0..listing.entries.len()).map(hash).collect::<Result<_>>()?;
        }
        if let Some(path) = &self.keep {
            earlier.places = keep::places(path, listing, options)?;
            return Ok((earlier, said));
        }
        let before = home.sidecar().and_then(|s| s.rest.get(SPLIT));
        let heading = before.and_then(|s| s.get("heading")).and_then(Value::as_str);
        let is_split = listing.entries.iter().any(|e| !e.split.is_empty());
        match heading {
            _ if self.reset => {}
            Some(heading) if heading == options.heading() => {
                let part = |name: &str| options.parts.iter().position(|p| p.name == name).map(|p| p as u8);
                let place = |at: usize| -> Result<Option<Place>> {
                    let fold = match options.folds {
                        Some(_) => home.row(listing, at)?.and_then(|row| row.fold.parse().ok()),
                        None => None,
                    };
                    let place = Place { part: part(&listing.entries[at].split), fold };
                    Ok((place != Place::default()).then_some(place))
                };
                earlier.places = (0..listing.entries.len()).map(place).collect::<Result<_>>()?;
                said = Some(
                    "continues the earlier split: as few groups as possible move (--reset begins anew)"
                        .into(),
                );
            }
            Some(_) => said = Some("an earlier split was made with other options: split anew".into()),
            None if is_split => {
                said =
                    Some("the parts that the input has are replaced in the manifest; no file moves".into());
            }
            None => {}
        }
        Ok((earlier, said))
    }
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// What ends the run.
pub fn run(args: &Args, global: &Global, terminal: &Terminal) -> Result<u8> {
    let begun = Instant::now();
    let options = args.options(global, terminal)?;
    let cancel = Cancel::on_signals();
    let mut input = args.input.options();
    input.files = !args.no_files;
    if args.no_files && options.group_dups {
        return Err(Error::Usage("--group-dups reads the files, --no-files leaves them: drop one".into()));
    }
    if args.no_files && args.export.contains(&ExportForm::Tree) {
        return Err(Error::Usage("--export tree links the files, --no-files leaves them: drop one".into()));
    }
    let (listing, home) = run::list_at_home(&args.input, &input, args.out.as_deref(), terminal)?;
    // A million entries are not worth freeing one by one at the end.
    let listing = std::mem::ManuallyDrop::new(listing);
    if !options.stratify.is_empty() && options.stratify.contains(&None) && listing.classes.is_empty() {
        let why = "there are no labels to stratify by: neither class folders nor a column of labels (--label-col names one)";
        return Err(Error::Usage(why.into()));
    }
    let (earlier, said) = args.earlier(&listing, &home, &options)?;
    said.iter().for_each(|sentence| terminal.say(sentence));
    let crew = run::crew(global, &cancel, None)?;
    let outcome = split::run(&listing, &options, &earlier, &crew, watcher(global).as_mut())?;
    if !args.no_files && !home.is_measured(&listing) {
        terminal.say("the pictures were not opened: damaged ones are known after prep shrink");
    }
    outcome.said.iter().for_each(|sentence| terminal.say(sentence));
    outcome.warnings.iter().for_each(|sentence| terminal.warn(sentence));
    let mut kept = home::Kept::default();
    let exports = args.exports(&listing, &options, &outcome, terminal)?;
    if !global.dry_run {
        // The manifest last: it tells what is done.
        exports.as_ref().map_or(Ok(()), export::Prepared::write)?;
        kept = write(&listing, &home, &options, &outcome)?;
        kept.renamed.iter().for_each(|sentence| terminal.say(sentence));
    }
    let ending = words::Ending {
        input: &args.input.input,
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
    Ok(0)
}

/// Writes the split into the manifest.
fn write(listing: &Listing, home: &Home, options: &Options, outcome: &Outcome<'_>) -> Result<home::Kept> {
    // A user's own column `group` that the manifest continues is theirs.
    let theirs = |column: &usize| listing.table.as_ref().is_some_and(|t| t.columns[*column] == "group");
    let groups = outcome.has_groups() && !(listing.kind == Kind::Table && listing.taken.iter().any(theirs));
    let mut hashes = outcome.hashes.iter().peekable();
    let changed = Cell::new(false);
    let change = |at: usize, row: &mut Row| {
        let place = outcome.places[at];
        let name = place.part.map_or("", |part| options.parts[usize::from(part)].name.as_str());
        if row.split != name {
            name.clone_into(&mut row.split);
            changed.set(true);
        }
        row.fold = place.fold.map(|fold| fold.to_string()).unwrap_or_default();
        if groups {
            outcome.group(at).clone_into(&mut row.group);
        }
        if let Some((_, hash)) = hashes.next_if(|(entry, _)| *entry == at) {
            row.hash.clone_from(hash);
        }
    };
    home.rewrite(listing, "split", change, |sidecar| {
        sidecar.seed = Some(options.seed);
        sidecar.scheme = Some(lot::SCHEME.into());
        sidecar.options.insert(SPLIT.into(), Value::Object(described(options)));
        sidecar.rest.insert(SPLIT.into(), words::summary(outcome, options));
        if changed.get() {
            // Numbers of other training rows are not the numbers of these.
            (sidecar.stats, sidecar.weights) = (Value::Null, Value::Null);
        }
    })
}

/// The options in the sidecar.
fn described(options: &Options) -> Map<String, Value> {
    let groups: Vec<String> = options.group_by.iter().map(|g| g.text(&options.patterns)).collect();
    let stratify: Vec<&str> = options.stratify.iter().map(|c| c.as_deref().unwrap_or("label")).collect();
    let parts: Map<String, Value> = options.parts.iter().map(|p| (p.name.clone(), p.share.into())).collect();
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
    put("group_dups", options.group_dups.into());
    put("method", method);
    put("seed", options.seed.into());
    map
}

//! `prep audit`: options, and the findings as a summary, a document, or tables.

mod exclude;
mod html;
mod words;

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use self::exclude::Excluded;
use super::args::{Global, Input};
use super::run;
use super::terminal::{Terminal, plural, thousands};
use super::watch::watcher;
use crate::audit::{self, CODES, Choice, Finding, Severity};
use crate::decode::Contract;
use crate::engine::cancel::Cancel;
use crate::engine::crew::Crew;
use crate::engine::flight::Flight;
use crate::engine::pipe::{Damage, Pipe};
use crate::error::{Error, Result};
use crate::fault::Status;
use crate::names::shown;
use crate::near;
use crate::out;
use crate::source::{self, Listing};
use crate::survey;

/// All that is wrong with a data set: files that do not decode, duplicates, leaks between splits, faults of the label
/// table, shortcuts. Every file is decoded whole, once; what was found is kept in a cache.
///
/// With --exclude, codes (D001,F014) or a list of paths mark rows as excluded in the manifest, and later commands leave
/// them out; `prep undo` takes that back. Files are never touched.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment, mut_arg("exclude", |arg| {
    arg.value_name("CODES|LIST|GLOB").help("Take out of the manifest what has these codes, or what a list names; a glob: as for other commands")
}))]
pub struct Args {
    #[command(flatten)]
    pub input: Input,
    /// Only findings whose codes begin so, as in F,D004
    #[arg(long, value_delimiter = ',', value_name = "CODES")]
    select: Vec<String>,
    /// No findings whose codes begin so
    #[arg(long, value_delimiter = ',', value_name = "CODES")]
    ignore: Vec<String>,
    /// Exit with 1 when there is a finding at least as bad as this
    #[arg(long, value_enum, default_value = "error", value_name = "LEVEL")]
    fail_on: FailOn,
    /// Tell which pictures are in this set too: a folder, table or manifest, such as a benchmark's test set
    #[arg(long, value_name = "OTHER")]
    against: Option<PathBuf>,
    /// Look for no near-duplicates (same bytes and same pixels are found all the same)
    #[arg(long)]
    no_near: bool,
    /// Write one row an image with everything that is known of it
    #[arg(long, value_name = "FILE.csv")]
    facts: Option<PathBuf>,
    /// Write one row for each image of each finding
    #[arg(long, value_name = "FILE.csv")]
    findings: Option<PathBuf>,
    /// Write a report to look at: one HTML file that needs no network, beside INPUT or as FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[expect(clippy::option_option, reason = "not given, given without a file, given with one")]
    html: Option<Option<PathBuf>>,
    /// Images of the report with a thumbnail, at most; 2,000 make 7 MB
    #[arg(long, value_name = "N", default_value_t = 2000)]
    thumbs: usize,
    /// Say what a code means and what to do; `all` lists them
    #[arg(long, value_name = "CODE", exclusive = true)]
    explain: Option<String>,
    /// The manifest that --exclude writes; by default the input's own
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum FailOn {
    Error,
    Warning,
    Info,
    Never,
}

impl FailOn {
    fn least(self) -> Option<Severity> {
        match self {
            Self::Error => Some(Severity::Error),
            Self::Warning => Some(Severity::Warning),
            Self::Info => Some(Severity::Info),
            Self::Never => None,
        }
    }
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// What ends the run.
pub fn run(args: &Args, global: &Global, terminal: &Terminal, flight: Option<&Flight>) -> Result<u8> {
    if let Some(code) = &args.explain {
        return terminal.result(&words::explain(code)?).map(|()| 0);
    }
    let choice = choice(args)?;
    let (input, wishes) = exclude::wishes(&args.input)?;
    if let (Some(out), None) = (&args.out, &wishes) {
        let out = shown(out);
        return Err(Error::Usage(format!(
            "-o {out} is the manifest that --exclude writes; --html, --facts and --findings name their own files"
        )));
    }
    let page = page(args, &input)?;
    check_outputs(args, page.as_deref())?;
    let cancel = Cancel::on_signals();
    let other = args.against.as_deref().map(open_other).transpose()?;
    let (listing, home) = run::list_at_home(&input, &input.options(), args.out.as_deref(), terminal)?;
    let asked = wishes.map(|wishes| exclude::Asked::of(wishes, &listing)).transpose()?;
    let excludes = asked.is_some();
    if excludes && !global.dry_run {
        home.check_place()?;
    }
    let pipe = run::pipe(&input, global, Contract::default(), Damage::Tell)?;
    let crew = run::crew(global, &cancel, flight)?;
    let mut cache = run::cache(global, &listing);
    let mut watch = watcher(global);
    let chosen: Vec<usize> = (0..listing.entries.len()).collect();
    let survey = survey::run(&listing, &chosen, &pipe, &crew, cache.as_mut(), watch.as_mut())?;
    run::tell_cache(cache.as_ref(), survey.decoded, terminal);
    let alike = alike(args, &survey, (pipe.threads, &cancel), terminal)?;
    let others = match &other {
        Some(there) => {
            let found = against(args, there, &survey, (&pipe, &crew), global, terminal)?;
            let (here, other) =
                (plural(found.len(), "image"), args.against.as_deref().unwrap_or(Path::new("")));
            let (images, other) = (plural(there.entries.len(), "image"), shown(other));
            terminal.say(&format!("also in {other} ({images}): {here}"));
            found
        }
        None => Vec::new(),
    };
    let findings = audit::judge(&listing, &survey.facts, &alike, others.clone(), &choice);
    if let Some(path) = &args.facts {
        audit::write_facts(path, &listing, &survey.facts, &findings)?;
    }
    if let Some(path) = &args.findings {
        audit::write_findings(path, &listing, &findings)?;
    }
    let excluded = match asked {
        Some(asked) => {
            // --select and --ignore choose what is told, not what is there.
            let all = audit::judge(&listing, &survey.facts, &alike, others, &Choice::default());
            exclude::exclude(asked, &listing, &home, &all, global.dry_run)?
        }
        None => Excluded::default(),
    };
    if let Some(path) = &page {
        let (facts, thumbs) = (&survey.facts, args.thumbs);
        let report = html::Report {
            input: &input,
            listing: &listing,
            home: &home,
            facts,
            findings: &findings,
            thumbs,
        };
        html::write(path, &report, &pipe, &crew)?;
    }
    if global.json {
        terminal.result(&words::document(&input, &listing, &survey.facts, &findings, excluded.rows.len()))?;
    } else {
        terminal.result(&words::summary(&input, &listing, &survey.facts, &findings, terminal.verbose > 0))?;
    }
    for path in [&args.facts, &args.findings, &page].into_iter().flatten() {
        terminal.say(&format!("Written: {}", shown(&super::terminal::near(path))));
    }
    if excludes {
        let place = shown(&super::terminal::near(&home.manifest)).to_string();
        let rows = plural(excluded.rows.len(), "image");
        let undo = super::terminal::shell_word(&super::undo::word(&input.input, &home.manifest));
        terminal.say(&match (excluded.rows.is_empty(), global.dry_run) {
            (true, _) => "Nothing to exclude: no image is meant".to_owned(),
            (false, true) => format!("Would exclude {rows} in {place}"),
            (false, false) if excluded.undoable => {
                format!("Excluded {rows} in {place}; prep undo {undo} takes it back")
            }
            (false, false) => format!(
                "Excluded {rows} in {place} (nothing is kept for prep undo: there is no place for it)"
            ),
        });
    }
    if excluded.disputed > 0 {
        let sets = plural(excluded.disputed, "set");
        terminal.say(&format!(
            "{sets} of copies stay whole, because their labels differ: prep audit --explain D004 says what to do"
        ));
    }
    if !global.json && !excludes {
        terminal.say(&words::next(&input, &findings, page.is_some()));
    }
    let bad = survey.facts.iter().filter(|f| is_bad(f.status())).count();
    let counts = |f: &&Finding| !audit::is_settled(f, &excluded.rows);
    let failing = args
        .fail_on
        .least()
        .is_some_and(|least| findings.iter().filter(counts).any(|f| f.code.severity >= least));
    Ok(u8::from(failing || input.max_bad.exceeded(bad, survey.facts.len())))
}

/// Where the HTML report goes, if one is wanted.
fn page(args: &Args, input: &Input) -> Result<Option<PathBuf>> {
    match &args.html {
        None => Ok(None),
        Some(Some(path)) => Ok(Some(path.clone())),
        Some(None) => html::default_place(&input.input).map(Some),
    }
}

/// The near-duplicates, unless nobody wants them.
fn alike(
    args: &Args,
    survey: &survey::Survey,
    (threads, cancel): (usize, &Cancel),
    terminal: &Terminal,
) -> Result<Vec<near::Pair>> {
    if args.no_near {
        return Ok(Vec::new());
    }
    let options = near::Options { threads, ..near::Options::default() };
    let found = near::search(&survey.prints, &options, cancel, &mut |_, _| ())?;
    if found.depth < near::Depth::Windows {
        let n = thousands(found.prints as u64);
        let without = match found.depth {
            near::Depth::Upright => "crops, turned and mirrored copies",
            _ => "crops and small rotations",
        };
        terminal.say(&format!("of {n} pictures near-duplicates are looked for without {without}"));
    }
    if found.crowded > 0 {
        terminal.say(&format!(
            "{} look like so many others that not all pairs are told",
            plural(found.crowded, "picture")
        ));
    }
    Ok(found.pairs)
}

/// The other set, which must have images.
fn open_other(other: &Path) -> Result<Listing> {
    let listing = source::open(other, &source::Options::default())?;
    match listing.entries.is_empty() {
        true => Err(Error::Usage(format!("--against {}: there are no images in it", shown(other)))),
        false => Ok(listing),
    }
}

/// What is in the other set too.
fn against(
    args: &Args,
    listing: &Listing,
    survey: &survey::Survey,
    (pipe, crew): (&Pipe, &Crew<'_>),
    global: &Global,
    terminal: &Terminal,
) -> Result<Vec<Finding>> {
    let chosen: Vec<usize> = (0..listing.entries.len()).collect();
    let mut cache = run::cache(global, listing);
    let mut watch = watcher(global);
    let there = survey::run(listing, &chosen, pipe, crew, cache.as_mut(), watch.as_mut())?;
    run::tell_cache(cache.as_ref(), there.decoded, terminal);
    let pairs = if args.no_near {
        Vec::new()
    } else {
        let options = near::Options { threads: pipe.threads, ..near::Options::default() };
        near::against(&survey.prints, &there.prints, &options, crew.cancel, &mut |_, _| ())?.pairs
    };
    Ok(audit::against(&survey.facts, listing, &there.facts, &pairs))
}

fn is_bad(status: Status) -> bool {
    matches!(status, Status::Damaged | Status::Bad | Status::Unsupported)
}

fn choice(args: &Args) -> Result<Choice> {
    for pattern in args.select.iter().chain(&args.ignore) {
        if !CODES.iter().any(|code| code.is_named(std::slice::from_ref(pattern))) {
            let pattern = shown(pattern);
            return Err(Error::Usage(format!(
                "`{pattern}` is no code of a finding; prep audit --explain all lists them"
            )));
        }
    }
    Ok(Choice { select: args.select.clone(), ignore: args.ignore.clone() })
}

/// Tells a file of ours by its first bytes.
type IsOurs<'a> = &'a dyn Fn(&[u8]) -> bool;

/// Refuses to write over anything that an earlier audit did not write, before the work begins.
fn check_outputs(args: &Args, page: Option<&Path>) -> Result<()> {
    let is_table = |text: &[u8], columns: &[&str]| text.starts_with(columns.join(",").as_bytes());
    let outputs: [(Option<&Path>, IsOurs<'_>); 3] = [
        (args.facts.as_deref(), &|text| is_table(text, &audit::FACTS)),
        (args.findings.as_deref(), &|text| is_table(text, &audit::FINDINGS)),
        (page, &crate::page::is_ours),
    ];
    let mut taken: Vec<PathBuf> = Vec::new();
    for (path, is_ours) in outputs.into_iter().filter_map(|(path, is_ours)| Some((path?, is_ours))) {
        let place = out::place::real_of_planned(path);
        if taken.contains(&place) {
            return Err(Error::Usage(format!("{} is named for two outputs", shown(path))));
        }
        taken.push(place);
        let shut =
            |_| format!("{} cannot be written, its folder does not allow it: name another file", shown(path));
        out::place::check_writable("writing", path).map_err(|e| Error::Outputs(shut(e)))?;
        let Ok(meta) = path.metadata() else { continue };
        if !meta.is_file() || !is_ours(&beginning(path)) {
            return Err(Error::Outputs(format!(
                "{} is there and was not written by prep audit: name another file",
                shown(path)
            )));
        }
    }
    Ok(())
}

/// The first bytes of a file; none where it cannot be read.
fn beginning(path: &Path) -> Vec<u8> {
    use std::io::Read;
    let mut start = Vec::new();
    let _ = std::fs::File::open(path).and_then(|file| file.take(4096).read_to_end(&mut start));
    start
}

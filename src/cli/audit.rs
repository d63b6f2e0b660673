//! `prep audit`: options, and the findings as a summary, a document, or tables.

mod html;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::args::{Global, Input};
use super::run;
use super::terminal::{Terminal, bytes, columns, plural, thousands};
use super::watch::watcher;
use crate::audit::{self, CODES, Choice, Code, Exclusion, Finding, Severity};
use crate::decode::Contract;
use crate::engine::cancel::Cancel;
use crate::engine::crew::Crew;
use crate::engine::flight::Flight;
use crate::engine::pipe::{Damage, Pipe};
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::fault::{Cause, Fault, Status};
use crate::home::Home;
use crate::names::shown;
use crate::near;
use crate::source::{self, Listing};
use crate::survey;

/// The JSON document's version.
const SCHEMA: u32 = 1;

/// All that is wrong with a data set: files that do not decode, duplicates, leaks between splits, faults of the label
/// table, shortcuts. Every file is decoded whole, once; what was found is kept in a cache.
///
/// With --exclude, codes (D001,F014) or a list of paths mark rows as excluded in the manifest, and later commands leave
/// them out; `prep undo` takes that back. Files are never touched.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
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
        return terminal.result(&explain(code)?).map(|()| 0);
    }
    let choice = choice(args)?;
    let (input, wishes) = wishes(&args.input)?;
    let page = page(args, &input)?;
    check_outputs(args, page.as_deref())?;
    let cancel = Cancel::on_signals();
    let (listing, home) = run::list_at_home(&input, &input.options(), args.out.as_deref(), terminal)?;
    let pipe = run::pipe(&input, global, Contract::default(), Damage::Tell)?;
    let crew = run::crew(global, &cancel, flight)?;
    let mut cache = run::cache(global, &listing);
    let mut watch = watcher(global);
    let chosen: Vec<usize> = (0..listing.entries.len()).collect();
    let survey = survey::run(&listing, &chosen, &pipe, &crew, cache.as_mut(), watch.as_mut())?;
    run::tell_cache(cache.as_ref(), survey.decoded, terminal);
    let alike = alike(args, &survey, (pipe.threads, &cancel), terminal)?;
    let others = match &args.against {
        Some(other) => against(args, other, &survey, (&pipe, &crew), global, terminal)?,
        None => Vec::new(),
    };
    let findings = audit::judge(&listing, &survey.facts, &alike, others.clone(), &choice);
    if let Some(path) = &args.facts {
        audit::write_facts(path, &listing, &survey.facts, &findings)?;
    }
    if let Some(path) = &args.findings {
        audit::write_findings(path, &listing, &findings)?;
    }
    let excluded = match &wishes {
        Some(wishes) => {
            // --select and --ignore choose what is told, not what is there.
            let all = audit::judge(&listing, &survey.facts, &alike, others, &Choice::default());
            exclude(wishes, &listing, &home, &all, global.dry_run)?
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
        terminal.result(&document(&input, &listing, &survey.facts, &findings, excluded.rows.len()))?;
    } else {
        terminal.result(&summary(&input, &listing, &survey.facts, &findings, terminal.verbose > 0))?;
    }
    for path in [&args.facts, &args.findings, &page].into_iter().flatten() {
        terminal.say(&format!("Written: {}", shown(&super::terminal::near(path))));
    }
    if wishes.is_some() {
        let place = shown(&super::terminal::near(&home.manifest)).to_string();
        let rows = plural(excluded.rows.len(), "image");
        let undo = super::terminal::shell_word(args.out.as_deref().unwrap_or(&input.input));
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
    if !global.json && wishes.is_none() {
        terminal.say(&next(&input, &findings, page.is_some()));
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

/// What is in the other set too.
fn against(
    args: &Args,
    other: &Path,
    survey: &survey::Survey,
    (pipe, crew): (&Pipe, &Crew<'_>),
    global: &Global,
    terminal: &Terminal,
) -> Result<Vec<Finding>> {
    let listing = source::open(other, &source::Options::default())?;
    if listing.entries.is_empty() {
        return Err(Error::Usage(format!("--against {}: there are no images in it", shown(other))));
    }
    let chosen: Vec<usize> = (0..listing.entries.len()).collect();
    let mut cache = run::cache(global, &listing);
    let mut watch = watcher(global);
    let there = survey::run(&listing, &chosen, pipe, crew, cache.as_mut(), watch.as_mut())?;
    run::tell_cache(cache.as_ref(), there.decoded, terminal);
    let pairs = if args.no_near {
        Vec::new()
    } else {
        let options = near::Options { threads: pipe.threads, ..near::Options::default() };
        near::against(&survey.prints, &there.prints, &options, crew.cancel, &mut |_, _| ())?.pairs
    };
    Ok(audit::against(&survey.facts, &listing, &there.facts, &pairs))
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

/// What `--exclude` names: for other commands globs of files to leave unseen, here also codes and lists.
enum Wish {
    Codes(Vec<String>),
    List(PathBuf),
}

fn wishes(input: &Input) -> Result<(Input, Option<Vec<Wish>>)> {
    let mut rest = input.clone();
    let mut wishes = Vec::new();
    rest.exclude.retain(|value| {
        let patterns: Vec<String> = value.split(',').map(|p| p.trim().to_owned()).collect();
        let are_codes = patterns.iter().all(|p| {
            let (family, number) = p.split_at_checked(1).unwrap_or(("", ""));
            "FMDLSQX".contains(&family.to_uppercase())
                && !family.is_empty()
                && number.len() <= 3
                && number.bytes().all(|b| b.is_ascii_digit())
        });
        if are_codes {
            wishes.push(Wish::Codes(patterns));
        } else if Path::new(value).is_file() {
            wishes.push(Wish::List(PathBuf::from(value)));
        } else {
            return true;
        }
        false
    });
    let is_list = |value: &&String| [".txt", ".csv", ".lst", ".list"].iter().any(|end| value.ends_with(end));
    if let Some(list) =
        rest.exclude.iter().filter(is_list).find(|value| !value.contains(['*', '?', '[', '{']))
    {
        return Err(Error::Usage(format!("--exclude {}: there is no such list", shown(list))));
    }
    let any = !wishes.is_empty();
    Ok((rest, any.then_some(wishes)))
}

/// Refuses to write over anything that an earlier audit did not write, before the work begins.
fn check_outputs(args: &Args, page: Option<&Path>) -> Result<()> {
    let facts = audit::FACTS.join(",");
    let findings = audit::FINDINGS.join(",");
    let outputs = [
        (args.facts.as_deref(), facts.as_str()),
        (args.findings.as_deref(), findings.as_str()),
        (page, "<!doctype html>"),
    ];
    let mut taken: Vec<&Path> = Vec::new();
    for (path, begins) in outputs.into_iter().filter_map(|(path, begins)| Some((path?, begins))) {
        if taken.contains(&path) {
            return Err(Error::Usage(format!("{} is named for two outputs", shown(path))));
        }
        taken.push(path);
        let Ok(meta) = path.metadata() else { continue };
        let ours = meta.is_file() && begins_with(path, begins);
        if !ours {
            return Err(Error::Outputs(format!(
                "{} is there and was not written by prep audit: name another file",
                shown(path)
            )));
        }
    }
    Ok(())
}

fn begins_with(path: &Path, begins: &str) -> bool {
    use std::io::Read;
    let mut start = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(begins.len() as u64).read_to_end(&mut start));
    read.is_ok() && start.eq_ignore_ascii_case(begins.as_bytes())
}

/// What `--exclude` did.
#[derive(Default)]
struct Excluded {
    rows: Exclusion,
    undoable: bool,
}

/// Marks rows in the manifest, and gives them.
fn exclude(
    wishes: &[Wish],
    listing: &Listing,
    home: &Home,
    findings: &[Finding],
    dry_run: bool,
) -> Result<Excluded> {
    let (mut out, mut undoable) = (Exclusion::new(), false);
    for wish in wishes {
        out.extend(match wish {
            Wish::Codes(patterns) => audit::by_codes(findings, patterns)?,
            Wish::List(path) => {
                let text = std::fs::read(path).map_err(|e| Error::read("reading the list", path, e))?;
                audit::by_list(&listing.entries, &String::from_utf8_lossy(&text))?
            }
        });
    }
    if !dry_run && !out.is_empty() {
        let mark = |at: usize, row: &mut crate::manifest::Row| {
            if let Some(why) = out.get(&at) {
                let fault = Fault::new(Cause::Excluded, why.clone());
                row.status = fault.status();
                row.fault = Some(fault);
            }
        };
        undoable = home.rewrite(listing, "audit --exclude", mark, |_| {})?.undoable;
    }
    Ok(Excluded { rows: out, undoable })
}

/// What a code means, for a person.
fn explain(id: &str) -> Result<String> {
    if id.eq_ignore_ascii_case("all") {
        let rows: Vec<Vec<String>> = CODES
            .iter()
            .map(|c| vec![c.id.to_owned(), c.severity.as_str().to_owned(), c.title.to_owned()])
            .collect();
        return Ok(columns(&rows, &[false, false, false]));
    }
    let code = Code::find(id).ok_or_else(|| {
        Error::Usage(format!("`{}` is no code of a finding; --explain all lists them", shown(id)))
    })?;
    let (title, severity) = (code.title, code.severity.as_str());
    Ok(format!("{} {title} ({severity})\n\n{}\n\nWhat to do: {}\n", code.id, code.meaning, code.advice))
}

/// What to type next.
fn next(input: &Input, findings: &[Finding], has_page: bool) -> String {
    let word = super::terminal::shell_word(&input.input);
    match findings.iter().map(|f| f.code.severity).max() {
        Some(Severity::Error | Severity::Warning) if !has_page => {
            format!(
                "Next: prep audit {word} --html to look at them, prep audit --explain CODE for what a code means"
            )
        }
        Some(Severity::Error | Severity::Warning) => {
            format!(
                "Next: prep audit {word} --exclude D001 (codes, or a list saved from the report), then prep shrink {word}"
            )
        }
        _ => format!("Next: prep shrink {word} --short-edge 512"),
    }
}

/// The summary: worst first, one example each.
fn summary(input: &Input, listing: &Listing, facts: &[Facts], findings: &[Finding], all: bool) -> String {
    let total: u64 = facts.iter().map(|f| f.bytes).sum();
    let classes = match listing.classes.len() {
        0 => "no labels".to_owned(),
        n => plural(n, "class"),
    };
    let usable = facts.iter().filter(|f| f.fault.is_none()).count();
    let mut out = format!(
        "{}: {}, {} usable, {classes}, {}\n",
        shown(&input.input),
        plural(facts.len(), "row"),
        thousands(usable as u64),
        bytes(total),
    );
    let mut rows = Vec::new();
    for group in audit::groups(findings) {
        let code = group.code;
        let count = thousands(group.count() as u64);
        let example = example(listing, group.findings[0], group.findings.len() - 1);
        rows.push(vec![code.severity.as_str().into(), code.id.into(), code.title.into(), count, example]);
        if all {
            for finding in &group.findings {
                rows.push(vec![
                    String::new(),
                    String::new(),
                    String::new(),
                    String::new(),
                    place(listing, finding),
                ]);
            }
        }
    }
    out.push_str(&columns(&rows, &[false, false, false, true, false]));
    let (errors, warnings) =
        (audit::count(findings, Severity::Error), audit::count(findings, Severity::Warning));
    out.push_str(&match (errors, warnings) {
        (0, 0) => "Nothing that needs mending.\n".to_owned(),
        (errors, warnings) => format!("{}, {}.\n", plural(errors, "error"), plural(warnings, "warning")),
    });
    out
}

/// One finding in a line: where, and the evidence.
fn place(listing: &Listing, finding: &Finding) -> String {
    let names: Vec<String> = match finding.images.as_slice() {
        [] => vec![shown(&finding.at).to_string()],
        images => images.iter().map(|i| shown(&listing.entries[*i].path).to_string()).collect(),
    };
    let line = finding.line.map(|n| format!(" (line {n})")).unwrap_or_default();
    format!("{}{line}: {}", names.join(" = "), shown(&finding.detail))
}

fn example(listing: &Listing, finding: &Finding, more: usize) -> String {
    let name = match finding.images.first() {
        Some(image) => shown(&listing.entries[*image].path).to_string(),
        None => shown(&finding.at).to_string(),
    };
    let more = if more > 0 { format!(" +{}", thousands(more as u64)) } else { String::new() };
    // Notes are codes; what a person reads is behind them.
    let detail = shown(&finding.detail).to_string();
    format!("{name}{more}: {detail}")
}

fn document(
    input: &Input,
    listing: &Listing,
    facts: &[Facts],
    findings: &[Finding],
    excluded: usize,
) -> String {
    let path = |i: &usize| listing.entries[*i].path.clone();
    let codes: Vec<Value> = audit::groups(findings)
        .iter()
        .map(|g| {
            json!({"code": g.code.id, "severity": g.code.severity.as_str(), "title": g.code.title,
                "findings": g.findings.len(), "images": g.images, "advice": g.code.advice})
        })
        .collect();
    let all: Vec<Value> = findings
        .iter()
        .map(|f| {
            json!({"code": f.code.id, "severity": f.code.severity.as_str(),
                "paths": f.images.iter().map(path).collect::<Vec<_>>(),
                "at": f.at, "line": f.line, "detail": f.detail})
        })
        .collect();
    let count = |severity: Severity| audit::count(findings, severity);
    let mut statuses = Map::new();
    for facts in facts {
        let n = statuses.entry(facts.status().as_str()).or_insert(json!(0));
        *n = json!(n.as_u64().unwrap_or(0) + 1);
    }
    let document = json!({
        "schema": SCHEMA, "command": "audit", "input": shown(&input.input).to_string(),
        "rows": facts.len(), "bytes": facts.iter().map(|f| f.bytes).sum::<u64>(), "classes": listing.classes,
        "statuses": statuses, "excluded": excluded,
        "errors": count(Severity::Error), "warnings": count(Severity::Warning), "infos": count(Severity::Info),
        "codes": codes, "findings": all,
    });
    format!("{document:#}\n")
}

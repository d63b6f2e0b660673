//! What must be known of all images before sheets are drawn: facts, near-duplicates, findings.

use super::{Args, FindingsName, FormatName, PairsName, pick_of};
use crate::audit::{self, Severity};
use crate::cli::args::Global;
use crate::cli::run;
use crate::cli::terminal::Terminal;
use crate::cli::watch::watcher;
use crate::engine::crew::Crew;
use crate::engine::pipe::Pipe;
use crate::error::Result;
use crate::fault::Oddity;
use crate::near;
use crate::sheet::group::{self, Group};
use crate::sheet::{Mark, Marks, pairs};
use crate::source::{Listing, Stamp};
use crate::survey::{self, Survey};

/// Images up to which the cache is asked whether it knows all.
const ASKED: usize = 50_000;
/// Images up to which copies are looked for to frame them, unless all findings are asked for.
const COMPARED: usize = 5_000;

/// What was learnt of all images before anything is drawn.
pub(super) struct Learnt {
    /// Facts and prints.
    pub(super) survey: Survey,
    /// What an audit finds in them.
    pub(super) findings: Vec<audit::Finding>,
    /// Were findings looked for?
    pub(super) judged: bool,
}

/// Looks at all images where the options need that, or where an earlier audit has done so.
pub(super) fn learn(
    args: &Args,
    global: &Global,
    listing: &Listing,
    (pipe, crew): (&Pipe, &Crew<'_>),
    terminal: &Terminal,
) -> Result<Option<Learnt>> {
    let finds = args.by == "finding" || args.pairs.is_some();
    let asked = finds || args.findings == FindingsName::All;
    let needed = asked || pick_of(args).needs_facts();
    let mut cache = run::cache(global, listing);
    if !needed {
        let auto = args.findings == FindingsName::Auto && listing.entries.len() <= ASKED;
        let known = |cache: &crate::facts::Cache| {
            listing.entries.iter().all(|e| e.fault.is_some() || cache.get(&e.path, &Stamp::of(&e.file)).is_some())
        };
        if !auto || !cache.as_ref().is_some_and(known) {
            return Ok(None);
        }
    }
    let all: Vec<usize> = (0..listing.entries.len()).collect();
    let mut watch = watcher(global);
    let survey = survey::run(listing, &all, pipe, crew, cache.as_mut(), watch.as_mut())?;
    run::tell_cache(cache.as_ref(), survey.decoded, terminal);
    let compares = match args.pairs {
        Some(pairs) => pairs == PairsName::Duplicates,
        None => asked || (args.findings != FindingsName::None && all.len() <= COMPARED),
    };
    let mut alike = Vec::new();
    if compares {
        let options = near::Options { threads: pipe.threads, ..near::Options::default() };
        alike = near::search(&survey.prints, &options, crew.cancel, &mut |_, _| ())?.pairs;
    }
    let judged = finds || args.findings != FindingsName::None;
    let findings = match judged {
        false => Vec::new(),
        true => audit::judge(listing, &survey.facts, &alike, Vec::new(), &audit::Choice::default()),
    };
    Ok(Some(Learnt { survey, findings, judged }))
}

pub(super) fn by_finding(listing: &Listing, findings: &[audit::Finding]) -> Vec<Group> {
    let mut groups = Vec::new();
    for found in audit::groups(findings) {
        let mut rows: Vec<usize> = found.findings.iter().flat_map(|f| f.images.iter().copied()).collect();
        rows.retain(|row| group::is_shown(&listing.entries[*row]));
        rows.sort_unstable();
        rows.dedup();
        if !rows.is_empty() {
            let name = format!("{} {}", found.code.id, found.code.title);
            groups.push(Group { name, note: found.code.severity.as_str().into(), rows });
        }
    }
    groups
}

/// The sets of pictures that are alike.
pub(super) fn sets(findings: &[audit::Finding]) -> Vec<pairs::Set> {
    let alike = |f: &&audit::Finding| matches!(f.code.id, "D001" | "D002" | "D003" | "D008");
    let set = |f: &audit::Finding| {
        let detail = if f.images.len() == 2 { format!(": {}", f.detail) } else { String::new() };
        pairs::Set { images: f.images.clone(), what: format!("{} {}{detail}", f.code.id, f.code.title) }
    };
    findings.iter().filter(alike).map(set).collect()
}

/// What was found about each image. On pictures only what matters; on the page all of it.
pub(super) fn marks(args: &Args, learnt: &Learnt) -> Marks {
    let mut marks = Marks::new();
    for finding in &learnt.findings {
        let red = finding.code.severity >= Severity::Warning;
        if args.findings == FindingsName::None || (!red && args.format != FormatName::Html) {
            continue;
        }
        for image in &finding.images {
            let known: &mut Vec<Mark> = marks.entry(*image).or_default();
            if !known.iter().any(|mark| mark.code == finding.code.id) {
                let text = format!("{}: {}", finding.code.title, finding.detail);
                known.push(Mark { code: finding.code.id.into(), text, red });
            }
        }
    }
    marks
}

/// Images that somebody marked as doubtful.
pub(super) fn mark_doubts(listing: &Listing, marks: &mut Marks) {
    for (at, entry) in listing.entries.iter().enumerate() {
        for note in entry.notes.iter().filter(|note| note.kind == Oddity::Doubtful) {
            let mark = Mark { code: note.kind.code().into(), text: note.detail.clone(), red: true };
            marks.entry(at).or_default().push(mark);
        }
    }
}


//! `prep shrink`: one upright, sRGB, 8-bit copy of every image at training size, with a manifest of what became of
//! each. The sources are only read; a killed run continues where it was; bad images become rows.

mod estimate;
mod ledger;
mod one;
pub mod size;
mod workspace;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

pub use self::estimate::{Estimate, estimate};
use self::ledger::Line;
use self::one::{Bench, Failed, Source};
use self::size::Fit;
use crate::decode::{Chroma, Contract, Format};
use crate::encode::{Encoding, jpeg_engine};
use crate::engine::crew::Crew;
use crate::engine::pipe::Pipe;
use crate::engine::progress::{Tally, Watch};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fault::Status;
use crate::names;
use crate::out::journal::{self, Journal};
use crate::out::plan::{Planned, plan};
use crate::out::{self, Claim, place};
use crate::resize::Filter;
use crate::source::{Listing, Stamp, labels_of};

/// The folder of pictures in a workspace. Nothing else is ever put below it.
pub const IMAGES: &str = "images";
/// The journal, in prep's corner of the workspace.
const JOURNAL: &str = "shrink.journal";
/// Changes when the same options give other bytes than before.
const SCHEME: &str = "shrink-2";

/// The format of the copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// JPEG.
    Jpg,
    /// PNG.
    Png,
    /// Lossless WebP.
    Webp,
    /// The source's, where prep writes it; else PNG.
    Keep,
}

impl OutputFormat {
    /// The word on the command line and in the sidecar.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jpg => "jpg",
            Self::Png => "png",
            Self::Webp => "webp",
            Self::Keep => "keep",
        }
    }
}

/// What the copies shall be.
#[derive(Debug, Clone)]
pub struct Options {
    /// Size. Default: short edge 512.
    pub fit: Fit,
    /// Enlarge what is smaller. Default: no.
    pub upscale: bool,
    /// Resampling filter. Default: Lanczos.
    pub filter: Filter,
    /// Format. Default: JPEG.
    pub format: OutputFormat,
    /// JPEG quality. Default: 92.
    pub quality: u8,
    /// JPEG colour resolution. Default: 4:2:0.
    pub chroma: Chroma,
    /// Alpha, ICC and orientation. Default: the contract.
    pub contract: Contract,
    /// Take damaged pictures as they are. Default: no.
    pub salvage: bool,
    /// Make everything anew. Default: no.
    pub force: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fit: Fit::ShortEdge(512),
            upscale: false,
            filter: Filter::default(),
            format: OutputFormat::Jpg,
            quality: 92,
            chroma: Chroma::Yuv420,
            contract: Contract::default(),
            salvage: false,
            force: false,
        }
    }
}

impl Options {
    /// Everything that decides the bytes of a copy, in words: another run with the same words may be continued.
    pub fn heading(&self) -> String {
        format!(
            "{SCHEME} codec={} fit={} upscale={} filter={} format={} quality={} chroma={} alpha={:?} icc={:?} orient={} salvage={}",
            jpeg_engine(),
            self.fit,
            self.upscale,
            self.filter.as_str(),
            self.format.as_str(),
            self.quality,
            self.chroma.as_str(),
            self.contract.alpha,
            self.contract.icc,
            self.contract.orient,
            self.salvage,
        )
    }
}

/// What a run has done.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The workspace.
    pub folder: PathBuf,
    /// Rows by status.
    pub by_status: BTreeMap<&'static str, usize>,
    /// For each cause: how often, and the first path with its sentence.
    pub faults: BTreeMap<&'static str, (usize, String)>,
    /// For each oddity: how often.
    pub notes: BTreeMap<&'static str, usize>,
    /// Entries that an earlier run had finished.
    pub resumed: usize,
    /// Copies that this run made.
    pub made: usize,
    /// An earlier run with other options had filled the folder.
    pub changed: bool,
    /// Copies of pictures that are smaller than what was asked for.
    pub small: usize,
    /// Usable images whose label is another than the folder in which their copy lies.
    pub astray: usize,
    /// Copies of an earlier run whose sources are gone, removed.
    pub removed: usize,
    /// Bytes of the sources that have copies.
    pub bytes_in: u64,
    /// Bytes of the copies.
    pub bytes_out: u64,
    /// The manifest that was written.
    pub manifest: PathBuf,
}

impl Report {
    /// Rows in all.
    pub fn total(&self) -> usize {
        self.by_status.values().sum()
    }

    /// Usable rows.
    pub fn ok(&self) -> usize {
        self.by_status.get(Status::Ok.as_str()).copied().unwrap_or(0)
    }

    /// Rows that should have been pictures and are not usable.
    pub fn bad(&self) -> usize {
        [Status::Damaged, Status::Bad, Status::Unsupported]
            .iter()
            .filter_map(|s| self.by_status.get(s.as_str()))
            .sum()
    }

    fn count(&mut self, entry: &Entry, line: &Line, options: &Options) {
        let status = match line.fault() {
            Some(fault) => {
                let first = || format!("{}: {}", entry.path, fault.detail);
                self.faults.entry(fault.cause.code()).or_insert_with(|| (0, first())).0 += 1;
                fault.status()
            }
            None => {
                self.bytes_in += entry.bytes;
                self.bytes_out += line.bytes;
                self.small +=
                    usize::from(!options.upscale && options.fit.of(line.size, true).size > line.size);
                let folder = line.out.split_once('/').map_or("", |(folder, _)| folder);
                self.astray += usize::from(!listing_labels(entry).any(|label| label == folder));
                Status::Ok
            }
        };
        *self.by_status.entry(status.as_str()).or_default() += 1;
        for note in line.notes() {
            *self.notes.entry(note.kind.code()).or_default() += 1;
        }
    }
}

/// Where the copy of each entry goes, below the images folder, encoded as in manifests.
///
/// Where everything lies in a folder `images`, as the files of a label table often do, that folder becomes ours instead
/// of a folder in it: below an ImageFolder root it would be the one class.
pub(crate) fn plan_outputs(listing: &Listing, options: &Options) -> Vec<Planned> {
    let all_below = listing.entries.iter().all(|e| e.path.starts_with("images/"));
    let below = if all_below { "images/".len() } else { 0 };
    let sources: Vec<PathBuf> = listing.entries.iter().map(|e| names::decode(&e.path[below..])).collect();
    plan(&sources, |i| encoding_of(&listing.entries[i], options).extension().to_owned())
}

/// With `keep` the name decides, since names must be planned before contents are known: a copy is always what its own
/// name says.
fn encoding_of(entry: &Entry, options: &Options) -> Encoding {
    let by_name = Format::from_extension(&names::decode(&entry.path));
    one::encoding_for(options, by_name.unwrap_or(Format::Png))
}

/// Makes the copies of `listing` in the workspace `folder`.
///
/// # Errors
/// An output that cannot be placed or written, another run on the same folder, or an interrupt. What is finished stays
/// finished.
pub fn run(
    listing: &Listing,
    folder: &Path,
    options: &Options,
    pipe: &Pipe,
    crew: &Crew<'_>,
    watch: &mut dyn Watch,
) -> Result<Report> {
    place::check_apart(&listing.root, folder)?;
    workspace::check_ours(folder)?;
    let plans = plan_outputs(listing, options);
    let outs: Vec<String> = plans.iter().map(|p| names::encode(&p.path)).collect();
    let claim = Claim::take(folder)?;
    claim.sweep();
    let images = folder.join(IMAGES);
    place::check_no_links(&images, plans.iter().map(|p| p.path.as_path()))?;

    let journal_path = folder.join(Claim::CORNER).join(JOURNAL);
    let claimed = claimed_before(&journal_path)?;
    let removed = remove_stale(&claimed, &images, &outs)?;
    let heading = if options.force { String::new() } else { options.heading() };
    let changed = journal::read_any(&journal_path)?.0.is_some_and(|earlier| earlier != options.heading());
    let (mut journal, old) = open_journal(&journal_path, folder, &heading, options)?;
    let mut known: HashMap<String, Line> =
        old.iter().filter_map(|text| Line::parse(text)).map(|line| (line.src.clone(), line)).collect();

    // Each entry's line: from the earlier run where it still holds, else to be made.
    let mut lines: Vec<Option<Line>> = listing
        .entries
        .iter()
        .zip(&outs)
        .map(|(entry, out)| known.remove(&entry.path).filter(|line| line.holds(entry, out, &images)))
        .collect();
    let missing: Vec<usize> = (0..lines.len()).filter(|i| lines[*i].is_none()).collect();
    if !missing.is_empty() {
        workspace::begin_change(folder)?;
    }

    let mut tally = tally_of(listing, &lines);
    watch.step(&tally);
    let keys: Vec<&str> = missing.iter().map(|i| listing.entries[*i].path.as_str()).collect();
    let outcome = crew.run(
        &keys,
        Bench::default,
        |bench, item| {
            let i = missing[item.index];
            let entry = &listing.entries[i];
            let stamp = Stamp::of(&entry.file);
            let target = place::inside(&images, &plans[i].path)?;
            match one::make(bench, pipe, options, entry, (&target, encoding_of(entry, options)), item) {
                Ok(made) => Ok(Line::made(entry, outs[i].clone(), stamp, made)),
                Err(Failed::Fault(fault, source)) => {
                    Ok(Line::failed(entry, outs[i].clone(), stamp, &fault, source))
                }
                Err(Failed::Run(error)) => Err(error),
            }
        },
        |k, fault| {
            let entry = &listing.entries[missing[k]];
            let stamp = Stamp::of(&entry.file);
            Ok(Line::failed(entry, outs[missing[k]].clone(), stamp, &fault, Source::default()))
        },
        |k, line: Result<Line>| {
            let line = line?;
            let i = missing[k];
            let fault = line.fault();
            if fault.is_some() {
                tally.bad += 1;
                if claimed.contains(&line.out) {
                    // An earlier copy of a file that is now bad must not stay among the good ones.
                    out::remove("removing an outdated copy", &place::inside(&images, &plans[i].path)?)?;
                }
            }
            // What will be tried again anyway needs no memory.
            if !fault.is_some_and(|fault| fault.cause.is_transient()) {
                journal.claim(line.to_text())?;
            }
            tally.done += 1;
            tally.bytes += listing.entries[i].bytes;
            lines[i] = Some(line);
            watch.step(&tally);
            Ok(())
        },
    );
    watch.end();
    let settled = journal.settle();
    outcome?;
    settled?;

    let lines: Vec<Line> = lines.into_iter().flatten().collect();
    if lines.len() != listing.entries.len() {
        return Err(Error::Internal(format!(
            "{} of {} entries have a row",
            lines.len(),
            listing.entries.len()
        )));
    }
    let mut report = Report {
        changed,
        made: missing.iter().filter(|i| lines[**i].fault.is_empty()).count(),
        folder: folder.to_owned(),
        resumed: listing.entries.len() - missing.len(),
        removed,
        ..Report::default()
    };
    for (entry, line) in listing.entries.iter().zip(&lines) {
        report.count(entry, line, options);
    }
    report.manifest = workspace::finish(folder, listing, options, &plans, &lines)?;
    Ok(report)
}

/// The labels of an entry; one without any has one that is empty.
fn listing_labels(entry: &Entry) -> impl Iterator<Item = &str> {
    let none = entry.label.is_empty().then_some("");
    labels_of(&entry.label).chain(none)
}

fn open_journal(
    path: &Path,
    folder: &Path,
    heading: &str,
    options: &Options,
) -> Result<(Journal, Vec<String>)> {
    if options.force {
        // A heading that no run has empties it; then it is begun as usual.
        drop(Journal::open(path, folder, heading)?);
        return Journal::open(path, folder, &options.heading());
    }
    Journal::open(path, folder, heading)
}

/// The copies that an earlier run claims, whatever its options were.
fn claimed_before(journal_path: &Path) -> Result<HashSet<String>> {
    let (_, old) = journal::read_any(journal_path)?;
    let lines = old.iter().filter_map(|text| Line::parse(text));
    Ok(lines.filter(|line| line.fault.is_empty()).map(|line| line.out).collect())
}

/// Removes copies that this run does not plan: their sources are gone or are to be written under another name.
fn remove_stale(claimed: &HashSet<String>, images: &Path, outs: &[String]) -> Result<usize> {
    let planned: HashSet<&str> = outs.iter().map(String::as_str).collect();
    let mut stale: Vec<&String> = claimed.iter().filter(|out| !planned.contains(out.as_str())).collect();
    stale.sort();
    let mut removed = 0;
    for out in stale {
        // A journal that was altered by hand cannot point outside.
        let Ok(path) = place::inside(images, &names::decode(out)) else { continue };
        if path.symlink_metadata().is_ok() {
            out::remove("removing an outdated copy", &path)?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn tally_of(listing: &Listing, lines: &[Option<Line>]) -> Tally {
    let mut tally = Tally { total: listing.entries.len(), ..Tally::default() };
    for (entry, line) in listing.entries.iter().zip(lines) {
        tally.total_bytes += entry.bytes;
        if let Some(line) = line {
            tally.done += 1;
            tally.resumed += 1;
            tally.bytes += entry.bytes;
            tally.bad += usize::from(!line.fault.is_empty());
        }
    }
    tally
}

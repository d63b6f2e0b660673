//! `prep pack`: shards for loaders, from any input, with one decode in all. `docs/cache.md` is the format.
//!
//! Workers make payloads; the sink fills one shard at a time in memory and writes it whole. A journal remembers finished
//! shards, and `manifest.json` comes last: without it there is no cache.

mod finish;
pub mod frame;
pub mod one;
mod order;
mod ours;
mod resume;
pub mod shelf;
mod sink;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::frame::Frame;
use self::one::{Bench, Packed};
use self::order::Part;
use self::ours::Begun;
use self::resume::{Input, Plan, Sums};
use self::shelf::Kept;
use self::sink::Sink;
use crate::decode::{Chroma, Contract, Icc};
use crate::encode::jpeg_engine;
use crate::engine::crew::Crew;
use crate::engine::gate::Gate;
use crate::engine::pipe::Pipe;
use crate::engine::progress::{Tally, Watch};
use crate::error::Result;
use crate::fault::Fault;
use crate::out::journal::Journal;
use crate::out::{self, Claim, place};
use crate::shards::{Form, Layout, MANIFEST, Row, Shard, beton, flag};
use crate::source::Listing;

/// Changes when the same options give other bytes than before.
const SCHEME: &str = "pack-1";

/// The order of the samples in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By lot, from the seed and the paths.
    Shuffled,
    /// As in the input, by path.
    Source,
}

/// What the shards shall be.
#[derive(Debug, Clone)]
pub struct Options {
    /// Layout, payloads, fixed size, size of a shard.
    pub form: Form,
    /// Size of the samples.
    pub frame: Frame,
    /// Quality of JPEGs that are coded anew.
    pub quality: u8,
    /// Chroma of every JPEG: 4:2:0 or 4:4:4.
    pub chroma: Chroma,
    /// Alpha and ICC; pictures are always turned upright.
    pub contract: Contract,
    /// Order of the samples.
    pub order: Order,
    /// Of the order.
    pub seed: u64,
    /// Continue what an earlier run has begun.
    pub resume: bool,
    /// Replace what an earlier run has made.
    pub force: bool,
    /// Payloads that may wait for the sink, in bytes; decides nothing of what is written.
    pub waiting: u64,
}

impl Options {
    /// Everything that decides the bytes of the shards, in words.
    pub fn heading(&self) -> String {
        let frame = &self.frame;
        format!(
            "{SCHEME} codec={} layout={} store={} size={:?} fit={} short-edge={:?} filter={} quality={} chroma={} \
             alpha={:?} icc={:?} shard-size={} order={} seed={}",
            jpeg_engine(),
            self.form.layout.as_str(),
            self.form.store.as_str(),
            frame.size,
            frame.fit.as_str(),
            frame.short_edge,
            frame.filter.as_str(),
            self.quality,
            self.chroma.as_str(),
            self.contract.alpha,
            self.contract.icc,
            self.form.shard_size,
            self.order_word(),
            self.seed,
        )
    }

    /// The word in the manifest.
    pub fn order_word(&self) -> &'static str {
        match self.order {
            Order::Shuffled => "shuffled",
            Order::Source => "source",
        }
    }

    /// Bytes that a run holds beside what is being decoded: the shard that is being filled, and payloads on their way.
    pub fn held(&self) -> u64 {
        let held = matches!(self.form.layout, Layout::Mds | Layout::Npy);
        let shard = if held { self.form.shard_size } else { 0 };
        shard + self.waiting
    }

    fn icc(&self) -> Icc {
        self.contract.icc
    }

    /// Bytes that a payload may have.
    fn most_payload(&self) -> u64 {
        match self.form.layout {
            Layout::Beton => beton::page(&self.form),
            _ => u64::from(u32::MAX) - (64 << 20),
        }
    }
}

/// Where rows went and why.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The cache.
    pub folder: PathBuf,
    /// Samples by part, in the order of the manifest.
    pub packed: Vec<(String, usize)>,
    /// Rows left out by the fault's code: how many, and the first with its sentence.
    pub left_out: BTreeMap<&'static str, (usize, String)>,
    /// Rows that should have been pictures and are not usable.
    pub bad: usize,
    /// Source rows.
    pub total: usize,
    /// Shards.
    pub shards: usize,
    /// Of these, from an earlier run.
    pub resumed: usize,
    /// Bytes of the payloads.
    pub payload: u64,
    /// Bytes of the shards.
    pub bytes: u64,
    /// Samples whose coded data are the source's.
    pub copied: usize,
}

/// What is known of the input beside its listing.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// For a workspace of prep: the hash of each row's image, empty where prep has not encoded it.
    pub proven: Vec<String>,
    /// Seed of the split and its group column, as `prep split` recorded them.
    pub split: (Option<u64>, Option<String>),
    /// Normalization constants that `prep stats` recorded, for shards whose pixels were not seen.
    pub stats: serde_json::Value,
    /// The input as the manifest shall name it, relative to the cache.
    pub source: String,
}

/// Packs `listing` into the cache `folder`.
///
/// # Errors
/// An output that cannot be placed or written, another run on the same folder, or an interrupt. Finished shards stay.
pub fn run(
    listing: &Listing,
    known: &Known,
    folder: &Path,
    options: &Options,
    pipe: &Pipe,
    crew: &Crew<'_>,
    watch: &mut dyn Watch,
) -> Result<Report> {
    let parts = order::parts(listing, options.order, options.seed);
    if parts.is_empty() {
        let faults = listing.entries.iter().filter_map(|e| Some((e.path.as_str(), e.fault.as_ref()?)));
        return Err(finish::none_usable(listing.entries.len(), faults));
    }
    place::check_folder(folder)?;
    ours::check(folder, &parts)?;
    let claim = Claim::take(folder)?;
    claim.sweep();
    let Begun { mut journal, lines, before } = ours::begin(folder, options)?;
    for part in &parts {
        place::check_no_links(&folder.join(&part.folder), std::iter::empty())?;
    }
    let restarted = crew.flight.is_some_and(crate::engine::flight::Flight::has_verdicts);
    let input = Input::new(listing);
    let plan = resume::plan(folder, &parts, &input, &options.form, lines, restarted);
    out::remove("beginning to change the cache", &folder.join(MANIFEST))?;
    out::sync_batch(folder)?;

    let packer = Packer { input: &input, listing, known, options, folder, parts: &parts, plan: &plan };
    let done = packer.run(pipe, crew, watch, &mut journal);
    watch.end();
    let settled = journal.settle();
    let done = done?;
    settled?;
    finish::run(listing, known, folder, options, (&parts, &before), done)
}

/// A shard, its samples, and the sums of their pixels.
pub(super) type Filled = (Shard, Vec<Kept>, Sums);

/// What is finished.
pub(super) struct Done {
    /// By part: shards by number, with their samples and the sums of their pixels.
    pub shards: Vec<BTreeMap<usize, Filled>>,
    /// Rows that are in no shard.
    pub left: BTreeMap<u32, Fault>,
    /// Shards that were there before.
    pub resumed: usize,
}

/// The sink's side of a run.
struct Packer<'a> {
    input: &'a Input<'a>,
    listing: &'a Listing,
    known: &'a Known,
    options: &'a Options,
    folder: &'a Path,
    parts: &'a [Part],
    plan: &'a Plan,
}

/// What the workers hand over: a payload or a fault, and the source's stamp before it was read.
struct Handed {
    made: Result<Packed, Fault>,
    stamp: [u64; 3],
}

impl Packer<'_> {
    fn run(
        &self,
        pipe: &Pipe,
        crew: &Crew<'_>,
        watch: &mut dyn Watch,
        journal: &mut Journal,
    ) -> Result<Done> {
        // Every row to be made: its run and its place in the part.
        let work: Vec<(usize, usize)> = self
            .plan
            .runs
            .iter()
            .enumerate()
            .flat_map(|(run, of)| (of.from..of.to).map(move |at| (run, at)))
            .collect();
        let row_of = |k: usize| {
            let (run, at) = work[k];
            self.parts[self.plan.runs[run].part].rows[at]
        };
        let keys: Vec<&str> = (0..work.len()).map(|k| self.entry(row_of(k)).path.as_str()).collect();
        let gate = Gate::new(self.options.waiting);
        let texts = |row: u32| {
            let entry = &self.listing.entries[row as usize];
            (entry.path.as_str(), entry.label.as_str(), entry.group.as_str())
        };
        let mut sink = Sink::new(self, &texts, self.begin(), journal);
        let mut tally = self.tally(&work);
        watch.step(&tally);
        let outcome = crew.run(
            &keys,
            Bench::default,
            |bench, item| {
                let row = row_of(item.index);
                let entry = self.entry(row);
                let stamp = one::stamp(&entry.file);
                let proven =
                    self.known.proven.get(row as usize).map(String::as_str).filter(|h| !h.is_empty());
                // Suspects of a crash are tried before there is a sink, so they must not wait for it.
                let suspect = crew.flight.is_some_and(|flight| flight.is_suspect(&entry.path));
                let gate = (!suspect).then_some(&gate);
                Handed { made: one::make(bench, pipe, self.options, entry, (proven, gate), item), stamp }
            },
            |k, fault| Handed { made: Err(fault), stamp: one::stamp(&self.entry(row_of(k)).file) },
            |k, handed| {
                tally.done += 1;
                tally.bytes += self.entry(row_of(k)).bytes;
                tally.bad += usize::from(handed.made.is_err());
                let (run, at) = work[k];
                let outcome = sink.take(self.plan.runs[run], at, handed);
                gate.delivered(k);
                if outcome.is_err() {
                    gate.close();
                }
                watch.step(&tally);
                outcome
            },
        );
        outcome?;
        sink.end()
    }

    fn entry(&self, row: u32) -> &crate::entry::Entry {
        &self.listing.entries[row as usize]
    }

    fn tally(&self, work: &[(usize, usize)]) -> Tally {
        let all: Vec<u32> = self.parts.iter().flat_map(|part| part.rows.iter().copied()).collect();
        let bytes = |rows: &mut dyn Iterator<Item = u32>| rows.map(|row| self.entry(row).bytes).sum::<u64>();
        let total_bytes = bytes(&mut all.iter().copied());
        let to_do = bytes(&mut work.iter().map(|(run, at)| {
            let run = &self.plan.runs[*run];
            self.parts[run.part].rows[*at]
        }));
        let resumed = all.len() - work.len();
        let bytes = total_bytes - to_do;
        Tally { total: all.len(), total_bytes, done: resumed, resumed, bytes, bad: 0 }
    }

    /// What is there before the first row: rows that are known not to be usable, and shards that hold.
    fn begin(&self) -> Done {
        let faults = (0..).zip(&self.listing.entries).filter_map(|(row, e)| Some((row, e.fault.clone()?)));
        let shards = vec![BTreeMap::new(); self.parts.len()];
        let mut done = Done { shards, left: faults.collect(), resumed: self.plan.kept.len() };
        for ((part, number), line) in &self.plan.kept {
            done.shards[*part].insert(*number, (line.shard(), line.kept(), line.sums));
            let faults = line.left.iter().filter_map(|(row, text)| Some((*row, Fault::parse(text)?)));
            done.left.extend(faults);
        }
        done
    }

    /// The row of a payload, but for its offset.
    fn row(&self, row: u32, number: usize, packed: &Packed) -> Row {
        let entry = self.entry(row);
        let (label, labels) = self.input.label(entry);
        let several = if labels > 1 { flag::SEVERAL } else { 0 };
        Row {
            offset: 0,
            shard: number as u32,
            size: packed.payload.len() as u32,
            h: packed.size.1,
            w: packed.size.0,
            label,
            group: self.input.group(entry),
            crc32: packed.crc32,
            row,
            flags: packed.flags | several,
        }
    }
}

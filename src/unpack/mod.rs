//! `prep unpack`: the files of a cache again, JPEGs bit for bit, pixels as PNG, and a table of their labels.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::encode::{Encoder, Encoding};
use crate::engine::crew::Crew;
use crate::engine::progress::{Tally, Watch};
use crate::error::{Error, Result, io_reason};
use crate::fault::{Cause, Fault};
use crate::names::{self, shown};
use crate::out::journal::{self, Journal};
use crate::out::plan::{Planned, plan};
use crate::out::{self, Atomic, Claim, place};
use crate::pixels::Rgb8;
use crate::shards::tables::Loaded;
use crate::shards::{Cache, Record, Split, sum};
use crate::table::csv_out;

/// The table beside the files.
pub const LABELS: &str = "labels.csv";
/// In prep's corner of the folder, until all is written.
const JOURNAL: &str = "unpack.journal";

/// What was written, and what could not be.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The folder.
    pub folder: PathBuf,
    /// Files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Samples that are not whole: part, place, source, and why.
    pub damaged: Vec<(String, usize, String, String)>,
}

/// A sample.
struct Job<'a> {
    split: &'a Split,
    loaded: &'a Loaded,
    sample: usize,
}

impl Job<'_> {
    fn record(&self) -> Record<'_> {
        self.loaded.record(self.sample)
    }
}

/// The parts of `cache` that would be written to `folder`, and whether an earlier run was stopped while it wrote them.
///
/// # Errors
/// A folder that is not empty, or lies in the cache; a part that is not there.
pub fn check<'c>(cache: &'c Cache, split: Option<&str>, folder: &Path) -> Result<(Vec<&'c Split>, bool)> {
    place::check_folder(folder)?;
    let begun = journal::read_any(&journal_of(folder))?.0.is_some_and(|of| of == heading(cache, split));
    if !begun {
        check_empty(folder)?;
    }
    place::check_apart(&cache.folder, folder)?;
    let parts: Vec<&Split> =
        cache.splits.iter().filter(|part| split.is_none_or(|name| name == part.name)).collect();
    if parts.is_empty() {
        let there: Vec<String> = cache.splits.iter().map(|part| shown(&part.name).to_string()).collect();
        return Err(Error::Usage(format!("the cache has no such part; it has {}", there.join(", "))));
    }
    Ok((parts, begun))
}

fn journal_of(folder: &Path) -> PathBuf {
    folder.join(Claim::CORNER).join(JOURNAL)
}

/// What is unpacked: by this a run knows the folder that it was stopped in.
fn heading(cache: &Cache, split: Option<&str>) -> String {
    let digest = blake3::hash(cache.value.to_string().as_bytes()).to_hex();
    format!("unpack-1 cache={} split={split:?}", &digest[..32])
}

/// Writes the samples of `cache` below `folder`, which must be new or empty, or left by such a run that was stopped; of
/// one part where `split` names it.
///
/// # Errors
/// A folder that is not empty; tables that are not those that were written, or do not fit the shards; [`Error::Write`].
pub fn run(
    cache: &Cache,
    split: Option<&str>,
    folder: &Path,
    crew: &Crew<'_>,
    watch: &mut dyn Watch,
) -> Result<Report> {
    let (parts, _) = check(cache, split, folder)?;
    let tables = parts.iter().map(|part| cache.load_proven(part)).collect::<Result<Vec<Loaded>>>()?;
    let jobs: Vec<Job<'_>> = parts
        .iter()
        .zip(&tables)
        .flat_map(|(split, loaded)| (0..split.rows).map(move |sample| Job { split, loaded, sample }))
        .collect();
    let sources: Vec<PathBuf> = jobs.iter().map(|job| names::decode(job.record().path)).collect();
    let extension = |i: usize| if jobs[i].record().row.is_jpeg() { "jpg" } else { "png" }.to_owned();
    let plans = plan(&sources, extension);
    drop(sources);
    let claim = Claim::take(folder)?;
    claim.sweep();
    drop(Journal::open(&journal_of(folder), folder, &heading(cache, split))?);
    let mut report = Report { folder: folder.to_owned(), ..Report::default() };
    let written = write(cache, &jobs, &plans, folder, crew, watch, &mut report)?;
    write_labels(&jobs, &plans, &written, folder)?;
    out::sync_batch(folder)?;
    leave(&claim)?;
    Ok(report)
}

/// Takes prep's corner away: the folder is finished, and a folder of files like any other.
fn leave(claim: &Claim) -> Result<()> {
    let corner = claim.folder().join(Claim::CORNER);
    for name in [JOURNAL, "lock"] {
        out::remove("ending", &corner.join(name))?;
    }
    out::remove_folder(&corner);
    Ok(())
}

fn check_empty(folder: &Path) -> Result<()> {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(false) => Ok(()),
        Ok(true) => Err(Error::Outputs(format!(
            "the output folder {} is not empty; choose another with -o",
            shown(folder)
        ))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::read("looking into the output folder", folder, e)),
    }
}

/// Which jobs have a file now.
fn write(
    cache: &Cache,
    jobs: &[Job<'_>],
    plans: &[Planned],
    folder: &Path,
    crew: &Crew<'_>,
    watch: &mut dyn Watch,
    report: &mut Report,
) -> Result<Vec<bool>> {
    let keys: Vec<&str> = jobs.iter().map(|job| job.record().path).collect();
    let total_bytes = jobs.iter().map(|job| u64::from(job.record().row.size)).sum();
    let mut tally = Tally { total: jobs.len(), total_bytes, ..Tally::default() };
    let mut written = vec![false; jobs.len()];
    let outcome = crew.run(
        &keys,
        || (Encoder::default(), Vec::new()),
        |(encoder, payload), item| {
            let target = place::inside(folder, &plans[item.index].path)?;
            let job = &jobs[item.index];
            match read(cache, job, payload).and_then(|()| encoded(&job.record(), encoder, payload)) {
                Err(fault) => Ok(Err(fault)),
                Ok(bytes) => {
                    out::write_whole("writing a file of the cache", &target, &bytes, false)?;
                    Ok(Ok(bytes.len() as u64))
                }
            }
        },
        |_, fault| Ok(Err(fault)),
        |k, done: Result<Result<u64, Fault>>| {
            let job = &jobs[k];
            tally.done += 1;
            tally.bytes += u64::from(job.record().row.size);
            match done? {
                Ok(bytes) => {
                    report.files += 1;
                    report.bytes += bytes;
                    written[k] = true;
                }
                Err(fault) => {
                    tally.bad += 1;
                    let path = job.record().path.to_owned();
                    report.damaged.push((job.split.name.clone(), job.sample, path, fault.to_string()));
                }
            }
            watch.step(&tally);
            Ok(())
        },
    );
    watch.end();
    outcome.map(|()| written)
}

/// Reads a payload and holds it against its CRC.
fn read(cache: &Cache, job: &Job<'_>, payload: &mut Vec<u8>) -> std::result::Result<(), Fault> {
    let row = job.record().row;
    let fault = |e: std::io::Error| Fault::new(Cause::Io, io_reason(&e));
    let shard = job.split.shards.get(row.shard as usize);
    let shard = shard.ok_or_else(|| Fault::new(Cause::Missing, "there is no such shard"))?;
    let path = cache.folder_of(job.split).join(&shard.name);
    let meta = fs::symlink_metadata(&path).map_err(fault)?;
    if !meta.is_file() {
        return Err(Fault::new(Cause::NotRegular, "the shard is no regular file"));
    }
    // Nothing is allocated that the file cannot fill.
    if row.offset.saturating_add(u64::from(row.size)) > meta.len() {
        return Err(Fault::new(Cause::Truncated, "its shard ends before it does"));
    }
    payload.clear();
    payload.resize(row.size as usize, 0);
    File::open(&path).and_then(|file| file.read_exact_at(payload, row.offset)).map_err(fault)?;
    if sum::crc32(payload) == row.crc32 {
        Ok(())
    } else {
        Err(Fault::new(Cause::Checksum, "its bytes are not those that were packed"))
    }
}

fn encoded<'p>(
    record: &Record<'_>,
    encoder: &mut Encoder,
    payload: &'p mut Vec<u8>,
) -> std::result::Result<std::borrow::Cow<'p, [u8]>, Fault> {
    if record.row.is_jpeg() {
        return Ok(payload.as_slice().into());
    }
    let (w, h) = (u32::from(record.row.w), u32::from(record.row.h));
    if w == 0 || h == 0 || payload.len() as u64 != u64::from(w) * u64::from(h) * 3 {
        return Err(Fault::new(Cause::NoPixels, format!("{w}x{h} pixels in {} bytes", payload.len())));
    }
    let picture = Rgb8::new(w, h, std::mem::take(payload));
    let mut png = Vec::new();
    encoder.encode(&picture, Encoding::Png, &mut png).map_err(|why| Fault::new(Cause::Encode, why))?;
    *payload = picture.data;
    Ok(png.into())
}

/// `labels.csv`, by which prep and others know what the files are.
fn write_labels(jobs: &[Job<'_>], plans: &[Planned], written: &[bool], folder: &Path) -> Result<()> {
    let doing = "writing the table of labels";
    let path = folder.join(LABELS);
    let mut file = Atomic::create(doing, &path)?;
    let mut csv = csv_out(&mut file);
    let trouble = |e: csv::Error| Error::write(doing, &path, e.into());
    csv.write_record(["path", "label", "split", "group"]).map_err(trouble)?;
    let mut order: Vec<usize> = (0..jobs.len()).filter(|i| written[*i]).collect();
    order.sort_by(|a, b| plans[*a].path.cmp(&plans[*b].path));
    for i in order {
        let (record, name) = (jobs[i].record(), names::encode(&plans[i].path));
        let split = if jobs[i].split.name == "all" { "" } else { &jobs[i].split.name };
        csv.write_record([&name, record.label, split, record.group]).map_err(trouble)?;
    }
    csv.flush().map_err(|e| Error::write(doing, &path, e))?;
    drop(csv);
    file.commit(false)
}

//! The dry run: sizes from all headers, bytes from a sample that is really encoded, nothing written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::ledger::Line;
use super::one::{self, Bench};
use super::{IMAGES, JOURNAL, Options, encoding_of, plan_outputs};
use crate::decode::Header;
use crate::engine::crew::Crew;
use crate::engine::pipe::{Pipe, Scratch};
use crate::engine::progress::{Tally, Watch};
use crate::error::Result;
use crate::names;
use crate::out::{Claim, journal, place};
use crate::source::Listing;

/// Images that are encoded to learn how many bytes a pixel takes.
const SAMPLE: usize = 48;

/// What a run would do.
#[derive(Debug, Clone, Default)]
pub struct Estimate {
    /// The workspace that it would make.
    pub folder: PathBuf,
    /// Copies that it would have in the end.
    pub images: usize,
    /// Entries that cannot be used, as far as headers tell.
    pub refused: usize,
    /// Copies that an earlier run has finished, if the options are the same.
    pub finished: usize,
    /// Bytes of the sources of the copies.
    pub bytes_in: u64,
    /// Bytes of the copies, from the sample's bytes a pixel.
    pub bytes_out: u64,
    /// Sizes, the most frequent first.
    pub sizes: Vec<SizeRow>,
}

/// Images that have the same size before and after.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SizeRow {
    /// Stored size.
    pub from: (u32, u32),
    /// Mode of the source.
    pub mode: String,
    /// EXIF orientation.
    pub orientation: u8,
    /// Size of the copy.
    pub to: (u32, u32),
    /// How many.
    pub images: usize,
}

/// Looks at all headers and encodes a sample.
///
/// # Errors
/// An impossible output folder, or an interrupt.
pub fn estimate(
    listing: &Listing,
    folder: &Path,
    options: &Options,
    pipe: &Pipe,
    crew: &Crew<'_>,
    watch: &mut dyn Watch,
) -> Result<Estimate> {
    place::check_apart(&listing.root, folder)?;
    super::workspace::check_ours(folder)?;
    let (rows, refused) = headers(listing, options, pipe, crew, watch)?;
    let mut counted: BTreeMap<SizeRow, usize> = BTreeMap::new();
    let mut estimate =
        Estimate { folder: folder.to_owned(), images: rows.len(), refused, ..Estimate::default() };
    let mut pixels = 0;
    for (i, row) in &rows {
        pixels += u64::from(row.to.0) * u64::from(row.to.1);
        estimate.bytes_in += listing.entries[*i].bytes;
        *counted.entry(row.clone()).or_default() += 1;
    }
    estimate.sizes = counted.into_iter().map(|(row, images)| SizeRow { images, ..row }).collect();
    estimate.sizes.sort_by(|a, b| b.images.cmp(&a.images).then_with(|| a.cmp(b)));
    let usable: Vec<usize> = rows.iter().map(|(i, _)| *i).collect();
    let (sample_bytes, sample_pixels) = sample(listing, &usable, options, pipe, crew)?;
    if sample_pixels > 0 {
        estimate.bytes_out = (sample_bytes as f64 / sample_pixels as f64 * pixels as f64) as u64;
    }
    estimate.finished = finished(listing, folder, options)?;
    Ok(estimate)
}

fn headers(
    listing: &Listing,
    options: &Options,
    pipe: &Pipe,
    crew: &Crew<'_>,
    watch: &mut dyn Watch,
) -> Result<(Vec<(usize, SizeRow)>, usize)> {
    let keys: Vec<&str> = listing.entries.iter().map(|e| e.path.as_str()).collect();
    let mut tally = Tally {
        total: keys.len(),
        total_bytes: listing.entries.iter().map(|e| e.bytes).sum(),
        ..Tally::default()
    };
    let (mut rows, mut refused) = (Vec::new(), 0);
    let outcome = crew.run(
        &keys,
        Scratch::default,
        |scratch, item| {
            let entry = &listing.entries[item.index];
            pipe.read(entry, item, scratch, |read, _| Ok(size_row(options, read.header())))
        },
        |_, fault| Err(fault),
        |i, row| {
            match row {
                Ok(row) => rows.push((i, row)),
                Err(_) => refused += 1,
            }
            tally.done += 1;
            tally.bytes += listing.entries[i].bytes;
            tally.bad = refused;
            watch.step(&tally);
            Ok(())
        },
    );
    watch.end();
    outcome.map(|()| (rows, refused))
}

fn size_row(options: &Options, header: &Header) -> SizeRow {
    SizeRow {
        from: (header.width, header.height),
        mode: header.src_mode(),
        orientation: header.orientation as u8,
        to: one::geometry(options, header).size,
        images: 0,
    }
}

/// Bytes and pixels of an even sample of copies, encoded in memory.
fn sample(
    listing: &Listing,
    usable: &[usize],
    options: &Options,
    pipe: &Pipe,
    crew: &Crew<'_>,
) -> Result<(u64, u64)> {
    let step = usable.len().div_ceil(SAMPLE).max(1);
    let chosen: Vec<usize> = usable.iter().copied().step_by(step).collect();
    let keys: Vec<&str> = chosen.iter().map(|i| listing.entries[*i].path.as_str()).collect();
    let (mut bytes, mut pixels) = (0, 0);
    crew.run(
        &keys,
        Bench::default,
        |bench, item| {
            let entry = &listing.entries[chosen[item.index]];
            one::encode(bench, pipe, options, entry, encoding_of(entry, options), item)
        },
        |_, fault| Err((fault, one::Source::default())),
        |_, made| {
            if let Ok(made) = made {
                bytes += made.bytes;
                pixels += u64::from(made.size.0) * u64::from(made.size.1);
            }
            Ok(())
        },
    )?;
    Ok((bytes, pixels))
}

fn finished(listing: &Listing, folder: &Path, options: &Options) -> Result<usize> {
    let (heading, lines) = journal::read_any(&folder.join(Claim::CORNER).join(JOURNAL))?;
    if options.force || heading != Some(options.heading()) {
        return Ok(0);
    }
    let images = folder.join(IMAGES);
    let known: BTreeMap<String, Line> =
        lines.iter().filter_map(|text| Line::parse(text)).map(|line| (line.src.clone(), line)).collect();
    let plans = plan_outputs(listing, options);
    Ok(listing
        .entries
        .iter()
        .zip(&plans)
        .filter(|(entry, plan)| {
            let out = names::encode(&plan.path);
            known
                .get(&entry.path)
                .is_some_and(|line| line.fault.is_empty() && line.holds(entry, &out, &images))
        })
        .count())
}

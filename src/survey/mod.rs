//! The facts of every image of a listing: from the cache where the file is unchanged, else by one full decode.

mod prints;

use crate::decode::{Codec, Limits};
use crate::engine::crew::{Crew, Item};
use crate::engine::pipe::{Pipe, Read, Scratch};
use crate::engine::progress::{Tally, Watch};
use crate::entry::Entry;
use crate::error::Result;
use crate::facts::{Cache, Facts, Seen};
use crate::fault::{Cause, Fault};
use crate::measure::{Luma, PLANE, Print, Quality, THUMB, pass};
use crate::normal;
use crate::pixels::Scale;
use crate::source::{Listing, Stamp};

pub use prints::Kept;

/// The facts of some rows of a listing.
#[derive(Debug)]
pub struct Survey {
    /// One for each row that was asked for, in their order; without the prints.
    pub facts: Vec<Facts>,
    /// Their prints.
    pub prints: Kept,
    /// Images that were decoded; the others were known.
    pub decoded: usize,
}

/// Looks at the rows `chosen` of `listing`. `pipe` must tell damage ([`crate::engine::pipe::Damage::Tell`]) and have
/// the default contract.
///
/// # Errors
/// [`crate::error::Error::Interrupted`].
pub fn run(
    listing: &Listing,
    chosen: &[usize],
    pipe: &Pipe,
    crew: &Crew<'_>,
    mut cache: Option<&mut Cache>,
    watch: &mut dyn Watch,
) -> Result<Survey> {
    let entry = |k: usize| &listing.entries[chosen[k]];
    let mut prints = Kept::new(chosen.len())?;
    let mut facts: Vec<Option<Facts>> =
        known(listing, chosen, (cache.as_deref(), &pipe.limits), &mut prints)?;
    let fresh: Vec<usize> = (0..chosen.len()).filter(|k| facts[*k].is_none()).collect();
    let keys: Vec<&str> = fresh.iter().map(|k| entry(*k).path.as_str()).collect();
    let total_bytes = fresh.iter().map(|k| entry(*k).bytes).sum();
    let mut tally = Tally { total: fresh.len(), total_bytes, ..Tally::default() };
    let outcome = crew.run(
        &keys,
        Scratch::default,
        |scratch, item| {
            let entry = entry(fresh[item.index]);
            let before = Stamp::of(&entry.file);
            let facts = look(pipe, entry, item, scratch);
            (facts, (before == Stamp::of(&entry.file)).then_some(before))
        },
        |i, fault| (Facts::of_fault(entry(fresh[i]).bytes, fault), None),
        |i, (mut found, stamp)| {
            let entry = entry(fresh[i]);
            tally.done += 1;
            tally.bytes += entry.bytes;
            tally.bad += usize::from(found.fault.is_some());
            if let (Some(cache), Some(stamp)) = (cache.as_deref_mut(), stamp) {
                cache.put(&entry.path, stamp, &found);
            }
            prints.take_from(fresh[i], &mut found)?;
            facts[fresh[i]] = Some(found);
            watch.step(&tally);
            Ok(())
        },
    );
    watch.end();
    if let Some(cache) = cache {
        // Also after an interrupt: what was found is not lost.
        cache.close();
    }
    outcome?;
    Ok(Survey { facts: facts.into_iter().flatten().collect(), prints, decoded: fresh.len() })
}

/// What needs no decoding: rows that the listing itself refuses, and what the cache has. A file that the table does not
/// name is looked at all the same: it may be a copy, or a picture that was forgotten.
fn known(
    listing: &Listing,
    chosen: &[usize],
    (cache, limits): (Option<&Cache>, &Limits),
    prints: &mut Kept,
) -> Result<Vec<Option<Facts>>> {
    // What an earlier run allowed is asked again under the limits of this one.
    let allowed = |facts: &Facts| {
        let size = facts.size().unwrap_or_default();
        u64::from(size.0) * u64::from(size.1) <= limits.max_pixels
    };
    let of = |entry: &Entry| match &entry.fault {
        Some(fault) if fault.cause != Cause::Unlisted => Some(Facts::of_fault(entry.bytes, fault.clone())),
        _ => cache.and_then(|cache| cache.get(&entry.path, &Stamp::of(&entry.file))).filter(allowed),
    };
    let mut known = Vec::with_capacity(chosen.len());
    for (k, i) in chosen.iter().enumerate() {
        let mut facts = of(&listing.entries[*i]);
        if let Some(facts) = &mut facts {
            prints.take_from(k, facts)?;
        }
        known.push(facts);
    }
    Ok(known)
}

/// Reads and decodes one image.
fn look(pipe: &Pipe, entry: &Entry, item: &Item<'_>, scratch: &mut Scratch) -> Facts {
    let unlisted = entry.fault.as_ref().is_some_and(|f| f.cause == Cause::Unlisted);
    let bare = unlisted.then(|| Entry { fault: None, ..entry.clone() });
    let entry = bare.as_ref().unwrap_or(entry);
    let outcome = pipe.read(entry, item, scratch, |read, codec| Ok(decode(pipe, read, item, codec)));
    outcome.unwrap_or_else(|fault| Facts::of_fault(entry.bytes, fault))
}

fn decode(pipe: &Pipe, read: &Read<'_>, item: &Item<'_>, codec: &mut Codec) -> Facts {
    let mut hash = [0; 16];
    hash.copy_from_slice(&read.hash.as_bytes()[..16]);
    let mut facts = Facts {
        bytes: read.bytes.len() as u64,
        hash: Some(hash),
        header: Some(read.header().clone()),
        fault: None,
        notes: read.notes().to_vec(),
        seen: None,
    };
    match see(pipe, read, item, codec, &mut facts) {
        Ok(seen) => facts.seen = Some(seen),
        Err(fault) => facts.fault = Some(fault),
    }
    facts
}

fn see(
    pipe: &Pipe,
    read: &Read<'_>,
    item: &Item<'_>,
    codec: &mut Codec,
    facts: &mut Facts,
) -> Result<Seen, Fault> {
    let mut held = pipe.pixels(read, Scale::FULL, 0, item, codec)?;
    facts.notes = std::mem::take(&mut held.decoded.notes);
    facts.fault = held.decoded.damage.take();
    let (mut picture, finish) = (held.decoded.rgb, held.decoded.finish);
    normal::srgb(&mut picture, &finish);
    let pass = pass(&picture, finish.orientation);
    let large = picture.width.min(picture.height) as usize >= THUMB;
    // What workers keep between pictures is a small part of what pictures may use.
    if picture.data.capacity() as u64 <= pipe.budget.pixels.total() / 8 / pipe.threads.max(1) as u64 {
        codec.give_back(picture.data);
    }
    let print = large.then(|| Print::of(&Luma::of(&pass.small, PLANE)).map(Box::new)).flatten();
    Ok(Seen { pixel_hash: pass.hash, sums: pass.sums, quality: Quality::of(&pass.small), print })
}

//! `prep sheet`: contact sheets, on which wrong labels are seen in a minute.
//!
//! [`group`] says which images belong together, [`pick`] which of them are shown, [`page`] what lies on which sheet;
//! [`run`] decodes each picture at the smallest scale that serves and draws sheet after sheet, so that memory holds
//! one sheet and what the workers have in hand.

pub mod caption;
mod canvas;
mod draw;
pub mod files;
pub mod font;
pub mod group;
mod layout;
pub mod page;
pub mod pairs;
pub mod pick;
mod text;
mod unlike;
pub mod web;

use std::collections::BTreeMap;

pub use self::draw::Mark;
use self::caption::Caption;
use self::draw::{Cell, Drawing};
use self::font::Fonts;
use self::page::Page;
pub use self::unlike::Worst;
use crate::engine::crew::Crew;
use crate::engine::pipe::Pipe;
use crate::engine::progress::{Tally, Watch};
use crate::entry::Entry;
use crate::error::Result;
use crate::fault::{Fault, Status};
use crate::pixels::Rgb8;
use crate::source::Listing;
use crate::thumb::{self, Bench, Look};

/// What was found about images, by their places in the listing.
pub type Marks = BTreeMap<usize, Vec<Mark>>;

/// What is drawn.
pub struct Job<'a> {
    /// All images.
    pub listing: &'a Listing,
    /// The sheets.
    pub pages: &'a [Page],
    /// What stands below pictures.
    pub caption: &'a Caption,
    /// What was found about images.
    pub marks: &'a Marks,
}

/// A cell with an image, in the order of drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    page: usize,
    block: usize,
    cell: usize,
    image: usize,
}

/// Where an image was drawn, and what of it: a row of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    /// Which sheet.
    pub page: usize,
    /// Row and column of the cell on the sheet, from 1.
    pub place: (usize, usize),
    /// Which image.
    pub image: usize,
    /// Its upright size, where it is known.
    pub size: Option<(u32, u32)>,
    /// Why it cannot be read, or what is damaged in it.
    pub fault: Option<Fault>,
}

/// Draws the sheets of `job`, gives each to `done` when it is finished, and tells what lies where. `pipe` must tell
/// damage ([`crate::engine::pipe::Damage::Tell`]).
///
/// # Errors
/// What `done` says; [`crate::error::Error::Interrupted`].
pub fn run(
    job: &Job<'_>,
    fonts: &mut Fonts,
    pipe: &Pipe,
    crew: &Crew<'_>,
    watch: &mut dyn Watch,
    done: &mut dyn FnMut(&Page, &Rgb8) -> Result<()>,
) -> Result<Vec<Drawn>> {
    let slots = slots(job.pages);
    let mut index = Vec::with_capacity(slots.len());
    let mut begun: Option<(usize, Drawing<'_>)> = None;
    let mut next_page = 0;
    let outcome = looked(job, &slots, pipe, crew, watch, |_, look| look, |slot, look| {
        // Sheets without any image have no slot: they are finished on the way.
        while begun.as_ref().is_none_or(|(page, _)| *page < slot.page) {
            finish(begun.take(), job, done)?;
            begun = Some((next_page, Drawing::new(&job.pages[next_page], fonts)));
            next_page += 1;
        }
        let drawn = drawn(job, slot, &look);
        let caption = job.caption.of(job.listing, slot.image, drawn.size);
        let marks = job.marks.get(&slot.image).map_or(&[][..], Vec::as_slice);
        if let Some((_, drawing)) = &mut begun {
            let cell = Cell { look: &look, caption: &caption, marks };
            drawing.cell((slot.block as u32, slot.cell as u32), &cell, fonts);
        }
        index.push(drawn);
        Ok(())
    });
    outcome?;
    finish(begun, job, done)?;
    for page in &job.pages[next_page..] {
        done(page, Drawing::new(page, fonts).picture())?;
    }
    Ok(index)
}

fn finish(
    begun: Option<(usize, Drawing<'_>)>,
    job: &Job<'_>,
    done: &mut dyn FnMut(&Page, &Rgb8) -> Result<()>,
) -> Result<()> {
    match begun {
        Some((page, drawing)) => done(&job.pages[page], drawing.picture()),
        None => Ok(()),
    }
}

fn drawn(job: &Job<'_>, slot: Slot, look: &Result<Look, Fault>) -> Drawn {
    let shape = &job.pages[slot.page].shape;
    let (across, columns) = (shape.across as usize, shape.columns as usize);
    let row = slot.block / across * shape.rows as usize + slot.cell / columns;
    let column = slot.block % across * columns + slot.cell % columns;
    let (size, fault) = match look {
        Ok(look) => (Some(look.full), look.damage.clone()),
        Err(fault) => (None, Some(fault.clone())),
    };
    Drawn { page: slot.page, place: (row + 1, column + 1), image: slot.image, size, fault }
}

fn slots(pages: &[Page]) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (page, sheet) in pages.iter().enumerate() {
        for (block, cells) in sheet.blocks.iter().enumerate() {
            let images = cells.cells.iter().enumerate().filter_map(|(cell, image)| Some((cell, (*image)?)));
            slots.extend(images.map(|(cell, image)| Slot { page, block, cell, image }));
        }
    }
    slots
}

/// Looks at the image of each slot, makes of it what `make` says on the worker, and hands it on in order.
fn looked<R: Send>(
    job: &Job<'_>,
    slots: &[Slot],
    pipe: &Pipe,
    crew: &Crew<'_>,
    watch: &mut dyn Watch,
    make: impl Fn(&mut Bench, Result<Look, Fault>) -> R + Sync,
    mut take: impl FnMut(Slot, R) -> Result<()>,
) -> Result<()> {
    let entry = |slot: usize| &job.listing.entries[slots[slot].image];
    let keys: Vec<&str> = (0..slots.len()).map(|slot| entry(slot).path.as_str()).collect();
    let total_bytes = (0..slots.len()).map(|slot| entry(slot).bytes).sum();
    let mut tally = Tally { total: slots.len(), total_bytes, ..Tally::default() };
    let outcome = crew.run(
        &keys,
        Bench::default,
        |bench, item| {
            let slot = slots[item.index];
            let side = job.pages[slot.page].shape.cell;
            let bare = again(entry(item.index));
            let entry = bare.as_ref().unwrap_or_else(|| entry(item.index));
            let look = thumb::look(pipe, entry, item, (side, side), bench);
            make(bench, look)
        },
        |_, fault| make(&mut Bench::default(), Err(fault)),
        |at, result| {
            tally.done += 1;
            tally.bytes += entry(at).bytes;
            take(slots[at], result)?;
            watch.step(&tally);
            Ok(())
        },
    );
    watch.end();
    outcome
}

/// A row that a manifest calls damaged is looked at all the same: what is left of it is worth seeing.
fn again(entry: &Entry) -> Option<Entry> {
    let damaged = entry.fault.as_ref().is_some_and(|fault| fault.status() == Status::Damaged);
    (damaged && entry.bytes > 0).then(|| Entry { fault: None, ..entry.clone() })
}

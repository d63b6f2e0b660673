//! The same sheets as one page for a browser; see [`crate::page::sheet`].

use std::io::Write;
use std::path::Path;

use super::draw::Mark;
use super::{Drawn, Job, Slot, drawn, looked, slots};
use crate::decode::Chroma;
use crate::encode::{Encoder, Encoding};
use crate::engine::crew::Crew;
use crate::engine::pipe::Pipe;
use crate::engine::progress::Watch;
use crate::error::{Error, Result};
use crate::fault::{Cause, Fault};
use crate::out::{Atomic, Spool};
use crate::page::sheet::{self as page, Cell, Section, Sheet};
use crate::thumb::Look;

/// What the page says about itself.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// Name of the data set.
    pub title: String,
    /// Seed and data.
    pub summary: String,
    /// The command line.
    pub command: String,
    /// What the marks in the browser are kept under.
    pub key: String,
    /// The data set as seen from the page's folder.
    pub root: Option<String>,
    /// Command lines that use the saved file.
    pub uses: Vec<String>,
}

/// What a worker makes of an image.
struct Small {
    jpeg: Vec<u8>,
    look: Result<Look, Fault>,
}

/// Writes the page of `job` to `target` and tells what lies where. Thumbnails wait in a nameless file, not in memory.
///
/// # Errors
/// [`Error::Write`]; an interrupt.
pub fn write(
    job: &Job<'_>,
    head: Head,
    target: &Path,
    pipe: &Pipe,
    crew: &Crew<'_>,
    watch: &mut dyn Watch,
) -> Result<Vec<Drawn>> {
    let slots = slots(job.pages);
    let spool = Spool::create("keeping thumbnails")?;
    let mut ends: Vec<u64> = vec![0];
    let mut index = Vec::with_capacity(slots.len());
    let mut cells: Vec<Cell> = Vec::with_capacity(slots.len());
    looked(job, &slots, pipe, crew, watch, |_, look| small(look), |slot, small| {
        let mut cell = told(job, slot, &small);
        if !small.jpeg.is_empty() {
            let start = ends[ends.len() - 1];
            spool.write_at(&small.jpeg, start)?;
            cell.thumb = Some(ends.len() - 1);
            ends.push(start + small.jpeg.len() as u64);
        }
        cells.push(cell);
        index.push(drawn(job, slot, &small.look));
        Ok(())
    })?;
    let sheet = Sheet {
        title: head.title,
        summary: head.summary,
        command: head.command,
        key: head.key,
        root: head.root,
        classes: job.listing.classes.clone(),
        uses: head.uses,
        cell: job.pages.iter().map(|page| page.shape.cell).max().unwrap_or(256),
        sections: sections(job, &slots, cells),
    };
    let doing = "writing the page of sheets";
    let mut file = Atomic::create(doing, target)?;
    let thumbs = (1..ends.len()).map(|at| {
        let mut bytes = vec![0; (ends[at] - ends[at - 1]) as usize];
        // A thumbnail that cannot be read back is an empty one, and the page shows its name alone.
        if spool.read_at(&mut bytes, ends[at - 1]).is_err() {
            bytes.clear();
        }
        bytes
    });
    page::write(&mut file, &sheet, thumbs).map_err(|e| Error::write(doing, target, e))?;
    file.flush().map_err(|e| Error::write(doing, target, e))?;
    file.commit(true)?;
    Ok(index)
}

fn small(mut look: Result<Look, Fault>) -> Small {
    let mut jpeg = Vec::new();
    if let Ok(seen) = &mut look {
        let encoding = Encoding::Jpeg { quality: 82, chroma: Chroma::Yuv420 };
        if let Err(why) = Encoder::default().encode(&seen.picture, encoding, &mut jpeg) {
            look = Err(Fault::new(Cause::Encode, why));
        } else {
            // The pixels are not needed any more: results that wait cost little.
            seen.picture = crate::pixels::Rgb8::default();
        }
    }
    Small { jpeg, look }
}

fn told(job: &Job<'_>, slot: Slot, small: &Small) -> Cell {
    let entry = &job.listing.entries[slot.image];
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (size, format, damage) = match &small.look {
        Ok(look) => (look.full, look.format.name(), look.damage.as_ref()),
        Err(_) => ((0, 0), "", None),
    };
    let marks = job.marks.get(&slot.image).map_or(&[][..], Vec::as_slice);
    let mut findings: Vec<(String, String)> =
        marks.iter().map(|Mark { code, text, .. }| (code.clone(), text.clone())).collect();
    findings.extend(damage.map(|fault| (fault.cause.code().to_owned(), fault.detail.clone())));
    Cell {
        path: entry.path.clone(),
        label: text(&entry.label),
        split: text(&entry.split),
        caption: below(job.caption.of(job.listing, slot.image, (size.0 > 0).then_some(size))),
        findings,
        width: size.0,
        height: size.1,
        format: format.to_owned(),
        fault: small.look.as_ref().err().map(ToString::to_string),
        thumb: None,
    }
}

/// The lines below a picture without the first, its name, which the page shows itself.
fn below(mut caption: Vec<String>) -> Vec<String> {
    caption.drain(..caption.len().min(1));
    caption.retain(|line| !line.is_empty());
    caption
}

/// A section for each block, or for each sheet of one block.
fn sections(job: &Job<'_>, slots: &[Slot], cells: Vec<Cell>) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut placed = slots.iter().zip(cells).peekable();
    for (at, page) in job.pages.iter().enumerate() {
        for (nth, block) in page.blocks.iter().enumerate() {
            let (title, note) = match page.shape.titled {
                true => (block.title.clone(), block.note.clone()),
                false => (page.title.clone(), page.about.clone()),
            };
            let columns = page.shape.grounded.then_some(2);
            let mut section = Section { title, note, columns, cells: Vec::new() };
            while let Some((_, cell)) = placed.next_if(|(slot, _)| (slot.page, slot.block) == (at, nth)) {
                section.cells.push(cell);
            }
            sections.push(section);
        }
    }
    sections
}

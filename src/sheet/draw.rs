//! One sheet as a picture: the header when it begins, cell after cell as they come.

use super::canvas::{Canvas, Colour, Place};
use super::font::Fonts;
use super::layout::{BASE, LINE, MARGIN, TEXT, TITLE};
use super::page::Page;
use super::text::line;
use crate::fault::Fault;
use crate::pixels::Rgb8;
use crate::thumb::Look;

const PAPER: Colour = [255, 255, 255];
/// Behind pictures: their letterbox is seen.
const CELL: Colour = [232, 232, 232];
const EMPTY: Colour = [246, 246, 246];
const GROUND: Colour = [242, 242, 244];
const INK: Colour = [26, 26, 26];
const GRAY: Colour = [104, 104, 104];
const RED: Colour = [208, 24, 24];
/// Width of the frame of an image with a finding, px.
const FRAME: u32 = 4;
/// Lines of the reason in the cell of an image that cannot be read.
const REASON: usize = 5;

/// Something that was found about an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Its code, as in `D004`.
    pub code: String,
    /// What it is, for a person.
    pub text: String,
    /// Does it matter, so that the image gets a red frame?
    pub red: bool,
}

/// What a cell shows.
pub struct Cell<'a> {
    /// The picture, or why there is none.
    pub look: &'a Result<Look, Fault>,
    /// Lines below it.
    pub caption: &'a [String],
    /// What was found about it.
    pub marks: &'a [Mark],
}

/// A sheet on which is drawn.
pub struct Drawing<'a> {
    page: &'a Page,
    canvas: Canvas,
}

impl<'a> Drawing<'a> {
    /// The sheet with its header, the titles of its blocks and empty cells.
    pub fn new(page: &'a Page, fonts: &mut Fonts) -> Self {
        let (width, height) = page.shape.size();
        let mut drawing = Self { page, canvas: Canvas::new(width as u32, height as u32, PAPER) };
        let room = (width as u32).saturating_sub(2 * MARGIN);
        let title = line(fonts, &page.title, TITLE, room);
        drawing.canvas.write(&title, (MARGIN, MARGIN + 20), INK);
        let under = line(fonts, &format!("{} · {}", page.about, page.stamp), TEXT, room);
        drawing.canvas.write(&under, (MARGIN, MARGIN + 42), GRAY);
        for at in 0..page.blocks.len() {
            drawing.block(at, fonts);
        }
        drawing
    }

    fn block(&mut self, at: usize, fonts: &mut Fonts) {
        let (shape, block) = (&self.page.shape, &self.page.blocks[at]);
        if shape.grounded {
            self.canvas.fill(shape.block(at as u32), GROUND);
        }
        if shape.titled {
            let place = shape.block_title(at as u32);
            let title = line(fonts, &block.title, TEXT + 2, place.width);
            self.canvas.write(&title, (place.x, place.y + BASE), INK);
            let used = title.width + if block.title.is_empty() { 0 } else { 10 };
            let note = line(fonts, &block.note, TEXT, place.width.saturating_sub(used));
            self.canvas.write(&note, (place.x + used, place.y + BASE), GRAY);
        }
        for (cell, image) in block.cells.iter().enumerate() {
            let place = shape.cell(at as u32, cell as u32);
            self.canvas.fill(place, if image.is_some() { CELL } else { EMPTY });
            if image.is_none() {
                let dash = line(fonts, "–", TEXT, place.width);
                let at =
                    (place.x + (place.width - dash.width.min(place.width)) / 2, place.y + place.height / 2);
                self.canvas.write(&dash, at, GRAY);
            }
        }
    }

    /// Draws cell `cell` of block `block`.
    pub fn cell(&mut self, (block, at): (u32, u32), cell: &Cell<'_>, fonts: &mut Fonts) {
        let place = self.page.shape.cell(block, at);
        let mut codes: Vec<&str> = cell.marks.iter().map(|mark| mark.code.as_str()).collect();
        let mut red = cell.marks.iter().any(|mark| mark.red);
        match cell.look {
            Ok(look) => {
                self.canvas.paste(&enlarged(&look.picture, place), place);
                if let Some(damage) = &look.damage {
                    // An audit has a code of its own for it.
                    if !codes.iter().any(|code| code.starts_with('F')) {
                        codes.push(damage.cause.code());
                    }
                    red = true;
                }
            }
            Err(fault) => {
                self.reason(place, fault, fonts);
                red = true;
            }
        }
        if red {
            self.canvas.frame(place, FRAME, RED);
        }
        if !codes.is_empty() {
            self.badge(place, &codes.join(" "), if red { RED } else { GRAY }, fonts);
        }
        for (nth, text) in cell.caption.iter().enumerate() {
            let at = self.page.shape.caption(place, nth as u32);
            let set = line(fonts, text, TEXT, at.width);
            self.canvas.write(&set, (at.x, at.y + BASE), if nth == 0 { INK } else { GRAY });
        }
    }

    /// A small box at the top left of a cell, with the codes of what was found.
    fn badge(&mut self, place: Place, text: &str, colour: Colour, fonts: &mut Fonts) {
        let set = line(fonts, text, TEXT - 1, place.width.saturating_sub(12));
        let width = (set.width + 12).min(place.width);
        self.canvas.fill(Place { width, height: LINE.min(place.height), ..place }, colour);
        self.canvas.write(&set, (place.x + 6, place.y + BASE - 1), PAPER);
    }

    /// Why there is no picture, in the middle of the cell.
    fn reason(&mut self, place: Place, fault: &Fault, fonts: &mut Fonts) {
        let inner = place.inset(FRAME + 6);
        let rows = (inner.height / LINE) as usize;
        let mut lines = vec![fault.cause.code().to_owned()];
        lines.extend(wrapped(&fault.detail, inner.width, fonts));
        lines.truncate(REASON.min(rows));
        let top = place.y + (place.height - (lines.len() as u32 * LINE).min(place.height)) / 2;
        for (nth, text) in lines.iter().enumerate() {
            let set = line(fonts, text, TEXT, inner.width);
            let x = inner.x + inner.width.saturating_sub(set.width) / 2;
            self.canvas.write(&set, (x, top + nth as u32 * LINE + BASE), if nth == 0 { RED } else { GRAY });
        }
    }

    /// The finished sheet.
    pub fn picture(&self) -> &Rgb8 {
        self.canvas.picture()
    }
}

/// Words in lines of at most `width` px.
fn wrapped(text: &str, width: u32, fonts: &mut Fonts) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let longer = lines.last().map(|last| format!("{last} {word}"));
        match (lines.last_mut(), longer) {
            (Some(last), Some(longer)) if line(fonts, &longer, TEXT, u32::MAX).width <= width => {
                *last = longer;
            }
            _ => lines.push(word.to_owned()),
        }
        if lines.len() > REASON {
            break;
        }
    }
    lines
}

/// Pictures far smaller than a cell (digits, icons) are shown with each pixel as a square of several.
fn enlarged(picture: &Rgb8, place: Place) -> Rgb8 {
    let fits = (place.width / picture.width.max(1)).min(place.height / picture.height.max(1));
    if fits < 2 {
        return picture.clone();
    }
    let factor = fits as usize;
    let mut data = Vec::with_capacity(picture.data.len() * factor * factor);
    for row in picture.data.chunks_exact(picture.width as usize * 3) {
        let wide: Vec<u8> = row.chunks_exact(3).flat_map(|pixel| pixel.repeat(factor)).collect();
        for _ in 0..factor {
            data.extend_from_slice(&wide);
        }
    }
    Rgb8::new(picture.width * fits, picture.height * fits, data)
}

//! Where everything lies on a sheet: a header, and blocks of cells below it.

use super::canvas::Place;

/// Around the sheet, px.
pub const MARGIN: u32 = 16;
/// Between cells, px.
const GAP: u32 = 10;
/// Between blocks, px.
const BLOCK_GAP: u32 = 18;
/// Inside the ground of a pair, px.
const PAD: u32 = 8;
/// Letters of the header, of its second line and of captions, px.
pub const TITLE: u32 = 24;
/// Letters of captions and notes, px.
pub const TEXT: u32 = 14;
/// From one line of text to the next, px: bitmaps have 16 rows.
pub const LINE: u32 = 18;
/// From the top of a line to its baseline, px.
pub const BASE: u32 = 14;
/// The header without the margin, px.
const HEADER: u32 = 60;
/// The title of a block, px.
const BLOCK_TITLE: u32 = 24;

/// The shape of a sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Side of a cell, px.
    pub cell: u32,
    /// Lines below each cell.
    pub lines: u32,
    /// Cells in a row of a block.
    pub columns: u32,
    /// Rows of cells in a block.
    pub rows: u32,
    /// Blocks beside each other.
    pub across: u32,
    /// Blocks below each other.
    pub down: u32,
    /// Blocks have a title.
    pub titled: bool,
    /// Blocks have a ground.
    pub grounded: bool,
}

impl Shape {
    /// Width and height, px.
    pub fn size(&self) -> (u64, u64) {
        let (across, down) = (u64::from(self.across), u64::from(self.down));
        let (width, height) = self.block_size();
        let gaps = |n: u64| n.saturating_sub(1) * u64::from(BLOCK_GAP);
        let wide = u64::from(2 * MARGIN) + across * width + gaps(across);
        let high = u64::from(2 * MARGIN + HEADER) + down * height + gaps(down);
        (wide, high)
    }

    fn block_size(&self) -> (u64, u64) {
        let sides = |n: u32, side: u32| {
            u64::from(n) * u64::from(side) + u64::from(n.saturating_sub(1)) * u64::from(GAP)
        };
        let pad = u64::from(if self.grounded { 2 * PAD } else { 0 });
        let title = u64::from(if self.titled { BLOCK_TITLE } else { 0 });
        (sides(self.columns, self.cell) + pad, sides(self.rows, self.cell_height()) + pad + title)
    }

    /// A cell with its lines, px.
    fn cell_height(&self) -> u32 {
        self.cell + if self.lines > 0 { 3 + self.lines * LINE } else { 0 }
    }

    /// Where block `at` lies, counted row by row.
    pub fn block(&self, at: u32) -> Place {
        let (width, height) = self.block_size();
        let (width, height) = (width as u32, height as u32);
        let (across, down) = (at % self.across.max(1), at / self.across.max(1));
        let x = MARGIN + across * (width + BLOCK_GAP);
        Place { x, y: MARGIN + HEADER + down * (height + BLOCK_GAP), width, height }
    }

    /// The square of cell `cell` of block `block`, without its caption.
    pub fn cell(&self, block: u32, cell: u32) -> Place {
        let Place { x, y, .. } = self.block(block);
        let (column, row) = (cell % self.columns.max(1), cell / self.columns.max(1));
        let pad = if self.grounded { PAD } else { 0 };
        let title = if self.titled { BLOCK_TITLE } else { 0 };
        let x = x + pad + column * (self.cell + GAP);
        let y = y + pad + title + row * (self.cell_height() + GAP);
        Place { x, y, width: self.cell, height: self.cell }
    }

    /// Where the title of a block begins: the top left corner of its line, and its width.
    pub fn block_title(&self, block: u32) -> Place {
        let place = self.block(block);
        let pad = if self.grounded { PAD } else { 0 };
        Place { x: place.x + pad, y: place.y + pad, width: place.width - 2 * pad, height: BLOCK_TITLE }
    }

    /// The line `nth` below a cell.
    pub fn caption(&self, cell: Place, nth: u32) -> Place {
        Place { y: cell.y + cell.height + 3 + nth * LINE, height: LINE, ..cell }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps_and_nothing_is_outside() {
        let shapes = [
            Shape { cell: 256, lines: 2, columns: 3, rows: 3, across: 1, down: 1, titled: false, grounded: false },
            Shape { cell: 96, lines: 1, columns: 9, rows: 1, across: 1, down: 15, titled: true, grounded: false },
            Shape { cell: 200, lines: 3, columns: 2, rows: 1, across: 2, down: 4, titled: true, grounded: true },
        ];
        for shape in shapes {
            let mut taken: Vec<Place> = Vec::new();
            for block in 0..shape.across * shape.down {
                for cell in 0..shape.columns * shape.rows {
                    let place = shape.cell(block, cell);
                    let height = place.height + if shape.lines > 0 { 3 + shape.lines * LINE } else { 0 };
                    taken.push(Place { height, ..place });
                }
            }
            let (width, height) = shape.size();
            for (i, a) in taken.iter().enumerate() {
                assert!(u64::from(a.x + a.width) <= width && u64::from(a.y + a.height) <= height, "{shape:?}");
                for b in &taken[..i] {
                    let apart = a.x >= b.x + b.width || b.x >= a.x + a.width || a.y >= b.y + b.height || b.y >= a.y + a.height;
                    assert!(apart, "{a:?} {b:?}");
                }
            }
        }
    }
}

//! A picture that is drawn on: rectangles, frames, pictures, text. What lies outside is left out.

use super::text::Line;
use crate::pixels::Rgb8;

/// A colour as R, G, B.
pub type Colour = [u8; 3];

/// A rectangle in px: left, top, width, height.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Left edge.
    pub x: u32,
    /// Top edge.
    pub y: u32,
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
}

impl Place {
    /// As far inside on all sides.
    pub fn inset(self, by: u32) -> Self {
        let (width, height) = (self.width.saturating_sub(2 * by), self.height.saturating_sub(2 * by));
        Self { x: self.x + by, y: self.y + by, width, height }
    }
}

/// The picture.
pub struct Canvas {
    picture: Rgb8,
}

impl Canvas {
    /// A canvas of one colour.
    pub fn new(width: u32, height: u32, colour: Colour) -> Self {
        let data = colour.repeat(width as usize * height as usize);
        Self { picture: Rgb8::new(width, height, data) }
    }

    /// The picture.
    pub fn picture(&self) -> &Rgb8 {
        &self.picture
    }

    /// Fills a rectangle.
    pub fn fill(&mut self, place: Place, colour: Colour) {
        let (width, height) = self.picture.size();
        let (left, right) = (place.x.min(width), place.x.saturating_add(place.width).min(width));
        for y in place.y.min(height)..place.y.saturating_add(place.height).min(height) {
            let row = self.row(y, left, right);
            row.chunks_exact_mut(3).for_each(|pixel| pixel.copy_from_slice(&colour));
        }
    }

    /// Draws the edge of a rectangle, `thick` px inwards.
    pub fn frame(&mut self, place: Place, thick: u32, colour: Colour) {
        let Place { x, y, width, height } = place;
        let thick = thick.min(width).min(height);
        self.fill(Place { height: thick, ..place }, colour);
        self.fill(Place { y: y + height - thick, height: thick, ..place }, colour);
        self.fill(Place { width: thick, ..place }, colour);
        self.fill(Place { x: x + width - thick, width: thick, ..place }, colour);
    }

    /// Lays a picture into the middle of a rectangle.
    pub fn paste(&mut self, picture: &Rgb8, place: Place) {
        let x = place.x + place.width.saturating_sub(picture.width) / 2;
        let y = place.y + place.height.saturating_sub(picture.height) / 2;
        let (width, height) = self.picture.size();
        if x >= width {
            return;
        }
        let wide = picture.width.min(width.saturating_sub(x)) as usize * 3;
        let rows = picture.data.chunks_exact(picture.width as usize * 3);
        for (y, from) in (y..height).zip(rows) {
            let right = x + (wide / 3) as u32;
            self.row(y, x, right).copy_from_slice(&from[..wide]);
        }
    }

    /// Writes a line whose baseline begins at (x, y).
    pub fn write(&mut self, line: &Line, (x, y): (u32, u32), colour: Colour) {
        for placed in &line.glyphs {
            let glyph = &placed.glyph;
            for (at, cover) in glyph.coverage.iter().enumerate().filter(|(_, cover)| **cover > 0) {
                let (dx, dy) = (at as u32 % glyph.width, at as u32 / glyph.width);
                let px = i64::from(x) + i64::from(placed.x) + i64::from(dx);
                let py = i64::from(y) + i64::from(placed.y) + i64::from(dy);
                self.blend((px, py), *cover, colour);
            }
        }
    }

    fn blend(&mut self, (x, y): (i64, i64), cover: u8, colour: Colour) {
        let (width, height) = self.picture.size();
        if x < 0 || y < 0 || x >= i64::from(width) || y >= i64::from(height) {
            return;
        }
        let at = (y as usize * width as usize + x as usize) * 3;
        for (value, ink) in self.picture.data[at..at + 3].iter_mut().zip(colour) {
            let (old, new, share) = (u32::from(*value), u32::from(ink), u32::from(cover));
            *value = ((old * (255 - share) + new * share + 127) / 255) as u8;
        }
    }

    /// The bytes of row `y` from `left` to `right`, all of which lie on the canvas.
    fn row(&mut self, y: u32, left: u32, right: u32) -> &mut [u8] {
        let start = y as usize * self.picture.width as usize;
        &mut self.picture.data[(start + left as usize) * 3..(start + right.max(left) as usize) * 3]
    }
}

//! Glyphs as coverage: from the font that the user names, else DejaVu Sans, else the bitmaps of GNU Unifont, else a box.
//! Licences of both lie beside the font in `assets/fonts`.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use ab_glyph::{Font, FontRef, FontVec, GlyphId, OutlinedGlyph, PxScale, ScaleFont, point};

use crate::error::{Error, Result};
use crate::table;

const DEJAVU: &[u8] = include_bytes!("../../assets/fonts/DejaVuSans.ttf");
/// Rows of a glyph of Unifont, and those above its baseline.
const BITMAP: (u32, i32) = (16, 14);

/// One glyph at one size: coverage of 0 to 255, and where it goes from the pen on the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Glyph {
    /// How far the pen goes on, px.
    pub advance: f32,
    /// From the pen to the left edge, px.
    pub left: i32,
    /// From the baseline to the top edge, px; negative is above.
    pub top: i32,
    /// Width of the coverage, px; 0 for a space.
    pub width: u32,
    /// Height of the coverage, px.
    pub height: u32,
    /// `width * height` values.
    pub coverage: Vec<u8>,
}

/// The faces, in the order in which they are asked for a character, and the glyphs that were drawn before.
pub struct Fonts {
    chosen: Option<FontVec>,
    dejavu: Option<FontRef<'static>>,
    drawn: HashMap<(char, u32), Rc<Glyph>>,
}

impl Fonts {
    /// The embedded faces, with the font file `chosen` before them.
    ///
    /// # Errors
    /// [`Error::Read`] where it cannot be read, [`Error::Usage`] where it is no TrueType or OpenType font.
    pub fn new(chosen: Option<&Path>) -> Result<Self> {
        let chosen = chosen.map(load).transpose()?;
        let dejavu = FontRef::try_from_slice(DEJAVU).ok();
        Ok(Self { chosen, dejavu, drawn: HashMap::new() })
    }

    /// The glyph of `c` with letters of `size` px.
    pub fn glyph(&mut self, c: char, size: u32) -> Rc<Glyph> {
        if let Some(glyph) = self.drawn.get(&(c, size)) {
            return Rc::clone(glyph);
        }
        let chosen = self.chosen.as_ref().and_then(|f| outlined(f, c, size));
        let glyph = chosen
            .or_else(|| self.dejavu.as_ref().and_then(|f| outlined(f, c, size)))
            .or_else(|| bitmap(c))
            .unwrap_or_else(|| hollow(size));
        let glyph = Rc::new(glyph);
        self.drawn.insert((c, size), Rc::clone(&glyph));
        glyph
    }
}

fn load(path: &Path) -> Result<FontVec> {
    let bytes = table::load(path).map_err(|e| match e {
        Error::Read { source, .. } => Error::read("reading the font", path, source),
        other => other,
    })?;
    FontVec::try_from_vec(bytes).map_err(|_| {
        let path = crate::names::shown(path);
        Error::Usage(format!("--font {path}: this is no TrueType or OpenType font; name a .ttf, .otf or .ttc file"))
    })
}

fn outlined(font: &impl Font, c: char, size: u32) -> Option<Glyph> {
    let id = font.glyph_id(c);
    if id == GlyphId(0) {
        return None;
    }
    let scale = PxScale::from(size as f32);
    let advance = font.as_scaled(scale).h_advance(id);
    let drawn = font.outline_glyph(id.with_scale_and_position(scale, point(0.0, 0.0)));
    Some(drawn.map_or_else(|| blank(advance), |glyph| covered(&glyph, advance, size)))
}

fn blank(advance: f32) -> Glyph {
    Glyph { advance, left: 0, top: 0, width: 0, height: 0, coverage: Vec::new() }
}

/// The coverage of an outline. One that is larger than any letter is (a foreign font may hold anything) is left blank.
fn covered(glyph: &OutlinedGlyph, advance: f32, size: u32) -> Glyph {
    let bounds = glyph.px_bounds();
    let (width, height) = (bounds.width() as u32, bounds.height() as u32);
    if width > 8 * size || height > 8 * size {
        return blank(advance.clamp(0.0, 8.0 * size as f32));
    }
    let mut coverage = vec![0; (width * height) as usize];
    glyph.draw(|x, y, share| {
        if let Some(cell) = coverage.get_mut((y * width + x) as usize).filter(|_| x < width) {
            *cell = (share.clamp(0.0, 1.0) * 255.0).round() as u8;
        }
    });
    Glyph { advance, left: bounds.min.x as i32, top: bounds.min.y as i32, width, height, coverage }
}

/// Bitmaps are drawn as they are: scaled they look worse than small.
fn bitmap(c: char) -> Option<Glyph> {
    let glyph = unifont::get_glyph(c)?;
    let (width, height) = (glyph.get_width() as u32, BITMAP.0);
    let dots = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let coverage = dots.map(|(x, y)| if glyph.get_pixel(x as usize, y as usize) { 255 } else { 0 }).collect();
    Some(Glyph { advance: width as f32, left: 0, top: -BITMAP.1, width, height, coverage })
}

/// The box for a character that no face has.
fn hollow(size: u32) -> Glyph {
    let (width, height) = ((size / 2).max(5), (size * 3 / 4).max(7));
    let edge = |x: u32, y: u32| x == 0 || y == 0 || x + 1 == width || y + 1 == height;
    let dots = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let coverage = dots.map(|(x, y)| if edge(x, y) { 190 } else { 0 }).collect();
    Glyph { advance: width as f32 + 2.0, left: 1, top: -(height as i32), width, height, coverage }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_has_a_glyph() {
        let mut fonts = Fonts::new(None).unwrap();
        for (c, least) in [('a', 5), ('Ω', 5), ('中', 14), ('한', 14), ('ไ', 3), ('😀', 6), ('\u{10FFFF}', 6)] {
            let glyph = fonts.glyph(c, 13);
            assert!(glyph.width >= least && glyph.advance >= 5.0, "{c} {glyph:?}");
            assert!(glyph.coverage.iter().any(|v| *v > 120), "{c} is blank");
        }
        assert_eq!(fonts.glyph(' ', 13).width, 0);
    }
}

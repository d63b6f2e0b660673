//! The one shape in which pictures travel: 8-bit RGB, interleaved rows from top to bottom, no padding.

/// An 8-bit RGB picture. `data.len() == width * height * 3`, rows from top to bottom, R G B.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rgb8 {
    /// Pixels a row, at least 1 in a finished picture.
    pub width: u32,
    /// Rows, at least 1 in a finished picture.
    pub height: u32,
    /// `width * height * 3` bytes.
    pub data: Vec<u8>,
}

impl Rgb8 {
    /// A picture from its bytes.
    ///
    /// # Panics
    /// When `data` has not exactly `width * height * 3` bytes: a mistake of the caller, caught by the crew.
    pub fn new(width: u32, height: u32, data: Vec<u8>) -> Self {
        assert_eq!(data.len(), width as usize * height as usize * 3, "{width}x{height} RGB");
        Self { width, height, data }
    }

    /// The size as (width, height).
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }
}

/// How a stored picture must be turned to stand upright: EXIF tag 0x0112, values 1 to 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Orientation {
    /// 1: as stored.
    #[default]
    Upright = 1,
    /// 2: mirrored left to right.
    FlipH = 2,
    /// 3: turned by 180 degrees.
    Rotate180 = 3,
    /// 4: mirrored top to bottom.
    FlipV = 4,
    /// 5: mirrored along the main diagonal.
    Transpose = 5,
    /// 6: needs a clockwise turn by 90 degrees.
    Rotate90 = 6,
    /// 7: mirrored along the other diagonal.
    Transverse = 7,
    /// 8: needs a clockwise turn by 270 degrees.
    Rotate270 = 8,
}

impl Orientation {
    /// The orientation of EXIF value `tag`, where it is 1 to 8.
    pub fn from_tag(tag: u32) -> Option<Self> {
        use Orientation::*;
        [Upright, FlipH, Rotate180, FlipV, Transpose, Rotate90, Transverse, Rotate270]
            .into_iter()
            .find(|o| *o as u32 == tag)
    }

    /// Do width and height change places?
    pub fn swaps(self) -> bool {
        self as u8 >= 5
    }

    /// The upright size of a picture that is stored as `(width, height)`.
    pub fn upright(self, (width, height): (u32, u32)) -> (u32, u32) {
        if self.swaps() { (height, width) } else { (width, height) }
    }
}

/// The scale of a reduced decode: `S/8` of the stored size, rounded up to whole pixels. Only JPEG decodes reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scale(u8);

impl Scale {
    /// The whole picture.
    pub const FULL: Self = Self(8);

    /// `eighths` from 1 to 8.
    pub fn eighths(eighths: u8) -> Self {
        Self(eighths.clamp(1, 8))
    }

    /// The S of S/8.
    pub fn numerator(self) -> u32 {
        u32::from(self.0)
    }

    /// The pixels of a side of `side` stored pixels at this scale.
    pub fn of(self, side: u32) -> u32 {
        (u64::from(side) * u64::from(self.0)).div_ceil(8) as u32
    }

    /// The smallest of `steps` (eighths, ascending) at which a picture stored as `from` still has `gap` times the
    /// pixels of `to` along both sides; the whole picture where none has. Pillow's `reducing_gap`. Both sizes are in
    /// the stored (not the upright) frame.
    pub fn smallest_for(steps: &[u8], from: (u32, u32), to: (u32, u32), gap: f64) -> Self {
        let enough = |step: &u8| {
            let share = f64::from(*step) / 8.0;
            f64::from(from.0) * share >= f64::from(to.0) * gap
                && f64::from(from.1) * share >= f64::from(to.1) * gap
        };
        steps.iter().copied().find(enough).map_or(Self::FULL, Self::eighths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_leaves_the_filter_twice_the_target() {
        let steps = [1, 2, 3, 4];
        assert_eq!(Scale::smallest_for(&steps, (4000, 3000), (683, 512), 2.0), Scale::eighths(3));
        assert_eq!(Scale::smallest_for(&[1, 2, 4], (4000, 3000), (683, 512), 2.0), Scale::eighths(4));
        assert_eq!(Scale::smallest_for(&steps, (4096, 4096), (512, 512), 2.0), Scale::eighths(2));
        assert_eq!(Scale::smallest_for(&steps, (500, 375), (341, 256), 2.0), Scale::FULL);
        assert_eq!(Scale::eighths(3).of(4001), 1501);
    }
}

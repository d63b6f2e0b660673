//! What the network will see: a picture after the resize and the centre crop of an evaluation pipeline.

use crate::pixels::Rgb8;
use crate::resize::{Filter, Resizer, Window};

/// `Resize(short)` and `CenterCrop(crop)` with torchvision's arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// The shorter side after the resize; smaller pictures are enlarged, as torchvision does.
    pub short: u32,
    /// Side of the square that is cut from the middle, at most `short`; `None` keeps all.
    pub crop: Option<u32>,
    /// Resampling filter, with antialiasing.
    pub filter: Filter,
}

impl View {
    /// The size of a picture of `size` after the resize. torchvision cuts the longer side off below the point.
    pub fn resized(&self, size: (u32, u32)) -> (u32, u32) {
        let long = |long: u32, short: u32| {
            ((u64::from(self.short) * u64::from(long)) / u64::from(short.max(1))).clamp(1, 1 << 24) as u32
        };
        let (w, h) = size;
        if w <= h { (self.short, long(h, w)) } else { (long(w, h), self.short) }
    }

    /// The view of an upright picture whose content ends at `true_size` (fractional after a reduced decode), as a size
    /// of `full` pixels would be seen.
    ///
    /// # Errors
    /// A sentence of the resampler: a mistake of the caller.
    pub fn of(
        &self,
        picture: &Rgb8,
        true_size: (f64, f64),
        full: (u32, u32),
        resizer: &mut Resizer,
    ) -> Result<Rgb8, String> {
        let to = self.resized(full);
        let whole = Window { left: 0.0, top: 0.0, width: true_size.0, height: true_size.1 };
        let small = resizer.resize(picture, whole, to, self.filter)?;
        Ok(match self.crop {
            Some(crop) => centre(&small, crop.min(to.0), crop.min(to.1)),
            None => small,
        })
    }
}

/// The middle of a picture; halves are rounded to even as Python's `round` does in torchvision's `center_crop`.
fn centre(picture: &Rgb8, width: u32, height: u32) -> Rgb8 {
    let half = |rest: u32| if rest % 4 == 3 { rest / 2 + 1 } else { rest / 2 };
    let (left, top) = (half(picture.width - width) as usize, half(picture.height - height) as usize);
    let (stride, row) = (picture.width as usize * 3, width as usize * 3);
    let mut data = Vec::with_capacity(row * height as usize);
    for line in picture.data.chunks_exact(stride).skip(top).take(height as usize) {
        data.extend_from_slice(&line[left * 3..left * 3 + row]);
    }
    Rgb8::new(width, height, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_crops_are_torchvisions() {
        let view = View { short: 256, crop: Some(224), filter: Filter::Bilinear };
        assert_eq!(view.resized((4000, 3000)), (341, 256));
        assert_eq!(view.resized((100, 333)), (256, 852));
        let picture = Rgb8::new(7, 4, (0..84).collect());
        assert_eq!(centre(&picture, 4, 4).data[0], 6, "round(1.5) is 2");
        assert_eq!(centre(&picture, 2, 4).data[0], 6, "round(2.5) is 2");
        let small = view.of(&picture, (7.0, 4.0), (7, 4), &mut Resizer::default()).unwrap();
        assert_eq!(small.size(), (224, 224));
    }
}

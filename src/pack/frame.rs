//! What part of a picture becomes a sample, and how large.

use crate::pixels::{Orientation, Rgb8};
use crate::resize::{Filter, Window};

/// How a picture is fitted into a frame of another shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// The middle fills the frame; what does not fit is cut evenly.
    Crop,
    /// The whole picture in the middle of the frame, black around it.
    Pad,
    /// The whole picture, its aspect ratio changed.
    Stretch,
}

impl Fit {
    /// The word on the command line and in the manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Crop => "crop",
            Self::Pad => "pad",
            Self::Stretch => "stretch",
        }
    }
}

/// The size of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Width and height of every sample; `None`: as the pictures are.
    pub size: Option<(u32, u32)>,
    /// How pictures of another shape are fitted in.
    pub fit: Fit,
    /// The shorter side becomes this long first, as `Resize(N)` before `CenterCrop`. Without `size` nothing is enlarged.
    pub short_edge: Option<u32>,
    /// Resampling filter.
    pub filter: Filter,
}

/// What to do with one picture, in its upright frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Geometry {
    /// The part that is taken, in source pixels.
    pub window: Window,
    /// The size that it becomes.
    pub inner: (u32, u32),
    /// The size of the sample; larger than `inner` where it is padded.
    pub size: (u32, u32),
}

impl Frame {
    /// The geometry for a picture of `size` upright pixels, both at least 1.
    pub fn of(&self, size: (u32, u32)) -> Geometry {
        let (w, h) = (f64::from(size.0), f64::from(size.1));
        let whole = Window { left: 0.0, top: 0.0, width: w, height: h };
        let side = |v: f64| (v.round() as u32).max(1);
        let Some(frame) = self.size else {
            let factor = self.short_edge.map_or(1.0, |n| (f64::from(n) / w.min(h)).min(1.0));
            let inner = (side(w * factor), side(h * factor));
            return Geometry { window: whole, inner, size: inner };
        };
        let (fw, fh) = (f64::from(frame.0), f64::from(frame.1));
        match self.fit {
            Fit::Stretch => Geometry { window: whole, inner: frame, size: frame },
            Fit::Pad => {
                let factor = (fw / w).min(fh / h);
                let inner = (side(w * factor).min(frame.0), side(h * factor).min(frame.1));
                Geometry { window: whole, inner, size: frame }
            }
            Fit::Crop => {
                // Source pixels a sample pixel: never more than fill the frame.
                let cover = (w / fw).min(h / fh);
                let ratio = self.short_edge.map_or(cover, |n| cover.min(w.min(h) / f64::from(n)));
                let (part_w, part_h) = (fw * ratio, fh * ratio);
                let window = Window {
                    left: (w - part_w) / 2.0,
                    top: (h - part_h) / 2.0,
                    width: part_w,
                    height: part_h,
                };
                Geometry { window, inner: frame, size: frame }
            }
        }
    }
}

impl Geometry {
    /// Window and inner size in the frame in which the picture is stored. Windows are centred, so only the sides
    /// change places.
    pub fn stored(&self, orientation: Orientation) -> (Window, (u32, u32)) {
        if !orientation.swaps() {
            return (self.window, self.inner);
        }
        let Window { left, top, width, height } = self.window;
        (Window { left: top, top: left, width: height, height: width }, (self.inner.1, self.inner.0))
    }

    /// Is the whole picture, of `size`, taken as it is?
    pub fn is_identity(&self, size: (u32, u32)) -> bool {
        let whole = self.window.width == f64::from(size.0) && self.window.height == f64::from(size.1);
        self.inner == size && self.size == size && whole
    }

    /// Is there something around the picture?
    pub fn is_padded(&self) -> bool {
        self.inner != self.size
    }

    /// The picture, of the inner size, in the middle of its black frame.
    pub fn pad(&self, picture: Rgb8) -> Rgb8 {
        if !self.is_padded() {
            return picture;
        }
        let (w, h) = (self.size.0 as usize, self.size.1 as usize);
        let (iw, ih) = (picture.width as usize, picture.height as usize);
        let (left, top) = ((w - iw) / 2, (h - ih) / 2);
        let mut data = vec![0; w * h * 3];
        for (y, row) in picture.data.chunks_exact(iw * 3).enumerate() {
            let at = ((top + y) * w + left) * 3;
            data[at..at + iw * 3].copy_from_slice(row);
        }
        Rgb8::new(self.size.0, self.size.1, data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(size: Option<(u32, u32)>, fit: Fit, short_edge: Option<u32>) -> Frame {
        Frame { size, fit, short_edge, filter: Filter::Lanczos }
    }

    #[test]
    fn pictures_are_fitted_as_the_word_says() {
        let crop = frame(Some((224, 224)), Fit::Crop, None).of((400, 300));
        assert_eq!(crop.window, Window { left: 50.0, top: 0.0, width: 300.0, height: 300.0 });
        assert_eq!((crop.inner, crop.size), ((224, 224), (224, 224)));
        // Resize(256), CenterCrop(224): 7/8 of the short side.
        let eighth = frame(Some((224, 224)), Fit::Crop, Some(256)).of((512, 256));
        assert_eq!(eighth.window, Window { left: 144.0, top: 16.0, width: 224.0, height: 224.0 });
        let pad = frame(Some((100, 100)), Fit::Pad, None).of((400, 200));
        assert_eq!((pad.inner, pad.size), ((100, 50), (100, 100)));
        let padded = pad.pad(Rgb8::new(100, 50, vec![9; 100 * 50 * 3]));
        assert_eq!(padded.data.iter().filter(|v| **v == 9).count(), 100 * 50 * 3);
        assert_eq!((padded.data[25 * 300 - 1], padded.data[25 * 300]), (0, 9));
        let stretch = frame(Some((100, 100)), Fit::Stretch, None).of((400, 200));
        assert_eq!((stretch.window.width, stretch.inner), (400.0, (100, 100)));
        assert_eq!(frame(None, Fit::Crop, Some(100)).of((400, 200)).size, (200, 100));
        assert_eq!(frame(None, Fit::Crop, Some(100)).of((40, 20)).size, (40, 20));
        assert!(frame(None, Fit::Crop, None).of((40, 20)).is_identity((40, 20)));
    }
}

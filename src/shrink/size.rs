//! Sizes: what part of a picture is taken and how large it becomes.

use crate::pixels::Orientation;
use crate::resize::Window;

/// The rule for the size of the copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// The shorter side becomes this long, the aspect ratio stays.
    ShortEdge(u32),
    /// The longer side becomes this long, the aspect ratio stays.
    LongEdge(u32),
    /// The largest centred part with the box's aspect ratio, at the box's size.
    Cover(u32, u32),
    /// As large as it is.
    Keep,
}

impl std::fmt::Display for Fit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ShortEdge(n) => write!(f, "short-edge {n}"),
            Self::LongEdge(n) => write!(f, "long-edge {n}"),
            Self::Cover(w, h) => write!(f, "cover {w}x{h}"),
            Self::Keep => f.write_str("no-resize"),
        }
    }
}

/// What to do with one picture, in its upright frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Geometry {
    /// The part that is taken, in source pixels.
    pub window: Window,
    /// The size that it becomes.
    pub size: (u32, u32),
}

impl Fit {
    /// The geometry for a picture of `size` upright pixels (both at least 1). Never enlarges unless `upscale`.
    pub fn of(self, size: (u32, u32), upscale: bool) -> Geometry {
        let (w, h) = (f64::from(size.0), f64::from(size.1));
        let whole = Window { left: 0.0, top: 0.0, width: w, height: h };
        let scaled = |factor: f64| {
            let factor = if upscale { factor } else { factor.min(1.0) };
            let side = |v: f64| ((v * factor).round() as u32).max(1);
            Geometry { window: whole, size: (side(w), side(h)) }
        };
        match self {
            Self::Keep => Geometry { window: whole, size },
            Self::ShortEdge(n) => scaled(f64::from(n) / w.min(h)),
            Self::LongEdge(n) => scaled(f64::from(n) / w.max(h)),
            Self::Cover(box_w, box_h) => {
                let (box_w, box_h) = (f64::from(box_w), f64::from(box_h));
                // Source pixels an output pixel: below 1 the picture would be enlarged.
                let ratio = (w / box_w).min(h / box_h);
                let (part_w, part_h) = (box_w * ratio, box_h * ratio);
                let window = Window {
                    left: (w - part_w) / 2.0,
                    top: (h - part_h) / 2.0,
                    width: part_w,
                    height: part_h,
                };
                let shrink = if upscale { 1.0 } else { ratio.min(1.0) };
                let side = |v: f64| ((v * shrink).round() as u32).max(1);
                Geometry { window, size: (side(box_w), side(box_h)) }
            }
        }
    }
}

impl Geometry {
    /// The same in the frame in which the picture is stored. Windows are centred, so only the sides change places.
    pub fn stored(self, orientation: Orientation) -> Self {
        if !orientation.swaps() {
            return self;
        }
        let Window { left, top, width, height } = self.window;
        Self {
            window: Window { left: top, top: left, width: height, height: width },
            size: (self.size.1, self.size.0),
        }
    }

    /// Is the whole picture taken at its own size?
    pub fn is_identity(&self, size: (u32, u32)) -> bool {
        self.size == size && self.window.width == f64::from(size.0) && self.window.height == f64::from(size.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_edge_keeps_the_aspect_ratio_and_never_enlarges() {
        let fit = Fit::ShortEdge(512);
        assert_eq!(fit.of((4000, 3000), false).size, (683, 512));
        assert_eq!(fit.of((3000, 4000), false).size, (512, 683));
        assert_eq!(fit.of((300, 200), false).size, (300, 200));
        assert!(fit.of((300, 200), false).is_identity((300, 200)));
        assert_eq!(fit.of((300, 200), true).size, (768, 512));
        assert_eq!(fit.of((10000, 1), false).size, (10000, 1));
        assert_eq!(Fit::LongEdge(512).of((65500, 1), false).size, (512, 1));
    }

    #[test]
    fn cover_fills_the_box_from_the_middle() {
        let geometry = Fit::Cover(224, 224).of((400, 300), false);
        assert_eq!(geometry.size, (224, 224));
        assert_eq!(geometry.window, Window { left: 50.0, top: 0.0, width: 300.0, height: 300.0 });
        let small = Fit::Cover(224, 112).of((100, 100), false);
        assert_eq!(small.size, (100, 50));
        assert_eq!(Fit::Cover(224, 112).of((100, 100), true).size, (224, 112));
        let turned = geometry.stored(Orientation::Rotate90);
        assert_eq!((turned.window.left, turned.window.top), (0.0, 50.0));
    }
}

//! Resampling with antialiasing: each output pixel weighs all input pixels below the filter, as Pillow and libvips do
//! and as `torch.nn.functional.interpolate` does only when asked.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions};

use crate::pixels::Rgb8;

/// How neighbouring pixels are weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filter {
    /// Windowed sinc over 3 lobes: sharpest. Pillow's LANCZOS.
    #[default]
    Lanczos,
    /// Cubic convolution with a = -0.5. Pillow's BICUBIC.
    Bicubic,
    /// Triangle. Pillow's BILINEAR, torchvision's default with antialias.
    Bilinear,
    /// Mean of the covered pixels. Pillow's BOX, OpenCV's INTER_AREA.
    Area,
}

impl Filter {
    /// The word on the command line and in the sidecar.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lanczos => "lanczos",
            Self::Bicubic => "bicubic",
            Self::Bilinear => "bilinear",
            Self::Area => "area",
        }
    }

    fn kernel(self) -> FilterType {
        match self {
            Self::Lanczos => FilterType::Lanczos3,
            Self::Bicubic => FilterType::CatmullRom,
            Self::Bilinear => FilterType::Bilinear,
            Self::Area => FilterType::Box,
        }
    }
}

/// The part of a picture to be resampled, in pixels, fractions allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Left edge.
    pub left: f64,
    /// Top edge.
    pub top: f64,
    /// Width, above 0.
    pub width: f64,
    /// Height, above 0.
    pub height: f64,
}

/// Resamples pictures; keeps its buffers from one to the next.
#[derive(Default)]
pub struct Resizer {
    inner: fast_image_resize::Resizer,
}

impl Resizer {
    /// The part `window` of `picture` at size `to`, both sides at least 1.
    ///
    /// # Errors
    /// A sentence, when the window does not lie in the picture: a mistake of the caller.
    pub fn resize(
        &mut self,
        picture: &Rgb8,
        window: Window,
        to: (u32, u32),
        filter: Filter,
    ) -> Result<Rgb8, String> {
        let source = ImageRef::new(picture.width, picture.height, &picture.data, PixelType::U8x3)
            .map_err(|e| e.to_string())?;
        let mut out = Image::new(to.0, to.1, PixelType::U8x3);
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter.kernel())).crop(
            window.left,
            window.top,
            window.width,
            window.height,
        );
        self.inner.resize(&source, &mut out, &options).map_err(|e| e.to_string())?;
        Ok(Rgb8::new(to.0, to.1, out.into_vec()))
    }

    /// Bytes that resampling to `to` holds beside the source: the intermediate rows and the result.
    pub fn need_bytes(from_height: u32, to: (u32, u32)) -> u64 {
        3 * u64::from(to.0) * (u64::from(from_height) + u64::from(to.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_picture_stays_flat_and_a_ramp_keeps_its_mean() {
        let mut resizer = Resizer::default();
        for filter in [Filter::Lanczos, Filter::Bicubic, Filter::Bilinear, Filter::Area] {
            let flat = Rgb8::new(101, 67, vec![77; 101 * 67 * 3]);
            let whole = Window { left: 0.0, top: 0.0, width: 101.0, height: 67.0 };
            let small = resizer.resize(&flat, whole, (13, 9), filter).unwrap();
            assert!(small.data.iter().all(|v| *v == 77), "{filter:?}");

            let ramp = Rgb8::new(256, 1, (0..=255).flat_map(|v| [v; 3]).collect());
            let whole = Window { left: 0.0, top: 0.0, width: 256.0, height: 1.0 };
            let small = resizer.resize(&ramp, whole, (16, 1), filter).unwrap();
            let mean = small.data.iter().map(|v| f64::from(*v)).sum::<f64>() / 48.0;
            assert!((mean - 127.5).abs() < 1.0, "{filter:?} {mean}");
        }
    }

    #[test]
    fn a_window_outside_the_picture_is_an_error_not_a_panic() {
        let picture = Rgb8::new(4, 4, vec![0; 48]);
        let outside = Window { left: 2.0, top: 0.0, width: 4.0, height: 4.0 };
        assert!(Resizer::default().resize(&picture, outside, (2, 2), Filter::Area).is_err());
    }
}

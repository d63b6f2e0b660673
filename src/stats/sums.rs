//! Exact sums of pixel values. Integers only, so that partial results merge to the same bytes in any order and
//! partition; floating point begins when a result is read off.
//!
//! Three definitions are in use, and they differ by 15 to 30 %; each result names its own:
//!
//! * `pixel`: all pixels of all images in one pool.
//! * `image`: every image weighs the same: the mean of the images' means, and the total variance, that is, the mean of
//!   the images' mean squares less the square of that mean.
//! * `imagenet`: the mean of the images' own standard deviations. This is what 0.229 0.224 0.225 is; it leaves out how
//!   images differ from each other, so it is below the other two.

use crate::measure::ImageSums;

/// Bits behind the point of a per-image mean (0-255), mean square or standard deviation. An image contributes at most
/// half of 2^-64 of rounding error, and 2^47 images fit.
const POINT: u32 = 64;

/// Sums over many images, for all three definitions at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Images.
    pub images: u64,
    /// Images whose channels are all the same.
    pub gray: u64,
    /// Pixels of all images.
    pub pixels: u128,
    sum: [u128; 3],
    squares: [u128; 3],
    /// Fixed point: the images' means, mean squares and standard deviations.
    means: [u128; 3],
    mean_squares: [u128; 3],
    deviations: [u128; 3],
}

/// Which images or pixels weigh how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// All pixels in one pool.
    Pixel,
    /// Every image the same.
    Image,
    /// The mean of the images' own standard deviations.
    ImageNet,
}

impl Weight {
    /// The definition's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pixel => "pixel",
            Self::Image => "image",
            Self::ImageNet => "imagenet",
        }
    }

    /// The definition in words.
    pub fn definition(self) -> &'static str {
        match self {
            Self::Pixel => "all pixels of all images in one pool",
            Self::Image => "every image weighs the same; total variance",
            Self::ImageNet => "mean of the images' own standard deviations",
        }
    }
}

/// Mean and standard deviation per channel, of values from 0 to 1. The deviation is that of the whole population (no
/// n - 1), as in `numpy.std` and in the constants of ImageNet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// R, G, B.
    pub mean: [f64; 3],
    /// R, G, B.
    pub std: [f64; 3],
}

impl Sums {
    /// Adds an image; one without pixels adds nothing.
    pub fn add(&mut self, image: &ImageSums) {
        if image.pixels == 0 {
            return;
        }
        self.images += 1;
        self.gray += u64::from(image.is_gray());
        self.pixels += u128::from(image.pixels);
        for c in 0..3 {
            let (n, sum, squares) =
                (u128::from(image.pixels), u128::from(image.sum[c]), u128::from(image.squares[c]));
            self.sum[c] += sum;
            self.squares[c] += squares;
            self.means[c] += fixed_ratio(sum, n);
            self.mean_squares[c] += fixed_ratio(squares, n);
            self.deviations[c] += fixed(deviation(n, sum, squares));
        }
    }

    /// Adds the sums of other images.
    pub fn merge(&mut self, other: &Self) {
        self.images += other.images;
        self.gray += other.gray;
        self.pixels += other.pixels;
        for c in 0..3 {
            self.sum[c] += other.sum[c];
            self.squares[c] += other.squares[c];
            self.means[c] += other.means[c];
            self.mean_squares[c] += other.mean_squares[c];
            self.deviations[c] += other.deviations[c];
        }
    }

    /// Mean and deviation by a definition; `None` where there is no image.
    pub fn moments(&self, weight: Weight) -> Option<Moments> {
        if self.images == 0 {
            return None;
        }
        let images = self.images as f64;
        let mut moments = Moments { mean: [0.0; 3], std: [0.0; 3] };
        for c in 0..3 {
            let image_mean = float(self.means[c]) / images;
            let (mean, std) = match weight {
                Weight::Pixel => (
                    self.sum[c] as f64 / self.pixels as f64,
                    deviation(self.pixels, self.sum[c], self.squares[c]),
                ),
                Weight::Image => (image_mean, self.total_deviation(c)),
                Weight::ImageNet => (image_mean, float(self.deviations[c]) / images),
            };
            moments.mean[c] = mean / 255.0;
            moments.std[c] = std / 255.0;
        }
        Some(moments)
    }

    /// Square root of (mean of mean squares - square of the mean of means), with the difference taken before rounding.
    fn total_deviation(&self, c: usize) -> f64 {
        let n = u128::from(self.images);
        let mean = self.means[c] / n;
        let mean_square = self.mean_squares[c] / n;
        // mean has 8 + 64 bits: its square is taken in two halves, 2^-64 exact.
        let (high, low) = (mean >> 32, mean & 0xffff_ffff);
        let square = high * high + ((high * low) >> 31) + ((low * low) >> POINT);
        float(mean_square.saturating_sub(square)).sqrt()
    }
}

/// `sqrt(squares / n - (sum / n)^2)`, with the difference taken in integers: there is no cancellation.
fn deviation(n: u128, sum: u128, squares: u128) -> f64 {
    // n * squares and sum * sum fit 128 bits up to 2^55 pixels.
    match (n.checked_mul(squares), sum.checked_mul(sum)) {
        (Some(a), Some(b)) => ((a.saturating_sub(b)) as f64).sqrt() / n as f64,
        _ => {
            let mean = sum as f64 / n as f64;
            (squares as f64 / n as f64 - mean * mean).max(0.0).sqrt()
        }
    }
}

/// `a / b` in fixed point, rounded to the nearest. `a / b` is at most 255².
fn fixed_ratio(a: u128, b: u128) -> u128 {
    let (whole, rest) = (a / b, a % b);
    // The rest is below 2^48, so that shifting it in two steps stays within 128 bits.
    (whole << POINT) + ((rest << POINT) + b / 2) / b
}

fn fixed(value: f64) -> u128 {
    (value * 2_f64.powi(POINT as i32)).round() as u128
}

fn float(fixed: u128) -> f64 {
    fixed as f64 / 2_f64.powi(POINT as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pixels::Rgb8;

    fn flat(width: u32, height: u32, value: u8) -> Rgb8 {
        Rgb8::new(width, height, vec![value; (width * height * 3) as usize])
    }

    fn noisy(width: u32, height: u32, seed: u32) -> Rgb8 {
        let data =
            (0..width * height * 3).map(|i| ((i ^ seed).wrapping_mul(2_654_435_761) >> 21) as u8).collect();
        Rgb8::new(width, height, data)
    }

    #[test]
    fn black_and_white_have_mean_and_deviation_of_a_half() {
        let mut sums = Sums::default();
        sums.add(&ImageSums::of(&flat(10, 10, 0)));
        sums.add(&ImageSums::of(&flat(10, 10, 255)));
        for weight in [Weight::Pixel, Weight::Image] {
            let moments = sums.moments(weight).unwrap();
            assert_eq!((moments.mean, moments.std), ([0.5; 3], [0.5; 3]), "{weight:?}");
        }
        assert_eq!(sums.moments(Weight::ImageNet).unwrap().std, [0.0; 3]);
        assert_eq!(sums.gray, 2);
    }

    #[test]
    fn images_of_unequal_size_weigh_as_the_definition_says() {
        let mut sums = Sums::default();
        sums.add(&ImageSums::of(&flat(30, 10, 255)));
        sums.add(&ImageSums::of(&flat(10, 10, 0)));
        assert_eq!(sums.moments(Weight::Pixel).unwrap().mean, [0.75; 3]);
        assert_eq!(sums.moments(Weight::Image).unwrap().mean, [0.5; 3]);
        assert_eq!(sums.moments(Weight::Image).unwrap().std, [0.5; 3]);
        assert!((sums.moments(Weight::Pixel).unwrap().std[0] - 0.1875_f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn any_partition_merges_to_the_same_sums() {
        let images: Vec<ImageSums> = (0..40).map(|i| ImageSums::of(&noisy(7 + i, 5 + i * 3, i))).collect();
        let all = |images: &[ImageSums]| {
            let mut sums = Sums::default();
            images.iter().for_each(|image| sums.add(image));
            sums
        };
        let want = all(&images);
        for cut in [1, 7, 20, 39] {
            let (a, b) = images.split_at(cut);
            let mut merged = all(b);
            merged.merge(&all(a));
            assert_eq!(merged, want);
        }
    }

    #[test]
    fn results_agree_with_plain_floating_point() {
        let pictures: Vec<Rgb8> = (0..5).map(|i| noisy(50 + i * 11, 40, i)).collect();
        let mut sums = Sums::default();
        pictures.iter().for_each(|p| sums.add(&ImageSums::of(p)));
        for c in 0..3 {
            let values = |p: &Rgb8| {
                p.data.iter().skip(c).step_by(3).map(|v| f64::from(*v) / 255.0).collect::<Vec<_>>()
            };
            let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
            let square = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>() / v.len() as f64;
            let per: Vec<Vec<f64>> = pictures.iter().map(values).collect();
            let pool: Vec<f64> = per.concat();
            let n = per.len() as f64;
            let image_mean = per.iter().map(|v| mean(v)).sum::<f64>() / n;
            let image_square = per.iter().map(|v| square(v)).sum::<f64>() / n;
            let own = per.iter().map(|v| (square(v) - mean(v).powi(2)).sqrt()).sum::<f64>() / n;
            let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
            close(sums.moments(Weight::Pixel).unwrap().mean[c], mean(&pool));
            close(sums.moments(Weight::Pixel).unwrap().std[c], (square(&pool) - mean(&pool).powi(2)).sqrt());
            close(sums.moments(Weight::Image).unwrap().mean[c], image_mean);
            close(sums.moments(Weight::Image).unwrap().std[c], (image_square - image_mean.powi(2)).sqrt());
            close(sums.moments(Weight::ImageNet).unwrap().std[c], own);
        }
    }
}

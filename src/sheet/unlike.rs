//! The order of the worst: by a measure, or by being unlike the class.
//!
//! How unlike an image is: the distance to the medoid of its class, which is the image whose distances to all others
//! have the smallest sum (of at most [`SAMPLE`] images, taken by their keys). The distance of two images is the root of
//! the mean square difference of their 4x4 grids of mean colour, over 255, plus that of their 32x32 thumbnails of
//! stretched luma averaged to 8x8, over 255. So both a wrong colour and a wrong composition count; near 0 is alike.

use super::pick::Known;
use crate::measure::Print;

/// Images among which the medoid is looked for, and to which distances are taken.
const SAMPLE: usize = 1024;
/// Cells of the colour grid and the thumbnail together.
const LENGTH: usize = 48 + 64;

/// What is worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worst {
    /// Least like its class.
    Unlike,
    /// Least sharp.
    Blurred,
    /// Darkest.
    Dark,
    /// Brightest.
    Bright,
    /// Fewest tones.
    Flat,
}

/// `rows` from the worst to the best; those whose pixels nobody saw come last. Equals go by their keys.
pub fn ranked(worst: Worst, rows: &[usize], known: &Known<'_>, key: &dyn Fn(usize) -> u64) -> Vec<usize> {
    let scores = match worst {
        Worst::Unlike => unlike(rows, known, key),
        measure => rows.iter().map(|row| score(measure, known, *row)).collect(),
    };
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let badness = |at: usize| scores[at].unwrap_or(f64::NEG_INFINITY);
    order.sort_by(|a, b| {
        badness(*b).total_cmp(&badness(*a)).then_with(|| key(rows[*a]).cmp(&key(rows[*b])))
    });
    order.into_iter().map(|at| rows[at]).collect()
}

/// How bad an image is by a measure; higher is worse.
fn score(measure: Worst, known: &Known<'_>, row: usize) -> Option<f64> {
    let quality = &known.facts[row].seen.as_ref()?.quality;
    Some(f64::from(match measure {
        Worst::Blurred => -quality.sharpness,
        Worst::Dark => -quality.brightness,
        Worst::Bright => quality.brightness,
        Worst::Flat | Worst::Unlike => -quality.entropy,
    }))
}

/// How far each image is from the medoid.
fn unlike(rows: &[usize], known: &Known<'_>, key: &dyn Fn(usize) -> u64) -> Vec<Option<f64>> {
    let views: Vec<Option<View>> = rows.iter().map(|row| View::of(known, *row)).collect();
    let mut sample: Vec<(u64, usize)> =
        (0..rows.len()).filter(|at| views[*at].is_some()).map(|at| (key(rows[at]), at)).collect();
    sample.sort_unstable();
    sample.truncate(SAMPLE);
    let seen: Vec<&View> = sample.iter().filter_map(|(_, at)| views[*at].as_ref()).collect();
    let sum = |view: &View| -> f64 { seen.iter().map(|other| view.distance(other)).sum() };
    let sums: Vec<f64> = seen.iter().map(|view| sum(view)).collect();
    let medoid = (0..seen.len()).min_by(|a, b| sums[*a].total_cmp(&sums[*b])).map(|at| seen[at]);
    views.iter().map(|view| Some(view.as_ref()?.distance(medoid?))).collect()
}

/// What is compared of an image: 48 values of colour, 64 of luma.
struct View {
    values: [f32; LENGTH],
}

impl View {
    fn of(known: &Known<'_>, row: usize) -> Option<Self> {
        let seen = known.facts[row].seen.as_ref()?;
        let mut values = [0.0; LENGTH];
        for (value, colour) in values.iter_mut().zip(seen.quality.grid) {
            *value = f32::from(colour);
        }
        match known.prints.print(row) {
            Some(print) => eighths(&print, &mut values[48..]),
            // A flat picture has no print: all of its thumbnail is the mean.
            None => values[48..].fill(128.0),
        }
        Some(Self { values })
    }

    fn distance(&self, other: &Self) -> f64 {
        let root = |from: usize, to: usize| {
            let both = self.values[from..to].iter().zip(&other.values[from..to]);
            let squares: f64 = both.map(|(a, b)| f64::from(a - b) * f64::from(a - b)).sum();
            (squares / (to - from) as f64).sqrt() / 255.0
        };
        root(0, 48) + root(48, LENGTH)
    }
}

/// The means of 4x4 cells of the thumbnail.
fn eighths(print: &Print, out: &mut [f32]) {
    let side = print.thumb.len().isqrt();
    let step = side / 8;
    for (at, value) in out.iter_mut().enumerate() {
        let (x, y) = (at % 8 * step, at / 8 * step);
        let rows = (y..y + step).flat_map(|y| &print.thumb[y * side + x..y * side + x + step]);
        *value = rows.map(|v| u32::from(*v)).sum::<u32>() as f32 / (step * step) as f32;
    }
}

//! Checks a suspicion: two thumbnails laid over each other, the fit improved by small steps, and their correlation.

use super::Guess;
use crate::measure::{Print, THUMB, View};
use crate::pixels::Orientation;

/// Points a side at which the thumbnails are compared.
const POINTS: usize = 24;
/// Where the first fit correlates less, small steps will not save it.
const HOPELESS: f32 = 0.3;

/// The correlation, -1 to 1, of `copy` with what `guess` says it shows of `original`, at the best fit near by.
pub fn agreement(original: &Print, guess: Guess, copy: &Print) -> f32 {
    let copy = seen(&copy.thumb, guess.turn());
    let start = guess.window().map_or(View::WHOLE, |window| window.view(original.aspect()));
    let mut edges = [0.0; 4];
    let mut best = correlation(&original.thumb, &copy, &start);
    if best < HOPELESS {
        return best;
    }
    for step in [0.03, 0.015, 0.0075] {
        for _ in 0..3 {
            let before = best;
            for edge in 0..4 {
                for sign in [step, -step] {
                    let mut tried = edges;
                    tried[edge] += sign;
                    let found = correlation(&original.thumb, &copy, &start.moved(tried));
                    if found > best {
                        (best, edges) = (found, tried);
                    }
                }
            }
            if best == before {
                break;
            }
        }
    }
    best
}

/// The middle of point `at` of `POINTS` along a side.
fn middle(at: usize) -> f64 {
    (at as f64 + 0.5) / POINTS as f64
}

/// The copy at its points, as it was before `turn`.
fn seen(thumb: &[u8; THUMB * THUMB], turn: Orientation) -> Vec<f64> {
    use Orientation as O;
    let point = |at: usize| {
        let (x, y) = (middle(at % POINTS), middle(at / POINTS));
        // Where point (x, y) of the unturned picture lies after the turn.
        let (x, y) = match turn {
            O::Upright => (x, y),
            O::FlipH => (1.0 - x, y),
            O::Rotate180 => (1.0 - x, 1.0 - y),
            O::FlipV => (x, 1.0 - y),
            O::Transpose => (y, x),
            O::Rotate90 => (1.0 - y, x),
            O::Transverse => (1.0 - y, 1.0 - x),
            O::Rotate270 => (y, 1.0 - x),
        };
        sampled(thumb, x, y)
    };
    (0..POINTS * POINTS).map(point).collect()
}

/// The correlation of the copy with the original below it. Points outside the original are left out.
fn correlation(original: &[u8; THUMB * THUMB], copy: &[f64], view: &View) -> f32 {
    let (mut n, mut a, mut b, mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for (at, copied) in copy.iter().enumerate() {
        let (u, v) = view.point((middle(at % POINTS), middle(at / POINTS)));
        if (0.0..=1.0).contains(&u) && (0.0..=1.0).contains(&v) {
            let value = sampled(original, u, v);
            n += 1.0;
            a += value;
            b += copied;
            aa += value * value;
            bb += copied * copied;
            ab += value * copied;
        }
    }
    let spread: f64 = (n * aa - a * a) * (n * bb - b * b);
    if spread > 0.0 { ((n * ab - a * b) / spread.sqrt()) as f32 } else { 0.0 }
}

/// The value at (x, y), 0 to 1, between cells linearly.
fn sampled(thumb: &[u8; THUMB * THUMB], x: f64, y: f64) -> f64 {
    let along = |t: f64| (t * THUMB as f64 - 0.5).clamp(0.0, THUMB as f64 - 1.001);
    let (x, y) = (along(x), along(y));
    let (left, top) = (x as usize, y as usize);
    let (fx, fy) = (x - left as f64, y - top as f64);
    let row = |y: usize| {
        let pair = &thumb[y * THUMB + left..];
        let (a, b) = (f64::from(pair[0]), f64::from(pair[1]));
        a + (b - a) * fx
    };
    let (above, below) = (row(top), row(top + 1));
    above + (below - above) * fy
}

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
        match (Between::of(x), Between::of(y)) {
            (Some(column), Some(row)) => between(thumb, column, row),
            _ => 0.0,
        }
    };
    (0..POINTS * POINTS).map(point).collect()
}

/// The correlation of the copy with the original below it. Points outside the original are left out.
fn correlation(original: &[u8; THUMB * THUMB], copy: &[f64], view: &View) -> f32 {
    let mut sums = Sums::default();
    if view.x[2] == 0.0 && view.y[1] == 0.0 {
        // Upright: where the points of a column and of a row lie is computed once for all of them.
        let columns: [Option<Between>; POINTS] =
            std::array::from_fn(|at| Between::of(view.point((middle(at), 0.0)).0));
        for (at, copied) in copy.chunks_exact(POINTS).enumerate() {
            let Some(row) = Between::of(view.point((0.0, middle(at))).1) else { continue };
            for (column, copied) in columns.iter().zip(copied) {
                if let Some(column) = column {
                    sums.add(between(original, *column, row), *copied);
                }
            }
        }
    } else {
        for (at, copied) in copy.iter().enumerate() {
            let (x, y) = view.point((middle(at % POINTS), middle(at / POINTS)));
            if let (Some(column), Some(row)) = (Between::of(x), Between::of(y)) {
                sums.add(between(original, column, row), *copied);
            }
        }
    }
    sums.correlation()
}

/// Sums over pairs of values.
#[derive(Default)]
struct Sums {
    n: f64,
    a: f64,
    b: f64,
    aa: f64,
    bb: f64,
    ab: f64,
}

impl Sums {
    #[inline]
    fn add(&mut self, a: f64, b: f64) {
        self.n += 1.0;
        self.a += a;
        self.b += b;
        self.aa += a * a;
        self.bb += b * b;
        self.ab += a * b;
    }

    /// Pearson's; 0 where one of the two does not vary.
    fn correlation(&self) -> f32 {
        let Self { n, a, b, aa, bb, ab } = self;
        let spread: f64 = (n * aa - a * a) * (n * bb - b * b);
        if spread > 0.0 { ((n * ab - a * b) / spread.sqrt()) as f32 } else { 0.0 }
    }
}

/// A place between two cells of a thumbnail, along one side: the first of them, and the share of the other.
#[derive(Clone, Copy)]
struct Between {
    first: usize,
    share: f64,
}

impl Between {
    /// The place at `t`, 0 to 1 from one side of the thumbnail to the other; none outside.
    #[inline]
    fn of(t: f64) -> Option<Self> {
        if !(0.0..=1.0).contains(&t) {
            return None;
        }
        let place = (t * THUMB as f64 - 0.5).clamp(0.0, THUMB as f64 - 1.001);
        let first = place as usize;
        Some(Self { first, share: place - first as f64 })
    }
}

/// The value at a point, between cells linearly.
#[inline]
fn between(thumb: &[u8; THUMB * THUMB], column: Between, row: Between) -> f64 {
    let along = |y: usize| {
        let pair = &thumb[y * THUMB + column.first..];
        let (a, b) = (f64::from(pair[0]), f64::from(pair[1]));
        a + (b - a) * column.share
    };
    let (above, below) = (along(row.first), along(row.first + 1));
    above + (below - above) * row.share
}

//! The print of a picture: what a search for near-duplicates compares. Signs of low frequencies of the luma, of the
//! whole picture and of windows of it, and a thumbnail to check a suspicion with.
//!
//! A sign changes with nothing that leaves the picture the same (size, compression, brightness, contrast), and the
//! codes of the eight turned and mirrored pictures follow from one code by swapping and flipping bits. The windows
//! find crops and small rotations: the window of the original looks like the whole of the copy.

use std::sync::LazyLock;

use super::luma::Luma;
use crate::pixels::Orientation;
use crate::simd::{Loops, widest};

/// Side of the plane that prints are made of.
pub const PLANE: usize = 128;
/// Frequencies along a side of a code: 0 (the mean) to 15 half waves.
const WAVES: usize = 16;
/// Rows, or frequencies down a column, that are summed side by side: one sum after the other would leave the processor
/// waiting. As many rows of a code as a word has.
const STEP: usize = 4;
/// Side of the plane that is transformed.
const SIDE: usize = 64;
/// Side of the thumbnail.
pub const THUMB: usize = 32;
/// A picture whose luma varies less (standard deviation of 32x32 cells, of 255) has no print: signs would be noise.
const FLAT: f32 = 2.5;

/// 256 signs: bit `16 * v + u` is set where the picture has a positive share of `u` half waves from left to right and
/// `v` from top to bottom. Bit 0, the mean, is never set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Code(pub [u64; 4]);

impl Code {
    /// Bits in which two codes differ, 0 to 255. Codes of unrelated pictures differ in about 128.
    pub fn distance(&self, other: &Self) -> u32 {
        self.0.iter().zip(other.0).map(|(a, b)| (a ^ b).count_ones()).sum()
    }

    /// The 8x8 lowest frequencies: what is compared first.
    pub fn low(&self) -> u64 {
        let row = |v: usize| (self.0[v / 4] >> (v % 4 * 16)) & 0xff;
        (0..8).map(|v| row(v) << (v * 8)).sum()
    }

    /// The code of the picture turned as `normal::upright` turns it.
    pub fn turned(&self, turn: Orientation) -> Self {
        use Orientation as O;
        match turn {
            O::Upright => *self,
            O::FlipH => self.mirrored(),
            O::FlipV => self.flipped(),
            O::Rotate180 => self.mirrored().flipped(),
            O::Transpose => self.transposed(),
            O::Rotate90 => self.flipped().transposed(),
            O::Transverse => self.mirrored().flipped().transposed(),
            O::Rotate270 => self.mirrored().transposed(),
        }
    }

    /// Left and right change places: odd waves along a row change their sign.
    fn mirrored(&self) -> Self {
        Self(self.0.map(|rows| rows ^ 0xaaaa_aaaa_aaaa_aaaa))
    }

    /// Top and bottom change places.
    fn flipped(&self) -> Self {
        Self(self.0.map(|rows| rows ^ 0xffff_0000_ffff_0000))
    }

    fn transposed(&self) -> Self {
        let mut out = Self::default();
        for v in 0..WAVES {
            for u in 0..WAVES {
                let bit = (self.0[v / 4] >> (v % 4 * 16 + u)) & 1;
                out.0[u / 4] |= bit << (u % 4 * 16 + v);
            }
        }
        out
    }
}

/// A part of a picture, in 1/128 of its sides, or the whole of it turned a little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// From column `left` to `right` and row `top` to `bottom`, 0 to 128.
    Part {
        /// Left edge.
        left: u8,
        /// Top edge.
        top: u8,
        /// Right edge, above `left`.
        right: u8,
        /// Bottom edge, above `top`.
        bottom: u8,
    },
    /// Turned by so many degrees in its frame.
    Turned(i8),
}

impl Window {
    /// Windows of a print.
    pub const COUNT: usize = PARTS.len() + TURNS.len();

    /// The window whose code is `Print::windows[at]`, `at` below [`Self::COUNT`].
    pub fn at(at: usize) -> Self {
        match PARTS.get(at) {
            Some((h, v)) => {
                let ((left, right), (top, bottom)) = (SPANS[*h], SPANS[*v]);
                Self::Part { left, top, right, bottom }
            }
            None => Self::Turned(TURNS[(at - PARTS.len()) % TURNS.len()]),
        }
    }

    /// The way from points of the window to points of a picture of `width / height` = `aspect`.
    pub fn view(self, aspect: f64) -> View {
        match self {
            Self::Part { left, top, right, bottom } => {
                let share = |at: u8| f64::from(at) / 128.0;
                let (width, height) = (share(right) - share(left), share(bottom) - share(top));
                View { x: [share(left), width, 0.0], y: [share(top), 0.0, height] }
            }
            Self::Turned(degrees) => {
                let angle = f64::from(degrees) / 180.0;
                let (sin, cos) = (sin_pi(angle), sin_pi(0.5 - angle));
                // About the middle, with pixels square.
                let (x, y) = ([0.0, cos, -sin / aspect], [0.0, sin * aspect, cos]);
                let centred = |row: [f64; 3]| [0.5 - (row[1] + row[2]) / 2.0, row[1], row[2]];
                View { x: centred(x), y: centred(y) }
            }
        }
    }
}

/// Where the points of a window lie in the picture; all in shares of the sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// `x` of the picture is `[0] + [1] * x + [2] * y` of the window.
    pub x: [f64; 3],
    /// The same for `y`.
    pub y: [f64; 3],
}

impl View {
    /// The whole picture as it is.
    pub const WHOLE: Self = Self { x: [0.0, 1.0, 0.0], y: [0.0, 0.0, 1.0] };

    /// Where point (x, y) of the window lies.
    pub fn point(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x[0] + self.x[1] * x + self.x[2] * y, self.y[0] + self.y[1] * x + self.y[2] * y)
    }

    /// The view after the window's edges left, top, right and bottom have moved by so many shares.
    pub fn moved(&self, [left, top, right, bottom]: [f64; 4]) -> Self {
        let (x, y) = (self.x, self.y);
        Self { x: [x[0] + left, x[1] + right - left, x[2]], y: [y[0] + top, y[1], y[2] + bottom - top] }
    }
}

/// The sides of parts, in 1/128: whole; four that together lie near every crop of up to 10 % at each end; the middle
/// 72 %; the first and the last 80 %.
const SPANS: [(u8, u8); 8] =
    [(0, 128), (4, 124), (4, 117), (11, 124), (10, 118), (18, 110), (0, 102), (26, 128)];
/// Places in `SPANS` of the horizontal and the vertical side of each part.
const PARTS: [(usize, usize); 21] = [
    (1, 1),
    (1, 2),
    (1, 3),
    (1, 4),
    (2, 1),
    (2, 2),
    (2, 3),
    (2, 4),
    (3, 1),
    (3, 2),
    (3, 3),
    (3, 4),
    (4, 1),
    (4, 2),
    (4, 3),
    (4, 4),
    (5, 5),
    (6, 0),
    (7, 0),
    (0, 6),
    (0, 7),
];
/// Small rotations, in degrees: a window of 4 finds 2 to 6.
const TURNS: [i8; 2] = [4, -4];

static AXES: LazyLock<Vec<Axis>> =
    LazyLock::new(|| SPANS.iter().map(|(from, to)| Axis::new(*from, *to)).collect());

/// What a search for near-duplicates knows of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Print {
    /// Width and height of the picture in pixels.
    pub size: (u32, u32),
    /// The whole picture.
    pub code: Code,
    /// Its windows; [`Window::at`] says which.
    pub windows: [Code; Window::COUNT],
    /// 32x32 luma, stretched: 128 is the mean.
    pub thumb: [u8; THUMB * THUMB],
}

impl Print {
    /// Grows when the same picture gives other bytes.
    pub const VERSION: u8 = 2;
    /// Bytes of a print.
    pub const BYTES: usize = 8 + 32 + 32 * Window::COUNT + THUMB * THUMB;

    /// The print of a plane of [`PLANE`] cells a side of the upright picture; none where the picture is flat: there
    /// is nothing to recognise, and all flat pictures would look alike.
    pub fn of(luma: &Luma) -> Option<Self> {
        let plane = luma.halved();
        let small = plane.halved();
        if plane.side != SIDE || small.mean_and_std().1 < FLAT {
            return None;
        }
        let (code, windows) = widest(Codes(&plane));
        Some(Self { size: luma.source, code, windows, thumb: stretched(&small) })
    }

    /// `BYTES` bytes, the same on every machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend(self.size.0.to_le_bytes());
        bytes.extend(self.size.1.to_le_bytes());
        for code in std::iter::once(&self.code).chain(&self.windows) {
            bytes.extend(code.0.iter().flat_map(|rows| rows.to_le_bytes()));
        }
        bytes.extend(self.thumb);
        bytes
    }

    /// What `to_bytes` wrote, where the length is right.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let (size, rest) = bytes.split_at(8);
        let (codes, thumb) = rest.split_at(32 * (1 + Window::COUNT));
        let side = |at: usize| u32::from_le_bytes([size[at], size[at + 1], size[at + 2], size[at + 3]]);
        let mut codes = codes.chunks_exact(32).map(|code| {
            let mut rows =
                code.chunks_exact(8).map(|row| row.iter().rev().fold(0, |all, b| all << 8 | u64::from(*b)));
            Code(std::array::from_fn(|_| rows.next().unwrap_or_default()))
        });
        let code = codes.next()?;
        let windows = std::array::from_fn(|_| codes.next().unwrap_or_default());
        Some(Self { size: (side(0), side(4)), code, windows, thumb: thumb.try_into().ok()? })
    }

    /// Width by height.
    pub fn aspect(&self) -> f64 {
        f64::from(self.size.0.max(1)) / f64::from(self.size.1.max(1))
    }
}

/// A plane whose codes are to be taken: the code of the whole and those of the windows.
struct Codes<'a>(&'a Luma);

impl Loops for Codes<'_> {
    type Out = (Code, [Code; Window::COUNT]);

    #[inline(always)]
    fn run(self) -> Self::Out {
        let mut windows = [Code::default(); Window::COUNT];
        let mut code = Code::default();
        let mut rows = [[0.0; WAVES]; SIDE];
        for (h, axis) in AXES.iter().enumerate() {
            axis.rows(&self.0.data, &mut rows);
            if h == 0 {
                code = axis.code(&rows);
            }
            for (window, (across, down)) in windows.iter_mut().zip(PARTS) {
                if across == h {
                    *window = AXES[down].code(&rows);
                }
            }
        }
        for (at, window) in windows.iter_mut().enumerate().skip(PARTS.len()) {
            AXES[0].rows(&seen_through(Window::at(at), self.0), &mut rows);
            *window = AXES[0].code(&rows);
        }
        (code, windows)
    }
}

/// The plane as it looks through `window`, between cells linearly; outside, its edge goes on.
#[inline(always)]
fn seen_through(window: Window, plane: &Luma) -> Vec<f32> {
    let aspect = f64::from(plane.source.0.max(1)) / f64::from(plane.source.1.max(1));
    let middle = |at: usize| (at as f64 + 0.5) / SIDE as f64;
    let along = |t: f64| (t * SIDE as f64 - 0.5).clamp(0.0, SIDE as f64 - 1.001);
    let view = window.view(aspect);
    let mut seen = vec![0.0; SIDE * SIDE];
    let Some(cells) = plane.data.first_chunk::<{ SIDE * SIDE }>() else { return seen };
    // Of each point of a row: the cell before it, and how far it is towards the next one. Apart from the loads, which
    // the compiler cannot do side by side.
    let (mut before, mut across, mut down) = ([0_i32; SIDE], [0.0_f32; SIDE], [0.0_f32; SIDE]);
    for (row, seen) in seen.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
        for column in 0..SIDE {
            let (x, y) = view.point((middle(column), middle(row)));
            let (x, y) = (along(x), along(y));
            let (left, top) = (x as i32, y as i32);
            before[column] = top.wrapping_mul(SIDE as i32).wrapping_add(left);
            across[column] = (x - f64::from(left)) as f32;
            down[column] = (y - f64::from(top)) as f32;
        }
        for column in 0..SIDE {
            // Always within; so the compiler knows it too.
            let cell =
                |further: usize| cells[(before[column] as usize).wrapping_add(further) % (SIDE * SIDE)];
            let (fx, fy) = (across[column], down[column]);
            let above = cell(0) + (cell(1) - cell(0)) * fx;
            let below = cell(SIDE) + (cell(SIDE + 1) - cell(SIDE)) * fx;
            seen[column] = above + (below - above) * fy;
        }
    }
    seen
}

/// The plane of `THUMB` cells with its mean at 128 and its farthest value at 1 or 255.
fn stretched(small: &Luma) -> [u8; THUMB * THUMB] {
    let mean = small.mean_and_std().0;
    let far = small.data.iter().fold(1.0_f32, |far, v| far.max((v - mean).abs()));
    let mut thumb = [128; THUMB * THUMB];
    for (out, value) in thumb.iter_mut().zip(&small.data) {
        *out = ((value - mean) / far * 127.0 + 128.5) as u8;
    }
    thumb
}

/// One side of a part, in 1/128 of the picture's side, and the table that transforms it.
struct Axis {
    from: u8,
    to: u8,
    /// `waves[cell][u]`: what a plane cell adds to wave `u`.
    waves: Vec<[f32; WAVES]>,
}

impl Axis {
    /// The exact integrals of `cos(u pi t)` over the cells, `t` from 0 at `from` to 1 at `to`.
    fn new(from: u8, to: u8) -> Self {
        let (a, b) = (f64::from(from) / 2.0, f64::from(to) / 2.0);
        let cell = |x: usize| {
            let start = ((x as f64).clamp(a, b) - a) / (b - a);
            let end = ((x as f64 + 1.0).clamp(a, b) - a) / (b - a);
            let wave = |u: usize| match u {
                0 => end - start,
                _ => (sin_pi(u as f64 * end) - sin_pi(u as f64 * start)) / u as f64,
            };
            std::array::from_fn(|u| wave(u) as f32)
        };
        Self { from, to, waves: (0..SIDE).map(cell).collect() }
    }

    /// Plane cells that the part touches.
    fn cells(&self) -> std::ops::Range<usize> {
        usize::from(self.from / 2)..usize::from(self.to).div_ceil(2)
    }

    /// The rows of `plane` in waves along a row.
    #[inline(always)]
    fn rows(&self, plane: &[f32], out: &mut [[f32; WAVES]; SIDE]) {
        let cells = self.cells();
        let fours = out.as_chunks_mut::<STEP>().0.iter_mut().zip(plane.as_chunks::<{ STEP * SIDE }>().0);
        for (out, rows) in fours {
            let mut sums = [[0.0; WAVES]; STEP];
            for x in cells.clone() {
                let waves = &self.waves[x];
                for i in 0..STEP {
                    let value = rows[i * SIDE + x];
                    for u in 0..WAVES {
                        sums[i][u] += value * waves[u];
                    }
                }
            }
            *out = sums;
        }
    }

    /// The code from rows in waves.
    #[inline(always)]
    fn code(&self, rows: &[[f32; WAVES]; SIDE]) -> Code {
        let cells = self.cells();
        let mut code = Code::default();
        for (four, word) in code.0.iter_mut().enumerate() {
            let mut sums = [[0.0; WAVES]; STEP];
            for (row, waves) in rows[cells.clone()].iter().zip(&self.waves[cells.clone()]) {
                for i in 0..STEP {
                    let wave = waves[four * STEP + i];
                    for u in 0..WAVES {
                        sums[i][u] += row[u] * wave;
                    }
                }
            }
            for (at, sum) in sums.as_flattened().iter().enumerate() {
                *word |= u64::from(*sum > 0.0) << at;
            }
        }
        code.0[0] &= !1;
        code
    }
}

/// sin(pi z), the same bits on every machine: only operations that IEEE 754 defines exactly.
fn sin_pi(z: f64) -> f64 {
    let turn = z - 2.0 * (z / 2.0 + 0.5).floor();
    let folded = if turn > 0.5 {
        1.0 - turn
    } else if turn < -0.5 {
        -1.0 - turn
    } else {
        turn
    };
    let x = folded * std::f64::consts::PI;
    let (mut term, mut sum) = (x, x);
    for n in 1..12 {
        term = -term * x * x / f64::from(2 * n * (2 * n + 1));
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pixels::Rgb8;

    #[test]
    fn without_vectors_the_codes_are_the_same() {
        for (width, height) in [(160, 160), (211, 173), (500, 160)] {
            let byte = |i: u32| (i / 3 % width / 2).wrapping_add(i.wrapping_mul(2_654_435_761) >> 25) as u8;
            let picture = Rgb8::new(width, height, (0..width * height * 3).map(byte).collect());
            let plane = Luma::of(&picture, PLANE).halved();
            assert_eq!(widest(Codes(&plane)), Codes(&plane).run());
        }
    }
}

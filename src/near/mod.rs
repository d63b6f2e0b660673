//! Near-duplicates among prints: the same picture resized, compressed, recoloured, turned, mirrored, cropped by up to
//! 10 % a side or rotated by some degrees.
//!
//! Brute force over all pairs (`scan`): 63 bits, then 255, then a look at the thumbnails (`check`). No index: at
//! the distances that matter none is faster. Pictures of 50,000 and fewer are compared with windows, a million and
//! fewer in eight orientations, more as they are; [`Found::depth`] says what was done.
//!
//! Measured on 1,577 photos and 5,600 edited copies by `examples/near_report.rs`; the figures are in its head.

mod check;
mod guess;
mod scan;
mod stars;

use std::borrow::Cow;

use crate::engine::blocks;
use crate::engine::cancel::Cancel;
use crate::error::Result;
use crate::measure::{Code, Print, Window};
use crate::pixels::Orientation;

pub use guess::Guess;
use scan::{Among, Candidate, Codes, Plan};
pub use stars::{Star, stars};

/// Prints by place. `None` is a picture without one (flat, or not decoded): it is like no other.
pub trait Prints: Sync {
    /// Pictures.
    fn count(&self) -> usize;
    /// The print of picture `at`, below `count`. Asked twice or more of each; may read it from a file.
    fn print(&self, at: usize) -> Option<Cow<'_, Print>>;
}

impl Prints for [Option<Print>] {
    fn count(&self) -> usize {
        self.len()
    }

    fn print(&self, at: usize) -> Option<Cow<'_, Print>> {
        self[at].as_ref().map(Cow::Borrowed)
    }
}

/// How a search is carried out.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Threads, at least 1. Results do not depend on it.
    pub threads: usize,
    /// Pictures up to which crops and small rotations are looked for (default 50,000: about a minute of one core).
    pub windows_up_to: usize,
    /// Pictures up to which turned and mirrored copies are looked for (default 1,000,000: some 20 minutes of one core).
    pub turned_up_to: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: 1, windows_up_to: 50_000, turned_up_to: 1_000_000 }
    }
}

/// How far a search went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Pictures as they are.
    Upright,
    /// In eight orientations.
    Turned,
    /// In eight orientations, and crops and small rotations as they are and mirrored.
    Windows,
}

impl Options {
    /// The depth for a search that compares `pictures` with one another.
    pub fn depth(&self, pictures: usize) -> Depth {
        match pictures {
            n if n <= self.windows_up_to => Depth::Windows,
            n if n <= self.turned_up_to => Depth::Turned,
            _ => Depth::Upright,
        }
    }
}

/// How sure it is that two pictures are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The same picture, edited.
    Sure,
    /// The same picture edited more, or nearly the same shot: belongs into one group, is not for deletion unseen.
    Suspected,
    /// Perhaps the same scene shot twice, perhaps only the same silhouette: a group to offer.
    Scene,
}

/// Bounds of a tier, bits and correlation: within both. A tier may have several.
type Bounds = &'static [(u8, f32)];

impl Tier {
    /// The word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sure => "sure",
            Self::Suspected => "suspected",
            Self::Scene => "scene",
        }
    }

    /// The tier of a comparison, if any.
    ///
    /// Bounds from the measured pictures: edits in the same frame differ in at most 45 bits (a watermark in 78) and
    /// correlate by 0.97 and more, turned ones differ in 30, random crops in 36 (half of them) to 76 and correlate by
    /// 0.97, small rotations by 0.88. Second shots of one leaf differ in 30 to 90 and correlate by 0.88 to 0.98.
    /// Silhouettes (shirts on a floor) differ in 65 and more and correlate by up to 0.95.
    fn of(distance: u8, agreement: f32, guess: Guess) -> Option<Self> {
        let bounds: [(Self, Bounds); 3] = match guess.window() {
            None => [
                (Self::Sure, &[(48, 0.97)]),
                (Self::Suspected, &[(60, 0.4), (76, 0.7), (scan::LIMIT, 0.95)]),
                (Self::Scene, &[(76, 0.4), (scan::LIMIT, 0.85)]),
            ],
            Some(Window::Part { .. }) => [
                (Self::Sure, &[(44, 0.97)]),
                (Self::Suspected, &[(60, 0.85), (scan::LIMIT, 0.96)]),
                (Self::Scene, &[(60, 0.6), (76, 0.8), (scan::LIMIT, 0.9)]),
            ],
            Some(Window::Turned(_)) => [
                (Self::Sure, &[(44, 0.97)]),
                (Self::Suspected, &[(60, 0.7), (76, 0.88)]),
                (Self::Scene, &[(60, 0.6), (76, 0.8), (scan::LIMIT, 0.9)]),
            ],
        };
        let within = |(bits, correlation): &(u8, f32)| distance <= *bits && agreement >= *correlation;
        bounds.into_iter().find(|(_, bounds)| bounds.iter().any(within)).map(|(tier, _)| tier)
    }
}

/// Which of two pictures shows only a part of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `b` shows this window of `a`.
    OfA(Window),
    /// `a` shows this window of `b`.
    OfB(Window),
}

/// Two pictures that look alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Place of the first picture; within one set below `b`.
    pub a: usize,
    /// Place of the second.
    pub b: usize,
    /// How sure it is.
    pub tier: Tier,
    /// Bits of 255 in which the codes differ, 0 to 84.
    pub distance: u8,
    /// How `a` is turned to lie as `b`.
    pub turn: Orientation,
    /// Set where one shows a part of the other, or the whole turned a little.
    pub part: Option<Part>,
    /// Correlation of the thumbnails laid over each other, to 1.
    pub agreement: f32,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Ascending by `a`, then `b`; each pair once.
    pub pairs: Vec<Pair>,
    /// How far the search went.
    pub depth: Depth,
    /// Pictures that have a print.
    pub prints: usize,
    /// Pictures that look like more others (256; 16 in a million) than were looked at.
    pub crowded: usize,
}

/// Pictures whose codes go through the blocks together.
const TILE: usize = 64;
/// Candidates that are checked together.
const CHECKS: usize = 256;

/// All pairs of near-duplicates within one set. `step` hears on the calling thread of (done, total) parts of the work.
///
/// # Errors
/// An interrupt.
pub fn search<P: Prints + ?Sized>(
    prints: &P,
    options: &Options,
    cancel: &Cancel,
    step: &mut dyn FnMut(usize, usize),
) -> Result<Found> {
    let codes = codes_of(prints);
    let depth = options.depth(codes.len());
    let plan = Plan::new(Among::Same, depth, codes.len());
    let (mut found, crowded) = scanned(prints, &codes, plan, (options.threads, cancel), step)?;
    // Both pictures may have found each other: the better guess stays.
    let ends = |c: &Candidate| (c.original.min(c.copy), c.original.max(c.copy));
    found.sort_unstable_by_key(|c| (ends(c), c.distance, c.guess, c.original));
    found.dedup_by_key(|c| ends(c));
    let checked = |c: &Candidate| checked(c, prints, prints, c.original > c.copy);
    let pairs = in_blocks(&found, (options.threads, cancel), checked)?;
    Ok(Found { pairs, depth, prints: codes.len(), crowded })
}

/// All pairs of near-duplicates between the sets `a` and `b`: [`Pair::a`] is a place in the one, [`Pair::b`] in the
/// other.
///
/// # Errors
/// An interrupt.
pub fn against<A: Prints + ?Sized, B: Prints + ?Sized>(
    a: &A,
    b: &B,
    options: &Options,
    cancel: &Cancel,
    step: &mut dyn FnMut(usize, usize),
) -> Result<Found> {
    let (of_a, of_b) = (codes_of(a), codes_of(b));
    // As many comparisons as within one set of so many.
    let pictures = ((of_a.len() as f64) * (of_b.len() as f64) * 2.0).sqrt() as usize;
    let depth = options.depth(pictures);
    let plan = Plan::new(Among::Other, depth, of_a.len());
    let (found, mut crowded) = scanned(a, &of_b, plan, (options.threads, cancel), step)?;
    let mut both: Vec<(bool, Candidate)> = found.into_iter().map(|c| (false, c)).collect();
    if depth == Depth::Windows {
        let plan = Plan::new(Among::OtherWindows, depth, of_b.len());
        let (found, more) = scanned(b, &of_a, plan, (options.threads, cancel), step)?;
        both.extend(found.into_iter().map(|c| (true, c)));
        crowded += more;
    }
    let ends =
        |(back, c): &(bool, Candidate)| if *back { (c.copy, c.original) } else { (c.original, c.copy) };
    both.sort_unstable_by_key(|c| (ends(c), c.1.distance, c.1.guess, c.0));
    both.dedup_by_key(|c| ends(c));
    let checked = |(back, c): &(bool, Candidate)| match back {
        false => checked(c, a, b, false),
        true => checked(c, b, a, true),
    };
    let pairs = in_blocks(&both, (options.threads, cancel), checked)?;
    Ok(Found { pairs, depth, prints: of_a.len() + of_b.len(), crowded })
}

fn codes_of<P: Prints + ?Sized>(prints: &P) -> Codes {
    let mut codes = Codes::default();
    for at in 0..prints.count() {
        if let Some(print) = prints.print(at) {
            codes.push(at as u32, print.code);
        }
    }
    codes
}

/// The candidates of all `originals` among `codes`.
fn scanned<P: Prints + ?Sized>(
    originals: &P,
    codes: &Codes,
    plan: Plan,
    (threads, cancel): (usize, &Cancel),
    step: &mut dyn FnMut(usize, usize),
) -> Result<(Vec<Candidate>, usize)> {
    let tiles = originals.count().div_ceil(TILE);
    let tile = |tile: usize| {
        let places = tile * TILE..((tile + 1) * TILE).min(originals.count());
        let prints = places.filter_map(|at| originals.print(at).map(|print| (at as u32, print)));
        scan::candidates(prints, codes, plan)
    };
    let results = blocks::run(threads, cancel, tiles, tile, |done| step(done, tiles))?;
    let mut all = Vec::with_capacity(results.iter().map(|(found, _)| found.len()).sum());
    let mut crowded = 0;
    for (mut found, more) in results {
        all.append(&mut found);
        crowded += more;
    }
    Ok((all, crowded))
}

/// The pairs among candidates, in their order.
fn in_blocks<C: Sync>(
    candidates: &[C],
    (threads, cancel): (usize, &Cancel),
    check: impl Fn(&C) -> Option<Pair> + Sync,
) -> Result<Vec<Pair>> {
    let blocks = candidates.len().div_ceil(CHECKS);
    let block = |block: usize| -> Vec<Pair> {
        candidates[block * CHECKS..].iter().take(CHECKS).filter_map(&check).collect()
    };
    Ok(blocks::run(threads, cancel, blocks, block, |_| ())?.concat())
}

/// The pair that a candidate is, if the thumbnails agree. `back`: the original is the second of the pair.
fn checked<O: Prints + ?Sized, C: Prints + ?Sized>(
    candidate: &Candidate,
    originals: &O,
    copies: &C,
    back: bool,
) -> Option<Pair> {
    let (original, copy) = (candidate.original as usize, candidate.copy as usize);
    let Candidate { guess, distance, .. } = *candidate;
    let agreement = check::agreement(&*originals.print(original)?, guess, &*copies.print(copy)?);
    let tier = Tier::of(distance, agreement, guess)?;
    let part = guess.window().map(|window| if back { Part::OfB(window) } else { Part::OfA(window) });
    // Only windows are found backwards, and those as they are or mirrored: turned back they are turned the same way.
    let turn = guess.turn();
    let (a, b) = if back { (copy, original) } else { (original, copy) };
    Some(Pair { a, b, tier, distance, turn, part, agreement })
}

/// For the benchmark: how many pairs of `codes` pass both limits, and by which instructions they were found.
///
/// # Errors
/// An interrupt.
pub fn count_pairs(codes: &[Code], threads: usize, cancel: &Cancel) -> Result<(usize, &'static str)> {
    let mut all = Codes::default();
    for (at, code) in codes.iter().enumerate() {
        all.push(at as u32, *code);
    }
    let plan = Plan::new(Among::Same, Depth::Upright, codes.len());
    let tiles = codes.len().div_ceil(TILE);
    let tile = |tile: usize| {
        let places = tile * TILE..((tile + 1) * TILE).min(codes.len());
        scan::count(places.map(|at| (at as u32, codes[at])), &all, plan)
    };
    let counts = blocks::run(threads, cancel, tiles, tile, |_| ())?;
    Ok((counts.into_iter().sum(), plan.kernel.name()))
}

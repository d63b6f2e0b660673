//! The blocked brute force: codes of some pictures against codes of all, first 64 bits, then 256.

use std::borrow::Cow;

use super::{Depth, Guess};
use crate::measure::{Code, Print};
use crate::simd::popcount::Kernel;

/// Bits of the 63 lowest frequencies in which a candidate may differ. Unrelated codes differ in about 32.
const LOW_LIMIT: u32 = 18;
/// Bits of 255 in which a candidate may differ.
pub const LIMIT: u8 = 84;
/// Codes of a block: as many as the first cache of a core holds beside the rest.
const BLOCK: usize = 2048;
/// Candidates of one picture that are kept at most, the nearest first, and those of all pictures together. Sets of
/// nearly equal pictures (frames of a film) have n squared of them, and memory is bounded.
const CROWD: (usize, usize) = (256, 16 << 20);

/// The codes of all pictures that have a print: 44 bytes each.
#[derive(Default)]
pub struct Codes {
    low: Vec<u64>,
    full: Vec<Code>,
    /// The place of each among the pictures.
    at: Vec<u32>,
}

impl Codes {
    /// Appends the code of picture `at`. Call it in ascending order.
    pub fn push(&mut self, at: u32, code: Code) {
        self.low.push(code.low());
        self.full.push(code);
        self.at.push(at);
    }

    /// Pictures with a code.
    pub fn len(&self) -> usize {
        self.at.len()
    }
}

/// A picture that may show the same as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// Place of the picture whose turned code or window was looked for.
    pub original: u32,
    /// Place of the one whose whole looked like it.
    pub copy: u32,
    /// Bits in which they differ.
    pub distance: u8,
    /// What was compared.
    pub guess: Guess,
}

/// What is looked for: one picture and its codes.
struct Wanted {
    at: u32,
    codes: Vec<(Guess, Code)>,
}

/// Which copies an original is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// The pictures of the same set: whole codes with those after it only, since the comparison is mutual.
    Same,
    /// The pictures of another set, all of them.
    Other,
    /// As `Other`, windows only: the wholes were compared from the other side.
    OtherWindows,
}

/// How to look.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Where.
    pub among: Among,
    /// For what.
    pub depth: Depth,
    /// By which instructions.
    pub kernel: Kernel,
    /// Candidates of one picture that are kept.
    pub most: usize,
}

impl Plan {
    /// The plan for so many originals.
    pub fn new(among: Among, depth: Depth, originals: usize) -> Self {
        let most = (CROWD.1 / originals.max(1)).clamp(8, CROWD.0);
        Self { among, depth, kernel: Kernel::best(), most }
    }
}

/// What was found for one original.
#[derive(Default, Clone)]
struct Found {
    nearest: Vec<Candidate>,
    crowded: bool,
}

/// The candidates of some originals among `codes`, and how many originals had more than are kept.
pub fn candidates<'p>(
    originals: impl Iterator<Item = (u32, Cow<'p, Print>)>,
    codes: &Codes,
    plan: Plan,
) -> (Vec<Candidate>, usize) {
    let wanted: Vec<Wanted> = originals
        .map(|(at, print)| {
            let guesses =
                Guess::all(plan.depth).filter(|g| plan.among != Among::OtherWindows || g.window().is_some());
            Wanted { at, codes: guesses.map(|guess| (guess, guess.code(&print))).collect() }
        })
        .collect();
    through_blocks(&wanted, codes, plan)
}

/// How many pairs the codes `wanted`, as they are, have among `codes`.
pub fn count(wanted: impl Iterator<Item = (u32, Code)>, codes: &Codes, plan: Plan) -> usize {
    let plain = |code| Guess::all(Depth::Upright).map(|guess| (guess, code)).collect();
    let wanted: Vec<Wanted> = wanted.map(|(at, code)| Wanted { at, codes: plain(code) }).collect();
    through_blocks(&wanted, codes, plan).0.len()
}

fn through_blocks(wanted: &[Wanted], codes: &Codes, plan: Plan) -> (Vec<Candidate>, usize) {
    let mut found = vec![Found::default(); wanted.len()];
    for first in (0..codes.len()).step_by(BLOCK) {
        let end = (first + BLOCK).min(codes.len());
        for (wanted, found) in wanted.iter().zip(&mut found) {
            scan_block(wanted, codes, first..end, plan, found);
        }
    }
    let mut crowded = 0;
    let mut all = Vec::new();
    for mut of_one in found {
        of_one.keep(plan.most);
        crowded += usize::from(of_one.crowded);
        all.append(&mut of_one.nearest);
    }
    (all, crowded)
}

fn scan_block(wanted: &Wanted, codes: &Codes, block: std::ops::Range<usize>, plan: Plan, found: &mut Found) {
    let same = plan.among == Among::Same;
    // Of the same set, what lies before the original has compared its whole with it already.
    let after = match codes.at[block.start] > wanted.at {
        true => 0,
        false => codes.at[block.clone()].partition_point(|at| *at <= wanted.at),
    };
    for (guess, code) in &wanted.codes {
        let skip = if same && guess.window().is_none() { after } else { 0 };
        let start = block.start + skip;
        plan.kernel.scan(code.low(), &codes.low[start..block.end], LOW_LIMIT, |hit| {
            let distance = code.distance(&codes.full[start + hit]);
            let copy = codes.at[start + hit];
            if distance <= u32::from(LIMIT) && (!same || copy != wanted.at) {
                found.nearest.push(Candidate {
                    original: wanted.at,
                    copy,
                    distance: distance as u8,
                    guess: *guess,
                });
            }
        });
    }
    if found.nearest.len() > plan.most * 16 {
        found.keep(plan.most);
    }
}

impl Found {
    /// Keeps the best guess of each copy and the `most` nearest copies. All guesses at a copy come from one block, so
    /// doing this between blocks changes nothing.
    fn keep(&mut self, most: usize) {
        self.nearest.sort_unstable_by_key(|c| (c.copy, c.distance, c.guess));
        self.nearest.dedup_by_key(|c| c.copy);
        self.nearest.sort_unstable_by_key(|c| (c.distance, c.copy));
        self.crowded |= self.nearest.len() > most;
        self.nearest.truncate(most);
    }
}

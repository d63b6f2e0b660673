//! Networks as data: read from a file, run as shapes for any input size, measured in parameters and kept bytes.

pub mod builtin;
pub mod file;
mod layers;
mod line;
mod run;
mod shape;
mod work;

pub use file::{File, Model, Speed};
pub use run::run;
pub use shape::Shape;

use super::tape::Rules;

/// A size of the input: height and width in pixels.
pub type Size = (u32, u32);

/// What a network is made of and what it keeps, for one image of one size under one set of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// The size of the pictures, height and width.
    pub size: Size,
    /// The rules.
    pub rules: Rules,
    /// Trained numbers.
    pub parameters: u64,
    /// Of these, the ones in convolutions and linear layers, of which autocast makes half copies.
    pub cast_parameters: u64,
    /// Bytes of what is carried along without being trained (running means and variances).
    pub buffer_bytes: u64,
    /// Bytes kept for the way back, an image: what `saved_tensors_hooks` counts.
    pub kept_bytes: u64,
    /// Bytes kept however many images there are.
    pub fixed_bytes: u64,
    /// Values that convolutions put out, an image: what timm and fvcore call activations.
    pub conv_values: u64,
    /// The most that is alive at one moment of the way back, an image: what is still kept, and the gradients of the
    /// layer at work.
    pub peak_bytes: u64,
    /// The same when each block is run again on the way back (checkpointing); none where there are no blocks.
    pub checkpointed_bytes: Option<u64>,
    /// Blocks that checkpointing would run again.
    pub blocks: usize,
    /// Is there batch norm, whose numbers depend on the other images of the batch?
    pub batch_norm: bool,
    /// Layer by layer.
    pub steps: Vec<Step>,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The blocks around it, as in `3.bottleneck`.
    pub path: String,
    /// As it is written, as in `conv 64 k=7 s=2`.
    pub name: String,
    /// What it puts out, as in `64x112x112`.
    pub shape: String,
    /// Bytes of what it puts out, an image.
    pub out_bytes: u64,
    /// Bytes of what it is given, an image.
    pub in_bytes: u64,
    /// Its trained numbers.
    pub parameters: u64,
    /// Bytes that are kept because of it and were not kept before, an image.
    pub kept_bytes: u64,
    /// The block of the whole network that it is in, counted from 0.
    pub block: Option<usize>,
}

/// The most alive at one moment of the way back, and the same with checkpointed blocks, from the layers in order.
pub(super) fn peaks(steps: &[Step]) -> (u64, Option<u64>) {
    let (mut kept, mut peak) = (0_u64, 0_u64);
    for step in steps {
        kept = kept.saturating_add(step.kept_bytes);
        peak = peak.max(kept.saturating_add(step.in_bytes).saturating_add(step.out_bytes));
    }
    let blocks = steps.iter().filter_map(|s| s.block).max().map_or(0, |last| last + 1);
    if blocks < 2 {
        return (peak, None);
    }
    // Kept: the input of each block, and all that lies outside of blocks. Once more alive: the largest block.
    let mut inside = vec![0_u64; blocks];
    let mut entered = vec![false; blocks];
    let mut outside = 0_u64;
    for step in steps {
        match step.block {
            None => outside = outside.saturating_add(step.kept_bytes),
            Some(block) => {
                if !entered[block] {
                    entered[block] = true;
                    outside = outside.saturating_add(step.in_bytes);
                }
                inside[block] =
                    inside[block].saturating_add(step.kept_bytes).saturating_add(step.out_bytes / 2);
            }
        }
    }
    (peak, Some(outside.saturating_add(inside.into_iter().max().unwrap_or(0)).min(peak)))
}

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

/// What a block of the whole network is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// Bytes of its input, an image.
    pub input_bytes: u64,
    /// Was the input kept already by something outside of blocks (or is it the picture)?
    pub outside: bool,
    /// Does the block itself keep it, as the first to do so?
    pub keeps_it: bool,
}

/// The most alive at one moment of the way back, and the same with checkpointed blocks, from the layers in order.
pub(super) fn peaks(steps: &[Step], blocks: &[Block]) -> (u64, Option<u64>) {
    let (mut kept, mut peak) = (0_u64, 0_u64);
    for step in steps {
        kept = kept.saturating_add(step.kept_bytes);
        peak = peak.max(kept.saturating_add(step.in_bytes).saturating_add(step.out_bytes));
    }
    (peak, (blocks.len() >= 2).then(|| checkpointed(steps, blocks).min(peak)))
}

/// The most alive when each block is run again on its way back: what lies outside of blocks and the inputs of blocks,
/// both only up to the place that the way back has come to (what lies behind it is free already), and the block at hand.
fn checkpointed(steps: &[Step], blocks: &[Block]) -> u64 {
    let (mut base, mut peak, mut at) = (0_u64, 0_u64, 0);
    while let Some(step) = steps.get(at) {
        let Some((number, block)) = step.block.and_then(|n| Some((n, blocks.get(n)?))) else {
            base = base.saturating_add(step.kept_bytes);
            peak = peak.max(base.saturating_add(step.in_bytes).saturating_add(step.out_bytes));
            at += 1;
            continue;
        };
        let inside: Vec<&Step> = steps[at..].iter().take_while(|s| s.block == Some(number)).collect();
        if !block.outside {
            base = base.saturating_add(block.input_bytes);
        }
        let counted = if block.keeps_it { block.input_bytes } else { 0 };
        peak = peak.max(base.saturating_add(again(&inside, counted)));
        at += inside.len();
    }
    peak
}

/// The most alive in a block on its way back, after it was run again: what it keeps up to the layer at work (but the
/// `counted` bytes of its input), that layer's gradients, and the gradient that waits where a residual branched off.
fn again(inside: &[&Step], counted: u64) -> u64 {
    let all = inside.iter().fold(0_u64, |all, step| all.saturating_add(step.kept_bytes));
    let (mut kept, mut waiting, mut peak) = (all.saturating_sub(counted), 0_u64, 0_u64);
    // Right before a sum the gradient at work is the one that waits.
    let mut same = false;
    for step in inside.iter().rev() {
        let joins = step.name.starts_with("add") || step.name.starts_with("concat");
        let gradients = if joins {
            (waiting, same) = (step.out_bytes, true);
            step.out_bytes
        } else {
            let more = if same { 0 } else { waiting };
            same = false;
            step.in_bytes.saturating_add(step.out_bytes).saturating_add(more)
        };
        peak = peak.max(kept.saturating_add(gradients));
        kept = kept.saturating_sub(step.kept_bytes);
    }
    peak
}

//! The options of `prep plan`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::args::{Input, dimensions, side, size};
use crate::plan::gpu::{Optimizer, Precision};
use crate::plan::net::Size;

/// Says whether a training run fits into the card and the machine, and what would starve, before any of it is rented.
/// Nothing is trained, and nothing is written but what --log names and, in the user's cache folder, what a sample of
/// the pictures told (--no-cache leaves that too); everything is computed from the set and the
/// network's layers. Without --model it prints the set's own sums and the networks that it knows.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment, next_help_heading = "Plan options")]
pub struct Args {
    /// A network's name, FILE.onnx, FILE.toml, or params=25.6M,acts=11.1M@224
    #[arg(short, long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Side of the pictures that the network is given, or WxH [default: the network's own, or 224]
    #[arg(long, value_name = "PX", value_parser = side_or_box)]
    pub size: Option<Size>,
    /// Images a step
    #[arg(short, long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub batch: u64,
    /// Images whose gradients are gathered before a step is taken
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub effective_batch: Option<u64>,
    /// fp32; amp is autocast with fp16, bf16 autocast with bf16
    #[arg(long, value_enum, default_value = "fp32", value_name = "NAME")]
    pub precision: PrecisionName,
    /// What takes the steps
    #[arg(long, value_enum, default_value = "adamw", value_name = "NAME")]
    pub optimizer: OptimizerName,
    /// Run blocks again on the way back instead of keeping what they made
    #[arg(long)]
    pub checkpointing: bool,
    /// Attention: fused since PyTorch 2, plain before and where attention maps are read
    #[arg(long, value_enum, default_value = "fused", value_name = "HOW")]
    pub attention: AttentionName,
    /// Processes that load pictures
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(0..=1024))]
    pub workers: u64,
    /// Batches that each of them prepares ahead
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub prefetch: u64,
    /// Numbers of a sample as it leaves the loader
    #[arg(long, value_enum, default_value = "fp32", value_name = "NAME")]
    pub sample: SampleName,
    /// Memory of the card, as in 8G or 24GiB
    #[arg(long, value_name = "SIZE", value_parser = room)]
    pub vram: Option<u64>,
    /// Memory of the machine
    #[arg(long, value_name = "SIZE", value_parser = room)]
    pub ram: Option<u64>,
    /// What the disk reads in a second
    #[arg(long, value_name = "SIZE", value_parser = speed, default_value = "500M")]
    pub bandwidth: u64,
    /// Compare in a table: size=, batch=, precision=, optimizer=, each with a list, as in size=160,224 batch=32,64
    #[arg(long, value_name = "KEY=LIST", num_args = 1..)]
    pub what_if: Vec<String>,
    /// Show every layer
    #[arg(long)]
    pub layers: bool,
    /// Decode no sample of the pictures
    #[arg(long)]
    pub no_sample: bool,
    /// Decode a new sample, whatever is remembered of an earlier one
    #[arg(long, conflicts_with = "no_sample")]
    pub measure: bool,
    /// Add the configuration and its predictions to this file, as one JSON line
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    pub log: Option<PathBuf>,
    /// Show the runs of such files side by side (at most 1000), and do nothing else
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub compare: Vec<PathBuf>,
    // Last, or its heading would be that of all options above.
    #[command(flatten)]
    pub input: Input,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
pub enum PrecisionName {
    Fp32,
    Amp,
    Bf16,
}

impl PrecisionName {
    pub fn meant(self) -> Precision {
        match self {
            Self::Fp32 => Precision::Fp32,
            Self::Amp => Precision::Amp,
            Self::Bf16 => Precision::Bf16,
        }
    }
}

#[derive(ValueEnum, Debug, Clone, Copy)]
pub enum OptimizerName {
    Sgd,
    Momentum,
    Adam,
    Adamw,
    Adam8bit,
}

impl OptimizerName {
    pub fn meant(self) -> Optimizer {
        match self {
            Self::Sgd => Optimizer::Sgd,
            Self::Momentum => Optimizer::Momentum,
            Self::Adam => Optimizer::Adam,
            Self::Adamw => Optimizer::AdamW,
            Self::Adam8bit => Optimizer::Adam8bit,
        }
    }
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq)]
pub enum AttentionName {
    Fused,
    Plain,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
pub enum SampleName {
    Fp32,
    Uint8,
}

/// Memory of a card or a machine.
fn room(text: &str) -> Result<u64, String> {
    match size(text)? {
        n if n < 64_000_000 => Err(format!("that is {n} bytes; with its unit, as in 8G or 8GiB")),
        n if n > 1 << 50 => Err("more than any machine has".into()),
        n => Ok(n),
    }
}

/// Bytes a second.
fn speed(text: &str) -> Result<u64, String> {
    match size(text)? {
        n if n < 1000 => Err(format!("that is {n} bytes a second; with its unit, as in 500M")),
        n if n > 1 << 50 => Err("more than any disk reads".into()),
        n => Ok(n),
    }
}

/// A side, or width and height.
pub fn side_or_box(text: &str) -> Result<Size, String> {
    side(text)
        .map(|n| (n, n))
        .or_else(|_| dimensions(text).map(|(w, h)| (h, w)))
        .map_err(|_| "a side from 1 to 65535 pixels, or WxH".into())
}

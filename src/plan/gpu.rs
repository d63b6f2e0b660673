//! What a card must hold at once: the sum of it, the largest batch that fits, and what to do when the wanted one does
//! not.

use super::ledger::{Line, grouped, mb};
use super::net::{Measure, Size};

/// What the driver and CUDA's libraries take before the first tensor: 0.8 GiB, assumed. PyTorch with cuDNN on cards of
/// 2020 and later was seen to take 0.5 to 0.9 GiB.
pub const CONTEXT: u64 = 858_993_459;
/// Of the tensors, the share that the caching allocator cannot use and that convolutions take as scratch, in percent.
/// Assumed: with 5 to 7 the largest batches of 20 networks that timm published for a 24 GiB card come out as published
/// (`tests/it/plan_models.rs`).
pub const RESERVE: u64 = 6;
/// The largest batch that is looked for.
const LARGEST: u64 = 1 << 20;

/// The numbers that a network is trained with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Everything in single precision.
    Fp32,
    /// Autocast to fp16, with a gradient scaler.
    Amp,
    /// Autocast to bf16.
    Bf16,
}

impl Precision {
    /// The word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Amp => "amp",
            Self::Bf16 => "bf16",
        }
    }

    /// Does it make half copies?
    pub fn is_half(self) -> bool {
        self != Self::Fp32
    }
}

/// What takes the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Optimizer {
    /// SGD without momentum: remembers nothing.
    Sgd,
    /// SGD with momentum: one number for each trained one.
    Momentum,
    /// Adam: two.
    Adam,
    /// AdamW: two.
    AdamW,
    /// Adam with 8-bit states in blocks of 256 (bitsandbytes): two bytes, and two fp32 scales a block.
    Adam8bit,
}

impl Optimizer {
    /// The word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sgd => "sgd",
            Self::Momentum => "momentum",
            Self::Adam => "adam",
            Self::AdamW => "adamw",
            Self::Adam8bit => "adam8bit",
        }
    }

    fn line(self, parameters: u64) -> Line {
        let what = |text: &str| format!("optimizer state ({}): {text}", self.as_str());
        match self {
            Self::Sgd => Line::product("optimizer", what("none"), &[("numbers", parameters), ("bytes", 0)]),
            Self::Momentum => {
                let text = what("one more for each");
                Line::product("optimizer", text, &[("numbers", parameters), ("bytes", 4)])
            }
            Self::Adam | Self::AdamW => {
                let text = what("two more for each");
                Line::product("optimizer", text, &[("numbers", parameters), ("states", 2), ("bytes", 4)])
            }
            Self::Adam8bit => Line {
                key: "optimizer",
                what: what("two bytes for each"),
                formula: "parameters x 2 x 1 + parameters / 256 x 2 x 4".into(),
                numbers: format!(
                    "{} x 2 x 1 + {} x 2 x 4",
                    grouped(parameters),
                    grouped(parameters.div_ceil(256))
                ),
                bytes: parameters
                    .saturating_mul(2)
                    .saturating_add(parameters.div_ceil(256).saturating_mul(8)),
            },
        }
    }
}

/// How a network is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Training {
    /// Images a step.
    pub batch: u64,
    /// The numbers.
    pub precision: Precision,
    /// What takes the steps.
    pub optimizer: Optimizer,
    /// Are blocks run again on the way back, instead of kept?
    pub checkpointing: bool,
}

/// What the two kinds of rules say about one network at one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// As `saved_tensors_hooks` count on the CPU.
    pub counted: Measure,
    /// As a GPU's autocast runs it.
    pub cuda: Measure,
}

/// The sum of what a card holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// Its lines, in the order in which they are explained.
    pub lines: Vec<Line>,
    /// All of them.
    pub total: u64,
}

/// The sum for one way of training.
pub fn sum(net: &Pair, training: Training) -> Sum {
    let (cuda, batch) = (&net.cuda, training.batch);
    let mut lines = weights(cuda, training);
    let kept = kept_lines(net, training, &mut lines);
    let (h, w) = cuda.size;
    let moment = if training.checkpointing { 0 } else { cuda.peak_bytes.saturating_sub(kept) };
    lines.push(Line::product(
        "in_flight",
        "gradients of the layer at work, at the fullest moment",
        &[("images", batch), ("bytes an image", moment)],
    ));
    lines.push(Line::product(
        "input",
        "the images themselves",
        &[("images", batch), ("high", h.into()), ("wide", w.into()), ("channels", 3), ("bytes", 4)],
    ));
    let tensors: u64 = lines.iter().fold(0, |all: u64, line| all.saturating_add(line.bytes));
    lines.push(Line {
        key: "reserve",
        what: "gaps between tensors, scratch (assumed: 6 %)".into(),
        formula: "bytes x share".into(),
        numbers: format!("{} x 0.06", grouped(tensors)),
        bytes: (u128::from(tensors) * u128::from(RESERVE) / 100) as u64,
    });
    lines.push(Line::given("context", "the driver and CUDA (assumed: 0.8 GiB)", "0.8 x 2^30", CONTEXT));
    let total = lines.iter().fold(0, |all: u64, line| all.saturating_add(line.bytes));
    Sum { lines, total }
}

fn weights(net: &Measure, training: Training) -> Vec<Line> {
    let p = net.parameters;
    let mut lines = vec![
        Line::product("parameters", "weights: the network's own numbers", &[("numbers", p), ("bytes", 4)]),
        Line::product("gradients", "gradients: a correction for each", &[("numbers", p), ("bytes", 4)]),
        training.optimizer.line(p),
    ];
    if training.precision.is_half() {
        lines.push(Line::product(
            "half_copies",
            "half-precision copies of the weights",
            &[("numbers", net.cast_parameters), ("bytes", 2)],
        ));
    }
    let buffers = net.buffer_bytes.saturating_add(net.fixed_bytes);
    if buffers > 0 {
        lines.push(Line::given(
            "buffers",
            "running averages of the norms",
            "buffers + statistics of the step",
            buffers,
        ));
    }
    lines
}

/// Adds the lines of what is kept for the way back and gives its bytes an image.
fn kept_lines(net: &Pair, training: Training, lines: &mut Vec<Line>) -> u64 {
    let batch = training.batch;
    let what = "activations: what layers remember of each image";
    if let Some(kept) = net.cuda.checkpointed_bytes.filter(|_| training.checkpointing) {
        let what = format!("{what}, one block at a time");
        lines.push(Line::product("activations", what, &[("images", batch), ("bytes an image", kept)]));
        return kept;
    }
    let (counted, cuda) = (net.counted.kept_bytes, net.cuda.kept_bytes);
    lines.push(Line::product(
        "activations",
        what,
        &[("images", batch), ("bytes an image", counted.min(cuda))],
    ));
    if cuda > counted {
        lines.push(Line::product(
            "wide_norms",
            "more of them: norms and softmax stay in full precision",
            &[("images", batch), ("bytes an image", cuda - counted)],
        ));
    }
    cuda
}

/// The largest batch whose sum is within `vram` bytes; 0 where not even one image fits.
pub fn largest_batch(net: &Pair, training: Training, vram: u64) -> u64 {
    let fits = |batch| sum(net, Training { batch, ..training }).total <= vram;
    if fits(LARGEST) {
        return LARGEST;
    }
    let (mut low, mut high) = (0, LARGEST);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

/// A size as it is typed: one side for squares, else width x height.
pub fn shown_size(size: Size) -> String {
    if size.0 == size.1 { size.0.to_string() } else { format!("{}x{}", size.1, size.0) }
}

/// The sentence about validation, which forgets `no_grad` at its peril.
pub fn validation(net: &Pair, training: Training) -> String {
    let kept = net.cuda.kept_bytes.saturating_mul(training.batch);
    format!(
        "Validate under torch.no_grad(): without it a batch of {} keeps {} more.",
        training.batch,
        mb(kept)
    )
}

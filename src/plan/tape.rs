//! What automatic differentiation keeps for the way back, operation by operation, as PyTorch does it.
//!
//! Shapes live elsewhere: here a tensor is a number of values, a width and the storage that it lies in. A storage that
//! two operations keep counts once. The rules were read off `torch.autograd.graph.saved_tensors_hooks`
//! (`bench/activations.py --dump MODEL` shows each tensor); `tests/fixtures/activations.csv` holds them to that.
//!
//! All figures are bytes or values for one image.

/// Bytes of a single-precision value.
const SINGLE: u64 = 4;
/// Bytes of a half-precision value (fp16 or bf16).
const HALF: u64 = 2;
/// Max pooling remembers where each maximum was, as a 64-bit index.
const INDEX: u64 = 8;

/// Under which rules a network runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Autocast: convolutions and matrix products in half precision, parameters in single.
    pub half: bool,
    /// As CUDA's autocast does it, where layer and group norms and softmax run in single precision. Without it as
    /// the CPU's, which leaves norms in the type that they are given.
    pub cuda: bool,
    /// Attention as one operation (PyTorch 2 on), which never writes the table of all pairs.
    pub fused_attention: bool,
}

/// One tensor of one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tensor {
    storage: usize,
    /// Values, of one image.
    pub values: u64,
    /// Bytes of a value.
    pub width: u64,
}

impl Tensor {
    /// Bytes, of one image.
    pub fn bytes(&self) -> u64 {
        self.values.saturating_mul(self.width)
    }

    /// A view of `values` of it: the same storage.
    pub fn view(self, values: u64) -> Self {
        Self { values, ..self }
    }
}

/// The record of a forward pass.
#[derive(Debug)]
pub struct Tape {
    rules: Rules,
    /// Bytes of each storage, and whether it is kept.
    storages: Vec<(u64, bool)>,
    kept: u64,
    /// Bytes that are kept however many images there are (means and deviations of batch norm).
    pub fixed: u64,
}

impl Tape {
    /// An empty one.
    pub fn new(rules: Rules) -> Self {
        Self { rules, storages: Vec::new(), kept: 0, fixed: 0 }
    }

    /// Bytes kept so far.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// The picture itself, which is there anyway and never counts.
    pub fn input(&mut self, values: u64) -> Tensor {
        let x = self.fresh(values, SINGLE);
        self.storages[x.storage].1 = true;
        x
    }

    /// A parameter that takes part like a tensor (class token, position embedding): it is there anyway.
    pub fn parameter(&mut self, values: u64) -> Tensor {
        self.input(values)
    }

    fn fresh(&mut self, values: u64, width: u64) -> Tensor {
        self.storages.push((values.saturating_mul(width), false));
        Tensor { storage: self.storages.len() - 1, values, width }
    }

    /// Is it kept so far (or there anyway)?
    pub fn is_kept(&self, x: Tensor) -> bool {
        self.storages[x.storage].1
    }

    fn keep(&mut self, x: Tensor) {
        let (bytes, kept) = &mut self.storages[x.storage];
        if !*kept {
            *kept = true;
            self.kept = self.kept.saturating_add(*bytes);
        }
    }

    fn keep_new(&mut self, values: u64, width: u64) {
        let x = self.fresh(values, width);
        self.keep(x);
    }

    /// What matrix products take: half precision under autocast.
    fn cast(&mut self, x: Tensor) -> Tensor {
        if self.rules.half && x.width > HALF { self.fresh(x.values, HALF) } else { x }
    }

    /// What CUDA's autocast gives to norms and softmax: single precision.
    fn widen(&mut self, x: Tensor) -> Tensor {
        if self.rules.half && self.rules.cuda && x.width < SINGLE { self.fresh(x.values, SINGLE) } else { x }
    }

    /// Convolution, transposed convolution, linear: keeps its input (and its weights, which are there anyway).
    pub fn product(&mut self, x: Tensor, out: u64) -> Tensor {
        let x = self.cast(x);
        self.keep(x);
        self.fresh(out, x.width)
    }

    /// Batch norm over `channels`: keeps its input, and a mean and a deviation for each channel.
    pub fn batch_norm(&mut self, x: Tensor, channels: u64) -> Tensor {
        self.keep(x);
        self.fixed = self.fixed.saturating_add(2 * SINGLE * channels);
        self.fresh(x.values, x.width)
    }

    /// Layer, group or instance norm of `rows` rows: keeps its input, and a mean and a deviation for each row.
    pub fn row_norm(&mut self, x: Tensor, rows: u64) -> Tensor {
        let x = self.widen(x);
        self.keep(x);
        self.keep_new(rows.saturating_mul(2), SINGLE);
        self.fresh(x.values, x.width)
    }

    /// ReLU, sigmoid, tanh: the way back needs the output alone.
    pub fn by_output(&mut self, x: Tensor, inplace: bool) -> Tensor {
        let y = if inplace { x } else { self.fresh(x.values, x.width) };
        self.keep(y);
        y
    }

    /// GELU, SiLU, hard swish, ReLU6 …: the way back needs the input. In place it is copied first.
    pub fn by_input(&mut self, x: Tensor, inplace: bool) -> Tensor {
        if inplace {
            self.keep_new(x.values, x.width);
            return x;
        }
        self.keep(x);
        self.fresh(x.values, x.width)
    }

    /// Max pooling: keeps its input and an index for each output.
    pub fn max_pool(&mut self, x: Tensor, out: u64) -> Tensor {
        self.keep(x);
        self.keep_new(out, INDEX);
        self.fresh(out, x.width)
    }

    /// Average pooling over windows: PyTorch keeps its input.
    pub fn average_pool(&mut self, x: Tensor, out: u64) -> Tensor {
        self.keep(x);
        self.fresh(out, x.width)
    }

    /// Something that needs only shapes on its way back: copies, means, padding, upsampling, rolling, scaling by a
    /// number.
    pub fn copy(&mut self, x: Tensor, out: u64) -> Tensor {
        self.fresh(out, x.width)
    }

    /// A sum or a concatenation: keeps nothing, in the wider type of its parts.
    pub fn join(&mut self, parts: &[Tensor], out: u64) -> Tensor {
        let width = parts.iter().map(|p| p.width).max().unwrap_or(SINGLE);
        self.fresh(out, width)
    }

    /// A product value by value (gates, layer scale): keeps both factors.
    pub fn multiply(&mut self, a: Tensor, b: Tensor) -> Tensor {
        self.keep(a);
        self.keep(b);
        self.fresh(a.values.max(b.values), a.width.max(b.width))
    }

    /// Dropout: keeps its mask, one byte a value on a GPU and one value a value on the CPU.
    pub fn dropout(&mut self, x: Tensor) -> Tensor {
        self.keep_new(x.values, if self.rules.cuda { 1 } else { x.width });
        self.fresh(x.values, x.width)
    }

    /// Softmax: keeps its output. Autocast runs it in single precision.
    pub fn softmax(&mut self, x: Tensor) -> Tensor {
        let width = if self.rules.half { SINGLE } else { x.width };
        let y = self.fresh(x.values, width);
        self.keep(y);
        y
    }

    /// A matrix product of two tensors: keeps both, in half precision under autocast.
    pub fn matmul(&mut self, a: Tensor, b: Tensor, out: u64) -> Tensor {
        let (a, b) = (self.cast(a), self.cast(b));
        self.keep(a);
        self.keep(b);
        self.fresh(out, a.width.max(b.width))
    }

    /// Attention of `rows` queries (all heads counted) on `pairs` pairs (all heads counted), from `parts`: queries, keys
    /// and values apart, or all of them in one. Gives `out` values.
    pub fn attention(&mut self, parts: &[Tensor], rows: u64, pairs: u64, out: u64) -> Tensor {
        let width = if self.rules.half { HALF } else { SINGLE };
        if !self.rules.fused_attention {
            let all = if parts.len() == 1 { parts[0].values } else { parts.iter().map(|p| p.values).sum() };
            let qkv = self.fresh(all, width);
            return self.plain_attention(qkv, pairs, out);
        }
        for part in parts {
            let part = self.cast(*part);
            self.keep(part);
        }
        self.keep_new(rows, SINGLE); // the logarithm of each row's sum
        let y = self.fresh(out, width);
        self.keep(y);
        y
    }

    /// `x`, copied out of its storage where it is only a part of it.
    pub fn part(&mut self, x: Tensor) -> Tensor {
        if x.bytes() < self.storages[x.storage].0 { self.fresh(x.values, x.width) } else { x }
    }

    /// Attention written out: queries (scaled), keys and values are copied for the products, and the table of all
    /// pairs is kept after softmax, and again in half precision where autocast makes a copy for the second product.
    pub fn plain_attention(&mut self, qkv: Tensor, pairs: u64, out: u64) -> Tensor {
        let qkv = self.cast(qkv);
        let part = qkv.values / 3;
        let (q, k, v) =
            (self.fresh(part, qkv.width), self.fresh(part, qkv.width), self.fresh(part, qkv.width));
        let scores = self.matmul(q, k, pairs);
        let shares = self.softmax(scores);
        let y = self.matmul(shares, v, out);
        self.copy(y, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FP32: Rules = Rules { half: false, cuda: false, fused_attention: true };

    #[test]
    fn a_storage_counts_once_and_in_place_relu_adds_nothing_to_its_own_output() {
        let mut tape = Tape::new(FP32);
        let x = tape.input(100);
        let y = tape.product(x, 50); // keeps the input: free
        assert_eq!(tape.kept(), 0);
        let y = tape.batch_norm(y, 5); // 50 values
        let y = tape.by_output(y, true); // 50 values
        tape.product(y, 10); // the same storage
        tape.product(y, 10);
        assert_eq!(tape.kept(), 400);
        assert_eq!(tape.fixed, 40);
    }

    #[test]
    fn autocast_keeps_half_copies_and_max_pooling_long_indices() {
        let mut tape = Tape::new(Rules { half: true, ..FP32 });
        let x = tape.input(100);
        let y = tape.product(x, 50); // the half copy of the input counts
        assert_eq!((tape.kept(), y.width), (200, 2));
        tape.max_pool(y, 10);
        assert_eq!(tape.kept(), 200 + 100 + 80);
    }

    #[test]
    fn cuda_runs_layer_norm_in_single_precision() {
        for (cuda, kept) in [(false, 100 * 2 + 50 * 2), (true, 100 * 2 + 50 * 4)] {
            let mut tape = Tape::new(Rules { half: true, cuda, ..FP32 });
            let x = tape.input(100);
            let y = tape.product(x, 50);
            tape.row_norm(y, 1);
            assert_eq!(tape.kept(), kept + 8);
        }
    }
}

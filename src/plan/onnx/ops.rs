//! ONNX operations on feature maps: what they make, what they train, what training keeps of them.

use super::dims::{self, axis, broadcast};
use super::graph::Node;
use super::moves::{axes, copy, split, view};
use super::run::{Runner, Value, count};
use crate::plan::tape::Tensor;

/// What [`run`] answers for an operation that it does not know.
pub const UNKNOWN: &str = "unknown";

/// Runs one operation that takes a feature map.
///
/// # Errors
/// A sentence, or [`UNKNOWN`].
pub fn run(run: &mut Runner<'_>, node: &Node) -> Result<Vec<Value>, String> {
    let one = |out: Result<Value, String>| out.map(|out| vec![out]);
    match node.op.as_str() {
        "Conv" | "ConvTranspose" => one(conv(run, node)),
        "Gemm" | "MatMul" => one(product(run, node)),
        "BatchNormalization"
        | "LayerNormalization"
        | "InstanceNormalization"
        | "GroupNormalization"
        | "RMSNormalization" => one(norm(run, node)),
        "Relu" | "Sigmoid" | "Tanh" | "Exp" | "Sqrt" | "Reciprocal" => one(activation(run, node, true)),
        "Gelu" | "HardSwish" | "Swish" | "Mish" | "HardSigmoid" | "LeakyRelu" | "Elu" | "Selu" | "Celu"
        | "Softplus" | "Softsign" | "Clip" | "PRelu" | "Erf" | "Abs" | "Log" => {
            one(activation(run, node, false))
        }
        "Pow" => one(activation(run, node, false)),
        "Softmax" | "LogSoftmax" => {
            let x = whole(run, node, 0)?;
            axis(node.int("axis", -1), x.0.dims.len())?;
            let made = run.tape.softmax(x.1);
            one(Ok(run.made(node, &x.0, x.0.dims.clone(), made, 0, 0)))
        }
        "MaxPool" | "AveragePool" | "LpPool" => one(pool(run, node)),
        "GlobalAveragePool" | "GlobalMaxPool" | "ReduceMean" | "ReduceSum" | "ReduceMax" | "ReduceMin"
        | "ReduceL2" => one(reduce(run, node)),
        "Add" | "Sub" | "Sum" | "Max" | "Min" => one(sum(run, node)),
        "Mul" | "Div" => one(multiply(run, node)),
        "Concat" => one(concat(run, node)),
        "Dropout" => {
            // As exported it does nothing; as trained it keeps a mask.
            let (x, tensor) = whole(run, node, 0)?;
            let made = run.tape.dropout(tensor);
            one(Ok(run.made(node, &x, x.dims.clone(), made, 0, 0)))
        }
        "Reshape" | "Flatten" | "Transpose" | "Squeeze" | "Unsqueeze" | "Slice" | "Gather" | "Identity"
        | "Neg" => one(view(run, node)),
        "Split" => split(run, node),
        "Cast" | "CastLike" | "Expand" | "Pad" | "Resize" | "Upsample" | "DepthToSpace" | "SpaceToDepth"
        | "Where" => one(copy(run, node)),
        _ => Err(UNKNOWN.into()),
    }
}

/// The input at `place`, which must be a feature map.
pub(super) fn whole(run: &Runner<'_>, node: &Node, place: usize) -> Result<(Value, Tensor), String> {
    let value = run.needed(node, place)?;
    match value.tensor {
        Some(tensor) => Ok((value, tensor)),
        None => Err("it takes its constants in another order than prep knows".into()),
    }
}

/// Trained values of the input at `place`.
fn trained(run: &Runner<'_>, node: &Node, place: usize) -> u64 {
    run.input(node, place)
        .filter(|v| v.tensor.is_none() && v.dims.len() < 8)
        .map_or(0, |v| count(&v.dims).unwrap_or(0))
}

/// Do the weights at `place`, where their sides are known, have these sides?
fn fits(run: &Runner<'_>, node: &Node, place: usize, wanted: &[u64]) -> Result<(), String> {
    match run.input(node, place).map(|v| v.dims.as_slice()) {
        Some(dims) if !dims.is_empty() && dims != wanted => {
            Err(format!("its weights {} have sides {dims:?} and not {wanted:?}", place + 1))
        }
        _ => Ok(()),
    }
}

fn conv(run: &mut Runner<'_>, node: &Node) -> Result<Value, String> {
    let (x, tensor) = whole(run, node, 0)?;
    let weights = run.needed(node, 1)?;
    let [first, second, kernel @ ..] = weights.dims.as_slice() else {
        return Err("its weights have too few sides".into());
    };
    let told = node.ints("kernel_shape");
    if told.is_some_and(|told| !told.iter().map(|n| *n as u64).eq(kernel.iter().copied())) {
        return Err("its weights are not of the size that it says (kernel_shape)".into());
    }
    let groups = u64::try_from(node.int("group", 1))
        .ok()
        .filter(|g| *g > 0)
        .ok_or("an impossible number of groups")?;
    let (channels, sides) = if node.op == "Conv" {
        if x.dims.get(1).copied() != second.checked_mul(groups) {
            return Err(format!("weights for {second} times {groups} channels"));
        }
        if !first.is_multiple_of(groups) {
            return Err(format!("{first} channels do not fall into {groups} groups"));
        }
        (*first, dims::windows(node, &x.dims, kernel)?)
    } else {
        if x.dims.get(1) != Some(first) {
            return Err(format!("weights for {first} channels"));
        }
        (second.saturating_mul(groups), grown(node, &x.dims, kernel)?)
    };
    fits(run, node, 2, &[channels])?;
    let mut out = vec![x.dims.first().copied().unwrap_or(1), channels];
    out.extend(sides);
    let parameters = trained(run, node, 1) + trained(run, node, 2);
    let values = count(&out)?;
    let mut made = run.tape.product(tensor, values);
    run.measure.conv_values = run.measure.conv_values.saturating_add(values);
    if !node.folded {
        return Ok(run.made(node, &x, out, made, parameters, parameters));
    }
    // As it is trained: no bias, and a batch norm behind it.
    let weights = trained(run, node, 1);
    let value = run.made(node, &x, out, made, weights, weights);
    made = run.tape.batch_norm(made, channels);
    run.measure.buffer_bytes = run.measure.buffer_bytes.saturating_add(8 * channels + 8);
    let norm = Node { op: "BatchNormalization".into(), name: format!("of {}", node.name), ..Node::default() };
    Ok(run.made(&norm, &value, value.dims.clone(), made, 2 * channels, 0))
}

/// The sides of a transposed convolution.
fn grown(node: &Node, dims: &[u64], kernel: &[u64]) -> Result<Vec<u64>, String> {
    let rank = kernel.len();
    if dims.len() != rank + 2 {
        return Err(format!("windows of {rank} sides on {} sides", dims.len()));
    }
    let get = |name: &str, at: usize, default: i64| {
        node.ints(name).and_then(|l| l.get(at).copied()).unwrap_or(default)
    };
    (0..rank)
        .map(|at| {
            let (s, d) = (get("strides", at, 1), get("dilations", at, 1));
            let pads = get("pads", at, 0).saturating_add(get("pads", at + rank, 0));
            let k = i64::try_from(kernel[at]).ok().filter(|k| *k <= 65_536).ok_or("an impossible window")?;
            let side = (dims[at + 2] as i64 - 1)
                .checked_mul(s)
                .and_then(|n| n.checked_add(d.checked_mul(k - 1)?.checked_add(1)?))
                .and_then(|n| n.checked_add(get("output_padding", at, 0)))
                .and_then(|n| n.checked_sub(pads));
            side.and_then(|n| u64::try_from(n).ok()).ok_or_else(|| "an impossible size".to_owned())
        })
        .collect()
}

fn product(run: &mut Runner<'_>, node: &Node) -> Result<Value, String> {
    let (a, b) = (run.needed(node, 0)?, run.needed(node, 1)?);
    let turned = |dims: &[u64], turn: bool| -> Vec<u64> {
        if turn && dims.len() == 2 { vec![dims[1], dims[0]] } else { dims.to_vec() }
    };
    let gemm = node.op == "Gemm";
    let (left, right) = (
        turned(&a.dims, gemm && node.int("transA", 0) != 0),
        turned(&b.dims, gemm && node.int("transB", 0) != 0),
    );
    let out = dims::matmul(&left, &right)?;
    let values = count(&out)?;
    match (a.tensor, b.tensor) {
        (Some(x), None) => {
            let parameters = trained(run, node, 1) + if gemm { trained(run, node, 2) } else { 0 };
            let made = run.tape.product(x, values);
            Ok(run.made(node, &a, out, made, parameters, parameters))
        }
        (None, Some(x)) => {
            let parameters = trained(run, node, 0);
            let made = run.tape.product(x, values);
            Ok(run.made(node, &b, out, made, parameters, parameters))
        }
        (Some(x), Some(y)) => {
            // Heads lie across their storage: PyTorch copies such a part before it multiplies.
            let (x, y) = (run.tape.part(x), run.tape.part(y));
            let made = run.tape.matmul(x, y, values);
            Ok(run.made(node, &a, out, made, 0, 0))
        }
        (None, None) => Err("a product of constants".into()),
    }
}

fn norm(run: &mut Runner<'_>, node: &Node) -> Result<Value, String> {
    let (x, tensor) = whole(run, node, 0)?;
    let parameters = trained(run, node, 1) + trained(run, node, 2);
    let channels = x.dims.get(1).copied().unwrap_or(1);
    let made = match node.op.as_str() {
        "BatchNormalization" => {
            (1..5).try_for_each(|place| fits(run, node, place, &[channels]))?;
            run.measure.batch_norm = true;
            run.measure.buffer_bytes = run.measure.buffer_bytes.saturating_add(8 * channels + 8);
            run.tape.batch_norm(tensor, channels)
        }
        "InstanceNormalization" => {
            (1..3).try_for_each(|place| fits(run, node, place, &[channels]))?;
            run.tape.row_norm(tensor, x.dims.first().copied().unwrap_or(1).saturating_mul(channels))
        }
        "GroupNormalization" => {
            let groups = u64::try_from(node.int("num_groups", 1)).unwrap_or(1);
            run.tape.row_norm(tensor, x.dims.first().copied().unwrap_or(1).saturating_mul(groups))
        }
        _ => {
            let at = axis(node.int("axis", -1), x.dims.len())?;
            (1..3).try_for_each(|place| fits(run, node, place, &x.dims[at..]))?;
            run.tape.row_norm(tensor, count(&x.dims[..at])?)
        }
    };
    Ok(run.made(node, &x, x.dims.clone(), made, parameters, 0))
}

fn activation(run: &mut Runner<'_>, node: &Node, by_output: bool) -> Result<Value, String> {
    let (x, tensor) = whole(run, node, 0)?;
    let made = if by_output { run.tape.by_output(tensor, false) } else { run.tape.by_input(tensor, false) };
    let parameters = if node.op == "PRelu" { trained(run, node, 1) } else { 0 };
    Ok(run.made(node, &x, x.dims.clone(), made, parameters, 0))
}

fn pool(run: &mut Runner<'_>, node: &Node) -> Result<Value, String> {
    let (x, tensor) = whole(run, node, 0)?;
    let kernel: Option<Vec<u64>> =
        node.ints("kernel_shape").and_then(|k| k.iter().map(|n| u64::try_from(*n).ok()).collect());
    let sides = dims::windows(node, &x.dims, &kernel.ok_or("it does not say how large its windows are")?)?;
    let mut out = x.dims[..2].to_vec();
    out.extend(sides);
    let values = count(&out)?;
    let made = if node.op == "MaxPool" {
        run.tape.max_pool(tensor, values)
    } else {
        run.tape.average_pool(tensor, values)
    };
    Ok(run.made(node, &x, out, made, 0, 0))
}

fn reduce(run: &mut Runner<'_>, node: &Node) -> Result<Value, String> {
    let (x, tensor) = whole(run, node, 0)?;
    let rank = x.dims.len();
    let global = node.op.starts_with("Global");
    let all: Vec<i64> = (if global { 2 } else { 0 }..rank as i64).collect();
    let chosen = if global { all } else { axes(run, node).filter(|a| !a.is_empty()).unwrap_or(all) };
    let chosen: Vec<usize> = chosen.iter().map(|at| axis(*at, rank)).collect::<Result<_, _>>()?;
    let keep = global || node.int("keepdims", 1) != 0;
    let out: Vec<u64> = x
        .dims
        .iter()
        .enumerate()
        .filter_map(|(at, side)| if chosen.contains(&at) { keep.then_some(1) } else { Some(*side) })
        .collect();
    let values = count(&out)?;
    let made = match node.op.as_str() {
        "GlobalMaxPool" | "ReduceMax" | "ReduceMin" => run.tape.max_pool(tensor, values),
        _ => run.tape.copy(tensor, values),
    };
    Ok(run.made(node, &x, out, made, 0, 0))
}

fn sum(run: &mut Runner<'_>, node: &Node) -> Result<Value, String> {
    let inputs: Vec<Value> =
        (0..node.inputs.len()).map(|at| run.needed(node, at)).collect::<Result<_, _>>()?;
    let mut out = Vec::new();
    for value in &inputs {
        out = broadcast(&out, &value.dims)?;
    }
    let mut parameters = 0_u64;
    let mut parts = Vec::new();
    let mut from = None;
    // A bias that an exporter put behind a product belongs to it, and takes the product's type.
    let bias = inputs.iter().all(|v| v.tensor.is_some() || v.dims.len() <= 1);
    for value in &inputs {
        match value.tensor {
            Some(tensor) => {
                parts.push(tensor);
                from.get_or_insert(value);
            }
            None if value.trained => {
                let values = count(&value.dims)?;
                parameters = parameters.saturating_add(values);
                if !bias {
                    parts.push(run.tape.parameter(values));
                }
            }
            None => {}
        }
    }
    let Some(from) = from.cloned() else { return Err("a sum of constants".into()) };
    let made = run.tape.join(&parts, count(&out)?);
    Ok(run.made(node, &from, out, made, parameters, if bias { parameters } else { 0 }))
}

fn multiply(run: &mut Runner<'_>, node: &Node) -> Result<Value, String> {
    let (a, b) = (run.needed(node, 0)?, run.needed(node, 1)?);
    let out = broadcast(&a.dims, &b.dims)?;
    let values = count(&out)?;
    let (made, from, parameters) = match (a.tensor, b.tensor) {
        (Some(x), Some(y)) => (run.tape.multiply(x, y), &a, 0),
        (Some(x), None) | (None, Some(x)) => {
            let (from, other) = if a.tensor.is_some() { (&a, &b) } else { (&b, &a) };
            if other.trained {
                let values = count(&other.dims)?;
                let factor = run.tape.parameter(values);
                (run.tape.multiply(x, factor), from, values)
            } else {
                (run.tape.copy(x, values), from, 0)
            }
        }
        (None, None) => return Err("a product of constants".into()),
    };
    Ok(run.made(node, from, out, made, parameters, 0))
}

fn concat(run: &mut Runner<'_>, node: &Node) -> Result<Value, String> {
    let inputs: Vec<Value> =
        (0..node.inputs.len()).map(|at| run.needed(node, at)).collect::<Result<_, _>>()?;
    let first = inputs.first().ok_or("of nothing")?;
    let at = axis(node.int("axis", 0), first.dims.len())?;
    let mut out = first.dims.clone();
    out[at] = 0;
    let (mut parts, mut parameters, mut from) = (Vec::new(), 0_u64, None);
    for value in &inputs {
        if value.dims.len() != out.len() {
            return Err("of shapes that do not fit together".into());
        }
        out[at] = out[at].saturating_add(value.dims[at]);
        match value.tensor {
            Some(tensor) => {
                parts.push(tensor);
                from.get_or_insert(value);
            }
            None => {
                let values = count(&value.dims)?;
                parts.push(run.tape.parameter(values));
                if value.trained {
                    parameters = parameters.saturating_add(values);
                }
            }
        }
    }
    let Some(from) = from.cloned() else { return Err("of constants".into()) };
    let made = run.tape.join(&parts, count(&out)?);
    Ok(run.made(node, &from, out, made, parameters, 0))
}

//! ONNX operations that move values and compute none: views, cuts, copies, enlargements.

use super::dims::{self, axis, broadcast};
use super::graph::Node;
use super::ops::{UNKNOWN, whole};
use super::run::{Runner, Value, count};

/// The axes of a node: an attribute before opset 13, an input since.
pub fn axes(run: &Runner<'_>, node: &Node) -> Option<Vec<i64>> {
    node.ints("axes").map(<[i64]>::to_vec).or_else(|| run.input(node, 1)?.ints.clone())
}

/// `dims` with sides of 1 put in or taken out.
pub fn squeezed(dims: &[u64], axes: &[i64], put_in: bool) -> Result<Vec<u64>, String> {
    if !put_in {
        let chosen: Vec<usize> = axes.iter().map(|at| axis(*at, dims.len())).collect::<Result<_, _>>()?;
        return Ok(dims.iter().enumerate().filter(|(at, _)| !chosen.contains(at)).map(|(_, n)| *n).collect());
    }
    let rank = dims.len() + axes.len();
    let mut chosen: Vec<usize> = axes.iter().map(|at| axis(*at, rank)).collect::<Result<_, _>>()?;
    chosen.sort_unstable();
    let mut out = dims.to_vec();
    for at in chosen {
        if at > out.len() {
            return Err("a side that is not there".into());
        }
        out.insert(at, 1);
    }
    Ok(out)
}

pub(super) fn view(run: &mut Runner<'_>, node: &Node) -> Result<Value, String> {
    let (x, tensor) = whole(run, node, 0)?;
    let rank = x.dims.len();
    let out = match node.op.as_str() {
        "Reshape" => {
            let shape = run.needed(node, 1)?.ints.ok_or("prep cannot tell what shape it makes")?;
            dims::reshape(&x.dims, &shape, node.int("allowzero", 0) != 0)?
        }
        "Flatten" => {
            let at = node.int("axis", 1);
            let at = if at == rank as i64 { rank } else { axis(at, rank)? };
            vec![count(&x.dims[..at])?, count(&x.dims[at..])?]
        }
        "Transpose" => {
            let order = node.ints("perm").map_or_else(|| (0..rank as i64).rev().collect(), <[i64]>::to_vec);
            if !dims::is_order(&order, rank) {
                return Err("an order of other sides".into());
            }
            order.iter().map(|at| Ok(x.dims[axis(*at, rank)?])).collect::<Result<_, String>>()?
        }
        "Squeeze" | "Unsqueeze" => {
            let axes = axes(run, node)
                .unwrap_or_else(|| (0..rank as i64).filter(|at| x.dims[*at as usize] == 1).collect());
            squeezed(&x.dims, &axes, node.op == "Unsqueeze")?
        }
        "Slice" => sliced(run, node, &x)?,
        "Gather" => {
            let at = axis(node.int("axis", 0), rank)?;
            let mut out = x.dims[..at].to_vec();
            out.extend(run.needed(node, 1)?.dims);
            out.extend(&x.dims[at + 1..]);
            out
        }
        _ => x.dims.clone(),
    };
    let made = tensor.view(count(&out)?);
    Ok(Value { dims: out, tensor: Some(made), ..Value::default() })
}

fn sliced(run: &Runner<'_>, node: &Node, x: &Value) -> Result<Vec<u64>, String> {
    let list = |name: &str, place: usize| {
        node.ints(name).map(<[i64]>::to_vec).or_else(|| run.input(node, place).and_then(|v| v.ints.clone()))
    };
    let (Some(starts), Some(ends)) = (list("starts", 1), list("ends", 2)) else {
        return Err("prep cannot tell what it takes".into());
    };
    let chosen = list("axes", 3).unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = list("steps", 4).unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), chosen.len(), steps.len()].iter().any(|n| *n != starts.len()) {
        return Err("starts, ends, axes and steps are not of the same number".into());
    }
    let mut out = x.dims.clone();
    for (i, at) in chosen.iter().enumerate() {
        let at = axis(*at, out.len())?;
        out[at] = dims::slice(out[at], starts[i], ends[i], steps[i])?;
    }
    Ok(out)
}

pub(super) fn split(run: &mut Runner<'_>, node: &Node) -> Result<Vec<Value>, String> {
    let (x, tensor) = whole(run, node, 0)?;
    let at = axis(node.int("axis", 0), x.dims.len())?;
    let parts = node.outputs.len().max(1) as u64;
    let told =
        node.ints("split").map(<[i64]>::to_vec).or_else(|| run.input(node, 1).and_then(|v| v.ints.clone()));
    let sides: Vec<u64> = match told {
        Some(list) => list
            .iter()
            .map(|n| u64::try_from(*n).map_err(|_| "a part of less than nothing".to_owned()))
            .collect::<Result<_, _>>()?,
        None => vec![x.dims[at].div_ceil(parts); parts as usize],
    };
    sides
        .into_iter()
        .map(|side| {
            let mut out = x.dims.clone();
            out[at] = side;
            let values = count(&out)?;
            Ok(Value { dims: out, tensor: Some(tensor.view(values)), ..Value::default() })
        })
        .collect()
}

pub(super) fn copy(run: &mut Runner<'_>, node: &Node) -> Result<Value, String> {
    let place = (0..node.inputs.len())
        .find(|at| run.input(node, *at).is_some_and(|v| v.tensor.is_some()))
        .unwrap_or(0);
    let (x, tensor) = whole(run, node, place)?;
    let out = match node.op.as_str() {
        "Expand" => {
            let shape = run.needed(node, 1)?.ints.ok_or("prep cannot tell what shape it makes")?;
            let shape: Vec<u64> = shape
                .iter()
                .map(|n| u64::try_from(*n).map_err(|_| "an impossible side".to_owned()))
                .collect::<Result<_, _>>()?;
            broadcast(&x.dims, &shape)?
        }
        "Where" => {
            let mut out = Vec::new();
            for at in 0..node.inputs.len() {
                out = broadcast(&out, &run.needed(node, at)?.dims)?;
            }
            out
        }
        "Pad" => padded(run, node, &x)?,
        "Resize" | "Upsample" => resized(run, node, &x)?,
        "DepthToSpace" | "SpaceToDepth" => {
            let n = u64::try_from(node.int("blocksize", 1))
                .ok()
                .filter(|n| (1..=4096).contains(n))
                .ok_or("an impossible block")?;
            let [b, c, h, w] = x.dims[..] else { return Err("of other than four sides".into()) };
            if node.op == "DepthToSpace" {
                vec![b, c / (n * n), h.saturating_mul(n), w.saturating_mul(n)]
            } else {
                vec![b, c.saturating_mul(n * n), h / n, w / n]
            }
        }
        _ => x.dims.clone(),
    };
    let made = run.tape.copy(tensor, count(&out)?);
    Ok(run.made(node, &x, out, made, 0, 0))
}

/// `Resize` with sizes or scales; before opset 11 `Upsample` had scales as its second input.
fn resized(run: &Runner<'_>, node: &Node, x: &Value) -> Result<Vec<u64>, String> {
    if let Some(sizes) = run.input(node, 3).and_then(|v| v.ints.clone()).filter(|s| s.len() == x.dims.len()) {
        return sizes
            .iter()
            .map(|n| u64::try_from(*n).map_err(|_| "an impossible size".to_owned()))
            .collect();
    }
    let scales = |place: usize| {
        run.input(node, place).and_then(|v| v.floats.clone()).filter(|s| s.len() == x.dims.len())
    };
    let scales = scales(2).or_else(|| scales(1)).ok_or(UNKNOWN)?;
    x.dims
        .iter()
        .zip(scales)
        .map(|(side, scale)| {
            let grown = *side as f64 * f64::from(scale);
            if (1.0..1e9).contains(&grown) { Ok(grown as u64) } else { Err("an impossible size".to_owned()) }
        })
        .collect()
}

fn padded(run: &Runner<'_>, node: &Node, x: &Value) -> Result<Vec<u64>, String> {
    let pads =
        node.ints("pads").map(<[i64]>::to_vec).or_else(|| run.input(node, 1).and_then(|v| v.ints.clone()));
    let pads = pads.ok_or("prep cannot tell how much it adds")?;
    let chosen =
        run.input(node, 3).and_then(|v| v.ints.clone()).unwrap_or_else(|| (0..x.dims.len() as i64).collect());
    if pads.len() != 2 * chosen.len() {
        return Err("pads for other sides".into());
    }
    let mut out = x.dims.clone();
    for (i, at) in chosen.iter().enumerate() {
        let at = axis(*at, out.len())?;
        let side = (out[at] as i64).checked_add(pads[i]).and_then(|n| n.checked_add(pads[i + chosen.len()]));
        out[at] = side.and_then(|n| u64::try_from(n).ok()).ok_or("an impossible size")?;
    }
    Ok(out)
}

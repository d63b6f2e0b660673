//! Shapes of ONNX operations, the batch among the sides.

use super::graph::Node;
use super::run::Runner;

/// A negative index counts from the end.
pub fn axis(at: i64, rank: usize) -> Result<usize, String> {
    let rank = rank as i64;
    let at = if at < 0 { at + rank } else { at };
    usize::try_from(at).ok().filter(|a| (*a as i64) < rank).ok_or_else(|| format!("side {at} of {rank}"))
}

/// Two shapes that are stretched to each other.
pub fn broadcast(a: &[u64], b: &[u64]) -> Result<Vec<u64>, String> {
    let rank = a.len().max(b.len());
    let side = |dims: &[u64], at: usize| (at + dims.len()).checked_sub(rank).map_or(1, |at| dims[at]);
    (0..rank)
        .map(|at| match (side(a, at), side(b, at)) {
            (x, y) if x == y => Ok(x),
            (1, y) => Ok(y),
            (x, 1) => Ok(x),
            (x, y) => Err(format!("sides {x} and {y} do not fit together")),
        })
        .collect()
}

/// Is it an order of `rank` sides, each once?
pub fn is_order(order: &[i64], rank: usize) -> bool {
    let mut seen = vec![false; rank];
    order.len() == rank
        && order.iter().all(|at| axis(*at, rank).is_ok_and(|at| !std::mem::replace(&mut seen[at], true)))
}

/// A matrix product.
pub fn matmul(a: &[u64], b: &[u64]) -> Result<Vec<u64>, String> {
    let ([head_a @ .., m, k], [head_b @ .., k2, n]) = (a, b) else {
        return Err("a product of less than two sides".into());
    };
    if k != k2 {
        return Err(format!("sides {k} and {k2} do not fit together"));
    }
    let mut dims = broadcast(head_a, head_b)?;
    dims.extend([*m, *n]);
    Ok(dims)
}

/// The sides after batch and channels, of windows: convolutions and pools.
pub fn windows(node: &Node, dims: &[u64], kernel: &[u64]) -> Result<Vec<u64>, String> {
    let rank = kernel.len();
    if dims.len() != rank + 2 {
        return Err(format!("windows of {rank} sides on {} sides", dims.len()));
    }
    let list =
        |name: &str, default: i64| node.ints(name).map_or_else(|| vec![default; rank], <[i64]>::to_vec);
    let (strides, dilations) = (list("strides", 1), list("dilations", 1));
    let pads = node.ints("pads").map_or_else(|| vec![0; 2 * rank], <[i64]>::to_vec);
    if strides.len() != rank || dilations.len() != rank || pads.len() != 2 * rank {
        return Err("strides, pads and dilations are not of the same number of sides".into());
    }
    let (auto, ceil) = (node.text("auto_pad").unwrap_or("NOTSET"), node.int("ceil_mode", 0) != 0);
    (0..rank)
        .map(|at| {
            let (n, s, d) = (dims[at + 2] as i64, strides[at], dilations[at]);
            let k = i64::try_from(kernel[at])
                .ok()
                .filter(|k| (1..=65_536).contains(k))
                .ok_or("an impossible window")?;
            if !(1..=65_536).contains(&s) || !(1..=65_536).contains(&d) {
                return Err("an impossible stride".to_owned());
            }
            if auto.starts_with("SAME") {
                return Ok((n as u64).div_ceil(s as u64));
            }
            let (before, after) = if auto == "VALID" { (0, 0) } else { (pads[at], pads[at + rank]) };
            if ![before, after].iter().all(|pad| (-65_536..=65_536).contains(pad)) {
                return Err("an impossible padding".to_owned());
            }
            let room = n.saturating_add(before).saturating_add(after).saturating_sub(d * (k - 1) + 1);
            if room < 0 {
                return Err("the pictures are too small for this network".to_owned());
            }
            let mut count = if ceil { (room + s - 1) / s } else { room / s } + 1;
            if ceil && (count - 1) * s >= n.saturating_add(before) {
                count -= 1;
            }
            Ok(count as u64)
        })
        .collect()
}

/// A reshape to `shape`, where 0 keeps a side and -1 takes what is left.
pub fn reshape(dims: &[u64], shape: &[i64], allow_zero: bool) -> Result<Vec<u64>, String> {
    let all = super::run::count(dims)?;
    let mut out = Vec::with_capacity(shape.len());
    let (mut rest, mut product) = (None, 1_u64);
    for (at, side) in shape.iter().enumerate() {
        let side = match side {
            -1 if rest.is_none() => {
                rest = Some(at);
                1
            }
            0 if !allow_zero => *dims.get(at).ok_or("it keeps a side that is not there")?,
            n => u64::try_from(*n).map_err(|_| format!("a side of {n}"))?,
        };
        product = product.checked_mul(side).ok_or("a tensor larger than any network's")?;
        out.push(side);
    }
    if let Some(at) = rest {
        if product == 0 || all % product != 0 {
            return Err(format!("{all} values do not fall into {product}"));
        }
        out[at] = all / product;
    } else if product != all {
        return Err(format!("{all} values cannot become {product}"));
    }
    Ok(out)
}

/// What a slice leaves of a side.
pub fn slice(side: u64, start: i64, end: i64, step: i64) -> Result<u64, String> {
    let n = side as i64;
    if step == 0 || step == i64::MIN {
        return Err("a slice with an impossible step".into());
    }
    let place = |at: i64| if at < 0 { at.saturating_add(n) } else { at };
    let (from, to, step) = if step > 0 {
        (place(start).clamp(0, n), place(end).clamp(0, n), step)
    } else {
        // Backwards: the same number of places, counted from the other end.
        let (from, to) = (place(start).clamp(-1, n - 1), place(end).clamp(-1, n - 1));
        (to, from, -step)
    };
    Ok((to - from).max(0).unsigned_abs().div_ceil(step.unsigned_abs()))
}

/// The shape of what a node makes of constants, where it is simple to tell.
pub fn of_constants(run: &Runner<'_>, node: &Node) -> Option<Vec<u64>> {
    let x = run.input(node, 0).map(|v| v.dims.clone());
    match node.op.as_str() {
        "Cast" | "Identity" | "Sqrt" | "Neg" | "Not" | "Reciprocal" | "Relu" | "Sigmoid" | "Exp" | "Log"
        | "Clip" | "ScatterND" | "Tanh" => x,
        "Add" | "Sub" | "Mul" | "Div" | "Equal" | "Less" | "Greater" | "Where" | "Pow" | "And" | "Or"
        | "Mod" => {
            let mut dims = Vec::new();
            for place in 0..node.inputs.len() {
                dims = broadcast(&dims, &run.input(node, place)?.dims).ok()?;
            }
            Some(dims)
        }
        "ConstantOfShape" | "Expand" => {
            let shape = run.input(node, node.inputs.len().checked_sub(1)?)?.ints.clone()?;
            let dims: Option<Vec<u64>> = shape.iter().map(|n| u64::try_from(*n).ok()).collect();
            if node.op == "Expand" { broadcast(&x?, &dims?).ok() } else { dims }
        }
        "Transpose" => {
            let x = x?;
            let perm = node.ints("perm").map_or_else(|| (0..x.len() as i64).rev().collect(), <[i64]>::to_vec);
            perm.iter().map(|at| x.get(axis(*at, x.len()).ok()?).copied()).collect()
        }
        "Reshape" => reshape(&x?, run.input(node, 1)?.ints.as_deref()?, false).ok(),
        "Unsqueeze" | "Squeeze" => {
            let axes = super::moves::axes(run, node)?;
            super::moves::squeezed(&x?, &axes, node.op == "Unsqueeze").ok()
        }
        "Gather" => {
            let (x, at) = (x?, axis(node.int("axis", 0), run.input(node, 0)?.dims.len()).ok()?);
            let mut dims = x[..at].to_vec();
            dims.extend(&run.input(node, 1)?.dims);
            dims.extend(&x[at + 1..]);
            Some(dims)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_follow_the_standard() {
        assert_eq!(reshape(&[1, 768, 14, 14], &[0, 768, -1], false), Ok(vec![1, 768, 196]));
        assert!(reshape(&[2, 3], &[4, -1], false).is_err() && reshape(&[2, 3], &[-2], false).is_err());
        assert_eq!(matmul(&[12, 197, 64], &[12, 64, 197]), Ok(vec![12, 197, 197]));
        assert_eq!(broadcast(&[1, 64, 56, 56], &[64, 1, 1]), Ok(vec![1, 64, 56, 56]));
        assert_eq!(slice(10, 0, i64::MAX, 2), Ok(5));
        assert_eq!(slice(10, -3, i64::MAX, 1), Ok(3));
        assert_eq!(slice(10, i64::MAX, i64::MIN, -1), Ok(10));
        assert_eq!(axis(-1, 4), Ok(3));
        assert!(axis(4, 4).is_err() && axis(-5, 4).is_err());
    }
}

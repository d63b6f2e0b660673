//! Shapes that are computed in the graph: small whole numbers are followed, so that a reshape knows what it makes.

use super::dims::axis;
use super::graph::{Attribute, Node};
use super::run::{Runner, Value};

/// The most numbers that are followed at once.
const MOST: usize = 4096;

/// A list of its own.
fn list(values: Vec<i64>) -> Option<Value> {
    let dims = vec![values.len() as u64];
    (values.len() <= MOST).then_some(Value { dims, ints: Some(values), ..Value::default() })
}

/// The value of a node whose inputs are small whole numbers, or that makes some.
pub fn known(run: &Runner<'_>, node: &Node) -> Option<Value> {
    let ints = |place: usize| run.input(node, place).and_then(|v| v.ints.clone());
    let like = |place: usize, values: Vec<i64>| {
        let dims = run.input(node, place)?.dims.clone();
        Some(Value { dims, ints: Some(values), ..Value::default() })
    };
    match node.op.as_str() {
        "Constant" => constant(node),
        "Shape" => {
            let dims = &run.input(node, 0)?.dims;
            let place = |name: &str, default: i64| {
                let at = node.int(name, default);
                let at = if at < 0 { at + dims.len() as i64 } else { at };
                usize::try_from(at).unwrap_or(0).min(dims.len())
            };
            let (start, end) = (place("start", 0), place("end", dims.len() as i64));
            list(dims.get(start..end.max(start))?.iter().map(|n| *n as i64).collect())
        }
        "Cast" | "Identity" => like(0, ints(0)?),
        "Unsqueeze" | "Squeeze" => {
            let values = ints(0)?;
            let dims =
                if node.op == "Squeeze" && values.len() == 1 { vec![] } else { vec![values.len() as u64] };
            Some(Value { dims, ints: Some(values), ..Value::default() })
        }
        "Reshape" => {
            let values = ints(0)?;
            let dims = super::dims::reshape(&[values.len() as u64], &ints(1)?, false).ok()?;
            Some(Value { dims, ints: Some(values), ..Value::default() })
        }
        // Tables of two columns: PyTorch turns its order of padding into ONNX's with them.
        "Transpose" => {
            let (values, dims) = (ints(0)?, &run.input(node, 0)?.dims);
            let [rows, columns] = dims[..] else { return None };
            let (rows, columns) = (rows as usize, columns as usize);
            let turned = (0..columns).flat_map(|c| (0..rows).map(move |r| r * columns + c));
            let turned: Option<Vec<i64>> = turned.map(|at| values.get(at).copied()).collect();
            Some(Value { dims: vec![columns as u64, rows as u64], ints: Some(turned?), ..Value::default() })
        }
        "ConstantOfShape" => {
            let shape = ints(0)?;
            let n = shape
                .iter()
                .try_fold(1_i64, |all, n| all.checked_mul(*n))
                .filter(|n| (0..=64).contains(n))?;
            let fill = match node.attributes.get("value") {
                Some(Attribute::Tensor(given)) => *given.ints.as_ref()?.first()?,
                _ => return None,
            };
            list(vec![fill; n as usize])
        }
        _ => picked(run, node),
    }
}

/// The value of a node that picks from small whole numbers, joins or reckons with them.
fn picked(run: &Runner<'_>, node: &Node) -> Option<Value> {
    let ints = |place: usize| run.input(node, place).and_then(|v| v.ints.clone());
    let like = |place: usize, values: Vec<i64>| {
        let dims = run.input(node, place)?.dims.clone();
        Some(Value { dims, ints: Some(values), ..Value::default() })
    };
    match node.op.as_str() {
        "Gather" => {
            let (values, at) = (ints(0)?, ints(1)?);
            if run.input(node, 0)?.dims.len() > 1 {
                return None;
            }
            let picked: Option<Vec<i64>> =
                at.iter().map(|at| values.get(axis(*at, values.len()).ok()?).copied()).collect();
            like(1, picked?)
        }
        "Concat" => {
            let mut all = Vec::new();
            for place in 0..node.inputs.len() {
                all.extend(ints(place)?);
                if all.len() > MOST {
                    return None;
                }
            }
            list(all)
        }
        "Slice" => {
            let values = ints(0)?;
            let (start, end) = (*ints(1)?.first()?, *ints(2)?.first()?);
            let step = ints(4).map_or(Some(1), |s| s.first().copied())?;
            if let [rows, columns] = run.input(node, 0)?.dims[..] {
                return backwards(&values, (rows, columns), &ints(3)?, step);
            }
            if step != 1 {
                return None;
            }
            let n = values.len() as i64;
            let place = |at: i64| (if at < 0 { at.saturating_add(n) } else { at }).clamp(0, n) as usize;
            list(values.get(place(start)..place(end))?.to_vec())
        }
        "Add" | "Sub" | "Mul" | "Div" | "Mod" | "Equal" => arithmetic(node.op.as_str(), &ints(0)?, &ints(1)?)
            .and_then(|values| {
                like(usize::from(run.input(node, 0)?.dims.len() < run.input(node, 1)?.dims.len()), values)
            }),
        "Where" => {
            let (choice, a, b) = (ints(0)?, ints(1)?, ints(2)?);
            let n = choice.len().max(a.len()).max(b.len());
            let pick =
                |list: &[i64], at: usize| if list.len() == 1 { Some(list[0]) } else { list.get(at).copied() };
            let values: Option<Vec<i64>> =
                (0..n).map(|at| if pick(&choice, at)? != 0 { pick(&a, at) } else { pick(&b, at) }).collect();
            list(values?)
        }
        _ => None,
    }
}

/// The rows of a table in the opposite order; no other slice of tables is followed.
fn backwards(values: &[i64], (rows, columns): (u64, u64), axes: &[i64], step: i64) -> Option<Value> {
    if step != -1 || *axes != [0] || columns == 0 || values.len() as u64 != rows.checked_mul(columns)? {
        return None;
    }
    let turned = values.chunks_exact(columns as usize).rev().flatten().copied().collect();
    Some(Value { dims: vec![rows, columns], ints: Some(turned), ..Value::default() })
}

fn constant(node: &Node) -> Option<Value> {
    match node
        .attributes
        .get("value")
        .or_else(|| node.attributes.get("value_ints"))
        .or_else(|| node.attributes.get("value_int"))?
    {
        Attribute::Tensor(given) => Some(Value::given(given)),
        Attribute::Int(n) => Some(Value { ints: Some(vec![*n]), ..Value::default() }),
        Attribute::Ints(list) => {
            Some(Value { dims: vec![list.len() as u64], ints: Some(list.clone()), ..Value::default() })
        }
        _ => None,
    }
}

fn arithmetic(op: &str, a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
    let n = a.len().max(b.len());
    let pick = |list: &[i64], at: usize| if list.len() == 1 { Some(list[0]) } else { list.get(at).copied() };
    (0..n)
        .map(|at| {
            let (a, b) = (pick(a, at)?, pick(b, at)?);
            match op {
                "Add" => a.checked_add(b),
                "Sub" => a.checked_sub(b),
                "Mul" => a.checked_mul(b),
                "Div" => a.checked_div(b),
                "Mod" => a.checked_rem_euclid(b),
                _ => Some(i64::from(a == b)),
            }
        })
        .collect()
}

//! The messages of an ONNX file: nodes, attributes, tensors, shapes; all of them without what planning does not need.

use std::io::{Read, Seek};

use super::graph::{Attribute, Given, Names, Node, Sides};
use super::wire::{Field, Wire};

/// The most sides of a tensor.
const SIDES: usize = 16;
/// Tensors of whole numbers up to this many values are read: they are shapes, axes and indices.
const SMALL: usize = 4096;

/// An operation.
pub(super) fn read_node<R: Read + Seek>(
    wire: &mut Wire<R>,
    bytes: u64,
    names: &mut Names,
) -> Result<Node, String> {
    let end = wire.at + bytes;
    let mut node = Node::default();
    while let Some((number, field)) = wire.field(end)? {
        match (number, field) {
            (1, Field::Bytes(bytes)) => {
                let name = wire.text(bytes)?;
                node.inputs.push(if name.is_empty() { None } else { Some(names.number(name)?) });
            }
            (2, Field::Bytes(bytes)) => {
                let name = wire.text(bytes)?;
                node.outputs.push(names.number(name)?);
            }
            (3, Field::Bytes(bytes)) => node.name = wire.text(bytes)?,
            (4, Field::Bytes(bytes)) => node.op = wire.text(bytes)?,
            (5, Field::Bytes(bytes)) => {
                if let Some((name, attribute)) = read_attribute(wire, bytes)? {
                    node.attributes.insert(name, attribute);
                }
            }
            (_, Field::Bytes(bytes)) => wire.skip(bytes)?,
            _ => {}
        }
    }
    Ok(node)
}

fn read_attribute<R: Read + Seek>(
    wire: &mut Wire<R>,
    bytes: u64,
) -> Result<Option<(String, Attribute)>, String> {
    let end = wire.at + bytes;
    let (mut name, mut value, mut ints) = (String::new(), None, Vec::new());
    while let Some((number, field)) = wire.field(end)? {
        match (number, field) {
            (1, Field::Bytes(bytes)) => name = wire.text(bytes)?,
            (2, Field::Fixed(bits)) => value = Some(Attribute::Float(f32::from_bits(bits as u32))),
            (3, Field::Number(n)) => value = Some(Attribute::Int(n as i64)),
            (4, Field::Bytes(bytes)) if bytes <= 4096 => value = Some(Attribute::Text(wire.text(bytes)?)),
            (5, Field::Bytes(bytes)) => value = Some(Attribute::Tensor(read_tensor(wire, bytes)?.1)),
            (8, Field::Number(n)) => push_int(&mut ints, n)?,
            (8, Field::Bytes(bytes)) => {
                let end = wire.at + bytes;
                while wire.at < end {
                    push_int(&mut ints, wire.number(end)?)?;
                }
            }
            (_, Field::Bytes(bytes)) => wire.skip(bytes)?,
            _ => {}
        }
    }
    if !ints.is_empty() {
        wire.keep(8 * ints.len() as u64)?;
        value = Some(Attribute::Ints(ints));
    }
    Ok(value.map(|value| (name, value)))
}

fn push_int(ints: &mut Vec<i64>, n: u64) -> Result<(), String> {
    if ints.len() == SMALL {
        return Err("an attribute with more numbers than any operation takes".into());
    }
    ints.push(n as i64);
    Ok(())
}

/// A tensor's name, sides, and values where they are a few whole numbers.
pub(super) fn read_tensor<R: Read + Seek>(wire: &mut Wire<R>, bytes: u64) -> Result<(String, Given), String> {
    let end = wire.at + bytes;
    let (mut name, mut given, mut kind) = (String::new(), Given::default(), 0);
    let (mut ints, mut floats, mut raw) = (Vec::new(), Vec::new(), None);
    while let Some((number, field)) = wire.field(end)? {
        match (number, field) {
            (1, Field::Number(n)) => push_side(&mut given.dims, n)?,
            (1, Field::Bytes(bytes)) => {
                let end = wire.at + bytes;
                while wire.at < end {
                    let n = wire.number(end)?;
                    push_side(&mut given.dims, n)?;
                }
            }
            (2, Field::Number(n)) => kind = n,
            (4, Field::Bytes(bytes)) if bytes <= 4 * SIDES as u64 => {
                floats.extend(
                    wire.bytes(bytes)?.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
                );
            }
            (5 | 7, Field::Number(n)) if ints.len() < SMALL => ints.push(n as i64),
            (5 | 7, Field::Bytes(bytes)) if bytes <= 10 * SMALL as u64 => {
                let end = wire.at + bytes;
                while wire.at < end {
                    let n = wire.number(end)?;
                    if ints.len() < SMALL {
                        ints.push(n as i64);
                    }
                }
            }
            (8, Field::Bytes(bytes)) => name = wire.text(bytes)?,
            (9, Field::Bytes(bytes)) if bytes <= 8 * SMALL as u64 => raw = Some(wire.bytes(bytes)?),
            (_, Field::Bytes(bytes)) => wire.skip(bytes)?,
            _ => {}
        }
    }
    wire.keep(8 * (given.dims.len() + ints.len()) as u64)?;
    // 1 float, 10 half, 11 double, 16 bfloat16; 6 int32, 7 int64, 9 bool.
    given.fractions = matches!(kind, 1 | 10 | 11 | 16);
    if kind == 1 {
        let from_raw = raw.as_ref().filter(|raw| raw.len() <= 4 * SIDES);
        let values = from_raw
            .map(|raw| raw.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect());
        given.floats = values.or_else(|| (!floats.is_empty()).then_some(floats));
    }
    if matches!(kind, 6 | 7 | 9) {
        let count = given.dims.iter().try_fold(1_u64, |all, side| all.checked_mul(*side));
        let from_raw = raw.map(|raw| match kind {
            7 => raw
                .chunks_exact(8)
                .map(|b| i64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
                .collect(),
            6 => raw.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]]).into()).collect(),
            _ => raw.iter().map(|b| (*b).into()).collect(),
        });
        let values: Vec<i64> = from_raw.unwrap_or(ints);
        given.ints = (count == Some(values.len() as u64)).then_some(values);
    }
    Ok((name, given))
}

fn push_side(dims: &mut Vec<u64>, n: u64) -> Result<(), String> {
    if dims.len() == SIDES || n > 1 << 40 {
        return Err("a tensor that no network has".into());
    }
    dims.push(n);
    Ok(())
}

/// A value's name and sides: `ValueInfoProto`, of which only tensors have sides.
pub(super) fn read_value<R: Read + Seek>(
    wire: &mut Wire<R>,
    bytes: u64,
) -> Result<(String, Option<Sides>), String> {
    let end = wire.at + bytes;
    let (mut name, mut dims) = (String::new(), None);
    while let Some((number, field)) = wire.field(end)? {
        match (number, field) {
            (1, Field::Bytes(bytes)) => name = wire.text(bytes)?,
            (2, Field::Bytes(bytes)) => dims = read_type(wire, bytes)?,
            (_, Field::Bytes(bytes)) => wire.skip(bytes)?,
            _ => {}
        }
    }
    Ok((name, dims))
}

/// `TypeProto` > `tensor_type` (1) > `shape` (2) > `dim` (1) > `dim_value` (1).
fn read_type<R: Read + Seek>(wire: &mut Wire<R>, bytes: u64) -> Result<Option<Sides>, String> {
    let mut dims: Option<Sides> = None;
    let type_end = wire.at + bytes;
    while let Some((number, field)) = wire.field(type_end)? {
        let Field::Bytes(bytes) = field else { continue };
        if number != 1 {
            wire.skip(bytes)?;
            continue;
        }
        let tensor_end = wire.at + bytes;
        while let Some((number, field)) = wire.field(tensor_end)? {
            let Field::Bytes(bytes) = field else { continue };
            if number != 2 {
                wire.skip(bytes)?;
                continue;
            }
            let shape_end = wire.at + bytes;
            let sides = dims.get_or_insert_default();
            while let Some((number, field)) = wire.field(shape_end)? {
                let Field::Bytes(bytes) = field else { continue };
                if number != 1 {
                    wire.skip(bytes)?;
                    continue;
                }
                if sides.len() == SIDES {
                    return Err("a tensor that no network has".into());
                }
                sides.push(read_side(wire, bytes)?);
            }
        }
    }
    Ok(dims)
}

fn read_side<R: Read + Seek>(wire: &mut Wire<R>, bytes: u64) -> Result<Option<u64>, String> {
    let end = wire.at + bytes;
    let mut side = None;
    while let Some((number, field)) = wire.field(end)? {
        match (number, field) {
            (1, Field::Number(n)) => side = Some(n).filter(|n| *n > 0 && *n < 1 << 40),
            (_, Field::Bytes(bytes)) => wire.skip(bytes)?,
            _ => {}
        }
    }
    Ok(side)
}

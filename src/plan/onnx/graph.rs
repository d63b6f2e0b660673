//! The graph of an ONNX file: nodes, the shapes of weights and inputs, and the values of small tensors of whole numbers,
//! which say how to reshape.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek};

use super::wire::{Field, Wire};
use crate::plan::net::Size;

/// The most nodes, and the most weights.
const NODES: usize = 200_000;
/// The most names of a graph.
const NAMES: usize = 2_000_000;
/// The most sides of a tensor.
const SIDES: usize = 16;
/// Tensors of whole numbers up to this many values are read: they are shapes, axes and indices.
const SMALL: usize = 4096;

/// A graph, ready to be run.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Nodes, in an order in which they can be run.
    pub(super) nodes: Vec<Node>,
    /// Weights and constants, by value.
    pub(super) given: BTreeMap<usize, Given>,
    /// The pictures.
    pub(super) input: usize,
    /// Their shape as it is written; none where a side is a name.
    pub(super) input_dims: Vec<Option<u64>>,
    /// Shapes that the file tells of values in between.
    pub(super) told: BTreeMap<usize, Vec<Option<u64>>>,
    /// How many values there are.
    pub(super) values: usize,
    /// How many nodes use each value.
    pub(super) uses: Vec<u32>,
    /// Convolutions into which a batch norm was folded.
    pub(super) folded: usize,
    producer: String,
}

/// An operation.
#[derive(Debug, Clone, Default)]
pub struct Node {
    pub(super) op: String,
    pub(super) name: String,
    /// Values that it takes; none for one that is left out.
    pub(super) inputs: Vec<Option<usize>>,
    pub(super) outputs: Vec<usize>,
    pub(super) attributes: BTreeMap<String, Attribute>,
    /// A convolution that had a batch norm behind it before the export.
    pub(super) folded: bool,
}

/// An attribute of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// A whole number.
    Int(i64),
    /// Whole numbers.
    Ints(Vec<i64>),
    /// A fraction.
    Float(f32),
    /// A word.
    Text(String),
    /// A tensor.
    Tensor(Given),
}

/// A tensor that the file brings along.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given {
    /// Its sides.
    pub dims: Vec<u64>,
    /// Its values, where they are a few whole numbers.
    pub ints: Option<Vec<i64>>,
    /// Are they fractions? Then they may be trained.
    pub fractions: bool,
    /// A few single-precision fractions: how much an image is enlarged.
    pub floats: Option<Vec<f32>>,
}

/// Names on their way to numbers.
#[derive(Default)]
struct Names {
    numbers: HashMap<String, usize>,
    texts: Vec<String>,
}

impl Names {
    fn number(&mut self, name: String) -> Result<usize, String> {
        if let Some(number) = self.numbers.get(&name) {
            return Ok(*number);
        }
        if self.texts.len() == NAMES {
            return Err(format!("more than {NAMES} names"));
        }
        self.texts.push(name.clone());
        self.numbers.insert(name, self.texts.len() - 1);
        Ok(self.texts.len() - 1)
    }
}

impl Graph {
    /// Reads the graph of an ONNX file of `length` bytes.
    ///
    /// # Errors
    /// A sentence: what is wrong, and where.
    pub fn read<R: Read + Seek>(reader: R, length: u64) -> Result<Self, String> {
        let mut wire = Wire::new(reader);
        let mut graph = Self::default();
        let mut names = Names::default();
        let mut inputs = Vec::new();
        let mut found = false;
        while let Some((number, field)) = wire.field(length)? {
            match (number, field) {
                (7, Field::Bytes(bytes)) => {
                    found = true;
                    graph.read_graph(&mut wire, bytes, &mut names, &mut inputs)?;
                }
                (2, Field::Bytes(bytes)) => graph.producer = wire.text(bytes)?,
                (_, Field::Bytes(bytes)) => wire.skip(bytes)?,
                _ => {}
            }
        }
        if !found || graph.nodes.is_empty() {
            return Err("this is no ONNX file: there is no graph in it".into());
        }
        graph.finish(&names, inputs)?;
        Ok(graph)
    }

    fn read_graph<R: Read + Seek>(
        &mut self,
        wire: &mut Wire<R>,
        bytes: u64,
        names: &mut Names,
        inputs: &mut Vec<(usize, Vec<Option<u64>>)>,
    ) -> Result<(), String> {
        let end = wire.at + bytes;
        while let Some((number, field)) = wire.field(end)? {
            match (number, field) {
                (1, Field::Bytes(bytes)) => {
                    let node = read_node(wire, bytes, names)?;
                    if self.nodes.len() == NODES {
                        return Err(format!("more than {NODES} operations"));
                    }
                    self.nodes.push(node);
                }
                (5, Field::Bytes(bytes)) => {
                    let (name, given) = read_tensor(wire, bytes)?;
                    if self.given.len() == NODES {
                        return Err(format!("more than {NODES} weights"));
                    }
                    self.given.insert(names.number(name)?, given);
                }
                (11 | 13, Field::Bytes(bytes)) => {
                    let (name, dims) = read_value(wire, bytes)?;
                    let value = names.number(name)?;
                    if let Some(dims) = dims {
                        if number == 11 {
                            inputs.push((value, dims));
                        } else {
                            self.told.insert(value, dims);
                        }
                    }
                }
                (_, Field::Bytes(bytes)) => wire.skip(bytes)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Finds the pictures among the inputs, counts uses, and sees folded batch norms.
    fn finish(&mut self, names: &Names, inputs: Vec<(usize, Vec<Option<u64>>)>) -> Result<(), String> {
        let pictures = |(value, dims): &(usize, Vec<Option<u64>>)| {
            dims.len() == 4 && dims[1].is_none_or(|c| c == 3) && !self.given.contains_key(value)
        };
        let mut found = inputs.into_iter().filter(pictures);
        let Some((input, dims)) = found.next() else {
            return Err("it takes no pictures: no input of the shape batch x 3 x height x width".into());
        };
        if found.next().is_some() {
            return Err("it takes more than one picture at once; prep plans networks with one input".into());
        }
        (self.input, self.input_dims) = (input, dims);
        self.values = names.texts.len();
        self.uses = vec![0; self.values];
        for node in &self.nodes {
            for input in node.inputs.iter().flatten() {
                self.uses[*input] = self.uses[*input].saturating_add(1);
            }
        }
        for node in self.nodes.iter_mut().filter(|n| n.op == "Conv") {
            // PyTorch's exporters name what they make when they fold: weights `onnx::Conv_12`, or the output after the
            // tuple that batch norm gives.
            let weight = node.inputs.get(1).copied().flatten().map_or("", |at| names.texts[at].as_str());
            let out = node.outputs.first().map_or("", |at| names.texts[*at].as_str());
            node.folded = weight.starts_with("onnx::Conv_") || out.starts_with("getitem");
            self.folded += usize::from(node.folded);
        }
        Ok(())
    }

    /// Height and width that the file was made for, where it says so.
    pub fn size(&self) -> Option<Size> {
        let side = |at: usize| self.input_dims.get(at).copied().flatten().and_then(|n| u32::try_from(n).ok());
        Some((side(2)?, side(3)?)).filter(|(h, w)| *h > 0 && *w > 0)
    }

    /// Who wrote it, as in ` by pytorch`.
    pub fn producer(&self) -> String {
        if self.producer.is_empty() {
            String::new()
        } else {
            format!(" by {}", crate::names::shown(&self.producer))
        }
    }

    /// What was assumed.
    pub fn said(&self) -> Vec<String> {
        if self.folded == 0 {
            return Vec::new();
        }
        vec![format!(
            "{} convolutions of the file had their batch norm folded in; the sum counts them as they are trained, apart",
            self.folded
        )]
    }
}

fn read_node<R: Read + Seek>(wire: &mut Wire<R>, bytes: u64, names: &mut Names) -> Result<Node, String> {
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
fn read_tensor<R: Read + Seek>(wire: &mut Wire<R>, bytes: u64) -> Result<(String, Given), String> {
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
    wire.keep(8 * given.dims.len() as u64)?;
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
fn read_value<R: Read + Seek>(
    wire: &mut Wire<R>,
    bytes: u64,
) -> Result<(String, Option<Vec<Option<u64>>>), String> {
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
fn read_type<R: Read + Seek>(wire: &mut Wire<R>, bytes: u64) -> Result<Option<Vec<Option<u64>>>, String> {
    let mut dims: Option<Vec<Option<u64>>> = None;
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

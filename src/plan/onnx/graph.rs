//! The graph of an ONNX file: nodes, the shapes of weights and inputs, and the values of small tensors of whole numbers,
//! which say how to reshape.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read, Seek};

use super::read::{read_node, read_tensor, read_value};
use super::wire::{Field, Wire};
use crate::plan::net::Size;

/// The most nodes, and the most weights.
const NODES: usize = 200_000;
/// The most names of a graph.
const NAMES: usize = 2_000_000;

/// The sides of a value; none where one is a name.
pub type Sides = Vec<Option<u64>>;

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
    pub(super) input_dims: Sides,
    /// Shapes that the file tells of values in between.
    pub(super) told: BTreeMap<usize, Sides>,
    /// How many values there are.
    pub(super) values: usize,
    /// What the file says that it gives out.
    pub(super) outputs: Vec<usize>,
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

/// The inputs of a graph: all of them, and those of which the file tells the shape.
#[derive(Default)]
struct Inputs {
    all: BTreeSet<usize>,
    shaped: Vec<(usize, Sides)>,
}

/// How many inputs an operation must have, of those that prep knows.
fn least_inputs(op: &str) -> usize {
    match op {
        "BatchNormalization" => 5,
        "Where" | "InstanceNormalization" | "GroupNormalization" => 3,
        "Conv" | "ConvTranspose" | "Gemm" | "MatMul" | "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Mod"
        | "Gather" | "Reshape" | "Expand" | "PRelu" | "LayerNormalization" | "RMSNormalization" | "Equal"
        | "Less" | "Greater" | "And" | "Or" => 2,
        "Relu" | "Sigmoid" | "Tanh" | "Exp" | "Sqrt" | "Reciprocal" | "Gelu" | "HardSwish" | "Swish"
        | "Mish" | "HardSigmoid" | "LeakyRelu" | "Elu" | "Selu" | "Celu" | "Softplus" | "Softsign"
        | "Clip" | "Erf" | "Abs" | "Log" | "Softmax" | "LogSoftmax" | "MaxPool" | "AveragePool"
        | "LpPool" | "GlobalAveragePool" | "GlobalMaxPool" | "ReduceMean" | "ReduceSum" | "ReduceMax"
        | "ReduceMin" | "ReduceL2" | "Sum" | "Max" | "Min" | "Concat" | "Dropout" | "Flatten"
        | "Transpose" | "Squeeze" | "Unsqueeze" | "Slice" | "Identity" | "Neg" | "Split" | "Cast"
        | "CastLike" | "Pad" | "Resize" | "Upsample" | "DepthToSpace" | "SpaceToDepth" | "Shape"
        | "ConstantOfShape" => 1,
        _ => 0,
    }
}

/// Names on their way to numbers.
#[derive(Default)]
pub(super) struct Names {
    numbers: HashMap<String, usize>,
    texts: Vec<String>,
}

impl Names {
    pub fn number(&mut self, name: String) -> Result<usize, String> {
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
        let mut inputs = Inputs::default();
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
        inputs: &mut Inputs,
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
                (11..=13, Field::Bytes(bytes)) => {
                    let (name, dims) = read_value(wire, bytes)?;
                    let value = names.number(name)?;
                    match (number, dims) {
                        (11, dims) => {
                            inputs.all.insert(value);
                            inputs.shaped.extend(dims.map(|dims| (value, dims)));
                        }
                        (12, _) => self.outputs.push(value),
                        (_, Some(dims)) => {
                            self.told.insert(value, dims);
                        }
                        (_, None) => {}
                    }
                }
                (_, Field::Bytes(bytes)) => wire.skip(bytes)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Is every value made once, and before it is taken? ONNX wants the operations in such an order. Are the outputs
    /// made?
    fn check(&self, names: &Names, inputs: &BTreeSet<usize>) -> Result<(), String> {
        let mut made = vec![false; names.texts.len()];
        for value in inputs.iter().chain(self.given.keys()) {
            made[*value] = true;
        }
        let name = |value: usize| crate::names::shown(&names.texts[value]).to_string();
        for node in &self.nodes {
            let op = crate::names::shown(&node.op).to_string();
            if let Some(value) = node.inputs.iter().flatten().find(|value| !made[**value]) {
                return Err(format!(
                    "operation {op} takes `{}`, which nothing before it makes",
                    name(*value)
                ));
            }
            let least = least_inputs(&node.op);
            if node.inputs.iter().take(least).flatten().count() < least {
                return Err(format!("operation {op} has fewer inputs than it needs"));
            }
            if node.outputs.is_empty() {
                return Err(format!("operation {op} makes nothing"));
            }
            // An output without a name is one that nobody wants.
            for value in node.outputs.iter().filter(|value| !names.texts[**value].is_empty()) {
                if std::mem::replace(&mut made[*value], true) {
                    return Err(format!("`{}` is made twice", name(*value)));
                }
            }
        }
        if self.outputs.is_empty() {
            return Err("it gives nothing out".into());
        }
        match self.outputs.iter().find(|value| !made[**value]) {
            Some(value) => Err(format!("its output `{}` is never made", name(*value))),
            None => Ok(()),
        }
    }

    /// Finds the pictures among the inputs, counts uses, and sees folded batch norms.
    fn finish(&mut self, names: &Names, inputs: Inputs) -> Result<(), String> {
        self.check(names, &inputs.all)?;
        let pictures = |(value, dims): &(usize, Sides)| {
            dims.len() == 4 && dims[1].is_none_or(|c| c == 3) && !self.given.contains_key(value)
        };
        let mut found = inputs.shaped.into_iter().filter(pictures);
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

    /// How many operations it has.
    pub fn operations(&self) -> usize {
        self.nodes.len()
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

//! Runs a graph as shapes, under the same rules as the built-in networks.

use super::graph::{Attribute, Given, Graph, Node};
use super::patterns::{Role, roles};
use super::{dims, fold, ops};
use crate::plan::net::{Measure, Size, Step, peaks};
use crate::plan::tape::{Rules, Tape, Tensor};

/// The most sides of one tensor.
const SIDES: usize = 16;
/// The most values of one tensor.
const VALUES: u64 = 1 << 42;

/// What is known of a value while the graph runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Value {
    /// Its sides, the batch among them.
    pub dims: Vec<u64>,
    /// Where it lies, if it comes from the pictures.
    pub tensor: Option<Tensor>,
    /// Its numbers, if it is a shape or an index.
    pub ints: Option<Vec<i64>>,
    /// Its fractions, if they say how much something grows.
    pub floats: Option<Vec<f32>>,
    /// Is it trained, or made of something trained?
    pub trained: bool,
}

impl Value {
    /// Of something that the file brings along.
    pub fn given(given: &Given) -> Self {
        let trained =
            given.fractions && given.dims.iter().fold(1_u64, |all, side| all.saturating_mul(*side)) > 1;
        Self {
            dims: given.dims.clone(),
            tensor: None,
            ints: given.ints.clone(),
            floats: given.floats.clone(),
            trained,
        }
    }
}

/// A graph at work.
pub(super) struct Runner<'g> {
    pub graph: &'g Graph,
    pub tape: Tape,
    pub measure: Measure,
    pub values: Vec<Option<Value>>,
    pub roles: Vec<Role>,
    /// May shapes that the file tells be believed? They are of its own size.
    told: bool,
    noted: u64,
}

impl Graph {
    /// Runs it for pictures of `size`.
    ///
    /// # Errors
    /// A sentence: an operation that prep does not know, or a size that the file is not made for.
    pub fn run(&self, size: Size, rules: Rules) -> Result<Measure, String> {
        let own = self.size();
        let mut runner = Runner::new(self, size, rules, own.is_none_or(|own| own == size));
        let batch = self.input_dims.first().copied().flatten().unwrap_or(1);
        let sides = vec![batch, 3, size.0.into(), size.1.into()];
        let tensor = runner.tape.input(count(&sides)?);
        runner.values[self.input] = Some(Value { dims: sides, tensor: Some(tensor), ..Value::default() });
        for (at, node) in self.nodes.iter().enumerate() {
            runner.node(at, node).map_err(|why| {
                let name = crate::names::shown(&node.name).to_string();
                let fixed = match own {
                    Some(own) if own != size => format!(
                        "; the file was exported for {}x{} pictures: take that size, or export it for this one",
                        own.1, own.0
                    ),
                    _ => String::new(),
                };
                format!("operation {} ({name}): {why}{fixed}", crate::names::shown(&node.op))
            })?;
        }
        let answers = |at: &usize| runner.values[*at].as_ref().is_some_and(|v| v.tensor.is_some());
        if !self.outputs.iter().any(answers) {
            return Err("what it gives out does not depend on the picture".into());
        }
        Ok(runner.finish(batch))
    }
}

/// The values of a tensor.
///
/// # Errors
/// A sentence, for one that no network has.
pub(super) fn count(dims: &[u64]) -> Result<u64, String> {
    let values = dims.iter().try_fold(1_u64, |all, side| all.checked_mul(*side)).filter(|all| *all <= VALUES);
    values.ok_or_else(|| "a tensor larger than any network's".into())
}

impl<'g> Runner<'g> {
    fn new(graph: &'g Graph, size: Size, rules: Rules, told: bool) -> Self {
        let mut values = vec![None; graph.values];
        for (at, given) in &graph.given {
            values[*at] = Some(Value::given(given));
        }
        let measure = Measure {
            size,
            rules,
            parameters: 0,
            cast_parameters: 0,
            buffer_bytes: 0,
            kept_bytes: 0,
            fixed_bytes: 0,
            conv_values: 0,
            peak_bytes: 0,
            checkpointed_bytes: None,
            blocks: 0,
            batch_norm: graph.folded > 0,
            steps: Vec::new(),
        };
        Self { graph, tape: Tape::new(rules), measure, values, roles: roles(graph), told, noted: 0 }
    }

    fn finish(mut self, batch: u64) -> Measure {
        let batch = batch.max(1);
        for step in &mut self.measure.steps {
            step.kept_bytes /= batch;
            step.in_bytes /= batch;
            step.out_bytes /= batch;
        }
        self.measure.kept_bytes = self.tape.kept() / batch;
        self.measure.fixed_bytes = self.tape.fixed;
        self.measure.conv_values /= batch;
        (self.measure.peak_bytes, _) = peaks(&self.measure.steps, &[]);
        self.measure
    }

    /// The input at `place` of a node, where there is one.
    pub fn input(&self, node: &Node, place: usize) -> Option<&Value> {
        node.inputs.get(place).copied().flatten().and_then(|at| self.values[at].as_ref())
    }

    /// The input at `place`, which there must be.
    pub fn needed(&self, node: &Node, place: usize) -> Result<Value, String> {
        self.input(node, place).cloned().ok_or_else(|| format!("its input {} is not known", place + 1))
    }

    fn node(&mut self, at: usize, node: &Node) -> Result<(), String> {
        let outs = self.outputs(at, node)?;
        for (value, out) in node.outputs.iter().zip(outs) {
            if out.dims.len() > SIDES {
                return Err(format!("a tensor of more than {SIDES} sides"));
            }
            if count(&out.dims)? == 0 && out.tensor.is_some() {
                return Err("nothing is left: the pictures are too small for this network".into());
            }
            self.values[*value] = Some(out);
        }
        Ok(())
    }

    fn outputs(&mut self, at: usize, node: &Node) -> Result<Vec<Value>, String> {
        match self.roles[at] {
            Role::Through(place) => return Ok(vec![self.needed(node, place)?]),
            Role::ByInput => {
                let x = self.needed(node, 0)?;
                let Some(tensor) = x.tensor else { return Ok(vec![x]) };
                let made = self.tape.by_input(tensor, false);
                return Ok(vec![self.made(node, &x, x.dims.clone(), made, 0, 0)]);
            }
            Role::Attention(first) => return self.attention(first, node).map(|out| vec![out]),
            Role::Plain | Role::Unwritten => {}
        }
        if let Some(out) = fold::known(self, node) {
            return Ok(vec![out]);
        }
        let from_pictures = node
            .inputs
            .iter()
            .flatten()
            .any(|v| self.values[*v].as_ref().is_some_and(|v| v.tensor.is_some()));
        if from_pictures {
            if self.roles[at] == Role::Unwritten {
                return self.unwritten(node).map(|out| vec![out]);
            }
            match ops::run(self, node) {
                Err(why) if why == ops::UNKNOWN => self.told(node),
                other => other,
            }
        } else {
            Ok(vec![self.without_pictures(node)])
        }
    }

    /// The scores of an attention that are never written: only their shape is known.
    fn unwritten(&mut self, node: &Node) -> Result<Value, String> {
        let x = self.needed(node, 0)?;
        let sides = if node.op == "MatMul" {
            dims::matmul(&x.dims, &self.needed(node, 1)?.dims)?
        } else {
            x.dims.clone()
        };
        let tensor = x.tensor.map(|t| t.view(0));
        Ok(Value { dims: sides, tensor, ..Value::default() })
    }

    fn attention(&mut self, first: usize, node: &Node) -> Result<Value, String> {
        let (scores, v) = (self.needed(node, 0)?, self.needed(node, 1)?);
        let product = &self.graph.nodes[first];
        let (q, k) = (self.needed(product, 0)?, self.needed(product, 1)?);
        let sides = dims::matmul(&scores.dims, &v.dims)?;
        let pairs = count(&scores.dims)?;
        let rows = pairs / scores.dims.last().copied().unwrap_or(1).max(1);
        let parts: Vec<Tensor> = [&q, &k, &v].into_iter().filter_map(|v| v.tensor).collect();
        let made = self.tape.attention(&parts, rows, pairs, count(&sides)?);
        Ok(self.made(node, &v, sides, made, 0, 0))
    }

    /// A value of constants alone: only its shape matters, where it can be told.
    fn without_pictures(&self, node: &Node) -> Value {
        let trained =
            node.inputs.iter().flatten().any(|v| self.values[*v].as_ref().is_some_and(|v| v.trained));
        let sides = dims::of_constants(self, node).or_else(|| self.told_dims(node));
        Value { dims: sides.unwrap_or_default(), trained, ..Value::default() }
    }

    fn told_dims(&self, node: &Node) -> Option<Vec<u64>> {
        let sides = node.outputs.first().and_then(|at| self.graph.told.get(at)).filter(|_| self.told)?;
        let batch = self.values[self.graph.input].as_ref()?.dims.first().copied()?;
        sides.iter().enumerate().map(|(at, side)| side.or((at == 0).then_some(batch))).collect()
    }

    /// An operation that prep does not know, where the file tells the shape of what it makes.
    fn told(&mut self, node: &Node) -> Result<Vec<Value>, String> {
        let sides = self
            .told_dims(node)
            .ok_or("prep does not know it, and the file does not tell the shape of its output")?;
        let x =
            node.inputs.iter().flatten().find_map(|v| self.values[*v].clone().filter(|v| v.tensor.is_some()));
        let x = x.ok_or("its input is not known")?;
        let Some(tensor) = x.tensor else { return Err("its input is not known".into()) };
        let made = self.tape.copy(tensor, count(&sides)?);
        Ok(vec![self.made(node, &x, sides, made, 0, 0)])
    }

    /// Notes a layer and gives its output.
    pub fn made(
        &mut self,
        node: &Node,
        from: &Value,
        dims: Vec<u64>,
        tensor: Tensor,
        parameters: u64,
        cast: u64,
    ) -> Value {
        let measure = &mut self.measure;
        measure.parameters = measure.parameters.saturating_add(parameters);
        measure.cast_parameters = measure.cast_parameters.saturating_add(cast);
        let kept = self.tape.kept();
        let shape: Vec<String> = dims.iter().skip(1).map(ToString::to_string).collect();
        measure.steps.push(Step {
            path: String::new(),
            name: format!("{} {}", node.op, node.name).trim().to_owned(),
            shape: shape.join("x"),
            out_bytes: tensor.bytes(),
            in_bytes: from.tensor.map_or(0, |t| t.bytes()),
            parameters,
            kept_bytes: kept - self.noted,
            block: None,
        });
        self.noted = kept;
        Value { dims, tensor: Some(tensor), ..Value::default() }
    }
}

impl Node {
    /// A whole-number attribute.
    pub fn int(&self, name: &str, default: i64) -> i64 {
        match self.attributes.get(name) {
            Some(Attribute::Int(n)) => *n,
            _ => default,
        }
    }

    /// A list attribute.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.attributes.get(name) {
            Some(Attribute::Ints(list)) => Some(list),
            _ => None,
        }
    }

    /// A word attribute.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attributes.get(name) {
            Some(Attribute::Text(text)) => Some(text),
            _ => None,
        }
    }
}

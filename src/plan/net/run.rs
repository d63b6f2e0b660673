//! Runs the lines of a network as shapes: blocks are entered, repeats repeated, every layer noted.

use std::collections::BTreeMap;

use super::file::{File, Model};
use super::layers;
use super::line::{self, Line};
use super::{Block, Measure, Shape, Size, Step, peaks};
use crate::plan::tape::{Rules, Tape, Tensor};

/// How deep blocks may lie in blocks.
const DEPTH: usize = 12;
/// How many layers a network may have.
const STEPS: usize = 20_000;
/// How many lines may be run, counting those that make no layer.
const TURNS: usize = 200_000;

/// A feature map on its way through.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value {
    pub tensor: Tensor,
    pub shape: Shape,
}

/// What a block sees: the feature map at hand, those it kept, and its numbers.
pub(super) struct Scope {
    pub current: Value,
    pub kept: BTreeMap<String, Value>,
    named: BTreeMap<String, i64>,
}

impl Scope {
    /// The number called `name`: a block's own, or `c`, `h`, `w`, `n` of the feature map at hand.
    fn number(&self, name: &str) -> Option<i64> {
        if let Some(value) = self.named.get(name) {
            return Some(*value);
        }
        let value = match (name, self.current.shape) {
            ("c", shape) => shape.channels(),
            ("h", Shape::Map(_, h, _)) => h,
            ("w", Shape::Map(_, _, w)) => w,
            ("n", shape) => shape.places(),
            _ => return None,
        };
        i64::try_from(value).ok()
    }

    /// The value of a sum.
    pub fn sum(&self, text: &str) -> Result<i64, String> {
        line::sum(text, &|name| self.number(name))
    }
}

/// A network at work.
pub(super) struct Runner<'f> {
    file: &'f File,
    pub tape: Tape,
    pub measure: Measure,
    /// Bytes kept when the last layer was noted.
    noted: u64,
    depth: usize,
    turns: usize,
    path: String,
    block: Option<usize>,
    blocks: Vec<Block>,
}

/// Runs `model` of `file` for pictures of `size` (three channels).
///
/// # Errors
/// A sentence with the line: an operation that is none, shapes that do not fit, more than any network has.
pub fn run(file: &File, model: &Model, size: Size, rules: Rules) -> Result<Measure, String> {
    let mut runner = Runner::new(file, size, rules);
    let shape = Shape::Map(3, size.0.into(), size.1.into());
    let tensor = runner.tape.input(shape.values()?);
    let mut scope = Scope { current: Value { tensor, shape }, kept: BTreeMap::new(), named: BTreeMap::new() };
    runner.lines(&model.lines, &mut scope)?;
    if runner.measure.steps.is_empty() {
        return Err("it has no layers".into());
    }
    Ok(runner.finish())
}

impl<'f> Runner<'f> {
    fn new(file: &'f File, size: Size, rules: Rules) -> Self {
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
            batch_norm: false,
            steps: Vec::new(),
        };
        let tape = Tape::new(rules);
        let path = String::new();
        Self { file, tape, measure, noted: 0, depth: 0, turns: 0, path, block: None, blocks: Vec::new() }
    }

    fn finish(mut self) -> Measure {
        self.measure.kept_bytes = self.tape.kept();
        self.measure.fixed_bytes = self.tape.fixed;
        (self.measure.peak_bytes, self.measure.checkpointed_bytes) = peaks(&self.measure.steps, &self.blocks);
        self.measure.blocks = self.blocks.len();
        self.measure
    }

    fn lines(&mut self, lines: &[Line], scope: &mut Scope) -> Result<(), String> {
        for line in lines {
            let place = |why: String| {
                if why.starts_with("line ") { why } else { format!("line {}: {why}", line.number) }
            };
            let times = scope.sum(&line.times).map_err(place)?;
            for turn in 0..times.max(0) {
                self.turns += 1;
                if self.turns > TURNS {
                    return Err(place(format!("more than {TURNS} lines to run")));
                }
                self.line(line, turn, scope).map_err(place)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &Line, turn: i64, scope: &mut Scope) -> Result<(), String> {
        if layers::is_layer(&line.name) {
            return layers::apply(self, line, scope);
        }
        let Some(lines) = self.file.blocks.get(&line.name) else {
            return Err(format!("`{}` is neither an operation nor a block of this file", line.name));
        };
        if let Some(word) = line.plain.first() {
            return Err(format!("`{word}`: a block takes words with a `=`, as in `width=64`"));
        }
        if self.depth == DEPTH {
            return Err(format!("blocks in blocks, more than {DEPTH} deep"));
        }
        let mut named = BTreeMap::new();
        for (key, text) in &line.pairs {
            named.insert(key.clone(), scope.sum(text)?);
        }
        let mut inner = Scope { current: scope.current, kept: BTreeMap::new(), named };
        if self.depth == 0 {
            self.block = Some(self.blocks.len());
        }
        let (given, before) = (scope.current.tensor, self.tape.is_kept(scope.current.tensor));
        let outside = before && self.measure.steps.last().is_none_or(|step| step.block.is_none());
        let outer = self.path.len();
        let count = if line.times == "1" { String::new() } else { format!("{}.", turn + 1) };
        self.path.push_str(&format!("{}{count}{}", if outer == 0 { "" } else { " " }, line.name));
        self.depth += 1;
        let outcome = self
            .lines(lines, &mut inner)
            .map_err(|why| format!("line {} (block {}), {why}", line.number, line.name));
        self.depth -= 1;
        self.path.truncate(outer);
        if self.depth == 0 {
            self.block = None;
            let keeps_it = !before && self.tape.is_kept(given);
            self.blocks.push(Block { input_bytes: given.bytes(), outside, keeps_it });
        }
        scope.current = inner.current;
        outcome
    }

    /// Notes a layer that made `out` of `from`, with `parameters` trained numbers of which `cast` are cast.
    pub fn note(
        &mut self,
        name: String,
        from: &Value,
        out: &Value,
        parameters: u64,
        cast: u64,
    ) -> Result<(), String> {
        if self.measure.steps.len() == STEPS {
            return Err(format!("more than {STEPS} layers"));
        }
        let measure = &mut self.measure;
        measure.parameters = measure.parameters.saturating_add(parameters);
        measure.cast_parameters = measure.cast_parameters.saturating_add(cast);
        let kept = self.tape.kept();
        measure.steps.push(Step {
            path: self.path.clone(),
            name,
            shape: out.shape.to_string(),
            out_bytes: out.tensor.bytes(),
            in_bytes: from.tensor.bytes(),
            parameters,
            kept_bytes: kept - self.noted,
            block: self.block,
        });
        self.noted = kept;
        Ok(())
    }
}

//! What exporters wrote out in small operations, and what training keeps as one: GELU, SiLU, attention.

use super::graph::{Graph, Node};

/// The longest chain of small operations that is followed.
const CHAIN: usize = 8;

/// What a node really is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// What it says.
    #[default]
    Plain,
    /// A part of something larger that makes nothing of its own: its output is the input with this place.
    Through(usize),
    /// The activation of its first input that needs its input on the way back.
    ByInput,
    /// The scores or the softmax of an attention that runs as one operation: never written.
    Unwritten,
    /// The product that ends such an attention; the nodes that it is of: the first product.
    Attention(usize),
}

/// The role of each node.
pub fn roles(graph: &Graph) -> Vec<Role> {
    let mut seer = Seer::new(graph);
    for at in 0..graph.nodes.len() {
        match graph.nodes[at].op.as_str() {
            "Erf" => seer.gelu(at),
            "Sigmoid" | "HardSigmoid" => seer.gate(at),
            "Softmax" => seer.attention(at),
            _ => {}
        }
    }
    seer.roles
}

struct Seer<'g> {
    graph: &'g Graph,
    /// The node that makes each value.
    maker: Vec<Option<usize>>,
    /// The last node that takes each value; where it is the only one, the one.
    taker: Vec<Option<usize>>,
    roles: Vec<Role>,
}

impl<'g> Seer<'g> {
    fn new(graph: &'g Graph) -> Self {
        let (mut maker, mut taker) = (vec![None; graph.values], vec![None; graph.values]);
        for (at, node) in graph.nodes.iter().enumerate() {
            for value in &node.outputs {
                maker[*value] = Some(at);
            }
            for value in node.inputs.iter().flatten() {
                taker[*value] = Some(at);
            }
        }
        Self { graph, maker, taker, roles: vec![Role::Plain; graph.nodes.len()] }
    }

    fn node(&self, at: usize) -> &'g Node {
        &self.graph.nodes[at]
    }

    fn input(&self, at: usize, place: usize) -> Option<usize> {
        self.node(at).inputs.get(place).copied().flatten()
    }

    fn output(&self, at: usize) -> Option<usize> {
        self.node(at).outputs.first().copied()
    }

    /// The only node that takes the output of `at`.
    fn next(&self, at: usize) -> Option<usize> {
        let value = self.output(at)?;
        (self.graph.uses[value] == 1).then_some(()).and(self.taker[value])
    }

    /// Is it a value that does not come from the pictures: a constant?
    fn constant(&self, value: usize) -> bool {
        if self.graph.given.contains_key(&value) {
            return true;
        }
        // Constants may be made by a few nodes: a Cast of a Constant, a Sqrt of it.
        let mut at = value;
        for _ in 0..CHAIN {
            let Some(maker) = self.maker[at] else { return self.graph.given.contains_key(&at) };
            match (self.node(maker).op.as_str(), self.input(maker, 0)) {
                ("Constant" | "ConstantOfShape" | "Shape", _) => return true,
                (
                    "Cast" | "Sqrt" | "Identity" | "Div" | "Slice" | "Gather" | "Unsqueeze" | "Squeeze",
                    Some(before),
                ) => {
                    at = if self.node(maker).op == "Div" && self.graph.given.contains_key(&before) {
                        self.input(maker, 1).unwrap_or(before)
                    } else {
                        before
                    };
                }
                _ => return false,
            }
        }
        false
    }

    /// The place of the input that is no constant, of a node with two inputs of which one is.
    fn scaled(&self, at: usize) -> Option<usize> {
        let (a, b) = (self.input(at, 0)?, self.input(at, 1)?);
        match (self.constant(a), self.constant(b)) {
            (false, true) => Some(0),
            (true, false) => Some(1),
            _ => None,
        }
    }

    /// x / sqrt 2 > Erf > + 1 > times x > times a half, in either order of the last two.
    fn gelu(&mut self, erf: usize) {
        let Some(before) = self.input(erf, 0).and_then(|value| self.maker[value]) else { return };
        let Some(place) = self.scaled(before) else { return };
        let Some(add) = self.next(erf).filter(|at| self.node(*at).op == "Add") else { return };
        let Some(mul) = self.next(add).filter(|at| self.node(*at).op == "Mul") else { return };
        let made = self.output(add);
        let place_of_sum = usize::from(self.input(mul, 1) == made);
        self.roles[before] = Role::Through(place);
        self.roles[erf] = Role::ByInput;
        self.roles[add] = Role::Through(usize::from(self.input(add, 1) == self.output(erf)));
        self.roles[mul] = Role::Through(place_of_sum);
        if let Some(half) = self.next(mul).filter(|at| self.node(*at).op == "Mul")
            && let Some(place) = self.scaled(half)
        {
            self.roles[half] = Role::Through(place);
        }
    }

    /// x times its own sigmoid: SiLU; its own hard sigmoid: hard swish.
    fn gate(&mut self, gate: usize) {
        let Some(mul) = self.next(gate).filter(|at| self.node(*at).op == "Mul") else { return };
        let (made, x) = (self.output(gate), self.input(gate, 0));
        let other = if self.input(mul, 0) == made { self.input(mul, 1) } else { self.input(mul, 0) };
        if other.is_some() && other == x {
            self.roles[gate] = Role::Through(0);
            self.roles[mul] = Role::ByInput;
        }
    }

    /// A product of two feature maps > scaled by a number > Softmax > a product with a third: attention without a bias,
    /// which runs as one operation. Numbers that scale queries and keys beforehand belong to it.
    fn attention(&mut self, softmax: usize) {
        // A hostile graph may run in circles: a chain is a few nodes long.
        let (mut at, mut first, mut chain) = (softmax, None, vec![softmax]);
        for _ in 0..CHAIN {
            let Some(maker) = self.input(at, 0).and_then(|value| self.maker[value]) else { return };
            match self.node(maker).op.as_str() {
                "MatMul" => {
                    first = Some(maker);
                    break;
                }
                "Mul" | "Div" if self.scaled(maker) == Some(0) => {
                    chain.push(maker);
                    at = maker;
                }
                _ => return,
            }
        }
        let (mut last, mut second) = (softmax, None);
        for _ in 0..CHAIN {
            let Some(next) = self.next(last) else { return };
            match self.node(next).op.as_str() {
                "MatMul" if self.input(next, 0) == self.output(last) => {
                    second = Some(next);
                    break;
                }
                "Dropout" | "Identity" | "Cast" => last = next,
                _ => return,
            }
        }
        let (Some(first), Some(second)) = (first, second) else { return };
        for node in chain {
            self.roles[node] = Role::Unwritten;
        }
        self.roles[first] = Role::Unwritten;
        self.roles[second] = Role::Attention(first);
        for place in 0..2 {
            if let Some(maker) = self.input(first, place).and_then(|value| self.maker[value])
                && matches!(self.node(maker).op.as_str(), "Mul" | "Div")
                && let Some(place) = self.scaled(maker)
            {
                self.roles[maker] = Role::Through(place);
            }
        }
    }
}

//! Networks of other people: an ONNX file, its shapes inferred for any input size, its layers put to the same rules as
//! the built-in ones. The reader is our own, small and bounded; weights are never read.
//!
//! Exporters fold batch norms into convolutions and write out GELU, SiLU and attention in small operations;
//! `patterns` sees through that, since training keeps what the whole operation keeps.

mod dims;
mod fold;
mod graph;
mod moves;
mod ops;
mod patterns;
mod read;
mod run;
mod wire;

pub use graph::Graph;

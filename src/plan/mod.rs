//! `prep plan`: the ledger of bytes. Will it fit, and what will starve? Each sum is a [`ledger::Line`] with its formula.
//!
//! [`net`] runs networks as shapes, [`tape`] knows what the way back needs of each operation; [`onnx`] reads networks
//! of other people; [`gpu`], [`host`] and [`data`] are the sums, [`remedies`] what to do where they are too large; [`sample`] decodes some of the real pictures, and
//! [`cache`] remembers what it saw; [`runs`] is the ledger of experiments.

pub mod cache;
pub mod data;
pub mod gpu;
pub mod host;
pub mod ledger;
pub mod net;
pub mod network;
pub mod onnx;
pub mod remedies;
pub mod runs;
pub mod sample;
pub mod tape;

//! One binary of integration tests: each file is a room of them.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests write files and start threads as they like, and a panic is their verdict"
)]

mod apply;
mod audit;
mod benign;
mod damage;
mod decode;
mod env;
mod golden_cache;
mod kill;
mod kinds;
mod layers;
mod locks;
mod manifest;
mod memory;
mod near;
mod pack;
mod pack_odd;
mod page;
mod pictures;
mod plan;
mod plan_models;
mod plan_odd;
mod plan_onnx;
mod regress;
mod regress_audit;
mod regress_left;
mod regress_split;
mod sheet;
mod show;
mod shrink;
mod source_table;
mod source_tree;
mod split;
mod stats;
mod table;
mod verify;
mod weights;

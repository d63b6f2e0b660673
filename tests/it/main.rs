//! One binary of integration tests: each file is a room of them.

mod source_tree;
mod table;

//! One binary of integration tests: each file is a room of them.

mod manifest;
mod source_table;
mod source_tree;
mod table;

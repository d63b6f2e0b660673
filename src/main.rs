//! The `prep` binary.
fn main() {}

//! Tables: CSV and its relatives in, CSV out.

use std::path::PathBuf;

/// A table in memory.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The file it was read from.
    pub path: PathBuf,
    /// The names of its columns, in order.
    pub columns: Vec<String>,
}

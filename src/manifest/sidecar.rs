//! `manifest.prep.json`: what a manifest was made with, and the hash that says it is whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The schema that this version writes; the number grows when an old reader would be wrong.
pub const SCHEMA: u32 = 1;

/// The content of `manifest.prep.json`. Fields of newer versions are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sidecar {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// The version of prep that wrote it.
    pub version: String,
    /// Which command wrote it, such as `shrink`.
    #[serde(default)]
    pub command: String,
    /// The options that decide the content of the outputs.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// The seed of everything that looks random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The name and version of the scheme that assigned splits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// Class to index, in index order: code points, as torchvision counts.
    #[serde(default)]
    pub class_to_idx: Map<String, Value>,
    /// How many rows of each status, and `rows`.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// How many usable rows in each part of the split.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub splits: BTreeMap<String, u64>,
    /// Normalization constants, with their definition and rows.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub stats: Value,
    /// Class weights.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub weights: Value,
    /// The folder of the images as seen from the manifest's, where that is another: every path begins with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// BLAKE3 of the manifest's bytes, hexadecimal.
    pub hash: String,
    /// What other versions wrote.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Sidecar {
    /// An empty one for a manifest of this hash.
    pub fn new(hash: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").into(),
            command: String::new(),
            options: Map::new(),
            seed: None,
            scheme: None,
            class_to_idx: Map::new(),
            counts: BTreeMap::new(),
            splits: BTreeMap::new(),
            stats: Value::Null,
            weights: Value::Null,
            root: None,
            hash: hash.into(),
            rest: Map::new(),
        }
    }

    /// Sets `class_to_idx` from the classes in index order.
    pub fn set_classes<'a>(&mut self, classes: impl IntoIterator<Item = &'a str>) {
        self.class_to_idx =
            classes.into_iter().zip(0_u64..).map(|(class, index)| (class.to_owned(), index.into())).collect();
    }

    /// Where the sidecar of a manifest lies: `manifest.csv` has `manifest.prep.json`.
    pub fn path_of(manifest: &Path) -> PathBuf {
        manifest.with_extension("prep.json")
    }

    /// The sidecar of the manifest at `manifest`; none where there is no such file.
    ///
    /// # Errors
    /// One that cannot be read, is damaged, or was written by a newer schema.
    pub fn read(manifest: &Path) -> Result<Option<Self>> {
        let path = Self::path_of(manifest);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::read("reading what the manifest was made with", &path, e)),
        };
        let damaged = |e: serde_json::Error| {
            let why = format!("not as prep writes it ({e}); delete it, or make the manifest anew");
            Error::table(&path, Some(e.line() as u64), why)
        };
        let value: Value = serde_json::from_slice(&bytes).map_err(damaged)?;
        // Before the rest: a newer schema may have other fields.
        let schema = value.get("schema").and_then(Value::as_u64).unwrap_or_default();
        if schema > u64::from(SCHEMA) {
            let why =
                format!("written with schema {schema}, this prep reads up to {SCHEMA}; take a newer prep");
            return Err(Error::table(&path, None, why));
        }
        serde_json::from_value(value).map(Some).map_err(damaged)
    }

    /// The JSON text, indented, with a final newline.
    pub fn to_json(&self) -> String {
        // Maps with string keys and finite numbers always become JSON.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

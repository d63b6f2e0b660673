//! Model files: a family of networks with the blocks that they share, in TOML that a person can read and add to.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::line::{self, Line};

/// The largest model file, in bytes.
pub const LIMIT: u64 = 1 << 20;

/// A model file.
#[derive(Debug, Clone)]
pub struct File {
    /// Networks by name.
    pub models: BTreeMap<String, Model>,
    /// The lines of each block.
    pub blocks: BTreeMap<String, Vec<Line>>,
}

/// One network.
#[derive(Debug, Clone)]
pub struct Model {
    /// What it is, in a sentence.
    pub about: String,
    /// Other names that it goes by.
    pub aka: Vec<String>,
    /// The side of the pictures that it was made for.
    pub size: u32,
    /// Images a second that were seen to be trained, and on what.
    pub speed: Option<Speed>,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// How fast a network was seen to train.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speed {
    /// Images a second.
    pub images: f64,
    /// Side of the pictures.
    pub size: u32,
    /// The card and the circumstances.
    pub on: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    model: BTreeMap<String, WrittenModel>,
    #[serde(default)]
    block: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenModel {
    #[serde(default)]
    about: String,
    #[serde(default)]
    aka: Vec<String>,
    #[serde(default = "usual_size")]
    size: u32,
    speed: Option<Speed>,
    layers: String,
}

fn usual_size() -> u32 {
    224
}

/// The family in a file's text.
///
/// # Errors
/// The line of the text where one is known, and a sentence.
pub fn parse(text: &str) -> Result<File, (Option<u64>, String)> {
    let written: Written = toml::from_str(text).map_err(|e| {
        let line = e.span().map(|span| text[..span.start.min(text.len())].lines().count().max(1) as u64);
        (line, e.message().to_owned())
    })?;
    let mut blocks = BTreeMap::new();
    for (name, text) in &written.block {
        if super::layers::is_layer(name) {
            return Err((None, format!("a block cannot be called `{name}`: that is an operation")));
        }
        blocks.insert(name.clone(), line::parse(text).map_err(|why| (None, format!("block {name}, {why}")))?);
    }
    let mut models = BTreeMap::new();
    for (name, model) in written.model {
        let lines = line::parse(&model.layers).map_err(|why| (None, format!("model {name}, {why}")))?;
        let WrittenModel { about, aka, size, speed, .. } = model;
        models.insert(name, Model { about, aka, size, speed, lines });
    }
    if models.is_empty() {
        return Err((None, "no `[model.NAME]` in it".into()));
    }
    Ok(File { models, blocks })
}

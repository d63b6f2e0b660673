//! Model files: a family of networks with the blocks that they share, in TOML that a person can read and add to.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

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
    block: BTreeMap<String, Spanned<String>>,
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
    layers: Spanned<String>,
}

fn usual_size() -> u32 {
    224
}

/// The line of `text` in which the first line of a string stands that begins at byte `start`.
fn first_line(text: &str, start: usize) -> usize {
    let (before, string) = text.split_at_checked(start).unwrap_or((text, ""));
    let opened = string.strip_prefix("\'\'\'").or_else(|| string.strip_prefix("\"\"\""));
    // A line break right after three quotes belongs to no line.
    let below = opened.is_some_and(|rest| rest.starts_with('\n') || rest.starts_with("\r\n"));
    before.matches('\n').count() + 1 + usize::from(below)
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
    let lines_of = |lines: &Spanned<String>| {
        line::parse(lines.get_ref(), first_line(text, lines.span().start))
            .map_err(|(number, why)| (Some(number as u64), why))
    };
    let mut blocks = BTreeMap::new();
    for (name, lines) in &written.block {
        if super::layers::is_layer(name) {
            let line = first_line(text, lines.span().start) as u64;
            return Err((Some(line), format!("a block cannot be called `{name}`: that is an operation")));
        }
        blocks.insert(name.clone(), lines_of(lines)?);
    }
    let mut models = BTreeMap::new();
    for (name, model) in written.model {
        let lines = lines_of(&model.layers)?;
        let line = first_line(text, model.layers.span().start) as u64;
        let WrittenModel { about, aka, size, speed, .. } = model;
        if !(1..=65_535).contains(&size) {
            return Err((Some(line), format!("model {name}: size = {size}: a side from 1 to 65535 pixels")));
        }
        let fast = |s: &Speed| (1e-3..=1e9).contains(&s.images) && (1..=65_535).contains(&s.size);
        if speed.as_ref().is_some_and(|speed| !fast(speed)) {
            return Err((
                Some(line),
                format!("model {name}: speed: images a second and a size, both above 0"),
            ));
        }
        models.insert(name, Model { about, aka, size, speed, lines });
    }
    if models.is_empty() {
        return Err((None, "no `[model.NAME]` in it".into()));
    }
    Ok(File { models, blocks })
}

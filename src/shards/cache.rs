//! A finished cache: what its manifest says, nothing of it believed before it was checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::sum::FileSum;
use super::tables::Loaded;
use super::{ALIGNMENT, Form, Layout, MANIFEST, SCHEMA, Store, folder_of, seal};
use crate::error::{Error, Result};
use crate::names::shown;
use crate::table;

/// A shard as the manifest has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// The file in the part's folder.
    pub name: String,
    /// Length and hash.
    pub sum: FileSum,
    /// Samples.
    pub rows: usize,
    /// Where the first payload begins.
    pub image0: u64,
}

/// A part of the split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// `train` and the like.
    pub name: String,
    /// The folder below the cache's.
    pub folder: String,
    /// Samples.
    pub rows: usize,
    /// In order.
    pub shards: Vec<Shard>,
    /// Every other file of the folder, by name.
    pub tables: BTreeMap<String, FileSum>,
}

/// A finished cache.
#[derive(Debug, Clone)]
pub struct Cache {
    /// Where it lies.
    pub folder: PathBuf,
    /// What all shards have in common.
    pub form: Form,
    /// Names of the classes in the order of their indices.
    pub classes: Vec<String>,
    /// The parts, in order.
    pub splits: Vec<Split>,
    /// The files beside the parts' folders, by name.
    pub files: BTreeMap<String, FileSum>,
    /// Source rows: packed and left out.
    pub total: usize,
    /// Source rows in no shard.
    pub left_out: usize,
    /// The manifest's whole content.
    pub value: Value,
    /// The manifest is byte for byte as it was written.
    pub sealed: bool,
}

impl Cache {
    /// Reads the manifest of the cache in `folder`.
    ///
    /// # Errors
    /// Where there is none, it is of a newer schema, or it is not as prep writes it.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        if !path.exists() {
            let why = if folder.join(crate::out::Claim::CORNER).is_dir() {
                "a run of `prep pack` was stopped here; type it again (with --resume): it continues"
            } else {
                "is there a cache in this folder? Name the folder that has the manifest.json of `prep pack`"
            };
            return Err(Error::table(&path, None, format!("there is no such file: {why}")));
        }
        let text = table::load(&path)?;
        let value: Value = serde_json::from_slice(&text)
            .map_err(|e| Error::table(&path, Some(e.line() as u64), format!("{e}; {ANEW}")))?;
        if value.get("kind").and_then(Value::as_str) != Some("prep-cache") {
            return Err(Error::table(&path, None, "this is no manifest of a cache that `prep pack` made"));
        }
        let schema = value.get("schema").and_then(Value::as_u64).unwrap_or_default();
        if schema > SCHEMA {
            let why =
                format!("written with schema {schema}, this prep reads up to {SCHEMA}; take a newer prep");
            return Err(Error::table(&path, None, why));
        }
        let sealed = seal::holds(&text);
        Self::of(folder, value, sealed)
            .map_err(|at| Error::table(&path, None, format!("{at} is not as prep writes it; {ANEW}")))
    }

    /// What `value` says, or the key that is wrong.
    fn of(folder: &Path, value: Value, sealed: bool) -> Result<Self, String> {
        let form = form_of(&value)?;
        let classes = value
            .get("classes")
            .and_then(Value::as_array)
            .and_then(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect())
            .ok_or("classes")?;
        let parts = value.get("splits").and_then(Value::as_object).ok_or("splits")?;
        let mut splits = Vec::with_capacity(parts.len());
        for (name, part) in parts {
            splits.push(split_of(name, part).map_err(|key| format!("splits.{}.{key}", shown(name)))?);
        }
        let files = sums(value.get("files")).ok_or("files")?;
        let rows = |key: &str| number(value.get("rows")?.get(key)?);
        let total = rows("total").ok_or("rows.total")?;
        let left_out = rows("left_out").ok_or("rows.left_out")?;
        let packed: usize = splits.iter().map(|split| split.rows).sum();
        if rows("packed") != Some(packed) || packed.checked_add(left_out) != Some(total) {
            return Err("rows".into());
        }
        Ok(Self { folder: folder.to_owned(), form, classes, splits, files, total, left_out, value, sealed })
    }

    /// The folder of a part.
    pub fn folder_of(&self, split: &Split) -> PathBuf {
        self.folder.join(&split.folder)
    }

    /// The tables of a part, checked against the shards.
    ///
    /// # Errors
    /// [`Error::Table`] naming the table and the sample.
    pub fn load(&self, split: &Split) -> Result<Loaded> {
        self.loaded(split, Loaded::read(&self.folder_of(split), split.rows, None)?)
    }

    /// As [`load`](Self::load), for whoever acts on what the tables say: first their bytes are held against the manifest.
    ///
    /// # Errors
    /// [`Error::Table`] naming the table.
    pub fn load_proven(&self, split: &Split) -> Result<Loaded> {
        self.loaded(split, Loaded::read(&self.folder_of(split), split.rows, Some(&split.tables))?)
    }

    fn loaded(&self, split: &Split, loaded: Loaded) -> Result<Loaded> {
        let folder = self.folder_of(split);
        let mut first = 0;
        for (number, shard) in split.shards.iter().enumerate() {
            for i in first..first + shard.rows {
                let row = &loaded.rows[i];
                let ends =
                    row.offset.checked_add(u64::from(row.size)).is_some_and(|end| end <= shard.sum.bytes);
                let pixels = u64::from(row.h) * u64::from(row.w) * 3;
                let size = row.is_jpeg() || u64::from(row.size) == pixels;
                let label = i64::from(row.label) < self.classes.len() as i64 && row.label >= -1;
                let fixed = self.form.fixed.is_none_or(|fixed| fixed == (row.h, row.w));
                let store = row.is_jpeg() == (self.form.store == Store::Jpeg);
                if row.shard as usize != number || !(ends && size && label && fixed && store) {
                    let why =
                        format!("sample {i} is not where shard {} can have it; {TABLES}", shown(&shard.name));
                    return Err(Error::table(folder.join("rows.npy"), None, why));
                }
            }
            first += shard.rows;
        }
        Ok(loaded)
    }
}

const ANEW: &str = "type the `prep pack` that made it with --resume: it keeps the shards that are whole";
const TABLES: &str = "`prep verify --repair-index` makes the tables anew from the shards";

fn number(value: &Value) -> Option<usize> {
    value.as_u64().filter(|n| *n <= u64::from(u32::MAX)).map(|n| n as usize)
}

fn form_of(value: &Value) -> Result<Form, String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let layout = text("layout").and_then(Layout::parse).ok_or("layout")?;
    let store = match text("store") {
        Some("raw") => Store::Raw,
        Some("jpeg") => Store::Jpeg,
        _ => return Err("store".into()),
    };
    let side = |key: &str| value.get("image")?.get(key)?.as_u64().and_then(|n| u16::try_from(n).ok());
    let fixed = side("height").zip(side("width"));
    if layout == Layout::Npy && fixed.is_none() {
        return Err("image".into());
    }
    let shard_size = value.get("shard_size").and_then(Value::as_u64).ok_or("shard_size")?;
    if value.get("alignment").and_then(Value::as_u64) != Some(ALIGNMENT) {
        return Err("alignment".into());
    }
    Ok(Form { layout, store, fixed, shard_size })
}

fn sums(value: Option<&Value>) -> Option<BTreeMap<String, FileSum>> {
    let entries = value?.as_object()?;
    entries.iter().map(|(name, entry)| Some((plain(name)?, sum_of(entry)?))).collect()
}

fn sum_of(value: &Value) -> Option<FileSum> {
    let hex = value.get("xxh3_64")?.as_str().filter(|hex| hex.len() == 16)?;
    Some(FileSum { bytes: value.get("bytes")?.as_u64()?, xxh3: u64::from_str_radix(hex, 16).ok()? })
}

/// A name that can only be a file of this very folder.
fn plain(name: &str) -> Option<String> {
    let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    plain.then(|| name.to_owned())
}

fn split_of(name: &str, value: &Value) -> Result<Split, String> {
    let folder = value.get("folder").map_or(Some(name), Value::as_str).and_then(plain);
    let folder = folder.filter(|folder| *folder == folder_of(name)).ok_or("folder")?;
    let rows = value.get("rows").and_then(number).ok_or("rows")?;
    let mut shards = Vec::new();
    for entry in value.get("shards").and_then(Value::as_array).ok_or("shards")? {
        let shard = || {
            Some(Shard {
                name: plain(entry.get("name")?.as_str()?)?,
                sum: sum_of(entry)?,
                rows: number(entry.get("rows")?)?,
                image0: entry.get("image0")?.as_u64()?,
            })
        };
        shards.push(shard().filter(|shard| shard.image0 <= shard.sum.bytes).ok_or("shards")?);
    }
    if shards.iter().map(|shard| shard.rows).sum::<usize>() != rows {
        return Err("rows".into());
    }
    let tables = sums(value.get("tables")).ok_or("tables")?;
    Ok(Split { name: name.to_owned(), folder, rows, shards, tables })
}

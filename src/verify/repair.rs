//! Index and tables made anew from the shards, which tell everything about themselves. Shards are never changed, and
//! one that is not whole is never blessed.

use std::path::Path;

use serde_json::{Value, json};

use super::cache::trouble_of;
use super::{Sample, Trouble, open, unreadable};
use crate::error::{Error, Result};
use crate::names::shown;
use crate::out::{self, Claim, place};
use crate::shards::check::check;
use crate::shards::tables::{self, Content};
use crate::shards::{
    Cache, FileSum, MANIFEST, Owned, Place, READER, READER_TEXT, Record, Split, index, read, seal,
};

/// What a repair did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Tables that were not as they are now, relative to the cache.
    pub changed: Vec<String>,
    /// What cannot be repaired; then nothing was changed.
    pub troubles: Vec<Trouble>,
}

/// Makes index and tables of the cache in `folder` anew.
///
/// # Errors
/// A manifest that cannot be used, since it says which shards there must be; [`Error::Write`].
pub fn repair(folder: &Path) -> Result<Repaired> {
    let cache = Cache::open(folder)?;
    if !cache.sealed {
        let why = "was altered after it was written, so it cannot tell which shards there must be; type the \
                   `prep pack` that made it with --resume";
        return Err(Error::table(folder.join(MANIFEST), None, why));
    }
    for split in &cache.splits {
        place::check_no_links(&cache.folder_of(split), std::iter::empty())?;
    }
    let _claim = Claim::take(folder)?;
    let mut repaired = Repaired::default();
    let mut all = Vec::with_capacity(cache.splits.len());
    for split in &cache.splits {
        all.push(records_of(&cache, split, &mut repaired.troubles));
    }
    if !repaired.troubles.is_empty() {
        return Ok(repaired);
    }
    let mut value = cache.value.clone();
    for (split, records) in cache.splits.iter().zip(&all) {
        let before = sums_now(&cache, split);
        let content = Content {
            form: &cache.form,
            split: &split.name,
            folder: &split.folder,
            shards: &split.shards,
            record: &|i| records[i].record(),
            samples: records.len(),
            classes: &cache.classes,
        };
        let (sums, _) = tables::write(folder, &content)?;
        for (name, sum) in &sums {
            if before.get(name.as_str()) != Some(sum) {
                repaired.changed.push(format!("{}/{name}", split.folder));
            }
            value["splits"][&split.name]["tables"][name] = json!({"bytes": sum.bytes, "xxh3_64": sum.hex()});
        }
    }
    let reader = FileSum::of_file(&folder.join(READER)).ok();
    if cache.files.get(READER).is_some_and(|sum| reader != Some(*sum)) {
        // The one of this version, which reads every earlier cache.
        out::write_whole("writing the reader", &folder.join(READER), READER_TEXT, false)?;
        let sum = FileSum::of(READER_TEXT);
        value["files"][READER] = json!({"bytes": sum.bytes, "xxh3_64": sum.hex()});
        repaired.changed.push(READER.to_owned());
    }
    if let Value::Object(map) = &mut value {
        map.shift_remove("seal");
    }
    out::sync_batch(folder)?;
    let text = seal::sealed(&value);
    out::write_whole("writing the manifest", &folder.join(MANIFEST), text.as_bytes(), true)?;
    Ok(repaired)
}

/// The sums of the tables as they lie there.
fn sums_now<'a>(cache: &Cache, split: &'a Split) -> std::collections::BTreeMap<&'a str, FileSum> {
    let folder = cache.folder_of(split);
    let sum = |name: &str| FileSum::read(&mut open(&folder.join(name)).ok()?).ok();
    split.tables.keys().filter_map(|name| Some((name.as_str(), sum(name)?))).collect()
}

/// The records of a part from its shards, each of which must be whole.
fn records_of(cache: &Cache, split: &Split, troubles: &mut Vec<Trouble>) -> Vec<Owned> {
    let mut all: Vec<Owned> = Vec::with_capacity(split.rows);
    for (number, shard) in split.shards.iter().enumerate() {
        let file = format!("{}/{}", split.folder, shard.name);
        let path = cache.folder_of(split).join(&shard.name);
        let mut wrong = |detail: String| {
            troubles.push(Trouble { file: file.clone(), code: "header", detail, sample: None });
        };
        let mut told = match read::told(&cache.form, &path, number) {
            Ok(told) => told,
            Err(why) => {
                wrong(why);
                continue;
            }
        };
        let first = all.len();
        let named = told.split.is_empty() || (told.split == split.name && told.first == first);
        if told.records.len() != shard.rows || !named {
            wrong(format!("it tells of other samples than the manifest ({})", shown(&told.split)));
            continue;
        }
        let records: Vec<Record<'_>> = told.records.iter().map(Owned::record).collect();
        let place = Place { split: &split.name, first, image0: index::image0(&cache.form, shard) };
        let Ok(sheet) = cache.form.sheet(&place, &records) else {
            wrong("it tells of more than it can hold".into());
            continue;
        };
        drop(records);
        for (record, offset) in told.records.iter_mut().zip(&sheet.offsets) {
            (record.row.offset, record.row.shard) = (*offset, number as u32);
        }
        let rows: Vec<_> = told.records.iter().map(|record| record.row).collect();
        match open(&path).and_then(|mut file| check(&mut file, &sheet, &rows, shard.sum)) {
            Ok(checked) => {
                let name = |i: usize| Sample::of(&split.name, first + i, &told.records[i].record());
                troubles.extend(checked.flaws.iter().map(|flaw| trouble_of(&file, flaw, &name)));
            }
            Err(e) => wrong(unreadable(&e).1),
        }
        all.append(&mut told.records);
    }
    all
}

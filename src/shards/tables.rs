//! The tables of a part: written from its records, read back and checked.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::sum::{FileSum, SummedFile};
use super::{Form, Place, Record, Row, Shard, index, npy};
use crate::error::{Error, Result};
use crate::names::shown;
use crate::source::labels_of;
use crate::table::{self, Header, Table, csv_out};

const DOING: &str = "writing the tables of the shards";

/// All that the tables of a part are made from.
pub struct Content<'a> {
    /// What all shards have in common.
    pub form: &'a Form,
    /// The part's name.
    pub split: &'a str,
    /// The part's folder within the cache, which is also where files go below `root`.
    pub folder: &'a str,
    /// Its shards, in order.
    pub shards: &'a [Shard],
    /// The record of each sample.
    pub record: &'a dyn Fn(usize) -> Record<'a>,
    /// Samples.
    pub samples: usize,
    /// Names of the classes in the order of their indices.
    pub classes: &'a [String],
}

/// How many samples of a part each class has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// By class.
    pub by_class: Vec<u64>,
    /// Samples without a label.
    pub unlabelled: u64,
    /// Samples with several.
    pub several: u64,
}

/// Writes all tables of a part to its folder below `root` and gives their sums by name.
///
/// # Errors
/// [`Error::Write`].
pub fn write(root: &Path, content: &Content<'_>) -> Result<(BTreeMap<String, FileSum>, Counts)> {
    let mut sums = BTreeMap::new();
    let folder = root.join(content.folder);
    let mut put = |name: &str, fill: &mut dyn FnMut(&mut SummedFile) -> Result<()>| -> Result<()> {
        let path = folder.join(name);
        let mut file = SummedFile::create(DOING, &path)?;
        fill(&mut file)?;
        sums.insert(name.to_owned(), file.commit()?);
        Ok(())
    };
    let n = content.samples;
    put("rows.npy", &mut |file| {
        file.put(&npy::header(Row::DESCR, &[n], 64))?;
        (0..n).try_for_each(|i| file.put(&(content.record)(i).row.to_bytes()))
    })?;
    put("labels.npy", &mut |file| {
        file.put(&npy::header(&npy::word("<i8"), &[n], 64))?;
        (0..n).try_for_each(|i| file.put(&i64::from((content.record)(i).row.label).to_le_bytes()))
    })?;
    let (by_class, counts) = by_class(content);
    put("class_ptr.npy", &mut |file| {
        file.put(&npy::header(&npy::word("<i8"), &[content.classes.len() + 1], 64))?;
        let mut at = 0_u64;
        file.put(&at.to_le_bytes())?;
        by_class.iter().try_for_each(|rows| {
            at += rows.len() as u64;
            file.put(&at.to_le_bytes())
        })
    })?;
    put("class_rows.npy", &mut |file| {
        file.put(&npy::header(&npy::word("<u4"), &[by_class.iter().map(Vec::len).sum()], 64))?;
        by_class.iter().flatten().try_for_each(|sample| file.put(&sample.to_le_bytes()))
    })?;
    put("ids.csv", &mut |file| ids(content, file, &folder))?;
    let mut first = 0;
    for (number, shard) in content.shards.iter().enumerate() {
        let records: Vec<Record<'_>> = (first..first + shard.rows).map(|i| (content.record)(i)).collect();
        let place = Place { split: content.split, first, image0: shard.image0 };
        for (name, bytes) in index::companions(content.form, content.folder, number, &place, &records) {
            put(&name, &mut |file| file.put(&bytes))?;
        }
        first += shard.rows;
    }
    if let Some((name, text)) = index::overall(content.form, content.folder, content.shards) {
        put(name, &mut |file| file.put(text.as_bytes()))?;
    }
    Ok((sums, counts))
}

fn ids(content: &Content<'_>, file: &mut SummedFile, folder: &Path) -> Result<()> {
    let trouble = |e: csv::Error| Error::write(DOING, folder.join("ids.csv"), e.into());
    let mut csv = csv_out(file);
    csv.write_record(IDS).map_err(trouble)?;
    for sample in 0..content.samples {
        let record = (content.record)(sample);
        let (number, row) = (sample.to_string(), record.row.row.to_string());
        csv.write_record([&number, &row, record.path, record.hash, record.label, record.group])
            .map_err(trouble)?;
    }
    csv.flush().map_err(|e| Error::write(DOING, folder.join("ids.csv"), e))
}

/// The columns of `ids.csv`.
const IDS: [&str; 6] = ["sample", "row", "path", "hash", "label", "group"];

/// The samples of each class: with several labels a sample is in each of them.
fn by_class(content: &Content<'_>) -> (Vec<Vec<u32>>, Counts) {
    let index: HashMap<&str, usize> =
        content.classes.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); content.classes.len()];
    let mut counts = Counts::default();
    for sample in 0..content.samples {
        let record = (content.record)(sample);
        let mut labels = 0;
        for class in labels_of(record.label).filter_map(|label| index.get(label).copied()) {
            labels += 1;
            // `a|a` is one label.
            if rows[class].last() != Some(&(sample as u32)) {
                rows[class].push(sample as u32);
            }
        }
        counts.unlabelled += u64::from(labels == 0);
        counts.several += u64::from(record.row.flags & super::flag::SEVERAL != 0);
    }
    counts.by_class = rows.iter().map(|rows| rows.len() as u64).collect();
    (rows, counts)
}

/// `rows.npy` and `ids.csv` of a part, checked against each other.
#[derive(Debug)]
pub struct Loaded {
    /// By sample.
    pub rows: Vec<Row>,
    ids: Table,
}

impl Loaded {
    /// Reads both from `folder`, which must hold `samples` samples; with `sums`, their bytes must have these.
    ///
    /// # Errors
    /// [`Error::Table`] where a table is not as it was written.
    pub fn read(folder: &Path, samples: usize, sums: Option<&BTreeMap<String, FileSum>>) -> Result<Self> {
        let load = |name: &str| {
            let path = folder.join(name);
            let bytes = table::load(&path)?;
            if sums.is_some_and(|sums| sums.get(name) != Some(&FileSum::of(&bytes))) {
                let why = "its bytes are not those that were written: `prep verify` tells what is damaged, and with \
                           --repair-index makes the tables anew from the shards";
                return Err(Error::table(&path, None, why));
            }
            Ok((path, bytes))
        };
        let (path, bytes) = load("rows.npy")?;
        let data = npy::data(&path, &bytes, Row::DESCR, Row::BYTES)?;
        let rows: Vec<Row> = data.as_chunks::<{ Row::BYTES }>().0.iter().map(Row::from_bytes).collect();
        drop(bytes);
        let (ids_path, bytes) = load("ids.csv")?;
        let ids = table::parse(&ids_path, bytes, Header::Names)?;
        let wrong = |line: Option<u64>, why: String| {
            Error::table(&ids_path, line, format!("{why}; `prep verify --repair-index` makes it anew"))
        };
        if rows.len() != samples || ids.len() != samples {
            let why = format!(
                "the manifest counts {samples} samples, rows.npy {} and ids.csv {}",
                rows.len(),
                ids.len()
            );
            return Err(wrong(None, why));
        }
        if ids.columns != IDS {
            return Err(wrong(Some(1), format!("its columns are not {}", IDS.join(","))));
        }
        for (i, row) in rows.iter().enumerate() {
            if ids.cell(i, 0).parse() != Ok(i) || ids.cell(i, 1).parse() != Ok(row.row) {
                let got = format!("{} of row {}", shown(ids.cell(i, 0)), shown(ids.cell(i, 1)));
                return Err(wrong(
                    Some(ids.line(i)),
                    format!("sample {i} of row {} is called {got}", row.row),
                ));
            }
        }
        Ok(Self { rows, ids })
    }

    /// The record of sample `i`.
    pub fn record(&self, i: usize) -> Record<'_> {
        let cell = |column| self.ids.cell(i, column);
        Record { row: self.rows[i], path: cell(2), hash: cell(3), label: cell(4), group: cell(5) }
    }
}

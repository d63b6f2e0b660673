//! The records of a shard, from the shard itself: what the tables can be made from anew.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;

use super::{Form, Layout, Owned, beton, mds, sum, tar};

/// The largest head of an `mds` shard, or record of a sample, that is taken into memory.
const MOST: u64 = 1 << 30;

/// A shard's own tale: its part, its first sample, and all records, with offsets, sizes and CRCs.
#[derive(Debug)]
pub struct Told {
    /// The part of the split; empty where the layout does not tell.
    pub split: String,
    /// The first sample; 0 where the layout does not tell.
    pub first: usize,
    /// In order. Shard numbers are the caller's to set.
    pub records: Vec<Owned>,
}

/// Reads the records of shard `number` at `path`.
///
/// # Errors
/// A sentence.
pub fn told(form: &Form, path: &Path, number: usize) -> Result<Told, String> {
    let meta = std::fs::symlink_metadata(path).map_err(|e| crate::error::io_reason(&e))?;
    if !meta.is_file() {
        return Err("this is no regular file".into());
    }
    match form.layout {
        Layout::Mds => of_mds(form, path),
        Layout::Wds => of_tar(path),
        Layout::Npy | Layout::Beton => beside(form, path, number, meta.len()),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "as map_err gives it")]
fn io(e: std::io::Error) -> String {
    crate::error::io_reason(&e)
}

fn of_mds(form: &Form, path: &Path) -> Result<Told, String> {
    let mut file = File::open(path).map_err(io)?;
    let mut start = [0; 8];
    file.read_exact(&mut start).map_err(io)?;
    let end = mds::header_end(&start).filter(|end| (8..MOST).contains(end)).ok_or("its head has no end")?;
    let mut header = start.to_vec();
    (&mut file).take(end - 8).read_to_end(&mut header).map_err(io)?;
    let (split, first, mut records) = mds::parse(form, &header)?;
    for record in &mut records {
        // The sizes stand at the sample's beginning, which is not far before its payload.
        let at = record.row.offset.saturating_sub(mds::lead(form));
        let mut size = [0; 4];
        file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut size)).map_err(io)?;
        record.row.size = mds::payload_of(form, u32::from_le_bytes(size));
    }
    Ok(Told { split, first, records })
}

fn of_tar(path: &Path) -> Result<Told, String> {
    let mut file = BufReader::with_capacity(sum::READ, File::open(path).map_err(io)?);
    let (mut at, mut records) = (0_u64, Vec::<Owned>::new());
    let (mut payload, mut record) = (None, None);
    loop {
        let mut block = [0; 512];
        file.read_exact(&mut block).map_err(io)?;
        at += 512;
        let Some((name, size)) = tar::member(&block)? else { break };
        let padded = size.div_ceil(512) * 512;
        let extension = name.split_once('.').map_or("", |(_, extension)| extension);
        match extension {
            "json" if size < MOST => {
                let mut text = vec![0; size as usize];
                file.read_exact(&mut text).map_err(io)?;
                record =
                    Some(tar::record_of(&text).ok_or("the description of a sample is not that of prep")?);
                file.seek_relative((padded - size) as i64).map_err(io)?;
            }
            "jpg" | "npy" => {
                let head = if extension == "npy" { 128 } else { 0 };
                payload = Some((at + head, size.saturating_sub(head)));
                file.seek_relative(i64::try_from(padded).map_err(|_| "a member has no size")?).map_err(io)?;
            }
            _ => {
                file.seek_relative(i64::try_from(padded).map_err(|_| "a member has no size")?).map_err(io)?;
            }
        }
        at += padded;
        if let (Some((offset, size)), true) = (payload, record.is_some()) {
            let mut owned: Owned = record.take().unwrap_or_default();
            owned.row.offset = offset;
            owned.row.size = super::short(size);
            records.push(owned);
            payload = None;
        }
    }
    Ok(Told { split: String::new(), first: 0, records })
}

/// `npy` and `beton` keep their records in a file beside the shard; sizes follow from them, or stand in the shard.
fn beside(form: &Form, path: &Path, number: usize, shard_len: u64) -> Result<Told, String> {
    let records_path = path.with_file_name(format!("records-{number:05}.json"));
    let text = crate::table::load(&records_path).map_err(|e| e.to_string())?;
    let named = |why: &str| format!("{}: {why}", crate::names::shown(&records_path));
    let value: Value = serde_json::from_slice(&text).map_err(|e| named(&e.to_string()))?;
    let (split, first, mut records) =
        mds::records_of(&value).ok_or_else(|| named("it is not as prep writes it"))?;
    if form.layout == Layout::Beton {
        let mut file = File::open(path).map_err(io)?;
        let sizes = beton::sizes(&mut file, shard_len).map_err(io)?;
        if sizes.len() != records.len() {
            return Err(named("it tells of more or fewer samples than the shard holds"));
        }
        records.iter_mut().zip(sizes).for_each(|(record, size)| record.row.size = size);
    } else {
        for record in &mut records {
            record.row.size = super::short(u64::from(record.row.h) * u64::from(record.row.w) * 3);
        }
    }
    Ok(Told { split, first, records })
}

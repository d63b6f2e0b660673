//! The layout `mds`: bytes that MosaicML Streaming, LitData and plain NumPy read alike.
//!
//! `u32 n | u32 at[n+1] | config | samples`; a sample is the two sizes, the image, the label. Both readers follow the
//! offsets and ignore what comes after a sample's columns, so padding puts every image at a multiple of 4096.

use serde_json::{Value, json};

use super::{ALIGNMENT, Form, Owned, Part, Place, Record, Row, Sheet, Store, align, short};

/// Bytes of the label of a sample.
const LABEL: u64 = 8;
/// The head of a Pillow image as both libraries store it: width, height, length of the mode, mode.
const PIL: u64 = 15;

/// Are images stored with the head of a Pillow image?
fn is_pil(form: &Form) -> bool {
    form.store == Store::Raw && form.fixed.is_none()
}

/// Bytes of a sample before its payload.
pub fn lead(form: &Form) -> u64 {
    8 + if is_pil(form) { PIL } else { 0 }
}

/// Bytes from a payload of `size` bytes to the next.
pub fn span(form: &Form, size: u64) -> u64 {
    align(size + LABEL + lead(form), ALIGNMENT)
}

/// The names that MDS and LitData have for the encodings of image and label.
pub fn encodings(form: &Form) -> ([String; 2], [&'static str; 2]) {
    match (form.store, form.fixed) {
        (Store::Jpeg, _) => (["jpeg".into(), "int".into()], ["jpeg", "int"]),
        (Store::Raw, None) => (["pil".into(), "int".into()], ["pil", "int"]),
        (Store::Raw, Some((h, w))) => {
            ([format!("ndarray:uint8:{h},{w},3"), "int".into()], ["no_header_numpy:4", "int"])
        }
    }
}

/// What MDS calls a shard's configuration.
pub fn config(form: &Form) -> Value {
    json!({
        "version": 2, "format": "mds", "compression": null, "hashes": ["xxh3_64"], "size_limit": form.shard_size,
        "column_names": ["image", "label"], "column_encodings": encodings(form).0, "column_sizes": [null, null],
    })
}

/// What a shard tells about one sample.
pub fn record_json(record: &Record<'_>) -> Value {
    let row = &record.row;
    json!([
        row.row,
        row.label,
        row.group,
        row.flags,
        row.h,
        row.w,
        row.crc32,
        record.path,
        record.hash,
        record.label,
        record.group
    ])
}

/// What a shard tells about itself, enough to make all tables anew.
pub fn about(form: &Form, place: &Place<'_>, records: &[Record<'_>]) -> Value {
    let rows: Vec<Value> = records.iter().map(record_json).collect();
    json!({
        "schema": super::SCHEMA, "split": place.split, "first": place.first, "store": form.store.as_str(), "rows": rows,
    })
}

/// The records in [`about`], without offsets, shards and sizes. `None` where it is not as prep writes it.
pub fn records_of(about: &Value) -> Option<(String, usize, Vec<Owned>)> {
    let rows = about.get("rows")?.as_array()?;
    let mut records = Vec::with_capacity(rows.len());
    for row in rows {
        let row = row.as_array().filter(|row| row.len() == 11)?;
        let number = |at: usize| row[at].as_u64().and_then(|n| u32::try_from(n).ok());
        let signed = |at: usize| row[at].as_i64().and_then(|n| i32::try_from(n).ok());
        let side = |at: usize| row[at].as_u64().and_then(|n| u16::try_from(n).ok());
        let text = |at: usize| row[at].as_str().map(str::to_owned);
        let numbers = Row {
            row: number(0)?,
            label: signed(1)?,
            group: signed(2)?,
            flags: number(3)?,
            h: side(4)?,
            w: side(5)?,
            crc32: number(6)?,
            ..Row::default()
        };
        records.push(Owned {
            row: numbers,
            path: text(7)?,
            hash: text(8)?,
            label: text(9)?,
            group: text(10)?,
        });
    }
    let first = usize::try_from(about.get("first")?.as_u64()?).ok()?;
    Some((about.get("split")?.as_str()?.to_owned(), first, records))
}

/// See [`Form::base`].
pub fn base(form: &Form) -> u64 {
    let place = Place { split: "", first: usize::MAX, image0: 0 };
    let config = config_text(form, &place, &[]).len() as u64;
    8 + config + ALIGNMENT + 256
}

/// See [`Form::cost`].
pub fn cost(form: &Form, record: &Record<'_>) -> u64 {
    4 + record_json(record).to_string().len() as u64 + 1 + span(form, u64::from(record.row.size))
}

fn config_text(form: &Form, place: &Place<'_>, records: &[Record<'_>]) -> String {
    let mut config = config(form);
    config["prep"] = about(form, place, records);
    config.to_string()
}

/// The shard.
pub fn sheet(form: &Form, place: &Place<'_>, records: &[Record<'_>]) -> Sheet {
    let lead = lead(form);
    let config = config_text(form, place, records);
    let n = records.len() as u64;
    let mut payload = align(4 + 4 * (n + 1) + config.len() as u64 + lead, ALIGNMENT);
    let mut header = Vec::with_capacity(payload as usize);
    header.extend(short(n).to_le_bytes());
    let first = payload - lead;
    for (i, record) in records.iter().enumerate() {
        header.extend(short(payload - lead).to_le_bytes());
        payload += span(form, u64::from(record.row.size));
        if i + 1 == records.len() {
            // Nothing follows, so no lead either: the file ends at a whole block.
            payload = align(payload - lead, ALIGNMENT);
        }
    }
    let end = if records.is_empty() { align(first, ALIGNMENT) } else { payload };
    header.extend(short(end).to_le_bytes());
    header.extend(config.as_bytes());
    header.resize(first as usize, b' ');

    let mut sheet = Sheet::default();
    sheet.bytes(Part::Header, header);
    for (i, record) in records.iter().enumerate() {
        sheet.bytes(Part::Frame(i), head(form, &record.row));
        sheet.payload(i, record.row.size);
        sheet.bytes(Part::Frame(i), i64::from(record.row.label).to_le_bytes().to_vec());
        let next = if i + 1 == records.len() { end } else { align(sheet.len + lead, ALIGNMENT) - lead };
        sheet.zeros_to(Part::Padding, next);
    }
    debug_assert_eq!(sheet.short_len(), short(end));
    sheet
}

/// The sizes of a sample's columns, and what stands before its pixels.
fn head(form: &Form, row: &Row) -> Vec<u8> {
    let pil = is_pil(form);
    let mut out = Vec::with_capacity(23);
    out.extend(short(u64::from(row.size) + if pil { PIL } else { 0 }).to_le_bytes());
    out.extend(8_u32.to_le_bytes());
    if pil {
        out.extend(u32::from(row.w).to_le_bytes());
        out.extend(u32::from(row.h).to_le_bytes());
        out.extend(3_u32.to_le_bytes());
        out.extend(b"RGB");
    }
    out
}

/// The records of a shard, from the shard alone: its split, its first sample, and the rows with sizes and offsets.
///
/// # Errors
/// A sentence, where it is not as prep writes it.
pub fn parse(form: &Form, header: &[u8]) -> Result<(String, usize, Vec<Owned>), &'static str> {
    let four = |at: usize| header.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let n = four(0).ok_or("it is empty")? as usize;
    let after = n.checked_add(2).and_then(|n| n.checked_mul(4)).filter(|end| *end <= header.len());
    let after = after.ok_or("it counts more samples than it can hold")?;
    let at = |i: usize| four(4 + 4 * i).map_or(0, u64::from);
    let text = header.get(after..at(0) as usize).ok_or("its offsets lead outside")?;
    let text = std::str::from_utf8(text).map_err(|_| "its configuration is no text")?;
    let value: Value = serde_json::from_str(text.trim_end()).map_err(|_| "its configuration is no JSON")?;
    let about = value.get("prep").and_then(records_of).ok_or("its configuration is not that of prep")?;
    let (split, first, mut records) = about;
    if records.len() != n {
        return Err("it tells of more or fewer samples than it holds");
    }
    for (i, record) in records.iter_mut().enumerate() {
        record.row.offset = at(i) + lead(form);
    }
    Ok((split, first, records))
}

/// Bytes of the payload of a sample whose image column has `size` bytes.
pub fn payload_of(form: &Form, size: u32) -> u32 {
    if is_pil(form) { size.saturating_sub(PIL as u32) } else { size }
}

/// Where the header of the shard ends that begins with these 8 bytes and more; `None` when they are too few.
pub fn header_end(start: &[u8]) -> Option<u64> {
    start.get(4..8).map(|b| u64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])))
}

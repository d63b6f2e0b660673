//! The layout `beton`: FFCV version 2 with the fields `image` and `label`.
//!
//! `header | fields | metadata | zeros | pages | table of (sample, place, bytes)`. A sample lies within one page.

use std::io::{self, Read, Seek, SeekFrom};

use super::{Form, Part, Place, Record, Row, Sheet, Store, align, short};

/// Header and the two fields.
const HEAD: u64 = 24 + 2 * FIELD;
const FIELD: u64 = 1 + 16 + 1024;
/// Metadata of a sample: mode, width, height, place; label.
const META: u64 = 24;
const IMAGE: u8 = 2;
const INT: u8 = 1;

/// Bytes of a page: 8 MiB, or the power of 2 that holds a sample of the fixed size.
pub fn page(form: &Form) -> u64 {
    let sample = match (form.store, form.fixed) {
        (Store::Raw, Some((h, w))) => u64::from(h) * u64::from(w) * 3,
        _ => 0,
    };
    sample.next_power_of_two().max(8 << 20)
}

/// Where pages begin in a file that may get `most` samples.
pub fn pages_at(form: &Form, most: usize) -> u64 {
    align(HEAD + META * most as u64, page(form))
}

/// Where a payload of `size` bytes goes that follows one which ended at `end`.
pub fn next(form: &Form, end: u64, size: u32) -> u64 {
    let page = page(form);
    let left = align(end, page) - end;
    if u64::from(size) <= left { end } else { align(end, page) }
}

fn field(kind: u8, name: &[u8]) -> Vec<u8> {
    let mut out = vec![0; FIELD as usize];
    out[0] = kind;
    out[1..=name.len()].copy_from_slice(name);
    out
}

fn meta(row: &Row, at: u64) -> [u8; META as usize] {
    let mut out = [0; META as usize];
    out[0] = u8::from(!row.is_jpeg());
    out[1..3].copy_from_slice(&row.w.to_le_bytes());
    out[3..5].copy_from_slice(&row.h.to_le_bytes());
    out[5..13].copy_from_slice(&at.to_le_bytes());
    out[16..24].copy_from_slice(&i64::from(row.label).to_le_bytes());
    out
}

/// The file, whose pages begin at `place.image0`.
pub fn sheet(form: &Form, place: &Place<'_>, records: &[Record<'_>]) -> Sheet {
    let mut at = Vec::with_capacity(records.len());
    let mut end = place.image0;
    for record in records {
        let start = next(form, end, record.row.size);
        at.push(start);
        end = start + u64::from(record.row.size);
    }
    let table = align(end, page(form));

    let mut head = Vec::new();
    head.extend(2_u16.to_le_bytes());
    head.extend(2_u16.to_le_bytes());
    head.extend(short(page(form)).to_le_bytes());
    head.extend((records.len() as u64).to_le_bytes());
    head.extend(table.to_le_bytes());
    head.extend(field(IMAGE, b"image"));
    head.extend(field(INT, b"label"));
    let mut sheet = Sheet::default();
    sheet.bytes(Part::Header, head);
    for (i, record) in records.iter().enumerate() {
        sheet.bytes(Part::Frame(i), meta(&record.row, at[i]).to_vec());
    }
    for (i, record) in records.iter().enumerate() {
        sheet.zeros_to(Part::Padding, at[i]);
        sheet.payload(i, record.row.size);
    }
    sheet.zeros_to(Part::Padding, table);
    for (i, record) in records.iter().enumerate() {
        let numbers = [i as u64, at[i], u64::from(record.row.size)];
        sheet.bytes(Part::Frame(i), numbers.iter().flat_map(|n| n.to_le_bytes()).collect());
    }
    sheet
}

/// The sizes of the samples in the table at the end of a file of `len` bytes.
///
/// # Errors
/// Those of `file`; a table that is not as prep writes it.
pub fn sizes(file: &mut (impl Read + Seek), len: u64) -> io::Result<Vec<u32>> {
    let odd = || io::Error::other("its table of samples is not as prep writes it");
    let mut head = [0; 24];
    file.read_exact(&mut head)?;
    let eight = |b: &[u8]| u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
    let (n, table) = (eight(&head[8..16]), eight(&head[16..24]));
    let bytes = n.checked_mul(24).filter(|bytes| table.checked_add(*bytes) == Some(len)).ok_or_else(odd)?;
    file.seek(SeekFrom::Start(table))?;
    let mut entries = Vec::new();
    file.take(bytes).read_to_end(&mut entries)?;
    entries.chunks_exact(24).map(|entry| u32::try_from(eight(&entry[16..24])).map_err(|_| odd())).collect()
}

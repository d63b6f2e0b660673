//! The layout `npy`: one array a shard, its data at 4096.

use super::{ALIGNMENT, Form, Part, Record, Sheet, npy};

/// The array of images.
pub fn sheet(form: &Form, records: &[Record<'_>]) -> Sheet {
    let (h, w) = form.fixed.unwrap_or_default();
    let shape = [records.len(), usize::from(h), usize::from(w), 3];
    let mut sheet = Sheet::default();
    sheet.bytes(Part::Header, npy::header(&npy::word("|u1"), &shape, ALIGNMENT as usize));
    for (i, record) in records.iter().enumerate() {
        sheet.payload(i, record.row.size);
    }
    sheet
}

/// The array of labels.
pub fn labels(records: &[Record<'_>]) -> Vec<u8> {
    let mut out = npy::header(&npy::word("<i8"), &[records.len()], 64);
    out.extend(records.iter().flat_map(|record| i64::from(record.row.label).to_le_bytes()));
    out
}

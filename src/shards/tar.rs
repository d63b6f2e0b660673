//! The layout `wds`: USTAR with nothing in it that differs from run to run.

use serde_json::{Value, json};

use super::{Owned, Part, Record, Row, Sheet, align, npy};

/// A tar ends with zeros up to a multiple of this.
pub const END: u64 = 10_240;
const BLOCK: u64 = 512;

/// A file within the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// `000000007.jpg`.
    pub name: String,
    /// Where its content begins.
    pub offset: u64,
    /// Bytes of the content.
    pub size: u64,
}

/// A USTAR header: mode 0444, no owner, no time.
pub fn header(name: &str, size: u64) -> Vec<u8> {
    let mut block = vec![0; BLOCK as usize];
    let mut put = |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, &name[..name.len().min(99)]);
    put(100, "0000444");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{size:011o}"));
    put(136, "00000000000");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar");
    put(263, "00");
    let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// The `.json` of a sample.
fn json_of(record: &Record<'_>) -> String {
    let row = &record.row;
    json!({
        "row": row.row, "label": row.label, "label_text": record.label, "group": row.group,
        "group_text": record.group, "flags": row.flags, "h": row.h, "w": row.w, "crc32": row.crc32,
        "path": record.path, "hash": record.hash,
    })
    .to_string()
}

/// The record in the `.json` of a sample. `None` where it is not as prep writes it.
pub fn record_of(text: &[u8]) -> Option<Owned> {
    let value: Value = serde_json::from_slice(text).ok()?;
    let number = |key: &str| value.get(key)?.as_u64().and_then(|n| u32::try_from(n).ok());
    let signed = |key: &str| value.get(key)?.as_i64().and_then(|n| i32::try_from(n).ok());
    let side = |key: &str| value.get(key)?.as_u64().and_then(|n| u16::try_from(n).ok());
    let text = |key: &str| value.get(key)?.as_str().map(str::to_owned);
    let row = Row {
        row: number("row")?,
        label: signed("label")?,
        group: signed("group")?,
        flags: number("flags")?,
        h: side("h")?,
        w: side("w")?,
        crc32: number("crc32")?,
        ..Row::default()
    };
    let (path, hash) = (text("path")?, text("hash")?);
    Some(Owned { row, path, hash, label: text("label_text")?, group: text("group_text")? })
}

/// What stands before the pixels in the `.npy` of a sample.
fn npy_head(row: &Row) -> Vec<u8> {
    npy::header(&npy::word("|u1"), &[usize::from(row.h), usize::from(row.w), 3], 128)
}

/// The members of a sample in order: name, content before the payload, and whether the payload follows.
fn members(record: &Record<'_>) -> Vec<(String, Vec<u8>, bool)> {
    let row = &record.row;
    let key = format!("{:09}", row.row);
    let json = (format!("{key}.json"), json_of(record).into_bytes(), false);
    let mut out = Vec::with_capacity(3);
    if row.label >= 0 {
        out.push((format!("{key}.cls"), row.label.to_string().into_bytes(), false));
    }
    if row.is_jpeg() {
        out.extend([(format!("{key}.jpg"), Vec::new(), true), json]);
    } else {
        out.extend([json, (format!("{key}.npy"), npy_head(row), true)]);
    }
    out
}

/// See [`super::Form::cost`].
pub fn cost(record: &Record<'_>) -> u64 {
    let payload = |has: bool| if has { u64::from(record.row.size) } else { 0 };
    members(record)
        .into_iter()
        .map(|(_, head, has)| BLOCK + align(head.len() as u64 + payload(has), BLOCK))
        .sum()
}

/// The archive.
pub fn sheet(records: &[Record<'_>]) -> Sheet {
    let mut sheet = Sheet::default();
    for (i, record) in records.iter().enumerate() {
        add(&mut sheet, i, record);
    }
    end(&mut sheet);
    sheet
}

/// Adds the members of sample `i` to the archive so far.
pub fn add(sheet: &mut Sheet, i: usize, record: &Record<'_>) {
    for (name, head, has_payload) in members(record) {
        let payload = if has_payload { record.row.size } else { 0 };
        let size = head.len() as u64 + u64::from(payload);
        let mut block = header(&name, size);
        block.extend(head);
        sheet.bytes(Part::Frame(i), block);
        if has_payload {
            sheet.payload(i, payload);
        }
        sheet.zeros_to(Part::Padding, align(sheet.len, BLOCK));
    }
}

/// Ends the archive.
pub fn end(sheet: &mut Sheet) {
    sheet.zeros_to(Part::Padding, align(sheet.len + 2 * BLOCK, END));
}

/// The members of each sample, for indexes: the same walk as [`sheet`].
pub fn layout(records: &[Record<'_>]) -> Vec<Vec<Member>> {
    let mut at = 0;
    let mut all = Vec::with_capacity(records.len());
    for record in records {
        let mut sample = Vec::with_capacity(3);
        for (name, head, has_payload) in members(record) {
            let size = head.len() as u64 + if has_payload { u64::from(record.row.size) } else { 0 };
            sample.push(Member { name, offset: at + BLOCK, size });
            at += BLOCK + align(size, BLOCK);
        }
        all.push(sample);
    }
    all
}

/// The member whose header is `block`: its name and size. `None` at the end, `Err` where it is no header.
///
/// # Errors
/// A sentence.
pub fn member(block: &[u8; 512]) -> Result<Option<(String, u64)>, &'static str> {
    if block.iter().all(|b| *b == 0) {
        return Ok(None);
    }
    let name = block[..100].split(|b| *b == 0).next().unwrap_or_default();
    let name = std::str::from_utf8(name).map_err(|_| "a member has no plain name")?;
    let digits = std::str::from_utf8(&block[124..135]).map_err(|_| "a member has no size")?;
    let size = u64::from_str_radix(digits, 8).map_err(|_| "a member has no size")?;
    if header(name, size) != block {
        return Err("a member's header is not as prep writes it");
    }
    Ok(Some((name.to_owned(), size)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_its_checksum_and_comes_back() {
        let block = header("000000007.jpg", 1234);
        let sum = u32::from_str_radix(std::str::from_utf8(&block[148..154]).unwrap(), 8).unwrap();
        let mut blank = block.clone();
        blank[148..156].fill(b' ');
        assert_eq!(sum, blank.iter().map(|b| u32::from(*b)).sum::<u32>());
        let block: [u8; 512] = block.try_into().unwrap();
        assert_eq!(member(&block), Ok(Some(("000000007.jpg".into(), 1234))));
        assert_eq!(member(&[0; 512]), Ok(None));
    }
}

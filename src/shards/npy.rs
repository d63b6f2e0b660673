//! `.npy` files of format 1.0: headers as NumPy writes them, and reading back what prep wrote.

use std::path::Path;

use crate::error::{Error, Result};

/// The header of an array, padded with spaces so that data begin at a multiple of `align` (at least 16).
pub fn header(descr: &str, shape: &[usize], align: usize) -> Vec<u8> {
    let shape = match shape {
        [one] => format!("({one},)"),
        many => format!("({})", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    };
    let dict = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
    let whole = (10 + dict.len() + 1).next_multiple_of(align);
    let mut out = Vec::with_capacity(whole);
    out.extend(b"\x93NUMPY\x01\x00");
    out.extend(((whole - 10) as u16).to_le_bytes());
    out.extend(dict.as_bytes());
    out.resize(whole - 1, b' ');
    out.push(b'\n');
    out
}

/// A dtype that is a plain word, as it stands in a header.
pub fn word(dtype: &str) -> String {
    format!("'{dtype}'")
}

/// The data of the one-dimensional array in `bytes`, whose dtype must be `descr` of `item` bytes; and how many items.
///
/// # Errors
/// [`Error::Table`] naming `path` for anything else.
pub fn data<'a>(path: &Path, bytes: &'a [u8], descr: &str, item: usize) -> Result<&'a [u8]> {
    let wrong =
        |why: &str| Error::table(path, None, format!("{why}; `prep verify --repair-index` makes it anew"));
    let head = bytes.get(..10).filter(|head| head.starts_with(b"\x93NUMPY\x01\x00"));
    let head = head.ok_or_else(|| wrong("no .npy file of format 1.0"))?;
    let start = 10 + usize::from(u16::from_le_bytes([head[8], head[9]]));
    let text = bytes.get(10..start).ok_or_else(|| wrong("ends within its header"))?;
    let body = &bytes[start..];
    let count = body.len() / item;
    if header(descr, &[count], 64)[10..] != *text || !body.len().is_multiple_of(item) {
        return Err(wrong("its header does not fit its data"));
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_aligned_and_comes_back() {
        let mut bytes = header(&word("<i8"), &[3], 64);
        assert_eq!(bytes.len() % 64, 0);
        bytes.extend([1; 24]);
        let path = Path::new("labels.npy");
        assert_eq!(data(path, &bytes, &word("<i8"), 8).unwrap().len(), 24);
        for cut in 0..bytes.len() {
            assert!(data(path, &bytes[..cut], &word("<i8"), 8).is_err(), "{cut}");
        }
        assert_eq!(header(&word("|u1"), &[2, 4, 4, 3], 4096).len(), 4096);
    }
}

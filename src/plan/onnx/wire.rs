//! Protocol buffers, as far as ONNX needs them, read as a stream: what is not wanted is skipped over, so a file with
//! gigabytes of weights costs no memory.

use std::io::{BufReader, Read, Seek};

/// The longest name or text that is kept.
const TEXT: u64 = 64 << 10;
/// The most fields of a file: beyond it somebody wants to waste time.
const FIELDS: u64 = 50_000_000;
/// The most bytes that may be kept of a file, names and numbers together.
const KEPT: u64 = 256 << 20;

/// A stream of fields.
pub struct Wire<R> {
    reader: BufReader<R>,
    /// Where the stream is.
    pub at: u64,
    fields: u64,
    kept: u64,
}

/// The content of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// A number.
    Number(u64),
    /// Four or eight bytes, as a number.
    Fixed(u64),
    /// So many bytes follow: a text, a message, or packed numbers.
    Bytes(u64),
}

impl<R: Read + Seek> Wire<R> {
    /// A stream from the beginning of `reader`.
    pub fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, reader), at: 0, fields: 0, kept: 0 }
    }

    /// The next field before `end`: its number and content. The bytes of a [`Field::Bytes`] must be taken or skipped.
    pub fn field(&mut self, end: u64) -> Result<Option<(u32, Field)>, String> {
        if self.at >= end {
            return Ok(None);
        }
        self.fields += 1;
        if self.fields > FIELDS {
            return Err(format!("more than {FIELDS} fields"));
        }
        let key = self.number(end)?;
        let number = u32::try_from(key >> 3).map_err(|_| self.wrong("a field with an impossible number"))?;
        let field = match key & 7 {
            0 => Field::Number(self.number(end)?),
            1 => Field::Fixed(self.fixed(8, end)?),
            5 => Field::Fixed(self.fixed(4, end)?),
            2 => {
                let length = self.number(end)?;
                if length > end.saturating_sub(self.at) {
                    return Err(self.wrong("a part that ends after the whole"));
                }
                Field::Bytes(length)
            }
            _ => return Err(self.wrong("a kind of field that ONNX does not have")),
        };
        Ok(Some((number, field)))
    }

    /// Steps over `length` bytes.
    pub fn skip(&mut self, length: u64) -> Result<(), String> {
        let mut left = length;
        while left > 0 {
            let step = left.min(1 << 40);
            self.reader.seek_relative(step as i64).map_err(|e| format!("it cannot be read: {e}"))?;
            left -= step;
        }
        self.at += length;
        Ok(())
    }

    /// `length` bytes of text.
    pub fn text(&mut self, length: u64) -> Result<String, String> {
        if length > TEXT {
            return Err(self.wrong("a name of more than 64 KiB"));
        }
        // A name is kept twice: as a number's text and to be looked up.
        self.keep(length)?;
        let bytes = self.bytes(length)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// `length` bytes, as they are.
    pub fn bytes(&mut self, length: u64) -> Result<Vec<u8>, String> {
        self.keep(length)?;
        let mut bytes = vec![0; length as usize];
        self.reader.read_exact(&mut bytes).map_err(|_| self.wrong("the file ends in the middle"))?;
        self.at += length;
        Ok(bytes)
    }

    /// Counts `bytes` that are kept, and what keeping anything costs.
    pub fn keep(&mut self, bytes: u64) -> Result<(), String> {
        self.kept = self.kept.saturating_add(bytes).saturating_add(160);
        if self.kept > KEPT { Err(format!("its graph is larger than {} MiB", KEPT >> 20)) } else { Ok(()) }
    }

    /// A number of seven bits a byte.
    pub fn number(&mut self, end: u64) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            if self.at >= end {
                return Err(self.wrong("the file ends in the middle"));
            }
            let mut byte = [0];
            self.reader.read_exact(&mut byte).map_err(|_| self.wrong("the file ends in the middle"))?;
            self.at += 1;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.wrong("a number without an end"))
    }

    fn fixed(&mut self, length: usize, end: u64) -> Result<u64, String> {
        if end.saturating_sub(self.at) < length as u64 {
            return Err(self.wrong("the file ends in the middle"));
        }
        let mut bytes = [0; 8];
        self.reader
            .read_exact(&mut bytes[..length])
            .map_err(|_| self.wrong("the file ends in the middle"))?;
        self.at += length as u64;
        Ok(u64::from_le_bytes(bytes))
    }

    fn wrong(&self, what: &str) -> String {
        format!("this is no ONNX file, or a damaged one: {what} (byte {})", self.at)
    }
}

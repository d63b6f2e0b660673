//! Names from the user's disk: lossless in tables, harmless on terminals.
//!
//! In tables and manifests a path is UTF-8 with `/`; bytes outside UTF-8, control characters and `%` itself where it
//! could be mistaken for such an escape are written `%XX`, so that every name on disk has exactly one spelling and comes
//! back byte for byte. `100%20.jpg` stays as it is: a space is never escaped, so this cannot be one. On terminals control characters and bidirectional overrides are shown as escapes.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The spelling of a path in tables: UTF-8, `/`, with everything else percent-encoded. Reversed by [`decode`].
pub fn encode(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        for (at, c) in valid.char_indices() {
            let escape = c.is_control() || (c == '%' && is_escape(&valid.as_bytes()[at + 1..]));
            if escape {
                let mut buf = [0; 4];
                percent(&mut out, c.encode_utf8(&mut buf).as_bytes());
            } else {
                out.push(c);
            }
        }
        percent(&mut out, chunk.invalid());
    }
    out
}

/// Is `text` its own spelling, and the path that it spells? So are most names, which need not be copied to find out.
pub fn is_plain(text: &str) -> bool {
    text.bytes().all(|b| b != b'%' && (0x20..0x7f).contains(&b))
}

/// Has the path that `text` spells bytes that are no text: control characters, or bytes outside UTF-8?
pub fn is_escaped(text: &str) -> bool {
    decode(text).as_os_str().as_bytes() != text.as_bytes()
}

/// The path that [`encode`] spelled as `text`. Text that has no escapes is taken as it is.
pub fn decode(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' && is_escape(&bytes[at + 1..]) {
            out.push(hex(bytes[at + 1]) << 4 | hex(bytes[at + 2]));
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    PathBuf::from(OsString::from_vec(out))
}

fn percent(out: &mut String, bytes: &[u8]) {
    for b in bytes {
        let _ = write!(out, "%{b:02X}");
    }
}

/// Do these bytes continue a `%` to an escape that [`encode`] writes: capitals, of a byte that it does not leave alone?
fn is_escape(rest: &[u8]) -> bool {
    match rest {
        [a, b, ..] if is_hex(*a) && is_hex(*b) => {
            let byte = hex(*a) << 4 | hex(*b);
            !(0x20..0x7f).contains(&byte) || byte == b'%'
        }
        _ => false,
    }
}

fn is_hex(b: u8) -> bool {
    matches!(b, b'0'..=b'9' | b'A'..=b'F')
}

fn hex(b: u8) -> u8 {
    if b.is_ascii_digit() { b - b'0' } else { b - b'A' + 10 }
}

/// Text from the user's disk, made harmless for a terminal or a log.
pub struct Shown<'a>(&'a OsStr);

/// A name or label as it may be printed: control characters, escapes and bidirectional overrides are spelled out.
pub fn shown<T: AsRef<OsStr> + ?Sized>(text: &T) -> Shown<'_> {
    Shown(text.as_ref())
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.as_bytes().utf8_chunks() {
            for c in chunk.valid().chars() {
                let hidden = c.is_control()
                    || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
                if hidden { write!(f, "{}", c.escape_unicode())? } else { f.write_char(c)? }
            }
            for b in chunk.invalid() {
                write!(f, "\\x{b:02x}")?;
            }
        }
        Ok(())
    }
}

/// 18204 as 18,204.
pub fn thousands(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// "1 image", "18,204 images", "2 copies", "3 classes".
pub fn plural(n: usize, noun: &str) -> String {
    let many = match noun.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if noun.ends_with('s') => format!("{noun}es"),
        None => format!("{noun}s"),
    };
    format!("{} {}", thousands(n as u64), if n == 1 { noun } else { &many })
}

/// What begins a cell that a spreadsheet runs.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// A cell for files that people open in a spreadsheet: one that would run as a formula gets a leading `'`.
pub fn spreadsheet_safe(cell: &str) -> std::borrow::Cow<'_, str> {
    if cell.starts_with(FORMULA) { format!("'{cell}").into() } else { cell.into() }
}

/// The cell that [`spreadsheet_safe`] put a `'` before; none where it did not.
pub fn spreadsheet_plain(cell: &str) -> Option<&str> {
    cell.strip_prefix('\'').filter(|plain| plain.trim_start_matches('\'').starts_with(FORMULA))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back_byte_for_byte() {
        let names: [&[u8]; 9] = [
            b"a/b.jpg",
            b"100%.jpg",
            b"100%0A.jpg",
            b"100%250A%25.jpg",
            b"100%41.jpg",
            b"nul\xff\xfe.jpg",
            b"new\nline\x1b[31m.jpg",
            "é中😀.jpg".as_bytes(),
            b"%",
        ];
        for name in names {
            let path = Path::new(OsStr::from_bytes(name));
            let text = encode(path);
            assert!(!text.chars().any(char::is_control), "{text:?}");
            assert_eq!(decode(&text), path, "{text}");
        }
        assert_eq!(encode(Path::new("100%.jpg")), "100%.jpg");
        assert_eq!(encode(Path::new("100%41.jpg")), "100%41.jpg");
        assert_eq!(encode(Path::new("100%0A.jpg")), "100%250A.jpg");
    }

    #[test]
    fn a_terminal_never_sees_a_control_character() {
        let text = shown("red\x1b[31m\u{202e}gpj.exe\n").to_string();
        assert!(!text.chars().any(char::is_control), "{text:?}");
        assert_eq!(text, "red\\u{1b}[31m\\u{202e}gpj.exe\\u{a}");
    }
}

//! Text into HTML, JSON into a script element, bytes into base64.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::names;

/// Text from the user's disk as HTML text or as an attribute in double quotes. Control characters and bidirectional
/// overrides are spelled out, as on terminals: a name must not pass for another.
pub(super) fn text(text: &str) -> String {
    markup(&names::shown(text).to_string())
}

/// Text of prep's own as HTML.
pub(super) fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A writer for JSON in a script element. `<` stands only inside strings there, where it may be spelled `\u003c`: so
/// neither `</script>` nor `<!--` can come about.
pub(super) struct NoMarkup<W>(pub(super) W);

impl<W: Write> Write for NoMarkup<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let mut parts = buf.split(|b| *b == b'<');
        self.0.write_all(parts.next().unwrap_or_default())?;
        for part in parts {
            self.0.write_all(b"\\u003c")?;
            self.0.write_all(part)?;
        }
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Appends `bytes` in base64 (RFC 4648, section 4).
pub(super) fn base64(out: &mut String, bytes: &[u8]) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for three in bytes.chunks(3) {
        let at = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for letter in 0..4 {
            let six = bits >> (18 - 6 * letter) & 63;
            out.push(if letter > three.len() { '=' } else { char::from(LETTERS[six as usize]) });
        }
    }
}

/// `text` cut to `most` characters in its middle.
pub(super) fn elided(text: &str, most: usize) -> String {
    let long = text.chars().count();
    if long <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most / 2).collect();
    let tail: String = text.chars().skip(long - most.div_ceil(2) + 1).collect();
    format!("{head}…{tail}")
}

/// A number for people: at most three decimals, none that say nothing.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let mut out = String::new();
    let _ = write!(out, "{value:.3}");
    out.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, want) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ] {
            let mut out = String::new();
            base64(&mut out, bytes.as_bytes());
            assert_eq!(out, want);
        }
    }

    #[test]
    fn no_name_becomes_markup() {
        assert_eq!(
            text("<img src=x onerror=\"a('&')\">"),
            "&lt;img src=x onerror=&quot;a(&#39;&amp;&#39;)&quot;&gt;"
        );
        assert_eq!(text("a\u{202e}gpj.exe\x1b[1m"), "a\\u{202e}gpj.exe\\u{1b}[1m");
        let mut out = Vec::new();
        let name = "</script><!-- <b>";
        serde_json::to_writer(NoMarkup(&mut out), &[name]).unwrap();
        assert!(!out.contains(&b'<'));
        assert_eq!(serde_json::from_slice::<Vec<String>>(&out).unwrap(), [name]);
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(elided("short.jpg", 20), "short.jpg");
        let cut = elided("a-very-long-name-of-a-picture-0001.jpg", 16);
        assert_eq!(cut.chars().count(), 16);
        assert!(cut.starts_with("a-very") && cut.ends_with("001.jpg"), "{cut}");
    }
}

//! Everything that prep says: results on standard output, sentences on standard error.

use std::io::{self, IsTerminal, Write};

use unicode_width::UnicodeWidthStr;

use super::args::{Global, When};
use crate::error::{Error, Result};
pub use crate::names::{plural, thousands};

/// Where the words go, and how.
pub struct Terminal {
    quiet: u8,
    /// How often `-v` was given.
    pub verbose: u8,
    colour: bool,
}

impl Terminal {
    /// As the options say.
    pub fn new(global: &Global) -> Self {
        let colour = match global.color {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
            }
        };
        Self { quiet: global.quiet, verbose: global.verbose, colour }
    }

    /// Before the options are known.
    pub fn plain() -> Self {
        Self { quiet: 0, verbose: 0, colour: false }
    }

    /// A sentence for the person.
    pub fn say(&self, sentence: &str) {
        if self.quiet == 0 {
            let _ = writeln!(io::stderr().lock(), "{sentence}");
        }
    }

    /// A sentence that matters even to those who want it quiet.
    pub fn warn(&self, sentence: &str) {
        if self.quiet < 2 {
            let (on, off) = self.paint("\x1b[33m");
            let _ = writeln!(io::stderr().lock(), "{on}warning:{off} {sentence}");
        }
    }

    /// What ended the run.
    pub fn error(&self, error: &Error) {
        let (on, off) = self.paint("\x1b[1;31m");
        let _ = writeln!(io::stderr().lock(), "{on}error:{off} {error}");
    }

    /// A part of the result, as it is. A reader that has gone away is no error.
    ///
    /// # Errors
    /// [`Error::Write`] for any other trouble with standard output.
    pub fn result(&self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        // Code and tables carry names as they are; on a terminal they may do nothing.
        let harmless = if out.is_terminal() { Some(harmless(text)) } else { None };
        let text = harmless.as_deref().unwrap_or(text);
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Err(Error::write("printing the result", "standard output", e))
            }
            _ => Ok(()),
        }
    }

    /// A picture in the words of a terminal: escapes and all. Never text of the user's.
    ///
    /// # Errors
    /// As [`Self::result`].
    pub fn picture(&self, drawn: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        match out.write_all(drawn.as_bytes()).and_then(|()| out.flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Err(Error::write("drawing the picture", "standard output", e))
            }
            _ => Ok(()),
        }
    }

    /// Is nothing to be said but warnings?
    pub fn is_quiet(&self) -> bool {
        self.quiet > 0
    }

    fn paint(&self, code: &'static str) -> (&'static str, &'static str) {
        if self.colour { (code, "\x1b[0m") } else { ("", "") }
    }
}

/// Text without what a terminal would obey, but for line breaks and tabs.
fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive(['\n', '\t']) {
        let end = line.strip_suffix(['\n', '\t']).map_or(0, |_| 1);
        out.push_str(&crate::names::shown(&line[..line.len() - end]).to_string());
        out.push_str(&line[line.len() - end..]);
    }
    out
}

/// A class in a table; spaces at its ends, which make another class of it, are seen.
pub fn class_name(name: &str) -> String {
    let shown = crate::names::shown(name);
    if name.trim() == name && !name.is_empty() { shown.to_string() } else { format!("`{shown}`") }
}

/// A path as it is said: from here, where that is shorter.
pub fn near(path: &std::path::Path) -> std::path::PathBuf {
    let from_here = crate::out::place::relative(std::path::Path::new("."), path);
    if path.is_absolute() && from_here.as_os_str().len() < path.as_os_str().len() {
        from_here
    } else {
        path.to_owned()
    }
}

/// Bytes in units of a thousand, three digits: 2.03 GB.
pub fn bytes(number: u64) -> String {
    let mut value = number as f64;
    let mut unit = 0;
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = if unit == 0 || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {}", units[unit])
}

/// A path as a shell takes it.
pub fn shell_word(path: &std::path::Path) -> String {
    let text = crate::names::shown(path).to_string();
    let plain = text.chars().all(|c| c.is_alphanumeric() || "/._-+,:@%".contains(c));
    if plain && !text.is_empty() { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Columns: numbers to the right, text to the left, two spaces between, no boxes.
pub fn columns(rows: &[Vec<String>], right: &[bool]) -> String {
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..right.len()).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (c, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[c].saturating_sub(cell.width()));
            let (before, after) = if right[c] { (pad.as_str(), "") } else { ("", pad.as_str()) };
            line.push_str("  ");
            line.push_str(before);
            line.push_str(cell);
            line.push_str(after);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_nothing_to_a_terminal() {
        assert_eq!(harmless("a\tb\u{1b}[2J\u{202e}\nc\n"), "a\tb\\u{1b}[2J\\u{202e}\nc\n");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(18_204_u32), "18,204");
        assert_eq!(thousands(7_u8), "7");
        assert_eq!((plural(1, "image"), plural(2000, "copy")), ("1 image".into(), "2,000 copies".into()));
        assert_eq!(bytes(2_031_000_000), "2.03 GB");
        assert_eq!(bytes(999_999), "1.00 MB");
        assert_eq!(bytes(12), "12 B");
    }
}

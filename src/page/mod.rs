//! Pages that people look at: one HTML file each, which needs nothing but a browser.
//!
//! [`audit`] is the report of an audit, [`sheet`] are contact sheets on which labels can be mended. A page holds its
//! data as JSON, its thumbnails, one style and one script, all inline, and its security policy lets it load nothing
//! else. Names and labels from the user's disk are text everywhere: Rust escapes them in the parts that are readable
//! without a script, and the script never sets markup. The same data give the same bytes.

use std::io::{self, Write};

use serde::Serialize;

pub mod audit;
mod audit_html;
pub mod chart;
mod escape;
pub mod sheet;
mod sheet_html;

const LOOK: &str = include_str!("web/look.css");
/// What both pages begin with, up to the header's brand.
const HEAD: &str = include_str!("web/head.html");
/// Parts that both pages use, in the order in which they are written.
const SHARED: [&str; 6] = [
    include_str!("web/names.js"),
    include_str!("web/elements.js"),
    include_str!("web/rows.js"),
    include_str!("web/marks.js"),
    include_str!("web/viewer.js"),
    include_str!("web/keys.js"),
];

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Training on this is wrong or impossible.
    Error,
    /// Look at it.
    Warning,
    /// Good to know.
    Info,
}

impl Severity {
    /// The word, which is a class of the style too.
    fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// Is `text` one of these pages, of this or an earlier version?
pub fn is_ours(text: &[u8]) -> bool {
    let head = &text[..text.len().min(4096)];
    let has = |word: &[u8]| head.windows(word.len()).any(|at| at == word);
    head.starts_with(b"<!doctype html>") && (has(b"prep audit</title>") || has(b"prep sheet</title>"))
}

/// What a page is made of.
struct Page<'a> {
    /// The command that makes it.
    name: &'static str,
    /// What follows [`HEAD`].
    template: &'static str,
    /// The script of this page alone.
    script: &'static str,
    title: &'a str,
    /// HTML for the other slots of the template.
    slots: Vec<(&'static str, String)>,
}

impl Page<'_> {
    /// Writes the page: template, style, data, thumbnails, script. An empty thumbnail leaves its number unused.
    fn write<D: Serialize, T: AsRef<[u8]>>(
        mut self,
        w: &mut dyn Write,
        data: &D,
        thumbs: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        let mut json = Vec::new();
        serde_json::to_writer(escape::NoMarkup(&mut json), data).map_err(io::Error::other)?;
        let json = String::from_utf8(json).map_err(io::Error::other)?;
        // The policy runs only scripts that know this word, and nobody who picks a name for a file can foretell it: it
        // hangs on everything in the page, the name included.
        let nonce = blake3::hash(json.as_bytes()).to_hex()[..32].to_owned();
        self.slots.extend([
            ("page", self.name.to_owned()),
            ("title", escape::text(self.title)),
            ("nonce", nonce),
            ("style", LOOK.to_owned()),
            ("script", [&SHARED.concat(), self.script].concat()),
            ("data", json),
        ]);
        let (before, after) = self.template.split_once("{{thumbs}}").unwrap_or((self.template, ""));
        fill(w, HEAD, &self.slots)?;
        fill(w, before, &self.slots)?;
        write_thumbs(w, thumbs)?;
        fill(w, after, &self.slots)
    }
}

/// Writes `template` with its `{{slots}}` filled; what is filled in is never searched for slots.
fn fill(w: &mut dyn Write, template: &str, slots: &[(&'static str, String)]) -> io::Result<()> {
    let mut rest = template;
    while let Some((before, from)) = rest.split_once("{{") {
        w.write_all(before.as_bytes())?;
        let (name, after) = from.split_once("}}").unwrap_or((from, ""));
        let Some((_, content)) = slots.iter().find(|(slot, _)| *slot == name) else {
            return Err(io::Error::other(format!("the page has no content for {name}")));
        };
        w.write_all(content.as_bytes())?;
        rest = after;
    }
    w.write_all(rest.as_bytes())
}

/// One thumbnail a line, in base64. The first line is empty.
fn write_thumbs<T: AsRef<[u8]>>(w: &mut dyn Write, thumbs: impl IntoIterator<Item = T>) -> io::Result<()> {
    let mut line = String::new();
    for thumb in thumbs {
        line.clear();
        line.push('\n');
        escape::base64(&mut line, thumb.as_ref());
        w.write_all(line.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_not_a_template() {
        let mut out = Vec::new();
        fill(&mut out, "a{{x}}b{{y}}c", &[("x", "{{y}}".into()), ("y", "1".into())]).unwrap();
        assert_eq!(out, b"a{{y}}b1c");
        assert!(fill(&mut out, "{{z}}", &[]).is_err());
    }
}

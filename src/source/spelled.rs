//! Images by the paths that people and other programs write into lists and tables of fixes.

use std::collections::HashMap;

use crate::entry::Entry;
use crate::names::{self, spreadsheet_plain};

/// The rows of a listing by their paths.
pub struct ByPath<'a> {
    rows: HashMap<&'a str, usize>,
}

impl<'a> ByPath<'a> {
    /// Of these entries.
    pub fn new(entries: &'a [Entry]) -> Self {
        Self { rows: entries.iter().enumerate().map(|(at, entry)| (entry.path.as_str(), at)).collect() }
    }

    /// The rows that `text` can mean: none, one, or (of names that differ in a leading `'`) two. Understood are the
    /// spelling of manifests, bytes that it escapes, `./` and `//`, `\` for `/`, spaces around, and the `'` that is put
    /// before names which a spreadsheet would run.
    pub fn find(&self, text: &str) -> Vec<usize> {
        let mut found: Vec<usize> = self.at(text).into_iter().collect();
        found.extend(spreadsheet_plain(text).and_then(|plain| self.at(plain)));
        found
    }

    fn at(&self, text: &str) -> Option<usize> {
        let trimmed = text.trim();
        let slashed = trimmed.replace('\\', "/");
        let forms = [text, trimmed, slashed.as_str()];
        forms.into_iter().find_map(|form| self.exactly(form).or_else(|| self.exactly(&cleaned(form))))
    }

    fn exactly(&self, text: &str) -> Option<usize> {
        let spelled = || names::encode(&names::decode(text));
        self.rows.get(text).or_else(|| self.rows.get(spelled().as_str())).copied()
    }
}

/// Without parts that lead nowhere: `./a//b/./c` is `a/b/c`.
fn cleaned(path: &str) -> String {
    let root = if path.starts_with('/') { "/" } else { "" };
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    format!("{root}{}", parts.join("/"))
}

//! Which rows `--exclude` takes out, and why.

use std::collections::BTreeMap;

use super::finding::Finding;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::names;
use crate::source::ByPath;

/// Rows to take out, each with its reason.
pub type Exclusion = BTreeMap<usize, String>;

/// Codes of sets of which the one to keep stays, and the others go.
const KEEP_FIRST: [&str; 6] = ["D001", "D002", "D003", "D005", "D006", "D011"];
/// Sets that a person must look at: nothing tells which picture should go, or whether any should.
const LOOK_FIRST: [&str; 2] = ["D007", "D008"];
/// A whole class, of which nothing but its name is wrong.
const SPELLING: &str = "L005";

/// Are these beginnings of codes whose rows can be taken out?
///
/// # Errors
/// [`Error::Usage`] for a pattern that names no code, or just one whose sets must be looked at.
pub fn check_codes(patterns: &[String]) -> Result<()> {
    for pattern in patterns {
        if !super::CODES.iter().any(|code| code.is_named(std::slice::from_ref(pattern))) {
            return Err(unknown(pattern));
        }
        if pattern.eq_ignore_ascii_case(SPELLING) {
            let why = "is about how a class is written: correct the label, then its images can stay";
            return Err(Error::Usage(format!("{SPELLING} {why}")));
        }
        if let Some(id) = LOOK_FIRST.iter().find(|id| id.eq_ignore_ascii_case(pattern)) {
            return Err(Error::Usage(format!(
                "which pictures of {id} should go, a person must see: prep audit --html shows them, and saves a list that \
                 --exclude takes"
            )));
        }
    }
    Ok(())
}

/// The rows of the findings whose codes begin with one of `patterns`. Of sets of copies the first stays; where labels
/// disagree about one picture, all of it goes. Sets that must be looked at are not taken.
pub fn by_codes(findings: &[Finding], patterns: &[String]) -> Exclusion {
    let mut out = Exclusion::new();
    let stays = |id: &str| LOOK_FIRST.contains(&id) || id == SPELLING;
    let wanted = |f: &&Finding| f.code.is_named(patterns) && !stays(f.code.id);
    for finding in findings.iter().filter(wanted) {
        let kept = usize::from(KEEP_FIRST.contains(&finding.code.id));
        for image in finding.images.iter().skip(kept) {
            out.entry(*image).or_insert_with(|| format!("{} {}", finding.code.id, finding.code.title));
        }
    }
    out
}

fn unknown(pattern: &str) -> Error {
    let pattern = names::shown(pattern);
    Error::Usage(format!(
        "`{pattern}` is no code of a finding and no file; prep audit --explain all lists the codes"
    ))
}

/// The rows that the lines of a list name: paths as the report saves them.
///
/// # Errors
/// [`Error::Usage`] for a path that is no image of the input.
pub fn by_list(entries: &[Entry], list: &str) -> Result<Exclusion> {
    let rows = ByPath::new(entries);
    let mut out = Exclusion::new();
    let lines = list.strip_prefix('\u{feff}').unwrap_or(list).lines();
    for (n, line) in lines.enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let (n, shown) = (n + 1, names::shown(line));
        let why = match rows.find(line)[..] {
            [row] => {
                out.insert(row, "listed".into());
                continue;
            }
            [] => "is no image here; paths are relative to the data set",
            _ => "can mean two images here, with and without the `'`",
        };
        return Err(Error::Usage(format!("line {n} of the list names `{shown}`, which {why}")));
    }
    Ok(out)
}

/// Does a finding end when these rows are out: no image of it is left, or of a set of copies only one?
pub fn is_settled(finding: &Finding, out: &Exclusion) -> bool {
    let left = finding.images.iter().filter(|image| !out.contains_key(image)).count();
    let alone = usize::from(finding.is_set() && finding.images.len() > 1 || finding.code.id == "S001");
    !finding.images.is_empty() && left <= alone
}

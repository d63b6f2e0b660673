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
/// What says that labels of copies differ.
const DISPUTED: [&str; 2] = ["D004", "D007"];
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

/// The rows of the findings whose codes begin with one of `patterns`. Of sets of copies the first stays. Where labels
/// disagree about one picture, its own code takes all of it; other codes take nothing, for which label is right no rule
/// knows: so many sets are given too. Sets that must be looked at are not taken.
pub fn by_codes(findings: &[Finding], entries: &[Entry], patterns: &[String]) -> (Exclusion, usize) {
    let mut out = Exclusion::new();
    let stays = |id: &str| LOOK_FIRST.contains(&id) || id == SPELLING;
    let wanted = |f: &&Finding| f.code.is_named(patterns) && !stays(f.code.id);
    let disputes = Disputes::of(findings);
    let mut left = Vec::new();
    for finding in findings.iter().filter(wanted) {
        let kept = usize::from(KEEP_FIRST.contains(&finding.code.id));
        if kept > 0 && disputes.has(&finding.images, entries) {
            left.push(finding);
            continue;
        }
        for image in finding.images.iter().skip(kept) {
            out.entry(*image).or_insert_with(|| format!("{} {}", finding.code.id, finding.code.title));
        }
    }
    let left = left.iter().filter(|finding| !is_settled(finding, &out)).count();
    (out, left)
}

/// Which findings about differing labels each image is in.
struct Disputes(BTreeMap<usize, Vec<usize>>);

impl Disputes {
    fn of(findings: &[Finding]) -> Self {
        let mut by_image: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, finding) in findings.iter().enumerate().filter(|(_, f)| DISPUTED.contains(&f.code.id)) {
            finding.images.iter().for_each(|image| by_image.entry(*image).or_default().push(at));
        }
        Self(by_image)
    }

    /// Are two images of a set, with labels of their own, in one of these findings?
    fn has(&self, set: &[usize], entries: &[Entry]) -> bool {
        let mut labels: BTreeMap<usize, &str> = BTreeMap::new();
        let seen = set.iter().filter_map(|image| Some((image, self.0.get(image)?)));
        seen.flat_map(|(image, found)| found.iter().map(move |finding| (*finding, image))).any(
            |(finding, image)| {
                let label = entries[*image].label.as_str();
                *labels.entry(finding).or_insert(label) != label
            },
        )
    }
}

/// The refusal of what is neither a code nor a file.
pub fn unknown(pattern: &str) -> Error {
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
        let (n, shown) = (n + 1, names::shown(line.trim()).to_string());
        let shown = shown.char_indices().nth(120).map_or(shown.as_str(), |(end, _)| &shown[..end]);
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

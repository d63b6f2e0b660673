//! `prep audit`: all that is wrong with a data set, from the facts of its images, its label table and its split.

mod against;
mod code;
mod duplicates;
mod exclude;
mod files;
mod finding;
mod labels;
pub mod loaders;
mod numbers;
mod report;
mod shortcuts;
mod splits;
mod tables;

use std::collections::BTreeMap;

pub use self::against::against;
pub use self::code::{CODES, Code, Severity};
pub use self::duplicates::how;
pub use self::exclude::{Exclusion, by_codes, by_list, check_codes, is_settled, unknown};
pub use self::finding::{Finding, Guessed};
pub use self::numbers::Numbers;
pub use self::report::{Source, report};
pub use self::tables::{FACTS, FINDINGS, write_facts, write_findings};
use crate::facts::Facts;
use crate::near::Pair;
use crate::source::Listing;

/// What is looked for.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Only codes that begin with one of these; all where it is empty.
    pub select: Vec<String>,
    /// Not codes that begin with one of these.
    pub ignore: Vec<String>,
}

impl Choice {
    /// Is this kind wanted?
    pub fn wants(&self, code: &Code) -> bool {
        (self.select.is_empty() || code.is_named(&self.select)) && !code.is_named(&self.ignore)
    }
}

/// All findings of a listing, errors first, then by code and place. `facts` has one for each entry; `alike` are pairs
/// of near-duplicates; `others` are findings of a comparison with another set.
pub fn judge(
    listing: &Listing,
    facts: &[Facts],
    alike: &[Pair],
    others: Vec<Finding>,
    choice: &Choice,
) -> Vec<Finding> {
    let usual = files::Usual::of(facts);
    let numbers = Numbers::of(listing);
    let mut found = others;
    for (at, (entry, facts)) in listing.entries.iter().zip(facts).enumerate() {
        found.extend(files::of_image(at, &entry.path, facts, &usual));
    }
    found.extend(labels::findings(listing, numbers.as_ref()));
    found.extend(duplicates::findings(&listing.entries, facts, alike, numbers.as_ref()));
    let usable: Vec<bool> = facts.iter().map(|f| f.fault.is_none()).collect();
    found.extend(splits::findings(listing, &usable, numbers.is_none()));
    // Strongest first: their order stays.
    let shortcuts = if numbers.is_none() { shortcuts::findings(&listing.entries, facts) } else { Vec::new() };
    found.retain(|f| choice.wants(f.code));
    found.sort_by(|a, b| order(a).cmp(&order(b)));
    insert_shortcuts(found, shortcuts.into_iter().filter(|f| choice.wants(f.code)).collect())
}

type Order<'a> = (std::cmp::Reverse<Severity>, &'static str, Option<usize>, &'a str, Option<u64>, &'a str);

fn order(finding: &Finding) -> Order<'_> {
    let severity = std::cmp::Reverse(finding.code.severity);
    let first = finding.images.first().copied();
    (severity, finding.code.id, first, &finding.at, finding.line, &finding.detail)
}

/// Puts the shortcuts, in their own order, behind the other warnings.
fn insert_shortcuts(mut found: Vec<Finding>, shortcuts: Vec<Finding>) -> Vec<Finding> {
    let at = found.partition_point(|f| f.code.severity >= Severity::Warning);
    found.splice(at..at, shortcuts);
    found
}

/// How much of a severity there is: images, and findings that are about no image, as the groups count them.
pub fn count(findings: &[Finding], severity: Severity) -> usize {
    groups(findings).iter().filter(|g| g.code.severity == severity).map(Group::count).sum()
}

/// The findings of one code.
#[derive(Debug, Clone, PartialEq)]
pub struct Group<'a> {
    /// The kind.
    pub code: &'static Code,
    /// In order; at least one.
    pub findings: Vec<&'a Finding>,
    /// Images that are in any of them, each counted once; in sets of duplicates without the one to keep.
    pub images: usize,
}

impl Group<'_> {
    /// Images, or findings where these are about no image.
    pub fn count(&self) -> usize {
        if self.images > 0 { self.images } else { self.findings.len() }
    }
}

/// Findings by code, in the order in which codes come.
pub fn groups(findings: &[Finding]) -> Vec<Group<'_>> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for finding in findings {
        let at = *places.entry(finding.code.id).or_insert_with(|| {
            groups.push(Group { code: finding.code, findings: Vec::new(), images: 0 });
            groups.len() - 1
        });
        groups[at].findings.push(finding);
    }
    for group in &mut groups {
        let kept = usize::from(matches!(group.code.id, "D001" | "D002" | "D003"));
        let mut images: Vec<usize> =
            group.findings.iter().flat_map(|f| f.images.iter().skip(kept).copied()).collect();
        images.sort_unstable();
        images.dedup();
        group.images = images.len();
    }
    groups
}

//! Findings about the label table and the classes (L).

use std::collections::{BTreeMap, HashMap};

use super::finding::Finding;
use super::numbers::Numbers;
use crate::source::{self, Listing, Trouble, labels_of};

/// A class of fewer images is too small for three splits.
const FEW: usize = 10;
/// The largest class may have this many times the images of the smallest.
const BALANCE: usize = 10;

/// What the listing found, and what the labels tell: their spellings and the sizes of the classes, or how far numbers
/// are from each other.
pub fn findings(listing: &Listing, numbers: Option<&Numbers>) -> Vec<Finding> {
    let places: HashMap<&str, usize> =
        listing.entries.iter().enumerate().map(|(i, e)| (e.path.as_str(), i)).collect();
    let mut found: Vec<Finding> =
        listing.findings.iter().filter_map(|trouble| of_trouble(trouble, &places)).collect();
    match numbers {
        Some(numbers) => found.extend(numbers.findings(listing)),
        None => {
            found.extend(of_spellings(listing));
            found.extend(of_classes(listing));
        }
    }
    found
}

/// A finding for each class that is another one but for case, spaces or Unicode form, with all its images.
fn of_spellings(listing: &Listing) -> Vec<Finding> {
    let spellings = source::spellings(listing);
    if spellings.is_empty() {
        return Vec::new();
    }
    let mut images: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, entry) in listing.entries.iter().enumerate() {
        for label in labels_of(&entry.label).filter(|label| spellings.contains_key(*label)) {
            images.entry(label).or_default().push(at);
        }
    }
    let mut lines: BTreeMap<&str, u64> = BTreeMap::new();
    for trouble in listing.findings.iter().filter(|trouble| is_spelling(trouble.kind)) {
        let line = trouble.line.unwrap_or(u64::MAX);
        lines.entry(&trouble.at).and_modify(|first| *first = line.min(*first)).or_insert(line);
    }
    let of = |(class, why): (&String, &String)| {
        let line = lines.get(class.as_str()).copied().filter(|line| *line < u64::MAX);
        let mut finding = Finding::place("L005", class, line, why)?;
        finding.images = images.remove(class.as_str()).unwrap_or_default();
        Some(finding)
    };
    spellings.iter().filter_map(of).collect()
}

fn is_spelling(kind: Trouble) -> bool {
    matches!(kind, Trouble::LabelCase | Trouble::LabelSpace | Trouble::LabelUnicode)
}

fn of_trouble(trouble: &source::Finding, places: &HashMap<&str, usize>) -> Option<Finding> {
    use Trouble::*;
    let id = match trouble.kind {
        MissingFile => "L001",
        UnlistedFile => "L002",
        DuplicateRow => "L003",
        ConflictingRows => "L004",
        // Told of all rows at once.
        LabelCase | LabelSpace | LabelUnicode => return None,
        EmptyClass => "L006",
        EmptyLabel | Unlabelled => "L008",
        Backslash | DotSlash | NameOnly | PathCase | PathUnicode | PathSpace => "L010",
        EmptyPath => "L011",
        OutsideRoot => "L012",
        AmbiguousName => "L013",
        EmptyCell => "L014",
        IgnoreFile | Manifest => "L015",
        LinkLoop | DanglingLink => "F015",
        NotRegular | Unreadable => "F009",
    };
    let detail = match trouble.detail.as_str() {
        "" => trouble.kind.code().replace('_', " "),
        told => told.to_owned(),
    };
    let is_row = places.contains_key(trouble.at.as_str());
    if is_row && matches!(trouble.kind, LinkLoop | DanglingLink | NotRegular | Unreadable) {
        // The row's own fault says so.
        return None;
    }
    let mut finding = Finding::place(id, &trouble.at, trouble.line, detail)?;
    finding.images.extend(places.get(trouble.at.as_str()));
    Some(finding)
}

fn of_classes(listing: &Listing) -> Vec<Finding> {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in listing.entries.iter().filter(|e| e.fault.is_none() && !e.label.is_empty()) {
        labels_of(&entry.label).for_each(|label| *sizes.entry(label).or_default() += 1);
    }
    // Numbers, or nearly as many labels as images: no classes.
    let images = listing.entries.len();
    if sizes.len() < 2
        || sizes.len() * 2 > images
        || sizes.keys().all(|l| l.parse::<f64>().is_ok() && l.contains('.'))
    {
        return Vec::new();
    }
    let mut found: Vec<Finding> = sizes
        .iter()
        .filter(|(_, n)| **n < FEW)
        .filter_map(|(label, n)| Finding::place("L016", *label, None, crate::names::plural(*n, "image")))
        .collect();
    let largest = sizes.iter().max_by_key(|(label, n)| (**n, std::cmp::Reverse(**label)));
    let smallest = sizes.iter().min_by_key(|(label, n)| (**n, **label));
    if let (Some((large, most)), Some((small, least))) = (largest, smallest)
        && *most > BALANCE * *least
    {
        let detail = format!("{most} of {large} and {least} of {small}");
        found.extend(Finding::place("L017", "classes", None, detail));
    }
    found
}

//! The findings as the data of the HTML report: which images and sets are shown, tiles, charts, classes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::code::Severity;
use super::finding::Finding;
use super::numbers::Numbers;
use crate::decode::Header;
use crate::facts::Facts;
use crate::fault::Status;
use crate::page;
use crate::page::audit::{Audit, Bar, Chart, Class, Foot, Head, Image, Item, Kind, Shortcut, Tile, Twins};
use crate::source::{Listing, labels_of, number_of};

/// Images that the page has at most; more open slowly.
const MOST_IMAGES: usize = 5_000;
/// Sets, and places of one finding, at most.
const MOST_SETS: usize = 1_000;
const MOST_ITEMS: usize = 5_000;
/// Names of the measures of an image.
const SCORES: [&str; 5] = ["brightness", "contrast", "entropy", "sharpness", "border"];

/// What the report is made from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The rows.
    pub listing: &'a Listing,
    /// One for each row.
    pub facts: &'a [Facts],
    /// As [`super::judge`] gives them.
    pub findings: &'a [Finding],
    /// Images with a thumbnail, at most.
    pub thumbs: usize,
}

/// The report, and the rows whose thumbnails it wants, in the order of [`Image::thumb`].
pub fn report(source: &Source<'_>, head: Head) -> (Audit, Vec<usize>) {
    let shown = shown(source);
    let places: HashMap<usize, usize> = shown.iter().enumerate().map(|(place, row)| (*row, place)).collect();
    let mut thumbs = Vec::new();
    let images = shown
        .iter()
        .map(|row| {
            let facts = &source.facts[*row];
            let thumb = (facts.seen.is_some() && thumbs.len() < source.thumbs).then(|| {
                thumbs.push(*row);
                thumbs.len() - 1
            });
            image(source, *row, thumb)
        })
        .collect();
    let sets = sets(source, &places);
    let audit = Audit {
        head,
        tiles: tiles(source),
        charts: charts(source),
        classes: classes(source),
        findings: findings(source, &places),
        images,
        shortcuts: shortcuts(source),
        foot: foot(source, shown.len(), thumbs.len()),
        scores: SCORES.map(str::to_owned).to_vec(),
        sets,
    };
    (audit, thumbs)
}

/// Rows that are shown: those with findings, the worst first, then a fair share of each class, drawn by a hash of the
/// path so that the same data give the same page.
fn shown(source: &Source<'_>) -> Vec<usize> {
    let most = MOST_IMAGES.max(source.thumbs);
    let mut rows = Vec::new();
    let mut seen = BTreeSet::new();
    // Of each code a part first, so that one code with thousands does not push out the others.
    for share in [200, usize::MAX] {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for finding in
            source.findings.iter().filter(|f| f.code.severity > Severity::Info || f.is_set() || share < most)
        {
            for row in &finding.images {
                let n = counts.entry(finding.code.id).or_default();
                if rows.len() < most && *n < share && seen.insert(*row) {
                    rows.push(*row);
                }
                *n += 1;
            }
        }
    }
    let entries = &source.listing.entries;
    let mut rest: BTreeMap<&str, Vec<(blake3::Hash, usize)>> = BTreeMap::new();
    for row in (0..entries.len()).filter(|row| !seen.contains(row)) {
        rest.entry(&entries[row].label).or_default().push((blake3::hash(entries[row].path.as_bytes()), row));
    }
    for rows in rest.values_mut() {
        rows.sort_by_key(|(hash, row)| (*hash.as_bytes(), *row));
        rows.reverse();
    }
    while rows.len() < most {
        let before = rows.len();
        for class in rest.values_mut() {
            if rows.len() < most {
                rows.extend(class.pop().map(|(_, row)| row));
            }
        }
        if rows.len() == before {
            break;
        }
    }
    rows
}

fn image(source: &Source<'_>, row: usize, thumb: Option<usize>) -> Image {
    let (entry, facts) = (&source.listing.entries[row], &source.facts[row]);
    let told = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let header = facts.header.as_ref();
    let (width, height) = header.map_or((0, 0), Header::size);
    Image {
        path: entry.path.clone(),
        label: told(&entry.label),
        split: told(&entry.split),
        group: told(&entry.group),
        width,
        height,
        bytes: facts.bytes,
        format: header.map(|h| h.format.name().to_owned()).unwrap_or_default(),
        mode: header.map(Header::src_mode).unwrap_or_default(),
        fault: facts.fault.as_ref().map(ToString::to_string),
        notes: facts.notes.iter().map(ToString::to_string).collect(),
        scores: facts.seen.as_ref().map_or_else(Vec::new, |s| {
            let q = &s.quality;
            vec![q.brightness, q.contrast, q.entropy, q.sharpness, q.border]
        }),
        thumb,
    }
}

fn severity(severity: Severity) -> page::Severity {
    match severity {
        Severity::Error => page::Severity::Error,
        Severity::Warning => page::Severity::Warning,
        Severity::Info => page::Severity::Info,
    }
}

fn findings(source: &Source<'_>, places: &HashMap<usize, usize>) -> Vec<page::audit::Finding> {
    let path = |row: usize| source.listing.entries[row].path.clone();
    super::groups(source.findings)
        .iter()
        .map(|group| {
            let items = group.findings.iter().flat_map(|finding| {
                let rows: Vec<Option<usize>> = match finding.images.as_slice() {
                    [] => vec![None],
                    rows => rows.iter().copied().map(Some).collect(),
                };
                rows.into_iter().map(|row| Item {
                    path: match (row, finding.line) {
                        (Some(row), _) => path(row),
                        (None, Some(line)) => format!("{} (line {line})", finding.at),
                        (None, None) => finding.at.clone(),
                    },
                    evidence: finding.detail.clone(),
                    image: row.and_then(|row| places.get(&row).copied()),
                })
            });
            let is_set = group.findings.iter().any(|f| f.is_set() && f.images.len() > 1);
            page::audit::Finding {
                code: group.code.id.into(),
                severity: severity(group.code.severity),
                title: group.code.title.into(),
                explain: group.code.meaning.into(),
                advice: group.code.advice.into(),
                count: group.count() as u64,
                note: if is_set {
                    format!("in {}", crate::names::plural(group.findings.len(), "set"))
                } else {
                    String::new()
                },
                items: items.take(MOST_ITEMS).collect(),
            }
        })
        .collect()
}

/// Sets with the same members are one, with all that is true of it. Conflicts and leaks come first.
fn sets(source: &Source<'_>, places: &HashMap<usize, usize>) -> Vec<Twins> {
    let order = ["D004", "D005", "D007", "D006", "D009", "D010", "D002", "D001", "D003", "D011", "D008"];
    let mut by_members: BTreeMap<Vec<usize>, Vec<&Finding>> = BTreeMap::new();
    for finding in source.findings.iter().filter(|f| f.is_set() && f.images.len() > 1) {
        let mut members = finding.images.clone();
        members.sort_unstable();
        by_members.entry(members).or_default().push(finding);
    }
    let rank = |finding: &Finding| order.iter().position(|id| *id == finding.code.id).unwrap_or(order.len());
    let mut sets: Vec<(usize, Vec<usize>, Twins)> = by_members
        .into_values()
        .filter_map(|mut findings| {
            findings.sort_by_key(|f| rank(f));
            let first = *findings.first()?;
            let members: Vec<usize> =
                first.images.iter().filter_map(|row| places.get(row).copied()).collect();
            let tier = |id: &str| match id {
                "D001" => "same bytes",
                "D002" | "D004" | "D005" => "same pixels",
                "D011" => "likely the same shot",
                "D008" => "same scene",
                _ => "near-duplicate",
            };
            let told: Vec<&str> = findings.iter().map(|f| tier(f.code.id)).collect();
            let twins = Twins {
                codes: findings.iter().map(|f| f.code.id.to_owned()).collect(),
                tier: if told.contains(&"same bytes") { "same bytes" } else { told.first().copied()? }.into(),
                evidence: first.detail.clone(),
                members,
            };
            (twins.members.len() > 1).then(|| (rank(first), first.images.clone(), twins))
        })
        .collect();
    sets.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    sets.into_iter().map(|(_, _, twins)| twins).take(MOST_SETS).collect()
}

fn tiles(source: &Source<'_>) -> Vec<Tile> {
    let count = |codes: &[&str]| -> u64 {
        super::groups(source.findings)
            .iter()
            .filter(|g| codes.contains(&g.code.id))
            .map(|g| g.count() as u64)
            .sum()
    };
    let tile = |title: &str, codes: &[&str], severity, sets| Tile {
        title: title.into(),
        count: count(codes),
        note: String::new(),
        severity: Some(severity),
        codes: codes.iter().map(|c| (*c).to_owned()).collect(),
        sets,
    };
    let (error, warning, info) = (page::Severity::Error, page::Severity::Warning, page::Severity::Info);
    let mut tiles = vec![Tile {
        title: "rows".into(),
        count: source.facts.len() as u64,
        note: String::new(),
        severity: None,
        codes: Vec::new(),
        sets: false,
    }];
    tiles.extend([
        tile("unreadable", &["F001", "F002", "F003", "F004", "F006", "F008", "F009", "F012"], error, false),
        tile("label conflicts", &["D004", "L004"], error, true),
        tile("leaks between splits", &["D005", "S001"], error, true),
        tile("exact copies", &["D001", "D002"], warning, true),
        tile("near-duplicates", &["D003", "D006", "D007", "D011"], info, true),
        tile("odd modes", &["M003", "M004", "M005", "M006", "M007", "M008"], warning, false),
        tile("shortcuts", &["X001", "X002", "X003", "X004", "X005", "X006", "X007", "X008"], warning, false),
    ]);
    tiles
}

/// The parts of the split, or one without a name.
fn parts(listing: &Listing) -> Vec<String> {
    let parts: BTreeSet<&str> = listing.entries.iter().map(|e| e.split.as_str()).collect();
    parts.into_iter().map(str::to_owned).collect()
}

/// Images of each class in each part.
fn by_class<'a>(source: &Source<'a>) -> BTreeMap<&'a str, (BTreeMap<&'a str, u64>, u64)> {
    let mut classes: BTreeMap<&str, (BTreeMap<&str, u64>, u64)> = BTreeMap::new();
    for (entry, facts) in source.listing.entries.iter().zip(source.facts) {
        for label in labels_of(&entry.label) {
            let (splits, bad) = classes.entry(label).or_default();
            *splits.entry(&entry.split).or_default() += 1;
            *bad += u64::from(facts.status() != Status::Ok);
        }
    }
    classes
}

fn classes(source: &Source<'_>) -> Vec<Class> {
    if Numbers::of(source.listing).is_some() {
        return Vec::new();
    }
    let parts = parts(source.listing);
    by_class(source)
        .into_iter()
        .map(|(label, (splits, bad))| Class {
            label: label.to_owned(),
            images: splits.values().sum(),
            splits: parts.iter().map(|p| splits.get(p.as_str()).copied().unwrap_or(0)).collect(),
            bad,
            weight: None,
        })
        .collect()
}

fn charts(source: &Source<'_>) -> Vec<Chart> {
    let mut charts = Vec::new();
    let parts = parts(source.listing);
    let numbers = Numbers::of(source.listing);
    let classes = if numbers.is_some() { BTreeMap::new() } else { by_class(source) };
    if let Some(numbers) = numbers.filter(|numbers| numbers.most > numbers.least) {
        let labels: Vec<f64> = source.listing.entries.iter().filter_map(|e| number_of(&e.label)).collect();
        let step = (numbers.most - numbers.least) / 16.0;
        let edges: Vec<f64> = (0..=16).map(|at| numbers.least + step * f64::from(at)).collect();
        charts.push(histogram("Labels", &labels, &edges, vec![(numbers.median, "median".into())], ""));
    }
    if !classes.is_empty() {
        let mut bars: Vec<Bar> = classes
            .into_iter()
            .map(|(label, (splits, _))| Bar {
                label: label.to_owned(),
                counts: parts.iter().map(|p| splits.get(p.as_str()).copied().unwrap_or(0)).collect(),
            })
            .collect();
        bars.sort_by_key(|b| std::cmp::Reverse(b.counts.iter().sum::<u64>()));
        charts.push(chart("Images of each class", "", Kind::Bars { parts: parts.clone(), bars }));
    }
    let usable = || source.facts.iter().filter(|f| f.fault.is_none());
    let edges: Vec<f64> = usable().filter_map(Facts::size).map(|(w, h)| f64::from(w.min(h))).collect();
    let steps = [0.0, 32.0, 64.0, 128.0, 224.0, 256.0, 384.0, 512.0, 768.0, 1024.0, 2048.0, 4096.0, 65_536.0];
    charts.push(histogram("Short edge", &edges, &steps, vec![(512.0, "prep shrink".into())], "px"));
    let aspects: Vec<f64> =
        usable().filter_map(Facts::size).map(|(w, h)| f64::from(w) / f64::from(h.max(1))).collect();
    let steps = [0.0, 0.33, 0.5, 0.66, 0.75, 0.9, 1.1, 1.33, 1.5, 2.0, 3.0, 1e4];
    charts.push(histogram("Width to height", &aspects, &steps, Vec::new(), ""));
    charts.push(modes(source));
    let quality = |of: fn(&crate::measure::Quality) -> f32| -> Vec<f64> {
        usable().filter_map(|f| f.seen.as_ref()).map(|s| f64::from(of(&s.quality))).collect()
    };
    let steps: Vec<f64> = (0..=16).map(|i| f64::from(i) * 16.0).collect();
    charts.push(histogram("Mean brightness", &quality(|q| q.brightness), &steps, Vec::new(), ""));
    let steps = [
        0.0, 3.0, 6.0, 12.0, 25.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0, 6400.0, 12_800.0,
        25_600.0, 1e6,
    ];
    let blurry = vec![(12.0, "blurry below".into())];
    charts.push(histogram("Sharpness", &quality(|q| q.sharpness), &steps, blurry, ""));
    charts.extend(groups(source));
    charts
}

fn chart(title: &str, note: &str, kind: Kind) -> Chart {
    Chart { title: title.into(), note: note.into(), kind }
}

/// Bins from the first that has something to the last.
fn histogram(title: &str, values: &[f64], edges: &[f64], lines: Vec<(f64, String)>, unit: &str) -> Chart {
    let mut counts = vec![0_u64; edges.len() - 1];
    for value in values {
        let at = edges.partition_point(|e| e <= value).clamp(1, counts.len()) - 1;
        counts[at] += 1;
    }
    let first = counts.iter().position(|n| *n > 0).unwrap_or(0);
    let last = counts.iter().rposition(|n| *n > 0).unwrap_or(counts.len() - 1);
    let edges = edges[first..=last + 1].to_vec();
    let lines = lines.into_iter().filter(|(at, _)| edges[0] < *at && *at < edges[edges.len() - 1]).collect();
    chart(
        title,
        "",
        Kind::Histogram { counts: counts[first..=last].to_vec(), edges, lines, unit: unit.into() },
    )
}

fn modes(source: &Source<'_>) -> Chart {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for facts in source.facts {
        let name = match &facts.header {
            Some(header) => format!("{} {}", header.format.name(), header.src_mode()),
            None => "no picture".into(),
        };
        *kinds.entry(name).or_default() += 1;
    }
    bars("Formats and modes", kinds.into_iter())
}

fn bars(title: &str, counts: impl Iterator<Item = (String, u64)>) -> Chart {
    let mut bars: Vec<Bar> = counts.map(|(label, n)| Bar { label, counts: vec![n] }).collect();
    bars.sort_by(|a, b| b.counts.cmp(&a.counts).then(a.label.cmp(&b.label)));
    chart(title, "", Kind::Bars { parts: vec![String::new()], bars })
}

/// Images of the largest groups.
fn groups(source: &Source<'_>) -> Option<Chart> {
    let mut groups: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in source.listing.entries.iter().filter(|e| !e.group.is_empty()) {
        *groups.entry(&entry.group).or_default() += 1;
    }
    (!groups.is_empty()).then(|| {
        bars("Images of the largest groups", groups.into_iter().map(|(name, n)| (name.to_owned(), n)))
    })
}

fn shortcuts(source: &Source<'_>) -> Vec<Shortcut> {
    source
        .findings
        .iter()
        .filter_map(|f| {
            let told = f.shortcut?;
            Some(Shortcut {
                code: f.code.id.into(),
                property: f.at.clone(),
                accuracy: told.accuracy,
                majority: told.majority,
                rules: vec![f.detail.clone()],
            })
        })
        .collect()
}

fn foot(source: &Source<'_>, images: usize, thumbs: usize) -> Foot {
    let mut not_shown = Vec::new();
    let all = source.facts.len();
    if images < all {
        not_shown.push(format!("{images} of {all} images are on this page: those with findings first, then a share of each class."));
    }
    if thumbs < images {
        not_shown.push(format!("{thumbs} images have a thumbnail (--thumbs says how many)."));
    }
    let definition = |term: &str, what: &str| (term.to_owned(), what.to_owned());
    Foot {
        splits: parts(source.listing),
        definitions: vec![
            definition("brightness, contrast", "mean and standard deviation of BT.601 luma, 0 to 255"),
            definition(
                "sharpness",
                "variance of the four-neighbour Laplacian of luma, at a short edge of 160 to 319 pixels",
            ),
            definition("entropy", "of the histogram of luma, in bits"),
            definition("border", "share of the picture that is a border of one tone"),
            definition(
                "how copies are found",
                "signs of low DCT frequencies in eight orientations and windows, confirmed by the correlation of thumbnails laid over each other",
            ),
            definition(
                "near-duplicate, likely the same shot, same scene",
                "versions of one shot; likely so, or shots of the same second; perhaps only the same scene",
            ),
            definition(
                "kept",
                "of each set the one with the most pixels, then bytes; --exclude takes out the others, where labels agree",
            ),
        ],
        not_shown,
    }
}

//! Shortcuts (X): properties of a file that tell its class although they are not its content.
//!
//! For each property the images are cut into bins (equal values, or quantiles), and each half of the images is guessed
//! from the bins of the other half: the class that is most frequent there. The accuracy of these guesses is compared
//! with that of always guessing the largest class. So that a small class is seen too, the informedness of the guess of
//! each single class (hits less false alarms, Youden 1950) is looked at as well, from bins that hold more of the class
//! than its share.

use std::collections::{BTreeMap, HashMap};

use super::finding::{Finding, Guessed};
use crate::entry::Entry;
use crate::facts::Facts;

/// Fewer images, or images of a class, say nothing.
const ENOUGH: usize = 40;
const ENOUGH_OF_CLASS: usize = 10;
const BINS: usize = 24;
/// The least gain over the largest class, and the least informedness about one class, that is told.
const GAIN: f64 = 0.10;
const INFORMED: f64 = 0.70;

/// A property: its code, its name in the sentence, and its value for an image as a bin's name or a number.
struct Property {
    id: &'static str,
    name: &'static str,
    of: fn(&Entry, &Facts) -> Option<Value>,
}

enum Value {
    Name(String),
    Number(f64),
}

static PROPERTIES: [Property; 8] = [
    Property {
        id: "X001",
        name: "width and height",
        of: |_, f| f.size().map(|(w, h)| Value::Name(format!("{w}x{h}"))),
    },
    Property {
        id: "X002",
        name: "aspect ratio",
        of: |_, f| f.size().map(|(w, h)| Value::Number(f64::from(w) / f64::from(h.max(1)))),
    },
    Property {
        id: "X003",
        name: "mean brightness",
        of: |_, f| f.seen.as_ref().map(|s| Value::Number(f64::from(s.quality.brightness))),
    },
    Property {
        id: "X004",
        name: "bytes a pixel",
        of: |_, f| {
            f.size().map(|(w, h)| Value::Number(f.bytes as f64 / (f64::from(w) * f64::from(h)).max(1.0)))
        },
    },
    Property {
        id: "X005",
        name: "border",
        of: |_, f| f.seen.as_ref().map(|s| Value::Number((f64::from(s.quality.border) * 50.0).round())),
    },
    Property {
        id: "X006",
        name: "camera",
        of: |_, f| f.header.as_ref().map(|h| Value::Name(h.camera.clone())),
    },
    Property {
        id: "X007",
        name: "format and mode",
        of: |_, f| {
            let gray = if f.is_gray() { " gray" } else { "" };
            f.header.as_ref().map(|h| Value::Name(format!("{} {}{gray}", h.format.name(), h.src_mode())))
        },
    },
    Property {
        id: "X008",
        name: "sharpness",
        of: |_, f| f.seen.as_ref().map(|s| Value::Number(f64::from(s.quality.sharpness))),
    },
];

/// What one property tells.
struct Told {
    finding: Finding,
    strength: f64,
}

/// The properties that tell the class, the strongest first. Rows without a label, with several, or with a fault do not
/// count.
pub fn findings(entries: &[Entry], facts: &[Facts]) -> Vec<Finding> {
    let rows: Vec<usize> = (0..entries.len())
        .filter(|i| {
            facts[*i].fault.is_none() && !entries[*i].label.is_empty() && !entries[*i].label.contains('|')
        })
        .collect();
    let mut classes: Vec<&str> = rows.iter().map(|i| entries[*i].label.as_str()).collect();
    classes.sort_unstable();
    classes.dedup();
    if rows.len() < ENOUGH || classes.len() < 2 || classes.len() * 4 > rows.len() {
        return Vec::new();
    }
    let labels: Vec<usize> =
        rows.iter().map(|i| classes.partition_point(|c| *c < entries[*i].label.as_str())).collect();
    let halves: Vec<usize> = rows
        .iter()
        .map(|i| usize::from(blake3::hash(entries[*i].path.as_bytes()).as_bytes()[0] & 1))
        .collect();
    let mut told: Vec<Told> = PROPERTIES
        .iter()
        .filter_map(|property| {
            let values: Option<Vec<Value>> =
                rows.iter().map(|i| (property.of)(&entries[*i], &facts[*i])).collect();
            let bins = bins(values?);
            judge(property, &bins, &labels, &halves, &classes)
        })
        .collect();
    told.sort_by(|a, b| b.strength.total_cmp(&a.strength));
    told.into_iter().map(|t| t.finding).collect()
}

/// Equal values share a bin while there are few of them; numbers are cut at quantiles.
fn bins(values: Vec<Value>) -> Vec<usize> {
    let mut numbers: Vec<f64> =
        values.iter().filter_map(|v| if let Value::Number(n) = v { Some(*n) } else { None }).collect();
    if numbers.len() < values.len() {
        let mut names = HashMap::new();
        return values
            .into_iter()
            .map(|v| {
                let name = if let Value::Name(name) = v { name } else { String::new() };
                let next = names.len();
                *names.entry(name).or_insert(next)
            })
            .collect();
    }
    numbers.sort_by(f64::total_cmp);
    let cuts: Vec<f64> = (1..BINS).map(|k| numbers[k * numbers.len() / BINS]).collect();
    let bin = |n: f64| cuts.partition_point(|cut| *cut < n);
    values.into_iter().map(|v| if let Value::Number(n) = v { bin(n) } else { 0 }).collect()
}

fn judge(
    property: &Property,
    bins: &[usize],
    labels: &[usize],
    halves: &[usize],
    classes: &[&str],
) -> Option<Told> {
    let n = labels.len() as f64;
    let mut sizes = vec![0_usize; classes.len()];
    labels.iter().for_each(|l| sizes[*l] += 1);
    let largest = sizes.iter().copied().max().unwrap_or(0) as f64 / n;
    let mut counts: [BTreeMap<usize, Vec<usize>>; 2] = Default::default();
    let mut totals = [vec![0_usize; classes.len()], vec![0_usize; classes.len()]];
    for ((bin, label), half) in bins.iter().zip(labels).zip(halves) {
        counts[*half].entry(*bin).or_insert_with(|| vec![0; classes.len()])[*label] += 1;
        totals[*half][*label] += 1;
    }
    let mut right = 0;
    let (mut hits, mut alarms) = (vec![0_usize; classes.len()], vec![0_usize; classes.len()]);
    for ((bin, label), half) in bins.iter().zip(labels).zip(halves) {
        let (seen, total) = (counts[1 - half].get(bin), &totals[1 - half]);
        let best =
            |of: &[usize]| of.iter().enumerate().max_by_key(|(i, c)| (**c, usize::MAX - i)).map(|(i, _)| i);
        right += usize::from(best(seen.unwrap_or(total)) == Some(*label));
        let Some(seen) = seen else { continue };
        let all: usize = total.iter().sum();
        let here: usize = seen.iter().sum();
        for class in 0..classes.len() {
            // More of the class than its share, and by more than a single image.
            let told = seen[class] > 1 && seen[class] * all > 2 * total[class] * here;
            if told && class == *label {
                hits[class] += 1;
            } else if told {
                alarms[class] += 1;
            }
        }
    }
    let accuracy = right as f64 / n;
    let informed = |c: usize| {
        hits[c] as f64 / sizes[c].max(1) as f64 - alarms[c] as f64 / (n - sizes[c] as f64).max(1.0)
    };
    let best = (0..classes.len())
        .filter(|c| sizes[*c] >= ENOUGH_OF_CLASS)
        .max_by(|a, b| informed(*a).total_cmp(&informed(*b)).then(b.cmp(a)));
    let gain = accuracy - largest;
    let about = best.map_or(0.0, informed);
    if gain < GAIN && about < INFORMED {
        return None;
    }
    let mut detail = format!(
        "from the {} alone {:.1} % of the labels are guessed right, {:.1} % by always saying the largest class ({:+.1} points)",
        property.name,
        100.0 * accuracy,
        100.0 * largest,
        100.0 * gain
    );
    if let Some(class) = best.filter(|_| about >= INFORMED) {
        detail += &format!(
            "; {} is told from the rest: {} of {} found, {} false alarms in {}",
            crate::names::shown(classes[class]),
            hits[class],
            sizes[class],
            alarms[class],
            labels.len() - sizes[class]
        );
    }
    let shortcut = Some(Guessed { accuracy, majority: largest });
    let finding = Finding { shortcut, ..Finding::place(property.id, property.name, None, detail)? };
    Some(Told { finding, strength: (gain / (1.0 - largest).max(1e-9)).max(about) })
}

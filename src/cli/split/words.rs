//! What `prep split` says at the end, for people and as JSON.

use std::path::Path;

use serde_json::{Value, json};

use super::super::terminal::{class_name, columns, plural, shell_word, thousands};
use crate::names::shown;
use crate::split::report::Line;
use crate::split::{Options, Outcome, Report};

/// The JSON document's version.
const SCHEMA: u32 = 1;
/// Classes in the table, unless `-v` asks for all.
const MOST_LINES: usize = 40;

/// What is told beside the split itself.
pub struct Ending<'a> {
    /// As it was typed.
    pub input: &'a Path,
    /// Where the manifest is.
    pub manifest: &'a Path,
    /// Rows of an earlier manifest whose images are gone.
    pub gone: u64,
    /// Where exports were written.
    pub exports: Option<&'a Path>,
    /// There are lists of paths among them.
    pub lists: bool,
    /// What paths are relative to.
    pub root: &'a Path,
    /// Nothing was written.
    pub dry_run: bool,
    /// Since the start.
    pub seconds: f64,
}

/// The table and what to do next.
pub fn text(outcome: &Outcome<'_>, ending: &Ending<'_>, whole: bool) -> String {
    let n = |n: usize| thousands(n as u64);
    let mut text = plural(outcome.n_rows, "image");
    if outcome.has_groups() {
        let by: Vec<String> = outcome.sources.iter().map(|(name, ..)| shown(name).to_string()).collect();
        text.push_str(&format!(" in {} by {}", plural(outcome.n_groups, "group"), by.join(" and ")));
        if outcome.largest.0 > 1 {
            text.push_str(&format!(
                "; the largest, {}, has {}",
                shown(&outcome.largest.1),
                n(outcome.largest.0)
            ));
        }
        if outcome.n_mixed > 0 {
            text.push_str(&format!("; {} of several classes", plural(outcome.n_mixed, "group")));
        }
    }
    text.push('\n');
    for report in &outcome.reports {
        text.push('\n');
        text.push_str(&table(report, outcome.has_groups(), whole));
    }
    text.push('\n');
    if let Some((sets, first)) = &outcome.conflicts {
        text.push_str(&format!(
            "{} of equal files {} different labels, one with {}\n",
            plural(*sets, "set"),
            if *sets == 1 { "has" } else { "have" },
            shown(first)
        ));
    }
    if let Some((moved, all)) = outcome.moved {
        text.push_str(&format!(
            "{} of {} that had a part moved\n",
            n(moved),
            plural(all, if outcome.has_groups() { "group" } else { "image" })
        ));
    }
    if !outcome.left_out.is_empty() {
        let all: usize = outcome.left_out.iter().map(|l| l.n).sum();
        text.push_str(&format!("{} left out:\n", n(all)));
        let rows: Vec<Vec<String>> = outcome
            .left_out
            .iter()
            .map(|l| {
                let first = l.first.first().map(|p| shown(p).to_string()).unwrap_or_default();
                vec![n(l.n), l.why.sentence().to_owned(), if l.n > 1 { format!("{first}, …") } else { first }]
            })
            .collect();
        text.push_str(&columns(&rows, &[true, false, false]));
    }
    if ending.gone > 0 {
        text.push_str(&format!(
            "{} of the earlier manifest {} no image any more and {} gone\n",
            plural(ending.gone as usize, "row"),
            if ending.gone == 1 { "has" } else { "have" },
            if ending.gone == 1 { "is" } else { "are" }
        ));
    }
    if ending.dry_run {
        text.push_str(&format!("Would write {}\n", shown(ending.manifest)));
        if let Some(folder) = ending.exports {
            text.push_str(&format!("Would export to {}\n", shown(folder)));
        }
    } else {
        text.push_str(&format!("Every row: {}\n", shown(ending.manifest)));
        if let Some(folder) = ending.exports {
            let relative = if ending.lists {
                format!(" (the paths in its lists are relative to {})", shown(ending.root))
            } else {
                String::new()
            };
            text.push_str(&format!("Exports: {}{relative}\n", shown(folder)));
        }
        let input = shell_word(ending.input);
        text.push_str(&format!("Next: prep stats {input}, then prep weights {input}\n"));
    }
    text
}

/// In what the headings of two splits differ, for a person.
pub fn differences(before: &str, now: &str) -> String {
    let parts = |heading: &str| -> Vec<String> {
        // Values may hold spaces: a word without `=` belongs to the one before.
        let mut parts: Vec<String> = Vec::new();
        for word in heading.split(' ') {
            match parts.last_mut().filter(|_| !word.contains('=')) {
                Some(last) => *last = format!("{last} {word}"),
                None => parts.push(word.to_owned()),
            }
        }
        parts
    };
    // Shares are written with nine digits.
    let short = |part: &str| {
        part.split(',').map(|p| p.strip_suffix("0000000").unwrap_or(p)).collect::<Vec<_>>().join(",")
    };
    let (before, now) = (parts(before), parts(now));
    let other: Vec<String> =
        before.iter().filter(|part| !now.contains(part)).map(|p| shown(&short(p)).to_string()).collect();
    if other.is_empty() { "of another kind".into() } else { other.join(", ") }
}

/// Classes down, parts across.
fn table(report: &Report, groups: bool, whole: bool) -> String {
    let held = |s: usize| report.training != Some(s);
    let mut head = vec!["class".to_owned(), "images".into()];
    let mut right = vec![false, true];
    if groups {
        head.push("groups".into());
        right.push(true);
    }
    for (s, part) in report.parts.iter().enumerate() {
        head.push(format!("{} {}%", shown(&part.name), short(part.share * 100.0)));
        right.push(true);
        head.push(String::new());
        right.push(true);
        if groups && held(s) {
            head.push("groups (eff.)".into());
            right.push(true);
        }
    }
    head.extend(["off by".to_owned(), "at best".into(), String::new()]);
    right.extend([true, true, false]);
    let mut rows = vec![head];
    let mut lines: Vec<&Line> = report.classes.iter().chain(&report.others).filter(|l| l.rows > 0).collect();
    let hidden = if whole { 0 } else { lines.len().saturating_sub(MOST_LINES) };
    if hidden > 0 {
        // The worst, in their usual order.
        let mut by_gap: Vec<usize> = (0..lines.len()).collect();
        by_gap.sort_by(|a, b| lines[*b].gap.total_cmp(&lines[*a].gap).then(a.cmp(b)));
        let mut shown_ones: Vec<usize> = by_gap[..MOST_LINES].to_vec();
        shown_ones.sort_unstable();
        lines = shown_ones.into_iter().map(|at| lines[at]).collect();
    }
    for line in lines.into_iter().chain([&report.size]) {
        rows.push(cells(line, report, groups));
    }
    let mut text = columns(&rows, &right);
    if hidden > 0 {
        text.push_str(&format!("  and {hidden} that are nearer (-v shows all)\n"));
    }
    if let Some(worst) =
        report.classes.iter().max_by(|a, b| a.gap.total_cmp(&b.gap)).filter(|_| report.classes.len() > 1)
    {
        let why = if worst.why.is_empty() { String::new() } else { format!(" ({})", worst.why) };
        text.push_str(&format!(
            "mean off by {:.2} points, at best {:.2}; most: {} by {:.2}{why}\n",
            report.mean_gap * 100.0,
            report.mean_bound * 100.0,
            class_name(&worst.name),
            worst.gap * 100.0
        ));
    }
    text
}

fn cells(line: &Line, report: &Report, groups: bool) -> Vec<String> {
    let mut row = vec![class_name(&line.name), thousands(line.rows)];
    if groups {
        row.push(thousands(line.groups));
    }
    for (s, share) in line.parts.iter().enumerate() {
        row.push(thousands(share.rows));
        row.push(format!("{:.1}%", share.share * 100.0));
        if groups && report.training != Some(s) {
            row.push(format!("{} ({:.1})", thousands(share.groups), share.effective));
        }
    }
    row.push(format!("{:.2}", line.gap * 100.0));
    row.push(format!("{:.2}", line.bound * 100.0));
    row.push(line.why.clone());
    row
}

fn short(percent: f64) -> String {
    let text = format!("{percent:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// The whole outcome as one document.
pub fn json(outcome: &Outcome<'_>, options: &Options, ending: &Ending<'_>) -> String {
    let left: Vec<Value> = outcome
        .left_out
        .iter()
        .map(|l| json!({"why": l.why.code(), "count": l.n, "first": l.first}))
        .collect();
    let mut document = json!({
        "schema": SCHEMA,
        "command": "split",
        "manifest": ending.manifest.to_string_lossy(),
        "dry_run": ending.dry_run,
        "exports": ending.exports.map(|folder| folder.to_string_lossy()),
        "left_out": left,
        "gone": ending.gone,
        "warnings": outcome.warnings,
        "seconds": ending.seconds,
    });
    if let (Value::Object(document), Value::Object(summary)) = (&mut document, summary(outcome, options)) {
        document.extend(summary);
    }
    format!("{document:#}\n")
}

/// What the sidecar keeps of a split.
pub fn summary(outcome: &Outcome<'_>, options: &Options) -> Value {
    let sources: Vec<Value> = outcome
        .sources
        .iter()
        .map(|(name, keys, without)| json!({"name": name, "keys": keys, "images_without": without}))
        .collect();
    let rounds: Vec<Value> = outcome.reports.iter().map(round).collect();
    json!({
        "heading": options.heading(),
        "training": options.parts[options.training()].name,
        "images": outcome.n_rows,
        "staying": options.parts[options.dealt().len()..].iter().map(|p| p.name.as_str()).collect::<Vec<_>>(),
        "groups": outcome.n_groups,
        "group_sources": sources,
        "mixed_groups": outcome.n_mixed,
        "largest_group": {"images": outcome.largest.0, "name": outcome.largest.1},
        "equal_files_with_different_labels": outcome.conflicts.as_ref().map_or(0, |(n, _)| *n),
        "moved": outcome.moved.map(|(moved, all)| json!({"groups": moved, "of": all})),
        "rounds": rounds,
    })
}

fn round(report: &Report) -> Value {
    let line = |line: &Line| {
        let parts: serde_json::Map<String, Value> = report
            .parts
            .iter()
            .zip(&line.parts)
            .map(|(part, share)| {
                let effective = (share.effective * 1000.0).round() / 1000.0;
                let value = json!({
                    "images": share.rows, "share": share.share, "groups": share.groups, "effective_groups": effective,
                });
                (part.name.clone(), value)
            })
            .collect();
        json!({
            "name": line.name, "images": line.rows, "groups": line.groups, "parts": parts,
            "gap": line.gap, "bound": line.bound, "why": line.why,
        })
    };
    let wanted: serde_json::Map<String, Value> =
        report.parts.iter().map(|p| (p.name.clone(), p.share.into())).collect();
    json!({
        "wanted": wanted,
        "mean_gap": report.mean_gap,
        "mean_bound": report.mean_bound,
        "classes": report.classes.iter().map(line).collect::<Vec<_>>(),
        "others": report.others.iter().map(line).collect::<Vec<_>>(),
        "all": line(&report.size),
    })
}

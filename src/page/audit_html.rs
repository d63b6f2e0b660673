//! The parts of the audit report that need no script: head, tiles, findings, charts, classes, shortcuts, foot.

use std::fmt::Write as _;

use crate::names::{plural, thousands};

use super::Severity;
use super::audit::{Audit, Class, Finding, Item, Shortcut, Tile};
use super::escape::{elided, number, text};

/// Places of a finding that are listed in the page itself; the grid has all.
const LISTED: usize = 8;
/// Rows of the table of classes.
const MOST_CLASSES: usize = 300;

/// The content of each slot of `web/audit.html`.
pub(super) fn slots(audit: &Audit) -> Vec<(&'static str, String)> {
    vec![
        ("summary", text(&audit.head.summary)),
        ("verdict", verdict(&audit.findings)),
        ("facts", pairs(&audit.head.facts)),
        ("command", text(&audit.head.command)),
        ("tiles", audit.tiles.iter().map(tile).collect()),
        ("findings", findings(&audit.findings)),
        ("charts", audit.charts.iter().map(super::chart::Chart::html).collect()),
        ("classes", classes(&audit.classes, &audit.foot.splits)),
        ("shortcuts", shortcuts(&audit.shortcuts)),
        ("n_sets", thousands(audit.sets.len() as u64)),
        ("n_images", thousands(audit.images.len() as u64)),
        ("definitions", pairs(&audit.foot.definitions)),
        ("not_shown", not_shown(&audit.foot.not_shown)),
    ]
}

fn pairs(pairs: &[(String, String)]) -> String {
    pairs.iter().map(|(term, what)| format!("<div><dt>{}<dd>{}</div>", text(term), text(what))).collect()
}

/// "50 errors, 4,151 warnings, 298 notes", or that all is well.
fn verdict(findings: &[Finding]) -> String {
    let mut parts = Vec::new();
    for (severity, noun) in
        [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Info, "note")]
    {
        let n: u64 = findings.iter().filter(|f| f.severity == severity).map(|f| f.count).sum();
        if n > 0 {
            parts.push(format!("<b class={}>{}</b>", severity.word(), plural(n as usize, noun)));
        }
    }
    if parts.is_empty() { "<b class=good>Nothing found</b>".into() } else { parts.join(" ") }
}

fn tile(tile: &Tile) -> String {
    let colour = match tile.severity {
        Some(severity) if tile.count > 0 => severity.word(),
        Some(_) => "none",
        None => "plain",
    };
    let codes = text(&tile.codes.join(","));
    let view = if tile.sets { "sets" } else { "images" };
    format!(
        "<button type=button class=\"tile {colour}\" data-view={view} data-find=\"{codes}\"><b>{}</b> <span>{}</span> <small>{}</small></button>\n",
        thousands(tile.count),
        text(&tile.title),
        text(&tile.note)
    )
}

fn findings(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "<tr><td colspan=4>No findings.".into();
    }
    findings.iter().map(finding).collect()
}

fn finding(finding: &Finding) -> String {
    let word = finding.severity.word();
    let code = text(&finding.code);
    let title = text(&finding.title);
    let count = thousands(finding.count);
    let note = text(&finding.note);
    let mut out = format!(
        "<tr class={word}><td><span class=\"badge {word}\">{word}</span> <span class=code>{code}</span>\
         <td><details><summary>{title}</summary><p>{}</p>",
        text(&finding.explain)
    );
    if !finding.advice.is_empty() {
        let _ = write!(out, "<p class=advice>{}</p>", text(&finding.advice));
    }
    let _ = write!(out, "<ul class=places>");
    for item in finding.items.iter().take(LISTED) {
        let _ = write!(out, "<li>{}", place(item, 400));
    }
    let listed = finding.items.len().min(LISTED) as u64;
    if finding.count > listed && listed > 0 {
        let _ = write!(out, "<li class=note>and {} more", thousands(finding.count - listed));
    }
    let _ = write!(out, "</ul></details>");
    let shown = finding.items.iter().any(|item| item.image.is_some());
    let count = if shown {
        format!(
            "<button type=button class=count data-view=images data-find=\"{code}\" title=\"Look at them\">{count}</button>"
        )
    } else {
        count
    };
    let example = finding.items.first().map(|item| place(item, 60)).unwrap_or_default();
    let _ = writeln!(out, "<td class=n>{count} <small>{note}</small><td class=example>{example}");
    out
}

/// A path and what was seen there; the path cut to `most` characters.
fn place(item: &Item, most: usize) -> String {
    let path = crate::names::shown(&item.path).to_string();
    let mut out = format!("<span class=path>{}</span>", text(&elided(&path, most)));
    if !item.evidence.is_empty() {
        let _ = write!(out, " <small>{}</small>", text(&item.evidence));
    }
    out
}

fn classes(classes: &[Class], splits: &[String]) -> String {
    if classes.is_empty() {
        return "<p class=note>No labels.</p>".into();
    }
    let total: u64 = classes.iter().map(|c| c.images).sum();
    let weighted = classes.iter().any(|c| c.weight.is_some());
    // Without a split all images are in one part that has no name.
    let splits = if matches!(splits, [only] if only.is_empty()) { &[] } else { splits };
    let mut out = String::from(
        "<table class=classes><thead><tr><th scope=col>Class<th scope=col class=n>Images<th scope=col class=n>Share",
    );
    for split in splits {
        let _ = write!(
            out,
            "<th scope=col class=n>{}",
            if split.is_empty() { "no part".into() } else { text(split) }
        );
    }
    let _ = write!(out, "<th scope=col class=n>Unreadable");
    let _ = write!(out, "{}<tbody>", if weighted { "<th scope=col class=n>Weight" } else { "" });
    for class in classes.iter().take(MOST_CLASSES) {
        let share = class.images as f64 / total.max(1) as f64 * 100.0;
        let _ = write!(
            out,
            "<tr><th scope=row>{}<td class=n>{}<td class=n>{share:.1}%",
            text(&class.label),
            thousands(class.images)
        );
        for at in 0..splits.len() {
            let n = class.splits.get(at).copied().unwrap_or(0);
            let none = if n == 0 && class.images > 0 { " none" } else { "" };
            let _ = write!(out, "<td class=\"n{none}\">{}", thousands(n));
        }
        let _ = write!(out, "<td class=n>{}", thousands(class.bad));
        if weighted {
            let _ = write!(out, "<td class=n>{}", class.weight.map(number).unwrap_or_default());
        }
        out.push('\n');
    }
    out.push_str("</table>");
    if classes.len() > MOST_CLASSES {
        let _ = write!(out, "<p class=note>and {} more classes</p>", classes.len() - MOST_CLASSES);
    }
    out
}

fn shortcuts(shortcuts: &[Shortcut]) -> String {
    if shortcuts.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<section class=card aria-labelledby=h-shortcuts><h2 id=h-shortcuts>Shortcuts</h2>\
         <p class=note>These properties alone predict the label. A network may learn them instead of the picture.</p>\
         <ul class=shortcuts>",
    );
    for shortcut in shortcuts {
        let right = shortcut.accuracy.clamp(0.0, 1.0) * 100.0;
        let base = shortcut.majority.clamp(0.0, 1.0) * 100.0;
        let property = text(&shortcut.property);
        let _ = write!(
            out,
            "<li><span class=code>{}</span> <b>{property}</b> tells the label of {right:.0}%; always guessing the commonest class, {base:.0}%\
             <svg role=img aria-label=\"{property}: {right:.0}% right, commonest class {base:.0}%\" width=\"100%\" height=10>\
             <rect width=\"100%\" height=10 class=track /><rect width=\"{right:.1}%\" height=10 class=warn />\
             <rect width=\"{base:.1}%\" height=10 class=base /></svg>",
            text(&shortcut.code)
        );
        for rule in shortcut.rules.iter().take(LISTED) {
            let _ = write!(out, "<p class=note>{}</p>", text(rule));
        }
    }
    out + "</ul></section>"
}

fn not_shown(sentences: &[String]) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let items: String = sentences.iter().map(|s| format!("<li>{}", text(s))).collect();
    format!("<h2>Not on this page</h2><ul>{items}</ul>")
}

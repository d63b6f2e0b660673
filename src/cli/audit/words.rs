//! What an audit says: the summary, the document, what a code means.

use serde_json::{Map, Value, json};

use super::super::args::Input;
use super::super::terminal::{bytes, columns, plural, shell_word, thousands};
use crate::audit::{self, CODES, Code, Finding, Severity};
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::names::shown;
use crate::source::Listing;

/// The JSON document's version.
const SCHEMA: u32 = 1;

/// What a code means, for a person.
pub(super) fn explain(id: &str) -> Result<String> {
    if id.eq_ignore_ascii_case("all") {
        let rows: Vec<Vec<String>> = CODES
            .iter()
            .map(|c| vec![c.id.to_owned(), c.severity.as_str().to_owned(), c.title.to_owned()])
            .collect();
        return Ok(columns(&rows, &[false, false, false]));
    }
    let code = Code::find(id).ok_or_else(|| {
        Error::Usage(format!("`{}` is no code of a finding; --explain all lists them", shown(id)))
    })?;
    let (title, severity) = (code.title, code.severity.as_str());
    Ok(format!("{} {title} ({severity})\n\n{}\n\nWhat to do: {}\n", code.id, code.meaning, code.advice))
}

/// What to type next.
pub(super) fn next(input: &Input, findings: &[Finding], has_page: bool) -> String {
    let word = shell_word(&input.input);
    match findings.iter().map(|f| f.code.severity).max() {
        Some(Severity::Error | Severity::Warning) if !has_page => {
            format!(
                "Next: prep audit {word} --html to look at them, prep audit --explain CODE for what a code means"
            )
        }
        Some(Severity::Error | Severity::Warning) => {
            format!(
                "Next: prep audit {word} --exclude D001 (codes, or a list saved from the report), then prep shrink {word}"
            )
        }
        _ => format!("Next: prep shrink {word} --short-edge 512"),
    }
}

/// What kind of labels there are, and how many.
pub(super) fn labels(listing: &Listing) -> String {
    match (audit::Numbers::of(listing), listing.classes.len()) {
        (Some(numbers), _) => numbers.sentence(),
        (None, 0) => "no labels".to_owned(),
        (None, n) => plural(n, "class"),
    }
}

/// The summary: worst first, one example each.
pub(super) fn summary(
    input: &Input,
    listing: &Listing,
    facts: &[Facts],
    findings: &[Finding],
    all: bool,
) -> String {
    let total: u64 = facts.iter().map(|f| f.bytes).sum();
    let classes = labels(listing);
    let usable = facts.iter().filter(|f| f.fault.is_none()).count();
    let mut out = format!(
        "{}: {}, {} usable, {classes}, {}\n",
        shown(&input.input),
        plural(facts.len(), "row"),
        thousands(usable as u64),
        bytes(total),
    );
    let mut rows = Vec::new();
    for group in audit::groups(findings) {
        let code = group.code;
        let count = thousands(group.count() as u64);
        let example = example(listing, group.findings[0], group.findings.len() - 1);
        rows.push(vec![code.severity.as_str().into(), code.id.into(), code.title.into(), count, example]);
        if all {
            for finding in &group.findings {
                rows.push(vec![
                    String::new(),
                    String::new(),
                    String::new(),
                    String::new(),
                    place(listing, finding),
                ]);
            }
        }
    }
    out.push_str(&columns(&rows, &[false, false, false, true, false]));
    let (errors, warnings) =
        (audit::count(findings, Severity::Error), audit::count(findings, Severity::Warning));
    out.push_str(&match (errors, warnings) {
        (0, 0) => "Nothing that needs mending.\n".to_owned(),
        (errors, warnings) => format!("{}, {}.\n", plural(errors, "error"), plural(warnings, "warning")),
    });
    out
}

/// One finding in a line: where, and the evidence.
fn place(listing: &Listing, finding: &Finding) -> String {
    let names: Vec<String> = match finding.images.as_slice() {
        [] => vec![shown(&finding.at).to_string()],
        images => images.iter().map(|i| shown(&listing.entries[*i].path).to_string()).collect(),
    };
    let line = finding.line.map(|n| format!(" (line {n})")).unwrap_or_default();
    format!("{}{line}: {}", names.join(" = "), shown(&finding.detail))
}

fn example(listing: &Listing, finding: &Finding, more: usize) -> String {
    let name = match finding.images.first() {
        Some(image) => shown(&listing.entries[*image].path).to_string(),
        None => shown(&finding.at).to_string(),
    };
    let more = if more > 0 { format!(" +{}", thousands(more as u64)) } else { String::new() };
    // Notes are codes; what a person reads is behind them.
    let detail = shown(&finding.detail).to_string();
    format!("{name}{more}: {detail}")
}

pub(super) fn document(
    input: &Input,
    listing: &Listing,
    facts: &[Facts],
    findings: &[Finding],
    excluded: usize,
) -> String {
    let path = |i: &usize| listing.entries[*i].path.clone();
    let codes: Vec<Value> = audit::groups(findings)
        .iter()
        .map(|g| {
            json!({"code": g.code.id, "severity": g.code.severity.as_str(), "title": g.code.title,
                "findings": g.findings.len(), "images": g.images, "advice": g.code.advice})
        })
        .collect();
    let all: Vec<Value> = findings
        .iter()
        .map(|f| {
            json!({"code": f.code.id, "severity": f.code.severity.as_str(),
                "paths": f.images.iter().map(path).collect::<Vec<_>>(),
                "at": f.at, "line": f.line, "detail": f.detail})
        })
        .collect();
    let count = |severity: Severity| audit::count(findings, severity);
    let mut statuses = Map::new();
    for facts in facts {
        let n = statuses.entry(facts.status().as_str()).or_insert(json!(0));
        *n = json!(n.as_u64().unwrap_or(0) + 1);
    }
    let numbers = audit::Numbers::of(listing).map(|n| {
        json!({"least": n.least, "lower_quartile": n.lower, "median": n.median, "upper_quartile": n.upper,
            "most": n.most})
    });
    let document = json!({
        "schema": SCHEMA, "command": "audit", "input": shown(&input.input).to_string(),
        "rows": facts.len(), "bytes": facts.iter().map(|f| f.bytes).sum::<u64>(), "classes": listing.classes,
        "label_numbers": numbers, "statuses": statuses, "excluded": excluded,
        "errors": count(Severity::Error), "warnings": count(Severity::Warning), "infos": count(Severity::Info),
        "codes": codes, "findings": all,
    });
    format!("{document:#}\n")
}

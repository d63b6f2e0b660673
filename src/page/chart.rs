//! Charts as SVG that needs no script: bars with parts, and histograms with thresholds.
//!
//! Colours come from the style of the page, sizes are percents of the place that there is, and every chart has its
//! numbers in its text label.

use std::fmt::Write as _;

use crate::names::{shown, thousands};

use super::escape::{elided, markup, number};

/// A chart of the overview.
#[derive(Debug, Clone)]
pub struct Chart {
    /// A few words.
    pub title: String,
    /// A sentence below, or nothing.
    pub note: String,
    /// What is drawn.
    pub kind: Kind,
}

/// What a chart draws.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A bar for each item, from the top down.
    Bars {
        /// Names of the parts of a bar: the splits, or one empty name. Six have colours of their own.
        parts: Vec<String>,
        /// The items; the first 20 are drawn, the rest are summed up in words.
        bars: Vec<Bar>,
    },
    /// Counts between edges.
    Histogram {
        /// Rising; one more than `counts`.
        edges: Vec<f64>,
        /// How many lie in each bin.
        counts: Vec<u64>,
        /// Thresholds: value and name, drawn as dashed lines. At most two can be read.
        lines: Vec<(f64, String)>,
        /// What is counted: "px", or nothing.
        unit: String,
    },
}

/// One item of [`Kind::Bars`].
#[derive(Debug, Clone)]
pub struct Bar {
    /// Its name, from the user's disk.
    pub label: String,
    /// One count for each part.
    pub counts: Vec<u64>,
}

/// Bars drawn of one chart.
const MOST_BARS: usize = 20;
/// Height of a bar with its text, px.
const BAR: usize = 28;
/// Height of the columns of a histogram, px.
const COLUMNS: f64 = 96.0;

impl Chart {
    /// The chart as a figure.
    pub(super) fn html(&self) -> String {
        let (body, legend) = match &self.kind {
            Kind::Bars { parts, bars } => (self.bars(bars, parts), legend(parts)),
            Kind::Histogram { edges, counts, lines, unit } => {
                (self.histogram(edges, counts, lines, unit), String::new())
            }
        };
        let title = markup(&self.title);
        let mut out = format!("<figure class=chart><figcaption>{title}{legend}</figcaption>{body}");
        if !self.note.is_empty() {
            let _ = write!(out, "<p class=note>{}</p>", markup(&shown(&self.note).to_string()));
        }
        out + "</figure>\n"
    }

    fn bars(&self, bars: &[Bar], parts: &[String]) -> String {
        let total = |bar: &Bar| bar.counts.iter().sum::<u64>();
        let most = bars.iter().map(total).max().unwrap_or(0).max(1) as f64;
        let drawn = bars.len().min(MOST_BARS);
        let mut label = self.title.clone();
        let mut svg = String::new();
        for (at, bar) in bars.iter().take(MOST_BARS).enumerate() {
            let name = shown(&bar.label).to_string();
            let top = at * BAR;
            let _ = write!(
                svg,
                "<text y={}>{}<title>{}</title></text><text x=\"100%\" y={} class=n>{}</text>",
                top + 12,
                markup(&elided(&name, 38)),
                markup(&name),
                top + 12,
                thousands(total(bar))
            );
            let mut from = 0.0;
            for (part, count) in bar.counts.iter().enumerate() {
                let wide = *count as f64 / most * 100.0;
                // What is there is seen.
                let wide = if *count > 0 { wide.max(0.4) } else { 0.0 };
                let _ = write!(
                    svg,
                    "<rect x=\"{from:.2}%\" y={} width=\"{wide:.2}%\" height=6 class=p{} />",
                    top + 17,
                    part % 6
                );
                from += wide;
            }
            let _ = write!(label, "; {name}: {}", in_words(bar, parts));
        }
        if bars.len() > drawn {
            let rest: u64 = bars.iter().skip(MOST_BARS).map(total).sum();
            let more = format!("and {} more with {}", bars.len() - drawn, thousands(rest));
            let _ = write!(svg, "<text y={} class=n0>{more}</text>", drawn * BAR + 14);
            let _ = write!(label, "; {more}");
        }
        let height = drawn * BAR + if bars.len() > drawn { 20 } else { 0 };
        picture(&label, height.max(1), &svg)
    }

    fn histogram(&self, edges: &[f64], counts: &[u64], lines: &[(f64, String)], unit: &str) -> String {
        let (Some(low), Some(high)) = (edges.first(), edges.last()) else { return String::new() };
        let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        let wide = 100.0 / counts.len().max(1) as f64;
        let mut label = self.title.clone();
        let mut svg = String::new();
        for (at, (count, pair)) in counts.iter().zip(edges.windows(2)).enumerate() {
            let tall = *count as f64 / most * COLUMNS;
            // A bin that is not empty is seen.
            let tall = if *count > 0 { tall.max(1.5) } else { 0.0 };
            let span = format!("{} to {}{unit}: {}", number(pair[0]), number(pair[1]), thousands(*count));
            let _ = write!(
                svg,
                "<rect x=\"{:.2}%\" y={:.1} width=\"{:.2}%\" height={tall:.1} class=p0><title>{span}</title></rect>",
                at as f64 * wide,
                COLUMNS + 16.0 - tall,
                wide * 0.88,
            );
            if *count > 0 {
                let _ = write!(label, "; {span}");
            }
        }
        let base = COLUMNS + 16.5;
        let _ = write!(svg, "<line x1=0 x2=\"100%\" y1={base} y2={base} class=axis />");
        for (value, name) in lines {
            let x = place(*value, edges) * wide;
            let side = if x > 50.0 { " class=n" } else { "" };
            let gap = if x > 50.0 { -4 } else { 4 };
            let name = markup(&shown(name).to_string());
            let _ = write!(svg, "<line x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=0 y2={base} class=mark />");
            let _ = write!(svg, "<text x=\"{x:.2}%\" y=10 dx={gap}{side}>{name}</text>");
            let _ = write!(label, "; line at {}: {name}", number(*value));
        }
        let foot = COLUMNS as usize + 30;
        let middle = edges.get(edges.len() / 2).filter(|_| edges.len() % 2 == 1);
        let _ = write!(svg, "<text y={foot}>{}</text>", number(*low));
        if let Some(middle) = middle {
            let _ = write!(svg, "<text x=\"50%\" y={foot} class=m>{}</text>", number(*middle));
        }
        let _ = write!(svg, "<text x=\"100%\" y={foot} class=n>{}{unit}</text>", number(*high));
        picture(&label, foot + 6, &svg)
    }
}

/// Where `value` lies, in bins from the left: bins are drawn equally wide, whatever their edges.
fn place(value: f64, edges: &[f64]) -> f64 {
    let bins = edges.len().saturating_sub(1);
    for (at, pair) in edges.windows(2).enumerate() {
        if value < pair[1] {
            let span = pair[1] - pair[0];
            return at as f64 + if span > 0.0 { ((value - pair[0]) / span).max(0.0) } else { 0.0 };
        }
    }
    bins as f64
}

/// "80 (train 60, val 20)".
fn in_words(bar: &Bar, parts: &[String]) -> String {
    let total = thousands(bar.counts.iter().sum::<u64>());
    if parts.len() < 2 {
        return total;
    }
    let each: Vec<String> =
        parts.iter().zip(&bar.counts).map(|(part, n)| format!("{} {}", shown(part), thousands(*n))).collect();
    format!("{total} ({})", each.join(", "))
}

fn legend(parts: &[String]) -> String {
    if parts.len() < 2 {
        return String::new();
    }
    let mut out = String::from("<span class=legend>");
    for (at, part) in parts.iter().enumerate() {
        let name = markup(&elided(&shown(part).to_string(), 24));
        let _ = write!(
            out,
            "<span><svg width=10 height=10 aria-hidden=true><rect width=10 height=10 rx=2 class=p{} /></svg>{name}</span>",
            at % 6
        );
    }
    out + "</span>"
}

fn picture(label: &str, height: usize, inside: &str) -> String {
    let label = markup(&shown(label).to_string());
    format!("<svg role=img aria-label=\"{label}\" width=\"100%\" height={height}>{inside}</svg>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_lies_between_the_edges_it_lies_between() {
        let edges = [0.0, 10.0, 100.0, 1000.0];
        assert!((place(55.0, &edges) - 1.5).abs() < 1e-9);
        assert!((place(-1.0, &edges)).abs() < 1e-9);
        assert!((place(5000.0, &edges) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_chart_says_all_its_numbers_and_runs_nothing() {
        let bars = vec![Bar { label: "<script>x</script>\"".into(), counts: vec![3, 4] }];
        let kind = Kind::Bars { parts: vec!["train".into(), "val".into()], bars };
        let html = Chart { title: "Classes".into(), note: String::new(), kind }.html();
        assert!(html.contains("7 (train 3, val 4)"), "{html}");
        assert!(!html.contains("<script"), "{html}");
        let kind = Kind::Histogram { edges: vec![], counts: vec![], lines: vec![], unit: String::new() };
        assert!(Chart { title: "Empty".into(), note: String::new(), kind }.html().contains("Empty"));
    }
}

//! The facts and the findings as tables.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use super::finding::Finding;
use super::loaders;
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::fault::join_notes;
use crate::names::spreadsheet_safe;
use crate::out::Atomic;
use crate::source::Listing;
use crate::table::csv_out;

/// The columns of the table of facts, one row an image, as `docs/audit.md` explains them.
pub const FACTS: [&str; 38] = [
    "path",
    "label",
    "split",
    "group",
    "status",
    "fault",
    "notes",
    "format",
    "width",
    "height",
    "orientation",
    "mode",
    "bits",
    "icc",
    "frames",
    "camera",
    "bytes",
    "hash",
    "pixel_hash",
    "r",
    "g",
    "b",
    "std_r",
    "std_g",
    "std_b",
    "brightness",
    "contrast",
    "dark",
    "bright",
    "entropy",
    "sharpness",
    "colour",
    "border",
    "fill",
    "pillow",
    "torchvision",
    "gpu",
    "findings",
];

/// Writes one row an image: `path` as manifests spell it; `width`, `height` upright; `r`, `g`, `b` the means of the
/// upright sRGB picture, 0 to 255.
///
/// # Errors
/// [`Error::Write`].
pub fn write_facts(path: &Path, listing: &Listing, facts: &[Facts], findings: &[Finding]) -> Result<()> {
    let mut codes: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for finding in findings {
        for image in &finding.images {
            codes.entry(*image).or_default().push(finding.code.id);
        }
    }
    let rows = listing.entries.iter().zip(facts).enumerate().map(|(i, (entry, facts))| {
        let mut row = vec![
            spreadsheet_safe(&entry.path).into_owned(),
            spreadsheet_safe(&entry.label).into_owned(),
            spreadsheet_safe(&entry.split).into_owned(),
            spreadsheet_safe(&entry.group).into_owned(),
        ];
        row.extend(file_cells(facts));
        row.extend(pixel_cells(facts));
        let does = loaders::of(facts);
        row.extend([does.pillow, does.torchvision, does.gpu].map(|d| d.as_str().to_owned()));
        let mut codes = codes.remove(&i).unwrap_or_default();
        codes.sort_unstable();
        codes.dedup();
        row.push(codes.join(";"));
        row
    });
    write("writing the facts", path, &FACTS, rows)
}

fn file_cells(facts: &Facts) -> Vec<String> {
    let header = facts.header.as_ref();
    let text = |of: &dyn Fn(&crate::decode::Header) -> String| header.map(of).unwrap_or_default();
    let (width, height) = facts.size().map_or_else(Default::default, |(w, h)| (w.to_string(), h.to_string()));
    let seen = facts.seen.as_ref();
    vec![
        facts.status().as_str().to_owned(),
        facts.fault.as_ref().map(|f| spreadsheet_safe(&f.to_string()).into_owned()).unwrap_or_default(),
        join_notes(&facts.notes),
        text(&|h| h.format.name().to_owned()),
        width,
        height,
        text(&|h| (h.orientation as u8).to_string()),
        text(&|h| h.src_mode()),
        text(&|h| h.bits.to_string()),
        text(&|h| spreadsheet_safe(h.icc.as_deref().unwrap_or_default()).into_owned()),
        text(&|h| h.frames.to_string()),
        text(&|h| spreadsheet_safe(&h.camera).into_owned()),
        facts.bytes.to_string(),
        facts.hash.as_ref().map(hex).unwrap_or_default(),
        seen.map(|s| hex(&s.pixel_hash)).unwrap_or_default(),
    ]
}

fn pixel_cells(facts: &Facts) -> Vec<String> {
    let Some(seen) = &facts.seen else { return vec![String::new(); 15] };
    let (sums, q) = (&seen.sums, &seen.quality);
    let n = sums.pixels.max(1) as f64;
    let mean = |c: usize| sums.sum[c] as f64 / n;
    let std = |c: usize| (sums.squares[c] as f64 / n - mean(c) * mean(c)).max(0.0).sqrt();
    let mut cells: Vec<String> = (0..3).map(|c| format!("{:.4}", mean(c))).collect();
    cells.extend((0..3).map(|c| format!("{:.4}", std(c))));
    cells.extend([format!("{:.2}", q.brightness), format!("{:.2}", q.contrast)]);
    cells.extend([q.dark.to_string(), q.bright.to_string()]);
    cells.extend([q.entropy, q.sharpness, q.colour, q.border, q.fill].map(|v| format!("{v:.3}")));
    cells
}

/// The columns of the table of findings.
pub const FINDINGS: [&str; 10] =
    ["code", "severity", "title", "set", "path", "at", "line", "label", "split", "detail"];

/// Writes one row for each image of a finding, and one for a finding without images.
///
/// # Errors
/// [`Error::Write`].
pub fn write_findings(path: &Path, listing: &Listing, findings: &[Finding]) -> Result<()> {
    let rows = findings.iter().enumerate().flat_map(|(set, finding)| {
        let images: Vec<Option<usize>> = match finding.images.as_slice() {
            [] => vec![None],
            images => images.iter().copied().map(Some).collect(),
        };
        images.into_iter().map(move |image| {
            let entry = image.map(|i| &listing.entries[i]);
            let of = |text: Option<&str>| spreadsheet_safe(text.unwrap_or_default()).into_owned();
            vec![
                finding.code.id.to_owned(),
                finding.code.severity.as_str().to_owned(),
                finding.code.title.to_owned(),
                (set + 1).to_string(),
                of(entry.map(|e| e.path.as_str())),
                of(Some(&finding.at)),
                finding.line.map(|n| n.to_string()).unwrap_or_default(),
                of(entry.map(|e| e.label.as_str())),
                of(entry.map(|e| e.split.as_str())),
                of(Some(&finding.detail)),
            ]
        })
    });
    write("writing the findings", path, &FINDINGS, rows)
}

fn write(
    doing: &'static str,
    path: &Path,
    columns: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<()> {
    let mut csv = csv_out(Atomic::create(doing, path)?);
    let told = |e: csv::Error| Error::write(doing, path, std::io::Error::other(e));
    csv.write_record(columns).map_err(told)?;
    for row in rows {
        csv.write_record(&row).map_err(told)?;
    }
    let mut file =
        csv.into_inner().map_err(|e| Error::write(doing, path, std::io::Error::other(e.to_string())))?;
    file.flush().map_err(|e| Error::write(doing, path, e))?;
    file.commit(false)
}

fn hex(bytes: &[u8; 16]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

//! The HTML report: where it goes, its head, and its thumbnails.

use std::path::{Path, PathBuf};

use super::super::args::Input;
use super::super::terminal::{bytes, plural};
use crate::audit::{self, Finding};
use crate::decode::Chroma;
use crate::encode::{Encoder, Encoding};
use crate::engine::crew::Crew;
use crate::engine::pipe::Pipe;
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::home::Home;
use crate::names::{self, shown};
use crate::out::{Atomic, Claim, place};
use crate::page::audit::Head;
use crate::source::Listing;
use crate::thumb;

/// Width and height that a thumbnail has at most, in pixels.
const THUMB: (u32, u32) = (160, 96);
const QUALITY: u8 = 70;

/// What the page is made from.
pub struct Report<'a> {
    pub input: &'a Input,
    pub listing: &'a Listing,
    pub home: &'a Home,
    pub facts: &'a [Facts],
    pub findings: &'a [Finding],
    /// Thumbnails at most.
    pub thumbs: usize,
}

/// Where the report goes when nobody says: into a workspace, else beside the input.
///
/// # Errors
/// An input that nothing can lie beside.
pub fn default_place(input: &Path) -> Result<PathBuf> {
    if input.join(Claim::CORNER).is_dir() {
        return Ok(input.join("audit.html"));
    }
    let input = if input.is_file() { input.with_extension("") } else { input.to_owned() };
    place::beside(&input, "-audit.html")
}

/// Writes the report as `path`.
///
/// # Errors
/// [`Error::Write`], an interrupt.
pub fn write(path: &Path, report: &Report<'_>, pipe: &Pipe, crew: &Crew<'_>) -> Result<()> {
    let source = audit::Source {
        listing: report.listing,
        facts: report.facts,
        findings: report.findings,
        thumbs: report.thumbs,
    };
    let (page, rows) = audit::report(&source, head(path, report));
    let thumbs = thumbnails(report.listing, &rows, pipe, crew)?;
    let doing = "writing the report";
    let mut file = Atomic::create(doing, path)?;
    crate::page::audit::write(&mut file, &page, thumbs).map_err(|e| Error::write(doing, path, e))?;
    file.commit(false)
}

fn head(path: &Path, report: &Report<'_>) -> Head {
    let listing = report.listing;
    let real = listing.root.canonicalize().unwrap_or_else(|_| listing.root.clone());
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let root = names::encode(&place::relative(folder, &listing.root));
    let total: u64 = report.facts.iter().map(|f| f.bytes).sum();
    let classes = super::words::labels(listing);
    let mut facts = vec![("prep".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
    if let Some(table) = &listing.table {
        facts.push(("labels".into(), shown(&table.path).to_string()));
    }
    if let Some(sidecar) = report.home.sidecar() {
        facts.push(("manifest".into(), sidecar.hash.get(..16).unwrap_or_default().to_owned()));
    }
    let input = shown(&report.input.input).to_string();
    Head {
        dataset: real.file_name().map_or_else(|| input.clone(), |name| shown(name).to_string()),
        summary: format!("{}, {classes}, {}", plural(report.facts.len(), "image"), bytes(total)),
        facts,
        command: format!("prep audit {} --html", super::super::terminal::shell_word(&report.input.input)),
        key: blake3::hash(real.as_os_str().as_encoded_bytes()).to_hex()[..16].to_owned(),
        root: Some(if root == "." { String::new() } else { root }),
        uses: vec![
            format!(
                "prep audit {} --exclude list.txt",
                super::super::terminal::shell_word(&report.input.input)
            ),
            format!(
                "prep shrink {} --files-from list.txt",
                super::super::terminal::shell_word(&report.input.input)
            ),
        ],
    }
}

/// The thumbnails of `rows` as JPEG; an empty one where it could not be made.
fn thumbnails(listing: &Listing, rows: &[usize], pipe: &Pipe, crew: &Crew<'_>) -> Result<Vec<Vec<u8>>> {
    let keys: Vec<&str> = rows.iter().map(|row| listing.entries[*row].path.as_str()).collect();
    let mut thumbs = Vec::with_capacity(rows.len());
    crew.run(
        &keys,
        || (thumb::Bench::default(), Encoder::default()),
        |(bench, encoder), item| {
            let entry = &listing.entries[rows[item.index]];
            let mut bytes = Vec::new();
            if let Ok((small, _)) = thumb::of(pipe, entry, item, THUMB, bench) {
                let encoding = Encoding::Jpeg { quality: QUALITY, chroma: Chroma::Yuv420 };
                if encoder.encode(&small, encoding, &mut bytes).is_err() {
                    bytes.clear();
                }
            }
            bytes
        },
        |_, _| Vec::new(),
        |_, bytes| {
            thumbs.push(bytes);
            Ok(())
        },
    )?;
    Ok(thumbs)
}

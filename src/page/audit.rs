//! The audit report: what the page is told.
//!
//! Everything here is plain data. Paths are in the spelling of tables ([`crate::names::encode`]), relative to the data
//! set. Text may come from the user's disk unescaped. The caller bounds what it hands over: a page of 5,000 images
//! opens in well under two seconds, one of 50,000 can still be used.

use std::io::{self, Write};

use serde::Serialize;

pub use super::Severity;
pub use super::chart::{Bar, Chart, Kind};
use super::{Page, audit_html};

/// All that the report shows.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Audit {
    /// The head of the page.
    pub head: Head,
    /// The numbers that matter, most important first; eight fit a row.
    #[serde(skip)]
    pub tiles: Vec<Tile>,
    /// The charts of the overview, in order.
    #[serde(skip)]
    pub charts: Vec<Chart>,
    /// One row a class, in the order of the class indices.
    #[serde(skip)]
    pub classes: Vec<Class>,
    /// One for each code that found something, worst first.
    pub findings: Vec<Finding>,
    /// The images that can be looked at; those with findings first. Others refer to them by place.
    pub images: Vec<Image>,
    /// Duplicate sets and leaks in the order in which they are worth looking at: label conflicts first.
    pub sets: Vec<Twins>,
    /// Properties that predict the label, best first.
    #[serde(skip)]
    pub shortcuts: Vec<Shortcut>,
    /// Definitions, and what was left out.
    #[serde(skip)]
    pub foot: Foot,
    /// Names of [`Image::scores`].
    pub scores: Vec<String>,
}

/// What was audited, and how.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Head {
    /// Name of the data set: `photos`.
    pub dataset: String,
    /// "18,204 images, 6 classes, 70.4 GB; labels: train.csv". A sentence without names that need escaping.
    #[serde(skip)]
    pub summary: String,
    /// Pairs of term and text: split, seed, version, manifest hash, loaders …
    #[serde(skip)]
    pub facts: Vec<(String, String)>,
    /// The command line, for the button that copies it.
    #[serde(skip)]
    pub command: String,
    /// Names the data for the marks that browsers keep: two reports with one key share their marks. A hash of the
    /// manifest or of the absolute path of the data set.
    pub key: String,
    /// The data set as seen from the page's folder: "photos", "../photos" or "" for the folder itself, spelled as in
    /// tables. `None` where the page and the pictures will not stay together: then originals are neither linked nor
    /// shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// What can be done with a saved list: command lines that name `list.txt`.
    pub uses: Vec<String>,
}

/// A number that leads to what it counts.
#[derive(Debug, Clone)]
pub struct Tile {
    /// "unreadable".
    pub title: String,
    /// How many.
    pub count: u64,
    /// A few words below, or nothing: "in 201 sets".
    pub note: String,
    /// The colour where `count` is not 0; `None` for a plain number.
    pub severity: Option<Severity>,
    /// The findings that it sums up; none for all images.
    pub codes: Vec<String>,
    /// Does it lead to [`Audit::sets`] rather than to the images?
    pub sets: bool,
}

/// A row of the table of classes.
#[derive(Debug, Clone)]
pub struct Class {
    /// Its name.
    pub label: String,
    /// Images with that label.
    pub images: u64,
    /// Images in each split: the splits of [`Foot::splits`].
    pub splits: Vec<u64>,
    /// Images that cannot be read.
    pub bad: u64,
    /// The class weight; `None` where it cannot be computed.
    pub weight: Option<f64>,
}

/// One code, and where it was found.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// "F003".
    pub code: String,
    /// How bad.
    pub severity: Severity,
    /// "truncated".
    pub title: String,
    /// What it means: the text of `--explain`.
    pub explain: String,
    /// What to do.
    pub advice: String,
    /// How many there are; more than `items` where not all were handed over.
    pub count: u64,
    /// What is counted and how it hangs together, or nothing: "in 4 sets".
    pub note: String,
    /// Places, best example first.
    pub items: Vec<Item>,
}

/// One place of a finding.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Item {
    /// The path of the image, the line of a table (`train.csv:17`), the class, the folder.
    pub path: String,
    /// What was seen: "ends after 61 % of its rows".
    pub evidence: String,
    /// Its place in [`Audit::images`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<usize>,
}

/// One image.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Image {
    /// Its path, spelled as in tables.
    pub path: String,
    /// Its label; several joined as in the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its split; of an image of `--against`, the name of that set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Width as the header says, before any turn, px; 0 where unknown.
    pub width: u32,
    /// Height, px.
    pub height: u32,
    /// Size of the file.
    pub bytes: u64,
    /// "jpeg".
    pub format: String,
    /// "rgb", "gray", "cmyk" …
    pub mode: String,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// What is odd but no fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Measures, in the order of [`Audit::scores`]; none where it was not measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<f32>,
    /// Which of the thumbnails handed to [`write()`] it is, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thumb: Option<usize>,
}

/// Images that are one picture, or nearly.
#[derive(Debug, Clone, Serialize)]
pub struct Twins {
    /// The findings that are true of the set, worst first: "D004", "D001".
    pub codes: Vec<String>,
    /// "same bytes", "same pixels", "near-duplicate", "likely the same shot", "same scene".
    pub tier: String,
    /// What was measured: "distance 12 of 256, turned by 90°".
    pub evidence: String,
    /// Places in [`Audit::images`], the kept one first.
    pub members: Vec<usize>,
}

/// A property that gives the label away.
#[derive(Debug, Clone)]
pub struct Shortcut {
    /// The code: "X001".
    pub code: String,
    /// "image width".
    pub property: String,
    /// Share of labels that the property alone gets right, 0-1.
    pub accuracy: f64,
    /// Share that the commonest class alone gets right, 0-1.
    pub majority: f64,
    /// "4000 x 3000 is rust in 98 % of 812".
    pub rules: Vec<String>,
}

/// The end of the page.
#[derive(Debug, Clone, Default)]
pub struct Foot {
    /// Names of the splits, for the table of classes.
    pub splits: Vec<String>,
    /// Thresholds and definitions: term and text.
    pub definitions: Vec<(String, String)>,
    /// What the page does not show, a sentence each: "12,400 info findings are in findings.csv".
    pub not_shown: Vec<String>,
}

/// Writes the report. `thumbs` are files of the web's formats (JPEG, PNG, WebP), best 96 px high; 2,000 make 7 MB.
///
/// # Errors
/// Those of `w`, and a place in [`Audit::images`] where there is no image.
pub fn write<T: AsRef<[u8]>>(
    w: &mut dyn Write,
    audit: &Audit,
    thumbs: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    let places = audit.findings.iter().flat_map(|f| f.items.iter().filter_map(|item| item.image));
    let members = audit.sets.iter().flat_map(|set| set.members.iter().copied());
    if let Some(lost) = places.chain(members).find(|at| *at >= audit.images.len()) {
        return Err(io::Error::other(format!("the report refers to image {lost}, which it does not hold")));
    }
    let page = Page {
        name: "audit",
        template: include_str!("web/audit.html"),
        script: concat!(
            include_str!("web/audit_filter.js"),
            include_str!("web/audit_sets.js"),
            include_str!("web/audit.js")
        ),
        title: &audit.head.dataset,
        slots: audit_html::slots(audit),
    };
    page.write(w, audit, thumbs)
}

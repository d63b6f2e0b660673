//! The folder of sheets: pictures, and `sheets.csv`, written last, which says which image lies where.
//!
//! A folder with that file is ours: sheets of an earlier run that are not made anew are removed from it. Any other
//! folder that is not empty is left alone.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::page::Page;
use super::{Drawn, Job};
use crate::decode::Chroma;
use crate::encode::{Encoder, Encoding};
use crate::error::{Error, Result};
use crate::names::{shown, spreadsheet_safe};
use crate::out::{self, Atomic};
use crate::pixels::Rgb8;
pub use crate::source::{SHEETS as INDEX, SHEETS_COLUMNS as COLUMNS, SHEETS_PAGE as PAGE};
use crate::table::{self, csv_out};

const DOING: &str = "writing a sheet";

/// JPEG with full colour resolution: red letters stay sharp.
pub const JPEG: Encoding = Encoding::Jpeg { quality: 90, chroma: Chroma::Yuv444 };

/// A folder of sheets that is being written.
pub struct Folder {
    folder: PathBuf,
    encoding: Encoding,
    encoder: Encoder,
    /// Files of an earlier run.
    before: Vec<String>,
    written: Vec<String>,
}

impl Folder {
    /// A folder that is not there, is empty, or is one of ours.
    ///
    /// # Errors
    /// [`Error::Outputs`] for any other.
    pub fn take(folder: &Path, encoding: Encoding) -> Result<Self> {
        let before = match table::read(&folder.join(INDEX)) {
            Ok(index) if index.columns == COLUMNS => names_in(&index),
            _ if is_free(folder) => Vec::new(),
            _ => {
                let why = "is not empty and was not made by prep sheet: name another folder with -o";
                return Err(Error::Outputs(format!("{} {why}", shown(folder))));
            }
        };
        Ok(Self {
            folder: folder.to_owned(),
            encoding,
            encoder: Encoder::default(),
            before,
            written: Vec::new(),
        })
    }

    /// Writes one sheet.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write(&mut self, page: &Page, picture: &Rgb8) -> Result<()> {
        let name = self.name_of(page);
        let mut bytes = Vec::new();
        let drawn = self.encoder.encode(picture, self.encoding, &mut bytes);
        drawn
            .map_err(|why| Error::Usage(format!("{why}; smaller cells (--cell) or another --format help")))?;
        let index = self.folder.join(INDEX);
        if self.written.is_empty() && !index.exists() {
            // The claim to the folder: a run that is interrupted can be repeated.
            out::write_whole(DOING, &index, format!("{}\n", COLUMNS.join(",")).as_bytes(), false)?;
        }
        out::write_whole(DOING, &self.folder.join(&name), &bytes, false)?;
        self.written.push(name);
        Ok(())
    }

    /// The file of a sheet.
    pub fn name_of(&self, page: &Page) -> String {
        format!("{}.{}", page.name, self.encoding.extension())
    }

    /// Where the page for a browser goes; it counts as written.
    pub fn page(&mut self) -> PathBuf {
        self.written.push(PAGE.into());
        self.folder.join(PAGE)
    }

    /// Removes what an earlier run left, then writes the index. `on` is the file that a cell lies on.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn finish(self, job: &Job<'_>, index: &[Drawn], on: impl Fn(&Page) -> String) -> Result<()> {
        let kept: HashSet<&str> = self.written.iter().map(String::as_str).collect();
        for name in self.before.iter().filter(|name| !kept.contains(name.as_str())) {
            out::remove("removing an earlier sheet", &self.folder.join(name))?;
        }
        let path = self.folder.join(INDEX);
        let file = Atomic::create(DOING, &path)?;
        let mut csv = csv_out(file);
        let failed = |e: csv::Error| Error::write(DOING, &path, e.into());
        csv.write_record(COLUMNS).map_err(failed)?;
        for drawn in index {
            csv.write_record(row(job, drawn, &on)).map_err(failed)?;
        }
        if index.is_empty() {
            // The file names are the claim to the folder: a sheet without images has a row too.
            for page in job.pages {
                let mut cells = vec![on(page)];
                cells.resize(COLUMNS.len(), String::new());
                csv.write_record(cells).map_err(failed)?;
            }
        }
        let file = csv.into_inner().map_err(|e| Error::write(DOING, &path, e.into_error()))?;
        file.commit(true)
    }
}

fn row(job: &Job<'_>, drawn: &Drawn, on: &impl Fn(&Page) -> String) -> Vec<String> {
    let entry = &job.listing.entries[drawn.image];
    let safe = |text: &str| spreadsheet_safe(text).into_owned();
    let side = |n: Option<u32>| n.map(|n| n.to_string()).unwrap_or_default();
    let codes: Vec<&str> =
        job.marks.get(&drawn.image).into_iter().flatten().map(|mark| mark.code.as_str()).collect();
    vec![
        on(&job.pages[drawn.page]),
        drawn.place.0.to_string(),
        drawn.place.1.to_string(),
        safe(&entry.path),
        safe(&entry.label),
        safe(&entry.split),
        side(drawn.size.map(|s| s.0)),
        side(drawn.size.map(|s| s.1)),
        drawn.fault.as_ref().map(|fault| safe(&fault.to_string())).unwrap_or_default(),
        codes.join(" "),
    ]
}

/// The files that an index names: plain names in the folder itself, whatever somebody wrote into it.
fn names_in(index: &table::Table) -> Vec<String> {
    let Some(column) = index.column(COLUMNS[0]) else { return Vec::new() };
    let mut names: Vec<String> = (0..index.len()).map(|row| index.cell(row, column).to_owned()).collect();
    names.sort();
    names.dedup();
    names.retain(|name| {
        let ours = [".jpg", ".png", ".html"].iter().any(|ending| name.ends_with(ending));
        ours && Path::new(name).file_name() == Some(OsStr::new(name))
    });
    names
}

/// Not there, or empty but for what a run that was killed at once has left.
fn is_free(folder: &Path) -> bool {
    let is_left = |name: &OsStr| name.as_encoded_bytes().starts_with(out::TEMP_PREFIX.as_bytes());
    match std::fs::read_dir(folder) {
        Ok(inside) => inside.flatten().all(|member| is_left(&member.file_name())),
        Err(e) => e.kind() == std::io::ErrorKind::NotFound,
    }
}

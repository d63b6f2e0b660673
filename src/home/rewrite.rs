//! The door: a manifest is written anew with some columns changed, no row lost, and its sidecar last.
//!
//! Every change of a manifest after `shrink` goes through [`Home::rewrite`], which keeps what was there for `prep undo`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use super::{Home, ORIGIN, history};
use crate::error::{Error, Result};
use crate::fault::{Fault, Status};
use crate::manifest::{Layout, Places, Row, SOURCE_COLUMNS, Sidecar, Writer};
use crate::out::{Atomic, Claim, place};
use crate::source::{Kind, Listing};

/// What a rewritten manifest holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    /// Rows.
    pub rows: u64,
    /// Rows of the earlier manifest whose images are gone.
    pub gone: u64,
    /// Of our columns, those that had to be renamed, as a sentence.
    pub renamed: Option<String>,
}

impl Home {
    /// Writes the manifest anew: every entry of `listing` in order, with what is known of it, changed by
    /// `change(entry, row)`; then the sidecar, changed by `note`.
    ///
    /// # Errors
    /// [`Error::Write`], which names `-o` where the place does not allow it.
    pub fn rewrite(
        &self,
        listing: &Listing,
        command: &str,
        mut change: impl FnMut(usize, &mut Row),
        note: impl FnOnce(&mut Sidecar),
    ) -> Result<Kept> {
        let folder = self.manifest.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let claim = folder.join(Claim::CORNER).is_dir().then(|| Claim::take(folder)).transpose()?;
        let prefix = prefix(folder, listing);
        let base = Base::of(self, listing)?;
        let layout = Layout::new(listing.table.as_ref(), &listing.taken, base.with_source);
        let renamed = layout.sentence();
        let file = Atomic::create("writing the manifest", &self.manifest)?;
        let mut writer = Writer::new(file, &self.manifest, layout, listing.table.as_ref())?;
        let mut counts = Counts::default();
        let mut unmet = Unmet::new(self);
        let mut row = Row::default();
        for (at, entry) in listing.entries.iter().enumerate() {
            unmet
                .before(&entry.path, |mut row, of| write(&mut writer, &mut counts, &mut row, of, &prefix))?;
            base.fill(&mut row, listing, at)?;
            change(at, &mut row);
            write(&mut writer, &mut counts, &mut row, entry.row, &prefix)?;
        }
        unmet.rest(|mut row, of| write(&mut writer, &mut counts, &mut row, of, &prefix))?;
        let (file, written) = writer.finish()?;
        counts.statuses.insert("rows".into(), written.rows);

        let mut sidecar = self.sidecar.clone().unwrap_or_else(|| Sidecar::new(""));
        sidecar.version = env!("CARGO_PKG_VERSION").into();
        sidecar.command = command.into();
        sidecar.counts = counts.statuses;
        sidecar.splits = counts.splits;
        if !self.partial || sidecar.class_to_idx.is_empty() {
            sidecar.set_classes(listing.classes.iter().map(String::as_str));
        }
        sidecar.hash = written.hash;
        if let Some(origin) = &self.origin {
            sidecar.rest.insert(ORIGIN.into(), origin.clone());
        }
        note(&mut sidecar);
        // Ready before the manifest gets its name, so that a kill falls hardly ever between the two.
        let path = Sidecar::path_of(&self.manifest);
        let doing = "writing the sidecar";
        let mut second = Atomic::create(doing, &path)?;
        second.write_all(sidecar.to_json().as_bytes()).map_err(|e| Error::write(doing, &path, e))?;
        history::keep(&self.manifest, command, &sidecar.hash)?;
        file.commit(true)?;
        second.commit(true)?;
        drop(claim);
        Ok(Kept { rows: written.rows, gone: unmet.gone, renamed })
    }
}

/// What goes before the paths of a listing whose root is not the manifest's folder. Where nobody looked for the files,
/// paths stay as the table has them.
fn prefix(folder: &Path, listing: &Listing) -> String {
    let same = folder.canonicalize().ok() == listing.root.canonicalize().ok();
    let unseen = listing.entries.iter().all(|e| e.bytes == 0);
    if same || unseen {
        return String::new();
    }
    let mut text = crate::names::encode(&place::relative(folder, &listing.root));
    text.push('/');
    text
}

#[derive(Default)]
struct Counts {
    statuses: BTreeMap<String, u64>,
    splits: BTreeMap<String, u64>,
}

impl Counts {
    fn add(&mut self, row: &Row) {
        let add = |counts: &mut BTreeMap<String, u64>, key: &str| match counts.get_mut(key) {
            Some(n) => *n += 1,
            None => {
                counts.insert(key.to_owned(), 1);
            }
        };
        add(&mut self.statuses, row.status.as_str());
        if row.status == Status::Ok && !row.split.is_empty() {
            add(&mut self.splits, &row.split);
        }
    }
}

fn write<W: Write>(
    writer: &mut Writer<'_, W>,
    counts: &mut Counts,
    row: &mut Row,
    of: Option<usize>,
    prefix: &str,
) -> Result<()> {
    counts.add(row);
    if !prefix.is_empty() {
        row.path.insert_str(0, prefix);
    }
    writer.write(row, of)
}

/// Where rows come from before they are changed.
struct Base<'a> {
    home: &'a Home,
    /// Where our columns stand, when the listing is of a manifest.
    places: Option<Places>,
    with_source: bool,
}

impl<'a> Base<'a> {
    fn of(home: &'a Home, listing: &Listing) -> Result<Self> {
        let table = listing.table.as_ref().filter(|_| listing.kind == Kind::Manifest);
        let places = table
            .map(|t| Places::find(t).ok_or_else(|| Error::Internal("a manifest without columns".into())));
        let columns = table.or(home.known.as_ref().map(|k| &k.table)).map(|t| t.columns.as_slice());
        let with_source =
            columns.is_some_and(|c| c.iter().any(|c| c == SOURCE_COLUMNS[0])) && table.is_some();
        Ok(Self { home, places: places.transpose()?, with_source })
    }

    fn fill(&self, row: &mut Row, listing: &Listing, at: usize) -> Result<()> {
        let entry = &listing.entries[at];
        if let (Some(places), Some(table), Some(of)) = (&self.places, &listing.table, entry.row) {
            *row = Row::read(table, places, of)?;
            row.fault.clone_from(&entry.fault);
            row.status = entry.fault.as_ref().map_or(Status::Ok, Fault::status);
            return Ok(());
        }
        row.refill(entry);
        let Some(known) = &self.home.known else { return Ok(()) };
        if let Some(before) = known.row(&entry.path)? {
            row.fold = before.fold;
            if row.bytes == before.bytes {
                (row.width, row.height, row.hash) = (before.width, before.height, before.hash);
                if row.notes.is_empty() {
                    row.notes = before.notes;
                }
            }
        }
        Ok(())
    }
}

/// Rows of the earlier manifest that the listing does not have, met in order.
struct Unmet<'a> {
    home: &'a Home,
    next: usize,
    gone: u64,
}

impl<'a> Unmet<'a> {
    fn new(home: &'a Home) -> Self {
        Self { home, next: 0, gone: 0 }
    }

    /// Hands on the rows whose path comes before `path`, and passes the one that has it.
    fn before(&mut self, path: &str, mut keep: impl FnMut(Row, Option<usize>) -> Result<()>) -> Result<()> {
        let Some(known) = &self.home.known else { return Ok(()) };
        while self.next < known.len() {
            let row = known.nth(self.next);
            if known.path(row) >= path {
                self.next += usize::from(known.path(row) == path);
                return Ok(());
            }
            self.next += 1;
            if self.home.partial {
                let others = &self.home.others;
                let of = others
                    .binary_search_by(|(p, _)| p.as_str().cmp(known.path(row)))
                    .ok()
                    .map(|at| others[at].1);
                keep(Row::read(&known.table, &known.places, row)?, of)?;
            } else {
                self.gone += 1;
            }
        }
        Ok(())
    }

    fn rest(&mut self, keep: impl FnMut(Row, Option<usize>) -> Result<()>) -> Result<()> {
        // No path is greater than this one.
        self.before("\u{10FFFF}\u{10FFFF}", keep)
    }
}

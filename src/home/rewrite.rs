//! The door: a manifest is written anew with some columns changed, no row lost, and its sidecar last.
//!
//! Every change of a manifest after `shrink` goes through [`Home::rewrite`], which keeps what was there for `prep undo`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use super::carry::{Known, folder_of};
use super::{Home, ORIGIN, history};
use crate::error::{Error, Result};
use crate::fault::{Fault, Status};
use crate::manifest::{Layout, Places, Row, SOURCE_COLUMNS, Sidecar, Writer};
use crate::out::{self, Atomic, Claim, place};
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
    /// Can `prep undo` take it back?
    pub undoable: bool,
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
        self.check_place()?;
        let folder = folder_of(&self.manifest);
        let claim = folder.join(Claim::CORNER).is_dir().then(|| Claim::take(folder)).transpose()?;
        let lock = out::lock_folder(folder);
        self.check_unchanged()?;
        let all = self.whole.as_ref().unwrap_or(listing);
        let prefix = prefix(folder, all);
        let base = Base::of(self, all)?;
        let layout = Layout::new(all.table.as_ref(), &all.taken, base.with_source);
        let renamed = layout.sentence();
        let file = Atomic::create("writing the manifest", &self.manifest)?;
        let mut writer = Writer::new(file, &self.manifest, layout, all.table.as_ref())?;
        let mut counts = Counts::default();
        let mut gone = Gone::new(self);
        let mut row = Row::default();
        for (listing, at, asked) in merged(listing, self.whole.as_ref()) {
            let entry = &listing.entries[at];
            gone.before(&entry.path);
            base.fill(&mut row, listing, at)?;
            if asked {
                change(at, &mut row);
            }
            counts.add(&row);
            row.path.insert_str(0, &prefix);
            writer.write(&row, entry.row)?;
        }
        gone.rest();
        let (file, written) = writer.finish()?;
        counts.statuses.insert("rows".into(), written.rows);

        let mut sidecar = self.sidecar.clone().unwrap_or_else(|| Sidecar::new(""));
        sidecar.version = env!("CARGO_PKG_VERSION").into();
        sidecar.command = command.into();
        sidecar.counts = counts.statuses;
        sidecar.splits = counts.splits;
        sidecar.root = prefix.strip_suffix('/').map(str::to_owned);
        if !self.is_partial() || sidecar.class_to_idx.is_empty() {
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
        let text = sidecar.to_json();
        second.write_all(text.as_bytes()).map_err(|e| Error::write(doing, &path, e))?;
        // Without a history the change cannot be taken back; it is made all the same.
        let undoable = history::keep(&self.manifest, command, &sidecar.hash, &text).unwrap_or(false);
        file.commit(true)?;
        second.commit(true)?;
        drop((lock, claim));
        Ok(Kept { rows: written.rows, gone: gone.n, renamed, undoable })
    }
}

/// All entries by path: those of the listing (true), and those of the whole input that it lacks (false).
fn merged<'l>(
    listing: &'l Listing,
    whole: Option<&'l Listing>,
) -> impl Iterator<Item = (&'l Listing, usize, bool)> {
    let mut asked = 0..listing.entries.len();
    let mut rest = 0..whole.map_or(0, |whole| whole.entries.len());
    std::iter::from_fn(move || {
        let Some(whole) = whole.filter(|_| !rest.is_empty()) else {
            return asked.next().map(|at| (listing, at, true));
        };
        let path = |listing: &'l Listing, at: usize| listing.entries.get(at).map(|e| e.path.as_str());
        let ours = path(listing, asked.start).filter(|_| !asked.is_empty());
        match ours.cmp(&path(whole, rest.start)) {
            Ordering::Equal => {
                rest.next();
                asked.next().map(|at| (listing, at, true))
            }
            Ordering::Less if ours.is_some() => asked.next().map(|at| (listing, at, true)),
            _ => rest.next().map(|at| (whole, at, false)),
        }
    })
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
            row.path.clone_from(&entry.path);
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
                add_notes(&mut row.notes, &before.notes);
            }
        }
        Ok(())
    }
}

/// Adds the notes of an earlier manifest to those of the listing. A decision that the listing carries already is the
/// same one.
fn add_notes(notes: &mut String, before: &str) {
    let there: Vec<String> = notes.split(';').map(str::to_owned).collect();
    for note in before.split(';').filter(|note| !note.is_empty() && !there.iter().any(|n| n == note)) {
        if !notes.is_empty() {
            notes.push(';');
        }
        notes.push_str(note);
    }
}

/// Counts the rows of the earlier manifest that the input does not have any more.
struct Gone<'a> {
    known: Option<&'a Known>,
    next: usize,
    n: u64,
}

impl<'a> Gone<'a> {
    fn new(home: &'a Home) -> Self {
        Self { known: home.known.as_ref(), next: 0, n: 0 }
    }

    /// Passes the rows up to `path`.
    fn before(&mut self, path: &str) {
        let Some(known) = self.known else { return };
        while self.next < known.len() {
            let row = known.path(known.nth(self.next));
            if row > path {
                return;
            }
            self.next += 1;
            self.n += u64::from(row != path);
        }
    }

    fn rest(&mut self) {
        self.n += self.known.map_or(0, |known| known.len().saturating_sub(self.next)) as u64;
    }
}

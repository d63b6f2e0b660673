//! The cache of the facts of one data set: segments that are written once, whole, and never changed.
//!
//! A segment is a heading line (the kind of file, the version of the facts, prep's version and its JPEG engine) and
//! records: length (4 bytes, little-endian), checksum (8 bytes of BLAKE3), and a record in postcard's encoding. A
//! segment with another heading is not looked at; a record whose checksum is wrong is not there, nor is what follows a
//! torn one. So runs at the same time, kills and foreign files can cost a decode, never a wrong fact.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::{Facts, store};
use crate::error::{Error, Result};
use crate::measure::Print;
use crate::out::{self, Atomic};
use crate::source::Stamp;

/// Changes with the meaning of any fact.
const VERSION: u32 = 3;
const EXTENSION: &str = "facts";
/// Names the data set, for people.
const ROOT: &str = "root.txt";
/// The longest record that is believed.
const LONGEST: usize = 1 << 20;
/// New records go to disk when they are as many or as large as this, so that a kill costs little.
const FLUSH_RECORDS: usize = 2048;
const FLUSH_BYTES: usize = 8 << 20;
/// More segments than this are joined to one.
const MOST_SEGMENTS: usize = 12;

#[derive(Serialize, Deserialize)]
struct Record {
    path: String,
    stamp: Stamp,
    facts: Facts,
}

/// What `prep cache --info` tells of one data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The cache's own folder.
    pub(super) folder: PathBuf,
    /// The data set's folder.
    pub root: String,
    /// Bytes on disk.
    pub bytes: u64,
    /// Images whose facts can be used by this version.
    pub images: usize,
}

/// The facts of a data set that earlier runs left, and those that this run adds. Looking things up needs no lock.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    segments: Vec<(PathBuf, File)>,
    /// By a hash of the path: the segment, where the record starts, and its length. Later segments win.
    places: HashMap<u64, Place>,
    pending: Vec<u8>,
    pending_records: usize,
    written: usize,
    /// Nothing more is written after a failure.
    broken: AtomicBool,
    hits: AtomicUsize,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    segment: u32,
    length: u32,
    at: u64,
}

impl Cache {
    /// Opens the cache of the data set at `root` below `home`. What cannot be read is as if it were not there.
    pub fn open(home: &Path, root: &Path) -> Self {
        let folder = store::folder_of(home, root);
        let mut cache = Self::empty(&folder);
        for path in files(&cache.folder) {
            if path.extension().is_some_and(|e| e == EXTENSION) {
                cache.read_segment(path);
            }
        }
        let name = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let note = cache.folder.join(ROOT);
        let text = format!("{}\n", name.display());
        if fs::read_to_string(&note).ok().as_deref() != Some(text.as_str()) {
            let kept = out::write_whole("writing to the cache", &note, text.as_bytes(), false);
            cache.broken = AtomicBool::new(kept.is_err());
        }
        cache
    }

    /// Can what is found be kept?
    pub fn is_writable(&self) -> bool {
        !self.broken.load(Ordering::Relaxed)
    }

    /// Images whose facts were taken from here.
    pub fn hits(&self) -> usize {
        self.hits.load(Ordering::Relaxed)
    }

    /// The facts of the image at `path`, if its file still has this stamp.
    pub fn get(&self, path: &str, stamp: &Stamp) -> Option<Facts> {
        let place = self.places.get(&key(path))?;
        let (_, file) = self.segments.get(place.segment as usize)?;
        let mut bytes = vec![0; place.length as usize];
        file.read_exact_at(&mut bytes, place.at).ok()?;
        let record: Record = postcard::from_bytes(checked(&bytes)?).ok()?;
        if record.path != path || record.stamp != *stamp {
            return None;
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(record.facts)
    }

    /// Keeps `facts` of the image at `path`, whose file had this stamp before and after it was read. A cache that
    /// cannot be written is given up: it saves time and is no result.
    pub fn put(&mut self, path: &str, stamp: Stamp, facts: &Facts) {
        if !self.is_writable() || !facts.is_lasting() || !stamp.is_settled(SystemTime::now()) {
            return;
        }
        let record = Record { path: path.to_owned(), stamp, facts: facts.clone() };
        let Ok(bytes) = postcard::to_stdvec(&record) else { return };
        append(&mut self.pending, &bytes);
        self.pending_records += 1;
        if self.pending_records >= FLUSH_RECORDS || self.pending.len() >= FLUSH_BYTES {
            self.flush();
        }
    }

    /// Writes what is pending, and joins segments where there are many.
    pub fn close(&mut self) {
        self.flush();
        if self.is_writable() && self.segments.len() + self.written > MOST_SEGMENTS && self.join().is_err() {
            self.broken.store(true, Ordering::Relaxed);
        }
    }

    fn flush(&mut self) {
        if self.pending_records == 0 {
            return;
        }
        if self.write_segment(&self.pending).is_err() {
            self.broken.store(true, Ordering::Relaxed);
        }
        self.written += 1;
        self.pending_records = 0;
        self.pending.clear();
    }

    fn write_segment(&self, records: &[u8]) -> Result<PathBuf> {
        let doing = "writing to the cache";
        let path = self.folder.join(self.new_name());
        let mut file = Atomic::create(doing, &path)?;
        let whole = file.write_all(heading().as_bytes()).and_then(|()| file.write_all(records));
        whole.map_err(|e| Error::write(doing, &path, e))?;
        file.commit(false)?;
        Ok(path)
    }

    /// Names sort by time, so that later segments win.
    fn new_name(&self) -> String {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        format!("{:020}-{}-{}.{EXTENSION}", now.as_nanos(), std::process::id(), self.written)
    }

    /// Writes one segment of all records that still count, and removes those that it replaces. Segments of other runs
    /// that came meanwhile stay.
    fn join(&self) -> Result<()> {
        let mut all = Self::empty(&self.folder);
        let paths: Vec<PathBuf> = files(&self.folder)
            .into_iter()
            .filter(|p| p.extension().is_some_and(|e| e == EXTENSION))
            .collect();
        for path in &paths {
            all.read_segment(path.clone());
        }
        let mut places: Vec<Place> = all.places.values().copied().collect();
        places.sort_by_key(|p| (p.segment, p.at));
        let doing = "joining the cache";
        let target = self.folder.join(self.new_name());
        let mut file = Atomic::create(doing, &target)?;
        let told = |e| Error::write(doing, &target, e);
        file.write_all(heading().as_bytes()).map_err(told)?;
        let mut bytes = Vec::new();
        for place in places {
            bytes.resize(place.length as usize, 0);
            let read = all.segments[place.segment as usize].1.read_exact_at(&mut bytes, place.at);
            if let (Ok(()), Some(record)) = (read, checked(&bytes)) {
                file.write_all(&frame(record)).and_then(|()| file.write_all(record)).map_err(told)?;
            }
        }
        file.commit(false)?;
        paths.iter().try_for_each(|path| out::remove(doing, path))
    }

    fn empty(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            segments: Vec::new(),
            places: HashMap::new(),
            pending: Vec::new(),
            pending_records: 0,
            written: 0,
            broken: AtomicBool::new(false),
            hits: AtomicUsize::new(0),
        }
    }

    /// Takes note of where the records of a segment lie.
    fn read_segment(&mut self, path: PathBuf) {
        let Ok(file) = File::open(&path) else { return };
        let segment = self.segments.len() as u32;
        let mut reader = BufReader::with_capacity(1 << 18, &file);
        let wanted = heading();
        let mut found = vec![0; wanted.len()];
        if reader.read_exact(&mut found).is_err() || found != wanted.as_bytes() {
            return;
        }
        let mut at = wanted.len() as u64;
        let mut bytes = Vec::new();
        let mut head = [0; 4];
        while reader.read_exact(&mut head).is_ok() {
            let length = u32::from_le_bytes(head) as usize;
            bytes.resize(length.min(LONGEST), 0);
            if length > LONGEST || reader.read_exact(&mut bytes).is_err() {
                break;
            }
            // The checksum is proved when the record is used.
            if let Some(path) = bytes.get(8..).and_then(|b| postcard::take_from_bytes::<&str>(b).ok()) {
                self.places.insert(key(path.0), Place { segment, length: length as u32, at: at + 4 });
            }
            at += 4 + length as u64;
        }
        drop(reader);
        self.segments.push((path, file));
    }
}

/// The first line of a segment of this version.
fn heading() -> String {
    let (version, engine) = (env!("CARGO_PKG_VERSION"), crate::encode::jpeg_engine());
    let print = Print::VERSION;
    format!("prep facts {VERSION} print={print} prep={version} jpeg={engine}\n")
}

fn key(path: &str) -> u64 {
    let hash = blake3::hash(path.as_bytes());
    u64::from_le_bytes(*hash.as_bytes().first_chunk().unwrap_or(&[0; 8]))
}

/// Length and checksum of a record.
fn frame(record: &[u8]) -> [u8; 12] {
    let mut frame = [0; 12];
    frame[..4].copy_from_slice(&(record.len() as u32 + 8).to_le_bytes());
    frame[4..].copy_from_slice(&blake3::hash(record).as_bytes()[..8]);
    frame
}

fn append(to: &mut Vec<u8>, record: &[u8]) {
    to.extend_from_slice(&frame(record));
    to.extend_from_slice(record);
}

/// The record behind its checksum, if that is right.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (sum, record) = bytes.split_at_checked(8)?;
    (blake3::hash(record).as_bytes()[..8] == *sum).then_some(record)
}

/// The files that prep made in the folder of a cache, sorted by name.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_ours = |name: &str| {
        name == ROOT || name.ends_with(&format!(".{EXTENSION}")) || name.starts_with(out::TEMP_PREFIX)
    };
    let mut files: Vec<PathBuf> =
        entries.flatten().filter(|e| e.file_name().to_str().is_some_and(is_ours)).map(|e| e.path()).collect();
    files.sort();
    files
}

pub(super) fn info(folder: &Path) -> Info {
    let mut cache = Cache::empty(folder);
    let mut bytes = 0;
    for path in files(folder) {
        bytes += path.symlink_metadata().map_or(0, |meta| meta.len());
        if path.extension().is_some_and(|e| e == EXTENSION) {
            cache.read_segment(path);
        }
    }
    let root = fs::read_to_string(folder.join(ROOT)).unwrap_or_default().trim().to_owned();
    Info { folder: folder.to_owned(), root, bytes, images: cache.places.len() }
}

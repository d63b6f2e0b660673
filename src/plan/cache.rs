//! The sample of a set, remembered between runs under the user's cache folder; never among the user's files. What is
//! damaged, foreign or of another set is ignored.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::net::Size;
use super::sample::{Picture, Sampled};
use crate::error::{Error, Result};
use crate::out;
use crate::source::Listing;

/// Changes when a sample means something else than before.
const SCHEME: &str = "prep plan sample 2";
/// After so many seconds (30 days) a sample is taken anew: systems and machines change.
const AGE: u64 = 30 * 24 * 3600;
/// Pictures without which a sample says too little to be remembered.
const LEAST: usize = 3;
/// The largest file that is read.
const LIMIT: u64 = 1 << 20;

/// What the machine is, as far as it tells: its name, processor and system. Speeds of one are not those of another, and
/// folders of users may be shared between them.
fn machine() -> String {
    let read = |path: &str| {
        let mut text = String::new();
        let opened = std::fs::File::open(path).ok();
        let whole = opened.and_then(|file| file.take(64 << 10).read_to_string(&mut text).ok());
        whole.map(|_| text).unwrap_or_default()
    };
    let name = ["HOSTNAME", "COMPUTERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let processor = read("/proc/cpuinfo");
    let processor = processor.lines().find(|line| line.starts_with("model name")).unwrap_or_default();
    format!(
        "{}\0{}\0{processor}\0{}\0{}",
        read("/proc/sys/kernel/hostname").trim(),
        name.unwrap_or_default(),
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

/// Where the sample of `listing` for training at `size` is remembered. `options` are those of the command that decide
/// which pictures can be decoded.
pub fn place(folder: &Path, listing: &Listing, size: Size, options: &str) -> PathBuf {
    let mut hasher = blake3::Hasher::new();
    let root = listing.root.canonicalize().unwrap_or_else(|_| listing.root.clone());
    hasher.update(SCHEME.as_bytes());
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
    hasher.update(machine().as_bytes());
    hasher.update(format!("\0{options}\0").as_bytes());
    hasher.update(root.as_os_str().as_encoded_bytes());
    hasher.update(format!("\0{}x{}\0", size.0, size.1).as_bytes());
    if let Ok(time) = std::fs::metadata(&root).and_then(|m| m.modified()) {
        hasher.update(format!("{time:?}\0").as_bytes());
    }
    for entry in &listing.entries {
        hasher.update(entry.path.as_bytes());
        hasher.update(&entry.bytes.to_le_bytes());
        hasher.update(&[u8::from(entry.fault.is_some())]);
    }
    folder.join(format!("{}.json", &hasher.finalize().to_hex()[..32]))
}

/// Seconds since 1970.
fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Could such a sample have been taken? Sizes, bytes and times as pictures have them.
fn is_sane(sampled: &Sampled) -> bool {
    let side = |n: u32| (1..=1 << 24).contains(&n);
    let sane = |(w, h): (u32, u32)| side(w) && side(h) && u64::from(w) * u64::from(h) <= 1 << 40;
    let times = |seconds: f64| (1e-9..=1e5).contains(&seconds);
    let pictures = &sampled.pictures;
    let each = |p: &Picture| {
        let shrunk = p.shrunk.is_none_or(|s| sane(s.size) && times(s.seconds) && s.bytes <= 1 << 40);
        sane(p.size) && times(p.seconds) && p.bytes <= 1 << 40 && shrunk
    };
    pictures.len() <= 1000
        && sampled.largest.len() <= 1000
        && pictures.iter().all(each)
        && sampled.largest.iter().all(|s| sane(*s))
}

/// The sample that is remembered at `place`, where it is not old.
pub fn read(place: &Path) -> Option<Sampled> {
    let sampled: Sampled = serde_json::from_slice(&load(place)?).ok()?;
    let fresh = sampled.taken <= now() && now() - sampled.taken <= AGE;
    (fresh && is_sane(&sampled)).then_some(sampled)
}

/// A remembered sample, and the data set that it was taken of.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// For people, and to be removed with what else is kept of the set. Earlier versions did not say.
    #[serde(default)]
    root: String,
    #[serde(flatten)]
    sampled: Sampled,
}

/// What `prep cache` tells of one sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    path: PathBuf,
    /// The data set's folder; empty where it is not known.
    pub root: String,
    /// Pictures that were decoded.
    pub pictures: usize,
    /// Bytes on disk.
    pub bytes: u64,
}

/// The samples in `folder`, sorted by the data set's folder.
///
/// # Errors
/// [`Error::Read`] where `folder` is there and cannot be listed.
pub fn info(folder: &Path) -> Result<Vec<Info>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::read("looking into the cache", folder, e)),
    };
    let mut all: Vec<Info> = entries
        .flatten()
        .filter(|e| {
            e.file_type().is_ok_and(|kind| kind.is_file()) && is_ours(&e.file_name().to_string_lossy())
        })
        .map(|entry| {
            let path = entry.path();
            let kept = load(&path).and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
            let pictures = kept.as_ref().map_or(0, |kept| kept.sampled.pictures.len());
            let bytes = entry.metadata().map_or(0, |meta| meta.len());
            Info { path, root: kept.map(|kept| kept.root).unwrap_or_default(), pictures, bytes }
        })
        .collect();
    all.sort_by(|a, b| (&a.root, &a.path).cmp(&(&b.root, &b.path)));
    Ok(all)
}

/// Removes these samples from `folder`, and the folder where nothing is left in it.
///
/// # Errors
/// [`Error::Write`].
pub fn clear(folder: &Path, samples: &[Info]) -> Result<()> {
    samples.iter().try_for_each(|sample| out::remove("clearing the cache", &sample.path))?;
    out::remove_folder(folder);
    Ok(())
}

/// Is this how samples are called, and what a killed run leaves?
fn is_ours(name: &str) -> bool {
    let stem = name.strip_suffix(".json").unwrap_or_default();
    stem.len() == 32 && stem.bytes().all(|b| b.is_ascii_hexdigit()) || name.starts_with(out::TEMP_PREFIX)
}

fn load(place: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // Asked before opening: a pipe would wait for ever.
    std::fs::metadata(place).ok().filter(std::fs::Metadata::is_file)?;
    std::fs::File::open(place).ok()?.take(LIMIT).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Remembers a sample of a set of `images` in the folder `root`, unless it saw too few, or something failed that may
/// succeed another time. A cache that cannot be written is none.
pub fn write(place: &Path, sampled: &Sampled, images: usize, root: &Path) {
    if sampled.pictures.len() < LEAST.min(images) || sampled.passing || images == 0 {
        return;
    }
    let sampled = Sampled { taken: now(), ..sampled.clone() };
    let root = out::place::real_of_planned(root).display().to_string();
    if let Ok(text) = serde_json::to_string(&Kept { root, sampled }) {
        let _ = out::write_whole("remembering the sample", place, text.as_bytes(), false);
    }
}

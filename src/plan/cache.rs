//! The sample of a set, remembered between runs under the user's cache folder; never among the user's files. What is
//! damaged, foreign or of another set is ignored.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::net::Size;
use super::sample::Sampled;
use crate::out;
use crate::source::Listing;

/// Changes when a sample means something else than before.
const SCHEME: &str = "prep plan sample 1";
/// The largest file that is read.
const LIMIT: u64 = 1 << 20;

/// Where the sample of `listing` for training at `size` is remembered.
pub fn place(folder: &Path, listing: &Listing, size: Size) -> PathBuf {
    let mut hasher = blake3::Hasher::new();
    let root = listing.root.canonicalize().unwrap_or_else(|_| listing.root.clone());
    hasher.update(SCHEME.as_bytes());
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
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
    folder.join("prep").join("plan").join(format!("{}.json", &hasher.finalize().to_hex()[..32]))
}

/// The sample that is remembered at `place`.
pub fn read(place: &Path) -> Option<Sampled> {
    let mut bytes = Vec::new();
    std::fs::File::open(place).ok()?.take(LIMIT).read_to_end(&mut bytes).ok()?;
    let sampled: Sampled = serde_json::from_slice(&bytes).ok()?;
    let sane = |(w, h): (u32, u32)| w > 0 && h > 0;
    let times = |p: &super::sample::Picture| {
        p.seconds > 0.0 && p.shrunk.is_none_or(|s| s.seconds > 0.0 && sane(s.size))
    };
    (sampled.pictures.iter().all(|p| sane(p.size) && times(p)) && sampled.largest.iter().all(|s| sane(*s)))
        .then_some(sampled)
}

/// Remembers a sample. A cache that cannot be written is none.
pub fn write(place: &Path, sampled: &Sampled) {
    if let Ok(text) = serde_json::to_string(sampled) {
        let _ = out::write_whole("remembering the sample", place, text.as_bytes(), false);
    }
}

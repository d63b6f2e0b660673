//! The flight recorder: which files are in hand, readable by another process after this one died.
//!
//! A file of fixed slots, one a worker, written with one `pwrite` when an item is taken and one when it is done. The
//! page cache survives the death of the process, so no shared memory and no unsafe code is needed. Beside it lies the
//! list of verdicts that the supervisor has reached about earlier processes.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault::{Cause, Fault};

/// Bytes a slot: a sequence number (0 = nothing in hand) and the key's hash.
const SLOT: usize = 24;
/// Workers beyond this many are not recorded.
pub const SLOTS: usize = 1024;
/// The file of slots in the recorder's folder.
pub const SLOTS_FILE: &str = "slots";
/// The file of verdicts in the recorder's folder.
pub const VERDICTS_FILE: &str = "verdicts";

/// A key as the recorder knows it.
pub type KeyHash = [u8; 16];

/// The hash of an item's stable name.
pub fn hash(key: &str) -> KeyHash {
    let mut short = [0; 16];
    short.copy_from_slice(&blake3::hash(key.as_bytes()).as_bytes()[..16]);
    short
}

/// What the supervisor has concluded about an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// In hand when a process died: to be tried alone.
    Suspect,
    /// The process died with it alone in hand.
    Crash,
    /// Took longer than allowed.
    Timeout,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Suspect => "suspect",
            Self::Crash => "crash",
            Self::Timeout => "timeout",
        }
    }
}

/// The recorder as the working process sees it.
#[derive(Debug)]
pub struct Flight {
    slots: File,
    sequence: AtomicU64,
    suspects: HashSet<KeyHash>,
    condemned: HashMap<KeyHash, Verdict>,
}

/// An item in hand; dropping it records that it is done.
#[derive(Debug)]
pub struct Held<'f> {
    flight: &'f Flight,
    worker: usize,
    key: KeyHash,
}

impl Held<'_> {
    /// Does `wait` (for memory) without having the item in hand: it can neither crash nor be late meanwhile.
    pub fn aside<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.flight.write(self.worker, &[0; SLOT]);
        let waited = wait();
        self.flight.record(self.worker, &self.key);
        waited
    }
}

impl Flight {
    /// Opens the recorder in `folder`, which the supervisor made.
    ///
    /// # Errors
    /// What the system says.
    #[allow(clippy::disallowed_methods, reason = "the recorder is no output of the user's")]
    pub fn open(folder: &Path) -> io::Result<Self> {
        let slots = fs::OpenOptions::new().read(true).write(true).open(folder.join(SLOTS_FILE))?;
        let (mut suspects, mut condemned) = (HashSet::new(), HashMap::new());
        for (key, verdict) in read_verdicts(folder)? {
            if verdict == Verdict::Suspect {
                suspects.insert(key);
            } else {
                condemned.insert(key, verdict);
            }
        }
        Ok(Self { slots, sequence: AtomicU64::new(1), suspects, condemned })
    }

    /// Is anything known of earlier processes?
    pub fn has_verdicts(&self) -> bool {
        !(self.suspects.is_empty() && self.condemned.is_empty())
    }

    /// The fault of an item that killed a process or took too long.
    pub fn condemned(&self, key: &str) -> Option<Fault> {
        match self.condemned.get(&hash(key))? {
            Verdict::Timeout => Some(Fault::new(Cause::Timeout, "took longer than --max-seconds")),
            _ => Some(Fault::new(
                Cause::Crash,
                "the decoder crashed on this file, twice, the second time alone",
            )),
        }
    }

    /// Was the item in hand when a process died?
    pub fn is_suspect(&self, key: &str) -> bool {
        self.suspects.contains(&hash(key))
    }

    /// Records that `worker` has `key` in hand until the result is dropped.
    pub fn hold(&self, worker: usize, key: &str) -> Held<'_> {
        let key = hash(key);
        self.record(worker, &key);
        Held { flight: self, worker, key }
    }

    fn record(&self, worker: usize, key: &KeyHash) {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let mut slot = [0; SLOT];
        slot[..8].copy_from_slice(&sequence.to_le_bytes());
        slot[8..].copy_from_slice(key);
        self.write(worker, &slot);
    }

    fn write(&self, worker: usize, slot: &[u8; SLOT]) {
        if worker < SLOTS {
            // A recorder that cannot be written loses only the name of a culprit.
            let _ = self.slots.write_all_at(slot, (worker * SLOT) as u64);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.flight.write(self.worker, &[0; SLOT]);
    }
}

/// Makes an empty recorder in `folder`.
///
/// # Errors
/// What the system says.
#[allow(clippy::disallowed_methods, reason = "the recorder is no output of the user's")]
pub fn prepare(folder: &Path) -> io::Result<File> {
    fs::write(folder.join(VERDICTS_FILE), "")?;
    let path = folder.join(SLOTS_FILE);
    fs::write(&path, vec![0; SLOT * SLOTS])?;
    fs::OpenOptions::new().read(true).write(true).open(path)
}

/// What is in hand now: (sequence number, key) a busy slot.
///
/// # Errors
/// What the system says.
pub fn in_hand(slots: &File) -> io::Result<Vec<(u64, KeyHash)>> {
    let mut bytes = vec![0; SLOT * SLOTS];
    slots.read_exact_at(&mut bytes, 0)?;
    Ok(bytes
        .chunks_exact(SLOT)
        .filter_map(|slot| {
            let (sequence, key) = slot.split_at(8);
            let sequence = u64::from_le_bytes(sequence.try_into().ok()?);
            (sequence != 0).then_some((sequence, key.try_into().ok()?))
        })
        .collect())
}

/// Empties all slots, before the next process starts.
///
/// # Errors
/// What the system says.
pub fn clear(slots: &File) -> io::Result<()> {
    slots.write_all_at(&vec![0; SLOT * SLOTS], 0)
}

/// Writes the supervisor's verdicts for the next process.
///
/// # Errors
/// What the system says.
#[allow(clippy::disallowed_methods, reason = "the recorder is no output of the user's")]
pub fn write_verdicts(folder: &Path, verdicts: &[(KeyHash, Verdict)]) -> io::Result<()> {
    let text: String = verdicts
        .iter()
        .map(|(key, verdict)| format!("{} {}\n", verdict.word(), u128::from_be_bytes(*key)))
        .collect();
    fs::write(folder.join(VERDICTS_FILE), text)
}

fn read_verdicts(folder: &Path) -> io::Result<Vec<(KeyHash, Verdict)>> {
    let text = fs::read_to_string(folder.join(VERDICTS_FILE))?;
    Ok(text
        .lines()
        .filter_map(|line| {
            let (word, key) = line.split_once(' ')?;
            let verdict = [Verdict::Suspect, Verdict::Crash, Verdict::Timeout]
                .into_iter()
                .find(|v| v.word() == word)?;
            Some((key.parse::<u128>().ok()?.to_be_bytes(), verdict))
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_hand_can_be_read_from_outside() {
        let dir = tempfile::tempdir().unwrap();
        let slots = prepare(dir.path()).unwrap();
        write_verdicts(dir.path(), &[(hash("bad"), Verdict::Crash), (hash("maybe"), Verdict::Suspect)])
            .unwrap();
        let flight = Flight::open(dir.path()).unwrap();
        assert!(flight.condemned("bad").is_some() && flight.condemned("good").is_none());
        assert!(flight.is_suspect("maybe"));
        let held = flight.hold(3, "a.jpg");
        let other = flight.hold(0, "b.jpg");
        assert_eq!(
            in_hand(&slots).unwrap().iter().map(|h| h.1).collect::<Vec<_>>(),
            [hash("b.jpg"), hash("a.jpg")]
        );
        drop(held);
        assert_eq!(in_hand(&slots).unwrap().len(), 1);
        drop(other);
        assert_eq!(in_hand(&slots).unwrap().len(), 0);
    }
}

//! The way of one image, on one worker: read whole, hash, look at the header, take memory, decode.

use std::path::Path;

use super::budget::{Budget, Taken};
use super::crew::Item;
use crate::decode::{self, Codec, Contract, Decoded, Header, Limits, Opened};
use crate::entry::Entry;
use crate::fault::{Cause, Fault, Note, Oddity};
use crate::pixels::Scale;
use crate::source;

/// What every image of a run goes through.
#[derive(Debug)]
pub struct Pipe {
    /// Memory for what is in hand.
    pub budget: Budget,
    /// What is refused by its header.
    pub limits: Limits,
    /// What a picture is turned into.
    pub contract: Contract,
    /// What becomes of damaged pictures.
    pub damage: Damage,
    /// Workers that share the budget.
    pub threads: usize,
}

/// What becomes of a picture with missing or wrong pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// It is refused.
    Refuse,
    /// It is taken as it is, with a note.
    Salvage,
    /// It is taken as it is, and the job finds the fault in [`Decoded::damage`].
    Tell,
}

/// What a worker keeps from image to image.
#[derive(Default)]
pub struct Scratch {
    /// Decoders and their buffers.
    pub codec: Codec,
    file: Vec<u8>,
}

/// A file that was read and whose header is known.
pub struct Read<'a> {
    /// The file as it is on disk.
    pub bytes: &'a [u8],
    /// blake3 of the bytes.
    pub hash: blake3::Hash,
    opened: Opened<'a>,
}

/// Decoded pixels and the memory that they were promised; it is given back when this is dropped.
pub struct Pixels<'p> {
    /// The picture, to be finished by [`crate::normal`].
    pub decoded: Decoded,
    _memory: Taken<'p>,
}

impl Read<'_> {
    /// What the header tells.
    pub fn header(&self) -> &Header {
        self.opened.header()
    }

    /// What was odd about the file before its pixels were decoded.
    pub fn notes(&self) -> &[Note] {
        self.opened.notes()
    }

    /// See [`Opened::needs_profile`].
    pub fn needs_profile(&self, codec: &mut Codec) -> bool {
        self.opened.needs_profile(codec)
    }

    /// See [`Opened::stripped`].
    pub fn stripped(&self) -> Option<Vec<u8>> {
        self.opened.stripped()
    }

    /// See [`Opened::scale_for`].
    pub fn scale_for(&self, part: (u32, u32), to: (u32, u32), gap: f64) -> Scale {
        self.opened.scale_for(part, to, gap)
    }
}

impl Pipe {
    /// Reads `entry` and gives it to `then` with the worker's decoders, or says why it cannot be used.
    ///
    /// # Errors
    /// The entry's own fault, one of reading, one of the header, or what `then` says.
    pub fn read<R>(
        &self,
        entry: &Entry,
        item: &Item<'_>,
        scratch: &mut Scratch,
        then: impl FnOnce(&Read<'_>, &mut Codec) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        if let Some(fault) = &entry.fault {
            return Err(fault.clone());
        }
        #[cfg(debug_assertions)]
        rehearse(entry);
        let _memory = self.take_file(entry.bytes, item)?;
        let Scratch { codec, file } = scratch;
        file.clear();
        source::read_file(entry, file)?;
        let result = (|| {
            let hash = blake3::hash(file);
            let opened = decode::open(file, Path::new(&entry.file), &self.limits)?;
            then(&Read { bytes: file, hash, opened }, codec)
        })();
        // A buffer that one huge file made is not carried along by every worker.
        if file.capacity() as u64 > self.budget.files.total() / self.threads.max(1) as u64 {
            *file = Vec::new();
        }
        result
    }

    fn take_file(&self, bytes: u64, item: &Item<'_>) -> Result<Taken<'_>, Fault> {
        item.aside(|| self.budget.files.take(bytes)).ok_or_else(|| {
            Fault::new(
                Cause::TooLargeForMemory,
                format!("a file of {} MB; raise --memory", bytes.div_ceil(1_000_000)),
            )
        })
    }

    /// Decodes at `scale`, after taking the memory for it and for `extra` bytes of the job's own.
    ///
    /// # Errors
    /// What the decoder says, damage (unless salvaging), or a picture larger than the budget.
    pub fn pixels(
        &self,
        read: &Read<'_>,
        scale: Scale,
        extra: u64,
        item: &Item<'_>,
        codec: &mut Codec,
    ) -> Result<Pixels<'_>, Fault> {
        let need = read.opened.need_bytes(scale).saturating_add(extra);
        let memory = item.aside(|| self.budget.pixels.take(need)).ok_or_else(|| {
            let header = read.header();
            Fault::new(
                Cause::TooLargeForMemory,
                format!(
                    "{}x{} pixels need {} MB of the {} MB that pictures may use; raise --memory",
                    header.width,
                    header.height,
                    need.div_ceil(1_000_000),
                    self.budget.pixels.total() / 1_000_000,
                ),
            )
        })?;
        let mut decoded = read.opened.pixels(scale, &self.contract, codec)?;
        if let Some(fault) = decoded.damage.take() {
            match self.damage {
                Damage::Refuse => return Err(fault),
                Damage::Salvage => decoded.notes.push(Note::new(Oddity::Salvaged, &fault)),
                Damage::Tell => decoded.damage = Some(fault),
            }
        }
        Ok(Pixels { decoded, _memory: memory })
    }
}

/// Lets the tests see what happens when a decoder goes wrong: in debug builds certain names panic, abort or hang.
#[cfg(debug_assertions)]
fn rehearse(entry: &Entry) {
    if std::env::var_os("PREP_REHEARSE").is_none() {
        return;
    }
    assert!(!entry.path.contains("rehearse-panic"), "rehearsed panic");
    if entry.path.contains("rehearse-abort") {
        std::process::abort();
    }
    while entry.path.contains("rehearse-hang") {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

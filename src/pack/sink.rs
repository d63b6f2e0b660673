//! The end of the pipe: results in order become shards, one at a time, and lines of the journal.

use super::resume::{Line, Run, Stretch, Sums, digest};
use super::shelf::{Kept, Memory, Shelf, Texts};
use super::{Done, Handed, Packer, one};
use crate::error::{Error, Result};
use crate::out::journal::Journal;

/// Bytes of shards for which the disk is waited once.
const BATCH: u64 = 256 << 20;

/// The shard that is being filled.
struct Current<'a> {
    shelf: Shelf<'a>,
    run: Run,
    number: usize,
    from: usize,
    left: Vec<(u32, String)>,
    stamps: Vec<[u64; 3]>,
    sums: Sums,
}

/// Takes what the workers made, in order.
pub struct Sink<'a, 'j> {
    packer: &'a Packer<'a>,
    texts: Texts<'a>,
    current: Option<Current<'a>>,
    done: Done,
    journal: &'j mut Journal,
    unclaimed: u64,
    /// Of the last shard, for the next.
    memory: Memory,
}

impl<'a, 'j> Sink<'a, 'j> {
    /// Begins with what is `done` already.
    pub fn new(packer: &'a Packer<'a>, texts: Texts<'a>, done: Done, journal: &'j mut Journal) -> Self {
        Self { packer, texts, current: None, done, journal, unclaimed: 0, memory: Memory::new() }
    }

    /// Takes the row at place `at` of its part.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn take(&mut self, run: Run, at: usize, handed: Handed) -> Result<()> {
        if self.current.as_ref().is_some_and(|current| current.run != run) {
            self.flush(None)?;
        }
        let row = self.packer.parts[run.part].rows[at];
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.begin(run, run.number, run.from)?,
        };
        match handed.made {
            Err(fault) => {
                current.left.push((row, fault.to_string()));
                self.done.left.insert(row, fault);
            }
            Ok(packed) => {
                let mut kept = Kept { row: self.packer.row(row, current.number, &packed), hash: packed.hash };
                if run.one.is_none() && current.shelf.is_full_for(&kept) {
                    let number = current.number + 1;
                    self.current = Some(current);
                    self.flush(Some(at))?;
                    current = self.begin(run, number, at)?;
                    kept.row.shard = number as u32;
                }
                current.sums.add(packed.sums.as_ref());
                current.shelf.put(kept, &packed)?;
            }
        }
        current.stamps.push(handed.stamp);
        self.current = Some(current);
        Ok(())
    }

    /// Finishes the last shard.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn end(mut self) -> Result<Done> {
        self.flush(None)?;
        Ok(self.done)
    }

    fn begin(&mut self, run: Run, number: usize, from: usize) -> Result<Current<'a>> {
        let form = self.packer.options.form;
        let folder = &self.packer.parts[run.part].folder;
        let path = self.packer.folder.join(folder).join(form.shard_name(folder, number));
        let memory = std::mem::take(&mut self.memory);
        let shelf = Shelf::new(form, self.texts, &path, run.to - from, memory)?;
        let (left, stamps) = (Vec::new(), Vec::new());
        Ok(Current { shelf, run, number, from, left, stamps, sums: Sums::default() })
    }

    /// Writes the current shard, whose rows end at `to` or where its run ends.
    fn flush(&mut self, to: Option<usize>) -> Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let Current { shelf, run, number, from, left, stamps, sums } = current;
        if shelf.is_empty() && run.one.is_none() {
            return Ok(());
        }
        let part = &self.packer.parts[run.part];
        let shards = &mut self.done.shards[run.part];
        let first = shards.range(..number).map(|(_, (shard, _, _))| shard.rows).sum();
        let (shard, kept, memory) = shelf.finish(&part.name, first)?;
        self.memory = memory;
        if run.one.is_some_and(|samples| samples != kept.len()) {
            let why = "a source changed while its shard was made anew; --force makes all anew";
            return Err(Error::Outputs(why.into()));
        }
        let to = to.unwrap_or(run.to);
        let next = part.rows.get(to).map(|row| one::stamp(&self.packer.entry(*row).file));
        let said = digest(self.packer.input, &part.rows[from..part.rows.len().min(to + 1)]);
        let stretch = Stretch { part, number, from, to, left, stamps, said, next, sums };
        let line = Line::new(stretch, &shard, &kept);
        self.unclaimed += shard.sum.bytes;
        shards.insert(number, (shard, kept, sums));
        self.journal.claim(line.to_text())?;
        if self.unclaimed >= BATCH {
            self.journal.settle()?;
            self.unclaimed = 0;
        }
        Ok(())
    }
}

//! The prints of a survey: in memory for some ten thousand images, in a nameless file for more, so that a million of
//! them cost little memory.

use std::borrow::Cow;

use crate::error::Result;
use crate::facts::Facts;
use crate::measure::Print;
use crate::near::Prints;
use crate::out::Spool;

/// Images whose prints are held in memory: 90 MB.
const IN_MEMORY: usize = 50_000;

/// Prints by place.
#[derive(Debug)]
pub struct Kept {
    memory: Vec<Option<Print>>,
    /// Where there are too many: one place of [`Print::BYTES`] for each, and which are filled.
    file: Option<(Spool, Vec<bool>)>,
}

impl Kept {
    /// Room for the prints of `count` images.
    ///
    /// # Errors
    /// [`crate::error::Error::Write`] where no temporary file can be made.
    pub fn new(count: usize) -> Result<Self> {
        if count <= IN_MEMORY {
            return Ok(Self { memory: vec![None; count], file: None });
        }
        let spool = Spool::create("keeping prints")?;
        Ok(Self { memory: Vec::new(), file: Some((spool, vec![false; count])) })
    }

    /// Takes the print out of the facts of image `at`.
    pub(super) fn take_from(&mut self, at: usize, facts: &mut Facts) -> Result<()> {
        let Some(print) = facts.seen.as_mut().and_then(|seen| seen.print.take()) else { return Ok(()) };
        match &mut self.file {
            None => self.memory[at] = Some(*print),
            Some((spool, filled)) => {
                spool.write_at(&print.to_bytes(), (at * Print::BYTES) as u64)?;
                filled[at] = true;
            }
        }
        Ok(())
    }
}

impl Prints for Kept {
    fn count(&self) -> usize {
        self.file.as_ref().map_or(self.memory.len(), |(_, filled)| filled.len())
    }

    fn print(&self, at: usize) -> Option<Cow<'_, Print>> {
        let Some((spool, filled)) = &self.file else { return self.memory[at].as_ref().map(Cow::Borrowed) };
        if !filled[at] {
            return None;
        }
        let mut bytes = vec![0; Print::BYTES];
        spool.read_at(&mut bytes, (at * Print::BYTES) as u64).ok()?;
        Print::from_bytes(&bytes).map(Cow::Owned)
    }
}

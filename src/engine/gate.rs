//! Results that wait for the sink, bounded by their bytes. The crew bounds their number; pictures as results can be
//! large. A worker asks before it makes a result, and holds nothing while it waits; whoever is next in the sink's order
//! always passes, so nobody waits for ever.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A bound for the bytes of results between the workers and the sink.
#[derive(Debug)]
pub struct Gate {
    most: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// What each item has been let in with.
    inside: HashMap<usize, u64>,
    held: u64,
    /// The item that the sink waits for.
    next: usize,
    closed: bool,
}

impl State {
    fn lets_in(&mut self, most: u64, index: usize, bytes: u64) -> bool {
        let free = self.closed || index <= self.next || self.held + bytes <= most;
        if free {
            self.held += bytes;
            *self.inside.entry(index).or_default() += bytes;
        }
        free
    }
}

impl Gate {
    /// A bound of `most` bytes; a single result may be larger.
    pub fn new(most: u64) -> Self {
        Self { most, state: Mutex::new(State::default()), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is there room now for the result of item `index`, of `bytes` bytes? Then it is let in.
    pub fn try_enter(&self, index: usize, bytes: u64) -> bool {
        self.lock().lets_in(self.most, index, bytes)
    }

    /// Waits until there is room, holding nothing that another worker could wait for.
    pub fn enter(&self, index: usize, bytes: u64) {
        let mut state = self.lock();
        while !state.lets_in(self.most, index, bytes) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The sink has the result of item `index`, whatever it became.
    pub fn delivered(&self, index: usize) {
        let mut state = self.lock();
        let bytes = state.inside.remove(&index).unwrap_or(0);
        state.held -= bytes;
        state.next = index + 1;
        drop(state);
        self.changed.notify_all();
    }

    /// The sink takes nothing more: nobody need wait.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cancel::Cancel;
    use crate::engine::crew::Crew;
    use crate::error::{Error, Result};
    use std::sync::atomic::{AtomicU64, Ordering};

    fn run(most: u64, fail_at: usize) -> (Result<()>, u64) {
        let (gate, out, peak) = (Gate::new(most), AtomicU64::new(0), AtomicU64::new(0));
        let cancel = Cancel::default();
        let names: Vec<String> = (0..400).map(|i| i.to_string()).collect();
        let keys: Vec<&str> = names.iter().map(String::as_str).collect();
        let outcome = Crew { threads: 8, cancel: &cancel, flight: None }.run(
            &keys,
            || (),
            |(), item| {
                let bytes = 1 + (item.index as u64 * 37) % 50;
                if !gate.try_enter(item.index, bytes) {
                    gate.enter(item.index, bytes);
                }
                let now = out.fetch_add(bytes, Ordering::SeqCst) + bytes;
                peak.fetch_max(now, Ordering::SeqCst);
                bytes
            },
            |_, _| 0,
            |index, bytes| {
                out.fetch_sub(bytes, Ordering::SeqCst);
                gate.delivered(index);
                if index == fail_at {
                    gate.close();
                    return Err(Error::Usage("full".into()));
                }
                Ok(())
            },
        );
        (outcome, peak.into_inner())
    }

    #[test]
    fn the_bytes_that_wait_stay_bounded_and_a_failing_sink_frees_the_workers() {
        let (outcome, peak) = run(100, usize::MAX);
        assert!(outcome.is_ok());
        // One result of 50 may pass beside the bound for each worker that was next.
        assert!(peak > 50 && peak <= 100 + 8 * 50, "{peak}");
        assert!(run(1, 40).0.is_err());
        assert!(run(1, usize::MAX).0.is_ok());
    }
}

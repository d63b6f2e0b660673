//! Loops over what is in memory already: workers take block after block, results come back in the order of the blocks.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::cancel::Cancel;
use crate::error::{Error, Result};

/// Runs `work` on the blocks 0 to `blocks` with so many threads; `done` is told on the calling thread how many are.
///
/// # Errors
/// [`Error::Interrupted`] when cancelled, [`Error::Internal`] when `work` panics.
pub fn run<R: Send>(
    threads: usize,
    cancel: &Cancel,
    blocks: usize,
    work: impl Fn(usize) -> R + Sync,
    mut done: impl FnMut(usize),
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let mut results: Vec<Option<R>> = (0..blocks).map(|_| None).collect();
    #[allow(clippy::disallowed_methods, reason = "this is the engine")]
    std::thread::scope(|scope| {
        // A worker waits for the caller rather than pile up results.
        let (send, receive) = mpsc::sync_channel(threads * 2);
        let (next, work) = (&next, &work);
        for _ in 0..threads.clamp(1, blocks.max(1)) {
            let send = send.clone();
            scope.spawn(move || {
                loop {
                    let block = next.fetch_add(1, Ordering::Relaxed);
                    if block >= blocks || cancel.is_set() {
                        return;
                    }
                    let result = panic::catch_unwind(AssertUnwindSafe(|| work(block)));
                    let failed = result.is_err();
                    if send.send((block, result)).is_err() || failed {
                        return;
                    }
                }
            });
        }
        drop(send);
        let mut finished = 0;
        for (block, result) in receive {
            let result = result.map_err(|_| Error::Internal("a search in memory failed".into()))?;
            results[block] = Some(result);
            finished += 1;
            done(finished);
        }
        Ok(())
    })?;
    results.into_iter().collect::<Option<Vec<R>>>().ok_or(Error::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_blocks() {
        let mut told = Vec::new();
        let squares = run(3, &Cancel::default(), 100, |block| block * block, |done| told.push(done)).unwrap();
        assert_eq!(squares, (0..100).map(|block| block * block).collect::<Vec<_>>());
        assert_eq!(told, (1..=100).collect::<Vec<_>>());
    }

    #[test]
    fn a_cancelled_loop_ends_as_interrupted() {
        let cancel = Cancel::default();
        let outcome = run(2, &cancel, 1_000, |_| cancel.set(), |_| ());
        assert!(matches!(outcome, Err(Error::Interrupted)));
    }
}

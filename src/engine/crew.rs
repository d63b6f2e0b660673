//! Workers with a window: each takes the next item, does the whole way of it, and hands the result to one sink on the
//! calling thread, in item order. At most a window of results waits, so memory does not grow with the number of items.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};

use super::cancel::Cancel;
use super::flight::{Flight, Held};
use crate::error::{Error, Result};
use crate::fault::{Cause, Fault};

/// How a run is carried out.
#[derive(Debug)]
pub struct Crew<'a> {
    /// Workers, at least 1.
    pub threads: usize,
    /// The flag that ends the run early.
    pub cancel: &'a Cancel,
    /// The record of what is in hand, where a supervisor reads it.
    pub flight: Option<&'a Flight>,
}

/// An item that a worker holds.
#[derive(Debug)]
pub struct Item<'f> {
    /// Its place in the keys of the run.
    pub index: usize,
    /// Its entry in the flight record, where one is kept.
    pub held: Option<Held<'f>>,
}

impl Item<'_> {
    /// Does `wait` (for memory) without having the item in hand; see [`Held::aside`].
    pub fn aside<T>(&self, wait: impl FnOnce() -> T) -> T {
        match &self.held {
            Some(held) => held.aside(wait),
            None => wait(),
        }
    }
}

/// Items that may be in hand or waiting for the sink: enough that a sink that waits for the disk does not stop the
/// workers at once, few enough that results stay a matter of kilobytes to some megabytes.
fn window(threads: usize) -> usize {
    64 + threads * 4
}

/// What the workers share.
struct Shared<R> {
    state: Mutex<State<R>>,
    changed: Condvar,
}

struct State<R> {
    /// The next item to be taken, as a place in the order of work.
    next: usize,
    /// Items whose results the sink has.
    delivered: usize,
    /// Results that wait, by place.
    ready: HashMap<usize, R>,
    /// No new item is to be taken.
    stopping: bool,
    /// Items in hand.
    in_hand: usize,
}

impl<R> Shared<R> {
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, guard: MutexGuard<'a, State<R>>) -> MutexGuard<'a, State<R>> {
        self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Crew<'_> {
    /// Runs `work` over `keys` (the stable name of each item, for the flight record) and gives each result to `sink`
    /// in the order of `keys`. `scratch` makes what a worker keeps from item to item; it is made anew after a panic.
    ///
    /// A panic in `work` becomes `failed(item, fault)`, as does an item that the supervisor has condemned.
    ///
    /// # Errors
    /// The sink's error, or [`Error::Interrupted`] when cancelled: then the sink got the results of a prefix.
    pub fn run<S, R: Send>(
        &self,
        keys: &[&str],
        scratch: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, &Item<'_>) -> R + Sync,
        failed: impl Fn(usize, Fault) -> R + Sync,
        mut sink: impl FnMut(usize, R) -> Result<()>,
    ) -> Result<()> {
        catch_quietly();
        let verdicts = Verdicts::of(self.flight, keys);
        // One item of work, whatever happens in it.
        let one = |scratch_of: &mut Option<S>, worker: usize, index: usize| -> R {
            if let Some(fault) = verdicts.condemned.get(&index) {
                return failed(index, fault.clone());
            }
            let item = Item { index, held: self.flight.map(|f| f.hold(worker, keys[index])) };
            let kept = scratch_of.get_or_insert_with(&scratch);
            match panic::catch_unwind(AssertUnwindSafe(|| work(kept, &item))) {
                Ok(result) => result,
                Err(payload) => {
                    // What a panic left half done is not used again.
                    *scratch_of = None;
                    failed(index, Fault::new(Cause::Panic, panic_text(payload.as_ref())))
                }
            }
        };

        // Files that were in hand when a process died are tried one at a time, before the crew starts.
        let mut early: HashMap<usize, R> = HashMap::new();
        let mut scratch_of = None;
        for index in verdicts.suspects.iter().copied() {
            if self.cancel.is_set() {
                return Err(Error::Interrupted);
            }
            IS_WORKER.set(true);
            early.insert(index, one(&mut scratch_of, 0, index));
            IS_WORKER.set(false);
        }
        drop(scratch_of);

        let shared = Shared {
            state: Mutex::new(State { next: 0, delivered: 0, ready: early, stopping: false, in_hand: 0 }),
            changed: Condvar::new(),
        };
        let threads = self.threads.clamp(1, keys.len().max(1));
        #[allow(clippy::disallowed_methods, reason = "this is the engine")]
        std::thread::scope(|scope| {
            for worker in 0..threads {
                let (shared, one) = (&shared, &one);
                let body = move || {
                    IS_WORKER.set(true);
                    self.worker(worker, window(threads), keys.len(), shared, one);
                };
                if let Err(e) =
                    std::thread::Builder::new().name(format!("worker-{worker}")).spawn_scoped(scope, body)
                {
                    if worker == 0 {
                        shared.lock().stopping = true;
                        return Err(Error::Internal(format!("no thread can be started: {e}")));
                    }
                    break; // Fewer threads than asked for do the same work.
                }
            }
            let outcome = self.deliver(keys.len(), &shared, &mut sink);
            shared.lock().stopping = true;
            shared.changed.notify_all();
            outcome
        })
    }

    fn worker<S, R>(
        &self,
        worker: usize,
        window: usize,
        items: usize,
        shared: &Shared<R>,
        one: &impl Fn(&mut Option<S>, usize, usize) -> R,
    ) {
        let mut scratch = None;
        loop {
            let index = {
                let mut state = shared.lock();
                loop {
                    if state.stopping || state.next >= items || self.cancel.is_set() {
                        state.stopping = true;
                        drop(state);
                        shared.changed.notify_all();
                        return;
                    }
                    if state.next < state.delivered + window {
                        break;
                    }
                    state = shared.wait(state);
                }
                let index = state.next;
                state.next += 1;
                if state.ready.contains_key(&index) {
                    continue;
                }
                state.in_hand += 1;
                index
            };
            let result = one(&mut scratch, worker, index);
            let mut state = shared.lock();
            state.in_hand -= 1;
            state.ready.insert(index, result);
            drop(state);
            shared.changed.notify_all();
        }
    }

    fn deliver<R>(
        &self,
        items: usize,
        shared: &Shared<R>,
        sink: &mut impl FnMut(usize, R) -> Result<()>,
    ) -> Result<()> {
        for index in 0..items {
            let result = {
                let mut state = shared.lock();
                loop {
                    if let Some(result) = state.ready.remove(&index) {
                        break result;
                    }
                    // Nothing more will come: the run was cancelled before this item was taken.
                    if state.stopping && state.next <= index {
                        return Err(Error::Interrupted);
                    }
                    state = shared.wait(state);
                }
            };
            sink(index, result)?;
            shared.lock().delivered = index + 1;
            shared.changed.notify_all();
        }
        Ok(())
    }
}

/// What the supervisor knows of earlier processes, by place in `keys`.
#[derive(Default)]
struct Verdicts {
    condemned: HashMap<usize, Fault>,
    suspects: Vec<usize>,
}

impl Verdicts {
    fn of(flight: Option<&Flight>, keys: &[&str]) -> Self {
        let mut verdicts = Self::default();
        let Some(flight) = flight.filter(|f| f.has_verdicts()) else { return verdicts };
        for (index, key) in keys.iter().enumerate() {
            if let Some(fault) = flight.condemned(key) {
                verdicts.condemned.insert(index, fault);
            } else if flight.is_suspect(key) {
                verdicts.suspects.push(index);
            }
        }
        verdicts
    }
}

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
    static PANIC_PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Workers' panics are caught and become rows, so they print nothing; all others print as ever.
fn catch_quietly() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if IS_WORKER.get() {
                let place =
                    info.location().map(|l| format!(" at {}:{}", l.file(), l.line())).unwrap_or_default();
                PANIC_PLACE.set(place);
            } else {
                usual(info);
            }
        }));
    });
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "the decoder gave up".into());
    // Only the file's name: paths of the machine that built prep are nobody's business.
    let place = PANIC_PLACE.take();
    let place = place.rsplit_once('/').map_or(place.as_str(), |(_, name)| name);
    if place.is_empty() { text } else { format!("{text} ({})", place.trim_start_matches(" at ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn keys(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("k{i}")).collect()
    }

    fn refs(keys: &[String]) -> Vec<&str> {
        keys.iter().map(String::as_str).collect()
    }

    #[test]
    fn results_come_in_order_within_the_window() {
        let cancel = Cancel::default();
        let names = keys(500);
        for threads in [1, 2, 8] {
            let crew = Crew { threads, cancel: &cancel, flight: None };
            let (done, seen) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let mut got = Vec::new();
            crew.run(
                &refs(&names),
                || (),
                |(), item| {
                    assert!(item.index < seen.load(Ordering::SeqCst) + window(threads) + 1);
                    done.fetch_add(1, Ordering::SeqCst);
                    item.index * 2
                },
                |_, _| unreachable!(),
                |index, result| {
                    seen.store(index + 1, Ordering::SeqCst);
                    got.push(result);
                    Ok(())
                },
            )
            .unwrap();
            assert_eq!(got, (0..500).map(|i| i * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_panic_becomes_a_row_and_the_others_go_on() {
        let cancel = Cancel::default();
        let names = keys(50);
        let crew = Crew { threads: 3, cancel: &cancel, flight: None };
        let mut faults = Vec::new();
        crew.run(
            &refs(&names),
            || 0_u32,
            |_, item| {
                assert!(item.index % 10 != 3, "boom {}", item.index);
                None
            },
            |_, fault| Some(fault),
            |index, fault| {
                faults.extend(fault.map(|f| (index, f)));
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(faults.iter().map(|(i, _)| *i).collect::<Vec<_>>(), [3, 13, 23, 33, 43]);
        assert!(faults[0].1.detail.contains("boom 3"), "{}", faults[0].1);
    }

    #[test]
    fn a_cancelled_run_delivers_a_prefix_and_a_failing_sink_ends_it() {
        let names = keys(1000);
        let cancel = Cancel::default();
        let crew = Crew { threads: 4, cancel: &cancel, flight: None };
        let mut got = 0;
        let outcome = crew.run(
            &refs(&names),
            || (),
            |(), item| {
                if item.index == 100 {
                    cancel.set();
                }
                item.index
            },
            |_, _| unreachable!(),
            |index, result| {
                assert_eq!(index, result);
                got += 1;
                Ok(())
            },
        );
        assert!(matches!(outcome, Err(Error::Interrupted)));
        assert!((101..200).contains(&got), "{got}");

        let cancel = Cancel::default();
        let crew = Crew { threads: 4, cancel: &cancel, flight: None };
        let outcome =
            crew.run(&refs(&names), || (), |(), _| (), |_, _| (), |_, ()| Err(Error::Usage("full".into())));
        assert!(matches!(outcome, Err(Error::Usage(_))));
    }
}

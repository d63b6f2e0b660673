//! Memory taken before it is allocated, by what the header says. A worker that wants more than is free waits its
//! turn; one that wants more than there will ever be is told so.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A pool of bytes. First come, first served, so that a large request is not starved by small ones.
#[derive(Debug)]
pub struct Pool {
    total: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    free: u64,
    /// The ticket that the next taker draws, and the one that is being served.
    next: u64,
    serving: u64,
}

/// Bytes taken from a [`Pool`]; given back when dropped.
#[derive(Debug)]
pub struct Taken<'p> {
    pool: &'p Pool,
    bytes: u64,
}

impl Pool {
    /// A pool of `total` bytes.
    pub fn new(total: u64) -> Self {
        Self { total, state: Mutex::new(State { free: total, next: 0, serving: 0 }), changed: Condvar::new() }
    }

    /// All bytes of the pool.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Takes `bytes`, waiting until they are free; `None` when the pool is smaller than that.
    pub fn take(&self, bytes: u64) -> Option<Taken<'_>> {
        if bytes > self.total {
            return None;
        }
        let mut state = self.lock();
        let ticket = state.next;
        state.next += 1;
        while state.serving != ticket || state.free < bytes {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.free -= bytes;
        state.serving += 1;
        drop(state);
        self.changed.notify_all();
        Some(Taken { pool: self, bytes })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.pool.lock().free += self.bytes;
        self.pool.changed.notify_all();
    }
}

/// The memory of a run: one pool for files as read, one for pixels. Two pools, because a worker holds its file while
/// it waits for pixels: with one, workers that each hold a file could wait for each other for ever. Whoever holds
/// pixels waits for nothing.
#[derive(Debug)]
pub struct Budget {
    /// For files as they are on disk: a quarter.
    pub files: Pool,
    /// For decoding: the rest.
    pub pixels: Pool,
}

/// What a process of prep holds before the first image: code, tables, the listing of some thousand files.
const FIXED: u64 = 24 << 20;

impl Budget {
    /// Shares out `total` bytes.
    pub fn new(total: u64) -> Self {
        let usable = total.saturating_sub(FIXED).max(16 << 20);
        Self { files: Pool::new(usable / 4), pixels: Pool::new(usable - usable / 4) }
    }

    /// Half of what this process may use: of the control group's limit or the machine's memory.
    pub fn default_total() -> u64 {
        let machine = read_number("/proc/meminfo", "MemTotal:").map_or(4 << 30, |kib| kib * 1024);
        let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
            .iter()
            .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok())
            .min()
            .unwrap_or(u64::MAX);
        machine.min(group) / 2
    }
}

fn read_number(path: &str, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the test is of threads")]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn never_more_than_the_pool_is_out_and_nobody_waits_for_ever() {
        let pool = Pool::new(100);
        let (out, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for worker in 0..16_u64 {
                let (pool, out, most) = (&pool, &out, &most);
                scope.spawn(move || {
                    for round in 0..200 {
                        let bytes = 1 + (worker * 37 + round * 11) % 100;
                        let taken = pool.take(bytes).unwrap();
                        let now = out.fetch_add(bytes, Ordering::SeqCst) + bytes;
                        most.fetch_max(now, Ordering::SeqCst);
                        out.fetch_sub(bytes, Ordering::SeqCst);
                        drop(taken);
                    }
                });
            }
        });
        let most = most.into_inner();
        assert!(most <= 100 && most > 50, "{most}");
        assert!(pool.take(101).is_none());
    }
}

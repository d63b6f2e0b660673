//! Ctrl-C and SIGTERM as a flag that the crew asks before each item.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::supervise::FLIGHT_VARIABLE;

/// Set once by a signal; never cleared.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A flag that SIGINT, SIGTERM and SIGHUP set from now on, instead of ending the process. The second signal ends it,
    /// whatever it waits for.
    pub fn on_signals() -> Self {
        let cancel = Self::default();
        // A worker's second signal is the supervisor's business: it passes the terminal's own on.
        let is_worker = std::env::var_os(FLIGHT_VARIABLE).is_some();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            if !is_worker {
                let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&cancel.0));
            }
            // Refused only for signals that cannot be handled at all; then the default (end) stays, which is safe.
            let _ = signal_hook::flag::register(signal, Arc::clone(&cancel.0));
        }
        cancel
    }

    /// From now on a write beyond the file size limit fails, instead of ending the process without a word.
    pub fn survive_file_limits() {
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    }

    /// Asks for an end.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Was an end asked for?
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

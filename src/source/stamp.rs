//! How a file is told to be the same as before.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// A file system with whole seconds needs this long to show a second change.
const COARSE: Duration = Duration::from_secs(2);
/// The clock of the others ticks at least this often (Linux: every 1 to 10 ms).
const FINE: Duration = Duration::from_millis(50);

/// What tells that a file is unchanged: size, time of the last change, and inode together; never time alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stamp {
    bytes: u64,
    mtime: i64,
    nanos: i64,
    inode: u64,
}

impl Stamp {
    /// The stamp of `file` now, links followed; all zero where there is none.
    pub fn of(file: &Path) -> Self {
        fs::metadata(file).map_or_else(
            |_| Self::default(),
            |meta| Self {
                bytes: meta.len(),
                mtime: meta.mtime(),
                nanos: meta.mtime_nsec(),
                inode: meta.ino(),
            },
        )
    }

    /// Is the last change so long ago at `now` that another one would show? (Else two contents of the same size could
    /// have the same stamp.)
    pub fn is_settled(&self, now: SystemTime) -> bool {
        let since =
            Duration::new(u64::try_from(self.mtime).unwrap_or(0), u32::try_from(self.nanos).unwrap_or(0));
        let wait = if self.nanos == 0 { COARSE } else { FINE };
        now.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|now| now >= since.saturating_add(wait))
    }
}

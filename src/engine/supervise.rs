//! The process that watches the working one. A decoder in C may abort or never return; then the working process is
//! started again, the files that were in hand are tried alone, and the culprit becomes a row: `crash` or `timeout`.
//! It costs one idle process and two small writes a file.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::flight::{self, Flight, KeyHash, Verdict};
use crate::error::{Error, Result};

/// In the working process's environment: the recorder's folder.
pub const FLIGHT_VARIABLE: &str = "PREP_FLIGHT";
/// In the working process's environment: who watches it.
const PARENT_VARIABLE: &str = "PREP_SUPERVISOR";
/// Deaths with nothing in hand that are borne before giving up.
const UNEXPLAINED: usize = 2;
/// How often the watch looks.
const TICK: Duration = Duration::from_millis(100);

/// The flight recorder of the supervisor above this process; `None` when there is none.
///
/// # Errors
/// [`Error::Internal`] when there should be one and it cannot be opened.
pub fn in_worker() -> Result<Option<Flight>> {
    let Some(folder) = std::env::var_os(FLIGHT_VARIABLE) else { return Ok(None) };
    die_with_parent();
    Flight::open(&PathBuf::from(folder))
        .map(Some)
        .map_err(|e| Error::Internal(format!("the flight recorder cannot be opened: {e}")))
}

/// A worker whose supervisor was killed must not go on alone: nobody would answer for it.
fn die_with_parent() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        let parent = std::env::var(PARENT_VARIABLE).ok().and_then(|p| p.parse::<u32>().ok());
        let now = rustix::process::getppid().map(|p| p.as_raw_pid() as u32);
        if parent.is_some() && parent != now {
            // It died before the signal was arranged.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }
}

/// What the supervisor shares with its watching thread.
struct Watched {
    slots: File,
    max_time: Duration,
    interrupts: Arc<AtomicUsize>,
    ended: AtomicBool,
    late: Mutex<Vec<KeyHash>>,
}

/// Runs this same program again as a working process and gives its exit code, restarting it after crashes. `say` gets
/// a sentence for the person at each restart. `spool_stdin` keeps standard input for a restart.
///
/// # Errors
/// [`Error::Internal`] when the process cannot be started or dies again and again with no file in hand.
pub fn run(max_time: Duration, spool_stdin: bool, say: &mut dyn FnMut(&str)) -> Result<u8> {
    let internal = |e: io::Error| Error::Internal(format!("the working process cannot be watched: {e}"));
    let no_room = |e: io::Error| {
        Error::Usage(format!(
            "no temporary files can be made in {}: {}; name another folder with the variable TMPDIR",
            crate::names::shown(&std::env::temp_dir()),
            crate::error::io_reason(&e)
        ))
    };
    let folder = tempfile::Builder::new().prefix("prep-").tempdir().map_err(no_room)?;
    let slots = flight::prepare(folder.path()).map_err(no_room)?;
    let stdin = if spool_stdin { Some(spool(folder.path()).map_err(no_room)?) } else { None };
    let watched = Watched {
        slots,
        max_time,
        interrupts: count_signals(),
        ended: AtomicBool::new(false),
        late: Mutex::default(),
    };
    let mut verdicts: HashMap<KeyHash, Verdict> = HashMap::new();
    let mut unexplained = 0;
    loop {
        let mut listed: Vec<(KeyHash, Verdict)> = verdicts.iter().map(|(k, v)| (*k, *v)).collect();
        listed.sort_by_key(|(key, _)| *key);
        flight::write_verdicts(folder.path(), &listed).map_err(internal)?;
        flight::clear(&watched.slots).map_err(internal)?;
        let child = start(folder.path(), stdin.as_deref()).map_err(internal)?;
        let status = watch(child, &watched).map_err(internal)?;
        if let Some(code) = status.code().filter(|c| *c != 101) {
            return Ok(code as u8);
        }
        if watched.interrupts.load(Ordering::Relaxed) > 0 {
            return Ok(130);
        }
        let late = std::mem::take(&mut *watched.late.lock().unwrap_or_else(PoisonError::into_inner));
        let in_hand = flight::in_hand(&watched.slots).map_err(internal)?;
        let news = if !late.is_empty() {
            verdicts.extend(late.iter().map(|key| (*key, Verdict::Timeout)));
            "a file took longer than --max-seconds".to_owned()
        } else if in_hand.is_empty() {
            unexplained += 1;
            format!("the working process died ({})", died_of(status))
        } else {
            judge(&mut verdicts, &in_hand);
            format!("a decoder crashed ({})", died_of(status))
        };
        if unexplained > UNEXPLAINED {
            return Err(Error::Internal(format!("the working process dies with no file in hand ({status})")));
        }
        say(&format!("{news}; going on without it"));
    }
}

/// One in hand that was already a suspect is the culprit; everything else becomes a suspect.
fn judge(verdicts: &mut HashMap<KeyHash, Verdict>, in_hand: &[(u64, KeyHash)]) {
    if let [(_, only)] = in_hand
        && verdicts.get(only) == Some(&Verdict::Suspect)
    {
        verdicts.insert(*only, Verdict::Crash);
        return;
    }
    for (_, key) in in_hand {
        verdicts.entry(*key).or_insert(Verdict::Suspect);
    }
}

fn died_of(status: ExitStatus) -> String {
    match status.signal() {
        Some(9) => "killed, perhaps for want of memory".into(),
        Some(signal) => format!("signal {signal}"),
        None => status.to_string(),
    }
}

fn start(folder: &std::path::Path, stdin: Option<&std::path::Path>) -> io::Result<Child> {
    let program =
        if cfg!(target_os = "linux") { PathBuf::from("/proc/self/exe") } else { std::env::current_exe()? };
    let mut command = Command::new(program);
    command
        .args(std::env::args_os().skip(1))
        .env(FLIGHT_VARIABLE, folder)
        .env(PARENT_VARIABLE, std::process::id().to_string());
    // glibc otherwise raises its thresholds with use and keeps tens of megabytes a thread that nobody holds.
    for (name, value) in [
        ("MALLOC_ARENA_MAX", "4"),
        ("MALLOC_TRIM_THRESHOLD_", "8388608"),
        ("MALLOC_MMAP_THRESHOLD_", "4194304"),
    ] {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    if let Some(path) = stdin {
        command.stdin(Stdio::from(File::open(path)?));
    }
    command.spawn()
}

/// Waits for the child; a thread meanwhile passes interrupts on and ends it when a file takes too long.
#[allow(clippy::disallowed_methods, reason = "this is the engine")]
fn watch(mut child: Child, watched: &Watched) -> io::Result<ExitStatus> {
    watched.ended.store(false, Ordering::Relaxed);
    let pid = child.id();
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut seen: HashMap<u64, Instant> = HashMap::new();
            let mut passed_on = 0;
            while !watched.ended.load(Ordering::Relaxed) {
                std::thread::park_timeout(TICK);
                let interrupts = watched.interrupts.load(Ordering::Relaxed);
                if interrupts > passed_on {
                    // The first asks for an orderly end, the second ends.
                    signal(pid, interrupts > 1);
                    passed_on = interrupts;
                }
                let late = late_items(watched, &mut seen);
                if !late.is_empty() {
                    watched.late.lock().unwrap_or_else(PoisonError::into_inner).extend(late);
                    signal(pid, true);
                    return;
                }
            }
        });
        let status = child.wait();
        watched.ended.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        status
    })
}

/// Items that have been in hand for longer than allowed. Times are the watcher's own: no clock is shared.
fn late_items(watched: &Watched, seen: &mut HashMap<u64, Instant>) -> Vec<KeyHash> {
    let Ok(in_hand) = flight::in_hand(&watched.slots) else { return Vec::new() };
    seen.retain(|sequence, _| in_hand.iter().any(|(s, _)| s == sequence));
    let now = Instant::now();
    in_hand
        .iter()
        .filter(|(sequence, _)| now.duration_since(*seen.entry(*sequence).or_insert(now)) > watched.max_time)
        .map(|(_, key)| *key)
        .collect()
}

fn signal(pid: u32, kill: bool) {
    use rustix::process::{Pid, Signal, kill_process};
    if let Some(pid) = Pid::from_raw(pid as i32) {
        let _ = kill_process(pid, if kill { Signal::KILL } else { Signal::TERM });
    }
}

/// Counts interrupts instead of dying of them.
fn count_signals() -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let Ok(mut signals) = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ]) else {
        return count;
    };
    let counted = Arc::clone(&count);
    // Ends with the process. Without it the default action ends both processes, which is safe too.
    #[allow(clippy::disallowed_methods, reason = "this is the engine")]
    let _ = std::thread::Builder::new().name("signals".into()).spawn(move || {
        for _ in signals.forever() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    count
}

#[allow(clippy::disallowed_methods, reason = "a spool file in the recorder's folder")]
fn spool(folder: &std::path::Path) -> io::Result<PathBuf> {
    let path = folder.join("stdin");
    io::copy(&mut io::stdin().lock(), &mut File::create(&path)?)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_was_alone_the_second_time_is_condemned() {
        let (a, b) = (flight::hash("a"), flight::hash("b"));
        let mut verdicts = HashMap::new();
        judge(&mut verdicts, &[(1, a), (2, b)]);
        assert_eq!(verdicts[&a], Verdict::Suspect);
        judge(&mut verdicts, &[(3, b)]);
        assert_eq!((verdicts[&a], verdicts[&b]), (Verdict::Suspect, Verdict::Crash));
        let mut verdicts = HashMap::new();
        judge(&mut verdicts, &[(1, a)]);
        assert_eq!(verdicts[&a], Verdict::Suspect, "one death may have had another reason");
    }
}

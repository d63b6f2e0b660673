//! Progress as a bar on a terminal, a line every ten seconds elsewhere, or JSON lines for a program.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::args::{Global, Progress};
use super::terminal::{bytes, thousands};
use crate::engine::progress::{Tally, Unwatched, Watch};

/// What the options want.
pub fn watcher(global: &Global) -> Box<dyn Watch> {
    let how = match global.progress {
        Progress::Auto if global.quiet > 0 => Progress::None,
        Progress::Auto
            if io::stderr().is_terminal() && std::env::var_os("TERM").is_some_and(|t| t != "dumb") =>
        {
            Progress::Bar
        }
        Progress::Auto => Progress::Plain,
        how => how,
    };
    match how {
        Progress::Bar => Box::new(Bar::new()),
        Progress::Json => Box::new(Lines::new(Duration::from_secs(1), json, json_thought)),
        Progress::None => Box::new(Unwatched),
        Progress::Plain | Progress::Auto => {
            Box::new(Lines::new(Duration::from_secs(10), plain, plain_thought))
        }
    }
}

/// Speed since the start, without what an earlier run had done.
struct Pace {
    begun: Instant,
    first: Option<Tally>,
}

impl Pace {
    fn new() -> Self {
        Self { begun: Instant::now(), first: None }
    }

    /// Images a second, bytes a second, seconds to go (by bytes: they cost, not the number of images).
    fn of(&mut self, tally: &Tally) -> (f64, f64, Option<f64>) {
        let first = *self.first.get_or_insert(*tally);
        let seconds = self.begun.elapsed().as_secs_f64().max(1e-3);
        let images = (tally.done - first.done) as f64 / seconds;
        let rate = (tally.bytes - first.bytes) as f64 / seconds;
        let left = (rate > 0.0).then(|| (tally.total_bytes - tally.bytes) as f64 / rate);
        (images, rate, left)
    }
}

fn clock(seconds: f64) -> String {
    let s = seconds.round() as u64;
    if s >= 3600 {
        format!("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
    } else {
        format!("{}:{:02}", s / 60, s % 60)
    }
}

fn message(pace: &mut Pace, tally: &Tally) -> String {
    let (images, rate, left) = pace.of(tally);
    let left = left.map(|s| format!("  ETA {}", clock(s))).unwrap_or_default();
    format!("{images:.0} img/s  {}/s  bad {}{left}", bytes(rate as u64), tally.bad)
}

struct Bar {
    bar: ProgressBar,
    /// Of a calculation.
    thinking: Option<ProgressBar>,
    pace: Pace,
    drawn: Option<Instant>,
}

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template("{bar:28} {human_pos}/{human_len} {percent}%  {msg}")
        {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        Self { bar, thinking: None, pace: Pace::new(), drawn: None }
    }
}

impl Watch for Bar {
    fn step(&mut self, tally: &Tally) {
        let now = Instant::now();
        let due =
            self.drawn.is_none_or(|at| now - at >= Duration::from_millis(100)) || tally.done == tally.total;
        if due {
            self.drawn = Some(now);
            self.bar.set_length(tally.total as u64);
            self.bar.set_position(tally.done as u64);
            self.bar.set_message(message(&mut self.pace, tally));
        }
    }

    fn think(&mut self, doing: &'static str, done: u64, total: u64) {
        let now = Instant::now();
        if self.drawn.is_some_and(|at| now - at < Duration::from_millis(100)) {
            return;
        }
        self.drawn = Some(now);
        let bar = self.thinking.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(100), ProgressDrawTarget::stderr_with_hz(10));
            if let Ok(style) = ProgressStyle::with_template("{bar:28} {percent}%  {msg}") {
                bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
            }
            bar
        });
        bar.set_message(doing);
        bar.set_position(done * 100 / total.max(1));
    }

    fn end(&mut self) {
        if let Some(bar) = self.thinking.take() {
            bar.finish_and_clear();
        }
        self.bar.finish_and_clear();
    }
}

struct Lines {
    every: Duration,
    last: Instant,
    pace: Pace,
    text: fn(&mut Pace, &Tally) -> String,
    thought: fn(&str, u64, u64) -> String,
}

impl Lines {
    fn new(
        every: Duration,
        text: fn(&mut Pace, &Tally) -> String,
        thought: fn(&str, u64, u64) -> String,
    ) -> Self {
        Self { every, last: Instant::now(), pace: Pace::new(), text, thought }
    }
}

impl Watch for Lines {
    fn step(&mut self, tally: &Tally) {
        if self.pace.first.is_none() {
            self.pace.of(tally);
        }
        if self.last.elapsed() >= self.every {
            self.last = Instant::now();
            let _ = writeln!(io::stderr().lock(), "{}", (self.text)(&mut self.pace, tally));
        }
    }

    fn think(&mut self, doing: &'static str, done: u64, total: u64) {
        if self.last.elapsed() >= self.every {
            self.last = Instant::now();
            let _ = writeln!(io::stderr().lock(), "{}", (self.thought)(doing, done, total));
        }
    }

    fn end(&mut self) {}
}

fn plain_thought(doing: &str, done: u64, total: u64) -> String {
    format!("{doing}: {}%", done * 100 / total.max(1))
}

fn json_thought(doing: &str, done: u64, total: u64) -> String {
    serde_json::json!({"doing": doing, "done": done, "total": total}).to_string()
}

fn plain(pace: &mut Pace, tally: &Tally) -> String {
    let percent = tally.done * 100 / tally.total.max(1);
    let (done, total) = (thousands(tally.done as u64), thousands(tally.total as u64));
    format!("{done}/{total} {percent}%  {}", message(pace, tally))
}

fn json(pace: &mut Pace, tally: &Tally) -> String {
    let (images, rate, left) = pace.of(tally);
    serde_json::json!({
        "done": tally.done, "total": tally.total, "bytes": tally.bytes, "total_bytes": tally.total_bytes,
        "bad": tally.bad, "resumed": tally.resumed, "images_per_second": images, "bytes_per_second": rate,
        "seconds_left": left,
    })
    .to_string()
}

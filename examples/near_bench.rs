//! A benchmark: all pairs of N random 256-bit codes (default 1,000,000), by the search that audit uses; then what the
//! print of a picture costs. CPU seconds of all threads and peak memory, from /proc.
//!
//! `cargo run --release --example near_bench -- [N] [THREADS]`
#![allow(clippy::print_stdout, clippy::print_stderr)]

use imgprep::engine::cancel::Cancel;
use imgprep::measure::{Code, Luma, PLANE, Print};
use imgprep::near;
use imgprep::pixels::Rgb8;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse().expect("a number"));
    let n: usize = arguments.next().unwrap_or(1_000_000);
    let threads = arguments.next().unwrap_or(2);
    let mut random = Random(1);
    for (width, height, rounds) in [(224, 224, 500), (500, 375, 200), (4000, 3000, 10)] {
        let data =
            (0..width * height * 3).map(|at| (at / 7 % 200) as u8 ^ (random.next() >> 60) as u8).collect();
        cost(&Rgb8::new(width, height, data), rounds);
    }
    let codes: Vec<Code> = (0..n).map(|_| Code(std::array::from_fn(|_| random.next()))).collect();
    let before = cpu_seconds();
    let (pairs, kernel) = near::count_pairs(&codes, threads, &Cancel::default()).expect("nothing interrupts");
    let spent = cpu_seconds() - before;
    let compared = n as f64 * (n as f64 - 1.0) / 2.0;
    println!(
        "{n} codes by {kernel}: {spent:.1} CPU s, {:.3} ns a pair, {pairs} pairs",
        spent * 1e9 / compared
    );
    println!("as 1,000,000 codes: {:.1} CPU s", spent / compared * 499_999_500_000.0);
    println!("peak memory {} MB", peak_kb() / 1024);
}

fn cost(picture: &Rgb8, rounds: usize) {
    let before = cpu_seconds();
    let mut luma = Luma::of(picture, PLANE);
    for _ in 1..rounds {
        luma = Luma::of(picture, PLANE);
    }
    let plane = cpu_seconds() - before;
    let rounds_of_print = 1_000;
    let before = cpu_seconds();
    let found = (0..rounds_of_print).filter(|_| Print::of(&luma).is_some()).count();
    let print = cpu_seconds() - before;
    println!(
        "{}x{}: luma {:.3} ms, print {:.3} ms ({found} of {rounds_of_print})",
        picture.width,
        picture.height,
        plane * 1e3 / rounds as f64,
        print * 1e3 / f64::from(rounds_of_print)
    );
}

struct Random(u64);

impl Random {
    /// splitmix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// User and system time of the process, in ticks of 10 ms.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc");
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

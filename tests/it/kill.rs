//! What kills, interrupts, threads and order may not change.

use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

use crate::env::{Env, jpeg, noise_png, png};
use imgprep::out::TEMP_PREFIX;

/// A set with good and bad files in two classes.
fn set(env: &Env, n: u32) {
    for i in 0..n {
        let class = if i % 3 == 0 { "rust" } else { "scab" };
        if i % 5 == 4 {
            env.write(format!("in/{class}/{i:03}.png"), &png(200 + i, 150, i));
        } else {
            env.write(format!("in/{class}/{i:03}.jpg"), &jpeg(300 + i, 220, i));
        }
    }
    let whole = jpeg(300, 200, 1);
    env.write("in/rust/cut.jpg", &whole[..whole.len() * 2 / 3]);
    env.write("in/scab/none.jpg", b"");
}

/// Everything that a run leaves, but for the lock and the journal (whose order of claims may differ).
fn result(env: &Env, folder: &str) -> Vec<(String, Vec<u8>)> {
    let mut tree = env.tree(folder);
    tree.retain(|(name, _)| !name.starts_with(".prep/"));
    assert!(tree.len() > 10, "{} files", tree.len());
    tree
}

#[test]
fn outputs_are_the_same_on_1_2_and_8_threads_and_in_any_order_of_files() {
    let env = Env::new();
    set(&env, 40);
    env.ok(&["shrink", "in", "-o", "out", "-j", "1", "--short-edge", "100"]);
    let want = result(&env, "out");
    // The same tree made in another order, so that the folders list their files otherwise.
    let mut files = env.tree("in");
    files.reverse();
    files.sort_by_key(|(name, _)| name.bytes().map(u32::from).sum::<u32>() % 7);
    for (name, bytes) in files {
        env.write(format!("again/{name}"), &bytes);
    }
    std::fs::rename(env.path("in"), env.path("first")).unwrap();
    std::fs::rename(env.path("again"), env.path("in")).unwrap();
    for threads in ["2", "8"] {
        let out = format!("out-{threads}");
        env.ok(&["shrink", "in", "-o", &out, "-j", threads, "--short-edge", "100"]);
        assert!(result(&env, &out) == want, "{threads} threads");
    }
}

#[test]
fn twenty_kills_leave_no_half_file_and_the_resumed_result_is_the_same() {
    let env = Env::new();
    set(&env, 60);
    let begun = std::time::Instant::now();
    env.ok(&["shrink", "in", "-o", "whole", "--short-edge", "100", "-j", "2"]);
    let whole_run = begun.elapsed();
    let want = result(&env, "whole");
    let mut seen_partial = 0;
    for round in 0..20_u64 {
        // Not random, but spread over a whole run of this machine now, and different in every round.
        let pause = whole_run.mul_f64(0.1 + 0.045 * ((round * 7) % 20) as f64);
        let mut command = env.command(&["shrink", "in", "-o", "out", "--short-edge", "100", "-j", "2"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        std::thread::sleep(pause);
        let group = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        child.wait().unwrap();
        if !env.path("out/images").exists() {
            continue;
        }
        let images: Vec<_> =
            env.tree("out/images").into_iter().filter(|(name, _)| !name.contains(TEMP_PREFIX)).collect();
        for (name, bytes) in &images {
            let whole = want.iter().find(|(n, _)| n == &format!("images/{name}"));
            assert!(whole.is_some_and(|(_, b)| b == bytes), "{name} is half a file");
        }
        if images.len() < 58 {
            seen_partial += 1;
        } else {
            // Finished: begin again, so that every round kills something.
            std::fs::remove_dir_all(env.path("out")).unwrap();
        }
    }
    assert!(seen_partial >= 3, "only {seen_partial} kills met a run at work");
    env.ok(&["shrink", "in", "-o", "out", "--short-edge", "100"]);
    let mut got = result(&env, "out");
    let mut want = want;
    // The sidecar names the workspace's source relative to itself, which is the same for both.
    got.sort();
    want.sort();
    assert!(got == want);
}

#[test]
fn an_interrupt_ends_orderly_with_130_and_the_same_command_continues() {
    let env = Env::new();
    set(&env, 30);
    env.write("in/scab/000-rehearse-hang.jpg", &jpeg(64, 64, 1));
    let mut child = env
        .command(&["shrink", "in", "-o", "out", "--short-edge", "100", "-j", "2", "--max-seconds", "3"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !env.path("out/images/rust/000.jpg").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(
        !env.path("out/manifest.prep.json").exists(),
        "an unfinished workspace does not claim to be whole"
    );
    std::fs::remove_file(env.path("in/scab/000-rehearse-hang.jpg")).unwrap();
    env.ok(&["shrink", "in", "-o", "out", "--short-edge", "100"]);
    assert_eq!(env.rows("out/manifest.csv").len(), 32);
}

#[test]
fn a_full_disk_stops_with_a_sentence_and_the_same_command_continues() {
    let env = Env::new();
    set(&env, 30);
    env.write("in/rust/large.png", &noise_png(1200, 900));
    // A file size limit fails writes as a full disk does, without a file system of its own; 40 kB stops the large one.
    let prep = env!("CARGO_BIN_EXE_prep");
    let script = format!("ulimit -f 40; exec {prep} shrink in -o out --short-edge 900 --format png");
    let output =
        std::process::Command::new("bash").args(["-c", &script]).current_dir(env.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("writing a copy") || said.contains("File too large"), "{said}");
    for (name, _) in env.tree("out/images") {
        assert!(!name.contains(TEMP_PREFIX), "{name}");
    }
    env.ok(&["shrink", "in", "-o", "out", "--short-edge", "900", "--format", "png"]);
    assert_eq!(env.rows("out/manifest.csv").len(), 33);
}

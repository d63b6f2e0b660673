//! Memory is bounded by the budget, not by the number or the size of the images.

use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::env::{Env, jpeg};

/// A JPEG header that promises 20000 x 12000 pixels over the data of a small picture, and one that promises 65500².
fn bomb(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = jpeg(64, 64, 3);
    let at = bytes.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    bytes[at + 5..at + 7].copy_from_slice(&height.to_be_bytes());
    bytes[at + 7..at + 9].copy_from_slice(&width.to_be_bytes());
    bytes
}

/// 60 pictures of 12 megapixels and 20 bombs.
fn bombs_and_large_images(env: &Env) {
    let large = jpeg(4000, 3000, 1);
    for i in 0..60 {
        env.write(format!("in/a/{i:03}.jpg"), &large);
    }
    for i in 0..20 {
        let (w, h) = if i % 2 == 0 { (20_000, 12_000) } else { (65_500, 65_500) };
        env.write(format!("in/b/{i:03}.jpg"), &bomb(w, h));
    }
}

#[test]
fn sixty_four_threads_on_bombs_and_large_images_stay_within_the_budget() {
    let env = Env::new();
    bombs_and_large_images(&env);
    // The size asks for full decodes, so each image takes 36 MB and more.
    let mut command = env.command(&[
        "shrink",
        "in",
        "-o",
        "out",
        "-j",
        "64",
        "--memory",
        "512M",
        "--cover",
        "3000x3000",
        "--quality",
        "50",
    ]);
    let (status, peak) = watched(&mut command);
    assert_eq!(status.code(), Some(0));
    assert!(peak > 50_000, "the test saw no memory: {peak} kB");
    assert!(peak < (512 + 128) * 1000, "{peak} kB");
    println!("peak {peak} kB");
    let rows = env.rows("out/manifest.csv");
    assert_eq!(rows.iter().filter(|r| r["status"] == "ok").count(), 60);
    assert_eq!(rows.iter().filter(|r| r["status"] != "ok").count(), 20);
}

#[test]
fn an_audit_by_sixty_four_threads_stays_within_the_budget() {
    let env = Env::new();
    bombs_and_large_images(&env);
    let args = ["audit", "in", "-q", "-j", "64", "--memory", "512M", "--facts", "facts.csv", "--no-cache"];
    let (status, peak) = watched(&mut env.command(&args));
    // The bombs are errors.
    assert_eq!(status.code(), Some(1));
    assert!(peak > 50_000 && peak < (512 + 128) * 1000, "{peak} kB");
    println!("peak {peak} kB");
    let rows = env.rows("facts.csv");
    assert_eq!(rows.iter().filter(|r| r["status"] == "ok").count(), 60);
    assert_eq!(rows.len(), 80);
}

#[test]
fn packing_large_pictures_as_pixels_stays_within_the_budget() {
    let env = Env::new();
    let large = jpeg(2000, 1500, 1);
    for i in 0..40 {
        env.write(format!("in/a/{i:03}.jpg"), &large);
    }
    let args = [
        "pack",
        "in",
        "-o",
        "out",
        "-j",
        "64",
        "--memory",
        "128M",
        "--shard-size",
        "16M",
        "--store",
        "raw",
        "-q",
    ];
    let (status, peak) = watched(&mut env.command(&args));
    assert_eq!(status.code(), Some(0));
    // Pixels of all pictures are 360 MB.
    assert!(peak > 30_000 && peak < (128 + 100) * 1000, "{peak} kB");
    assert_eq!(env.rows("out/left_out.csv").len(), 0);
}

/// Runs `command` to its end: how it ended, and the peak memory of the process that it starts, in kB.
fn watched(command: &mut Command) -> (ExitStatus, u64) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut peak = 0;
    loop {
        peak = peak.max(peak_below(child.id()));
        if let Some(status) = child.try_wait().unwrap() {
            return (status, peak);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The peak memory so far (VmHWM, kB) of the processes below `parent`.
fn peak_below(parent: u32) -> u64 {
    let field = |text: &str, name: &str| -> Option<u64> {
        text.lines().find(|l| l.starts_with(name))?.split_whitespace().nth(1)?.parse().ok()
    };
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    processes
        .flatten()
        .filter_map(|process| std::fs::read_to_string(process.path().join("status")).ok())
        .filter(|text| field(text, "PPid:") == Some(u64::from(parent)))
        .filter_map(|text| field(&text, "VmHWM:"))
        .max()
        .unwrap_or(0)
}

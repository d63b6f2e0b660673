//! shrink from outside: what is written, what becomes a row, what is refused.

use crate::env::{Env, jpeg, picture, png};
use imgprep::decode::{self, Codec, Contract, Limits};
use imgprep::pixels::{Rgb8, Scale};
use std::path::Path;

fn decoded(path: &Path) -> Rgb8 {
    let bytes = std::fs::read(path).unwrap();
    let opened = decode::open(&bytes, path, &Limits { max_pixels: 1 << 30 }).unwrap();
    opened.pixels(Scale::FULL, &Contract::default(), &mut Codec::new()).unwrap().rgb
}

fn difference(a: &Rgb8, b: &Rgb8) -> f64 {
    assert_eq!(a.size(), b.size());
    let sum: u64 = a.data.iter().zip(&b.data).map(|(x, y)| u64::from(x.abs_diff(*y))).sum();
    sum as f64 / a.data.len() as f64
}

#[test]
fn every_image_has_one_small_copy_and_the_sources_are_untouched() {
    let env = Env::new();
    env.write("photos/rust/a.jpg", &jpeg(1200, 900, 1));
    env.write("photos/rust/deep/b.png", &png(300, 200, 2));
    env.write("photos/scab/c.jpg", &jpeg(600, 1400, 3));
    let before = env.tree("photos");
    let ran = env.ok(&["shrink", "photos", "--short-edge", "256"]);
    assert!(ran.stdout.contains("3 images"), "{}", ran.stdout);
    assert_eq!(env.tree("photos"), before);
    let images = env.tree("photos-256/images");
    let names: Vec<&str> = images.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["rust/a.jpg", "rust/deep/b.jpg", "scab/c.jpg"]);
    assert_eq!(decoded(&env.path("photos-256/images/rust/a.jpg")).size(), (341, 256));
    assert_eq!(decoded(&env.path("photos-256/images/rust/deep/b.jpg")).size(), (300, 200), "never enlarged");
    assert_eq!(decoded(&env.path("photos-256/images/scab/c.jpg")).size(), (256, 597));
}

#[test]
fn it_works_typed_inside_the_folder() {
    let env = Env::new();
    env.write("photos/x/a.jpg", &jpeg(640, 480, 1));
    let output =
        env.command(&["shrink", "--short-edge", "128"]).current_dir(env.path("photos")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(env.path("photos-128/images/x/a.jpg").is_file());
    assert_eq!(env.tree("photos").len(), 1, "nothing is put among the sources");
}

#[test]
fn twins_and_nasty_names_stay_apart() {
    let env = Env::new();
    env.write("in/c/a.jpg", &jpeg(64, 48, 1));
    env.write("in/c/a.png", &png(64, 48, 2));
    env.write("in/c/A.jpg", &jpeg(64, 48, 3));
    env.write("in/c/e\u{301}.png", &png(64, 48, 4));
    env.write("in/c/\u{e9}.png", &png(64, 48, 5));
    env.write("in/c/new\nline \u{1b}[31m.png", &png(64, 48, 6));
    env.write("in/c/a.b.jpg.c.png", &png(64, 48, 7));
    env.write("in/c/=cmd|'x'!A1.png", &png(64, 48, 8));
    let ran = env.ok(&["shrink", "in", "-o", "out", "--short-edge", "32"]);
    assert_eq!(env.tree("out/images").len(), 8);
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'));
    let rows = env.rows("out/manifest.csv");
    assert_eq!(rows.len(), 8);
    for row in rows {
        let path = imgprep::names::decode(&row["path"]);
        let copy = decoded(&env.path("out").join(&path));
        let seed: u32 = [("a.jpg", 1), ("a.png", 2), ("A.jpg", 3), ("e\u{301}.png", 4), ("\u{e9}.png", 5)]
            .iter()
            .find(|(name, _)| row["src"] == format!("c/{name}"))
            .map_or(0, |(_, seed)| *seed);
        if seed > 0 {
            let mut small = imgprep::resize::Resizer::default();
            let whole = imgprep::resize::Window { left: 0.0, top: 0.0, width: 64.0, height: 48.0 };
            let filter = imgprep::resize::Filter::Lanczos;
            let want = small.resize(&picture(64, 48, seed), whole, copy.size(), filter).unwrap();
            assert!(difference(&copy, &want) < 8.0, "{} is another picture", row["src"]);
        }
    }
}

#[test]
fn bad_files_are_rows_and_the_run_goes_on() {
    let env = Env::new();
    let good = jpeg(400, 300, 1);
    env.write("in/a/good.jpg", &good);
    env.write("in/a/cut.jpg", &good[..good.len() / 2]);
    env.write("in/a/empty.jpg", b"");
    env.write("in/a/page.jpg", b"<!DOCTYPE html><html>not found</html>");
    env.write("in/a/rehearse-panic.jpg", &good);
    let ran = env.ok(&["shrink", "in", "-o", "out"]);
    assert_eq!(env.tree("out/images").len(), 1);
    let rows = env.rows("out/manifest.csv");
    let of = |name: &str| rows.iter().find(|r| r["src"] == format!("a/{name}")).unwrap();
    assert_eq!(of("good.jpg")["status"], "ok");
    assert_eq!(of("cut.jpg")["status"], "damaged");
    assert!(of("cut.jpg")["fault"].starts_with("truncated"));
    assert!(of("empty.jpg")["fault"].starts_with("empty"));
    assert!(of("page.jpg")["fault"].contains("HTML"));
    assert!(of("rehearse-panic.jpg")["fault"].starts_with("panic: rehearsed panic"));
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    assert_eq!(env.run(&["shrink", "in", "-o", "out", "--max-bad", "3"]).code, Some(1));
    assert_eq!(env.run(&["shrink", "in", "-o", "out", "--max-bad", "4"]).code, Some(0));
}

#[test]
fn a_crash_in_a_decoder_costs_one_row() {
    let env = Env::new();
    for i in 0..20 {
        env.write(format!("in/a/{i:02}.jpg"), &jpeg(160, 120, i));
    }
    env.write("in/a/05-rehearse-abort.jpg", &jpeg(160, 120, 90));
    env.write("in/a/15-rehearse-abort.jpg", &jpeg(160, 120, 91));
    let ran = env.ok(&["shrink", "in", "-o", "out", "-j", "4"]);
    assert!(ran.stderr.contains("a decoder crashed"), "{}", ran.stderr);
    let rows = env.rows("out/manifest.csv");
    assert_eq!(rows.len(), 22);
    let crashed: Vec<&str> =
        rows.iter().filter(|r| r["fault"].starts_with("crash")).map(|r| r["src"].as_str()).collect();
    assert_eq!(crashed, ["a/05-rehearse-abort.jpg", "a/15-rehearse-abort.jpg"]);
    assert_eq!(rows.iter().filter(|r| r["status"] == "ok").count(), 20);
}

#[test]
fn a_file_that_takes_too_long_costs_one_row() {
    let env = Env::new();
    for i in 0..6 {
        env.write(format!("in/a/{i}.jpg"), &jpeg(160, 120, i));
    }
    env.write("in/a/rehearse-hang.jpg", &jpeg(160, 120, 9));
    env.ok(&["shrink", "in", "-o", "out", "--max-seconds", "1"]);
    let rows = env.rows("out/manifest.csv");
    let late: Vec<&str> =
        rows.iter().filter(|r| r["fault"].starts_with("timeout")).map(|r| r["src"].as_str()).collect();
    assert_eq!(late, ["a/rehearse-hang.jpg"]);
    assert_eq!(rows.iter().filter(|r| r["status"] == "ok").count(), 6);
}

#[test]
fn outputs_among_the_sources_are_refused_with_advice() {
    let env = Env::new();
    env.write("in/a/x.jpg", &jpeg(64, 48, 1));
    std::os::unix::fs::symlink(env.path("in"), env.path("link")).unwrap();
    for out in ["in", "in/out", "link/out", "."] {
        let said = env.refused(&["shrink", "in", "-o", out]);
        assert!(said.contains("-o"), "{said}");
    }
    env.write("full/thesis.tex", b"years of work");
    let said = env.refused(&["shrink", "in", "-o", "full"]);
    assert!(said.contains("thesis.tex"), "{said}");
    assert_eq!(env.tree("full").len(), 1);
    assert_eq!(env.tree("in").len(), 1);
}

#[test]
fn a_clean_jpeg_within_the_target_is_not_encoded_again() {
    let env = Env::new();
    let clean = jpeg(320, 240, 1);
    env.write("in/a/clean.jpg", &clean);
    env.ok(&["shrink", "in", "-o", "out"]);
    let copy = std::fs::read(env.path("out/images/a/clean.jpg")).unwrap();
    assert_eq!(
        decoded(&env.path("out/images/a/clean.jpg")),
        decoded(&env.path("in/a/clean.jpg")),
        "lossless"
    );
    assert!(copy.len() <= clean.len());
    assert!(env.rows("out/manifest.csv")[0]["notes"].contains("copied"));
}

#[test]
fn a_second_run_does_nothing_a_changed_file_only_itself_and_other_options_everything() {
    let env = Env::new();
    for i in 0..5 {
        env.write(format!("in/a/{i}.jpg"), &jpeg(400, 300, i));
    }
    env.write("in/a/bad.jpg", b"nothing");
    let made = |ran: &crate::env::Ran| {
        let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        json["rows"].as_u64().unwrap() - json["resumed"].as_u64().unwrap()
    };
    let args = ["shrink", "in", "-o", "out", "--short-edge", "100", "--json"];
    assert_eq!(made(&env.ok(&args)), 6);
    let first = env.tree("out/images");
    assert_eq!(made(&env.ok(&args)), 0);
    env.write("in/a/2.jpg", &jpeg(400, 300, 22));
    std::fs::remove_file(env.path("out/images/a/3.jpg")).unwrap();
    assert_eq!(made(&env.ok(&args)), 2);
    let second = env.tree("out/images");
    assert_eq!(second.len(), first.len());
    assert_ne!(second[2], first[2]);
    assert_eq!(second[3], first[3]);
    assert_eq!(
        made(&env.ok(&["shrink", "in", "-o", "out", "--short-edge", "80", "--format", "png", "--json"])),
        6
    );
    let names: Vec<String> = env.tree("out/images").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a/0.png", "a/1.png", "a/2.png", "a/3.png", "a/4.png"], "the old copies are gone");
    std::fs::remove_file(env.path("in/a/0.jpg")).unwrap();
    env.ok(&["shrink", "in", "-o", "out", "--short-edge", "80", "--format", "png"]);
    assert_eq!(env.tree("out/images").len(), 4, "a copy without a source is gone too");
}

#[test]
fn a_dry_run_writes_nothing_and_tells_the_sizes() {
    let env = Env::new();
    for i in 0..4 {
        env.write(format!("in/a/{i}.jpg"), &jpeg(800, 600, i));
    }
    env.write("in/b/x.png", &png(100, 50, 9));
    let ran = env.ok(&["shrink", "in", "--short-edge", "150", "-n"]);
    assert!(ran.stdout.contains("800x600 RGB") && ran.stdout.contains("200x150"), "{}", ran.stdout);
    assert!(!env.path("in-150").exists());
    let ran = env.ok(&["shrink", "in", "--short-edge", "150", "-n", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    env.ok(&["shrink", "in", "--short-edge", "150"]);
    let bytes: usize = env.tree("in-150/images").iter().map(|(_, b)| b.len()).sum();
    let ratio = told["bytes_out_estimate"].as_f64().unwrap() / bytes as f64;
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn a_second_run_on_the_same_output_waits_its_turn() {
    let env = Env::new();
    env.write("in/a/0.jpg", &jpeg(100, 80, 0));
    env.write("in/a/rehearse-hang.jpg", &jpeg(100, 80, 1));
    let mut first = env.command(&["shrink", "in", "-o", "out", "--max-seconds", "4"]).spawn().unwrap();
    while !env.path("out/images/a/0.jpg").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let said = env.refused(&["shrink", "in", "-o", "out"]);
    assert!(said.contains("another prep"), "{said}");
    assert_eq!(first.wait().unwrap().code(), Some(0));
}

#[test]
fn the_nearest_prep_toml_counts_less_than_what_is_typed() {
    let env = Env::new();
    env.write("in/a/0.jpg", &jpeg(400, 300, 0));
    env.write("prep.toml", b"[shrink]\nshort-edge = 60\nformat = \"png\"\n");
    env.ok(&["shrink", "in", "-o", "one"]);
    assert_eq!(decoded(&env.path("one/images/a/0.png")).size(), (80, 60));
    env.ok(&["shrink", "in", "-o", "two", "--long-edge", "40"]);
    assert_eq!(decoded(&env.path("two/images/a/0.png")).size(), (40, 30));
    env.write("prep.toml", b"[shrink]\nshort-egde = 60\n");
    let said = env.refused(&["shrink", "in", "-o", "three"]);
    assert!(said.contains("short-egde") && said.contains("short-edge"), "{said}");
}

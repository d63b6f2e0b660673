//! `prep sheet`: what lies where, that it is the same everywhere, and that nothing a name or a file holds breaks it.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use imgprep::encode::{Encoder, Encoding};
use imgprep::pixels::Rgb8;

use crate::env::{Env, jpeg, png};
use crate::pictures;

/// A PNG of one colour.
fn plain(colour: [u8; 3], width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let picture = Rgb8::new(width, height, colour.repeat((width * height) as usize));
    Encoder::default().encode(&picture, Encoding::Png, &mut bytes).unwrap();
    bytes
}

fn open(path: impl AsRef<Path>) -> image::RgbImage {
    image::open(path).unwrap().into_rgb8()
}

/// Two classes of 30 and 4 images.
fn two_classes(env: &Env) {
    for i in 0..30 {
        env.write(format!("photos/cat/{i:02}.jpg"), &jpeg(120 + i, 90, i));
    }
    for i in 0..4 {
        env.write(format!("photos/dog/{i}.png"), &png(40, 60 + i, 100 + i));
    }
}

#[test]
fn each_class_gets_a_sheet_of_nine_and_none_comes_twice() {
    let env = Env::new();
    two_classes(&env);
    let ran = env.ok(&["sheet", "photos", "--format", "png"]);
    assert!(ran.stdout.contains("photos-sheets: 2 sheets, 13 images"), "{}", ran.stdout);
    let rows = env.rows("photos-sheets/sheets.csv");
    let paths: HashSet<&String> = rows.iter().map(|row| &row["path"]).collect();
    assert_eq!((rows.len(), paths.len()), (13, 13));
    assert_eq!(rows.iter().filter(|row| row["sheet"] == "cat.png").count(), 9);
    let places: Vec<(&str, &str)> = rows
        .iter()
        .filter(|r| r["label"] == "dog")
        .map(|r| (r["row"].as_str(), r["column"].as_str()))
        .collect();
    assert_eq!(places, [("1", "1"), ("1", "2"), ("1", "3"), ("2", "1")]);
    assert_eq!(open(env.path("photos-sheets/dog.png")).dimensions(), (820, 692));
    // Nothing but the sheets was written, and nothing into the folder of images.
    let names: Vec<String> = env.tree("photos-sheets").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["cat.png", "dog.png", "sheets.csv"]);
    assert_eq!(env.tree("photos").len(), 34);
}

#[test]
fn the_sheets_are_the_same_bytes_on_any_number_of_threads() {
    let env = Env::new();
    two_classes(&env);
    for format in ["jpg", "png", "html"] {
        for threads in ["1", "8"] {
            let folder = format!("{format}-{threads}");
            env.ok(&["sheet", "photos", "-j", threads, "--format", format, "-o", &folder, "--cell", "96"]);
        }
        let (one, eight) = (env.tree(format!("{format}-1")), env.tree(format!("{format}-8")));
        assert!(one.len() >= 2);
        let texts = |tree: &[(String, Vec<u8>)]| -> Vec<(String, String)> {
            // The page says which command made it.
            let text = |bytes: &[u8]| {
                String::from_utf8_lossy(bytes).replace("-j 8", "-j 1").replace("html-8", "html-1")
            };
            tree.iter().map(|(name, bytes)| (name.clone(), text(bytes))).collect()
        };
        match format {
            "html" => assert_eq!(without_nonce(&texts(&one)), without_nonce(&texts(&eight))),
            _ => assert!(one == eight, "{format} differs"),
        }
    }
}

/// The word of the security policy hangs on all of the page.
fn without_nonce(files: &[(String, String)]) -> Vec<(String, String)> {
    let cut = |text: &str| -> String {
        let mut parts = text.split("nonce-").map(str::to_owned).collect::<Vec<_>>();
        for part in parts.iter_mut().skip(1) {
            part.replace_range(..part.len().min(32), "");
        }
        parts.concat()
    };
    files.iter().map(|(name, text)| (name.clone(), cut(text))).collect()
}

#[test]
fn the_same_seed_gives_the_same_images_and_new_ones_change_few_cells() {
    let env = Env::new();
    two_classes(&env);
    let picks = |env: &Env, seed: &str| -> Vec<String> {
        env.ok(&["sheet", "photos", "--seed", seed, "--cell", "64"]);
        let rows = env.rows("photos-sheets/sheets.csv");
        rows.into_iter().filter(|r| r["label"] == "cat").map(|r| r["path"].clone()).collect()
    };
    let before = picks(&env, "7");
    assert_ne!(before, picks(&env, "8"));
    assert_eq!(before, picks(&env, "7"));
    for i in 0..3 {
        env.write(format!("photos/cat/new{i}.jpg"), &jpeg(100, 100, 200 + i));
    }
    let after = picks(&env, "7");
    let changed = before.iter().zip(&after).filter(|(a, b)| a != b).count();
    assert!(changed <= 4, "{before:?} {after:?}");
}

#[test]
fn a_sheet_looks_as_it_should() {
    let env = Env::new();
    env.write("set/a/wide.png", &plain([200, 30, 30], 200, 100));
    env.write("set/a/high.png", &plain([30, 160, 60], 50, 100));
    env.write("set/a/dot.png", &plain([40, 60, 200], 4, 4));
    env.write("set/a/zz.png", b"no picture at all");
    env.ok(&[
        "sheet",
        "set",
        "--pick",
        "first",
        "--cell",
        "100",
        "--cols",
        "3",
        "--per-class",
        "6",
        "--format",
        "png",
    ]);
    let sheet = open(env.path("set-sheets/a.png"));
    assert_eq!(sheet.dimensions(), (352, 380));
    let at = |x: u32, y: u32| sheet.get_pixel(x, y).0;
    // Cells begin at (16, 76) and are 110 px apart; dot, high, wide, zz by path.
    let middle = |column: u32| at(16 + column * 110 + 50, 76 + 50);
    assert_eq!((middle(0), middle(1), middle(2)), ([40, 60, 200], [30, 160, 60], [200, 30, 30]));
    let cell = [232, 232, 232];
    // Letterbox above the wide one and beside the high one; the dot fills its cell, each of its pixels a square.
    assert_eq!(
        (at(16 + 220 + 50, 76 + 10), at(16 + 110 + 10, 76 + 50), at(16 + 3, 76 + 3)),
        (cell, cell, [40, 60, 200])
    );
    // The one that is no picture has a red frame, the empty ones are lighter and have none.
    let below = 76 + 100 + 3 + 36 + 10;
    assert_eq!((at(17, below + 1), at(16 + 110 + 3, below + 3)), ([208, 24, 24], [246, 246, 246]));
    assert_eq!(at(2, 2), [255, 255, 255]);
    // The header and the captions have ink in them, and nothing touches the edges.
    let dark = |x: std::ops::Range<u32>, y: std::ops::Range<u32>| {
        x.flat_map(|x| y.clone().map(move |y| (x, y))).filter(|(x, y)| at(*x, *y)[0] < 110).count()
    };
    assert!(dark(16..40, 16..40) > 10 && dark(16..110, 179..195) > 60, "no text");
    assert_eq!(dark(0..352, 0..8) + dark(0..8, 0..380) + dark(344..352, 0..380) + dark(0..352, 372..380), 0);
}

#[test]
fn a_golden_sheet_stays_as_it_is() {
    let env = Env::new();
    for i in 0..3 {
        let picture = pictures::picture(160, 120, i);
        env.write(format!("set/leaf/{i}.jpg"), &pictures::jpeg(&picture, pictures::BASELINE));
    }
    env.ok(&["sheet", "set", "--per-class", "4", "--cell", "96", "--format", "png", "--pick", "first"]);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/sheet.png");
    let made = env.path("set-sheets/leaf.png");
    if std::env::var_os("PREP_GOLDEN").is_some() {
        fs::create_dir_all(golden.parent().unwrap()).unwrap();
        fs::copy(&made, &golden).unwrap();
    }
    let (made, golden) = (open(made), open(golden));
    assert_eq!(made.dimensions(), golden.dimensions());
    let gaps: Vec<u8> = made.as_raw().iter().zip(golden.as_raw()).map(|(a, b)| a.abs_diff(*b)).collect();
    let mean = gaps.iter().map(|gap| f64::from(*gap)).sum::<f64>() / gaps.len() as f64;
    assert!(mean < 0.6, "mean difference {mean}");
    assert!(gaps.iter().filter(|gap| **gap > 40).count() < gaps.len() / 500, "parts of it differ");
}

#[test]
fn odd_names_make_sheets_all_the_same() {
    let env = Env::new();
    let names = [
        "猫と犬の写真",
        "한국어",
        "ภาพถ่าย ใบไม้",
        "emoji 😀👩‍👩‍👧",
        "עברית",
        "مرحبا",
        "ctl\u{1b}[31m\nx",
        "\u{202e}gpj",
        "x..name",
        "a b",
        "A B",
        "Z\u{337}\u{322}\u{31b}a",
        "=cmd|x",
    ];
    for (i, name) in names.iter().enumerate() {
        env.write(format!("set/{name}/{name}.png"), &png(30, 20, i as u32));
    }
    let long = "l".repeat(200);
    env.write(format!("set/{long}/{long}.png"), &png(30, 20, 77));
    let ran = env.ok(&["sheet", "set", "--cell", "64"]);
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'));
    let rows = env.rows("set-sheets/sheets.csv");
    assert_eq!(rows.len(), names.len() + 1);
    for row in &rows {
        assert!(env.path("set-sheets").join(&row["sheet"]).is_file(), "{row:?}");
        assert!(!row["path"].starts_with('='), "{row:?}");
    }
    let sheets: HashSet<String> = rows.iter().map(|row| row["sheet"].to_lowercase()).collect();
    assert_eq!(sheets.len(), rows.len());
}

#[test]
fn a_thousand_classes_lie_in_rows_on_few_sheets() {
    let env = Env::new();
    let bytes = png(8, 8, 1);
    for i in 0..1000 {
        env.write(format!("set/class{i:04}/x.png"), &bytes);
    }
    let ran = env.ok(&["sheet", "set", "--per-class", "3", "--cell", "32", "--caption", "none", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let sheets = document["sheets"].as_array().unwrap();
    assert!((5..40).contains(&sheets.len()), "{}", sheets.len());
    assert_eq!(document["images"], 1000);
    let drawn: u64 = sheets.iter().map(|sheet| sheet["images"].as_u64().unwrap()).sum();
    assert_eq!(drawn, 1000);
    assert!(sheets[0]["file"] == "sheet-001.jpg" && env.path("set-sheets/sheet-001.jpg").is_file());
}

#[test]
fn without_labels_there_is_one_sheet_and_broken_images_are_told() {
    let env = Env::new();
    for i in 0..3 {
        env.write(format!("flat/{i}.png"), &png(30, 20, i));
    }
    env.ok(&["sheet", "flat"]);
    assert!(env.path("flat-sheets/flat.jpg").is_file());

    for name in ["a", "b", "c"] {
        env.write(format!("broken/{name}.jpg"), b"<html>Not found</html>");
    }
    let ran = env.ok(&["sheet", "broken"]);
    assert!(ran.stdout.contains("3 images, 3 not whole"), "{}", ran.stdout);
    let rows = env.rows("broken-sheets/sheets.csv");
    assert!(rows.len() == 3 && rows.iter().all(|row| row["fault"].starts_with("not_an_image")), "{rows:?}");
    assert_eq!(env.run(&["sheet", "broken", "--max-bad", "0"]).code, Some(1));
    assert!(env.refused(&["sheet", "broken", "--by", "split"]).contains("prep split"));
    assert!(env.refused(&["sheet", "broken", "--by", "nothing"]).contains("no table"));
}

#[test]
fn sheets_replace_their_own_and_no_others() {
    let env = Env::new();
    two_classes(&env);
    env.ok(&["sheet", "photos", "--cell", "64"]);
    fs::remove_dir_all(env.path("photos/dog")).unwrap();
    env.write("photos-sheets/notes.txt", b"mine");
    env.ok(&["sheet", "photos", "--cell", "64"]);
    let names: Vec<String> = env.tree("photos-sheets").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["cat.jpg", "notes.txt", "sheets.csv"]);

    env.write("mine/cat.jpg", b"precious");
    let why = env.refused(&["sheet", "photos", "-o", "mine"]);
    assert!(why.contains("was not made by prep sheet"), "{why}");
    assert_eq!(fs::read(env.path("mine/cat.jpg")).unwrap(), b"precious");
    assert!(env.refused(&["sheet", "photos", "-o", "photos/cat"]).contains("inside the input"));
    // A forged index names nothing outside.
    env.write("photos-sheets/sheets.csv", FORGED);
    env.ok(&["sheet", "photos", "--cell", "64"]);
    assert!(env.path("mine/cat.jpg").is_file() && env.path("photos-sheets/notes.txt").is_file());
}

/// An index of ours whose files lie elsewhere.
const FORGED: &[u8] = b"sheet,row,column,path,label,split,width,height,fault,findings
../mine/cat.jpg,1,1,a,,,1,1,,
/etc/passwd,1,1,a,,,1,1,,
notes.txt,1,1,a,,,1,1,,
";

#[test]
fn the_worst_is_what_is_unlike_its_class() {
    let env = Env::new();
    for i in 0..12 {
        env.write(format!("set/leaf/{i:02}.png"), &plain([40, 150 + i as u8, 50], 64, 64));
    }
    env.write("set/leaf/odd.png", &plain([250, 225, 250], 64, 64));
    env.ok(&["sheet", "set", "--pick", "worst", "--per-class", "2"]);
    assert_eq!(env.rows("set-sheets/sheets.csv")[0]["path"], "leaf/odd.png");
    env.ok(&["sheet", "set", "--pick", "worst", "--worst", "bright", "--per-class", "1"]);
    assert_eq!(env.rows("set-sheets/sheets.csv")[0]["path"], "leaf/odd.png");
    env.ok(&["sheet", "set", "--pick", "worst", "--worst", "dark", "--per-class", "1"]);
    assert_eq!(env.rows("set-sheets/sheets.csv")[0]["path"], "leaf/00.png");
}

#[test]
fn spread_takes_no_copy_before_it_must() {
    let env = Env::new();
    for i in 0..4 {
        let picture = pictures::picture(96, 96, i * 31);
        let bytes = pictures::lossless(&picture, image::ImageFormat::Png);
        for copy in 0..5 {
            env.write(format!("set/leaf/{i}-{copy}.png"), &bytes);
        }
    }
    env.ok(&["sheet", "set", "--pick", "spread", "--per-class", "4"]);
    let rows = env.rows("set-sheets/sheets.csv");
    let kinds: HashSet<String> = rows.iter().map(|row| row["path"][5..6].to_owned()).collect();
    assert_eq!(kinds.len(), 4, "{rows:?}");
}

#[test]
fn copies_lie_beside_each_other_and_findings_have_sheets() {
    let env = Env::new();
    for i in 0..6 {
        let picture = pictures::picture(96, 96, i * 17);
        env.write(format!("set/cat/{i}.png"), &pictures::lossless(&picture, image::ImageFormat::Png));
    }
    fs::create_dir_all(env.path("set/dog")).unwrap();
    fs::copy(env.path("set/cat/3.png"), env.path("set/dog/x.png")).unwrap();
    env.write("set/dog/empty.png", b"");
    env.ok(&["sheet", "set", "--pairs", "duplicates"]);
    let rows = env.rows("set-sheets/sheets.csv");
    let paths: Vec<&str> = rows.iter().take(2).map(|row| row["path"].as_str()).collect();
    assert_eq!(paths, ["cat/3.png", "dog/x.png"], "{rows:?}");
    assert!(rows[0]["findings"].contains("D004"), "{rows:?}");

    env.ok(&["sheet", "set", "--by", "finding"]);
    let sheets: HashSet<String> =
        env.rows("set-sheets/sheets.csv").into_iter().map(|r| r["sheet"].clone()).collect();
    assert!(
        sheets.iter().any(|s| s.starts_with("D004")) && sheets.iter().any(|s| s.starts_with("F001")),
        "{sheets:?}"
    );
    assert!(!env.path("set-sheets/duplicates-001.jpg").exists());
}

#[test]
fn validation_lies_beside_the_training_image_most_like_it() {
    let env = Env::new();
    for i in 0..5 {
        let picture = pictures::picture(96, 96, i * 17);
        env.write(format!("set/train/a/{i}.png"), &pictures::lossless(&picture, image::ImageFormat::Png));
    }
    let picture = pictures::picture(96, 96, 34);
    env.write("set/val/a/leak.jpg", &pictures::jpeg(&picture, pictures::BASELINE));
    env.ok(&["sheet", "set", "--pairs", "val-train"]);
    let paths: Vec<String> =
        env.rows("set-sheets/sheets.csv").into_iter().map(|r| r["path"].clone()).collect();
    assert_eq!(paths, ["val/a/leak.jpg", "train/a/2.png"]);
    let flat = Env::new();
    flat.write("set/0.png", &png(30, 20, 1));
    assert!(flat.refused(&["sheet", "set", "--pairs", "val-train"]).contains("prep split"));
}

#[test]
fn the_page_holds_the_same_cells_and_a_workspace_keeps_its_sheets() {
    let env = Env::new();
    two_classes(&env);
    env.ok(&["sheet", "photos", "--format", "html"]);
    let page = fs::read_to_string(env.path("photos-sheets/sheets.html")).unwrap();
    let rows = env.rows("photos-sheets/sheets.csv");
    assert!(
        rows.len() == 13
            && rows.iter().all(|row| page.contains(&row["path"]) && row["sheet"] == "sheets.html")
    );
    let links = ["src=\"http", "href=\"http", "url(http"];
    assert!(links.iter().all(|link| !page.contains(link)));
    env.ok(&["sheet", "photos", "--format", "html", "-o", "page.html", "-q"]);
    assert!(env.path("page.html").is_file());
    assert!(env.refused(&["sheet", "photos", "-o", "page.html"]).contains("--format html"));

    env.ok(&["shrink", "photos", "-o", "work", "--short-edge", "32"]);
    env.ok(&["sheet", "work", "--cell", "64"]);
    assert!(env.path("work/sheets/cat.jpg").is_file());
    env.ok(&["sheet", "work", "-n"]);
    // The sheets are no images of the workspace.
    assert!(env.ok(&["sheet", "work", "--cell", "64"]).stdout.contains("13 images"));
}

#[test]
fn a_font_that_is_none_and_sheets_that_are_too_large_are_refused() {
    let env = Env::new();
    two_classes(&env);
    env.write("font.ttf", b"no font");
    assert!(env.refused(&["sheet", "photos", "--font", "font.ttf"]).contains("no TrueType"));
    assert!(env.refused(&["sheet", "photos", "--font", "none.ttf"]).contains("reading the font"));
    assert!(env.refused(&["sheet", "photos", "--per-class", "30", "--cell", "2048"]).contains("--per-class"));
    assert_eq!(env.run(&["sheet", "photos", "--per-class", "0"]).code, Some(2));
    assert!(env.refused(&["sheet", "photos", "--caption", "nothing"]).contains("--caption"));
    assert!(!env.path("photos-sheets").exists());
}

#[test]
fn fixes_that_lie_in_the_set_are_no_label_table() {
    let env = Env::new();
    for (i, name) in ["cat/0.png", "cat/1.png", "dog/2.png"].iter().enumerate() {
        env.write(format!("set/{name}"), &png(40, 30, i as u32));
    }
    env.write("set/fixes.csv", b"path,action,label,was,note\ncat/0.png,relabel,dog,cat,\n");
    env.ok(&["apply", "set/fixes.csv", "set"]);
    let rows = env.rows("set/manifest.csv");
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().any(|r| r["path"] == "cat/0.png" && r["label"] == "dog"));
}

#[test]
fn a_folder_with_somebody_elses_sheets_csv_is_left_alone() {
    let env = Env::new();
    env.write("set/cat/0.png", &png(40, 30, 1));
    env.write("mine/sheets.csv", b"sheet,budget\nq1.jpg,1\n");
    env.write("mine/q1.jpg", b"mine");
    env.write("page.html", b"<!doctype html><title>mine</title>");
    let before = env.tree("mine");
    env.refused(&["sheet", "set", "-o", "mine"]);
    env.refused(&["sheet", "set", "--format", "html", "-o", "page.html"]);
    env.refused(&["sheet", "set", "--format", "html", "-o", "set/cat/x.html"]);
    assert_eq!(env.tree("mine"), before);
    // All of a class, however many that is.
    env.ok(&["sheet", "set", "--per-class", "4294967296", "-o", "many"]);
}

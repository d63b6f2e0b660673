//! What once went wrong, each test named by it.

use std::fs;

use crate::env::{Env, jpeg, png};

#[test]
fn a_row_that_points_outside_does_not_delete_the_file_that_it_names() {
    let env = Env::new();
    env.write("data/a.jpg", &jpeg(200, 150, 1));
    let precious = env.write("precious/1.jpg", &jpeg(200, 150, 2));
    env.write("precious/2.jpg", &jpeg(200, 150, 3));
    let rows = format!("path,label\na.jpg,x\n{},y\n../precious/2.jpg,y\n", precious.display());
    env.write("data/labels.csv", rows.as_bytes());
    let before = env.tree("precious");
    env.ok(&["shrink", "data", "-o", "out"]);
    assert_eq!(env.tree("precious"), before);
    let rows = env.rows("out/manifest.csv");
    assert_eq!(rows.iter().filter(|r| r["fault"].starts_with("outside_root")).count(), 2);

    // Allowed, they get copies of their own inside the workspace; taken out again, only those copies go.
    env.ok(&["shrink", "data", "-o", "out", "--allow-outside", "--short-edge", "64"]);
    assert_eq!(env.tree("precious"), before);
    assert_eq!(env.tree("out/images").len(), 3);
    env.write("data/labels.csv", b"path,label\na.jpg,x\n");
    env.ok(&["shrink", "data", "-o", "out", "--allow-outside", "--short-edge", "64"]);
    assert_eq!(env.tree("precious"), before);
    assert_eq!(env.tree("out/images").len(), 1);
}

#[test]
fn a_link_inside_the_workspace_does_not_lead_copies_into_the_sources() {
    let env = Env::new();
    env.write("src/c0/1.jpg", &jpeg(300, 200, 1));
    env.ok(&["shrink", "src", "-o", "z", "--short-edge", "64"]);
    fs::remove_dir_all(env.path("z/images/c0")).unwrap();
    std::os::unix::fs::symlink(env.path("src/c0"), env.path("z/images/c0")).unwrap();
    let before = env.tree("src");
    let said = env.refused(&["shrink", "src", "-o", "z", "--short-edge", "64"]);
    assert!(said.contains("symbolic link"), "{said}");
    assert_eq!(env.tree("src"), before);
}

#[test]
fn a_nul_in_a_path_cell_is_one_row_and_not_the_end_of_the_run() {
    let env = Env::new();
    env.write("d/a.jpg", &jpeg(100, 80, 1));
    env.write("d/labels.csv", b"path,label\na.jpg,x\nb\0.jpg,y\n");
    env.ok(&["shrink", "d", "-o", "o"]);
    assert_eq!(env.rows("o/manifest.csv").len(), 2);
}

/// `jpeg` without its segments of this kind.
fn without(jpeg: &[u8], marker: u8) -> Vec<u8> {
    let mut out = jpeg[..2].to_vec();
    let mut at = 2;
    while jpeg[at + 1] != 0xda {
        let length = 2 + usize::from(jpeg[at + 2]) * 256 + usize::from(jpeg[at + 3]);
        if jpeg[at + 1] != marker {
            out.extend_from_slice(&jpeg[at..at + length]);
        }
        at += length;
    }
    out.extend_from_slice(&jpeg[at..]);
    out
}

#[test]
fn a_jpeg_without_tables_is_not_decoded_with_its_neighbours() {
    let env = Env::new();
    let picture = jpeg(160, 120, 1);
    env.write("in/a_good.jpg", &picture);
    env.write("in/b_no_dqt.jpg", &without(&picture, 0xdb));
    env.write("in/c_no_dht.jpg", &without(&picture, 0xc4));
    let status = |args: &[&str]| -> Vec<String> {
        env.ok(args);
        env.rows(format!("{}/manifest.csv", args[3])).iter().map(|r| r["status"].clone()).collect()
    };
    let one = status(&["shrink", "in", "-o", "one", "-j", "1", "--no-resize", "--format", "png"]);
    let two = status(&["shrink", "in", "-o", "two", "-j", "3", "--no-resize", "--format", "png"]);
    assert_eq!(one, two);
    assert_eq!(one[..2], ["ok", "bad"]);
}

#[test]
fn a_webp_that_is_shorter_than_it_says_is_truncated() {
    let env = Env::new();
    env.write("in/a/0.png", &png(200, 150, 1));
    env.ok(&["shrink", "in", "-o", "webp", "--format", "webp"]);
    let whole = fs::read(env.path("webp/images/a/0.webp")).unwrap();
    env.write("cut/a/0.webp", &whole[..whole.len() - 2]);
    env.write("cut/a/1.webp", &whole);
    env.ok(&["shrink", "cut", "-o", "out"]);
    let rows = env.rows("out/manifest.csv");
    assert_eq!((rows[0]["status"].as_str(), rows[1]["status"].as_str()), ("damaged", "ok"));
}

#[test]
fn a_copy_that_something_else_changed_is_made_anew() {
    let env = Env::new();
    env.write("in/a/0.jpg", &jpeg(300, 200, 1));
    env.ok(&["shrink", "in", "-o", "out", "--short-edge", "64"]);
    let copy = env.path("out/images/a/0.jpg");
    let good = fs::read(&copy).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    fs::write(&copy, bad).unwrap();
    env.ok(&["shrink", "in", "-o", "out", "--short-edge", "64"]);
    assert_eq!(fs::read(&copy).unwrap(), good);
}

#[test]
fn outputs_of_an_earlier_run_are_no_sources_of_the_folder_around_them() {
    let env = Env::new();
    env.write("set/dead/0.jpg", &jpeg(100, 80, 1));
    env.write("set/alive/1.jpg", &jpeg(100, 80, 2));
    env.ok(&["shrink", "set/dead", "--short-edge", "64"]);
    assert!(env.path("set/dead-64/manifest.csv").exists());
    let ran = env.ok(&["shrink", "set", "-o", "out"]);
    assert!(ran.stderr.contains("made by prep"), "{}", ran.stderr);
    assert_eq!(env.tree("out/images").len(), 2);
}

#[test]
fn variables_of_the_environment_are_options() {
    let env = Env::new();
    env.write("in/a/0.jpg", &jpeg(400, 300, 0));
    env.write("prep.toml", b"[shrink]\nshort-edge = 60\n");
    let width = |out: &str| env.rows(format!("{out}/manifest.csv"))[0]["width"].clone();
    let run = |out: &str, variable: (&str, &str), more: &[&str]| {
        let mut command = env.command(&[&["shrink", "in", "-o", out], more].concat());
        command.env(variable.0, variable.1).output().unwrap()
    };
    assert!(run("one", ("PREP_SHORT_EDGE", "90"), &[]).status.success());
    assert_eq!(width("one"), "120", "a variable wins over the file");
    assert!(run("two", ("PREP_SHORT_EDGE", "90"), &["--short-edge", "30"]).status.success());
    assert_eq!(width("two"), "40", "what is typed wins over a variable");
    let odd = run("three", ("PREP_SHORTEDGE", "90"), &[]);
    assert!(String::from_utf8_lossy(&odd.stderr).contains("PREP_SHORTEDGE is ignored"));
    assert_eq!(run("four", ("PREP_QUALITY", "abc"), &[]).status.code(), Some(2));
}

#[test]
fn two_sizes_at_once_are_a_mistake() {
    let env = Env::new();
    env.write("in/a/0.jpg", &jpeg(40, 30, 0));
    let said = env.refused(&["shrink", "in", "--short-edge", "256", "--cover=224x224"]);
    assert!(said.contains("--cover and --short-edge"), "{said}");
}

#[test]
fn a_one_hot_row_without_any_class_does_not_cost_the_others_their_labels() {
    let env = Env::new();
    for name in ["a", "b", "c"] {
        env.write(format!("d/{name}.jpg"), &jpeg(40, 30, 0));
    }
    env.write("d/labels.csv", b"image,cat,dog\na,1,0\nb,0,1\nc,0,0\n");
    env.ok(&["shrink", "d", "-o", "o"]);
    let labels: Vec<String> = env.rows("o/manifest.csv").iter().map(|r| r["label"].clone()).collect();
    assert_eq!(labels, ["cat", "dog", ""]);
}

#[test]
fn sampler_weights_do_not_replace_what_prep_did_not_write() {
    let env = Env::new();
    env.write("d/a.jpg", &jpeg(40, 30, 1));
    env.write("d/b.jpg", &jpeg(40, 30, 2));
    env.write("d/labels.csv", b"path,label\na.jpg,x\nb.jpg,y\n");
    env.write("d/notes.txt", b"mine");
    env.write("w.csv", b"path,label,weight\na.jpg,x,3\nb.jpg,y,1\n");
    let before = env.tree(".");
    for file in
        ["d/labels.csv", "d/a.jpg", "d/notes.txt", "d/manifest.csv", "d/manifest.prep.json", "d", "d/labels.csv/x"]
    {
        let said = env.refused(&["weights", "d", "--per-row", file]);
        assert!(said.contains(file) || file.ends_with('x'), "{said}");
        env.refused(&["weights", "d", "-n", "--per-row", "d/a.jpg"]);
        assert_eq!(env.tree("."), before, "{file}");
    }
    // Its own header does not make a table that is being read replaceable.
    let said = env.refused(&["weights", "w.csv", "--no-files", "--per-row", "w.csv"]);
    assert!(said.contains("the table that was read"), "{said}");
    env.ok(&["weights", "d", "--per-row", "rows.csv"]);
    env.ok(&["weights", "d", "--per-row", "rows.csv", "--method", "sqrt"]);
    assert_eq!(env.rows("rows.csv").len(), 2);
}

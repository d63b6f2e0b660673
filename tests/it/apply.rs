//! `prep apply`: marks become labels, exclusions and doubts of the manifest, or nothing happens at all.

use std::fs;

use crate::env::{Env, png};

fn set() -> Env {
    let env = Env::new();
    for (i, path) in ["cat/1.png", "cat/2.png", "cat/a (1);x.png", "dog/1.png", "dog/2.png"].iter().enumerate() {
        env.write(format!("set/{path}"), &png(24, 20 + i as u32, i as u32));
    }
    env
}

fn label(env: &Env, path: &str) -> String {
    let row = env.rows("set/manifest.csv").into_iter().find(|row| row["path"] == path);
    row.unwrap_or_else(|| panic!("no row {path}"))["label"].clone()
}

#[test]
fn marks_are_applied_stay_and_can_be_taken_back() {
    let env = set();
    let fixes = "path,action,label,was,note\n\
        cat/1.png,relabel,dog,cat,\n\"cat/a (1);x.png\",relabel,dog,cat,\"yes, a dog\"\n\
        dog/1.png,exclude,,dog,blurred\ndog/2.png,doubtful,,dog,a fox?\n";
    env.write("fixes.csv", fixes.as_bytes());
    let before = env.tree("set");
    let dry = env.run(&["apply", "fixes.csv", "set", "-n"]);
    assert!(dry.code == Some(0) && dry.stdout.contains("cat → dog"), "{}{}", dry.stdout, dry.stderr);
    assert_eq!(env.tree("set"), before);

    let ran = env.run(&["apply", "fixes.csv", "set"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("2 relabelled, 1 excluded, 1 doubtful"), "{}", ran.stdout);
    assert_eq!((label(&env, "cat/1.png"), label(&env, "cat/2.png")), ("dog".into(), "cat".into()));
    // Files of images are as they were.
    let images = |tree: Vec<(String, Vec<u8>)>| -> Vec<_> {
        tree.into_iter().filter(|(name, _)| !name.starts_with("manifest")).collect()
    };
    assert_eq!(images(env.tree("set")), before);

    // A second time changes nothing; a later command keeps what was decided.
    let again = env.run(&["apply", "fixes.csv", "set"]);
    assert!(again.stdout.contains("4 as it is already"), "{}{}", again.stdout, again.stderr);
    assert_eq!(env.run(&["split", "set", "--ratio", "train=0.5,val=0.5"]).code, Some(0));
    let rows = env.rows("set/manifest.csv");
    let row = |path: &str| rows.iter().find(|row| row["path"] == path).unwrap();
    assert_eq!((row("cat/1.png")["label"].as_str(), row("cat/a (1);x.png")["label"].as_str()), ("dog", "dog"));
    assert_eq!((row("dog/1.png")["status"].as_str(), row("dog/1.png")["split"].as_str()), ("excluded", ""));
    assert!(row("dog/2.png")["notes"].contains("doubtful(a fox?)"), "{rows:?}");

    // A label that is relabelled again, and back.
    env.write("more.csv", b"path,action,label,was\ncat/1.png,relabel,cat,dog\n");
    assert_eq!(env.run(&["apply", "more.csv", "set"]).code, Some(0));
    assert_eq!(label(&env, "cat/1.png"), "cat");
    for _ in 0..2 {
        assert_eq!(env.run(&["undo", "set"]).code, Some(0));
    }
    assert_eq!(label(&env, "cat/1.png"), "dog");
    assert_eq!(env.run(&["undo", "set"]).code, Some(0));
    assert!(!env.path("set/manifest.csv").exists());
}

#[test]
fn sheets_show_the_new_label_and_leave_junk_out() {
    let env = set();
    env.write("fixes.csv", b"path,action,label,was,note\ncat/1.png,relabel,dog,cat,\ndog/1.png,exclude,,dog,\n");
    assert_eq!(env.run(&["apply", "fixes.csv", "set"]).code, Some(0));
    env.ok(&["sheet", "set", "--cell", "64"]);
    let of = |label: &str| -> Vec<String> {
        let mut paths: Vec<String> =
            env.rows("set-sheets/sheets.csv").into_iter().filter(|r| r["label"] == label).map(|r| r["path"].clone()).collect();
        paths.sort();
        paths
    };
    assert_eq!(of("dog"), ["cat/1.png", "dog/2.png"]);
    assert_eq!(of("cat").len(), 2);
}

#[test]
fn a_workspace_keeps_the_new_label() {
    let env = set();
    env.ok(&["shrink", "set", "-o", "work", "--short-edge", "16"]);
    let path = env.rows("work/manifest.csv").into_iter().find(|r| r["label"] == "cat").unwrap()["path"].clone();
    env.write("fixes.csv", format!("path,action,label,was\n{path},relabel,dog,cat\n").as_bytes());
    env.ok(&["apply", "fixes.csv", "work"]);
    let row = env.rows("work/manifest.csv").into_iter().find(|r| r["path"] == path).unwrap();
    assert_eq!(row["label"], "dog");
    assert!(row["notes"].contains("relabelled(cat)"), "{row:?}");
    env.ok(&["undo", "work"]);
    let row = env.rows("work/manifest.csv").into_iter().find(|r| r["path"] == path).unwrap();
    assert_eq!(row["label"], "cat");
}

#[test]
fn what_cannot_be_meant_is_refused_and_nothing_is_written() {
    let env = set();
    let cases: [(&str, &str); 13] = [
        ("path,action,label\nnone.png,relabel,dog\n", "`none.png` is not in the manifest"),
        ("path,action,label\n../../etc/passwd,exclude,\n", "is not in the manifest"),
        ("path,action,label\ncat/1.png,relabel,fox\n", "--new-labels"),
        ("path,action,label\ncat/1.png,relabel,Dog\n", "`dog` is"),
        ("path,action,label,was\ncat/1.png,relabel,dog,bird\n", "somebody changed it since"),
        ("path,action,label,was\ncat/1.png,exclude,,\n", "had no label when it was marked"),
        ("path,action,label\ncat/1.png,relabel,\n", "needs the new label"),
        ("path,action,label\ncat/1.png,relabel,dog|\n", "needs the new label"),
        ("path,action,label\ncat/1.png,delete,\n", "`delete` is no action"),
        ("path,action,label\ncat/1.png,relabel,dog\ncat/1.png,exclude,\n", "line 2 wants something else"),
        ("path,label\ncat/1.png,dog\n", "no column `action`"),
        ("path,action,label\n,exclude,\n", "the path is empty"),
        ("path,action,label\ncat/1.png,exclude\n", "cells"),
    ];
    let before = env.tree("set");
    for (fixes, why) in cases {
        env.write("fixes.csv", fixes.as_bytes());
        let said = env.refused(&["apply", "fixes.csv", "set"]);
        assert!(said.contains(why), "{fixes:?}: {said}");
        assert_eq!(env.tree("set"), before, "{fixes:?}");
    }
    env.write("fixes.csv", b"\x1b[31m\xff\xfe\0,\0\0\"\n\"\"\"");
    let said = env.refused(&["apply", "fixes.csv", "set"]);
    assert!(!said.contains('\u{1b}'), "{said:?}");
    assert!(env.refused(&["apply", "gone.csv", "set"]).contains("gone.csv"));
}

#[test]
fn new_labels_are_taken_when_they_are_allowed() {
    let env = set();
    env.write("fixes.csv", "path,action,label,was\ncat/1.png,relabel,狐 \u{1b}[1m,cat\n".as_bytes());
    let ran = env.run(&["apply", "fixes.csv", "set", "--new-labels"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.contains('\u{1b}') && ran.stdout.contains("new: "), "{}", ran.stdout);
    let sidecar: serde_json::Value =
        serde_json::from_slice(&fs::read(env.path("set/manifest.prep.json")).unwrap()).unwrap();
    assert_eq!(sidecar["class_to_idx"].as_object().unwrap().len(), 3, "{sidecar}");
    assert_eq!(label(&env, "cat/1.png"), "狐 \u{1b}[1m");
}

//! `prep show`: what is known of one image.

use crate::env::{Env, jpeg, png};
use crate::pictures;

#[test]
fn a_lone_file_is_told_and_drawn_into_a_pipe_only_where_that_is_typed() {
    let env = Env::new();
    env.write("photo.jpg", &jpeg(120, 80, 1));
    let ran = env.ok(&["show", "photo.jpg"]);
    assert!(ran.stdout.contains("120×80 jpeg") && ran.stdout.contains("brightness"), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
    let set = env.command(&["show", "photo.jpg"]).env("PREP_DRAW", "kitty").output().unwrap();
    assert!(!set.stdout.contains(&0x1b), "a variable is about terminals");
    for how in ["--draw=kitty", "--draw=sixel", "--draw=blocks", "--draw=iterm"] {
        let ran = env.ok(&["show", "photo.jpg", how]);
        assert!(
            ran.stdout.contains('\u{1b}') && ran.stdout.contains("120×80 jpeg"),
            "{how}: {:?}",
            ran.stdout
        );
    }
    assert!(!env.ok(&["show", "photo.jpg", "--draw=auto"]).stdout.contains('\u{1b}'));
    let ran = env.ok(&["show", "photo.jpg", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&document["images"][0]["width"], &document["images"][0]["status"]),
        (&120.into(), &"ok".into())
    );
}

#[test]
fn a_member_of_a_data_set_has_a_label_a_split_and_findings() {
    let env = Env::new();
    for i in 0..4 {
        env.write(format!("set/train/cat/{i}.png"), &png(40, 30, i));
    }
    env.write("set/val/dog/bad.jpg", b"<html>");
    let ran = env.ok(&["show", "train/cat/2.png", "val/dog/bad.jpg", "--in", "set"]);
    for word in ["label", "cat", "split", "train", "not_an_image", "F002"] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
    // Files by where they lie, too.
    assert!(env.ok(&["show", "set/train/cat/2.png", "--in", "set"]).stdout.contains("cat"));
}

#[test]
fn neighbours_are_told_where_an_audit_has_looked() {
    let env = Env::new();
    for i in 0..4 {
        let picture = pictures::picture(96, 96, i * 17);
        env.write(format!("set/cat/{i}.png"), &pictures::lossless(&picture, image::ImageFormat::Png));
    }
    let picture = pictures::picture(96, 96, 17);
    env.write("set/dog/copy.jpg", &pictures::jpeg(&picture, pictures::BASELINE));
    // The cache keeps nothing of files that changed a moment ago.
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    for (name, _) in env.tree("set") {
        std::fs::File::options()
            .write(true)
            .open(env.path("set").join(name))
            .unwrap()
            .set_modified(old)
            .unwrap();
    }
    env.run(&["audit", "set", "--fail-on", "never"]);
    let ran = env.ok(&["show", "set/cat/1.png"]);
    assert!(ran.stdout.contains("like it") && ran.stdout.contains("dog/copy.jpg (dog)"), "{}", ran.stdout);
    assert!(ran.stdout.contains("D007"), "{}", ran.stdout);
    let sheet = env.ok(&["sheet", "set", "--cell", "64"]);
    assert!(sheet.stdout.contains("2 sheets"), "{}", sheet.stdout);
    // An earlier audit frames what it found.
    let rows = env.rows("set-sheets/sheets.csv");
    assert!(
        rows.iter().any(|row| row["path"] == "cat/1.png" && row["findings"].contains("D007")),
        "{rows:?}"
    );
}

#[test]
fn what_is_no_image_is_refused_with_a_sentence() {
    let env = Env::new();
    env.write("set/a/1.png", &png(10, 10, 1));
    assert!(env.refused(&["show", "gone.jpg"]).contains("gone.jpg"));
    assert!(env.refused(&["show", "set"]).contains("prep sheet"));
    assert!(env.refused(&["show", "nothing.png", "--in", "set"]).contains("no image of set"));
    assert_eq!(env.run(&["show"]).code, Some(2));
}

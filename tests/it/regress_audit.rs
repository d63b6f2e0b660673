//! What a newcomer and a breaker once saw of audit, its lists, and folders that prep wrote; each test named by it.

use std::fs;

use crate::audit::settle;
use crate::env::{Env, jpeg, png};

/// Two classes of three pictures in a folder `d`.
fn classes() -> Env {
    let env = Env::new();
    for at in 0..6_u32 {
        env.write(format!("d/{}/{at}.jpg", ["cat", "dog"][at as usize % 2]), &jpeg(64, 48, at));
    }
    env
}

/// The paths that the manifest of `d` has as excluded.
fn excluded(env: &Env) -> Vec<String> {
    let rows = env.rows("d/manifest.csv");
    rows.iter().filter(|row| row["status"] == "excluded").map(|row| row["path"].clone()).collect()
}

#[test]
fn what_was_marked_to_be_relabelled_or_doubted_was_excluded_too() {
    let env = classes();
    let fixes = "path,action,label\ncat/0.jpg,relabel,dog\ncat/2.jpg,exclude,\ndog/1.jpg,doubtful,\n";
    env.write("fixes.csv", fixes.as_bytes());
    let ran = env.ok(&["audit", "d", "--exclude", "fixes.csv", "--fail-on", "never"]);
    assert!(ran.stderr.contains("Excluded 1 image"), "{}", ran.stderr);
    assert_eq!(excluded(&env), ["cat/2.jpg"]);
    env.write("fixes.csv", b"path,action\ncat/0.jpg,keep\n");
    assert!(env.refused(&["audit", "d", "--exclude", "fixes.csv"]).contains("`keep` is no action"));
}

#[test]
fn the_line_of_a_table_that_names_no_image_was_one_too_small() {
    let env = classes();
    env.write("list.csv", b"path,note\ncat/0.jpg,a\ncat/none.jpg,b\n");
    assert!(env.refused(&["audit", "d", "--exclude", "list.csv"]).contains("line 3 of the list"));
    let mut noise = b"cat/0.jpg\n".to_vec();
    noise.extend(std::iter::repeat_n(b'x', 5_000));
    env.write("noise.txt", &noise);
    let said = env.refused(&["audit", "d", "--exclude", "noise.txt"]);
    assert!(said.contains("line 2 of the list") && said.len() < 400, "{} bytes", said.len());
}

#[test]
fn taking_copies_out_decided_which_of_two_labels_is_right() {
    let env = classes();
    for (from, to) in [("cat/0.jpg", "dog/copy.jpg"), ("cat/2.jpg", "cat/copy.jpg")] {
        fs::copy(env.path("d").join(from), env.path("d").join(to)).unwrap();
    }
    let ran = env.run(&["audit", "d", "--exclude", "D001"]);
    assert!(
        ran.stderr.contains("Excluded 1 image") && ran.stderr.contains("1 set of copies"),
        "{}",
        ran.stderr
    );
    assert_eq!((ran.code, excluded(&env)), (Some(1), vec!["cat/copy.jpg".to_owned()]));
    // Its own code takes all of it, and then there is nothing left to say.
    let ran = env.run(&["audit", "d", "--exclude", "D001,D004"]);
    assert!(!ran.stderr.contains("stay whole"), "{}", ran.stderr);
    assert_eq!(excluded(&env), ["cat/0.jpg", "cat/copy.jpg", "dog/copy.jpg"]);
}

#[test]
fn pictures_that_somebody_put_beside_copies_and_shards_vanished() {
    let env = classes();
    env.ok(&["shrink", "d/cat", "--short-edge", "32"]);
    env.ok(&["pack", "d/cat"]);
    let mine = ["cat-32/mine.png", "cat-32/more/mine.png", "cat-shards/mine.png", "cat-shards/more/mine.png"];
    for (seed, path) in (20..).zip(mine) {
        env.write(format!("d/{path}"), &png(40, 30, seed));
    }
    let ran = env.ok(&["audit", "d", "--facts", "facts.csv", "--fail-on", "never"]);
    assert!(ran.stderr.contains("2 made by prep (cat-32, cat-shards)"), "{}", ran.stderr);
    let rows = env.rows("facts.csv");
    let odd: Vec<&str> = rows.iter().map(|r| r["path"].as_str()).filter(|p| p.contains('-')).collect();
    assert_eq!((rows.len(), odd), (10, mine.to_vec()));
}

#[test]
fn a_code_with_a_slip_was_a_glob_that_no_file_has() {
    let env = classes();
    for wish in ["D0X", "D0011", "F0O3"] {
        let said = env.refused(&["audit", "d", "--exclude", wish]);
        assert!(said.contains("is no code of a finding and no file"), "{said}");
    }
    // What is there is no slip.
    env.write("d/D2x/7.jpg", &jpeg(64, 48, 30));
    let ran = env.ok(&["audit", "d", "--exclude", "D2x", "--fail-on", "never"]);
    assert!(ran.stderr.contains("left out: 1 not wanted"), "{}", ran.stderr);
    let ran = env.ok(&["audit", "d", "--exclude", "nobody*", "--fail-on", "never"]);
    assert!(ran.stderr.contains("--exclude nobody*: nothing here is called so"), "{}", ran.stderr);
}

#[test]
fn nothing_was_said_of_another_set_that_has_none_of_the_pictures() {
    let env = classes();
    env.write("other/1.jpg", &jpeg(64, 48, 50));
    let ran = env.ok(&["audit", "d", "--against", "other", "--fail-on", "never"]);
    assert!(ran.stderr.contains("also in other (1 image): 0 images"), "{}", ran.stderr);
}

#[test]
fn two_outputs_with_two_spellings_of_one_name_were_written_over_each_other() {
    let env = classes();
    let said = env.refused(&["audit", "d", "--facts", "x.csv", "--findings", "./x.csv"]);
    assert!(said.contains("named for two outputs"), "{said}");
    assert!(!env.path("x.csv").exists());
}

#[test]
fn what_is_known_of_a_missing_file_was_not_shown_and_excluded_was_said_twice() {
    let env = Env::new();
    env.write("d/a.jpg", &jpeg(64, 48, 1));
    env.write("d/b.jpg", &jpeg(64, 48, 2));
    env.write("d/labels.csv", b"image,label\na.jpg,x\nb.jpg,x\ngone.jpg,y\n");
    env.write("list.txt", b"a.jpg\n");
    env.ok(&["audit", "d", "--exclude", "list.txt", "--fail-on", "never"]);
    let told = env.ok(&["show", "d/gone.jpg", "d/a.jpg", "--draw", "none"]).stdout;
    assert!(told.contains("the table names it") && told.contains("excluded: listed"), "{told}");
    assert!(!told.contains("excluded: excluded"), "{told}");
    assert!(env.refused(&["show", "d/never.jpg"]).contains("is no image of"));
    assert!(env.refused(&["show", "never.jpg"]).contains("no such file"));
}

#[test]
fn a_label_of_three_hundred_digits_filled_the_screen() {
    let env = Env::new();
    let mut table = "image,y\n".to_owned();
    for at in 0..24_u32 {
        env.write(format!("d/{at:02}.jpg"), &jpeg(64, 48, at));
        let label = if at == 5 { "1e-320".to_owned() } else { format!("{at}.5") };
        table.push_str(&format!("{at:02}.jpg,{label}\n"));
    }
    env.write("d/labels.csv", table.as_bytes());
    let ran = env.ok(&["audit", "d", "--fail-on", "never"]);
    assert!(ran.stdout.contains("labels are numbers from 1e-320 to 23.5"), "{}", ran.stdout);
}

#[test]
fn a_limit_of_pixels_did_not_hold_for_what_the_cache_had() {
    let env = classes();
    settle();
    env.ok(&["audit", "d", "--fail-on", "never"]);
    let limited = ["audit", "d", "--max-pixels", "1000", "--select", "F"];
    let ran = env.run(&limited);
    assert!(
        ran.stdout.contains("F006") && ran.stdout.contains("3,072 pixels, the limit is 1,000"),
        "{}",
        ran.stdout
    );
    assert_eq!(ran.stdout, env.run(&[&limited[..], &["--no-cache"]].concat()).stdout);
    // And the cache is as it was.
    assert!(
        env.ok(&["audit", "d", "-v", "--fail-on", "never"]).stderr.contains("6 images were known, 0 decoded")
    );
}

#[test]
fn a_set_without_a_split_had_a_column_without_a_name() {
    let env = classes();
    env.ok(&["audit", "d", "--html=r.html", "--fail-on", "never"]);
    let page = fs::read_to_string(env.path("r.html")).unwrap();
    let head = page.split_once("<table class=classes>").unwrap().1.split_once("<tbody>").unwrap().0;
    assert_eq!(head.matches("<th scope").count(), 4, "{head}");
}

#[test]
fn sets_of_the_report_were_called_by_words_that_stand_nowhere_else() {
    let env = Env::new();
    env.write("d/a.jpg", &jpeg(320, 240, 4));
    env.write("d/b.png", &png(320, 240, 4));
    env.ok(&["audit", "d", "--html=r.html", "--fail-on", "never"]);
    let page = fs::read_to_string(env.path("r.html")).unwrap();
    assert!(page.contains("\"near-duplicate\"") && !page.contains("\"sure\""), "a set has another title");
}

#[test]
fn a_report_that_cannot_be_written_was_noticed_after_all_was_decoded() {
    let env = classes();
    for words in [["--html=d/cat/0.jpg/r.html"].as_slice(), &["--facts", "d/cat/0.jpg/x.csv"]] {
        let said = env.refused(&[&["audit", "d"], words].concat());
        assert!(said.contains("name another file") && !said.contains("-o"), "{said}");
        assert!(!env.path("cache").exists(), "{words:?}: something was decoded");
    }
}

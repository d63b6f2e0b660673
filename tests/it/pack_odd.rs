//! What people do to caches and to the inputs of caches, and what they then see.

use serde_json::Value;

use crate::env::{Env, jpeg, png};
use crate::pack::{manifest, read};

fn photos(env: &Env, name: &str, from: u32, to: u32) {
    for i in from..to {
        env.write(format!("{name}/{}/{i:03}.png", ["a", "b"][i as usize % 2]), &png(64, 48, i));
    }
}

/// Packs into small shards and gives the report.
fn pack(env: &Env, input: &str, out: &str, more: &[&str]) -> Value {
    let args =
        [&["pack", input, "-o", out, "--size", "48x64", "--shard-size", "64k", "--json"], more].concat();
    serde_json::from_str(&env.ok(&args).stdout).unwrap()
}

/// The files of a cache without the corner.
fn files(env: &Env, cache: &str) -> Vec<(String, Vec<u8>)> {
    let mut tree = env.tree(cache);
    tree.retain(|(name, _)| !name.starts_with(".prep/"));
    tree
}

#[test]
fn a_resumed_cache_takes_files_that_came_and_goes_without_those_that_went() {
    let env = Env::new();
    photos(&env, "in", 0, 62);
    let shards = pack(&env, "in", "out", &["--order", "source"])["shards"].as_u64().unwrap();
    assert!(shards > 8, "{shards}");
    // Behind all others: every full shard stays, and the last, of two samples, is filled up.
    photos(&env, "in", 999, 1000);
    let report = pack(&env, "in", "out", &["--order", "source", "--resume"]);
    assert_eq!(report["packed"]["all"], 63);
    assert_eq!(report["resumed_shards"], shards - 1, "{report}");
    pack(&env, "in", "fresh", &["--order", "source"]);
    assert!(files(&env, "out") == files(&env, "fresh"));
    // One goes from the middle: the shards before it stay.
    std::fs::remove_file(env.path("in/b/001.png")).unwrap();
    let report = pack(&env, "in", "out", &["--order", "source", "--resume"]);
    assert_eq!(report["packed"]["all"], 62);
    assert!(report["resumed_shards"].as_u64().unwrap() >= shards / 2 - 1, "{report}");
    pack(&env, "in", "fresh", &["--order", "source", "--force"]);
    assert!(files(&env, "out") == files(&env, "fresh"));
    // Another class in front gives every label another number: nothing stays.
    env.write("in/0/new.png", &png(64, 48, 7));
    let report = pack(&env, "in", "out", &["--order", "source", "--resume"]);
    assert_eq!((&report["packed"]["all"], &report["resumed_shards"]), (&63.into(), &0.into()));
    pack(&env, "in", "fresh", &["--order", "source", "--force"]);
    assert!(files(&env, "out") == files(&env, "fresh"));
    env.ok(&["verify", "out", "--read-data"]);
}

#[test]
fn a_run_that_was_stopped_goes_on_with_what_the_input_is_now() {
    let env = Env::new();
    photos(&env, "in", 0, 40);
    pack(&env, "in", "out", &["--order", "source"]);
    std::fs::remove_file(env.path("out/manifest.json")).unwrap();
    photos(&env, "in", 999, 1000);
    let report = pack(&env, "in", "out", &["--order", "source"]);
    assert!(report["resumed_shards"].as_u64().unwrap() >= 4, "{report}");
    pack(&env, "in", "fresh", &["--order", "source"]);
    assert!(files(&env, "out") == files(&env, "fresh"));
}

#[test]
fn files_are_not_unpacked_by_tables_that_were_altered() {
    let env = Env::new();
    photos(&env, "in", 0, 6);
    pack(&env, "in", "out", &[]);
    for (table, from, to) in [("ids.csv", ",a,", ",b,"), ("ids.csv", "a/00", "z/00"), ("rows.npy", "", "")] {
        let path = env.path("out/all").join(table);
        let whole = std::fs::read(&path).unwrap();
        let altered = if table == "ids.csv" {
            let text = String::from_utf8(whole.clone()).unwrap();
            assert!(text.contains(from));
            text.replacen(from, to, 1).into_bytes()
        } else {
            // The label of the last sample.
            let mut bytes = whole.clone();
            let at = bytes.len() - 20;
            bytes[at] ^= 1;
            bytes
        };
        std::fs::write(&path, altered).unwrap();
        let said = env.refused(&["unpack", "out", "-o", "files"]);
        assert!(said.contains(table) && said.contains("prep verify"), "{said}");
        assert!(!env.path("files").exists());
        std::fs::write(&path, whole).unwrap();
    }
    let ran = env.ok(&["unpack", "out", "-o", "files"]);
    assert!(!ran.stderr.contains("altered"), "{}", ran.stderr);
    // By a manifest that somebody edited they are, and it is said.
    let path = env.path("out/manifest.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\"groups\": 0", "\"groups\": 1", 1)).unwrap();
    let ran = env.ok(&["unpack", "out", "-o", "again"]);
    assert!(ran.stderr.contains("altered") && ran.stderr.contains("prep verify"), "{}", ran.stderr);
}

#[test]
fn where_nothing_can_be_packed_the_reasons_are_told() {
    let env = Env::new();
    let whole = jpeg(300, 200, 1);
    env.write("cut/a/1.jpg", &whole[..whole.len() / 2]);
    env.write("cut/a/2.jpg", &whole[..whole.len() / 3]);
    env.write("cut/b/3.jpg", b"");
    let said = env.refused(&["pack", "cut", "-o", "out"]);
    for word in ["none of the 3 rows", "truncated", "2 such rows", "a/1.jpg", "b/3.jpg"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    // Known before anything is opened.
    photos(&env, "in", 0, 3);
    env.ok(&["shrink", "in", "-o", "work", "-q"]);
    let table = std::fs::read_to_string(env.path("work/manifest.csv")).unwrap();
    let excluded = table.replace(",ok,,", ",excluded,excluded: blurred,");
    assert_ne!(table, excluded);
    std::fs::write(env.path("work/manifest.csv"), excluded).unwrap();
    let said = env.refused(&["pack", "work", "-o", "out"]);
    assert!(said.contains("none of the 3 rows") && said.contains("blurred"), "{said}");
    assert!(!env.path("out/manifest.json").exists());
}

#[test]
fn an_output_that_can_be_no_folder_is_told_as_what_it_is() {
    let env = Env::new();
    photos(&env, "in", 0, 2);
    pack(&env, "in", "cache", &[]);
    env.write("file", b"mine");
    std::os::unix::fs::symlink(env.path("nowhere"), env.path("dangling")).unwrap();
    for (out, word) in [
        ("file", "is a file"),
        ("file/below", "is a file"),
        ("dangling", "leads nowhere"),
        ("/dev/null", "no folder"),
    ] {
        for args in [["pack", "in", "-o", out], ["unpack", "cache", "-o", out]] {
            let said = env.refused(&args);
            assert!(said.contains(word) && said.contains("-o"), "{args:?}: {said}");
        }
    }
    assert_eq!(std::fs::read(env.path("file")).unwrap(), b"mine");
    assert!(!env.path("nowhere").exists());
}

#[test]
fn folds_become_parts_or_the_train_and_val_of_one_of_them() {
    let env = Env::new();
    photos(&env, "in", 0, 60);
    env.ok(&["split", "in", "--kfold", "3", "--ratio", "test=0.2", "-q"]);
    let fold: std::collections::HashMap<String, (String, String)> = env
        .rows("in/manifest.csv")
        .into_iter()
        .map(|row| (row["path"].clone(), (row["fold"].clone(), row["split"].clone())))
        .collect();
    let ran = env.ok(&["pack", "in", "-o", "folds", "--size", "48x64"]);
    assert!(ran.stderr.contains("--fold"), "{}", ran.stderr);
    let parts: Vec<String> =
        manifest(&env.path("folds"))["splits"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(parts, ["test", "fold0", "fold1", "fold2"]);
    for part in &parts {
        for seen in read(&env.path("folds"), part) {
            let (fold, split) = &fold[&seen.path];
            let want = if fold.is_empty() { split.clone() } else { format!("fold{fold}") };
            assert_eq!(want, *part);
        }
    }
    env.ok(&["pack", "in", "-o", "one", "--size", "48x64", "--fold", "1", "-q"]);
    let mut n = 0;
    for part in ["train", "val", "test"] {
        for seen in read(&env.path("one"), part) {
            n += 1;
            let want = match fold[&seen.path].0.as_str() {
                "" => "test",
                "1" => "val",
                _ => "train",
            };
            assert_eq!(want, part, "{}", seen.path);
        }
    }
    assert_eq!(n, 60);
    let said = env.refused(&["pack", "in", "-o", "none", "--fold", "7"]);
    assert!(said.contains("0 to 2"), "{said}");
    photos(&env, "plain", 0, 4);
    let said = env.refused(&["pack", "plain", "-o", "none", "--fold", "0"]);
    assert!(said.contains("--kfold"), "{said}");
}

/// Classes `a` and `b` by folders, a part of the split by the table.
fn table(env: &Env, n: u32, part: &dyn Fn(u32) -> &'static str) {
    let mut text = String::from("path,label,split\n");
    for i in 0..n {
        let class = ["a", "b"][i as usize % 2];
        text.push_str(&format!("{class}/{i:03}.png,{class},{}\n", part(i)));
    }
    env.write("in/labels.csv", text.as_bytes());
}

#[test]
fn parts_that_went_are_swept_away_though_the_run_that_should_have_was_stopped() {
    let env = Env::new();
    photos(&env, "in", 0, 20);
    table(&env, 20, &|i| if i < 10 { "train" } else { "old" });
    pack(&env, "in", "out", &[]);
    assert!(env.path("out/old/shard.00000.mds").exists());
    table(&env, 20, &|i| if i < 10 { "train" } else { "val" });
    pack(&env, "in", "fresh", &[]);
    // Stopped after it has taken the manifest away: a folder lies where a shard must go.
    for how in ["--resume", "--force"] {
        let stopper = env.path("out/val/shard.00000.mds");
        std::fs::create_dir_all(stopper.join("in the way")).unwrap();
        let args = ["pack", "in", "-o", "out", "--size", "48x64", "--shard-size", "64k", how];
        env.refused(&args);
        assert!(!env.path("out/manifest.json").exists());
        assert!(env.path("out/old/shard.00000.mds").exists());
        std::fs::remove_dir_all(&stopper).unwrap();
        // The same command continues, and so does it without the word.
        env.ok(if how == "--force" { &args } else { &args[..args.len() - 1] });
        assert!(files(&env, "out") == files(&env, "fresh"), "{how}");
        assert!(!env.path("out/old").exists(), "{how}");
        // For the second round.
        table(&env, 20, &|i| if i < 10 { "train" } else { "old" });
        pack(&env, "in", "out", &["--force"]);
        std::fs::remove_dir_all(env.path("out/val")).ok();
        table(&env, 20, &|i| if i < 10 { "train" } else { "val" });
    }
}

#[test]
fn a_part_none_of_whose_rows_is_usable_leaves_no_folder() {
    let env = Env::new();
    photos(&env, "in", 0, 4);
    env.write("in/a/000.png", b"no picture");
    table(&env, 4, &|i| if i == 0 { "val" } else { "train" });
    for layout in ["mds", "wds", "npy", "beton"] {
        pack(&env, "in", layout, &["--layout", layout]);
        assert!(
            env.path(layout).join("train").is_dir() && !env.path(layout).join("val").exists(),
            "{layout}"
        );
    }
}

#[test]
fn a_cache_whose_replacement_was_killed_before_the_first_shard_is_still_a_cache_of_ours() {
    let env = Env::new();
    photos(&env, "in", 0, 20);
    pack(&env, "in", "out", &[]);
    let whole = files(&env, "out");
    // What --force leaves when it is killed early: no manifest, a journal of its heading alone, and the old files.
    let journal = env.path("out/.prep/pack.journal");
    let text = std::fs::read_to_string(&journal).unwrap();
    env.write("out/.prep/pack.journal", format!("{}\n", text.lines().next().unwrap()).as_bytes());
    std::fs::remove_file(env.path("out/manifest.json")).unwrap();
    pack(&env, "in", "out", &["--force"]);
    assert!(files(&env, "out") == whole);
    // Killed between emptying the journal and beginning it anew: a heading of nothing, with its seal.
    env.write("out/.prep/pack.journal", b"af1349b9f5f9a1a6 \n");
    std::fs::remove_file(env.path("out/manifest.json")).unwrap();
    pack(&env, "in", "out", &["--resume"]);
    assert!(files(&env, "out") == whole);
    // But not where something else lies beside.
    env.write("out/.prep/pack.journal", format!("{}\n", text.lines().next().unwrap()).as_bytes());
    std::fs::remove_file(env.path("out/manifest.json")).unwrap();
    env.write("out/notes.txt", b"mine");
    let said = env.refused(&["pack", "in", "-o", "out", "--size", "48x64", "--force"]);
    assert!(said.contains("notes.txt"), "{said}");
}

#[test]
fn an_unpacking_that_was_stopped_is_continued_by_the_same_command_alone() {
    let env = Env::new();
    photos(&env, "in", 0, 6);
    env.write("in/b/zz.png", &crate::env::noise_png(200, 200));
    env.ok(&["pack", "in", "-o", "cache", "--store", "raw", "-q"]);
    env.ok(&["pack", "in", "-o", "other", "--store", "raw", "--seed", "1", "-q"]);
    env.ok(&["unpack", "cache", "-o", "whole", "-q"]);
    assert!(!env.path("whole/.prep").exists(), "a finished folder has nothing of prep's own");
    // No file may be larger than 16 KiB: the noise is, and the run ends there.
    let mut limited = std::process::Command::new("sh");
    limited.current_dir(env.path(".")).args(["-c", "ulimit -f 32; exec \"$0\" unpack cache -o files -j 1"]);
    limited.arg(env.command(&[""; 0]).get_program());
    assert!(!limited.output().unwrap().status.success());
    assert!(env.path("files").exists() && !env.path("files/labels.csv").exists());
    for args in
        [&["unpack", "other", "-o", "files"][..], &["unpack", "cache", "-o", "files", "--split", "all"]]
    {
        assert!(env.refused(args).contains("not empty"), "{args:?}");
    }
    let said = env.ok(&["unpack", "cache", "-o", "files", "-n"]).stdout;
    assert!(said.contains("7 files") && said.contains("stopped"), "{said}");
    env.ok(&["unpack", "cache", "-o", "files"]);
    assert!(env.tree("files") == env.tree("whole"));
    // Finished, it is a folder like any other; what would be refused is refused without writing too.
    for more in [&[][..], &["-n"]] {
        let said = env.refused(&[&["unpack", "cache", "-o", "files"], more].concat());
        assert!(said.contains("not empty"), "{said}");
    }
    assert!(env.refused(&["unpack", "cache", "-o", "x", "--split", "nope", "-n"]).contains("all"));
}

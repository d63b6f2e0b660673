//! What once went wrong with folders that prep wrote, with apply, sheet, audit, undo and cache, each test named by it.

use std::fs;

use crate::env::{Env, jpeg, png};

/// Two classes of three pictures in a folder `d`.
fn classes() -> Env {
    let env = Env::new();
    for at in 0..6_u32 {
        env.write(format!("d/{}/{at}.jpg", ["cat", "dog"][at as usize % 2]), &jpeg(64, 48, at));
    }
    env
}

/// The labels of the manifest of `d`, each once.
fn labels(env: &Env) -> Vec<String> {
    let mut labels: Vec<String> = env.rows("d/manifest.csv").iter().map(|r| r["label"].clone()).collect();
    labels.sort();
    labels.dedup();
    labels
}

#[test]
fn what_prep_writes_beside_a_class_does_not_become_a_class() {
    let env = classes();
    env.ok(&["sheet", "d/cat"]);
    env.ok(&["sheet", "d/dog", "--format", "html"]);
    env.ok(&["shrink", "d/cat", "--short-edge", "32"]);
    env.ok(&["pack", "d/cat"]);
    env.ok(&["split", "d/cat", "--export", "tree"]);
    env.ok(&["audit", "d/cat", "--cache-dir", "d/kept"]);
    env.ok(&["plan", "d/cat", "--cache-dir", "d/kept"]);
    // What other tools leave out when they copy a folder.
    fs::remove_dir_all(env.path("d/cat-32/.prep")).unwrap();
    fs::remove_dir_all(env.path("d/cat-shards/.prep")).unwrap();
    let made = ["cat-32", "cat-sheets", "cat-shards", "cat-split", "dog-sheets", "kept"];
    assert!(made.iter().all(|name| env.path("d").join(name).is_dir()), "{:?}", fs::read_dir(env.path("d")));
    let ran = env.ok(&["split", "d", "--allow-missing"]);
    assert!(ran.stderr.contains("6 made by prep (cat-32, cat-shards, cat-sheets, …)"), "{}", ran.stderr);
    assert_eq!((labels(&env), env.rows("d/manifest.csv").len()), (vec!["cat".into(), "dog".into()], 6));
}

#[test]
fn a_folder_of_the_users_with_a_name_of_preps_does_not_vanish() {
    let env = classes();
    env.write("d/cat/sheets.csv", b"sheet,price\nA4,3\n");
    env.write("d/dog/manifest.json", b"{\"kind\": \"album\"}");
    env.write("d/cow/.prep/notes.txt", b"bring hay\n");
    env.write("d/cow/1.jpg", &jpeg(64, 48, 9));
    env.write("d/prep-facts/1.jpg", &jpeg(64, 48, 10));
    env.write("d/hen/manifest.prep.json", b"{\"schema\": 1, \"version\": \"0\", \"hash\": \"\"}");
    env.write("d/hen/1.jpg", &jpeg(64, 48, 11));
    let ran = env.ok(&["split", "d", "--allow-missing"]);
    assert!(!ran.stderr.contains("made by prep"), "{}", ran.stderr);
    assert_eq!(labels(&env), ["cat", "cow", "dog", "hen", "prep-facts"]);
}

#[test]
fn a_picture_that_somebody_put_among_sheets_is_a_picture_of_the_set() {
    let env = classes();
    env.ok(&["sheet", "d/cat"]);
    env.write("d/cat-sheets/mine.png", &png(40, 30, 3));
    let ran = env.ok(&["split", "d", "--allow-missing"]);
    assert!(ran.stderr.contains("1 made by prep (cat-sheets)"), "{}", ran.stderr);
    let rows = env.rows("d/manifest.csv");
    let odd: Vec<&str> = rows.iter().map(|r| r["path"].as_str()).filter(|p| p.contains("sheets")).collect();
    assert_eq!((rows.len(), odd), (7, vec!["cat-sheets/mine.png"]));
    // Named itself, a folder of sheets is a folder of pictures.
    env.ok(&["stats", "d/cat-sheets"]);
}

#[test]
fn a_new_label_is_written_as_manifests_write_labels() {
    let env = classes();
    env.write("fixes.csv", b"path,action,label,was\ncat/0.jpg,relabel,dog|cat|dog,cat\n");
    env.ok(&["apply", "fixes.csv", "d"]);
    assert_eq!(labels(&env), ["cat", "cat|dog", "dog"]);
    // The other way round it is the same label, and so is what the file says that it was.
    env.write("fixes.csv", b"path,action,label,was\ncat/0.jpg,relabel,dog | cat,cat\n");
    let again = env.ok(&["apply", "fixes.csv", "d"]);
    assert!(again.stdout.contains("1 as it is already"), "{}", again.stdout);
    env.write("fixes.csv", b"path,action,label,was\ncat/0.jpg,relabel,cat,dog|cat\n");
    env.ok(&["apply", "fixes.csv", "d"]);
    assert_eq!(labels(&env), ["cat", "dog"]);
}

#[test]
fn paths_are_understood_as_people_and_spreadsheets_spell_them() {
    let env = classes();
    env.write("d/cat/=1+1.jpg", &jpeg(64, 48, 9));
    env.write("d/=odd/-2.jpg", &jpeg(64, 48, 10));
    // As sheets.csv and the page spell them.
    let fixes = "path,action,label,was\n./cat/0.jpg,exclude,,cat\ncat//=1+1.jpg,relabel,'=odd,cat\n\
        '=odd/-2.jpg,doubtful,,'=odd\ncat\\2.jpg,exclude,,\n";
    env.write("fixes.csv", fixes.replace(",,\n", ",,cat\n").as_bytes());
    env.ok(&["apply", "fixes.csv", "d"]);
    assert_eq!(labels(&env), ["=odd", "cat", "dog"]);
    let rows = env.rows("d/manifest.csv");
    let row = |path: &str| rows.iter().find(|row| row["path"] == path).unwrap();
    assert_eq!(
        (row("cat/0.jpg")["status"].as_str(), row("cat/2.jpg")["status"].as_str()),
        ("excluded", "excluded")
    );
    assert_eq!(
        (row("cat/=1+1.jpg")["label"].as_str(), row("=odd/-2.jpg")["notes"].as_str()),
        ("=odd", "doubtful")
    );
    // What could be two pictures is neither.
    env.write("d/'=odd/-2.jpg", &jpeg(64, 48, 12));
    env.write("fixes.csv", b"path,action\n'=odd/-2.jpg,exclude\n");
    assert!(env.refused(&["apply", "fixes.csv", "d"]).contains("two images"));
    env.write("list.txt", b"./cat/4.jpg\r\n");
    env.ok(&["audit", "d", "--exclude", "list.txt", "--fail-on", "never"]);
    assert!(env.rows("d/manifest.csv").iter().any(|r| r["path"] == "cat/4.jpg" && r["status"] == "excluded"));
}

#[test]
fn every_line_about_an_image_is_held_against_its_label() {
    let env = classes();
    env.write(
        "fixes.csv",
        b"path,action,label,was\ncat/0.jpg,relabel,dog,cat\n./cat/0.jpg,relabel,dog,bird\n",
    );
    let why = env.refused(&["apply", "fixes.csv", "d"]);
    assert!(why.contains("fixes.csv:3") && why.contains("had label `bird`"), "{why}");
}

#[test]
fn the_undo_that_apply_names_takes_the_change_back() {
    let env = classes();
    env.write("fixes.csv", b"path,action\ncat/0.jpg,exclude\n");
    for out in [None, Some("my list.csv")] {
        let mut words = vec!["apply", "fixes.csv", "d"];
        words.extend(out.map(|_| "-o"));
        words.extend(out);
        let ran = env.ok(&words);
        let named = ran.stderr.split("prep undo ").nth(1).unwrap().split(" takes").next().unwrap();
        assert_eq!(named, if out.is_some() { "'my list.csv'" } else { "d" });
        let manifest = out.unwrap_or("d/manifest.csv");
        assert!(env.path(manifest).exists());
        env.ok(&["undo", named.trim_matches('\'')]);
        assert!(!env.path(manifest).exists());
    }
}

#[test]
fn sheets_are_as_high_as_their_class_and_all_as_wide() {
    let env = Env::new();
    for (class, n) in [("many", 12), ("some", 4), ("one", 1)] {
        (0..n).for_each(|at| _ = env.write(format!("d/{class}/{at}.png"), &png(20, 20, at)));
    }
    fs::create_dir(env.path("d/none")).unwrap();
    let size = |class: &str| image::image_dimensions(env.path(format!("d-sheets/{class}.png"))).unwrap();
    env.ok(&["sheet", "d", "--cell", "64", "--format", "png", "--caption", "none"]);
    // Margins of 16, a header of 60, cells of 64 with 10 between.
    let wide = 2 * 16 + 3 * 64 + 2 * 10;
    let high = |rows: u32| 2 * 16 + 60 + rows * 64 + (rows - 1) * 10;
    for (class, rows) in [("many", 3), ("some", 2), ("one", 1), ("none", 1)] {
        assert_eq!(size(class), (wide, high(rows)), "{class}");
    }
    // Nobody has as many as were asked for: the largest class makes the square.
    env.ok(&["sheet", "d", "--cell", "64", "--format", "png", "--caption", "none", "--per-class", "400"]);
    assert_eq!(size("many"), (2 * 16 + 4 * 64 + 3 * 10, high(3)));
    env.ok(&["sheet", "d", "--cell", "64", "--format", "png", "--caption", "none", "--cols", "2"]);
    assert_eq!((size("many").0, size("some")), (2 * 16 + 2 * 64 + 10, (2 * 16 + 2 * 64 + 10, high(2))));
}

#[test]
fn two_columns_of_one_name_are_refused_by_every_command_that_reads_the_table() {
    let env = classes();
    let write = |name: &str, header: &str| {
        let rows =
            ["cat/0.jpg,cat,dog,x", "dog/1.jpg,dog,cat,y", "cat/2.jpg,cat,cat,x", "dog/3.jpg,dog,dog,y"];
        env.write(name, format!("{header}\n{}\n", rows.join("\n")).as_bytes());
    };
    write("d/labels.csv", "image,label,label,plant");
    for command in ["split", "audit", "sheet", "stats", "weights", "shrink", "plan", "pack"] {
        let why = env.refused(&[command, "d"]);
        let both = "d/labels.csv:1: columns 2 and 3 are both called `label`";
        assert!(why.contains(both), "{command}: {why}");
        env.refused(&[command, "d", "--label-col", "label"]);
        assert!(env.refused(&[command, "d/labels.csv"]).contains("both called `label`"), "{command}");
    }
    write("d/labels.csv", "path,label,path,plant");
    assert!(env.refused(&["split", "d"]).contains("columns 1 and 3 are both called `path`"));
    // Names that differ in case can be told apart by who types one.
    write("d/labels.csv", "image,label,Label,plant");
    assert!(env.refused(&["split", "d"]).contains("columns 2 and 3 are called `label` and `Label`"));
    for (typed, first) in [("label", "cat"), ("Label", "dog")] {
        env.ok(&["split", "d", "--label-col", typed, "-o", "m.csv", "--allow-missing"]);
        let rows = env.rows("m.csv");
        let row = rows.iter().find(|r| r["path"].ends_with("cat/0.jpg")).unwrap();
        assert_eq!(row.get("prep_label").unwrap_or(&row["label"]), first);
        fs::remove_file(env.path("m.csv")).unwrap();
    }
    // Columns of the user's that no command asks for may be called as they like.
    write("d/labels.csv", "image,label,note,note");
    env.ok(&["split", "d", "-n"]);
    assert!(env.refused(&["split", "d", "--group-by", "note"]).contains("2 columns"));
    assert!(env.refused(&["split", "d", "--time", "note"]).contains("2 columns"));
    assert!(env.refused(&["sheet", "d", "--by", "note"]).contains("both called `note`"));
    // So may not those of a manifest and of fixes.
    fs::remove_file(env.path("d/labels.csv")).unwrap();
    env.ok(&["split", "d"]);
    let text = fs::read_to_string(env.path("d/manifest.csv")).unwrap();
    let (head, rest) = text.split_once('\n').unwrap();
    let wider: String = rest.lines().map(|line| format!("{line},dog\n")).collect();
    env.write("twice.csv", format!("{head},label\n{wider}").as_bytes());
    for words in [&["stats", "twice.csv"][..], &["split", "d", "--keep", "twice.csv"]] {
        assert!(env.refused(words).contains("both called `label`"), "{words:?}");
    }
    env.write("fixes.csv", b"path,action,label,label\ncat/0.jpg,relabel,dog,cat\n");
    assert!(env.refused(&["apply", "fixes.csv", "d"]).contains("both called `label`"));
}

#[test]
fn a_long_search_for_a_split_tells_how_far_it_is_and_can_be_interrupted() {
    use std::io::{BufRead, BufReader};
    let env = Env::new();
    // Groups of many sizes that mix classes, so that no split comes near to the bound soon.
    let mut table = String::from("image,label,plant\n");
    for at in 0..30_000_u32 {
        let (mixed, plant) = (at.wrapping_mul(2_654_435_761) >> 7, at.isqrt() * 3 / 2);
        table.push_str(&format!("{at}.jpg,c{},p{plant}\n", mixed % 97 % (1 + plant % 40)));
    }
    env.write("t.csv", table.as_bytes());
    let words = ["split", "t.csv", "--no-files", "--stratify", "--group-by", "plant", "--kfold", "9"];
    let mut command = env.command(&[&words[..], &["--allow-missing", "--progress", "json"]].concat());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut told = 0;
    for line in lines.filter(|line| line.contains("\"doing\"")) {
        let said: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(said["done"].as_u64().unwrap() <= 1000 && said["total"] == 1000, "{said}");
        told += 1;
        // A second signal would end it at once.
        if told == 1 {
            let id = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(told >= 1 && !env.path("t.manifest.csv").exists(), "{told}");
}

/// What prep would keep of files that are older than a moment.
fn age(env: &Env, name: &str) {
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    for (file, _) in env.tree(name) {
        let file = fs::File::options().write(true).open(env.path(name).join(file)).unwrap();
        file.set_modified(old).unwrap();
    }
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text:?}"))
}

#[test]
fn the_cache_of_one_set_is_cleared_without_the_others() {
    let env = classes();
    for at in 0..4 {
        env.write(format!("other/a/{at}.jpg"), &jpeg(64, 48, 20 + at));
    }
    for set in ["d", "other"] {
        age(&env, set);
        env.ok(&["audit", set, "--fail-on", "never"]);
        env.ok(&["plan", set]);
    }
    let count = |words: &[&str]| {
        let told = json(&env.ok(&[&["cache", "--json"], words].concat()).stdout);
        (told["sets"].as_array().unwrap().len(), told["samples"].as_array().unwrap().len())
    };
    assert_eq!((count(&[]), count(&["d"]), count(&["."])), ((2, 2), (1, 1), (0, 0)));
    let before = env.tree("cache");
    let dry = env.ok(&["cache", "d", "--clear", "-n", "--json"]).stdout;
    assert!(json(&dry)["dry_run"] == true && json(&dry)["sets"][0]["images"] == 6, "{dry}");
    assert_eq!(env.tree("cache"), before);
    let ran = env.ok(&["cache", "d", "--clear"]);
    assert!(ran.stderr.contains("Removed 1 cache and 1 sample of prep plan"), "{}", ran.stderr);
    assert_eq!((count(&[]), count(&["d"])), ((1, 1), (0, 0)));
    // A set that is gone is still known by its name.
    fs::rename(env.path("other"), env.path("moved")).unwrap();
    assert!(env.ok(&["cache"]).stdout.contains("(no longer there)"));
    let ran = env.ok(&["cache", "other", "--clear", "--json"]);
    assert_eq!(json(&ran.stdout)["cleared"], true);
    assert_eq!(env.tree("cache"), []);
    assert!(env.refused(&["cache", "other", "--clear"]).contains("other"));
    // What a command does not use it does not take.
    for words in [["cache", "--glob", "*.jpg"], ["undo", "--label-col", "x"], ["cache", "--max-bad", "3"]] {
        assert_eq!(env.run(&words).code, Some(2), "{words:?}");
    }
}

#[test]
fn undo_tells_when_changes_were_made_also_as_json() {
    let env = classes();
    env.ok(&["split", "d"]);
    env.ok(&["weights", "d"]);
    let listed = env.ok(&["undo", "d", "--list"]).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].contains("prep weights") && lines[1].contains("prep split"), "{listed}");
    assert!(
        lines
            .iter()
            .all(|line| line.contains(" UTC  ") && (line.contains(" ago") || line.contains("just now")))
    );
    let told = json(&env.ok(&["undo", "d", "--list", "--json"]).stdout);
    let time = told["changes"][1]["time"].as_str().unwrap();
    assert!(time.len() == 20 && time.starts_with("20") && time.ends_with('Z'), "{told}");
    assert_eq!(told["changes"][1]["made_the_manifest"], true);
    let dry = json(&env.ok(&["undo", "d", "-n", "--json"]).stdout);
    assert_eq!((&dry["dry_run"], &dry["undone"]["command"]), (&true.into(), &"weights".into()));
    let done = json(&env.ok(&["undo", "d", "--json"]).stdout);
    assert_eq!((&done["dry_run"], &done["undone"]["command"]), (&false.into(), &"weights".into()));
    env.ok(&["undo", "d", "--json"]);
    assert!(!env.path("d/manifest.csv").exists());
    assert_eq!(json(&env.ok(&["undo", "d", "--list", "--json"]).stdout)["changes"], serde_json::json!([]));
    assert!(env.refused(&["undo", "nowhere", "--list"]).contains("nowhere"));
}

/// The findings of an audit of `words`.
fn findings(env: &Env, words: &[&str]) -> Vec<serde_json::Value> {
    let ran = env.ok(&[&["audit", "--json", "-q", "--fail-on", "never"], words].concat());
    json(&ran.stdout)["findings"].as_array().unwrap().clone()
}

#[test]
fn a_class_that_is_written_in_two_ways_is_one_finding_whatever_the_input() {
    let env = Env::new();
    let mut table = String::from("image,label\n");
    for at in 0..40_u32 {
        let label = ["Dog", "dog", "cat", "dog "][at as usize % 4];
        env.write(format!("t/{at:02}.png"), &png(24, 16, at));
        table.push_str(&format!("{at:02}.png,{label}\n"));
        env.write(format!("f/{label}/{at:02}.png"), &png(24, 16, at));
    }
    env.write("t/labels.csv", table.as_bytes());
    for input in ["t", "f"] {
        let found = findings(&env, &[input, "--select", "L005"]);
        let mut told: Vec<(&str, usize)> =
            found.iter().map(|f| (f["at"].as_str().unwrap(), f["paths"].as_array().unwrap().len())).collect();
        told.sort_unstable();
        assert_eq!(told, [("dog", 10), ("dog ", 10)], "{input}: {found:?}");
        assert!(found.iter().any(|f| f["detail"].as_str().unwrap().contains("`dog` (10) and `Dog` (10)")));
    }
    // Its images are not to be thrown away for it.
    assert!(env.refused(&["audit", "t", "--exclude", "L005"]).contains("how a class is written"));
    let told = json(&env.ok(&["audit", "t", "--exclude", "L", "--json", "-n", "--fail-on", "never"]).stdout);
    assert_eq!(told["excluded"], 0);
    assert_eq!(findings(&env, &["t", "--select", "L005"])[0]["line"], 3);
}

#[test]
fn labels_that_are_measured_are_no_classes_for_an_audit() {
    let env = Env::new();
    let mut table = String::from("image,target,split\n");
    for at in 0..120_u32 {
        env.write(format!("t/{at:03}.png"), &png(24, 16, at));
        // Values from 20 to 60, often the same; a word, a space, a code for unknown.
        let value = match at {
            7 => "n/a".to_owned(),
            8 => "-9999".to_owned(),
            9 => " 33.5".to_owned(),
            10 => "33.5".to_owned(),
            _ => format!("{:.1}", 20.0 + f64::from(at * 37 % 80) / 2.0),
        };
        table.push_str(&format!("{at:03}.png,{value},{}\n", if at % 5 == 0 { "val" } else { "train" }));
    }
    // Copies: one with another target, one with nearly the same.
    env.write("t/001.png", &png(24, 16, 2));
    env.write("t/003.png", &png(24, 16, 4));
    table = table.replace("\n003.png,75.5", "\n003.png,0").replace("\n001.png,38.5,", "\n001.png,57.55,");
    let of = |table: &str, name: &str| {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        line.split(',').nth(1).unwrap().to_owned()
    };
    let (three, four) = (of(&table, "003"), of(&table, "004"));
    table = table.replace(&format!("003.png,{three},"), &format!("003.png,{four}1,"));
    env.write("t/labels.csv", table.as_bytes());
    let found = findings(&env, &["t"]);
    let codes = |letter: &str| {
        let mut codes: Vec<&str> =
            found.iter().map(|f| f["code"].as_str().unwrap()).filter(|c| c.starts_with(letter)).collect();
        codes.dedup();
        codes
    };
    assert_eq!((codes("L"), codes("S"), codes("X")), (vec!["L008", "L018"], vec![], vec![]), "{found:?}");
    let path = |code: &str| found.iter().find(|f| f["code"] == code).unwrap()["paths"][0].clone();
    assert_eq!(
        (path("L008"), path("L018"), path("D004")),
        ("007.png".into(), "008.png".into(), "001.png".into())
    );
    assert_eq!(found.iter().filter(|f| f["code"] == "D004").count(), 1, "nearly the same is no conflict");
    let ran = env.ok(&["audit", "t", "--html=r.html", "--fail-on", "never"]);
    assert!(ran.stdout.contains("labels are numbers from -9999 to 5"), "{}", ran.stdout);
}

#[test]
fn what_excludes_is_validated_before_anything_is_decoded() {
    let env = classes();
    env.write("list.txt", b"cat/0.jpg\ncat/none.jpg\n");
    for (wish, why) in [("Q99", "`Q99` is no code"), ("D001,D007", "D007"), ("list.txt", "`cat/none.jpg`")] {
        let said = env.refused(&["audit", "d", "--exclude", wish]);
        assert!(said.contains(why), "{said}");
        assert!(!env.path("cache").exists(), "{wish}: something was decoded");
    }
    // A letter that is a class too is not guessed.
    env.write("d/S/1.jpg", &jpeg(64, 48, 9));
    assert!(env.refused(&["audit", "d", "--exclude", "S"]).contains("S/ for the folder"));
    let told = json(&env.ok(&["audit", "d", "--exclude", "S/", "--json", "--fail-on", "never"]).stdout);
    assert_eq!((&told["rows"], &told["excluded"]), (&6.into(), &0.into()));
    assert!(env.ok(&["audit", "--help"]).stdout.contains("CODES|LIST|GLOB"));
    assert!(env.ok(&["sheet", "--help"]).stdout.contains("--exclude <GLOB>"));
}

#[test]
fn a_manifest_that_another_command_wrote_meanwhile_is_not_written_over() {
    use imgprep::{home, source};
    let env = classes();
    env.ok(&["split", "d"]);
    // A long command has read the manifest …
    let (listing, before) = home::open(&env.path("d"), &source::Options::default(), None).unwrap();
    env.write("fixes.csv", b"path,action\ncat/0.jpg,exclude\n");
    env.ok(&["apply", "fixes.csv", "d"]);
    let applied = env.tree("d");
    // … and comes to its end.
    let why = before.rewrite(&listing, "slow", |_, _| {}, |_| {}).unwrap_err().to_string();
    assert!(why.contains("written by another command while this one was at work"), "{why}");
    assert_eq!(env.tree("d"), applied);
    let (listing, now) = home::open(&env.path("d"), &source::Options::default(), None).unwrap();
    now.rewrite(&listing, "slow", |_, _| {}, |_| {}).unwrap();
}

#[test]
fn a_command_that_changes_nothing_is_no_change_to_take_back() {
    let env = classes();
    // The second one says in the sidecar that nothing has moved.
    (0..4).for_each(|_| _ = env.ok(&["split", "d"]));
    env.ok(&["weights", "d"]);
    env.ok(&["weights", "d"]);
    let told = json(&env.ok(&["undo", "d", "--list", "--json"]).stdout);
    let commands: Vec<&str> =
        told["changes"].as_array().unwrap().iter().map(|c| c["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["weights", "split", "split"]);
}

#[test]
fn one_image_is_audited_and_shown_and_only_what_writes_asks_where() {
    let env = Env::new();
    env.write("p/x.jpg", &jpeg(64, 48, 1));
    env.ok(&["audit", "p/x.jpg"]);
    env.ok(&["sheet", "p/x.jpg", "-o", "s"]);
    env.ok(&["stats", "p/x.jpg", "--no-write"]);
    env.ok(&["stats", "p/x.jpg", "--emit", "torchvision"]);
    for words in [
        &["stats", "p/x.jpg"][..],
        &["audit", "p/x.jpg", "--exclude", "Q"],
        &["split", "p/x.jpg", "--allow-missing"],
    ] {
        assert!(env.refused(words).contains("say with -o where the manifest goes"), "{words:?}");
    }
    env.ok(&["split", "p/x.jpg", "--allow-missing", "-o", "m.csv"]);
}

#[test]
fn a_broken_link_is_one_finding() {
    let env = classes();
    std::os::unix::fs::symlink("nowhere", env.path("d/cat/x.jpg")).unwrap();
    std::os::unix::fs::symlink(".", env.path("d/cat/loop")).unwrap();
    let found = findings(&env, &["d", "--select", "F"]);
    let told: Vec<(&str, &str)> =
        found.iter().map(|f| (f["code"].as_str().unwrap(), f["paths"][0].as_str().unwrap())).collect();
    assert_eq!(told, [("F015", "cat/loop"), ("F015", "cat/x.jpg")]);
}

#[test]
fn what_an_audit_is_asked_is_understood_or_refused_before_the_work() {
    let env = classes();
    let refused: [(&[&str], &str); 6] = [
        (&["--against", "nowhere"], "nowhere"),
        (&["--exclude", "D001,*.png"], "options of their own"),
        (&["-o", "x.csv"], "that --exclude writes"),
        (&["--glob", "*.none"], "no images are left"),
        (&["--exclude", "gone.csv"], "no such list"),
        (&["--select", "F,,D"], "no code"),
    ];
    for (words, why) in refused {
        let said = env.refused(&[&["audit", "d"], words].concat());
        assert!(said.contains(why), "{words:?}: {said}");
        assert!(!env.path("cache").exists(), "{words:?}: something was decoded");
    }
    // A table names its rows in its column of paths.
    env.write("fixes.csv", b"note,path\nold,cat/0.jpg\n\"a, b\",./dog/1.jpg\n,\n");
    let ran = env.ok(&["audit", "d", "--exclude", "fixes.csv", "--fail-on", "never"]);
    assert!(ran.stderr.contains("Excluded 2 images"), "{}", ran.stderr);
}

#[test]
fn names_of_columns_that_cannot_be_meant_are_not_passed_over() {
    let env = classes();
    assert!(env.ok(&["split", "d", "--label-col", "kind"]).stderr.contains("--label-col kind is not used"));
    env.write("t/x.png", &png(20, 20, 1));
    let rows: String = (0..20).map(|at| format!("{at}.png,{},x\n", ["a", "b"][at % 2])).collect();
    env.write("t/labels.csv", format!("image,label,note\n{rows}").as_bytes());
    let why = env.refused(&["split", "t/labels.csv", "--label-col", "image", "--no-files"]);
    assert!(why.contains("the column of the paths"), "{why}");
    // A word that is also the name of a file makes no column of paths.
    let why = env.refused(&["audit", "t/labels.csv"]);
    assert!(why.contains("column `image` begins with `0.png`"), "{why}");
    env.write("t/twice.jsonl", b"{\"image\": \"x.png\", \"label\": \"a\", \"image\": \"y.png\"}\n");
    let why = env.refused(&["split", "t/twice.jsonl"]);
    assert!(why.contains("twice.jsonl:1") && why.contains("two values for `image`"), "{why}");
}

#[test]
fn what_a_killed_sheet_left_does_not_bar_its_folder() {
    let env = classes();
    env.write("d-sheets/.prep-tmp-1-0", b"half");
    env.ok(&["sheet", "d", "--cols", "2"]);
    assert!(env.path("d-sheets/cat.jpg").exists());
    assert!(!env.refused(&["sheet", "d", "--cols", "0"]).contains("pixels"));
}

#[test]
fn a_history_that_somebody_forged_writes_no_escapes_to_the_terminal() {
    let env = classes();
    env.ok(&["split", "d"]);
    let record = env.tree("state").into_iter().find(|(name, _)| name.ends_with("change.json")).unwrap();
    let forged = "{\"command\": \"\\u001b[31mred\", \"manifest\": \"/etc/passwd\", \"existed\": true, \"wrote\": \"\"}";
    env.write(format!("state/{}", record.0), forged.as_bytes());
    for words in [&["undo", "d"][..], &["undo", "d", "--list"], &["undo", "d", "--force"]] {
        let ran = env.run(words);
        assert!(
            !ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'),
            "{words:?}: {:?}",
            ran.stderr
        );
    }
}

#[test]
fn a_cache_is_cleared_also_where_the_manifest_is_broken() {
    let env = classes();
    age(&env, "d");
    env.ok(&["audit", "d", "--fail-on", "never"]);
    env.ok(&["split", "d"]);
    env.write("d/manifest.prep.json", b"{");
    let told = json(&env.ok(&["cache", "d", "--clear", "--json"]).stdout);
    assert_eq!(told["sets"].as_array().unwrap().len(), 1);
}

//! What once went wrong with split, stats and weights, each test named by it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use imgprep::decode::Chroma;
use imgprep::encode::{Encoder, Encoding};

use crate::env::{Env, jpeg, picture, png};

type Row = HashMap<String, String>;

/// 40 pictures of 13 plants in a folder `t` with a label table.
fn plants() -> Env {
    let env = Env::new();
    let mut table = String::from("image,label,plant_id\n");
    for at in 0..40_u32 {
        env.write(format!("t/i{at:04}.png"), &png(24, 16, at));
        let _ = writeln!(table, "i{at:04}.png,{},P{}", ["oak", "elm"][at as usize % 2], at % 13);
    }
    env.write("t/labels.csv", table.as_bytes());
    env
}

/// Twelve pictures of two classes in a folder `in`.
fn folder() -> Env {
    let env = Env::new();
    for at in 0..12_u32 {
        env.write(format!("in/{}/{at:02}.jpg", ["x", "y"][at as usize % 2]), &jpeg(48, 32, at));
    }
    env
}

fn parts(rows: &[Row]) -> BTreeMap<String, String> {
    let name = |row: &Row| row["path"].rsplit('/').next().unwrap().to_owned();
    rows.iter().map(|row| (name(row), row["split"].clone())).collect()
}

fn count(rows: &[Row], part: &str) -> usize {
    rows.iter().filter(|row| row["split"] == part).count()
}

fn sidecar(env: &Env, name: &str) -> serde_json::Value {
    serde_json::from_slice(&fs::read(env.path(name)).unwrap()).unwrap()
}

#[test]
fn a_part_of_the_input_does_not_tear_groups_from_what_is_left_alone() {
    let env = plants();
    let grouped = ["split", "t", "--stratify", "--group-by", "plant_id"];
    env.ok(&grouped);
    let before = env.rows("t/manifest.csv");
    let some = ["-g", "i000*", "--ratio", "train=.4,val=.6", "--reset"];
    let ran = env.ok(&[&grouped[..], &some].concat());
    assert!(
        ran.stderr.contains("10 groups with images beside what was asked for join them"),
        "{}",
        ran.stderr
    );
    let rows = env.rows("t/manifest.csv");
    assert_eq!(rows.len(), 40);
    let mut of_plant: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    rows.iter().for_each(|r| _ = of_plant.entry(&r["plant_id"]).or_default().insert(&r["split"]));
    assert!(of_plant.values().all(|parts| parts.len() == 1), "{of_plant:?}");
    assert_eq!(parts(&rows), parts(&before));
    let told = sidecar(&env, "t/manifest.prep.json");
    assert_eq!(told["split"]["images"], 40, "the description of the whole stays");
    assert_eq!(told["split"]["of_a_part"][0]["images"], 10);
    assert!(ran.stderr.contains("30 not wanted by --glob"), "each is counted once: {}", ran.stderr);
}

#[test]
fn a_manifest_elsewhere_keeps_its_split_and_is_itself_an_input() {
    let env = folder();
    env.ok(&["split", "in", "--stratify", "-o", "plan/m.csv"]);
    let before = parts(&env.rows("plan/m.csv"));
    assert_eq!(before.values().filter(|part| part.is_empty()).count(), 0);
    for command in ["stats", "weights"] {
        env.ok(&[command, "in", "-o", "plan/m.csv"]);
        assert_eq!(parts(&env.rows("plan/m.csv")), before, "after {command}");
    }
    let told = sidecar(&env, "plan/m.prep.json");
    assert_eq!((told["root"].as_str(), told["weights"]["images"].as_u64()), (Some("../in"), Some(10)));
    // More data: what was there stays.
    for at in 12..15_u32 {
        env.write(format!("in/x/{at}.jpg"), &jpeg(48, 32, at));
    }
    let ran = env.ok(&["split", "in", "--stratify", "-o", "plan/m.csv"]);
    assert!(ran.stderr.contains("continues"), "{}", ran.stderr);
    let after = parts(&env.rows("plan/m.csv"));
    let moved = before.iter().filter(|(name, part)| after[*name] != **part).count();
    assert_eq!((after.len(), moved), (15, 0));
    // The manifest alone leads to its images.
    let ran = env.ok(&["weights", "plan/m.csv"]);
    assert!(ran.stderr.contains("its images are in"), "{}", ran.stderr);
    env.ok(&["stats", "plan/m.csv"]);
    let rows = env.rows("plan/m.csv");
    assert_eq!(parts(&rows), after);
    assert!(rows.iter().all(|row| row["status"] == "ok" && row["path"].starts_with("../in/")));
    env.ok(&["shrink", "plan/m.csv", "-o", "small", "--short-edge", "16"]);
    assert_eq!(count(&env.rows("small/manifest.csv"), "train"), count(&rows, "train"));
    assert!(!env.path("in/manifest.csv").exists());
}

#[test]
fn what_is_next_is_said_of_the_manifest_that_was_written() {
    let env = folder();
    let ran = env.ok(&["split", "in", "--stratify", "-o", "plan/m.csv"]);
    assert!(
        ran.stdout.contains("Next: prep stats plan/m.csv, then prep weights plan/m.csv"),
        "{}",
        ran.stdout
    );
}

#[test]
fn hard_links_to_linked_images_are_not_dangling() {
    let env = Env::new();
    for at in 0..6_u32 {
        env.write(format!("store/{at}.jpg"), &jpeg(32, 24, at));
        let link = env.path(format!("in/{}/{at}.jpg", ["a", "b"][at as usize % 2]));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(format!("../../store/{at}.jpg"), link).unwrap();
    }
    env.ok(&["split", "in", "--stratify", "--ratio", "50,50", "--allow-missing", "--export", "tree"]);
    let files = env.tree("in-split");
    let images: Vec<_> = files.iter().filter(|(name, _)| name.ends_with(".jpg")).collect();
    assert_eq!(images.len(), 6);
    assert!(images.iter().all(|(_, bytes)| !bytes.is_empty()));
}

#[test]
fn a_plain_split_does_not_replace_a_grouped_one_unasked_nor_leave_its_groups() {
    let env = plants();
    env.ok(&["split", "t", "--stratify", "--group-by", "plant_id"]);
    let before = env.rows("t/manifest.csv");
    let said = env.refused(&["split", "t"]);
    assert!(said.contains("--reset") && said.contains("groups=plant_id"), "{said}");
    assert_eq!(env.rows("t/manifest.csv"), before);
    env.ok(&["split", "t", "--reset"]);
    assert!(
        env.rows("t/manifest.csv").iter().all(|row| row["group"].is_empty() && !row["plant_id"].is_empty())
    );
}

/// An official test set beside two other parts.
fn official() -> Env {
    let env = Env::new();
    for at in 0..30_u32 {
        let part = ["train", "train", "val", "train", "test"][at as usize % 5];
        env.write(format!("in/{part}/{}/{at:02}.png", ["a", "b"][at as usize % 2]), &png(16, 12, at));
    }
    env
}

#[test]
fn an_official_test_set_is_not_dealt_into_training() {
    let env = official();
    let ran = env.ok(&["split", "in", "--stratify"]);
    assert!(ran.stderr.contains("`test` keeps its 6 images"), "{}", ran.stderr);
    let rows = env.rows("in/manifest.csv");
    for row in &rows {
        assert_eq!(row["split"] == "test", row["path"].starts_with("test/"), "{row:?}");
    }
    assert_eq!(count(&rows, "train") + count(&rows, "val"), 24);
    // Again the same; folds leave it alone too; --reset deals all.
    env.ok(&["split", "in", "--stratify"]);
    assert_eq!(env.rows("in/manifest.csv"), rows);
    env.ok(&["split", "in", "--stratify", "--kfold", "3", "-o", "folds.csv"]);
    let folds = env.rows("folds.csv");
    let in_folds = |row: &&Row| !row["fold"].is_empty();
    assert!(folds.iter().filter(in_folds).all(|row| row["split"] == "train"), "{folds:?}");
    assert_eq!(folds.iter().filter(in_folds).count(), count(&rows, "train"));
    assert_eq!((count(&folds, "test"), count(&folds, "val")), (6, count(&rows, "val")));
    env.ok(&["split", "in", "--stratify", "--reset", "--ratio", "train=0.5,val=0.5"]);
    assert_eq!(count(&env.rows("in/manifest.csv"), "test"), 0);
}

#[test]
fn splitting_one_part_keeps_the_rows_of_the_others() {
    let env = official();
    env.ok(&["split", "in", "--split", "train", "--stratify", "--ratio", "train=0.5,dev=0.5"]);
    let rows = env.rows("in/manifest.csv");
    assert_eq!((rows.len(), count(&rows, "test"), count(&rows, "val")), (30, 6, 6));
    assert_eq!((count(&rows, "train"), count(&rows, "dev")), (9, 9));
}

#[test]
fn a_group_that_a_staying_part_has_too_is_not_torn_silently() {
    let env = official();
    let said = env.refused(&["split", "in", "--stratify", "--group-by", "regex:/(.)/"]);
    assert!(said.contains("the group would be torn") && said.contains("--reset"), "{said}");
    assert!(!env.path("in/manifest.csv").exists());
}

#[test]
fn group_keys_that_may_be_one_are_warned_of_and_null_words_are_none() {
    let env = Env::new();
    let mut table = String::from("path,label,plant\n");
    for at in 0..40 {
        let plant =
            ["P0", "p0", "nan", "7", "07", "NA"].get(at).map_or(format!("Q{}", at % 9), |p| (*p).into());
        let _ = writeln!(table, "{at}.jpg,{},{plant}", ["x", "y"][at % 2]);
    }
    env.write("t.csv", table.as_bytes());
    let ran = env.ok(&["split", "t.csv", "--no-files", "--stratify", "--group-by", "plant"]);
    assert!(ran.stderr.contains("`plant` has `P0` and `p0` (2 such pairs)"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`plant`: `NA` (1), `nan` (1) taken as no value"), "{}", ran.stderr);
}

#[test]
fn rows_of_a_fold_are_told_from_those_that_take_no_part() {
    let env = Env::new();
    let mut table = String::from("path,label,plant\n");
    for at in 0..40 {
        let label = if at < 36 { ["x", "y"][at % 2] } else { ["single", ""][at % 2] };
        let plant = if at < 36 { at / 2 } else { 99 + at % 2 };
        let _ = writeln!(table, "{at}.jpg,{label},P{plant}");
    }
    env.write("t.csv", table.as_bytes());
    env.ok(&["split", "t.csv", "--no-files", "--stratify", "--group-by", "plant", "--kfold", "3"]);
    let rows = env.rows("t.manifest.csv");
    let folds = |label: &str| -> BTreeSet<&str> {
        rows.iter().filter(|r| r["label"] == label).map(|r| r["fold"].as_str()).collect()
    };
    assert_eq!(folds("single"), BTreeSet::from(["train"]));
    assert_eq!(folds(""), BTreeSet::from([""]));
    // What fold 0 trains on: all others, and what is always trained on.
    let trained = rows.iter().filter(|r| !r["fold"].is_empty() && r["fold"] != "0").count();
    let ran = env.ok(&["weights", "t.manifest.csv", "--no-files", "--fold", "0", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((told["images"].as_u64(), told["fold"].as_u64()), (Some(trained as u64), Some(0)));
    assert!(ran.stderr.contains("not kept in the sidecar"), "{}", ran.stderr);
    assert!(env.refused(&["weights", "t.manifest.csv", "--no-files", "--fold", "7"]).contains("0 to 2"));
    let all = env.ok(&["weights", "t.manifest.csv", "--no-files", "--json"]).stdout;
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    assert_eq!(all["images"], 38, "what is without a fold takes no part");
}

#[test]
fn stats_of_a_fold_are_of_the_rows_that_it_trains_on() {
    let env = folder();
    env.ok(&["split", "in", "--stratify", "--kfold", "3"]);
    let told: serde_json::Value =
        serde_json::from_str(&env.ok(&["stats", "in", "--fold", "1", "--json"]).stdout).unwrap();
    assert_eq!((told["images"].as_u64(), told["rows"].as_str()), (Some(8), Some("training rows of fold 1")));
    assert!(sidecar(&env, "in/manifest.prep.json").get("stats").is_none());
}

#[test]
fn broken_pictures_that_stats_finds_are_told_to_the_next_commands() {
    let env = folder();
    env.write("in/x/cut.jpg", &jpeg(200, 150, 3)[..2000]);
    let counted = |env: &Env| -> u64 {
        let ran = env.ok(&["weights", "in", "--json"]);
        serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap()["images"].as_u64().unwrap()
    };
    assert_eq!(counted(&env), 13);
    let ran = env.ok(&["stats", "in"]);
    assert!(ran.stdout.contains("left out: 1 truncated"), "{}", ran.stdout);
    let rows = env.rows("in/manifest.csv");
    let cut = rows.iter().find(|r| r["path"].ends_with("cut.jpg")).unwrap();
    assert_eq!(cut["status"], "damaged");
    assert!(rows.iter().filter(|r| r["status"] == "ok").all(|r| r["width"] == "48" && r["height"] == "32"));
    assert_eq!(counted(&env), 12);
    env.ok(&["split", "in", "--stratify", "--export", "tree"]);
    assert!(env.tree("in-split").iter().all(|(name, _)| !name.contains("cut")));
}

#[test]
fn kept_folds_that_this_split_has_not_are_refused() {
    let env = folder();
    env.ok(&["split", "in", "--stratify", "--kfold", "4", "-o", "four.csv"]);
    let said =
        env.refused(&["split", "in", "--stratify", "--kfold", "3", "--keep", "four.csv", "-o", "three.csv"]);
    assert!(said.contains("its fold 3 is none of --kfold 3"), "{said}");
    let said = env.refused(&["split", "in", "--stratify", "--keep", "four.csv", "-o", "parts.csv"]);
    assert!(said.contains("add --kfold"), "{said}");
}

#[test]
fn the_originals_manifest_is_kept_in_the_workspace() {
    let env = folder();
    env.ok(&["shrink", "in", "-o", "small", "--short-edge", "16", "--format", "png"]);
    env.ok(&["split", "in", "--stratify", "--seed", "5"]);
    env.ok(&["split", "small", "--stratify", "--seed", "9", "--keep", "in/manifest.csv"]);
    let stem = |name: &str| name.split('.').next().unwrap().to_owned();
    let of = |manifest: &str| -> BTreeMap<String, String> {
        parts(&env.rows(manifest)).into_iter().map(|(name, part)| (stem(&name), part)).collect()
    };
    assert_eq!(of("small/manifest.csv"), of("in/manifest.csv"));
}

#[test]
fn what_a_resized_view_is_not_exact_about_is_said() {
    let env = folder();
    let ran = env.ok(&["stats", "in", "--at", "8"]);
    assert!(ran.stdout.contains("decoded at a reduced scale"), "{}", ran.stdout);
    assert_eq!(sidecar(&env, "in/manifest.prep.json")["stats"]["exact"], false);
    let ran = env.ok(&["stats", "in"]);
    assert!(ran.stdout.starts_with("12 images, 18,432 pixels: "), "{}", ran.stdout);
}

/// A table of numbers with a fraction, one of them `n/a`.
fn measured() -> Env {
    let env = Env::new();
    let mut table = String::from("path,label,depth\n");
    for at in 0..40 {
        let depth = if at == 7 { "n/a".into() } else { format!("\"{},5\"", at * at) };
        let _ = writeln!(table, "{at}.jpg,{},{depth}", at as f64 * 1.25);
    }
    env.write("t.csv", table.as_bytes());
    env
}

#[test]
fn one_missing_number_does_not_turn_numbers_into_classes() {
    let env = measured();
    let ran = env.ok(&["split", "t.csv", "--no-files", "--stratify=depth", "--bins", "4", "--allow-missing"]);
    assert!(ran.stderr.contains("depth is a number: cut into 4 bins"), "{}", ran.stderr);
    assert!(ran.stderr.contains("39 of 40 values of depth are numbers; line 9 says `n/a`"), "{}", ran.stderr);
}

#[test]
fn measurements_are_not_weighed_as_classes() {
    let said = measured().refused(&["weights", "t.csv", "--no-files"]);
    assert!(said.contains("that is regression"), "{said}");
}

#[test]
fn a_tree_names_files_so_that_loaders_see_them() {
    let env = Env::new();
    for at in 0..8_u32 {
        env.write(format!("in/{}/{at}", ["a", "b"][at as usize % 2]), &png(16, 12, at));
    }
    env.write("in/stray.png", &png(16, 12, 77));
    let ran = env.ok(&["split", "in", "--ratio", "50,50", "--export", "tree", "--allow-missing"]);
    let names: Vec<String> = env.tree("in-split").into_iter().map(|(name, _)| name).collect();
    let images: Vec<&String> = names.iter().filter(|name| !name.starts_with(".prep")).collect();
    assert_eq!(images.len(), 8, "{names:?}");
    assert!(images.iter().all(|name| name.ends_with(".png")), "{names:?}");
    assert!(ran.stderr.contains("1 image without a label: not in the tree"), "{}", ran.stderr);
}

#[test]
fn a_fifo_does_not_hang_and_a_second_signal_ends() {
    let env = folder();
    let fifo = env.path("pipe.csv");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    for args in [
        ["split", "pipe.csv"].as_slice(),
        &["split", "in", "--labels", "pipe.csv"],
        &["split", "in", "--keep", "pipe.csv"],
    ] {
        let said = env.refused(args);
        assert!(said.contains("a FIFO"), "{said}");
    }
    // A standard input that never ends is waited for until the second signal.
    let mut command = env.command(&["split", "in", "--files-from", "-"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        std::thread::sleep(Duration::from_millis(200));
    };
    assert!(matches!(status.code(), Some(130) | None), "{status:?}");
}

#[test]
fn a_list_does_not_take_over_the_folder() {
    let env = folder();
    env.write("some.txt", b"x/00.jpg\nx/02.jpg\ny/01.jpg\ny/03.jpg\n");
    env.ok(&["split", "in", "--files-from", "some.txt", "--stratify", "--ratio", "50,50"]);
    assert_eq!(env.rows("some.manifest.csv").len(), 4);
    assert!(!env.path("in/manifest.csv").exists());
    env.ok(&["split", "in", "--stratify"]);
    assert_eq!(env.rows("in/manifest.csv").len(), 12);
}

#[test]
fn training_is_called_so_in_any_case_for_stats_and_weights_alike() {
    let env = Env::new();
    let mut table = String::from("path,label,split\n");
    for at in 0..8_u32 {
        env.write(format!("t/{at}.png"), &png(16, 12, at));
        let _ =
            writeln!(table, "{at}.png,{},{}", ["x", "y"][at as usize % 2], ["TRAIN", "VAL"][at as usize / 6]);
    }
    env.write("t/labels.csv", table.as_bytes());
    for command in ["stats", "weights"] {
        let ran = env.ok(&[command, "t", "--json"]);
        let told: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(told["images"], 6, "{command}");
    }
}

#[test]
fn numbers_of_a_part_are_not_kept_as_those_of_the_set() {
    let env = folder();
    env.ok(&["weights", "in"]);
    env.ok(&["stats", "in"]);
    let before = sidecar(&env, "in/manifest.prep.json");
    for command in ["weights", "stats"] {
        let ran = env.ok(&[command, "in", "-g", "x/*"]);
        assert!(ran.stderr.contains("not kept in the sidecar"), "{}", ran.stderr);
    }
    let after = sidecar(&env, "in/manifest.prep.json");
    assert_eq!((&after["weights"], &after["stats"]), (&before["weights"], &before["stats"]));
    assert_eq!(env.rows("in/manifest.csv").len(), 12);
}

#[test]
fn more_bad_images_than_allowed_are_told_by_the_exit_code() {
    let env = folder();
    env.write("in/x/empty.jpg", b"");
    assert_eq!(env.run(&["split", "in", "--stratify", "--max-bad", "0"]).code, Some(1));
    let rows = env.rows("in/manifest.csv");
    assert!(rows.iter().any(|r| r["status"] == "bad" && r["fault"].starts_with("empty")));
    assert_eq!(env.run(&["weights", "in", "--max-bad", "0", "--split", "train"]).code, Some(0));
    env.ok(&["split", "in", "--stratify", "--max-bad", "1"]);
}

#[test]
fn options_that_say_nothing_are_mistakes() {
    let env = plants();
    for (args, word) in [
        (&["--group-by", ""][..], "a name is empty"),
        (&["--group-regex", "(?<k>i..)"], "add --group-by k"),
        (&["-o", "m.tsv"], "CSV file"),
        (&["-o", "x.png"], "CSV file"),
        (&["-o", "-"], "a manifest is a file"),
        (&["--export", "csv", "--export-dir", "t/inside"], "--export-dir"),
    ] {
        let said = env.refused(&[&["split", "t"], args].concat());
        assert!(said.contains(word), "{args:?}: {said}");
        assert!(!said.contains("with -o"), "{args:?}: {said}");
    }
    let said = env.refused(&["split", "--stratify", "plant_id"]);
    assert!(said.contains("write --stratify=plant_id"), "{said}");
    env.write("two.csv", b"path,label,p,p\na.jpg,x,1,2\nb.jpg,y,1,2\nc.jpg,x,3,2\nd.jpg,y,4,4\n");
    let said = env.refused(&["split", "two.csv", "--no-files", "--group-by", "p"]);
    assert!(said.contains("2 columns of this name"), "{said}");
}

#[test]
fn a_variable_that_says_yes_to_an_option_with_a_value_is_the_bare_option() {
    let env = plants();
    for (value, stratified) in [("1", true), ("true", true), ("", false), ("0", false)] {
        let mut command = env.command(&["split", "t", "--json", "--dry-run"]);
        let output = command.env("PREP_STRATIFY", value).output().unwrap();
        assert!(output.status.success(), "{value:?}: {}", String::from_utf8_lossy(&output.stderr));
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["heading"].as_str().unwrap().contains("stratify=label"), stratified, "{value:?}");
    }
}

#[test]
fn too_many_folds_are_answered_with_the_number_that_works() {
    let env = Env::new();
    let rows: String =
        (0..40).map(|at| format!("{at}.jpg,{}\n", if at < 3 { "rare" } else { "oak" })).collect();
    env.write("t.csv", format!("path,label\n{rows}").as_bytes());
    let said = env.refused(&["split", "t.csv", "--no-files", "--stratify", "--kfold", "5"]);
    assert!(said.contains("--kfold 3 can have all classes in every fold"), "{said}");
    env.ok(&["split", "t.csv", "--no-files", "--stratify", "--kfold", "3"]);
}

#[test]
fn a_cap_holds_the_mean_for_every_formula() {
    let env = Env::new();
    let rows: String = (0..100)
        .map(|at| format!("{at}.jpg,{}\n", ["a", "b", "c"][(at > 79) as usize + (at > 98) as usize]))
        .collect();
    env.write("t.csv", format!("path,label\n{rows}").as_bytes());
    for method in ["balanced", "inverse", "sqrt", "effective"] {
        let ran = env.ok(&[
            "weights",
            "t.csv",
            "--no-files",
            "--no-write",
            "--method",
            method,
            "--cap",
            "3",
            "--json",
        ]);
        let told: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let classes = told["classes"].as_array().unwrap();
        let mean: f64 =
            classes.iter().map(|c| c["images"].as_f64().unwrap() * c["weight"].as_f64().unwrap()).sum();
        assert!((mean / 100.0 - 1.0).abs() < 1e-12, "{method}: {mean}");
        assert!(classes.iter().all(|c| c["weight"].as_f64().unwrap() <= 3.0 + 1e-12));
    }
    assert!(!env.path("t.manifest.csv").exists(), "--no-write");
    let ran = env.ok(&["weights", "t.csv", "--no-files", "--no-write"]);
    assert!(ran.stderr.contains("is the label misspelt"), "{}", ran.stderr);
}

#[test]
fn weights_are_printed_where_nothing_can_be_written() {
    let env = folder();
    fs::create_dir(env.path("in/manifest.prep.json")).unwrap();
    let ran = env.run(&["weights", "in", "--emit", "torch", "-o", "/proc/none/m.csv"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("torch.tensor") && ran.stderr.contains("not kept"), "{}", ran.stderr);
}

#[test]
fn after_an_audit_stats_decodes_nothing_and_gives_the_same() {
    let env = folder();
    env.write("in/x/cut.jpg", &jpeg(200, 150, 3)[..2000]);
    let fresh = env.ok(&["stats", "in", "--no-cache", "--no-write", "--json"]).stdout;
    crate::audit::settle();
    env.run(&["audit", "in"]);
    let ran = env.ok(&["stats", "in", "--no-write", "--json", "-v"]);
    assert!(ran.stderr.contains("13 images were known, 0 decoded"), "{}", ran.stderr);
    assert_eq!(ran.stdout, fresh);
    let ran = env.ok(&["stats", "in", "--no-write", "--json", "-v", "--icc", "ignore"]);
    assert!(!ran.stderr.contains("were known"), "{}", ran.stderr);
}

#[test]
fn near_duplicates_are_on_one_side_and_copies_too() {
    let env = Env::new();
    let jpeg_of = |picture: &imgprep::pixels::Rgb8, quality: u8| {
        let mut bytes = Vec::new();
        let encoding = Encoding::Jpeg { quality, chroma: Chroma::Yuv420 };
        Encoder::default().encode(picture, encoding, &mut bytes).unwrap();
        bytes
    };
    for at in 0..12_u32 {
        let scene = scene(at);
        env.write(format!("in/a/{at:02}.jpg"), &jpeg_of(&scene, 92));
        env.write(format!("in/a/{at:02}_again.jpg"), &jpeg_of(&scene, 60));
    }
    fs::copy(env.path("in/a/00.jpg"), env.path("in/a/99.jpg")).unwrap();
    env.write("in/a/cut.jpg", &jpeg(200, 150, 3)[..2000]);
    for seed in ["0", "1", "2"] {
        let ran = env.ok(&["split", "in", "--group-dups", "--ratio", "50,50", "--seed", seed, "--reset"]);
        let parts = parts(&env.rows("in/manifest.csv"));
        assert_eq!(parts["cut.jpg"], "", "what does not decode is left out");
        for at in 0..12 {
            assert!(!parts[&format!("{at:02}.jpg")].is_empty());
            assert_eq!(
                parts[&format!("{at:02}.jpg")],
                parts[&format!("{at:02}_again.jpg")],
                "{}",
                ran.stderr
            );
        }
        assert_eq!(parts["00.jpg"], parts["99.jpg"]);
        assert!(ran.stderr.contains("pairs of pictures are near-duplicates"), "{}", ran.stderr);
    }
    let rows = env.rows("in/manifest.csv");
    let groups: BTreeSet<&str> = rows.iter().map(|r| r["group"].as_str()).filter(|g| !g.is_empty()).collect();
    assert_eq!(groups.len(), 12, "{groups:?}");
    // Exact ones alone need no decoding.
    env.ok(&["split", "in", "--group-dups=exact", "--ratio", "50,50", "--reset"]);
    let parts = parts(&env.rows("in/manifest.csv"));
    assert_eq!(parts["00.jpg"], parts["99.jpg"]);
    assert!(env.ok(&["audit", "--explain", "D008"]).stdout.contains("--group-dups=scene"));
}

#[test]
fn second_shots_of_a_scene_stay_together_when_asked() {
    let env = Env::new();
    for at in 0..8_u32 {
        for more in 0..5_usize {
            let mut shot = scene(at);
            let other = scene(at + 100);
            // Some of another picture laid over it: the more, the less it is the same.
            for y in 0..120 {
                let row = y * 160 * 3;
                shot.data[row..row + more * 16 * 3].copy_from_slice(&other.data[row..row + more * 16 * 3]);
            }
            let mut bytes = Vec::new();
            Encoder::default().encode(&shot, Encoding::Png, &mut bytes).unwrap();
            env.write(format!("in/a/{at}_{more}.png"), &bytes);
        }
    }
    let pairs = |how: &str| -> usize {
        let how = format!("--group-dups{how}");
        let ran = env.ok(&["split", "in", &how, "--ratio", "50,50", "--reset"]);
        let rows = env.rows("in/manifest.csv");
        let mut of_group: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for row in rows.iter().filter(|row| !row["group"].is_empty()) {
            of_group.entry(&row["group"]).or_default().insert(&row["split"]);
        }
        assert!(!of_group.is_empty() && of_group.values().all(|parts| parts.len() == 1), "{of_group:?}");
        let line = ran.stderr.lines().find(|line| line.contains("pairs of pictures are near-duplicates"));
        line.unwrap().split(' ').next().unwrap().parse().unwrap()
    };
    let (sure, all) = (pairs(""), pairs("=scene"));
    assert!(sure < all, "{sure} sure pairs of {all}");
}

/// A picture with few things in it, unlike those of other seeds.
fn scene(seed: u32) -> imgprep::pixels::Rgb8 {
    let mut picture = picture(160, 120, seed);
    let mut state = u64::from(seed) * 7919 + 1;
    let mut lot = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    picture.data.fill(128);
    for _ in 0..14 {
        let (left, top) = (lot(140) as usize, lot(100) as usize);
        let (wide, high) = (20 + lot(60) as usize, 20 + lot(50) as usize);
        let colour = [lot(256) as u8, lot(256) as u8, lot(256) as u8];
        for y in top..(top + high).min(120) {
            for x in left..(left + wide).min(160) {
                picture.data[(y * 160 + x) * 3..][..3].copy_from_slice(&colour);
            }
        }
    }
    picture
}

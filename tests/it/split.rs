//! split from outside: leaks, shares, growth, what is written where, what is refused.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;

use crate::env::{Env, jpeg};
use imgprep::split::lot::Stream;

/// A label table: rows of path, label, group.
struct Rows(Vec<(String, String, String)>);

impl Rows {
    /// Photos of plants: groups of 1 to 8 images, most of one class, some with a second.
    fn plants(n_groups: usize, seed: u64) -> Self {
        let mut lot = Stream::new(seed);
        let mut rows = Vec::new();
        for group in 0..n_groups {
            let class = (lot.below(10) * lot.below(10)) / 10;
            let mixed = lot.below(10) == 0;
            for photo in 0..1 + lot.below(8) {
                let class = if mixed && photo % 3 == 2 { (class + 1) % 9 } else { class };
                rows.push((format!("p{group:05}_{photo}.jpg"), format!("class{class}"), format!("P{group}")));
            }
        }
        Self(rows)
    }

    fn shuffled(mut self, seed: u64) -> Self {
        let mut lot = Stream::new(seed);
        for at in (1..self.0.len()).rev() {
            self.0.swap(at, lot.below(at + 1));
        }
        self
    }

    fn csv(&self) -> Vec<u8> {
        let mut text = String::from("path,label,plant_id\n");
        for (path, label, group) in &self.0 {
            let _ = writeln!(text, "{path},{label},{group}");
        }
        text.into_bytes()
    }
}

/// The part of each group; a group in two parts fails the test.
fn parts_of_groups(rows: &[HashMap<String, String>], group: &str, part: &str) -> BTreeMap<String, String> {
    let mut parts: BTreeMap<String, String> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row[group].is_empty()) {
        let before = parts.insert(row[group].clone(), row[part].clone());
        assert!(before.is_none_or(|b| b == row[part]), "{} is in two parts", row[group]);
    }
    assert!(!parts.is_empty(), "no groups were seen");
    parts
}

fn share(rows: &[HashMap<String, String>], label: &str, part: &str) -> f64 {
    let of: Vec<_> = rows.iter().filter(|r| r["label"] == label).collect();
    assert!(!of.is_empty(), "no rows of {label}");
    of.iter().filter(|r| r["split"] == part).count() as f64 / of.len() as f64
}

const BY_PLANT: [&str; 4] = ["--no-files", "--stratify", "--group-by", "plant_id"];

fn split<'a>(table: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["split", table][..], &BY_PLANT, more].concat()
}

#[test]
fn groups_are_whole_and_classes_have_their_shares() {
    let env = Env::new();
    env.write("t.csv", &Rows::plants(200, 1).csv());
    let ran = env.ok(&split("t.csv", &["--ratio", "train=0.7,val=0.2,test=0.1"]));
    assert!(ran.stdout.contains("t.manifest.csv"), "{}", ran.stdout);
    let rows = env.rows("t.manifest.csv");
    parts_of_groups(&rows, "plant_id", "split");
    let said: serde_json::Value =
        serde_json::from_slice(&std::fs::read(env.path("t.manifest.prep.json")).unwrap()).unwrap();
    let classes = said["split"]["rounds"][0]["classes"].as_array().unwrap();
    assert_eq!(classes.len(), 9);
    for class in classes {
        let (name, bound) = (class["name"].as_str().unwrap(), class["bound"].as_f64().unwrap());
        assert!(class["gap"].as_f64().unwrap() < bound * 2.0 + 0.05, "{class}");
        for part in ["train", "val", "test"] {
            let got = share(&rows, name, part);
            assert!((class["parts"][part]["share"].as_f64().unwrap() - got).abs() < 1e-9);
        }
    }
}

#[test]
fn the_order_of_rows_and_the_threads_change_no_byte() {
    let env = Env::new();
    let mut written = BTreeSet::new();
    for (at, seed) in [0, 1, 2].into_iter().enumerate() {
        let rows = if at == 0 { Rows::plants(40, 5) } else { Rows::plants(40, 5).shuffled(seed) };
        for threads in ["1", "8"] {
            let folder = format!("s{seed}-{threads}");
            env.write(format!("{folder}/t.csv"), &rows.csv());
            env.ok(&split(&format!("{folder}/t.csv"), &["-j", threads]));
            written.insert(std::fs::read(env.path(format!("{folder}/t.manifest.csv"))).unwrap());
        }
    }
    assert_eq!(written.len(), 1);
}

#[test]
fn a_split_is_golden() {
    let env = Env::new();
    env.write("t.csv", &Rows::plants(40, 3).csv());
    env.ok(&split("t.csv", &["--ratio", "8,1,1"]));
    let parts = parts_of_groups(&env.rows("t.manifest.csv"), "plant_id", "split");
    let letters: String = parts.values().map(|p| p.chars().nth(1).unwrap()).collect();
    assert_eq!(
        letters, "rrrarrarrrrrrrrrarrreaerrarerrrrerrrarrr",
        "the same data must not get another split in another release"
    );
    env.ok(&split("t.csv", &["--seed", "7", "--kfold", "3", "--reset"]));
    let folds: String =
        parts_of_groups(&env.rows("t.manifest.csv"), "plant_id", "fold").into_values().collect();
    assert_eq!(folds, "22202202100012train00110211012020210212train1011");
}

/// Old groups whose part is another now.
fn moved(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> usize {
    before.iter().filter(|(group, part)| after[*group] != **part).count()
}

#[test]
fn more_data_moves_few_groups_and_none_with_keep() {
    let env = Env::new();
    let all = Rows::plants(330, 9);
    let old = Rows(all.0.iter().filter(|(path, ..)| &path[1..6] < "00300").cloned().collect());
    env.write("t.csv", &old.csv());
    env.ok(&split("t.csv", &[]));
    let before = parts_of_groups(&env.rows("t.manifest.csv"), "plant_id", "split");
    std::fs::copy(env.path("t.manifest.csv"), env.path("old.csv")).unwrap();
    env.write("t.csv", &all.csv());
    let ran = env.ok(&split("t.csv", &[]));
    assert!(ran.stderr.contains("as few groups as possible move"), "{}", ran.stderr);
    let after = parts_of_groups(&env.rows("t.manifest.csv"), "plant_id", "split");
    assert!(
        after.len() > before.len() && moved(&before, &after) * 20 <= before.len(),
        "{}",
        moved(&before, &after)
    );
    let rows = env.rows("t.manifest.csv");
    assert!((share(&rows, "class1", "val") - 0.2).abs() < 0.01);
    env.ok(&split("t.csv", &["--keep", "old.csv", "-o", "kept.csv"]));
    let kept = parts_of_groups(&env.rows("kept.csv"), "plant_id", "split");
    assert_eq!(moved(&before, &kept), 0);
    assert!(kept.values().all(|part| !part.is_empty()));
    let fresh = env.ok(&split("t.csv", &["--reset"]));
    assert!(!fresh.stderr.contains("as few groups"), "{}", fresh.stderr);
}

#[test]
fn hash_looks_at_the_group_alone() {
    let env = Env::new();
    let all = Rows::plants(300, 2);
    let some = Rows(
        all.0
            .iter()
            .filter(|(path, ..)| !path.ends_with("3.jpg") && path.as_str() < "p00200")
            .cloned()
            .collect(),
    );
    env.write("all.csv", &all.csv());
    env.write("some.csv", &some.csv());
    for table in ["all.csv", "some.csv"] {
        env.ok(&["split", table, "--no-files", "--group-by", "plant_id", "--method", "hash"]);
    }
    let all = parts_of_groups(&env.rows("all.manifest.csv"), "plant_id", "split");
    let some = parts_of_groups(&env.rows("some.manifest.csv"), "plant_id", "split");
    assert_eq!(moved(&some, &all), 0);
    let val = all.values().filter(|part| *part == "val").count();
    assert!((30..90).contains(&val), "{val} of 300 groups in val");
}

/// A class of 20 plants, one of two and one of a single plant.
fn rare() -> Vec<u8> {
    let mut text = String::from("path,label,plant_id\n");
    for at in 0..60 {
        let _ = writeln!(text, "c{at}.jpg,common,C{}", at / 3);
    }
    text.push_str("r0.jpg,rare,R0\nr1.jpg,rare,R1\ns0.jpg,single,S0\ns1.jpg,single,S0\n");
    text.into_bytes()
}

#[test]
fn impossible_wishes_are_said() {
    let env = Env::new();
    env.write("t.csv", &rare());
    let ran = env.ok(&split("t.csv", &[]));
    assert!(ran.stderr.contains("`single`: one group, so all of it is in train"), "{}", ran.stderr);
    let rows = env.rows("t.manifest.csv");
    assert_eq!(share(&rows, "single", "train"), 1.0);
    assert_eq!(share(&rows, "rare", "val"), 0.5, "a class of two groups is on both sides");
    let said = env.refused(&split("t.csv", &["--ratio", "8,1,1", "--reset"]));
    assert!(said.contains("`rare` (2 groups) is not in") && said.contains("--allow-missing"), "{said}");
    let ran = env.ok(&split("t.csv", &["--ratio", "8,1,1", "--allow-missing", "--reset"]));
    assert!(ran.stderr.contains("`rare` (2 groups) is not in"), "{}", ran.stderr);
    assert!(share(&env.rows("t.manifest.csv"), "rare", "train") > 0.0);
}

#[test]
fn folds_hold_out_every_group_once() {
    let env = Env::new();
    env.write("t.csv", &Rows::plants(120, 4).csv());
    env.ok(&split("t.csv", &["--kfold", "5", "--ratio", "test=0.2", "--allow-missing"]));
    let rows = env.rows("t.manifest.csv");
    let folds = parts_of_groups(&rows, "plant_id", "fold");
    parts_of_groups(&rows, "plant_id", "split");
    let names: BTreeSet<&str> = folds.values().map(String::as_str).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["", "0", "1", "2", "3", "4"]);
    for row in &rows {
        assert_eq!(row["split"] == "test", row["fold"].is_empty(), "{row:?}");
        assert!(row["split"] == "test" || row["split"] == "train");
    }
    let test = rows.iter().filter(|r| r["split"] == "test").count() as f64 / rows.len() as f64;
    assert!((test - 0.2).abs() < 0.02, "{test}");
    for fold in 0..5 {
        let n = rows.iter().filter(|r| r["fold"] == fold.to_string()).count() as f64 / rows.len() as f64;
        assert!((n - 0.16).abs() < 0.02, "{n}");
    }
}

#[test]
fn a_class_of_one_group_is_in_no_fold() {
    let env = Env::new();
    env.write("t.csv", &rare());
    let said = env.refused(&split("t.csv", &["--kfold", "3"]));
    assert!(said.contains("`rare` (2 groups)"), "{said}");
    let ran = env.ok(&split("t.csv", &["--kfold", "2"]));
    assert!(ran.stderr.contains("`single`: one group, so it is in no fold"), "{}", ran.stderr);
    let rows = env.rows("t.manifest.csv");
    assert!(rows.iter().all(|r| (r["label"] == "single") == (r["fold"] == "train")));
}

#[test]
fn time_runs_from_train_to_test() {
    let env = Env::new();
    let mut text = String::from("path,label,plant_id,taken\n");
    for at in 0..100 {
        let day =
            if at == 50 { String::new() } else { format!("2024-{:02}-{:02}", 1 + at / 28, 1 + at % 28) };
        let _ = writeln!(text, "{:02}.jpg,c{},P{},{day}", 99 - at, at % 3, at / 4);
    }
    env.write("t.csv", text.as_bytes());
    let ran = env.ok(&[
        "split",
        "t.csv",
        "--no-files",
        "--time",
        "taken",
        "--group-by",
        "plant_id",
        "--ratio",
        "6,2,2",
    ]);
    assert!(ran.stdout.contains("1  without a time"), "{}", ran.stdout);
    let rows = env.rows("t.manifest.csv");
    parts_of_groups(
        &rows.iter().filter(|r| !r["split"].is_empty()).cloned().collect::<Vec<_>>(),
        "plant_id",
        "split",
    );
    let days =
        |part: &'static str| rows.iter().filter(move |r| r["split"] == part).map(|r| r["taken"].as_str());
    assert!(days("train").max() < days("val").min() && days("val").max() < days("test").min());
    assert!((15..=25).contains(&days("test").count()));
    env.write("t.csv", text.replace("2024-01-01", "1.1.2024").as_bytes());
    assert!(
        env.refused(&["split", "t.csv", "--no-files", "--time", "taken", "--reset"]).contains("1.1.2024")
    );
}

#[test]
fn groups_come_from_folders_and_patterns_too() {
    let env = Env::new();
    for (at, name) in
        ["a/x/P1_0.jpg", "a/x/P1_1.jpg", "a/y/P2_0.jpg", "b/y/P2_1.jpg", "b/z/P3_0.jpg", "b/z/odd.jpg"]
            .iter()
            .enumerate()
    {
        env.write(format!("in/{name}"), &jpeg(32, 24, at as u32));
    }
    let ran =
        env.ok(&["split", "in", "--group-regex", r"(?<plant>P\d)_", "--group-by", "plant", "--ratio", "1,1"]);
    assert!(ran.stderr.contains("1 image has no `plant`: it is"), "{}", ran.stderr);
    let groups: Vec<String> = env.rows("in/manifest.csv").into_iter().map(|r| r["group"].clone()).collect();
    assert_eq!(groups, ["P1", "P1", "P2", "P2", "P3", ""]);
    parts_of_groups(&env.rows("in/manifest.csv"), "group", "split");
    env.ok(&["split", "in", "--group-by", r"parent,regex:(?<plant>P\d)_", "--ratio", "1,1", "--reset"]);
    let rows = env.rows("in/manifest.csv");
    assert_eq!(rows[2]["split"], rows[3]["split"], "the plant joins two folders");
    assert_eq!(rows[4]["split"], rows[5]["split"]);
    assert!(env.refused(&["split", "in", "--group-by", "plant", "--reset"]).contains("no such column"));
    assert!(env.refused(&["split", "in", "--group-by", "regex:("]).contains("no pattern"));
    assert!(env.refused(&["split", "in", "--group-regex", r"P\d"]).contains("names nothing"));
}

#[test]
fn equal_files_stay_together() {
    let env = Env::new();
    for at in 0..40_u32 {
        env.write(format!("in/{}/a{at:02}.jpg", at % 2), &jpeg(64, 48, at));
        env.write(format!("in/{}/z{at:02}.jpg", (at / 20 + at) % 2), &jpeg(64, 48, at));
    }
    let ran = env.ok(&["split", "in", "--stratify", "--group-dups=exact", "--ratio", "1,1"]);
    assert!(ran.stdout.contains("20 sets of equal files have different labels"), "{}", ran.stdout);
    let rows = env.rows("in/manifest.csv");
    assert_eq!(rows.len(), 80);
    assert_eq!(parts_of_groups(&rows, "hash", "split").len(), 40);
    let again = env.ok(&["split", "in", "--stratify", "--group-dups=exact", "--ratio", "1,1"]);
    assert!(again.stdout.contains("0 of 40 groups that had a part moved"), "{}", again.stdout);
}

#[test]
fn several_labels_and_several_columns_are_spread() {
    let env = Env::new();
    let mut lot = Stream::new(3);
    let mut text = String::from("path,label,site,age\n");
    for at in 0..600 {
        let labels = if lot.below(2) == 0 { "rust" } else { "rust|scab" };
        let labels = if lot.below(3) == 0 { "scab|mildew" } else { labels };
        let _ = writeln!(text, "{at:03}.jpg,{labels},s{},{}.5", lot.below(3), lot.below(500));
    }
    env.write("t.csv", text.as_bytes());
    let ran = env.ok(&["split", "t.csv", "--no-files", "--stratify=label,site,age", "--bins", "4", "--json"]);
    assert!(ran.stderr.contains("age is a number: cut into 4 bins"), "{}", ran.stderr);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let round = &document["rounds"][0];
    let classes: Vec<&str> =
        round["classes"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(classes, ["mildew", "rust", "scab"]);
    let others = round["others"].as_array().unwrap();
    assert!(others.iter().any(|o| o["name"] == "site=s1"));
    for line in round["classes"].as_array().unwrap().iter().chain(&others[..7]) {
        assert!(line["gap"].as_f64().unwrap() < 0.02, "{line}");
    }
    assert!(
        env.refused(&["split", "t.csv", "--no-files", "--stratify=place", "--reset"])
            .contains("no such column")
    );
}

#[test]
fn a_plain_folder_gets_two_files_and_new_images_find_their_place() {
    let env = Env::new();
    for at in 0..40_u32 {
        env.write(format!("in/{}/{at:02}.jpg", ["rust", "scab"][at as usize % 2]), &jpeg(32, 24, at));
    }
    let before = env.tree("in");
    env.ok(&["split", "in", "--stratify"]);
    let new: Vec<String> =
        env.tree("in").into_iter().map(|f| f.0).filter(|n| !before.iter().any(|b| b.0 == *n)).collect();
    assert_eq!(new, ["manifest.csv", "manifest.prep.json"]);
    assert!(env.tree("in").iter().filter(|f| !f.0.starts_with("manifest")).eq(before.iter()));
    let old: BTreeMap<String, String> =
        env.rows("in/manifest.csv").into_iter().map(|r| (r["path"].clone(), r["split"].clone())).collect();
    for at in 40..44_u32 {
        env.write(format!("in/rust/{at:02}.jpg"), &jpeg(32, 24, at));
    }
    std::fs::remove_file(env.path("in/rust/00.jpg")).unwrap();
    let ran = env.ok(&["split", "in", "--stratify"]);
    assert!(ran.stdout.contains("1 row of the earlier manifest has no image"), "{}", ran.stdout);
    let rows = env.rows("in/manifest.csv");
    assert_eq!(rows.len(), 43);
    assert!(rows.iter().all(|r| r["label"] == ["rust", "scab"][usize::from(r["path"].starts_with("scab"))]
        && !r["split"].is_empty()));
    let moved = rows.iter().filter(|r| old.get(&r["path"]).is_some_and(|part| *part != r["split"])).count();
    assert!(moved <= 2, "{moved} of 40 moved");
}

#[test]
fn corrected_labels_are_seen_and_edits_of_the_manifest_too() {
    let env = Env::new();
    for at in 0..12_u32 {
        env.write(format!("in/{at:02}.jpg"), &jpeg(32, 24, at));
    }
    let table = |odd: &str| {
        let mut text = String::from("image,kind\n");
        (0..12).for_each(|at| {
            _ = writeln!(text, "{at:02}.jpg,{}", if at == 5 { odd } else { ["a", "b"][at % 2] });
        });
        text
    };
    env.write("in/labels.csv", table("B").as_bytes());
    env.ok(&["split", "in", "--stratify", "--label-col", "kind"]);
    env.write("in/labels.csv", table("b").as_bytes());
    env.ok(&["split", "in", "--stratify"]);
    assert_eq!(env.rows("in/manifest.csv")[5]["label"], "b", "the table was corrected");
    let text = std::fs::read_to_string(env.path("in/manifest.csv")).unwrap();
    env.write("in/manifest.csv", text.replace("05.jpg,b,", "05.jpg,c,").as_bytes());
    let ran = env.ok(&["split", "in", "--stratify"]);
    assert!(ran.stderr.contains("edited by hand"), "{}", ran.stderr);
    assert_eq!(env.rows("in/manifest.csv")[5]["label"], "c");
}

#[test]
fn the_users_columns_and_rows_are_kept() {
    let env = Env::new();
    env.write("t.csv", b"path,label,group,hash,comment\nb.jpg,x,g1,mine,\"say \"\"hi\"\"\"\na.jpg,y,g1,,\na.jpg,z,g1,,\nc.jpg,,g2,,\nd.jpg,x,g3,,\ne.jpg,y,g4,,\n");
    let ran = env.ok(&["split", "t.csv", "--no-files", "--stratify", "--group-by", "comment"]);
    assert!(ran.stderr.contains("your columns keep their names"), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("1  with rows that disagree") && ran.stdout.contains("1  without a label"),
        "{}",
        ran.stdout
    );
    let rows = env.rows("t.manifest.csv");
    assert_eq!(rows.len(), 5, "one row an image, none is lost");
    assert_eq!((rows[1]["comment"].as_str(), rows[1]["hash"].as_str()), ("say \"hi\"", "mine"));
    assert_eq!(rows[1]["group"], "g1", "a column of the user's is not overwritten");
    assert!(rows[0]["split"].is_empty() && rows[2]["split"].is_empty());
    assert!(std::fs::read(env.path("t.csv")).unwrap().starts_with(b"path,label"));
}

#[test]
fn places_that_are_taken_or_closed_are_said() {
    let env = Env::new();
    env.write("in/x/a.jpg", &jpeg(32, 24, 1));
    env.write("in/y/b.jpg", &jpeg(32, 24, 2));
    env.write("in/manifest.csv", b"something,else\n1,2\n");
    let said = env.refused(&["split", "in"]);
    assert!(said.contains("manifest.csv") && said.contains("-o"), "{said}");
    assert_eq!(std::fs::read(env.path("in/manifest.csv")).unwrap(), b"something,else\n1,2\n");
    env.ok(&["split", "in", "--allow-missing", "-o", "elsewhere/m.csv"]);
    assert_eq!(env.rows("elsewhere/m.csv")[0]["path"], "../in/x/a.jpg");
    assert!(env.path("elsewhere/m.prep.json").is_file());
    let said = env.refused(&["split", "in", "--allow-missing", "-o", "/proc/nowhere/m.csv"]);
    assert!(said.contains("writing the manifest"), "{said}");
}

#[test]
fn a_dry_run_writes_nothing() {
    let env = Env::new();
    env.write("t.csv", &Rows::plants(30, 1).csv());
    let ran = env.ok(&split("t.csv", &["-n", "--allow-missing"]));
    assert!(ran.stdout.contains("Would write"), "{}", ran.stdout);
    assert_eq!(env.tree(".").len(), 1);
}

#[test]
fn forgotten_groups_are_warned_of() {
    let env = Env::new();
    env.write("t.csv", &Rows::plants(60, 1).csv());
    let ran = env.ok(&["split", "t.csv", "--no-files", "--stratify", "--allow-missing"]);
    assert!(ran.stderr.contains("`plant_id` looks like groups"), "{}", ran.stderr);
    let ran = env.ok(&split("t.csv", &["--allow-missing", "--reset"]));
    assert!(!ran.stderr.contains("looks like groups"), "{}", ran.stderr);
}

#[test]
fn messy_clothing_is_split_as_one_hopes() {
    let Some(tar) = crate::env::shared("corpus/data/messy_clothing.tar") else { return };
    let env = Env::new();
    let done =
        std::process::Command::new("tar").arg("-xf").arg(tar).arg("-C").arg(env.path("")).status().unwrap();
    assert!(done.success());
    let inside = env.path("messy_clothing");
    let run = |args: &[&str]| crate::env::Ran::of(&env.command(args).current_dir(&inside).output().unwrap());
    let ran = run(&["split", "--stratify", "--group-by", "plant_id"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for sentence in [
        "3  named by the table, not on disk",
        "with rows that disagree",
        "2  without a label",
        "not named by the table",
    ] {
        assert!(ran.stdout.contains(sentence), "{sentence}: {}", ran.stdout);
    }
    assert!(
        ran.stderr.contains("3 images have no `plant_id`") && ran.stderr.contains("SHOES"),
        "{}",
        ran.stderr
    );
    let rows = env.rows(Path::new("messy_clothing/manifest.csv"));
    let told: Vec<_> = rows.iter().filter(|r| !r["split"].is_empty()).cloned().collect();
    assert!(told.len() > 490, "{}", told.len());
    parts_of_groups(&told, "plant_id", "split");
    for class in ["hat", "t-shirt", "shoes", "outwear"] {
        assert!((share(&told, class, "val") - 0.2).abs() < 0.02, "{class}");
    }
    let ran = run(&["weights"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("images of `train`"), "{}", ran.stdout);
}

#[test]
fn exports_are_read_right_by_others() {
    let env = Env::new();
    for at in 0..30_u32 {
        env.write(
            format!(
                "in/{}/deep/{at:02}.jpg",
                ["rust", "scab", "rare"][if at == 0 { 2 } else { at as usize % 2 }]
            ),
            &jpeg(32, 24, at),
        );
    }
    let before = env.tree("in");
    let all = ["split", "in", "--stratify", "--export", "csv,lists,tree"];
    let ran = env.ok(&all);
    assert!(ran.stderr.contains("val/ has no folder of `rare`"), "{}", ran.stderr);
    let rows = env.rows("in/manifest.csv");
    let files: Vec<String> =
        env.tree("in-split").into_iter().map(|f| f.0).filter(|n| !n.starts_with(".prep")).collect();
    assert_eq!(files.len(), 30 + 3);
    for row in &rows {
        let (class, below) = row["path"].split_once('/').unwrap();
        assert!(files.contains(&format!("{}/{class}/{below}", row["split"])), "{row:?}");
        let list = std::fs::read_to_string(env.path(format!("in-split/{}.txt", row["split"]))).unwrap();
        assert!(list.lines().any(|line| line == row["path"]));
    }
    assert_eq!(env.rows("in-split/split.csv").len(), 30);
    env.write("in-split/mine.txt", b"kept");
    env.ok(&[
        "split",
        "in",
        "--stratify",
        "--seed",
        "5",
        "--export",
        "tree",
        "--link",
        "sym",
        "--kfold",
        "2",
        "--reset",
    ]);
    let files: Vec<String> =
        env.tree("in-split").into_iter().map(|f| f.0).filter(|n| !n.starts_with(".prep")).collect();
    assert_eq!(files.iter().filter(|n| n.starts_with("fold")).count(), 29, "{files:?}");
    assert!(
        files.contains(&"mine.txt".to_owned())
            && !files.iter().any(|n| n.starts_with("val") || n == "split.csv")
    );
    assert!(
        env.tree("in").iter().filter(|f| !f.0.starts_with("manifest")).eq(before.iter()),
        "sources are untouched"
    );
    env.write("other/x", b"");
    assert!(
        env.refused(&["split", "in", "--stratify", "--export", "csv", "--reset", "--export-dir", "other"])
            .contains("not made by prep")
    );
    assert!(
        env.refused(&["split", "in", "--stratify", "--export", "csv", "--reset", "--export-dir", "in/sub"])
            .contains("inside the input")
    );
}

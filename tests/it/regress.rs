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
    for file in [
        "d/labels.csv",
        "d/a.jpg",
        "d/notes.txt",
        "d/manifest.csv",
        "d/manifest.prep.json",
        "d",
        "d/labels.csv/x",
    ] {
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

/// 12 pictures of two classes, exported as a tree, lists and a table.
fn exported(link: &str) -> Env {
    let env = Env::new();
    for at in 0..12_u32 {
        env.write(format!("in/{}/{at:02}.jpg", ["x", "y"][at as usize % 2]), &jpeg(32, 24, at));
    }
    env.ok(&["split", "in", "--stratify", "--export", "csv,lists,tree", "--link", link]);
    env
}

/// The files of the export, without prep's own.
fn exports(env: &Env) -> Vec<(String, Vec<u8>)> {
    env.tree("in-split").into_iter().filter(|(name, _)| !name.starts_with(".prep")).collect()
}

#[test]
fn a_second_export_does_not_delete_what_the_user_put_in_place_of_the_first() {
    for link in ["hard", "sym", "copy"] {
        let env = exported(link);
        let picture = exports(&env).into_iter().map(|f| f.0).find(|n| n.starts_with("val/")).unwrap();
        for name in ["val.txt", &picture] {
            let path = env.path(format!("in-split/{name}"));
            let manifest = fs::read(env.path("in/manifest.csv")).unwrap();
            fs::rename(&path, env.path("aside")).unwrap();
            fs::write(&path, b"mine").unwrap();
            let tree = env.tree("in-split");
            // One that would remove it, one that would write over it, and a rehearsal.
            let again = ["split", "in", "--stratify", "--seed", "9", "--reset", "--link", link, "--export"];
            for more in [&["csv"][..], &["csv,lists,tree"], &["csv", "-n"]] {
                let said = env.refused(&[&again[..], more].concat());
                assert!(said.contains(name) && said.contains("--export-dir"), "{link}: {said}");
                assert_eq!(env.tree("in-split"), tree, "{link} {more:?}");
                assert_eq!(
                    fs::read(env.path("in/manifest.csv")).unwrap(),
                    manifest,
                    "a failed export has no split"
                );
            }
            fs::rename(env.path("aside"), &path).unwrap();
        }
        assert_eq!(exports(&env).len(), 12 + 3);
        env.ok(&["split", "in", "--stratify", "--export", "csv"]);
        assert_eq!(exports(&env).len(), 1, "what is as exported goes");
    }
}

#[test]
fn lines_that_were_added_to_the_record_of_an_export_delete_nothing() {
    let env = exported("hard");
    env.write("in-split/mine.txt", b"mine");
    env.write("precious.txt", b"mine");
    let record = fs::read_to_string(env.path("in-split/.prep/split-files")).unwrap();
    let other = "text\t0000000000000000000000000000000000000000000000000000000000000000";
    env.write("in-split/.prep/split-files", format!("{record}mine.txt\t{other}\n").as_bytes());
    let said = env.refused(&["split", "in", "--stratify", "--export", "csv"]);
    assert!(said.contains("mine.txt"), "{said}");
    env.write("in-split/.prep/split-files", format!("{record}../precious.txt\t{other}\n").as_bytes());
    env.ok(&["split", "in", "--stratify", "--export", "csv"]);
    assert!(env.path("in-split/mine.txt").exists() && env.path("precious.txt").exists());
}

#[test]
fn an_export_through_a_link_does_not_touch_the_sources() {
    let env = exported("copy");
    fs::remove_dir_all(env.path("in-split/val")).unwrap();
    std::os::unix::fs::symlink(env.path("in"), env.path("in-split/val")).unwrap();
    let before = env.tree("in");
    let said = env.refused(&["split", "in", "--stratify", "--export", "csv"]);
    assert!(said.contains("symbolic link"), "{said}");
    assert_eq!(env.tree("in"), before);
}

#[test]
fn a_place_that_cannot_be_exported_to_is_found_before_anything_is_written() {
    let env = Env::new();
    for at in 0..10_u32 {
        env.write(format!("in/{at}.jpg"), &jpeg(32, 24, at));
    }
    let rows: String = (0..10).map(|at| format!("{at}.jpg,{}\n", ["x", "a/b"][at % 2])).collect();
    env.write("in/labels.csv", format!("path,label\n{rows}").as_bytes());
    env.write("other/x", b"");
    let before = env.tree(".");
    for more in [&["--export", "tree"][..], &["--export", "csv", "--export-dir", "other"]] {
        for dry in [&["-n"][..], &[]] {
            env.refused(&[&["split", "in"][..], more, dry].concat());
            assert_eq!(env.tree("."), before, "{more:?}");
        }
    }
}

#[test]
fn time_that_is_torn_by_groups_or_ties_is_told() {
    let env = Env::new();
    let row = |at: usize, plant: usize, day: usize| format!("{at:02}.jpg,c,P{plant},2024-01-{day:02}\n");
    let torn: String = (0..20).map(|at| row(at, at % 10, 1 + at)).collect();
    env.write("t.csv", format!("path,label,plant_id,taken\n{torn}").as_bytes());
    let split = |more: &[&str]| {
        let all = ["split", "t.csv", "--no-files", "--time", "taken", "--ratio", "5,5", "--reset"];
        env.ok(&[&all[..], more].concat()).stderr
    };
    let said = split(&["--group-by", "plant_id"]);
    assert!(
        said.contains("5 images of train are later than the first of val, because groups are whole"),
        "{said}"
    );
    assert!(!split(&[]).contains("later than"));
    let tied: String = (0..20).map(|at| row(at, at, 1 + at / 15)).collect();
    env.write("t.csv", format!("path,label,plant_id,taken\n{tied}").as_bytes());
    let said = split(&[]);
    assert!(said.contains("10 images of train have the same time as the first of val"), "{said}");
}

#[test]
fn a_manifest_elsewhere_and_a_workspaces_are_kept() {
    let env = Env::new();
    for at in 0..20_u32 {
        env.write(format!("in/{}/{at:02}.jpg", ["x", "y"][at as usize % 2]), &jpeg(64, 48, at));
    }
    env.ok(&["shrink", "in", "-o", "small", "--short-edge", "32"]);
    env.ok(&["split", "in", "--stratify", "--seed", "1", "-o", "elsewhere/m.csv"]);
    env.ok(&["split", "small", "--stratify", "--seed", "2"]);
    fs::copy(env.path("elsewhere/m.csv"), env.path("other.csv")).unwrap();
    let parts = |manifest: &str, column: &str| -> std::collections::BTreeMap<String, String> {
        let rows = env.rows(manifest);
        assert_eq!(rows.len(), 20);
        rows.iter().map(|r| (r[column].rsplit('/').next().unwrap().to_owned(), r["split"].clone())).collect()
    };
    for (keep, column) in [("elsewhere/m.csv", "path"), ("small/manifest.csv", "src")] {
        env.ok(&["split", "in", "--stratify", "--seed", "3", "--keep", keep, "-o", "kept.csv"]);
        assert_eq!(parts("kept.csv", "path"), parts(keep, column), "{keep}");
    }
    env.write("far/a.csv", b"path,label\nq.jpg,x\nr.jpg,y\ns.jpg,x\n");
    env.ok(&["split", "far/a.csv", "--no-files", "--allow-missing"]);
    let said = env.refused(&["split", "in", "--keep", "far/a.manifest.csv"]);
    assert!(said.contains("is it of other images"), "{said}");
}

#[test]
fn shares_that_cannot_be_meant_and_parts_without_an_image_are_refused() {
    let env = Env::new();
    let rows: String =
        (0..30).map(|at| format!("{at}.jpg,{}\n", if at < 29 { "x" } else { "single" })).collect();
    env.write("t.csv", format!("path,label\n{rows}").as_bytes());
    let with = |ratio: &'static str| vec!["split", "t.csv", "--no-files", "--stratify", "--ratio", ratio];
    assert!(env.refused(&with("train=80%,val=0.2")).contains("percent"));
    assert!(env.refused(&with("train=0.8,val=0.1,Val=0.1")).contains("differ in case alone"));
    let ran = env.ok(&with("70,20,20"));
    assert!(ran.stderr.contains("that is train 63.64%, val 18.18%, test 18.18%"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`single`: one image, so"), "{}", ran.stderr);
    env.write("u.csv", b"path,label\na.jpg,x\nb.jpg,x\nc.jpg,x\n");
    let before = env.tree(".");
    let empty = ["split", "u.csv", "--no-files", "--ratio", "0.98,0.01,0.01"];
    let said = env.refused(&empty);
    assert!(said.contains("no image is in `val`, `test`: there are 3 images for 3 parts"), "{said}");
    assert_eq!(env.tree("."), before);
    let ran = env.ok(&[&empty[..], &["--allow-missing"]].concat());
    assert!(ran.stderr.contains("no image is in"), "{}", ran.stderr);
    // Without --stratify the lot decides, and here it takes a class out of training for some seed.
    let by_seed =
        |seed: u32| env.run(&["split", "t.csv", "--no-files", "--seed", &seed.to_string(), "--reset"]);
    let refused = (0..30).map(by_seed).filter(|ran| ran.code == Some(2)).collect::<Vec<_>>();
    assert!(!refused.is_empty() && refused.len() < 20, "{}", refused.len());
    assert!(refused[0].stderr.contains("`single`: no image of it is in train"), "{}", refused[0].stderr);
}

#[test]
fn an_optimal_split_is_as_good_as_at_best_and_no_reason_is_made_up() {
    let env = Env::new();
    let rows: String = (0..31).map(|at| format!("{at}.jpg,{}\n", ["x", "y", "y"][at % 3])).collect();
    env.write("t.csv", format!("path,label\n{rows}").as_bytes());
    let ran = env.ok(&["split", "t.csv", "--no-files", "--stratify", "--kfold", "3", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let classes = document["rounds"][0]["classes"].as_array().unwrap();
    assert_eq!(classes.len(), 2);
    for class in classes {
        let of = |key: &str| class[key].as_f64().unwrap();
        assert!((of("gap") - of("bound")).abs() < 1e-9, "{class}");
        assert!(class["why"].as_str().unwrap().contains("cannot be cut finer"), "{class}");
    }
    let round = &document["rounds"][0];
    let mean = |key: &str| round[key].as_f64().unwrap();
    assert!((mean("mean_gap") - mean("mean_bound")).abs() < 1e-9, "{round}");
    let ran = env.ok(&["split", "t.csv", "--no-files", "--stratify", "--method", "hash", "--reset"]);
    assert!(
        ran.stdout.contains("its hash says") && !ran.stdout.contains("hold other classes"),
        "{}",
        ran.stdout
    );
}

#[test]
fn folds_are_not_called_no_split_and_programs_get_names_as_they_are() {
    let env = Env::new();
    for at in 0..8_u32 {
        env.write(format!("in/{}/{at}.jpg", ["=x", "y "][at as usize % 2]), &jpeg(32, 24, at));
    }
    env.ok(&["split", "in", "--stratify", "--kfold", "2"]);
    let ran = env.ok(&["stats", "in", "-q"]);
    assert!(ran.stdout.contains("there are folds") && !ran.stdout.contains("no split"), "{}", ran.stdout);
    let ran = env.ok(&["weights", "in", "-q"]);
    assert!(ran.stdout.contains("there are folds") && !ran.stdout.contains("no split"), "{}", ran.stdout);
    assert!(ran.stdout.contains("`y `"), "{}", ran.stdout);
    let csv = env.ok(&["weights", "in", "--emit", "csv"]).stdout;
    assert!(csv.contains("\n=x,0,"), "{csv}");
    assert!(env.refused(&["weights", "in", "--json", "--emit", "torch"]).contains("drop one"));
    assert!(env.refused(&["weights", "in", "--emit", "torch", "--per-row", "-"]).contains("standard output"));
}

//! Label tables and lists: which file each row means, what its label is, and what is wrong with the table.

#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in tests, but not in what tests share")]

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use imgprep::fault::{Cause, Oddity, Status};
use imgprep::source::{Kind, Listing, Options, Trouble, open};

use crate::source_tree::{count, paths, put, row, tree};

fn list(root: &Path) -> Listing {
    list_with(root, |_| {})
}

fn list_with(root: &Path, change: impl FnOnce(&mut Options)) -> Listing {
    let mut options = Options::default();
    change(&mut options);
    open(root, &options).unwrap()
}

fn refused(root: &Path, change: impl FnOnce(&mut Options)) -> String {
    let mut options = Options::default();
    change(&mut options);
    open(root, &options).unwrap_err().to_string()
}

/// A tree with `labels.csv` at its top.
fn labelled(files: &[&str], table: &str) -> tempfile::TempDir {
    let dir = tree(files);
    put(dir.path(), "labels.csv", table.as_bytes());
    dir
}

fn labels(listing: &Listing) -> Vec<(&str, &str)> {
    listing.entries.iter().map(|e| (e.path.as_str(), e.label.as_str())).collect()
}

fn cause(listing: &Listing, path: &str) -> Option<Cause> {
    row(listing, path).fault.as_ref().map(|f| f.cause)
}

fn noted(listing: &Listing, path: &str) -> Vec<Oddity> {
    row(listing, path).notes.iter().map(|n| n.kind).collect()
}

/// The shared corpus, where it is.
fn shared(part: &str) -> Option<PathBuf> {
    let root = std::env::var_os("PREP_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let path = root.join("corpus/data").join(part);
    path.exists().then_some(path)
}

#[test]
fn a_table_at_the_top_is_used_and_said() {
    let dir = labelled(&["a/1.jpg", "b/2.jpg"], "image,label,plant\na/1.jpg,oak,7\nb/2.jpg,elm,8\n");
    let listing = list(dir.path());
    assert_eq!(listing.kind, Kind::Table);
    assert_eq!(labels(&listing), [("a/1.jpg", "oak"), ("b/2.jpg", "elm")]);
    assert!(
        listing.said[0].contains("labels.csv: 2 rows, paths from column `image`, labels from column `label`")
    );
    let table = listing.table.as_ref().unwrap();
    assert_eq!(table.cell(listing.entries[1].row.unwrap(), 2), "8");
    let folders = list_with(dir.path(), |o| o.folders_only = true);
    assert_eq!((folders.kind, folders.entries[0].label.as_str()), (Kind::Classes, "a"));
}

#[test]
fn of_several_tables_the_telling_name_wins_and_the_way_to_the_other_is_said() {
    let dir = labelled(&["1.jpg"], "image,label\n1.jpg,x\n");
    put(dir.path(), "a_clean.csv", b"image,label\n1.jpg,y\n");
    put(dir.path(), "prices.csv", b"item,price\nbread,3\n");
    let listing = list(dir.path());
    assert_eq!(listing.entries[0].label, "x");
    assert!(
        listing.said.iter().any(|s| s.contains("`a_clean.csv`") && s.contains("--labels")),
        "{:?}",
        listing.said
    );
    let other = list_with(dir.path(), |o| o.labels = Some("a_clean.csv".into()));
    assert_eq!(other.entries[0].label, "y");

    std::fs::remove_file(dir.path().join("labels.csv")).unwrap();
    put(dir.path(), "b_clean.csv", b"image,label\n1.jpg,z\n");
    let neither = list(dir.path());
    assert_eq!(neither.kind, Kind::Flat);
    assert!(neither.said.iter().any(|s| s.contains("`a_clean.csv` and `b_clean.csv`")), "{:?}", neither.said);
}

#[test]
fn a_broken_table_with_a_telling_name_is_an_error_not_a_set_without_labels() {
    let dir = labelled(&["1.jpg"], "image,label\n1.jpg,\"x\n");
    assert!(refused(dir.path(), |_| {}).contains("labels.csv:2: a quote"));
}

#[test]
fn kaggle_ids_without_extension_are_found_in_the_image_folder() {
    let dir = tree(&["train_images/ab1.png", "train_images/ab12.png", "test_images/ab1.png"]);
    put(dir.path(), "train.csv", b"id_code,diagnosis\nab1,0\nab12,4\n");
    let listing = list(dir.path());
    assert_eq!(labels(&listing), [("train_images/ab1.png", "0"), ("train_images/ab12.png", "4")]);
    assert_eq!(noted(&listing, "train_images/ab1.png"), [Oddity::ExtensionAdded]);
}

#[test]
fn ids_are_found_in_class_folders_too() {
    let dir = labelled(&["cat/x1.jpg", "dog/x2.v1.jpg"], "id,label\nx1,cat\nx2.v1,dog\n");
    assert_eq!(labels(&list(dir.path())), [("cat/x1.jpg", "cat"), ("dog/x2.v1.jpg", "dog")]);
}

#[test]
fn one_hot_columns_become_labels() {
    let dir = tree(&["images/1.jpg", "images/2.jpg", "images/3.jpg"]);
    let table = "image_id,healthy,scab,rust\n1,1,0,0\n2,0,1,1\n3,0.0,1.0,0\n";
    put(dir.path(), "train.csv", table.as_bytes());
    let listing = list(dir.path());
    assert_eq!(
        labels(&listing),
        [("images/1.jpg", "healthy"), ("images/2.jpg", "rust|scab"), ("images/3.jpg", "scab")]
    );
    assert_eq!(listing.classes, ["healthy", "rust", "scab"]);
}

#[test]
fn several_labels_in_a_cell_are_parted_only_where_the_parts_are_labels() {
    let files = ["1.jpg", "2.jpg", "3.jpg", "4.jpg"];
    let of = |cells: [&str; 4]| {
        let rows: String = files.iter().zip(cells).map(|(f, c)| format!("{f},\"{c}\"\n")).collect();
        let dir = labelled(&files, &format!("image,labels\n{rows}"));
        list(dir.path()).classes.join(";")
    };
    assert_eq!(of(["scab", "rust scab", "rust", "healthy"]), "healthy;rust;scab");
    assert_eq!(of(["Dead Leaf", "Dead Leaf", "Green Leaf", "Green Leaf"]), "Dead Leaf;Green Leaf");
    assert_eq!(of(["16 0", "7 1 2", "16", "1 7"]), "0;1;16;2;7");
    assert_eq!(of(["a|b", "c", "d", "d"]), "a;b;c;d");
    assert_eq!(of(["a, b", "b", "a", "a"]), "a;b");
    assert_eq!(
        of(["Pepper, bell", "Pepper, bell", "Potato, early", "Potato, early"]),
        "Pepper, bell;Potato, early"
    );
}

#[test]
fn spellings_that_differ_from_the_disk_are_found_and_noted() {
    let files = [
        "d/NFC é.jpg",
        "d/Case.JPG",
        "d/space.jpg",
        "d/back.jpg",
        "d/dot.jpg",
        "d/e/deep.jpg",
        "d/100%41.jpg",
    ];
    let table = "path,label\nd/NFC e\u{301}.jpg,x\nd/case.jpg,x\n d/space.jpg ,x\nd\\back.jpg,x\n./d/dot.jpg,x\n\
                 deep.jpg,x\nd/100%41.jpg,x\n";
    let dir = labelled(&files, table);
    let listing = list(dir.path());
    assert_eq!(listing.entries.len(), 7, "{:?}", paths(&listing));
    assert!(listing.entries.iter().all(|e| e.fault.is_none()), "{:?}", listing.entries);
    assert_eq!(noted(&listing, "d/NFC é.jpg"), [Oddity::UnicodeForm]);
    assert_eq!(noted(&listing, "d/Case.JPG"), [Oddity::CaseDiffers]);
    assert_eq!(noted(&listing, "d/space.jpg"), [Oddity::Trimmed]);
    let kinds = [
        Trouble::PathUnicode,
        Trouble::PathCase,
        Trouble::PathSpace,
        Trouble::Backslash,
        Trouble::DotSlash,
        Trouble::NameOnly,
    ];
    for kind in kinds {
        assert_eq!(count(&listing, kind), 1, "{kind:?}");
    }
    let slash = listing.findings.iter().find(|f| f.kind == Trouble::Backslash).unwrap();
    assert_eq!((slash.at.as_str(), slash.line), ("d/back.jpg", Some(5)));
}

#[test]
fn a_name_that_can_mean_two_files_is_a_fault_that_shows_both() {
    let files = ["x/A.jpg", "x/a.JPG", "y/same.jpg", "z/same.jpg", "ok.jpg"];
    let dir = labelled(&files, "path,label\nx/a.jpg,1\nsame.jpg,1\nok.jpg,1\n");
    let listing = list(dir.path());
    assert_eq!(cause(&listing, "x/a.jpg"), Some(Cause::Ambiguous));
    let detail = &row(&listing, "same.jpg").fault.as_ref().unwrap().detail;
    assert_eq!(detail, "it can mean y/same.jpg or z/same.jpg");
    assert_eq!(count(&listing, Trouble::AmbiguousName), 2);
}

#[test]
fn rows_without_files_and_files_without_rows_stay_as_rows() {
    let dir = labelled(
        &["images/a.jpg", "images/b.jpg", "images/extra.jpg", "other/c.jpg"],
        "path,label\nimages/a.jpg,x\nimages/gone.jpg,x\nimages/b.jpg,x\n,x\n",
    );
    let listing = list(dir.path());
    assert_eq!(paths(&listing), ["images/a.jpg", "images/b.jpg", "images/extra.jpg", "images/gone.jpg"]);
    assert_eq!(cause(&listing, "images/gone.jpg"), Some(Cause::Missing));
    let extra = row(&listing, "images/extra.jpg").fault.as_ref().unwrap();
    assert_eq!((extra.cause, extra.status()), (Cause::Unlisted, Status::Skipped));
    let missing = listing.findings.iter().find(|f| f.kind == Trouble::MissingFile).unwrap();
    assert_eq!(missing.line, Some(3));
    assert_eq!((count(&listing, Trouble::UnlistedFile), count(&listing, Trouble::EmptyPath)), (1, 1));
}

#[test]
fn repeated_rows_are_one_entry_and_rows_that_disagree_have_no_label() {
    let files = ["1.jpg", "2.jpg", "3.jpg", "4.jpg", "5.jpg", "6.jpg", "7.jpg"];
    let dir = labelled(&files[..2], "path,label\n1.jpg,x\n1.jpg,x\n2.jpg,y\n2.jpg,y\n");
    assert_eq!(
        count(&list(dir.path()), Trouble::DuplicateRow),
        2,
        "a table that was pasted twice has no boxes"
    );
    let mut table = String::from("path,label,split\n");
    for file in files {
        table += &format!("{file},x,train\n");
    }
    table += "1.jpg,x,train\n./1.jpg,x,train\n2.jpg,y,train\n3.jpg,x,test\n4.jpg,,train\n";
    let dir = labelled(&files, &table);
    let listing = list(dir.path());
    assert_eq!(listing.entries.len(), 7);
    assert_eq!(row(&listing, "1.jpg").notes[0].to_string(), "duplicate_rows(2)");
    assert_eq!(row(&listing, "2.jpg").notes[0].to_string(), "conflicting_rows(x|y)");
    assert_eq!(row(&listing, "2.jpg").label, "");
    assert_eq!(row(&listing, "3.jpg").split, "", "an image in train and in test is in neither");
    assert_eq!(row(&listing, "4.jpg").label, "x");
    let conflict = listing.findings.iter().find(|f| f.kind == Trouble::ConflictingRows).unwrap();
    assert!(conflict.detail.contains("lines 3, 11 say `x` and `y`"), "{}", conflict.detail);
    assert_eq!(count(&listing, Trouble::ConflictingRows), 2);
}

#[test]
fn a_table_of_boxes_gives_each_image_all_its_labels() {
    let table = "filename,cell_type,xmin\n1.jpg,RBC,1\n1.jpg,WBC,2\n2.jpg,RBC,3\n2.jpg,RBC,4\n3.jpg,RBC,5\n";
    let dir = labelled(&["1.jpg", "2.jpg", "3.jpg"], table);
    let listing = list(dir.path());
    assert_eq!(labels(&listing), [("1.jpg", "RBC|WBC"), ("2.jpg", "RBC"), ("3.jpg", "RBC")]);
    assert!(listing.entries.iter().all(|e| e.notes.is_empty()));
    assert!(listing.said.iter().any(|s| s.starts_with("5 rows for 3 images")), "{:?}", listing.said);
}

#[test]
fn paths_that_leave_the_root_are_faults_unless_allowed() {
    let outside = tree(&["9.jpg", "set/1.jpg", "set/sub/2.jpg"]);
    let root = outside.path().join("set");
    symlink(outside.path(), root.join(".out")).unwrap();
    let far = outside.path().join("9.jpg").display().to_string();
    let near = root.join("sub/2.jpg").display().to_string();
    let table = format!(
        "path,label\n1.jpg,x\nsub/../1.jpg,x\n{near},x\n{far},x\n../9.jpg,x\nsub/../../9.jpg,x\nC:\\x.jpg,x\n\
         \\\\srv\\x.jpg,x\n/etc/passwd,x\n.out/9.jpg,x\n"
    );
    put(&root, "labels.csv", table.as_bytes());
    let listing = list(&root);
    assert_eq!(cause(&listing, "1.jpg"), None);
    assert_eq!(cause(&listing, "sub/2.jpg"), None, "an absolute path may lead below the root");
    let out =
        listing.entries.iter().filter(|e| e.fault.as_ref().is_some_and(|f| f.cause == Cause::OutsideRoot));
    assert_eq!(out.count(), 7, "{:?}", listing.entries);
    let allowed = list_with(&root, |o| o.allow_outside = true);
    assert_eq!(cause(&allowed, "../9.jpg"), None);
    assert_eq!(cause(&allowed, ".out/9.jpg"), None);
    assert_eq!(cause(&allowed, &far), None);
}

#[test]
fn a_nul_in_a_path_is_a_clear_fault() {
    let dir = labelled(&["1.jpg"], "path,label\n1.jpg,x\na\0b.jpg,x\n");
    let listing = list(dir.path());
    assert!(row(&listing, "a%00b.jpg").fault.as_ref().unwrap().detail.contains("NUL"));
}

#[test]
fn a_table_that_names_nothing_is_an_error_that_says_why() {
    let dir = tree(&["images/1.jpg"]);
    put(dir.path(), "t/labels.csv", b"file,label\nx/8.jpg,a\nx/9.jpg,b\n");
    let said = refused(dir.path(), |o| o.labels = Some("t/labels.csv".into()));
    assert!(said.contains("labels.csv:2: none of its 2 rows names a file below"), "{said}");
    assert!(said.contains("column `file` begins with `x/8.jpg`") && said.contains("--path-col"), "{said}");
    let said = refused(dir.path(), |o| {
        o.labels = Some("t/labels.csv".into());
        o.label_col = Some("species".into());
    });
    assert!(said.contains("has no such column, only `file` and `label`"), "{said}");
}

#[test]
fn paths_may_start_from_the_table_the_root_the_folder_above_or_an_image_folder() {
    for (place, prefix) in [
        ("labels.csv", ""),
        ("meta/labels.csv", ""),
        ("labels.csv", "set/images/"),
        ("labels.csv", "images/"),
    ] {
        let dir = tree(&["set/images/a.jpg", "set/images/b.jpg"]);
        let root = dir.path().join("set");
        put(&root, place, format!("file,label\n{prefix}a.jpg,x\n{prefix}b.jpg,y\n").as_bytes());
        let listing = list_with(&root, |o| o.labels = Some(place.into()));
        assert_eq!(labels(&listing), [("images/a.jpg", "x"), ("images/b.jpg", "y")], "{place} {prefix}");
    }
}

#[test]
fn a_table_without_labels_leaves_them_to_the_folders() {
    let dir = tree(&["train/cat/1.jpg", "train/dog/2.jpg", "val/cat/3.jpg"]);
    put(dir.path(), "metadata.jsonl", b"{\"file_name\": \"train/cat/1.jpg\", \"lens\": 3}\n{\"file_name\": \"train/dog/2.jpg\", \"lens\": 4}\n{\"file_name\": \"val/cat/3.jpg\", \"lens\": 5}\n");
    let listing = list(dir.path());
    assert_eq!(
        labels(&listing),
        [("train/cat/1.jpg", "cat"), ("train/dog/2.jpg", "dog"), ("val/cat/3.jpg", "cat")]
    );
    assert_eq!(listing.entries[2].split, "val");
}

#[test]
fn a_table_without_a_row_of_names_is_understood() {
    let dir = labelled(&["a.jpg", "b.jpg", "c.jpg"], "a.jpg,cat\nb.jpg,cat\nc.jpg,dog\n");
    assert_eq!(labels(&list(dir.path())), [("a.jpg", "cat"), ("b.jpg", "cat"), ("c.jpg", "dog")]);
}

#[test]
fn classes_that_differ_in_case_space_or_unicode_form_are_told_and_not_merged() {
    let files: Vec<String> = (0..8).map(|i| format!("{i}.jpg")).collect();
    let cells = ["oak", "oak", "OAK", "oak ", "é", "é", "e\u{301}", "elm"];
    let rows: String = files.iter().zip(cells).map(|(f, c)| format!("{f},{c}\n")).collect();
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let dir = labelled(&names, &format!("path,label\n{rows}"));
    let listing = list(dir.path());
    assert_eq!(listing.classes.len(), 6);
    for kind in [Trouble::LabelCase, Trouble::LabelSpace, Trouble::LabelUnicode] {
        assert_eq!(count(&listing, kind), 1, "{kind:?} in {:?}", listing.findings);
    }
}

#[test]
fn globs_and_splits_choose_among_rows_too() {
    let dir = labelled(
        &["a/1.jpg", "a/2.png", "b/3.jpg"],
        "path,label,split\na/1.jpg,x,train\na/2.png,x,train\nb/3.jpg,y,test\n",
    );
    let listing = list_with(dir.path(), |o| o.globs = vec!["*.jpg".into()]);
    assert_eq!((paths(&listing), listing.ignored.by_glob), (vec!["a/1.jpg", "b/3.jpg"], 1));
    let listing = list_with(dir.path(), |o| o.split = Some("test".into()));
    assert_eq!((paths(&listing), listing.ignored.other_split), (vec!["b/3.jpg"], 2));
    assert_eq!(listing.classes, ["x", "y"], "the index of a class is the same in every part");
}

#[test]
fn an_ignore_file_above_the_images_holds_but_a_row_is_stronger() {
    let dir = labelled(
        &["images/a.jpg", "images/raw/b.jpg", "images/raw/c.jpg"],
        "path,label\nimages/a.jpg,x\nimages/raw/b.jpg,y\n",
    );
    put(dir.path(), ".prepignore", b"images/raw/\n");
    let listing = list(dir.path());
    assert_eq!(labels(&listing), [("images/a.jpg", "x"), ("images/raw/b.jpg", "y")]);
    assert_eq!(listing.ignored.by_ignore_file, 1);
}

#[test]
fn without_files_the_table_alone_tells_what_there_is() {
    let dir = tree(&[]);
    put(dir.path(), "t.csv", b"image,label\n./x\\1.jpg,a\nx/2.jpg,b\n../3.jpg,b\n");
    let listing = list_with(&dir.path().join("t.csv"), |o| o.files = false);
    assert_eq!(labels(&listing), [("../3.jpg", "b"), ("x/1.jpg", "a"), ("x/2.jpg", "b")]);
    assert_eq!(cause(&listing, "../3.jpg"), Some(Cause::OutsideRoot));
    assert_eq!((cause(&listing, "x/1.jpg"), count(&listing, Trouble::MissingFile)), (None, 0));
}

#[test]
fn lists_are_paths_by_line_or_nul_with_or_without_labels() {
    let dir = tree(&["a b/1.jpg", "c/2.jpg", "c/3.jpg"]);
    type Case = (&'static [u8], &'static [(&'static str, &'static str)]);
    let cases: [Case; 6] = [
        (b"a b/1.jpg\r\nc/2.jpg\n\n", &[("a b/1.jpg", "a b"), ("c/2.jpg", "c")]),
        (b"./a b/1.jpg\0c/2.jpg\0", &[("a b/1.jpg", "a b"), ("c/2.jpg", "c")]),
        (b"a b/1.jpg, 14, 7\nc/2.jpg, 3, 7\n", &[("a b/1.jpg", "14"), ("c/2.jpg", "3")]),
        (b"a b/1.jpg 0\nc/2.jpg 1\n", &[("a b/1.jpg", "0"), ("c/2.jpg", "1")]),
        (b"c/2.jpg 1 x\nc/3.jpg 2 y\n", &[("c/2.jpg", "1"), ("c/3.jpg", "2")]),
        (b"a b/1.jpg\tcat\nc/9.jpg\tdog\n", &[("a b/1.jpg", "cat"), ("c/9.jpg", "dog")]),
    ];
    for (bytes, wanted) in cases {
        put(dir.path(), "list.txt", bytes);
        for listing in [
            list_with(dir.path(), |o| o.files_from = Some(dir.path().join("list.txt"))),
            list(&dir.path().join("list.txt")),
        ] {
            assert_eq!((listing.kind, labels(&listing).as_slice()), (Kind::List, wanted));
        }
    }
    assert_eq!(cause(&list(&dir.path().join("list.txt")), "c/9.jpg"), Some(Cause::Missing));
    put(dir.path(), "list.txt", b"\n");
    assert!(refused(&dir.path().join("list.txt"), |_| {}).contains("the list is empty"));
}

#[test]
fn a_list_may_hold_names_outside_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tree(&["1.jpg"]);
    std::fs::copy(dir.path().join("1.jpg"), dir.path().join(std::ffi::OsStr::from_bytes(b"\xff.jpg")))
        .unwrap();
    put(dir.path(), "list.txt", b"\xff.jpg\n");
    let listing = list(&dir.path().join("list.txt"));
    assert_eq!((paths(&listing), cause(&listing, "%FF.jpg")), (vec!["%FF.jpg"], None));
}

#[test]
fn one_image_is_an_input_and_other_files_are_refused() {
    let dir = tree(&["x.jpg", "x.bin"]);
    assert_eq!(paths(&list(&dir.path().join("x.jpg"))), ["x.jpg"]);
    assert!(refused(&dir.path().join("x.bin"), |_| {}).contains("is neither a folder"));
}

#[test]
fn the_order_of_rows_does_not_matter() {
    let files: Vec<String> = (0..40).map(|i| format!("d{}/{}.jpg", i % 3, i * 7 % 40)).collect();
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let of = |order: &mut dyn Iterator<Item = &&str>| {
        let rows: String = order.map(|f| format!("{f},{}\n", f.len())).collect();
        let dir = labelled(&names, &format!("path,label\n{rows}"));
        labels(&list(dir.path())).iter().map(|(p, l)| format!("{p} {l}\n")).collect::<String>()
    };
    assert_eq!(of(&mut names.iter()), of(&mut names.iter().rev()));
}

#[test]
fn the_messy_set_shows_every_planted_problem() {
    let root = Path::new("/tmp/c/messy_clothing");
    let Some(tar) = shared("messy_clothing.tar") else { return };
    let dir = tempfile::tempdir().unwrap();
    let root = if root.exists() {
        root.to_owned()
    } else {
        let done =
            std::process::Command::new("tar").arg("-xf").arg(tar).arg("-C").arg(dir.path()).status().unwrap();
        assert!(done.success());
        dir.path().join("messy_clothing")
    };
    let listing = list(&root);
    let truth = std::fs::read_to_string(root.join("truth/labels_problems.csv")).unwrap();
    let mut planted: BTreeMap<&str, usize> = BTreeMap::new();
    for line in truth.lines().skip(1) {
        *planted.entry(line.split(',').next().unwrap()).or_default() += 1;
    }
    // One file was planted both as repeated and as without a row: it has one row and is neither.
    let kinds = [
        ("duplicate_row", Trouble::DuplicateRow, 7 - 1),
        ("conflicting_row", Trouble::ConflictingRows, 3),
        ("file_missing", Trouble::MissingFile, 3),
        ("no_row", Trouble::UnlistedFile, 4 - 1),
        ("label_case", Trouble::LabelCase, 3),
        // And the class `Hat ` with three images.
        ("label_space", Trouble::LabelSpace, 3 + 3),
        ("label_empty", Trouble::EmptyLabel, 2),
        ("group_empty", Trouble::EmptyCell, 3),
        ("backslash", Trouble::Backslash, 2),
        ("dot_slash", Trouble::DotSlash, 2),
        ("name_only", Trouble::NameOnly, 2),
    ];
    assert_eq!(planted.len(), kinds.len());
    for (problem, kind, n) in kinds {
        assert!(planted.contains_key(problem), "{problem}");
        assert_eq!(count(&listing, kind), n, "{problem}");
    }
    assert_eq!(list(&root.join("images")).classes.len(), 13);
}

#[test]
fn the_real_sets_are_understood() {
    if let Some(root) = shared("bccd_rows") {
        let listing = list(&root);
        assert_eq!((listing.entries.len(), count(&listing, Trouble::MissingFile)), (364, 254));
        assert_eq!(listing.classes, ["Platelets", "RBC", "WBC"]);
    }
    if let Some(root) = shared("banana_ccby") {
        let by_table = list(&root);
        let by_tree = list_with(&root, |o| o.folders_only = true);
        assert_eq!((by_table.kind, by_tree.kind), (Kind::Table, Kind::Classes));
        assert_eq!(labels(&by_table), labels(&by_tree));
        assert_eq!(by_table.entries.len(), 190);
    }
    if let Some(root) = shared("grocery_nested") {
        let listing = list_with(&root, |o| o.files_from = Some(root.join("train.txt")));
        assert_eq!((listing.entries.len(), listing.classes.len()), (194, 9));
        assert!(listing.entries.iter().all(|e| e.fault.is_none() && e.label.parse::<u32>().is_ok()));
        assert_eq!(list(&root).kind, Kind::Splits, "classes.csv names no file here");
    }
}

#[test]
fn any_table_is_a_listing_in_which_every_file_is_once_or_an_error() {
    let words = [
        "a.jpg",
        "b/a.jpg",
        "B/A.JPG",
        "b\\a.jpg",
        "./a.jpg",
        "../a.jpg",
        "/a.jpg",
        "a",
        " a.jpg ",
        "",
        "\"\"",
        "x|y",
        "b/..",
        ".",
        "/",
        "%00",
        "%2e%2e/x",
        "\u{301}",
        "c/e\u{301}.jpg",
        "C:\\a.jpg",
        "1",
        "0",
        "cat",
        "a.jpg/",
        "b",
    ];
    let files = ["a.jpg", "b/a.jpg", "b/c.png", "c/é.jpg", "c/d/1.jpg"];
    let mut seed = 7_u64;
    let mut pick = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    let mut listings = 0;
    for _ in 0..300 {
        let mut table = String::from("path,label,split\n");
        for _ in 0..pick(9) {
            let cells: Vec<&str> = (0..3).map(|_| words[pick(words.len())]).collect();
            table += &format!("{}\n", cells.join(","));
        }
        let dir = tree(&files);
        put(dir.path(), "t.csv", table.as_bytes());
        let options = Options { allow_outside: pick(2) == 0, hidden: pick(2) == 0, ..Options::default() };
        let Ok(listing) = open(&dir.path().join("t.csv"), &options) else { continue };
        listings += 1;
        assert!(paths(&listing).windows(2).all(|p| p[0] < p[1]), "{table}{:?}", paths(&listing));
        for entry in listing.entries.iter().filter(|e| e.fault.is_none()) {
            assert!(entry.file.is_file(), "{table}{entry:?}");
        }
        if !listing.said.iter().any(|s| s.starts_with("only files in")) {
            for file in files {
                row(&listing, file);
            }
        }
    }
    assert!(listings > 50, "{listings}");
}

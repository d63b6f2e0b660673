//! Folder trees: what becomes a row, a class, a split, and what is only counted.

#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in tests, but not in what tests share")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use imgprep::entry::Entry;
use imgprep::fault::Cause;
use imgprep::source::{Kind, Listing, Options, Trouble, open, read_file};

/// A tree of small files, and a name that ends with `/` is an empty folder.
pub fn tree(names: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        put(dir.path(), name, name.as_bytes());
    }
    dir
}

/// One file with its folders.
#[expect(clippy::disallowed_methods, reason = "a test makes its own input")]
pub fn put(root: &Path, name: &str, bytes: &[u8]) {
    let path = root.join(name);
    if name.ends_with('/') {
        fs::create_dir_all(path).unwrap();
        return;
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn list(root: &Path) -> Listing {
    open(root, &Options::default()).unwrap()
}

fn list_with(root: &Path, change: impl FnOnce(&mut Options)) -> Listing {
    let mut options = Options::default();
    change(&mut options);
    open(root, &options).unwrap()
}

/// The paths of the rows.
pub fn paths(listing: &Listing) -> Vec<&str> {
    listing.entries.iter().map(|e| e.path.as_str()).collect()
}

/// How many findings of this kind.
pub fn count(listing: &Listing, kind: Trouble) -> usize {
    listing.findings.iter().filter(|f| f.kind == kind).count()
}

/// The row of this path.
pub fn row<'a>(listing: &'a Listing, path: &str) -> &'a Entry {
    listing
        .entries
        .iter()
        .find(|e| e.path == path)
        .unwrap_or_else(|| panic!("no {path} in {:?}", paths(listing)))
}

fn cause(listing: &Listing, path: &str) -> Option<Cause> {
    row(listing, path).fault.as_ref().map(|f| f.cause)
}

#[test]
fn the_first_folder_is_the_class_however_deep_the_file_lies() {
    let dir = tree(&["cat/1.jpg", "cat/a/b/2.jpg", "dog/1.jpg", "stray.jpg", "bird/"]);
    let listing = list(dir.path());
    assert_eq!(listing.kind, Kind::Classes);
    assert_eq!(paths(&listing), ["cat/1.jpg", "cat/a/b/2.jpg", "dog/1.jpg", "stray.jpg"]);
    let labels: Vec<&str> = listing.entries.iter().map(|e| e.label.as_str()).collect();
    assert_eq!(labels, ["cat", "cat", "dog", ""]);
    assert_eq!(listing.classes, ["bird", "cat", "dog"]);
    assert_eq!((count(&listing, Trouble::Unlabelled), count(&listing, Trouble::EmptyClass)), (1, 1));
    assert_eq!(listing.entries[0].bytes, 9);
}

#[test]
fn classes_are_in_code_point_order_never_natural() {
    let dir = tree(&["10/a.jpg", "2/a.jpg", "1/a.jpg", "b/a.jpg", "B/a.jpg", "é/a.jpg"]);
    assert_eq!(list(dir.path()).classes, ["1", "10", "2", "B", "b", "é"]);
}

#[test]
fn split_folders_above_classes_are_splits_only_if_all_are() {
    let dir = tree(&["training/cat/1.jpg", "Valid/cat/1.jpg", "test/dog/1.jpg", "test/loose.jpg"]);
    let listing = list(dir.path());
    assert_eq!(listing.kind, Kind::Splits);
    let told: Vec<(&str, &str)> =
        listing.entries.iter().map(|e| (e.split.as_str(), e.label.as_str())).collect();
    assert_eq!(told, [("val", "cat"), ("test", "dog"), ("test", ""), ("train", "cat")]);
    assert_eq!(listing.classes, ["cat", "dog"]);

    let dir = tree(&["train/x/1.jpg", "cars/y/1.jpg"]);
    let listing = list(dir.path());
    assert_eq!(
        (listing.kind, listing.classes.as_slice()),
        (Kind::Classes, &["cars".into(), "train".into()][..])
    );
}

#[test]
fn one_part_of_a_split_can_be_asked_for() {
    let dir = tree(&["train/cat/1.jpg", "val/cat/1.jpg", "val/cat/2.jpg"]);
    let listing = list_with(dir.path(), |o| o.split = Some("val".into()));
    assert_eq!((listing.entries.len(), listing.ignored.other_split), (2, 1));
    let options = Options { split: Some("holdout".into()), ..Options::default() };
    let error = open(dir.path(), &options).unwrap_err();
    assert!(error.to_string().contains("`train` and `val`"), "{error}");
}

#[test]
fn a_flat_folder_has_no_labels_and_odd_extensions_are_rows() {
    let dir = tree(&["a.jpg", "b", "c.xyz", "d.HTML", "e.html.jpg", "LICENSE", "notes.txt", "x.tar.gz"]);
    let listing = list(dir.path());
    assert_eq!(listing.kind, Kind::Flat);
    assert_eq!(paths(&listing), ["a.jpg", "b", "c.xyz", "e.html.jpg"]);
    let sidecars: Vec<(&str, usize)> =
        listing.ignored.sidecars.iter().map(|(k, n)| (k.as_str(), *n)).collect();
    assert_eq!(sidecars, [("LICENSE", 1), ("gz", 1), ("html", 1), ("txt", 1)]);
}

#[test]
fn junk_and_hidden_files_are_counted_and_never_classes() {
    let names = [
        "cat/1.jpg",
        "cat/._1.jpg",
        "cat/.DS_Store",
        "cat/Thumbs.db",
        "cat/.x.jpg",
        ".hid/2.jpg",
        "__MACOSX/cat/1.jpg",
        ".ipynb_checkpoints/1.jpg",
        "@eaDir/1.jpg",
        "cat/.ipynb_checkpoints/1.jpg",
        ".prep/lock",
        "cat/desktop.ini",
    ];
    let dir = tree(&names);
    let listing = list(dir.path());
    let (rows, usable): (Vec<_>, Vec<_>) = listing.entries.iter().partition(|e| e.fault.is_some());
    assert_eq!(usable.iter().map(|e| e.path.as_str()).collect::<Vec<_>>(), ["cat/1.jpg"]);
    let junk = ["cat/.DS_Store", "cat/._1.jpg", "cat/Thumbs.db", "cat/desktop.ini"];
    assert_eq!(rows.iter().map(|e| e.path.as_str()).collect::<Vec<_>>(), junk);
    assert!(rows.iter().all(|e| e.label.is_empty()));
    assert_eq!((listing.ignored.junk, listing.ignored.hidden), (8, 3));
    assert_eq!(listing.classes, ["cat"]);
    let hidden = list_with(dir.path(), |o| o.hidden = true);
    let usable: Vec<_> =
        hidden.entries.iter().filter(|e| e.fault.is_none()).map(|e| e.path.as_str()).collect();
    assert_eq!(usable, [".hid/2.jpg", "cat/.x.jpg", "cat/1.jpg"]);
}

#[test]
fn a_picture_called_a_text_file_is_a_row() {
    let dir = tree(&["cat/1.jpg"]);
    put(dir.path(), "cat/2.txt", b"\xff\xd8\xff\xe0 a JPEG by its first bytes");
    put(dir.path(), "cat/3.txt", b"0 0.5 0.5 0.1 0.1\n");
    let listing = list(dir.path());
    assert_eq!(paths(&listing), ["cat/1.jpg", "cat/2.txt"]);
    assert_eq!(listing.ignored.sidecars["txt"], 1);
}

#[test]
fn ignore_files_follow_git_rules_but_only_our_own_is_asked() {
    let dir = tree(&["cat/1.jpg", "cat/raw/1.jpg", "cat/keep.png", "dog/1.png", "dog/2.png"]);
    put(dir.path(), ".gitignore", b"*.jpg\n");
    put(dir.path(), ".prepignore", b"raw/\n*.png\n");
    put(dir.path(), "dog/.prepignore", b"!2.png\n");
    let listing = list(dir.path());
    assert_eq!(paths(&listing), ["cat/1.jpg", "dog/2.png"]);
    assert_eq!(listing.ignored.by_ignore_file, 3);
}

#[test]
fn globs_without_a_slash_match_at_any_depth() {
    let dir = tree(&["cat/1.jpg", "cat/2.png", "dog/a/3.jpg", "dog/b/4.jpg", "#5.jpg"]);
    let of = |globs: &[&str], exclude: &[&str]| {
        let listing = list_with(dir.path(), |o| {
            o.globs = globs.iter().map(|g| (*g).to_owned()).collect();
            o.exclude = exclude.iter().map(|g| (*g).to_owned()).collect();
        });
        assert_eq!(listing.entries.len() + listing.ignored.by_glob, 5);
        paths(&listing).join(" ")
    };
    assert_eq!(of(&["*.png"], &[]), "cat/2.png");
    assert_eq!(of(&["dog/**/*.jpg"], &[]), "dog/a/3.jpg dog/b/4.jpg");
    assert_eq!(of(&["dog/"], &["dog/a"]), "dog/b/4.jpg");
    assert_eq!(of(&["#*"], &[]), "#5.jpg");
    let options = Options { globs: vec!["a{b".into()], ..Options::default() };
    assert!(open(dir.path(), &options).unwrap_err().to_string().contains("--glob \"a{b\" is no glob"));
}

#[test]
fn links_are_followed_loops_and_dangling_ones_are_rows() {
    let dir = tree(&["cat/1.jpg", "cat/sub/2.jpg"]);
    let outside = tree(&["9.jpg"]);
    symlink(dir.path(), dir.path().join("cat/sub/up")).unwrap();
    symlink("loop", dir.path().join("cat/loop")).unwrap();
    symlink("nowhere.jpg", dir.path().join("cat/gone.jpg")).unwrap();
    symlink("1.jpg", dir.path().join("cat/again.jpg")).unwrap();
    symlink(outside.path(), dir.path().join("far")).unwrap();
    let listing = list(dir.path());
    assert_eq!(
        paths(&listing),
        [
            "cat/1.jpg",
            "cat/again.jpg",
            "cat/gone.jpg",
            "cat/loop",
            "cat/sub/2.jpg",
            "cat/sub/up",
            "far/9.jpg"
        ]
    );
    assert_eq!(cause(&listing, "cat/gone.jpg"), Some(Cause::DanglingLink));
    assert_eq!(cause(&listing, "cat/loop"), Some(Cause::LinkLoop));
    assert_eq!(cause(&listing, "cat/sub/up"), Some(Cause::LinkLoop));
    assert_eq!(listing.classes, ["cat", "far"]);
    assert_eq!((count(&listing, Trouble::LinkLoop), count(&listing, Trouble::DanglingLink)), (2, 1));
}

#[test]
fn folders_full_of_links_to_each_other_end() {
    let dir = tree(&[]);
    for i in 0..8 {
        put(dir.path(), &format!("{i}/a.jpg"), b"x");
        for j in 0..8 {
            symlink(format!("../{j}"), dir.path().join(format!("{i}/to{j}"))).unwrap();
        }
    }
    let listing = list(dir.path());
    assert!(listing.entries.len() > 8 && listing.entries.len() < 20_000, "{}", listing.entries.len());
}

#[test]
fn a_fifo_is_a_row_and_is_never_opened() {
    let dir = tree(&["cat/1.jpg"]);
    let fifo = dir.path().join("cat/pipe.jpg");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("cat/socket")).unwrap();
    let listing = list(dir.path());
    assert_eq!(cause(&listing, "cat/pipe.jpg"), Some(Cause::NotRegular));
    assert_eq!(cause(&listing, "cat/socket"), Some(Cause::NotRegular));
    // Also where the listing was made before the FIFO took the place of a file.
    let mut entry = row(&listing, "cat/1.jpg").clone();
    entry.file = fifo;
    assert_eq!(read_file(&entry, &mut Vec::new()).unwrap_err().cause, Cause::NotRegular);
}

#[test]
fn a_file_is_read_whole_or_is_a_fault() {
    let dir = tree(&["a.jpg"]);
    let listing = list(dir.path());
    let mut buf = b"old".to_vec();
    read_file(&listing.entries[0], &mut buf).unwrap();
    assert_eq!(buf, b"a.jpg");
    fs::remove_file(dir.path().join("a.jpg")).unwrap();
    let fault = read_file(&listing.entries[0], &mut buf).unwrap_err();
    assert_eq!((fault.cause, buf.len()), (Cause::Missing, 0));
}

#[test]
fn names_of_any_bytes_come_back() {
    use std::os::unix::ffi::OsStrExt;
    let names: [&[u8]; 6] = [
        b"cat/\xff\xfe.jpg",
        b"cat/new\nline.jpg",
        b"cat/100%41.jpg",
        b"cat/-rf.jpg",
        b"cat/ .jpg",
        b"a|b/1.jpg",
    ];
    let dir = tree(&[]);
    for name in names {
        let path = dir.path().join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy("/etc/hostname", &path).unwrap();
    }
    let listing = list(dir.path());
    assert_eq!(listing.entries.len(), 6);
    for entry in &listing.entries {
        assert_eq!(dir.path().join(imgprep::names::decode(&entry.path)), entry.file);
        read_file(entry, &mut Vec::new()).unwrap();
    }
    assert_eq!(listing.classes, ["a%7Cb", "cat"]);
}

#[test]
fn trees_deeper_than_a_path_may_be_long_are_walked_and_read() {
    let dir = tree(&[]);
    let mut at =
        rustix::fs::open(dir.path(), rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
    let name = "d".repeat(200);
    for _ in 0..300 {
        rustix::fs::mkdirat(&at, &name, rustix::fs::Mode::from_raw_mode(0o700)).unwrap();
        at =
            rustix::fs::openat(&at, &name, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
    }
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    let file = rustix::fs::openat(&at, "x.jpg", flags, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    rustix::io::write(&file, b"deep").unwrap();
    let listing = list(dir.path());
    assert_eq!(listing.entries.len(), 1);
    assert_eq!(listing.entries[0].path.len(), 300 * 201 + 5);
    let mut buf = Vec::new();
    read_file(&listing.entries[0], &mut buf).unwrap();
    assert_eq!(buf, b"deep");
}

#[test]
fn what_cannot_be_opened_is_an_error_only_for_the_input_itself() {
    let error = open(Path::new("/no/such/folder"), &Options::default()).unwrap_err();
    assert!(error.to_string().contains("/no/such/folder: there is no such file or folder"), "{error}");
}

#[test]
fn a_file_that_is_not_what_it_promised_has_changed() {
    let dir = tree(&["a.jpg"]);
    let mut entry = list(dir.path()).entries.remove(0);
    // The kernel says 0 bytes and gives many: what a file looks like that grows while it is read.
    entry.file = "/proc/self/status".into();
    let mut buf = Vec::new();
    let fault = read_file(&entry, &mut buf).unwrap_err();
    assert_eq!((fault.cause, buf.len()), (Cause::Changed, 0));
}

#[test]
fn what_may_not_be_read_is_a_row_with_its_fault() {
    let name = "source_tree::what_may_not_be_read_is_a_row_with_its_fault";
    if rustix::process::geteuid().is_root() {
        // Root may read everything: the test runs again as nobody.
        let done = std::process::Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let dir = tree(&["cat/1.jpg", "cat/2.jpg", "dog/3.jpg"]);
    let lock = |path: &str, mode| {
        fs::set_permissions(dir.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    lock("cat/2.jpg", 0);
    lock("dog", 0);
    let listing = list(dir.path());
    lock("dog", 0o700);
    assert_eq!(paths(&listing), ["cat/1.jpg", "cat/2.jpg", "dog"]);
    assert_eq!(cause(&listing, "dog"), Some(Cause::Permission));
    assert_eq!(count(&listing, Trouble::Unreadable), 1);
    assert_eq!(read_file(row(&listing, "cat/2.jpg"), &mut Vec::new()).unwrap_err().cause, Cause::Permission);
}

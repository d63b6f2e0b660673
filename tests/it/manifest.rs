//! The manifest: written once, read by every later command, with the user's columns as they were.

#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in tests, but not in what tests share")]

use std::path::Path;

use imgprep::fault::{Cause, Fault, Note, Oddity, Status, join_notes};
use imgprep::manifest::{Layout, Places, Row, Sidecar, Writer, Written, parse_notes};
use imgprep::source::{Kind, Listing, Options, Trouble, open};
use imgprep::table::{Header, Table, parse};

use crate::source_tree::{count, paths, put, row, tree};

fn list(root: &Path) -> Listing {
    open(root, &Options::default()).unwrap()
}

/// The manifest of a listing, as a job would write it.
fn written(listing: &Listing, with_source: bool) -> (Vec<u8>, Written) {
    let layout = Layout::new(listing.table.as_ref(), &listing.taken, with_source);
    let mut writer =
        Writer::new(Vec::new(), Path::new("manifest.csv"), layout, listing.table.as_ref()).unwrap();
    for entry in &listing.entries {
        writer.write(&Row::of(entry), entry.row).unwrap();
    }
    writer.finish().unwrap()
}

/// Puts manifest and sidecar into a folder.
fn save(root: &Path, listing: &Listing) {
    let (bytes, written) = written(listing, false);
    let mut sidecar = Sidecar::new(written.hash);
    sidecar.set_classes(listing.classes.iter().map(String::as_str));
    put(root, "manifest.csv", &bytes);
    put(root, "manifest.prep.json", sidecar.to_json().as_bytes());
}

fn text(bytes: &[u8]) -> Table {
    parse(Path::new("manifest.csv"), bytes.to_vec(), Header::Names).unwrap()
}

#[test]
fn a_manifest_comes_back_as_the_listing_it_was_written_from() {
    let names = [
        "cat/1.jpg",
        "cat/a,b;c.jpg",
        "cat/it's \"x\".jpg",
        "dog/new\nline.jpg",
        "dog/ .jpg",
        "dog/é.jpg",
        "dog/100%41.jpg",
    ];
    let dir = tree(&names);
    std::os::unix::fs::symlink("nowhere", dir.path().join("dog/gone.jpg")).unwrap();
    let before = list(dir.path());
    save(dir.path(), &before);
    let after = list(dir.path());
    assert_eq!((after.kind, after.entries.len()), (Kind::Manifest, 8));
    assert_eq!(after.classes, before.classes);
    for (a, b) in after.entries.iter().zip(&before.entries) {
        assert_eq!(
            (&a.path, &a.file, &a.label, a.bytes, &a.fault),
            (&b.path, &b.file, &b.label, b.bytes, &b.fault)
        );
    }
    assert!(after.findings.iter().all(|f| f.kind != Trouble::Manifest), "{:?}", after.findings);
    let again = written(&after, false).0;
    assert_eq!(again, written(&before, false).0, "written again it is the same, byte for byte");
}

#[test]
fn the_users_columns_are_kept_in_order_and_never_overwritten() {
    let dir = tree(&["1.jpg", "2.jpg"]);
    put(
        dir.path(),
        "labels.csv",
        b"plant,path,label,width,status\n7,2.jpg,x,wide,sold\n8,1.jpg,y,thin,new\n",
    );
    let (bytes, _) = written(&list(dir.path()), true);
    let table = text(&bytes);
    let header = "path,label,split,fold,group,prep_status,fault,notes,prep_width,height,bytes,hash,\
                  src,src_width,src_height,src_format,src_mode,src_orientation,src_hash,plant,width,status";
    assert_eq!(table.columns.join(","), header);
    assert_eq!(table.row(0).collect::<Vec<_>>().join(","), "1.jpg,y,,,,ok,,,,,5,,,,,,,,,8,thin,new");
    let layout = Layout::new(list(dir.path()).table.as_ref(), &[1, 2], false);
    assert!(layout.sentence().unwrap().contains("prep_status, prep_width"));

    put(dir.path(), "manifest.csv", &bytes);
    let again = list(dir.path());
    assert_eq!((again.kind, again.entries[0].label.as_str()), (Kind::Manifest, "y"));
    assert_eq!(text(&written(&again, true).0).columns.join(","), header);
    assert_eq!(written(&again, true).0, bytes);
}

#[test]
fn rows_that_were_not_usable_are_left_out_and_never_lost() {
    let dir = tree(&["a.jpg", "b.jpg", "c.jpg", "d.jpg", "f.jpg"]);
    let mut listing = list(dir.path());
    listing.entries[1].fault = Some(Fault::new(Cause::Truncated, "row 10 of 20"));
    listing.entries[2].fault = Some(Fault::new(Cause::Excluded, ""));
    listing.entries[3].fault = Some(Fault::new(Cause::Permission, "permission denied"));
    listing.entries[0].notes = vec![Note::new(Oddity::Frames, 3)];
    save(dir.path(), &listing);
    put(dir.path(), "e.jpg", b"new");
    std::fs::remove_file(dir.path().join("f.jpg")).unwrap();
    let after = list(dir.path());
    let status = |path: &str| row(&after, path).fault.as_ref().map_or(Status::Ok, Fault::status);
    assert_eq!(status("a.jpg"), Status::Ok);
    assert_eq!(row(&after, "a.jpg").notes, [Note::new(Oddity::Frames, 3)]);
    assert_eq!(row(&after, "b.jpg").fault, Some(Fault::new(Cause::Truncated, "row 10 of 20")));
    assert_eq!(status("c.jpg"), Status::Excluded);
    assert_eq!(status("d.jpg"), Status::Ok, "what may have healed gets another try");
    assert_eq!(row(&after, "e.jpg").fault.as_ref().unwrap().cause, Cause::Unlisted);
    assert_eq!(row(&after, "f.jpg").fault.as_ref().unwrap().cause, Cause::Missing);
}

#[test]
fn a_manifest_that_was_changed_or_has_no_sidecar_says_so() {
    let dir = tree(&["a.jpg"]);
    let listing = list(dir.path());
    save(dir.path(), &listing);
    let (mut bytes, _) = written(&listing, false);
    bytes.extend_from_slice(b"z.jpg,,,,,excluded,,,,,,\n");
    put(dir.path(), "manifest.csv", &bytes);
    let after = list(dir.path());
    assert_eq!((count(&after, Trouble::Manifest), paths(&after)), (1, vec!["a.jpg", "z.jpg"]));
    assert!(after.said.iter().any(|s| s.contains("was changed since prep")), "{:?}", after.said);
    std::fs::remove_file(dir.path().join("manifest.prep.json")).unwrap();
    assert!(list(dir.path()).said.iter().any(|s| s.contains("may be unfinished")));
}

#[test]
fn what_prep_would_not_write_is_an_error_with_its_line() {
    let dir = tree(&["a.jpg"]);
    let header = "path,label,split,fold,group,status,fault,notes,width,height,bytes,hash\n";
    let cases = [
        ("a.jpg,,,,,okay,,,,,,\n", "manifest.csv:2: status `okay` is none of"),
        ("a.jpg,,,,,ok,,,-3,,,\n", "manifest.csv:2: `-3` in column `width`"),
        ("a.jpg,,,,,ok,,,,,,\na.jpg,,,,,ok,,,,,,\n", "manifest.csv:3: a second row for `a.jpg`"),
    ];
    for (rows, why) in cases {
        put(dir.path(), "manifest.csv", format!("{header}{rows}").as_bytes());
        let said = open(dir.path(), &Options::default()).unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    }
    put(
        dir.path(),
        "manifest.csv",
        format!("{header}../a.jpg,,,,,ok,,,,,,\n/etc/passwd,,,,,ok,,,,,,\n").as_bytes(),
    );
    let listing = list(dir.path());
    assert_eq!(count(&listing, Trouble::OutsideRoot), 2);
    assert!(listing.entries.iter().filter(|e| e.row.is_some()).all(|e| e.fault.is_some()));
}

#[test]
fn the_sidecar_keeps_what_newer_versions_wrote_and_refuses_newer_schemas() {
    let dir = tree(&[]);
    let path = dir.path().join("train.manifest.csv");
    assert_eq!(Sidecar::read(&path).unwrap(), None);
    let mut sidecar = Sidecar::new("abc");
    sidecar.set_classes(["b", "a"]);
    sidecar.seed = Some(7);
    sidecar.rest.insert("later".into(), serde_json::json!({"x": [1, 2]}));
    put(dir.path(), "train.manifest.prep.json", sidecar.to_json().as_bytes());
    let again = Sidecar::read(&path).unwrap().unwrap();
    assert_eq!(again, sidecar);
    assert_eq!(again.class_to_idx.keys().collect::<Vec<_>>(), ["b", "a"]);
    put(dir.path(), "train.manifest.prep.json", b"{\"schema\": 99}");
    assert!(Sidecar::read(&path).unwrap_err().to_string().contains("take a newer prep"));
    put(dir.path(), "train.manifest.prep.json", b"{\"schema\": 1,");
    assert!(Sidecar::read(&path).unwrap_err().to_string().contains("not as prep writes it"));
}

#[test]
fn rows_out_of_order_are_a_mistake_of_ours() {
    let dir = tree(&["a.jpg", "b.jpg"]);
    let listing = list(dir.path());
    let layout = Layout::new(None, &[], false);
    let mut writer = Writer::new(Vec::new(), Path::new("m.csv"), layout, None).unwrap();
    writer.write(&Row::of(&listing.entries[1]), None).unwrap();
    let error = writer.write(&Row::of(&listing.entries[0]), None).unwrap_err();
    assert!(error.to_string().contains("a mistake in prep itself"), "{error}");
}

#[test]
fn notes_come_back() {
    let notes = vec![
        Note::plain(Oddity::Gray),
        Note::new(Oddity::ConflictingRows, "a|b"),
        Note::new(Oddity::Frames, 2),
    ];
    assert_eq!(parse_notes(&join_notes(&notes)), notes);
    assert_eq!(parse_notes("what_a_later_version_says(1);gray"), [Note::plain(Oddity::Gray)]);
}

#[test]
fn all_that_shrink_knows_of_an_image_comes_back() {
    let header =
        [imgprep::manifest::COLUMNS.as_slice(), &imgprep::manifest::SOURCE_COLUMNS].concat().join(",");
    let cells = "images/a.jpg,x,train,3,g1,ok,,gray;frames(2),683,512,9999999999,ab,../in/a.tif,6830,5120,tiff,gray16,6,cd";
    let table = text(format!("{header}\n{cells}\n").as_bytes());
    let places = Places::find(&table).unwrap();
    let row = Row::read(&table, &places, 0).unwrap();
    assert_eq!((row.bytes, row.source.orientation, row.fold.as_str()), (Some(9_999_999_999), Some(6), "3"));
    let layout = Layout::new(Some(&table), &[], true);
    let mut writer = Writer::new(Vec::new(), Path::new("m.csv"), layout, Some(&table)).unwrap();
    writer.write(&row, Some(0)).unwrap();
    assert_eq!(String::from_utf8(writer.finish().unwrap().0).unwrap(), format!("{header}\n{cells}\n"));
}

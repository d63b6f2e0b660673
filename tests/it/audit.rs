//! `prep audit`: what is planted is found, with the right code, and nothing else is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use imgprep::normal::upright_srgb;
use imgprep::pixels::{Orientation, Rgb8};
use serde_json::Value;

use crate::env::{Env, Ran};
use crate::pictures::{BASELINE, jpeg, lossless, picture};
use crate::{benign, damage};

/// A photo of its own for each seed.
fn photo(seed: u32) -> Vec<u8> {
    jpeg(&picture(160, 120, seed * 10), BASELINE)
}

/// `--json` of an audit of `set`, and the exit code.
#[track_caller]
fn audit(env: &Env, args: &[&str]) -> (Value, Option<i32>) {
    let ran = env.run(&[&["audit", "--json", "-q"], args].concat());
    assert!(matches!(ran.code, Some(0 | 1)), "{}\n{}", ran.stdout, ran.stderr);
    (serde_json::from_str(&ran.stdout).unwrap(), ran.code)
}

/// The paths (or places) of each code.
fn by_code(document: &Value) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut codes: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    for finding in document["findings"].as_array().unwrap() {
        let mut paths: Vec<String> =
            finding["paths"].as_array().unwrap().iter().map(|p| p.as_str().unwrap().to_owned()).collect();
        if paths.is_empty() {
            paths.push(finding["at"].as_str().unwrap().to_owned());
        }
        codes.entry(finding["code"].as_str().unwrap().to_owned()).or_default().push(paths);
    }
    codes
}

fn good_set(env: &Env, count: u32) {
    for i in 0..count {
        env.write(format!("set/{}/{i:02}.jpg", ["rust", "scab"][i as usize % 2]), &photo(i));
    }
}

#[test]
fn a_good_set_has_no_errors_and_exits_with_0() {
    let env = Env::new();
    good_set(&env, 24);
    let (document, code) = audit(&env, &["set"]);
    assert_eq!(code, Some(0));
    assert_eq!((document["errors"].as_u64(), document["rows"].as_u64()), (Some(0), Some(24)));
    assert_eq!(document["schema"], 1);
}

#[test]
fn every_planted_fault_of_a_file_has_its_code() {
    let env = Env::new();
    good_set(&env, 24);
    let whole = photo(50);
    env.write("set/rust/empty.jpg", b"");
    env.write("set/rust/page.jpg", b"<!DOCTYPE html><html>404</html>");
    env.write("set/rust/cut.jpg", &whole[..whole.len() / 2]);
    env.write("set/rust/noend.jpg", &whole[..whole.len() - 2]);
    env.write("set/rust/lie.png", &photo(51));
    env.write("set/rust/tail.jpg", &[photo(52), vec![7; 900]].concat());
    env.write("set/rust/copy of 00.jpg", &fs::read(env.path("set/rust/00.jpg")).unwrap());
    env.write("set/rust/meta.jpg", &with_comment(&fs::read(env.path("set/rust/02.jpg")).unwrap()));
    env.write("set/scab/wrong class.jpg", &fs::read(env.path("set/rust/04.jpg")).unwrap());
    let (document, code) = audit(&env, &["set"]);
    let codes = by_code(&document);
    assert_eq!(code, Some(1));
    let one = |path: &str| vec![vec![format!("set/{path}").replace("set/", "")]];
    assert_eq!(codes["F001"], one("rust/empty.jpg"));
    assert_eq!(codes["F002"], one("rust/page.jpg"));
    assert_eq!(codes["F003"], one("rust/cut.jpg"));
    assert_eq!(codes["F005"], one("rust/lie.png"));
    assert_eq!(codes["F007"], one("rust/tail.jpg"));
    assert_eq!(codes["F013"], one("rust/noend.jpg"));
    let pair = |a: &str, b: &str| BTreeSet::from([a.to_owned(), b.to_owned()]);
    let sets = |code: &str| -> Vec<BTreeSet<String>> {
        codes[code].iter().map(|paths| paths.iter().cloned().collect()).collect()
    };
    assert_eq!(
        sets("D001"),
        [pair("rust/00.jpg", "rust/copy of 00.jpg"), pair("rust/04.jpg", "scab/wrong class.jpg")]
    );
    assert_eq!(sets("D002"), [pair("rust/02.jpg", "rust/meta.jpg")]);
    assert_eq!(sets("D004"), [pair("rust/04.jpg", "scab/wrong class.jpg")]);
    let errors: BTreeSet<&str> = document["codes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["severity"] == "error")
        .map(|c| c["code"].as_str().unwrap())
        .collect();
    assert_eq!(errors, BTreeSet::from(["D004", "F001", "F002", "F003"]), "errors on good files");
}

/// The same JPEG with a comment segment: other bytes, same pixels.
fn with_comment(jpeg: &[u8]) -> Vec<u8> {
    [&jpeg[..2], b"\xff\xfe\x00\x07hello", &jpeg[2..]].concat()
}

#[test]
#[cfg(feature = "turbo")]
fn every_kind_of_damage_is_an_error_and_no_odd_file_is() {
    let env = Env::new();
    let (broken, odd) = (damage::broken(), benign::odd());
    assert!(broken.len() >= 47 && odd.len() >= 22, "{} and {}", broken.len(), odd.len());
    let mut wanted = BTreeSet::new();
    for (i, (what, bytes, name)) in broken.iter().enumerate() {
        env.write(format!("set/broken/{i:02}{name}"), bytes);
        if !damage::UNSEEN.contains(what) {
            wanted.insert(format!("broken/{i:02}{name}"));
        }
    }
    for (i, (_, bytes, name, _)) in odd.iter().enumerate() {
        env.write(format!("set/odd/{i:02}{name}"), bytes);
    }
    let (document, _) = audit(&env, &["set", "--select", "F"]);
    let errors: BTreeSet<String> = document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["severity"] == "error")
        .flat_map(|finding| finding["paths"].as_array().unwrap())
        .map(|path| path.as_str().unwrap().to_owned())
        .collect();
    assert!(wanted.is_subset(&errors), "missed: {:?}", wanted.difference(&errors));
    let refused: Vec<&String> = errors.iter().filter(|path| path.starts_with("odd/")).collect();
    assert!(refused.is_empty(), "{refused:?}");
}

#[test]
fn turned_and_mirrored_copies_are_all_found() {
    let env = Env::new();
    let turns = [Orientation::Rotate90, Orientation::Rotate180, Orientation::FlipH];
    let mut wanted = BTreeSet::new();
    for seed in 0..12 {
        let original = picture(200, 150, seed * 100);
        env.write(format!("set/a/{seed:02}.png"), &png(&original));
        let finish = imgprep::decode::Finish { orientation: turns[seed as usize % 3], ..Default::default() };
        let turned = upright_srgb(original, &finish);
        env.write(format!("set/a/{seed:02}-turned.jpg"), &jpeg(&turned, BASELINE));
        wanted.insert(BTreeSet::from([format!("a/{seed:02}.png"), format!("a/{seed:02}-turned.jpg")]));
    }
    let (document, _) = audit(&env, &["set"]);
    let found: BTreeSet<BTreeSet<String>> =
        by_code(&document)["D003"].iter().map(|paths| paths.iter().cloned().collect()).collect();
    assert_eq!(found, wanted);
}

fn png(picture: &Rgb8) -> Vec<u8> {
    lossless(picture, image::ImageFormat::Png)
}

#[test]
fn the_messy_set_shows_every_planted_fault_and_no_error_on_a_good_file() {
    let Some(tar) = crate::env::shared("corpus/data/messy_clothing.tar") else { return };
    let env = Env::new();
    let done =
        std::process::Command::new("tar").arg("-xf").arg(tar).arg("-C").arg(env.path("")).status().unwrap();
    assert!(done.success());
    let (document, code) = audit(&env, &["messy_clothing"]);
    assert_eq!(code, Some(1));
    let codes = by_code(&document);
    let has =
        |code: &str, path: &str| codes.get(code).is_some_and(|all| all.iter().flatten().any(|p| p == path));
    let truth = env.rows("messy_clothing/truth/files.csv");
    assert!(truth.len() > 500, "the test saw only {} files", truth.len());
    let mut wrong = Vec::new();
    for row in &truth {
        let (path, kind) = (row["path"].as_str(), row["kind"].as_str());
        let any = |wanted: &[&str]| wanted.iter().any(|code| has(code, path));
        let unusable = ["F001", "F002", "F003", "F004", "F006", "F008", "F009", "F012"];
        let right = match row["verdict"].as_str() {
            "damaged" | "bad" => any(&unusable),
            "ignore" => true,
            _ => !any(&unusable),
        };
        let planted: &[&str] = match kind {
            "dup_exact" => &["D001"],
            "dup_exact_other_class" => &["D004"],
            "dup_pixels" => &["D002"],
            "bad_empty" => &["F001"],
            "bad_notfound" | "bad_pointer" | "bad_noise" | "bad_zeros" => &["F002"],
            "mode_gray_jpeg" | "mode_gray_png" => &["M001"],
            "mode_palette_png" | "mode_palette_gif" => &["M002"],
            "mode_cmyk_jpeg" => &["M004"],
            "mode_rgb16_png" | "mode_gray16_png" => &["M005"],
            "mode_p3_jpeg" | "mode_adobergb_jpeg" => &["M006"],
            "mode_anim_gif" => &["M008"],
            "mode_rgba_hole_png" => &["M003"],
            _ if kind.starts_with("exif_orientation") => &["M007"],
            _ if kind.starts_with("ext_lie") => &["F005"],
            _ if kind.starts_with("near_") => &["D003", "D011"],
            _ => &[],
        };
        if !right || (!planted.is_empty() && !any(planted)) {
            wrong.push(format!("{path} ({kind}) should be {} {planted:?}", row["verdict"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for code in ["L001", "L002", "L003", "L004", "L005", "L008", "L010", "L014"] {
        assert!(codes.contains_key(code), "{code} is planted in labels.csv");
    }
}

#[test]
fn a_second_command_on_unchanged_data_decodes_nothing() {
    let env = Env::new();
    good_set(&env, 10);
    settle();
    let first = env.ok(&["audit", "set", "--json", "-q"]);
    let second = env.ok(&["audit", "set", "--json", "-v"]);
    assert_eq!(first.stdout, second.stdout);
    assert!(second.stderr.contains("10 images were known, 0 decoded"), "{}", second.stderr);
    env.write("set/rust/00.jpg", &photo(77));
    settle();
    let third = env.ok(&["audit", "set", "-v"]);
    assert!(third.stderr.contains("9 images were known, 1 decoded"), "{}", third.stderr);
    let none = env.ok(&["audit", "set", "-v", "--no-cache"]);
    assert!(!none.stderr.contains("were known"), "{}", none.stderr);
}

/// What was written just now could be written again without a new time.
pub fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(80));
}

#[test]
fn a_torn_or_foreign_cache_costs_a_decode_and_never_a_wrong_fact() {
    let env = Env::new();
    good_set(&env, 6);
    settle();
    let truth = env.ok(&["audit", "set", "--json", "-q", "--no-cache"]).stdout;
    env.ok(&["audit", "set", "-q"]);
    let segments: Vec<String> =
        env.tree("cache").into_iter().map(|(name, _)| name).filter(|n| n.ends_with(".facts")).collect();
    assert_eq!(segments.len(), 1);
    let path = Path::new("cache").join(&segments[0]);
    let whole = fs::read(env.path(&path)).unwrap();
    let step = whole.len() / 23;
    for at in (0..whole.len()).step_by(step) {
        let mut torn = whole.clone();
        torn[at] ^= 0x20;
        if at % 2 == 0 {
            torn.truncate(at);
        }
        for (name, _) in env.tree("cache") {
            if name.ends_with(".facts") {
                fs::remove_file(env.path(Path::new("cache").join(name))).unwrap();
            }
        }
        env.write(&path, &torn);
        assert_eq!(env.ok(&["audit", "set", "--json", "-q"]).stdout, truth, "damaged at {at}");
    }
    env.write("cache/prep-facts/README", b"not ours");
    let told = env.ok(&["cache", "--clear"]);
    assert!(told.stderr.contains("Removed 1 cache ("), "{}", told.stderr);
    assert!(env.path("cache/prep-facts/README").exists(), "a file that prep did not make");
}

#[test]
fn exit_codes_are_as_promised() {
    let env = Env::new();
    good_set(&env, 12);
    let code = |args: &[&str]| env.run(&[&["audit", "set", "-q"], args].concat()).code;
    assert_eq!(code(&[]), Some(0));
    env.write("set/rust/lie.png", &photo(60));
    assert_eq!((code(&[]), code(&["--fail-on", "warning"])), (Some(0), Some(1)));
    assert_eq!(code(&["--fail-on", "warning", "--ignore", "F005,L,D,X"]), Some(0));
    env.write("set/rust/empty.jpg", b"");
    assert_eq!((code(&[]), code(&["--fail-on", "never"])), (Some(1), Some(0)));
    assert_eq!(code(&["--fail-on", "never", "--max-bad", "0"]), Some(1));
    assert_eq!(code(&["--select", "D"]), Some(0));
    assert_eq!((code(&["--select", "Z9"]), code(&["--explain", "F001"])), (Some(2), Some(2)));
    assert_eq!(env.run(&["audit", "--explain", "F001"]).code, Some(0));
    assert_eq!(env.run(&["audit", "--explain", "Z999"]).code, Some(2));
    assert_eq!(env.run(&["audit", "nowhere"]).code, Some(2));
}

#[test]
fn excluded_rows_are_left_out_by_later_commands_and_undo_takes_it_back() {
    let env = Env::new();
    good_set(&env, 12);
    env.write("set/rust/copy.jpg", &fs::read(env.path("set/rust/00.jpg")).unwrap());
    env.ok(&["split", "set", "--stratify", "-q"]);
    let before = env.tree("set");
    let told = env.ok(&["audit", "set", "--exclude", "D001"]);
    assert!(told.stderr.contains("Excluded 1 image"), "{}", told.stderr);
    let rows = env.rows("set/manifest.csv");
    let out: Vec<&str> =
        rows.iter().filter(|r| r["status"] == "excluded").map(|r| r["path"].as_str()).collect();
    assert_eq!(out, ["rust/copy.jpg"]);
    let weights = env.ok(&["weights", "set", "--json", "-q"]);
    let all = env.ok(&["stats", "set", "--json", "-q", "--no-write", "--by", "split"]);
    let count: Value = serde_json::from_str(&all.stdout).unwrap();
    assert_eq!(count["images"], 12, "{}", weights.stdout);
    // The last change was that of weights.
    env.ok(&["undo", "set"]);
    env.ok(&["undo", "set"]);
    assert_eq!(env.tree("set"), before);
    env.ok(&["undo", "set"]);
    assert!(!env.path("set/manifest.csv").exists(), "there was none before the split");
    assert!(env.refused(&["undo", "set"]).contains("no change"));
}

#[test]
fn a_manifest_that_was_edited_by_hand_is_not_undone_unseen() {
    let env = Env::new();
    good_set(&env, 12);
    env.ok(&["split", "set", "-q"]);
    let text = fs::read_to_string(env.path("set/manifest.csv")).unwrap();
    env.write("set/manifest.csv", text.replace("train", "val").as_bytes());
    assert!(env.refused(&["undo", "set"]).contains("changed since"));
    env.ok(&["undo", "set", "--force"]);
    assert!(!env.path("set/manifest.csv").exists());
}

const NASTY: [&str; 4] =
    ["<img src=x onerror=alert(1)>.jpg", "=cmd|' !A0'.jpg", "\u{1b}[31mred.jpg", "a\u{202e}gpj.exe.jpg"];

#[test]
fn names_from_the_disk_appear_as_text_everywhere() {
    let env = Env::new();
    for (i, name) in NASTY.iter().enumerate() {
        env.write(format!("set/rust & <b>/{name}"), &photo(i as u32));
        env.write(format!("set/=1+1/{name}"), &photo(i as u32));
    }
    let html = [
        "audit",
        "set",
        "-v",
        "--fail-on",
        "never",
        "--html=r.html",
        "--facts",
        "f.csv",
        "--findings",
        "g.csv",
    ];
    let ran = env.ok(&html);
    for text in [&ran.stdout, &ran.stderr] {
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
    }
    let page = fs::read_to_string(env.path("r.html")).unwrap();
    assert!(page.contains("onerror"), "the name is there");
    assert!(!page.contains("<img src=x") && !page.contains('\u{1b}'), "markup from a name");
    for table in ["f.csv", "g.csv"] {
        for row in env.rows(table) {
            for cell in row.values() {
                assert!(!cell.starts_with('='), "{table}: {cell} would run");
            }
        }
    }
}

#[test]
fn a_saved_list_goes_back_into_prep() {
    let env = Env::new();
    good_set(&env, 12);
    env.write("list.txt", b"rust/00.jpg\nscab/03.jpg\n");
    let told = env.ok(&["audit", "set", "--exclude", "list.txt"]);
    assert!(told.stderr.contains("Excluded 2 images"), "{}", told.stderr);
    env.write("wrong.txt", b"rust/00.jpg\nrust/none.jpg\n");
    assert!(env.refused(&["audit", "set", "--exclude", "wrong.txt"]).contains("line 2"));
    let (document, _) = audit(&env, &["set", "--files-from", "list.txt"]);
    assert_eq!(document["rows"], 2);
}

#[test]
fn a_class_from_another_camera_is_the_first_shortcut() {
    let env = Env::new();
    for i in 0..60_u32 {
        let (class, size) =
            if i % 3 == 0 { ("rust", (200, 150)) } else { (["scab", "ok"][i as usize % 2], (160, 120)) };
        env.write(format!("set/{class}/{i:02}.jpg"), &jpeg(&picture(size.0, size.1, i * 10), BASELINE));
    }
    let (document, _) = audit(&env, &["set", "--select", "X"]);
    let first = &document["findings"][0];
    assert_eq!(first["code"], "X001", "{document:#}");
    assert!(first["detail"].as_str().unwrap().contains("rust is told from the rest"), "{first}");
}

#[test]
fn leaks_between_splits_are_found() {
    let env = Env::new();
    let mut table = String::from("path,label,split,group\n");
    for i in 0..20_u32 {
        env.write(format!("im/{i:02}.jpg"), &photo(i));
        table += &format!(
            "im/{i:02}.jpg,{},{},p{}\n",
            ["a", "b"][i as usize % 2],
            if i < 15 { "train" } else { "val" },
            i / 2
        );
    }
    env.write("im/copy.jpg", &photo(3));
    table += "im/copy.jpg,b,val,p99\n";
    let small = picture(160, 120, 40);
    env.write("im/small.jpg", &jpeg(&small, imgprep::decode::Shape { quality: 40, ..BASELINE }));
    table += "im/small.jpg,a,val,p98\n";
    env.write("labels.csv", table.as_bytes());
    let (document, code) = audit(&env, &["labels.csv"]);
    let codes = by_code(&document);
    assert_eq!(code, Some(1));
    assert!(codes["D005"][0].contains(&"im/copy.jpg".to_owned()), "{codes:?}");
    assert!(codes["D006"][0].contains(&"im/small.jpg".to_owned()), "{codes:?}");
    assert!(codes["S001"][0].contains(&"im/14.jpg".to_owned()), "{codes:?}");
}

#[test]
fn what_is_in_another_set_too_is_told() {
    let env = Env::new();
    good_set(&env, 10);
    env.write("bench/x.jpg", &photo(4));
    env.write("bench/y.jpg", &with_comment(&photo(5)));
    env.write(
        "bench/z.jpg",
        &jpeg(&picture(160, 120, 60), imgprep::decode::Shape { quality: 50, ..BASELINE }),
    );
    let (document, code) = audit(&env, &["set", "--against", "bench"]);
    let codes = by_code(&document);
    assert_eq!(code, Some(1));
    assert_eq!(codes["D009"], [["rust/04.jpg"], ["scab/05.jpg"]]);
    assert_eq!(codes["D010"], [["rust/06.jpg"]]);
}

#[test]
fn results_do_not_depend_on_threads() {
    let env = Env::new();
    good_set(&env, 16);
    env.write("set/rust/copy.jpg", &fs::read(env.path("set/rust/00.jpg")).unwrap());
    env.write("set/rust/bad.jpg", b"GIF89a");
    let run = |threads: &str| -> (Ran, Vec<u8>, Vec<u8>) {
        let args = [
            "audit",
            "set",
            "--no-cache",
            "-j",
            threads,
            "--json",
            "-q",
            "--html=r.html",
            "--facts",
            "f.csv",
        ];
        let ran = env.run(&args);
        (ran, fs::read(env.path("r.html")).unwrap(), fs::read(env.path("f.csv")).unwrap())
    };
    let (one, eight) = (run("1"), run("8"));
    assert_eq!((one.0.stdout, one.1, one.2), (eight.0.stdout, eight.1, eight.2));
}

#[test]
fn outputs_never_replace_what_audit_did_not_write() {
    let env = Env::new();
    good_set(&env, 4);
    env.write("set/labels.csv", b"path,label\nrust/00.jpg,rust\n");
    let before = env.tree("set");
    for output in ["--html=set/rust/00.jpg", "--facts=set/labels.csv", "--findings=set/scab/01.jpg"] {
        assert!(env.refused(&["audit", "set", output]).contains("was not written by prep audit"), "{output}");
    }
    assert!(env.refused(&["audit", "set", "--facts=a.csv", "--findings=a.csv"]).contains("two outputs"));
    assert!(env.refused(&["audit", "set", "--cache-dir", "set/rust"]).contains("inside the data set"));
    assert_eq!(env.tree("set"), before);
    for _ in 0..2 {
        env.ok(&["audit", "set", "--html=r.html", "--facts=f.csv", "--findings=g.csv"]);
    }
}

#[test]
fn an_exclusion_of_nothing_says_so_and_undo_does_not_take_the_split_back() {
    let env = Env::new();
    good_set(&env, 12);
    env.ok(&["split", "set", "-q"]);
    let before = env.tree("set");
    let told = env.ok(&["audit", "set", "--fail-on", "never", "--exclude", "D002"]);
    assert!(told.stderr.contains("Nothing to exclude") && !told.stderr.contains("undo"), "{}", told.stderr);
    assert_eq!(env.tree("set"), before);
    assert!(env.refused(&["audit", "set", "--exclude", "nolist.txt"]).contains("no such list"));
    assert!(env.refused(&["audit", "set", "--exclude", "D008"]).contains("a person must see"));
}

//! The house has layers; a file uses only layers below its own, jobs do not know each other, and files stay small.

use std::fs;
use std::path::{Path, PathBuf};

/// Lowest first. A room may use rooms of its own layer (jobs excepted) and below.
const LAYERS: [&[&str]; 7] = [
    &["error", "fault", "names", "out", "page", "simd", "table"],
    &["pixels", "decode", "normal", "resize", "encode", "measure"],
    &["entry", "source", "manifest", "home", "facts", "shards"],
    &["engine"],
    &["near", "survey", "thumb"],
    &[
        "shrink", "stats", "split", "weights", "sheet", "pack", "audit", "plan", "verify", "unpack", "apply",
        "show",
    ],
    &["cli"],
];
const JOBS: usize = 5;

fn sources() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(files.len() > 20, "the test saw only {} files", files.len());
    files
}

fn room_of(file: &Path) -> String {
    let below = file.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let first = below.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

fn layer_of(room: &str) -> Option<usize> {
    LAYERS.iter().position(|rooms| rooms.contains(&room))
}

/// Rooms named by `crate::room` or by `use crate::{room, …}` in code (comments are no use of a room).
fn rooms_used(text: &str) -> Vec<String> {
    let code: String =
        text.lines().filter(|l| !l.trim_start().starts_with("//")).map(|l| format!("{l}\n")).collect();
    let mut rooms = Vec::new();
    for part in code.split("crate::").skip(1) {
        let names: Vec<&str> = match part.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or("").split(',').collect(),
            None => vec![part],
        };
        for name in names {
            let name: String = name.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if !name.is_empty() {
                rooms.push(name);
            }
        }
    }
    rooms
}

#[test]
fn every_file_uses_only_layers_below_its_own() {
    let mut wrong = Vec::new();
    let mut uses = 0;
    for file in sources() {
        let room = room_of(&file);
        if room == "lib" || room == "main" {
            continue;
        }
        let Some(layer) = layer_of(&room) else {
            wrong.push(format!("{room} is in no layer: give it one in tests/it/layers.rs"));
            continue;
        };
        for used in rooms_used(&fs::read_to_string(&file).unwrap()) {
            let Some(below) = layer_of(&used) else { continue };
            uses += 1;
            if below > layer {
                wrong.push(format!("{}: {room} (layer {layer}) uses {used} (layer {below})", file.display()));
            }
            if layer == JOBS && below == JOBS && used != room {
                wrong.push(format!("{}: the job {room} uses the job {used}", file.display()));
            }
        }
    }
    assert!(uses > 50, "the test saw only {uses} uses");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_stay_readable() {
    let long: Vec<String> = sources()
        .into_iter()
        .filter_map(|file| {
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            (lines > 500).then(|| format!("{} has {lines} lines", file.display()))
        })
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn unsafe_code_lives_in_one_small_room_and_beside_the_c_library() {
    let word = ["un", "safe"].concat();
    let rooms: Vec<String> = sources()
        .into_iter()
        .filter(|file| {
            let text = fs::read_to_string(file).unwrap();
            text.lines().any(|l| !l.trim_start().starts_with("//") && l.contains(&format!("{word} {{")))
        })
        .map(|file| file.display().to_string())
        .collect();
    let known = ["decode/turbo.rs", "simd/mod.rs", "simd/popcount.rs"];
    assert!(rooms.iter().all(|room| known.iter().any(|file| room.ends_with(file))), "{rooms:?}");
}

//! The compiled decoder of the reader is a package of its own, so that tests of prep need no Python to link against. What
//! it is built from must be what prep is built from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The packages of a lock file: versions by name, and the dependencies of prep's library.
fn lock(path: &str) -> (BTreeMap<String, BTreeSet<String>>, BTreeSet<String>) {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let value: toml::Table = text.parse().unwrap();
    let (mut versions, mut own) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeSet::new());
    for package in value["package"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap().to_owned();
        if name == "imgprep" {
            let names = package["dependencies"].as_array().unwrap().iter();
            own = names.map(|n| n.as_str().unwrap().split(' ').next().unwrap().to_owned()).collect();
        }
        versions.entry(name).or_default().insert(package["version"].as_str().unwrap().to_owned());
    }
    (versions, own)
}

#[test]
fn the_lock_of_the_decoder_follows_that_of_prep() {
    let (root, _) = lock("Cargo.lock");
    let (decoder, own) = lock("python/decode/Cargo.lock");
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let wanted: Vec<&String> = manifest["dependencies"].as_table().unwrap().keys().collect();
    let again = "cd python/decode && cargo update --workspace";
    let missing: Vec<_> = wanted.iter().filter(|name| !own.contains(**name)).collect();
    assert!(missing.is_empty() && own.len() == wanted.len(), "{missing:?} of {own:?}: {again}");
    let mut shared = 0;
    for (name, versions) in &decoder {
        if let Some(there) = root.get(name) {
            shared += 1;
            assert!(
                versions.is_subset(there),
                "{name} is {versions:?}, in prep's lock {there:?}: {again}, then --precise"
            );
        }
    }
    assert!(shared > 80, "{shared}");
}

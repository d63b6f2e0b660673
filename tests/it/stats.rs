//! stats from outside: which rows, which definition, what is written and printed.

use crate::env::{Env, noise_png, png};
use imgprep::encode::{Encoder, Encoding};
use imgprep::pixels::Rgb8;

fn flat(width: u32, height: u32, value: u8) -> Vec<u8> {
    let picture = Rgb8::new(width, height, vec![value; (width * height * 3) as usize]);
    let mut bytes = Vec::new();
    Encoder::default().encode(&picture, Encoding::Png, &mut bytes).unwrap();
    bytes
}

fn json(env: &Env, args: &[&str]) -> serde_json::Value {
    let mut all = vec!["stats"];
    all.extend(args);
    all.push("--json");
    serde_json::from_str(&env.ok(&all).stdout).unwrap()
}

#[test]
fn black_and_white_are_a_half_and_a_half() {
    let env = Env::new();
    env.write("in/a/0.png", &flat(10, 10, 0));
    env.write("in/a/1.png", &flat(30, 10, 255));
    let told = json(&env, &["in"]);
    assert_eq!(told["mean"], serde_json::json!([0.5, 0.5, 0.5]));
    assert_eq!(told["std"], serde_json::json!([0.5, 0.5, 0.5]));
    assert_eq!(told["all"]["pixel"]["mean"][0], 0.75);
    assert_eq!(told["all"]["imagenet"]["std"][0], 0.0);
    assert_eq!(told["gray"], 2);
}

#[test]
fn only_training_rows_count_and_the_output_says_so() {
    let env = Env::new();
    env.write("in/train/a/0.png", &flat(8, 8, 100));
    env.write("in/val/a/1.png", &flat(8, 8, 200));
    let told = json(&env, &["in"]);
    assert_eq!((told["images"].as_u64(), told["rows"].as_str()), (Some(1), Some("training rows")));
    assert!((told["mean"][0].as_f64().unwrap() - 100.0 / 255.0).abs() < 1e-15);
    let told = json(&env, &["in", "--split", "val"]);
    assert!((told["mean"][0].as_f64().unwrap() - 200.0 / 255.0).abs() < 1e-15);
    let told = json(&env, &["in", "--by", "split"]);
    assert_eq!(told["parts"]["val"]["images"], 1);
    assert_eq!(told["images"], 2);
}

#[test]
fn the_numbers_land_in_the_sidecar_and_nothing_else_is_put_there() {
    let env = Env::new();
    for i in 0..6 {
        env.write(format!("in/{}/{i}.png", ["a", "b"][i as usize % 2]), &png(40 + i, 30, i));
    }
    env.write("in/a/bad.jpg", b"<html>");
    env.ok(&["stats", "in"]);
    let names: Vec<String> =
        env.tree("in").into_iter().map(|(name, _)| name).filter(|n| !n.contains('/')).collect();
    assert_eq!(names, ["manifest.csv", "manifest.prep.json"]);
    let sidecar = std::fs::read(env.path("in/manifest.prep.json")).unwrap();
    let sidecar: serde_json::Value = serde_json::from_slice(&sidecar).unwrap();
    assert_eq!(sidecar["stats"]["images"], 6);
    assert_eq!(sidecar["stats"]["weight"], "image");
    assert_eq!(env.rows("in/manifest.csv").len(), 7);
    let again = json(&env, &["in"]);
    assert_eq!(again["images"], 6);
}

#[test]
fn threads_and_views_change_nothing_that_they_should_not() {
    let env = Env::new();
    for i in 0..12 {
        env.write(format!("in/a/{i:02}.png"), &noise_png(20 + i * 3, 50 - i));
    }
    let one = json(&env, &["in", "-j", "1", "--at", "24,16"]);
    let many = json(&env, &["in", "-j", "16", "--at", "24,16"]);
    assert_eq!(one, many);
    assert_eq!(one["pixels"], 12 * 16 * 16);
    assert_eq!(one["at"]["filter"], "bilinear");
    env.refused(&["stats", "in", "--at", "16,24"]);
}

#[test]
fn snippets_can_be_pasted() {
    let env = Env::new();
    env.write("in/a/0.png", &flat(8, 8, 51));
    let of = |library: &str| env.ok(&["stats", "in", "-q", "--emit", library]).stdout;
    assert!(of("torchvision").contains("v2.Normalize(mean=[0.200000, 0.200000, 0.200000], std=[0.000000"));
    assert!(of("torchvision").starts_with("import torch\n"));
    assert!(env.refused(&["stats", "in", "--json", "--emit", "toml"]).contains("drop one"));
    assert!(of("keras").contains("mean=[51.0000, 51.0000, 51.0000]"));
    assert_eq!(of("timm"), "--mean 0.200000 0.200000 0.200000 --std 0.000000 0.000000 0.000000\n");
    for library in ["albumentations", "dali", "jax", "toml"] {
        assert!(of(library).contains("0.2") || of(library).contains("51"), "{library}");
    }
}

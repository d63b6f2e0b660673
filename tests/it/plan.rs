//! plan from outside: every worked figure, the verdicts, the loader, the sample, the experiment ledger.

use imgprep::plan::gpu::{self, Optimizer, Precision, Training};
use imgprep::plan::host::{self, Loader, sample_line};
use imgprep::plan::ledger::{mb, mib};
use imgprep::plan::net::{self, builtin, file};
use imgprep::plan::network::Network;
use imgprep::plan::tape::Rules;
use serde_json::Value;

use crate::env::{Env, jpeg};

const FULL: Rules = Rules { half: false, cuda: false, fused_attention: true };
const PLAIN: Training =
    Training { batch: 32, precision: Precision::Fp32, optimizer: Optimizer::Adam, checkpointing: false };

pub fn plan(env: &Env, args: &[&str]) -> Value {
    let mut all = vec!["plan", "--json"];
    all.extend(args);
    serde_json::from_str(&env.ok(&all).stdout).unwrap()
}

pub fn line<'v>(lines: &'v Value, key: &str) -> &'v Value {
    lines
        .as_array()
        .unwrap()
        .iter()
        .find(|l| l["key"] == key)
        .unwrap_or_else(|| panic!("no line {key} in {lines}"))
}

#[test]
fn samples_and_batches_have_the_worked_bytes() {
    for (size, value, bytes) in [
        ((256, 256), 4, 786_432),
        ((512, 512), 1, 786_432),
        ((512, 512), 4, 3_145_728),
        ((2048, 2048), 4, 50_331_648),
        ((3264, 2448), 1, 23_970_816),
        ((1080, 1920), 1, 6_220_800),
        ((224, 224), 4, 602_112),
    ] {
        assert_eq!(sample_line(size, value).bytes, bytes, "{size:?}");
    }
    assert_eq!(mib(3_145_728), "3.0 MiB");
    assert_eq!(mib(50_331_648), "48.0 MiB");
    assert_eq!(mib(23_970_816), "22.9 MiB");
    assert_eq!(32 * sample_line((1080, 1920), 1).bytes, 199_065_600);
    assert_eq!(sample_line((540, 960), 1).bytes * 4, sample_line((1080, 1920), 1).bytes);
    let env = Env::new();
    for (size, batch, bytes) in
        [("256", "32", 25_165_824_u64), ("224", "32", 19_267_584), ("224", "16", 19_267_584 - 9_633_792)]
    {
        let got = plan(&env, &["--size", size, "--batch", batch]);
        assert_eq!(line(&got["tensors"], "batch")["bytes"], bytes);
    }
    let got = plan(&env, &["--size", "1920x1080", "--batch", "32", "--sample", "uint8"]);
    assert_eq!(line(&got["tensors"], "batch")["bytes"], 199_065_600);
    assert_eq!(line(&got["tensors"], "batch")["numbers"], "32 x 1,080 x 1,920 x 3 x 1");
}

#[test]
fn feature_maps_have_the_worked_bytes() {
    let file = file::parse("[model.first]\nlayers = '''\nconv 64 k=3 p=1\n'''").unwrap();
    let first = |size, half| {
        let m = net::run(&file, &file.models["first"], size, Rules { half, ..FULL }).unwrap();
        32 * m.steps[0].out_bytes
    };
    assert_eq!(first((256, 256), false), 536_870_912);
    assert_eq!(first((256, 256), true), 268_435_456);
    assert_eq!(first((1080, 1920), false), 16_986_931_200);
    let (file, _, model) = builtin::find("resnet50").unwrap();
    let conv1 = net::run(file, model, (224, 224), FULL).unwrap().steps[0].out_bytes;
    assert_eq!((conv1, 32 * conv1, 64 * conv1), (3_211_264, 102_760_448, 205_520_896));
    let share = |a: f64, b: f64| format!("{:.1}", (a / b).powi(2) * 100.0);
    assert_eq!((share(160.0, 224.0), share(224.0, 512.0)), ("51.0".into(), "19.1".into()));
    // The same shares from the network itself.
    let at = |n| net::run(file, model, (n, n), FULL).unwrap().conv_values as f64;
    assert_eq!(format!("{:.1}", at(160) / at(224) * 100.0), "51.0");
    assert_eq!(format!("{:.1}", at(224) / at(512) * 100.0), "19.1");
}

#[test]
fn weights_and_optimizers_have_the_worked_bytes() {
    let lines = |model: &str, optimizer| {
        let net = Network::open(model).unwrap().measure((224, 224), Precision::Fp32, true).unwrap();
        let sum = gpu::sum(&net, Training { optimizer, ..PLAIN });
        ["parameters", "gradients", "optimizer"]
            .map(|key| sum.lines.iter().find(|l| l.key == key).unwrap().bytes)
    };
    let hundred = lines("params=100M,acts=1M@224", Optimizer::Adam);
    assert_eq!(hundred, [400_000_000, 400_000_000, 800_000_000]);
    assert_eq!(hundred.iter().sum::<u64>(), 1_600_000_000);
    let resnet50 = lines("resnet50", Optimizer::AdamW);
    assert_eq!(resnet50.map(mb), ["102 MB", "102 MB", "204 MB"]);
    assert_eq!(resnet50.map(|b| format!("{:.1}", b as f64 / 1e6)), ["102.2", "102.2", "204.5"]);
    assert_eq!(format!("{:.1}", resnet50.iter().sum::<u64>() as f64 / 1e6), "408.9");
    assert_eq!(format!("{:.1}", lines("resnet18", Optimizer::Sgd)[0] as f64 / 1e6), "46.8");
    assert_eq!(lines("resnet18", Optimizer::Sgd)[2], 0);
    assert_eq!(lines("params=256k,acts=1M", Optimizer::Adam8bit)[2], 2 * 256_000 + 1000 * 8);
}

#[test]
fn the_loader_has_the_worked_bytes_and_says_what_to_turn_down() {
    let loader = Loader { workers: 16, prefetch: 2, batch: 32, size: (224, 224), value_bytes: 4 };
    let held = host::host(loader, None);
    assert_eq!(held.lines.iter().find(|l| l.key == "in_flight").unwrap().bytes, 616_562_688);
    assert_eq!(held.shared, 616_562_688);
    let (fits, sentence) = host::verdict(&held, loader, None, 16_000_000_000);
    assert!(fits, "{sentence}");
    let (fits, sentence) = host::verdict(&held, loader, None, held.total + 700_000_000);
    assert!(!fits && sentence.contains("Turn down --prefetch first: 1 fits"), "{sentence}");
    let (fits, sentence) = host::verdict(&held, loader, None, 2_500_000_000);
    assert!(!fits && sentence.contains("Turn down --workers first"), "{sentence}");
}

#[test]
fn autocast_and_checkpointing_take_less_and_each_line_adds_up() {
    let network = Network::open("resnet50").unwrap();
    let sum = |precision, checkpointing| {
        let net = network.measure((224, 224), precision, true).unwrap();
        gpu::sum(&net, Training { precision, checkpointing, ..PLAIN })
    };
    let full = sum(Precision::Fp32, false);
    let half = sum(Precision::Amp, false);
    let again = sum(Precision::Fp32, true);
    assert!(half.total < full.total * 7 / 10, "{} {}", half.total, full.total);
    assert!(again.total < full.total * 8 / 10, "{} {}", again.total, full.total);
    assert_eq!(half.lines.iter().find(|l| l.key == "half_copies").unwrap().numbers, "25,503,912 x 2");
    for sum in [full, half, again] {
        assert_eq!(sum.total, sum.lines.iter().map(|l| l.bytes).sum::<u64>());
        let tensors: u64 =
            sum.lines.iter().filter(|l| !["reserve", "context"].contains(&l.key)).map(|l| l.bytes).sum();
        assert_eq!(
            sum.lines.iter().find(|l| l.key == "reserve").unwrap().bytes,
            tensors * gpu::RESERVE / 100
        );
    }
}

#[test]
fn the_largest_batch_fits_and_one_more_does_not() {
    let net = Network::open("resnet50").unwrap().measure((224, 224), Precision::Fp32, true).unwrap();
    for vram in [2_000_000_000, 8_000_000_000, 24 << 30] {
        let batch = gpu::largest_batch(&net, PLAIN, vram);
        assert!(batch > 0);
        assert!(gpu::sum(&net, Training { batch, ..PLAIN }).total <= vram);
        assert!(gpu::sum(&net, Training { batch: batch + 1, ..PLAIN }).total > vram);
    }
    assert_eq!(gpu::largest_batch(&net, PLAIN, 1_000_000), 0);
}

#[test]
fn what_does_not_fit_gets_remedies_in_order_with_true_totals() {
    let env = Env::new();
    let got = plan(&env, &["--model", "resnet50", "--batch", "64", "--vram", "4G"]);
    assert_eq!(got["gpu"]["fits"], false);
    let steps = got["gpu"]["to_do"].as_array().unwrap();
    let keys: Vec<&str> = steps.iter().map(|s| s["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["precision", "accumulation", "size", "checkpointing", "optimizer"]);
    // Each total is what plan itself says when the advice is followed.
    let total = |args: &[&str]| plan(&env, args)["gpu"]["total_bytes"].clone();
    let base = ["--model", "resnet50", "--vram", "4G"];
    let with = |more: &[&str]| total(&[&base[..], more].concat());
    assert_eq!(steps[0]["total_bytes"], with(&["--batch", "64", "--precision", "amp"]));
    assert_eq!(steps[3]["total_bytes"], with(&["--batch", "64", "--checkpointing"]));
    assert_eq!(steps[4]["total_bytes"], with(&["--batch", "64", "--optimizer", "adam8bit"]));
    let text = env.ok(&["plan", "--model", "resnet50", "--batch", "64", "--vram", "4G"]).stdout;
    assert!(text.starts_with("No, it does not fit: resnet50 with 64 images of 224x224"), "{text}");
    assert!(text.contains("4 steps of 16 for one of 64") && text.contains("batch norm sees 16"), "{text}");
    let text = env.ok(&["plan", "--model", "resnet50", "--batch", "64", "--vram", "8G"]).stdout;
    assert!(text.starts_with("Yes, it fits: resnet50"), "{text}");
    assert!(text.contains("= 64 images x 85,307,392 bytes an image"), "{text}");
}

#[test]
fn a_set_is_sampled_once_and_the_sources_are_untouched() {
    let env = Env::new();
    for i in 0..30 {
        env.write(format!("photos/a/{i:02}.jpg"), &jpeg(800 + i, 600, i));
    }
    env.write("photos/a/large.jpg", &jpeg(1600, 1200, 7));
    env.write("photos/a/rehearse-abort.jpg", &jpeg(160, 120, 9));
    env.write("photos/a/cut.jpg", &jpeg(640, 480, 9)[..900]);
    let before = env.tree("photos");
    let args = ["photos", "--model", "resnet18", "--batch", "8", "--vram", "8G", "--ram", "16G"];
    let got = plan(&env, &args);
    assert_eq!(env.tree("photos"), before);
    assert_eq!(got["set"]["images"], 33);
    assert_eq!(got["set"]["largest"], serde_json::json!([1600, 1200]));
    assert_eq!(got["set"]["exact"], false);
    assert!(got["throughput"]["images_per_second_per_worker"].as_f64().unwrap() > 0.0);
    assert!(got["throughput"]["images_per_second_per_worker_shrunk"].as_f64().unwrap() > 0.0);
    assert!(line(&got["set"]["lines"], "disk_shrunk")["bytes"].as_u64().unwrap() > 0);
    assert_eq!(line(&got["set"]["lines"], "epoch_h2d")["bytes"], 33 * 602_112);
    assert_eq!(got["host"]["fits"], true);
    // The second time the sample is remembered: the very same figures.
    assert_eq!(plan(&env, &args)["throughput"], got["throughput"]);
    let remembered = env.tree("cache/prep-plan");
    assert_eq!(remembered.len(), 1);
    // A damaged memory is ignored.
    env.write(format!("cache/prep-plan/{}", remembered[0].0), b"{\"pictures\": [{}]}");
    assert!(plan(&env, &args)["throughput"]["pictures"].as_u64().unwrap() > 0);
}

#[test]
fn a_manifest_tells_the_sizes_of_all_pictures() {
    let env = Env::new();
    env.write("photos/train/a/1.jpg", &jpeg(640, 480, 1));
    env.write("photos/train/a/2.jpg", &jpeg(640, 480, 2));
    env.write("photos/val/a/3.jpg", &jpeg(1000, 900, 3));
    env.ok(&["shrink", "photos", "-o", "small", "--short-edge", "240"]);
    let got = plan(&env, &["small", "--no-sample", "--batch", "2"]);
    assert_eq!(got["set"]["exact"], true);
    assert_eq!((&got["set"]["images"], &got["set"]["trained"]), (&3.into(), &2.into()));
    assert_eq!(got["set"]["usual"], serde_json::json!([320, 240]));
    assert_eq!(
        line(&got["set"]["lines"], "disk_decoded")["bytes"].as_u64().unwrap() / 3 / 3,
        (320 * 240 * 2 + 267 * 240) / 3
    );
    assert_eq!(got["throughput"], Value::Null);
}

#[test]
fn runs_are_logged_as_lines_and_shown_side_by_side() {
    let env = Env::new();
    let log = |args: &[&str]| {
        let all = [&["plan", "--model"][..], args, &["--vram", "8G", "--log", "runs.json"]].concat();
        env.ok(&all)
    };
    log(&["resnet18", "--batch", "32"]);
    log(&["resnet50", "--batch", "64", "--precision", "amp"]);
    // A line that a killed run left half does not spoil the next.
    let mut text = std::fs::read_to_string(env.path("runs.json")).unwrap();
    assert_eq!(text.lines().count(), 2);
    text.pop();
    env.write("runs.json", text.as_bytes());
    log(&["vit_tiny"]);
    let text = env.ok(&["plan", "--compare", "runs.json"]).stdout;
    let row = |name: &str| {
        text.lines()
            .find(|l| l.trim_start().starts_with(name))
            .unwrap()
            .split_whitespace()
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(row("model "), ["resnet18", "resnet50", "vit_tiny"]);
    assert_eq!(row("precision "), ["fp32", "amp", "fp32"]);
    assert_eq!(row("kept_bytes_per_image ")[0], "21,577,728");
    env.write("bad.json", b"{\"configuration\": {}}\nnot json\n");
    assert!(env.refused(&["plan", "--compare", "bad.json"]).contains("bad.json:2:"));
    assert!(env.refused(&["plan", "--compare", "none.json"]).contains("no such file"));
}

#[test]
fn what_if_is_a_table_of_all_combinations() {
    let env = Env::new();
    let got = plan(
        &env,
        &[
            "--model",
            "resnet18",
            "--vram",
            "8G",
            "--what-if",
            "size=160,224,288",
            "batch=32,64",
            "precision=fp32,bf16",
        ],
    );
    let cases = got["what_if"].as_array().unwrap();
    assert_eq!(cases.len(), 12);
    assert_eq!(
        (&cases[0]["height"], &cases[0]["batch"], &cases[0]["kept_bytes_per_image"]),
        (&160.into(), &32.into(), &11_010_048.into())
    );
    let one = plan(&env, &["--model", "resnet18", "--size", "288", "--batch", "64", "--precision", "bf16"]);
    assert_eq!(cases[11]["gpu_bytes"], one["gpu"]["total_bytes"]);
    for bad in ["size=0", "colour=1", "batch", "batch=", "precision=fp64"] {
        let why = env.refused(&["plan", "--model", "resnet18", "--what-if", bad]);
        assert!(why.contains("--what-if"), "{why}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused_with_a_sentence() {
    let env = Env::new();
    assert!(env.refused(&["plan", "--model", "resnet51"]).contains("resnet50"));
    assert!(env.refused(&["plan", "--model", "none.onnx"]).contains("no such file"));
    assert!(env.refused(&["plan", "--model", "none.toml"]).contains("no such file"));
    assert!(env.refused(&["plan", "--model", "params=1M"]).contains("acts="));
    assert!(env.refused(&["plan", "nowhere"]).contains("nowhere"));
    assert!(env.refused(&["plan", "--model", "vgg16", "--size", "16"]).contains("too small"));
    env.write("two.toml", b"[model.a]\nlayers='conv 1'\n[model.b]\nlayers='conv 2'\n");
    assert!(env.refused(&["plan", "--model", "two.toml"]).contains("a, b"));
    env.ok(&["plan", "--model", "two.toml:b"]);
    env.write("broken.toml", b"[model.a]\nlayers = 3\n");
    assert!(env.refused(&["plan", "--model", "broken.toml"]).contains("broken.toml:2:"));
}

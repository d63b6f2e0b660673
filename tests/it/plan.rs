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

fn plan(env: &Env, args: &[&str]) -> Value {
    let mut all = vec!["plan", "--json"];
    all.extend(args);
    serde_json::from_str(&env.ok(&all).stdout).unwrap()
}

fn line<'v>(lines: &'v Value, key: &str) -> &'v Value {
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

fn photos(env: &Env, n: u64) {
    for i in 0..n {
        env.write(format!("photos/a/{i:02}.jpg"), &jpeg(300 + i as u32, 200, i as _));
    }
}

#[test]
fn a_sample_under_other_options_is_not_the_sample_of_this_command() {
    let env = Env::new();
    photos(&env, 6);
    let strict = plan(&env, &["photos", "--model", "resnet18", "--max-pixels", "1000"]);
    // A slow machine looks at three of them at least.
    assert_eq!(strict["throughput"]["pictures"], 0);
    assert!(strict["throughput"]["failed"].as_u64().unwrap() >= 3);
    assert!(strict["throughput"]["first_failure"]["why"].as_str().unwrap().contains("too_large"), "{strict}");
    assert!(!env.path("cache/prep-plan").exists(), "a sample of nothing was remembered");
    let plain = plan(&env, &["photos", "--model", "resnet18"]);
    assert!(plain["throughput"]["pictures"].as_u64().unwrap() >= 3);
    assert_eq!(env.tree("cache/prep-plan").len(), 1);
    plan(&env, &["photos", "--model", "resnet18", "--memory", "64M"]);
    assert_eq!(env.tree("cache/prep-plan").len(), 2);
    // --measure takes a new one, --no-cache leaves everything as it is.
    let before = env.tree("cache/prep-plan");
    plan(&env, &["photos", "--model", "resnet18", "--no-cache"]);
    assert_eq!(env.tree("cache/prep-plan"), before);
    plan(&env, &["photos", "--model", "resnet18", "--measure"]);
    assert_ne!(env.tree("cache/prep-plan"), before);
}

#[test]
fn a_remembered_sample_with_impossible_numbers_is_ignored() {
    let env = Env::new();
    photos(&env, 3);
    let args = ["photos", "--model", "resnet18", "--ram", "16G"];
    let got = plan(&env, &args);
    let place = format!("cache/prep-plan/{}", env.tree("cache/prep-plan")[0].0);
    for field in ["\"bytes\":", "\"seconds\":", "\"size\":[", "\"largest\":[["] {
        let text = std::fs::read_to_string(env.path(&place)).unwrap();
        assert!(text.contains(field), "{field} {text}");
        let huge = if field.ends_with('[') {
            format!("{field}4294967295,4294967295],[")
        } else {
            format!("{field}18446744073709551615,\"x\":")
        };
        env.write(&place, text.replacen(field, &huge, 1).as_bytes());
        assert_eq!(plan(&env, &args)["set"]["largest"], got["set"]["largest"], "{field}");
    }
}

#[test]
fn what_of_the_sample_cannot_be_used_is_said_and_counts_for_max_bad() {
    let env = Env::new();
    photos(&env, 4);
    env.write("photos/a/cut.jpg", &jpeg(640, 480, 9)[..900]);
    let text = env.ok(&["plan", "photos", "--model", "resnet18"]).stdout;
    assert!(text.contains("pictures of the sample cannot be used (a/cut.jpg: "), "{text}");
    assert_eq!(env.run(&["plan", "photos", "--max-bad", "0"]).code, Some(1));
    assert_eq!(env.run(&["plan", "photos", "--max-bad", "1"]).code, Some(0));
}

#[test]
fn a_set_of_which_nothing_can_be_decoded_is_not_called_empty() {
    let env = Env::new();
    photos(&env, 4);
    for i in 0..3 {
        env.write(format!("cut/a/{i}.jpg"), &jpeg(640, 480, i)[..900]);
    }
    for (folder, more) in [("photos", "--max-pixels=1000"), ("photos", "--no-sample"), ("cut", "--quiet")] {
        let mut command = env.command(&["plan", "--model", "resnet18", more]);
        let ran = command.current_dir(env.path(folder)).output().unwrap();
        let (text, said) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
        assert_eq!(ran.status.code(), Some(0), "{said}");
        assert!(!said.contains("no pictures here"), "{folder} {more}: {said}");
        assert!(!text.contains(" 0.00 MB") && !text.contains("NaN") && !text.contains("inf "), "{text}");
        if folder == "photos" {
            assert!(said.contains("4 pictures: "), "{folder} {more}: {said}");
        }
    }
}

#[test]
fn a_manifest_with_impossible_sizes_is_no_panic() {
    let env = Env::new();
    photos(&env, 3);
    env.ok(&["shrink", "photos", "-o", "small", "--short-edge", "100"]);
    let manifest = env.tree("small").into_iter().find(|(name, _)| name.ends_with("manifest.csv")).unwrap();
    let text = String::from_utf8(manifest.1).unwrap();
    let (head, rows) = text.split_once('\n').unwrap();
    let columns: Vec<&str> = head.split(',').collect();
    let rows: Vec<String> = rows
        .lines()
        .map(|row| {
            let mut cells: Vec<&str> = row.split(',').collect();
            for name in ["width", "height"] {
                cells[columns.iter().position(|c| *c == name).unwrap()] = "4294967295";
            }
            cells.join(",")
        })
        .collect();
    env.write(format!("small/{}", manifest.0), format!("{head}\n{}\n", rows.join("\n")).as_bytes());
    for more in [&["--no-sample"][..], &[]] {
        let ran = env.run(&[&["plan", "small", "--model", "resnet18", "--ram", "16G"][..], more].concat());
        assert!(matches!(ran.code, Some(0..=2)) && !ran.stderr.contains("panicked"), "{}", ran.stderr);
    }
}

#[test]
fn the_shrunk_set_weighs_what_shrink_writes() {
    let env = Env::new();
    // Small enough to be copied as they are, and to be made smaller: however many of them the sample has time for.
    for i in 0..6_u32 {
        env.write(format!("small/a/{i}.jpg"), &jpeg(300, 200, 1));
        env.write(format!("large/a/{i}.jpg"), &jpeg(1300, 900, 2));
    }
    for set in ["small", "large"] {
        let said = plan(&env, &[set]);
        let said = line(&said["set"]["lines"], "disk_shrunk")["bytes"].as_u64().unwrap();
        env.ok(&["shrink", set, "-o", "out", "--force"]);
        let files = env.tree("out/images");
        let written: usize = files.iter().filter(|(n, _)| n.ends_with(".jpg")).map(|(_, b)| b.len()).sum();
        assert_eq!(said, written as u64, "{set}: {} files", files.len());
        std::fs::remove_dir_all(env.path("out")).unwrap();
    }
}

#[test]
fn without_workers_the_training_process_loads() {
    let env = Env::new();
    let args = ["--size", "224", "--batch", "32", "--workers", "0"];
    let got = plan(&env, &args);
    assert_eq!(line(&got["host"]["lines"], "in_flight")["bytes"], 0);
    assert_eq!(line(&got["host"]["lines"], "collate")["bytes"], 32 * 602_112);
    assert_eq!(got["host"]["shared_memory_bytes"], 0);
    let text = env.ok(&[&["plan"][..], &args, &["--ram", "1G"]].concat()).stdout;
    assert!(text.contains("(no workers: the training process loads the pictures itself)"), "{text}");
    assert!(text.contains("would kill the training process") && !text.contains("DataLoader"), "{text}");
}

#[test]
fn absurd_options_are_refused_with_a_sentence() {
    let env = Env::new();
    for (args, word) in [
        (&["--vram", "8"][..], "that is 8 bytes"),
        (&["--vram", "0"], "that is 0 bytes"),
        (&["--vram", "1K"], "that is 1000 bytes"),
        (&["--vram", "99999999999999G"], "more than any machine"),
        (&["--ram", "0"], "that is 0 bytes"),
        (&["--bandwidth", "0"], "bytes a second"),
        (&["--batch", "64", "--effective-batch", "32"], "smaller than --batch 64"),
        (&["--model", "params=1M,params=2M,acts=1M"], "given twice"),
        (&["--log", "a.json", "--compare", "a.json"], "cannot be used with"),
    ] {
        let why = env.refused(&[&["plan"][..], args].concat());
        assert!(why.contains(word), "{args:?}: {why}");
    }
    let text = env.ok(&["plan", "--model", "resnet18", "--batch", "20", "--effective-batch", "64"]).stdout;
    assert!(text.contains("make one of 80 images (not 64: that is no multiple of 20)"), "{text}");
    let text = env.ok(&["plan", "--model", "params=1G,acts=900000G", "--batch", "16777216"]).stdout;
    assert!(text.contains("beyond counting"), "{text}");
}

#[test]
fn ledgers_of_others_are_bounded_and_escaped() {
    let env = Env::new();
    let many = |n: usize, fields: &dyn Fn(usize) -> String| -> String {
        (0..n).map(|i| format!("{{\"configuration\": {{{}}}}}\n", fields(i))).collect()
    };
    env.write("wide.json", many(900, &|i| format!("\"f{i}\": 1")).as_bytes());
    assert!(env.refused(&["plan", "--compare", "wide.json"]).contains("more than 100 fields"));
    env.write("long.json", many(6000, &|_| "\"a\": 1".into()).as_bytes());
    assert!(env.refused(&["plan", "--compare", "long.json"]).contains("more than 1000 runs"));
    assert!(env.refused(&["plan", "--compare", "."]).contains("no file"));
    env.write("escape.json", b"{\"configuration\": {\"\\u001b[31mred\": \"\\u001b]0;title\\u0007\"}}\n");
    let text = env.ok(&["plan", "--compare", "escape.json"]).stdout;
    assert!(!text.contains('\u{1b}') && text.contains("u{1b}[31mred"), "{text:?}");
    env.write("escape.toml", b"[model.\"\\u001b[31mm\"]\nlayers = 'conv 8 k=3'\n");
    let ran = env.ok(&["plan", "--model", "escape.toml"]);
    assert!(!ran.stdout.contains('\u{1b}') && ran.stdout.contains("u{1b}[31mm"), "{:?}", ran.stdout);
}

#[test]
fn logged_runs_tell_when_and_where() {
    let env = Env::new();
    photos(&env, 3);
    env.ok(&["plan", "photos", "--no-sample", "--model", "resnet18", "--log", "runs.json"]);
    let text = env.ok(&["plan", "--compare", "runs.json"]).stdout;
    let row = |name: &str| text.lines().find(|l| l.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(row("time ").contains("20") && row("time ").contains(':'), "{text}");
    let real = env.path("photos");
    assert!(row("input ").contains(&real.to_string_lossy()[..20]), "{text}");
}

#[test]
fn where_one_step_is_not_enough_two_are_named_and_where_nothing_is_it_is_said() {
    let env = Env::new();
    let steps = |vram: &str| {
        plan(&env, &["--model", "vit_l_16", "--batch", "8", "--vram", vram])["gpu"]["to_do"].clone()
    };
    let two = steps("5000M");
    let together = two.as_array().unwrap().iter().find(|s| s["key"] == "together").unwrap();
    assert_eq!(together["fits"], true, "{two}");
    let words = together["what"].as_str().unwrap();
    assert!(words.starts_with("together: --"), "{words}");
    // The words are a command that fits.
    let mut args = vec!["--model", "vit_l_16", "--vram", "5000M"];
    let mut typed: Vec<&str> =
        words["together: ".len()..].split([' ', ',']).take_while(|w| *w != "which").collect();
    typed.retain(|w| !w.is_empty());
    args.extend(&typed);
    if !typed.contains(&"--batch") {
        args.extend(["--batch", "8"]);
    }
    assert_eq!(plan(&env, &args)["gpu"]["fits"], true, "{args:?}");
    let none = steps("900M");
    assert_eq!(none.as_array().unwrap().last().unwrap()["key"], "nothing", "{none}");
    let text = env.ok(&["plan", "--model", "vit_l_16", "--batch", "8", "--vram", "900M"]).stdout;
    assert!(
        text.contains("Nothing that prep knows makes it fit")
            || text.contains("nothing that prep knows makes it fit"),
        "{text}"
    );
}

#[test]
fn what_is_suggested_next_can_be_typed() {
    let env = Env::new();
    env.write("a folder/mine.toml", b"[model.m]\nlayers = 'conv 8 k=3'\n");
    for model in ["a folder/mine.toml", "resnet18", "params=1M,acts=1M@224"] {
        for more in [&["--optimizer", "sgd"][..], &["--vram", "8G"], &["--vram", "8G", "--layers"]] {
            let text = env.ok(&[&["plan", "--model", model][..], more].concat()).stdout;
            let next = text.lines().last().unwrap().strip_prefix("Next: prep ").unwrap().to_owned();
            let words: Vec<String> = next
                .split('\'')
                .enumerate()
                .flat_map(|(i, part)| match i % 2 {
                    0 => part.split_whitespace().map(str::to_owned).collect(),
                    _ => vec![part.to_owned()],
                })
                .collect();
            assert!(words.iter().any(|w| w == model), "{next}");
            env.ok(&words);
        }
    }
    assert!(env.refused(&["plan", "--model", "resnet5"]).contains("did you mean resnet50?"));
    assert!(env.refused(&["plan", "--model", "vit-b-61"]).contains("did you mean vit_b_16?"));
    let text = env.ok(&["plan"]).stdout;
    assert!(text.contains("or swin_tiny, swin_tiny_patch4_window7_224"), "{text}");
}

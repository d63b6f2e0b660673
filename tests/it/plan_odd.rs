//! plan where something is odd: options, ledgers, manifests and samples that cannot be meant, cards too small for anything.

use crate::env::{Env, jpeg};
use crate::plan::{line, plan};

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

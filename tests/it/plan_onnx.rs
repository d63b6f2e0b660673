//! ONNX files: as torchvision's users export them, and as nobody should.

use imgprep::plan::gpu::Precision;
use imgprep::plan::network::Network;
use imgprep::plan::onnx::Graph;

use crate::env::Env;

fn fixtures() -> Vec<std::path::PathBuf> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/onnx");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "onnx"));
    files.sort();
    assert!(files.len() >= 8, "the test saw {} files", files.len());
    files
}

#[test]
fn exported_networks_keep_what_the_built_in_ones_keep() {
    for path in fixtures() {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let name = stem.rsplit_once('-').unwrap().0;
        let (theirs, ours) = (Network::open(path.to_str().unwrap()).unwrap(), Network::open(name).unwrap());
        assert_eq!(theirs.usual, (224, 224));
        for precision in [Precision::Fp32, Precision::Bf16] {
            let theirs = theirs.measure((224, 224), precision, true).unwrap().counted;
            let ours = ours.measure((224, 224), precision, true).unwrap().counted;
            let ratio = theirs.kept_bytes as f64 / ours.kept_bytes as f64;
            let numbers = theirs.parameters as f64 / ours.parameters as f64;
            println!("{stem} {} kept {ratio:.4} parameters {numbers:.4}", precision.as_str());
            let doubt = if precision == Precision::Fp32 { 0.1 } else { 0.15 };
            assert!((ratio - 1.0).abs() < doubt, "{stem} {}: {ratio}", precision.as_str());
            assert!((numbers - 1.0).abs() < 0.03, "{stem}: {numbers}");
            assert_eq!(theirs.conv_values, ours.conv_values, "{stem}");
        }
    }
}

#[test]
fn exported_convolutional_networks_are_planned_at_other_sizes_and_others_say_that_they_cannot() {
    let mut seen = 0;
    for path in fixtures() {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let network = Network::open(path.to_str().unwrap()).unwrap();
        let name = stem.rsplit_once('-').unwrap().0;
        let at = network.measure((160, 192), Precision::Fp32, true);
        if let Ok(theirs) = at {
            let ours = Network::open(name).unwrap().measure((160, 192), Precision::Fp32, true).unwrap();
            let ratio = theirs.counted.kept_bytes as f64 / ours.counted.kept_bytes as f64;
            assert!((ratio - 1.0).abs() < 0.1, "{stem}: {ratio}");
            seen += 1;
        } else {
            let why = at.unwrap_err();
            assert!(why.contains("exported for 224x224"), "{stem}: {why}");
        }
    }
    assert!(seen >= 4, "{seen}");
}

#[test]
fn the_command_takes_a_file() {
    let env = Env::new();
    let path = fixtures().into_iter().find(|p| p.to_string_lossy().contains("resnet18-script")).unwrap();
    let text = env.ok(&["plan", "--model", path.to_str().unwrap(), "--vram", "8G", "--layers"]).stdout;
    assert!(text.starts_with("Yes, it fits: resnet18-script.onnx"), "{text}");
    assert!(text.contains("20 convolutions of the file had their batch norm folded in"), "{text}");
    assert!(text.contains("Conv /conv1/Conv"), "{text}");
}

fn read(bytes: &[u8]) -> Result<Graph, String> {
    Graph::read(std::io::Cursor::new(bytes.to_vec()), bytes.len() as u64)
}

/// Reads and runs: whatever comes, it is a sentence and no panic.
fn try_all(bytes: &[u8]) {
    if let Ok(graph) = read(bytes) {
        let rules = imgprep::plan::tape::Rules { half: true, cuda: true, fused_attention: true };
        let _ = graph.run((224, 224), rules);
        let _ = graph.run((33, 1), rules);
    }
}

#[test]
fn a_file_cut_anywhere_or_with_any_byte_turned_is_never_a_panic() {
    for path in fixtures().into_iter().filter(|p| p.metadata().unwrap().len() < 100_000) {
        let whole = std::fs::read(&path).unwrap();
        assert!(read(&whole).is_ok());
        for cut in (0..whole.len()).step_by((whole.len() / 150).max(1)) {
            try_all(&whole[..cut]);
        }
        let mut seed = 1_u64;
        for _ in 0..150 {
            let mut bytes = whole.clone();
            for _ in 0..4 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (seed >> 33) as usize % bytes.len();
                bytes[at] = (seed >> 20) as u8;
            }
            try_all(&bytes);
        }
    }
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut n = bytes.len();
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out.extend(bytes);
    out
}

#[test]
fn hostile_files_are_sentences_in_bounded_memory() {
    let env = Env::new();
    for (name, bytes) in [
        ("empty", vec![]),
        ("text", b"<!DOCTYPE html><html>not found</html>".to_vec()),
        ("long-number", vec![0xff; 64]),
        ("beyond", vec![7 << 3 | 2, 0xff, 0xff, 0xff, 0xff, 0x7f]),
        ("no-graph", field(2, b"pytorch")),
        ("empty-graph", field(7, b"")),
        ("group", vec![7 << 3 | 3, 0, 0]),
        ("long-name", field(7, &field(1, &field(4, &vec![b'x'; 100_000])))),
    ] {
        let file = format!("{name}.onnx");
        env.write(&file, &bytes);
        let why = env.refused(&["plan", "--model", &file]);
        assert!(why.contains(&file) && !why.contains("panicked"), "{name}: {why}");
    }
    // A weight that claims terabytes, a node that multiplies without end.
    let dims: Vec<u8> = std::iter::repeat_n([1 << 3, 0xff, 0xff, 0xff, 0xff, 0x0f], 8).flatten().collect();
    let weight = field(5, &[dims, field(8, b"w")].concat());
    let side = |n: u8| field(1, &[1 << 3, n]);
    let shape = field(2, &[side(1), side(3), side(32), side(32)].concat());
    let input = field(11, &[field(1, b"x"), field(2, &field(1, &shape))].concat());
    let out = |name: &str| field(12, &field(1, name.as_bytes()));
    let node = field(1, &[field(1, b"x"), field(1, b"w"), field(2, b"y"), field(4, b"Mul")].concat());
    env.write("terabytes.onnx", &field(7, &[weight, input, node, out("y")].concat()));
    let why = env.refused(&["plan", "--model", "terabytes.onnx"]);
    assert!(why.contains("Mul"), "{why}");
    // Operations that run in a circle around a softmax, and one that takes what is made after it.
    let op = |op: &str, takes: [&str; 2], makes: &str| {
        let [a, b] = takes.map(|name| field(1, name.as_bytes()));
        field(1, &[a, b, field(2, makes.as_bytes()), field(4, op.as_bytes())].concat())
    };
    let number = field(5, &[vec![2 << 3, 1], field(8, b"k")].concat());
    let circle = [op("Mul", ["b", "k"], "a"), op("Mul", ["a", "k"], "b"), op("Softmax", ["a", "k"], "s")];
    let around =
        [op("Identity", ["t", "k"], "s2"), op("Identity", ["s2", "k"], "t"), op("Relu", ["x", "k"], "y")];
    let input = field(11, &[field(1, b"x"), field(2, &field(1, &shape))].concat());
    env.write(
        "circle.onnx",
        &field(7, &[number, input, circle.concat(), around.concat(), out("y")].concat()),
    );
    let why = env.refused(&["plan", "--model", "circle.onnx"]);
    assert!(why.contains("`b`, which nothing before it makes"), "{why}");
    // A huge file whose weights are stepped over, not read.
    let mut sparse = field(
        7,
        &[
            field(1, &[field(1, b"x"), field(2, b"y"), field(4, b"Relu")].concat()),
            field(11, &[field(1, b"x"), field(2, &field(1, &shape))].concat()),
            out("y"),
        ]
        .concat(),
    );
    let weight_bytes = 3_u64 << 30;
    let head = [vec![9 << 3 | 2], varint(weight_bytes)].concat();
    let tensor = [vec![5 << 3 | 2], varint(weight_bytes + head.len() as u64)].concat();
    let graph = [vec![7 << 3 | 2], varint(weight_bytes + (head.len() + tensor.len()) as u64)].concat();
    sparse.extend([graph, tensor, head].concat());
    let path = env.write("huge.onnx", &sparse);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(sparse.len() as u64 + weight_bytes).unwrap();
    let text = env.ok(&["plan", "--model", "huge.onnx"]).stdout;
    assert!(text.starts_with("huge.onnx with"), "{text}");
}

fn varint(mut n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

/// A graph of one picture of 3x32x32, with weights of the given sides, its nodes, and its output `y`.
fn graph(weights: &[(&str, &[u8])], nodes: &[Vec<u8>]) -> Vec<u8> {
    let side = |n: u8| field(1, &[1 << 3, n]);
    let shape = field(2, &[side(1), side(3), side(32), side(32)].concat());
    let mut parts = field(11, &[field(1, b"x"), field(2, &field(1, &shape))].concat());
    for (name, dims) in weights {
        let dims: Vec<u8> = dims.iter().flat_map(|n| [1 << 3, *n]).collect();
        parts.extend(field(5, &[dims, vec![2 << 3, 1], field(8, name.as_bytes())].concat()));
    }
    parts.extend(nodes.concat());
    parts.extend(field(12, &field(1, b"y")));
    field(7, &parts)
}

fn node(op: &str, takes: &[&str], makes: &[&str], attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut parts: Vec<u8> = takes.iter().flat_map(|name| field(1, name.as_bytes())).collect();
    parts.extend(makes.iter().flat_map(|name| field(2, name.as_bytes())));
    parts.extend(field(4, op.as_bytes()));
    parts.extend(attributes.iter().flat_map(|a| field(5, a)));
    field(1, &parts)
}

fn ints(name: &str, values: &[u8]) -> Vec<u8> {
    let mut parts = field(1, name.as_bytes());
    parts.extend(values.iter().flat_map(|n| [8 << 3, *n]));
    parts
}

fn int(name: &str, value: u8) -> Vec<u8> {
    [field(1, name.as_bytes()), vec![3 << 3, value]].concat()
}

#[test]
fn graphs_that_no_runtime_would_run_are_refused() {
    let run = |bytes: &[u8]| {
        let rules = imgprep::plan::tape::Rules { half: false, cuda: true, fused_attention: true };
        read(bytes).and_then(|graph| graph.run((32, 32), rules))
    };
    let w: &[(&str, &[u8])] = &[("w", &[8, 3, 3, 3])];
    let good = graph(w, &[node("Conv", &["x", "w"], &["y"], &[])]);
    assert_eq!(run(&good).unwrap().parameters, 8 * 27);
    let bad: &[(&str, Vec<u8>)] = &[
        ("never made", graph(&[], &[node("Relu", &["x"], &["z"], &[])])),
        ("nothing before it", graph(&[], &[node("Relu", &["q"], &["y"], &[])])),
        ("nothing before it", graph(&[], &[node("Relu", &["y"], &["y"], &[])])),
        ("not depend on the picture", graph(w, &[node("Relu", &["w"], &["y"], &[])])),
        ("fewer inputs", graph(w, &[node("Conv", &[], &["y"], &[])])),
        ("fewer inputs", graph(w, &[node("Conv", &["x"], &["y"], &[])])),
        ("fewer inputs", graph(&[], &[node("Add", &["x"], &["y"], &[])])),
        ("fewer inputs", graph(&[], &[node("Relu", &[], &["y"], &[])])),
        ("makes nothing", graph(&[], &[node("Relu", &["x"], &[], &[])])),
        (
            "made twice",
            graph(w, &[node("Relu", &["x"], &["y"], &[]), node("Conv", &["x", "w"], &["y"], &[])]),
        ),
        (
            "order of other sides",
            graph(&[], &[node("Transpose", &["x"], &["y"], &[ints("perm", &[0, 0, 0, 0])])]),
        ),
        ("side 9 of 4", graph(&[], &[node("Softmax", &["x"], &["y"], &[int("axis", 9)])])),
        (
            "have sides [99]",
            graph(&[("w", &[99])], &[node("BatchNormalization", &["x", "w", "w", "w", "w"], &["y"], &[])]),
        ),
        ("99 times 1 channels", graph(&[("w", &[8, 99, 3, 3])], &[node("Conv", &["x", "w"], &["y"], &[])])),
        ("99 channels", graph(&[("w", &[99, 8, 3, 3])], &[node("ConvTranspose", &["x", "w"], &["y"], &[])])),
        ("kernel_shape", graph(w, &[node("Conv", &["x", "w"], &["y"], &[ints("kernel_shape", &[7, 7])])])),
        ("nothing is left", graph(&[("w", &[0, 3, 3, 3])], &[node("Conv", &["x", "w"], &["y"], &[])])),
    ];
    for (word, bytes) in bad {
        let why = run(bytes).unwrap_err();
        assert!(why.contains(word), "{word}: {why}");
    }
    // Weights that claim more values than there are numbers.
    let huge: Vec<u8> =
        std::iter::repeat_n([1 << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f], 16).flatten().collect();
    let weight = field(5, &[huge, vec![2 << 3, 1], field(8, b"h")].concat());
    let mut bytes = graph(&[], &[node("Relu", &["x"], &["y"], &[]), weight]);
    assert!(run(&bytes).is_ok());
    bytes.truncate(bytes.len() / 2);
    assert!(run(&bytes).is_err());
    // Sides that grow without end.
    let unsqueezes: Vec<Vec<u8>> = (0..40)
        .map(|i| {
            let (from, to) = (format!("u{i}"), format!("u{}", i + 1));
            let (from, to) = (if i == 0 { "x" } else { &from }, if i == 39 { "y" } else { &to });
            node("Unsqueeze", &[from], &[to], &[ints("axes", &[0])])
        })
        .collect();
    assert!(run(&graph(&[], &unsqueezes)).unwrap_err().contains("16 sides"));
}

#[test]
fn a_long_graph_at_many_sizes_ends_soon_or_says_so() {
    let env = Env::new();
    let mut nodes = vec![node("Relu", &["x"], &["r0"], &[])];
    for i in 0..20_000 {
        let (from, to) = (format!("r{i}"), if i == 19_999 { "y".into() } else { format!("r{}", i + 1) });
        nodes.push(node("Add", &[&from, "x"], &[&to], &[]));
    }
    env.write("long.onnx", &graph(&[], &nodes));
    let sizes: Vec<String> = (1..=60).map(|n| n.to_string()).collect();
    let list = format!("size={}", sizes.join(","));
    let why = env.refused(&["plan", "--no-sample", "--model", "long.onnx", "--what-if", &list]);
    assert!(why.contains("ask for fewer sizes"), "{why}");
    // The same size twice is run once.
    let twice = format!("batch={}", (1..=190).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
    let text = env.ok(&["plan", "--no-sample", "--model", "long.onnx", "--what-if", &twice]).stdout;
    assert!(text.contains("What if"), "{text}");
}

//! What `prep plan` says to a person: the verdict first, then each sum with its numbers, in plain words.

use super::{Answer, Case, networks};
use crate::cli::terminal::{bytes, columns, plural, shell_word, thousands};
use crate::names::shown;
use crate::plan::data::{Facts, inodes};
use crate::plan::gpu::{self, Sum, shown_size};
use crate::plan::host;
use crate::plan::ledger::{Line, mb, mib};
use crate::plan::net::{Size, Speed};

/// Characters of the widest column of text.
const WIDE: usize = 72;

/// All of it.
pub fn answer(answer: &Answer) -> String {
    let mut text = String::new();
    if let Some(sum) = answer.sum() {
        text.push_str(&verdict(answer, &sum));
        text.push_str(&card(answer, &sum));
        text.push_str(&remedies(answer, &sum));
    }
    text.push_str(&machine(answer));
    text.push_str(&feeding(answer));
    text.push_str(&set(answer));
    if answer.layers {
        text.push_str(&layers(answer));
    }
    text.push_str(&table(&answer.what_if));
    if answer.network.is_none() {
        text.push_str("\nNetworks that prep knows (--model NAME, or a file of your own: .onnx, .toml)\n");
        text.push_str(&columns(&networks().unwrap_or_default(), &[false, false, false, false]));
    }
    text.push_str(&next(answer));
    text
}

/// The first lines: does it fit?
fn verdict(answer: &Answer, sum: &Sum) -> String {
    let (Some(network), Some(net)) = (&answer.network, &answer.net) else { return String::new() };
    let what = format!(
        "{} with {} images of {} a step ({}, {})",
        network.name,
        thousands(answer.training.batch),
        side(answer.size),
        answer.training.precision.as_str(),
        answer.training.optimizer.as_str()
    );
    let Some(vram) = answer.vram else {
        return format!(
            "{what} needs about {} on the card; --vram 8G says whether that fits.\n",
            mb(sum.total)
        );
    };
    let largest = gpu::largest_batch(net, answer.training, vram);
    let verdict = if sum.total <= vram {
        format!("Yes, it fits: {what} needs about {} of the card's {}.", mb(sum.total), mb(vram))
    } else {
        format!("No, it does not fit: {what} needs about {}, and the card has {}.", mb(sum.total), mb(vram))
    };
    let most = match largest {
        0 => "Not even one image a step fits.".to_owned(),
        n => format!("The largest batch that fits is {}.", thousands(n)),
    };
    format!("{verdict}\n{most}\n")
}

fn side(size: Size) -> String {
    format!("{}x{}", size.1, size.0)
}

/// The card's sum.
fn card(answer: &Answer, sum: &Sum) -> String {
    let mut text = String::from("\nWhat the card must hold at the same time\n");
    let mut rows: Vec<Vec<String>> = sum
        .lines
        .iter()
        .filter(|l| l.bytes > 0)
        .map(|l| vec![mb(l.bytes), l.what.clone(), numbers(l)])
        .collect();
    rows.push(vec![mb(sum.total), format!("together ({})", mib(sum.total)), String::new()]);
    text.push_str(&columns(&rows, &[true, false, false]));
    let Some(net) = &answer.net else { return text };
    text.push_str(
        "  Activations are what the layers put out; learning goes back through them, so all are kept until then.\n",
    );
    if net.counted.steps.iter().any(|s| s.name.contains("dropout")) && answer.training.checkpointing {
        text.push_str("  Dropout is drawn again by checkpointing unless its random state is kept.\n");
    }
    for sentence in answer.network.iter().flat_map(|n| &n.said) {
        text.push_str(&format!("  {sentence}.\n"));
    }
    if let Some(wanted) = answer.effective_batch {
        let batch = answer.training.batch;
        let turns = wanted.div_ceil(batch);
        let norm = if net.cuda.batch_norm {
            format!("; batch norm sees {batch} images at a time")
        } else {
            String::new()
        };
        let made = turns.saturating_mul(batch);
        let off = if made == wanted {
            String::new()
        } else {
            format!(" (not {}: that is no multiple of {})", thousands(wanted), thousands(batch))
        };
        text.push_str(&format!(
            "  Gradients of {turns} steps make one of {} images{off}{norm}.\n",
            thousands(made)
        ));
    }
    text.push_str(&format!("  {}\n", gpu::validation(net, answer.training)));
    text.push_str("  The sum is of one card; channels-last changes speed and not size; torch.compile is outside of it\n  (often less, more while it compiles).\n");
    text
}

/// The numbers of a line, where they say more than the bytes.
fn numbers(line: &Line) -> String {
    if line.numbers.contains(" x ") || line.numbers.contains(" + ") || line.numbers.contains(" - ") {
        format!("= {}", line.told())
    } else {
        String::new()
    }
}

/// What to do when it does not fit.
fn remedies(answer: &Answer, sum: &Sum) -> String {
    if answer.vram.is_none_or(|vram| sum.total <= vram) {
        return String::new();
    }
    let steps = answer.steps();
    if steps.is_empty() {
        return String::new();
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (step, n) in steps.iter().filter(|step| step.key != "nothing").zip(1..) {
        let mut lines = wrapped(&step.what, WIDE).into_iter();
        rows.push(vec![
            if step.key == "together" { String::new() } else { format!("{n}.") },
            mb(step.total),
            if step.fits { "fits" } else { "not yet" }.into(),
            format!("largest batch {}", thousands(step.largest)),
            lines.next().unwrap_or_default(),
        ]);
        rows.extend(lines.map(|line| ["", "", "", "", &line].map(str::to_owned).to_vec()));
    }
    let mut text = format!(
        "\nWhat to try, in this order (each alone)\n{}",
        columns(&rows, &[true, true, false, false, false])
    );
    if let Some(step) = steps.iter().find(|step| step.key == "nothing") {
        text.push_str(&format!(
            "  {}: {}. A smaller network, or a larger card.\n",
            step.what,
            mb(step.total)
        ));
    }
    text
}

/// `text` in lines of at most `most` characters, broken between words.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The machine's sum.
fn machine(answer: &Answer) -> String {
    let host = &answer.host;
    let how = match answer.loader.workers {
        0 => "no workers: the training process loads the pictures itself".to_owned(),
        n => format!("{}, {} ahead each", plural(n as usize, "worker"), batches(answer.loader.prefetch)),
    };
    let mut text = format!("\nWhat the machine must hold to feed it ({how})\n");
    let mut rows: Vec<Vec<String>> = host
        .lines
        .iter()
        .filter(|l| l.bytes > 0)
        .map(|l| vec![mb(l.bytes), l.what.clone(), numbers(l)])
        .collect();
    rows.push(vec![mb(host.total), "together".into(), String::new()]);
    text.push_str(&columns(&rows, &[true, false, false]));
    if let Some(ram) = answer.ram {
        let (fits, sentence) = host::verdict(host, answer.loader, answer.decoded(), ram);
        text.push_str(&format!("  {} {sentence}\n", if fits { "It fits:" } else { "It does not fit:" }));
    }
    if host.spawned_more > 0 {
        text.push_str(&format!("  Spawned workers (macOS, Windows) take {} more.\n", mb(host.spawned_more)));
    }
    if host.shared > 0 {
        text.push_str(&format!(
            "  {} of it lie in /dev/shm: a container needs --shm-size of at least that (the default is 64 MiB).\n",
            mb(host.shared)
        ));
    }
    if let Some((fork, spawn)) = &host.cache {
        let more = if answer.loader.workers == 0 {
            mb(fork.bytes)
        } else {
            format!("{} (workers forked) or {} (spawned)", mb(fork.bytes), mb(spawn.bytes))
        };
        text.push_str(&format!("  Keeping all pictures decoded in memory would add {more}.\n"));
    }
    text
}

fn batches(n: u64) -> String {
    if n == 1 { "1 batch".into() } else { format!("{} batches", thousands(n)) }
}

/// What of the sample cannot be used.
fn failed(sampled: &crate::plan::sample::Sampled) -> String {
    let Some((path, why)) = sampled.why.as_ref().filter(|_| sampled.failed > 0) else { return String::new() };
    let all = sampled.failed + sampled.pictures.len();
    format!(
        "  {} of the {all} pictures of the sample cannot be used ({}: {}); `prep audit` lists all of them.\n",
        sampled.failed,
        shown(path),
        shown(why)
    )
}

/// How many workers feed how many images a second.
fn feeding(answer: &Answer) -> String {
    let Some(sampled) = &answer.sampled else { return String::new() };
    let Some(rate) = sampled.rate() else {
        let none = "\nNo picture of the sample could be decoded, so there is no speed to tell.\n";
        return format!("{none}{}", failed(sampled));
    };
    let mut text = format!(
        "\nHow fast pictures come: {} of them were decoded and resized to {} here, on one core\n",
        sampled.pictures.len(),
        side(answer.size)
    );
    let shrunk = sampled.shrunk_rate();
    let workers = answer.loader.workers;
    let row = |what: &str, rate: f64| {
        let all = match workers {
            0 => "by the training process, which waits for them".to_owned(),
            n => format!("{:.0} with {n} on as many cores", rate * n as f64),
        };
        let one = if workers == 0 { "images/s" } else { "images/s a worker" };
        vec![what.to_owned(), format!("{rate:.0} {one}"), all]
    };
    let mut rows = vec![row("as they are", rate)];
    rows.extend(shrunk.map(|rate| row("shrunk to a short edge of 512", rate)));
    text.push_str(&columns(&rows, &[false, true, false]));
    text.push_str(&failed(sampled));
    if let Some(Speed { images, size, on }) = answer.network.as_ref().and_then(|n| n.speed.as_ref()) {
        let area = f64::from(answer.size.0) * f64::from(answer.size.1) / f64::from(*size).powi(2);
        let eats = images / area.max(1e-9);
        let need = |rate: f64| (eats / rate).ceil().max(1.0);
        let small = shrunk.map(|rate| format!(", or {:.0} on shrunk ones", need(rate))).unwrap_or_default();
        text.push_str(&format!(
            "  {} takes about {} images/s on one {}:\n  {:.0} workers on these pictures{small}. Fewer, and the card waits.\n",
            answer.network.as_ref().map_or("the network", |n| n.name.as_str()),
            thousands(eats as u64),
            shown(on),
            need(rate)
        ));
    }
    text
}

/// The set's own sums.
fn set(answer: &Answer) -> String {
    let mut text = String::from("\nThe pictures\n");
    let mut rows: Vec<Vec<String>> = answer
        .set
        .iter()
        .chain(&answer.tensors)
        .map(|l| vec![mb(l.bytes), l.what.clone(), numbers(l)])
        .collect();
    if let Some(facts) = &answer.facts {
        text = heading(facts);
        let seconds = |bytes: u64| format!("{:.1} s", bytes as f64 / answer.bandwidth as f64);
        let of = |key: &str| answer.set.iter().find(|l| l.key == key).map(|l| l.bytes);
        let share = facts.trained as f64 / facts.images.max(1) as f64;
        let part = |n: u64| (n as f64 * share) as u64;
        let mut reads = format!("as it is {}", seconds(part(facts.bytes)));
        for (key, what) in [("disk_shrunk", "shrunk"), ("disk_decoded", "as decoded pixels")] {
            if let Some(bytes) = of(key) {
                reads.push_str(&format!(", {what} {}", seconds(part(bytes))));
            }
        }
        let (files, shards) = inodes(facts);
        rows.push(vec![
            String::new(),
            format!("reading an epoch at {}/s: {reads}", bytes(answer.bandwidth)),
            String::new(),
        ]);
        rows.push(vec![
            String::new(),
            format!(
                "files (inodes): {} as it is, {} when packed in shards of 64 MiB",
                thousands(files),
                thousands(shards)
            ),
            String::new(),
        ]);
    }
    text.push_str(&columns(&rows, &[true, false, false]));
    text
}

fn heading(facts: &Facts) -> String {
    let known = if facts.exact {
        "sizes from the manifest".to_owned()
    } else {
        format!("sizes from a sample of {}", facts.sized)
    };
    let trained = if facts.trained < facts.images {
        format!(", {} of them to train on", thousands(facts.trained))
    } else {
        String::new()
    };
    format!("\nThe pictures: {}{trained}, {} ({known})\n", thousands(facts.images), bytes(facts.bytes))
}

fn layers(answer: &Answer) -> String {
    let Some(net) = &answer.net else { return "\n--layers: name a network with --model\n".into() };
    let mut rows = vec![["layer", "puts out", "bytes", "kept for it", "numbers"].map(str::to_owned).to_vec()];
    for step in &net.counted.steps {
        let path = if step.path.is_empty() { String::new() } else { format!("{}: ", step.path) };
        rows.push(vec![
            shown(&format!("{path}{}", step.name)).to_string(),
            step.shape.clone(),
            thousands(step.out_bytes),
            thousands(step.kept_bytes),
            if step.parameters > 0 { thousands(step.parameters) } else { String::new() },
        ]);
    }
    let kept: u64 = net.counted.steps.iter().map(|s| s.kept_bytes).sum();
    rows.push(vec![
        "all".into(),
        String::new(),
        String::new(),
        thousands(kept),
        thousands(net.counted.parameters),
    ]);
    format!("\nLayer by layer, one image\n{}", columns(&rows, &[false, true, true, true, true]))
}

fn table(cases: &[Case]) -> String {
    if cases.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        ["size", "batch", "precision", "optimizer", "card", "kept an image", "largest batch", "machine"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for case in cases {
        let known = |bytes: u64| if bytes > 0 { mb(bytes) } else { "-".into() };
        rows.push(vec![
            shown_size(case.size),
            thousands(case.training.batch),
            case.training.precision.as_str().into(),
            case.training.optimizer.as_str().into(),
            known(case.total),
            known(case.per_image),
            case.largest.map_or_else(|| "-".into(), thousands),
            mb(case.host),
        ]);
    }
    format!("\nWhat if\n{}", columns(&rows, &[true, true, false, false, true, true, true, true]))
}

/// What to type next: a command that works, with the network and the set as they were typed.
fn next(answer: &Answer) -> String {
    let (Some(network), Some(asked)) = (&answer.network, &answer.asked) else {
        return "Next: prep plan --model resnet50 --batch 64 --vram 8G\n".into();
    };
    let here = answer.input.as_os_str() == ".";
    let input = if here { String::new() } else { format!(" {}", shell_word(&answer.input)) };
    let faster = |s: &crate::plan::sample::Sampled| Some(s.shrunk_rate()? / s.rate()? > 1.5);
    if answer.root.is_some() && answer.sampled.as_ref().and_then(faster) == Some(true) {
        return format!("Next: prep shrink{input}, and the pictures come faster\n");
    }
    let model = shell_word(std::path::Path::new(asked));
    let more = if answer.vram.is_none() {
        "--vram 8G"
    } else if network.has_layers() && !answer.layers {
        "--layers"
    } else {
        "--what-if batch=16,32,64"
    };
    format!("Next: prep plan{input} --model {model} {more}\n")
}

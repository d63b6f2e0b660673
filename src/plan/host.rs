//! What the machine must hold while it feeds the card: workers, batches in flight, pictures being decoded.

use super::gpu::shown_size;
use super::ledger::{Line, grouped, mb};
use super::net::Size;

/// What a training process holds before the first picture: Python, PyTorch with its CUDA libraries, NumPy. Measured
/// with torch 2.15: 704 MB private memory after `import torch, torchvision`, without a context.
const MAIN: u64 = 704_000_000;
/// What a forked worker adds of its own: 5 MB at first, and what it writes to as it runs; assumed.
const FORKED: u64 = 60_000_000;
/// What a spawned worker adds: it imports everything again. Measured with torch 2.15: 390 MB.
const SPAWNED: u64 = 390_000_000;
/// Left to the rest of the machine.
const REST: u64 = 1_000_000_000;
/// Batches in page-locked memory: the one that is copied and the one that is trained on.
const PINNED: u64 = 2;
/// How much of a cached set a forked worker comes to copy, in percent: counting references writes to pages
/// (an estimate in sleap-nn issue 440).
const FORK_COPIES: u64 = 25;

/// How pictures are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loader {
    /// Processes that decode.
    pub workers: u64,
    /// Batches that each prepares ahead (PyTorch: 2).
    pub prefetch: u64,
    /// Images a batch.
    pub batch: u64,
    /// The size of a sample.
    pub size: Size,
    /// Bytes of a value of a sample: 4 as torchvision's transforms give it, 1 as uint8.
    pub value_bytes: u64,
}

/// Pictures as they are decoded: width and height of the usual and of the largest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// The usual one.
    pub usual: (u32, u32),
    /// The largest.
    pub largest: (u32, u32),
    /// Pictures of the set.
    pub images: u64,
    /// Bytes of all of them, decoded.
    pub all_bytes: u64,
}

/// What the host must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Lines that add up.
    pub lines: Vec<Line>,
    /// Their sum.
    pub total: u64,
    /// What spawned workers (the default on macOS and Windows) add to it.
    pub spawned_more: u64,
    /// What keeping the decoded set in memory adds: forked, spawned. None where the set is not known.
    pub cache: Option<(Line, Line)>,
    /// The batches in flight lie in shared memory (`/dev/shm`).
    pub shared: u64,
}

/// What loads pictures, as a factor of a line.
fn loaders(workers: u64) -> &'static str {
    if workers == 0 { "process" } else { "workers" }
}

/// One sample of `size` with `value_bytes` a value.
pub fn sample_line(size: Size, value_bytes: u64) -> Line {
    let factors = [("high", size.0.into()), ("wide", size.1.into()), ("channels", 3), ("bytes", value_bytes)];
    Line::product("sample", format!("one {} sample", shown_size(size)), &factors)
}

/// What the loader holds.
pub fn host(loader: Loader, decoded: Option<Decoded>) -> Host {
    let Loader { workers, prefetch, batch, .. } = loader;
    // Without workers the training process loads the pictures itself, one batch at a time and none ahead.
    let decoders = workers.max(1);
    let sample = sample_line(loader.size, loader.value_bytes).bytes;
    let mut lines = vec![
        Line::given("main", "the training process: Python, PyTorch (measured)", "704 x 10^6", MAIN),
        Line::product(
            "workers",
            "the workers themselves, forked as on Linux (assumed)",
            &[("workers", workers), ("bytes", FORKED)],
        ),
        Line::product(
            "in_flight",
            "batches prepared ahead",
            &[
                ("workers", workers),
                ("batches ahead", prefetch),
                ("images", batch),
                ("bytes a sample", sample),
            ],
        ),
        Line::product(
            "collate",
            "samples waiting to become a batch",
            &[(loaders(workers), decoders), ("images", batch), ("bytes a sample", sample)],
        ),
    ];
    if let Some(decoded) = decoded {
        let bytes = |(w, h): (u32, u32)| (u64::from(w) * u64::from(h)).saturating_mul(3);
        let (usual, largest) = (bytes(decoded.usual), bytes(decoded.largest));
        lines.push(Line::product(
            "decode_usual",
            format!(
                "a decoded picture in each of them ({}x{}, the usual one)",
                decoded.usual.0, decoded.usual.1
            ),
            &[
                (loaders(workers), decoders),
                ("wide", decoded.usual.0.into()),
                ("high", decoded.usual.1.into()),
                ("channels", 3),
            ],
        ));
        lines.push(Line {
            key: "decode_largest",
            what: format!(
                "more for the largest picture seen ({}x{}), in one",
                decoded.largest.0, decoded.largest.1
            ),
            formula: "largest - usual".into(),
            numbers: format!("{} - {}", grouped(largest), grouped(usual)),
            bytes: largest.saturating_sub(usual),
        });
    }
    lines.push(Line::product(
        "pinned",
        "batches in page-locked memory, on their way to the card",
        &[("batches", PINNED), ("images", batch), ("bytes a sample", sample)],
    ));
    let total = lines.iter().fold(0_u64, |all, line| all.saturating_add(line.bytes));
    let shared = lines.iter().filter(|l| l.key == "in_flight").map(|l| l.bytes).sum();
    let spawned_more = workers.saturating_mul(SPAWNED - FORKED);
    Host {
        lines,
        total,
        spawned_more,
        cache: decoded.filter(|d| d.all_bytes > 0).map(|d| cache(d, workers)),
        shared,
    }
}

fn cache(decoded: Decoded, workers: u64) -> (Line, Line) {
    let all = decoded.all_bytes;
    let forked = Line {
        key: "cache_fork",
        what: "keeping the decoded set in memory, workers forked".into(),
        formula: "decoded x (1 + workers x 0.25)".into(),
        numbers: format!("{} x (1 + {workers} x 0.25)", grouped(all)),
        bytes: all.saturating_add(
            (u128::from(all) * u128::from(workers * FORK_COPIES) / 100).min(u64::MAX.into()) as u64,
        ),
    };
    let spawned = Line::product(
        "cache_spawn",
        "the same, workers spawned: each has its own",
        &[("decoded", all), ("1 + workers", workers + 1)],
    );
    (forked, spawned)
}

/// What `ram` bytes mean for it: the sentence, and whether it is enough.
pub fn verdict(host: &Host, loader: Loader, decoded: Option<Decoded>, ram: u64) -> (bool, String) {
    if host.total.saturating_add(REST) <= ram {
        let left = ram - host.total;
        return (
            true,
            format!("{} of {}, {} left for the system and its file cache", mb(host.total), mb(ram), mb(left)),
        );
    }
    let with = |loader: Loader| self::host(loader, decoded).total.saturating_add(REST) <= ram;
    let mut sentence = format!(
        "{} and {} for the rest of the system do not fit into {}: the operating system would kill {}.",
        mb(host.total),
        mb(REST),
        mb(ram),
        if loader.workers == 0 {
            "the training process"
        } else {
            "workers (\"DataLoader worker is killed by signal\")"
        }
    );
    let fewer = (1..loader.workers).rev().find(|n| with(Loader { workers: *n, ..loader }));
    if loader.prefetch > 1 && with(Loader { prefetch: 1, ..loader }) {
        sentence.push_str(" Turn down --prefetch first: 1 fits.");
    } else if let Some(n) = fewer {
        sentence.push_str(&format!(" Turn down --workers first: {n} will do."));
    } else if !with(Loader { workers: 0, batch: 1, value_bytes: 1, ..loader }) {
        sentence
            .push_str(" No setting of the loader will do: not even one image a step without workers fits.");
    } else if loader.value_bytes > 1 {
        sentence
            .push_str(" Turn down --batch first, and leave samples as uint8 (make them float on the card).");
    } else {
        sentence.push_str(" Turn down --batch first.");
    }
    (false, sentence)
}

//! `prep plan`: options, the questions that they are, and where the answers go.

mod json;
mod text;

use std::path::PathBuf;

use clap::ValueEnum;

use super::args::{Global, Input, dimensions, side, size};
use super::run;
use super::terminal::{Terminal, columns};
use crate::decode::Contract;
use crate::engine::cancel::Cancel;
use crate::engine::flight::Flight;
use crate::error::{Error, Result};
use crate::names::shown;
use crate::plan::gpu::{self, Optimizer, Pair, Precision, Training};
use crate::plan::host::{self, Decoded, Host, Loader};
use crate::plan::ledger::Line;
use crate::plan::net::{Size, builtin};
use crate::plan::network::Network;
use crate::plan::sample::Sampled;
use crate::plan::{cache, data, runs, sample};
use crate::source::Listing;

/// Says whether a training run fits into the card and the machine, and what would starve, before any of it is rented.
/// Nothing is trained and nothing is written but what --log names; everything is computed from the set and the
/// network's layers. Without --model it prints the set's own sums and the networks that it knows.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    pub input: Input,
    /// A network's name, FILE.onnx, FILE.toml, or params=25.6M,acts=11.1M@224
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,
    /// Side of the pictures that the network is given, or WxH [default: the network's own, or 224]
    #[arg(long, value_name = "PX", value_parser = side_or_box)]
    size: Option<Size>,
    /// Images a step
    #[arg(short, long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    batch: u64,
    /// Images whose gradients are gathered before a step is taken
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    effective_batch: Option<u64>,
    /// fp32; amp is autocast with fp16, bf16 autocast with bf16
    #[arg(long, value_enum, default_value = "fp32", value_name = "NAME")]
    precision: PrecisionName,
    /// What takes the steps
    #[arg(long, value_enum, default_value = "adamw", value_name = "NAME")]
    optimizer: OptimizerName,
    /// Run blocks again on the way back instead of keeping what they made
    #[arg(long)]
    checkpointing: bool,
    /// Attention: fused since PyTorch 2, plain before and where attention maps are read
    #[arg(long, value_enum, default_value = "fused", value_name = "HOW")]
    attention: AttentionName,
    /// Processes that load pictures
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(0..=1024))]
    workers: u64,
    /// Batches that each of them prepares ahead
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1024))]
    prefetch: u64,
    /// Numbers of a sample as it leaves the loader
    #[arg(long, value_enum, default_value = "fp32", value_name = "NAME")]
    sample: SampleName,
    /// Memory of the card, as in 8G or 24GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    vram: Option<u64>,
    /// Memory of the machine
    #[arg(long, value_name = "SIZE", value_parser = size)]
    ram: Option<u64>,
    /// What the disk reads in a second
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "500M")]
    bandwidth: u64,
    /// Compare in a table: size=, batch=, precision=, optimizer=, each with a list, as in size=160,224 batch=32,64
    #[arg(long, value_name = "KEY=LIST", num_args = 1..)]
    what_if: Vec<String>,
    /// Show every layer
    #[arg(long)]
    layers: bool,
    /// Decode no sample of the pictures
    #[arg(long)]
    no_sample: bool,
    /// Add the configuration and its predictions to this file, as one JSON line
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Show the runs of such files side by side, and do nothing else
    #[arg(long, value_name = "FILE", num_args = 1..)]
    compare: Vec<PathBuf>,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum PrecisionName {
    Fp32,
    Amp,
    Bf16,
}

impl PrecisionName {
    fn meant(self) -> Precision {
        match self {
            Self::Fp32 => Precision::Fp32,
            Self::Amp => Precision::Amp,
            Self::Bf16 => Precision::Bf16,
        }
    }
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum OptimizerName {
    Sgd,
    Momentum,
    Adam,
    Adamw,
    Adam8bit,
}

impl OptimizerName {
    fn meant(self) -> Optimizer {
        match self {
            Self::Sgd => Optimizer::Sgd,
            Self::Momentum => Optimizer::Momentum,
            Self::Adam => Optimizer::Adam,
            Self::Adamw => Optimizer::AdamW,
            Self::Adam8bit => Optimizer::Adam8bit,
        }
    }
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq)]
enum AttentionName {
    Fused,
    Plain,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum SampleName {
    Fp32,
    Uint8,
}

fn side_or_box(text: &str) -> std::result::Result<Size, String> {
    side(text)
        .map(|n| (n, n))
        .or_else(|_| dimensions(text).map(|(w, h)| (h, w)))
        .map_err(|_| "a side from 1 to 65535 pixels, or WxH".into())
}

/// Everything that was asked and answered, for the text and for JSON.
struct Answer {
    size: Size,
    training: Training,
    loader: Loader,
    effective_batch: Option<u64>,
    vram: Option<u64>,
    ram: Option<u64>,
    bandwidth: u64,
    fused: bool,
    network: Option<Network>,
    net: Option<Pair>,
    tensors: Vec<Line>,
    set: Vec<Line>,
    facts: Option<data::Facts>,
    sampled: Option<Sampled>,
    root: Option<PathBuf>,
    host: Host,
    what_if: Vec<Case>,
    layers: bool,
}

/// One row of the table of `--what-if`.
struct Case {
    size: Size,
    training: Training,
    total: u64,
    per_image: u64,
    largest: Option<u64>,
    host: u64,
}

impl Answer {
    fn decoded(&self) -> Option<Decoded> {
        self.facts.as_ref().map(data::Facts::decoded)
    }

    fn sum(&self) -> Option<gpu::Sum> {
        self.net.as_ref().map(|net| gpu::sum(net, self.training))
    }

    /// What to do when it does not fit.
    fn steps(&self) -> Vec<gpu::Step> {
        let (Some(net), Some(network), Some(vram)) = (&self.net, &self.network, self.vram) else {
            return Vec::new();
        };
        let at = |size, precision| network.measure(size, precision, self.fused).ok();
        gpu::steps(net, self.training, vram, &at)
    }
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// What ends the run.
pub fn run(args: &Args, global: &Global, terminal: &Terminal, flight: Option<&Flight>) -> Result<u8> {
    if !args.compare.is_empty() {
        return compare(args, global, terminal);
    }
    let network = args.model.as_deref().map(Network::open).transpose()?;
    let size = args.size.or(network.as_ref().map(|n| n.usual)).unwrap_or((224, 224));
    let answer = answer(args, global, terminal, flight, network, size)?;
    if global.json {
        terminal.result(&format!("{:#}\n", json::document(&answer)))?;
    } else {
        terminal.result(&text::answer(&answer))?;
    }
    if let Some(path) = args.log.as_ref().filter(|_| !global.dry_run) {
        runs::append(path, &json::run(&answer))?;
        terminal.say(&format!("added to {}; side by side: prep plan --compare {}", shown(path), shown(path)));
    }
    Ok(0)
}

fn compare(args: &Args, global: &Global, terminal: &Terminal) -> Result<u8> {
    let mut all = Vec::new();
    for path in &args.compare {
        all.extend(runs::read(path)?);
    }
    if global.json {
        let document = serde_json::json!({"schema": json::SCHEMA, "command": "plan", "runs": all});
        terminal.result(&format!("{document:#}\n"))?;
        return Ok(0);
    }
    let rows = runs::side_by_side(&all);
    let right: Vec<bool> = (0..=all.len()).map(|at| at > 0).collect();
    terminal.result(&columns(&rows, &right))?;
    Ok(0)
}

fn answer(
    args: &Args,
    global: &Global,
    terminal: &Terminal,
    flight: Option<&Flight>,
    network: Option<Network>,
    size: Size,
) -> Result<Answer> {
    let fused = args.attention == AttentionName::Fused;
    let training = Training {
        batch: args.batch,
        precision: args.precision.meant(),
        optimizer: args.optimizer.meant(),
        checkpointing: args.checkpointing,
    };
    let value_bytes = match args.sample {
        SampleName::Fp32 => 4,
        SampleName::Uint8 => 1,
    };
    let loader =
        Loader { workers: args.workers, prefetch: args.prefetch, batch: args.batch, size, value_bytes };
    let measure = |size, precision| -> Result<Option<Pair>> {
        let Some(network) = &network else { return Ok(None) };
        let measured = network.measure(size, precision, fused);
        measured
            .map(Some)
            .map_err(|why| Error::Usage(format!("{} at {}: {why}", network.name, gpu::shown_size(size))))
    };
    let net = measure(size, training.precision)?;
    if training.checkpointing && net.as_ref().is_some_and(|n| n.cuda.checkpointed_bytes.is_none()) {
        return Err(Error::Usage("--checkpointing: the blocks of this network are not known".into()));
    }
    let mut listing = listing(args)?;
    let mut sampled = match &listing {
        Some(listing) if !args.no_sample => Some(sampled(listing, args, global, flight, size)?),
        _ => None,
    };
    let facts = listing.as_ref().and_then(|listing| data::facts(listing, sampled.as_ref()));
    if facts.is_none() && is_here(args) {
        (listing, sampled) = (None, None);
        terminal.say(
            "no pictures here, so the sums are of the network alone; name a set, as in `prep plan photos`",
        );
    }
    for sentence in listing.iter().flat_map(|l| &l.said) {
        terminal.say(sentence);
    }
    let host = host::host(loader, facts.as_ref().map(data::Facts::decoded));
    let what_if = what_if(args, &measure, (size, training, loader), facts.as_ref())?;
    Ok(Answer {
        size,
        training,
        loader,
        effective_batch: args.effective_batch,
        vram: args.vram,
        ram: args.ram,
        bandwidth: args.bandwidth,
        fused,
        tensors: data::tensor_lines(size, args.batch, value_bytes),
        set: facts.as_ref().map(|f| data::set_lines(f, size, args.batch, value_bytes)).unwrap_or_default(),
        root: listing.map(|l| l.root),
        network,
        net,
        facts,
        sampled,
        host,
        what_if,
        layers: args.layers,
    })
}

/// Was no set named, so that the question may be about the network alone?
fn is_here(args: &Args) -> bool {
    let input = &args.input;
    input.input.as_os_str() == "." && input.labels.is_none() && input.files_from.is_none()
}

/// The set that is asked about, where there is one.
fn listing(args: &Args) -> Result<Option<Listing>> {
    let input = &args.input;
    let listing = crate::source::open(&input.input, &input.options())?;
    if !listing.entries.is_empty() {
        return Ok(Some(listing));
    }
    if is_here(args) {
        return Ok(None);
    }
    let what = shown(&input.input);
    Err(Error::Usage(format!(
        "there are no images in {what}; name a folder of images, a table or a workspace"
    )))
}

fn sampled(
    listing: &Listing,
    args: &Args,
    global: &Global,
    flight: Option<&Flight>,
    size: Size,
) -> Result<Sampled> {
    let place = cache_folder().map(|folder| cache::place(&folder, listing, size));
    if let Some(known) = place.as_deref().and_then(cache::read) {
        return Ok(known);
    }
    let cancel = Cancel::on_signals();
    let pipe = run::pipe(&args.input, global, Contract::default(), false)?;
    let crew = run::crew(global, &cancel, flight)?;
    let sampled = sample::sample(listing, size, &pipe, &crew)?;
    if let Some(place) = place.filter(|_| !global.dry_run) {
        cache::write(&place, &sampled);
    }
    Ok(sampled)
}

/// The user's cache folder.
fn cache_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME").filter(|p| p.is_absolute()).or_else(|| Some(set("HOME")?.join(".cache")))
}

/// The most rows of a table of `--what-if`.
const CASES: usize = 200;

fn what_if(
    args: &Args,
    measure: &dyn Fn(Size, Precision) -> Result<Option<Pair>>,
    (size, training, loader): (Size, Training, Loader),
    facts: Option<&data::Facts>,
) -> Result<Vec<Case>> {
    let mut sizes = vec![size];
    let mut trainings = vec![training];
    for text in &args.what_if {
        let wrong =
            |why: &str| Error::Usage(format!("--what-if {}: {why}; INPUT stands before it", shown(text)));
        let (key, list) =
            text.split_once('=').ok_or_else(|| wrong("a key and a list, as in size=160,224"))?;
        let parts: Vec<&str> = list.split(',').filter(|p| !p.is_empty()).collect();
        if parts.is_empty() || parts.len() > CASES {
            return Err(wrong("a list of one or more"));
        }
        let mut next = Vec::new();
        for part in parts {
            let name = |e: String| wrong(&e);
            match key {
                "size" => next.push((Some(side_or_box(part).map_err(name)?), training)),
                "batch" => {
                    let batch = part.parse().ok().filter(|n| (1..=1 << 24).contains(n));
                    next.push((
                        None,
                        Training { batch: batch.ok_or_else(|| wrong("a number of images"))?, ..training },
                    ));
                }
                "precision" => {
                    let precision = PrecisionName::from_str(part, true).map_err(name)?.meant();
                    next.push((None, Training { precision, ..training }));
                }
                "optimizer" => {
                    let optimizer = OptimizerName::from_str(part, true).map_err(name)?.meant();
                    next.push((None, Training { optimizer, ..training }));
                }
                _ => return Err(wrong("keys are size, batch, precision, optimizer")),
            }
        }
        if key == "size" {
            sizes = next.iter().filter_map(|(size, _)| *size).collect();
        } else {
            trainings = combine(&trainings, key, &next.into_iter().map(|(_, t)| t).collect::<Vec<_>>());
        }
        if sizes.len() * trainings.len() > CASES {
            return Err(wrong("more than 200 rows"));
        }
    }
    if args.what_if.is_empty() {
        return Ok(Vec::new());
    }
    let mut cases = Vec::new();
    for size in sizes {
        for training in &trainings {
            let net = measure(size, training.precision)?;
            let loader = Loader { size, batch: training.batch, ..loader };
            cases.push(Case {
                size,
                training: *training,
                total: net.as_ref().map_or(0, |net| gpu::sum(net, *training).total),
                per_image: net.as_ref().map_or(0, |net| net.cuda.kept_bytes),
                largest: net.as_ref().and_then(|net| Some(gpu::largest_batch(net, *training, args.vram?))),
                host: host::host(loader, facts.map(data::Facts::decoded)).total,
            });
        }
    }
    Ok(cases)
}

/// Each of `trainings` with each choice of `key`.
fn combine(trainings: &[Training], key: &str, choices: &[Training]) -> Vec<Training> {
    let with = |training: &Training, choice: &Training| match key {
        "batch" => Training { batch: choice.batch, ..*training },
        "precision" => Training { precision: choice.precision, ..*training },
        _ => Training { optimizer: choice.optimizer, ..*training },
    };
    trainings.iter().flat_map(|training| choices.iter().map(move |choice| with(training, choice))).collect()
}

/// The networks that prep knows, as lines.
fn networks() -> Result<Vec<Vec<String>>> {
    Ok(builtin::list()?
        .into_iter()
        .map(|(name, model)| vec![name.to_owned(), model.about.clone(), format!("at {}", model.size)])
        .collect())
}

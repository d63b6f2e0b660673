//! `prep plan`: options, the questions that they are, and where the answers go.

mod args;
mod json;
mod text;
mod what_if;

pub use args::Args;
use args::{AttentionName, SampleName};
use what_if::{Case, what_if};

use std::path::PathBuf;

use super::args::Global;
use super::run;
use super::terminal::{Terminal, columns, plural};
use crate::decode::Contract;
use crate::engine::cancel::Cancel;
use crate::engine::flight::Flight;
use crate::engine::pipe::Damage;
use crate::error::{Error, Result};
use crate::names::shown;
use crate::plan::gpu::{self, Pair, Training};
use crate::plan::host::{self, Decoded, Host, Loader};
use crate::plan::ledger::Line;
use crate::plan::net::{Size, builtin};
use crate::plan::network::Network;
use crate::plan::sample::Sampled;
use crate::plan::{cache, data, remedies, runs, sample};
use crate::source::{Listing, SAMPLES};

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
    /// The network and the set as they were typed.
    asked: Option<String>,
    input: PathBuf,
    /// Are more pictures unusable than `--max-bad` allows?
    too_bad: bool,
}

impl Answer {
    fn decoded(&self) -> Option<Decoded> {
        self.facts.as_ref().map(data::Facts::decoded)
    }

    fn sum(&self) -> Option<gpu::Sum> {
        self.net.as_ref().map(|net| gpu::sum(net, self.training))
    }

    /// What to do when it does not fit.
    fn steps(&self) -> Vec<remedies::Step> {
        let (Some(net), Some(network), Some(vram)) = (&self.net, &self.network, self.vram) else {
            return Vec::new();
        };
        let at = |size, precision| network.sums(size, precision, self.fused).ok();
        remedies::steps(net, self.training, vram, &at)
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
    if answer.too_bad {
        terminal.warn("more pictures cannot be used than --max-bad allows");
        return Ok(1);
    }
    Ok(0)
}

fn compare(args: &Args, global: &Global, terminal: &Terminal) -> Result<u8> {
    let mut all = Vec::new();
    for path in &args.compare {
        all.extend(runs::read(path)?);
        if all.len() > runs::RUNS {
            let why =
                format!("--compare: more than {} runs; `tail -n 20 FILE` takes the last ones", runs::RUNS);
            return Err(Error::Usage(why));
        }
    }
    if global.json {
        let document = serde_json::json!({"schema": json::SCHEMA, "command": "plan", "runs": all});
        terminal.result(&format!("{document:#}\n"))?;
        return Ok(0);
    }
    let rows = runs::side_by_side(&all)?;
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
    if let Some(wanted) = args.effective_batch.filter(|wanted| *wanted < args.batch) {
        let why = format!("--effective-batch {wanted} is smaller than --batch {}", args.batch);
        return Err(Error::Usage(why));
    }
    let wrong = |network: &Network, size, why: String| {
        Error::Usage(format!("{} at {}: {why}", network.name, gpu::shown_size(size)))
    };
    let measure = |size, precision| -> Result<Option<Pair>> {
        let Some(network) = &network else { return Ok(None) };
        network.sums(size, precision, fused).map(Some).map_err(|why| wrong(network, size, why))
    };
    let net = match &network {
        Some(network) => {
            Some(network.measure(size, training.precision, fused).map_err(|why| wrong(network, size, why))?)
        }
        None => None,
    };
    if training.checkpointing && net.as_ref().is_some_and(|n| n.cuda.checkpointed_bytes.is_none()) {
        return Err(Error::Usage("--checkpointing: the blocks of this network are not known".into()));
    }
    let Set { root, sampled, facts, too_bad } = set(args, global, terminal, flight, size)?;
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
        root,
        network,
        net,
        facts,
        sampled,
        host,
        what_if,
        layers: args.layers,
        asked: args.model.clone(),
        input: args.input.input.clone(),
        too_bad,
    })
}

/// Was no set named, so that the question may be about the network alone?
fn is_here(args: &Args) -> bool {
    let input = &args.input;
    input.input.as_os_str() == "." && input.labels.is_none() && input.files_from.is_none()
}

/// What is known of the set.
#[derive(Default)]
struct Set {
    root: Option<PathBuf>,
    sampled: Option<Sampled>,
    facts: Option<data::Facts>,
    too_bad: bool,
}

/// Looks at the set that is asked about, where there is one.
fn set(
    args: &Args,
    global: &Global,
    terminal: &Terminal,
    flight: Option<&Flight>,
    size: Size,
) -> Result<Set> {
    let input = &args.input;
    let listing = match crate::source::open(&input.input, &input.options()) {
        Ok(listing) => listing,
        // Something that is no set lies where a question about a network was typed.
        Err(e) if is_here(args) && args.model.is_some() => {
            terminal.warn(&format!("{e}; the sums are of the network alone"));
            return Ok(Set::default());
        }
        Err(e) => return Err(e),
    };
    if listing.entries.is_empty() && !is_here(args) {
        let what = shown(&input.input);
        let why = format!("there are no images in {what}; name a folder of images, a table or a workspace");
        return Err(Error::Usage(why));
    }
    let sampled = if args.no_sample { None } else { Some(sampled(&listing, args, global, flight, size)?) };
    let facts = data::facts(&listing, sampled.as_ref());
    let usable = listing.entries.iter().filter(|e| e.fault.is_none()).count();
    if usable == 0 && is_here(args) {
        let why =
            "no pictures here, so the sums are of the network alone; name a set, as in `prep plan photos`";
        terminal.say(why);
        return Ok(Set::default());
    }
    if facts.is_none() {
        let why = if args.no_sample {
            "--no-sample, and no manifest tells their sizes"
        } else {
            "none can be decoded"
        };
        terminal.warn(&format!("{}: {why}; the sums are without them", plural(usable, "picture")));
    }
    for sentence in &listing.said {
        terminal.say(sentence);
    }
    let listed = listing.entries.iter().filter(|e| e.fault.is_some()).count();
    let mut too_bad = input.max_bad.exceeded(listed, listing.entries.len());
    if let Some(sampled) = &sampled {
        too_bad |= input.max_bad.exceeded(sampled.failed, sampled.pictures.len() + sampled.failed);
    }
    Ok(Set { root: Some(listing.root), sampled, facts, too_bad })
}

fn sampled(
    listing: &Listing,
    args: &Args,
    global: &Global,
    flight: Option<&Flight>,
    size: Size,
) -> Result<Sampled> {
    let options = format!("{} {:?} {:?}", args.input.max_pixels, args.input.max_seconds, global.memory);
    // Beside the cache of facts, which is not of speeds.
    let folder =
        run::cache_home(global).filter(|_| !global.no_cache).map(|home| home.with_file_name(SAMPLES));
    let place = folder.map(|folder| cache::place(&folder, listing, size, &options));
    if let Some(known) = place.as_deref().filter(|_| !args.measure).and_then(cache::read) {
        return Ok(known);
    }
    let cancel = Cancel::on_signals();
    let pipe = run::pipe(&args.input, global, Contract::default(), Damage::Refuse)?;
    let crew = run::crew(global, &cancel, flight)?;
    let sampled = sample::sample(listing, size, &pipe, &crew)?;
    if let Some(place) = place.filter(|_| !global.dry_run) {
        let usable = listing.entries.iter().filter(|e| e.fault.is_none()).count();
        cache::write(&place, &sampled, usable, &listing.root);
    }
    Ok(sampled)
}

/// The networks that prep knows, as lines.
fn networks() -> Result<Vec<Vec<String>>> {
    Ok(builtin::list()?
        .into_iter()
        .map(|(name, model)| {
            let aka =
                if model.aka.is_empty() { String::new() } else { format!("or {}", model.aka.join(", ")) };
            vec![name.to_owned(), model.about.clone(), format!("at {}", model.size), aka]
        })
        .collect())
}

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
use super::terminal::{Terminal, columns};
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
use crate::plan::{cache, data, runs, sample};
use crate::source::Listing;

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
    let Set { root, sampled, facts } = set(args, global, terminal, flight, size)?;
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
    if facts.is_none() && is_here(args) {
        let why =
            "no pictures here, so the sums are of the network alone; name a set, as in `prep plan photos`";
        terminal.say(why);
        return Ok(Set::default());
    }
    for sentence in &listing.said {
        terminal.say(sentence);
    }
    Ok(Set { root: Some(listing.root), sampled, facts })
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
    let pipe = run::pipe(&args.input, global, Contract::default(), Damage::Refuse)?;
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

/// The networks that prep knows, as lines.
fn networks() -> Result<Vec<Vec<String>>> {
    Ok(builtin::list()?
        .into_iter()
        .map(|(name, model)| vec![name.to_owned(), model.about.clone(), format!("at {}", model.size)])
        .collect())
}

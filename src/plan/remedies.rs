//! What to do when a batch does not fit: each step alone, in the order in which it costs the least, and where none is
//! enough the fewest together.

use super::gpu::{Optimizer, Pair, Precision, Training, largest_batch, shown_size, sum};
use super::net::Size;

/// One thing to do when a batch does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// A stable name, for programs.
    pub key: &'static str,
    /// What to do, and what it costs.
    pub what: String,
    /// The new total.
    pub total: u64,
    /// The largest batch then.
    pub largest: u64,
    /// Does the wanted batch fit then?
    pub fits: bool,
}

/// What to do, in order, so that `training` fits in `vram`; each alone. `at` measures the network at another size.
pub fn steps(
    net: &Pair,
    training: Training,
    vram: u64,
    at: &dyn Fn(Size, Precision) -> Option<Pair>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let step = |key, what: String, net: &Pair, training: Training| {
        let total = sum(net, training).total;
        let largest = largest_batch(net, training, vram);
        Step { key, what, total, largest, fits: total <= vram }
    };
    let size = net.cuda.size;
    if !training.precision.is_half()
        && let Some(half) = at(size, Precision::Amp)
    {
        let what = "mixed precision (--precision amp): about half the memory of each image, usually faster";
        steps.push(step("precision", what.into(), &half, Training { precision: Precision::Amp, ..training }));
    }
    let largest = largest_batch(net, training, vram);
    if largest >= 1 && largest < training.batch {
        let (turns, small) = gathered(training.batch, largest);
        let norm = if net.cuda.batch_norm {
            format!("; batch norm sees {small} images, not {}", training.batch)
        } else {
            String::new()
        };
        let what = format!(
            "gradient accumulation: {turns} steps of {small} for one of {} (--batch {small} --effective-batch {}), no slower{norm}",
            training.batch, training.batch
        );
        steps.push(step("accumulation", what, net, Training { batch: small, ..training }));
    }
    if let Some((smaller, measured)) = smaller(net, training, vram, at) {
        let share =
            f64::from(smaller.0) * f64::from(smaller.1) / (f64::from(size.0) * f64::from(size.1)) * 100.0;
        let what = format!(
            "smaller pictures (--size {}): {share:.0} % of each picture's memory, fine detail is lost",
            shown_size(smaller)
        );
        steps.push(step("size", what, &measured, training));
    }
    if !training.checkpointing && net.cuda.checkpointed_bytes.is_some() {
        let what = format!(
            "activation checkpointing (--checkpointing): each of {} blocks is run again on the way back, about a third more time",
            net.cuda.blocks
        );
        steps.push(step("checkpointing", what, net, Training { checkpointing: true, ..training }));
    }
    if let Some((optimizer, cost)) = lighter(training.optimizer) {
        let what = format!("a lighter optimizer (--optimizer {}): {cost}", optimizer.as_str());
        steps.push(step("optimizer", what, net, Training { optimizer, ..training }));
    }
    // A smaller step or picture may fit where nothing else does, and be too small to be wanted.
    let whole = |step: &Step| step.fits && !matches!(step.key, "accumulation" | "size");
    if !steps.iter().any(whole) {
        let fits = steps.iter().any(|step| step.fits);
        steps.extend(together(net, training, vram, at).filter(|step| step.fits || !fits));
    }
    steps
}

/// How many steps of how many images make one of `wanted`, where `largest` fit: steps that add up exactly, unless they
/// would be less than half as large.
fn gathered(wanted: u64, largest: u64) -> (u64, u64) {
    let least = wanted.div_ceil(largest);
    let exact = (least..=least.saturating_mul(2)).find(|turns| wanted.is_multiple_of(*turns));
    let turns = exact.unwrap_or(least);
    (turns, wanted.div_ceil(turns))
}

/// The optimizer that remembers less, and what it costs.
fn lighter(optimizer: Optimizer) -> Option<(Optimizer, &'static str)> {
    match optimizer {
        Optimizer::Adam | Optimizer::AdamW => Some((Optimizer::Adam8bit, "8-bit states (bitsandbytes)")),
        Optimizer::Momentum => Some((Optimizer::Sgd, "no momentum, which most networks miss")),
        Optimizer::Sgd | Optimizer::Adam8bit => None,
    }
}

/// A way to train: how many changes it takes, their words, and what it is then.
type Way<'p> = (usize, String, Training, &'p Pair);

/// Every way to take some of half precision, checkpointing and a lighter optimizer together, the fewest first; `half` is
/// the network in half precision, where it is not trained so already.
fn ways<'p>(net: &'p Pair, training: Training, half: Option<&'p Pair>) -> Vec<Way<'p>> {
    let blocks = !training.checkpointing && net.cuda.checkpointed_bytes.is_some();
    let lighter = lighter(training.optimizer);
    let mut ways: Vec<Way<'p>> = Vec::new();
    for choice in 0..8_u8 {
        let (amp, again, light) = (choice & 1 != 0, choice & 2 != 0, choice & 4 != 0);
        if amp && half.is_none() || again && !blocks || light && lighter.is_none() {
            continue;
        }
        let (mut words, mut chosen) = (Vec::new(), training);
        if amp {
            words.push("--precision amp".to_owned());
            chosen.precision = Precision::Amp;
        }
        if again {
            words.push("--checkpointing".to_owned());
            chosen.checkpointing = true;
        }
        if let Some((optimizer, _)) = lighter.filter(|_| light) {
            words.push(format!("--optimizer {}", optimizer.as_str()));
            chosen.optimizer = optimizer;
        }
        let measured = half.filter(|_| amp).unwrap_or(net);
        ways.push((words.len(), words.join(" "), chosen, measured));
    }
    ways.sort_by_key(|(count, ..)| *count);
    ways
}

/// Where no single step is enough: the fewest that are, taken together, first at the whole batch and then with smaller
/// steps gathered. Where nothing is: all of them with one image a step, and a total that does not fit.
fn together(
    net: &Pair,
    training: Training,
    vram: u64,
    at: &dyn Fn(Size, Precision) -> Option<Pair>,
) -> Option<Step> {
    let half = if training.precision.is_half() { None } else { at(net.cuda.size, Precision::Amp) };
    let ways = ways(net, training, half.as_ref());
    for (_, words, training, net) in &ways {
        let total = sum(net, *training).total;
        if total <= vram {
            let what = format!("together: {words}");
            return Some(Step {
                key: "together",
                what,
                total,
                largest: largest_batch(net, *training, vram),
                fits: true,
            });
        }
    }
    let tried = ways.iter().filter(|(count, ..)| *count > 0);
    let most = tried.map(|way| (largest_batch(way.3, way.2, vram), way));
    // The first of those with the largest batch: the fewest words.
    let best = most.fold(None, |best: Option<(u64, _)>, (n, way)| match best {
        Some((most, _)) if most >= n => best,
        _ => Some((n, way)),
    });
    if let Some((largest, (_, words, training, net))) = best.filter(|(largest, _)| *largest > 0) {
        let wanted = training.batch;
        let (turns, small) = gathered(wanted, largest);
        let total = sum(net, Training { batch: small, ..*training }).total;
        let what = format!(
            "together: {words} --batch {small} --effective-batch {wanted}, which gathers the gradients of {turns} steps"
        );
        return Some(Step { key: "together", what, total, largest, fits: true });
    }
    let (_, words, training, net) = ways.last()?;
    let total = sum(net, Training { batch: 1, ..*training }).total;
    let what = format!(
        "Nothing that prep knows makes it fit at this size: so much is needed even with {words} --batch 1"
    );
    Some(Step { key: "nothing", what, total, largest: 0, fits: false })
}

/// The largest smaller size, in steps of 32 pixels, at which the batch fits.
fn smaller(
    net: &Pair,
    training: Training,
    vram: u64,
    at: &dyn Fn(Size, Precision) -> Option<Pair>,
) -> Option<(Size, Pair)> {
    let (h, w) = net.cuda.size;
    (0..16).find_map(|less| {
        let below = |side: u32| ((side - 1) / 32).checked_sub(less).map(|n| n * 32).filter(|side| *side > 0);
        let size = (below(h)?, below(w)?);
        let net = at(size, training.precision)?;
        (sum(&net, training).total <= vram).then_some((size, net))
    })
}

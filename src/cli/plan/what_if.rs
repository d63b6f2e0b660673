//! `--what-if`: every combination of a few sizes, batches, precisions and optimizers, as rows.

use clap::ValueEnum;

use super::args::{Args, OptimizerName, PrecisionName, side_or_box};
use crate::error::{Error, Result};
use crate::names::shown;
use crate::plan::data::Facts;
use crate::plan::gpu::{self, Pair, Precision, Training};
use crate::plan::host::{self, Loader};
use crate::plan::net::Size;

/// The most rows.
const CASES: usize = 200;

/// One row.
pub struct Case {
    pub size: Size,
    pub training: Training,
    pub total: u64,
    pub per_image: u64,
    pub largest: Option<u64>,
    pub host: u64,
}

/// The rows that `--what-if` asks for; `measure` knows the network at a size.
///
/// # Errors
/// A key or a value that cannot be meant, a size that the network cannot take.
pub fn what_if(
    args: &Args,
    measure: &dyn Fn(Size, Precision) -> Result<Option<Pair>>,
    (size, training, loader): (Size, Training, Loader),
    facts: Option<&Facts>,
) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    if args.what_if.is_empty() {
        return Ok(cases);
    }
    for (size, training) in combinations(&args.what_if, (size, training))? {
        let net = measure(size, training.precision)?;
        let loader = Loader { size, batch: training.batch, ..loader };
        cases.push(Case {
            size,
            training,
            total: net.as_ref().map_or(0, |net| gpu::sum(net, training).total),
            per_image: net.as_ref().map_or(0, |net| net.cuda.kept_bytes),
            largest: net.as_ref().and_then(|net| Some(gpu::largest_batch(net, training, args.vram?))),
            host: host::host(loader, facts.map(Facts::decoded)).total,
        });
    }
    Ok(cases)
}

/// Each choice of each key with each choice of the others, the first key slowest.
fn combinations(asked: &[String], usual: (Size, Training)) -> Result<Vec<(Size, Training)>> {
    let mut all = vec![usual];
    for text in asked {
        let wrong =
            |why: &str| Error::Usage(format!("--what-if {}: {why}; INPUT stands before it", shown(text)));
        let (key, list) =
            text.split_once('=').ok_or_else(|| wrong("a key and a list, as in size=160,224"))?;
        let words: Vec<&str> = list.split(',').filter(|p| !p.is_empty()).collect();
        if words.is_empty() || all.len().saturating_mul(words.len()) > CASES {
            return Err(wrong("a list of one or more, and at most 200 rows in all"));
        }
        let mut next = Vec::new();
        for before in &all {
            for word in &words {
                next.push(with(*before, key, word).map_err(|why| wrong(&why))?);
            }
        }
        all = next;
    }
    Ok(all)
}

/// `before` with another value of `key`.
fn with((size, training): (Size, Training), key: &str, word: &str) -> Result<(Size, Training), String> {
    Ok(match key {
        "size" => (side_or_box(word)?, training),
        "batch" => {
            let batch = word.parse().ok().filter(|n| (1..=1 << 24).contains(n));
            (size, Training { batch: batch.ok_or("a number of images")?, ..training })
        }
        "precision" => {
            let precision = PrecisionName::from_str(word, true)?.meant();
            (size, Training { precision, ..training })
        }
        "optimizer" => {
            let optimizer = OptimizerName::from_str(word, true)?.meant();
            (size, Training { optimizer, ..training })
        }
        _ => return Err("keys are size, batch, precision, optimizer".into()),
    })
}

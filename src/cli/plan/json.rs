//! `prep plan --json`, and the line that `--log` adds.

use serde_json::{Value, json};

use super::{Answer, Case};
use crate::plan::data::inodes;
use crate::plan::gpu;
use crate::plan::host;
use crate::plan::ledger::Line;
use crate::plan::net::Measure;

/// The document's version.
pub const SCHEMA: u32 = 1;

/// Everything.
pub fn document(answer: &Answer) -> Value {
    json!({
        "schema": SCHEMA,
        "command": "plan",
        "configuration": configuration(answer),
        "set": set(answer),
        "tensors": lines(&answer.tensors),
        "host": machine(answer),
        "gpu": card(answer),
        "model": model(answer),
        "throughput": throughput(answer),
        "what_if": answer.what_if.iter().map(case).collect::<Vec<_>>(),
    })
}

/// The line of an experiment ledger: flat, so that lines can be put side by side.
pub fn run(answer: &Answer) -> Value {
    let net = answer.net.as_ref();
    let rate = |of: fn(&crate::plan::sample::Sampled) -> Option<f64>| answer.sampled.as_ref().and_then(of);
    let seconds =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    json!({
        "schema": SCHEMA,
        "prep": env!("CARGO_PKG_VERSION"),
        "unix_time": seconds,
        "configuration": configuration(answer),
        "predictions": {
            "parameters": net.map(|n| n.cuda.parameters),
            "kept_bytes_per_image": net.map(|n| n.counted.kept_bytes),
            "gpu_bytes": answer.sum().map(|s| s.total),
            "largest_batch": largest(answer),
            "host_bytes": answer.host.total,
            "images_per_second_per_worker": rate(crate::plan::sample::Sampled::rate),
            "images_per_second_per_worker_shrunk": rate(crate::plan::sample::Sampled::shrunk_rate),
        },
    })
}

fn largest(answer: &Answer) -> Option<u64> {
    Some(gpu::largest_batch(answer.net.as_ref()?, answer.training, answer.vram?))
}

fn configuration(answer: &Answer) -> Value {
    json!({
        "input": answer.root.as_ref().map(|r| r.canonicalize().unwrap_or_else(|_| r.clone()).to_string_lossy().into_owned()),
        "images": answer.facts.as_ref().map(|f| f.images),
        "model": answer.network.as_ref().map(|n| n.name.as_str()),
        "height": answer.size.0,
        "width": answer.size.1,
        "batch": answer.training.batch,
        "effective_batch": answer.effective_batch,
        "precision": answer.training.precision.as_str(),
        "optimizer": answer.training.optimizer.as_str(),
        "checkpointing": answer.training.checkpointing,
        "attention": if answer.fused { "fused" } else { "plain" },
        "workers": answer.loader.workers,
        "prefetch": answer.loader.prefetch,
        "sample_value_bytes": answer.loader.value_bytes,
        "vram_bytes": answer.vram,
        "ram_bytes": answer.ram,
        "bandwidth_bytes_per_second": answer.bandwidth,
    })
}

fn lines(lines: &[Line]) -> Value {
    lines
        .iter()
        .map(|l| json!({"key": l.key, "what": l.what, "formula": l.formula, "numbers": l.numbers, "bytes": l.bytes}))
        .collect()
}

fn set(answer: &Answer) -> Value {
    let Some(facts) = &answer.facts else { return Value::Null };
    let (files, shards) = inodes(facts);
    json!({
        "images": facts.images, "trained": facts.trained, "bytes": facts.bytes,
        "usual": [facts.usual.0, facts.usual.1], "largest": [facts.largest.0, facts.largest.1],
        "mean_pixels": facts.mean_pixels, "sized": facts.sized, "exact": facts.exact,
        "shrunk_bytes_per_image": facts.shrunk.map(|s| s.0), "shrunk_pixels_per_image": facts.shrunk.map(|s| s.1),
        "inodes": files, "inodes_packed": shards,
        "seconds_to_read": facts.bytes as f64 / answer.bandwidth as f64,
        "lines": lines(&answer.set),
    })
}

fn machine(answer: &Answer) -> Value {
    let verdict = answer.ram.map(|ram| host::verdict(&answer.host, answer.loader, answer.decoded(), ram));
    json!({
        "lines": lines(&answer.host.lines),
        "total_bytes": answer.host.total,
        "spawned_more_bytes": answer.host.spawned_more,
        "shared_memory_bytes": answer.host.shared,
        "cache_fork_bytes": answer.host.cache.as_ref().map(|c| c.0.bytes),
        "cache_spawn_bytes": answer.host.cache.as_ref().map(|c| c.1.bytes),
        "fits": verdict.as_ref().map(|v| v.0),
        "verdict": verdict.map(|v| v.1),
    })
}

fn card(answer: &Answer) -> Value {
    let Some(sum) = answer.sum() else { return Value::Null };
    let steps: Vec<Value> = if answer.vram.is_some_and(|vram| sum.total > vram) {
        answer
            .steps()
            .iter()
            .map(|s| json!({"key": s.key, "what": s.what, "total_bytes": s.total, "largest_batch": s.largest, "fits": s.fits}))
            .collect()
    } else {
        Vec::new()
    };
    json!({
        "lines": lines(&sum.lines),
        "total_bytes": sum.total,
        "fits": answer.vram.map(|vram| sum.total <= vram),
        "largest_batch": largest(answer),
        "effective_batch_made": answer.effective_batch.map(|wanted| {
            wanted.div_ceil(answer.training.batch).saturating_mul(answer.training.batch)
        }),
        "without_no_grad_bytes": answer.net.as_ref().map(|net| {
            net.cuda.kept_bytes.saturating_mul(answer.training.batch)
        }),
        "accumulation_steps": answer.effective_batch.map(|wanted| wanted.div_ceil(answer.training.batch)),
        "reserve_share": gpu::RESERVE as f64 / 100.0,
        "context_bytes": gpu::CONTEXT,
        "to_do": steps,
    })
}

fn model(answer: &Answer) -> Value {
    let (Some(network), Some(net)) = (&answer.network, &answer.net) else { return Value::Null };
    let Measure { parameters, kept_bytes, conv_values, buffer_bytes, .. } = net.counted;
    let mut model = json!({
        "name": network.name,
        "about": network.about,
        "parameters": parameters,
        "buffer_bytes": buffer_bytes,
        "activation_bytes_per_image": kept_bytes,
        "activation_bytes_per_image_cuda": net.cuda.kept_bytes,
        "activation_bytes_per_image_checkpointed": net.cuda.checkpointed_bytes,
        "conv_output_values_per_image": conv_values,
        "peak_bytes_per_image": net.cuda.peak_bytes,
        "assumed": network.said,
    });
    if answer.layers
        && let Some(model) = model.as_object_mut()
    {
        let layers = net.counted.steps.iter().map(|s| {
            json!({
                "path": s.path, "layer": s.name, "shape": s.shape, "bytes": s.out_bytes, "kept_bytes": s.kept_bytes,
                "parameters": s.parameters,
            })
        });
        model.insert("layers".into(), layers.collect());
    }
    model
}

fn throughput(answer: &Answer) -> Value {
    let Some(sampled) = &answer.sampled else { return Value::Null };
    json!({
        "pictures": sampled.pictures.len(),
        "failed": sampled.failed,
        "first_failure": sampled.why.as_ref().map(|(path, why)| json!({"path": path, "why": why})),
        "images_per_second_per_worker": sampled.rate(),
        "images_per_second_per_worker_shrunk": sampled.shrunk_rate(),
        "model_images_per_second": answer.network.as_ref().and_then(|n| n.speed.as_ref()).map(|s| json!({
            "images": s.images, "size": s.size, "on": s.on,
        })),
    })
}

fn case(case: &Case) -> Value {
    json!({
        "height": case.size.0, "width": case.size.1, "batch": case.training.batch,
        "precision": case.training.precision.as_str(), "optimizer": case.training.optimizer.as_str(),
        "gpu_bytes": case.total, "kept_bytes_per_image": case.per_image, "largest_batch": case.largest,
        "host_bytes": case.host,
    })
}

//! The indexes that other readers want beside the shards.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Form, Layout, Place, Record, Shard, beton, mds, strided, tar};

/// The files that belong to shard `number`: name and content.
pub fn companions(
    form: &Form,
    folder: &str,
    number: usize,
    place: &Place<'_>,
    records: &[Record<'_>],
) -> Vec<(String, Vec<u8>)> {
    let about = || format!("{}\n", mds::about(form, place, records)).into_bytes();
    match form.layout {
        Layout::Mds => Vec::new(),
        Layout::Wds => vec![(format!("{folder}-{number:06}.idx"), dali(records).into_bytes())],
        Layout::Npy => vec![
            (format!("labels-{number:05}.npy"), strided::labels(records)),
            (format!("records-{number:05}.json"), about()),
        ],
        Layout::Beton => vec![(format!("records-{number:05}.json"), about())],
    }
}

/// The index over all shards of a part, where the layout has one.
pub fn overall(form: &Form, folder: &str, shards: &[Shard]) -> Option<(&'static str, String)> {
    match form.layout {
        Layout::Mds => Some(("index.json", polyglot(form, shards).to_string())),
        Layout::Wds => Some(("wids.json", format!("{:#}\n", wids(folder, shards)))),
        Layout::Npy | Layout::Beton => None,
    }
}

/// One file that MosaicML takes for its own (it ignores unknown keys at the top) and LitData for its own.
fn polyglot(form: &Form, shards: &[Shard]) -> Value {
    let entries: Vec<Value> = shards
        .iter()
        .map(|shard| {
            let mut entry = mds::config(form);
            entry["samples"] = shard.rows.into();
            entry["raw_data"] = json!({
                "basename": shard.name, "bytes": shard.sum.bytes, "hashes": {"xxh3_64": shard.sum.hex()},
            });
            entry["zip_data"] = Value::Null;
            entry
        })
        .collect();
    let chunks: Vec<Value> = shards
        .iter()
        .map(|shard| {
            json!({
                "chunk_bytes": shard.sum.bytes, "chunk_size": shard.rows, "dim": null, "filename": shard.name,
            })
        })
        .collect();
    let leaf = json!({"type": null, "context": null, "children_spec": []});
    let spec = json!([1, {
        "type": "builtins.dict", "context": "[\"image\", \"label\"]", "children_spec": [leaf, leaf],
    }]);
    json!({
        "version": 2,
        "shards": entries,
        "chunks": chunks,
        "config": {
            "compression": null, "chunk_size": null, "chunk_bytes": form.shard_size,
            "data_format": mds::encodings(form).1, "data_spec": spec.to_string(), "encryption": null,
            "item_loader": "PyTreeLoader",
        },
        "updated_at": "0",
    })
}

fn wids(folder: &str, shards: &[Shard]) -> Value {
    let list: Vec<Value> = shards
        .iter()
        .map(|shard| json!({"url": shard.name, "nsamples": shard.rows, "filesize": shard.sum.bytes}))
        .collect();
    json!({"__kind__": "wids-shard-index-v1", "wids_version": 1, "name": folder, "shardlist": list})
}

/// DALI's index of a tar, version 1.2.
fn dali(records: &[Record<'_>]) -> String {
    let mut out = format!("v1.2 {}\n", records.len());
    for sample in tar::layout(records) {
        for (i, member) in sample.iter().enumerate() {
            let extension = member.name.split_once('.').map_or("", |(_, ext)| ext);
            let gap = if i == 0 { "" } else { " " };
            let _ = write!(out, "{gap}{extension} {} {} {}", member.offset, member.size, member.name);
        }
        out.push('\n');
    }
    out
}

/// Where the payloads of a shard begin, for a [`Place`]: what the manifest says, which only `beton` needs.
pub fn image0(form: &Form, shard: &Shard) -> u64 {
    if form.layout == Layout::Beton { shard.image0.max(beton::page(form)) } else { shard.image0 }
}

//! Weights as text for a training script.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::{Value, json};

use super::{Count, Method, Options, Weights};
use crate::error::{Error, Result};
use crate::manifest::Sidecar;
use crate::names::{decode, shown};
use crate::out::place;
use crate::source::Listing;
use crate::table::csv_out;

/// PyTorch: a tensor in index order, for `CrossEntropyLoss`, or `BCEWithLogitsLoss` with several labels.
pub fn torch(weights: &Weights) -> String {
    let mut text = comment(weights);
    text.push_str("import torch\n\n");
    let _ = writeln!(text, "classes = {}", names(weights));
    if weights.is_multi_label {
        let _ = writeln!(
            text,
            "pos_weight = torch.tensor({}, dtype=torch.float32)",
            list(weights, |c| c.pos_weight)
        );
        text.push_str("criterion = torch.nn.BCEWithLogitsLoss(pos_weight=pos_weight)\n");
    } else {
        let _ = writeln!(text, "weight = torch.tensor({}, dtype=torch.float32)", list(weights, |c| c.weight));
        text.push_str("criterion = torch.nn.CrossEntropyLoss(weight=weight)\n");
    }
    text.push_str("# assert dataset.classes == classes\n");
    text
}

/// Keras: by index, for `model.fit(class_weight=…)`.
pub fn keras(weights: &Weights) -> String {
    let mut text = comment(weights);
    text.push_str("class_weight = {\n");
    for class in &weights.classes {
        let _ = writeln!(text, "    {}: {},  # {}", class.index, number(class.weight), literal(&class.name));
    }
    text.push_str("}\n");
    text
}

/// scikit-learn: by name, for `class_weight=…`; classes that do not occur are left out.
pub fn sklearn(weights: &Weights) -> String {
    let mut text = comment(weights);
    text.push_str("class_weight = {\n");
    for class in weights.classes.iter().filter(|c| c.images > 0) {
        let _ = writeln!(text, "    {}: {},  # {}", literal(&class.name), number(class.weight), class.index);
    }
    text.push_str("}\n");
    text
}

/// A table: class, index, timm_index, images, groups, weight, pos_weight.
///
/// # Errors
/// None that memory has not.
pub fn csv(weights: &Weights) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut csv = csv_out(&mut bytes);
    csv.write_record(["class", "index", "timm_index", "images", "groups", "weight", "pos_weight"])?;
    for c in &weights.classes {
        let numbers = [c.index as u64, c.timm_index as u64, c.images, c.groups].map(|n| n.to_string());
        let fields = [c.name.as_str()].into_iter().chain(numbers.iter().map(String::as_str));
        csv.write_record(fields.chain([number(c.weight).as_str(), number(c.pos_weight).as_str()]))?;
    }
    csv.flush()?;
    drop(csv);
    Ok(bytes)
}

/// The columns of [`per_row`], which also tell that a file is one of ours.
const PER_ROW: [&str; 3] = ["path", "label", "weight"];

/// Refuses a place for [`per_row`] that something else has: a file of the listing, its table or manifest, and every file
/// that is there and does not begin as ours do.
///
/// # Errors
/// [`Error::Outputs`] that says what lies there.
pub fn check_per_row(path: &Path, listing: &Listing, manifest: &Path) -> Result<()> {
    let taken = |what: &str| {
        let why = "prep does not write over it: name another file with --per-row";
        Err(Error::Outputs(format!("{} {what}; {why}", shown(path))))
    };
    let real = place::real_of_planned(path);
    let is = |other: &Path| place::real_of_planned(other) == real;
    if is(manifest) || is(&Sidecar::path_of(manifest)) {
        return taken("is the manifest's own place");
    }
    if listing.table.as_ref().is_some_and(|table| is(&table.path)) {
        return taken("is the table that was read");
    }
    let root = place::real_of_planned(&listing.root);
    if let Ok(below) = real.strip_prefix(&root)
        && listing.entries.iter().any(|entry| decode(&entry.path) == below)
    {
        return taken("is an image of the input");
    }
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() => taken("is no file"),
        Ok(_) if !begins_as_ours(path)? => taken("was not written by prep weights --per-row"),
        _ => Ok(()),
    }
}

fn begins_as_ours(path: &Path) -> Result<bool> {
    let doing = "looking at what --per-row would replace";
    let header = PER_ROW.join(",");
    let file = File::open(path).map_err(|e| Error::read(doing, path, e))?;
    let mut line = Vec::new();
    let mut first = BufReader::new(file).take(header.len() as u64 + 2);
    first.read_until(b'\n', &mut line).map_err(|e| Error::read(doing, path, e))?;
    Ok(line.strip_suffix(b"\n").map(|l| l.strip_suffix(b"\r").unwrap_or(l)) == Some(header.as_bytes()))
}

/// The sampler weights of the counted rows: path, label, weight; the mean is 1.
///
/// # Errors
/// Those of `out`.
pub fn per_row(weights: &Weights, listing: &Listing, out: impl std::io::Write) -> std::io::Result<()> {
    let mut csv = csv_out(out);
    csv.write_record(PER_ROW)?;
    for (row, weight) in &weights.rows {
        let entry = &listing.entries[*row];
        csv.write_record([entry.path.as_str(), entry.label.as_str(), number(*weight).as_str()])?;
    }
    csv.flush()
}

/// Everything, as it also lies in the sidecar.
pub fn json(weights: &Weights, options: &Options, training: Option<&str>) -> Value {
    let classes: Vec<Value> = weights
        .classes
        .iter()
        .map(|c| {
            let mut class = json!({
                "name": c.name, "index": c.index, "timm_index": c.timm_index, "images": c.images, "groups": c.groups,
                "weight": c.weight,
            });
            if weights.is_multi_label {
                class["pos_weight"] = c.pos_weight.into();
            }
            class
        })
        .collect();
    let beta = match options.method {
        Method::Effective(beta) => Some(beta),
        _ => None,
    };
    json!({
        "method": options.method.as_str(),
        "beta": beta,
        "cap": options.cap,
        "mean_is_one": options.to_mean || options.method == Method::Balanced,
        "count": if options.count == Count::Images { "images" } else { "groups" },
        "part": training,
        "fold": weights.fold,
        "images": weights.rows.len(),
        "multi_label": weights.is_multi_label,
        "classes": classes,
    })
}

fn comment(weights: &Weights) -> String {
    format!("# prep weights: from {}; classes in torchvision's order (code points)\n", weights.which)
}

fn names(weights: &Weights) -> String {
    let names: Vec<String> = weights.classes.iter().map(|c| literal(&c.name)).collect();
    format!("[{}]", names.join(", "))
}

fn list(weights: &Weights, of: impl Fn(&super::Class) -> f64) -> String {
    let numbers: Vec<String> = weights.classes.iter().map(|c| number(of(c))).collect();
    format!("[{}]", numbers.join(", "))
}

/// The shortest text that gives the number back, with a point.
fn number(value: f64) -> String {
    format!("{value:?}")
}

/// A string as Python and JSON both read it.
fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

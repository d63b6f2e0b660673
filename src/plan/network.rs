//! The network that is asked about: one that prep brings along, a file of the user's, or two numbers.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use super::gpu::{Pair, Precision};
use super::net::{self, File, Measure, Size, Speed, builtin, file};
use super::onnx;
use super::tape::Rules;
use crate::error::{Error, Result};
use crate::names::shown;

/// Bytes that are kept for each byte that convolutions and linear layers put out, where only that is known: 1.9 to
/// 2.1 for ResNets and transformers, 2.1 to 2.6 for ConvNeXt, 3.3 for EfficientNet, 4.8 for DenseNet.
pub const KEPT_FOR_EACH: f64 = 2.3;
/// How far a network may be from it, in percent.
pub const KEPT_DOUBT: u32 = 25;

/// Layers that one command runs at most, all its sizes together, before it answers no further questions.
const LAYERS: u64 = 1_000_000;

/// Size, half precision, fused attention.
type Key = (Size, bool, bool);

/// A network to be measured.
#[derive(Debug, Clone)]
pub struct Network {
    /// What the user called it, or its own name.
    pub name: String,
    /// What it is.
    pub about: String,
    /// The side of the pictures that it was made for.
    pub usual: Size,
    /// How fast it was seen to train.
    pub speed: Option<Speed>,
    /// What was assumed of it, in sentences.
    pub said: Vec<String>,
    /// Its file and the name in it, for sentences about mistakes.
    place: String,
    kind: Kind,
    /// What was measured before, without its layers, by size, precision and attention.
    known: RefCell<BTreeMap<Key, Result<Pair, String>>>,
    /// Layers that were run so far.
    ran: Cell<u64>,
}

#[derive(Debug, Clone)]
enum Kind {
    Lines(Cow<'static, File>, String),
    Onnx(Box<onnx::Graph>),
    Numbers { parameters: u64, conv_values: f64 },
}

impl Network {
    /// The network that `text` names: a built-in one, `FILE.toml` (or `FILE.toml:NAME`), `FILE.onnx`, or
    /// `params=25.6M,acts=11.1M@224`.
    ///
    /// # Errors
    /// What is wrong with the name, the file or the numbers.
    pub fn open(text: &str) -> Result<Self> {
        if text.contains("params=") || text.contains("acts=") {
            return numbers(text);
        }
        let lower = text.to_ascii_lowercase();
        if lower.ends_with(".onnx") {
            return from_onnx(Path::new(text));
        }
        if lower.ends_with(".toml") {
            return from_toml(Path::new(text), None);
        }
        if let Some(at) = lower.rfind(".toml:") {
            return from_toml(Path::new(&text[..at + 5]), Some(&text[at + 6..]));
        }
        let (file, name, model) = builtin::find(text)?;
        Ok(of_lines(Cow::Borrowed(file), name, model, None))
    }

    /// What it is made of and keeps, at `size`, under the rules of a CPU and of a GPU.
    ///
    /// # Errors
    /// A sentence: a size that it cannot take, or a mistake in its file.
    pub fn measure(&self, size: Size, precision: Precision, fused_attention: bool) -> Result<Pair, String> {
        let rules = |cuda| Rules { half: precision.is_half(), cuda, fused_attention };
        let counted = self.under(size, rules(false))?;
        // The layers are the same: kept once.
        let cuda = Measure { steps: Vec::new(), ..self.under(size, rules(true))? };
        let pair = Pair { counted, cuda };
        let bare =
            Pair { counted: Measure { steps: Vec::new(), ..pair.counted.clone() }, cuda: pair.cuda.clone() };
        self.known.borrow_mut().insert((size, precision.is_half(), fused_attention), Ok(bare));
        Ok(pair)
    }

    /// The same without its layers, remembered; for tables of many sizes.
    ///
    /// # Errors
    /// As [`Self::measure`]; a command that asks for more than can be answered in a few seconds.
    pub fn sums(&self, size: Size, precision: Precision, fused_attention: bool) -> Result<Pair, String> {
        let key = (size, precision.is_half(), fused_attention);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        if self.ran.get() > LAYERS {
            return Err(
                "so many layers at so many sizes are more than one command answers; ask for fewer sizes"
                    .into(),
            );
        }
        let measured = self.measure(size, precision, fused_attention);
        match measured {
            Ok(pair) => Ok(Pair { counted: Measure { steps: Vec::new(), ..pair.counted }, cuda: pair.cuda }),
            Err(why) => {
                self.known.borrow_mut().insert(key, Err(why.clone()));
                Err(why)
            }
        }
    }

    /// Are its layers known, so that they can be shown?
    pub fn has_layers(&self) -> bool {
        !matches!(self.kind, Kind::Numbers { .. })
    }

    fn under(&self, size: Size, rules: Rules) -> Result<Measure, String> {
        let ran = |layers: usize| self.ran.set(self.ran.get().saturating_add(layers as u64));
        let told = |why: String| shown(&format!("{}{why}", self.place)).to_string();
        match &self.kind {
            Kind::Lines(file, name) => {
                let model = file.models.get(name).ok_or_else(|| format!("no model `{}`", shown(name)))?;
                let measured = net::run(file, model, size, rules);
                ran(measured.as_ref().map_or(1000, |m| m.steps.len()));
                measured.map_err(told)
            }
            Kind::Onnx(graph) => {
                ran(graph.operations());
                graph.run(size, rules).map_err(told)
            }
            Kind::Numbers { parameters, conv_values } => {
                Ok(from_numbers(*parameters, *conv_values, self.usual, size, rules))
            }
        }
    }
}

fn of_lines(file: Cow<'static, File>, name: &str, model: &net::Model, path: Option<&Path>) -> Network {
    Network {
        name: shown(name).to_string(),
        about: shown(&model.about).to_string(),
        usual: (model.size, model.size),
        speed: model.speed.clone(),
        said: Vec::new(),
        place: path.map(|path| format!("{}, ", shown(path))).unwrap_or_default(),
        kind: Kind::Lines(file, name.to_owned()),
        known: RefCell::default(),
        ran: Cell::default(),
    }
}

fn from_toml(path: &Path, name: Option<&str>) -> Result<Network> {
    let bytes = load(path, "reading the model", file::LIMIT)?;
    let text = String::from_utf8(bytes).map_err(|_| Error::table(path, None, "this is no UTF-8 text"))?;
    let parsed =
        file::parse(&text).map_err(|(line, why)| Error::table(path, line, shown(&why).to_string()))?;
    let names: Vec<&str> = parsed.models.keys().map(String::as_str).collect();
    let chosen = match name {
        None if names.len() == 1 => names[0].to_owned(),
        Some(name) if names.contains(&name) => name.to_owned(),
        _ => {
            if let Some(name) = name.filter(|_| names.len() == 1) {
                let why = format!("there is no model {} in it, only {}", shown(name), shown(names[0]));
                return Err(Error::table(path, None, why));
            }
            let why = format!("say which model after a colon: {}", shown(&names.join(", ")));
            return Err(Error::table(path, None, why));
        }
    };
    match parsed.models.get(&chosen).cloned() {
        Some(model) => Ok(of_lines(Cow::Owned(parsed), &chosen, &model, Some(path))),
        None => Err(Error::Internal(format!("the model {chosen} was lost"))),
    }
}

fn from_onnx(path: &Path) -> Result<Network> {
    let doing = "reading the ONNX model";
    // Asked before opening: a pipe would wait for ever.
    let meta = std::fs::metadata(path).map_err(|e| Error::read(doing, path, e))?;
    if !meta.is_file() {
        return Err(Error::table(path, None, "this is no file"));
    }
    let file = std::fs::File::open(path).map_err(|e| Error::read(doing, path, e))?;
    let graph = onnx::Graph::read(file, meta.len())
        .map_err(|why| Error::table(path, None, shown(&why).to_string()))?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    Ok(Network {
        name: shown(name).to_string(),
        about: format!("ONNX model{}", graph.producer()),
        usual: graph.size().unwrap_or((224, 224)),
        speed: None,
        said: graph.said(),
        place: String::new(),
        kind: Kind::Onnx(Box::new(graph)),
        known: RefCell::default(),
        ran: Cell::default(),
    })
}

/// The bytes of a file of at most `limit`.
fn load(path: &Path, doing: &'static str, limit: u64) -> Result<Vec<u8>> {
    let meta = std::fs::metadata(path).map_err(|e| Error::read(doing, path, e))?;
    if !meta.is_file() {
        return Err(Error::table(path, None, "this is no file"));
    }
    let opened = std::fs::File::open(path).map_err(|e| Error::read(doing, path, e))?;
    let mut bytes = Vec::new();
    opened.take(limit + 1).read_to_end(&mut bytes).map_err(|e| Error::read(doing, path, e))?;
    if bytes.len() as u64 > limit {
        let why = format!("more than {} kB: this is no model file", limit / 1000);
        return Err(Error::table(path, None, why));
    }
    Ok(bytes)
}

fn numbers(text: &str) -> Result<Network> {
    let wrong = |why: &str| {
        Error::Usage(format!("--model {}: {why}; as in params=25.6M,acts=11.1M@224", shown(text)))
    };
    let (mut parameters, mut acts, mut size) = (None, None, None);
    for part in text.split(',') {
        match part.split_once('=') {
            Some(("params", _)) if parameters.is_some() => return Err(wrong("params= is given twice")),
            Some(("acts", _)) if acts.is_some() => return Err(wrong("acts= is given twice")),
            Some(("params", n)) => {
                parameters = Some(count(n).ok_or_else(|| wrong("params= is no number of trained numbers"))?);
            }
            Some(("acts", n)) => {
                let (n, side) = n.split_once('@').unwrap_or((n, "224"));
                acts = Some(count(n).ok_or_else(|| wrong("acts= is no number of values"))?);
                size = side.parse::<u32>().ok().filter(|n| (1..=65_535).contains(n));
            }
            _ => return Err(wrong("takes params= and acts= alone")),
        }
    }
    let parameters = parameters.ok_or_else(|| wrong("params= is the number of trained numbers"))?;
    let acts =
        acts.ok_or_else(|| wrong("acts= is how many values its convolutions and linear layers put out"))?;
    let side = size.ok_or_else(|| wrong("after @ stands the side of the pictures"))?;
    Ok(Network {
        name: shown(text).to_string(),
        about: "a network known by two numbers".into(),
        usual: (side, side),
        speed: None,
        said: vec![format!(
            "assumed: {KEPT_FOR_EACH} bytes kept for each byte put out, which is right within {KEPT_DOUBT} % for most \
             networks, and for EfficientNet (3.3) and DenseNet (4.8) too little"
        )],
        place: String::new(),
        kind: Kind::Numbers { parameters: parameters as u64, conv_values: acts },
        known: RefCell::default(),
        ran: Cell::default(),
    })
}

/// `25.6M`, `1.2G`, `300k`, `64`.
fn count(text: &str) -> Option<f64> {
    let (number, factor) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1e3),
        b'm' | b'M' => (&text[..text.len() - 1], 1e6),
        b'g' | b'G' | b'b' | b'B' => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    let value = number.parse::<f64>().ok()? * factor;
    (value.is_finite() && (0.0..1e15).contains(&value)).then_some(value)
}

fn from_numbers(parameters: u64, conv_values: f64, at: Size, size: Size, rules: Rules) -> Measure {
    let area = |s: Size| f64::from(s.0) * f64::from(s.1);
    let values = conv_values * area(size) / area(at);
    let kept = values * KEPT_FOR_EACH * if rules.half { 2.0 } else { 4.0 };
    Measure {
        size,
        rules,
        parameters,
        cast_parameters: parameters,
        buffer_bytes: 0,
        kept_bytes: kept as u64,
        fixed_bytes: 0,
        conv_values: values as u64,
        peak_bytes: kept as u64,
        checkpointed_bytes: None,
        blocks: 0,
        batch_norm: false,
        steps: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_numbers_are_a_network_too() {
        let net = Network::open("params=25.56M,acts=11.11M@224").unwrap();
        let full = net.measure((224, 224), Precision::Fp32, true).unwrap().cuda;
        assert_eq!(full.parameters, 25_560_000);
        assert_eq!(full.kept_bytes, (11.11e6_f64 * 2.3 * 4.0) as u64);
        let quarter = net.measure((112, 112), Precision::Fp32, true).unwrap().cuda;
        assert_eq!(quarter.kept_bytes, (11.11e6_f64 / 4.0 * 2.3 * 4.0) as u64);
        for bad in [
            "params=x,acts=1M",
            "params=1M",
            "acts=1M@224",
            "params=1M,acts=1M@0",
            "params=1M,acts=1M,x=2",
            "params=é,acts=1M",
        ] {
            assert!(matches!(Network::open(bad), Err(Error::Usage(_))), "{bad}");
        }
    }
}

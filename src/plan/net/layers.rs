//! The operations of model files: what each does to a shape, how many numbers it trains, what it keeps.

use super::Shape;
use super::line::Line;
use super::run::{Runner, Scope, Value};

/// Operations, the words that they take with `=`, and those without. `models/README.md` explains each.
const LAYERS: &[(&str, &[&str], &[&str])] = &[
    ("conv", &["k", "s", "p", "d", "g"], &["nobias"]),
    ("deconv", &["k", "s", "p", "op", "g"], &["nobias"]),
    ("linear", &[], &["nobias"]),
    ("batchnorm", &[], &["plain"]),
    ("layernorm", &[], &["plain"]),
    ("groupnorm", &["groups"], &["plain"]),
    ("instancenorm", &[], &["affine"]),
    ("relu", &[], &["inplace"]),
    ("sigmoid", &[], &["inplace"]),
    ("tanh", &[], &["inplace"]),
    ("relu6", &[], &["inplace"]),
    ("leakyrelu", &[], &["inplace"]),
    ("gelu", &[], &[]),
    ("silu", &[], &["inplace"]),
    ("hardswish", &[], &["inplace"]),
    ("hardsigmoid", &[], &["inplace"]),
    ("mish", &[], &["inplace"]),
    ("elu", &[], &["inplace"]),
    ("softmax", &[], &[]),
    ("maxpool", &["k", "s", "p"], &["ceil"]),
    ("avgpool", &["k", "s", "p"], &["ceil"]),
    ("avgpool_to", &[], &[]),
    ("globalpool", &[], &[]),
    ("upsample", &["to"], &[]),
    ("pad", &[], &[]),
    ("merge", &[], &[]),
    ("copy", &[], &[]),
    ("slice", &[], &[]),
    ("flatten", &[], &[]),
    ("tokens", &[], &[]),
    ("mean", &[], &[]),
    ("token", &[], &[]),
    ("class_token", &[], &[]),
    ("pos_embed", &[], &[]),
    ("scale", &[], &[]),
    ("dropout", &["p"], &["inplace"]),
    ("drop_path", &["p"], &[]),
    ("attention", &["heads"], &["plain"]),
    ("window_attention", &["heads", "window", "shift"], &[]),
    ("keep", &[], &[]),
    ("back", &[], &[]),
    ("add", &[], &["ifsame"]),
    ("mul", &[], &[]),
    ("concat", &[], &[]),
];

/// Is `name` an operation?
pub fn is_layer(name: &str) -> bool {
    LAYERS.iter().any(|(layer, _, _)| *layer == name)
}

/// A layer at work: its words, and where it stands.
pub(super) struct Layer<'a, 'f> {
    pub run: &'a mut Runner<'f>,
    pub line: &'a Line,
    pub scope: &'a mut Scope,
    /// Words without `=` that are no switches.
    pub words: Vec<&'a str>,
}

/// Runs one operation.
///
/// # Errors
/// A sentence: a word that it does not take, or shapes that do not fit.
pub fn apply(run: &mut Runner<'_>, line: &Line, scope: &mut Scope) -> Result<(), String> {
    let Some((name, keys, switches)) = LAYERS.iter().find(|(layer, _, _)| *layer == line.name) else {
        return Err(format!("`{}` is no operation", line.name));
    };
    if let Some((key, _)) = line.pairs.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
        return Err(format!("{name} takes no `{key}=`"));
    }
    let words: Vec<&str> = line.plain.iter().map(String::as_str).filter(|w| !switches.contains(w)).collect();
    let most = match *name {
        "conv" | "deconv" | "linear" | "avgpool_to" | "upsample" | "pad" | "slice" | "keep" | "back" => 1,
        "add" | "mul" | "concat" => usize::MAX,
        _ => 0,
    };
    if let Some(word) = words.get(most) {
        return Err(format!("`{word}` is a word too many for {name}"));
    }
    Layer { run, line, scope, words }.apply()
}

impl Layer<'_, '_> {
    fn apply(&mut self) -> Result<(), String> {
        match self.line.name.as_str() {
            "keep" => self.keep(),
            "back" => self.back(),
            "conv" => self.conv(),
            "deconv" => self.deconv(),
            "linear" => self.linear(),
            "batchnorm" | "layernorm" | "groupnorm" | "instancenorm" => self.norm(),
            "maxpool" | "avgpool" => self.pool(),
            "avgpool_to" | "globalpool" | "upsample" | "pad" | "merge" => self.resize(),
            "add" | "mul" | "concat" => self.join(),
            "class_token" | "pos_embed" | "scale" => self.parameter(),
            "flatten" | "tokens" | "mean" | "token" | "slice" | "copy" => self.reshape(),
            "dropout" | "drop_path" => self.dropout(),
            "attention" => self.attention(),
            "window_attention" => self.window_attention(),
            _ => self.activation(),
        }
    }

    pub(super) fn has(&self, switch: &str) -> bool {
        self.line.plain.iter().any(|word| word == switch)
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.line.pairs.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    fn positive(&self, text: &str) -> Result<u64, String> {
        let value = self.scope.sum(text)?;
        u64::try_from(value).map_err(|_| format!("`{text}` is {value}, below nothing"))
    }

    pub(super) fn number(&self, key: &str, default: u64) -> Result<u64, String> {
        self.text(key).map_or(Ok(default), |text| self.positive(text))
    }

    /// A number for height and width, or `HxW`.
    pub(super) fn both(&self, key: &str, default: u64) -> Result<(u64, u64), String> {
        let Some(text) = self.text(key) else { return Ok((default, default)) };
        let sides =
            text.split_once('x').filter(|(h, w)| (h.parse::<u32>().is_ok()) && w.parse::<u32>().is_ok());
        match sides {
            Some((h, w)) => Ok((self.positive(h)?, self.positive(w)?)),
            None => self.positive(text).map(|n| (n, n)),
        }
    }

    /// The number that stands first.
    pub(super) fn first(&self, what: &str) -> Result<u64, String> {
        let word = self.words.first().ok_or_else(|| format!("{} needs {what}", self.line.name))?;
        let number = self.positive(word)?;
        if number == 0 { Err(format!("{} of nothing", self.line.name)) } else { Ok(number) }
    }

    pub(super) fn map(&self) -> Result<(u64, u64, u64), String> {
        match self.scope.current.shape {
            Shape::Map(c, h, w) => Ok((c, h, w)),
            shape => Err(format!("{} needs a feature map, and there is {shape}", self.line.name)),
        }
    }

    /// As it is written, with numbers in place of names.
    fn label(&self) -> String {
        let mut label = self.line.name.clone();
        let text = |word: &str| self.scope.sum(word).map_or_else(|_| word.to_owned(), |n| n.to_string());
        for word in &self.line.plain {
            label.push_str(&format!(
                " {}",
                if self.words.contains(&word.as_str()) { text(word) } else { word.clone() }
            ));
        }
        for (key, value) in &self.line.pairs {
            label.push_str(&format!(" {key}={}", text(value)));
        }
        label
    }

    pub(super) fn kept(&self, name: &str) -> Result<Value, String> {
        self.scope.kept.get(name).copied().ok_or_else(|| format!("nothing was kept as `{name}`"))
    }

    /// Ends the layer: `out` is the feature map at hand.
    pub(super) fn done(&mut self, out: Value, parameters: u64, cast: u64) -> Result<(), String> {
        out.shape.values()?;
        let label = self.label();
        self.run.note(label, &self.scope.current, &out, parameters, cast)?;
        self.scope.current = out;
        Ok(())
    }

    fn keep(&mut self) -> Result<(), String> {
        let [name] = self.words[..] else { return Err("keep needs one name".into()) };
        self.scope.kept.insert(name.to_owned(), self.scope.current);
        Ok(())
    }

    fn back(&mut self) -> Result<(), String> {
        let [name] = self.words[..] else { return Err("back needs one name".into()) };
        self.scope.current = self.kept(name)?;
        Ok(())
    }
}

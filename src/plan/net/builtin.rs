//! The networks that prep brings along: the files of `models/`, as they are.

use std::sync::OnceLock;

use super::file::{self, File, Model};
use crate::error::{Error, Result};

/// Every file of `models/`.
const FILES: [(&str, &str); 9] = [
    ("convnext.toml", include_str!("../../../models/convnext.toml")),
    ("densenet.toml", include_str!("../../../models/densenet.toml")),
    ("efficientnet.toml", include_str!("../../../models/efficientnet.toml")),
    ("mobilenet.toml", include_str!("../../../models/mobilenet.toml")),
    ("resnet.toml", include_str!("../../../models/resnet.toml")),
    ("swin.toml", include_str!("../../../models/swin.toml")),
    ("unet.toml", include_str!("../../../models/unet.toml")),
    ("vgg.toml", include_str!("../../../models/vgg.toml")),
    ("vit.toml", include_str!("../../../models/vit.toml")),
];

/// The files, parsed once.
///
/// # Errors
/// [`Error::Internal`] for a file that is wrong; the tests read them all.
pub fn files() -> Result<&'static [File]> {
    static PARSED: OnceLock<std::result::Result<Vec<File>, String>> = OnceLock::new();
    let parsed = PARSED.get_or_init(|| {
        let read = |(name, text): &(&str, &str)| {
            file::parse(text)
                .map_err(|(line, why)| format!("models/{name}:{}: {why}", line.unwrap_or_default()))
        };
        FILES.iter().map(read).collect()
    });
    parsed.as_deref().map_err(|why| Error::Internal(why.clone()))
}

/// Name, sentence and usual size of each network, by name.
///
/// # Errors
/// As [`files`].
pub fn list() -> Result<Vec<(&'static str, &'static Model)>> {
    let mut all: Vec<_> =
        files()?.iter().flat_map(|f| f.models.iter().map(|(name, model)| (name.as_str(), model))).collect();
    all.sort_by_key(|(name, _)| natural(name));
    Ok(all)
}

/// resnet18 before resnet101.
fn natural(name: &str) -> (String, u64) {
    let at = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let digits: String = name[at..].chars().take_while(char::is_ascii_digit).collect();
    (name[..at].to_owned(), digits.parse().unwrap_or(0))
}

/// The network called `name`, and its file.
///
/// # Errors
/// As [`files`]; [`Error::Usage`] with what there is.
pub fn find(name: &str) -> Result<(&'static File, &'static str, &'static Model)> {
    let wanted = name.to_ascii_lowercase().replace('-', "_");
    for file in files()? {
        for (own, model) in &file.models {
            let aka = |other: &String| other.replace('-', "_") == wanted;
            if *own == wanted || model.aka.iter().any(aka) {
                return Ok((file, own, model));
            }
        }
    }
    let names: Vec<&str> = list()?.into_iter().map(|(name, _)| name).collect();
    let close = match nearest(&wanted)? {
        Some(name) => format!(" (did you mean {name}?)"),
        None => String::new(),
    };
    Err(Error::Usage(format!(
        "--model {}: no network of that name{close}; there are {}; or give a file of your own (.onnx, .toml), or \
         params=25.6M,acts=11.1M@224",
        crate::names::shown(name),
        names.join(", ")
    )))
}

/// The network whose name, or other name, is the fewest letters from `wanted`, where a third of them are right.
fn nearest(wanted: &str) -> Result<Option<&'static str>> {
    let mut best: Option<(usize, &str)> = None;
    for (own, model) in list()? {
        for name in std::iter::once(own).chain(model.aka.iter().map(String::as_str)) {
            let apart = edits(&name.replace('-', "_"), wanted);
            if apart <= name.len() / 3 && best.is_none_or(|(least, _)| apart < least) {
                best = Some((apart, own));
            }
        }
    }
    Ok(best.map(|(_, name)| name))
}

/// How many letters have to be put in, left out or replaced to make one word of another (Levenshtein 1965).
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(100).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let least = (row[j] + 1).min(row[j + 1] + 1).min(corner + usize::from(x != *y));
            corner = std::mem::replace(&mut row[j + 1], least);
        }
    }
    row[b.len()]
}

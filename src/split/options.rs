//! What the user wants of a split, and how it is written on a command line.

use regex::Regex;

use crate::error::{Error, Result};
use crate::names::shown;

/// The most parts or folds.
pub const MOST_PARTS: usize = 200;

/// A part of the split.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// `train`, `val`, `test` or what the user calls it.
    pub name: String,
    /// From 0 to 1; those of all parts sum to 1.
    pub share: f64,
}

/// How groups are given to parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// So that every class has its share in every part.
    Balanced,
    /// By the hash of the group's own key alone: adding or removing data moves nothing.
    Hash,
    /// Chronologically by this column: the parts follow each other in time.
    Time(String),
}

/// Which duplicates are kept together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dups {
    /// Files of the same bytes.
    Exact,
    /// Those, files of the same pixels, and the same picture edited.
    Near,
    /// Those, and pictures that may be of one scene, so that bursts stay together.
    Scene,
}

impl Dups {
    /// As it is written on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Near => "near",
            Self::Scene => "scene",
        }
    }
}

/// Regular expressions with named captures over paths.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

/// What images that belong together share.
#[derive(Debug, Clone)]
pub enum GroupBy {
    /// The value of a column, or of a capture of a [`Pattern`] by this name.
    Name(String),
    /// The folder that the image lies in.
    Parent,
    /// What the pattern captures in the path.
    Pattern(Pattern),
}

/// What the user wants of a split.
#[derive(Debug, Clone)]
pub struct Options {
    /// The parts, with the part for training first where there is one. With folds: the parts that are held out from all
    /// folds, and `train` for the rest. At the end, with a share of 0, those that are there and stay as they are.
    pub parts: Vec<Part>,
    /// So many folds of what the parts call `train`; the parts may then be `train` alone.
    pub folds: Option<usize>,
    /// The columns whose values are to be spread evenly; `None` is the label.
    pub stratify: Vec<Option<String>>,
    /// Bins of numeric columns; 0 takes each number as a value.
    pub bins: usize,
    /// What keeps images together.
    pub group_by: Vec<GroupBy>,
    /// Patterns whose captures [`GroupBy::Name`] may name.
    pub patterns: Vec<Pattern>,
    /// Duplicates are kept together.
    pub dups: Option<Dups>,
    /// How groups are given to parts.
    pub method: Method,
    /// The seed.
    pub seed: u64,
    /// A class may be missing from a part.
    pub allow_missing: bool,
}

impl Options {
    /// The place of the part that models learn from: the one that is called so, else the largest.
    pub fn training(&self) -> usize {
        training_of(self.dealt())
    }

    /// The parts that images are dealt to.
    pub fn dealt(&self) -> &[Part] {
        let n = self.parts.iter().take_while(|part| part.share > 0.0).count();
        &self.parts[..n]
    }

    /// The place of the part `name`; one that is not there is added, as one that nothing is dealt to.
    ///
    /// # Errors
    /// [`Error::Usage`] for more parts than a column of parts has any use for.
    pub fn staying(&mut self, name: &str) -> Result<u8> {
        if let Some(at) = self.parts.iter().position(|part| part.name == name) {
            return Ok(at as u8);
        }
        if self.parts.len() >= MOST_PARTS {
            let why =
                format!("the input has more than {MOST_PARTS} parts: is the column of parts the right one?");
            return Err(Error::Usage(why));
        }
        self.parts.push(Part { name: name.to_owned(), share: 0.0 });
        Ok(self.parts.len() as u8 - 1)
    }

    /// Everything that decides the split, as one line; equal lines give equal splits of equal data.
    pub fn heading(&self) -> String {
        let parts: Vec<String> = self.dealt().iter().map(|p| format!("{}={:.9}", p.name, p.share)).collect();
        let stratify: Vec<&str> = self.stratify.iter().map(|s| s.as_deref().unwrap_or("label")).collect();
        let groups: Vec<String> = self.group_by.iter().map(|g| g.text(&self.patterns)).collect();
        let method = match &self.method {
            Method::Balanced => "balanced".into(),
            Method::Hash => "hash".into(),
            Method::Time(column) => format!("time {column}"),
        };
        format!(
            "{} seed={} parts={} folds={} stratify={} bins={} groups={} dups={} method={method}",
            super::lot::SCHEME,
            self.seed,
            parts.join(","),
            self.folds.unwrap_or(0),
            stratify.join(","),
            self.bins,
            groups.join(","),
            self.dups.map_or("false", Dups::as_str)
        )
    }
}

fn training_of(parts: &[Part]) -> usize {
    let named = parts.iter().position(|p| matches!(p.name.to_lowercase().as_str(), "train" | "training"));
    let largest =
        || (0..parts.len()).max_by(|a, b| parts[*a].share.total_cmp(&parts[*b].share).then(b.cmp(a)));
    named.or_else(largest).unwrap_or(0)
}

impl GroupBy {
    /// As it may be written.
    pub fn text(&self, patterns: &[Pattern]) -> String {
        match self {
            Self::Parent => "parent".into(),
            Self::Pattern(pattern) => format!("regex:{}", pattern.text()),
            Self::Name(name) => match patterns.iter().find(|p| p.captures(name)) {
                Some(pattern) => format!("{name}~{}", pattern.text()),
                None => name.clone(),
            },
        }
    }
}

impl Pattern {
    /// # Errors
    /// [`Error::Usage`] for what is no regular expression.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong =
            |why: &dyn std::fmt::Display| Error::Usage(format!("`{}` is no pattern: {why}", shown(text)));
        let regex = Regex::new(text).map_err(|e| wrong(&e))?;
        if regex.is_match("") {
            return Err(wrong(&"it matches even nothing, so it tells no groups"));
        }
        Ok(Self(regex))
    }

    /// Does it define `name`?
    pub fn captures(&self, name: &str) -> bool {
        self.0.capture_names().flatten().any(|n| n == name)
    }

    /// The names that it defines.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.capture_names().flatten()
    }

    /// What the capture `name` has of `path`.
    pub fn named<'p>(&self, path: &'p str, name: &str) -> Option<&'p str> {
        Some(self.0.captures(path)?.name(name)?.as_str())
    }

    /// What all its captures have of `path`, joined by `/`; the whole match where it has none.
    pub fn all(&self, path: &str) -> Option<String> {
        let captures = self.0.captures(path)?;
        let parts: Vec<&str> = captures.iter().skip(1).flatten().map(|m| m.as_str()).collect();
        Some(if parts.is_empty() { captures.get(0)?.as_str().to_owned() } else { parts.join("/") })
    }

    fn text(&self) -> &str {
        self.0.as_str()
    }
}

/// What `--ratio` means.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// The parts, with the part for training first.
    pub parts: Vec<Part>,
    /// Where the shares were not whole as written: a sentence with what they became.
    pub said: Option<String>,
}

/// Reads `train=0.8,val=0.2`, `80,10,10`, `val=20%` (the rest is `train`).
///
/// # Errors
/// [`Error::Usage`] for names and shares that cannot be meant.
pub fn parse_ratio(text: &str) -> Result<Ratio> {
    let wrong = |why: String| {
        Error::Usage(format!("--ratio {}: {why}, as in train=0.8,val=0.1,test=0.1", shown(text)))
    };
    let (mut parts, percents) = parse_parts(text, &wrong)?;
    if parts.is_empty() {
        return Err(wrong("no part is named".into()));
    }
    if parts.len() > MOST_PARTS {
        return Err(wrong(format!("at most {MOST_PARTS} parts")));
    }
    let sum: f64 = parts.iter().map(|p| p.share).sum();
    if !sum.is_finite() || parts.iter().any(|p| p.share / sum < 1e-9) {
        return Err(wrong("a share is too large or too small".into()));
    }
    let whole = (sum - 1.0).abs() < 1e-6 || !percents && (sum - 100.0).abs() < 1e-6;
    let trained = parts.iter().any(|p| matches!(p.name.to_lowercase().as_str(), "train" | "training"));
    if sum < 1.0 - 1e-9 && !trained {
        parts.insert(0, Part { name: "train".into(), share: 1.0 - sum });
    } else {
        parts.iter_mut().for_each(|p| p.share /= sum);
    }
    if parts.len() < 2 {
        return Err(wrong("a split has two parts or more".into()));
    }
    let training = training_of(&parts);
    let first = parts.remove(training);
    parts.insert(0, first);
    let said = (!whole).then(|| {
        let became: Vec<String> =
            parts.iter().map(|p| format!("{} {}%", shown(&p.name), short(p.share * 100.0))).collect();
        format!("--ratio {}: that is {}", shown(text), became.join(", "))
    });
    Ok(Ratio { parts, said })
}

/// Two digits after the point, without zeros at the end.
fn short(percent: f64) -> String {
    format!("{percent:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The parts as written, and whether in percent.
fn parse_parts(text: &str, wrong: &dyn Fn(String) -> Error) -> Result<(Vec<Part>, bool)> {
    let items: Vec<&str> = text.split(',').map(str::trim).filter(|i| !i.is_empty()).collect();
    let usual: &[&str] = if items.len() == 2 { &["train", "val"] } else { &["train", "val", "test"] };
    let mut parts: Vec<Part> = Vec::new();
    let percents = items.iter().filter(|item| item.ends_with('%')).count();
    if percents > 0 && percents < items.len() {
        return Err(wrong("some shares are in percent and some are not: write all in one way".into()));
    }
    for (at, item) in items.iter().enumerate() {
        let (name, number) = match item.split_once('=') {
            Some((name, number)) => (name.trim(), number.trim()),
            None if !text.contains('=') && items.len() <= 3 && items.len() > 1 => (usual[at], *item),
            None => return Err(wrong(format!("`{}` has no share", shown(item)))),
        };
        let (number, percent) = number.strip_suffix('%').map_or((number, 1.0), |n| (n.trim(), 100.0));
        let share = number.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0).map(|n| n / percent);
        let Some(share) = share else {
            return Err(wrong(format!("`{}` is no share above 0", shown(number))));
        };
        if name.is_empty()
            || name.contains(['/', '\\', '|'])
            || name.starts_with('.')
            || name.chars().any(char::is_control)
        {
            return Err(wrong(format!("`{}` cannot name a part", shown(name))));
        }
        match parts.iter().find(|p| p.name.to_lowercase() == name.to_lowercase()) {
            Some(other) if other.name == name => return Err(wrong(format!("`{}` comes twice", shown(name)))),
            Some(other) => {
                let (one, two) = (shown(&other.name), shown(name));
                return Err(wrong(format!("`{one}` and `{two}` differ in case alone")));
            }
            None => parts.push(Part { name: name.to_owned(), share }),
        }
    }
    Ok((parts, percents > 0))
}

/// Reads `plant_id,parent,regex:(?<row>r\d+)`. Commas inside brackets belong to the pattern.
///
/// # Errors
/// [`Error::Usage`] for a broken pattern.
pub fn parse_group_by(text: &str) -> Result<Vec<GroupBy>> {
    let mut items = vec![String::new()];
    let mut depth = 0_usize;
    let mut escaped = false;
    for c in text.chars() {
        match c {
            '(' | '[' | '{' if !escaped => depth += 1,
            ')' | ']' | '}' if !escaped => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                items.push(String::new());
                escaped = false;
                continue;
            }
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        if let Some(item) = items.last_mut() {
            item.push(c);
        }
    }
    items
        .iter()
        .map(|item| item.trim())
        .map(|item| match item.strip_prefix("regex:") {
            Some(pattern) => Pattern::parse(pattern).map(GroupBy::Pattern),
            None if item.is_empty() => Err(Error::Usage(format!(
                "--group-by {}: a name is empty; leave the option out for no groups",
                shown(text)
            ))),
            None if item == "parent" => Ok(GroupBy::Parent),
            None => Ok(GroupBy::Name(item.to_owned())),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(text: &str) -> Vec<(String, f64)> {
        parse_ratio(text)
            .unwrap()
            .parts
            .into_iter()
            .map(|p| (p.name, (p.share * 1e6).round() / 1e6))
            .collect()
    }

    #[test]
    fn shares_are_read_as_people_write_them() {
        let usual = vec![("train".to_owned(), 0.8), ("val".to_owned(), 0.2)];
        for text in [
            "train=0.8,val=0.2",
            "80,20",
            "val=0.2,train=0.8",
            "train=80%, val=20%",
            "val=20%",
            "train=8,val=2",
        ] {
            assert_eq!(ratio(text), usual, "{text}");
        }
        assert_eq!(ratio("8,1,1")[2], ("test".to_owned(), 0.1));
        assert_eq!(ratio("dev=3,fit=7")[0], ("fit".to_owned(), 0.7), "the largest is for training");
        for text in [
            "",
            "train",
            "train=0,val=1",
            "a=-1,b=2",
            "train=1",
            "a=x,b=1",
            "a=1,a=1",
            "a/b=1,c=1",
            "a=nan,b=1",
            "train=80%,val=0.2",
            "train=8,val=1,Val=1",
            "train=1e308,val=1e308",
        ] {
            assert!(parse_ratio(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_that_are_no_whole_are_told() {
        for text in ["0.8,0.2", "80,20", "80%,20%", "0.7,0.2,0.1"] {
            assert_eq!(parse_ratio(text).unwrap().said, None, "{text}");
        }
        let said = |text| parse_ratio(text).unwrap().said.unwrap();
        assert_eq!(said("70%,20%,20%"), "--ratio 70%,20%,20%: that is train 63.64%, val 18.18%, test 18.18%");
        assert_eq!(said("8,1,1"), "--ratio 8,1,1: that is train 80%, val 10%, test 10%");
        assert_eq!(said("test=0.1"), "--ratio test=0.1: that is train 90%, test 10%");
        assert_eq!(said("train=0.5,val=0.2"), "--ratio train=0.5,val=0.2: that is train 71.43%, val 28.57%");
    }

    #[test]
    fn patterns_may_hold_commas() {
        let groups = parse_group_by(r"plant_id, regex:(?<row>r\d{1,3})[,;],parent").unwrap();
        assert_eq!(groups.len(), 3);
        let GroupBy::Pattern(pattern) = &groups[1] else { panic!("{groups:?}") };
        assert_eq!(pattern.all("a/r12,x.jpg").as_deref(), Some("12").map(|_| "r12"));
        assert_eq!(pattern.named("a/r12;x.jpg", "row"), Some("r12"));
        assert!(parse_group_by("").is_err() && parse_group_by("a,,b").is_err());
        assert!(parse_group_by("regex:(").is_err() && parse_group_by("regex:x*").is_err());
    }
}

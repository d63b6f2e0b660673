//! Options that many commands share, and how their values are read.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::decode::{Alpha, Chroma, Contract, Icc};
use crate::error::{Error, Result};
use crate::resize::Filter;
use crate::source;

/// Options of every command.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Worker threads; 0 takes one for each processor
    #[arg(short = 'j', long, global = true, default_value_t = 0, value_name = "N")]
    pub threads: usize,
    /// Seed of everything that is drawn by lot
    #[arg(long, global = true, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// Say what would be done, write nothing
    #[arg(short = 'n', long, global = true)]
    pub dry_run: bool,
    /// Print the result as one JSON document
    #[arg(long, global = true)]
    pub json: bool,
    /// Say less; twice: nothing but errors
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub quiet: u8,
    /// Say more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Colours
    #[arg(long, global = true, value_enum, default_value_t = When::Auto, value_name = "WHEN")]
    pub color: When,
    /// How progress is shown
    #[arg(long, global = true, value_enum, default_value_t = Progress::Auto, value_name = "HOW")]
    pub progress: Progress,
    /// Options from this file instead of the nearest prep.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Read no prep.toml
    #[arg(long, global = true)]
    pub no_config: bool,
    /// Memory for pictures in hand, as in 512M or 8G; half of the machine's by default
    #[arg(long, global = true, value_name = "SIZE", value_parser = memory)]
    pub memory: Option<u64>,
    /// Where what is known of pictures is kept between runs; by default the user's cache folder
    #[arg(long, global = true, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    /// Neither use nor keep what is known of pictures
    #[arg(long, global = true)]
    pub no_cache: bool,
}

/// When to do something.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How progress is shown.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A bar on a terminal, else a line every 10 s.
    Auto,
    /// A bar.
    Bar,
    /// A line every 10 s.
    Plain,
    /// A JSON line every second.
    Json,
    /// Nothing.
    None,
}

/// A resampling filter.
#[derive(ValueEnum, Debug, Clone, Copy)]
pub enum FilterName {
    Lanczos,
    Bicubic,
    Bilinear,
    Area,
}

impl From<FilterName> for Filter {
    fn from(name: FilterName) -> Self {
        match name {
            FilterName::Lanczos => Self::Lanczos,
            FilterName::Bicubic => Self::Bicubic,
            FilterName::Bilinear => Self::Bilinear,
            FilterName::Area => Self::Area,
        }
    }
}

/// What is done with embedded profiles.
#[derive(ValueEnum, Debug, Clone, Copy)]
pub enum IccName {
    Srgb,
    Ignore,
}

impl From<IccName> for Icc {
    fn from(name: IccName) -> Self {
        match name {
            IccName::Srgb => Self::ToSrgb,
            IccName::Ignore => Self::Ignore,
        }
    }
}

/// JPEG colour resolution.
#[derive(ValueEnum, Debug, Clone, Copy)]
pub enum ChromaName {
    #[value(name = "420")]
    Yuv420,
    #[value(name = "444")]
    Yuv444,
}

impl From<ChromaName> for Chroma {
    fn from(name: ChromaName) -> Self {
        match name {
            ChromaName::Yuv420 => Self::Yuv420,
            ChromaName::Yuv444 => Self::Yuv444,
        }
    }
}

/// How pictures are made smaller and coded anew.
#[derive(Args, Debug, Clone)]
pub struct Coding {
    /// Resampling filter, always with antialiasing
    #[arg(long, value_enum, default_value = "lanczos", value_name = "NAME")]
    pub filter: FilterName,
    /// JPEG quality, where a picture is coded anew
    #[arg(long, value_name = "1-100", default_value_t = 92, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub quality: u8,
    /// JPEG colour resolution
    #[arg(long, value_enum, default_value = "420", value_name = "SUB")]
    pub chroma: ChromaName,
    /// Background of transparent pixels: white, black, #RRGGBB, or drop to show what is stored there
    #[arg(long, value_name = "COLOUR", default_value = "white", value_parser = alpha)]
    alpha: Alpha,
    /// Embedded colour profiles: to sRGB, or ignored as many loaders do
    #[arg(long, value_enum, default_value = "srgb", value_name = "HOW")]
    icc: IccName,
}

impl Coding {
    /// What becomes of pixels; upright with `orient`.
    pub fn contract(&self, orient: bool) -> Contract {
        Contract { alpha: self.alpha, icc: self.icc.into(), orient }
    }
}

fn alpha(text: &str) -> Result<Alpha, String> {
    let wrong = || "white, black, drop or a colour as in #808080".to_owned();
    match text {
        "white" => Ok(Alpha::White),
        "black" => Ok(Alpha::Black),
        "drop" => Ok(Alpha::Drop),
        _ => {
            let digits = text.strip_prefix('#').filter(|d| d.len() == 6 && d.is_ascii()).ok_or_else(wrong)?;
            let part = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong());
            Ok(Alpha::Rgb([part(0)?, part(2)?, part(4)?]))
        }
    }
}

/// What is read, and which of it.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Input options")]
pub struct Input {
    /// A folder of images, a label table (CSV, TSV, JSON lines), a manifest or a workspace
    #[arg(default_value = ".", value_name = "INPUT", help_heading = "Arguments")]
    pub input: PathBuf,
    /// The label table; without it one that lies at the top of the folder is used
    #[arg(long, value_name = "TABLE")]
    pub labels: Option<PathBuf>,
    /// Use no table: folders are labels
    #[arg(long, conflicts_with = "labels")]
    pub no_labels: bool,
    /// The table's column of paths
    #[arg(long, value_name = "COL")]
    pub path_col: Option<String>,
    /// The table's column of labels
    #[arg(long, value_name = "COL")]
    pub label_col: Option<String>,
    /// Take only files that match (again for more); without `/` at any depth
    #[arg(short, long, value_name = "GLOB")]
    pub glob: Vec<String>,
    /// Leave out files that match (again for more)
    #[arg(short = 'E', long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Take hidden files and folders too
    #[arg(short = 'H', long)]
    pub hidden: bool,
    /// Take only this part of the split
    #[arg(long, value_name = "NAME")]
    pub split: Option<String>,
    /// Take the files that this list names, relative to INPUT; `-` is standard input
    #[arg(long, value_name = "LIST")]
    pub files_from: Option<PathBuf>,
    /// Follow paths of the table that leave its folder
    #[arg(long)]
    pub allow_outside: bool,
    /// Refuse pictures with more pixels
    #[arg(long, value_name = "N", default_value = "250M", value_parser = count)]
    pub max_pixels: u64,
    /// Give up on a file after so many seconds
    #[arg(long, value_name = "N", default_value = "300", value_parser = seconds)]
    pub max_seconds: f64,
    /// Exit with 1 when more images than this are not usable, as in 10 or 2%
    #[arg(long, value_name = "N|P%", default_value = "100%", value_parser = allowance)]
    pub max_bad: Allowance,
}

impl Default for Input {
    /// What is meant where nothing is said.
    fn default() -> Self {
        Self {
            input: PathBuf::from("."),
            labels: None,
            no_labels: false,
            path_col: None,
            label_col: None,
            glob: Vec::new(),
            exclude: Vec::new(),
            hidden: false,
            split: None,
            files_from: None,
            allow_outside: false,
            max_pixels: 250_000_000,
            max_seconds: 300.0,
            max_bad: Allowance::Percent(100.0),
        }
    }
}

impl Input {
    /// As the sources want it.
    pub fn options(&self) -> source::Options {
        source::Options {
            labels: self.labels.clone(),
            folders_only: self.no_labels,
            path_col: self.path_col.clone(),
            label_col: self.label_col.clone(),
            globs: self.glob.clone(),
            exclude: self.exclude.clone(),
            hidden: self.hidden,
            split: self.split.clone(),
            files_from: self.files_from.clone(),
            allow_outside: self.allow_outside,
            files: true,
        }
    }

    /// The time that one file may take.
    pub fn max_time(&self) -> Duration {
        Duration::try_from_secs_f64(self.max_seconds).unwrap_or(Duration::MAX)
    }

    /// Is the list of files to be read from standard input?
    pub fn reads_stdin(&self) -> bool {
        self.files_from.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }
}

/// How many bad images are borne.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Allowance {
    /// So many.
    Count(usize),
    /// So many in a hundred.
    Percent(f64),
}

impl Allowance {
    /// Are `bad` of `total` more than allowed?
    pub fn exceeded(self, bad: usize, total: usize) -> bool {
        match self {
            Self::Count(most) => bad > most,
            Self::Percent(most) => bad as f64 * 100.0 > most * total as f64,
        }
    }
}

fn allowance(text: &str) -> Result<Allowance, String> {
    let parsed = match text.strip_suffix('%') {
        Some(number) => {
            number.trim().parse().ok().filter(|p| (0.0..=100.0).contains(p)).map(Allowance::Percent)
        }
        None => text.parse().ok().map(Allowance::Count),
    };
    parsed.ok_or_else(|| "a number of images, or a percentage as in 2%".into())
}

/// Bytes: `512M` and `512MB` are 512 million, `512MiB` is 512 x 2^20.
pub fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let number: f64 = number.parse().map_err(|_| "a size as in 512M, 8G or 8GiB".to_owned())?;
    let unit = unit.trim().to_ascii_lowercase();
    let (power, base) = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" => (0, 1000_f64),
        "k" => (1, 1000.0),
        "m" => (2, 1000.0),
        "g" => (3, 1000.0),
        "t" => (4, 1000.0),
        _ => return Err("a size as in 512M, 8G or 8GiB".into()),
    };
    let base = if unit.contains('i') { 1024.0 } else { base };
    Ok((number * base.powi(power)) as u64)
}

/// A size of at least 32 MB: less holds not even the code and one picture.
fn memory(text: &str) -> Result<u64, String> {
    size(text).and_then(|n| if n < 32_000_000 { Err("at least 32M".into()) } else { Ok(n) })
}

/// Seconds above 0.
fn seconds(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|s| *s > 0.0).ok_or_else(|| "a number of seconds above 0".into())
}

/// A count: `250M` is 250 million.
pub fn count(text: &str) -> Result<u64, String> {
    size(text).map_err(|_| "a number as in 250M".into())
}

/// A box: `224x224`.
pub fn dimensions(text: &str) -> Result<(u32, u32), String> {
    let side = |side: &str| side.trim().parse().ok().filter(|n| (1..=65_535).contains(n));
    text.split_once(['x', 'X', '×'])
        .and_then(|(w, h)| Some((side(w)?, side(h)?)))
        .ok_or_else(|| "a width and a height as in 224x224".into())
}

/// A side: 1 to 65535 pixels.
pub fn side(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=65_535).contains(n))
        .ok_or_else(|| "a number of pixels from 1 to 65535".into())
}

/// The workers that `threads` means.
pub fn workers(threads: usize) -> Result<usize> {
    if threads > 1024 {
        return Err(Error::Usage(format!("--threads {threads}: at most 1024")));
    }
    Ok(match threads {
        0 => std::thread::available_parallelism().map_or(1, Into::into),
        n => n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_mega_and_mebi_apart() {
        assert_eq!(size("512M"), Ok(512_000_000));
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert_eq!(size("1.5gb"), Ok(1_500_000_000));
        assert_eq!(count("250M"), Ok(250_000_000));
        assert!(size("many").is_err() && size("").is_err());
        assert_eq!(dimensions("224x112"), Ok((224, 112)));
        assert!(dimensions("0x5").is_err());
    }

    #[test]
    fn allowances_are_counts_or_shares() {
        assert!(allowance("2%").unwrap().exceeded(3, 100) && !allowance("2%").unwrap().exceeded(2, 100));
        assert!(allowance("0").unwrap().exceeded(1, 100) && !allowance("1").unwrap().exceeded(1, 100));
        assert!(allowance("x").is_err() && allowance("200%").is_err());
    }
}

//! `prep.toml`: options that need not be typed. Flags win over the environment, that over the file, that over defaults.
//!
//! Keys are the long options; those at the top are for every command that has them, those in `[shrink]` for shrink.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::args::Global;
use crate::error::{Error, Result};

const NAME: &str = "prep.toml";

/// Variables that are no options: of the working process, and of the tests.
const OURS: [&str; 6] = ["FLIGHT", "SUPERVISOR", "REHEARSE", "SHARED", "TEST_ALONE", "CONFIG"];

/// A configuration file.
pub struct File {
    path: PathBuf,
    table: toml::Table,
}

/// The file that `--config` names, or the nearest `prep.toml` in or above `input`.
///
/// # Errors
/// [`Error::Read`], or [`Error::Table`] with the line where it is no TOML.
pub fn find(global: &Global, input: &Path) -> Result<Option<File>> {
    if global.no_config {
        return Ok(None);
    }
    if let Some(path) = &global.config {
        return read(path.clone()).map(Some);
    }
    let Ok(start) = input.canonicalize() else { return Ok(None) };
    match start.ancestors().map(|folder| folder.join(NAME)).find(|path| path.is_file()) {
        Some(path) => read(path).map(Some),
        None => Ok(None),
    }
}

fn read(path: PathBuf) -> Result<File> {
    let text = fs::read_to_string(&path).map_err(|e| Error::read("reading the configuration", &path, e))?;
    let table = text.parse::<toml::Table>().map_err(|e| {
        let line = e.span().map(|span| text[..span.start.min(text.len())].lines().count().max(1) as u64);
        Error::table(&path, line, format!("this is no TOML: {}", e.message()))
    })?;
    Ok(File { path, table })
}

/// `typed` with what the file says, and then what the environment says, put right behind the command's name: what
/// comes later wins. Also a sentence for each `PREP_…` variable that is no option's.
///
/// # Errors
/// [`Error::Table`] for a key that no command has, or a value that cannot be an option's.
pub fn merge(
    file: Option<&File>,
    typed: &[OsString],
    cli: &clap::Command,
) -> Result<(Vec<OsString>, Vec<String>)> {
    let is_command = |word: &OsString| cli.find_subcommand(word.to_string_lossy().as_ref());
    let Some((at, command)) = typed.iter().enumerate().skip(1).find_map(|(i, w)| Some((i, is_command(w)?)))
    else {
        return Ok((typed.to_vec(), Vec::new()));
    };
    let mut words = typed[..=at].to_vec();
    if let Some(file) = file {
        from_file(file, &mut words, command, cli)?;
    }
    let odd = from_environment(&mut words, command, cli);
    words.extend_from_slice(&typed[at + 1..]);
    Ok((words, odd))
}

fn from_file(
    file: &File,
    words: &mut Vec<OsString>,
    command: &clap::Command,
    cli: &clap::Command,
) -> Result<()> {
    for (key, value) in &file.table {
        match value {
            toml::Value::Table(section) if key == command.get_name() => {
                for (key, value) in section {
                    require(file, key, &[command, cli])?;
                    push(file, words, key, value)?;
                }
            }
            toml::Value::Table(_) => {
                if cli.find_subcommand(key).is_none() {
                    return Err(unknown(
                        file,
                        key,
                        cli.get_subcommands().map(|c| c.get_name().to_owned()).collect(),
                    ));
                }
            }
            // At the top: an option of this command, or of another one.
            value => {
                let all: Vec<&clap::Command> = cli.get_subcommands().chain([cli]).collect();
                require(file, key, &all)?;
                if has(command, key) || has(cli, key) {
                    push(file, words, key, value)?;
                }
            }
        }
    }
    Ok(())
}

/// `PREP_SHORT_EDGE=256` is `--short-edge=256`; of a flag, `1`, `true`, `yes` and `on` are the flag, all else is not.
fn from_environment(words: &mut Vec<OsString>, command: &clap::Command, cli: &clap::Command) -> Vec<String> {
    let mut variables: Vec<(String, OsString)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.to_str()?.strip_prefix("PREP_")?.to_owned(), value)))
        .filter(|(name, _)| !OURS.contains(&name.as_str()))
        .collect();
    variables.sort();
    let mut odd = Vec::new();
    for (name, value) in variables {
        let key = name.to_ascii_lowercase().replace('_', "-");
        let option = |c: &clap::Command| c.get_arguments().find(|a| a.get_long() == Some(&key)).cloned();
        if let Some(argument) = option(command).or_else(|| option(cli)) {
            let is = |words: [&str; 4]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
            let optional = argument.get_num_args().is_some_and(|range| range.min_values() == 0);
            if optional && argument.get_action().takes_values() && is(["1", "true", "yes", "on"]) {
                words.push(format!("--{key}").into());
            } else if optional && (value.is_empty() || is(["0", "false", "no", "off"])) {
                // Not asked for.
            } else if argument.get_action().takes_values() {
                let mut word = OsString::from(format!("--{key}="));
                word.push(&value);
                words.push(word);
            } else if ["1", "true", "yes", "on"].iter().any(|yes| value.eq_ignore_ascii_case(yes)) {
                words.push(format!("--{key}").into());
            }
        } else if !cli.get_subcommands().any(|c| has(c, &key)) {
            odd.push(format!("the variable PREP_{name} is ignored: there is no option --{key}"));
        }
    }
    odd
}

fn has(command: &clap::Command, key: &str) -> bool {
    command.get_arguments().any(|a| a.get_long() == Some(key))
}

fn require(file: &File, key: &str, commands: &[&clap::Command]) -> Result<()> {
    if commands.iter().any(|c| has(c, key)) {
        return Ok(());
    }
    let known = commands
        .iter()
        .flat_map(|c| c.get_arguments())
        .filter_map(|a| a.get_long().map(str::to_owned))
        .collect();
    Err(unknown(file, key, known))
}

fn unknown(file: &File, key: &str, mut known: Vec<String>) -> Error {
    known.sort_by(|a, b| closeness(b, key).total_cmp(&closeness(a, key)));
    let guess = known.first().filter(|k| closeness(k, key) > 0.4).map(|k| format!("; do you mean `{k}`?"));
    Error::table(&file.path, None, format!("unknown key `{key}`{}", guess.unwrap_or_default()))
}

/// The share of letter pairs that two words have in common (Dice's coefficient).
fn closeness(a: &str, b: &str) -> f64 {
    let pairs = |s: &str| s.as_bytes().windows(2).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (a, mut b) = (pairs(a), pairs(b));
    let all = a.len() + b.len();
    let shared = a.iter().filter(|p| b.iter().position(|q| q == *p).map(|at| b.remove(at)).is_some()).count();
    if all == 0 { 0.0 } else { 2.0 * shared as f64 / all as f64 }
}

fn push(file: &File, words: &mut Vec<OsString>, key: &str, value: &toml::Value) -> Result<()> {
    let option = format!("--{key}");
    match value {
        toml::Value::Boolean(true) => words.push(option.into()),
        toml::Value::Boolean(false) => {}
        toml::Value::String(text) => words.push(format!("{option}={text}").into()),
        toml::Value::Integer(number) => words.push(format!("{option}={number}").into()),
        toml::Value::Float(number) => words.push(format!("{option}={number}").into()),
        toml::Value::Array(values) => {
            for value in values {
                push(file, words, key, value)?;
            }
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => {
            let why = format!("`{key}` cannot have such a value");
            return Err(Error::table(&file.path, None, why));
        }
    }
    Ok(())
}

/// What clap refuses after file and environment were merged is their fault: without them the same words were accepted.
pub fn blame(file: Option<&File>, error: &clap::Error) -> Error {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    match file {
        Some(file) => {
            Error::table(&file.path, None, format!("{first} (from this file, or from a PREP_ variable)"))
        }
        None => Error::Usage(format!("{first} (from a PREP_ variable)")),
    }
}

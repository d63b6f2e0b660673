//! The command line: what was typed becomes plain options, what came out becomes text. No pixels, no walking.

mod apply;
mod args;
mod audit;
mod cache;
mod config;
mod pack;
mod plan;
mod run;
mod sheet;
mod show;
mod shrink;
mod split;
mod stats;
mod terminal;
mod undo;
mod unpack;
mod verify;
mod watch;
mod weights;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use self::args::Global;
use self::terminal::Terminal;
use crate::engine::cancel::Cancel;
use crate::engine::supervise;
use crate::error::{Error, Result};
use crate::out::place;

/// Prepare and audit image training sets, before anyone rents a GPU.
#[derive(Parser, Debug)]
#[command(name = "prep", version, long_version = long_version(), args_override_self = true,
    max_term_width = 110,
    after_help = "Exit codes: 0 done; 1 findings, or more bad images than --max-bad allows; 2 wrong usage, \
        configuration or I/O; 130 interrupted.\nMore about a command: prep COMMAND --help")]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// One upright, sRGB, 8-bit copy of every image at training size
    Shrink(shrink::Args),
    /// Exact normalization constants of the training rows
    Stats(stats::Args),
    /// All that is wrong with the data, for a person and for CI
    Audit(audit::Args),
    /// Contact sheets: wrong labels are seen in a minute, and marked
    Sheet(sheet::Args),
    /// What was marked on a sheet goes into the manifest
    Apply(apply::Args),
    /// What prep knows of one picture, and the picture itself on terminals that can show it
    Show(show::Args),
    /// Parts for training, validation and test, or folds: groups whole, classes in their shares
    Split(split::Args),
    /// Class and sampler weights from the training images
    Weights(weights::Args),
    /// Will it fit, and what will starve: disk, memory and GPU memory, before the first out of memory
    Plan(plan::Args),
    /// Shards for loaders: MosaicML, LitData, NumPy, WebDataset or FFCV, with checksums and a reader
    Pack(pack::Args),
    /// Shards or the images of a workspace against their checksums
    Verify(verify::Args),
    /// The files of shards again
    Unpack(unpack::Args),
    /// Take back the last change of a manifest
    Undo(undo::Args),
    /// What is kept of pictures between runs
    Cache(cache::Args),
}

impl Command {
    /// What the command reads, where it reads images.
    fn input(&self) -> Option<&args::Input> {
        match self {
            Self::Shrink(args) => Some(&args.input),
            Self::Stats(args) => Some(&args.input),
            Self::Split(args) => Some(&args.input),
            Self::Weights(args) => Some(&args.input),
            Self::Plan(args) => Some(&args.input),
            Self::Pack(args) => Some(&args.input),
            Self::Audit(args) => Some(&args.input),
            Self::Sheet(args) => Some(&args.input),
            Self::Apply(args) => Some(&args.input),
            Self::Show(args) => Some(&args.input),
            Self::Undo(_) | Self::Cache(_) | Self::Verify(_) | Self::Unpack(_) => None,
        }
    }

    /// What the command is about: `prep.toml` is looked for above it.
    fn place(&self) -> &std::path::Path {
        match self {
            Self::Verify(args) => &args.dir,
            Self::Unpack(args) => &args.dir,
            Self::Undo(args) => &args.path,
            Self::Cache(args) => args.path.as_deref().unwrap_or(std::path::Path::new(".")),
            _ => self.input().map_or(std::path::Path::new("."), |input| &input.input),
        }
    }

    /// Does it decode, so that a crash of a decoder must be survived?
    fn decodes(&self) -> bool {
        match self {
            Self::Shrink(_)
            | Self::Audit(_)
            | Self::Stats(_)
            | Self::Plan(_)
            | Self::Pack(_)
            | Self::Sheet(_)
            | Self::Show(_) => true,
            Self::Split(args) => args.decodes(),
            Self::Weights(_) | Self::Apply(_) | Self::Undo(_) | Self::Cache(_) => false,
            Self::Verify(_) | Self::Unpack(_) => false,
        }
    }
}

fn long_version() -> &'static str {
    static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    TEXT.get_or_init(|| {
        format!(
            "{}\nJPEG: {}\nother formats: PNG, WebP, TIFF, BMP, GIF, PNM, QOI, ICO, TGA",
            env!("CARGO_PKG_VERSION"),
            crate::encode::jpeg_engine()
        )
    })
}

/// Runs what was typed and gives the exit code.
pub fn main() -> ExitCode {
    Cancel::survive_file_limits();
    let typed: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let (cli, odd) = match parse(&typed) {
        Ok(parsed) => parsed,
        Err(Refused::Clap(e)) => {
            let _ = e.print();
            return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2));
        }
        Err(Refused::Config(e)) => {
            Terminal::plain().error(&e);
            return ExitCode::from(e.exit_code());
        }
    };
    let terminal = Terminal::new(&cli.global);
    if std::env::var_os(supervise::FLIGHT_VARIABLE).is_none() {
        odd.iter().for_each(|sentence| terminal.warn(sentence));
    }
    match dispatch(&cli, &terminal) {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            terminal.error(&e);
            ExitCode::from(e.exit_code())
        }
    }
}

enum Refused {
    Clap(clap::Error),
    Config(Error),
}

/// Parses twice: the first time to learn where `prep.toml` may be, the second with what it says put before what was
/// typed, so that what was typed wins.
fn parse(typed: &[std::ffi::OsString]) -> std::result::Result<(Cli, Vec<String>), Refused> {
    let parse = |words: &[std::ffi::OsString]| {
        let matches = Cli::command().try_get_matches_from(words)?;
        Cli::from_arg_matches(&matches)
    };
    let first = parse(typed).map_err(Refused::Clap)?;
    let file = config::find(&first.global, first.command.place()).map_err(Refused::Config)?;
    let (words, odd) = config::merge(file.as_ref(), typed, &Cli::command()).map_err(Refused::Config)?;
    let cli = parse(&words).map_err(|e| Refused::Config(config::blame(file.as_ref(), &e)))?;
    Ok((cli, odd))
}

fn dispatch(cli: &Cli, terminal: &Terminal) -> Result<u8> {
    if let (Some(cache), Some(input)) = (&cli.global.cache_dir, cli.command.input()) {
        // What lies among the images is listed as images.
        place::check_outside(&input.input, cache, "--cache-dir")?;
    }
    let flight = supervise::in_worker()?;
    if let (None, true, Some(input)) = (&flight, cli.command.decodes(), cli.command.input()) {
        return supervise::run(input.max_time(), input.reads_stdin(), &mut |sentence| terminal.say(sentence));
    }
    match &cli.command {
        Command::Shrink(args) => shrink::run(args, &cli.global, terminal, flight.as_ref()),
        Command::Stats(args) => stats::run(args, &cli.global, terminal, flight.as_ref()),
        Command::Audit(args) => audit::run(args, &cli.global, terminal, flight.as_ref()),
        Command::Sheet(args) => sheet::run(args, &cli.global, terminal, flight.as_ref()),
        Command::Apply(args) => apply::run(args, &cli.global, terminal),
        Command::Show(args) => show::run(args, &cli.global, terminal, flight.as_ref()),
        Command::Split(args) => split::run(args, &cli.global, terminal, flight.as_ref()),
        Command::Weights(args) => weights::run(args, &cli.global, terminal),
        Command::Plan(args) => plan::run(args, &cli.global, terminal, flight.as_ref()),
        Command::Pack(args) => pack::run(args, &cli.global, terminal, flight.as_ref()),
        Command::Verify(args) => verify::run(args, &cli.global, terminal),
        Command::Unpack(args) => unpack::run(args, &cli.global, terminal),
        Command::Undo(args) => undo::run(args, &cli.global, terminal),
        Command::Cache(args) => cache::run(args, &cli.global, terminal),
    }
}

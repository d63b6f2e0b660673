//! `prep sheet`: options, what lies on the sheets, and where they go.

mod learn;
mod tell;

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use self::learn::{Learnt, by_finding, learn, mark_doubts, marks, sets};
use self::tell::{head, tell};
use super::args::{Global, Input, side};
use super::run;
use super::terminal::{Terminal, near, plural};
use super::watch::watcher;
use crate::decode::Contract;
use crate::encode::Encoding;
use crate::engine::cancel::Cancel;
use crate::engine::flight::Flight;
use crate::engine::pipe::Damage;
use crate::error::{Error, Result};
use crate::names::shown;
use crate::out::{Claim, place};
use crate::sheet::caption::Caption;
use crate::sheet::files::{self, Folder};
use crate::sheet::font::Fonts;
use crate::sheet::group::{self, By, Group};
use crate::sheet::page::{self, Grid, Layout, Page};
use crate::sheet::pairs;
use crate::sheet::pick::{self, Known, Pick};
use crate::sheet::{self, Job, Worst, web};
use crate::source::{Kind, Listing};

/// Contact sheets: some pictures of each class on one canvas, on which wrong labels are seen at a glance.
///
/// The picks come from keys of path and seed: the same data give the same sheets on any machine, and images that are
/// added change few cells. `--pick worst` shows first what is least like its class: the distance to the class's medoid,
/// taken from 4x4 cells of mean colour and 8x8 cells of stretched luma. `sheets.csv` tells which picture lies where.
///
/// `--format html` writes the same sheets as one offline page on which pictures are marked by keyboard; it saves
/// fixes.csv, which `prep apply` takes.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    pub input: Input,
    /// Pictures of each class (or split, group …)
    #[arg(long, default_value_t = 9, value_name = "N")]
    per_class: usize,
    /// What a sheet holds: class, split, finding, group, or a column of the table
    #[arg(long, default_value = "class", value_name = "WHAT")]
    by: String,
    /// Which pictures
    #[arg(long, value_enum, default_value = "random", value_name = "HOW")]
    pick: PickName,
    /// What --pick worst means
    #[arg(long, value_enum, default_value = "unlike", value_name = "WHAT")]
    worst: WorstName,
    /// Pictures side by side: copies with both labels and splits, or validation beside the nearest training pictures
    #[arg(long, value_enum, value_name = "WHICH", conflicts_with_all = ["by", "pick"])]
    pairs: Option<PairsName>,
    /// Pairs at most
    #[arg(long, default_value_t = 200, value_name = "N")]
    most: usize,
    /// Side of a cell in pixels [default: 256, and 160 in rows]
    #[arg(long, value_name = "PX", value_parser = cell_side)]
    cell: Option<u32>,
    /// Cells in a row [default: a square of the largest class]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    cols: Option<u32>,
    /// One sheet a class, or one row a class and many on a sheet (auto: rows for more than 40)
    #[arg(long, value_enum, default_value = "auto", value_name = "HOW")]
    layout: LayoutName,
    /// Below each picture: name, path, size, label, split, group, bytes, a column, or none
    #[arg(long, value_delimiter = ',', value_name = "FIELDS")]
    caption: Vec<String>,
    /// Which pictures get a frame: those with findings of an earlier audit (auto), of an audit now (all), or none
    #[arg(long, value_enum, default_value = "auto", value_name = "WHICH")]
    findings: FindingsName,
    /// A TrueType or OpenType font to be asked before the built-in ones
    #[arg(long, value_name = "FILE")]
    font: Option<PathBuf>,
    /// Pictures, or one page for a browser
    #[arg(long, value_enum, default_value = "jpg", value_name = "FORMAT")]
    format: FormatName,
    /// The folder of the sheets, or the page.html [default: INPUT-sheets, in a workspace sheets]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum PickName {
    /// By lot
    Random,
    /// The first by path
    First,
    /// The worst first
    Worst,
    /// Far apart, to see the variety
    Spread,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum WorstName {
    /// Least like its class
    Unlike,
    /// Least sharp
    Blurred,
    /// Darkest
    Dark,
    /// Brightest
    Bright,
    /// Fewest tones
    Flat,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum PairsName {
    /// Copies and near-duplicates
    Duplicates,
    /// Each validation picture and the training picture most like it
    ValTrain,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum LayoutName {
    Auto,
    Sheets,
    Rows,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum FindingsName {
    Auto,
    All,
    None,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum FormatName {
    Jpg,
    Png,
    Html,
}

fn cell_side(text: &str) -> std::result::Result<u32, String> {
    side(text)
        .ok()
        .filter(|n| (32..=2048).contains(n))
        .ok_or_else(|| "a number of pixels from 32 to 2048".into())
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// What ends the run.
pub fn run(args: &Args, global: &Global, terminal: &Terminal, flight: Option<&Flight>) -> Result<u8> {
    if args.per_class == 0 || args.most == 0 {
        return Err(Error::Usage("--per-class and --most are 1 or more".into()));
    }
    let cancel = Cancel::on_signals();
    let mut fonts = Fonts::new(args.font.as_deref())?;
    let (listing, _) = run::list_at_home(&args.input, &args.input.options(), None, terminal)?;
    let caption = Caption::parse(&fields(args), &listing)?;
    let target = Target::of(args, &listing)?;
    let pipe = run::pipe(&args.input, global, Contract::default(), Damage::Tell)?;
    let crew = run::crew(global, &cancel, flight)?;
    let learnt = learn(args, global, &listing, (&pipe, &crew), terminal)?;
    let data = page::data_hash(&listing);
    let audited = if learnt.as_ref().is_some_and(|learnt| learnt.judged) { " · audited" } else { "" };
    let stamp = format!("seed {} · data {data}{audited}", global.seed);
    let pages = pages(args, global, &listing, learnt.as_ref(), (&caption, &stamp), &cancel)?;
    if pages.is_empty() {
        terminal.result("No pictures to show: nothing of that kind was found.\n")?;
        return Ok(0);
    }
    let mut marks = learnt.as_ref().map(|learnt| marks(args, learnt)).unwrap_or_default();
    mark_doubts(&listing, &mut marks);
    let job = Job { listing: &listing, pages: &pages, caption: &caption, marks: &marks };
    if global.dry_run {
        let place = shown(&near(target.path())).to_string();
        let images: usize =
            pages.iter().flat_map(|p| &p.blocks).map(|b| b.cells.iter().flatten().count()).sum();
        let (sheets, images) = (plural(pages.len(), "sheet"), plural(images, "image"));
        return terminal.result(&format!("Would draw {sheets} of {images} in {place}\n")).map(|()| 0);
    }
    let mut watch = watcher(global);
    let index = match &target {
        Target::Page(path) => {
            let head = head(args, &listing, path, &stamp);
            web::write(&job, head, path, &pipe, &crew, watch.as_mut())?
        }
        Target::Folder(folder, None) => {
            let mut folder = Folder::take(folder, files::JPEG)?;
            let path = folder.page();
            let head = head(args, &listing, &path, &stamp);
            let index = web::write(&job, head, &path, &pipe, &crew, watch.as_mut())?;
            folder.finish(&job, &index, |_| files::PAGE.into())?;
            index
        }
        Target::Folder(folder, Some(encoding)) => {
            let mut folder = Folder::take(folder, *encoding)?;
            let draw = &mut |page: &Page, picture: &_| folder.write(page, picture);
            let index = sheet::run(&job, &mut fonts, &pipe, &crew, watch.as_mut(), draw)?;
            let ending = encoding.extension();
            folder.finish(&job, &index, |page| format!("{}.{ending}", page.name))?;
            index
        }
    };
    tell(args, global, &job, &index, &target, &data, terminal)?;
    let bad = index.iter().filter(|drawn| drawn.fault.is_some()).count();
    Ok(u8::from(args.input.max_bad.exceeded(bad, index.len().max(1))))
}

/// What stands below the pictures when nobody says.
fn fields(args: &Args) -> Vec<String> {
    let usual: &[&str] = match (&args.pairs, args.by.as_str()) {
        _ if !args.caption.is_empty() => return args.caption.clone(),
        (Some(_), _) => &["name", "label", "split"],
        (None, "class") => &["name", "size"],
        (None, _) => &["name", "label", "size"],
    };
    usual.iter().map(ToString::to_string).collect()
}

/// Where the sheets go.
enum Target {
    /// One page for a browser.
    Page(PathBuf),
    /// A folder of sheets, or with the page.
    Folder(PathBuf, Option<Encoding>),
}

impl Target {
    fn of(args: &Args, listing: &Listing) -> Result<Self> {
        let input = &args.input.input;
        let encoding = match args.format {
            FormatName::Jpg => Some(files::JPEG),
            FormatName::Png => Some(Encoding::Png),
            FormatName::Html => None,
        };
        if let Some(out) = &args.out {
            let is_page = out.extension().is_some_and(|e| e.eq_ignore_ascii_case("html"));
            return match (encoding, is_page) {
                (None, true) => {
                    check_page(input, listing, out)?;
                    Ok(Self::Page(out.clone()))
                }
                (Some(_), true) => {
                    let out = shown(out);
                    Err(Error::Usage(format!(
                        "-o {out} is a page: write it with --format html, or name a folder"
                    )))
                }
                _ => {
                    if input.is_dir() && !is_workspace(listing) {
                        place::check_apart(input, out)?;
                    }
                    Ok(Self::Folder(out.clone(), encoding))
                }
            };
        }
        let folder = match is_workspace(listing) {
            true => listing.root.join("sheets"),
            false => place::beside(input, "-sheets")?,
        };
        Ok(Self::Folder(folder, encoding))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Page(path) | Self::Folder(path, _) => path,
        }
    }
}

/// Refuses a page among the pictures, and one in the place of a file that is no page of prep.
fn check_page(input: &Path, listing: &Listing, out: &Path) -> Result<()> {
    if !is_workspace(listing) {
        place::check_outside(input, out, "-o")?;
    }
    match std::fs::read(out) {
        Ok(text) if !crate::page::is_ours(&text) => {
            let why = "is there and is no page of prep: name another file";
            Err(Error::Outputs(format!("{} {why}", shown(out))))
        }
        _ => Ok(()),
    }
}

/// A folder that shrink made: what prep makes of it lies in it.
fn is_workspace(listing: &Listing) -> bool {
    listing.kind == Kind::Manifest && listing.root.join(Claim::CORNER).is_dir()
}

fn pick_of(args: &Args) -> Pick {
    match args.pick {
        PickName::Random => Pick::Random,
        PickName::First => Pick::First,
        PickName::Spread => Pick::Spread,
        PickName::Worst => Pick::Worst(match args.worst {
            WorstName::Unlike => Worst::Unlike,
            WorstName::Blurred => Worst::Blurred,
            WorstName::Dark => Worst::Dark,
            WorstName::Bright => Worst::Bright,
            WorstName::Flat => Worst::Flat,
        }),
    }
}

/// Which image lies where.
fn pages(
    args: &Args,
    global: &Global,
    listing: &Listing,
    learnt: Option<&Learnt>,
    (caption, stamp): (&Caption, &str),
    cancel: &Cancel,
) -> Result<Vec<Page>> {
    let layout = match args.layout {
        LayoutName::Auto => Layout::Auto,
        LayoutName::Sheets => Layout::Sheets,
        LayoutName::Rows => Layout::Rows,
    };
    let per_group = args.per_class;
    let grid = Grid { layout, per_group, columns: args.cols, cell: args.cell, lines: caption.lines() };
    if let (Some(which), Some(learnt)) = (args.pairs, learnt) {
        let (found, name, title) = match which {
            PairsName::Duplicates => {
                let sets = sets(&learnt.findings);
                (pairs::of_sets(listing, &sets, args.most), "duplicates", "Copies and near-duplicates")
            }
            PairsName::ValTrain => {
                let threads = super::args::workers(global.threads)?;
                let found = pairs::val_train(listing, &learnt.survey.prints, args.most, threads, cancel)?;
                (found, "val-train", "Validation beside the nearest training images")
            }
        };
        return page::of_pairs(&found, &grid, name, (title, stamp));
    }
    let groups = match (args.by.as_str(), learnt) {
        ("finding", Some(learnt)) => by_finding(listing, &learnt.findings),
        ("class", _) => group::groups(listing, &By::Class, &title(args))?,
        ("split", _) => group::groups(listing, &By::Split, "")?,
        ("group", _) => group::groups(listing, &By::Group, "")?,
        (name, _) => group::groups(listing, &By::Column(name.to_owned()), "")?,
    };
    let known = learnt.map(|l| Known { facts: &l.survey.facts, prints: &l.survey.prints });
    let picked = |group: Group| {
        let picks = pick::picked(pick_of(args), listing, &group.rows, per_group, global.seed, known.as_ref());
        (group, picks)
    };
    let groups: Vec<(Group, Vec<usize>)> = groups.into_iter().map(picked).collect();
    page::of_groups(listing, &groups, &grid, (&title(args), stamp))
}

/// What the data set is called.
fn title(args: &Args) -> String {
    let input = &args.input.input;
    let real = input.canonicalize().unwrap_or_else(|_| input.clone());
    real.file_stem()
        .filter(|_| real.is_file())
        .or(real.file_name())
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

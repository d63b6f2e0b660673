//! `prep sheet`: options, what is known of the images, and what was drawn.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::json;

use super::args::{Global, Input, side};
use super::run;
use super::terminal::{Terminal, columns, near, plural, shell_word, thousands};
use super::watch::watcher;
use crate::audit::{self, Severity};
use crate::decode::Contract;
use crate::encode::Encoding;
use crate::engine::cancel::Cancel;
use crate::engine::crew::Crew;
use crate::engine::flight::Flight;
use crate::engine::pipe::{Damage, Pipe};
use crate::error::{Error, Result};
use crate::fault::Oddity;
use crate::names::shown;
use crate::out::{Claim, place};
use crate::sheet::caption::Caption;
use crate::sheet::files::{self, Folder};
use crate::sheet::font::Fonts;
use crate::sheet::group::{self, By, Group};
use crate::sheet::page::{self, Grid, Layout, Page};
use crate::sheet::pairs;
use crate::sheet::pick::{self, Known, Pick};
use crate::sheet::{self, Drawn, Job, Mark, Marks, Worst, web};
use crate::source::{Kind, Listing, Stamp};
use crate::survey::{self, Survey};

/// The JSON document's version.
const SCHEMA: u32 = 1;
/// Images up to which the cache is asked whether it knows all.
const ASKED: usize = 50_000;
/// Images up to which copies are looked for to frame them, unless all findings are asked for.
const COMPARED: usize = 5_000;
/// Sheets that are listed by name.
const LISTED: usize = 12;

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
    /// Cells in a row [default: a square]
    #[arg(long, value_name = "N", value_parser = side)]
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
    side(text).ok().filter(|n| (32..=2048).contains(n)).ok_or_else(|| "a number of pixels from 32 to 2048".into())
}

/// What was learnt of all images before anything is drawn.
struct Learnt {
    survey: Survey,
    findings: Vec<audit::Finding>,
    /// Were findings looked for?
    judged: bool,
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
        let images: usize = pages.iter().flat_map(|p| &p.blocks).map(|b| b.cells.iter().flatten().count()).sum();
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
        (Some(_), _) => &["name", "label", "split", "size"],
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
                (None, true) => Ok(Self::Page(out.clone())),
                (Some(_), true) => {
                    let out = shown(out);
                    Err(Error::Usage(format!("-o {out} is a page: write it with --format html, or name a folder")))
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

/// A folder that shrink made: what prep makes of it lies in it.
fn is_workspace(listing: &Listing) -> bool {
    listing.kind == Kind::Manifest && listing.root.join(Claim::CORNER).is_dir()
}

/// Looks at all images where the options need that, or where an earlier audit has done so.
fn learn(
    args: &Args,
    global: &Global,
    listing: &Listing,
    (pipe, crew): (&Pipe, &Crew<'_>),
    terminal: &Terminal,
) -> Result<Option<Learnt>> {
    let finds = args.by == "finding" || args.pairs.is_some();
    let asked = finds || args.findings == FindingsName::All;
    let needed = asked || pick_of(args).needs_facts();
    let mut cache = run::cache(global, listing);
    if !needed {
        let auto = args.findings == FindingsName::Auto && listing.entries.len() <= ASKED;
        let known = |cache: &crate::facts::Cache| {
            listing.entries.iter().all(|e| e.fault.is_some() || cache.get(&e.path, &Stamp::of(&e.file)).is_some())
        };
        if !auto || !cache.as_ref().is_some_and(known) {
            return Ok(None);
        }
    }
    let all: Vec<usize> = (0..listing.entries.len()).collect();
    let mut watch = watcher(global);
    let survey = survey::run(listing, &all, pipe, crew, cache.as_mut(), watch.as_mut())?;
    run::tell_cache(cache.as_ref(), survey.decoded, terminal);
    let compares = match args.pairs {
        Some(pairs) => pairs == PairsName::Duplicates,
        None => asked || (args.findings != FindingsName::None && all.len() <= COMPARED),
    };
    let mut alike = Vec::new();
    if compares {
        let options = crate::near::Options { threads: pipe.threads, ..crate::near::Options::default() };
        alike = crate::near::search(&survey.prints, &options, crew.cancel, &mut |_, _| ())?.pairs;
    }
    let judged = finds || args.findings != FindingsName::None;
    let findings = match judged {
        false => Vec::new(),
        true => audit::judge(listing, &survey.facts, &alike, Vec::new(), &audit::Choice::default()),
    };
    Ok(Some(Learnt { survey, findings, judged }))
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
        let (blocks, name, title) = match which {
            PairsName::Duplicates => {
                let sets = sets(&learnt.findings);
                (pairs::of_sets(listing, &sets, args.most), "duplicates", "Copies and near-duplicates")
            }
            PairsName::ValTrain => {
                let threads = super::args::workers(global.threads)?;
                let blocks = pairs::val_train(listing, &learnt.survey.prints, args.most, threads, cancel)?;
                (blocks, "val-train", "Validation beside the nearest training images")
            }
        };
        return page::of_pairs(&blocks, &grid, name, (title, stamp));
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
    real.file_stem().filter(|_| real.is_file()).or(real.file_name()).unwrap_or_default().to_string_lossy().into_owned()
}

fn by_finding(listing: &Listing, findings: &[audit::Finding]) -> Vec<Group> {
    let mut groups = Vec::new();
    for found in audit::groups(findings) {
        let mut rows: Vec<usize> = found.findings.iter().flat_map(|f| f.images.iter().copied()).collect();
        rows.retain(|row| group::is_shown(&listing.entries[*row]));
        rows.sort_unstable();
        rows.dedup();
        if !rows.is_empty() {
            let name = format!("{} {}", found.code.id, found.code.title);
            groups.push(Group { name, note: found.code.severity.as_str().into(), rows });
        }
    }
    groups
}

/// The sets of pictures that are alike.
fn sets(findings: &[audit::Finding]) -> Vec<pairs::Set> {
    let alike = |f: &&audit::Finding| matches!(f.code.id, "D001" | "D002" | "D003" | "D008");
    let set = |f: &audit::Finding| {
        let detail = if f.images.len() == 2 { format!(": {}", f.detail) } else { String::new() };
        pairs::Set { images: f.images.clone(), what: format!("{} {}{detail}", f.code.id, f.code.title) }
    };
    findings.iter().filter(alike).map(set).collect()
}

/// What was found about each image. On pictures only what matters; on the page all of it.
fn marks(args: &Args, learnt: &Learnt) -> Marks {
    let mut marks = Marks::new();
    for finding in &learnt.findings {
        let red = finding.code.severity >= Severity::Warning;
        if args.findings == FindingsName::None || (!red && args.format != FormatName::Html) {
            continue;
        }
        for image in &finding.images {
            let known: &mut Vec<Mark> = marks.entry(*image).or_default();
            if !known.iter().any(|mark| mark.code == finding.code.id) {
                let text = format!("{}: {}", finding.code.title, finding.detail);
                known.push(Mark { code: finding.code.id.into(), text, red });
            }
        }
    }
    marks
}

/// Images that somebody marked as doubtful.
fn mark_doubts(listing: &Listing, marks: &mut Marks) {
    for (at, entry) in listing.entries.iter().enumerate() {
        for note in entry.notes.iter().filter(|note| note.kind == Oddity::Doubtful) {
            let mark = Mark { code: note.kind.code().into(), text: note.detail.clone(), red: true };
            marks.entry(at).or_default().push(mark);
        }
    }
}

/// What the page says about itself.
fn head(args: &Args, listing: &Listing, page: &Path, stamp: &str) -> web::Head {
    let folder = page.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let input = shell_word(&args.input.input);
    let kind = args.by.as_str();
    let summary = match args.pairs {
        Some(_) => format!("pairs · {stamp}"),
        None => format!("{} of each {kind} · {stamp}", args.per_class),
    };
    // The data set's place alone: other sheets of the same data share the marks.
    let root = listing.root.canonicalize().unwrap_or_else(|_| listing.root.clone());
    web::Head {
        title: title(args),
        summary,
        command: format!("prep {}", std::env::args().skip(1).map(|w| shell_word(Path::new(&w))).collect::<Vec<_>>().join(" ")),
        key: blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex()[..16].to_owned(),
        root: Some(crate::names::encode(&place::relative(folder, &listing.root))),
        uses: vec![format!("prep apply fixes.csv {input} -n"), format!("prep apply fixes.csv {input}")],
    }
}

/// A name whose middle is left out where it is long.
fn elided(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    match letters.len() {
        0..=48 => name.to_owned(),
        n => letters[..23].iter().chain(&['…']).chain(&letters[n - 24..]).collect(),
    }
}

/// Says what was drawn and what to do next.
fn tell(
    args: &Args,
    global: &Global,
    job: &Job<'_>,
    index: &[Drawn],
    target: &Target,
    data: &str,
    terminal: &Terminal,
) -> Result<()> {
    let place = near(target.path());
    let bad = index.iter().filter(|drawn| drawn.fault.is_some()).count();
    let ending = match target {
        Target::Folder(_, Some(encoding)) => format!(".{}", encoding.extension()),
        _ => String::new(),
    };
    if global.json {
        let sheets: Vec<_> = job
            .pages
            .iter()
            .enumerate()
            .map(|(at, page)| {
                let images = index.iter().filter(|drawn| drawn.page == at).count();
                json!({"file": format!("{}{ending}", page.name), "title": page.title, "images": images})
            })
            .collect();
        let document = json!({
            "schema": SCHEMA, "command": "sheet", "input": shown(&args.input.input).to_string(),
            "seed": global.seed, "data": data, "out": shown(target.path()).to_string(),
            "images": index.len(), "not_readable": bad, "sheets": sheets,
        });
        return terminal.result(&format!("{document:#}\n"));
    }
    let mut text = format!(
        "{}: {}, {}",
        shown(&place),
        plural(job.pages.len(), "sheet"),
        plural(index.len(), "image")
    );
    if bad > 0 {
        text.push_str(&format!(", {} not whole", thousands(bad as u64)));
    }
    text.push('\n');
    if !ending.is_empty() {
        let rows: Vec<Vec<String>> = job
            .pages
            .iter()
            .take(LISTED)
            .map(|page| vec![elided(&format!("{}{ending}", shown(&page.name))), shown(&page.about).to_string()])
            .collect();
        text.push_str(&columns(&rows, &[false, false]));
        if job.pages.len() > LISTED {
            text.push_str(&format!("  … {} more\n", thousands((job.pages.len() - LISTED) as u64)));
        }
    }
    terminal.result(&text)?;
    let input = shell_word(&args.input.input);
    terminal.say(&match args.format {
        FormatName::Html => format!("Open it in a browser, mark, save fixes.csv; then: prep apply fixes.csv {input} -n"),
        _ => format!("Something wrong? prep sheet {input} --format html is the page to mark it on"),
    });
    Ok(())
}

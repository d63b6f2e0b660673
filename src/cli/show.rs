//! `prep show`: what is known of some images, as text, and the images themselves where the terminal draws.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::json;

use super::args::{Global, Input};
use super::run;
use super::terminal::{Terminal, bytes, columns};
use crate::audit;
use crate::decode::Contract;
use crate::engine::cancel::Cancel;
use crate::engine::crew::Crew;
use crate::engine::flight::Flight;
use crate::engine::pipe::{Damage, Pipe};
use crate::engine::progress::Unwatched;
use crate::error::{Error, Result};
use crate::facts::{self, Facts};
use crate::fault::{Fault, join_notes};
use crate::home;
use crate::manifest::Sidecar;
use crate::measure::Print;
use crate::names::{self, shown};
use crate::near::{self, Prints};
use crate::show::{Protocol, Terminal as Screen};
use crate::source::{self, Ignored, Listing, Stamp};
use crate::survey;
use crate::thumb::{self, Bench};

/// The JSON document's version.
const SCHEMA: u32 = 1;
/// Images up to which findings and neighbours are looked for among what the cache knows.
const COMPARED: usize = 50_000;
/// Neighbours that are told.
const NEIGHBOURS: usize = 6;

/// What prep knows of some pictures: label, split, what the file is, measures, findings, and the pictures most like it,
/// as far as an earlier audit has looked. On a terminal the picture is drawn too.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Files, or paths as the manifest spells them
    #[arg(required = true, value_name = "PATH", help_heading = "Arguments")]
    paths: Vec<PathBuf>,
    /// The data set that they belong to; by default the nearest folder above with a manifest, or that prep has looked at
    #[arg(long = "in", value_name = "INPUT")]
    within: Option<PathBuf>,
    /// How to draw, also into a pipe; auto goes by TERM and TERM_PROGRAM, and draws on terminals alone
    #[arg(long, value_enum, default_value = "auto", value_name = "HOW")]
    draw: Draw,
    #[arg(skip)]
    pub input: Input,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Draw {
    /// What the terminal can
    Auto,
    /// kitty's graphics protocol
    Kitty,
    /// iTerm2's inline images
    Iterm,
    /// Sixel graphics
    Sixel,
    /// Half blocks of 24-bit colour
    Blocks,
    /// No picture
    None,
}

/// A data set, and what is known of it without decoding.
struct Set {
    place: PathBuf,
    listing: Listing,
    /// Facts of all images and their prints, where the cache has all of them.
    known: Option<survey::Survey>,
    /// Nothing is kept of files that belong to no data set.
    lonely: bool,
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// What ends the run: a path that is no image of any data set.
pub fn run(args: &Args, global: &Global, terminal: &Terminal, flight: Option<&Flight>) -> Result<u8> {
    let cancel = Cancel::on_signals();
    let pipe = run::pipe(&args.input, global, Contract::default(), Damage::Tell)?;
    let crew = run::crew(global, &cancel, flight)?;
    let protocol = protocol(args.draw, global);
    let mut sets: Vec<Set> = Vec::new();
    let mut documents = Vec::new();
    for (nth, path) in args.paths.iter().enumerate() {
        let set = set_of(args, global, path, &mut sets, (&pipe, &crew))?;
        let at = find(&set.listing, path).ok_or_else(|| {
            let (path, place) = (shown(path), shown(&set.place));
            Error::Usage(format!("`{path}` is no image of {place}; name a file, or its data set with --in"))
        })?;
        let told = told(set, at, global, (&pipe, &crew))?;
        if global.json {
            documents.push(told.json(&set.listing));
            continue;
        }
        if nth > 0 {
            terminal.result("\n")?;
        }
        if let Some(protocol) = protocol {
            draw(set, at, protocol, (&pipe, &crew), terminal)?;
        }
        terminal.result(&told.text(&set.listing))?;
    }
    if global.json {
        let document = json!({"schema": SCHEMA, "command": "show", "images": documents});
        terminal.result(&format!("{document:#}\n"))?;
    }
    Ok(0)
}

/// How to draw, if at all.
fn protocol(draw: Draw, global: &Global) -> Option<Protocol> {
    // What was typed is obeyed into a pipe too; what prep.toml or a variable says is about the terminal.
    let typed = std::env::args_os().any(|word| word.as_encoded_bytes().starts_with(b"--draw"));
    let may = (std::io::stdout().is_terminal() || typed && draw != Draw::Auto) && !global.json;
    let said = |name: &str| std::env::var(name).unwrap_or_default();
    match draw {
        _ if !may => None,
        Draw::None => None,
        Draw::Kitty => Some(Protocol::Kitty),
        Draw::Iterm => Some(Protocol::Iterm),
        Draw::Sixel => Some(Protocol::Sixel),
        Draw::Blocks => Some(Protocol::Blocks),
        Draw::Auto => Protocol::of(Screen {
            term: &said("TERM"),
            program: &said("TERM_PROGRAM"),
            kitty: std::env::var_os("KITTY_WINDOW_ID").is_some(),
            no_color: std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()),
        }),
    }
}

/// The data set of a path, opened once.
fn set_of<'s>(
    args: &Args,
    global: &Global,
    path: &Path,
    sets: &'s mut Vec<Set>,
    engine: (&Pipe, &Crew<'_>),
) -> Result<&'s Set> {
    let (place, lonely) = match &args.within {
        Some(within) => (within.clone(), false),
        None => place_of(path, global)?,
    };
    let at = match sets.iter().position(|set| set.place == place) {
        Some(at) => at,
        None => {
            let options = Input { input: place.clone(), ..args.input.clone() }.options();
            // A lone file has no place for a manifest, and needs none.
            let listing = match lonely {
                true => source::open(&place, &options)?,
                false => home::open(&place, &options, None)?.0,
            };
            let known = if lonely { None } else { known(&listing, global, engine)? };
            sets.push(Set { place, listing, known, lonely });
            sets.len() - 1
        }
    };
    Ok(&sets[at])
}

/// The nearest folder above `path` with a manifest; else the nearest that prep has looked at; else the file alone.
fn place_of(path: &Path, global: &Global) -> Result<(PathBuf, bool)> {
    let unreadable = |e| Error::read("looking at the picture", path, e);
    let real = match run::real_place(path) {
        Some(real) => real,
        None => path.canonicalize().map_err(unreadable)?,
    };
    if real.is_dir() {
        let path = shown(path);
        return Err(Error::Usage(format!("{path} is a folder; prep sheet {path} shows what is in it")));
    }
    let above = || real.ancestors().skip(1);
    let with_manifest = above().find(|folder| Sidecar::path_of(&folder.join("manifest.csv")).is_file());
    let looked_at = || {
        let home = run::cache_home(global)?;
        above().find(|folder| facts::knows(&home, folder))
    };
    match with_manifest.or_else(looked_at) {
        Some(folder) => Ok((folder.to_owned(), false)),
        // A table may name what is not there; without one there is nothing to tell.
        None => real.canonicalize().map(|real| (real, true)).map_err(unreadable),
    }
}

/// The place in a listing of a file, or of a path as the manifest spells it.
fn find(listing: &Listing, path: &Path) -> Option<usize> {
    let text = path.to_string_lossy();
    let encoded = names::encode(path);
    let named = listing.entries.iter().position(|e| e.path == text || e.path == encoded);
    named.or_else(|| {
        let real = run::real_place(path)?;
        let name = real.file_name();
        // Only files of the same name are asked where they really are, links to others last.
        let same = |file: &Path| run::real_place(file).as_ref() == Some(&real);
        let entries = || listing.entries.iter();
        entries()
            .position(|e| e.file.file_name() == name && same(&e.file))
            .or_else(|| entries().position(|e| e.file.is_symlink() && same(&e.file)))
    })
}

/// The facts of all images, where the cache has them.
fn known(
    listing: &Listing,
    global: &Global,
    (pipe, crew): (&Pipe, &Crew<'_>),
) -> Result<Option<survey::Survey>> {
    let Some(mut cache) = run::cache(global, listing) else { return Ok(None) };
    let has =
        |e: &crate::entry::Entry| e.fault.is_some() || cache.get(&e.path, &Stamp::of(&e.file)).is_some();
    if listing.entries.len() > COMPARED || !listing.entries.iter().all(has) {
        return Ok(None);
    }
    let all: Vec<usize> = (0..listing.entries.len()).collect();
    survey::run(listing, &all, pipe, crew, Some(&mut cache), &mut Unwatched).map(Some)
}

/// What is known of one image.
struct Told {
    at: usize,
    facts: Facts,
    /// Code, title and evidence.
    findings: Vec<(String, String)>,
    /// Others and how they are like it; none where nobody has looked at the others.
    neighbours: Option<Vec<(usize, String)>>,
}

fn told(set: &Set, at: usize, global: &Global, (pipe, crew): (&Pipe, &Crew<'_>)) -> Result<Told> {
    let listing = &set.listing;
    if let Some(known) = &set.known {
        let print = known.prints.print(at).map(std::borrow::Cow::into_owned);
        let pairs = alike(at, print, &known.prints, (pipe.threads, crew.cancel))?;
        let all = audit::judge(listing, &known.facts, &pairs, Vec::new(), &audit::Choice::default());
        let mine = all.into_iter().filter(|f| f.images.contains(&at) || f.at == listing.entries[at].path);
        let neighbours = pairs
            .iter()
            .take(NEIGHBOURS)
            .map(|pair| (if pair.a == at { pair.b } else { pair.a }, audit::how(pair)))
            .collect();
        let facts = known.facts[at].clone();
        return Ok(Told { at, facts, findings: codes(mine), neighbours: Some(neighbours) });
    }
    let mut cache = if set.lonely { None } else { run::cache(global, listing) };
    let mut survey = survey::run(listing, &[at], pipe, crew, cache.as_mut(), &mut Unwatched)?;
    let entry = &listing.entries[at];
    let fault = || Fault::new(crate::fault::Cause::Io, "nothing was learnt of it");
    let facts = survey.facts.pop().unwrap_or_else(|| Facts::of_fault(entry.bytes, fault()));
    // Judged alone: what needs the others is not known.
    let alone = Listing {
        root: listing.root.clone(),
        kind: listing.kind,
        entries: vec![entry.clone()],
        classes: listing.classes.clone(),
        table: None,
        taken: Vec::new(),
        findings: listing.findings.iter().filter(|f| f.at == entry.path).cloned().collect(),
        ignored: Ignored::default(),
        said: Vec::new(),
    };
    let found =
        audit::judge(&alone, std::slice::from_ref(&facts), &[], Vec::new(), &audit::Choice::default());
    let mine = found.into_iter().filter(|f| f.images.contains(&0) || f.at == entry.path);
    Ok(Told { at, facts, findings: codes(mine), neighbours: None })
}

fn codes(findings: impl Iterator<Item = audit::Finding>) -> Vec<(String, String)> {
    findings.map(|f| (f.code.id.to_owned(), format!("{}: {}", f.code.title, f.detail))).collect()
}

/// The pictures that look like picture `at`, the most alike first; places are those of the listing.
fn alike(
    at: usize,
    print: Option<Print>,
    prints: &survey::Kept,
    (threads, cancel): (usize, &Cancel),
) -> Result<Vec<near::Pair>> {
    let options = near::Options { threads, ..near::Options::default() };
    let one = [print];
    let mut pairs = near::against(&one[..], prints, &options, cancel, &mut |_, _| ())?.pairs;
    pairs.retain(|pair| pair.b != at);
    for pair in &mut pairs {
        pair.a = at;
    }
    pairs.sort_by_key(|pair| (pair.tier, pair.distance, pair.b));
    Ok(pairs)
}

impl Told {
    fn rows(&self, listing: &Listing) -> Vec<(&'static str, String)> {
        let entry = &listing.entries[self.at];
        let mut rows = vec![("label", or_dash(&entry.label)), ("split", or_dash(&entry.split))];
        if !entry.group.is_empty() {
            rows.push(("group", shown(&entry.group).to_string()));
        }
        let facts = &self.facts;
        rows.push((
            "status",
            match &facts.fault {
                Some(fault) => {
                    let (status, why) = (facts.status().as_str(), fault.to_string());
                    // The cause of what is excluded is called as the status is.
                    let why = why.strip_prefix(status).and_then(|why| why.strip_prefix(": ")).unwrap_or(&why);
                    format!("{status}: {}", shown(why))
                }
                None => facts.status().as_str().to_owned(),
            },
        ));
        rows.extend(self.picture().map(|text| ("picture", text)));
        if let Some(camera) = facts.header.as_ref().map(|h| &h.camera).filter(|c| !c.is_empty()) {
            rows.push(("camera", shown(camera).to_string()));
        }
        if let Some(seen) = &facts.seen {
            let q = &seen.quality;
            rows.push((
                "measures",
                format!(
                    "brightness {:.0}, contrast {:.0}, sharpness {:.0}, entropy {:.1} bits, colour {:.0}, border {:.0} %",
                    q.brightness, q.contrast, q.sharpness, q.entropy, q.colour, q.border * 100.0
                ),
            ));
        }
        if let Some(hash) = &facts.hash {
            rows.push(("hash", hash.iter().map(|b| format!("{b:02x}")).collect()));
        }
        let notes = [join_notes(&entry.notes), join_notes(&facts.notes)];
        let notes: Vec<&str> = notes.iter().map(String::as_str).filter(|n| !n.is_empty()).collect();
        if !notes.is_empty() {
            rows.push(("notes", shown(&notes.join(";").replace(';', ", ")).to_string()));
        }
        rows.extend(self.findings.iter().map(|(code, text)| ("finding", format!("{code} {}", shown(text)))));
        match &self.neighbours {
            None => rows.push(("like it", "not known: prep audit looks at all of the data".into())),
            Some(others) if others.is_empty() => rows.push(("like it", "nothing".into())),
            Some(others) => {
                rows.extend(others.iter().map(|(other, how)| ("like it", neighbour(listing, *other, how))));
            }
        }
        rows
    }

    /// "4000×3000 jpeg RGB, 3.20 MB, orientation 6, profile …".
    fn picture(&self) -> Option<String> {
        let header = self.facts.header.as_ref()?;
        let (width, height) = header.upright_size();
        let (format, mode, size) = (header.format.name(), header.src_mode(), bytes(self.facts.bytes));
        let mut text = format!("{width}×{height} {format} {mode}, {size}");
        if header.orientation as u8 != 1 {
            text.push_str(&format!(", orientation {}", header.orientation as u8));
        }
        if header.frames > 1 {
            text.push_str(&format!(", {} frames", header.frames));
        }
        if let Some(profile) = &header.icc {
            text.push_str(&format!(", profile {}", shown(profile)));
        }
        Some(text)
    }

    fn text(&self, listing: &Listing) -> String {
        let rows: Vec<Vec<String>> =
            self.rows(listing).into_iter().map(|(name, text)| vec![name.to_owned(), text]).collect();
        format!("{}\n{}", shown(&listing.entries[self.at].path), columns(&rows, &[false, false]))
    }

    fn json(&self, listing: &Listing) -> serde_json::Value {
        let entry = &listing.entries[self.at];
        let facts = &self.facts;
        let neighbours = self.neighbours.as_ref().map(|others| {
            let other = |(at, how): &(usize, String)| {
                let entry = &listing.entries[*at];
                json!({"path": entry.path, "label": entry.label, "split": entry.split, "how": how})
            };
            others.iter().map(other).collect::<Vec<_>>()
        });
        let notes = [join_notes(&entry.notes), join_notes(&facts.notes)].join(";");
        let notes = notes.trim_matches(';');
        json!({
            "path": entry.path, "label": entry.label, "split": entry.split, "group": entry.group,
            "status": facts.status().as_str(), "fault": facts.fault.as_ref().map(ToString::to_string),
            "width": facts.size().map(|s| s.0), "height": facts.size().map(|s| s.1), "bytes": facts.bytes,
            "format": facts.header.as_ref().map(|h| h.format.name()),
            "mode": facts.header.as_ref().map(crate::decode::Header::src_mode),
            "hash": facts.hash.map(|h| h.iter().map(|b| format!("{b:02x}")).collect::<String>()),
            "notes": notes,
            "findings": self.findings.iter().map(|(code, text)| json!({"code": code, "text": text})).collect::<Vec<_>>(),
            "neighbours": neighbours,
        })
    }
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "–".into() } else { shown(text).to_string() }
}

fn neighbour(listing: &Listing, at: usize, how: &str) -> String {
    let entry = &listing.entries[at];
    let labels: Vec<String> = [&entry.label, &entry.split]
        .into_iter()
        .filter(|t| !t.is_empty())
        .map(|t| shown(t).to_string())
        .collect();
    format!("{} ({}): {how}", shown(&entry.path), labels.join(", "))
}

/// Draws the picture; one that cannot be read is not drawn, for the text says why.
fn draw(
    set: &Set,
    at: usize,
    protocol: Protocol,
    (pipe, crew): (&Pipe, &Crew<'_>),
    terminal: &Terminal,
) -> Result<()> {
    let entry = &set.listing.entries[at];
    let number =
        |name: &str, usual: u32| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(usual);
    let most = protocol.most((number("COLUMNS", 80).min(80), number("LINES", 24).saturating_sub(4).min(30)));
    let mut drawn = None;
    crew.run(
        &[entry.path.as_str()],
        Bench::default,
        |bench, item| thumb::look(pipe, entry, item, most, bench),
        |_, fault| Err(fault),
        |_, look| {
            drawn = look.ok();
            Ok(())
        },
    )?;
    let Some(look) = drawn else { return Ok(()) };
    match protocol.draw(&look.picture) {
        Ok(text) => terminal.picture(&text),
        Err(why) => {
            terminal.say(&why);
            Ok(())
        }
    }
}

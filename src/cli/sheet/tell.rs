//! What the page says about itself, and what is said when the sheets are drawn.

use std::path::Path;

use serde_json::json;

use super::{Args, FormatName, Target, title};
use crate::cli::args::Global;
use crate::cli::terminal::{Terminal, columns, near, plural, shell_word, thousands};
use crate::error::Result;
use crate::names::shown;
use crate::out::place;
use crate::sheet::{Drawn, Job, web};
use crate::source::Listing;

/// The JSON document's version.
const SCHEMA: u32 = 1;
/// Sheets that are listed by name.
const LISTED: usize = 12;

/// What the page says about itself.
pub(super) fn head(args: &Args, listing: &Listing, page: &Path, stamp: &str) -> web::Head {
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
pub(super) fn elided(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    match letters.len() {
        0..=48 => name.to_owned(),
        n => letters[..23].iter().chain(&['…']).chain(&letters[n - 24..]).collect(),
    }
}

/// Says what was drawn and what to do next.
pub(super) fn tell(
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

//! What every command that looks at images begins with: the listing, said aloud, and the engine.

use std::path::{Path, PathBuf};

use super::args::{Global, Input, workers};
use super::terminal::{Terminal, plural, thousands};
use crate::decode::{Contract, Limits};
use crate::engine::budget::Budget;
use crate::engine::cancel::Cancel;
use crate::engine::crew::Crew;
use crate::engine::flight::Flight;
use crate::engine::pipe::{Damage, Pipe};
use crate::error::{Error, Result};
use crate::facts::{self, Cache};
use crate::home::{self, Home};
use crate::names::shown;
use crate::source::{self, Listing};

/// Lists the input and says what was understood.
///
/// # Errors
/// What the source says, or that there is nothing in it.
pub fn list(input: &Input, terminal: &Terminal) -> Result<Listing> {
    let listing = source::open(&input.input, &input.options())?;
    tell(input, &listing, terminal)?;
    Ok(listing)
}

/// Lists the input with what its manifest knows, and says what was understood.
///
/// # Errors
/// As [`list`], or a place for the manifest that something else has taken.
pub fn list_at_home(
    input: &Input,
    options: &source::Options,
    out: Option<&Path>,
    terminal: &Terminal,
) -> Result<(Listing, Home)> {
    let (listing, home) = home::open(&input.input, options, out)?;
    tell(input, &listing, terminal)?;
    Ok((listing, home))
}

fn tell(input: &Input, listing: &Listing, terminal: &Terminal) -> Result<()> {
    for sentence in &listing.said {
        terminal.say(sentence);
    }
    if listing.ignored.by_glob == 0 && !input.exclude.is_empty() {
        terminal.say(&format!("--exclude {}: nothing here is called so", shown(&input.exclude.join(", "))));
    }
    if listing.entries.is_empty() && listing.ignored.total() > 0 {
        let why = "no images are left of what is in";
        return Err(Error::Usage(format!("{why} {}; what was left out is said above", shown(&input.input))));
    }
    if listing.entries.is_empty() {
        return Err(Error::Usage(format!(
            "there are no images in {}; name a folder of images or a label table, as in `prep shrink photos`",
            shown(&input.input)
        )));
    }
    if terminal.verbose > 0 {
        for finding in &listing.findings {
            let line = finding.line.map(|n| format!(" (line {n})")).unwrap_or_default();
            let (code, at, detail) = (finding.kind.code(), shown(&finding.at), shown(&finding.detail));
            terminal.say(&format!("  {code}: {at}{line} {detail}"));
        }
    } else if !listing.findings.is_empty() {
        let oddities = plural(listing.findings.len(), "oddity");
        terminal.say(&format!("{oddities} of the names and labels (-v lists them)"));
    }
    Ok(())
}

/// The way of an image, as the options want it.
///
/// # Errors
/// [`Error::Usage`] for impossible numbers.
pub fn pipe(input: &Input, global: &Global, contract: Contract, damage: Damage) -> Result<Pipe> {
    Ok(Pipe {
        budget: Budget::new(global.memory.unwrap_or_else(Budget::default_total)),
        limits: Limits { max_pixels: input.max_pixels },
        contract,
        damage,
        threads: workers(global.threads)?,
    })
}

/// The crew, as the options want it.
///
/// # Errors
/// [`Error::Usage`] for impossible numbers.
pub fn crew<'a>(global: &Global, cancel: &'a Cancel, flight: Option<&'a Flight>) -> Result<Crew<'a>> {
    Ok(Crew { threads: workers(global.threads)?, cancel, flight })
}

/// The cache of what is known of the images of `listing`, unless the user wants none.
pub fn cache(global: &Global, listing: &Listing) -> Option<Cache> {
    let home = cache_home(global).filter(|_| !global.no_cache)?;
    Some(Cache::open(&home, &listing.root))
}

/// The folder of all caches; none where there is no place for it.
pub fn cache_home(global: &Global) -> Option<PathBuf> {
    facts::home(global.cache_dir.as_deref())
}

/// The real path of a file that need not be there; none where not even its folder is.
pub fn real_place(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    path.canonicalize().ok().or_else(|| Some(folder.canonicalize().ok()?.join(path.file_name()?)))
}

/// Says what the cache spared, or that it cannot be kept.
pub fn tell_cache(cache: Option<&Cache>, decoded: usize, terminal: &Terminal) {
    let Some(cache) = cache else { return };
    if cache.hits() > 0 && terminal.verbose > 0 {
        let (hits, decoded) = (thousands(cache.hits() as u64), thousands(decoded as u64));
        terminal.say(&format!("{hits} images were known, {decoded} decoded"));
    }
    if !cache.is_writable() {
        terminal.say("the cache of facts cannot be written, so the next command will decode again; --cache-dir names another place");
    }
}

//! What a split knows of the time before: where images were, which of them stay there, and what is alike.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Args, SPLIT, keep, words};
use crate::cli::args::Global;
use crate::cli::run;
use crate::cli::terminal::{Terminal, plural, shell_word};
use crate::cli::watch::watcher;
use crate::decode::Contract;
use crate::engine::crew::Crew;
use crate::engine::pipe::Damage;
use crate::error::{Error, Result};
use crate::home::Home;
use crate::names::shown;
use crate::near::{self, Tier};
use crate::source::Listing;
use crate::split::{Dups, Earlier, Options, Place};
use crate::survey;

/// The whole input, and what of it was asked for.
pub(super) struct All {
    pub(super) listing: Listing,
    /// For each entry.
    pub(super) asked: Vec<bool>,
    /// Upright sizes of pictures that were decoded here.
    pub(super) sizes: Vec<Option<(u32, u32)>>,
}

impl Args {
    /// What is known of the entries: where they were, and their hashes. Parts that stay are added to the options.
    pub(super) fn earlier(
        &self,
        all: &All,
        home: &Home,
        options: &mut Options,
        terminal: &Terminal,
    ) -> Result<Earlier> {
        let listing = &all.listing;
        let mut earlier = Earlier { keep: self.keep.is_some(), ..Earlier::default() };
        if options.dups == Some(Dups::Exact) {
            let hash = |at| Ok(home.row(listing, at)?.map(|row| row.hash).unwrap_or_default());
            earlier.hashes = (0..listing.entries.len()).map(hash).collect::<Result<_>>()?;
        }
        earlier.outside = all.asked.iter().map(|asked| !asked).collect();
        if let Some(path) = &self.keep {
            earlier.places = keep::places(path, listing, options)?;
            (0..all.asked.len()).filter(|at| !all.asked[*at]).for_each(|at| earlier.places[at] = None);
        } else if !self.reset {
            self.continued(all, home, options, &mut earlier, terminal)?;
        }
        self.stays(all, home, options, &mut earlier, terminal)?;
        Ok(earlier)
    }

    /// The places of a split that was made with the same options.
    fn continued(
        &self,
        all: &All,
        home: &Home,
        options: &Options,
        earlier: &mut Earlier,
        terminal: &Terminal,
    ) -> Result<()> {
        let listing = &all.listing;
        let before = home.sidecar().and_then(|s| s.rest.get(SPLIT));
        let heading = before.and_then(|s| s.get("heading")).and_then(Value::as_str);
        let part = |at: usize| {
            let name = &listing.entries[at].split;
            options.dealt().iter().position(|p| p.name == *name).map(|p| p as u8)
        };
        let asked = || (0..listing.entries.len()).filter(|at| all.asked[*at]);
        let is_split = asked().any(|at| !listing.entries[at].split.is_empty());
        match heading {
            Some(heading) if heading == options.heading() => {
                let place = |at: usize| -> Result<Option<Place>> {
                    let fold = match options.folds {
                        Some(_) if all.asked[at] => {
                            home.row(listing, at)?.and_then(|row| row.fold.parse().ok())
                        }
                        _ => None,
                    };
                    let place = Place { part: part(at).filter(|_| all.asked[at]), fold, ..Place::default() };
                    Ok((place != Place::default()).then_some(place))
                };
                earlier.places = (0..listing.entries.len()).map(place).collect::<Result<_>>()?;
                terminal
                    .say("continues the earlier split: as few groups as possible move (--reset begins anew)");
            }
            // Who asks for a part by name wants it dealt; a new manifest takes nothing from the old one.
            Some(heading)
                if self.input.split.is_none()
                    && home.manifest.exists()
                    && (is_split || home.has_folds(listing)) =>
            {
                return Err(Error::Usage(format!(
                    "{} has a split that was made otherwise ({}): --reset drops it, --keep {} leaves every image where it \
                     is, -o writes another manifest",
                    shown(&home.manifest),
                    words::differences(heading, &options.heading()),
                    shell_word(&home.manifest)
                )));
            }
            Some(_) => {}
            None if asked().any(|at| part(at).is_some()) => {
                terminal.say("the parts that the input has are replaced in the manifest; no file moves");
            }
            None => {}
        }
        Ok(())
    }

    /// What stays as it is: images that were not asked for, and parts that nothing is dealt to.
    fn stays(
        &self,
        all: &All,
        home: &Home,
        options: &mut Options,
        earlier: &mut Earlier,
        terminal: &Terminal,
    ) -> Result<()> {
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        earlier.fixed = vec![None; all.asked.len()];
        for (at, entry) in all.listing.entries.iter().enumerate().filter(|(_, e)| e.fault.is_none()) {
            let named = options.dealt().iter().any(|part| part.name == entry.split);
            let asked = all.asked[at];
            if asked && (entry.split.is_empty() || named || self.reset || self.keep.is_some()) {
                continue;
            }
            let part = match entry.split.as_str() {
                "" => None,
                name => Some(options.staying(name)?),
            };
            if asked {
                *names.entry(&entry.split).or_default() += 1;
            }
            let fold = match options.folds {
                Some(_) if !asked => home.row(&all.listing, at)?.and_then(|row| row.fold.parse().ok()),
                _ => None,
            };
            let place = Place { part, fold, ..Place::default() };
            earlier.fixed[at] = (place != Place::default()).then_some(place);
        }
        for (name, n) in names {
            let (name, images) = (shown(name), plural(n, "image"));
            terminal.say(&format!(
                "`{name}` keeps its {images}: --ratio does not name it (--reset deals them too)"
            ));
        }
        Ok(())
    }
}

/// Decodes what may be split and finds what is alike. Pictures that are not usable get their fault.
pub(super) fn alike(
    all: &mut All,
    earlier: &mut Earlier,
    dups: Dups,
    (args, global): (&Args, &Global),
    crew: &Crew<'_>,
    terminal: &Terminal,
) -> Result<()> {
    let rows: Vec<usize> = (0..all.asked.len())
        .filter(|at| all.listing.entries[*at].fault.is_none())
        .filter(|at| all.asked[*at] || earlier.fixed[*at].is_some())
        .collect();
    let pipe = run::pipe(&args.input, global, Contract::default(), Damage::Tell)?;
    let mut cache = run::cache(global, &all.listing);
    let mut watch = watcher(global);
    let survey = survey::run(&all.listing, &rows, &pipe, crew, cache.as_mut(), watch.as_mut())?;
    run::tell_cache(cache.as_ref(), survey.decoded, terminal);
    let search = near::Options { threads: pipe.threads, ..near::Options::default() };
    let found = near::search(&survey.prints, &search, crew.cancel, &mut |_, _| ())?;
    if found.crowded > 0 {
        let n = plural(found.crowded, "picture");
        terminal.warn(&format!("{n} look like so many others that not all near-duplicates are told"));
    }
    let wanted = found.pairs.iter().filter(|pair| dups == Dups::Scene || pair.tier == Tier::Sure);
    earlier.alike = wanted.map(|pair| (rows[pair.a] as u32, rows[pair.b] as u32)).collect();
    earlier.equal = vec![String::new(); all.asked.len()];
    all.sizes = vec![None; all.asked.len()];
    for (at, facts) in rows.iter().zip(survey.facts) {
        all.sizes[*at] = facts.size();
        if let Some(seen) = &facts.seen {
            earlier.equal[*at] = seen.pixel_hash.iter().map(|byte| format!("{byte:02x}")).collect();
        }
        all.listing.entries[*at].fault = facts.fault;
    }
    let pairs = plural(earlier.alike.len(), "pair");
    terminal.say(&match dups {
        Dups::Scene => format!("{pairs} of pictures are near-duplicates or may be of one scene"),
        _ => format!("{pairs} of pictures are near-duplicates"),
    });
    Ok(())
}

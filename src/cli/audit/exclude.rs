//! `--exclude`: which rows go out of the manifest.

use std::path::{Path, PathBuf};

use super::super::args::Input;
use crate::audit::{self, Exclusion, Finding};
use crate::error::{Error, Result};
use crate::fault::{Cause, Fault};
use crate::home::Home;
use crate::names::shown;
use crate::source::Listing;

/// What `--exclude` names: for other commands globs of files to leave unseen, here also codes and lists.
pub(super) enum Wish {
    Codes(Vec<String>),
    List(PathBuf),
}

pub(super) fn wishes(input: &Input) -> Result<(Input, Option<Vec<Wish>>)> {
    let mut rest = input.clone();
    let mut wishes = Vec::new();
    rest.exclude.retain(|value| {
        let patterns: Vec<String> = value.split(',').map(|p| p.trim().to_owned()).collect();
        let are_codes = patterns.iter().all(|p| {
            let (family, number) = p.split_at_checked(1).unwrap_or(("", ""));
            "FMDLSQX".contains(&family.to_uppercase())
                && !family.is_empty()
                && number.len() <= 3
                && number.bytes().all(|b| b.is_ascii_digit())
        });
        if are_codes {
            wishes.push(Wish::Codes(patterns));
        } else if Path::new(value).is_file() {
            wishes.push(Wish::List(PathBuf::from(value)));
        } else {
            return true;
        }
        false
    });
    let is_list = |value: &&String| [".txt", ".csv", ".lst", ".list"].iter().any(|end| value.ends_with(end));
    if let Some(list) =
        rest.exclude.iter().filter(is_list).find(|value| !value.contains(['*', '?', '[', '{']))
    {
        return Err(Error::Usage(format!("--exclude {}: there is no such list", shown(list))));
    }
    let any = !wishes.is_empty();
    Ok((rest, any.then_some(wishes)))
}

/// What `--exclude` did.
#[derive(Default)]
pub(super) struct Excluded {
    pub(super) rows: Exclusion,
    pub(super) undoable: bool,
}

/// Marks rows in the manifest, and gives them.
pub(super) fn exclude(
    wishes: &[Wish],
    listing: &Listing,
    home: &Home,
    findings: &[Finding],
    dry_run: bool,
) -> Result<Excluded> {
    let (mut out, mut undoable) = (Exclusion::new(), false);
    for wish in wishes {
        out.extend(match wish {
            Wish::Codes(patterns) => audit::by_codes(findings, patterns)?,
            Wish::List(path) => {
                let text = std::fs::read(path).map_err(|e| Error::read("reading the list", path, e))?;
                audit::by_list(&listing.entries, &String::from_utf8_lossy(&text))?
            }
        });
    }
    if !dry_run && !out.is_empty() {
        let mark = |at: usize, row: &mut crate::manifest::Row| {
            if let Some(why) = out.get(&at) {
                let fault = Fault::new(Cause::Excluded, why.clone());
                row.status = fault.status();
                row.fault = Some(fault);
            }
        };
        undoable = home.rewrite(listing, "audit --exclude", mark, |_| {})?.undoable;
    }
    Ok(Excluded { rows: out, undoable })
}

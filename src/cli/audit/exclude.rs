//! `--exclude`: which rows go out of the manifest.

use std::path::{Path, PathBuf};

use super::super::args::Input;
use crate::apply::{self, Action};
use crate::audit::{self, Exclusion, Finding};
use crate::error::{Error, Result};
use crate::fault::{Cause, Fault};
use crate::home::Home;
use crate::names::shown;
use crate::source::Listing;
use crate::table::{self, Header};

/// What `--exclude` names: for other commands globs of files to leave unseen, here also codes and lists.
pub(super) enum Wish {
    Codes(Vec<String>),
    List(PathBuf),
}

/// What is to go out, as far as that can be known before anything is decoded.
pub(super) struct Asked {
    codes: Vec<String>,
    listed: Exclusion,
}

impl Asked {
    /// Reads the lists.
    ///
    /// # Errors
    /// A list that cannot be read, or that names what is no image of the listing.
    pub(super) fn of(wishes: Vec<Wish>, listing: &Listing) -> Result<Self> {
        let mut asked = Self { codes: Vec::new(), listed: Exclusion::new() };
        for wish in wishes {
            match wish {
                Wish::Codes(patterns) => asked.codes.extend(patterns),
                Wish::List(path) => {
                    let rows = audit::by_list(&listing.entries, &paths(&path)?);
                    asked.listed.extend(rows.map_err(|e| Error::Usage(format!("{}: {e}", shown(&path))))?);
                }
            }
        }
        Ok(asked)
    }
}

pub(super) fn wishes(input: &Input) -> Result<(Input, Option<Vec<Wish>>)> {
    let mut rest = input.clone();
    let (mut wishes, mut wrong) = (Vec::new(), None);
    rest.exclude.retain(|value| {
        let patterns: Vec<String> = value.split(',').map(|p| p.trim().to_owned()).collect();
        let codes = patterns.iter().filter(|p| is_code(p)).count();
        let are_codes = codes == patterns.len();
        if codes > 0 && !are_codes && !Path::new(value).exists() {
            let value = shown(value);
            let why = "codes, lists and globs are options of their own: --exclude D001 --exclude list.txt";
            wrong.get_or_insert(Error::Usage(format!("--exclude {value}: {why}")));
        }
        if are_codes {
            if let Err(e) = audit::check_codes(&patterns) {
                wrong.get_or_insert(e);
            } else if let Some(name) = patterns.iter().find(|p| input.input.join(p).exists()) {
                let name = shown(name);
                let why = "codes of findings begin so, and it is a name in the data set: write";
                wrong.get_or_insert(Error::Usage(format!(
                    "--exclude {name}: {why} {name}/ for the folder, {name}0 for the codes"
                )));
            }
            wishes.push(Wish::Codes(patterns));
        } else if is_nearly_code(value) && !Path::new(value).exists() && !input.input.join(value).exists() {
            wrong.get_or_insert(audit::unknown(value));
        } else if Path::new(value).is_file() {
            wishes.push(Wish::List(PathBuf::from(value)));
        } else {
            return true;
        }
        false
    });
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    let is_list = |value: &&String| [".txt", ".csv", ".lst", ".list"].iter().any(|end| value.ends_with(end));
    if let Some(list) =
        rest.exclude.iter().filter(is_list).find(|value| !value.contains(['*', '?', '[', '{']))
    {
        return Err(Error::Usage(format!("--exclude {}: there is no such list", shown(list))));
    }
    let any = !wishes.is_empty();
    Ok((rest, any.then_some(wishes)))
}

/// Is this a code of findings, or what codes begin with?
fn is_code(text: &str) -> bool {
    let (family, number) = text.split_at_checked(1).unwrap_or(("", ""));
    "FMDLSQX".contains(&family.to_uppercase())
        && !family.is_empty()
        && number.len() <= 3
        && number.bytes().all(|b| b.is_ascii_digit())
}

/// A letter of a family, digits, and more: `D0X`, `F0O3`. Nobody calls a picture so.
fn is_nearly_code(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| "FMDLSQX".contains(c))
        && chars.next().is_some_and(|c| c.is_ascii_digit())
        && chars.all(|c| c.is_ascii_alphanumeric())
        && text.len() <= 6
}

/// The paths that a list names, one a line: of a table (fixes, findings) those in its column `path`, on the lines
/// where they stand there. Of fixes only what is marked to be excluded goes out.
fn paths(file: &Path) -> Result<String> {
    let is_table = file.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
    let bytes = table::load(file)?;
    if is_table
        && let Ok(table) = table::parse(file, bytes.clone(), Header::Names)
        && let Some(column) = table.column("path")
    {
        let rows: Vec<(u64, String)> = match table.column("action") {
            None => {
                (0..table.len()).map(|row| (table.line(row), table.cell(row, column).to_owned())).collect()
            }
            Some(_) => {
                let fixes = apply::read(file)?.into_iter();
                fixes.filter(|fix| fix.action == Action::Exclude).map(|fix| (fix.line, fix.path)).collect()
            }
        };
        let mut lines = String::new();
        let mut at = 1;
        for (line, path) in rows {
            (at..line).for_each(|_| lines.push('\n'));
            at = at.max(line);
            lines.push_str(&path);
        }
        return Ok(lines);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What `--exclude` did.
#[derive(Default)]
pub(super) struct Excluded {
    pub(super) rows: Exclusion,
    pub(super) undoable: bool,
    /// Sets of copies that codes named and that stay, because their labels differ.
    pub(super) disputed: usize,
}

/// Marks rows in the manifest, and gives them.
pub(super) fn exclude(
    asked: Asked,
    listing: &Listing,
    home: &Home,
    findings: &[Finding],
    dry_run: bool,
) -> Result<Excluded> {
    let mut undoable = false;
    let (mut out, disputed) = match asked.codes.is_empty() {
        true => (Exclusion::new(), 0),
        false => audit::by_codes(findings, &listing.entries, &asked.codes),
    };
    out.extend(asked.listed);
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
    Ok(Excluded { rows: out, undoable, disputed })
}

//! Which images belong onto one sheet: those of a class, a split, a group, a value of a column.

use std::collections::BTreeMap;

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fault::Cause;
use crate::names::shown;
use crate::source::{Listing, labels_of};

/// What decides the sheet of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// Its label; an image with several lies on several sheets.
    Class,
    /// The part of the split.
    Split,
    /// The group whose images stay together.
    Group,
    /// The cell of this column of the label table or manifest.
    Column(String),
}

/// The images of one sheet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    /// What the sheet is called: the class, the code of a finding …
    pub name: String,
    /// What else its header says.
    pub note: String,
    /// Places in the listing, ascending.
    pub rows: Vec<usize>,
}

/// Is the image one that sheets show? Not where the user took it out, or where no table names it.
pub fn is_shown(entry: &Entry) -> bool {
    let cause = entry.fault.as_ref().map(|f| f.cause);
    !matches!(cause, Some(Cause::Excluded | Cause::Unlisted | Cause::Junk))
}

/// The images of `listing` by class and so on, in the order of the names; those without one come last. `title` is for
/// the one sheet of a data set that has no labels at all.
///
/// # Errors
/// [`Error::Usage`] for a split, group or column that the input does not have.
pub fn groups(listing: &Listing, by: &By, title: &str) -> Result<Vec<Group>> {
    let column = match by {
        By::Column(name) => Some(column(listing, name)?),
        _ => None,
    };
    let mut named: BTreeMap<(usize, &str), Vec<usize>> = BTreeMap::new();
    if *by == By::Class {
        // A class without images has a sheet all the same: that is worth seeing.
        named.extend(listing.classes.iter().map(|class| ((0, class.as_str()), Vec::new())));
    }
    let mut without = Vec::new();
    for (at, entry) in listing.entries.iter().enumerate().filter(|(_, e)| is_shown(e)) {
        let mut found = false;
        for name in values(listing, entry, by, column) {
            named.entry((rank(by, name), name)).or_default().push(at);
            found = true;
        }
        if !found {
            without.push(at);
        }
    }
    let group = |(name, rows): (&str, Vec<usize>)| Group { name: name.into(), note: String::new(), rows };
    let mut groups: Vec<Group> = named.into_iter().map(|((_, name), rows)| group((name, rows))).collect();
    if groups.is_empty() && *by != By::Class {
        return Err(missing(by));
    }
    if !without.is_empty() {
        let name = match by {
            _ if groups.is_empty() => title,
            By::Class => "(no label)",
            By::Split => "(no split)",
            By::Group => "(no group)",
            By::Column(_) => "(empty)",
        };
        groups.push(group((name, without)));
    }
    Ok(groups)
}

fn values<'a>(
    listing: &'a Listing,
    entry: &'a Entry,
    by: &By,
    column: Option<usize>,
) -> impl Iterator<Item = &'a str> {
    let one = match by {
        By::Class => "",
        By::Split => entry.split.as_str(),
        By::Group => entry.group.as_str(),
        By::Column(_) => cell(listing, entry, column),
    };
    let labels = if *by == By::Class { entry.label.as_str() } else { "" };
    labels_of(labels).chain(Some(one).filter(|text| !text.is_empty()))
}

/// The cell of an image in a column of the table.
pub fn cell<'a>(listing: &'a Listing, entry: &Entry, column: Option<usize>) -> &'a str {
    match (&listing.table, entry.row, column) {
        (Some(table), Some(row), Some(column)) => table.cell(row, column),
        _ => "",
    }
}

/// The place of a column of the table.
///
/// # Errors
/// [`Error::Usage`], with the columns that there are.
pub fn column(listing: &Listing, name: &str) -> Result<usize> {
    let Some(table) = &listing.table else {
        let why = format!("`{}`: the input has no table, so it has no such column", shown(name));
        return Err(Error::Usage(why));
    };
    let column = table.column(name).ok_or_else(|| {
        let there: Vec<String> = table.columns.iter().map(|c| shown(c).to_string()).collect();
        let (name, path) = (shown(name), shown(&table.path));
        Error::Usage(format!("`{name}` is no column of {path}, which has {}", there.join(", ")))
    })?;
    table.check_sole(column, true)?;
    Ok(column)
}

/// Training first, then as people say it.
fn rank(by: &By, name: &str) -> usize {
    let order = ["train", "val", "test"];
    match by {
        By::Split => order.iter().position(|part| *part == name).unwrap_or(order.len()),
        _ => 0,
    }
}

fn missing(by: &By) -> Error {
    let what = match by {
        By::Split => "split: no train/ val/ test/ folders and no column `split`; prep split makes one",
        By::Group => "groups: no column `group`; prep split --group-by makes them",
        By::Class | By::Column(_) => "value in that column",
    };
    Error::Usage(format!("the input has no {what}"))
}

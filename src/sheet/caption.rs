//! What stands below a picture.

use super::group::{cell, column};
use crate::error::{Error, Result};
use crate::names::thousands;
use crate::source::Listing;

/// One part of a caption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The file's name.
    Name,
    /// The whole path.
    Path,
    /// Width and height.
    Size,
    /// The label.
    Label,
    /// The part of the split.
    Split,
    /// The group.
    Group,
    /// Bytes of the file.
    Bytes,
    /// A column of the table.
    Column(usize),
}

/// The lines of all captions: the first field alone, the others behind one another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caption {
    fields: Vec<Field>,
}

impl Caption {
    /// The fields by their names: `name`, `path`, `size`, `label`, `split`, `group`, `bytes`, or a column of the table.
    /// `none` is no caption.
    ///
    /// # Errors
    /// [`Error::Usage`] for a name that is neither.
    pub fn parse(names: &[String], listing: &Listing) -> Result<Self> {
        if names.iter().all(|name| name == "none" || name.is_empty()) {
            return Ok(Self::default());
        }
        let field = |name: &String| {
            Ok(match name.as_str() {
                "name" => Field::Name,
                "path" => Field::Path,
                "size" => Field::Size,
                "label" => Field::Label,
                "split" => Field::Split,
                "group" => Field::Group,
                "bytes" => Field::Bytes,
                other => Field::Column(column(listing, other).map_err(|e| unknown(&e))?),
            })
        };
        Ok(Self { fields: names.iter().map(field).collect::<Result<_>>()? })
    }

    /// How many lines a caption has.
    pub fn lines(&self) -> u32 {
        self.fields.len().min(2) as u32
    }

    /// The lines of entry `at`, whose picture has this upright size.
    pub fn of(&self, listing: &Listing, at: usize, size: Option<(u32, u32)>) -> Vec<String> {
        let texts: Vec<String> = self.fields.iter().map(|field| text(*field, listing, at, size)).collect();
        let Some((first, rest)) = texts.split_first() else { return Vec::new() };
        let rest: Vec<&str> = rest.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        let mut lines = vec![first.clone()];
        if self.fields.len() > 1 {
            lines.push(rest.join(" · "));
        }
        lines
    }
}

fn unknown(why: &Error) -> Error {
    Error::Usage(format!("--caption {why}; other fields are name, path, size, label, split, group, bytes, none"))
}

fn text(field: Field, listing: &Listing, at: usize, size: Option<(u32, u32)>) -> String {
    let entry = &listing.entries[at];
    match field {
        Field::Name => entry.path.rsplit('/').next().unwrap_or_default().to_owned(),
        Field::Path => entry.path.clone(),
        Field::Size => size.map(|(w, h)| format!("{w}×{h}")).unwrap_or_default(),
        Field::Label => entry.label.clone(),
        Field::Split => entry.split.clone(),
        Field::Group => entry.group.clone(),
        Field::Bytes => format!("{} B", thousands(entry.bytes)),
        Field::Column(column) => cell(listing, entry, Some(column)).to_owned(),
    }
}

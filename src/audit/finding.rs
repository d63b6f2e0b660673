//! One thing that is wrong, with its images and its evidence.

use super::code::Code;

/// A finding: one image, or a set of images that belong together, or a place in the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The kind.
    pub code: &'static Code,
    /// Rows of the listing that it is about; in a set of duplicates the one to keep comes first. May be empty.
    pub images: Vec<usize>,
    /// What it is about where that is no image of the listing: a class, a column, a path. Else empty.
    pub at: String,
    /// The line of the label table, counted from 1.
    pub line: Option<u64>,
    /// The evidence, for a person.
    pub detail: String,
    /// Of a shortcut: how well it tells the label.
    pub shortcut: Option<Guessed>,
}

/// How well a property alone tells the label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guessed {
    /// Share of the labels that are guessed right, 0 to 1.
    pub accuracy: f64,
    /// Share that always guessing the largest class gets right.
    pub majority: f64,
}

impl Finding {
    /// A finding about one image.
    pub fn image(id: &str, image: usize, detail: impl Into<String>) -> Option<Self> {
        Self::set(id, vec![image], detail)
    }

    /// A finding about several images.
    pub fn set(id: &str, images: Vec<usize>, detail: impl Into<String>) -> Option<Self> {
        Some(Self {
            code: Code::find(id)?,
            images,
            at: String::new(),
            line: None,
            detail: detail.into(),
            shortcut: None,
        })
    }

    /// A finding about something else.
    pub fn place(
        id: &str,
        at: impl Into<String>,
        line: Option<u64>,
        detail: impl Into<String>,
    ) -> Option<Self> {
        Some(Self {
            code: Code::find(id)?,
            images: Vec::new(),
            at: at.into(),
            line,
            detail: detail.into(),
            shortcut: None,
        })
    }

    /// Is it about a set of pictures that are alike?
    pub fn is_set(&self) -> bool {
        self.code.id.starts_with('D')
    }
}

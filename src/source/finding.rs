//! What is odd about a tree or a table, with its place. Findings do not end a run; audit prints them.

/// One oddity and where it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The kind.
    pub kind: Trouble,
    /// The path of the image, folder, column or class that it is about, as manifests spell it.
    pub at: String,
    /// The line of the table (or ignore file), counted from 1.
    pub line: Option<u64>,
    /// What exactly, for a person; may be empty.
    pub detail: String,
}

impl Finding {
    pub(super) fn new(
        kind: Trouble,
        at: impl Into<String>,
        line: impl Into<Option<u64>>,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, at: at.into(), line: line.into(), detail: detail.into() }
    }
}

/// The kinds of findings. Codes are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Trouble {
    /// The table names it, the disk does not have it.
    MissingFile,
    /// On disk, but not in the table.
    UnlistedFile,
    /// A row of the table has no path.
    EmptyPath,
    /// A path leaves the root.
    OutsideRoot,
    /// A row names two or more files (case, Unicode form, or name without folder).
    AmbiguousName,
    /// The same row again.
    DuplicateRow,
    /// Rows of one image that say different labels.
    ConflictingRows,
    /// A row without a label.
    EmptyLabel,
    /// An image beside the class folders: it has no class.
    Unlabelled,
    /// A class that differs from another only in case.
    LabelCase,
    /// A class that differs from another in spaces.
    LabelSpace,
    /// A class that differs from another in its Unicode form.
    LabelUnicode,
    /// A class folder without images.
    EmptyClass,
    /// A cell is empty in a column that is filled nearly everywhere.
    EmptyCell,
    /// A path with `\` for `/`.
    Backslash,
    /// A path with a needless `./`.
    DotSlash,
    /// A name without its folder.
    NameOnly,
    /// A name whose case differs from the disk's.
    PathCase,
    /// A name whose Unicode form differs from the disk's.
    PathUnicode,
    /// A name with spaces around it that the disk does not have.
    PathSpace,
    /// A link that leads into itself.
    LinkLoop,
    /// A link to nothing.
    DanglingLink,
    /// A FIFO, socket or device.
    NotRegular,
    /// A folder or file that cannot be read.
    Unreadable,
    /// A line of `.prepignore` that is no rule.
    IgnoreFile,
    /// The manifest is not what its `manifest.prep.json` says.
    Manifest,
}

impl Trouble {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::MissingFile => "missing_file",
            Self::UnlistedFile => "unlisted_file",
            Self::EmptyPath => "empty_path",
            Self::OutsideRoot => "outside_root",
            Self::AmbiguousName => "ambiguous_name",
            Self::DuplicateRow => "duplicate_row",
            Self::ConflictingRows => "conflicting_rows",
            Self::EmptyLabel => "empty_label",
            Self::Unlabelled => "unlabelled",
            Self::LabelCase => "label_case",
            Self::LabelSpace => "label_space",
            Self::LabelUnicode => "label_unicode",
            Self::EmptyClass => "empty_class",
            Self::EmptyCell => "empty_cell",
            Self::Backslash => "backslash",
            Self::DotSlash => "dot_slash",
            Self::NameOnly => "name_only",
            Self::PathCase => "path_case",
            Self::PathUnicode => "path_unicode",
            Self::PathSpace => "path_space",
            Self::LinkLoop => "link_loop",
            Self::DanglingLink => "dangling_link",
            Self::NotRegular => "not_regular",
            Self::Unreadable => "unreadable",
            Self::IgnoreFile => "ignore_file",
            Self::Manifest => "manifest",
        }
    }
}

/// "train, val and test" with each name as it may be shown.
pub(super) fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|n| format!("`{}`", crate::names::shown(n))).collect();
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

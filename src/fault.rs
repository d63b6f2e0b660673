//! What is wrong with one image, and what is only odd about it. Codes are stable: they land in manifests.

use std::fmt;

/// What became of one input. Every file that the walk meets ends with exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Status {
    /// Usable; notes may say what was odd.
    #[default]
    Ok,
    /// A picture with missing or wrong pixels.
    Damaged,
    /// No picture, or one that does not decode.
    Bad,
    /// A picture in a format that prep recognises but does not read.
    Unsupported,
    /// Not looked at: not a regular file, unreadable, missing, or outside the root.
    Skipped,
    /// Taken out by the user or by an earlier command.
    Excluded,
}

impl Status {
    /// The word in the manifest's `status` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Damaged => "damaged",
            Self::Bad => "bad",
            Self::Unsupported => "unsupported",
            Self::Skipped => "skipped",
            Self::Excluded => "excluded",
        }
    }

    /// The status that the manifest spells so.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Ok, Self::Damaged, Self::Bad, Self::Unsupported, Self::Skipped, Self::Excluded]
            .into_iter()
            .find(|s| s.as_str() == text)
    }
}

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// The stable code, as in manifests.
            pub fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The value with this code.
            pub fn parse(code: &str) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

codes! {
    /// Why an image is not usable.
    Cause {
        /// No bytes.
        Empty = "empty",
        /// Content that is no picture; the detail shows the first bytes or names what it is (HTML, LFS pointer, gzip …).
        NotAnImage = "not_an_image",
        /// A picture of a format that prep does not read; the detail names it and says what to do.
        UnsupportedFormat = "unsupported",
        /// A picture of a format that prep reads, of a kind that it does not (12-bit JPEG, …).
        UnsupportedKind = "unsupported_kind",
        /// The decoder refused it.
        Undecodable = "undecodable",
        /// Ends before its pixels do.
        Truncated = "truncated",
        /// Compressed data that contradicts itself: pixels are wrong or missing.
        EntropyDamage = "entropy_damage",
        /// A progressive JPEG some of whose scans never come.
        ProgressiveIncomplete = "progressive_incomplete",
        /// A JPEG whose quantization table is all zero: every pixel is gray.
        ZeroQuantization = "dqt_zero",
        /// A header that promises far more pixels than the data can hold, or another size than the data has.
        SizeMismatch = "size_mismatch",
        /// A checksum (PNG CRC or Adler-32) does not match.
        Checksum = "checksum",
        /// More progressive scans than any camera writes: a denial-of-service shape.
        TooManyScans = "too_many_scans",
        /// More pixels than `--max-pixels`.
        TooLarge = "too_large",
        /// Needs more memory than `--memory` allows.
        TooLargeForMemory = "too_large_for_memory",
        /// A width or height of zero.
        NoPixels = "no_pixels",
        /// The table names it, the disk does not have it.
        Missing = "missing",
        /// The table names two or more files on disk by this name (case or Unicode form).
        Ambiguous = "ambiguous_name",
        /// A symbolic link to nothing.
        DanglingLink = "dangling_link",
        /// A symbolic link that leads into itself.
        LinkLoop = "link_loop",
        /// A FIFO, socket or device; never opened.
        NotRegular = "not_regular",
        /// A path that leaves the root.
        OutsideRoot = "outside_root",
        /// No permission to read.
        Permission = "permission",
        /// The system could not read it.
        Io = "io_error",
        /// The file changed while it was read.
        Changed = "changed_during_read",
        /// The decoder panicked.
        Panic = "panic",
        /// The process that decoded it died.
        Crash = "crash",
        /// Took longer than `--max-seconds`.
        Timeout = "timeout",
        /// The result could not be encoded.
        Encode = "encode_error",
        /// On disk below the root, but the label table does not name it.
        Unlisted = "unlisted",
        /// Left by an operating system or a tool: `Thumbs.db`, `.DS_Store`, `._*`.
        Junk = "junk",
        /// Excluded by the user.
        Excluded = "excluded",
    }
}

impl Cause {
    /// The status of an image with this cause.
    pub fn status(self) -> Status {
        use Cause::*;
        match self {
            Truncated
            | EntropyDamage
            | ProgressiveIncomplete
            | ZeroQuantization
            | SizeMismatch
            | Checksum => Status::Damaged,
            UnsupportedFormat | UnsupportedKind => Status::Unsupported,
            Missing | Ambiguous | DanglingLink | LinkLoop | NotRegular | OutsideRoot | Permission | Io
            | Changed | Unlisted | Junk => Status::Skipped,
            Excluded => Status::Excluded,
            Empty | NotAnImage | Undecodable | TooManyScans | TooLarge | TooLargeForMemory | NoPixels
            | Panic | Crash | Timeout | Encode => Status::Bad,
        }
    }

    /// Worth another try on the next run although the file has not changed.
    pub fn is_transient(self) -> bool {
        use Cause::*;
        matches!(
            self,
            Missing | Permission | Io | Changed | TooLargeForMemory | Timeout | Crash | DanglingLink
        )
    }
}

/// This image is not usable, and why. Never ends the run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Fault {
    /// The kind of trouble.
    pub cause: Cause,
    /// What exactly, for a person: sizes, first bytes, rows, advice. May be empty.
    pub detail: String,
}

impl Fault {
    /// A fault with its explanation.
    pub fn new(cause: Cause, detail: impl Into<String>) -> Self {
        Self { cause, detail: detail.into() }
    }

    /// The status that the row gets.
    pub fn status(&self) -> Status {
        self.cause.status()
    }

    /// The fault that [`Display`](fmt::Display) wrote as `text`.
    pub fn parse(text: &str) -> Option<Self> {
        let (code, detail) = text.split_once(": ").unwrap_or((text, ""));
        Some(Self::new(Cause::parse(code)?, detail))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.cause.code())?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

codes! {
    /// What is odd about a usable image, or what was done to make it usable.
    Oddity {
        /// The name says another format than the content; the detail names the true one.
        ExtMismatch = "ext_mismatch",
        /// Bytes after the end of the picture.
        TrailingBytes = "trailing_bytes",
        /// A second picture after the first (MPO, HDR gain map).
        MultiPicture = "multi_picture",
        /// Bytes before the start of the picture (BOM, line break).
        LeadingBytes = "leading_bytes",
        /// Bytes between header segments.
        JunkBetweenSegments = "junk_between_segments",
        /// All pixels are there, the end marker is not. Pillow refuses such a file.
        MissingEnd = "missing_end",
        /// Restart markers out of order, no pixels lost.
        RestartOrder = "restart_order",
        /// Decodable parameters that the standard does not allow.
        OddParameters = "odd_parameters",
        /// EXIF data that cannot be read; orientation 1 is assumed.
        ExifBroken = "exif_broken",
        /// An orientation outside 1-8; 1 is assumed.
        OrientationInvalid = "orientation_invalid",
        /// Turned upright; the detail is the EXIF orientation.
        Oriented = "oriented",
        /// An embedded ICC profile was converted to sRGB; the detail names it.
        IccConverted = "icc_converted",
        /// The ICC profile cannot be used; sRGB is assumed.
        IccBroken = "icc_broken",
        /// The ICC profile was ignored as asked.
        IccIgnored = "icc_ignored",
        /// PNG gAMA or cHRM without a profile: ignored, as Pillow and libvips do.
        GammaIgnored = "gamma_ignored",
        /// PNG cICP: not handled yet, the pixels are taken as sRGB.
        CicpIgnored = "cicp_ignored",
        /// Gray made RGB.
        Gray = "gray",
        /// Palette made RGB.
        Palette = "palette",
        /// Transparent pixels composited over the background.
        AlphaFlattened = "alpha_flattened",
        /// CMYK or YCCK made RGB.
        Cmyk = "cmyk",
        /// CMYK without an Adobe marker: whether it is inverted is a guess.
        CmykPolarity = "cmyk_polarity_unknown",
        /// More than 8 bits a channel, scaled to 8.
        DeepBits = "deep_bits",
        /// 16-bit values that all lie in the lowest sixteenth: probably 12-bit or less, stored unscaled.
        LowRange = "low_range_16bit",
        /// Floating point or signed values, mapped to 8 bits.
        FloatSamples = "float_samples",
        /// Several frames or pages; the first was taken. The detail is how many.
        Frames = "frames",
        /// Salvaged from a damaged file as asked; the detail is the fault.
        Salvaged = "salvaged",
        /// Metadata chunk too large to be honest; ignored.
        MetadataBomb = "metadata_bomb",
        /// The table's spelling and the disk's differ in Unicode form (NFC or NFD).
        UnicodeForm = "unicode_form",
        /// The table's spelling and the disk's differ in case.
        CaseDiffers = "case_differs",
        /// The table's spelling was found after trimming spaces.
        Trimmed = "trimmed",
        /// The table gives the name without its extension.
        ExtensionAdded = "extension_added",
        /// The table has more rows of this image that say the same; the detail is how many.
        DuplicateRows = "duplicate_rows",
        /// Rows of the table disagree about this image; the detail shows them.
        ConflictingRows = "conflicting_rows",
        /// The output was renamed to keep it apart from another; the detail is the twin.
        Renamed = "renamed",
        /// Copied losslessly without metadata: it was already what was asked for.
        Copied = "copied",
        /// The user gave it another label than the source has; the detail is the source's.
        Relabelled = "relabelled",
        /// The user is not sure of its label; the detail is what was noted.
        Doubtful = "doubtful",
    }
}

impl Oddity {
    /// Is it a decision of the user, which stays until another one replaces it?
    pub fn is_decision(self) -> bool {
        matches!(self, Self::Relabelled | Self::Doubtful)
    }
}

/// Something odd about a usable image.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Note {
    /// The kind.
    pub kind: Oddity,
    /// How much or which; may be empty.
    pub detail: String,
}

impl Note {
    /// A note without a detail.
    pub fn plain(kind: Oddity) -> Self {
        Self { kind, detail: String::new() }
    }

    /// A note with a detail.
    pub fn new(kind: Oddity, detail: impl fmt::Display) -> Self {
        Self { kind, detail: detail.to_string() }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.code())?;
        if !self.detail.is_empty() {
            // The separators of the manifest's `notes` column must not come from a detail.
            write!(f, "({})", self.detail.replace(';', ",").replace(['(', ')'], "'"))?;
        }
        Ok(())
    }
}

/// The `notes` column: codes with details, joined by `;`.
pub fn join_notes(notes: &[Note]) -> String {
    let mut out = String::new();
    for note in notes {
        if !out.is_empty() {
            out.push(';');
        }
        out.push_str(&note.to_string());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back() {
        for cause in [Cause::Truncated, Cause::Crash, Cause::OutsideRoot] {
            assert_eq!(Cause::parse(cause.code()), Some(cause));
        }
        let fault = Fault::new(Cause::NotAnImage, "HTML: starts with \"<html\"");
        assert_eq!(Fault::parse(&fault.to_string()), Some(fault));
        assert_eq!(Oddity::parse("frames"), Some(Oddity::Frames));
    }

    #[test]
    fn a_detail_cannot_forge_a_note() {
        let notes = [Note::new(Oddity::ExtMismatch, "png);copied(x"), Note::plain(Oddity::Gray)];
        assert_eq!(join_notes(&notes).split(';').count(), 2);
    }
}

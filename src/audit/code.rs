//! The codes of findings: stable, each with a severity, a title, and what `--explain` says.

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Costs accuracy or time if nobody looks.
    Warning,
    /// Stops a loader, or makes a result wrong.
    Error,
}

impl Severity {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A kind of finding.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// A letter for the family and three digits.
    pub id: &'static str,
    /// How bad.
    pub severity: Severity,
    /// A few words.
    pub title: &'static str,
    /// What it means and why it matters.
    pub meaning: &'static str,
    /// What to do.
    pub advice: &'static str,
}

impl Code {
    /// The code with this id.
    pub fn find(id: &str) -> Option<&'static Self> {
        CODES.iter().find(|code| code.id.eq_ignore_ascii_case(id))
    }

    /// Does one of `patterns` (`F`, `D00`, `D004`, in any case) name this code?
    pub fn is_named(&self, patterns: &[String]) -> bool {
        patterns
            .iter()
            .any(|p| self.id.get(..p.len()).is_some_and(|head| !p.is_empty() && head.eq_ignore_ascii_case(p)))
    }
}

const fn code(
    id: &'static str,
    severity: Severity,
    title: &'static str,
    meaning: &'static str,
    advice: &'static str,
) -> Code {
    Code { id, severity, title, meaning, advice }
}

use Severity::{Error as E, Info as I, Warning as W};

/// All codes, by id.
#[rustfmt::skip]
pub static CODES: &[Code] = &[
    code("D001", W, "same bytes",
        "Files that are equal byte for byte. A picture that is there twice weighs twice, and its copies can end on both sides of a split.",
        "Keep one: prep audit --exclude D001 takes the others out; or prep split --group-dups keeps them together."),
    code("D002", W, "same pixels",
        "Files that differ (metadata, compression without loss, another container) but decode to the same pixels.",
        "As for D001: prep audit --exclude D002, or prep split --group-dups."),
    code("D003", I, "near-duplicate",
        "The same shot in another size, quality, crop, exposure or orientation: perceptual hashes agree and the aligned thumbnails correlate.",
        "Look at them with prep audit --html; prep audit --exclude D003 keeps the largest of each set, prep split --group-dups keeps them together."),
    code("D004", E, "duplicates with different labels",
        "The same picture has two labels: one of them is wrong, and a model cannot learn both.",
        "Look at both and correct the label table; or take all of them out: prep audit --exclude D004."),
    code("D005", E, "duplicates in different splits",
        "The same picture is in training and in validation or test: the score is too good.",
        "Split again with prep split --group-dups, or take the copies out: prep audit --exclude D005."),
    code("D006", W, "near-duplicates in different splits",
        "A version of a training picture (resized, recompressed, cropped, turned) is in another split: the score is too good.",
        "Split again with prep split --group-dups."),
    code("D007", W, "near-duplicates with different labels",
        "Two versions of one shot have different labels. Perhaps one label is wrong; perhaps the pictures differ in just what the label is about.",
        "Look at them side by side: prep audit --html."),
    code("D008", I, "same scene",
        "Pictures that look like several shots of one scene or object. They are no copies, but they belong on one side of a split.",
        "Give them one group: prep split --group-dups=scene keeps them together, or add a group column."),
    code("D009", E, "also in the other set",
        "The same picture (bytes or pixels) is in the set named by --against.",
        "If that is a test set or a benchmark, take these out: prep audit --against OTHER --exclude D009."),
    code("D010", W, "near-duplicate in the other set",
        "A version of a picture of the set named by --against.",
        "As for D009, after looking at them."),
    code("D011", I, "likely the same shot",
        "Alike enough to be versions of one shot (a heavier edit, a larger crop) or two shots in the same second: not for deletion unseen.",
        "Look at them; prep split --group-dups keeps them together."),

    code("F001", E, "empty file",
        "The file has no bytes: a copy or a download that never finished.",
        "Copy it again, or leave it out: prep shrink does so and says so."),
    code("F002", E, "not an image",
        "The content is no picture: an HTML error page, a Git LFS pointer, an archive, zeros, text. Loaders stop on it, whatever its name is.",
        "The evidence shows what it starts with. Download it again, or leave it out."),
    code("F003", E, "truncated",
        "The file ends before its pixels do, or promises more pixels than it holds. Pillow raises, torchvision refuses, other decoders paint the rest gray.",
        "Copy it again from where it came; prep shrink leaves it out (--on-damage keep salvages what is there)."),
    code("F004", E, "does not decode",
        "It starts like a picture, but no pixels come out of it.",
        "Leave it out; prep shrink does so and says why."),
    code("F005", W, "extension and content differ",
        "The name says another format than the content. Most loaders go by content, some by name, some refuse.",
        "prep shrink writes copies whose names are right."),
    code("F006", E, "too large",
        "More pixels than --max-pixels, or more memory than --memory: a decompression bomb or a scan by mistake.",
        "Look at it; raise the limit if the picture is meant."),
    code("F007", I, "bytes around the picture",
        "Bytes before the start, between the segments or after the end: a second picture, a camera's preview, junk. The pixels are whole.",
        "Nothing for most loaders; prep shrink leaves them away."),
    code("F008", E, "unsupported format or kind",
        "A picture that prep recognises and does not read (HEIC, AVIF, RAW, 12-bit JPEG …). Most training loaders do not read it either.",
        "The evidence names it and a tool that converts it."),
    code("F009", E, "cannot be read",
        "No permission, an I/O error, a device or pipe, or a file that changes while it is read.",
        "Mend the permission or the disk, and run again."),
    code("F010", W, "name that tools stumble over",
        "Control characters, or bytes outside UTF-8 in the path: tables, shells and other systems spell it differently.",
        "Rename it; prep shrink writes copies with clean names."),
    code("F011", I, "GPU decoders fall back",
        "Progressive, CMYK or unusual JPEGs: hardware decoders (nvJPEG, DALI mixed) decode them slowly on the CPU or refuse.",
        "prep shrink writes baseline 8-bit JPEGs that every GPU decoder takes."),
    code("F012", E, "corrupt data",
        "Data contradict themselves: a wrong checksum, impossible codes, missing scans. Pixels are wrong, often without any error from the loader; one byte of this kind has crashed torchvision.",
        "Copy it again; prep shrink leaves it out (--on-damage keep salvages what is there)."),
    code("F013", W, "end marker missing",
        "All pixels are there, only the last two bytes are not. Pillow raises `image file is truncated`, OpenCV and libvips do not.",
        "prep shrink writes a clean copy."),
    code("F014", W, "gray rows at one side",
        "A run of rows or columns of exactly 128 gray: what a decoder leaves where data were missing, saved into the picture.",
        "Look at it; find the original, or leave it out: prep audit --exclude F014."),
    code("F015", W, "broken link",
        "A symbolic link to nothing or into itself.",
        "Remove it or mend it."),
    code("F016", I, "broken metadata",
        "EXIF data, a colour profile or parameters that cannot be read or break the standard. Pixels are whole; whether a loader turns or converts the picture is up to it.",
        "prep shrink writes copies without metadata, upright and sRGB."),

    code("L001", E, "row without a file",
        "The label table names a file that is not there. A loader stops when it comes to that row.",
        "Find the files or remove the rows; prep leaves them out and says so."),
    code("L002", W, "file without a row",
        "An image on disk that the label table does not name: it is not trained on.",
        "Add the rows, or remove the files."),
    code("L003", W, "repeated row",
        "The table names an image more than once with the same label: it weighs twice.",
        "Remove the repetitions; prep counts them once."),
    code("L004", E, "rows that disagree",
        "The table gives one image different labels.",
        "Decide which is right; prep takes the first and says so."),
    code("L005", W, "class written in two ways",
        "Class names that differ only in case, spaces or Unicode form: a loader makes two classes of them.",
        "Write them alike."),
    code("L006", W, "class without images",
        "A class folder with no image in it: ImageFolder stops on it, or every later class gets another index.",
        "Remove the folder."),
    code("L008", W, "no label",
        "A row or file whose class is empty, or an image beside the class folders.",
        "Label it or leave it out."),
    code("L010", W, "path spelled otherwise than on disk",
        "Backslashes, `./`, missing folders, other case, Unicode form or spaces: found here, missing on the next machine.",
        "Correct the table; prep's manifest has the spelling of the disk."),
    code("L011", E, "row without a path",
        "A row of the table that names no file.",
        "Remove it or add the path."),
    code("L012", E, "path outside the data set",
        "A path that leads out of the root.",
        "Correct it, or allow it with --allow-outside."),
    code("L013", E, "ambiguous name",
        "A row that names two or more files on disk (by case, Unicode form, or a name without its folder).",
        "Write the whole path."),
    code("L014", W, "empty cell",
        "A cell is empty in a column that is filled nearly everywhere, such as the group: an image without a group can leak.",
        "Fill it; prep split makes such an image a group of its own."),
    code("L015", W, "manifest or rules that are not as they were",
        "The manifest is not what its manifest.prep.json says, or a line of .prepignore is no rule.",
        "If you edited it, all is well: prep takes what is written."),
    code("L016", W, "class with very few images",
        "Fewer than 10 images: too few for training, validation and test together.",
        "Collect more, join the class with another, or leave it out."),
    code("L017", I, "classes out of balance",
        "The largest class has more than 10 times the images of the smallest.",
        "prep split --stratify keeps the shares in each split; prep weights gives class weights."),
    code("L018", I, "number far from the others",
        "Of labels that are measurements, one that lies further from the middle half of all than ten times its width: a code for `unknown`, another unit, a lost decimal point.",
        "Look at it; correct the table, or leave it out: prep audit --exclude L018."),

    code("M001", I, "gray", "Gray pictures among coloured ones: loaders give one channel, or three equal ones.",
        "prep shrink writes three channels; if gray goes with a class, it is a shortcut (X007)."),
    code("M002", I, "palette", "Palette pictures: loaders that do not convert give palette indices as if they were gray.",
        "prep shrink writes RGB."),
    code("M003", W, "transparency", "Pictures with an alpha channel: a fourth channel stops a loader, and hidden colours show where it is dropped.",
        "prep shrink composites over white (--alpha says otherwise)."),
    code("M004", W, "CMYK", "Ink instead of light: loaders give four channels, or inverted colours.",
        "prep shrink converts to sRGB."),
    code("M005", W, "more than 8 bits", "16-bit, float or signed samples: loaders clip them to white, drop the low bits, or stop.",
        "prep shrink scales them to 8 bits with rounding."),
    code("M006", W, "colour profile", "An embedded profile that is not sRGB: most loaders ignore it, and colours are off.",
        "prep shrink converts to sRGB."),
    code("M007", W, "EXIF orientation", "The picture is stored turned or mirrored: Pillow and torchvision show it as stored, OpenCV turns it.",
        "prep shrink turns it upright."),
    code("M008", W, "several frames or pages", "An animation, several pages, or an MPO with a second picture: loaders take the first, all, or stop.",
        "prep shrink takes the first."),

    code("Q001", I, "dark", "95 % of the pixels are darker than 64 of 255.", "Look at them: prep sheet --by finding."),
    code("Q002", I, "bright", "95 % of the pixels are brighter than 240 of 255.", "Look at them: prep sheet --by finding."),
    code("Q003", I, "blurry",
        "The variance of the Laplacian at 160 to 319 pixels is below 12 although there is contrast: nothing is sharp at training size.",
        "Look at them; a scene can be smooth by nature."),
    code("Q004", I, "little content", "The histogram of luma has less than 3 bits: nearly one tone.", "Look at them."),
    code("Q005", I, "odd shape", "More than 3 times as wide as high, or the reverse: a centre crop shows little of it.",
        "Look at them; panoramas and strips are seldom meant."),
    code("Q006", I, "odd size", "The short edge is below 64 pixels, or less than a fourth or more than 4 times the median.",
        "Small ones carry little detail; large ones cost time: prep shrink."),
    code("Q007", I, "border", "More than 15 % of the picture is a border of one tone (letterbox, frame, scan bed).",
        "Crop it; if borders go with a class, they are a shortcut (X005)."),

    code("S001", E, "group in two splits", "Images of one group (plant, patient, session) are in different splits: the score is too good.",
        "Split again: prep split --group-by COLUMN."),
    code("S002", E, "class missing in a split", "A class with enough images has none in some split: its score is not measured, or it is not learned; class indices can shift.",
        "Split again: prep split --stratify."),
    code("S003", W, "class share off", "The share of a class in a split differs from that of the split as a whole by more than 2 points.",
        "Split again: prep split --stratify."),

    code("X001", W, "size predicts the label", X, XA), code("X002", W, "aspect ratio predicts the label", X, XA),
    code("X003", W, "brightness predicts the label", X, XA), code("X004", W, "bytes a pixel predict the label", X, XA),
    code("X005", W, "borders predict the label", X, XA), code("X006", W, "the camera predicts the label", X, XA),
    code("X007", W, "format or mode predicts the label", X, XA), code("X008", W, "sharpness predicts the label", X, XA),
];

const X: &str = "Without looking at the content, this property alone tells the class better than chance: a network can learn it \
instead of the class, and fails on pictures from elsewhere. The evidence gives the accuracy of the best guess from this property \
(two-fold, on images it has not seen) and what guessing the largest class gives.";
const XA: &str = "Ask how the classes were photographed. Collect each class with each camera and setting; at least put such \
sources in one group (prep split --group-by) and measure on pictures from elsewhere.";

//! Findings about single images: files (F), modes (M) and quality (Q).

use super::finding::Finding;
use crate::decode::Samples;
use crate::facts::{Facts, Seen};
use crate::fault::{Cause, Fault, Note, Oddity};
use crate::names;

/// Thresholds of Q, as `--explain` names them.
const DARK: u8 = 64;
const BRIGHT: u8 = 240;
const BLUR: f32 = 12.0;
const FLAT_CONTRAST: f32 = 12.0;
const LITTLE_BITS: f32 = 3.0;
const LONG: f64 = 3.0;
const TINY_EDGE: u32 = 64;
const SIZE_FACTOR: u64 = 4;
const BORDER: f32 = 0.15;
/// F014.
const FILL: f32 = 0.03;

/// What the images of a set have in common, to tell the odd ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usual {
    /// Median of the short edges, in pixels; 0 for no images.
    pub short_edge: u32,
}

impl Usual {
    /// Of all usable images.
    pub fn of(facts: &[Facts]) -> Self {
        let mut edges: Vec<u32> = facts
            .iter()
            .filter(|f| f.fault.is_none())
            .filter_map(|f| f.size().map(|(w, h)| w.min(h)))
            .collect();
        let middle = edges.len() / 2;
        let short_edge = if edges.is_empty() { 0 } else { *edges.select_nth_unstable(middle).1 };
        Self { short_edge }
    }
}

/// Everything about image `at` alone.
pub fn of_image(at: usize, path: &str, facts: &Facts, usual: &Usual) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(fault) = &facts.fault {
        found.extend(of_fault(at, fault));
    }
    if names::is_escaped(path) {
        found.extend(Finding::image(
            "F010",
            at,
            "a control character, a byte outside UTF-8, or a % that looks like an escape",
        ));
    }
    found.extend(facts.notes.iter().filter_map(|note| of_note(at, note)));
    found.extend(of_header(at, facts));
    if let (Some(seen), None) = (&facts.seen, &facts.fault) {
        found.extend(of_pixels(at, facts, seen, usual));
    }
    // One finding a code: two notes can mean the same.
    let mut seen = Vec::new();
    found.retain(|f| {
        let new = !seen.contains(&f.code.id);
        seen.push(f.code.id);
        new
    });
    found
}

fn of_fault(at: usize, fault: &Fault) -> Option<Finding> {
    use Cause::*;
    let id = match fault.cause {
        Empty => "F001",
        NotAnImage => "F002",
        Truncated | ProgressiveIncomplete | SizeMismatch => "F003",
        Undecodable | TooManyScans | NoPixels | Panic | Crash | Timeout | Encode => "F004",
        TooLarge | TooLargeForMemory => "F006",
        UnsupportedFormat | UnsupportedKind => "F008",
        NotRegular | Permission | Io | Changed => "F009",
        EntropyDamage | ZeroQuantization | Checksum => "F012",
        DanglingLink | LinkLoop => "F015",
        // Told by the listing, or by the user.
        Missing | Ambiguous | OutsideRoot | Unlisted | Junk | Excluded => return None,
    };
    let detail =
        if fault.detail.is_empty() { fault.cause.code().replace('_', " ") } else { fault.detail.clone() };
    Finding::image(id, at, detail)
}

fn of_note(at: usize, note: &Note) -> Option<Finding> {
    use Oddity::*;
    let id = match note.kind {
        ExtMismatch => "F005",
        TrailingBytes | LeadingBytes | JunkBetweenSegments => "F007",
        MissingEnd => "F013",
        OddParameters | RestartOrder | ExifBroken | OrientationInvalid | IccBroken | GammaIgnored
        | CicpIgnored | MetadataBomb => "F016",
        MultiPicture | Frames => "M008",
        AlphaFlattened => "M003",
        Cmyk | CmykPolarity => "M004",
        DeepBits | LowRange | FloatSamples => "M005",
        IccConverted => "M006",
        Oriented => "M007",
        Palette => "M002",
        Gray => "M001",
        _ => return None,
    };
    let detail = match (note.kind, note.detail.as_str()) {
        (Oriented, turn) => format!("orientation {turn}"),
        (DeepBits, bits) => format!("{bits} bits"),
        (Frames, n) => format!("{n} frames"),
        (ExtMismatch | IccConverted, what) => what.to_owned(),
        (kind, "") => kind.code().replace('_', " "),
        (kind, told) => format!("{}: {told}", kind.code().replace('_', " ")),
    };
    Finding::image(id, at, detail)
}

fn of_header(at: usize, facts: &Facts) -> Vec<Finding> {
    let Some(header) = &facts.header else { return Vec::new() };
    let mut found = Vec::new();
    if let Some(jpeg) = &header.jpeg {
        let why = match () {
            () if header.mode.is_ink() => Some("CMYK"),
            () if jpeg.progressive => Some("progressive"),
            () if !jpeg.plain => Some("not a plain baseline JPEG"),
            () => None,
        };
        found.extend(why.and_then(|why| Finding::image("F011", at, why)));
    }
    if header.bits > 8 || header.samples != Samples::Unsigned {
        found.extend(Finding::image("M005", at, header.src_mode()));
    }
    found
}

fn of_pixels(at: usize, facts: &Facts, seen: &Seen, usual: &Usual) -> Vec<Finding> {
    let q = &seen.quality;
    let (width, height) = facts.size().unwrap_or_default();
    let (short, long) = (width.min(height), width.max(height));
    let aspect = f64::from(long) / f64::from(short.max(1));
    let mut found = Vec::new();
    let mut tell = |id: &str, holds: bool, detail: String| {
        found.extend(holds.then(|| Finding::image(id, at, detail)).flatten());
    };
    tell("F014", q.fill >= FILL, format!("{:.0} % of the picture at one side", q.fill * 100.0));
    tell("Q001", q.bright < DARK, format!("95 % of the pixels are at most {}", q.bright));
    tell("Q002", q.dark > BRIGHT, format!("95 % of the pixels are at least {}", q.dark));
    let blurry = q.sharpness < BLUR && q.contrast > FLAT_CONTRAST && short >= TINY_EDGE;
    tell("Q003", blurry, format!("Laplacian variance {:.1}", q.sharpness));
    tell("Q004", q.entropy < LITTLE_BITS, format!("{:.1} bits", q.entropy));
    tell("Q005", aspect > LONG, format!("{width}x{height}"));
    let median = usual.short_edge;
    let far = u64::from(short) * SIZE_FACTOR < u64::from(median)
        || u64::from(short) > u64::from(median) * SIZE_FACTOR;
    tell("Q006", short < TINY_EDGE || far, format!("{width}x{height}, median short edge {median}"));
    tell("Q007", q.border > BORDER, format!("{:.0} % of the picture", q.border * 100.0));
    found
}

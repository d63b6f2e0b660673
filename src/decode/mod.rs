//! Bytes to pixels. One face for every format and every job: [`open`] reads the header and refuses what must be
//! refused before memory is taken; [`Opened::pixels`] decodes, at a reduced scale where the format can.
//!
//! Nothing here knows of data sets, files or threads. What is missing in a picture is a [`Fault`]; what is only odd
//! is a [`Note`]. Both come back, never a message on stderr.
//!
//! A JPEG goes through the structure walker (`walk`), which knows what is in the file, and then through libjpeg-turbo
//! (`turbo`, or `zune` in the build without C), which knows whether the entropy-coded data hold together. A baseline
//! JPEG that is wanted at half its size or less is first tried by our own decoder (`baseline`), which takes clean files
//! only.

mod baseline;
mod complaint;
mod exif;
mod flatten;
mod gif;
mod header;
mod icc;
mod ico;
mod ifd;
mod jpeg;
mod mend;
mod plain;
mod planes;
mod png;
mod runs;
mod sniff;
mod tiff;
mod walk;

#[cfg(feature = "turbo")]
mod turbo;
#[cfg(not(feature = "turbo"))]
mod zune;

use std::path::Path;

use crate::fault::{Cause, Fault, Note, Oddity};
use crate::names::thousands;
use crate::pixels::{Orientation, Rgb8, Scale};

pub use header::{Alpha, Chroma, Contract, Format, Header, Icc, JpegKind, Limits, Mode, Samples, Shape};
pub use mend::strip_jpeg;
#[cfg(feature = "turbo")]
pub use turbo::Compressor;
#[cfg(not(feature = "turbo"))]
pub use zune::Compressor;

pub use icc::Transform;
pub use sniff::signature;

/// An image whose header is known and within the limits.
pub struct Opened<'a> {
    header: Header,
    notes: Vec<Note>,
    profile: Option<icc::Embedded>,
    body: Body<'a>,
}

/// What each family keeps between the header and the pixels.
enum Body<'a> {
    Jpeg(jpeg::Jpeg<'a>),
    Png(png::Png<'a>),
    Tiff(tiff::Tiff<'a>),
    Gif(gif::Gif),
    Plain(plain::Plain<'a>),
}

/// What a format module tells of a file before its pixels are decoded.
struct Found<'a> {
    header: Header,
    notes: Vec<Note>,
    /// The embedded profile as it stands in the file.
    profile: Option<Vec<u8>>,
    body: Body<'a>,
}

/// Pixels as a format module hands them over: already RGB over the background.
struct Raw {
    rgb: Rgb8,
    notes: Vec<Note>,
    damage: Option<Fault>,
}

/// How a format module must make its samples RGB.
struct Paint<'a> {
    /// What shows through transparent pixels; `None` drops the alpha channel.
    background: Option<[u8; 3]>,
    /// The way from CMYK to sRGB, where the file brings one.
    cmyk: Option<&'a Transform>,
}

/// A decoded picture, not yet upright sRGB: see [`crate::normal::upright_srgb`].
#[derive(Debug, Clone)]
pub struct Decoded {
    /// RGB over the background, as stored (not turned), at the scale that was asked for.
    pub rgb: Rgb8,
    /// Where the stored picture ends within `rgb`, in fractional pixels (`width * S / 8`): a reduced decode is
    /// rounded up to whole pixels, and a resize that ignores it shifts edges.
    pub true_size: (f64, f64),
    /// What is left to do.
    pub finish: Finish,
    /// What was odd, or was done.
    pub notes: Vec<Note>,
    /// Pixels are missing or wrong: the caller rejects, or keeps when told to salvage.
    pub damage: Option<Fault>,
}

/// What is left after decoding; cheaper on the resized picture.
#[derive(Debug, Clone, Default)]
pub struct Finish {
    /// The turn that makes the picture upright.
    pub orientation: Orientation,
    /// The way to sRGB, where the pixels are in another space.
    pub to_srgb: Option<Transform>,
}

/// A worker's scratch, reused from image to image.
#[derive(Default)]
pub struct Codec {
    baseline: baseline::Decoder,
    met: icc::Met,
    /// The memory of a picture that was given back.
    spare: Vec<u8>,
}

impl Codec {
    /// Takes back the memory of a picture that is no longer needed, for the next one; the caller bounds how much.
    pub fn give_back(&mut self, data: Vec<u8>) {
        self.spare = data;
    }

    /// Empty scratch; decoders are made when they are first needed.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Tells the format by content (the extension of `name` counts for TGA alone, and for the `ext_mismatch` note), reads
/// the header and applies the limits. Nothing of the size of the picture is allocated.
pub fn open<'a>(bytes: &'a [u8], name: &Path, limits: &Limits) -> Result<Opened<'a>, Fault> {
    let format = sniff::format(bytes, name)?;
    let found = match format {
        Format::Jpeg => jpeg::open(bytes, limits)?,
        Format::Png => png::open(bytes, limits)?,
        Format::Tiff => tiff::open(bytes, limits)?,
        Format::Gif => gif::open(bytes, limits)?,
        Format::Ico => ico::open(bytes, limits)?,
        _ => plain::open(bytes, format, limits)?,
    };
    let Found { mut header, mut notes, profile, body } = found;
    if let Some(said) = Format::from_extension(name).filter(|said| *said != format) {
        notes.insert(0, Note::new(Oddity::ExtMismatch, format!("{} named {}", format.name(), said.name())));
    }
    let profile = profile.map(|bytes| icc::Embedded::new(bytes, header.mode));
    header.icc = profile.as_ref().map(icc::Embedded::describe);
    Ok(Opened { header, notes, profile, body })
}

impl Opened<'_> {
    /// What the header says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What is odd as far as the header tells; [`Decoded::notes`] has these too.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Is there a profile whose samples are not sRGB? What a copy of the file without metadata must not lose.
    pub fn needs_profile(&self, codec: &mut Codec) -> bool {
        self.profile.as_ref().is_some_and(|profile| codec.met.transform(profile, &mut Vec::new()).is_some())
    }

    /// See [`strip_jpeg`]; `None` for everything but a plain JPEG.
    pub fn stripped(&self) -> Option<Vec<u8>> {
        match &self.body {
            Body::Jpeg(jpeg) => jpeg.stripped(),
            _ => None,
        }
    }

    /// The cheapest scale at which the part `part` (stored pixels) still has `gap` times the pixels of `to` along both
    /// sides: what a resampling filter needs to work as on the whole picture.
    pub fn scale_for(&self, part: (u32, u32), to: (u32, u32), gap: f64) -> Scale {
        match &self.body {
            Body::Jpeg(jpeg) => Scale::smallest_for(jpeg.fast_scales(), part, to, gap),
            _ => Scale::FULL,
        }
    }

    /// Bytes that [`pixels`](Self::pixels) holds at its peak beside the file itself, the result included.
    pub fn need_bytes(&self, scale: Scale) -> u64 {
        match &self.body {
            Body::Jpeg(jpeg) => jpeg.need_bytes(scale),
            Body::Png(png) => png.need_bytes(),
            Body::Tiff(tiff) => tiff.need_bytes(),
            Body::Gif(gif) => gif.need_bytes(),
            Body::Plain(plain) => plain.need_bytes(),
        }
    }

    /// Decodes at `scale`; only JPEG decodes reduced, other formats come whole. Gray, palette, 16 bit, CMYK and alpha
    /// are RGB over the background afterwards; ICC and orientation are left to [`crate::normal::upright_srgb`].
    ///
    /// # Errors
    /// The file does not decode at all. A picture with missing or wrong pixels is `Ok` with
    /// [`damage`](Decoded::damage).
    pub fn pixels(&self, scale: Scale, contract: &Contract, codec: &mut Codec) -> Result<Decoded, Fault> {
        let mut notes = self.notes.clone();
        let to_srgb = match (&self.profile, contract.icc) {
            (None, _) => None,
            (Some(profile), Icc::ToSrgb) => codec.met.transform(profile, &mut notes),
            (Some(profile), Icc::Ignore) => {
                notes.push(Note::new(Oddity::IccIgnored, profile.describe()));
                None
            }
        };
        let orientation = if contract.orient { self.header.orientation } else { Orientation::Upright };
        if orientation != Orientation::Upright {
            notes.push(Note::new(Oddity::Oriented, orientation as u8));
        }
        // Ink is made light while decoding; everything else meets its profile on the resized picture.
        let ink = self.header.mode.is_ink();
        let paint = Paint { background: contract.alpha.background(), cmyk: to_srgb.as_ref().filter(|_| ink) };
        let raw = match &self.body {
            Body::Jpeg(jpeg) => jpeg.pixels(scale, &paint, codec)?,
            Body::Png(png) => png.pixels(&paint)?,
            Body::Tiff(tiff) => tiff.pixels(&paint)?,
            Body::Gif(gif) => gif.pixels(&paint)?,
            Body::Plain(plain) => plain.pixels(&paint)?,
        };
        let scale = if matches!(self.body, Body::Jpeg(_)) && raw.rgb.width != self.header.width {
            scale
        } else {
            Scale::FULL
        };
        let share = f64::from(scale.numerator()) / 8.0;
        let true_size = (f64::from(self.header.width) * share, f64::from(self.header.height) * share);
        notes.extend(raw.notes);
        let finish = Finish { orientation, to_srgb: to_srgb.filter(|_| !ink) };
        Ok(Decoded { rgb: raw.rgb, true_size, finish, notes, damage: raw.damage })
    }
}

/// Refuses sizes outside the limits before anything of that size is allocated.
fn check_size(width: u32, height: u32, limits: &Limits) -> Result<(), Fault> {
    if width == 0 || height == 0 {
        return Err(Fault::new(Cause::NoPixels, format!("{width}x{height} pixels")));
    }
    let pixels = u64::from(width) * u64::from(height);
    if pixels > limits.max_pixels {
        let detail = format!(
            "{width}x{height} is {} pixels, the limit is {}; --max-pixels raises it",
            thousands(pixels),
            thousands(limits.max_pixels)
        );
        return Err(Fault::new(Cause::TooLarge, detail));
    }
    Ok(())
}

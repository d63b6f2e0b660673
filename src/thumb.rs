//! One image as a small upright sRGB picture, decoded at the smallest scale that serves: for sheets and reports.

use crate::decode::{Codec, Format};
use crate::engine::crew::Item;
use crate::engine::pipe::{Pipe, Read, Scratch};
use crate::entry::Entry;
use crate::fault::{Cause, Fault};
use crate::normal;
use crate::pixels::Rgb8;
use crate::resize::{Filter, Resizer, Window};

/// Decoded pixels a side for each pixel of the thumbnail, at least: the eye sees no difference to more.
const GAP: f64 = 1.5;

/// What a worker keeps from thumbnail to thumbnail.
#[derive(Default)]
pub struct Bench {
    scratch: Scratch,
    resizer: Resizer,
}

/// A picture as it may be shown.
#[derive(Debug, Clone)]
pub struct Look {
    /// Small, upright, sRGB.
    pub picture: Rgb8,
    /// Upright width and height of the whole, px.
    pub full: (u32, u32),
    /// What the content is.
    pub format: Format,
    /// What is missing or wrong in it, where `pipe` tells ([`crate::engine::pipe::Damage::Tell`]).
    pub damage: Option<Fault>,
}

/// As [`of`], with what else was seen on the way.
///
/// # Errors
/// What is wrong with the image.
pub fn look(
    pipe: &Pipe,
    entry: &Entry,
    item: &Item<'_>,
    most: (u32, u32),
    bench: &mut Bench,
) -> Result<Look, Fault> {
    let Bench { scratch, resizer } = bench;
    pipe.read(entry, item, scratch, |read, codec| small(pipe, read, item, most, codec, resizer))
}

/// The picture of `entry` as large as it fits into `most` (width, height) upright, never enlarged; with the upright
/// size of the whole.
///
/// # Errors
/// What is wrong with the image.
pub fn of(
    pipe: &Pipe,
    entry: &Entry,
    item: &Item<'_>,
    most: (u32, u32),
    bench: &mut Bench,
) -> Result<(Rgb8, (u32, u32)), Fault> {
    look(pipe, entry, item, most, bench).map(|look| (look.picture, look.full))
}

fn small(
    pipe: &Pipe,
    read: &Read<'_>,
    item: &Item<'_>,
    most: (u32, u32),
    codec: &mut Codec,
    resizer: &mut Resizer,
) -> Result<Look, Fault> {
    let header = read.header();
    let full = header.upright_size();
    let to = fitted(full, most);
    let turned = |(w, h): (u32, u32)| if header.orientation.swaps() { (h, w) } else { (w, h) };
    let scale = read.scale_for(header.size(), turned(to), GAP);
    let extra =
        Resizer::need_bytes(scale.of(header.height), turned(to)) + 6 * u64::from(to.0) * u64::from(to.1);
    let mut held = pipe.pixels(read, scale, extra, item, codec)?;
    let (width, height) = held.decoded.true_size;
    let window = Window { left: 0.0, top: 0.0, width, height };
    // Resized as it is stored, turned and converted when it is small.
    let small = resizer
        .resize(&held.decoded.rgb, window, turned(to), Filter::Bilinear)
        .map_err(|why| Fault::new(Cause::Encode, why))?;
    let damage = held.decoded.damage.take();
    let picture = normal::upright_srgb(small, &held.decoded.finish);
    Ok(Look { picture, full, format: header.format, damage })
}

/// The largest size of this aspect ratio within `most`, at most `full`, each side at least 1.
pub fn fitted(full: (u32, u32), most: (u32, u32)) -> (u32, u32) {
    let (w, h) = (f64::from(full.0.max(1)), f64::from(full.1.max(1)));
    let factor = (f64::from(most.0) / w).min(f64::from(most.1) / h).min(1.0);
    let side = |v: f64, most: u32| ((v * factor).round() as u32).clamp(1, most.max(1));
    (side(w, most.0), side(h, most.1))
}

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn thumbnails_fit_and_are_never_enlarged() {
        assert_eq!(fitted((4000, 3000), (256, 256)), (256, 192));
        assert_eq!(fitted((100, 50), (256, 256)), (100, 50));
        assert_eq!(fitted((10_000, 1), (96, 96)), (96, 1));
    }
}

//! `prep_decode`: the decoder of prep as a Python module. One function: a list of JPEGs (or any format that prep reads)
//! into one uint8 batch, at the smallest scale that serves, without the GIL while it works.
#![allow(missing_docs)] // pyo3's macros make public items of their own.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use imgprep::decode::{self, Codec, Contract, Limits};
use imgprep::normal;
use imgprep::resize::{Filter, Resizer, Window};
use imgprep::stats::View;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// A reduced decode must leave the filter this many pixels for one along each side: Pillow's `reducing_gap`, and
/// what `prep stats` and `prep shrink` use.
const GAP: f64 = 2.0;

thread_local! {
    /// Decoders and buffers stay with the thread from batch to batch.
    static SCRATCH: RefCell<(Codec, Resizer)> = RefCell::default();
}

/// left, top, right, bottom in pixels of the upright picture; fractions allowed.
type Box4 = (f64, f64, f64, f64);

/// What to cut out of a picture.
#[derive(Clone, Copy)]
enum Cut {
    Box(Box4),
    /// torchvision's `Resize(short)` and `CenterCrop`.
    Centre(u32),
}

/// Decodes `images` into `out`.
///
/// images: list of N bytes objects. out: writable C-contiguous uint8 array of shape (N, H, W, 3), RGB.
/// boxes: N tuples (left, top, right, bottom) in pixels of the upright picture, each is resampled to H x W;
/// or short_edge: the shorter side is resized to so many pixels and the middle H x W is cut out; neither: the whole
/// picture is resampled to H x W. filter: "bilinear" (default), "bicubic", "lanczos", "area", all with antialiasing.
///
/// Raises ValueError that names the position in the list and what is wrong with that image; `out` is then undefined.
#[pyfunction]
#[pyo3(signature = (images, out, boxes=None, short_edge=None, filter="bilinear"))]
fn decode_batch(
    py: Python<'_>,
    images: Vec<PyBackedBytes>,
    out: PyBuffer<u8>,
    boxes: Option<Vec<Box4>>,
    short_edge: Option<u32>,
    filter: &str,
) -> PyResult<()> {
    let (height, width) = check_shape(&out, images.len())?;
    let filter = parse_filter(filter)?;
    if boxes.as_ref().is_some_and(|b| b.len() != images.len() || short_edge.is_some()) {
        return Err(PyValueError::new_err("give one box for each image and no short_edge, or no boxes"));
    }
    if short_edge.is_some_and(|short| short < height.max(width)) {
        return Err(PyValueError::new_err("short_edge must be at least the height and the width of out"));
    }
    let pixels = py.detach(|| {
        let mut pixels = Vec::with_capacity(images.len() * height as usize * width as usize * 3);
        for (i, image) in images.iter().enumerate() {
            let cut = match (&boxes, short_edge) {
                (Some(boxes), _) => Some(Cut::Box(boxes[i])),
                (None, Some(short)) => Some(Cut::Centre(short)),
                (None, None) => None,
            };
            pixels.extend(guarded(image, cut, (width, height), filter).map_err(|why| (i, why))?);
        }
        Ok(pixels)
    });
    let pixels = pixels.map_err(|(i, why): (usize, String)| {
        PyValueError::new_err(format!("image {i} of the batch: {why}"))
    })?;
    // Copied under the GIL: a buffer of Python's may be seen by others, so that no `&mut` of it can be held without.
    out.copy_from_slice(py, &pixels)
}

/// The height and width of a batch of `n` pictures.
fn check_shape(out: &PyBuffer<u8>, n: usize) -> PyResult<(u32, u32)> {
    let side = |v: usize| u32::try_from(v).ok().filter(|v| (1..=1 << 16).contains(v));
    match *out.shape() {
        [count, h, w, 3] if count == n && !out.readonly() && out.is_c_contiguous() => side(h).zip(side(w)),
        _ => None,
    }
    .ok_or_else(|| {
        PyValueError::new_err(format!(
            "out must be a writable C-contiguous uint8 array of shape ({n}, H, W, 3), not {:?}",
            out.shape()
        ))
    })
}

fn parse_filter(name: &str) -> PyResult<Filter> {
    [Filter::Bilinear, Filter::Bicubic, Filter::Lanczos, Filter::Area]
        .into_iter()
        .find(|f| f.as_str() == name)
        .ok_or_else(|| {
            PyValueError::new_err(format!("filter must be bilinear, bicubic, lanczos or area, not {name:?}"))
        })
}

/// A panic in a decoder becomes the error of that image, and the scratch that it left behind is thrown away.
fn guarded(image: &[u8], cut: Option<Cut>, to: (u32, u32), filter: Filter) -> Result<Vec<u8>, String> {
    SCRATCH.with_borrow_mut(|scratch| {
        catch_unwind(AssertUnwindSafe(|| one(image, cut, to, filter, scratch))).unwrap_or_else(|_| {
            *scratch = Default::default();
            Err("the decoder panicked on it".into())
        })
    })
}

/// One image at size `to` (width, height): `to.0 * to.1 * 3` bytes.
fn one(
    image: &[u8],
    cut: Option<Cut>,
    to: (u32, u32),
    filter: Filter,
    (codec, resizer): &mut (Codec, Resizer),
) -> Result<Vec<u8>, String> {
    let opened = decode::open(image, Path::new(""), &Limits::default()).map_err(|fault| fault.to_string())?;
    let header = opened.header();
    let size = header.upright_size();
    let (left, top, right, bottom) = check_box(box_of(cut, size, to), size)?;
    let swap = |(w, h): (u32, u32)| if header.orientation.swaps() { (h, w) } else { (w, h) };
    let part = ((right - left).floor().max(1.0) as u32, (bottom - top).floor().max(1.0) as u32);
    let scale = opened.scale_for(swap(part), swap(to), GAP);
    let decoded = opened.pixels(scale, &Contract::default(), codec).map_err(|fault| fault.to_string())?;
    if let Some(damage) = &decoded.damage {
        return Err(damage.to_string());
    }
    let (w, h) = decoded.true_size;
    let reduced = if header.orientation.swaps() { (h, w) } else { (w, h) };
    let picture = normal::upright_srgb(decoded.rgb, &decoded.finish);
    let (sx, sy) = (reduced.0 / f64::from(size.0), reduced.1 / f64::from(size.1));
    let window =
        Window { left: left * sx, top: top * sy, width: (right - left) * sx, height: (bottom - top) * sy };
    Ok(resizer.resize(&picture, window, to, filter)?.data)
}

/// The part of a picture of `size` that becomes the output of size `to`. Resampling the part alone gives the pixels
/// of resampling all and cutting, since the filter looks beyond the edges of its window.
fn box_of(cut: Option<Cut>, size: (u32, u32), to: (u32, u32)) -> Box4 {
    let (w, h) = (f64::from(size.0), f64::from(size.1));
    match cut {
        None => (0.0, 0.0, w, h),
        Some(Cut::Box(given)) => given,
        Some(Cut::Centre(short)) => {
            let all = View { short, crop: None, filter: Filter::Bilinear }.resized(size);
            // Halves to even, as Python's `round` in torchvision's `center_crop`.
            let half = |rest: u32| f64::from(if rest % 4 == 3 { rest / 2 + 1 } else { rest / 2 });
            let (left, top) = (half(all.0 - to.0), half(all.1 - to.1));
            let (sx, sy) = (w / f64::from(all.0), h / f64::from(all.1));
            (left * sx, top * sy, (left + f64::from(to.0)) * sx, (top + f64::from(to.1)) * sy)
        }
    }
}

fn check_box(given: Box4, size: (u32, u32)) -> Result<Box4, String> {
    let (left, top, right, bottom) = given;
    let (w, h) = (f64::from(size.0), f64::from(size.1));
    // A box that was computed in floating point may end a hair outside.
    let (right, bottom) = (
        if right < w + 1e-6 { right.min(w) } else { right },
        if bottom < h + 1e-6 { bottom.min(h) } else { bottom },
    );
    if left >= 0.0 && top >= 0.0 && left < right && top < bottom && right <= w && bottom <= h {
        Ok((left, top, right, bottom))
    } else {
        Err(format!("the box {given:?} does not lie in the picture of {}x{} pixels", size.0, size.1))
    }
}

#[pymodule]
fn prep_decode(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(decode_batch, module)?)
}

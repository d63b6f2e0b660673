//! libjpeg-turbo through its TurboJPEG 3 interface: the only room with unsafe code.
//!
//! The library catches its own errors (setjmp inside C), so no jump ever crosses a Rust frame. Its message buffer is
//! thread-local and is read right after the call that filled it.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_uchar, c_void};
use std::ptr::{self, NonNull};

use turbojpeg_sys as sys;

use super::complaint::{Complaint, Pixels, Want};
use super::walk::MOST_SCANS;
use super::{Chroma, Shape};
use crate::pixels::{Rgb8, Scale};

/// A TurboJPEG instance: not shared, but free to move between threads.
struct Handle(NonNull<c_void>);

// SAFETY: an instance holds no thread-local state of its own; only the message buffer is thread-local, and it is read
// on the thread of the call, before anything else. `Handle` is neither Sync nor Clone.
unsafe impl Send for Handle {}

impl Handle {
    fn new(kind: sys::TJINIT) -> Result<Self, String> {
        // SAFETY: takes a number, returns an instance or null; anything but a known number gives null.
        let raw = unsafe { sys::tj3Init(kind as c_int) };
        NonNull::new(raw).map(Self).ok_or_else(|| "libjpeg-turbo cannot start (no memory)".to_owned())
    }

    fn set(&self, parameter: sys::TJPARAM, value: i32) -> Result<(), String> {
        // SAFETY: the instance is alive while `self` is; unknown parameters and values are refused by the library.
        let code = unsafe { sys::tj3Set(self.0.as_ptr(), parameter as c_int, value) };
        if code == 0 { Ok(()) } else { Err(self.message()) }
    }

    fn get(&self, parameter: sys::TJPARAM) -> i32 {
        // SAFETY: as in `set`.
        unsafe { sys::tj3Get(self.0.as_ptr(), parameter as c_int) }
    }

    /// What the last call on this instance and thread complained about.
    fn message(&self) -> String {
        // SAFETY: returns a NUL-terminated string that lives at least until the next call on this thread.
        let text = unsafe { CStr::from_ptr(sys::tj3GetErrorStr(self.0.as_ptr())) };
        text.to_string_lossy().into_owned()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by tj3Init, destroyed once.
        unsafe { sys::tj3Destroy(self.0.as_ptr()) }
    }
}

/// Decodes `jpeg`, whose header says `size`, at `scale`, into the memory of `spare`.
///
/// Every file gets an instance of its own, which costs microseconds. A kept one would carry the tables of one picture
/// into the next, where a file that lacks its own would be decoded with its neighbour's: other pixels on other threads.
///
/// # Errors
/// The header is refused, or says another size than the caller saw.
pub(super) fn decode(
    jpeg: &[u8],
    size: (u32, u32),
    scale: Scale,
    want: Want,
    spare: &mut Vec<u8>,
) -> Result<Pixels, String> {
    let handle = Handle::new(sys::TJINIT_TJINIT_DECOMPRESS)?;
    handle.set(sys::TJPARAM_TJPARAM_SCANLIMIT, MOST_SCANS as i32)?;
    // Profiles and other markers are read by the walker.
    handle.set(sys::TJPARAM_TJPARAM_SAVEMARKERS, 0)?;
    decode_with(&handle, jpeg, size, scale, want, spare)
}

fn decode_with(
    handle: &Handle,
    jpeg: &[u8],
    size: (u32, u32),
    scale: Scale,
    want: Want,
    spare: &mut Vec<u8>,
) -> Result<Pixels, String> {
    let (width, height) = scaled_header(handle, jpeg, size, scale)?;
    let (channels, format) = match want {
        Want::Rgb => (3, sys::TJPF_TJPF_RGB),
        Want::Cmyk => (4, sys::TJPF_TJPF_CMYK),
    };
    let pitch = width as usize * channels;
    let pitch_c = c_int::try_from(pitch).map_err(|_| "rows too long".to_owned())?;
    // A buffer that was given back spares the system the pages of a new one.
    let mut data = std::mem::take(spare);
    let stale = !data.is_empty();
    data.resize(pitch * height as usize, 0);
    let fill = |data: &mut Vec<u8>| {
        // SAFETY: `jpeg` is alive and readable for its length. The library writes `height` rows of `pitch` bytes; both
        // come from its own reading of the header of these same bytes at this same scale (`scaled_header`), and
        // `data` has exactly that many bytes.
        let code = unsafe {
            let (jpeg, bytes) = (jpeg.as_ptr(), jpeg.len() as _);
            let out = data.as_mut_ptr().cast::<c_uchar>();
            sys::tj3Decompress8(handle.0.as_ptr(), jpeg, bytes, out, pitch_c, format as c_int)
        };
        (code != 0).then(|| understood(&handle.message()))
    };
    let mut complaint = fill(&mut data);
    if stale && matches!(complaint, Some(Complaint::Fatal(_))) {
        // Rows that the library did not come to still show the picture before.
        data.fill(0);
        complaint = fill(&mut data);
    }
    Ok(Pixels { width, height, data, complaint })
}

/// A message of libjpeg-turbo. What it calls a warning is known by its words: after a warning and then a fatal error
/// its error code still says "warning".
fn understood(text: &str) -> Complaint {
    let text = text.trim();
    let text = text.split_once("(): ").map_or(text, |(_, rest)| rest);
    if let Some((head, tail)) = text.split_once(" extraneous bytes") {
        let bytes = head.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
        return Complaint::LeftOver { bytes, last: tail.ends_with("0xd9") };
    }
    let known = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if known(&["premature end of data segment", "Premature end of JPEG file"]) {
        Complaint::EndsEarly
    } else if known(&["instead of RST"]) {
        Complaint::Restarts
    } else if known(&["bad Huffman code", "bad arithmetic code"]) {
        Complaint::ImpossibleCode
    } else if known(&["Inconsistent progression"]) {
        Complaint::Refinement
    } else if known(&["Unknown Adobe", "unknown JFIF", "Invalid SOS parameters"]) {
        Complaint::Harmless(text.to_owned())
    } else {
        Complaint::Fatal(format!("libjpeg-turbo: {text}"))
    }
}

/// Sets the scale and returns the size that the library will decode to.
fn scaled_header(handle: &Handle, jpeg: &[u8], size: (u32, u32), scale: Scale) -> Result<(u32, u32), String> {
    // SAFETY: `jpeg` is alive and readable for its length; the call only reads it.
    let code = unsafe { sys::tj3DecompressHeader(handle.0.as_ptr(), jpeg.as_ptr(), jpeg.len() as _) };
    let said = (handle.get(sys::TJPARAM_TJPARAM_JPEGWIDTH), handle.get(sys::TJPARAM_TJPARAM_JPEGHEIGHT));
    // SAFETY: as `set`.
    let warning = unsafe { sys::tj3GetErrorCode(handle.0.as_ptr()) } == sys::TJERR_TJERR_WARNING as c_int;
    if code != 0 && !warning {
        return Err(handle.message());
    }
    if (u32::try_from(said.0), u32::try_from(said.1)) != (Ok(size.0), Ok(size.1)) {
        let message = if code == 0 { String::new() } else { format!(": {}", handle.message()) };
        return Err(format!("the header says {}x{} to libjpeg-turbo{message}", said.0, said.1));
    }
    let mut fraction = (scale.numerator() as c_int, 8);
    while fraction.0 % 2 == 0 {
        fraction = (fraction.0 / 2, fraction.1 / 2);
    }
    let factor = sys::tjscalingfactor { num: fraction.0, denom: fraction.1 };
    // SAFETY: takes a plain pair by value; pairs that are not in its list are refused.
    if unsafe { sys::tj3SetScalingFactor(handle.0.as_ptr(), factor) } != 0 {
        return Err(handle.message());
    }
    Ok((scale.of(size.0), scale.of(size.1)))
}

/// Writes JPEGs: islow DCT, standard Huffman tables (optimised ones cost twice the time for 2 % of the bytes).
#[derive(Default)]
pub struct Compressor {
    handle: Option<Handle>,
}

impl Compressor {
    /// Without an instance yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes `rgb` to `out`, which is emptied first. `quality` is 1 to 100.
    ///
    /// # Errors
    /// What libjpeg-turbo says: sides above 65,500 pixels, no memory.
    pub fn compress(
        &mut self,
        rgb: &Rgb8,
        quality: u8,
        chroma: Chroma,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let shape = Shape { quality, chroma, progressive: false, restart_rows: 0, arithmetic: false };
        self.compress_as(rgb, shape, out)
    }

    /// Writes `rgb` in any shape that libjpeg-turbo knows.
    ///
    /// # Errors
    /// As [`compress`](Self::compress).
    pub fn compress_as(&mut self, rgb: &Rgb8, shape: Shape, out: &mut Vec<u8>) -> Result<(), String> {
        if self.handle.is_none() {
            let handle = Handle::new(sys::TJINIT_TJINIT_COMPRESS)?;
            handle.set(sys::TJPARAM_TJPARAM_NOREALLOC, 1)?;
            self.handle = Some(handle);
        }
        let Some(handle) = &self.handle else { return Err("libjpeg-turbo cannot start".to_owned()) };
        let subsampling = match shape.chroma {
            Chroma::Yuv444 => sys::TJSAMP_TJSAMP_444,
            Chroma::Yuv422 => sys::TJSAMP_TJSAMP_422,
            Chroma::Yuv420 => sys::TJSAMP_TJSAMP_420,
            Chroma::Yuv440 => sys::TJSAMP_TJSAMP_440,
            Chroma::Yuv411 => sys::TJSAMP_TJSAMP_411,
            Chroma::Gray => sys::TJSAMP_TJSAMP_GRAY,
            Chroma::Other => return Err("no such chroma sampling".to_owned()),
        };
        handle.set(sys::TJPARAM_TJPARAM_SUBSAMP, subsampling)?;
        handle.set(sys::TJPARAM_TJPARAM_QUALITY, i32::from(shape.quality.clamp(1, 100)))?;
        handle.set(sys::TJPARAM_TJPARAM_PROGRESSIVE, i32::from(shape.progressive))?;
        handle.set(sys::TJPARAM_TJPARAM_ARITHMETIC, i32::from(shape.arithmetic))?;
        handle.set(sys::TJPARAM_TJPARAM_RESTARTROWS, i32::from(shape.restart_rows))?;
        let side =
            |side: u32| c_int::try_from(side).map_err(|_| format!("{side} pixels are too many for a JPEG"));
        let (width, height) = (side(rgb.width)?, side(rgb.height)?);
        if rgb.data.len() as u64 != u64::from(rgb.width) * u64::from(rgb.height) * 3 {
            return Err("the picture has not the bytes that its size asks for".to_owned());
        }
        // SAFETY: a pure function of three numbers; 0 for sizes that cannot be.
        let most = unsafe { sys::tj3JPEGBufSize(width, height, subsampling) } as usize;
        out.clear();
        out.reserve(most);
        let mut target: *mut c_uchar = out.as_mut_ptr();
        let mut size = most as _;
        // SAFETY: reads `height` rows of `width * 3` bytes, which `rgb.data` has (checked above). With NOREALLOC the
        // library writes at most `size` bytes to `target`, which `reserve` has made room for, and never frees it.
        let code = unsafe {
            let from = rgb.data.as_ptr();
            let format = sys::TJPF_TJPF_RGB as c_int;
            sys::tj3Compress8(
                handle.0.as_ptr(),
                from,
                width,
                0,
                height,
                format,
                ptr::from_mut(&mut target),
                &raw mut size,
            )
        };
        if code != 0 {
            return Err(handle.message());
        }
        // SAFETY: the library has written `size <= most <= capacity` bytes at the start of `out`.
        unsafe { out.set_len((size as usize).min(most)) };
        Ok(())
    }
}

//! Which format the content shows, and a clear word on everything that is no picture we read.

use std::path::Path;

use super::Format;
use super::ifd::Tags;
use crate::fault::{Cause, Fault};

/// The format of `bytes`. `name` decides for TGA alone, which has no signature.
///
/// # Errors
/// `empty`, `not_an_image` with what it is or its first bytes, `unsupported` with the format's name and advice.
pub(super) fn format(bytes: &[u8], name: &Path) -> Result<Format, Fault> {
    if bytes.is_empty() {
        return Err(Fault::new(Cause::Empty, "the file has no bytes"));
    }
    if let Some(format) = signature(bytes) {
        return Ok(format);
    }
    if Format::from_extension(name) == Some(Format::Tga) && plausible_tga(bytes) {
        return Ok(Format::Tga);
    }
    if let Some((what, advice)) = unread_picture(bytes) {
        return Err(Fault::new(Cause::UnsupportedFormat, format!("{what}; {advice}")));
    }
    Err(Fault::new(Cause::NotAnImage, no_picture(bytes)))
}

/// The format whose signature `b` (a whole file, or its first 64 bytes) begins with.
pub fn signature(b: &[u8]) -> Option<Format> {
    let riff_webp = b.starts_with(b"RIFF") && b.get(8..12) == Some(b"WEBP");
    let format = match b {
        [0xff, 0xd8, 0xff, ..] | [0xff, 0xd8] => Format::Jpeg,
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Format::Png,
        _ if riff_webp => Format::WebP,
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] if raw_photo(b).is_none() => Format::Tiff,
        [b'B', b'M', ..] if plausible_bmp(b) => Format::Bmp,
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Format::Gif,
        [b'P', b'1'..=b'7', space, ..] if space.is_ascii_whitespace() || *space == b'#' => Format::Pnm,
        [b'q', b'o', b'i', b'f', ..] => Format::Qoi,
        [0, 0, 1 | 2, 0, count, high, ..] if (*count, *high) != (0, 0) && plausible_ico(b) => Format::Ico,
        _ if jpeg_after_text(b).is_some() => Format::Jpeg,
        _ => return None,
    };
    Some(format)
}

/// Where a JPEG starts that a text tool put a byte order mark, blanks or line breaks before.
pub(super) fn jpeg_after_text(b: &[u8]) -> Option<usize> {
    let start = b.iter().take(64).position(|c| *c == 0xff).filter(|at| *at > 0)?;
    // UTF-16 and UTF-8 marks contain bytes that are no blanks.
    let (start, lead) = match b {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            (2 + b[2..].iter().take(62).position(|c| *c == 0xff)?, &b[2..2])
        }
        [0xef, 0xbb, 0xbf, ..] => (start, &b[3..start.max(3)]),
        _ => (start, &b[..start]),
    };
    let blank = lead.iter().all(|c| c.is_ascii_whitespace() || *c == 0);
    (blank && b[start..].starts_with(&[0xff, 0xd8, 0xff])).then_some(start)
}

/// A BMP header of a known size, so that text which starts with "BM" is not taken for a picture.
fn plausible_bmp(b: &[u8]) -> bool {
    match b.get(14..18) {
        Some(&[a, b, c, d]) => {
            matches!(u32::from_le_bytes([a, b, c, d]), 12 | 16 | 40 | 52 | 56 | 64 | 108 | 124)
        }
        _ => false,
    }
}

/// The first directory entry of an icon: a reserved zero byte (some write 255) and an offset behind the directory.
fn plausible_ico(b: &[u8]) -> bool {
    match b.get(6..22) {
        Some(entry) => {
            let offset = u32::from_le_bytes([entry[12], entry[13], entry[14], entry[15]]);
            matches!(entry[3], 0 | 255) && offset >= 22
        }
        None => false,
    }
}

/// Does this look like a TGA header? Image types 1-3 and 9-11, sane depths.
pub(super) fn plausible_tga(b: &[u8]) -> bool {
    match b.get(..18) {
        Some(h) => {
            matches!(h[2], 1..=3 | 9..=11)
                && h[1] <= 1
                && matches!(h[16], 8 | 15 | 16 | 24 | 32)
                && (h[1] == 0 || matches!(h[7], 15 | 16 | 24 | 32))
        }
        None => false,
    }
}

/// Camera raw files that look like TIFF to the first bytes.
fn raw_photo(b: &[u8]) -> Option<&'static str> {
    match b {
        _ if b.get(8..10) == Some(b"CR") => Some("Canon raw (CR2)"),
        _ if b.starts_with(b"II\x55\0") => Some("Panasonic raw (RW2)"),
        _ if tiff_is_dng(b) => Some("camera raw (DNG or NEF)"),
        _ => None,
    }
}

/// Does the first directory of a TIFF have the tags of a DNG (50706) or of a raw mosaic (photometric 32803, 34892)?
fn tiff_is_dng(b: &[u8]) -> bool {
    let directory = Tags::new(b).and_then(|tags| Some((tags, tags.first()?)));
    directory.is_some_and(|(tags, ifd)| {
        let (entries, _) = tags.entries(ifd);
        entries
            .iter()
            .any(|e| e.tag == 50706 || (e.tag == 262 && matches!(tags.value(*e), Some(32803 | 34892))))
    })
}

/// Pictures that we recognise and do not read, with what the user can do.
fn unread_picture(b: &[u8]) -> Option<(&'static str, &'static str)> {
    const CONVERT: &str = "convert it to JPEG or PNG first";
    const HEIF: &str = "convert it first, for example with `heif-convert` or `magick`";
    const DEVELOP: &str = "develop it to JPEG, PNG or TIFF first";
    if let Some(raw) = raw_photo(b).filter(|_| b.starts_with(b"II") || b.starts_with(b"MM")) {
        return Some((raw, DEVELOP));
    }
    if b.get(4..8) == Some(b"ftyp") {
        return match b.get(8..12) {
            Some(b"avif" | b"avis") => Some(("AVIF", HEIF)),
            Some(b"heic" | b"heix" | b"hevc" | b"hevx" | b"heim" | b"heis" | b"mif1" | b"msf1") => {
                Some(("HEIC", HEIF))
            }
            Some(b"crx ") => Some(("Canon raw (CR3)", DEVELOP)),
            _ => None,
        };
    }
    Some(match b {
        [0xff, 0x0a, ..] | [0, 0, 0, 12, b'J', b'X', b'L', b' ', ..] => {
            ("JPEG XL", "convert it first, for example with `djxl`")
        }
        [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xff, 0x4f, 0xff, 0x51, ..] => ("JPEG 2000", CONVERT),
        [0xff, 0xd8, 0xff, ..] => return None,
        [b'I', b'I', 0xbc, ..] => ("JPEG XR", CONVERT),
        [b'8', b'B', b'P', b'S', ..] => ("Photoshop (PSD)", "export it as PNG or TIFF first"),
        [b'D', b'D', b'S', b' ', ..] => ("DirectDraw surface (DDS)", CONVERT),
        [0x76, 0x2f, 0x31, 0x01, ..] => ("OpenEXR", "tone-map it to PNG or TIFF first"),
        [b'#', b'?', b'R', b'A' | b'G', ..] => ("Radiance HDR", "tone-map it to PNG or TIFF first"),
        [b'f', b'a', b'r', b'b', b'f', b'e', b'l', b'd', ..] => ("farbfeld", CONVERT),
        [b'F', b'U', b'J', b'I', b'F', b'I', b'L', b'M', ..] => ("Fujifilm raw (RAF)", DEVELOP),
        [b'F', b'O', b'V', b'b', ..] => ("Sigma raw (X3F)", DEVELOP),
        [b'I', b'I', b'R', b'O' | b'S', ..] | [b'M', b'M', b'O', b'R', ..] => ("Olympus raw (ORF)", DEVELOP),
        [b'I', b'I', 0x1a, 0, 0, 0, b'H', b'E', ..] => ("Canon raw (CRW)", DEVELOP),
        [b'S', b'I', b'M', b'P', b'L', b'E', b' ', ..] => ("FITS", CONVERT),
        [0x1, 0xda, ..] => ("SGI image", CONVERT),
        [0x59, 0xa6, 0x6a, 0x95, ..] => ("Sun raster", CONVERT),
        [b'g', b'i', b'm', b'p', b' ', b'x', b'c', b'f', ..] => ("GIMP (XCF)", "export it as PNG first"),
        [b'/', b'*', b' ', b'X', b'P', b'M', ..] => ("XPM", CONVERT),
        [b'P', b'F' | b'f', b'\n', ..] => ("portable float map (PFM)", CONVERT),
        [0x0a, 0..=5, 1, 1 | 2 | 4 | 8, ..] => ("PCX", CONVERT),
        [b'i', b'c', b'n', b's', ..] => ("Apple icon (ICNS)", CONVERT),
        [0xc5, 0xd0, 0xd3, 0xc6, ..] => ("EPS", "render it to PNG first"),
        [0xd7, 0xcd, 0xc6, 0x9a, ..] => ("Windows metafile", "render it to PNG first"),
        [0x8a, b'M', b'N', b'G', ..] | [0x8b, b'J', b'N', b'G', ..] => ("MNG or JNG", CONVERT),
        [b'B', b'P', b'G', 0xfb, ..] => ("BPG", CONVERT),
        [b'F', b'L', b'I', b'F', ..] => ("FLIF", CONVERT),
        _ => return None,
    })
}

/// What something is that is no picture; else its first bytes, escaped.
fn no_picture(b: &[u8]) -> String {
    let text = b.iter().skip_while(|c| c.is_ascii_whitespace() || matches!(c, 0xef | 0xbb | 0xbf));
    let start: Vec<u8> = text.take(48).map(u8::to_ascii_lowercase).collect();
    let what = match b {
        _ if b.iter().all(|c| *c == 0) => "every byte is zero, as after a failed copy or download",
        _ if b.starts_with(b"version https://git-lfs") => {
            "a git-lfs pointer; `git lfs pull` fetches the picture that it stands for"
        }
        [0x1f, 0x8b, ..] => "gzip; decompress it first",
        [b'P', b'K', 3, 4, ..] => "a zip archive; unpack it first",
        [b'R', b'a', b'r', b'!', ..] => "a RAR archive; unpack it first",
        [b'7', b'z', 0xbc, 0xaf, ..] => "a 7z archive; unpack it first",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd; decompress it first",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "xz; decompress it first",
        [0, 5, 0x16, 7, ..] => "an AppleDouble file of macOS (`._…`), not the picture beside it",
        [b'%', b'P', b'D', b'F', ..] => "PDF; render its pages to PNG first",
        [b'%', b'!', ..] => "PostScript; render it to PNG first",
        [0x1a, 0x45, 0xdf, 0xa3, ..] => "a Matroska or WebM video; extract its frames first",
        [b'R', b'I', b'F', b'F', ..] => "a RIFF container that is not WebP (AVI or WAV)",
        _ if b.get(4..8) == Some(b"ftyp") => "an MP4 or QuickTime file; extract its frames first",
        _ if start.starts_with(b"<!doctype html") || start.starts_with(b"<html") => {
            "HTML: a web page was saved in place of the picture"
        }
        _ if start.starts_with(b"<svg") || b[..b.len().min(1024)].windows(4).any(|w| w == b"<svg") => {
            "SVG, a drawing without pixels; render it to PNG first"
        }
        _ if start.starts_with(b"<?xml") || start.starts_with(b"<") => "XML or HTML text",
        _ if start.starts_with(b"{") || start.starts_with(b"[") => "JSON text",
        _ if start.starts_with(b"data:image/") => "a data: URI; decode its base64 first",
        _ if looks_like_text(b) => "text",
        _ => "no known signature",
    };
    format!("{what}; starts with \"{}\"", b[..b.len().min(16)].escape_ascii())
}

fn looks_like_text(b: &[u8]) -> bool {
    let head = &b[..b.len().min(512)];
    head.len() >= 4 && head.iter().all(|c| matches!(c, b' '..=b'~' | b'\t' | b'\r' | b'\n'))
}

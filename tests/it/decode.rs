//! The pixel contract: upright, sRGB, 8-bit RGB, whatever the file was.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use image::ImageFormat;
use imgprep::decode::{self, Alpha, Chroma, Codec, Contract, Format, Icc, Limits, Mode, Shape, strip_jpeg};
use imgprep::fault::{Cause, Oddity, Status};
use imgprep::normal::upright;
use imgprep::pixels::{Orientation, Rgb8, Scale};

use crate::pictures::*;

const LOSSLESS: [(ImageFormat, &str, Format); 8] = [
    (ImageFormat::Png, "a.png", Format::Png),
    (ImageFormat::WebP, "a.webp", Format::WebP),
    (ImageFormat::Bmp, "a.bmp", Format::Bmp),
    (ImageFormat::Tiff, "a.tif", Format::Tiff),
    (ImageFormat::Pnm, "a.ppm", Format::Pnm),
    (ImageFormat::Qoi, "a.qoi", Format::Qoi),
    (ImageFormat::Tga, "a.tga", Format::Tga),
    (ImageFormat::Ico, "a.ico", Format::Ico),
];

/// The stored picture that orientation `tag` turns into `upright`.
fn stored(picture: &Rgb8, tag: u32) -> Rgb8 {
    let inverse = match tag {
        6 => Orientation::Rotate270,
        8 => Orientation::Rotate90,
        other => Orientation::from_tag(other).expect("1 to 8"),
    };
    upright(picture.clone(), inverse)
}

#[test]
fn lossless_formats_come_back_pixel_for_pixel() {
    let picture = picture(61, 37, 1);
    for (format, name, expected) in LOSSLESS {
        let bytes = lossless(&picture, format);
        let opened = decode::open(&bytes, Path::new(name), &Limits::default()).unwrap();
        assert_eq!(opened.header().format, expected);
        assert_eq!(opened.header().size(), (61, 37), "{name}");
        let (rgb, _) = whole(&bytes, name);
        assert_eq!(rgb, picture, "{name}");
    }
}

#[test]
fn the_format_is_told_by_content_and_a_wrong_name_is_noted() {
    let picture = picture(32, 20, 1);
    for (format, name, expected) in LOSSLESS.into_iter().filter(|(f, ..)| *f != ImageFormat::Tga) {
        let bytes = lossless(&picture, format);
        let (rgb, notes) = whole(&bytes, "a.jpg");
        assert_eq!(rgb, picture, "{name}");
        let detail = &notes.iter().find(|(k, _)| *k == Oddity::ExtMismatch).expect(name).1;
        assert!(detail.starts_with(expected.name()), "{detail}");
    }
}

#[test]
fn all_eight_orientations_stand_upright() {
    let picture = picture(48, 32, 2);
    for tag in 1..=8 {
        let turned = stored(&picture, tag);
        let png = lossless(&turned, ImageFormat::Png);
        let before = after_ihdr(&png, &chunk(b"eXIf", &exif(tag as u16)));
        let end = png.len() - 12;
        let after = [&png[..end], &chunk(b"eXIf", &exif(tag as u16)), &png[end..]].concat();
        for bytes in [before, after] {
            let (rgb, notes) = whole(&bytes, "a.png");
            assert_eq!(rgb, picture, "orientation {tag}");
            assert_eq!(noted(&notes, Oddity::Oriented), tag > 1);
        }
        let jpeg = jpeg(&turned, Shape { quality: 100, chroma: Chroma::Yuv444, ..BASELINE });
        let block = [b"Exif\0\0".as_slice(), &exif(tag as u16)].concat();
        let (rgb, _) = whole(&after_soi(&jpeg, &segment(0xe1, &block)), "a.jpg");
        let (mean, _) = difference(&rgb, &picture);
        assert!(mean < 1.5, "orientation {tag}: {mean}");
    }
}

#[test]
fn an_orientation_outside_1_to_8_is_upright_and_noted() {
    let picture = picture(48, 32, 2);
    let png = lossless(&picture, ImageFormat::Png);
    for tag in [0, 9, 65535] {
        let (rgb, notes) = whole(&after_ihdr(&png, &chunk(b"eXIf", &exif(tag))), "a.png");
        assert_eq!(rgb, picture);
        assert!(noted(&notes, Oddity::OrientationInvalid), "{tag}");
    }
}

#[test]
fn an_orientation_counts_even_when_later_entries_are_cut() {
    // https://github.com/qarmin/czkawka/issues/1199
    let picture = picture(48, 32, 2);
    let png = lossless(&stored(&picture, 6), ImageFormat::Png);
    let mut block = exif(6);
    block[9] = 7;
    let (rgb, notes) = whole(&after_ihdr(&png, &chunk(b"eXIf", &block[..24])), "a.png");
    assert_eq!(rgb, picture);
    assert!(noted(&notes, Oddity::ExifBroken));
}

#[test]
fn sixteen_bits_are_scaled_and_never_clipped() {
    let ramp: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_be_bytes).collect();
    let bytes = png((256, 256), png::ColorType::Grayscale, png::BitDepth::Sixteen, &ramp);
    let (rgb, notes) = whole(&bytes, "a.png");
    for (value, pixel) in rgb.data.chunks_exact(3).enumerate() {
        let exact = value as f64 * 255.0 / 65535.0;
        assert!((f64::from(pixel[0]) - exact).abs() <= 0.5, "{value}: {pixel:?}");
        assert_eq!(pixel, [pixel[0]; 3]);
    }
    assert!(noted(&notes, Oddity::DeepBits) && !noted(&notes, Oddity::LowRange));
}

#[test]
fn twelve_bits_in_sixteen_are_noted() {
    let ramp: Vec<u8> = (0..4096_u16).flat_map(u16::to_be_bytes).collect();
    let (rgb, notes) =
        whole(&png((64, 64), png::ColorType::Grayscale, png::BitDepth::Sixteen, &ramp), "a.png");
    assert!(noted(&notes, Oddity::LowRange));
    assert!(rgb.data.iter().all(|v| *v <= 16));
}

#[test]
fn colours_hidden_under_alpha_never_show() {
    let red: Vec<u8> = [255, 0, 0, 0].repeat(16);
    let bytes = png((4, 4), png::ColorType::Rgba, png::BitDepth::Eight, &red);
    let back = [
        (Alpha::White, [255, 255, 255]),
        (Alpha::Black, [0, 0, 0]),
        (Alpha::Rgb([1, 2, 3]), [1, 2, 3]),
        (Alpha::Drop, [255, 0, 0]),
    ];
    for (alpha, expected) in back {
        let (rgb, decoded) = decode_as(&bytes, "a.png", &Contract { alpha, ..Contract::default() }).unwrap();
        assert!(rgb.data.chunks_exact(3).all(|p| p == expected), "{alpha:?}");
        let kinds: Vec<_> = decoded.notes.iter().map(|n| n.kind).collect();
        assert_eq!(kinds.contains(&Oddity::AlphaFlattened), alpha != Alpha::Drop);
    }
    let half: Vec<u8> = [200, 100, 0, 128].repeat(16);
    let (rgb, _) = whole(&png((4, 4), png::ColorType::Rgba, png::BitDepth::Eight, &half), "a.png");
    assert_eq!(rgb.data[..3], [227, 177, 127]);
}

#[test]
fn ink_is_read_as_adobe_stores_it() {
    let ink = |c: u8, m: u8, y: u8, k: u8, count: usize| [c, m, y, k].repeat(count);
    // What `jpeg-encoder` calls CMYK it stores inverted, with an Adobe marker.
    let mut bytes = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut bytes, 95);
    let paper = ink(0, 0, 0, 0, 256);
    encoder.encode(&paper, 16, 16, jpeg_encoder::ColorType::Cmyk).unwrap();
    let opened = decode::open(&bytes, Path::new("a.jpg"), &Limits::default()).unwrap();
    assert_eq!(opened.header().mode, Mode::Cmyk);
    let outcome = decode(&bytes, "a.jpg");
    if cfg!(not(feature = "turbo")) {
        assert_eq!(outcome.unwrap_err().cause, Cause::UnsupportedKind);
        return;
    }
    let (rgb, decoded) = outcome.unwrap();
    assert!(rgb.data.iter().all(|v| *v >= 253), "{:?}", &rgb.data[..6]);
    assert!(decoded.notes.iter().all(|n| n.kind != Oddity::CmykPolarity));
    // Without the marker it is a guess, and said to be one.
    let at = find_segment(&bytes, 0xee);
    let bare = [&bytes[..at], &bytes[at + 16..]].concat();
    let (_, notes) = whole(&bare, "a.jpg");
    assert!(noted(&notes, Oddity::CmykPolarity));
}

#[test]
fn gray_palette_and_few_bits_become_rgb() {
    let (rgb, notes) =
        whole(&png((8, 1), png::ColorType::Grayscale, png::BitDepth::One, &[0b1010_0101]), "a.png");
    assert_eq!(rgb.data.iter().step_by(3).copied().collect::<Vec<_>>(), [255, 0, 255, 0, 0, 255, 0, 255]);
    assert!(noted(&notes, Oddity::Gray));
    let (rgb, _) = whole(&png((2, 1), png::ColorType::Grayscale, png::BitDepth::Four, &[0x0f]), "a.png");
    assert_eq!(rgb.data, [0, 0, 0, 255, 255, 255]);
    let (rgb, notes) = whole(b"P5\n2 1\n255\n\x07\x90", "a.pgm");
    assert_eq!(rgb.data, [7, 7, 7, 0x90, 0x90, 0x90]);
    assert!(noted(&notes, Oddity::Gray));
}

/// Display P3 to sRGB in floating point: matrix of CSS Color 4, transfer of IEC 61966-2-1.
fn p3_to_srgb(rgb: [u8; 3]) -> [f64; 3] {
    let linear = rgb.map(|v| {
        let v = f64::from(v) / 255.0;
        if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    });
    let matrix =
        [[1.224_940, -0.224_940, 0.0], [-0.042_057, 1.042_057, 0.0], [-0.019_638, -0.078_636, 1.098_274]];
    matrix.map(|row| {
        let v: f64 = row.iter().zip(linear).map(|(m, v)| m * v).sum::<f64>().clamp(0.0, 1.0);
        255.0 * if v <= 0.003_130_8 { v * 12.92 } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 }
    })
}

fn with_profile(picture: &Rgb8, profile: &[u8]) -> Vec<u8> {
    // zlib with stored blocks.
    let mut body = b"x\0\0\x78\x01".to_vec();
    let mut parts = profile.chunks(60_000).peekable();
    while let Some(part) = parts.next() {
        body.push(u8::from(parts.peek().is_none()));
        body.extend((part.len() as u16).to_le_bytes());
        body.extend((!(part.len() as u16)).to_le_bytes());
        body.extend(part);
    }
    let (a, b) = profile
        .iter()
        .fold((1_u32, 0_u32), |(a, b), v| ((a + u32::from(*v)) % 65521, (b + a + u32::from(*v)) % 65521));
    body.extend((b << 16 | a).to_be_bytes());
    after_ihdr(&lossless(picture, ImageFormat::Png), &chunk(b"iCCP", &body))
}

#[test]
fn a_profile_is_converted_to_srgb() {
    let picture = picture(64, 64, 3);
    let bytes = with_profile(&picture, &moxcms::ColorProfile::new_display_p3().encode().unwrap());
    let (rgb, notes) = whole(&bytes, "a.png");
    assert!(noted(&notes, Oddity::IccConverted), "{notes:?}");
    for (from, to) in picture.data.chunks_exact(3).zip(rgb.data.chunks_exact(3)) {
        let exact = p3_to_srgb([from[0], from[1], from[2]]);
        for (exact, to) in exact.iter().zip(to) {
            assert!((exact - f64::from(*to)).abs() < 2.0, "{from:?}: {exact} {to}");
        }
    }
    let (rgb, decoded) =
        decode_as(&bytes, "a.png", &Contract { icc: Icc::Ignore, ..Contract::default() }).unwrap();
    assert_eq!(rgb, picture);
    assert!(decoded.notes.iter().any(|n| n.kind == Oddity::IccIgnored));
}

#[test]
fn an_srgb_profile_changes_nothing_and_is_not_noted() {
    let picture = picture(64, 64, 3);
    let (rgb, notes) =
        whole(&with_profile(&picture, &moxcms::ColorProfile::new_srgb().encode().unwrap()), "a.png");
    assert_eq!(rgb, picture);
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn a_profile_for_other_samples_is_noted_and_not_used() {
    let picture = picture(64, 64, 3);
    let gray = moxcms::ColorProfile::new_gray_with_gamma(1.0).encode().unwrap();
    let (rgb, notes) = whole(&with_profile(&picture, &gray), "a.png");
    assert_eq!(rgb, picture);
    assert!(noted(&notes, Oddity::IccBroken));
}

#[test]
#[cfg(feature = "turbo")]
fn a_reduced_decode_is_the_picture_made_smaller() {
    let picture = picture(403, 301, 4);
    for shape in [BASELINE, PROGRESSIVE] {
        let bytes = jpeg(&picture, shape);
        let opened = decode::open(&bytes, Path::new("a.jpg"), &Limits::default()).unwrap();
        let mut codec = Codec::new();
        for eighths in 1..=8 {
            let scale = Scale::eighths(eighths);
            let decoded = opened.pixels(scale, &Contract::default(), &mut codec).unwrap();
            assert_eq!(decoded.rgb.size(), (scale.of(403), scale.of(301)));
            let share = f64::from(eighths) / 8.0;
            assert_eq!(decoded.true_size, (403.0 * share, 301.0 * share));
            assert_eq!(decoded.damage, None);
            let means =
                |rgb: &Rgb8| rgb.data.iter().map(|v| f64::from(*v)).sum::<f64>() / rgb.data.len() as f64;
            assert!((means(&decoded.rgb) - means(&picture)).abs() < 1.5, "{eighths}/8");
        }
        assert!(opened.need_bytes(Scale::eighths(1)) < opened.need_bytes(Scale::FULL));
    }
}

#[test]
fn a_plain_jpeg_is_copied_without_its_metadata() {
    let picture = picture(160, 120, 5);
    for shape in [BASELINE, PROGRESSIVE, RESTARTS] {
        let bytes = jpeg(&picture, shape);
        let block = [b"Exif\0\0".as_slice(), &exif(1)].concat();
        let dressed = after_soi(&bytes, &[segment(0xe1, &block), segment(0xfe, b"a comment")].concat());
        let dressed = [&dressed[..], b"and a tail"].concat();
        let copy = strip_jpeg(&dressed).expect("a plain JPEG");
        assert!(!copy.windows(4).any(|w| w == b"Exif") && !copy.windows(9).any(|w| w == b"a comment"));
        assert!(copy.ends_with(&[0xff, 0xd9]) && copy.len() <= bytes.len());
        assert_eq!(whole(&copy, "a.jpg").0, whole(&bytes, "a.jpg").0);
        assert!(whole(&copy, "a.jpg").1.is_empty());
        assert_eq!(strip_jpeg(&copy), Some(copy.clone()), "the copy of a copy");
        assert_eq!(strip_jpeg(&bytes[..bytes.len() - 2]), None, "no end marker");
        assert_eq!(strip_jpeg(&bytes[..bytes.len() / 2]), None, "cut");
    }
    assert_eq!(strip_jpeg(b"\xff\xd8"), None);
    assert_eq!(strip_jpeg(&lossless(&picture, ImageFormat::Png)), None);
}

#[test]
fn what_is_no_picture_is_called_by_its_name() {
    let cases: [(&[u8], Cause, &str); 14] = [
        (b"", Cause::Empty, "no bytes"),
        (b"<!DOCTYPE html><html>", Cause::NotAnImage, "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00", Cause::NotAnImage, "git-lfs"),
        (b"\x1f\x8b\x08\0\0", Cause::NotAnImage, "gzip"),
        (b"PK\x03\x04...", Cause::NotAnImage, "zip"),
        (&[0; 400], Cause::NotAnImage, "zero"),
        (b"%PDF-1.7", Cause::NotAnImage, "PDF"),
        (b"<svg xmlns=''>", Cause::NotAnImage, "SVG"),
        (b"{\"error\": 404}", Cause::NotAnImage, "JSON"),
        (b"\0\x05\x16\x07\0\x02\0\0", Cause::NotAnImage, "AppleDouble"),
        (b"\0\0\0\x1cftypheic\0\0\0\0", Cause::UnsupportedFormat, "HEIC"),
        (b"\0\0\0\x1cftypavif\0\0\0\0", Cause::UnsupportedFormat, "AVIF"),
        (b"8BPS\0\x01", Cause::UnsupportedFormat, "PSD"),
        (b"\xff\xd8\xff", Cause::Undecodable, "header"),
    ];
    for (bytes, cause, word) in cases {
        let fault = decode(bytes, "photo.jpg").map(drop).unwrap_err();
        assert_eq!(fault.cause, cause, "{word}: {fault}");
        assert!(fault.detail.contains(word), "{word}: {fault}");
    }
    let fault = decode(b"\x1b]0;pwned\x07 nothing", "a.jpg").map(drop).unwrap_err();
    assert!(!fault.detail.chars().any(char::is_control), "{fault}");
}

/// Files whose headers promise more pixels than anybody has.
fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let small = picture(16, 16, 1);
    let huge = 60_000_u32;
    let png = change_chunk(&lossless(&small, ImageFormat::Png), b"IHDR", |b| {
        b[..4].copy_from_slice(&huge.to_be_bytes());
        b[4..8].copy_from_slice(&huge.to_be_bytes());
    });
    let mut jpg = jpeg(&small, BASELINE);
    let sof = find_segment(&jpg, 0xc0);
    jpg[sof + 5..sof + 9].copy_from_slice(&[0xea, 0x60, 0xea, 0x60]);
    let mut dense = jpeg(&small, BASELINE);
    dense[sof + 5..sof + 9].copy_from_slice(&[0x3a, 0x98, 0x3a, 0x98]);
    let mut gif = lossless(&small, ImageFormat::Gif);
    gif[6..10].copy_from_slice(&[0x60, 0xea, 0x60, 0xea]);
    let mut bmp = lossless(&small, ImageFormat::Bmp);
    bmp[18..22].copy_from_slice(&huge.to_le_bytes());
    bmp[22..26].copy_from_slice(&huge.to_le_bytes());
    let mut tiff = lossless(&small, ImageFormat::Tiff);
    for tag in [256_u16, 257] {
        let at = tiff.windows(2).rposition(|w| w == tag.to_le_bytes()).expect("the tag");
        tiff[at + 8..at + 12].copy_from_slice(&huge.to_le_bytes());
    }
    let mut webp = lossless(&small, ImageFormat::WebP);
    let at = webp.windows(4).position(|w| w == b"VP8L").expect("the chunk") + 9;
    // 14 bits of width, 14 of height, each less one.
    webp[at..at + 4].copy_from_slice(&0x0fff_bffe_u32.to_le_bytes());
    assert_eq!(webp[at - 1], 0x2f, "the signature of VP8L");
    let ppm = b"P6 60000 60000 255 ".to_vec();
    let qoi = [b"qoif".as_slice(), &huge.to_be_bytes(), &huge.to_be_bytes(), &[3, 0]].concat();
    vec![
        ("a.png", png),
        ("a.jpg", jpg),
        ("dense.jpg", dense),
        ("a.gif", gif),
        ("a.bmp", bmp),
        ("a.tif", tiff),
        ("a.webp", webp),
        ("a.ppm", ppm),
        ("a.qoi", qoi),
    ]
}

/// The most memory that this process ever had, in kB.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    line.and_then(|l| l.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

#[test]
fn bombs_are_refused_by_their_headers() {
    let before = peak_kb();
    for (name, bytes) in bombs() {
        let fault = decode(&bytes, name).map(drop).expect_err(name);
        assert_ne!(fault.status(), Status::Ok, "{name}");
        // The TIFF reader sees at once that so few strips cannot be so many rows.
        let sized = matches!(fault.cause, Cause::TooLarge | Cause::SizeMismatch);
        assert!(sized || name == "a.tif" && fault.cause == Cause::Undecodable, "{name}: {fault}");
    }
    // Alone in a process (see below) nothing else takes memory meanwhile.
    if std::env::var_os("PREP_TEST_ALONE").is_some() {
        assert!(peak_kb() - before < 16 << 10, "{} kB", peak_kb() - before);
    }
}

#[test]
fn bombs_take_no_memory() {
    let this = std::env::current_exe().unwrap();
    let run = std::process::Command::new(this)
        .args(["--exact", "decode::bombs_are_refused_by_their_headers"])
        .env("PREP_TEST_ALONE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn no_cut_and_no_flipped_byte_panics() {
    let picture = picture(40, 24, 9);
    let mut files: Vec<(&str, Vec<u8>)> =
        LOSSLESS.into_iter().map(|(format, name, _)| (name, lossless(&picture, format))).collect();
    files.push(("a.gif", lossless(&picture, ImageFormat::Gif)));
    for shape in [BASELINE, PROGRESSIVE, RESTARTS] {
        files.push(("a.jpg", jpeg(&picture, shape)));
    }
    files.push(("p3.png", with_profile(&picture, &moxcms::ColorProfile::new_display_p3().encode().unwrap())));
    assert!(files.len() >= 13);
    let mut codec = Codec::new();
    let mut tries = 0;
    for (name, bytes) in &files {
        let step = (bytes.len() / 150).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let mut flipped = bytes.clone();
            flipped[at] = flipped[at].wrapping_add(1 + (at % 254) as u8);
            for broken in [&bytes[..at], &flipped] {
                tries += 1;
                let outcome = catch_unwind(AssertUnwindSafe(|| {
                    let limits = Limits { max_pixels: 1_000_000 };
                    if let Ok(opened) = decode::open(broken, Path::new(name), &limits) {
                        let _ = opened.need_bytes(Scale::FULL);
                        let _ = opened.pixels(Scale::FULL, &Contract::default(), &mut codec);
                    }
                    let _ = strip_jpeg(broken);
                }));
                assert!(outcome.is_ok(), "{name} at {at}");
            }
        }
    }
    assert!(tries > 2000, "{tries}");
}

#[test]
#[cfg(feature = "turbo")]
fn a_refused_file_leaves_no_trace_in_the_next() {
    let picture = picture(64, 48, 2);
    let good = jpeg(&picture, BASELINE);
    let fresh = whole(&good, "a.jpg").0;
    let mut codec = Codec::new();
    let mut no_tables = good.clone();
    let dqt = find_segment(&good, 0xdb);
    no_tables[dqt + 1] = 0xfe;
    let mut bad_huffman = good.clone();
    let dht = find_segment(&good, 0xc4);
    bad_huffman[dht + 5] = 0xff;
    for broken in [&no_tables[..], &bad_huffman, &good[..good.len() / 2]] {
        if let Ok(opened) = decode::open(broken, Path::new("a.jpg"), &Limits::default()) {
            let _ = opened.pixels(Scale::FULL, &Contract::default(), &mut codec);
        }
        let opened = decode::open(&good, Path::new("a.jpg"), &Limits::default()).unwrap();
        let decoded = opened.pixels(Scale::FULL, &Contract::default(), &mut codec).unwrap();
        assert_eq!((decoded.damage, decoded.rgb == fresh), (None, true));
    }
}

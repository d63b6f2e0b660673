//! Files that are odd and whole: none may be refused, and each must say what is odd.

use imgprep::fault::Oddity;

use crate::pictures::*;

/// What is odd, the file, its name, and the note that says so (none where there is nothing to say).
pub type Case = (&'static str, Vec<u8>, &'static str, Option<Oddity>);

fn jpegs() -> Vec<Case> {
    let picture = picture(320, 240, 5);
    let (base, rst) = (jpeg(&picture, BASELINE), jpeg(&picture, RESTARTS));
    let end = base.len() - 2;
    let with = |tail: &[u8]| [&base[..], tail].concat();
    let sof = find_segment(&base, 0xc0);
    let sos = find_segment(&base, 0xda);
    let junk = |at: usize, bytes: &[u8]| [&base[..at], bytes, &base[at..]].concat();
    let mut odd_scan = base.clone();
    odd_scan[sos + 11..sos + 14].copy_from_slice(&[1, 0, 17]);
    let mut odd_jfif = base.clone();
    odd_jfif[11] = 9;
    let mut odd_restarts = rst.clone();
    let start = entropy_start(&rst);
    for at in start..rst.len() - 1 {
        if rst[at] == 0xff && (0xd0..=0xd7).contains(&rst[at + 1]) {
            odd_restarts[at + 1] = 0xd0 + (rst[at + 1] + 3) % 8;
        }
    }
    let mut cut_exif = b"Exif\0\0".to_vec();
    cut_exif.extend(&exif(6)[..9]);
    let broken_icc = segment(0xe2, &[b"ICC_PROFILE\0\x01\x01".as_slice(), &[7; 300]].concat());
    vec![
        ("a line break after the end", with(b"\n"), "a.jpg", Some(Oddity::TrailingBytes)),
        ("zeros after the end", with(&[0; 4096]), "a.jpg", Some(Oddity::TrailingBytes)),
        ("noise after the end", with(&picture.data[..1000]), "a.jpg", Some(Oddity::TrailingBytes)),
        ("a second JPEG after the end", with(&base), "a.jpg", Some(Oddity::MultiPicture)),
        (
            "a byte order mark before it",
            [b"\xef\xbb\xbf", &base[..]].concat(),
            "a.jpg",
            Some(Oddity::LeadingBytes),
        ),
        ("a line break before it", [b"\r\n", &base[..]].concat(), "a.jpg", Some(Oddity::LeadingBytes)),
        (
            "junk before the frame header",
            junk(sof, &[1, 2, 3, 4, 5]),
            "a.jpg",
            Some(Oddity::JunkBetweenSegments),
        ),
        ("fill bytes before a marker", junk(sof, &[0xff; 6]), "a.jpg", None),
        // libjpeg has read these into its bit buffer when the last block is done, and says nothing.
        ("junk before the end marker", junk(end, &[1, 2, 3]), "a.jpg", None),
        ("no end marker", base[..end].to_vec(), "a.jpg", Some(Oddity::MissingEnd)),
        ("half an end marker", base[..end + 1].to_vec(), "a.jpg", Some(Oddity::MissingEnd)),
        ("restarts numbered wrongly", odd_restarts, "a.jpg", Some(Oddity::RestartOrder)),
        ("scan parameters of no use", odd_scan, "a.jpg", Some(Oddity::OddParameters)),
        ("a JFIF version of the future", odd_jfif, "a.jpg", Some(Oddity::OddParameters)),
        ("EXIF that is cut", after_soi(&base, &segment(0xe1, &cut_exif)), "a.jpg", Some(Oddity::ExifBroken)),
        ("a profile of noise", after_soi(&base, &broken_icc), "a.jpg", Some(Oddity::IccBroken)),
        ("a JPEG named PNG", base.clone(), "a.png", Some(Oddity::ExtMismatch)),
        ("a JPEG without extension", base.clone(), "a", None),
    ]
}

fn pngs() -> Vec<Case> {
    let picture = picture(64, 48, 6);
    let whole = png((64, 48), png::ColorType::Rgb, png::BitDepth::Eight, &picture.data);
    let bomb = chunk(b"iCCP", &[b"x\0\0".as_slice(), &zlib_of_zeros(20 << 20)].concat());
    let gamma = chunk(b"gAMA", &100_000_u32.to_be_bytes());
    vec![
        ("no end chunk", whole[..whole.len() - 12].to_vec(), "a.png", Some(Oddity::MissingEnd)),
        ("bytes after the end chunk", [&whole[..], b"tail"].concat(), "a.png", Some(Oddity::TrailingBytes)),
        ("a profile that inflates to 20 MB", after_ihdr(&whole, &bomb), "a.png", Some(Oddity::MetadataBomb)),
        ("a gamma and nothing else", after_ihdr(&whole, &gamma), "a.png", Some(Oddity::GammaIgnored)),
    ]
}

/// A zlib stream of `count` zeros: fixed Huffman codes, runs of 258 (literal 0, then length 258 at distance 1).
fn zlib_of_zeros(count: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut push = |value: u32, count: u32, high_first: bool| {
        for i in 0..count {
            bits.push(value >> if high_first { count - 1 - i } else { i } & 1 == 1);
        }
    };
    push(0b011, 3, false);
    push(0x30, 8, true);
    for _ in 0..count / 258 {
        // Length code 285 (8 bits, 11000101) and distance code 0 (5 bits).
        push(0b1100_0101, 8, true);
        push(0, 5, true);
    }
    push(0, 7, true);
    let mut out = vec![0x78, 0x9c];
    out.extend(
        bits.chunks(8).map(|b| b.iter().enumerate().fold(0, |byte, (i, bit)| byte | u8::from(*bit) << i)),
    );
    out.extend([0; 4]);
    out
}

/// Every odd file.
pub fn odd() -> Vec<Case> {
    jpegs().into_iter().chain(pngs()).collect()
}

#[test]
fn nothing_whole_is_refused_and_all_of_it_is_noted() {
    let cases = odd();
    assert!(cases.len() >= 22, "{}", cases.len());
    for (what, bytes, name, note) in cases {
        let (_, decoded) = decode(&bytes, name).unwrap_or_else(|fault| panic!("{what}: {fault}"));
        assert_eq!(decoded.damage, None, "{what}");
        let kinds: Vec<Oddity> = decoded.notes.iter().map(|n| n.kind).collect();
        match note {
            Some(kind) => assert!(kinds.contains(&kind), "{what}: {kinds:?}"),
            None => assert!(kinds.is_empty(), "{what}: {kinds:?}"),
        }
    }
}

#[test]
fn odd_files_have_the_pixels_of_even_ones() {
    let picture = picture(320, 240, 5);
    let (even, _) = whole(&jpeg(&picture, BASELINE), "a.jpg");
    let odd = jpegs();
    assert!(odd.len() >= 17);
    for (what, bytes, name, _) in odd {
        let (rgb, _) = whole(&bytes, name);
        assert_eq!(difference(&rgb, &even), (0.0, 0), "{what}");
    }
}

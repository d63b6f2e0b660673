//! Protocols that take a whole file in base64: kitty's graphics protocol and iTerm2's inline images.

use crate::encode::{Encoder, Encoding};
use crate::pixels::Rgb8;

/// Characters of base64 that kitty takes at a time.
const PIECE: usize = 4096;

/// A PNG, transmitted and shown at once, in pieces.
pub(super) fn kitty(picture: &Rgb8) -> Result<String, String> {
    let text = base64(&png(picture)?);
    let mut out = String::with_capacity(text.len() + 256);
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(PIECE).collect();
    for (at, piece) in pieces.iter().enumerate() {
        let more = u8::from(at + 1 < pieces.len());
        // q=2: no answer, which would be read as if it were typed.
        let head = if at == 0 { format!("f=100,a=T,q=2,m={more}") } else { format!("m={more}") };
        out.push_str(&format!("\x1b_G{head};"));
        out.push_str(&String::from_utf8_lossy(piece));
        out.push_str("\x1b\\");
    }
    out.push('\n');
    Ok(out)
}

/// A PNG as a file to be shown.
pub(super) fn iterm(picture: &Rgb8) -> Result<String, String> {
    let png = png(picture)?;
    let (width, height, size) = (picture.width, picture.height, png.len());
    let head = format!("inline=1;size={size};width={width}px;height={height}px;preserveAspectRatio=1");
    Ok(format!("\x1b]1337;File={head}:{}\x07\n", base64(&png)))
}

fn png(picture: &Rgb8) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    Encoder::default().encode(picture, Encoding::Png, &mut bytes)?;
    Ok(bytes)
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0_u32, |all, b| all << 8 | u32::from(*b)) << (8 * (3 - three.len()));
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= three.len() { letter as char } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let of = |text: &str| base64(text.as_bytes());
        assert_eq!((of(""), of("f"), of("fo")), (String::new(), "Zg==".into(), "Zm8=".into()));
        assert_eq!((of("foo"), of("foobar")), ("Zm9v".into(), "Zm9vYmFy".into()));
    }

    #[test]
    fn large_pictures_go_in_pieces() {
        let mixed = |i: u32| (i ^ i >> 7).wrapping_mul(2_654_435_761) ^ i.wrapping_mul(i);
        let noise = (0..120 * 120 * 3).map(|i| (mixed(i) >> 21) as u8).collect();
        let out = kitty(&Rgb8::new(120, 120, noise)).unwrap();
        assert!(out.starts_with("\x1b_Gf=100,a=T,q=2,m=1;") && out.contains("\x1b_Gm=0;"));
        assert!(out.split("\x1b_G").all(|piece| piece.len() <= PIECE + 32));
    }
}

//! Half blocks: the upper pixel is the letter's colour, the lower one its ground.

use std::fmt::Write;

use crate::pixels::Rgb8;

/// Two rows of pixels a line.
pub(super) fn blocks(picture: &Rgb8) -> String {
    let row = picture.width as usize * 3;
    let mut out = String::new();
    let rows: Vec<&[u8]> = picture.data.chunks_exact(row).collect();
    for pair in rows.chunks(2) {
        let mut last = String::new();
        for x in 0..picture.width as usize {
            let pixel = |row: &[u8]| (row[x * 3], row[x * 3 + 1], row[x * 3 + 2]);
            let (r, g, b) = pixel(pair[0]);
            let mut colours = format!("\x1b[38;2;{r};{g};{b}m");
            match pair.get(1) {
                Some(lower) => {
                    let (r, g, b) = pixel(lower);
                    let _ = write!(colours, "\x1b[48;2;{r};{g};{b}m");
                }
                None => colours.push_str("\x1b[49m"),
            }
            // Runs of one colour are written once.
            if colours != last {
                out.push_str(&colours);
                last = colours;
            }
            out.push('▀');
        }
        out.push_str("\x1b[0m\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rows_make_a_line() {
        let out = blocks(&Rgb8::new(2, 3, [[255, 0, 0]; 6].concat()));
        assert_eq!(out.lines().count(), 2);
        assert!(out.starts_with("\x1b[38;2;255;0;0m\x1b[48;2;255;0;0m▀▀\x1b[0m\n"), "{out:?}");
    }
}

//! Sixel: bands of six rows, colours from a palette of 6x6x6, ordered dither between its steps.

use std::fmt::Write;

use crate::pixels::Rgb8;

/// Steps of each of R, G, B.
const STEPS: u32 = 6;
/// Bayer's 4x4 order.
const BAYER: [[u32; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];

/// The picture as one string of sixels.
pub(super) fn sixel(picture: &Rgb8) -> String {
    let (width, height) = (picture.width as usize, picture.height as usize);
    let mut out = format!("\x1bP0;1q\"1;1;{width};{height}");
    for colour in 0..STEPS.pow(3) {
        let part = |n: u32| n % STEPS * 100 / (STEPS - 1);
        let (r, g, b) = (part(colour / 36), part(colour / 6), part(colour));
        let _ = write!(out, "#{colour};2;{r};{g};{b}");
    }
    let row = width * 3;
    for (band, rows) in picture.data.chunks(row * 6).enumerate() {
        let colour_at = |x: usize, y: usize| {
            let pixel = &rows[y * row + x * 3..y * row + x * 3 + 3];
            let threshold = BAYER[(band * 6 + y) % 4][x % 4];
            pixel.iter().fold(0, |all, value| all * STEPS + step(*value, threshold))
        };
        let high = rows.len() / row;
        let mut colours = vec![0_u32; width * high];
        for y in 0..high {
            for x in 0..width {
                colours[y * width + x] = colour_at(x, y);
            }
        }
        write_band(&mut out, &colours, width);
    }
    out.push_str("\x1b\\\n");
    out
}

/// The step of the palette for a value of 0 to 255; `threshold` of 0 to 15 decides what lies between two.
fn step(value: u8, threshold: u32) -> u32 {
    let scaled = u32::from(value) * (STEPS - 1) * 16;
    ((scaled + threshold * 255 + 127) / (255 * 16)).min(STEPS - 1)
}

/// One band: for each colour in it, which of its rows have it, column by column, runs counted.
fn write_band(out: &mut String, colours: &[u32], width: usize) {
    let mut used: Vec<u32> = colours.to_vec();
    used.sort_unstable();
    used.dedup();
    for (nth, colour) in used.iter().enumerate() {
        let _ = write!(out, "{}#{colour}", if nth > 0 { "$" } else { "" });
        let mut run: (char, usize) = ('?', 0);
        for x in 0..width {
            let has = |y: usize| colours.get(y * width + x) == Some(colour);
            let bits = (0..6).filter(|y| has(*y)).fold(0_u8, |all, y| all | 1 << y);
            let letter = (63 + bits) as char;
            if letter != run.0 {
                write_run(out, run);
                run = (letter, 0);
            }
            run.1 += 1;
        }
        // Nothing needs to be said of an empty end.
        if run.0 != '?' {
            write_run(out, run);
        }
    }
    out.push('-');
}

fn write_run(out: &mut String, (letter, count): (char, usize)) {
    if count > 3 {
        let _ = write!(out, "!{count}{letter}");
    } else {
        out.extend(std::iter::repeat_n(letter, count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_red_square_is_one_run() {
        let out = sixel(&Rgb8::new(8, 6, [[255, 0, 0]; 48].concat()));
        assert!(out.starts_with("\x1bP0;1q\"1;1;8;6#0;2;0;0;0"), "{out:?}");
        assert!(out.ends_with("#180!8~-\x1b\\\n"), "{out:?}");
    }

    #[test]
    fn values_between_two_steps_are_mixed() {
        let mean = |value: u8| (0..16).map(|t| step(value, t)).sum::<u32>() as f64 / 16.0 * 51.0;
        for value in [0, 10, 77, 128, 200, 255] {
            assert!((mean(value) - f64::from(value)).abs() < 27.0, "{value} {}", mean(value));
        }
    }
}

//! Lines of text: made harmless, cut in the middle where they are too long, drawn from left to right.
//!
//! There is no shaping. Marks are drawn over the letter before them, runs of Hebrew or Arabic are turned around, and
//! what no face has is a box: nothing of it breaks the layout, whatever a file is called.

use std::rc::Rc;

use unicode_normalization::UnicodeNormalization;
use unicode_width::UnicodeWidthChar;

use super::font::{Fonts, Glyph};
use crate::names::shown;

/// What stands for the part that was cut out.
const ELLIPSIS: &str = "…";
/// Marks on one letter that are drawn: a name may pile up thousands.
const MOST_MARKS: usize = 4;
/// Characters of a line that are looked at: no cell shows more, and names may have any length.
const LONGEST: usize = 4096;

/// A letter with the marks on it.
#[derive(Debug, Clone)]
struct Cluster {
    base: Rc<Glyph>,
    marks: Vec<Rc<Glyph>>,
    turned: Turn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Written from left to right.
    Left,
    /// Of a script that is written from right to left.
    Right,
    /// Of neither, such as a space: goes with what is around it.
    Neither,
}

/// A glyph at its place from the start of the line and the baseline.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The glyph.
    pub glyph: Rc<Glyph>,
    /// Left edge, px from the start of the line.
    pub x: i32,
    /// Top edge, px from the baseline; negative is above.
    pub y: i32,
}

/// A line, ready to be drawn.
#[derive(Debug, Clone, Default)]
pub struct Line {
    /// From left to right.
    pub glyphs: Vec<Placed>,
    /// Its width, px.
    pub width: u32,
}

/// Sets `text` with letters of `size` px on at most `most` px; the middle of what is longer is left out.
pub fn line(fonts: &mut Fonts, text: &str, size: u32, most: u32) -> Line {
    let mut clusters = clusters(fonts, &harmless(text), size);
    if width(&clusters) > most as f32 {
        let dots = clusters_of(fonts, ELLIPSIS, size);
        clusters = cut(&clusters, &dots, most as f32);
    }
    turn(&mut clusters);
    place(&clusters)
}

/// Text without control characters and bidirectional overrides (they are spelled out), composed where it can be, and
/// without the invisible joiners that emoji and Indic scripts use, which only a shaper understands.
fn harmless(text: &str) -> String {
    let silent = |c: &char| !matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
    let seen: String = text.nfc().filter(silent).take(LONGEST).collect();
    shown(&seen).to_string()
}

fn clusters(fonts: &mut Fonts, text: &str, size: u32) -> Vec<Cluster> {
    clusters_of(fonts, text, size)
}

fn clusters_of(fonts: &mut Fonts, text: &str, size: u32) -> Vec<Cluster> {
    let mut out: Vec<Cluster> = Vec::new();
    for c in text.chars() {
        let is_mark = c.width() == Some(0);
        match out.last_mut() {
            Some(last) if is_mark => {
                if last.marks.len() < MOST_MARKS {
                    last.marks.push(fonts.glyph(c, size));
                }
            }
            _ => out.push(Cluster { base: fonts.glyph(c, size), marks: Vec::new(), turned: turn_of(c) }),
        }
    }
    out
}

fn turn_of(c: char) -> Turn {
    match c {
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' => Turn::Right,
        ' ' | '_' | '-' | '(' | ')' | ',' | '\'' | '"' => Turn::Neither,
        _ => Turn::Left,
    }
}

fn width(clusters: &[Cluster]) -> f32 {
    clusters.iter().map(|c| c.base.advance).sum()
}

/// As many clusters of both ends as fit beside the dots, a little more of the end: it holds the extension and numbers.
fn cut(clusters: &[Cluster], dots: &[Cluster], most: f32) -> Vec<Cluster> {
    let room = most - width(dots);
    let (mut head, mut tail) = (0, 0);
    let (mut before, mut after) = (0.0, 0.0);
    while head + tail < clusters.len() {
        let last = clusters.len() - 1 - tail;
        let at_end = after <= before;
        let next = clusters[if at_end { last } else { head }].base.advance;
        if before + after + next > room {
            break;
        }
        if at_end {
            (tail, after) = (tail + 1, after + next);
        } else {
            (head, before) = (head + 1, before + next);
        }
    }
    let dots = if width(dots) <= most { dots } else { &[] };
    [&clusters[..head], dots, &clusters[clusters.len() - tail..]].concat()
}

/// Turns runs of right-to-left letters around, with what stands between them.
fn turn(clusters: &mut [Cluster]) {
    let mut at = 0;
    while at < clusters.len() {
        if clusters[at].turned != Turn::Right {
            at += 1;
            continue;
        }
        let run = clusters[at..].iter().take_while(|c| c.turned != Turn::Left).count();
        let neither = clusters[at..at + run].iter().rev().take_while(|c| c.turned == Turn::Neither).count();
        let end = at + run - neither;
        clusters[at..end].reverse();
        at = end;
    }
}

fn place(clusters: &[Cluster]) -> Line {
    let mut line = Line::default();
    let mut pen = 0.0_f32;
    for cluster in clusters {
        let at = pen.round() as i32;
        let base = &cluster.base;
        // An Arabic or Thai mark at the start of a name is a letter of its own, and may lie left of the pen.
        line.push(base, at + base.left.max(if pen == 0.0 { 0 } else { i32::MIN }));
        for mark in &cluster.marks {
            // Over the middle of the letter, whatever the font thinks of the pen.
            let middle = at + base.left + base.width as i32 / 2;
            line.push(mark, (middle - mark.width as i32 / 2).max(0));
        }
        pen += base.advance.max(base.width as f32 * 0.5);
    }
    line.width = pen.ceil() as u32;
    line
}

impl Line {
    fn push(&mut self, glyph: &Rc<Glyph>, x: i32) {
        if glyph.width > 0 {
            self.glyphs.push(Placed { glyph: Rc::clone(glyph), x, y: glyph.top });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, most: u32) -> Line {
        line(&mut Fonts::new(None).unwrap(), text, 13, most)
    }

    #[test]
    fn every_line_stays_within_its_width() {
        let long = format!("{}.jpg", "wide_".repeat(40));
        let odd = ["", "a", &long, "中文图片名称很长很长很长很长很长.jpg", "\u{1b}[31m\n\t", "😀👩‍👩‍👧‍👦",
            "e\u{301}\u{301}\u{301}x", "\u{301}a", "مرحبا بالعالم.jpg", "ภาพถ่ายใบไม้.png", "\u{202e}gpj.exe"];
        for text in odd {
            for most in [0, 3, 10, 80, 256] {
                let line = set(text, most);
                let right = line.glyphs.iter().map(|p| p.x + p.glyph.width as i32).max().unwrap_or(0);
                let left = line.glyphs.iter().map(|p| p.x).min().unwrap_or(0);
                assert!(right <= most as i32 + 3 && left >= -2, "{text:?} at {most}: {left} to {right}");
            }
        }
    }

    #[test]
    fn the_middle_is_cut_and_both_ends_stay() {
        let whole = set("IMG_0001.jpg", 500);
        let cut = set(&format!("IMG_{}0001.jpg", "x".repeat(100)), 100);
        assert!(cut.width <= 100 && cut.glyphs.len() > 8);
        let ends = |line: &Line| {
            let glyph = |p: &Placed| Rc::clone(&p.glyph).coverage.clone();
            (glyph(&line.glyphs[0]), glyph(&line.glyphs[line.glyphs.len() - 1]))
        };
        assert_eq!(ends(&whole), ends(&cut));
    }

    #[test]
    fn right_to_left_words_are_turned_around() {
        let (word, turned) = (set("אבג", 100), set("a אב", 100));
        let one = set("ג", 100);
        assert_eq!(word.glyphs[0].glyph.coverage, one.glyphs[0].glyph.coverage);
        assert_eq!(turned.glyphs[0].glyph.coverage, set("a", 100).glyphs[0].glyph.coverage);
    }
}

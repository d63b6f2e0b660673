//! `prep show`: a picture as the characters that a terminal draws it from.

mod blocks;
mod inline;
mod sixel;

use crate::pixels::Rgb8;

/// How terminals are given pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// kitty, Ghostty: a PNG in pieces of base64.
    Kitty,
    /// iTerm2, WezTerm: a file in base64.
    Iterm,
    /// foot, mlterm, xterm -ti vt340: six rows of pixels a character.
    Sixel,
    /// Any terminal of 24-bit colour: an upper half block for two pixels.
    Blocks,
}

/// What the environment says of the terminal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terminal<'a> {
    /// `TERM`.
    pub term: &'a str,
    /// `TERM_PROGRAM`.
    pub program: &'a str,
    /// Is `KITTY_WINDOW_ID` set?
    pub kitty: bool,
    /// Is `NO_COLOR` set?
    pub no_color: bool,
}

impl Protocol {
    /// What the terminal understands, by what it calls itself; none for one without colours. Below tmux and screen the
    /// picture protocols do not pass, blocks do.
    pub fn of(terminal: Terminal<'_>) -> Option<Self> {
        let Terminal { term, program, kitty, no_color } = terminal;
        let is = |words: &[&str]| words.iter().any(|word| term.contains(word));
        if term.is_empty() || term == "dumb" || no_color {
            return None;
        }
        if is(&["tmux", "screen"]) {
            return Some(Self::Blocks);
        }
        if kitty || is(&["kitty", "ghostty"]) || program == "ghostty" {
            return Some(Self::Kitty);
        }
        if ["iTerm.app", "WezTerm", "mintty", "vscode"].contains(&program) {
            return Some(Self::Iterm);
        }
        Some(if is(&["sixel", "foot", "mlterm", "yaft", "contour", "vt340"]) { Self::Sixel } else { Self::Blocks })
    }

    /// The largest picture to ask for, px, on a terminal of so many columns and rows.
    pub fn most(self, (columns, rows): (u32, u32)) -> (u32, u32) {
        let rows = rows.clamp(8, 200);
        match self {
            Self::Blocks => (columns.clamp(8, 400), rows * 2),
            // Cells are about 8 by 16 px; larger ones show the picture smaller, never cut.
            _ => (columns.clamp(8, 400) * 8, rows * 16),
        }
    }

    /// What is sent to the terminal, with a line break at the end.
    ///
    /// # Errors
    /// A sentence, when the picture cannot be encoded.
    pub fn draw(self, picture: &Rgb8) -> Result<String, String> {
        match self {
            Self::Kitty => inline::kitty(picture),
            Self::Iterm => inline::iterm(picture),
            Self::Sixel => Ok(sixel::sixel(picture)),
            Self::Blocks => Ok(blocks::blocks(picture)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_known_by_their_names() {
        let of = |term, program| Protocol::of(Terminal { term, program, ..Terminal::default() });
        assert_eq!(of("xterm-kitty", ""), Some(Protocol::Kitty));
        assert_eq!(of("xterm-256color", "iTerm.app"), Some(Protocol::Iterm));
        assert_eq!(of("foot", ""), Some(Protocol::Sixel));
        assert_eq!(of("xterm-256color", ""), Some(Protocol::Blocks));
        assert_eq!(of("tmux-256color", "iTerm.app"), Some(Protocol::Blocks));
        assert_eq!(of("dumb", ""), None);
    }
}

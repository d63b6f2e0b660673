//! What a search supposes of two pictures.

use super::Depth;
use crate::measure::{Code, Print, Window};
use crate::pixels::Orientation;

/// The eight ways to lay a picture.
const TURNS: [Orientation; 8] = [
    Orientation::Upright,
    Orientation::FlipH,
    Orientation::Rotate180,
    Orientation::FlipV,
    Orientation::Transpose,
    Orientation::Rotate90,
    Orientation::Transverse,
    Orientation::Rotate270,
];

/// That a copy is the original turned in one of eight ways, or a window of it, or a window mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Guess(u8);

impl Guess {
    /// Guesses that `depth` tries, the plainest first.
    pub fn all(depth: Depth) -> impl Iterator<Item = Self> {
        let count = match depth {
            Depth::Upright => 1,
            Depth::Turned => TURNS.len(),
            Depth::Windows => TURNS.len() + Window::COUNT * 2,
        };
        (0..count as u8).map(Self)
    }

    /// How the original, or its window, is turned to become the copy.
    pub fn turn(self) -> Orientation {
        match TURNS.get(usize::from(self.0)) {
            Some(turn) => *turn,
            None => TURNS[(usize::from(self.0) - TURNS.len()) % 2],
        }
    }

    /// The window of the original that the copy shows, unless it shows the whole.
    pub fn window(self) -> Option<Window> {
        self.place().map(Window::at)
    }

    fn place(self) -> Option<usize> {
        usize::from(self.0).checked_sub(TURNS.len()).map(|at| at / 2)
    }

    /// The code that the copy should have.
    pub fn code(self, original: &Print) -> Code {
        let code = match self.place() {
            Some(at) => original.windows[at],
            None => original.code,
        };
        code.turned(self.turn())
    }
}

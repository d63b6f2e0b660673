//! The shape of a feature map, of one image.

use std::fmt;

/// The longest side, the most channels, the most tokens.
const SIDE: u64 = 1 << 24;
/// The most values of one feature map: beyond it nothing is a network for pictures.
const VALUES: u64 = 1 << 42;

/// What a layer puts out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Channels, height, width.
    Map(u64, u64, u64),
    /// Tokens, channels.
    Tokens(u64, u64),
    /// Channels alone.
    Flat(u64),
}

impl Shape {
    /// Channels.
    pub fn channels(self) -> u64 {
        match self {
            Self::Map(c, _, _) | Self::Tokens(_, c) | Self::Flat(c) => c,
        }
    }

    /// Places: pixels, tokens, or one.
    pub fn places(self) -> u64 {
        match self {
            Self::Map(_, h, w) => h.saturating_mul(w),
            Self::Tokens(n, _) => n,
            Self::Flat(_) => 1,
        }
    }

    /// The same places with other channels.
    pub fn with_channels(self, channels: u64) -> Self {
        match self {
            Self::Map(_, h, w) => Self::Map(channels, h, w),
            Self::Tokens(n, _) => Self::Tokens(n, channels),
            Self::Flat(_) => Self::Flat(channels),
        }
    }

    /// Values, where the shape is one that a network can have.
    ///
    /// # Errors
    /// A sentence.
    pub fn values(self) -> Result<u64, String> {
        let sides = match self {
            Self::Map(c, h, w) => [c, h, w],
            Self::Tokens(n, c) => [n, c, 1],
            Self::Flat(c) => [c, 1, 1],
        };
        if sides.contains(&0) {
            return Err(format!("nothing is left: {self}; the pictures are too small for this network"));
        }
        let values = sides.iter().try_fold(1_u64, |all, side| {
            (*side <= SIDE).then_some(()).and_then(|()| all.checked_mul(*side)).filter(|all| *all <= VALUES)
        });
        values.ok_or_else(|| format!("{self} is larger than any network's"))
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Map(c, h, w) => write!(f, "{c}x{h}x{w}"),
            Self::Tokens(n, c) => write!(f, "{n}x{c}"),
            Self::Flat(c) => write!(f, "{c}"),
        }
    }
}

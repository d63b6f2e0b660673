//! Entropy decoding: from the bits of a scan to the coefficients that a scale needs, side by side for many blocks.

use super::bits::{Bits, Window};
use super::huffman::{AcCode, DcCode, END, LONG, PEEK, SKIP_PEEK, value_of};

/// Blocks that lie side by side in a [`Lanes`].
pub(super) const LANES: usize = 32;
/// Room for 64 coefficients of [`LANES`] blocks and one more for those that are not kept, made a power of two.
const ROOM: usize = 128 * LANES;
/// Coefficients of [`LANES`] blocks: the first coefficient of all, then the second of all … From each of its first
/// places on there is [`ROOM`].
pub(super) type Lanes = [i16; ROOM + LANES];

/// The natural place (row * 8 + column) of each coefficient in zigzag order.
#[rustfmt::skip]
pub(super) const ZIGZAG: [u8; 64] = [
     0,  1,  8, 16,  9,  2,  3, 10, 17, 24, 32, 25, 18, 11,  4,  5,
    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13,  6,  7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// Which coefficients of a block are kept, and where.
#[derive(Debug)]
pub(super) struct Keep {
    /// Columns and rows of coefficients.
    pub size: (usize, usize),
    /// For each place in zigzag order, where its lanes begin in [`Lanes`]; one place for all that are not kept.
    places: [u16; 256],
    /// The last place that is kept.
    last: usize,
}

impl Keep {
    /// The lowest `width` x `height` coefficients, 1 to 8 each.
    pub fn lowest(width: usize, height: usize) -> Self {
        let mut keep =
            Self { size: (width, height), places: [(width * height * LANES) as u16; 256], last: 0 };
        for (k, natural) in ZIGZAG.iter().enumerate() {
            let (row, column) = (usize::from(natural / 8), usize::from(natural % 8));
            if row < height && column < width {
                keep.places[k] = ((row * width + column) * LANES) as u16;
                keep.last = k;
            }
        }
        keep
    }
}

/// What decodes the blocks of one component.
#[derive(Clone, Copy)]
pub(super) struct Coding<'a> {
    pub dc: &'a DcCode,
    pub ac: &'a AcCode,
    pub keep: &'a Keep,
}

/// Lookups that are good for one refill, and for one in [`skipped`].
const LOOKUPS: u32 = 2;
const _: () = assert!(LOOKUPS * (PEEK + 10) <= 56 && LOOKUPS * (SKIP_PEEK + 10) <= 56);

/// Decodes a block into lane `lane`; `before` is the DC of the block before. `None` for anything that is no clean
/// block.
#[inline(always)]
pub(super) fn block(
    mut bits: Bits,
    window: &Window,
    coding: Coding<'_>,
    lanes: &mut Lanes,
    lane: usize,
    before: &mut i32,
) -> Option<Bits> {
    let Coding { dc, ac, keep } = coding;
    bits = bits.refilled(window);
    let entry = dc.fast[(bits.acc >> (64 - PEEK)) as usize];
    let difference = if entry != 0 {
        let difference = value_of(entry, bits.acc);
        bits = bits.without(entry & 0xff);
        difference
    } else {
        let (taken, difference) = dc.all.difference(bits.acc)?;
        bits = bits.without(taken);
        difference
    };
    bits = bits.refilled(window);
    *before = before.wrapping_add(difference);
    let value = i16::try_from(*before).ok()?;
    let own = lanes.get_mut(lane..)?.first_chunk_mut::<ROOM>()?;
    let mut set = |place: usize, value: i16| {
        own[usize::from(keep.places[place & 255]) & (ROOM - 1)] = value;
    };
    set(0, value);

    let mut k = 0;
    while k < keep.last {
        for _ in 0..LOOKUPS {
            let entry = ac.single[(bits.acc >> (64 - PEEK)) as usize];
            k = (k + (entry >> 8 & 0xff) as usize) & 255;
            set(k, value_of(entry, bits.acc) as i16);
            bits = bits.without(entry & 0xff);
            if k >= keep.last {
                break;
            }
        }
        if k >= END {
            if k < LONG {
                return Some(bits);
            }
            bits = bits.refilled(window);
            let (taken, steps, value) = ac.all.coefficient(bits.acc)?;
            bits = bits.without(taken);
            if steps == END {
                return Some(bits);
            }
            k = k - LONG + steps;
            set(k, value as i16);
        }
        bits = bits.refilled(window);
    }
    if k < 63 { skipped(bits, window, ac, k) } else { (k == 63).then_some(bits) }
}

/// Goes from place `k` to the end of the block, keeping nothing.
#[inline(always)]
fn skipped(mut bits: Bits, window: &Window, ac: &AcCode, mut k: usize) -> Option<Bits> {
    loop {
        for _ in 0..LOOKUPS {
            let entry = ac.skip[(bits.acc >> (64 - SKIP_PEEK)) as usize];
            let next = k + usize::from(entry >> 8);
            if next >= 63 {
                let ended = next == 63 || (END..END + 63).contains(&next);
                if ended {
                    return Some(bits.without(u32::from(entry & 0xff)));
                }
                // A code too long, or a block that ends amid these symbols.
                bits = bits.refilled(window);
                let (taken, steps, _) = ac.all.coefficient(bits.acc)?;
                bits = bits.without(taken);
                if steps == END || k + steps == 63 {
                    return Some(bits);
                }
                k += steps;
                if k > 63 {
                    return None;
                }
                break;
            }
            bits = bits.without(u32::from(entry & 0xff));
            k = next;
        }
        bits = bits.refilled(window);
    }
}

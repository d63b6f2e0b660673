//! The bits of a scan: entropy-coded bytes without their stuffing, a window at a time.

/// A power of two: places in the window are masked with it, so that no read can leave the window.
const SIZE: usize = 1 << 15;
/// More than the largest MCU takes: 6 blocks of 64 codes of 16 bits with 11 more, 1,296 bytes, and what is read ahead.
const MARGIN: usize = 2048;
/// How far the window is filled. Behind it there is room for a margin of zeros.
const FULL: usize = SIZE - MARGIN - 64;

/// Where a decoder stands in the window. Passed by value: a copy stays in registers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bits {
    /// The next bits, from the top.
    pub acc: u64,
    /// How many of them count.
    count: u32,
    /// The next byte of the window.
    at: usize,
}

impl Bits {
    /// Fills `acc` to at least 56 bits.
    #[inline(always)]
    pub fn refilled(self, window: &Window) -> Self {
        let Some(next) = window.bytes[self.at & (SIZE - 1)..].first_chunk() else { return self };
        let count = self.count & 63;
        Self {
            acc: self.acc | u64::from_be_bytes(*next) >> count,
            // Whole bytes that are in `acc` now; bits of the byte after them are too, and come again unchanged.
            at: self.at.wrapping_add(((63 - count) >> 3) as usize),
            count: count | 56,
        }
    }

    /// Without the next `taken` bits, at most 63.
    #[inline(always)]
    pub fn without(self, taken: u32) -> Self {
        Self { acc: self.acc << (taken & 63), count: self.count.wrapping_sub(taken), at: self.at }
    }

    /// Bits of the window that are used up.
    fn used(self) -> usize {
        (self.at * 8).saturating_sub(self.count as usize)
    }
}

/// A part of the entropy-coded bytes between two markers, unstuffed.
#[derive(Debug)]
pub(super) struct Window {
    bytes: Box<[u8; SIZE + 8]>,
    filled: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self { bytes: Box::new([0; SIZE + 8]), filled: 0 }
    }
}

impl Window {
    /// Begins at the start of `source`, the bytes between two markers. `None` where they are not stuffed as they
    /// should be.
    pub fn begin(&mut self, source: &mut &[u8]) -> Option<Bits> {
        self.filled = 0;
        self.fill(source)?;
        Some(Bits::default())
    }

    /// Makes sure that an MCU may be read, from zeros where `source` has come to its end. `None` where more was read
    /// than is there.
    #[inline(always)]
    pub fn ready(&mut self, bits: Bits, source: &mut &[u8]) -> Option<Bits> {
        if bits.at + MARGIN <= self.filled { Some(bits) } else { self.move_on(bits, source) }
    }

    #[inline(never)]
    fn move_on(&mut self, mut bits: Bits, source: &mut &[u8]) -> Option<Bits> {
        if bits.used() > self.filled * 8 {
            return None;
        }
        if !source.is_empty() {
            // The bytes whose bits are still in `acc` stay before it, so that `used` goes on counting.
            let kept = bits.at.min(8);
            let rest = (bits.at - kept).min(self.filled)..self.filled;
            self.filled = rest.len();
            self.bytes.copy_within(rest, 0);
            bits.at = kept;
            self.fill(source)?;
        }
        Some(bits)
    }

    /// Was all of `source` read, to the last byte?
    pub fn is_done(&self, bits: Bits, source: &[u8]) -> bool {
        let (used, all) = (bits.used(), self.filled * 8);
        source.is_empty() && used <= all && all - used < 8
    }

    /// Unstuffs from `source` until the window is full or the source is empty; then a margin of zeros follows.
    fn fill(&mut self, source: &mut &[u8]) -> Option<()> {
        while self.filled < FULL {
            let Some(block) = source.first_chunk::<32>() else { break };
            self.bytes[self.filled..self.filled + 32].copy_from_slice(block);
            if block.iter().fold(false, |hit, b| hit | (*b == 0xff)) {
                let run = block.iter().position(|b| *b == 0xff)?;
                if source.get(run + 1) != Some(&0) {
                    return None;
                }
                self.filled += run + 1;
                *source = &source[run + 2..];
            } else {
                self.filled += 32;
                *source = &source[32..];
            }
        }
        while self.filled < FULL
            && let Some((byte, rest)) = source.split_first()
        {
            *source = rest;
            if *byte == 0xff {
                *source = source.strip_prefix(&[0])?;
            }
            self.bytes[self.filled] = *byte;
            self.filled += 1;
        }
        if source.is_empty() {
            self.bytes[self.filled..self.filled + MARGIN].fill(0);
        }
        Some(())
    }
}

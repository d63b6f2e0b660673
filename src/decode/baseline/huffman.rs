//! Huffman tables, built for lookups without branches: all that is to be known of a symbol at once, or several symbols
//! at once where their values are not wanted.

/// Bits that one lookup looks at: longer codes are rare, values may lie outside.
pub(super) const PEEK: u32 = 11;
/// Bits that one lookup of several symbols looks at.
pub(super) const SKIP_PEEK: u32 = 12;

/// An advance of at least this says that the block has ended.
pub(super) const END: usize = 0x80;
/// An advance of at least this says that one lookup does not do: see [`Canonical`].
pub(super) const LONG: usize = 0xc0;

/// Largest sizes of 8-bit samples: differences of DC, and AC.
const MOST_DC: u8 = 11;
const MOST_AC: u8 = 10;

/// A table as the standard defines it: codes of one length are consecutive numbers, each length begins where the one
/// before ends (ITU-T T.81 annex C).
#[derive(Debug, Clone)]
pub(super) struct Canonical {
    /// For each length, the first code behind its codes, moved to the top of 16 bits.
    limits: [u32; 17],
    /// For each length, what to add to a code (not moved) to get the place of its symbol.
    offsets: [i32; 17],
    symbols: [u8; 256],
}

impl Canonical {
    /// The table whose 16 counts stand at `at`. `None` where it is cut, or has codes that its lengths have no room for
    /// (a code of ones alone is one too many).
    pub fn read(bytes: &[u8], at: usize) -> Option<Self> {
        let counts = bytes.get(at..at + 16)?;
        let total: usize = counts.iter().map(|n| usize::from(*n)).sum();
        let mut table = Self { limits: [0; 17], offsets: [0; 17], symbols: [0; 256] };
        table.symbols.get_mut(..total)?.copy_from_slice(bytes.get(at + 16..at + 16 + total)?);
        let (mut code, mut place) = (0_u32, 0_i32);
        for (length, count) in (1..17).zip(counts) {
            table.offsets[length] = place - code as i32;
            code += u32::from(*count);
            place += i32::from(*count);
            if *count > 0 && code >= 1 << length {
                return None;
            }
            table.limits[length] = code << (16 - length);
            code <<= 1;
        }
        Some(table)
    }

    /// Are its symbols sizes of DC differences? libjpeg refuses others even where they are not used.
    pub fn is_for_dc(&self) -> bool {
        self.symbols.iter().all(|symbol| *symbol < 16)
    }

    /// The length and symbol of the code at the top of `acc`.
    #[inline]
    fn find(&self, acc: u64) -> Option<(u32, u8)> {
        let top = (acc >> 48) as u32;
        let length = (1..17).find(|length| top < self.limits[*length])?;
        let place = (top >> (16 - length)) as i32 + self.offsets[length];
        Some((length as u32, self.symbols[place as usize & 255]))
    }

    /// The difference of DC at the top of `acc` and the bits that it takes.
    #[cold]
    pub fn difference(&self, acc: u64) -> Option<(u32, i32)> {
        difference(self.find(acc)?, acc)
    }

    /// The AC symbol at the top of `acc`: bits that it takes, steps to its coefficient ([`END`] for none), value.
    #[cold]
    pub fn coefficient(&self, acc: u64) -> Option<(u32, usize, i32)> {
        coefficient(self.find(acc)?, acc)
    }
}

fn difference((length, size): (u32, u8), acc: u64) -> Option<(u32, i32)> {
    (size <= MOST_DC).then(|| (length + u32::from(size), value(acc << length, size.into())))
}

fn coefficient((length, symbol): (u32, u8), acc: u64) -> Option<(u32, usize, i32)> {
    let steps = usize::from(symbol >> 4) + 1;
    match symbol & 15 {
        0 if symbol == 0 => Some((length, END, 0)),
        0 if symbol == 0xf0 => Some((length, steps, 0)),
        // libjpeg takes the rest of these for ends of blocks and has no upper limit; no encoder writes them.
        size @ 1..=MOST_AC => Some((length + u32::from(size), steps, value(acc << length, size.into()))),
        _ => None,
    }
}

/// The value that `size` bits at the top of `acc` stand for: the lower half is negative.
fn value(acc: u64, size: u32) -> i32 {
    if size == 0 {
        return 0;
    }
    let bits = (acc >> (64 - size)) as i32;
    if bits >> (size - 1) == 0 { bits - (1 << size) + 1 } else { bits }
}

/// The codes that lie wholly in the next [`SKIP_PEEK`] bits: length (0 for none) and symbol. Only for building tables.
struct Short {
    codes: [(u8, u8); 1 << SKIP_PEEK],
}

impl Short {
    fn of(all: &Canonical) -> Self {
        let mut short = Self { codes: [(0, 0); 1 << SKIP_PEEK] };
        let mut begin = 0;
        for length in 1..=SKIP_PEEK {
            let end = all.limits[length as usize] >> (16 - SKIP_PEEK);
            for top in begin..end {
                let place = (top >> (SKIP_PEEK - length)) as i32 + all.offsets[length as usize];
                short.codes[top as usize] = (length as u8, all.symbols[place as usize & 255]);
            }
            begin = end;
        }
        short
    }

    /// The code at the top of `acc`, where it has at most `room` bits.
    fn find(&self, acc: u64, room: u32) -> Option<(u32, u8)> {
        let (length, symbol) = self.codes[(acc >> (64 - SKIP_PEEK)) as usize];
        (length > 0 && u32::from(length) <= room).then_some((length.into(), symbol))
    }
}

/// The table of DC differences.
#[derive(Debug)]
pub(super) struct DcCode {
    /// By the next [`PEEK`] bits: see [`one`]; 0 where the code is longer.
    pub fast: [u32; 1 << PEEK],
    pub all: Canonical,
}

impl DcCode {
    pub fn new(all: Canonical) -> Self {
        let mut fast = [0; 1 << PEEK];
        let short = Short::of(&all);
        for (top, entry) in (0_u64..).zip(&mut fast) {
            let code = short.find(top << (64 - PEEK), PEEK).filter(|code| code.1 <= MOST_DC);
            *entry = code.map_or(0, |code| one(code.0, code.1, 0));
        }
        Self { fast, all }
    }
}

/// What a lookup gives of one symbol, from the lowest byte: bits taken, value included; steps; the largest value of its
/// size (2 bytes), which is the mask of its bits too.
fn one(length: u32, size: u8, steps: usize) -> u32 {
    let most = (1_u32 << size) - 1;
    (length + u32::from(size)) | ((steps as u32) << 8) | (most << 16)
}

/// The value of the symbol that stands at the top of `acc` and whose entry is `one`.
#[inline(always)]
pub(super) fn value_of(one: u32, acc: u64) -> i32 {
    let most = (one >> 16) as i32;
    let bits = (acc >> (0_u32.wrapping_sub(one) & 63)) as i32 & most;
    bits.wrapping_sub(if bits <= most >> 1 { most } else { 0 })
}

/// The table of AC coefficients.
#[derive(Debug)]
pub(super) struct AcCode {
    /// By the next [`PEEK`] bits: see [`one`].
    pub single: [u32; 1 << PEEK],
    /// By the next [`SKIP_PEEK`] bits: the bits taken by all symbols that begin and end their codes there, and the
    /// steps that they make in the upper byte. Their values may lie outside.
    pub skip: [u16; 1 << SKIP_PEEK],
    pub all: Canonical,
}

impl AcCode {
    pub fn new(all: Canonical) -> Self {
        let (mut single, mut skip) = ([0; 1 << PEEK], [0; 1 << SKIP_PEEK]);
        let short = Short::of(&all);
        for (top, entry) in (0_u64..).zip(&mut single) {
            let acc = top << (64 - PEEK);
            let code = short.find(acc, PEEK).and_then(|code| Some((code, coefficient(code, acc)?.1)));
            *entry = match code {
                Some(((length, symbol), steps)) => one(length, symbol & 15, steps),
                None => (LONG as u32) << 8,
            };
        }
        for (top, entry) in (0_u64..).zip(&mut skip) {
            *entry = several(&short, top << (64 - SKIP_PEEK));
        }
        Self { single, skip, all }
    }
}

/// An entry of [`AcCode::skip`].
fn several(short: &Short, acc: u64) -> u16 {
    let (mut taken, mut steps) = (0, 0);
    while steps < 64
        && let Some(room) = SKIP_PEEK.checked_sub(taken)
        && let Some(code) = short.find(acc << taken, room)
        && let Some((bits, more, _)) = coefficient(code, acc << taken)
    {
        taken += bits;
        steps += more;
    }
    let steps = if taken == 0 { LONG } else { steps };
    taken as u16 | (steps as u16) << 8
}

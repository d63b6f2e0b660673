//! The structure walker: what is in a JPEG, marker by marker, without decoding a coefficient. One pass over the bytes.
//!
//! It knows what the decoder does not say: scans that never come, restart markers out of step, tables of zeros, junk
//! between segments, what follows the end. It allocates a few bytes a segment and trusts no length.

use std::ops::Range;

use crate::fault::{Cause, Fault};

/// No camera writes more; 1,000 scans cost a decoder seconds.
pub(super) const MOST_SCANS: usize = 100;
/// A picture of 250 MP with a profile in every segment has fewer.
const MOST_SEGMENTS: usize = 20_000;

pub(super) const SOI: u8 = 0xd8;
pub(super) const EOI: u8 = 0xd9;
pub(super) const SOS: u8 = 0xda;
pub(super) const DQT: u8 = 0xdb;
pub(super) const DHT: u8 = 0xc4;
pub(super) const DRI: u8 = 0xdd;
const DAC: u8 = 0xcc;
pub(super) const APP0: u8 = 0xe0;
const APP14: u8 = 0xee;

/// A segment with a length, the SOS among them.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub marker: u8,
    /// From its 0xff to the end of its payload.
    pub whole: Range<usize>,
    /// Without marker and length.
    pub body: Range<usize>,
}

/// A component of the frame header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Component {
    pub id: u8,
    /// Sampling across.
    pub h: u8,
    /// Sampling down.
    pub v: u8,
    /// Its quantization table.
    pub table: u8,
}

/// The frame header.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// 0xc0 to 0xcf.
    pub marker: u8,
    pub precision: u8,
    pub width: u32,
    pub height: u32,
    pub components: Vec<Component>,
}

impl Frame {
    pub fn progressive(&self) -> bool {
        matches!(self.marker, 0xc2 | 0xc6 | 0xca | 0xce)
    }

    pub fn arithmetic(&self) -> bool {
        self.marker >= 0xc9
    }

    pub fn lossless(&self) -> bool {
        matches!(self.marker, 0xc3 | 0xc7 | 0xcb | 0xcf)
    }

    /// The largest sampling factors.
    pub fn max_sampling(&self) -> (u32, u32) {
        let h = self.components.iter().map(|c| u32::from(c.h)).max().unwrap_or(1).max(1);
        let v = self.components.iter().map(|c| u32::from(c.v)).max().unwrap_or(1).max(1);
        (h, v)
    }
}

/// A scan: its header and its entropy-coded data.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    /// Indices into [`Frame::components`].
    pub components: Vec<usize>,
    pub spectral: (u8, u8),
    /// Successive approximation, high and low.
    pub approx: (u8, u8),
    /// Where the three parameter bytes stand.
    pub parameters_at: usize,
    /// Entropy-coded bytes, restart markers included.
    pub data: Range<usize>,
    /// Where the restart markers stand (their 0xff).
    pub restarts: Vec<usize>,
    /// Whether they count 0, 1 … 7, 0 …
    pub restarts_in_step: bool,
    /// MCUs between restarts in force, 0 for none.
    pub interval: u32,
    /// A run of zeros that cannot be picture data.
    pub hole: Option<Range<usize>>,
}

/// What the walk saw.
#[derive(Debug, Clone, Default)]
pub(super) struct Walk {
    /// Where the SOI stands.
    pub start: usize,
    pub segments: Vec<Segment>,
    pub frame: Option<Frame>,
    pub scans: Vec<Scan>,
    /// Bytes between header segments that belong to nothing, before the first scan.
    pub junk: usize,
    /// The byte after the EOI; `None` where there is none.
    pub end: Option<usize>,
    /// JFIF APP0 present; its major version is 1.
    pub jfif: Option<bool>,
    /// The colour transform of the Adobe APP14.
    pub adobe: Option<u8>,
    /// Quantization tables with nothing but zeros, one bit a table.
    pub zero_tables: u8,
    /// The last segment was cut by the end of the file.
    pub cut_in_header: bool,
    /// The first symbol of each AC Huffman table: what a code of nothing but zeros means.
    zero_codes: [u8; 4],
}

/// Walks a JPEG whose SOI stands at `start`.
///
/// # Errors
/// Shapes that no decoder should be shown: too many scans or segments, a frame header that is no frame header.
pub(super) fn walk(bytes: &[u8], start: usize) -> Result<Walk, Fault> {
    let mut walk = Walk { start, ..Walk::default() };
    let mut at = start + 2;
    let mut interval = 0;
    while let Some(found) = next_marker(bytes, at) {
        let marker = bytes[found + 1];
        if walk.scans.is_empty() {
            walk.junk += found - at - fill(bytes, at, found);
        }
        match marker {
            EOI => {
                walk.end = Some(found + 2);
                break;
            }
            0x01 | 0xd0..=0xd8 => {
                at = found + 2;
                continue;
            }
            _ => {}
        }
        let Some(segment) = segment(bytes, found, marker) else {
            walk.cut_in_header = true;
            break;
        };
        at = segment.whole.end;
        if walk.segments.len() >= MOST_SEGMENTS {
            return Err(Fault::new(Cause::Undecodable, format!("more than {MOST_SEGMENTS} JPEG segments")));
        }
        let body = &bytes[segment.body.clone()];
        match marker {
            0xc0..=0xcf if !matches!(marker, DHT | DAC | 0xc8) => walk.take_frame(marker, body)?,
            DQT => walk.take_tables(body),
            DHT => walk.take_codes(body),
            DRI => interval = body.get(..2).map_or(0, |b| u32::from(b[0]) << 8 | u32::from(b[1])),
            APP0 if body.starts_with(b"JFIF\0") && body.len() >= 14 => walk.jfif = Some(body[5] == 1),
            APP14 if body.starts_with(b"Adobe") && body.len() >= 12 => walk.adobe = Some(body[11]),
            SOS => at = walk.take_scan(bytes, &segment, interval)?,
            _ => {}
        }
        walk.segments.push(segment);
    }
    Ok(walk)
}

impl Walk {
    fn take_frame(&mut self, marker: u8, body: &[u8]) -> Result<(), Fault> {
        if self.frame.is_some() {
            return Err(Fault::new(Cause::Undecodable, "JPEG with two frame headers"));
        }
        let bad = || Fault::new(Cause::Undecodable, "the JPEG frame header is broken");
        let &[precision, h1, h0, w1, w0, count, ref rest @ ..] = body else { return Err(bad()) };
        if rest.len() < usize::from(count) * 3 || count == 0 {
            return Err(bad());
        }
        let component = |c: &[u8]| Component { id: c[0], h: c[1] >> 4, v: c[1] & 15, table: c[2] };
        let components: Vec<_> = rest.chunks_exact(3).take(usize::from(count)).map(component).collect();
        if components.iter().any(|c| !(1..=4).contains(&c.h) || !(1..=4).contains(&c.v)) {
            return Err(bad());
        }
        let (width, height) = (u32::from(w1) << 8 | u32::from(w0), u32::from(h1) << 8 | u32::from(h0));
        self.frame = Some(Frame { marker, precision, width, height, components });
        Ok(())
    }

    fn take_tables(&mut self, mut body: &[u8]) {
        while let [head, rest @ ..] = body {
            let size = if head >> 4 == 0 { 64 } else { 128 };
            let Some(table) = rest.get(..size) else { return };
            let bit = 1 << (head & 3);
            if table.iter().all(|q| *q == 0) {
                self.zero_tables |= bit;
            } else {
                self.zero_tables &= !bit;
            }
            body = &rest[size..];
        }
    }

    fn take_codes(&mut self, mut body: &[u8]) {
        while let Some((head, rest)) = body.split_first() {
            let Some(counts) = rest.get(..16) else { return };
            let symbols = counts.iter().map(|n| usize::from(*n)).sum::<usize>();
            if let (true, Some(first)) = (head >> 4 == 1, rest.get(16)) {
                self.zero_codes[usize::from(head & 3)] = *first;
            }
            body = rest.get(16 + symbols..).unwrap_or_default();
        }
    }

    /// Notes a scan and returns where its entropy-coded data end.
    fn take_scan(&mut self, bytes: &[u8], segment: &Segment, interval: u32) -> Result<usize, Fault> {
        if self.scans.len() >= MOST_SCANS {
            let detail = format!("more than {MOST_SCANS} scans: built to keep decoders busy");
            return Err(Fault::new(Cause::TooManyScans, detail));
        }
        let bad = || Fault::new(Cause::Undecodable, "a JPEG scan header is broken");
        let Some(frame) = &self.frame else {
            return Err(Fault::new(Cause::Undecodable, "a JPEG scan comes before the frame header"));
        };
        let body = &bytes[segment.body.clone()];
        let count = usize::from(*body.first().ok_or_else(bad)?);
        let parameters = body.get(1 + count * 2..4 + count * 2).ok_or_else(bad)?;
        let ids = body[1..1 + count * 2].chunks_exact(2).map(|c| c[0]);
        let index = |id: u8| frame.components.iter().position(|c| c.id == id);
        let components = ids.map(index).collect::<Option<Vec<_>>>().ok_or_else(bad)?;
        let (data, restarts) = entropy_data(bytes, segment.whole.end);
        let ac_table = usize::from(body.get(2).copied().unwrap_or(0) & 3);
        let codes_zeros =
            !frame.arithmetic() && !frame.lossless() && parameters[1] > 0 && parameters[2] >> 4 == 0;
        // Flat areas may be zeros for long where the zero code ends a block. Where it is a coefficient, a run of zeros
        // is hundreds of like coefficients in a row, which no picture has: a sector or page was lost.
        let hole = if codes_zeros && self.zero_codes[ac_table] & 15 != 0 {
            zeros(bytes, data.clone())
        } else {
            None
        };
        let in_step = restarts.iter().enumerate().all(|(i, at)| usize::from(bytes[at + 1] & 7) == i % 8);
        let end = data.end;
        self.scans.push(Scan {
            components,
            spectral: (parameters[0], parameters[1]),
            approx: (parameters[2] >> 4, parameters[2] & 15),
            parameters_at: segment.body.start + 1 + count * 2,
            data,
            restarts,
            restarts_in_step: in_step,
            interval,
            hole,
        });
        Ok(end)
    }

    /// Quantization tables that are all zeros and in use.
    pub fn zero_table(&self) -> Option<u8> {
        let frame = self.frame.as_ref().filter(|f| !f.lossless())?;
        frame.components.iter().map(|c| c.table & 3).find(|table| self.zero_tables >> table & 1 == 1)
    }

    /// The first component and coefficient that no scan brings to its last bit, said for a person.
    pub fn incomplete(&self) -> Option<String> {
        let frame = self.frame.as_ref()?;
        let last_bit = |component: usize| {
            let mut low = [u8::MAX; 64];
            for scan in self.scans.iter().filter(|s| s.components.contains(&component)) {
                let (from, to) = if frame.progressive() { scan.spectral } else { (0, 63) };
                let al = if frame.progressive() { scan.approx.1 } else { 0 };
                for bit in low.iter_mut().take(usize::from(to) + 1).skip(usize::from(from)) {
                    *bit = (*bit).min(al);
                }
            }
            low
        };
        (0..frame.components.len()).find_map(|component| {
            let low = last_bit(component);
            let coefficient = low.iter().position(|bit| *bit != 0)?;
            let wanting = low.iter().filter(|bit| **bit != 0).count();
            let of = if frame.lossless() { return None } else { wanting };
            Some(format!(
                "component {component} lacks {of} of 64 coefficients, the first is {coefficient}; {} scans came",
                self.scans.len()
            ))
        })
    }

    /// MCUs of the scan of a file that has only one.
    pub fn only_scan_mcus(&self) -> Option<u64> {
        let frame = self.frame.as_ref()?;
        let [scan] = self.scans.as_slice() else { return None };
        let (h, v) = frame.max_sampling();
        let (across, down) = if let [component] = scan.components[..] {
            // A scan of one component counts its own blocks.
            let c = frame.components.get(component)?;
            let wide = (u64::from(frame.width) * u64::from(c.h)).div_ceil(u64::from(h));
            let high = (u64::from(frame.height) * u64::from(c.v)).div_ceil(u64::from(v));
            (wide.div_ceil(8), high.div_ceil(8))
        } else {
            (
                u64::from(frame.width).div_ceil(u64::from(h) * 8),
                u64::from(frame.height).div_ceil(u64::from(v) * 8),
            )
        };
        Some(across * down)
    }

    /// Bodies of the segments with this marker that start with `signature`, without it.
    pub fn bodies<'b>(
        &self,
        bytes: &'b [u8],
        marker: u8,
        signature: &'static [u8],
    ) -> impl Iterator<Item = &'b [u8]> {
        let hits = self.segments.iter().filter(move |s| s.marker == marker);
        hits.filter_map(move |s| bytes[s.body.clone()].strip_prefix(signature))
    }
}

/// Where the next marker's 0xff stands: the last of its fill bytes. 0xff00 is no marker.
fn next_marker(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += find_ff(bytes.get(at..)?)?;
        match bytes.get(at + 1)? {
            0 => at += 2,
            0xff => at += 1,
            _ => return Some(at),
        }
    }
}

/// How many of the bytes between `from` and the marker at `marker` are the fill bytes that the standard allows.
fn fill(bytes: &[u8], from: usize, marker: usize) -> usize {
    bytes[from..marker].iter().rev().take_while(|b| **b == 0xff).count()
}

/// The segment whose marker stands at `at`; `None` where the file ends inside it. A length below 2 counts as 2, as
/// libjpeg reads it.
fn segment(bytes: &[u8], at: usize, marker: u8) -> Option<Segment> {
    let length = bytes.get(at + 2..at + 4)?;
    let length = (usize::from(length[0]) << 8 | usize::from(length[1])).max(2);
    let end = at + 2 + length;
    (end <= bytes.len()).then_some(Segment { marker, whole: at..end, body: at + 4..end })
}

/// Entropy-coded data from `from` to the next marker that is no restart, and the restarts in them.
fn entropy_data(bytes: &[u8], from: usize) -> (Range<usize>, Vec<usize>) {
    let mut restarts = Vec::new();
    let mut at = from;
    while let Some(step) = find_ff(&bytes[at..]) {
        at += step;
        match bytes.get(at + 1) {
            None => return (from..at, restarts),
            Some(0) => at += 2,
            Some(0xd0..=0xd7) => {
                restarts.push(at);
                at += 2;
            }
            // A fill byte; the marker after it decides.
            Some(0xff) => match bytes[at..].iter().position(|b| *b != 0xff) {
                Some(run) if matches!(bytes[at + run], 0 | 0xd0..=0xd7) => at += run - 1,
                _ => return (from..at, restarts),
            },
            Some(_) => return (from..at, restarts),
        }
    }
    (from..bytes.len(), restarts)
}

/// The first run of at least 64 zeros that fills a block of 64 bytes of `data`.
fn zeros(bytes: &[u8], data: Range<usize>) -> Option<Range<usize>> {
    let blank = |block: &[u8]| block.iter().fold(0, |all, b| all | b) == 0;
    let block = bytes[data.clone()].chunks_exact(64).position(blank)?;
    let at = data.start + block * 64;
    let before = bytes[data.start..at].iter().rev().take_while(|b| **b == 0).count();
    let after = bytes[at..data.end].iter().take_while(|b| **b == 0).count();
    Some(at - before..at + after)
}

/// The first 0xff. Whole blocks are tested without branches, which the compiler turns into vector code; within the block
/// that has it, eight bytes at a time: of a byte that is 0 after the flip, and of no byte before it, the top bit is set.
fn find_ff(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut at = 0;
    for block in bytes.chunks_exact(32) {
        if block.iter().fold(false, |hit, b| hit | (*b == 0xff)) {
            break;
        }
        at += 32;
    }
    let (words, _) = bytes[at..].as_chunks::<8>();
    for word in words {
        let flipped = !u64::from_le_bytes(*word);
        let zero = flipped.wrapping_sub(ONES) & !flipped & (ONES << 7);
        if zero != 0 {
            return Some(at + zero.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    bytes[at..].iter().position(|b| *b == 0xff).map(|step| at + step)
}

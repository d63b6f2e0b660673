//! Is this JPEG one that we decode ourselves, and where are its tables? As strict as libjpeg-turbo or stricter: what
//! could make it complain about a header is not for us.

use std::ops::Range;

use super::huffman::Canonical;
use crate::decode::jpeg::Colour;
use crate::decode::walk::{self, DHT, DQT, DRI, SOS, Segment, Walk};

/// A component of the scan: where in the file its tables stand.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::decode) struct Part {
    /// The 64 bytes of its quantization table, in zigzag order.
    pub quant: usize,
    /// The 16 counts of its Huffman table for DC; the symbols follow.
    pub dc: usize,
    /// The same for AC.
    pub ac: usize,
}

/// A JPEG with one interleaved scan of 8-bit Huffman-coded gray or YCbCr, from which nothing is missing as far as
/// markers tell.
#[derive(Debug, Clone)]
pub(in crate::decode) struct Layout {
    /// Stored size.
    pub size: (u32, u32),
    /// One component (gray) or three (Y Cb Cr).
    pub parts: Vec<Part>,
    /// Sampling of luma across and down, 1 or 2; chroma has 1. Gray has 1 and 1 whatever its header says.
    pub luma: (usize, usize),
    /// MCUs between restarts, 0 for none.
    pub interval: usize,
}

impl Layout {
    /// MCUs across and down.
    pub fn mcus(&self) -> (usize, usize) {
        let along = |pixels: u32, sampling: usize| (pixels as usize).div_ceil(8 * sampling);
        (along(self.size.0, self.luma.0), along(self.size.1, self.luma.1))
    }

    /// The layout of the JPEG that `walk` saw in `bytes`; `None` where it is another kind or has anything odd.
    pub fn of(bytes: &[u8], walk: &Walk, colour: Colour) -> Option<Self> {
        let frame = walk.frame.as_ref()?;
        let [scan] = walk.scans.as_slice() else { return None };
        let sequential = matches!(frame.marker, 0xc0 | 0xc1) && frame.precision == 8;
        let whole = scan.spectral == (0, 63) && scan.approx == (0, 0);
        let ends = walk.end == Some(scan.data.end + 2);
        let known = walk.jfif != Some(false) && walk.adobe.is_none_or(|transform| transform <= 1);
        if !(sequential && whole && ends && known && scan.hole.is_none() && gapless(bytes, walk)) {
            return None;
        }
        let luma = sampling(frame, colour)?;
        if scan.components.iter().ne(&(0..frame.components.len()).collect::<Vec<_>>()) {
            return None;
        }
        let size = (frame.width, frame.height);
        let parts = Tables::read(bytes, &walk.segments)?.parts(bytes, frame)?;
        let layout = Self { size, parts, luma, interval: scan.interval as usize };
        let (across, down) = layout.mcus();
        let expected = (across * down).div_ceil(layout.interval.max(1)).max(1) - 1;
        let restarts = if layout.interval == 0 { 0 } else { expected };
        (scan.restarts.len() == restarts && scan.restarts_in_step).then_some(layout)
    }
}

/// Sampling of luma.
fn sampling(frame: &walk::Frame, colour: Colour) -> Option<(usize, usize)> {
    let factors: Vec<(u8, u8)> = frame.components.iter().map(|c| (c.h, c.v)).collect();
    match (colour, &factors[..]) {
        (Colour::Gray, [_]) => Some((1, 1)),
        (Colour::YCbCr, &[(h @ 1..=2, v @ 1..=2), (1, 1), (1, 1)]) => Some((h.into(), v.into())),
        _ => None,
    }
}

/// Do segments stand one after the other, with nothing but fill bytes between them, up to the one scan?
fn gapless(bytes: &[u8], walk: &Walk) -> bool {
    let mut at = walk.start + 2;
    let follows = |segment: &Segment| {
        let gap = bytes.get(at..segment.whole.start);
        at = segment.whole.end;
        gap.is_some_and(|gap| gap.iter().all(|b| *b == 0xff))
    };
    walk.segments.iter().all(follows) && walk.segments.last().is_some_and(|s| s.marker == SOS)
}

/// Where the tables stand, by number.
#[derive(Default)]
struct Tables<'a> {
    quant: [Option<usize>; 4],
    dc: [Option<usize>; 4],
    ac: [Option<usize>; 4],
    scan: &'a [u8],
}

impl<'a> Tables<'a> {
    fn read(bytes: &'a [u8], segments: &[Segment]) -> Option<Self> {
        let mut tables = Self::default();
        for segment in segments {
            let body = &bytes[segment.body.clone()];
            match segment.marker {
                DQT => tables.take_quant(bytes, segment.body.clone())?,
                DHT => tables.take_codes(bytes, segment.body.clone())?,
                DRI if body.len() == 2 => {}
                // The lengths of both headers must be those that their counts ask for.
                0xc0 | 0xc1 if body.len() == 6 + 3 * usize::from(*body.get(5)?) => {}
                SOS if body.len() == 4 + 2 * usize::from(*body.first()?) => tables.scan = body,
                0xe0..=0xef | 0xfe => {}
                _ => return None,
            }
        }
        Some(tables)
    }

    fn take_quant(&mut self, bytes: &[u8], body: Range<usize>) -> Option<()> {
        let mut at = body.start;
        while at < body.end {
            let number = *bytes.get(at)?;
            *self.quant.get_mut(usize::from(number))? = Some(at + 1);
            at += 65;
        }
        (at == body.end).then_some(())
    }

    fn take_codes(&mut self, bytes: &[u8], body: Range<usize>) -> Option<()> {
        let mut at = body.start;
        while at < body.end {
            let head = *bytes.get(at)?;
            let counts = bytes.get(at + 1..at + 17)?;
            let symbols: usize = counts.iter().map(|n| usize::from(*n)).sum();
            let tables = if head & 0x10 == 0 { &mut self.dc } else { &mut self.ac };
            *tables.get_mut(usize::from(head & !0x10))? = Some(at + 1);
            if symbols > 256 {
                return None;
            }
            at += 17 + symbols;
        }
        (at == body.end).then_some(())
    }

    fn parts(&self, bytes: &[u8], frame: &walk::Frame) -> Option<Vec<Part>> {
        let choices = self.scan.get(1..)?.chunks_exact(2).map(|choice| choice[1]);
        let parts: Option<Vec<Part>> = (frame.components.iter().zip(choices))
            .map(|(component, choice)| {
                let part = Part {
                    quant: (*self.quant.get(usize::from(component.table))?)?,
                    dc: (*self.dc.get(usize::from(choice >> 4))?)?,
                    ac: (*self.ac.get(usize::from(choice & 15))?)?,
                };
                let proper = Canonical::read(bytes, part.dc)?.is_for_dc();
                (proper && Canonical::read(bytes, part.ac).is_some()).then_some(part)
            })
            .collect();
        parts.filter(|parts| parts.len() == frame.components.len())
    }
}

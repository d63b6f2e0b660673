//! Baseline JPEG at reduced scales, decoded by ourselves: the coefficients that a scale does not need are skipped many
//! at a time, and chroma is brought to the scale of luma by its own transform.
//!
//! It takes clean files only. Whatever is odd in them, in the header ([`Layout::of`]) or in the data, makes it give up,
//! and libjpeg-turbo (or zune-jpeg) decodes and judges the file. What it accepts, libjpeg-turbo has nothing to say of.

mod bits;
mod colour;
mod huffman;
mod idct;
mod layout;
mod scan;
#[cfg(all(test, feature = "turbo"))]
mod tests;

use bits::{Bits, Window};
use huffman::{AcCode, Canonical, DcCode};
pub(super) use layout::{Layout, Part};
use scan::{Coding, Keep, LANES, Lanes};

use super::complaint::Pixels;
use super::walk::Scan;
use crate::pixels::Scale;
use crate::simd::widest;

/// The eighths at which this decoder works.
pub(super) const SCALES: [u8; 4] = [1, 2, 3, 4];

/// Tables that are kept from file to file: most files of a set have the same ones.
const KEPT_TABLES: usize = 8;
/// A gray file has one, one in 4:2:0 has two rows of luma and two of chroma.
const ROWS_OF_BLOCKS: usize = 4;

/// A worker's scratch.
pub(super) struct Decoder {
    window: Window,
    /// Tables by their bytes in the file.
    dc: Vec<(Vec<u8>, Box<DcCode>)>,
    ac: Vec<(Vec<u8>, Box<AcCode>)>,
    /// Coefficients of one row of blocks each, all zeros between groups.
    lanes: Box<[Lanes; ROWS_OF_BLOCKS]>,
    strip: Vec<u8>,
    half: Box<idct::Half>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            window: Window::default(),
            dc: Vec::new(),
            ac: Vec::new(),
            lanes: Box::new([[0; _]; ROWS_OF_BLOCKS]),
            strip: Vec::new(),
            half: Box::new([[0.0; _]; _]),
        }
    }
}

/// One row of blocks within a strip, of all MCUs of a group.
struct Row {
    /// 0 is luma or gray.
    part: usize,
    /// Its first sample row in the strip of its plane.
    top: usize,
}

/// One block of each MCU.
struct Block {
    row: usize,
    part: usize,
    /// Blocks of an MCU in this row, and which of them this is.
    step: usize,
    shift: usize,
}

/// How the planes of a row of MCUs lie in memory: one plane after the other, each of `height` rows of `pitch` bytes.
struct Strip {
    /// MCUs that are decoded before they are transformed: a full row of lanes of luma.
    group: usize,
    height: usize,
    pitch: usize,
}

impl Decoder {
    /// Decodes `bytes` at `scale`, one of [`SCALES`]. `None` where anything is odd.
    pub fn decode(&mut self, bytes: &[u8], layout: &Layout, scan: &Scan, scale: Scale) -> Option<Pixels> {
        let eighths = scale.numerator() as usize;
        if !SCALES.contains(&(eighths as u8)) {
            return None;
        }
        let tables = self.tables(bytes, &layout.parts)?;
        let keeps: Vec<Keep> = (0..layout.parts.len()).map(|part| keep(layout, part, eighths)).collect();
        let mut codings = Vec::new();
        let mut factors = Vec::new();
        for ((part, keep), (dc, ac)) in layout.parts.iter().zip(&keeps).zip(tables) {
            codings.push(Coding { dc: &self.dc.get(dc)?.1, ac: &self.ac.get(ac)?.1, keep });
            factors.push(idct::factors(bytes.get(part.quant..)?.first_chunk()?, keep.size));
        }
        let (width, height) = (scale.of(layout.size.0) as usize, scale.of(layout.size.1) as usize);
        let strip = Strip::of(layout, eighths);
        self.strip.clear();
        self.strip.resize(strip.height * strip.pitch * layout.parts.len(), 0);
        self.lanes.iter_mut().for_each(|lanes| lanes.fill(0));
        let (rows, blocks) = order(layout, eighths);
        let mut reader = Reader::new(bytes, layout, scan, &mut self.window)?;
        let mut data = vec![0; width * height * 3];
        let (across, down) = layout.mcus();
        for mcu_row in 0..down {
            for first in (0..across).step_by(strip.group) {
                let count = strip.group.min(across - first);
                reader.group(count, &blocks, &codings, &mut self.lanes)?;
                for (row, lanes) in rows.iter().zip(self.lanes.iter_mut()) {
                    let keep = &keeps[row.part];
                    let across = keep.size.0 / eighths;
                    let start = (row.part * strip.height + row.top) * strip.pitch;
                    let target = idct::Target {
                        rows: self.strip.get_mut(start..)?,
                        pitch: strip.pitch,
                        left: first * layout.luma.0 * eighths,
                        half: &mut self.half,
                    };
                    // Luma has as many blocks more as chroma is wider.
                    let count = count * layout.luma.0 / across;
                    idct::transform(lanes, &factors[row.part], keep.size, count, target);
                    lanes[..keep.size.0 * keep.size.1 * LANES].fill(0);
                }
            }
            let done = mcu_row * strip.height;
            let out = data.chunks_exact_mut(width * 3).skip(done).take(strip.height);
            strip.paint(&self.strip, layout.parts.len(), out);
        }
        let (width, height) = (width as u32, height as u32);
        reader.is_done().then_some(Pixels { width, height, data, complaint: None })
    }

    /// Places of the tables of each part in `dc` and `ac`.
    fn tables(&mut self, bytes: &[u8], parts: &[Part]) -> Option<Vec<(usize, usize)>> {
        if self.dc.len() + self.ac.len() > KEPT_TABLES {
            self.dc.clear();
            self.ac.clear();
        }
        parts
            .iter()
            .map(|part| {
                let dc = place(&mut self.dc, bytes, part.dc, DcCode::new)?;
                Some((dc, place(&mut self.ac, bytes, part.ac, AcCode::new)?))
            })
            .collect()
    }
}

/// The place in `kept` of the table that stands at `at`; built where it is not there yet.
fn place<T>(
    kept: &mut Vec<(Vec<u8>, Box<T>)>,
    bytes: &[u8],
    at: usize,
    build: fn(Canonical) -> T,
) -> Option<usize> {
    let symbols: usize = bytes.get(at..at + 16)?.iter().map(|n| usize::from(*n)).sum();
    let text = bytes.get(at..at + 16 + symbols)?;
    if let Some(found) = kept.iter().position(|(own, _)| own == text) {
        return Some(found);
    }
    kept.push((text.to_vec(), Box::new(build(Canonical::read(bytes, at)?))));
    Some(kept.len() - 1)
}

/// The coefficients of a part that bring it to the grid of the result: chroma that is half as wide is scaled down half
/// as much.
fn keep(layout: &Layout, part: usize, eighths: usize) -> Keep {
    let (h, v) = if part == 0 { (1, 1) } else { layout.luma };
    Keep::lowest(eighths * h, eighths * v)
}

/// The rows of blocks of a strip, and the blocks of an MCU in the order of the scan.
fn order(layout: &Layout, eighths: usize) -> (Vec<Row>, Vec<Block>) {
    let (across, down) = layout.luma;
    let mut rows: Vec<Row> = (0..down).map(|y| Row { part: 0, top: y * eighths }).collect();
    let luma = (0..down).flat_map(|y| (0..across).map(move |x| (y, x)));
    let mut blocks: Vec<Block> =
        luma.map(|(row, shift)| Block { row, part: 0, step: across, shift }).collect();
    for part in 1..layout.parts.len() {
        blocks.push(Block { row: rows.len(), part, step: 1, shift: 0 });
        rows.push(Row { part, top: 0 });
    }
    (rows, blocks)
}

impl Strip {
    fn of(layout: &Layout, eighths: usize) -> Self {
        let group = LANES / layout.luma.0;
        let groups = layout.mcus().0.div_ceil(group);
        // Behind each row there is room for what a store writes too much.
        Self { group, height: layout.luma.1 * eighths, pitch: groups * LANES * eighths + 16 }
    }

    /// Makes rows of RGB of the strip's samples.
    fn paint<'o>(&self, samples: &[u8], planes: usize, out: impl Iterator<Item = &'o mut [u8]>) {
        for (y, out) in out.enumerate() {
            let row =
                |plane: usize| samples.chunks_exact(self.pitch).nth(plane * self.height + y).unwrap_or(&[]);
            if planes == 1 {
                colour::gray_row(row(0), out);
            } else {
                widest(colour::Row { y: row(0), cb: row(1), cr: row(2), out });
            }
        }
    }
}

/// The scan, MCU by MCU.
struct Reader<'a> {
    bytes: &'a [u8],
    window: &'a mut Window,
    /// What is not yet in the window of the bytes up to the next marker.
    source: &'a [u8],
    bits: Bits,
    /// Markers to come, the end of the data the last of them.
    marks: std::vec::IntoIter<usize>,
    /// The marker that ends `source`.
    mark: usize,
    interval: usize,
    /// MCUs before the next restart.
    left: usize,
    /// DC of the block before, for each part.
    before: [i32; 3],
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], layout: &Layout, scan: &Scan, window: &'a mut Window) -> Option<Self> {
        let interval = if layout.interval == 0 { usize::MAX } else { layout.interval };
        let marks: Vec<usize> = scan.restarts.iter().copied().chain([scan.data.end]).collect();
        let mut marks = marks.into_iter();
        let mark = marks.next()?;
        let mut source = bytes.get(scan.data.start..mark)?;
        let bits = window.begin(&mut source)?;
        Some(Self { bytes, window, source, bits, marks, mark, interval, left: interval, before: [0; 3] })
    }

    /// Decodes `count` MCUs into lanes from 0 on.
    #[inline(never)]
    fn group(
        &mut self,
        count: usize,
        blocks: &[Block],
        codings: &[Coding<'_>],
        lanes: &mut [Lanes; ROWS_OF_BLOCKS],
    ) -> Option<()> {
        let mut bits = self.bits;
        for mcu in 0..count {
            if self.left == 0 {
                bits = self.restart(bits)?;
            }
            self.left -= 1;
            bits = self.window.ready(bits, &mut self.source)?;
            for one in blocks {
                let lanes = &mut lanes[one.row % ROWS_OF_BLOCKS];
                let lane = mcu * one.step + one.shift;
                let before = self.before.get_mut(one.part)?;
                bits = scan::block(bits, self.window, *codings.get(one.part)?, lanes, lane, before)?;
            }
        }
        self.bits = bits;
        Some(())
    }

    /// Passes a restart marker, before which every bit must have been used.
    fn restart(&mut self, bits: Bits) -> Option<Bits> {
        if !self.window.is_done(bits, self.source) {
            return None;
        }
        let from = self.mark + 2;
        self.mark = self.marks.next()?;
        self.source = self.bytes.get(from..self.mark)?;
        self.left = self.interval;
        self.before = [0; 3];
        self.window.begin(&mut self.source)
    }

    fn is_done(&self) -> bool {
        self.marks.len() == 0 && self.window.is_done(self.bits, self.source)
    }
}

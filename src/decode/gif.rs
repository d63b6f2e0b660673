//! GIF: the blocks are walked here, so that the decoder is shown the first frame alone, whatever else is in the file.
//!
//! The picture is the whole canvas. Where the first frame leaves it bare, it is transparent if the frame has a
//! transparent colour, and else has colour 0, as in Pillow. (The background colour of the screen is ignored by every
//! viewer.)

use std::io::Cursor;

use image::ImageDecoder;
use image::codecs::gif::GifDecoder;

use super::flatten::Flattener;
use super::plain::fault;
use super::{Body, Format, Found, Header, Limits, Mode, Paint, Raw, check_size};
use crate::fault::{Cause, Fault, Note, Oddity};
use crate::pixels::Rgb8;

/// Header and screen descriptor.
const HEAD: usize = 13;
/// Frames are counted as far as this.
const MOST_FRAMES: u32 = 10_000;

/// A GIF between header and pixels.
pub(super) struct Gif {
    /// A file with nothing but the first frame.
    stream: Vec<u8>,
    width: u32,
    height: u32,
    /// Where the first frame lies: left, top, right, bottom.
    frame: [u32; 4],
    /// What shows where the canvas is bare; `None` where it is transparent.
    bare: Option<[u8; 3]>,
}

/// What the block walk saw.
#[derive(Default)]
struct Blocks<'a> {
    /// The graphic control block before the first frame.
    control: Option<&'a [u8]>,
    /// The first frame: descriptor, colours, data.
    frame: Option<&'a [u8]>,
    icc: Option<Vec<u8>>,
    frames: u32,
    /// The file says that it ends.
    ended: bool,
}

/// Walks the blocks.
pub(super) fn open<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Found<'a>, Fault> {
    let broken = |why: &str| Fault::new(Cause::Undecodable, why);
    let head = bytes.get(..HEAD).ok_or_else(|| broken("the GIF ends inside its header"))?;
    let table = colours(head[10]);
    let colours = bytes.get(HEAD..HEAD + table).ok_or_else(|| broken("the GIF ends inside its colours"))?;
    let (mut width, mut height) = (short(head, 6), short(head, 8));
    check_size(width, height, limits)?;
    let blocks = walk(bytes, HEAD + table);
    let frame = blocks.frame.ok_or_else(|| broken("the GIF has no frame"))?;
    let mut notes = Vec::new();
    let (right, bottom) = (short(frame, 1) + short(frame, 5), short(frame, 3) + short(frame, 7));
    if right > width || bottom > height {
        notes
            .push(Note::new(Oddity::OddParameters, "the first frame is larger than the canvas, which grows"));
        (width, height) = (width.max(right), height.max(bottom));
        check_size(width, height, limits)?;
    }
    if blocks.frames > 1 {
        notes.push(Note::new(Oddity::Frames, blocks.frames));
    }
    if !blocks.ended && blocks.frames == 1 {
        notes.push(Note::plain(Oddity::MissingEnd));
    }
    let transparent = blocks.control.is_some_and(|c| c[3] & 1 == 1);
    let own = frame.get(10..10 + self::colours(frame[9])).filter(|own| !own.is_empty());
    let bare = own.unwrap_or(colours).first_chunk::<3>().copied().unwrap_or_default();
    let stream = alone(head, colours, &blocks, frame, (width, height));
    let mode = if transparent { Mode::Pa } else { Mode::P };
    let mut header = Header::new(Format::Gif, (width, height), mode, 8);
    header.frames = blocks.frames.max(1);
    let body = Body::Gif(Gif {
        stream,
        width,
        height,
        frame: [short(frame, 1), short(frame, 3), right, bottom],
        bare: (!transparent).then_some(bare),
    });
    Ok(Found { header, notes, profile: blocks.icc, body })
}

/// Bytes of a colour table by its flags.
fn colours(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

fn short(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 2).map_or(0, |b| u32::from(b[0]) | u32::from(b[1]) << 8)
}

/// Walks from the end of the colours to the trailer. A frame that the file cuts off counts as far as it goes.
fn walk(bytes: &[u8], start: usize) -> Blocks<'_> {
    let mut blocks = Blocks::default();
    let mut at = start;
    while let Some(kind) = bytes.get(at) {
        match kind {
            0x21 => {
                let end = sub_blocks(bytes, at + 2);
                let block = &bytes[at..end];
                match bytes.get(at + 1) {
                    Some(0xf9) if blocks.frames == 0 && block.len() >= 8 => {
                        blocks.control = Some(&block[..8]);
                    }
                    Some(0xff) if block.get(3..14) == Some(b"ICCRGBG1012") && blocks.icc.is_none() => {
                        blocks.icc = Some(joined(&block[14..]));
                    }
                    _ => {}
                }
                at = end;
            }
            0x2c => {
                let Some(descriptor) = bytes.get(at..at + 10) else { break };
                // Colours, then the smallest code size, then data.
                let data = at + 10 + colours(descriptor[9]) + 1;
                let end = if data < bytes.len() { sub_blocks(bytes, data) } else { bytes.len() };
                blocks.frame = blocks.frame.or(Some(&bytes[at..end]));
                blocks.frames += 1;
                if blocks.frames >= MOST_FRAMES {
                    break;
                }
                at = end;
            }
            0x3b => {
                blocks.ended = true;
                break;
            }
            // Some writers pad with zeros; anything else is no block.
            0 => at += 1,
            _ => break,
        }
    }
    blocks
}

/// The end of the sub-blocks that start at `at`.
fn sub_blocks(bytes: &[u8], mut at: usize) -> usize {
    while let Some(length) = bytes.get(at) {
        at += 1 + usize::from(*length);
        if *length == 0 {
            break;
        }
    }
    at.min(bytes.len())
}

/// The contents of sub-blocks.
fn joined(mut blocks: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((length, rest)) = blocks.split_first().filter(|(length, _)| **length > 0) {
        let (part, after) = rest.split_at(usize::from(*length).min(rest.len()));
        out.extend_from_slice(part);
        blocks = after;
    }
    out
}

/// A file with the first frame alone, on a canvas of `size`.
fn alone(head: &[u8], colours: &[u8], blocks: &Blocks<'_>, frame: &[u8], size: (u32, u32)) -> Vec<u8> {
    let mut out = b"GIF89a".to_vec();
    out.extend((size.0 as u16).to_le_bytes());
    out.extend((size.1 as u16).to_le_bytes());
    out.extend(&head[10..]);
    out.extend(colours);
    out.extend(blocks.control.unwrap_or_default());
    out.extend(frame);
    out.push(0x3b);
    out
}

impl Gif {
    /// RGBA of the canvas, indices or RGBA of the frame, and the result.
    pub fn need_bytes(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height) * 11 + self.stream.len() as u64 + (1 << 18)
    }

    /// Makes what no colour covers opaque: bare canvas, and in the frame (where only a colour that the table does not
    /// have leaves a hole) black.
    fn cover(&self, rgba: &mut [u8], bare: [u8; 3]) {
        let [left, top, right, bottom] = self.frame;
        for (y, row) in (0..).zip(rgba.chunks_exact_mut(self.width as usize * 4)) {
            for (x, pixel) in (0..).zip(row.chunks_exact_mut(4)).filter(|(_, p)| p[3] == 0) {
                let inside = (left..right).contains(&x) && (top..bottom).contains(&y);
                let [r, g, b] = if inside { [0; 3] } else { bare };
                pixel.copy_from_slice(&[r, g, b, 255]);
            }
        }
    }

    /// Decodes the first frame onto its canvas.
    pub fn pixels(&self, paint: &Paint<'_>) -> Result<Raw, Fault> {
        let decoder = GifDecoder::new(Cursor::new(&self.stream)).map_err(|why| fault(&why))?;
        let mut rgba = vec![0; self.width as usize * self.height as usize * 4];
        if decoder.total_bytes() != rgba.len() as u64 {
            return Err(Fault::new(Cause::Undecodable, "the GIF has another size than its header says"));
        }
        let outcome = decoder.read_image(&mut rgba);
        let damage = match outcome {
            Ok(()) => None,
            Err(why) if rgba.iter().any(|v| *v != 0) => {
                let fault = fault(&why);
                Some(if fault.cause == Cause::Undecodable {
                    Fault::new(Cause::EntropyDamage, fault.detail)
                } else {
                    fault
                })
            }
            Err(why) => return Err(fault(&why)),
        };
        if let Some(bare) = self.bare {
            self.cover(&mut rgba, bare);
        }
        let mut flat = Flattener::new(paint);
        let mut data = Vec::with_capacity(rgba.len() / 4 * 3);
        flat.row8(&rgba, 4, &mut data);
        let mut notes = vec![Note::plain(Oddity::Palette)];
        flat.notes(false, &mut notes);
        Ok(Raw { rgb: Rgb8::new(self.width, self.height, data), notes, damage })
    }
}

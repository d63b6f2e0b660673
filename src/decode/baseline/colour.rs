//! YCbCr to RGB, row by row (JFIF: BT.601, full range).

use crate::simd::Loops;

/// Samples in one step.
const STEP: usize = 16;

/// Rows of samples on their way to a row of RGB; `out` says how many. The sample rows must have [`STEP`] - 1 samples more.
pub(super) struct Row<'a> {
    pub y: &'a [u8],
    pub cb: &'a [u8],
    pub cr: &'a [u8],
    pub out: &'a mut [u8],
}

impl Loops for Row<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let steps = self.y.chunks_exact(STEP).zip(self.cb.chunks_exact(STEP)).zip(self.cr.chunks_exact(STEP));
        for (((y, cb), cr), out) in steps.zip(self.out.chunks_mut(3 * STEP)) {
            let (Some(y), Some(cb), Some(cr)) = (y.first_chunk(), cb.first_chunk(), cr.first_chunk()) else {
                return;
            };
            let pixels = pixels(y, cb, cr);
            if let Some(out) = out.first_chunk_mut() {
                pack(&pixels, out);
            } else {
                let mut last = [0; 3 * STEP];
                pack(&pixels, &mut last);
                out.copy_from_slice(&last[..out.len()]);
            }
        }
    }
}

/// Gray as RGB.
pub(super) fn gray_row(y: &[u8], out: &mut [u8]) {
    for (y, out) in y.iter().zip(out.chunks_exact_mut(3)) {
        out.fill(*y);
    }
}

/// `a * b / 65536`, rounded down.
#[inline(always)]
fn high(a: i16, b: i16) -> i16 {
    (i32::from(a).wrapping_mul(i32::from(b)) >> 16) as i16
}

/// Pixels as numbers, red lowest. Sums are taken in 64ths and rounded once; a product of chroma in units of 1/128 with
/// `f * 32768` has 64ths in its upper half. No sum leaves 16 bits.
#[inline(always)]
fn pixels(y: &[u8; STEP], cb: &[u8; STEP], cr: &[u8; STEP]) -> [u32; STEP] {
    // 1.402 - 1, 0.344136, 0.714136, 1.772 - 2: what is taken away is added as whole numbers.
    const RED: i16 = 13_173;
    const GREEN_BLUE: i16 = -11_277;
    const GREEN_RED: i16 = -23_401;
    const BLUE: i16 = -7_471;
    let mut out = [0; STEP];
    for i in 0..STEP {
        let y = i16::from(y[i]) << 6 | 32;
        let (cb, cr) = (i16::from(cb[i]).wrapping_sub(128), i16::from(cr[i]).wrapping_sub(128));
        let (b, r) = (cb << 7, cr << 7);
        let red = y.wrapping_add(cr << 6).wrapping_add(high(r, RED)) >> 6;
        let green = y.wrapping_add(high(b, GREEN_BLUE)).wrapping_add(high(r, GREEN_RED)) >> 6;
        let blue = y.wrapping_add(b).wrapping_add(high(b, BLUE)) >> 6;
        let byte = |v: i16| u32::from(v.clamp(0, 255) as u8);
        out[i] = byte(red) | byte(green) << 8 | byte(blue) << 16;
    }
    out
}

/// Pixels of three bytes, four of them as three numbers.
#[inline(always)]
fn pack(pixels: &[u32; STEP], out: &mut [u8; 3 * STEP]) {
    for (four, out) in pixels.chunks_exact(4).zip(out.chunks_exact_mut(12)) {
        let words = [four[0] | four[1] << 24, four[1] >> 8 | four[2] << 16, four[2] >> 16 | four[3] << 8];
        for (word, out) in words.iter().zip(out.chunks_exact_mut(4)) {
            out.copy_from_slice(&word.to_le_bytes());
        }
    }
}

//! Loops by the best instructions that the processor has, found at run time: the build itself assumes only what every
//! processor of the architecture can do.
//!
//! This room holds `unsafe` code because a function compiled for instructions that the build does not assume may only
//! be called where the processor has them. Both files ask before they call.

pub mod popcount;

/// Loops that are worth vectors.
pub trait Loops {
    /// What comes out.
    type Out;
    /// Runs them. Only what is inlined becomes vector code: implementations are marked `#[inline(always)]`, and so are
    /// the functions that they call; loops stand in the open, not in closures of iterators.
    fn run(self) -> Self::Out;
}

/// Runs `loops`, compiled a second time for processors with AVX2, where there is one. The result is the same: vectors
/// are made of the same additions and multiplications, and Rust never fuses or reorders those of floats.
#[allow(unsafe_code, reason = "the call of a function compiled for AVX2")]
pub fn widest<L: Loops>(loops: L) -> L::Out {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor was just asked for these instructions.
        return unsafe { avx2(loops) };
    }
    loops.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<L: Loops>(loops: L) -> L::Out {
    loops.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sums<'a>(&'a [f32]);

    impl Loops for Sums<'_> {
        type Out = [f32; 8];

        #[inline(always)]
        fn run(self) -> [f32; 8] {
            let mut sums = [0.25_f32; 8];
            for eight in self.0.as_chunks::<8>().0 {
                for (sum, value) in sums.iter_mut().zip(eight) {
                    *sum = *sum * 0.75 + value * 1.1;
                }
            }
            sums
        }
    }

    #[test]
    fn floats_are_the_same_in_wide_code() {
        let values: Vec<f32> = (0..4_096_u32).map(|i| (i * 7_919 % 1_013) as f32 / 3.0).collect();
        assert_eq!(widest(Sums(&values)), Sums(&values).run());
    }
}

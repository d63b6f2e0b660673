//! Which of many 64-bit codes differ from one in few bits: the innermost loop, by the best instructions the processor
//! has, found at run time.
//!
//! This file holds `unsafe` code because a function compiled for instructions that the build does not assume may only
//! be called where the processor has them. [`Kernel`] is made nowhere but in [`Kernel::all`], which asks; the rest is
//! loads from slices of known length.
#![allow(unsafe_code, reason = "see above")]

/// Codes that are looked at together: one branch for all of them.
const GROUP: usize = 16;

/// A way of counting bits that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Popcnt,
    Plain,
}

impl Kernel {
    /// All that this processor has, the fastest first.
    pub fn all() -> Vec<Self> {
        let mut kernels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq") {
                kernels.push(Self(Kind::Avx512));
            }
            if is_x86_feature_detected!("avx2") {
                kernels.push(Self(Kind::Avx2));
            }
            if is_x86_feature_detected!("popcnt") {
                kernels.push(Self(Kind::Popcnt));
            }
        }
        kernels.push(Self(Kind::Plain));
        kernels
    }

    /// The fastest.
    pub fn best() -> Self {
        Self::all().first().copied().unwrap_or(Self(Kind::Plain))
    }

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "AVX-512 VPOPCNTDQ",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Kind::Popcnt => "popcnt",
            Kind::Plain => "plain",
        }
    }

    /// Calls `hit` with the place of every code that differs from `query` in at most `limit` bits, in order.
    pub fn scan(self, query: u64, codes: &[u64], limit: u32, mut hit: impl FnMut(usize)) {
        let (groups, rest) = codes.as_chunks::<GROUP>();
        let mut from = 0;
        while from < groups.len() {
            let left = &groups[from..];
            let skipped = match self.0 {
                // SAFETY: a kernel of this kind exists only where the processor was asked for the instructions.
                #[cfg(target_arch = "x86_64")]
                Kind::Avx512 => unsafe { x86::avx512(query, left, limit) },
                #[cfg(target_arch = "x86_64")]
                Kind::Avx2 => unsafe { x86::avx2(query, left, limit) },
                #[cfg(target_arch = "x86_64")]
                Kind::Popcnt => unsafe { x86::popcnt(query, left, limit) },
                Kind::Plain => plain(query, left, limit),
            };
            from += skipped;
            if let Some(group) = groups.get(from) {
                report(query, group, from * GROUP, limit, &mut hit);
                from += 1;
            }
        }
        report(query, rest, groups.len() * GROUP, limit, &mut hit);
    }
}

fn report(query: u64, codes: &[u64], first: usize, limit: u32, hit: &mut impl FnMut(usize)) {
    for (at, code) in codes.iter().enumerate() {
        if (code ^ query).count_ones() <= limit {
            hit(first + at);
        }
    }
}

/// Groups before the first that holds a hit.
#[inline(always)]
fn plain(query: u64, groups: &[[u64; GROUP]], limit: u32) -> usize {
    let near = |group: &[u64; GROUP]| {
        let mut least = [u32::MAX; 4];
        for four in group.as_chunks::<4>().0 {
            for (least, code) in least.iter_mut().zip(four) {
                *least = (*least).min((code ^ query).count_ones());
            }
        }
        least[0].min(least[1]).min(least[2].min(least[3])) <= limit
    };
    groups.iter().position(near).unwrap_or(groups.len())
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::GROUP;

    /// [`super::plain`], where counting the bits of a word is one instruction.
    #[target_feature(enable = "popcnt")]
    pub fn popcnt(query: u64, groups: &[[u64; GROUP]], limit: u32) -> usize {
        super::plain(query, groups, limit)
    }

    /// Counts the bits of four words at once: two looks into a table of 16 a byte, then sums of 8 bytes.
    #[target_feature(enable = "avx2")]
    pub fn avx2(query: u64, groups: &[[u64; GROUP]], limit: u32) -> usize {
        let query = _mm256_set1_epi64x(query as i64);
        let limit = _mm256_set1_epi64x(i64::from(limit) + 1);
        let low = _mm256_set1_epi8(0x0f);
        let table = _mm256_setr_epi8(
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
        );
        let count = |four: &[u64; 4]| {
            // SAFETY: 32 bytes are there, and the load asks for no alignment.
            let differ = _mm256_xor_si256(unsafe { _mm256_loadu_si256(four.as_ptr().cast()) }, query);
            let odd = _mm256_and_si256(_mm256_srli_epi16::<4>(differ), low);
            let even = _mm256_and_si256(differ, low);
            let bytes = _mm256_add_epi8(_mm256_shuffle_epi8(table, even), _mm256_shuffle_epi8(table, odd));
            _mm256_sad_epu8(bytes, _mm256_setzero_si256())
        };
        let near = |group: &[u64; GROUP]| {
            let [a, b, c, d] = group.as_chunks::<4>().0 else { return true };
            let ab = _mm256_min_epu8(count(a), count(b));
            let least = _mm256_min_epu8(ab, _mm256_min_epu8(count(c), count(d)));
            let hits = _mm256_cmpgt_epi64(limit, least);
            _mm256_testz_si256(hits, hits) == 0
        };
        groups.iter().position(near).unwrap_or(groups.len())
    }

    /// Counts the bits of eight words at once.
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    pub fn avx512(query: u64, groups: &[[u64; GROUP]], limit: u32) -> usize {
        let query = _mm512_set1_epi64(query as i64);
        let limit = _mm512_set1_epi64(i64::from(limit));
        let count = |eight: &[u64; 8]| {
            // SAFETY: 64 bytes are there, and the load asks for no alignment.
            _mm512_popcnt_epi64(_mm512_xor_si512(unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) }, query))
        };
        let near = |group: &[u64; GROUP]| {
            let [a, b] = group.as_chunks::<8>().0 else { return true };
            _mm512_cmple_epu64_mask(_mm512_min_epu64(count(a), count(b)), limit) != 0
        };
        groups.iter().position(near).unwrap_or(groups.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_counting_finds_the_same() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        };
        let codes: Vec<u64> = (0..1_003).map(|_| next()).collect();
        for limit in [0, 3, 22, 28, 64] {
            for query in [codes[0], codes[500], codes[1_002], next()] {
                let wanted: Vec<usize> =
                    (0..codes.len()).filter(|at| (codes[*at] ^ query).count_ones() <= limit).collect();
                for kernel in Kernel::all() {
                    let mut found = Vec::new();
                    kernel.scan(query, &codes, limit, |at| found.push(at));
                    assert_eq!(found, wanted, "{} at most {limit}", kernel.name());
                }
            }
        }
    }
}

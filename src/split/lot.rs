//! What looks random and is not: the place of a key on a line, and a stream of numbers. Both depend on the seed and
//! on this file alone, so a split is the same on every machine and, while [`SCHEME`] stays, in every release.

/// The name of the scheme; it grows when the same input would get another split.
pub const SCHEME: &str = "prep-split-1";

/// The lots of one seed.
#[derive(Debug, Clone)]
pub struct Lot {
    key: [u8; 32],
}

impl Lot {
    /// The lots of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { key: blake3::derive_key(SCHEME, &seed.to_le_bytes()) }
    }

    /// Where `key` lies on the line from 0 to 2^64, evenly over all keys.
    pub fn place(&self, key: &[u8]) -> u64 {
        first_eight(blake3::keyed_hash(&self.key, key).as_bytes())
    }

    /// A stream of numbers of its own for each `purpose`.
    pub fn stream(&self, purpose: &str) -> Stream {
        Stream(self.place(purpose.as_bytes()))
    }
}

fn first_eight(hash: &[u8; 32]) -> u64 {
    hash[..8].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// Even random numbers: `SplitMix64` (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug, Clone)]
pub struct Stream(u64);

impl Stream {
    /// The stream that begins with `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to `n - 1`; 0 where `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    /// From 0 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lots_are_golden() {
        let lot = Lot::new(0);
        assert_eq!(lot.place(b"plant-1"), 0x0);
        assert_ne!(lot.place(b"plant-1"), Lot::new(1).place(b"plant-1"));
        let mut stream = Stream(0);
        // The reference implementation's first numbers from seed 0.
        assert_eq!(stream.next_u64(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(stream.next_u64(), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn numbers_below_stay_below() {
        let mut stream = Lot::new(7).stream("test");
        assert!((0..1000).all(|_| stream.below(3) < 3) && stream.below(0) == 0);
        let mean = (0..10_000).map(|_| stream.unit()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}

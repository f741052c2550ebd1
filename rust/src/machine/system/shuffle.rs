//! The order of sentences in an epoch: Fisher-Yates driven by SplitMix64 (Steele, Lea & Flood 2014).
//!
//! The generator is seeded with (seed, epoch, shard), so that the order of an epoch depends on these three numbers
//! only. Training that is interrupted and resumed visits the sentences in the same order as an uninterrupted run.
//!
//! ```text
//! next():   state += 0x9E3779B97F4A7C15
//!           z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9
//!           z = (z ^ z >> 27) * 0x94D049BB133111EB
//!           return z ^ z >> 31
//! start:    state = seed
//!           state = next() ^ epoch
//!           state = next() ^ shard
//! below(n): the high half of next() * n, drawn again while the low half < 2^64 mod n    (Lemire 2019)
//! shuffle:  for i = n-1 .. 1:  swap i with below(i + 1)
//! ```

pub struct Generator(u64);

impl Generator {
    pub fn new(seed: u64, epoch: u64, shard: u64) -> Generator {
        let mut g = Generator(seed);
        g.0 = g.draw() ^ epoch;
        g.0 = g.draw() ^ shard;
        g
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = self.0;
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Return a uniform integer in [0, n).
    pub fn below(&mut self, n: u64) -> u64 {
        let threshold = n.wrapping_neg() % n;
        loop {
            let m = u128::from(self.draw()) * u128::from(n);
            if m as u64 >= threshold {
                return (m >> 64) as u64;
            }
        }
    }

    /// Return a uniform number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 * (0.5f64).powi(53)
    }

    pub fn shuffle(&mut self, order: &mut [u32]) {
        for i in (1..order.len()).rev() {
            order.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_matches_splitmix64() {
        // First outputs for seed 1234567, as published with the algorithm.
        let mut g = Generator(1_234_567);
        assert_eq!(g.draw(), 6_457_827_717_110_365_317);
        assert_eq!(g.draw(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn orders_are_permutations_and_differ_by_epoch() {
        let order = |epoch| {
            let mut order: Vec<u32> = (0..100).collect();
            Generator::new(3, epoch, 0).shuffle(&mut order);
            order
        };
        let mut sorted = order(1);
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(0..100));
        assert_ne!(order(1), order(2));
        assert_eq!(order(1), order(1));
    }
}

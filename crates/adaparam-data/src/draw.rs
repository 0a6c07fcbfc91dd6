//! Random draws that are pure functions of counters.
//!
//! Nothing here carries state from one step of a run to the next. A [`Draws`] holds the run's seed;
//! [`Draws::stream`] turns the seed, a [`Purpose`] and a few counters (epoch, step, batch column, …) into a
//! fresh generator. A run therefore resumes at any step from its counters alone, and a batch split over
//! machines draws the same numbers for its columns as the whole batch does.
//!
//! # The numbers are part of the format
//! The key of a stream is the SHA-256 of the ASCII bytes `adaparam draw 1`, the seed (`u64`), the purpose's
//! number (`u32`), the number of counters (`u32`) and the counters (`u64` each), all little-endian. The key
//! seeds `ChaCha` with 8 rounds, stream 0. Every conversion to floats is written in this file and uses only
//! operations whose result is the same on every platform. Tests freeze the numbers; `tests/golden_draws.py` computes
//! them independently.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// What a draw is for; different purposes never share numbers.
///
/// The numbers are stable: a new purpose takes a new one, and none is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Purpose {
    /// Training batches of the tail regression.
    TailTrain = 1,
    /// The test set of the tail regression.
    TailTest = 2,
    /// The order in which an epoch visits its examples.
    BatchOrder = 3,
    /// Initial parameters.
    Initialise = 4,
    /// Whole rows of the embedding dropped.
    WordDropout = 5,
    /// Entries of the embedded vectors dropped.
    EmbeddingDropout = 6,
    /// Entries of the policy's latent variable dropped.
    LatentDropout = 7,
    /// Entries of the hidden state dropped.
    HiddenDropout = 8,
    /// Entries of the final output dropped.
    OutputDropout = 9,
    /// Lengths of the windows of truncated backpropagation through time.
    WindowLength = 10,
    /// Words drawn while generating text.
    Generate = 11,
    /// Settings drawn by robustness studies.
    Robustness = 12,
    /// Inputs drawn for figures and inspection.
    Inspect = 13,
    /// Entries between the layers of a stack dropped.
    LayerDropout = 14,
    /// Entries at a site of a cell dropped, other than the hidden state and the policy's latent variable.
    SiteDropout = 15,
    /// Entries of recurrent weights dropped.
    WeightDropout = 16,
    /// Columns whose carried state is forgotten.
    StateReset = 17,
}

/// The source of every random number of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    seed: u64,
}

impl Draws {
    /// Draws of the run with this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The run's seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The generator for one purpose at one place of the run.
    ///
    /// `counters` name the place, the widest first: `&[epoch, step, column]`. Lists of different lengths are
    /// different places.
    pub fn stream(&self, purpose: Purpose, counters: &[u64]) -> Stream {
        let mut key = Sha256::new();
        key.update(b"adaparam draw 1");
        key.update(self.seed.to_le_bytes());
        key.update((purpose as u32).to_le_bytes());
        key.update((counters.len() as u32).to_le_bytes());
        for counter in counters {
            key.update(counter.to_le_bytes());
        }
        Stream {
            generator: ChaCha8Rng::from_seed(key.finalize().into()),
            spare_normal: None,
        }
    }
}

/// A sequence of independent random numbers, obtained from [`Draws::stream`].
#[derive(Debug, Clone)]
pub struct Stream {
    generator: ChaCha8Rng,
    spare_normal: Option<f64>,
}

impl Stream {
    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform on `[0, 1)`, a multiple of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.generator.next_u64() >> 11) as f64 * STEP
    }

    /// Uniform on `[0, 1)`, a multiple of 2⁻²⁴.
    pub fn uniform_f32(&mut self) -> f32 {
        const STEP: f32 = 1.0 / (1_u32 << 24) as f32;
        (self.generator.next_u32() >> 8) as f32 * STEP
    }

    /// Standard normal, by Marsaglia's polar method.
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare_normal.take() {
            return spare;
        }
        loop {
            let u = 2.0 * self.uniform() - 1.0;
            let v = 2.0 * self.uniform() - 1.0;
            let square = u * u + v * v;
            if square > 0.0 && square < 1.0 {
                // The platform's own logarithm may differ in the last bit; this one does not.
                let radius = (-2.0 * libm::log(square) / square).sqrt();
                self.spare_normal = Some(v * radius);
                return u * radius;
            }
        }
    }

    /// Uniform on `0..bound`, without bias.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a draw below zero does not exist");
        // The high half of a 64 × 64 bit product is uniform once the few low halves that would make some
        // results more frequent are drawn again.
        let excess = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.generator.next_u64()) * u128::from(bound);
            if product as u64 >= excess {
                return (product >> 64) as u64;
            }
        }
    }

    /// The numbers `0..length` in random order.
    pub fn permutation(&mut self, length: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..length).collect();
        for last in (1..length).rev() {
            order.swap(last, self.below(last as u64 + 1) as usize);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(counters: &[u64]) -> Stream {
        Draws::new(7).stream(Purpose::HiddenDropout, counters)
    }

    #[test]
    fn a_stream_depends_on_nothing_but_its_address() {
        let mut once = stream(&[1, 2, 3]);
        let mut again = stream(&[1, 2, 3]);
        for _ in 0..100 {
            assert_eq!(once.next_u64(), again.next_u64());
        }
    }

    // Printed by tests/golden_draws.py.
    #[test]
    fn the_numbers_never_change() {
        let golden = || stream(&[1, 2, 3]);
        let mut bits = golden();
        assert_eq!(
            [bits.next_u64(), bits.next_u64(), bits.next_u64()],
            [
                0x9b8a_b725_83d9_78fe,
                0xfcbc_ef7c_755b_fc96,
                0x3344_48c5_11cf_c173
            ]
        );
        let mut uniform = golden();
        assert_eq!(
            uniform.uniform().to_bits(),
            0.607_585_379_275_269_1_f64.to_bits()
        );
        assert_eq!(
            uniform.uniform().to_bits(),
            0.987_257_926_831_588_8_f64.to_bits()
        );
        let mut single = golden();
        assert_eq!((single.uniform_f32() * 16_777_216.0) as u32, 8_640_888);
        assert_eq!((single.uniform_f32() * 16_777_216.0) as u32, 10_193_591);
        let mut normal = golden();
        for expected in [
            0.019_352_838_120_362_13_f64,
            0.087_649_677_347_957_69,
            -1.147_199_757_369_195_9,
            -0.555_841_393_786_819_5,
        ] {
            assert_eq!(normal.normal().to_bits(), expected.to_bits());
        }
        assert_eq!(golden().permutation(10), [5, 9, 4, 7, 0, 3, 2, 1, 8, 6]);
    }

    #[test]
    fn streams_differ_in_seed_purpose_counters_and_their_number() {
        let mut firsts = vec![
            stream(&[1, 2]).next_u64(),
            stream(&[2, 1]).next_u64(),
            stream(&[1, 2, 0]).next_u64(),
            stream(&[1]).next_u64(),
            stream(&[]).next_u64(),
            Draws::new(8)
                .stream(Purpose::HiddenDropout, &[1, 2])
                .next_u64(),
            Draws::new(7)
                .stream(Purpose::OutputDropout, &[1, 2])
                .next_u64(),
        ];
        let all = firsts.len();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), all);
    }

    #[test]
    fn uniform_draws_fill_the_unit_interval_evenly() {
        let mut draws = stream(&[4]);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[(draws.uniform() * 10.0) as usize] += 1;
            counts[(draws.uniform_f32() * 10.0) as usize] += 1;
        }
        // 20,000 expected in each tenth, standard deviation 134: five of them either way.
        for count in counts {
            assert!(count.abs_diff(20_000) < 670, "{counts:?}");
        }
    }

    #[test]
    fn normal_draws_have_the_moments_of_a_standard_normal() {
        const N: f64 = 200_000.0;
        let mut draws = stream(&[5]);
        let mut sums = [0.0; 4];
        for _ in 0..N as usize {
            let x = draws.normal();
            for (power, sum) in (1..).zip(&mut sums) {
                *sum += x.powi(power) / N;
            }
        }
        // Standard errors: 1, √2, √15 and √96 over √N; five of them either way.
        for (moment, (expected, spread)) in sums.into_iter().zip([
            (0.0, 1.0),
            (1.0, 2_f64.sqrt()),
            (0.0, 15_f64.sqrt()),
            (3.0, 96_f64.sqrt()),
        ]) {
            let tolerance = 5.0 * spread / N.sqrt();
            assert!(
                (moment - expected).abs() < tolerance,
                "{moment} is not within {tolerance} of {expected}"
            );
        }
    }

    #[test]
    fn bounded_draws_stay_below_their_bound_and_reach_every_value() {
        let mut draws = stream(&[6]);
        let mut seen = [0_u32; 7];
        for _ in 0..7_000 {
            seen[draws.below(7) as usize] += 1;
        }
        // 1,000 expected, standard deviation 29: five of them either way.
        assert!(
            seen.iter().all(|count| count.abs_diff(1_000) < 147),
            "{seen:?}"
        );
        assert_eq!(draws.below(1), 0);
    }

    #[test]
    fn a_permutation_holds_every_number_once() {
        let order = stream(&[7]).permutation(1_000);
        assert_ne!(order, (0..1_000).collect::<Vec<_>>());
        let mut sorted = order;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1_000).collect::<Vec<_>>());
        assert!(stream(&[7]).permutation(0).is_empty());
    }
}

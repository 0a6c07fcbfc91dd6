//! The continuous cache: words of the last while are likelier to come again.
//!
//! Grave, Joulin, Usunier 2016: with `h_t` the output of the last layer,
//! `p_cache(w) ∝ Σ_{j<t} 1[w = x_{j+1}] exp(θ h_t·h_j)` over the last `window` places, and
//! `p = (1−λ) p_model + λ p_cache`. Nothing is trained.

use adaparam::settings::within;
use adaparam_data::text::Window;
use rayon::prelude::*;

use super::keys::{FlagSettings, number, whole};

adaparam::settings! {
    /// The keys of `--cache`.
    pub struct CacheSettings {
        /// how many of the last places are remembered
        pub window: usize = 500, not_zero;
        /// how much likeness of outputs counts; 0 counts words only
        pub theta: f64 = 1.0, within(0.0..=1e6);
        /// the share of the cache in the probability
        pub lambda: f64 = 0.1, within(0.0..=1.0);
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "a rule is given a reference"
)]
fn not_zero(count: &usize) -> Option<String> {
    (*count == 0).then(|| "must be a whole number above 0".to_owned())
}

impl FlagSettings for CacheSettings {
    const FLAG: &'static str = "--cache";

    fn set(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        match key {
            "window" => self.window = whole(value)?,
            "theta" => self.theta = number(value)?,
            _ => self.lambda = number(value)?,
        }
        Ok(())
    }
}

impl std::fmt::Display for CacheSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            window,
            theta,
            lambda,
        } = self;
        write!(f, "window={window},theta={theta},lambda={lambda}")
    }
}

impl CacheSettings {
    /// The memory that a full cache takes for outputs of `width` numbers in each of `batch` columns, in bytes.
    pub fn bytes(&self, width: usize, batch: usize) -> u128 {
        let place = (width * size_of::<f32>() + size_of::<u32>()) as u128;
        self.window as u128 * place * batch as u128
    }
}

/// The last places of one column: what the last layer gave there, and the word that came next.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    outputs: Vec<f32>,
    words: Vec<u32>,
}

impl Places {
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Adds the places of one column of a window.
    pub(super) fn add(&mut self, window: &Window<'_>, column: usize, outputs: &[f32]) {
        let width = outputs.len() / window.targets.len();
        for step in 0..window.steps {
            let row = step * window.batch + column;
            self.outputs
                .extend_from_slice(&outputs[row * width..(row + 1) * width]);
            self.words.push(window.targets[row]);
        }
    }

    /// Forgets all but the last `count` places.
    pub(super) fn keep_last(&mut self, count: usize) {
        let surplus = self.len().saturating_sub(count);
        let width = self.outputs.len() / self.len().max(1);
        self.outputs.drain(..surplus * width);
        self.words.drain(..surplus);
    }

    /// How the place `at` is like each of the `window` places before it, the farthest first, and their words.
    pub(super) fn likeness(&self, at: usize, window: usize) -> (Vec<f64>, &[u32]) {
        let width = self.outputs.len() / self.len();
        let first = at.saturating_sub(window);
        let now = &self.outputs[at * width..(at + 1) * width];
        let before = self.outputs[first * width..at * width].chunks_exact(width);
        let products = before.map(|before| dot(now, before)).collect();
        (products, &self.words[first..at])
    }

    pub(super) fn word(&self, at: usize) -> u32 {
        self.words[at]
    }
}

/// `a · b`, by lanes that the processor can add at once.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    const LANES: usize = 16;
    let mut lanes = [0.0_f32; LANES];
    let (whole_a, rest_a) = a.as_chunks::<LANES>();
    let (whole_b, rest_b) = b.as_chunks::<LANES>();
    for (a, b) in whole_a.iter().zip(whole_b) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    let rest: f32 = rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum();
    f64::from(lanes.iter().sum::<f32>() + rest)
}

/// `p_cache(target)`: none while nothing is remembered.
pub(super) fn share(likeness: &[f64], words: &[u32], target: u32, theta: f64) -> Option<f64> {
    let most = likeness.iter().copied().reduce(f64::max)?;
    let (mut all, mut of_target) = (0.0, 0.0);
    for (&product, &word) in likeness.iter().zip(words) {
        let weight = (theta * (product - most)).exp();
        all += weight;
        if word == target {
            of_target += weight;
        }
    }
    Some(of_target / all)
}

/// What a target costs with a cache: `−ln((1−λ) e^{−loss} + λ share)`. Without a share or with `λ = 0` it is the loss,
/// bit by bit.
pub(super) fn mixed(loss: f64, share: Option<f64>, lambda: f64) -> f64 {
    let Some(share) = share.filter(|_| lambda > 0.0) else {
        return loss;
    };
    let (model, cache) = ((1.0 - lambda).ln() - loss, (lambda * share).ln());
    let most = model.max(cache);
    if most == f64::NEG_INFINITY {
        return f64::INFINITY;
    }
    -(most + ((model - most).exp() + (cache - most).exp()).ln())
}

/// A cache for each column of a text.
pub(super) struct Cache {
    settings: CacheSettings,
    columns: Vec<Places>,
}

impl Cache {
    pub(super) fn new(settings: CacheSettings, batch: usize) -> Self {
        Self {
            settings,
            columns: vec![Places::default(); batch],
        }
    }

    /// Turns what the targets of a window cost the model into what they cost with the cache, and remembers the window.
    pub(super) fn mix(&mut self, window: &Window<'_>, outputs: &[f32], losses: &mut [f32]) {
        let CacheSettings {
            window: size,
            theta,
            lambda,
        } = self.settings;
        for (column, places) in self.columns.iter_mut().enumerate() {
            let before = places.len();
            places.add(window, column, outputs);
            // Each place is one task: the number of threads changes no bit.
            let shares: Vec<Option<f64>> = (before..places.len())
                .into_par_iter()
                .map(|at| {
                    let (likeness, words) = places.likeness(at, size);
                    share(&likeness, words, places.word(at), theta)
                })
                .collect();
            for (step, share) in shares.into_iter().enumerate() {
                let loss = &mut losses[step * window.batch + column];
                if lambda > 0.0 {
                    *loss = mixed(f64::from(*loss), share, lambda) as f32;
                }
            }
            places.keep_last(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probabilities of three words after the places `h_j` with these words, at the output `h_t`.
    fn mixture(p: [f64; 3], before: &[(f32, u32)], h_t: f32, theta: f64, lambda: f64) -> [f64; 3] {
        let likeness: Vec<f64> = before.iter().map(|(h, _)| dot(&[h_t], &[*h])).collect();
        let words: Vec<u32> = before.iter().map(|(_, word)| *word).collect();
        [0, 1, 2].map(|target| {
            let share = share(&likeness, &words, target, theta);
            (-mixed(-p[target as usize].ln(), share, lambda)).exp()
        })
    }

    const P: [f64; 3] = [0.5, 0.3, 0.2];
    const BEFORE: [(f32, u32); 3] = [(1.0, 0), (-1.0, 2), (0.5, 2)];

    #[test]
    fn the_golden_numbers_of_the_cache() {
        let mixture = mixture(P, &BEFORE, 0.8, 0.5, 0.1);
        let golden = [0.494_090_549_840, 0.27, 0.235_909_450_160];
        for (ours, golden) in mixture.into_iter().zip(golden) {
            // Likeness is a product of two numbers of 24 bits; 0.8 is none.
            assert!((ours - golden).abs() < 1e-9, "{ours} for {golden}");
        }
    }

    #[test]
    fn probabilities_sum_to_one() {
        for (theta, lambda) in [(0.0, 0.3), (0.7, 1.0), (1e6, 0.5), (30.0, 1e-9)] {
            let sum: f64 = mixture(P, &BEFORE, 0.8, theta, lambda).iter().sum();
            assert!((sum - 1.0).abs() < 1e-12, "{theta}, {lambda}: {sum}");
        }
    }

    #[test]
    fn without_theta_words_count_as_often_as_they_came() {
        let mixture = mixture(P, &BEFORE, 0.8, 0.0, 1.0);
        for (ours, unigram) in mixture.into_iter().zip([1.0 / 3.0, 0.0, 2.0 / 3.0]) {
            assert!((ours - unigram).abs() < 1e-12, "{ours} for {unigram}");
        }
    }

    #[test]
    fn without_lambda_or_places_the_loss_stays_to_the_bit() {
        for loss in [0.0, 0.1, 7.3, 1e-300, 5_000.0] {
            assert_eq!(mixed(loss, Some(0.7), 0.0).to_bits(), loss.to_bits());
            assert_eq!(mixed(loss, None, 0.4).to_bits(), loss.to_bits());
        }
        assert_eq!(share(&[], &[], 3, 1.0), None);
    }

    #[test]
    fn costs_beyond_the_range_of_exponentials_are_right() {
        let expected = 5_000.0 - 0.9_f64.ln();
        assert!((mixed(5_000.0, Some(0.0), 0.1) - expected).abs() < 1e-9);
        assert!((mixed(5_000.0, Some(0.5), 0.1) + 0.05_f64.ln()).abs() < 1e-9);
        assert!(mixed(1.0, Some(0.0), 1.0).is_infinite());
    }

    #[test]
    fn only_the_last_places_are_kept() {
        let (inputs, targets) = ([0_u32; 8], [1_u32, 2, 3, 4, 5, 6, 7, 8]);
        let outputs: Vec<f32> = (0..24_u8).map(f32::from).collect();
        let window = Window {
            start: 0,
            steps: 4,
            batch: 2,
            inputs: &inputs,
            targets: &targets,
        };
        let settings = CacheSettings {
            window: 5,
            ..CacheSettings::default()
        };
        let mut cache = Cache::new(settings, 2);
        for _ in 0..3 {
            cache.mix(&window, &outputs, &mut [1.0; 8]);
        }
        assert_eq!(cache.columns[0].words, [7, 1, 3, 5, 7]);
        assert_eq!(cache.columns[1].words, [8, 2, 4, 6, 8]);
        let bits: Vec<u32> = cache.columns[1].outputs[3..6]
            .iter()
            .map(|number| number.to_bits())
            .collect();
        assert_eq!(bits, [3_f32, 4.0, 5.0].map(f32::to_bits));
        assert_eq!(cache.columns[1].outputs.len(), 15);
    }

    #[test]
    fn what_is_typed_is_understood_or_refused_with_its_rule() {
        let parse = |text: &str| CacheSettings::parse(text).map_err(|error| error.to_string());
        let settings = parse("window=2000, theta=0.3 ,lambda=.25").unwrap();
        assert_eq!(settings.to_string(), "window=2000,theta=0.3,lambda=0.25");
        for (text, expected) in [
            (
                "window=0",
                "--cache window = 0: must be a whole number above 0",
            ),
            ("window=2.5", "must be a whole number"),
            ("window=-3", "must be a whole number"),
            ("window=99999999999999999999999", "is too large"),
            ("theta=NaN", "--cache theta = NaN: must be from 0"),
            ("theta=-1", "--cache theta = -1.0: must be from 0"),
            ("theta=inf", "--cache theta = inf: must be from 0"),
            ("lambda=1.5", "--cache lambda = 1.5: must be from 0 to 1"),
            ("lambda=nan", "--cache lambda = NaN: must be from 0 to 1"),
            ("lamda=0.1", "did you mean `lambda`?"),
            ("theta=1,theta=2", "--cache theta = 2: is given twice"),
            ("theta", "--cache = theta: must be KEY=VALUE"),
            ("", "--cache = (nothing): must be KEY=VALUE"),
            ("theta=", "--cache theta = (nothing): must be a number"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}

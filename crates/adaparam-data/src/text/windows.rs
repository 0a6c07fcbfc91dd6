//! Windows of varying length for truncated backpropagation through time.

use crate::draw::{Draws, Purpose};

/// How long the windows of a training epoch are.
///
/// With probability `1 − half_probability` a length is drawn around `base`, else around half of it, from a normal
/// distribution, rounded towards zero and raised to `minimum`. Varying lengths move the places where gradients
/// are cut, from epoch to epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowLengths {
    /// The usual length.
    pub base: usize,
    /// The probability of a length around half of `base`.
    pub half_probability: f64,
    /// The standard deviation around either.
    pub deviation: f64,
    /// The smallest length.
    pub minimum: usize,
}

impl Default for WindowLengths {
    /// 70, or 35 in one of 20 windows, ± 5, at least 5.
    fn default() -> Self {
        Self {
            base: 70,
            half_probability: 0.05,
            deviation: 5.0,
            minimum: 5,
        }
    }
}

/// The place of one window in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first row.
    pub start: usize,
    /// The number of rows.
    pub length: usize,
}

impl WindowLengths {
    /// Windows that all have the same length.
    pub fn constant(length: usize) -> Self {
        Self {
            base: length,
            half_probability: 0.0,
            deviation: 0.0,
            minimum: length,
        }
    }

    /// The length drawn for one step of an epoch, before the end of the text shortens it; at least 1.
    pub fn draw(&self, draws: Draws, epoch: u64, step: u64) -> usize {
        let mut stream = draws.stream(Purpose::WindowLength, &[epoch, step]);
        let is_half = stream.uniform() < self.half_probability;
        let mean = self.base as f64 * if is_half { 0.5 } else { 1.0 };
        let length = mean + self.deviation * stream.normal();
        (length as usize).max(self.minimum).max(1)
    }

    /// All windows of an epoch over so many steps: they lie side by side, and the last is what is left.
    ///
    /// Step `k` of the epoch is the `k`-th window, so a run resumes at it from `epoch` and `k` alone.
    pub fn plan(&self, draws: Draws, epoch: u64, steps: usize) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut start = 0;
        while start < steps {
            let length = self.draw(draws, epoch, spans.len() as u64);
            let length = length.min(steps - start);
            spans.push(Span { start, length });
            start += length;
        }
        spans
    }

    /// The factor of the learning rate for a window of this length: `length / base`, so that each word weighs the
    /// same.
    pub fn learning_rate_scale(&self, length: usize) -> f64 {
        length as f64 / self.base as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_length_is_a_function_of_seed_epoch_and_step() {
        let lengths = WindowLengths::default();
        let drawn = |seed, epoch| -> Vec<usize> {
            (0..50)
                .map(|step| lengths.draw(Draws::new(seed), epoch, step))
                .collect()
        };
        assert_eq!(drawn(1, 2), drawn(1, 2));
        assert_ne!(drawn(1, 2), drawn(1, 3));
        assert_ne!(drawn(1, 2), drawn(2, 2));
    }

    #[test]
    fn one_length_in_twenty_is_about_half() {
        const N: u64 = 20_000;
        let lengths = WindowLengths::default();
        let drawn: Vec<usize> = (0..N)
            .map(|step| lengths.draw(Draws::new(3), 0, step))
            .collect();
        // 52 lies 3.4 deviations from either mean; 1,000 expected, standard deviation 31, five of them either way.
        let short = drawn.iter().filter(|&&length| length < 52).count();
        assert!(short.abs_diff(1_000) < 155, "{short}");
        // Truncation takes half a step on average; standard error 5 / √19,000.
        let long: Vec<f64> = drawn
            .iter()
            .filter(|&&l| l >= 52)
            .map(|&l| l as f64)
            .collect();
        let mean = long.iter().sum::<f64>() / long.len() as f64;
        assert!((mean - 69.5).abs() < 0.2, "{mean}");
    }

    #[test]
    fn no_length_is_below_the_minimum() {
        let lengths = WindowLengths {
            base: 6,
            ..WindowLengths::default()
        };
        let drawn = (0..1_000).map(|step| lengths.draw(Draws::new(3), 0, step));
        assert_eq!(drawn.min(), Some(5));
    }

    #[test]
    fn constant_lengths_do_not_vary() {
        let lengths = WindowLengths::constant(35);
        let plan = lengths.plan(Draws::new(1), 0, 100);
        let expected = [(0, 35), (35, 35), (70, 30)];
        assert_eq!(plan, expected.map(|(start, length)| Span { start, length }));
    }

    #[test]
    fn the_learning_rate_grows_with_the_length() {
        let lengths = WindowLengths::default();
        assert!((lengths.learning_rate_scale(70) - 1.0).abs() < 1e-15);
        assert!((lengths.learning_rate_scale(35) - 0.5).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn a_plan_tiles_the_epoch(seed: u64, epoch: u64, base in 1_usize..100, steps in 0_usize..2_000) {
            let lengths = WindowLengths { base, ..WindowLengths::default() };
            let mut end = 0;
            for span in lengths.plan(Draws::new(seed), epoch, steps) {
                prop_assert_eq!(span.start, end);
                prop_assert!(span.length > 0);
                end += span.length;
            }
            prop_assert_eq!(end, steps);
        }
    }
}

//! An interval for the difference between the medians of two sides.
//!
//! It is the bootstrap's: each side is drawn anew from its own seeds, with replacement and as many as it has, and the middle 95 % of
//! the differences between medians are the interval. Draws are not made but counted: how likely each median is follows from how
//! often a seed is drawn, so that the interval is exact and the same every time.
//!
//! With two or three seeds a side, the interval is all that the seeds can give: from the best seed of one side against the worst of the
//! other to the reverse.

use crate::result::Spread;

/// How much lies outside the interval, at either end.
const OUTSIDE: f64 = 0.025;

/// The middle 95 % of the differences `one − other`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Interval {
    /// None where a side has fewer than two seeds, or one that came to no number.
    pub(crate) fn of_difference(one: &Spread, other: &Spread) -> Option<Self> {
        let is_usable = |side: &Spread| {
            side.values.len() > 1 && side.values.iter().all(|value| value.is_finite())
        };
        if !is_usable(one) || !is_usable(other) {
            return None;
        }
        let (ones, others) = (medians(&one.values), medians(&other.values));
        let pairs = ones
            .iter()
            .flat_map(|(one, p)| others.iter().map(move |(other, q)| (one - other, p * q)));
        let mut differences: Vec<(f64, f64)> = pairs.collect();
        differences.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let at = |share: f64| {
            let mut sum = 0.0;
            let reached = differences.iter().find(|(_, probability)| {
                sum += probability;
                sum >= share
            });
            // Rounding may leave the sum of all just below.
            reached.or(differences.last()).map(|(value, _)| *value)
        };
        Some(Self {
            low: at(OUTSIDE)?,
            high: at(1.0 - OUTSIDE)?,
        })
    }

    pub(crate) fn is_below_zero(self) -> bool {
        self.high < 0.0
    }

    pub(crate) fn is_above_zero(self) -> bool {
        self.low > 0.0
    }

    /// Both ends, otherwise.
    pub(crate) fn map(self, with: impl Fn(f64) -> f64) -> Self {
        Self {
            low: with(self.low),
            high: with(self.high),
        }
    }

    /// `95 % interval of the difference −12.1 to −9.8`, with what stands behind a number.
    pub(crate) fn in_words(self, digits: usize, unit: &str) -> String {
        let number = |value: f64| {
            // A zero that was rounded from below keeps no sign.
            let text = format!("{:.digits$}", value.abs());
            let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
            let sign = if value < 0.0 && !is_zero { "−" } else { "" };
            format!("{sign}{text}")
        };
        let (low, high) = (number(self.low), number(self.high));
        format!("95\u{a0}% interval of the difference {low} to {high}{unit}")
    }
}

/// Every median that a bootstrap of these numbers can have, with its probability.
fn medians(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let middle = n.div_ceil(2);
    // That at least `middle` of `n` draws are among the first `i`.
    let among_first = |i: usize| -> f64 {
        let share = i as f64 / n as f64;
        (middle..=n)
            .map(|k| choose(n, k) * power(share, k) * power(1.0 - share, n - k))
            .sum()
    };
    let mut medians = Vec::new();
    for i in 1..=n {
        let mut here = among_first(i) - among_first(i - 1);
        if n.is_multiple_of(2) {
            // The lower of the two in the middle is this one. The upper is one further up if exactly half of the draws are among the
            // first `i`, the largest of them this one, and the smallest of the others that one.
            let half = n / 2;
            let share = |count: usize| power(count as f64 / n as f64, half);
            let below = share(i) - share(i - 1);
            for j in i + 1..=n {
                let apart = choose(n, half) * below * (share(n - j + 1) - share(n - j));
                medians.push((f64::midpoint(sorted[i - 1], sorted[j - 1]), apart));
                here -= apart;
            }
        }
        medians.push((sorted[i - 1], here));
    }
    medians
}

fn power(base: f64, exponent: usize) -> f64 {
    base.powi(i32::try_from(exponent).unwrap_or(i32::MAX))
}

/// How many ways there are to choose `k` of `n`.
fn choose(n: usize, k: usize) -> f64 {
    (0..k).fold(1.0, |ways, i| ways * (n - i) as f64 / (i + 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Spread {
        Spread::of(values.iter().copied())
    }

    /// The same by trying every draw.
    fn medians_by_trying(values: &[f64]) -> Vec<(f64, f64)> {
        let n = values.len();
        let draws = n.pow(n as u32);
        (0..draws)
            .map(|draw| {
                let mut rest = draw;
                let drawn = (0..n).map(|_| {
                    let value = values[rest % n];
                    rest /= n;
                    value
                });
                (Spread::of(drawn).median, 1.0 / draws as f64)
            })
            .collect()
    }

    #[test]
    fn probabilities_of_medians_are_those_of_all_draws() {
        let values = [3.0, 1.0, 10.0, 4.5, 7.25, 20.0];
        for n in 1..=values.len() {
            let values = &values[..n];
            let (ours, tried) = (medians(values), medians_by_trying(values));
            let sum = |medians: &[(f64, f64)], at: f64| -> f64 {
                let here = medians
                    .iter()
                    .filter(|(value, _)| (value - at).abs() < 1e-9);
                here.map(|(_, probability)| probability).sum()
            };
            assert!((ours.iter().map(|(_, p)| p).sum::<f64>() - 1.0).abs() < 1e-12);
            for (value, _) in &tried {
                assert!(
                    (sum(&ours, *value) - sum(&tried, *value)).abs() < 1e-12,
                    "{n}: {value}"
                );
            }
        }
    }

    #[test]
    fn three_seeds_give_their_whole_range_and_many_give_less() {
        let (one, other) = (of(&[94.0, 94.4, 95.5]), of(&[105.3, 105.6, 106.6]));
        let interval = Interval::of_difference(&one, &other).unwrap();
        assert!((interval.low - (94.0 - 106.6)).abs() < 1e-12);
        assert!((interval.high - (95.5 - 105.3)).abs() < 1e-12);
        assert!(interval.is_below_zero() && !interval.is_above_zero());
        let many: Vec<f64> = (0..21).map(f64::from).collect();
        let interval = Interval::of_difference(&of(&many), &of(&many)).unwrap();
        assert!(interval.low > -20.0 && interval.high < 20.0);
        assert!(interval.low < -5.0 && interval.high > 5.0);
        assert!(!interval.is_below_zero() && !interval.is_above_zero());
    }

    #[test]
    fn there_is_none_of_one_seed_or_of_a_run_that_diverged() {
        let two = of(&[1.0, 2.0]);
        assert!(Interval::of_difference(&of(&[1.0]), &two).is_none());
        assert!(Interval::of_difference(&two, &of(&[1.0])).is_none());
        assert!(Interval::of_difference(&two, &of(&[1.0, f64::INFINITY])).is_none());
    }

    #[test]
    fn it_is_told_with_its_signs() {
        let interval = Interval {
            low: -0.121,
            high: -0.000_01,
        };
        assert_eq!(
            interval.map(|share| 100.0 * share).in_words(1, " %"),
            "95\u{a0}% interval of the difference −12.1 to 0.0 %"
        );
    }
}

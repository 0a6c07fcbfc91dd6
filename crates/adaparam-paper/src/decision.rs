//! Whether runs from several seeds decide a comparison.
//!
//! A comparison is decided if the [interval](Interval) of the difference between the medians excludes zero, and the medians are
//! further apart than the seeds of either side are from each other. The interval alone would decide too much: of three seeds a side,
//! those of equal models lie apart once in ten times. One seed decides nothing. Perplexities and squared
//! errors are compared by their ratios: an error that is a hundred times as large may vary a hundred times as much.

use adaparam_report::Verdict;

use crate::interval::Interval;
use crate::result::Spread;

/// Why nothing is decided.
pub(crate) const ONE_SEED: &str = "one seed decides nothing";
pub(crate) const SPREAD: &str = "the spread over seeds is larger than the difference";

/// Whether the first is lower than the second, by the ratios of numbers above zero.
pub(crate) fn lower_by_ratio(one: &Spread, other: &Spread) -> Verdict {
    lower(&one.map(f64::ln), &other.map(f64::ln))
}

/// Whether the first is lower than the second.
pub(crate) fn lower(one: &Spread, other: &Spread) -> Verdict {
    if one.values.len() < 2 || other.values.len() < 2 {
        return Verdict::NotDecided;
    }
    // A model whose median run has no result is not better than anything.
    if one.median.is_infinite() {
        return Verdict::NotMet;
    }
    let widths = [one, other].map(|side| side.high - side.low);
    let widest = widths
        .into_iter()
        .filter(|width| width.is_finite())
        .fold(0.0, f64::max);
    let is_far = (one.median - other.median).abs() > widest;
    // Where a run diverged there is no interval, and every seed must be on its side.
    let (is_below, is_above) = match Interval::of_difference(one, other) {
        Some(interval) => (interval.is_below_zero(), interval.is_above_zero()),
        None => (one.high < other.low, one.low > other.high),
    };
    match (is_below && is_far, is_above && is_far) {
        (true, _) => Verdict::Met,
        (_, true) => Verdict::NotMet,
        _ => Verdict::NotDecided,
    }
}

/// Whether all seeds stay at or below a bound.
pub(crate) fn at_most(spread: &Spread, bound: f64) -> Verdict {
    match spread {
        spread if spread.values.len() < 2 => Verdict::NotDecided,
        spread if spread.high <= bound => Verdict::Met,
        spread if spread.low > bound => Verdict::NotMet,
        _ => Verdict::NotDecided,
    }
}

/// Whether all seeds stay at or above a bound.
pub(crate) fn at_least(spread: &Spread, bound: f64) -> Verdict {
    match spread {
        spread if spread.values.len() < 2 => Verdict::NotDecided,
        spread if spread.low >= bound => Verdict::Met,
        spread if spread.high < bound => Verdict::NotMet,
        _ => Verdict::NotDecided,
    }
}

/// The verdict on a sentence that holds if all of its parts do.
pub(crate) fn all(parts: impl IntoIterator<Item = Verdict>) -> Verdict {
    let mut whole = Verdict::Met;
    for part in parts {
        whole = match (whole, part) {
            (Verdict::NotMet, _) | (_, Verdict::NotMet) => Verdict::NotMet,
            (Verdict::NotDecided, _) | (_, Verdict::NotDecided) => Verdict::NotDecided,
            _ => Verdict::Met,
        };
    }
    whole
}

/// Met, or exceeded.
pub(crate) fn exceeded_if(verdict: Verdict, exceeds: bool) -> Verdict {
    match verdict {
        Verdict::Met if exceeds => Verdict::Exceeded,
        verdict => verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Met, NotDecided, NotMet};

    fn of(values: &[f64]) -> Spread {
        Spread::of(values.iter().copied())
    }

    #[test]
    fn a_difference_is_decided_if_it_is_larger_than_the_spread() {
        let lstm = of(&[105.3, 105.6, 106.6]);
        assert_eq!(lower(&of(&[94.0, 94.4, 95.5]), &lstm), Met);
        assert_eq!(lower(&lstm, &of(&[94.0, 94.4, 95.5])), NotMet);
        // Apart, but by less than the seeds differ.
        assert_eq!(lower(&of(&[104.0, 104.9, 105.2]), &lstm), NotDecided);
        // Overlapping.
        assert_eq!(lower(&of(&[95.0, 99.0, 105.4]), &lstm), NotDecided);
        assert_eq!(lower(&lstm, &lstm), NotDecided);
    }

    #[test]
    fn a_large_error_that_varies_much_is_still_a_large_error() {
        let (small, large) = (of(&[1.7, 7.1, 23.0]), of(&[2_520.0, 2_730.0, 7_340.0]));
        assert_eq!(lower(&small, &large), NotDecided);
        assert_eq!(lower_by_ratio(&small, &large), Met);
        assert_eq!(lower_by_ratio(&large, &small), NotMet);
        let near = of(&[1_900.0, 2_000.0, 2_510.0]);
        assert_eq!(lower_by_ratio(&near, &large), NotDecided);
    }

    #[test]
    fn one_seed_decides_nothing() {
        assert_eq!(lower(&of(&[1.0]), &of(&[100.0, 101.0])), NotDecided);
        assert_eq!(lower(&of(&[1.0, 1.1]), &of(&[100.0])), NotDecided);
        assert_eq!(at_most(&of(&[1.0]), 100.0), NotDecided);
        assert_eq!(at_least(&of(&[1.0]), 100.0), NotDecided);
    }

    #[test]
    fn runs_that_diverged_are_the_worst() {
        let infinite = f64::INFINITY;
        assert_eq!(
            lower(&of(&[50.0, 51.0]), &of(&[70.0, infinite, infinite])),
            Met
        );
        assert_eq!(
            lower(&of(&[50.0, infinite, infinite]), &of(&[70.0, 71.0])),
            NotMet
        );
        assert_eq!(
            lower(&of(&[50.0, 50.0, infinite]), &of(&[70.0, 71.0])),
            NotDecided
        );
    }

    #[test]
    fn a_bound_is_kept_by_all_seeds_or_nothing_is_decided() {
        for (values, expected) in [
            ([0.1, 0.2], Met),
            ([0.3, 0.4], NotMet),
            ([0.2, 0.3], NotDecided),
        ] {
            assert_eq!(at_most(&of(&values), 0.25), expected);
            let turned = values.map(|value| -value);
            assert_eq!(at_least(&of(&turned), -0.25), expected);
        }
    }

    #[test]
    fn a_sentence_holds_if_all_of_its_parts_do() {
        assert_eq!(all([Met, Met]), Met);
        assert_eq!(all([Met, NotDecided]), NotDecided);
        assert_eq!(all([NotDecided, NotMet, Met]), NotMet);
    }
}

//! Where a model's curve of perplexities first reaches a level.

/// How much of something, parameters or words, a model needs for a perplexity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reached {
    /// So much.
    At(f64),
    /// Less than this, the least that was tried.
    WithLess(f64),
    /// More than this, the most that was tried.
    WithMore(f64),
}

/// How much is needed for `level`, by a curve of amounts and perplexities in order of amounts. Nothing if it has no point, or
/// if a perplexity that is not there yet could have the answer.
///
/// Between neighbours the logarithm of the perplexity is a straight line over that of the amount, and nothing is said
/// beyond the ends. An infinite perplexity is that of a run that diverged: no line leads away from it, and what the next run
/// reaches is reached with that one's amount.
pub(super) fn first_reached(curve: &[(f64, Option<f64>)], level: f64) -> Option<Reached> {
    let mut before: Option<(f64, f64)> = None;
    for &(amount, perplexity) in curve {
        let perplexity = perplexity?;
        if perplexity.is_infinite() || perplexity > level {
            before = Some((amount, perplexity));
            continue;
        }
        return Some(match before {
            None if perplexity < level => Reached::WithLess(amount),
            Some((less, above)) if above.is_finite() => {
                let way = (above / level).ln() / (above / perplexity).ln();
                Reached::At(less * (amount / less).powf(way))
            }
            _ => Reached::At(amount),
        });
    }
    before.map(|(most, _)| Reached::WithMore(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Perplexities that fall by a quarter with each doubling.
    const FALLING: [(f64, f64); 4] = [(0.5, 160.0), (1.0, 120.0), (2.0, 90.0), (4.0, 67.5)];

    fn first_reached(curve: &[(f64, f64)], level: f64) -> Option<Reached> {
        let known: Vec<(f64, Option<f64>)> = curve.iter().map(|&(x, y)| (x, Some(y))).collect();
        super::first_reached(&known, level)
    }

    fn near(found: Option<Reached>, expected: f64) {
        let Some(Reached::At(amount)) = found else {
            panic!("{found:?}, not {expected}");
        };
        assert!((amount - expected).abs() < 1e-9, "{amount}, not {expected}");
    }

    #[test]
    fn a_point_of_the_curve_is_found_again() {
        for (amount, perplexity) in FALLING {
            near(first_reached(&FALLING, perplexity), amount);
        }
    }

    #[test]
    fn between_two_points_logarithms_lie_on_a_line() {
        // Half of the way by both logarithms.
        near(
            first_reached(&FALLING, (120.0_f64 * 90.0).sqrt()),
            2.0_f64.sqrt(),
        );
        // The whole curve is one line of this slope: 0.75 to the power of doublings.
        let level = 160.0 * 0.75_f64.powf(1.7);
        near(first_reached(&FALLING, level), 0.5 * 2.0_f64.powf(1.7));
    }

    #[test]
    fn nothing_is_said_beyond_the_ends() {
        assert_eq!(first_reached(&FALLING, 161.0), Some(Reached::WithLess(0.5)));
        assert_eq!(first_reached(&FALLING, 67.0), Some(Reached::WithMore(4.0)));
        assert_eq!(first_reached(&[], 100.0), None);
        let one = [(2.0, 90.0)];
        assert_eq!(first_reached(&one, 100.0), Some(Reached::WithLess(2.0)));
        assert_eq!(first_reached(&one, 80.0), Some(Reached::WithMore(2.0)));
    }

    #[test]
    fn what_is_not_there_yet_keeps_its_answer() {
        let partly = [
            (0.5, Some(160.0)),
            (1.0, Some(120.0)),
            (2.0, None),
            (4.0, Some(67.5)),
        ];
        near(super::first_reached(&partly, 120.0), 1.0);
        assert_eq!(
            super::first_reached(&partly, 161.0),
            Some(Reached::WithLess(0.5))
        );
        for level in [100.0, 67.5, 60.0] {
            assert_eq!(super::first_reached(&partly, level), None);
        }
        assert_eq!(
            super::first_reached(&[(0.5, None), (1.0, Some(120.0))], 130.0),
            None
        );
    }

    #[test]
    fn a_curve_that_rises_again_is_left_where_it_first_reaches_the_level() {
        let bent = [(1.0, 120.0), (2.0, 90.0), (4.0, 110.0), (8.0, 80.0)];
        near(first_reached(&bent, 90.0), 2.0);
        near(first_reached(&bent, 80.0), 8.0);
    }

    #[test]
    fn no_line_leads_away_from_a_run_that_diverged() {
        let infinite = f64::INFINITY;
        let first = [(0.5, infinite), (1.0, 120.0), (2.0, 90.0)];
        near(first_reached(&first, 130.0), 1.0);
        near(first_reached(&first, 90.0), 2.0);
        let last = [(0.5, 160.0), (1.0, 120.0), (2.0, infinite)];
        assert_eq!(first_reached(&last, 100.0), Some(Reached::WithMore(2.0)));
        let all = [(0.5, infinite), (1.0, infinite)];
        assert_eq!(first_reached(&all, 100.0), Some(Reached::WithMore(1.0)));
        // Whatever ends is better than a model that diverged, and what diverged is not.
        assert_eq!(
            first_reached(&FALLING, infinite),
            Some(Reached::WithLess(0.5))
        );
        assert_eq!(first_reached(&all, infinite), Some(Reached::WithMore(1.0)));
    }
}

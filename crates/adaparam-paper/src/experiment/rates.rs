//! Dropout rates drawn around those of a model.

use adaparam_data::draw::{Draws, Purpose};
use adaparam_lm::TrainSpec;

/// How far a rate may be moved. Paper section 4.6.
const REACH: f64 = 0.1;
const LARGEST: f64 = 0.95;

/// The training with every dropout rate `r` drawn uniformly from `[r − 0.1, r + 0.1]`, cut off at 0 and 0.95.
///
/// A pure function of seed and draw: the same draw moves the rates of both models in the same way.
pub(super) fn drawn(train: &TrainSpec, seed: u64, draw: u64) -> TrainSpec {
    let mut stream = Draws::new(seed).stream(Purpose::Robustness, &[draw]);
    let moved = |rate: f64| {
        let moved = rate + REACH * (2.0 * stream.uniform() - 1.0);
        // Few enough decimals that a file gives back the same number.
        (moved.clamp(0.0, LARGEST) * 1e6).round() / 1e6
    };
    TrainSpec {
        dropout: train.dropout.map(moved),
        ..train.clone()
    }
}

#[cfg(test)]
mod tests {
    use adaparam_lm::DropoutSpec;

    use super::*;

    fn rates(train: &TrainSpec) -> [f64; 5] {
        [
            train.dropout.word,
            train.dropout.embedding,
            train.dropout.of_site("latent"),
            train.dropout.of_site("hidden"),
            train.dropout.output,
        ]
    }

    #[test]
    fn rates_stay_near_and_are_rates() {
        let centre = TrainSpec {
            dropout: DropoutSpec::new(0.02, 0.6, &[("latent", 0.1), ("hidden", 0.25)], 0.93),
            ..TrainSpec::default()
        };
        let mut sums = [0.0; 5];
        for draw in 0..500 {
            let drawn = rates(&drawn(&centre, 1, draw));
            for ((sum, rate), centre) in sums.iter_mut().zip(drawn).zip(rates(&centre)) {
                assert!((0.0..=LARGEST).contains(&rate), "{rate}");
                assert!((rate - centre).abs() <= REACH + 1e-6, "{rate}, {centre}");
                *sum += rate;
            }
        }
        // Three standard errors of the mean of 500 draws from an interval of 0.2.
        let mean = sums[1] / 500.0;
        assert!((mean - centre.dropout.embedding).abs() < 0.008, "{mean}");
    }

    #[test]
    fn a_draw_depends_on_seed_and_number_alone() {
        let train = TrainSpec::default();
        assert_eq!(drawn(&train, 1, 7), drawn(&train, 1, 7));
        assert_ne!(drawn(&train, 1, 7), drawn(&train, 1, 8));
        assert_ne!(drawn(&train, 1, 7), drawn(&train, 2, 7));
    }
}

//! Cuts wherever the validation loss stands still.

use adaparam::settings::{Kind, positive, within};

use super::ScheduleSettings;

adaparam::settings! {
    /// The keys of `kind = "plateau"`.
    pub struct Plateau {
        /// epochs without a lower validation loss, since the best or the last cut, before a cut
        pub patience: u64 = 5, within(1..=1_000_000);
        /// divisor of a cut
        pub factor: f64 = 10.0, positive();
        /// epochs after which the first cut comes at the latest; 0 for no such limit
        pub latest: u64 = 0, within(0..=1_000_000);
    }
}

impl Kind for Plateau {
    const KIND: &'static str = "plateau";
    const ABOUT: &'static str = "cut whenever the validation loss falls no more";
}

impl ScheduleSettings for Plateau {
    fn divisor(&self, _: u64, losses: &[f64]) -> f64 {
        let (mut best, mut best_epoch) = (f64::INFINITY, 0);
        let mut last_cut = None;
        let mut divisor = 1.0;
        for (epoch, &loss) in (1..).zip(losses) {
            if loss < best {
                (best, best_epoch) = (loss, epoch);
            }
            let stood_still = epoch - best_epoch.max(last_cut.unwrap_or(0)) > self.patience;
            let is_late = self.latest > 0 && epoch >= self.latest && last_cut.is_none();
            if stood_still || is_late {
                last_cut = Some(epoch);
                divisor *= self.factor;
            }
        }
        divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plateau_is_cut_once_it_is_longer_than_the_patience() {
        let plateau = Plateau {
            patience: 2,
            factor: 10.0,
            latest: 0,
        };
        let losses = [5.0, 4.0, 4.5, 4.5, 4.5, 4.5, 4.5, 4.5, 1.0];
        let divisors: Vec<f64> = (0..=losses.len())
            .map(|epochs| plateau.divisor(epochs as u64, &losses[..epochs]))
            .collect();
        let expected = [1.0, 1.0, 1.0, 1.0, 1.0, 10.0, 10.0, 10.0, 100.0, 100.0];
        for (divisor, expected) in divisors.iter().zip(expected) {
            assert!((divisor - expected).abs() < 1e-9, "{divisors:?}");
        }
        let falling = [5.0, 4.0, 3.0, 2.0];
        assert!((plateau.divisor(4, &falling) - 1.0).abs() < 1e-12);
        let late = Plateau {
            latest: 3,
            ..plateau
        };
        assert!((late.divisor(3, &falling[..3]) - 10.0).abs() < 1e-9);
        assert!((late.divisor(4, &falling) - 10.0).abs() < 1e-9);
    }
}

//! How the learning rate goes from epoch to epoch.

use std::sync::Arc;

use adaparam::settings::{Kind, positive, within};

use crate::choice::{AnySettings, Choice, Family, Registered, parse};

adaparam::settings! {
    /// The keys of `kind = "cuts"`: none of its own; `train.cut_after`, `train.cut_at` and `train.cut_factor` say when and
    /// how far.
    pub struct Cuts {}
}

adaparam::settings! {
    /// The keys of `kind = "decay"`.
    pub struct Decay {
        /// epochs with the full learning rate
        pub after: u64 = 6, within(0..=1_000_000);
        /// divisor of the learning rate in each epoch after these
        pub factor: f64 = 1.2, positive();
    }
}

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

impl Kind for Cuts {
    const KIND: &'static str = "cuts";
    const ABOUT: &'static str = "constant, and cut after given epochs";
}

impl Kind for Decay {
    const KIND: &'static str = "decay";
    const ABOUT: &'static str = "constant, and after some epochs divided in each further one";
}

impl Kind for Plateau {
    const KIND: &'static str = "plateau";
    const ABOUT: &'static str = "cut whenever the validation loss falls no more";
}

/// The settings of a kind of schedule.
pub trait ScheduleSettings: AnySettings {
    /// The divisor of the learning rate in `epoch`, which counts from 0, after epochs with these validation losses.
    fn divisor(&self, epoch: u64, losses: &[f64]) -> f64;
}

impl ScheduleSettings for Cuts {
    fn divisor(&self, _: u64, _: &[f64]) -> f64 {
        1.0
    }
}

impl ScheduleSettings for Decay {
    fn divisor(&self, epoch: u64, _: &[f64]) -> f64 {
        let further = (epoch + 1).saturating_sub(self.after);
        self.factor.powf(further as f64)
    }
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

/// The kinds of schedules.
pub struct Schedules;

/// A kind of schedule with its settings: `[train.schedule]`.
pub type ScheduleChoice = Choice<Schedules>;

impl Family for Schedules {
    type Settings = dyn ScheduleSettings;
    const WHAT: &'static str = "schedule";
    const DEFAULT: &'static str = "cuts";

    fn kinds() -> Vec<Registered<Self>> {
        vec![
            registered::<Cuts>(),
            registered::<Decay>(),
            registered::<Plateau>(),
        ]
    }
}

fn registered<K: Kind + ScheduleSettings>() -> Registered<Schedules> {
    Registered::new::<K>(|values| {
        let settings: Arc<dyn ScheduleSettings> = Arc::new(parse::<K>(values)?);
        Ok(settings)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `lr / 1.02^max(e − 19, 0)`, with `e` from 0, as the recurrent highway network's code has it; 14 epochs at the full
    /// rate make the 15th the first decayed one, as in TensorFlow's Zaremba.
    #[test]
    fn a_decay_begins_with_the_epoch_after_the_full_ones() {
        let highway = Decay {
            after: 20,
            factor: 1.02,
        };
        for (epoch, power) in [(0, 0), (19, 0), (20, 1), (119, 100)] {
            let expected = 1.02_f64.powi(power);
            let divisor = highway.divisor(epoch, &[]);
            assert!((divisor / expected - 1.0).abs() < 1e-12, "{epoch}");
        }
        let large = Decay {
            after: 14,
            factor: 1.15,
        };
        assert_eq!(large.divisor(13, &[]).to_bits(), 1.0_f64.to_bits());
        assert!((large.divisor(14, &[]) - 1.15).abs() < 1e-12);
    }

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

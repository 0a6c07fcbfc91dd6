//! A constant rate that decays from some epoch on.

use adaparam::settings::{Kind, positive, within};

use super::ScheduleSettings;

adaparam::settings! {
    /// The keys of `kind = "decay"`.
    pub struct Decay {
        /// epochs with the full learning rate
        pub after: u64 = 6, within(0..=1_000_000);
        /// divisor of the learning rate in each epoch after these
        pub factor: f64 = 1.2, positive();
    }
}

impl Kind for Decay {
    const KIND: &'static str = "decay";
    const ABOUT: &'static str = "constant, and after some epochs divided in each further one";
}

impl ScheduleSettings for Decay {
    fn divisor(&self, epoch: u64, _: &[f64]) -> f64 {
        let further = (epoch + 1).saturating_sub(self.after);
        self.factor.powf(further as f64)
    }
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
}

//! A constant rate, cut after given epochs.

use adaparam::settings::Kind;

use super::ScheduleSettings;

adaparam::settings! {
    /// The keys of `kind = "cuts"`: none of its own; `train.cut_after`, `train.cut_at` and `train.cut_factor` say when and
    /// how far.
    pub struct Cuts {}
}

impl Kind for Cuts {
    const KIND: &'static str = "cuts";
    const ABOUT: &'static str = "constant, and cut after given epochs";
}

impl ScheduleSettings for Cuts {
    fn divisor(&self, _: u64, _: &[f64]) -> f64 {
        1.0
    }
}

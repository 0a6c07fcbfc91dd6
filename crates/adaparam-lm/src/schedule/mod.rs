//! How the learning rate goes from epoch to epoch.

mod cuts;
mod decay;
mod plateau;

use std::sync::Arc;

pub use cuts::Cuts;
pub use decay::Decay;
pub use plateau::Plateau;

use adaparam::settings::Kind;

use crate::choice::{AnySettings, Choice, Family, Registered, parse};

/// The settings of a kind of schedule.
pub trait ScheduleSettings: AnySettings {
    /// The divisor of the learning rate in `epoch`, which counts from 0, after epochs with these validation losses.
    fn divisor(&self, epoch: u64, losses: &[f64]) -> f64;
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

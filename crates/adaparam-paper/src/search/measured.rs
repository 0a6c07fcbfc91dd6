//! What was trained, found again by everything that decides it.

use std::collections::BTreeMap;

use adaparam_data::checksum::Checksum;
use adaparam_data::images::ImageSplit;
use adaparam_runs::RunError;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::fit::CurvePoint;
use crate::image::{ImageJob, PixelScale, Role, Sampling};
use crate::network::NetworkSpec;

/// Letters of the sum that a network is found by.
const KEY_LETTERS: usize = 16;

/// A network that is to be trained.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchJob {
    pub(super) role: Role,
    pub(super) key: String,
    pub(super) job: ImageJob,
}

/// A network that was trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// A sum of everything that decides it: network, training, pixels, data and seed.
    pub key: String,
    /// Its row of Table 1.
    pub row: Role,
    /// Its seed.
    pub seed: u64,
    /// How pixels became numbers.
    pub pixels: PixelScale,
    /// How batches were drawn.
    pub sampling: Sampling,
    /// Training steps.
    pub steps: usize,
    /// Number of trained parameters.
    pub parameters: usize,
    /// Training images told right, in percent; none if it diverged.
    pub train: Option<f64>,
    /// The same of the test images.
    pub test: Option<f64>,
    /// How long it took.
    pub seconds: f64,
    /// Commit of the program that trained it.
    pub commit: String,
    /// The network.
    pub network: NetworkSpec,
}

impl SearchJob {
    pub(super) fn new(role: Role, job: ImageJob) -> Self {
        let text = serde_json::to_vec(&job).expect("a job has a JSON form");
        let mut key = Checksum::of(text).to_string();
        key.truncate(KEY_LETTERS);
        Self { role, key, job }
    }

    /// What progress calls it.
    pub fn name(&self) -> String {
        format!("{}, seed {}", self.job.network.name, self.job.seed)
    }

    /// Its row of Table 1.
    pub fn row(&self) -> Role {
        self.role
    }

    /// Its training steps.
    pub fn steps(&self) -> usize {
        self.job.train.steps
    }

    /// Trains and tests the network; `watch` sees the training curve and answers whether to go on.
    pub fn run(
        &self,
        data: &ImageSplit,
        device: &Device,
        commit: &str,
        watch: impl FnMut(CurvePoint) -> bool,
    ) -> Result<Measured, RunError> {
        let started = std::time::Instant::now();
        let outcome = self.job.run(data, device, watch)?;
        let percent = |share: f64| as_written(100.0 * share);
        Ok(Measured {
            key: self.key.clone(),
            row: self.role,
            seed: self.job.seed,
            pixels: self.job.pixels,
            sampling: self.job.sampling,
            steps: self.job.train.steps,
            parameters: outcome.params,
            train: outcome.train_accuracy.map(percent),
            test: outcome.test_accuracy.map(percent),
            seconds: as_written(started.elapsed().as_secs_f64()),
            commit: commit.to_owned(),
            network: self.job.network.clone(),
        })
    }
}

/// Four digits behind the point tell one image in 60,000 from another; more would not all come back from a file of JSON, and a
/// search that goes on would have other last bits than one that was never stopped.
fn as_written(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

/// Everything that was trained so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measurements {
    by_key: BTreeMap<String, Measured>,
    /// Keys in the order in which the networks were trained.
    order: Vec<String>,
}

impl Measurements {
    /// One more network.
    pub fn add(&mut self, measured: Measured) {
        if !self.by_key.contains_key(&measured.key) {
            self.order.push(measured.key.clone());
        }
        self.by_key.insert(measured.key.clone(), measured);
    }

    pub(super) fn get(&self, key: &str) -> Option<&Measured> {
        self.by_key.get(key)
    }

    /// All, in the order in which they were trained.
    pub fn all(&self) -> impl Iterator<Item = &Measured> {
        self.order.iter().filter_map(|key| self.by_key.get(key))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.order.len()
    }

    /// Seconds that a network of this row takes, by those that were trained; by those of all rows if there is none.
    pub fn seconds_of(&self, row: Role) -> Option<f64> {
        let mean = |seconds: Vec<f64>| {
            let count = seconds.len();
            (count > 0).then(|| seconds.iter().sum::<f64>() / count as f64)
        };
        let of_row = self.all().filter(|it| it.row == row).map(|it| it.seconds);
        mean(of_row.collect()).or_else(|| mean(self.all().map(|it| it.seconds).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_from_json_to_the_last_bit() {
        for right in (0..=60_000).step_by(7) {
            let percent = as_written(f64::from(right) / 600.0);
            let text = serde_json::to_string(&percent).unwrap();
            let read: f64 = serde_json::from_str(&text).unwrap();
            assert_eq!(read.to_bits(), percent.to_bits(), "{text}");
        }
    }
}

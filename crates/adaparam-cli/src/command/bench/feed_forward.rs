//! The networks of the feed-forward experiments.

use std::time::Instant;

use adaparam_data::draw::{Draws, Purpose};
use adaparam_data::images::{ImageSet, ImageSplit};
use adaparam_paper::fit::{CurvePoint, alone};
use adaparam_paper::image::ImageConfig;
use adaparam_paper::tail::TailConfig;
use adaparam_report::{Cell, Column, Row, Table};
use anyhow::bail;
use burn::tensor::Device;
use serde::Serialize;

/// The speed of one network.
#[derive(Debug, Serialize)]
pub(super) struct Speed {
    model: String,
    params: usize,
    us_per_step: f64,
    steps_per_s: f64,
}

/// Networks of the tail regression, batches of 50, whose name holds `model`.
pub(super) fn tail(model: &str, steps: usize) -> anyhow::Result<Vec<Speed>> {
    let mut config = TailConfig::full(1);
    config.train.steps = steps;
    let mut speeds = Vec::new();
    for job in config.jobs() {
        if job.network.name.contains(model) {
            let mut watch = Stopwatch::default();
            let outcome = alone(|| job.run(&Device::flex(), |point| watch.see(point)))?;
            speeds.push(watch.speed(outcome.model, outcome.params)?);
        }
    }
    Ok(speeds)
}

/// Networks of Table 1 on images of 28×28 pixels, batches of 128, whose name holds `model`.
pub(super) fn mnist(model: &str, steps: usize) -> anyhow::Result<Vec<Speed>> {
    let data = random_images();
    let mut config = ImageConfig::full(1);
    for model in &mut config.models {
        model.train.steps = steps;
    }
    let mut speeds = Vec::new();
    for job in config.jobs(&data) {
        if job.network.name.contains(model) {
            let mut watch = Stopwatch::default();
            let outcome = alone(|| job.run(&data, &Device::flex(), |point| watch.see(point)))?;
            speeds.push(watch.speed(outcome.model, outcome.params)?);
        }
    }
    Ok(speeds)
}

/// Times the intervals between points of a training curve.
#[derive(Default)]
struct Stopwatch {
    last: Option<(Instant, usize)>,
    seconds_per_step: Vec<f64>,
}

impl Stopwatch {
    fn see(&mut self, point: CurvePoint) -> bool {
        let now = Instant::now();
        if let Some((then, step)) = self.last {
            let seconds = now.duration_since(then).as_secs_f64();
            self.seconds_per_step
                .push(seconds / (point.step - step) as f64);
        }
        self.last = Some((now, point.step));
        true
    }

    /// # Errors
    ///
    /// If training diverged before there was anything to time.
    fn speed(mut self, model: String, params: usize) -> anyhow::Result<Speed> {
        self.seconds_per_step.sort_by(f64::total_cmp);
        let Some(&median) = self.seconds_per_step.get(self.seconds_per_step.len() / 2) else {
            bail!("{model}: its training diverged at once, so that there is nothing to time");
        };
        Ok(Speed {
            model,
            params,
            us_per_step: 1e6 * median,
            steps_per_s: 1.0 / median,
        })
    }
}

/// Images of MNIST's size: speed does not depend on what they show.
fn random_images() -> ImageSplit {
    let images = |count: usize| {
        let mut stream = Draws::new(0).stream(Purpose::Inspect, &[count as u64]);
        let pixels = (0..count * 784).map(|_| stream.below(256) as u8).collect();
        let labels = (0..count).map(|_| stream.below(10) as u8).collect();
        ImageSet::new((28, 28), 10, 255, pixels, labels)
    };
    ImageSplit {
        train: images(6_000),
        test: images(1_000),
    }
}

pub(super) fn table(speeds: &[Speed]) -> Table {
    let row = |speed: &Speed| {
        Row::new(vec![
            Cell::from(speed.model.clone()),
            Cell::from(speed.params.to_string()),
            Cell::from(format!("{:.0}", speed.us_per_step)),
            Cell::from(format!("{:.0}", speed.steps_per_s)),
        ])
    };
    Table {
        caption: "Training speed".to_owned(),
        columns: vec![
            Column::text("Model"),
            Column::number("Parameters"),
            Column::number("A step").unit("µs"),
            Column::number("Steps per second"),
        ],
        rows: speeds.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_that_diverges_at_once_is_an_error_and_no_panic() {
        let error = Stopwatch::default().speed("rank 2".to_owned(), 37);
        let error = error.err().unwrap().to_string();
        assert!(
            error.starts_with("rank 2: its training diverged"),
            "{error}"
        );
        let mut watch = Stopwatch::default();
        for step in [10, 20] {
            watch.see(CurvePoint { step, loss: 1.0 });
        }
        assert!(watch.speed("rank 2".to_owned(), 37).unwrap().us_per_step > 0.0);
    }
}

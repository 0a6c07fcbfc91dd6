//! `adaparam bench`: how fast training is on this machine.

use std::time::Instant;

use adaparam_data::draw::{Draws, Purpose};
use adaparam_data::images::{ImageSet, ImageSplit};
use adaparam_train::fit::CurvePoint;
use adaparam_train::image::ImageConfig;
use adaparam_train::jobs::alone;
use adaparam_train::tail::TailConfig;
use burn::tensor::Device;
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::Verdict;
use crate::report::{Cell, Column, Row, Table};

/// Measure training steps per second
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam bench tail          the networks of the tail regression
  adaparam bench mnist --json  the networks of Table 1, on random images, for a program to read

A network has one core to itself, as in `reproduce`. The median over intervals of a hundredth of the run is
given, so that a disturbance of the machine does not count.")]
pub(crate) struct Bench {
    /// What to measure
    #[arg(value_enum)]
    what: What,
    /// Steps of each network
    #[arg(long, default_value_t = 3_000, value_parser = clap::value_parser!(u32).range(200..=1_000_000))]
    steps: u32,
    /// Only networks whose name holds this
    #[arg(long, value_name = "TEXT", default_value = "")]
    model: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Networks of the tail regression, batches of 50
    Tail,
    /// Networks of Table 1 on images of 28×28 pixels, batches of 128
    Mnist,
}

/// The speed of one network.
#[derive(Debug, Serialize)]
struct Speed {
    model: String,
    params: usize,
    us_per_step: f64,
    steps_per_s: f64,
}

impl Bench {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let device = Device::flex();
        let steps = self.steps as usize;
        let mut speeds = Vec::new();
        match self.what {
            What::Tail => {
                let mut config = TailConfig::full(1);
                config.train.steps = steps;
                for job in config
                    .jobs()
                    .iter()
                    .filter(|job| job.network.name.contains(&self.model))
                {
                    let mut watch = Stopwatch::default();
                    let outcome = alone(|| job.run(&device, |point| watch.see(point)))?;
                    speeds.push(watch.speed(outcome.model, outcome.params));
                }
            }
            What::Mnist => {
                let data = random_images();
                let mut config = ImageConfig::full(1);
                for model in &mut config.models {
                    model.train.steps = steps;
                }
                for job in config
                    .jobs(&data)
                    .iter()
                    .filter(|job| job.network.name.contains(&self.model))
                {
                    let mut watch = Stopwatch::default();
                    let outcome = alone(|| job.run(&data, &device, |point| watch.see(point)))?;
                    speeds.push(watch.speed(outcome.model, outcome.params));
                }
            }
        }
        if self.json {
            println!("{}", serde_json::to_string(&speeds)?);
        } else {
            println!("{}", table(&speeds).to_terminal(100));
        }
        Ok(Verdict::Done)
    }
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

    fn speed(mut self, model: String, params: usize) -> Speed {
        self.seconds_per_step.sort_by(f64::total_cmp);
        let median = self.seconds_per_step[self.seconds_per_step.len() / 2];
        Speed {
            model,
            params,
            us_per_step: 1e6 * median,
            steps_per_s: 1.0 / median,
        }
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

fn table(speeds: &[Speed]) -> Table {
    let row = |speed: &Speed| {
        Row::new(vec![
            Cell::from(speed.model.clone()),
            Cell::from(speed.params.to_string()),
            Cell::from(format!("{:.0}", speed.us_per_step)),
            Cell::from(format!("{:.0}", speed.steps_per_s)),
        ])
    };
    Table {
        caption: "Training speed on one core".to_owned(),
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

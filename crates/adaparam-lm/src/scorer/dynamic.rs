//! Dynamic evaluation: the model learns from the text that it is scored on, a segment behind.
//!
//! Krause, Kahembwe, Murray, Renals 2017, with the RMS rule and global decay. Each segment is scored first; then
//! `θ ← θ − η g / (G + ε) + λ min(G / Ḡ, 1/λ) (θ₀ − θ)`, with `g` the gradient of the segment's mean loss,
//! `G` the root mean square of gradients on the training text ([`GradientStatistics`]) and `Ḡ` the mean over parameters
//! of their mean `G`.

use adaparam::settings::{not_negative, positive, within};
use adaparam_data::text::Window;
use rayon::prelude::*;

use super::Predictor;
use super::keys::{FlagSettings, number, whole};
use super::statistics::GradientStatistics;
use crate::compute::{Carried, Learner, Machine};
use crate::config::ModelSpec;
use crate::weights::Weights;

adaparam::settings! {
    /// The keys of `--dynamic`.
    pub struct DynamicSettings {
        /// how far a step goes; 0 is static evaluation
        pub rate: f64 = 5e-5, not_negative();
        /// how fast weights come back to those that were trained
        pub decay: f64 = 0.002, not_negative();
        /// words between steps
        pub segment: usize = 5, within(1..=10_000);
        /// what is added to the root mean square of gradients
        pub epsilon: f64 = 2e-5, positive();
    }
}

impl FlagSettings for DynamicSettings {
    const FLAG: &'static str = "--dynamic";

    fn set(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        match key {
            "rate" => self.rate = number(value)?,
            "decay" => self.decay = number(value)?,
            "segment" => self.segment = whole(value)?,
            _ => self.epsilon = number(value)?,
        }
        Ok(())
    }
}

impl std::fmt::Display for DynamicSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            rate,
            decay,
            segment,
            epsilon,
        } = self;
        write!(
            f,
            "rate={rate:e},decay={decay},segment={segment},epsilon={epsilon:e}"
        )
    }
}

/// One step of one parameter. `mean` is `Ḡ`.
fn step(
    weights: &mut [f32],
    start: &[f32],
    gradient: &[f32],
    rms: &[f32],
    mean: f32,
    settings: &DynamicSettings,
) {
    /// So many numbers are a task for a thread.
    const TASK: usize = 1 << 15;
    let (rate, epsilon) = (settings.rate as f32, settings.epsilon as f32);
    // `λ min(G / Ḡ, 1/λ)` is `min(λ G / Ḡ, 1)`, also without decay.
    let pull = if mean > 0.0 {
        settings.decay as f32 / mean
    } else {
        0.0
    };
    let tasks = weights
        .par_chunks_mut(TASK)
        .zip(start.par_chunks(TASK))
        .zip(gradient.par_chunks(TASK))
        .zip(rms.par_chunks(TASK));
    tasks.for_each(|(((weights, start), gradient), rms)| {
        let all = weights.iter_mut().zip(start).zip(gradient).zip(rms);
        for (((weight, start), gradient), rms) in all {
            let back = (pull * rms).min(1.0) * (start - *weight);
            *weight += back - rate * gradient / (rms + epsilon);
        }
    });
}

/// A model that learns from what it reads. It reads in windows of a segment's length.
pub(super) struct DynamicReading<'a> {
    machine: &'a Machine,
    settings: DynamicSettings,
    statistics: &'a GradientStatistics,
    /// `Ḡ`.
    mean: f32,
    learner: Box<dyn Learner>,
    start: &'a Weights,
    weights: Weights,
    state: Option<Carried>,
    /// Whether the last segment was scored and is still to be learned from.
    is_behind: bool,
}

impl<'a> DynamicReading<'a> {
    pub(super) fn new(
        machine: &'a Machine,
        spec: &ModelSpec,
        start: &'a Weights,
        statistics: &'a GradientStatistics,
        settings: DynamicSettings,
    ) -> Self {
        let vocabulary = start.iter().next().map_or(0, |words| words.shape[0]);
        Self {
            machine,
            settings,
            statistics,
            mean: statistics.mean() as f32,
            learner: machine.learner(spec, vocabulary),
            start,
            weights: start.clone(),
            state: None,
            is_behind: false,
        }
    }

    fn learn_from_last(&mut self) {
        let gradients = self.learner.gradients();
        let parameters = self.weights.iter_mut().zip(self.start.iter());
        let learnt = gradients.into_iter().zip(&self.statistics.rms);
        for ((weight, start), (gradient, rms)) in parameters.zip(learnt) {
            step(
                &mut weight.values,
                &start.values,
                gradient,
                rms,
                self.mean,
                &self.settings,
            );
        }
    }
}

impl Predictor for DynamicReading<'_> {
    fn read(&mut self, window: &Window<'_>) {
        if std::mem::replace(&mut self.is_behind, true) {
            self.learn_from_last();
        }
        let state = self.state.take();
        let engine = &self.machine.engine;
        let after = self
            .learner
            .learn(engine, &self.weights, window, state, None);
        self.state = Some(after);
    }

    fn losses(&self) -> &[f32] {
        self.learner.losses()
    }

    fn outputs(&mut self) -> &[f32] {
        self.learner.outputs()
    }

    fn weights(&self) -> &Weights {
        &self.weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule as it is written, in f64.
    fn oracle(theta: [f64; 2], g: f64, rms: f64, mean: f64, settings: &DynamicSettings) -> f64 {
        let [theta, start] = theta;
        let DynamicSettings {
            rate,
            decay,
            epsilon,
            ..
        } = settings;
        theta - rate * g / (rms + epsilon) + decay * (rms / mean).min(1.0 / decay) * (start - theta)
    }

    const GOLDEN: DynamicSettings = DynamicSettings {
        rate: 0.01,
        decay: 0.1,
        segment: 5,
        epsilon: 0.001,
    };

    #[test]
    fn the_golden_number_of_a_step() {
        let golden = 1.032_015_968_064;
        let oracle = oracle([1.0, 1.2], 0.4, 0.5, 0.25, &GOLDEN);
        assert!((oracle - golden).abs() < 1e-9, "{oracle}");
        let mut weight = [1.0];
        step(&mut weight, &[1.2], &[0.4], &[0.5], 0.25, &GOLDEN);
        assert!((f64::from(weight[0]) - golden).abs() < 1e-6, "{weight:?}");
    }

    #[test]
    fn a_disturbed_weight_comes_back_in_one_step_where_the_pull_is_one() {
        let settings = DynamicSettings {
            rate: 0.0,
            decay: 3.0,
            ..GOLDEN
        };
        let mut weights = [7.0, -4.0];
        step(
            &mut weights,
            &[1.5, 2.5],
            &[9.0; 2],
            &[0.5; 2],
            0.25,
            &settings,
        );
        assert_eq!(weights.map(f32::to_bits), [1.5_f32, 2.5].map(f32::to_bits));
    }

    #[test]
    fn without_rate_and_disturbance_nothing_moves_not_even_by_a_bit() {
        let settings = DynamicSettings {
            rate: 0.0,
            ..GOLDEN
        };
        let start = [0.1_f32, -3.3, 1e-30];
        let mut weights = start;
        step(
            &mut weights,
            &start,
            &[9.0, -1.0, 1e9],
            &[0.5, 0.0, 2.0],
            0.25,
            &settings,
        );
        assert_eq!(weights.map(f32::to_bits), start.map(f32::to_bits));
    }

    #[test]
    fn parameters_without_any_gradient_in_training_stay_finite() {
        let mut weights = [1.0];
        step(&mut weights, &[1.0], &[0.0], &[0.0], 0.0, &GOLDEN);
        assert_eq!(weights.map(f32::to_bits), [1_f32.to_bits()]);
    }

    #[test]
    fn what_is_typed_is_understood_or_refused_with_its_rule() {
        let parse = |text: &str| DynamicSettings::parse(text).map_err(|error| error.to_string());
        let settings = parse("rate=1e-4,decay=0.005").unwrap();
        let expected = "rate=1e-4,decay=0.005,segment=5,epsilon=2e-5";
        assert_eq!(settings.to_string(), expected);
        assert_eq!(parse(expected).unwrap(), settings);
        for (text, expected) in [
            (
                "rate=-1",
                "--dynamic rate = -1.0: must be a number of at least 0",
            ),
            ("decay=nan", "--dynamic decay = NaN: must be a number"),
            ("segment=0", "--dynamic segment = 0: must be from 1"),
            (
                "epsilon=0",
                "--dynamic epsilon = 0.0: must be a number above 0",
            ),
            ("decai=1", "did you mean `decay`?"),
            ("lr=1", "keys are rate, decay, segment, epsilon"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}

//! How fast recurrent stacks of many shapes are on this machine: two layers alone, without words and softmax.

use std::time::{Duration, Instant};

use adaparam_data::draw::{Draws, Purpose};
use adaparam_kernels::Engine;
use adaparam_kernels::alstm::{Adaptation, Latent, PolicyLayout, PolicyStart, Summary};
use adaparam_kernels::stack::{Keep, Operands, Stack, Weights};
use adaparam_kernels::{alstm, lstm};
use burn::nn::{Lstm, LstmConfig};
use burn::tensor::{Device, Distribution, Tensor};
use serde::Serialize;

/// Layers of every stack.
const LAYERS: usize = 2;
/// A measurement is repeated until it took so long, at least and at most so many times.
const LONG_ENOUGH: Duration = Duration::from_millis(1500);
const FEWEST: usize = 2;
const MOST: usize = 15;
/// Where the first window takes so long, it is the measurement.
const TOO_LONG: Duration = Duration::from_secs(5);

/// Which stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StackKind {
    /// The paper's adaptive LSTM.
    Alstm,
    /// The plain LSTM.
    Lstm,
}

/// Who computes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The kernels, as training, evaluation and generation use them.
    Kernels,
    /// Burn's own `nn::Lstm`, by tensor operations and autodiff.
    Burn,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pass {
    /// Forward and backward, with the gradients of input and weights.
    Training,
    /// Forward only.
    Inference,
}

/// A shape, who computes it and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StackPoint {
    /// Which stack.
    pub model: StackKind,
    /// Width of the input and of both layers.
    pub hidden: usize,
    /// Rows of the batch.
    pub batch: usize,
    /// Steps of a window.
    pub window: usize,
    /// What is measured.
    pub pass: Pass,
    /// Who computes it.
    pub side: Side,
}

/// What was measured at a point. Times are medians, with the quartiles as their spread.
#[derive(Debug, Clone, Serialize)]
pub struct StackSpeed {
    /// Where.
    #[serde(flatten)]
    pub point: StackPoint,
    /// Width of the policy's latent; none in a plain LSTM.
    pub latent: Option<usize>,
    /// Threads.
    pub threads: usize,
    /// How many windows were measured, after the first one; or that one alone, if it took very long.
    pub repetitions: usize,
    /// Milliseconds of a window.
    pub ms: f64,
    /// Its lower quartile.
    pub ms_lower_quartile: f64,
    /// Its upper quartile.
    pub ms_upper_quartile: f64,
}

impl StackPoint {
    /// Width of the policy's latent: as in the paper's models, about a tenth.
    fn latent(&self) -> Option<usize> {
        (self.model == StackKind::Alstm).then_some(self.hidden / 10)
    }

    /// Whether `side` has such a stack.
    pub fn exists(&self) -> bool {
        self.side == Side::Kernels || self.model == StackKind::Lstm
    }

    fn stack(&self) -> Box<dyn Stack> {
        let hidden = vec![self.hidden; LAYERS];
        match self.latent() {
            Some(latent) => Box::new(alstm::Shape {
                input: self.hidden,
                hidden,
                latent,
                kind: Latent::Recurrent,
                summary: Summary::Hybrid,
                adaptation: Adaptation::InputOutput,
                layout: PolicyLayout::Paper,
                start: PolicyStart::Paper,
                bias: true,
                skip: false,
            }),
            None => Box::new(lstm::Shape {
                input: self.hidden,
                hidden,
                bias: true,
                skip: false,
                input_gate: lstm::InputGate::Free,
            }),
        }
    }

    /// Measures it. Numbers are random: speed does not depend on them.
    ///
    /// # Panics
    /// If there is [no such stack](Self::exists).
    pub fn measure(&self, engine: &Engine) -> StackSpeed {
        assert!(self.exists(), "Burn has no adaptive LSTM");
        let mut times = match self.side {
            Side::Kernels => self.by_kernels(engine),
            Side::Burn => self.by_burn(),
        };
        times.sort_by(f64::total_cmp);
        let quartile = |quarter: usize| 1e3 * times[(times.len() - 1) * quarter / 4];
        StackSpeed {
            point: *self,
            latent: self.latent(),
            threads: engine.pool().threads(),
            repetitions: times.len(),
            ms: quartile(2),
            ms_lower_quartile: quartile(1),
            ms_upper_quartile: quartile(3),
        }
    }

    fn by_kernels(&self, engine: &Engine) -> Vec<f64> {
        const FITS: &str = "operands are as long as the stack says";
        let stack = self.stack();
        let mut stream = Draws::new(0).stream(Purpose::Inspect, &[self.hidden as u64]);
        let mut numbers = |count: usize, size: f64| -> Vec<f32> {
            let mut number = || (size * (2.0 * stream.uniform() - 1.0)) as f32;
            (0..count).map(|_| number()).collect()
        };
        let lengths = stack.parameters();
        let lengths: Vec<usize> = lengths
            .iter()
            .map(|slot| slot.shape.iter().product())
            .collect();
        let size = 1.0 / (self.hidden as f64).sqrt();
        let weights: Vec<Vec<f32>> = lengths.iter().map(|&len| numbers(len, size)).collect();
        let weights: Vec<&[f32]> = weights.iter().map(Vec::as_slice).collect();
        let words = self.window * self.batch;
        let x = numbers(words * stack.d_input(), 1.0);
        let d_output = numbers(words * stack.d_output(), 1.0);
        let mut d_x = vec![0.0; x.len()];
        let mut output = vec![0.0; d_output.len()];
        let mut gradients: Vec<Vec<f32>> = lengths.iter().map(|&len| vec![0.0; len]).collect();
        let operands = Operands {
            weights: &weights,
            masks: &[],
            steps: self.window,
            batch: self.batch,
            x: &x,
            lengths: None,
        };
        match self.pass {
            Pass::Training => {
                let mut runner = stack.runner(Weights::Change);
                repeated(|| {
                    let mut state = stack.zero_state(self.batch);
                    runner.pack(engine, &weights).expect(FITS);
                    runner
                        .forward(engine, &operands, Keep::Tape, &mut state, &mut output)
                        .expect(FITS);
                    let mut d_state = stack.zero_state(self.batch);
                    let mut gradients: Vec<&mut [f32]> =
                        gradients.iter_mut().map(Vec::as_mut_slice).collect();
                    runner
                        .backward(
                            engine,
                            &operands,
                            &d_output,
                            &mut d_state,
                            &mut d_x,
                            &mut gradients,
                        )
                        .expect(FITS);
                })
            }
            Pass::Inference => {
                let mut runner = stack.runner(Weights::Stay);
                runner.pack(engine, &weights).expect(FITS);
                repeated(|| {
                    let mut state = stack.zero_state(self.batch);
                    runner
                        .forward(engine, &operands, Keep::State, &mut state, &mut output)
                        .expect(FITS);
                })
            }
        }
    }

    fn by_burn(&self) -> Vec<f64> {
        let plain = Device::flex();
        let device = match self.pass {
            Pass::Training => plain.autodiff(),
            Pass::Inference => plain,
        };
        let layers: [Lstm; LAYERS] =
            std::array::from_fn(|_| LstmConfig::new(self.hidden, self.hidden, true).init(&device));
        let normal = || {
            let dims = [self.batch, self.window, self.hidden];
            Tensor::<3>::random(dims, Distribution::Normal(0.0, 1.0), &device)
        };
        let (x, d_output) = (normal(), normal());
        repeated(|| {
            let input = match self.pass {
                Pass::Training => x.clone().require_grad(),
                Pass::Inference => x.clone(),
            };
            let output = layers
                .iter()
                .fold(input, |input, layer| layer.forward(input, None).0);
            match self.pass {
                Pass::Training => drop((output * d_output.clone()).sum().backward()),
                Pass::Inference => drop(output.into_data()),
            }
        })
    }
}

/// Seconds of each repetition. The first makes buffers and does not count, unless it takes very long.
fn repeated(mut work: impl FnMut()) -> Vec<f64> {
    let start = Instant::now();
    work();
    if start.elapsed() > TOO_LONG {
        return vec![start.elapsed().as_secs_f64()];
    }
    let (begin, mut times) = (Instant::now(), Vec::new());
    while times.len() < FEWEST || (times.len() < MOST && begin.elapsed() < LONG_ENOUGH) {
        let start = Instant::now();
        work();
        times.push(start.elapsed().as_secs_f64());
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_measures_every_pass() {
        let engine = Engine::new(2);
        for model in [StackKind::Alstm, StackKind::Lstm] {
            for pass in [Pass::Training, Pass::Inference] {
                for side in [Side::Kernels, Side::Burn] {
                    let point = StackPoint {
                        model,
                        hidden: 20,
                        batch: 3,
                        window: 4,
                        pass,
                        side,
                    };
                    if point.exists() {
                        let speed = point.measure(&engine);
                        assert!(speed.repetitions >= FEWEST);
                        assert!(0.0 < speed.ms_lower_quartile);
                        assert!(speed.ms_lower_quartile <= speed.ms);
                        assert!(speed.ms <= speed.ms_upper_quartile);
                    }
                }
            }
        }
    }
}

//! Times one training step of an adaptive LSTM language model by phase, next to the machine's multiply-add peak.
//!
//! `cargo run --release --example step -- [17m|small] [threads] [repetitions] [path] [precision]`
#![allow(clippy::print_stdout)]

mod model;

use adaparam_kernels::adam::{Adam, Parameter};
use adaparam_kernels::alstm::Shape;
use adaparam_kernels::embedding::{Lookup, apply_mask};
use adaparam_kernels::memory::Buffer;
use adaparam_kernels::simd::Instructions;
use adaparam_kernels::softmax::{Gradient, Projection, Softmax};
use adaparam_kernels::stack::{Keep, Operands, Runner, Stack, State, Weights};
use adaparam_kernels::{Engine, Precision, peak};
use model::{VOCABULARY, median, noise, of_parameters, shape, slices};
use std::time::Instant;

const BATCH: usize = 20;

fn mask(len: usize) -> Vec<f32> {
    (0..len)
        .map(|index| {
            if index.wrapping_mul(2_654_435_761) >> 9 & 1 == 0 {
                0.0
            } else {
                2.0
            }
        })
        .collect()
}

/// The phases of a training step, in their order.
const PHASES: [&str; 8] = [
    "embedding",
    "pack",
    "forward",
    "softmax",
    "through time",
    "weight gradients",
    "embedding gradient",
    "adam",
];

/// A parameter of the language model outside the stack, its gradient and its second moment.
struct Tensor {
    value: Buffer,
    gradient: Buffer,
    second: Buffer,
}

impl Tensor {
    fn new(len: usize, mut fill: impl FnMut(usize) -> f32) -> Self {
        let mut value = Buffer::new(len);
        value
            .iter_mut()
            .enumerate()
            .for_each(|(index, x)| *x = fill(index));
        Self {
            value,
            gradient: Buffer::new(len),
            second: Buffer::new(len),
        }
    }
}

/// A language model with everything that its training step reuses.
struct Model {
    shape: Shape,
    steps: usize,
    stack: Vec<Buffer>,
    d_stack: Vec<Buffer>,
    second: Vec<Buffer>,
    embedding: Tensor,
    bias: Tensor,
    words: Vec<u32>,
    targets: Vec<u32>,
    word_mask: Vec<f32>,
    masks: Vec<Vec<f32>>,
    embedding_mask: Vec<f32>,
    x: Buffer,
    d_x: Buffer,
    output: Buffer,
    d_output: Buffer,
    losses: Vec<f32>,
    state: State,
    runner: Box<dyn Runner>,
    softmax: Softmax,
}

impl Model {
    fn new(width: usize, hidden: usize, latent: usize, steps: usize) -> Self {
        let shape = shape(width, hidden, latent);
        let rows = steps * BATCH;
        Self {
            stack: of_parameters(&shape, noise(0.05)),
            d_stack: of_parameters(&shape, |_| 0.0),
            second: of_parameters(&shape, |_| 0.0),
            embedding: Tensor::new(VOCABULARY * width, noise(0.1)),
            bias: Tensor::new(VOCABULARY, |_| 0.0),
            words: (0..rows)
                .map(|index| (index * 7919 % VOCABULARY) as u32)
                .collect(),
            targets: (0..rows)
                .map(|index| (index * 104_729 % VOCABULARY) as u32)
                .collect(),
            word_mask: mask(VOCABULARY),
            masks: shape
                .sites()
                .iter()
                .map(|slot| mask(BATCH * slot.numbers()))
                .collect(),
            embedding_mask: mask(BATCH * width),
            x: Buffer::new(rows * width),
            d_x: Buffer::new(rows * width),
            output: Buffer::new(rows * width),
            d_output: Buffer::new(rows * width),
            losses: vec![0.0; rows],
            state: Stack::zero_state(&shape, BATCH),
            runner: shape.runner(Weights::Change),
            softmax: Softmax::default(),
            shape,
            steps,
        }
    }

    fn parameters(&self) -> usize {
        self.stack
            .iter()
            .chain([&self.embedding.value, &self.bias.value])
            .map(Buffer::len)
            .sum()
    }

    /// Training step number `number`: the times of the phases, and the mean loss. Read from top to bottom.
    #[allow(clippy::too_many_lines)]
    fn step(&mut self, engine: &Engine, number: u64) -> ([f64; 8], f64) {
        let (steps, width) = (self.steps, self.shape.input);
        let rows = steps * BATCH;
        let shape = &self.shape;
        let lookup = Lookup {
            words: &self.words,
            batch: BATCH,
            width,
            word_mask: Some(&self.word_mask),
            mask: Some(&self.embedding_mask),
        };
        let mut clock = Clock::new(engine.pool().threads() == 1);
        lookup.forward(engine, &self.embedding.value, &mut self.x);
        clock.lap();

        let fits = "everything has its size";
        let weights = slices(&self.stack);
        let masks: Vec<_> = self.masks.iter().map(|mask| Some(&mask[..])).collect();
        let projection = Projection {
            weight: &self.embedding.value,
            bias: &self.bias.value,
            width,
        };
        self.runner.pack(engine, &weights).expect(fits);
        self.softmax.pack(engine, &projection);
        clock.lap();

        let operands = Operands {
            weights: &weights,
            masks: &masks,
            steps,
            batch: BATCH,
            x: &self.x,
            lengths: None,
        };
        let (state, output) = (&mut self.state, &mut self.output);
        self.runner
            .forward(engine, &operands, Keep::Tape, state, output)
            .expect(fits);
        apply_mask(engine, &mut self.output, &self.embedding_mask);
        clock.lap();

        let mut gradient = Gradient {
            d_input: &mut self.d_output,
            d_weight: &mut self.embedding.gradient,
            d_bias: &mut self.bias.gradient,
        };
        let scale = 1.0 / rows as f32;
        let loss = self.softmax.gradient(
            engine,
            &projection,
            &self.output,
            &self.targets,
            scale,
            &mut self.losses,
            &mut gradient,
        );
        apply_mask(engine, &mut self.d_output, &self.embedding_mask);
        clock.lap();

        let mut d_state = Stack::zero_state(shape, BATCH);
        let gradients = self.d_stack.iter_mut();
        let mut gradients: Vec<&mut [f32]> = gradients.map(|buffer| &mut buffer[..]).collect();
        self.runner
            .through_time(
                engine,
                &operands,
                &self.d_output,
                &mut d_state,
                &mut self.d_x,
                &mut gradients,
            )
            .expect(fits);
        clock.lap();
        self.runner
            .weight_gradients(engine, &operands, &mut gradients)
            .expect(fits);
        clock.lap();
        lookup.add_gradient(engine, &self.d_x, &mut self.embedding.gradient);
        clock.lap();

        let mut parameters: Vec<Parameter<'_>> = Vec::new();
        for ((value, gradient), second) in self
            .stack
            .iter_mut()
            .zip(&self.d_stack)
            .zip(&mut self.second)
        {
            parameters.push(Parameter {
                value,
                gradient,
                first: &mut [],
                second,
            });
        }
        for Tensor {
            value,
            gradient,
            second,
        } in [&mut self.embedding, &mut self.bias]
        {
            parameters.push(Parameter {
                value,
                gradient,
                first: &mut [],
                second,
            });
        }
        let adam = Adam {
            learning_rate: 1e-4,
            beta1: 0.0,
            beta2: 0.999,
            epsilon: 1e-9,
            l2: 1e-6,
            clip: None,
        };
        adam.step(engine, number, &mut parameters);
        clock.lap();
        (
            clock.laps.try_into().expect("one lap a phase"),
            loss / rows as f64,
        )
    }
}

fn main() {
    let argument = |index: usize| std::env::args().nth(index);
    let preset = argument(1).unwrap_or_else(|| "17m".to_owned());
    let threads = argument(2).and_then(|x| x.parse().ok()).unwrap_or(2);
    let repetitions: u64 = argument(3).and_then(|x| x.parse().ok()).unwrap_or(5);
    let instructions = argument(4).map_or_else(Instructions::best, |name| {
        Instructions::named(&name).expect("an available path")
    });
    let precision = argument(5).map_or(Precision::F32, |name| {
        Precision::named(&name).expect("a precision")
    });
    let engine = Engine::with_instructions(threads, instructions).in_precision(precision);
    let mut model = if preset == "small" {
        Model::new(100, 200, 30, 35)
    } else {
        Model::new(400, 1150, 100, 70)
    };
    // Every parameter of a matrix takes part in three products of the window; biases are too few to matter.
    let gflop = 6.0 * (model.steps * BATCH * model.parameters()) as f64 * 1e-9;

    // The first step allocates.
    let (_, mut loss) = model.step(&engine, 1);
    let (mut times, mut peaks) = (Vec::new(), Vec::new());
    for repetition in 0..repetitions {
        peaks.push(fma_peak(&engine));
        let (laps, new_loss) = model.step(&engine, repetition + 2);
        times.push(laps);
        loss = new_loss;
    }

    let peak = peaks.iter().copied().fold(0.0, f64::max);
    println!(
        "{preset}, {} x{threads}: {} parameters, {gflop:.1} GFLOP, loss {loss:.3}",
        engine.path().name(),
        model.parameters()
    );
    println!(
        "multiply-add peak {peak:.0} GFLOP/s (median {:.0})",
        median(&mut peaks)
    );
    for (phase, name) in PHASES.iter().enumerate() {
        let mut phase: Vec<f64> = times.iter().map(|laps| laps[phase]).collect();
        let median = median(&mut phase);
        println!(
            "{name:>20}: {:7.2} ms, best {:7.2}",
            median * 1e3,
            phase[0] * 1e3
        );
    }
    let mut totals: Vec<f64> = times.iter().map(|laps| laps.iter().sum()).collect();
    let median = median(&mut totals);
    let fraction = |time: f64| gflop / time / peak;
    println!(
        "{:>20}: {:7.2} ms, best {:7.2}",
        "step",
        median * 1e3,
        totals[0] * 1e3
    );
    println!(
        "fraction of the peak: {:.3}, best {:.3}",
        fraction(median),
        fraction(totals[0])
    );
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        for line in status.lines().filter(|line| line.starts_with("VmHWM")) {
            println!("{line}");
        }
    }
}

/// The multiply-add peak by the same clock as the step.
fn fma_peak(engine: &Engine) -> f64 {
    let mut clock = Clock::new(engine.pool().threads() == 1);
    let start = Instant::now();
    let gflops = peak::fma_once(engine);
    let wall = start.elapsed().as_secs_f64();
    clock.lap();
    gflops * wall / clock.laps[0]
}

struct Clock {
    start: Instant,
    processor: bool,
    last: f64,
    laps: Vec<f64>,
}

impl Clock {
    /// One thread is timed by what it got of the processor, so that other users of the machine do not count.
    fn new(processor: bool) -> Self {
        let mut clock = Self {
            start: Instant::now(),
            processor,
            last: 0.0,
            laps: Vec::new(),
        };
        clock.last = clock.now();
        clock
    }

    fn now(&self) -> f64 {
        #[cfg(unix)]
        if self.processor {
            let mut time = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            // SAFETY: the call only fills in the time.
            unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
            return time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9;
        }
        self.start.elapsed().as_secs_f64()
    }

    fn lap(&mut self) {
        let now = self.now();
        self.laps.push(now - self.last);
        self.last = now;
    }
}

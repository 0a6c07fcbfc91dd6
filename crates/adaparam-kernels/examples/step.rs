//! Times one training step of an adaptive LSTM language model by phase, next to the machine's multiply-add peak.
//!
//! `cargo run --release --example step -- [17m|small] [threads] [repetitions] [path]`
#![allow(clippy::print_stdout)]

use adaparam_kernels::adam::{Adam, Parameter};
use adaparam_kernels::alstm::{
    Adaptation, Latent, LayerGradients, LayerMasks, LayerWeights, Packed, PolicyLayout, Shape, Summary, Tape, Window,
};
use adaparam_kernels::embedding::{Lookup, apply_mask};
use adaparam_kernels::memory::Buffer;
use adaparam_kernels::simd::Path;
use adaparam_kernels::softmax::{Gradient, Projection, Softmax};
use adaparam_kernels::{Engine, peak};
use std::time::Instant;

const VOCABULARY: usize = 10_000;
const BATCH: usize = 20;

/// Parameters, gradients or moments of one layer, in the order of [`LayerWeights`].
struct Layer([Buffer; 8]);

impl Layer {
    fn new(shape: &Shape, index: usize, mut fill: impl FnMut(usize) -> f32) -> Self {
        let s = shape.layer(index);
        let lengths = [
            s.summary * s.latent_gates,
            s.latent * s.latent_gates,
            s.latent_gates,
            s.latent_gates,
            s.latent * s.policy.width,
            s.input * 4 * s.hidden,
            s.hidden * 4 * s.hidden,
            4 * s.hidden,
        ];
        Self(lengths.map(|len| {
            let mut buffer = Buffer::new(len);
            buffer.iter_mut().enumerate().for_each(|(index, x)| *x = fill(index));
            buffer
        }))
    }

    fn weights(&self) -> LayerWeights<'_> {
        let [latent_input, latent_hidden, latent_input_bias, latent_hidden_bias, projection, input, hidden, bias] =
            self.0.each_ref().map(|buffer| &buffer[..]);
        LayerWeights { latent_input, latent_hidden, latent_input_bias, latent_hidden_bias, projection, input, hidden, bias }
    }

    fn gradients(&mut self) -> LayerGradients<'_> {
        let [latent_input, latent_hidden, latent_input_bias, latent_hidden_bias, projection, input, hidden, bias] =
            self.0.each_mut().map(|buffer| &mut buffer[..]);
        LayerGradients { latent_input, latent_hidden, latent_input_bias, latent_hidden_bias, projection, input, hidden, bias }
    }
}

/// Numbers between -scale and scale that look random enough.
fn noise(scale: f32) -> impl FnMut(usize) -> f32 {
    move |index| scale * ((index.wrapping_mul(2_654_435_761) >> 7) % 2001) as f32 / 1000.0 - scale
}

fn mask(len: usize) -> Vec<f32> {
    (0..len).map(|index| if index.wrapping_mul(2_654_435_761) >> 9 & 1 == 0 { 0.0 } else { 2.0 }).collect()
}

fn main() {
    let argument = |index: usize| std::env::args().nth(index);
    let preset = argument(1).unwrap_or_else(|| "17m".to_owned());
    let threads = argument(2).and_then(|x| x.parse().ok()).unwrap_or(2);
    let repetitions: usize = argument(3).and_then(|x| x.parse().ok()).unwrap_or(5);
    let path = argument(4).map_or_else(Path::best, |name| Path::named(&name).expect("an available path"));
    let (width, hidden, latent, steps) = if preset == "small" { (100, 200, 30, 35) } else { (400, 1150, 100, 70) };
    let engine = Engine::with_path(threads, path);
    let shape = Shape {
        input: width,
        hidden: vec![hidden, width],
        latent,
        kind: Latent::Recurrent,
        summary: Summary::Hybrid,
        adaptation: Adaptation::InputOutput,
        layout: PolicyLayout::Paper,
        bias: true,
    };
    let rows = steps * BATCH;
    let mut stack: Vec<Layer> = (0..2).map(|index| Layer::new(&shape, index, noise(0.05))).collect();
    let mut d_stack: Vec<Layer> = (0..2).map(|index| Layer::new(&shape, index, |_| 0.0)).collect();
    let mut second: Vec<Layer> = (0..2).map(|index| Layer::new(&shape, index, |_| 0.0)).collect();
    let new = |len: usize| Buffer::new(len);
    let mut embedding = new(VOCABULARY * width);
    embedding.iter_mut().enumerate().for_each(|(index, x)| *x = noise(0.1)(index));
    let (mut d_embedding, mut second_embedding) = (new(VOCABULARY * width), new(VOCABULARY * width));
    let (mut bias, mut d_bias, mut second_bias) = (new(VOCABULARY), new(VOCABULARY), new(VOCABULARY));
    let parameters = stack.iter().flat_map(|layer| &layer.0).map(|b| b.len()).sum::<usize>() + embedding.len() + bias.len();
    // Every parameter of a matrix takes part in three products of the window; biases are too few to matter.
    let gflop = 6.0 * rows as f64 * parameters as f64 * 1e-9;

    let words: Vec<u32> = (0..rows).map(|index| (index * 7919 % VOCABULARY) as u32).collect();
    let targets: Vec<u32> = (0..rows).map(|index| (index * 104_729 % VOCABULARY) as u32).collect();
    let word_mask = mask(VOCABULARY);
    let masks: Vec<(Vec<f32>, Vec<f32>)> = shape.hidden.iter().map(|h| (mask(BATCH * h), mask(BATCH * latent))).collect();
    let masks: Vec<LayerMasks<'_>> = masks.iter().map(|(h, z)| LayerMasks { hidden: Some(h), latent: Some(z) }).collect();
    let output_mask = mask(BATCH * width);
    let lookup = Lookup { words: &words, batch: BATCH, width, word_mask: Some(&word_mask), mask: Some(&output_mask) };
    let (mut x, mut d_x, mut output, mut d_output) = (new(rows * width), new(rows * width), new(rows * width), new(rows * width));
    let mut losses = vec![0.0; rows];
    let mut state = shape.zero_state(BATCH);
    let mut d_state = shape.zero_state(BATCH);
    let (mut packed, mut tape, mut softmax) = (Packed::default(), Tape::default(), Softmax::default());
    let adam = Adam { learning_rate: 1e-4, beta1: 0.0, beta2: 0.999, epsilon: 1e-9, l2: 1e-6, clip: None };

    const PHASES: [&str; 8] =
        ["embedding", "pack", "forward", "softmax", "through time", "weight gradients", "embedding gradient", "adam"];
    let mut times: Vec<[f64; 8]> = Vec::new();
    let mut peaks = Vec::new();
    let mut loss = 0.0;
    for repetition in 0..=repetitions {
        peaks.push(peak::fma_once(&engine));
        let mut clock = Clock::new(threads == 1);
        lookup.forward(&engine, &embedding, &mut x);
        clock.lap();
        {
            let weights: Vec<LayerWeights<'_>> = stack.iter().map(Layer::weights).collect();
            let projection = Projection { weight: &embedding, bias: &bias, width };
            packed.pack(&engine, &shape, &weights);
            softmax.pack(&engine, &projection);
            clock.lap();
            let window = Window { shape: &shape, weights: &weights, masks: &masks, steps, batch: BATCH, x: &x };
            window.forward(&engine, &packed, &mut tape, &mut state, &mut output);
            apply_mask(&engine, &mut output, &output_mask);
            clock.lap();
            let mut gradient = Gradient { d_input: &mut d_output, d_weight: &mut d_embedding, d_bias: &mut d_bias };
            loss = softmax.gradient(&engine, &projection, &output, &targets, 1.0 / rows as f32, &mut losses, &mut gradient);
            apply_mask(&engine, &mut d_output, &output_mask);
            clock.lap();
            let mut gradients: Vec<LayerGradients<'_>> = d_stack.iter_mut().map(Layer::gradients).collect();
            for state in &mut d_state {
                [&mut state.h, &mut state.c, &mut state.z, &mut state.z_c].into_iter().for_each(|s| s.fill(0.0));
            }
            window.through_time(&engine, &mut tape, &d_output, &mut d_state, &mut d_x, &mut gradients);
            clock.lap();
            window.weight_gradients(&engine, &mut tape, &mut gradients);
            clock.lap();
        }
        lookup.add_gradient(&engine, &d_x, &mut d_embedding);
        clock.lap();
        let mut parameters: Vec<Parameter<'_>> = Vec::new();
        for ((value, gradient), second) in stack.iter_mut().zip(&d_stack).zip(&mut second) {
            for ((value, gradient), second) in value.0.iter_mut().zip(&gradient.0).zip(&mut second.0) {
                parameters.push(Parameter { value, gradient, first: &mut [], second });
            }
        }
        parameters.push(Parameter { value: &mut embedding, gradient: &d_embedding, first: &mut [], second: &mut second_embedding });
        parameters.push(Parameter { value: &mut bias, gradient: &d_bias, first: &mut [], second: &mut second_bias });
        adam.step(&engine, repetition as u64 + 1, &mut parameters);
        clock.lap();
        // The first repetition allocates.
        if repetition > 0 {
            times.push(clock.laps.try_into().expect("one lap a phase"));
        }
    }

    let peak = peaks.iter().copied().fold(0.0, f64::max);
    println!("{preset}, {} x{threads}: {parameters} parameters, {gflop:.1} GFLOP, loss {:.3}", path.name(), loss / rows as f64);
    println!("multiply-add peak {peak:.0} GFLOP/s (median {:.0})", median(&mut peaks));
    for (phase, name) in PHASES.iter().enumerate() {
        let mut phase: Vec<f64> = times.iter().map(|laps| laps[phase]).collect();
        let median = median(&mut phase);
        println!("{name:>20}: {:7.2} ms, best {:7.2}", median * 1e3, phase[0] * 1e3);
    }
    let mut totals: Vec<f64> = times.iter().map(|laps| laps.iter().sum()).collect();
    let median = median(&mut totals);
    let fraction = |time: f64| gflop / time / peak;
    println!("{:>20}: {:7.2} ms, best {:7.2}", "step", median * 1e3, totals[0] * 1e3);
    println!("fraction of the peak: {:.3}, best {:.3}", fraction(median), fraction(totals[0]));
    let best: f64 = (0..8).map(|phase| times.iter().map(|laps| laps[phase]).fold(f64::MAX, f64::min)).sum();
    println!("best phases together: {:.2} ms, {:.3}", best * 1e3, fraction(best));
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        status.lines().filter(|line| line.starts_with("VmHWM")).for_each(|line| println!("{line}"));
    }
}

/// Sorts and returns the middle.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
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
        let mut clock = Self { start: Instant::now(), processor, last: 0.0, laps: Vec::new() };
        clock.last = clock.now();
        clock
    }

    fn now(&self) -> f64 {
        #[cfg(unix)]
        if self.processor {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
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

//! Times one layer of a plain LSTM, as wide as its input, by phase, with matrices as `PyTorch` has them: a window that learns, and
//! one that is only read. The sum of all bits that come out tells whether a change has touched any.
//!
//! `cargo run --release --example lstm -- [hidden] [batch] [steps] [threads] [milliseconds]`
#![allow(clippy::print_stdout)]

mod model;

use adaparam_kernels::lstm::{InputGate, Shape, Turned};
use adaparam_kernels::stack::{Keep, Operands, Stack, TwoBiases, Weights};
use adaparam_kernels::{Engine, memory::Buffer};
use model::{median, noise, of_parameters, slices};
use std::time::Instant;

const PHASES: [&str; 5] = [
    "pack",
    "forward",
    "through time",
    "weight gradients",
    "read",
];

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse());
    let mut next = |otherwise| arguments.next().and_then(Result::ok).unwrap_or(otherwise);
    let (hidden, batch, steps) = (next(256), next(20), next(35));
    let (threads, milliseconds) = (next(2), next(1000));
    let engine = Engine::new(threads);
    let stack = TwoBiases(Box::new(Turned(Shape {
        input: hidden,
        hidden: vec![hidden],
        bias: true,
        skip: false,
        input_gate: InputGate::Free,
    })));
    let weights = of_parameters(&stack, noise(0.1));
    let weights = slices(&weights);
    let mut gradients = of_parameters(&stack, |_| 0.0);
    let mut gradients: Vec<&mut [f32]> = gradients.iter_mut().map(|of| &mut of[..]).collect();
    let numbers = steps * batch * hidden;
    let (x, d_output) = (filled(numbers, 1.0), filled(numbers, 0.3));
    let (mut output, mut read, mut d_x) = (
        filled(numbers, 0.0),
        filled(numbers, 0.0),
        filled(numbers, 0.0),
    );
    let operands = Operands {
        weights: &weights,
        masks: &[],
        steps,
        batch,
        x: &x,
        lengths: None,
    };
    let mut learner = stack.runner(Weights::Change);
    let mut reader = stack.runner(Weights::Stay);
    reader.pack(&engine, &weights).expect("the weights fit");
    let mut times = PHASES.map(|_| Vec::new());
    let start = Instant::now();
    while times[0].len() < 3 || start.elapsed().as_millis() < milliseconds as u128 {
        let mut state = stack.zero_state(batch);
        let mut d_state = stack.zero_state(batch);
        let mut own = stack.zero_state(batch);
        let mut time = |phase: usize, run: &mut dyn FnMut()| {
            let start = Instant::now();
            run();
            times[phase].push(start.elapsed().as_secs_f64());
        };
        let fits = "the window fits";
        time(0, &mut || learner.pack(&engine, &weights).expect(fits));
        time(1, &mut || {
            let (state, output) = (&mut state, &mut output);
            learner
                .forward(&engine, &operands, Keep::Tape, state, output)
                .expect(fits);
        });
        time(2, &mut || {
            let (d_state, d_x, gradients) = (&mut d_state, &mut d_x, &mut gradients);
            learner
                .through_time(&engine, &operands, &d_output, d_state, d_x, gradients)
                .expect(fits);
        });
        time(3, &mut || {
            learner
                .weight_gradients(&engine, &operands, &mut gradients)
                .expect(fits);
        });
        time(4, &mut || {
            reader
                .forward(&engine, &operands, Keep::State, &mut own, &mut read)
                .expect(fits);
        });
    }
    assert!(output[..] == read[..], "what is kept changes no bit");
    let all = [&output[..], &d_x[..]].into_iter();
    let all = all.chain(gradients.iter().map(|of| &**of)).flatten();
    let bits = sum_of_bits(all);
    let times = times.map(|mut times| (median(&mut times), times[0]));
    let operations = (16 * numbers * hidden) as f64;
    println!("hidden {hidden}, batch {batch}, steps {steps}, threads {threads}: bits {bits:016x}");
    let show = |phase: &str, parts: &[(f64, f64)], passes: f64| {
        let (median, fastest) = parts
            .iter()
            .fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        println!(
            "  {phase:18} {:9.3} ms, fastest {:9.3}: {:4.0} GFLOP/s",
            1e3 * median,
            1e3 * fastest,
            1e-9 * passes * operations / fastest
        );
    };
    for (phase, time) in PHASES.iter().zip(times) {
        show(phase, &[time], 1.0);
    }
    show("all that learns", &times[..4], 3.0);
}

fn filled(len: usize, scale: f32) -> Buffer {
    let (mut buffer, mut fill) = (Buffer::new(len), noise(scale));
    buffer
        .iter_mut()
        .enumerate()
        .for_each(|(at, x)| *x = fill(at));
    buffer
}

fn sum_of_bits<'a>(numbers: impl Iterator<Item = &'a f32>) -> u64 {
    numbers.fold(0_u64, |sum, x| {
        (sum ^ u64::from(x.to_bits()))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    })
}

//! Times forward and backward of a static layer of 784 × 110 and of one with adapted singular values, on batches of 128.
//!
//! `cargo run --release -p adaparam-kernels --example layer -- [threads] [repetitions]`
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use adaparam_kernels::Engine;
use adaparam_kernels::feed_forward::{Activation, Layer, Operands, Shape, Stage, Wanted};

const ROWS: usize = 128;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse());
    let mut next = |otherwise| arguments.next().and_then(Result::ok).unwrap_or(otherwise);
    let (threads, repetitions) = (next(1), next(300));
    let engine = Engine::new(threads);
    let fixed = Shape {
        widths: vec![784, 110],
        adapted: vec![false; 3],
        bias: true,
        activation: Activation::Relu,
        context: None,
        policy: Vec::new(),
    };
    let adapted = Shape {
        widths: vec![784, 63, 10],
        adapted: vec![false, false, true, false],
        policy: vec![Stage {
            width: 63,
            bias: true,
            activation: Activation::Identity,
            gate: None,
        }],
        activation: Activation::Identity,
        ..fixed.clone()
    };
    for (name, shape) in [("static", fixed), ("singular values", adapted)] {
        time(&engine, name, shape, repetitions);
    }
}

fn time(engine: &Engine, name: &str, shape: Shape, repetitions: usize) {
    let lengths: Vec<usize> = shape
        .parameters()
        .iter()
        .map(|shape| shape.iter().product())
        .collect();
    let numbers = |len: usize| -> Vec<f32> { (0..len).map(|i| (i as f32 * 0.37).sin()).collect() };
    let parameters: Vec<Vec<f32>> = lengths.iter().map(|&len| numbers(len)).collect();
    let parameters: Vec<&[f32]> = parameters.iter().map(Vec::as_slice).collect();
    let x = numbers(ROWS * shape.d_input());
    let d_output = numbers(ROWS * shape.d_output());
    let mut output = vec![0.0; d_output.len()];
    let mut layer = Layer::new(shape);
    let operands = Operands {
        parameters: &parameters,
        rows: ROWS,
        x: &x,
        context: None,
    };
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..repetitions {
        let start = Instant::now();
        layer.forward(engine, &operands, true, &mut output);
        times[0].push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let wanted = Wanted::default();
        black_box(layer.backward(engine, &operands, &output, &d_output, wanted));
        times[1].push(start.elapsed().as_secs_f64());
    }
    let products: usize = lengths.iter().filter(|&&len| len > 200).sum();
    for (pass, times) in ["forward", "backward"].into_iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let gflops = 2e-9 * (ROWS * products) as f64 / median;
        println!(
            "{name}, {pass}: {:.0} µs, {gflops:.0} GFLOP/s",
            1e6 * median
        );
    }
}

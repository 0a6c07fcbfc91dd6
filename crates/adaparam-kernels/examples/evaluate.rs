//! Times evaluation and one-word-at-a-time generation of the 17M language model.
//!
//! `cargo run --release --example evaluate -- [threads] [path] [precision]`
#![allow(clippy::print_stdout)]

mod model;

use adaparam_kernels::embedding::Lookup;
use adaparam_kernels::memory::Buffer;
use adaparam_kernels::simd::Instructions;
use adaparam_kernels::softmax::{Projection, Softmax};
use adaparam_kernels::stack::{Keep, Operands, Stack, Weights};
use adaparam_kernels::{Engine, Precision, peak};
use model::{VOCABULARY, median, noise, of_parameters, shape, slices};
use std::time::Instant;

const WIDTH: usize = 400;

fn main() {
    let argument = |index: usize| std::env::args().nth(index);
    let threads = argument(1).and_then(|x| x.parse().ok()).unwrap_or(2);
    let instructions = argument(2).map_or_else(Instructions::best, |name| {
        Instructions::named(&name).expect("an available path")
    });
    let precision = argument(3).map_or(Precision::F32, |name| {
        Precision::named(&name).expect("a precision")
    });
    let engine = Engine::with_instructions(threads, instructions).in_precision(precision);
    let shape = shape(WIDTH, 1150, 100);
    let stack = of_parameters(&shape, noise(0.05));
    let weights = slices(&stack);
    let mut embedding = Buffer::new(VOCABULARY * WIDTH);
    embedding
        .iter_mut()
        .enumerate()
        .for_each(|(index, x)| *x = noise(0.1)(index));
    let bias = Buffer::new(VOCABULARY);
    let projection = Projection {
        weight: &embedding,
        bias: &bias,
        width: WIDTH,
    };
    let (mut runner, mut softmax) = (shape.runner(Weights::Stay), Softmax::default());
    runner
        .pack(&engine, &weights)
        .expect("weights are the stack's");
    softmax.pack(&engine, &projection);
    let bytes = 4 * stack.iter().map(Buffer::len).sum::<usize>();
    let bytes = bytes + 4 * embedding.len();
    println!(
        "{} x{threads}, reading {:.1} GB/s",
        engine.path().name(),
        peak::memory_gbps(&engine, bytes)
    );

    for (name, steps, batch) in [
        ("evaluation, batch 10, window 70", 70, 10),
        ("generation", 1, 1),
        ("generation of 8 texts", 1, 8),
    ] {
        let rows = steps * batch;
        let words: Vec<u32> = (0..rows)
            .map(|index| (index * 7919 % VOCABULARY) as u32)
            .collect();
        let lookup = Lookup {
            words: &words,
            batch,
            width: WIDTH,
            word_mask: None,
            mask: None,
        };
        let (mut x, mut output) = (Buffer::new(rows * WIDTH), Buffer::new(rows * WIDTH));
        let mut state = Stack::zero_state(&shape, batch);
        let (mut losses, mut logits) = (vec![0.0; rows], vec![0.0; batch * VOCABULARY]);
        let mut times: Vec<f64> = (0..if steps == 1 { 60 } else { 5 })
            .map(|_| {
                let start = Instant::now();
                lookup.forward(&engine, &embedding, &mut x);
                let operands = Operands {
                    weights: &weights,
                    masks: &[],
                    steps,
                    batch,
                    x: &x,
                    lengths: None,
                };
                runner
                    .forward(&engine, &operands, Keep::State, &mut state, &mut output)
                    .expect("everything has its size");
                if steps == 1 {
                    softmax.logits(&engine, &projection, &output, &mut logits);
                } else {
                    softmax.loss(&engine, &projection, &output, &words, &mut losses);
                }
                start.elapsed().as_secs_f64()
            })
            .collect();
        let median = median(&mut times);
        let rate = |time: f64| rows as f64 / time;
        println!(
            "{name}: {:.0} words/s, best {:.0}",
            rate(median),
            rate(times[0])
        );
    }
}

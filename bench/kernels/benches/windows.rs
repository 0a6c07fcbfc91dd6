//! Forward and backward through time of whole windows, adaptive and plain.
#![allow(missing_docs)]

use adaparam_kernels::memory::Buffer;
use adaparam_kernels::stack::{Keep, Operands, Runner, Stack, Weights};
use adaparam_kernels::{Engine, alstm, lstm};
use adaparam_kernels_bench::{BATCH, MODELS, Sizes, engine, mask, noise};
use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use std::time::{Duration, Instant};

fn adaptive(criterion: &mut Criterion) {
    windows(criterion, "adaptive window", |sizes| {
        Box::new(alstm::Shape {
            input: sizes.width,
            hidden: vec![sizes.hidden, sizes.width],
            latent: sizes.latent,
            kind: alstm::Latent::Recurrent,
            summary: alstm::Summary::Hybrid,
            adaptation: alstm::Adaptation::InputOutput,
            layout: alstm::PolicyLayout::Paper,
            start: alstm::PolicyStart::Paper,
            bias: true,
            skip: false,
        })
    });
}

fn plain(criterion: &mut Criterion) {
    windows(criterion, "plain window", |sizes| {
        Box::new(lstm::Shape {
            input: sizes.width,
            hidden: vec![sizes.plain_hidden, sizes.width],
            bias: true,
            skip: false,
            input_gate: lstm::InputGate::Free,
        })
    });
}

fn windows(criterion: &mut Criterion, name: &str, stack: fn(&Sizes) -> Box<dyn Stack>) {
    let engine = engine();
    let mut group = criterion.benchmark_group(name);
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3));
    for sizes in &MODELS {
        group.throughput(Throughput::Elements(sizes.words() as u64));
        window(&mut group, sizes, &engine, &*stack(sizes));
    }
}

fn window(
    group: &mut BenchmarkGroup<'_, WallTime>,
    sizes: &Sizes,
    engine: &Engine,
    stack: &dyn Stack,
) {
    let fits = "everything has its size";
    let parameters = stack.parameters();
    let parameters: Vec<Buffer> = parameters
        .iter()
        .map(|slot| noise(slot.numbers(), 0.05))
        .collect();
    let weights: Vec<&[f32]> = parameters.iter().map(|buffer| &buffer[..]).collect();
    let masks: Vec<Vec<f32>> = stack
        .sites()
        .iter()
        .map(|slot| mask(BATCH * slot.numbers()))
        .collect();
    let masks: Vec<_> = masks.iter().map(|mask| Some(&mask[..])).collect();
    let x = noise(sizes.words() * sizes.width, 0.1);
    let operands = Operands {
        weights: &weights,
        masks: &masks,
        steps: sizes.steps,
        batch: BATCH,
        x: &x,
        lengths: None,
    };
    let mut runner = stack.runner(Weights::Stay);
    group.bench_function(BenchmarkId::new("pack", sizes.name), |bencher| {
        bencher.iter(|| runner.pack(engine, &weights).expect(fits));
    });
    runner.pack(engine, &weights).expect(fits);
    let mut state = stack.zero_state(BATCH);
    let mut output = Buffer::new(sizes.words() * sizes.width);
    let mut forward = |runner: &mut dyn Runner, keep: Keep| {
        runner
            .forward(engine, &operands, keep, &mut state, &mut output)
            .expect(fits);
    };
    group.bench_function(BenchmarkId::new("evaluate", sizes.name), |bencher| {
        bencher.iter(|| forward(&mut *runner, Keep::State));
    });
    group.bench_function(BenchmarkId::new("forward", sizes.name), |bencher| {
        bencher.iter(|| forward(&mut *runner, Keep::Tape));
    });
    let mut gradients: Vec<Buffer> = parameters
        .iter()
        .map(|one| Buffer::new(one.len()))
        .collect();
    let mut gradients: Vec<&mut [f32]> = gradients.iter_mut().map(|one| &mut one[..]).collect();
    let d_output = noise(sizes.words() * sizes.width, 0.01);
    let mut d_x = Buffer::new(x.len());
    group.bench_function(BenchmarkId::new("backward", sizes.name), |bencher| {
        // The backward pass alone; it uses up what the forward pass keeps.
        bencher.iter_custom(|times| {
            let one = |_| {
                forward(&mut *runner, Keep::Tape);
                let d_state = &mut stack.zero_state(BATCH);
                let start = Instant::now();
                runner
                    .backward(
                        engine,
                        &operands,
                        &d_output,
                        d_state,
                        &mut d_x,
                        &mut gradients,
                    )
                    .expect(fits);
                start.elapsed()
            };
            (0..times).map(one).sum()
        });
    });
}

criterion_group!(benches, adaptive, plain);
criterion_main!(benches);

//! Forward and backward through time of whole windows, adaptive and plain.
#![allow(missing_docs)]

use adaparam_kernels::memory::Buffer;
use adaparam_kernels::{Engine, alstm, lstm};
use adaparam_kernels_bench::{BATCH, MODELS, Sizes, engine, mask, noise};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::time::{Duration, Instant};

fn zeros(like: &[Buffer]) -> Vec<Buffer> {
    like.iter().map(|one| Buffer::new(one.len())).collect()
}

/// Times `backward` alone; it uses up what `forward` recorded.
fn backward_alone(forward: &mut dyn FnMut(), backward: &mut dyn FnMut(), times: u64) -> Duration {
    (0..times)
        .map(|_| {
            forward();
            let start = Instant::now();
            backward();
            start.elapsed()
        })
        .sum()
}

fn adaptive(criterion: &mut Criterion) {
    let engine = engine();
    let mut group = criterion.benchmark_group("adaptive window");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3));
    for sizes in &MODELS {
        group.throughput(Throughput::Elements(sizes.words() as u64));
        let shape = adaptive_shape(sizes);
        let parameters: Vec<Vec<Buffer>> = (0..2)
            .map(|index| adaptive_layer(&shape.layer(index)))
            .collect();
        let weights: Vec<_> = parameters.iter().map(|layer| borrow(layer)).collect();
        let dropped: Vec<_> = shape
            .hidden
            .iter()
            .map(|hidden| (mask(BATCH * hidden), mask(BATCH * shape.latent)))
            .collect();
        let masks: Vec<_> = dropped
            .iter()
            .map(|(hidden, latent)| alstm::LayerMasks {
                hidden: Some(hidden),
                latent: Some(latent),
            })
            .collect();
        let x = noise(sizes.words() * sizes.width, 0.1);
        let window = alstm::Window {
            shape: &shape,
            weights: &weights,
            masks: &masks,
            steps: sizes.steps,
            batch: BATCH,
            x: &x,
        };
        let mut packed = alstm::Packed::default();
        group.bench_function(BenchmarkId::new("pack", sizes.name), |bencher| {
            bencher.iter(|| packed.pack(&engine, &shape, &weights));
        });
        packed.pack(&engine, &shape, &weights);
        let tape = std::cell::RefCell::new(alstm::Tape::default());
        let mut state = shape.zero_state(BATCH);
        let mut output = Buffer::new(sizes.words() * sizes.width);
        group.bench_function(BenchmarkId::new("evaluate", sizes.name), |bencher| {
            let tape = &mut tape.borrow_mut();
            bencher.iter(|| window.evaluate(&engine, &packed, tape, &mut state, &mut output));
        });
        let mut forward = || {
            let tape = &mut tape.borrow_mut();
            window.forward(&engine, &packed, tape, &mut state, &mut output);
        };
        group.bench_function(BenchmarkId::new("forward", sizes.name), |bencher| {
            bencher.iter(&mut forward);
        });
        let mut gradients: Vec<Vec<Buffer>> = parameters.iter().map(|layer| zeros(layer)).collect();
        let mut gradients: Vec<_> = gradients
            .iter_mut()
            .map(|layer| borrow_mut(layer))
            .collect();
        let d_output = noise(sizes.words() * sizes.width, 0.01);
        let mut d_x = Buffer::new(x.len());
        let mut backward = || {
            let tape = &mut tape.borrow_mut();
            let d_state = &mut shape.zero_state(BATCH);
            window.backward(&engine, tape, &d_output, d_state, &mut d_x, &mut gradients);
        };
        group.bench_function(BenchmarkId::new("backward", sizes.name), |bencher| {
            bencher.iter_custom(|times| backward_alone(&mut forward, &mut backward, times));
        });
    }
}

fn adaptive_shape(sizes: &Sizes) -> alstm::Shape {
    alstm::Shape {
        input: sizes.width,
        hidden: vec![sizes.hidden, sizes.width],
        latent: sizes.latent,
        kind: alstm::Latent::Recurrent,
        summary: alstm::Summary::Hybrid,
        adaptation: alstm::Adaptation::InputOutput,
        layout: alstm::PolicyLayout::Paper,
        bias: true,
    }
}

/// Parameters in the order of [`alstm::LayerWeights`].
fn adaptive_layer(sizes: &alstm::LayerShape) -> Vec<Buffer> {
    let gates = 4 * sizes.hidden;
    [
        sizes.summary * sizes.latent_gates,
        sizes.latent * sizes.latent_gates,
        sizes.latent_gates,
        sizes.latent_gates,
        sizes.latent * sizes.policy.width,
        sizes.input * gates,
        sizes.hidden * gates,
        gates,
    ]
    .map(|len| noise(len, 0.05))
    .into()
}

fn borrow(layer: &[Buffer]) -> alstm::LayerWeights<'_> {
    let [a, b, c, d, e, f, g, h] = layer else {
        unreachable!("eight parameters")
    };
    alstm::LayerWeights {
        latent_input: a,
        latent_hidden: b,
        latent_input_bias: c,
        latent_hidden_bias: d,
        projection: e,
        input: f,
        hidden: g,
        bias: h,
    }
}

fn borrow_mut(layer: &mut [Buffer]) -> alstm::LayerGradients<'_> {
    let [a, b, c, d, e, f, g, h] = layer else {
        unreachable!("eight parameters")
    };
    alstm::LayerGradients {
        latent_input: a,
        latent_hidden: b,
        latent_input_bias: c,
        latent_hidden_bias: d,
        projection: e,
        input: f,
        hidden: g,
        bias: h,
    }
}

fn plain(criterion: &mut Criterion) {
    let engine = engine();
    let mut group = criterion.benchmark_group("plain window");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3));
    for sizes in &MODELS {
        group.throughput(Throughput::Elements(sizes.words() as u64));
        let shape = lstm::Shape {
            input: sizes.width,
            hidden: vec![sizes.plain_hidden, sizes.width],
            bias: true,
        };
        let parameters: Vec<Vec<Buffer>> = (0..2)
            .map(|index| {
                let (input, gates) = (shape.input_of(index), 4 * shape.hidden[index]);
                [input * gates, shape.hidden[index] * gates, gates]
                    .map(|len| noise(len, 0.05))
                    .into()
            })
            .collect();
        let weights: Vec<_> = parameters
            .iter()
            .map(|layer| lstm::LayerWeights {
                input: &layer[0],
                hidden: &layer[1],
                bias: &layer[2],
            })
            .collect();
        let dropped: Vec<_> = shape.hidden.iter().map(|h| mask(BATCH * h)).collect();
        let masks: Vec<_> = dropped.iter().map(|mask| Some(&mask[..])).collect();
        let x = noise(sizes.words() * sizes.width, 0.1);
        let window = lstm::Window {
            shape: &shape,
            weights: &weights,
            masks: &masks,
            steps: sizes.steps,
            batch: BATCH,
            x: &x,
        };
        plain_window(&mut group, sizes, &engine, &window, &parameters);
    }
}

fn plain_window(
    group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
    sizes: &Sizes,
    engine: &Engine,
    window: &lstm::Window<'_>,
    parameters: &[Vec<Buffer>],
) {
    let mut packed = lstm::Packed::default();
    packed.pack(engine, window.shape, window.weights);
    let tape = std::cell::RefCell::new(lstm::Tape::default());
    let mut state = window.shape.zero_state(BATCH);
    let mut output = Buffer::new(sizes.words() * sizes.width);
    let mut forward = || {
        let tape = &mut tape.borrow_mut();
        window.forward(engine, &packed, tape, &mut state, &mut output);
    };
    group.bench_function(BenchmarkId::new("forward", sizes.name), |bencher| {
        bencher.iter(&mut forward);
    });
    let mut gradients: Vec<Vec<Buffer>> = parameters.iter().map(|layer| zeros(layer)).collect();
    let mut gradients: Vec<_> = gradients
        .iter_mut()
        .map(|layer| {
            let [input, hidden, bias] = &mut layer[..] else {
                unreachable!("three parameters")
            };
            lstm::LayerGradients {
                input,
                hidden,
                bias,
            }
        })
        .collect();
    let d_output = noise(sizes.words() * sizes.width, 0.01);
    let mut d_x = Buffer::new(window.x.len());
    let mut backward = || {
        let tape = &mut tape.borrow_mut();
        let d_state = &mut window.shape.zero_state(BATCH);
        window.backward(engine, tape, &d_output, d_state, &mut d_x, &mut gradients);
    };
    group.bench_function(BenchmarkId::new("backward", sizes.name), |bencher| {
        bencher.iter_custom(|times| backward_alone(&mut forward, &mut backward, times));
    });
}

criterion_group!(benches, adaptive, plain);
criterion_main!(benches);

//! What a language model's step does around the recurrent stack: softmax, embedding, Adam.
#![allow(missing_docs)]

use adaparam_kernels::adam::{Adam, Parameter};
use adaparam_kernels::embedding::Lookup;
use adaparam_kernels::memory::Buffer;
use adaparam_kernels::softmax::{Gradient, Projection, Softmax};
use adaparam_kernels_bench::{BATCH, MODELS, VOCABULARY, engine, mask, noise, words};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::time::Duration;

fn softmax(criterion: &mut Criterion) {
    let engine = engine();
    let mut group = criterion.benchmark_group("softmax");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(2));
    for sizes in &MODELS {
        let (rows, width) = (sizes.words(), sizes.width);
        group.throughput(Throughput::Elements(rows as u64));
        let (weight, bias) = (noise(VOCABULARY * width, 0.1), Buffer::new(VOCABULARY));
        let projection = Projection {
            weight: &weight,
            bias: &bias,
            width,
        };
        let (input, targets) = (noise(rows * width, 1.0), words(rows));
        let mut losses = vec![0.0; rows];
        let mut softmax = Softmax::default();
        group.bench_function(BenchmarkId::new("pack", sizes.name), |bencher| {
            bencher.iter(|| softmax.pack(&engine, &projection));
        });
        softmax.pack(&engine, &projection);
        group.bench_function(BenchmarkId::new("loss", sizes.name), |bencher| {
            bencher.iter(|| softmax.loss(&engine, &projection, &input, &targets, &mut losses));
        });
        let mut d_input = Buffer::new(input.len());
        let mut d_weight = Buffer::new(weight.len());
        let mut d_bias = Buffer::new(bias.len());
        group.bench_function(BenchmarkId::new("gradient", sizes.name), |bencher| {
            bencher.iter(|| {
                softmax.gradient(
                    &engine,
                    &projection,
                    &input,
                    &targets,
                    1.0 / rows as f32,
                    &mut losses,
                    &mut Gradient {
                        d_input: &mut d_input,
                        d_weight: &mut d_weight,
                        d_bias: &mut d_bias,
                    },
                )
            });
        });
    }
}

fn embedding(criterion: &mut Criterion) {
    let engine = engine();
    let mut group = criterion.benchmark_group("embedding");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(1));
    for sizes in &MODELS {
        let (rows, width) = (sizes.words(), sizes.width);
        group.throughput(Throughput::Elements(rows as u64));
        let (words, of_words, of_embeddings) = (words(rows), mask(VOCABULARY), mask(BATCH * width));
        let lookup = Lookup {
            words: &words,
            batch: BATCH,
            width,
            word_mask: Some(&of_words),
            mask: Some(&of_embeddings),
        };
        let weight = noise(VOCABULARY * width, 0.1);
        let mut output = Buffer::new(rows * width);
        group.bench_function(BenchmarkId::new("lookup", sizes.name), |bencher| {
            bencher.iter(|| lookup.forward(&engine, &weight, &mut output));
        });
        let mut d_weight = Buffer::new(weight.len());
        group.bench_function(BenchmarkId::new("gradient", sizes.name), |bencher| {
            bencher.iter(|| lookup.add_gradient(&engine, &output, &mut d_weight));
        });
    }
}

fn adam(criterion: &mut Criterion) {
    let engine = engine();
    let mut group = criterion.benchmark_group("adam");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(1));
    for (name, beta1, clip) in [
        ("without first moment", 0.0, None),
        ("with first moment", 0.9, None),
        ("without first moment, clipped", 0.0, Some(5.0)),
    ] {
        let len = 17_197_800;
        group.throughput(Throughput::Elements(len as u64));
        let (mut value, gradient) = (noise(len, 0.1), noise(len, 0.01));
        let (mut first, mut second) = (
            Buffer::new(if beta1 > 0.0 { len } else { 0 }),
            Buffer::new(len),
        );
        let adam = Adam {
            learning_rate: 1e-4,
            beta1,
            beta2: 0.999,
            epsilon: 1e-9,
            l2: 1e-6,
            clip,
        };
        let mut step = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                step += 1;
                adam.step(
                    &engine,
                    step,
                    &mut [Parameter {
                        value: &mut value,
                        gradient: &gradient,
                        first: &mut first,
                        second: &mut second,
                    }],
                )
            });
        });
    }
}

criterion_group!(benches, softmax, embedding, adam);
criterion_main!(benches);

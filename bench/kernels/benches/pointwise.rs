//! Exponential, logistic function and hyperbolic tangent, on numbers in the second cache level and in memory.
#![allow(missing_docs)]

use adaparam_kernels::math::Function;
use adaparam_kernels_bench::{engine, noise};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::time::Duration;

fn pointwise(criterion: &mut Criterion) {
    let engine = engine();
    let mut group = criterion.benchmark_group("pointwise");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(1));
    for function in [Function::Exp, Function::Sigmoid, Function::Tanh] {
        for len in [20 * 4600, 1400 * 4600] {
            // Applied again and again, the functions stay in this range or go to a fixed point; their time is the same everywhere.
            let mut values = noise(len, 4.0);
            group.throughput(Throughput::Elements(len as u64));
            group.bench_function(format!("{function:?} {len}"), |bencher| {
                bencher.iter(|| function.apply(&engine, &mut values));
            });
        }
    }
}

criterion_group!(benches, pointwise);
criterion_main!(benches);

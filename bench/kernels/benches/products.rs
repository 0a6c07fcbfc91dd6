//! Products of a training step, by these kernels and by the `gemm` crate.
#![allow(missing_docs)]

use adaparam_kernels::gemm::{
    Panels, Scratch, Source, contiguous_groups, product, transposed_product,
};
use adaparam_kernels_bench::{engine, noise, threads};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gemm::Parallelism;
use std::time::Duration;

/// Rows, inner size and columns: a step's recurrent product forward and backward, its policy, a window's softmax.
const FORWARD: [(usize, usize, usize); 5] = [
    (20, 1150, 4600),
    (20, 4600, 1150),
    (20, 100, 15_350),
    (20, 200, 800),
    (1400, 400, 10_000),
];

/// Gradients of weights over a window: recurrent, softmax, recurrent and softmax of the small model.
const TRANSPOSED: [(usize, usize, usize); 4] = [
    (1150, 1400, 4600),
    (10_000, 1400, 400),
    (200, 700, 800),
    (10_000, 700, 100),
];

/// Elements a second are floating-point operations a second.
fn products(criterion: &mut Criterion) {
    let engine = engine();
    let mut group = criterion.benchmark_group("products");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(2));
    for (m, k, n) in FORWARD {
        let (a, b) = (noise(m * k, 1.0), noise(k * n, 1.0));
        let mut c = vec![0.0; m * n];
        let mut panels = Panels::default();
        panels.pack(&engine, &[(Source::Rows(&b, n), k)], &contiguous_groups(n));
        group.throughput(Throughput::Elements((2 * m * k * n) as u64));
        group.bench_function(format!("{m}x{k}x{n} here"), |bencher| {
            bencher.iter(|| product(&engine, &a, &panels, &mut c, n));
        });
        group.bench_function(format!("{m}x{k}x{n} gemm"), |bencher| {
            bencher.iter(|| yardstick((m, k, n), &a, (k, 1), &b, &mut c));
        });
    }
    for (m, k, n) in TRANSPOSED {
        let (a, b) = (noise(m * k, 1.0), noise(k * n, 1.0));
        let mut c = vec![0.0; m * n];
        let mut scratch = Scratch::default();
        group.throughput(Throughput::Elements((2 * m * k * n) as u64));
        group.bench_function(format!("transposed {m}x{k}x{n} here"), |bencher| {
            bencher.iter(|| {
                transposed_product(
                    &engine,
                    &mut scratch,
                    (m, n, k),
                    (&a, m),
                    (&b, n),
                    (&mut c, n),
                    false,
                );
            });
        });
        group.bench_function(format!("transposed {m}x{k}x{n} gemm"), |bencher| {
            bencher.iter(|| yardstick((m, k, n), &a, (1, m), &b, &mut c));
        });
    }
}

/// `c = a · b` by the `gemm` crate; `a` is given with its row and column strides.
fn yardstick(
    (m, k, n): (usize, usize, usize),
    a: &[f32],
    (row, column): (usize, usize),
    b: &[f32],
    c: &mut [f32],
) {
    assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n);
    // SAFETY: the slices have the lengths that the shapes and strides say.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.as_mut_ptr(),
            1,
            n.cast_signed(),
            false,
            a.as_ptr(),
            column.cast_signed(),
            row.cast_signed(),
            b.as_ptr(),
            1,
            n.cast_signed(),
            0.0,
            1.0,
            false,
            false,
            false,
            Parallelism::Rayon(threads()),
        );
    }
}

criterion_group!(benches, products);
criterion_main!(benches);

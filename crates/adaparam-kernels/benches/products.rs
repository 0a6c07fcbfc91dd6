//! Products of a training step, by these kernels and by the `gemm` crate.
#![allow(missing_docs)]

use adaparam_kernels::Engine;
use adaparam_kernels::gemm::{
    Panels, Scratch, Source, contiguous_groups, product, transposed_product,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gemm::Parallelism;
use std::time::Duration;

/// Billions of multiply-adds a second are half the reported billions of elements.
fn products(criterion: &mut Criterion) {
    let engine = Engine::new(2);
    let mut group = criterion.benchmark_group("products");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(2));
    for (m, k, n) in [
        (20, 1150, 4600),
        (20, 4600, 1150),
        (20, 100, 15350),
        (1400, 400, 10_000),
        (128, 784, 110),
    ] {
        let (a, b) = (vec![0.5f32; m * k], vec![0.5f32; k * n]);
        let mut c = vec![0.0f32; m * n];
        let mut panels = Panels::default();
        panels.pack(&engine, &[(Source::Rows(&b, n), k)], &contiguous_groups(n));
        group.throughput(Throughput::Elements((2 * m * k * n) as u64));
        group.bench_function(format!("{m}x{k}x{n} here"), |bencher| {
            bencher.iter(|| product(&engine, &a, &panels, &mut c, n));
        });
        group.bench_function(format!("{m}x{k}x{n} gemm"), |bencher| {
            bencher.iter(|| other(m, n, k, &a, (k, 1), &b, &mut c));
        });
    }
    for (m, k, n) in [(1150, 1400, 4600), (10_000, 1400, 400)] {
        let (a, b) = (vec![0.5f32; m * k], vec![0.5f32; k * n]);
        let mut c = vec![0.0f32; m * n];
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
            bencher.iter(|| other(m, n, k, &a, (1, m), &b, &mut c));
        });
    }
}

/// `c = a · b` by the `gemm` crate; `a` is given with its row and column strides.
fn other(
    m: usize,
    n: usize,
    k: usize,
    a: &[f32],
    (row, column): (usize, usize),
    b: &[f32],
    c: &mut [f32],
) {
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
            Parallelism::Rayon(2),
        );
    }
}

criterion_group!(benches, products);
criterion_main!(benches);

//! Products against plain loops in double precision.

mod support;

use adaparam_kernels::Engine;
use adaparam_kernels::gemm::{
    Panels, Scratch, Source, contiguous_groups, product, transposed_product,
};
use proptest::prelude::*;
use support::{Numbers, assert_close, engines};

/// `a · b` for `a(i, k)` and `b(k, j)`.
fn naive(
    m: usize,
    n: usize,
    k: usize,
    a: impl Fn(usize, usize) -> f32,
    b: impl Fn(usize, usize) -> f32,
) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = (0..k)
                .map(|k| f64::from(a(i, k)) * f64::from(b(k, j)))
                .sum();
        }
    }
    c
}

/// Rounding of a sum of `k` products of numbers below one.
fn tolerance(k: usize) -> f64 {
    4e-6 * (k as f64).sqrt() + 1e-6
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_product_with_panels_is_the_product((m, n, k) in (1..50usize, 1..90usize, 1..300usize), transposed: bool, seed: u64) {
        let mut numbers = Numbers(seed);
        let (a, b) = (numbers.vec(m * k, 1.0), numbers.vec(k * n, 1.0));
        let at = |row: usize, column: usize| if transposed { b[column * k + row] } else { b[row * n + column] };
        let expected = naive(m, n, k, |i, k_| a[i * k + k_], at);
        for engine in engines() {
            let mut panels = Panels::default();
            let source = if transposed { Source::Columns(&b, k) } else { Source::Rows(&b, n) };
            panels.pack(&engine, &[(source, k)], &contiguous_groups(n));
            let mut c = vec![f32::NAN; m * n];
            product(&engine, &a, &panels, &mut c, n);
            assert_close(engine.instructions().name(), &c, &expected, 0.0, tolerance(k));
        }
    }

    #[test]
    fn a_transposed_product_is_the_product(
        (m, n, k) in (1..70usize, 1..70usize, 0..90usize), pads in (0..3usize, 0..3usize, 0..3usize), add: bool, seed: u64,
    ) {
        let mut numbers = Numbers(seed);
        let (sa, sb, sc) = (m + pads.0, n + pads.1, n + pads.2);
        let (a, b, before) = (numbers.vec(k * sa, 1.0), numbers.vec(k * sb, 1.0), numbers.vec(m * sc, 1.0));
        let mut expected: Vec<f64> = before.iter().copied().map(f64::from).collect();
        let products = naive(m, n, k, |i, k| a[k * sa + i], |k, j| b[k * sb + j]);
        for i in 0..m {
            for j in 0..n {
                expected[i * sc + j] = products[i * n + j] + if add { expected[i * sc + j] } else { 0.0 };
            }
        }
        for engine in engines() {
            let mut c = before.clone();
            transposed_product(&engine, &mut Scratch::default(), (m, n, k), (&a, sa), (&b, sb), (&mut c, sc), add);
            assert_close(engine.instructions().name(), &c, &expected, 0.0, tolerance(k));
        }
    }
}

#[test]
fn products_longer_than_every_block_are_the_product() {
    let mut numbers = Numbers(7);
    let (m, n, k) = (37, 45, 4501);
    let (a, b) = (numbers.vec(k * m, 1.0), numbers.vec(k * n, 1.0));
    let expected = naive(m, n, k, |i, k| a[k * m + i], |k, j| b[k * n + j]);
    for engine in engines() {
        let mut c = vec![0.0; m * n];
        transposed_product(
            &engine,
            &mut Scratch::default(),
            (m, n, k),
            (&a, m),
            (&b, n),
            (&mut c, n),
            false,
        );
        assert_close(
            engine.instructions().name(),
            &c,
            &expected,
            0.0,
            tolerance(k),
        );
    }
}

#[test]
fn products_are_the_same_bits_for_any_number_of_threads() {
    let mut numbers = Numbers(3);
    let (m, n, k) = (301, 177, 260);
    let (a, b) = (numbers.vec(k * m, 1.0), numbers.vec(k * n, 1.0));
    let results: Vec<Vec<f32>> = [1, 2, 3]
        .into_iter()
        .flat_map(|threads| {
            let engine = Engine::new(threads);
            let mut panels = Panels::default();
            panels.pack(&engine, &[(Source::Rows(&b, n), k)], &contiguous_groups(n));
            let mut c = vec![0.0; m * n];
            product(&engine, &a, &panels, &mut c, n);
            let mut d = vec![0.0; m * n];
            transposed_product(
                &engine,
                &mut Scratch::default(),
                (m, n, k),
                (&a, m),
                (&b, n),
                (&mut d, n),
                false,
            );
            [c, d]
        })
        .collect();
    for pair in results.chunks(2).skip(1) {
        assert!(pair[0] == results[0] && pair[1] == results[1]);
    }
}

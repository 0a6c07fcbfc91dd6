//! Products of narrow numbers: against an exact emulation, and whole windows against those in `f32`.

mod support;

use adaparam_kernels::alstm::{self, Adaptation, Latent, PolicyLayout, PolicyStart, Summary};
use adaparam_kernels::gemm::{
    Panels, Scratch, Source, contiguous_groups, product, transposed_product,
};
use adaparam_kernels::simd::Instructions;
use adaparam_kernels::softmax::{Gradient, Projection, Softmax};
use adaparam_kernels::stack::{Keep, Mismatch, Stack, Weights};
use adaparam_kernels::{Bf16, Element, Engine, Precision, lstm};
use proptest::prelude::*;
use support::Numbers;
use support::stack::{Case, Outcome, Summed};

/// Every path that multiplies such numbers, with one thread and with three.
fn engines(precision: Precision) -> Vec<Engine> {
    let sets = Instructions::available().into_iter();
    sets.filter(|set| set.multiplies(precision))
        .flat_map(|set| [1, 3].map(|threads| Engine::with_instructions(threads, set)))
        .map(|engine| engine.in_precision(precision))
        .collect()
}

fn half(x: f32) -> f32 {
    f32::from(Bf16::of(x))
}

/// What a dot-product instruction does with a number below the smallest normal one.
fn flushed(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0.0 } else { x }
}

/// One dot product of two pairs, as `vdpbf16ps` adds it to `sum`: the second product first, each rounded into the sum.
fn dot_product(a: [f32; 2], b: [f32; 2], sum: f32) -> f32 {
    let [a0, a1] = a.map(|x| flushed(half(x)));
    let [b0, b1] = b.map(|x| flushed(half(x)));
    let sum = flushed(flushed(a1 * b1) + sum);
    flushed(flushed(a0 * b0) + sum)
}

/// The sum over `k` as this engine's path gives it.
fn emulated(
    engine: &Engine,
    k: usize,
    most: usize,
    a: impl Fn(usize) -> f32,
    b: impl Fn(usize) -> f32,
    before: Option<f32>,
) -> f32 {
    if engine.path().name() == "amx-bf16" {
        by_tiles(k, a, b, before)
    } else {
        by_dot_products(k, most, a, b, before)
    }
}

/// The sum over `k` as `tdpbf16ps` gives it: for every 16 pairs one chain over the first numbers and one over the second ones, added
/// to each other and then to the sum.
fn by_tiles(
    k: usize,
    a: impl Fn(usize) -> f32,
    b: impl Fn(usize) -> f32,
    before: Option<f32>,
) -> f32 {
    let product = |k: usize| flushed(half(a(k))) * flushed(half(b(k)));
    let mut total = before.unwrap_or(0.0);
    for first in (0..k).step_by(32) {
        let chain = |parity: usize| {
            (first + parity..k.min(first + 32))
                .step_by(2)
                .fold(0.0, |sum, k| flushed(flushed(product(k)) + sum))
        };
        total = flushed(total + flushed(chain(0) + chain(1)));
    }
    total
}

/// The sum over `k` as dot products give it, in equal chunks of at most `most` pairs.
fn by_dot_products(
    k: usize,
    most: usize,
    a: impl Fn(usize) -> f32,
    b: impl Fn(usize) -> f32,
    before: Option<f32>,
) -> f32 {
    let at = |of: &dyn Fn(usize) -> f32, k_: usize| if k_ < k { of(k_) } else { 0.0 };
    let pairs = k.div_ceil(2);
    let chunks = pairs.div_ceil(most).max(1);
    let mut total = before;
    for chunk in 0..chunks {
        let (from, to) = (pairs * chunk / chunks, pairs * (chunk + 1) / chunks);
        let sum = (from..to).fold(0.0, |sum, pair| {
            let two = |of: &dyn Fn(usize) -> f32| [at(of, 2 * pair), at(of, 2 * pair + 1)];
            dot_product(two(&a), two(&b), sum)
        });
        total = Some(total.map_or(sum, |total| total + sum));
    }
    total.unwrap_or(0.0)
}

fn assert_same(engine: &Engine, ours: &[f32], expected: &[f32]) {
    for (index, (a, b)) in ours.iter().zip(expected).enumerate() {
        assert!(
            a.to_bits() == b.to_bits() || (flushed(*a).abs() + flushed(*b).abs()) <= 0.0,
            "{}: [{index}] is {a:e}, emulated {b:e}",
            engine.path().name()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn a_product_in_bf16_is_that_of_dot_products(
        (m, n, k) in (1..25usize, 1..70usize, 1..140usize), transposed: bool, seed: u64,
    ) {
        let mut numbers = Numbers(seed);
        let (a, b) = (numbers.vec(m * k, 1.0), numbers.vec(k * n, 1.0));
        let at = |row: usize, column: usize| if transposed { b[column * k + row] } else { b[row * n + column] };
        for engine in engines(Precision::Bf16) {
            let expected: Vec<f32> = (0..m * n)
                .map(|place| emulated(&engine, k, 600, |k_| a[place / n * k + k_], |k_| at(k_, place % n), None))
                .collect();
            let mut panels = Panels::default();
            let source = if transposed { Source::Columns(&b, k) } else { Source::Rows(&b, n) };
            panels.pack(&engine, &[(source, k)], &contiguous_groups(n));
            let mut c = vec![f32::NAN; m * n];
            product(&engine, &a, &panels, &mut c, n);
            assert_same(&engine, &c, &expected);
        }
    }

    #[test]
    fn a_transposed_product_in_bf16_is_that_of_dot_products(
        (m, n, k) in (1..30usize, 1..40usize, 0..70usize), add: bool, seed: u64,
    ) {
        let mut numbers = Numbers(seed);
        let (a, b, before) = (numbers.vec(k * m, 1.0), numbers.vec(k * n, 1.0), numbers.vec(m * n, 1.0));
        for engine in engines(Precision::Bf16) {
            let expected: Vec<f32> = (0..m * n)
                .map(|place| {
                    let (i, j) = (place / n, place % n);
                    emulated(&engine, k, 1024, |k| a[k * m + i], |k| b[k * n + j], add.then(|| before[place]))
                })
                .collect();
            let mut c = before.clone();
            transposed_product(&engine, &mut Scratch::default(), (m, n, k), (&a, m), (&b, n), (&mut c, n), add);
            assert_same(&engine, &c, &expected);
        }
    }

    #[test]
    fn a_product_in_bytes_is_the_exact_one_of_what_they_stand_for(
        (m, n, k) in (1..25usize, 1..70usize, 1..140usize), transposed: bool, seed: u64,
    ) {
        let mut numbers = Numbers(seed);
        let (a, mut b) = (numbers.vec(m * k, 3.0), numbers.vec(k * n, 0.2));
        if transposed {
            b[..k].fill(0.0);
        }
        let at = |row: usize, column: usize| if transposed { b[column * k + row] } else { b[row * n + column] };
        let bytes = |of: &dyn Fn(usize) -> f32, by_division: bool| -> (Vec<i32>, f32) {
            let largest = (0..k).map(|k_| of(k_).abs()).fold(0.0, f32::max);
            let scale = largest / 127.0;
            let factor = match by_division {
                _ if largest == 0.0 => 0.0,
                true => 127.0 / largest,
                false => scale.recip(),
            };
            ((0..k).map(|k_| (of(k_) * factor).round_ties_even() as i32).collect(), scale)
        };
        let expected: Vec<f32> = (0..m * n)
            .map(|place| {
                let (left, of_row) = bytes(&|k_| a[place / n * k + k_], true);
                let (right, of_column) = bytes(&|k_| at(k_, place % n), false);
                let sum: i32 = left.iter().zip(&right).map(|(a, b)| a * b).sum();
                sum as f32 * of_row * of_column
            })
            .collect();
        for engine in engines(Precision::Int8) {
            let mut panels = Panels::default();
            let source = if transposed { Source::Columns(&b, k) } else { Source::Rows(&b, n) };
            panels.pack(&engine, &[(source, k)], &contiguous_groups(n));
            let mut c = vec![f32::NAN; m * n];
            product(&engine, &a, &panels, &mut c, n);
            assert_same(&engine, &c, &expected);
        }
    }
}

#[test]
fn long_products_in_bf16_are_cut_as_emulated() {
    let mut numbers = Numbers(11);
    let (m, n, k) = (7, 18, 2501);
    let (a, b) = (numbers.vec(m * k, 1.0), numbers.vec(k * n, 1.0));
    let turned: Vec<f32> = (0..k * m).map(|at| a[at % m * k + at / m]).collect();
    let expected = |engine: &Engine, most: usize| -> Vec<f32> {
        (0..m * n)
            .map(|at| {
                emulated(
                    engine,
                    k,
                    most,
                    |k_| a[at / n * k + k_],
                    |k_| b[k_ * n + at % n],
                    None,
                )
            })
            .collect()
    };
    for engine in engines(Precision::Bf16) {
        let mut panels = Panels::default();
        panels.pack(&engine, &[(Source::Rows(&b, n), k)], &contiguous_groups(n));
        let mut c = vec![f32::NAN; m * n];
        product(&engine, &a, &panels, &mut c, n);
        assert_same(&engine, &c, &expected(&engine, 600));
    }
    // Gradients of weights: blocks of 2,048 rows, the last one shorter.
    for engine in engines(Precision::Bf16) {
        let gradient: Vec<f32> = (0..m * n)
            .map(|at| {
                let of = |from: usize, to: usize, before| {
                    let (a, b) = (
                        |k_: usize| a[at / n * k + from + k_],
                        |k_: usize| b[(from + k_) * n + at % n],
                    );
                    emulated(&engine, to - from, 1024, a, b, before)
                };
                of(2048, k, Some(of(0, 2048, None)))
            })
            .collect();
        let mut c = vec![f32::NAN; m * n];
        transposed_product(
            &engine,
            &mut Scratch::default(),
            (m, n, k),
            (&turned, m),
            (&b, n),
            (&mut c, n),
            false,
        );
        assert_same(&engine, &c, &gradient);
    }
}

/// Adaptive stacks of every kind, layout and adaptation, plain ones, and one whose threads share the columns of every step; odd sizes.
fn stacks() -> Vec<Box<dyn Stack>> {
    let adaptive = |kind, summary, adaptation, layout, start| alstm::Shape {
        input: 13,
        hidden: vec![37, 21],
        latent: 9,
        kind,
        summary,
        adaptation,
        layout,
        start,
        bias: true,
        skip: false,
    };
    let (paper, released) = (PolicyLayout::Paper, PolicyLayout::Released);
    let mut stacks: Vec<Box<dyn Stack>> = Vec::new();
    for layout in [paper, released] {
        stacks.push(Box::new(adaptive(
            Latent::Recurrent,
            Summary::Hybrid,
            Adaptation::InputOutput,
            layout,
            PolicyStart::Paper,
        )));
        stacks.push(Box::new(adaptive(
            Latent::Static,
            Summary::Own,
            Adaptation::Output,
            layout,
            PolicyStart::Identity,
        )));
    }
    stacks.push(Box::new(adaptive(
        Latent::Recurrent,
        Summary::Hybrid,
        Adaptation::Input,
        paper,
        PolicyStart::Identity,
    )));
    stacks.push(Box::new(alstm::Shape {
        input: 140,
        hidden: vec![251, 251],
        latent: 23,
        skip: true,
        ..adaptive(
            Latent::Recurrent,
            Summary::Hybrid,
            Adaptation::InputOutput,
            released,
            PolicyStart::Identity,
        )
    }));
    stacks.push(Box::new(lstm::Shape {
        input: 13,
        hidden: vec![37, 21],
        bias: true,
        skip: false,
        input_gate: lstm::InputGate::Free,
    }));
    stacks.push(Box::new(lstm::Shape {
        input: 21,
        hidden: vec![21, 21],
        bias: false,
        skip: true,
        input_gate: lstm::InputGate::Free,
    }));
    stacks.push(
        Summed {
            input: 13,
            width: 37,
            layers: 2,
            output: 21,
            bias: true,
            input_gate: lstm::InputGate::Capped,
        }
        .stack(),
    );
    stacks.push(
        Summed {
            input: 13,
            width: 21,
            layers: 1,
            output: 37,
            bias: true,
            input_gate: lstm::InputGate::Tied,
        }
        .stack(),
    );
    stacks
}

/// The relative error of `a`, in the mean of squares.
fn error(a: &[f32], exact: &[f32]) -> f64 {
    let squares = |of: &mut dyn Iterator<Item = f64>| of.map(|x| x * x).sum::<f64>().sqrt();
    let both = a.iter().zip(exact);
    let apart = squares(&mut both.map(|(&a, &b)| f64::from(a) - f64::from(b)));
    apart / squares(&mut exact.iter().map(|&x| f64::from(x))).max(1e-30)
}

/// Everything of two outcomes, by name.
fn compared(stack: &dyn Stack, a: &Outcome, b: &Outcome) -> Vec<(String, f64)> {
    let mut errors = vec![
        ("output".to_owned(), error(&a.output, &b.output)),
        ("d_x".to_owned(), error(&a.d_x, &b.d_x)),
    ];
    let states = stack.states();
    for (slot, (a, b)) in states.iter().zip(a.state.parts.iter().zip(&b.state.parts)) {
        errors.push((slot.name.clone(), error(a, b)));
    }
    let of_states = a.d_state.parts.iter().zip(&b.d_state.parts);
    for (slot, (a, b)) in states.iter().zip(of_states) {
        errors.push((format!("gradient of {}", slot.name), error(a, b)));
    }
    let of_parameters = a.gradients.iter().zip(&b.gradients);
    for (slot, (a, b)) in stack.parameters().iter().zip(of_parameters) {
        errors.push((format!("gradient of {}", slot.name), error(a, b)));
    }
    errors
}

#[test]
fn windows_in_bf16_are_those_in_f32_up_to_rounding() {
    // A number of eight bits is off by 2⁻⁹ at most, and by 2⁻⁹/√3 in the mean of squares; a product of two by √2 times that, 0.16 %.
    // A value passes some ten products on its way through four steps and two layers and back, whose errors are independent.
    const VALUES: f64 = 10.0 * 0.0016;
    const GRADIENTS: f64 = 20.0 * 0.0016;
    for stack in stacks() {
        for dropout in [false, true] {
            let case = Case::new(&*stack, 4, 11, dropout, 5);
            let exact = case.run(&*stack, &Engine::new(1));
            for engine in engines(Precision::Bf16) {
                let ours = case.run(&*stack, &engine);
                let name = engine.path().name();
                for (what, error) in compared(&*stack, &ours, &exact) {
                    let most = if what.contains("gradient") || what == "d_x" {
                        GRADIENTS
                    } else {
                        VALUES
                    };
                    assert!(error < most, "{name}, {stack:?}: {what} is {error:e} off");
                    // Narrow numbers were multiplied indeed. A static latent variable has no gradient of its past.
                    let narrow = error > 1e-5 || what.contains("latent.hidden");
                    assert!(narrow, "{name}, {stack:?}: {what} is only {error:e} off");
                }
            }
        }
    }
}

#[test]
fn windows_in_bf16_are_the_same_bits_for_any_number_of_threads() {
    for stack in stacks() {
        let mut case = Case::new(&*stack, 3, 11, true, 8);
        for lengths in [None, Some(vec![3, 1, 2, 3, 3, 2, 1, 1, 3, 2, 3])] {
            case.lengths = lengths;
            for set in Instructions::available() {
                if !set.multiplies(Precision::Bf16) {
                    continue;
                }
                let of = |threads| {
                    let engine = Engine::with_instructions(threads, set);
                    case.run(&*stack, &engine.in_precision(Precision::Bf16))
                };
                let one = of(1);
                for threads in [2, 3] {
                    assert!(of(threads) == one, "{stack:?}, {threads} threads");
                }
            }
        }
    }
}

#[test]
fn rows_of_different_lengths_in_bf16_end_as_if_alone() {
    for stack in stacks() {
        let mut case = Case::new(&*stack, 4, 3, false, 12);
        case.lengths = Some(vec![4, 2, 3]);
        let engine = Engine::new(1).in_precision(Precision::Bf16);
        let ours = case.run(&*stack, &engine);
        let exact = case.run(&*stack, &Engine::new(1));
        for (what, error) in compared(&*stack, &ours, &exact) {
            assert!(error < 0.035, "{stack:?}: {what} is {error:e} off");
        }
    }
}

#[test]
fn windows_in_bytes_are_near_and_the_same_for_any_number_of_threads() {
    for stack in stacks() {
        let case = Case::new(&*stack, 4, 11, false, 5);
        let read = |engine: &Engine| {
            let mut runner = stack.runner(Weights::Stay);
            case.with_operands(|operands| runner.pack(engine, operands.weights))
                .unwrap();
            case.forward(&mut *runner, engine, Keep::State).0
        };
        let exact = read(&Engine::new(1));
        for set in Instructions::available() {
            if !set.multiplies(Precision::Int8) {
                continue;
            }
            let of = |threads| {
                read(&Engine::with_instructions(threads, set).in_precision(Precision::Int8))
            };
            let ours = of(1);
            let off = error(&ours, &exact);
            assert!(off > 1e-5 && off < 0.05, "{stack:?}: {off:e} off");
            for threads in [2, 3] {
                assert!(of(threads) == ours, "{stack:?}, {threads} threads");
            }
        }
    }
}

#[test]
fn bytes_have_no_gradients() {
    let stack = &*stacks()[0];
    let case = Case::new(stack, 2, 3, false, 1);
    let engine = Engine::new(1).in_precision(Precision::Int8);
    let mut runner = stack.runner(Weights::Change);
    case.with_operands(|operands| {
        runner.pack(&engine, operands.weights).unwrap();
        let (mut state, mut output) = (case.state.clone(), vec![0.0; case.d_output.len()]);
        runner
            .forward(&engine, operands, Keep::Tape, &mut state, &mut output)
            .unwrap();
        let mut d_x = vec![0.0; case.x.len()];
        let mut gradients = case.weights.clone();
        let mut gradients: Vec<&mut [f32]> = gradients.iter_mut().map(Vec::as_mut_slice).collect();
        let refused = runner.backward(
            &engine,
            operands,
            &case.d_output,
            &mut state,
            &mut d_x,
            &mut gradients,
        );
        let precision = Precision::Int8;
        assert_eq!(refused, Err(Mismatch::ReadsOnly { precision }));
    });
}

#[test]
fn weights_of_another_precision_are_not_packed() {
    let stack = &*stacks()[0];
    let case = Case::new(stack, 2, 3, false, 1);
    // The instruction set is the same.
    let half = Engine::new(1).in_precision(Precision::Bf16);
    let whole = half.in_precision(Precision::F32);
    let mut runner = stack.runner(Weights::Stay);
    case.with_operands(|operands| {
        runner.pack(&whole, operands.weights).unwrap();
        let (mut state, mut output) = (case.state.clone(), vec![0.0; case.d_output.len()]);
        let refused = runner.forward(&half, operands, Keep::State, &mut state, &mut output);
        assert_eq!(refused, Err(Mismatch::NotPacked));
    });
}

/// Loss and gradients of a softmax over more than one block of words, of both an odd number of words and rows.
struct Softmaxed {
    losses: Vec<f32>,
    gradients: [Vec<f32>; 3],
}

fn softmaxed(engine: &Engine) -> Softmaxed {
    let (rows, width, vocabulary) = (67, 33, 1045);
    let mut numbers = Numbers(9);
    let (weight, bias) = (
        numbers.vec(vocabulary * width, 0.4),
        numbers.vec(vocabulary, 0.4),
    );
    let input = numbers.vec(rows * width, 1.0);
    let targets: Vec<u32> = (0..rows as u32).map(|row| row * 211 % 1045).collect();
    let projection = Projection {
        weight: &weight,
        bias: &bias,
        width,
    };
    // In several chunks.
    let mut softmax = Softmax::with_chunk(40 * vocabulary);
    softmax.pack(engine, &projection);
    let mut alone = vec![0.0; rows];
    softmax.loss(engine, &projection, &input, &targets, &mut alone);
    let mut losses = vec![0.0; rows];
    let mut gradients = [
        vec![0.0; input.len()],
        vec![0.0; weight.len()],
        vec![0.0; bias.len()],
    ];
    let [d_input, d_weight, d_bias] = &mut gradients;
    let mut gradient = Gradient {
        d_input,
        d_weight,
        d_bias,
    };
    let scale = 1.0 / rows as f32;
    softmax.gradient(
        engine,
        &projection,
        &input,
        &targets,
        scale,
        &mut losses,
        &mut gradient,
    );
    assert!(
        error(&alone, &losses) < 1e-6,
        "a loss is that of its gradient"
    );
    Softmaxed { losses, gradients }
}

#[test]
fn a_softmax_in_bf16_is_that_in_f32_up_to_rounding() {
    let exact = softmaxed(&Engine::new(1));
    for engine in engines(Precision::Bf16) {
        let ours = softmaxed(&engine);
        // Logits are sums of 33 products, each off by 0.16 % in the mean.
        let off = error(&ours.losses, &exact.losses);
        assert!(off > 1e-6 && off < 0.0016, "losses are {off:e} off");
        for (name, (ours, exact)) in ["input", "weight", "bias"]
            .into_iter()
            .zip(ours.gradients.iter().zip(&exact.gradients))
        {
            let off = error(ours, exact);
            assert!(off > 1e-6 && off < 4.0 * 0.0016, "{name} is {off:e} off");
        }
        let again = softmaxed(&engine);
        assert!(again.losses == ours.losses && again.gradients == ours.gradients);
    }
}

#[test]
fn a_softmax_in_bf16_is_the_same_bits_for_any_number_of_threads() {
    for set in Instructions::available() {
        if !set.multiplies(Precision::Bf16) {
            continue;
        }
        let of = |threads| {
            softmaxed(&Engine::with_instructions(threads, set).in_precision(Precision::Bf16))
        };
        let one = of(1);
        for threads in [2, 3] {
            let ours = of(threads);
            assert!(ours.losses == one.losses && ours.gradients == one.gradients);
        }
    }
}

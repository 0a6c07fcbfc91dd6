//! Softmax, embedding and optimiser against their formulas in double precision.

mod support;

use adaparam_kernels::Engine;
use adaparam_kernels::adam::{Adam, Parameter};
use adaparam_kernels::embedding::{Lookup, apply_mask};
use adaparam_kernels::softmax::{Gradient, Mixture, Projection, Softmax};
use proptest::prelude::*;
use support::{Numbers, assert_close, engines};

/// Losses, and gradients of `scale` times their sum: of the input, the matrix and the bias.
fn naive_softmax(
    weight: &[f32],
    bias: &[f32],
    width: usize,
    input: &[f32],
    targets: &[u32],
    scale: f64,
) -> [Vec<f64>; 4] {
    let vocabulary = weight.len() / width;
    let (mut losses, mut d_input) = (Vec::new(), vec![0.0; input.len()]);
    let (mut d_weight, mut d_bias) = (vec![0.0; weight.len()], vec![0.0; bias.len()]);
    for (row, &target) in targets.iter().enumerate() {
        let h = &input[row * width..(row + 1) * width];
        let logits: Vec<f64> = (0..vocabulary)
            .map(|v| {
                let dot: f64 = h
                    .iter()
                    .zip(&weight[v * width..])
                    .map(|(&a, &b)| f64::from(a) * f64::from(b))
                    .sum();
                dot + bias.get(v).map_or(0.0, |&b| f64::from(b))
            })
            .collect();
        let largest = logits.iter().copied().fold(f64::MIN, f64::max);
        let log_sum = largest + logits.iter().map(|l| (l - largest).exp()).sum::<f64>().ln();
        losses.push(log_sum - logits[target as usize]);
        for (v, logit) in logits.iter().enumerate() {
            let d = scale * ((logit - log_sum).exp() - f64::from(u8::from(v == target as usize)));
            if let Some(d_bias) = d_bias.get_mut(v) {
                *d_bias += d;
            }
            for j in 0..width {
                d_input[row * width + j] += d * f64::from(weight[v * width + j]);
                d_weight[v * width + j] += d * f64::from(h[j]);
            }
        }
    }
    [losses, d_input, d_weight, d_bias]
}

struct Result {
    losses: Vec<f32>,
    losses_alone: Vec<f32>,
    d_input: Vec<f32>,
    d_weight: Vec<f32>,
    d_bias: Vec<f32>,
}

fn softmax(
    engine: &Engine,
    mut softmax: Softmax,
    projection: &Projection<'_>,
    input: &[f32],
    targets: &[u32],
    scale: f32,
) -> Result {
    let nan = |len: usize| vec![f32::NAN; len];
    let (mut losses, mut again) = (nan(targets.len()), nan(targets.len()));
    let (mut d_input, mut d_weight, mut d_bias) = (
        nan(input.len()),
        nan(projection.weight.len()),
        nan(projection.bias.len()),
    );
    softmax.pack(engine, projection);
    let mut gradient = Gradient {
        d_input: &mut d_input,
        d_weight: &mut d_weight,
        d_bias: &mut d_bias,
    };
    softmax.gradient(
        engine,
        projection,
        input,
        targets,
        scale,
        &mut losses,
        &mut gradient,
    );
    softmax.loss(engine, projection, input, targets, &mut again);
    Result {
        losses,
        losses_alone: again,
        d_input,
        d_weight,
        d_bias,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    #[test]
    fn softmax_is_its_formula_in_any_chunks(
        (rows, width, vocabulary) in (1..30usize, 1..40usize, prop_oneof![1..60usize, 500..1100usize]),
        has_bias: bool, rows_at_once in 1..40usize, seed: u64,
    ) {
        let mut numbers = Numbers(seed);
        let weight = numbers.vec(vocabulary * width, 1.0);
        let bias = if has_bias { numbers.vec(vocabulary, 3.0) } else { Vec::new() };
        let input = numbers.vec(rows * width, 2.0);
        let targets: Vec<u32> = (0..rows).map(|_| ((numbers.next() * 0.5 + 0.5) * vocabulary as f64) as u32).collect();
        let projection = Projection { weight: &weight, bias: &bias, width };
        let [losses, d_input, d_weight, d_bias] = naive_softmax(&weight, &bias, width, &input, &targets, 0.25);
        for engine in engines() {
            let result = softmax(&engine, Softmax::with_chunk(rows_at_once * vocabulary), &projection, &input, &targets, 0.25);
            assert_close("losses", &result.losses, &losses, 1e-5, 1e-5);
            assert_close("losses without gradients", &result.losses_alone, &losses, 1e-5, 1e-5);
            assert_close("d_input", &result.d_input, &d_input, 1e-4, 1e-5);
            assert_close("d_weight", &result.d_weight, &d_weight, 1e-4, 1e-5);
            assert_close("d_bias", &result.d_bias, &d_bias, 1e-4, 1e-5);
        }
    }

    #[test]
    fn a_mixture_of_softmaxes_is_its_formula_in_any_chunks(
        (mixtures, experts, width, vocabulary) in (1..9usize, 1..6usize, 1..20usize, prop_oneof![1..60usize, 500..600usize]),
        rows_at_once in 1..40usize, seed: u64,
    ) {
        let mut numbers = Numbers(seed);
        let rows = mixtures * experts;
        let weight = numbers.vec(vocabulary * width, 1.0);
        let bias = numbers.vec(vocabulary, 3.0);
        let input = numbers.vec(rows * width, 2.0);
        let prior = numbers.vec(rows, 2.0);
        let target = |numbers: &mut Numbers| ((numbers.next() * 0.5 + 0.5) * vocabulary as f64) as u32;
        let targets: Vec<u32> = (0..mixtures).flat_map(|_| vec![target(&mut numbers); experts]).collect();
        let projection = Projection { weight: &weight, bias: &bias, width };
        let [of_each, ..] = naive_softmax(&weight, &bias, width, &input, &targets, 1.0);
        // Of each row what it has of its mixture's likelihood: of a softmax that is alone all, whatever its prior.
        let joint: Vec<f64> = of_each.iter().zip(&prior).map(|(loss, &prior)| (f64::from(prior) - loss).exp()).collect();
        let sums: Vec<f64> = joint.chunks(experts).map(|joint| joint.iter().sum()).collect();
        let mut expected = [vec![0.0; input.len()], vec![0.0; weight.len()], vec![0.0; bias.len()]];
        for row in 0..rows {
            let scale = 0.25 * joint[row] / sums[row / experts];
            let own = row * width..(row + 1) * width;
            let [_, d_input, d_weight, d_bias] =
                naive_softmax(&weight, &bias, width, &input[own.clone()], &targets[row..=row], scale);
            expected[0][own].copy_from_slice(&d_input);
            for (sum, own) in expected[1..].iter_mut().zip([d_weight, d_bias]) {
                sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            }
        }
        for engine in engines() {
            let nan = |len: usize| vec![f32::NAN; len];
            let (mut losses, mut d_input) = (nan(rows), nan(input.len()));
            let (mut d_weight, mut d_bias) = (nan(weight.len()), nan(bias.len()));
            let mut softmax = Softmax::with_chunk(rows_at_once * vocabulary);
            softmax.pack(&engine, &projection);
            let mixture = Mixture { experts, prior: &prior };
            let mut gradient = Gradient { d_input: &mut d_input, d_weight: &mut d_weight, d_bias: &mut d_bias };
            softmax.mixed_gradient(&engine, &projection, &input, &targets, 0.25, mixture, &mut losses, &mut gradient);
            assert_close("losses of each", &losses, &of_each, 1e-5, 1e-5);
            assert_close("d_input", &d_input, &expected[0], 1e-4, 1e-5);
            assert_close("d_weight", &d_weight, &expected[1], 1e-4, 1e-5);
            assert_close("d_bias", &d_bias, &expected[2], 1e-4, 1e-5);
            let mut mixed = nan(mixtures);
            mixture.losses(&losses, &mut mixed);
            let sums: Vec<f64> = sums.iter().map(|sum| -sum.ln()).collect();
            assert_close("losses", &mixed, &sums, 1e-5, 1e-5);
        }
    }

    #[test]
    fn an_embedding_and_its_gradient_are_their_formulas(
        (steps, batch, width, vocabulary) in (1..5usize, 1..5usize, 1..90usize, 1..12usize), dropout: bool, seed: u64,
    ) {
        let mut numbers = Numbers(seed);
        let table = numbers.vec(vocabulary * width, 1.0);
        let words: Vec<u32> = (0..steps * batch).map(|_| ((numbers.next() * 0.5 + 0.5) * vocabulary as f64) as u32).collect();
        let (word_mask, mask) = (numbers.mask(vocabulary), numbers.mask(batch * width));
        let d_output = numbers.vec(words.len() * width, 1.0);
        let before = numbers.vec(table.len(), 1.0);
        let lookup = Lookup {
            words: &words, batch, width,
            word_mask: dropout.then_some(&word_mask[..]), mask: dropout.then_some(&mask[..]),
        };
        let (mut expected, mut d_expected) = (Vec::new(), before.iter().copied().map(f64::from).collect::<Vec<f64>>());
        for (index, &word) in words.iter().enumerate() {
            for j in 0..width {
                let factor = if dropout { word_mask[word as usize] * mask[index % batch * width + j] } else { 1.0 };
                expected.push(f64::from(factor * table[word as usize * width + j]));
                d_expected[word as usize * width + j] += f64::from(factor * d_output[index * width + j]);
            }
        }
        for engine in engines() {
            let mut output = vec![f32::NAN; expected.len()];
            lookup.forward(&engine, &table, &mut output);
            assert_close("embedded words", &output, &expected, 0.0, 0.0);
            let mut d_table = before.clone();
            lookup.add_gradient(&engine, &d_output, &mut d_table);
            assert_close("gradient of the embedding", &d_table, &d_expected, 1e-6, 1e-5);
            let mut masked = d_output.clone();
            apply_mask(&engine, &mut masked, &mask);
            let wanted: Vec<f64> = d_output.iter().enumerate().map(|(i, d)| f64::from(d * mask[i % mask.len()])).collect();
            assert_close("a masked gradient", &masked, &wanted, 0.0, 0.0);
        }
    }

    #[test]
    fn updates_are_adams(
        len in 1..300usize, beta1 in prop_oneof![Just(0.0), Just(0.9)], clip in prop::option::of(0.01..10.0f64),
        l2 in prop_oneof![Just(0.0), Just(0.01)], seed: u64,
    ) {
        let settings = Adam { learning_rate: 0.01, beta1, beta2: 0.999, epsilon: 1e-8, l2, clip };
        for engine in engines() {
            let mut numbers = Numbers(seed);
            let mut value = numbers.vec(len, 1.0);
            let (mut first, mut second) = (vec![0.0; if beta1 == 0.0 { 0 } else { len }], vec![0.0; len]);
            let mut exact: Vec<f64> = value.iter().copied().map(f64::from).collect();
            let (mut m, mut v) = (vec![0.0f64; len], vec![0.0f64; len]);
            for step in 1..=4i32 {
                let gradient = numbers.vec(len, 1.0);
                let norm = gradient.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
                let scale = clip.map_or(1.0, |clip| (clip / (norm + 1e-6)).min(1.0));
                for i in 0..len {
                    let g = scale * f64::from(gradient[i]) + l2 * exact[i];
                    m[i] = beta1 * m[i] + (1.0 - beta1) * g;
                    v[i] = 0.999 * v[i] + 0.001 * g * g;
                    let (m, v) = (m[i] / (1.0 - beta1.powi(step)), v[i] / (1.0 - 0.999f64.powi(step)));
                    exact[i] -= 0.01 * m / (v.sqrt() + 1e-8);
                }
                let parameter = Parameter { value: &mut value, gradient: &gradient, first: &mut first, second: &mut second };
                let returned = settings.step(&engine, u64::from(step.unsigned_abs()), &mut [parameter]);
                assert_close("norm", &[returned as f32], &[norm], 1e-5, 0.0);
            }
            // Updates are about 0.01 each, good to a few parts in a million.
            assert_close("parameter", &value, &exact, 1e-6, 1e-6);
        }
    }
}

#[test]
fn a_gradient_that_is_not_finite_changes_nothing() {
    let engine = Engine::new(2);
    let settings = Adam {
        learning_rate: 0.1,
        beta1: 0.0,
        beta2: 0.9,
        epsilon: 1e-8,
        l2: 0.1,
        clip: Some(1.0),
    };
    for bad in [f32::NAN, f32::INFINITY] {
        let (mut value, mut second) = (vec![1.0; 50], vec![2.0; 50]);
        let mut gradient = vec![0.5; 50];
        gradient[33] = bad;
        let norm = settings.step(
            &engine,
            1,
            &mut [Parameter {
                value: &mut value,
                gradient: &gradient,
                first: &mut [],
                second: &mut second,
            }],
        );
        assert!(!norm.is_finite());
        assert!(value == vec![1.0; 50] && second == vec![2.0; 50]);
    }
}

#[test]
fn weights_that_never_learn_become_zero_before_they_become_slow() {
    let engine = Engine::new(1);
    let adam = Adam {
        learning_rate: 3e-3,
        beta1: 0.9,
        beta2: 0.999,
        epsilon: 1e-8,
        l2: 1e-6,
        clip: None,
    };
    let (mut value, gradient) = (vec![1e-3, -1e-5, 0.1], [0.0; 3]);
    let (mut first, mut second) = (vec![0.0; 3], vec![1e-36; 3]);
    for step in 1..3000 {
        let parameter = Parameter {
            value: &mut value,
            gradient: &gradient,
            first: &mut first,
            second: &mut second,
        };
        adam.step(&engine, step, &mut [parameter]);
        for x in value.iter().chain(&first).chain(&second) {
            assert!(!x.is_subnormal(), "{x:e} after step {step}");
        }
    }
    assert_eq!(value, [0.0; 3]);
}

#[test]
fn results_are_the_same_bits_for_any_number_of_threads() {
    let mut numbers = Numbers(2);
    let (rows, width, vocabulary) = (311, 37, 1203);
    let (weight, bias, input) = (
        numbers.vec(vocabulary * width, 1.0),
        numbers.vec(vocabulary, 1.0),
        numbers.vec(rows * width, 1.0),
    );
    let targets: Vec<u32> = (0..rows as u32)
        .map(|row| row * 31 % vocabulary as u32)
        .collect();
    let projection = Projection {
        weight: &weight,
        bias: &bias,
        width,
    };
    let all = |threads: usize| {
        let engine = Engine::new(threads);
        let result = softmax(
            &engine,
            Softmax::with_chunk(200 * vocabulary),
            &projection,
            &input,
            &targets,
            0.1,
        );
        let lookup = Lookup {
            words: &targets,
            batch: 1,
            width,
            word_mask: None,
            mask: None,
        };
        let mut d_weight = result.d_weight;
        lookup.add_gradient(&engine, &result.d_input, &mut d_weight);
        let (mut value, mut second) = (weight.clone(), vec![0.0; weight.len()]);
        let settings = Adam {
            learning_rate: 0.1,
            beta1: 0.0,
            beta2: 0.9,
            epsilon: 1e-8,
            l2: 0.1,
            clip: Some(1.0),
        };
        settings.step(
            &engine,
            1,
            &mut [Parameter {
                value: &mut value,
                gradient: &d_weight,
                first: &mut [],
                second: &mut second,
            }],
        );
        (
            (result.losses, result.losses_alone),
            result.d_input,
            result.d_bias,
            d_weight,
            value,
        )
    };
    let one = all(1);
    assert!(one == all(2) && one == all(3));
}

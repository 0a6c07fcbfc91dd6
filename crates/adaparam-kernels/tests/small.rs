//! Every kernel at sizes of a few numbers, with edges that fill no vector and no tile, on one thread and on several: small enough for
//! Miri, which looks at every access of memory (`check/sanitize miri`). What they compute is compared between numbers of threads;
//! other files compare it with formulas.

mod support;

use adaparam_kernels::adam::{Adam, Parameter};
use adaparam_kernels::alstm::{self, Adaptation, Latent, PolicyLayout, PolicyStart, Summary};
use adaparam_kernels::embedding::{Lookup, apply_mask};
use adaparam_kernels::feed_forward::{self, Activation, Gate, Layer, Stage, Wanted};
use adaparam_kernels::gemm::{
    Panels, Scratch, Source, contiguous_groups, product, transposed_product,
};
use adaparam_kernels::math::Function;
use adaparam_kernels::simd::Instructions;
use adaparam_kernels::softmax::{Gradient, Projection, Softmax};
use adaparam_kernels::stack::Stack;
use adaparam_kernels::{Engine, Precision, lstm, sgd, sum};
use support::Numbers;
use support::stack::{Case, Summed};

/// The numbers of threads of each instruction set give the same bits in every precision that it has.
fn same_for_all_threads<T: PartialEq>(precisions: &[Precision], work: impl Fn(&Engine) -> T) {
    for instructions in Instructions::available() {
        for &precision in precisions {
            if !instructions.multiplies(precision) {
                continue;
            }
            let [one, two] = [1, 2].map(|threads| {
                let engine = Engine::with_instructions(threads, instructions);
                work(&engine.in_precision(precision))
            });
            assert!(one == two, "{} {}", instructions.name(), precision.name());
        }
    }
}

const LEARNING: [Precision; 2] = [Precision::F32, Precision::Bf16];
const ALL: [Precision; 3] = [Precision::F32, Precision::Bf16, Precision::Int8];

#[test]
fn products() {
    let mut numbers = Numbers(1);
    for (m, n, k) in [(1, 1, 1), (7, 19, 5), (9, 33, 2)] {
        let (a, b) = (numbers.vec(m * k, 1.0), numbers.vec(k * n, 1.0));
        same_for_all_threads(&ALL, |engine| {
            [Source::Rows(&b, n), Source::Columns(&b, k)].map(|source| {
                let mut panels = Panels::default();
                panels.pack(engine, &[(source, k)], &contiguous_groups(n));
                let mut c = vec![f32::NAN; m * n];
                product(engine, &a, &panels, &mut c, n);
                assert!(c.iter().all(|x| x.is_finite()));
                c
            })
        });
        same_for_all_threads(&LEARNING, |engine| {
            [false, true].map(|add| {
                let mut c = vec![0.5; m * (n + 1)];
                let shape = (m, n, k);
                let mut scratch = Scratch::default();
                transposed_product(
                    engine,
                    &mut scratch,
                    shape,
                    (&a, m),
                    (&b, n),
                    (&mut c, n + 1),
                    add,
                );
                assert!(
                    c.chunks(n + 1)
                        .all(|row| row[n].to_bits() == 0.5_f32.to_bits()),
                    "between rows"
                );
                c
            })
        });
    }
}

#[test]
fn windows_of_stacks() {
    let adaptive = |kind, adaptation, layout, skip| alstm::Shape {
        input: 3,
        hidden: if skip { vec![3, 3] } else { vec![9, 2] },
        latent: 2,
        kind,
        summary: Summary::Hybrid,
        adaptation,
        layout,
        start: PolicyStart::Paper,
        bias: true,
        skip,
    };
    let (paper, released) = (PolicyLayout::Paper, PolicyLayout::Released);
    let both = Adaptation::InputOutput;
    let stacks: [Box<dyn Stack>; 7] = [
        Box::new(adaptive(Latent::Recurrent, both, paper, false)),
        Box::new(adaptive(Latent::Static, Adaptation::Input, released, false)),
        Box::new(adaptive(Latent::Recurrent, Adaptation::Output, paper, true)),
        Box::new(lstm::Shape {
            input: 3,
            hidden: vec![9, 2],
            bias: true,
            skip: false,
            input_gate: lstm::InputGate::Free,
        }),
        Box::new(lstm::Shape {
            input: 3,
            hidden: vec![3, 3],
            bias: false,
            skip: true,
            input_gate: lstm::InputGate::Free,
        }),
        Summed {
            input: 3,
            width: 9,
            layers: 2,
            output: 2,
            bias: true,
            input_gate: lstm::InputGate::Capped,
        }
        .stack(),
        Summed {
            input: 3,
            width: 2,
            layers: 1,
            output: 4,
            bias: false,
            input_gate: lstm::InputGate::Tied,
        }
        .stack(),
    ];
    for stack in stacks {
        for lengths in [None, Some(vec![2, 1, 2])] {
            let mut case = Case::new(&*stack, 2, 3, true, 4);
            case.lengths = lengths;
            same_for_all_threads(&LEARNING, |engine| {
                let outcome = case.run(&*stack, engine);
                assert!(outcome.gradients.iter().flatten().all(|x| x.is_finite()));
                outcome
            });
        }
    }
}

#[test]
fn softmax_and_its_gradient() {
    let mut numbers = Numbers(2);
    let (rows, width, vocabulary) = (5, 3, 21);
    let weight = numbers.vec(vocabulary * width, 1.0);
    let bias = numbers.vec(vocabulary, 1.0);
    let input = numbers.vec(rows * width, 1.0);
    let targets = [0, 20, 7, 7, 1];
    let projection = Projection {
        weight: &weight,
        bias: &bias,
        width,
    };
    // All rows at once, and some at a time.
    for chunk in [rows * vocabulary, 2 * vocabulary] {
        same_for_all_threads(&LEARNING, |engine| {
            let mut softmax = Softmax::with_chunk(chunk);
            let nan = |len: usize| vec![f32::NAN; len];
            let (mut losses, mut again) = (nan(rows), nan(rows));
            let (mut d_input, mut d_weight) = (nan(input.len()), nan(weight.len()));
            let mut d_bias = nan(vocabulary);
            softmax.pack(engine, &projection);
            let mut gradient = Gradient {
                d_input: &mut d_input,
                d_weight: &mut d_weight,
                d_bias: &mut d_bias,
            };
            softmax.gradient(
                engine,
                &projection,
                &input,
                &targets,
                0.5,
                &mut losses,
                &mut gradient,
            );
            softmax.loss(engine, &projection, &input, &targets, &mut again);
            let written = [losses, again, d_input, d_weight, d_bias];
            assert!(written.iter().flatten().all(|x| x.is_finite()));
            written
        });
    }
}

#[test]
fn words_updates_sums_and_functions() {
    let mut numbers = Numbers(3);
    let (width, vocabulary, batch) = (5, 4, 3);
    let words = [3, 0, 3, 1, 1, 3];
    let table = numbers.vec(vocabulary * width, 1.0);
    let (of_words, mask) = (numbers.mask(vocabulary), numbers.mask(batch * width));
    let d_output = numbers.vec(words.len() * width, 1.0);
    let lookup = Lookup {
        words: &words,
        batch,
        width,
        word_mask: Some(&of_words),
        mask: Some(&mask),
    };
    let adam = Adam {
        learning_rate: 0.1,
        beta1: 0.9,
        beta2: 0.99,
        epsilon: 1e-8,
        l2: 0.1,
        clip: Some(0.1),
    };
    same_for_all_threads(&[Precision::F32], |engine| {
        let mut output = vec![f32::NAN; d_output.len()];
        lookup.forward(engine, &table, &mut output);
        let mut gradient = vec![0.0; table.len()];
        lookup.add_gradient(engine, &d_output, &mut gradient);
        apply_mask(engine, &mut output, &mask);
        let (mut value, mut first, mut second) = (
            table.clone(),
            vec![0.0; table.len()],
            vec![0.0; table.len()],
        );
        for step in [1, 2] {
            let parameter = Parameter {
                value: &mut value,
                gradient: &gradient,
                first: &mut first,
                second: &mut second,
            };
            assert!(adam.step(engine, step, &mut [parameter]) > 0.0);
        }
        sgd::step(engine, 0.1, &mut value, &gradient);
        sum::add(engine, &mut value, &gradient);
        sum::add_and_scale(engine, &mut value, &gradient, 0.5);
        let mut copied = vec![f32::NAN; value.len()];
        sum::copy(engine, &mut copied, &value);
        assert_eq!(copied, value);
        for function in [Function::Exp, Function::Sigmoid, Function::Tanh] {
            function.apply(engine, &mut copied);
        }
        [output, gradient, value, copied]
    });
}

#[test]
fn an_adaptive_feed_forward_layer() {
    let shape = feed_forward::Shape {
        widths: vec![3, 9, 2],
        adapted: vec![true, true, false, true],
        bias: true,
        activation: Activation::Relu,
        context: Some(4),
        policy: vec![
            Stage {
                width: 5,
                bias: true,
                activation: Activation::Tanh,
                gate: Some(Gate { bias: true }),
            },
            Stage {
                width: 2 + 3 + 2,
                bias: true,
                activation: Activation::Sigmoid,
                gate: None,
            },
        ],
    };
    let rows = 3;
    let mut numbers = Numbers(5);
    let lengths = shape.parameters().into_iter();
    let parameters: Vec<Vec<f32>> = lengths
        .map(|lengths| numbers.vec(lengths.iter().product(), 1.0))
        .collect();
    let borrowed: Vec<&[f32]> = parameters.iter().map(Vec::as_slice).collect();
    let (x, context) = (numbers.vec(rows * 3, 1.0), numbers.vec(rows * 4, 1.0));
    let d_output = numbers.vec(rows * 2, 1.0);
    let operands = feed_forward::Operands {
        parameters: &borrowed,
        rows,
        x: &x,
        context: Some(&context),
    };
    same_for_all_threads(&[Precision::F32], |engine| {
        let mut layer = Layer::new(shape.clone());
        let mut output = vec![f32::NAN; d_output.len()];
        layer.forward(engine, &operands, true, &mut output);
        let (mut d_x, mut d_context) = (vec![f32::NAN; x.len()], vec![f32::NAN; context.len()]);
        let wanted = Wanted {
            x: Some(&mut d_x),
            context: Some(&mut d_context),
        };
        let mut gradients = layer.backward(engine, &operands, &output, &d_output, wanted);
        let mut written: Vec<Vec<f32>> = parameters
            .iter()
            .map(|of| vec![f32::NAN; of.len()])
            .collect();
        let mut places: Vec<&mut [f32]> = written.iter_mut().map(Vec::as_mut_slice).collect();
        let wanted = Wanted::default();
        layer.backward_into(engine, &operands, &output, &d_output, wanted, &mut places);
        assert_eq!(written, gradients);
        gradients.extend([output, d_x, d_context]);
        assert!(gradients.iter().flatten().all(|x| x.is_finite()));
        gradients
    });
}

//! What each cell does in its limits, in the layers themselves.

use adaparam::recurrent::{
    Execution, FactoredMap, ForgetGate, HyperLstmSettings, LstmConfig, LstmSettings,
    MelisLstmSettings, MlstmSettings, MogrifierSettings, PolicyStart, Recurrent, RecurrentKind,
    StackOutput, StackSizes, SvaLstmSettings,
};
use burn::module::Param;
use burn::tensor::{Device, Tensor};

use super::case::Case;
use super::given::{Given, Numbers, Sizes, Stream, assert_agree, largest};
use super::tape::Matrix;

const SIZES: Sizes = Sizes {
    input: 3,
    hidden: 4,
    steps: 6,
    batch: 2,
};
/// A bias that opens a gate, or closes it with the other sign.
const OPEN: f64 = 50.0;

fn case(name: &str) -> Case {
    // Of rounds and depths, as many as the number at its end says.
    let end = name.rsplit('-').next().and_then(|end| end.parse().ok());
    let count: usize = end.unwrap_or(0);
    Case::named(name, |parameter| {
        let end = parameter.rsplit('_').next();
        let number: Option<usize> = end.and_then(|end| end.parse().ok());
        match number {
            Some(number) => number <= count,
            None => parameter.starts_with('b'),
        }
    })
}

fn given(case: &Case) -> Given {
    Given::drawn(case, SIZES, 5)
}

fn outputs(case: &Case, given: &Given) -> Numbers {
    let all = case.by_the_layer(given, Execution::Readable).into_iter();
    all.filter(|(name, _)| !name.starts_with("grad.")).collect()
}

fn fill(given: &mut Given, name: &str, value: f64) {
    let matrix = given.parameters.get_mut(name);
    let matrix = matrix.unwrap_or_else(|| panic!("there is no {name}"));
    matrix.values.fill(value);
}

/// Two cells give the same, where the numbers of the first are those of the second.
fn assert_same(what: &str, one: (&Case, &Given), other: (&Case, &Given)) {
    let expected = outputs(other.0, other.1);
    assert_agree(what, &outputs(one.0, one.1), &expected, 1e-6, 1.0);
}

/// And they do not, so that the law above says something.
fn assert_differ(one: (&Case, &Given), other: (&Case, &Given)) {
    let [one, other] = [one, other].map(|(case, given)| outputs(case, given));
    let pairs = one["output"].iter().zip(&other["output"]);
    let differences: Vec<f64> = pairs.map(|(a, b)| a - b).collect();
    assert!(largest(&differences) > 1e-3);
}

#[test]
fn a_highway_whose_gates_are_closed_keeps_its_state() {
    let rhn = case("rhn-3");
    let mut given = given(&rhn);
    for l in 1..=3 {
        fill(&mut given, &format!("b_T_{l}"), -OPEN);
    }
    let end = &outputs(&rhn, &given)["final.h"];
    assert_eq!(end.len(), given.states["h"].values.len());
    for (end, start) in end.iter().zip(&given.states["h"].values) {
        assert!((end - start).abs() < 1e-6, "{end} is not {start}");
    }
}

#[test]
fn an_open_highway_of_depth_one_is_a_plain_network() {
    let (rhn, rnn) = (case("rhn-1"), case("rnn"));
    let mut of_rhn = given(&rhn);
    let mut of_rnn = given(&rnn);
    for (name, other) in [("W", "W_H"), ("U", "R_H_1"), ("b", "b_H_1")] {
        let matrix = of_rhn.parameters[other].clone();
        of_rnn.parameters.insert(name.to_owned(), matrix);
    }
    of_rnn.states.clone_from(&of_rhn.states);
    of_rnn.input.clone_from(&of_rhn.input);
    assert_differ((&rhn, &of_rhn), (&rnn, &of_rnn));
    fill(&mut of_rhn, "b_T_1", OPEN);
    assert_same("rhn", (&rhn, &of_rhn), (&rnn, &of_rnn));
}

#[test]
fn deeper_layers_that_are_closed_are_not_there() {
    let (deep, shallow) = (case("rhn-4"), case("rhn-1"));
    let mut of_deep = given(&deep);
    let mut of_shallow = given(&shallow);
    let names: Vec<String> = of_shallow.parameters.keys().cloned().collect();
    for name in names {
        let matrix = of_deep.parameters[&name].clone();
        of_shallow.parameters.insert(name, matrix);
    }
    of_shallow.states.clone_from(&of_deep.states);
    of_shallow.input.clone_from(&of_deep.input);
    assert_differ((&deep, &of_deep), (&shallow, &of_shallow));
    for l in 2..=4 {
        fill(&mut of_deep, &format!("b_T_{l}"), -OPEN);
    }
    assert_same("rhn", (&deep, &of_deep), (&shallow, &of_shallow));
}

#[test]
fn both_forms_of_a_gru_agree_for_diagonal_weights_without_an_inner_bias_and_not_for_full_ones() {
    let (cho, cudnn) = (case("gru-cho"), case("gru-cudnn"));
    let mut given = given(&cudnn);
    fill(&mut given, "c_n", 0.0);
    assert_differ((&cho, &given), (&cudnn, &given));
    for gate in ["r", "u", "n"] {
        let matrix = given.parameters.get_mut(&format!("U_{gate}")).unwrap();
        for (place, weight) in matrix.values.iter_mut().enumerate() {
            if place % (SIZES.hidden + 1) != 0 {
                *weight = 0.0;
            }
        }
    }
    assert_same("gru", (&cho, &given), (&cudnn, &given));
}

#[test]
fn an_update_gate_of_one_copies_the_state() {
    for name in ["gru-cho", "gru-cudnn"] {
        let gru = case(name);
        let mut given = given(&gru);
        fill(&mut given, "b_u", OPEN);
        let end = &outputs(&gru, &given)["final.h"];
        for (end, start) in end.iter().zip(&given.states["h"].values) {
            assert!((end - start).abs() < 1e-6, "{name}: {end} is not {start}");
        }
    }
}

#[test]
fn a_nas_cell_without_a_past_has_no_third_branch_and_stays_bounded() {
    let nas = Case::named("nas", |_| false);
    let mut given = given(&nas);
    given.sizes.steps = 1;
    given.input.truncate(SIZES.batch * SIZES.input);
    given.cotangent.truncate(SIZES.batch * SIZES.hidden);
    given.states.get_mut("h").unwrap().values.fill(0.0);
    let before = outputs(&nas, &given);
    fill(&mut given, "W_3", 7.0);
    assert_eq!(before, outputs(&nas, &given));

    let mut given = Given::drawn(&nas, SIZES, 8);
    for matrix in given.parameters.values_mut() {
        matrix.values.iter_mut().for_each(|x| *x *= 30.0);
    }
    let after = outputs(&nas, &given);
    assert!(largest(&after["final.c"]) <= 1.0);
    assert!(largest(&after["output"]) <= 1.0_f64.tanh() + 1e-6);
}

#[test]
fn capped_gates_are_free_where_they_write_little_and_tied_where_they_write_much() {
    let [capped, tied, free] = ["lstm-capped", "lstm-tied", "lstm"].map(case);
    let mut given = given(&capped);
    assert_differ((&capped, &given), (&free, &given));
    assert_differ((&capped, &given), (&tied, &given));
    fill(&mut given, "b_i", -OPEN);
    assert_same("little", (&capped, &given), (&free, &given));
    fill(&mut given, "b_i", OPEN);
    assert_same("much", (&capped, &given), (&tied, &given));
}

#[test]
fn memory_is_bounded_by_one_where_the_input_gate_is_capped_or_tied() {
    for name in ["lstm-capped", "lstm-tied"] {
        let lstm = case(name);
        let mut given = given(&lstm);
        let mut numbers = Stream(2);
        for matrix in given.parameters.values_mut() {
            matrix.values.iter_mut().for_each(|x| *x *= 20.0);
        }
        given
            .input
            .iter_mut()
            .for_each(|x| *x = 10.0 * numbers.next());
        given.states.get_mut("c").unwrap().values.fill(0.0);
        let end = &outputs(&lstm, &given)["final.c"];
        assert!(largest(end) <= 1.0 + 1e-6, "{name}: {end:?}");
    }
}

/// Weights that no draw of another test touches.
fn filled<R: Recurrent>(mut stack: R, seed: u64) -> R {
    let mut numbers = Stream(seed);
    stack.set_parameters(&mut |_, shape| {
        let count = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|_| numbers.next() as f32).collect();
        Some(Tensor::from_floats(values.as_slice(), &Device::flex()))
    });
    stack
}

fn input(steps: usize, batch: usize, width: usize) -> Tensor<3> {
    let mut numbers = Stream(11);
    let count = steps * batch * width;
    let values: Vec<f32> = (0..count).map(|_| numbers.next() as f32).collect();
    Tensor::<1>::from_floats(values.as_slice(), &Device::flex()).reshape([batch, steps, width])
}

fn assert_close<const D: usize>(one: Tensor<D>, other: Tensor<D>) {
    assert_eq!(one.dims(), other.dims());
    let difference: f32 = (one - other).abs().max().into_scalar();
    assert!(difference < 1e-6, "they differ by {difference}");
}

#[test]
fn layers_with_skips_give_the_projected_sum_of_all() {
    let device = Device::flex();
    let sizes = StackSizes {
        d_output: 2,
        ..StackSizes::new(3, 4, 3)
    };
    let stack = filled(MelisLstmSettings::default().stack(sizes, &device), 1);
    assert_eq!((stack.d_output(), stack.sites().len()), (2, 6));
    let (output, end) = stack.forward(input(5, 2, 3), None, None);
    let [a, b, c] = [0, 1, 2].map(|l| end[format!("layers.{l}.hidden").as_str()].clone());
    let projection = stack.projection.as_ref().unwrap().val();
    let expected = (a + b + c).matmul(projection);
    assert_close(output.narrow(1, 4, 1).squeeze_dim(1), expected);
}

#[test]
fn one_layer_with_skips_is_one_without() {
    let device = Device::flex();
    let sizes = StackSizes::new(3, 4, 1);
    let [with, without] = [StackOutput::Sum, StackOutput::Last].map(|output| {
        let settings = MelisLstmSettings {
            output,
            ..MelisLstmSettings::default()
        };
        filled(settings.stack(sizes, &device), 1)
    });
    let x = input(5, 2, 3);
    let (one, _) = with.forward(x.clone(), None, None);
    let (other, _) = without.forward(x, None, None);
    assert_close(one, other);
}

#[test]
fn multiplicative_integration_without_products_is_addition() {
    for (name, additive) in [("mi-rnn", "rnn"), ("mi-lstm", "lstm")] {
        let (mi, plain) = (case(name), case(additive));
        let mut given = given(&mi);
        assert_differ((&mi, &given), (&plain, &given));
        let names: Vec<String> = given.parameters.keys().cloned().collect();
        for name in names {
            if name.starts_with("alpha") {
                fill(&mut given, &name, 0.0);
            } else if name.starts_with("beta") {
                fill(&mut given, &name, 1.0);
            }
        }
        assert_same(name, (&mi, &given), (&plain, &given));
    }
}

#[test]
fn multiplicative_integration_of_products_alone_says_nothing_of_an_empty_state() {
    let mi = case("mi-rnn");
    let mut given = given(&mi);
    fill(&mut given, "alpha", 1.0);
    for name in ["beta1", "beta2", "b"] {
        fill(&mut given, name, 0.0);
    }
    given.states.get_mut("h").unwrap().values.fill(0.0);
    assert_eq!(largest(&outputs(&mi, &given)["output"]).to_bits(), 0);
}

#[test]
fn multiplicative_cells_with_factors_of_one_are_the_plain_ones() {
    for (name, plain) in [("mlstm", "lstm"), ("mrnn", "rnn")] {
        let (multiplicative, plain) = (case(name), case(plain));
        let mut given = given(&multiplicative);
        assert_differ((&multiplicative, &given), (&plain, &given));
        let Sizes { input, hidden, .. } = SIZES;
        // The first number of every input is 1, and W_mx reads only it.
        given.input.iter_mut().step_by(input).for_each(|x| *x = 1.0);
        let mut factors = Matrix::zeros(hidden, input);
        factors
            .values
            .iter_mut()
            .step_by(input)
            .for_each(|w| *w = 1.0);
        let mut identity = Matrix::zeros(hidden, hidden);
        identity
            .values
            .iter_mut()
            .step_by(hidden + 1)
            .for_each(|w| *w = 1.0);
        given.parameters.insert("W_mx".to_owned(), factors);
        given.parameters.insert("W_mh".to_owned(), identity);
        assert_same(name, (&multiplicative, &given), (&plain, &given));
    }
}

#[test]
fn a_multiplicative_network_without_a_past_is_a_feed_forward_layer() {
    let mrnn = case("mrnn");
    let mut given = given(&mrnn);
    given.sizes.steps = 1;
    given.input.truncate(SIZES.batch * SIZES.input);
    given.cotangent.truncate(SIZES.batch * SIZES.hidden);
    given.states.get_mut("h").unwrap().values.fill(0.0);
    let output = &outputs(&mrnn, &given)["output"];
    let (weight, bias) = (&given.parameters["W"], &given.parameters["b"]);
    for (row, x) in given.input.chunks(SIZES.input).enumerate() {
        for (unit, weights) in weight.values.chunks(SIZES.input).enumerate() {
            let products = x.iter().zip(weights).map(|(x, w)| x * w);
            let expected = (products.sum::<f64>() + bias.values[unit]).tanh();
            let ours = output[row * SIZES.hidden + unit];
            assert!((ours - expected).abs() < 1e-6, "{ours} is not {expected}");
        }
    }
}

#[test]
fn a_mogrifier_of_no_rounds_or_with_weights_of_zero_is_an_lstm() {
    let lstm = case("lstm");
    let none = case("mogrifier-0");
    let of_none = given(&none);
    assert_same("no rounds", (&none, &of_none), (&lstm, &of_none));
    let some = case("mogrifier-5");
    let mut of_some = given(&some);
    assert_differ((&some, &of_some), (&lstm, &of_some));
    let names: Vec<String> = of_some.parameters.keys().cloned().collect();
    for name in names
        .iter()
        .filter(|name| name.starts_with(['Q', 'q', 'R', 'r']))
    {
        fill(&mut of_some, name, 0.0);
    }
    assert_same("zeros", (&some, &of_some), (&lstm, &of_some));
}

#[test]
fn one_round_of_a_mogrifier_leaves_the_state_alone() {
    let (mogrifier, lstm) = (case("mogrifier-1"), case("lstm"));
    let mut given = given(&mogrifier);
    assert_differ((&mogrifier, &given), (&lstm, &given));
    for gate in ["i", "f", "z", "o"] {
        fill(&mut given, &format!("W_{gate}"), 0.0);
    }
    assert_same("one round", (&mogrifier, &given), (&lstm, &given));
}

#[test]
fn low_rank_rounds_have_fewer_weights() {
    let of_rank = |rank: usize| {
        let settings = MogrifierSettings {
            rank,
            ..MogrifierSettings::default()
        };
        count(&settings.stack(StackSizes::new(30, 30, 1), &Device::flex()))
    };
    assert_eq!(of_rank(0) - of_rank(4), 5 * (30 * 30 - 2 * 4 * 30));
}

#[test]
fn a_new_hyper_lstm_is_an_lstm_whose_weights_are_scaled_by_a_tenth() {
    let device = Device::flex();
    let settings = HyperLstmSettings {
        hyper: 5,
        embedding: 3,
        ..HyperLstmSettings::default()
    };
    let mut hyper = settings.stack(StackSizes::new(3, 4, 1), &device);
    let mut lstm = LstmConfig::new(3, 4).init(&device);
    let x = input(5, 2, 3);
    for scale in [0.1, 1.0] {
        let cell = &mut hyper.layers[0];
        if scale > 0.5 {
            // The embedding is 1 in each of its numbers, whatever the hyper cell says.
            for scales in [&mut cell.scale_hidden, &mut cell.scale_input] {
                scales.weight = Param::from_tensor(Tensor::full([4, 3, 4], 1.0 / 3.0, &device));
            }
        }
        let plain = &mut lstm.layers[0];
        plain.weight_input = Param::from_tensor(cell.weight_input.val() * scale);
        plain.weight_hidden = Param::from_tensor(cell.weight_hidden.val() * scale);
        let (ours, _) = hyper.forward(x.clone(), None, None);
        let (expected, _) = lstm.forward(x.clone(), None, None);
        assert_close(ours, expected);
    }
}

#[test]
fn singular_values_of_one_make_an_lstm_of_the_products_of_its_factors() {
    let device = Device::flex();
    let settings = SvaLstmSettings {
        latent: 5,
        rank: 2,
        policy_start: PolicyStart::Identity,
        ..SvaLstmSettings::default()
    };
    let mut sva = settings.stack(StackSizes::new(3, 4, 1), &device);
    let mut lstm = LstmConfig::new(3, 4).init(&device);
    let cell = &mut sva.layers[0];
    cell.projection = Param::from_tensor(cell.projection.val() * 0.0);
    let whole = |map: &FactoredMap| map.inner.val().matmul(map.outer.val());
    let plain = &mut lstm.layers[0];
    plain.weight_input = Param::from_tensor(whole(&cell.input));
    plain.weight_hidden = Param::from_tensor(whole(&cell.hidden));
    let x = input(5, 2, 3);
    let (ours, _) = sva.forward(x.clone(), None, None);
    let (expected, _) = lstm.forward(x, None, None);
    let difference: f32 = (ours - expected).abs().max().into_scalar();
    assert!(difference < 1e-6, "{difference}");
}

#[test]
fn a_normalised_hyper_lstm_has_a_gain_and_a_shift_for_each_gate_and_memory() {
    let device = Device::flex();
    let [plain, normalised] = [false, true].map(|layer_norm| {
        let settings = HyperLstmSettings {
            layer_norm,
            ..HyperLstmSettings::default()
        };
        settings.stack(StackSizes::new(3, 4, 1), &device)
    });
    // Gain and shift of four gates and a memory cell, in both cells.
    let hyper = HyperLstmSettings::default().hyper;
    assert_eq!(count(&normalised) - count(&plain), 2 * 5 * (4 + hyper));
}

#[test]
fn adaptive_cells_with_diagonals_of_one_are_the_plain_ones() {
    for (is_gru, name) in [(false, "rnn"), (true, "gru-cudnn")] {
        let adaptive = Case::adaptive("adaptive", is_gru, PolicyStart::Identity);
        let plain = case(name);
        let mut of_adaptive = given(&adaptive);
        let mut of_plain = given(&plain);
        for (name, matrix) in &mut of_plain.parameters {
            match of_adaptive.parameters.get(name) {
                Some(same) => matrix.clone_from(same),
                // An adaptive GRU has no inner bias.
                None => matrix.values.fill(0.0),
            }
        }
        of_plain.input.clone_from(&of_adaptive.input);
        let start = of_adaptive.states["h"].clone();
        of_plain.states.insert("h".to_owned(), start);
        assert_differ((&adaptive, &of_adaptive), (&plain, &of_plain));
        fill(&mut of_adaptive, "P", 0.0);
        let ours = outputs(&adaptive, &of_adaptive);
        let ours = ours
            .into_iter()
            .filter(|(name, _)| !name.ends_with(['z', '^']));
        let expected = outputs(&plain, &of_plain);
        assert_agree(name, &ours.collect(), &expected, 1e-6, 1.0);
    }
}

#[test]
fn minimal_cells_forget_all_or_nothing_where_their_gates_say_so() {
    let of = |name: &str| {
        let all = Case::all().into_iter();
        let mut named = all.filter(|case| case.name == name);
        named
            .next()
            .unwrap_or_else(|| panic!("no case is called {name}"))
    };
    for (name, writes, keeps) in [
        ("minimal, Linear, LSTM: false", "b_z", "b_z"),
        ("minimal, Linear, LSTM: true", "b_i", "b_f"),
    ] {
        let cell = of(name);
        let mut open = given(&cell);
        fill(&mut open, writes, OPEN);
        if writes != keeps {
            fill(&mut open, keeps, -OPEN);
        }
        let before = outputs(&cell, &open);
        open.states.get_mut("h").unwrap().values.fill(9.0);
        let after = outputs(&cell, &open);
        assert_agree(name, &after, &before, 1e-6, 1.0);

        let mut closed = given(&cell);
        fill(
            &mut closed,
            keeps,
            if writes == keeps { -OPEN } else { OPEN },
        );
        if writes != keeps {
            fill(&mut closed, writes, -OPEN);
        }
        let end = &outputs(&cell, &closed)["final.h"];
        for (end, start) in end.iter().zip(&closed.states["h"].values) {
            assert!((end - start).abs() < 1e-6, "{name}: {end} is not {start}");
        }
    }
    for name in [
        "minimal, Positive, LSTM: false",
        "minimal, Positive, LSTM: true",
    ] {
        let cell = of(name);
        let mut given = given(&cell);
        given.states.get_mut("h").unwrap().values.fill(0.0);
        let output = &outputs(&cell, &given)["output"];
        assert!(output.iter().all(|x| *x > 0.0), "{name}: {output:?}");
    }
}

#[test]
fn a_minimal_lstm_whose_gates_are_all_shut_shares_between_them() {
    let mut all = Case::all().into_iter();
    let cell = all.find(|case| case.name == "minimal, Linear, LSTM: true");
    let cell = cell.expect("a minimal LSTM");
    let mut given = given(&cell);
    // The sigmoid of this is 0 in single precision.
    for bias in ["b_i", "b_f"] {
        fill(&mut given, bias, -300.0);
    }
    let all = cell.by_the_layer(&given, Execution::Readable);
    for (name, values) in all {
        assert!(values.iter().all(|x| x.is_finite()), "{name}: {values:?}");
    }
}

#[test]
fn an_slstm_does_not_notice_its_stabiliser() {
    for gate in [ForgetGate::Sigmoid, ForgetGate::Exponential] {
        let slstm = Case::slstm("slstm", gate, true);
        let mut given = given(&slstm);
        let before = outputs(&slstm, &given)["output"].clone();
        let shift: f64 = 3.0;
        for (letter, factor, more) in [
            ("c", shift.exp(), 0.0),
            ("n", shift.exp(), 0.0),
            ("m", 1.0, -shift),
        ] {
            let state = given.states.get_mut(letter).unwrap();
            state
                .values
                .iter_mut()
                .for_each(|x| *x = *x * factor + more);
        }
        let after = &outputs(&slstm, &given)["output"];
        for (after, before) in after.iter().zip(&before) {
            assert!((after - before).abs() < 1e-6, "{after} is not {before}");
        }
    }
}

#[test]
fn an_slstm_is_bounded_and_finite_however_large_its_exponents_are() {
    for gate in [ForgetGate::Sigmoid, ForgetGate::Exponential] {
        for exponent in [-300.0, 0.0, 300.0] {
            let slstm = Case::slstm("slstm", gate, true);
            let mut given = given(&slstm);
            for state in given.states.values_mut() {
                state.values.fill(0.0);
            }
            fill(&mut given, "b_i", exponent);
            let all = slstm.by_the_layer(&given, Execution::Readable);
            let all_are_finite = all.values().flatten().all(|x| x.is_finite());
            assert!(all_are_finite, "{gate:?}, {exponent}");
            assert!(largest(&all["output"]) <= 1.0);
        }
    }
}

/// Parameters of a stack.
fn count(stack: &dyn Recurrent) -> usize {
    let shapes = stack.parameter_shapes().into_iter();
    shapes
        .map(|(_, shape)| shape.iter().product::<usize>())
        .sum()
}

/// The parameters of a softmax over characters.
fn softmax(hidden: usize, characters: usize) -> usize {
    (hidden + 1) * characters
}

/// Published models of the 50 characters of the Penn Treebank and of the 205 bytes of enwik8, which read them as they are.
#[test]
fn hyper_lstms_have_the_published_number_of_parameters() {
    for (layer_norm, [hyper, embedding], [characters, hidden, n_layers], published) in [
        (false, [128, 4], [50, 1000, 1], 4_911_874),
        (true, [128, 4], [50, 1000, 1], 4_923_154),
        (true, [128, 16], [50, 1000, 1], 5_085_682),
        (true, [128, 16], [50, 1000, 2], 14_407_714),
        (false, [256, 64], [205, 1800, 1], 18_708_213),
        (true, [256, 64], [205, 1800, 1], 18_728_773),
        (true, [512, 64], [205, 2048, 1], 26_541_773),
    ] {
        let settings = HyperLstmSettings {
            hyper,
            embedding,
            layer_norm,
            ..HyperLstmSettings::default()
        };
        let sizes = StackSizes::new(characters, hidden, n_layers);
        let stack = settings.stack(sizes, &Device::flex());
        assert_eq!(count(&stack) + softmax(hidden, characters), published);
    }
}

#[test]
fn character_models_have_the_published_number_of_parameters() {
    for (hidden, n_layers, published) in [
        (1000, 1, 4_254_050),
        (1250, 1, 6_567_550),
        (1000, 2, 12_258_050),
    ] {
        let sizes = StackSizes::new(50, hidden, n_layers);
        let stack = LstmSettings::default().init(sizes, &Device::flex());
        assert_eq!(count(&*stack) + softmax(hidden, 50), published);
    }
    // The bytes of reviews: vectors of 64 for them, and a norm for each column of the four matrices.
    let stack = MlstmSettings::default().init(StackSizes::new(64, 4096, 1), &Device::flex());
    let (vectors, norms) = (256 * 64, 2 * (4096 + 4 * 4096));
    let all = count(&*stack) + vectors + norms + softmax(4096, 256);
    assert_eq!(all, 86_319_360);
}

#[test]
fn cells_have_as_many_parameters_as_their_equations() {
    let Sizes { input, hidden, .. } = SIZES;
    let lstm = 4 * hidden * (input + hidden + 1);
    let rnn = hidden * (input + hidden + 1);
    for (name, expected) in [
        ("rnn", rnn),
        ("lstm", lstm),
        ("lstm-capped", lstm),
        ("lstm-tied", lstm / 4 * 3),
        ("mi-rnn", rnn + 3 * hidden),
        ("mi-lstm", lstm + 12 * hidden),
        ("mrnn", rnn + hidden * (input + hidden)),
        ("mlstm", lstm + hidden * (input + hidden)),
        ("rhn-3", 2 * hidden * (input + 3 * (hidden + 1))),
        ("mogrifier-2", lstm + 2 * input * hidden + input + hidden),
    ] {
        let stack = case(name).layer(SIZES, &Device::flex());
        assert_eq!(count(&*stack), expected, "{name}");
    }
    let nas = Case::named("nas", |_| false).layer(SIZES, &Device::flex());
    assert_eq!(count(&*nas), 8 * hidden * (input + hidden));
}

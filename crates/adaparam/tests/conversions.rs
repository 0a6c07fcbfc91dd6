//! Layers of Burn and of PyTorch as ours and back: the same numbers come out, and the way back gives what was given.

#[path = "pytorch/given.rs"]
mod given;

use adaparam::convert::{
    ConvertError, StateDict, bidirectional_from_burn, bidirectional_from_pytorch,
    bidirectional_gru_from_burn, bidirectional_gru_from_pytorch, bidirectional_gru_to_burn,
    bidirectional_gru_to_pytorch, bidirectional_projected_from_pytorch,
    bidirectional_projected_to_pytorch, bidirectional_to_burn, bidirectional_to_pytorch,
    gru_from_burn, gru_from_pytorch, gru_to_burn, gru_to_pytorch, lstm_from_burn,
    lstm_from_pytorch, lstm_to_burn, lstm_to_pytorch, projected_from_pytorch, projected_to_pytorch,
    reversed_from_burn, reversed_to_burn,
};
use adaparam::recurrent::{
    Bidirectional, Cell, GruForm, GruSettings, LstmConfig, Recurrent, StackSizes, Stacked, State,
};
use burn::nn::activation::ActivationConfig;
use burn::nn::{
    BiGruConfig, BiLstmConfig, GruConfig as BurnGruConfig, LstmConfig as BurnLstmConfig, LstmState,
};
use burn::tensor::{Device, Distribution, Tensor, TensorData};
use given::Given;

/// Of sums of a few products of order one, in f32 and in other orders.
const TOLERANCE: f32 = 2e-6;

fn normal<const N: usize>(shape: [usize; N], device: &Device) -> Tensor<N> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), device)
}

fn assert_close<const N: usize>(found: Tensor<N>, expected: Tensor<N>) {
    assert_eq!(found.dims(), expected.dims());
    let off: f32 = (found - expected).abs().max().into_scalar();
    assert!(off < TOLERANCE, "off by {off:e}");
}

fn assert_same<const N: usize>(found: Tensor<N>, expected: Tensor<N>) {
    assert_eq!(found.into_data(), expected.into_data());
}

/// One layer's, `[B, H]`, of a final state of PyTorch's, `[L, B, H]`.
fn final_state(given: &Given, which: usize, layer: usize) -> Tensor<2> {
    let all = given.tensor(&format!("state.{which}"));
    all.narrow(0, layer, 1).squeeze_dim(0)
}

fn state(state: &State, name: &str) -> Tensor<2> {
    state[name].clone()
}

#[test]
fn an_lstm_of_pytorch_gives_the_same_here_and_goes_back() {
    let device = Device::flex();
    for name in ["lstm", "lstm_without_bias"] {
        let given = Given::read(name);
        let lstm = lstm_from_pytorch(&given.weights, &device).unwrap();
        let (output, after) = lstm.forward(given.tensor("input"), None, None);
        assert_close(output, given.tensor("output"));
        for l in 0..lstm.layers.len() {
            assert_close(
                state(&after, &format!("layers.{l}.hidden")),
                final_state(&given, 0, l),
            );
            assert_close(
                state(&after, &format!("layers.{l}.cell")),
                final_state(&given, 1, l),
            );
        }
        assert_eq!(lstm_to_pytorch(&lstm).unwrap(), given.weights);
    }
}

#[test]
fn time_first_is_the_same_numbers_on_other_axes() {
    let given = Given::read("lstm");
    let lstm = lstm_from_pytorch(&given.weights, &Device::flex()).unwrap();
    let lstm = lstm.with_batch_first(false);
    let (output, _) = lstm.forward(given.tensor("input").swap_dims(0, 1), None, None);
    assert_close(output.swap_dims(0, 1), given.tensor("output"));
}

/// Layers of both directions, one above the other, give what PyTorch gave.
fn assert_both<C: Cell>(layers: &[Bidirectional<Stacked<C>>], given: &Given) {
    assert_eq!(layers.len(), 2);
    let mut x = given.tensor("input");
    for (l, layer) in layers.iter().enumerate() {
        let both = layer.forward(x);
        let hidden = "layers.0.hidden";
        assert_close(state(&both.onward, hidden), final_state(given, 0, 2 * l));
        assert_close(
            state(&both.backward, hidden),
            final_state(given, 0, 2 * l + 1),
        );
        x = both.output;
    }
    assert_close(x, given.tensor("output"));
}

#[test]
fn bidirectional_layers_of_pytorch_give_the_same_here_and_go_back() {
    let device = Device::flex();
    let given = Given::read("lstm_bidirectional");
    let layers = bidirectional_from_pytorch(&given.weights, &device).unwrap();
    assert_both(&layers, &given);
    assert_eq!(bidirectional_to_pytorch(&layers).unwrap(), given.weights);

    let given = Given::read("lstm_bidirectional_projected");
    let layers = bidirectional_projected_from_pytorch(&given.weights, &device).unwrap();
    assert_both(&layers, &given);
    let back = bidirectional_projected_to_pytorch(&layers).unwrap();
    assert_eq!(back, given.weights);

    let given = Given::read("gru_bidirectional");
    let layers = bidirectional_gru_from_pytorch(&given.weights, &device).unwrap();
    assert_both(&layers, &given);
    let back = bidirectional_gru_to_pytorch(&layers).unwrap();
    assert_eq!(back, given.weights);
}

#[test]
fn the_converter_that_a_refusal_names_takes_the_tensors() {
    type Takes = fn(&StateDict, &Device) -> Result<(), ConvertError>;
    let converters: [(&str, Takes); 6] = [
        ("lstm_from_pytorch", |dict, device| {
            lstm_from_pytorch(dict, device).map(drop)
        }),
        ("bidirectional_from_pytorch", |dict, device| {
            bidirectional_from_pytorch(dict, device).map(drop)
        }),
        ("projected_from_pytorch", |dict, device| {
            projected_from_pytorch(dict, device).map(drop)
        }),
        ("bidirectional_projected_from_pytorch", |dict, device| {
            bidirectional_projected_from_pytorch(dict, device).map(drop)
        }),
        ("gru_from_pytorch", |dict, device| {
            gru_from_pytorch(dict, device).map(drop)
        }),
        ("bidirectional_gru_from_pytorch", |dict, device| {
            bidirectional_gru_from_pytorch(dict, device).map(drop)
        }),
    ];
    let device = Device::flex();
    let files = [
        "lstm",
        "lstm_bidirectional",
        "lstm_projected",
        "lstm_bidirectional_projected",
        "gru",
        "gru_bidirectional",
    ];
    for file in files {
        let dict = Given::read(file).weights;
        let mut takers = 0;
        for (name, takes) in converters {
            let Err(error) = takes(&dict, &device) else {
                takers += 1;
                continue;
            };
            let error = error.to_string();
            let Some((_, instead)) = error.split_once("convert it with ") else {
                // Something that the layer would need is not there.
                assert!(error.contains(" is missing: "), "{file}, {name}: {error}");
                continue;
            };
            let named = converters.iter().find(|(name, _)| *name == instead);
            let (_, takes) = named.unwrap_or_else(|| panic!("{file}, {name}: {error}"));
            takes(&dict, &device).unwrap_or_else(|error| panic!("{file}, {instead}: {error}"));
        }
        assert_eq!(takers, 1, "{file}");
    }
}

#[test]
fn a_projected_lstm_of_pytorch_gives_the_same_here_and_goes_back() {
    let given = Given::read("lstm_projected");
    let lstm = projected_from_pytorch(&given.weights, &Device::flex()).unwrap();
    assert_eq!(lstm.d_output(), 2);
    let (output, after) = lstm.forward(given.tensor("input"), None, None);
    assert_close(output, given.tensor("output"));
    assert_close(state(&after, "layers.1.hidden"), final_state(&given, 0, 1));
    assert_close(state(&after, "layers.1.cell"), final_state(&given, 1, 1));
    assert_eq!(projected_to_pytorch(&lstm).unwrap(), given.weights);
}

#[test]
fn a_gru_of_pytorch_gives_the_same_here_and_goes_back() {
    let given = Given::read("gru");
    let gru = gru_from_pytorch(&given.weights, &Device::flex()).unwrap();
    let (output, after) = gru.forward(given.tensor("input"), None, None);
    assert_close(output, given.tensor("output"));
    assert_close(state(&after, "layers.1.hidden"), final_state(&given, 0, 1));
    assert_eq!(gru_to_pytorch(&gru).unwrap(), given.weights);
}

#[test]
fn a_single_bias_becomes_two_of_which_one_is_zero() {
    let device = Device::flex();
    let lstm = LstmConfig::new(4, 3).init(&device);
    let dict = lstm_to_pytorch(&lstm).unwrap();
    assert_eq!(dict["bias_hh_l0"], TensorData::new(vec![0f32; 12], [12]));
    let same = lstm_from_pytorch(&dict, &device).unwrap();
    let x = normal([2, 5, 4], &device);
    let (one, other) = (
        lstm.forward(x.clone(), None, None),
        same.forward(x, None, None),
    );
    assert_close(one.0, other.0);
}

#[test]
fn a_state_dict_that_does_not_fit_is_refused_by_name() {
    let device = Device::flex();
    let refused = |given: &Given, change: &dyn Fn(&mut StateDict)| {
        let mut dict = given.weights.clone();
        change(&mut dict);
        lstm_from_pytorch(&dict, &device).unwrap_err().to_string()
    };
    let plain = Given::read("lstm");
    let error = refused(&plain, &|dict| {
        dict.remove("weight_hh_l1");
    });
    assert!(
        error.starts_with("weight_hh_l1 is missing: there are bias_hh_l0"),
        "{error}"
    );
    let error = refused(&plain, &|dict| {
        dict.insert(
            "weight_hh_l0".to_owned(),
            TensorData::new(vec![0f32; 24], [12, 2]),
        );
    });
    assert_eq!(error, "weight_hh_l0 is [12, 2]: must be [12, 3]");
    let error = refused(&plain, &|dict| {
        dict.insert(
            "decoder.weight".to_owned(),
            TensorData::new(vec![0f32; 2], [2]),
        );
    });
    assert!(
        error.starts_with("decoder.weight is no part of an nn.LSTM"),
        "{error}"
    );
    let error = refused(&Given::read("lstm_bidirectional"), &|_| {});
    assert!(error.ends_with("bidirectional_from_pytorch"), "{error}");
    let error = refused(&Given::read("lstm_projected"), &|_| {});
    assert!(error.ends_with("projected_from_pytorch"), "{error}");
    let error = refused(&plain, &|dict| {
        dict.remove("weight_ih_l0");
    });
    assert!(error.starts_with("weight_ih_l0 is missing"), "{error}");
    let error = refused(&plain, &|dict| {
        let second = dict.remove("weight_ih_l1").unwrap();
        dict.insert("weight_ih_l2".to_owned(), second);
    });
    assert!(error.starts_with("weight_ih_l1 is missing"), "{error}");
    let error = refused(&plain, &|dict| {
        dict.remove("bias_hh_l1");
    });
    assert!(error.starts_with("bias_hh_l1 is missing"), "{error}");
    let put = |name: &str, shape: [usize; 2]| {
        let (name, data) = (name.to_owned(), vec![0f32; shape[0] * shape[1]]);
        move |dict: &mut StateDict| {
            dict.insert(name.clone(), TensorData::new(data.clone(), shape));
        }
    };
    let error = refused(&plain, &put("weight_ih_l0", [13, 4]));
    assert!(
        error.ends_with("it is [13, 4], and the first axis has 4 gates of one size"),
        "{error}"
    );
    assert_eq!(
        refused(&plain, &put("weight_ih_l1", [12, 5])),
        "weight_ih_l1 is [12, 5]: must be [12, 3]"
    );
    let error = refused(&plain, &|dict| {
        let whole = TensorData::new(vec![0i64; 12], [12]);
        dict.insert("bias_ih_l0".to_owned(), whole);
    });
    assert!(
        error.ends_with("weights are floating-point numbers"),
        "{error}"
    );
    let error = refused(&Given::read("gru"), &|_| {});
    assert!(
        error.ends_with("convert it with gru_from_pytorch"),
        "{error}"
    );
    let error = gru_from_pytorch(&plain.weights, &device).unwrap_err();
    let error = error.to_string();
    assert!(
        error.ends_with("convert it with lstm_from_pytorch"),
        "{error}"
    );
    let mut uneven = Given::read("lstm_bidirectional").weights;
    put("weight_ih_l0_reverse", [16, 4])(&mut uneven);
    let error = bidirectional_from_pytorch(&uneven, &device).unwrap_err();
    assert_eq!(
        error.to_string(),
        "weight_ih_l0_reverse is [16, 4]: must be [12, 4]"
    );
    let empty = lstm_from_pytorch(&StateDict::new(), &device).unwrap_err();
    assert_eq!(
        empty.to_string(),
        "weight_ih_l0 is missing: there are no tensors"
    );
}

#[test]
fn lstms_of_burn_give_the_same_here_and_go_back() {
    let device = Device::flex();
    for (bias, batch_first) in [(true, true), (false, true), (true, false)] {
        let layer = |d_input| {
            BurnLstmConfig::new(d_input, 3, bias)
                .with_batch_first(batch_first)
                .init(&device)
        };
        let theirs = [layer(4), layer(3)];
        let ours = lstm_from_burn(&theirs).unwrap();
        assert_eq!(ours.batch_first(), batch_first);
        let x = normal([2, 5, 4], &device);
        let (middle, _) = theirs[0].forward(x.clone(), None);
        let (expected, last) = theirs[1].forward(middle, None);
        let (output, after) = ours.forward(x.clone(), None, None);
        assert_close(output, expected.clone());
        assert_close(state(&after, "layers.1.hidden"), last.hidden);
        assert_close(state(&after, "layers.1.cell"), last.cell);
        let back = lstm_to_burn(&ours).unwrap();
        let (middle, _) = back[0].forward(x, None);
        assert_same(back[1].forward(middle, None).0, expected);
    }
}

#[test]
fn a_reversed_lstm_of_burn_gives_the_same_here_and_goes_back() {
    let device = Device::flex();
    let theirs = BurnLstmConfig::new(4, 3, true)
        .with_reverse(true)
        .init(&device);
    let ours = reversed_from_burn(&theirs).unwrap();
    let x = normal([2, 5, 4], &device);
    let (h, c) = (normal([2, 3], &device), normal([2, 3], &device));
    let before = || LstmState::new(c.clone(), h.clone());
    let (expected, last) = theirs.forward(x.clone(), Some(before()));
    let zero = ours.stack.zero_state(2, &device);
    let start = zero.map_named(|name, _| match name {
        "layers.0.hidden" => h.clone(),
        _ => c.clone(),
    });
    let (output, after) = ours.forward(x.clone(), Some(start), None);
    assert_close(output, expected.clone());
    assert_close(state(&after, "layers.0.hidden"), last.hidden);
    let back = reversed_to_burn(&ours).unwrap();
    assert!(back.reverse);
    assert_same(back.forward(x.clone(), Some(before())).0, expected);

    // Rows of other lengths are read from their own ends.
    let (ragged, _) = ours.forward_ragged(x.clone(), &[5, 2], None, None);
    let (short, _) = ours.forward(x.narrow(0, 1, 1).narrow(1, 0, 2), None, None);
    assert_close(ragged.narrow(0, 1, 1).narrow(1, 0, 2), short);
}

#[test]
fn a_bidirectional_lstm_of_burn_gives_the_same_here_and_goes_back() {
    let device = Device::flex();
    for batch_first in [true, false] {
        let theirs = BiLstmConfig::new(4, 3, true)
            .with_batch_first(batch_first)
            .init(&device);
        let ours = bidirectional_from_burn(&theirs).unwrap();
        let x = normal([2, 5, 4], &device);
        let (expected, _) = theirs.forward(x.clone(), None);
        assert_close(ours.forward(x.clone()).output, expected.clone());
        let back = bidirectional_to_burn(&ours).unwrap();
        assert_same(back.forward(x, None).0, expected);
    }
}

#[test]
fn grus_of_burn_give_the_same_here_and_go_back() {
    let device = Device::flex();
    for (bias, reset_after) in [(true, true), (false, true), (true, false), (false, false)] {
        let layer = |d_input| {
            BurnGruConfig::new(d_input, 3, bias)
                .with_reset_after(reset_after)
                .init(&device)
        };
        let theirs = [layer(4), layer(3)];
        let ours = gru_from_burn(&theirs).unwrap();
        let x = normal([2, 5, 4], &device);
        let expected = theirs[1].forward(theirs[0].forward(x.clone(), None), None);
        assert_close(ours.forward(x.clone(), None, None).0, expected.clone());
        let back = gru_to_burn(&ours).unwrap();
        assert_close(back[1].forward(back[0].forward(x, None), None), expected);
    }
}

#[test]
fn a_bidirectional_gru_of_burn_gives_the_same_here_and_goes_back() {
    let device = Device::flex();
    for (bias, reset_after, batch_first) in [
        (true, true, true),
        (false, true, true),
        (true, false, true),
        (true, true, false),
    ] {
        let theirs = BiGruConfig::new(4, 3, bias)
            .with_reset_after(reset_after)
            .with_batch_first(batch_first)
            .init(&device);
        let ours = bidirectional_gru_from_burn(&theirs).unwrap();
        let x = normal([2, 5, 4], &device);
        let (expected, last) = theirs.forward(x.clone(), None);
        let both = ours.forward(x.clone());
        assert_close(both.output, expected.clone());
        for (side, after) in [both.onward, both.backward].iter().enumerate() {
            let expected = last.clone().narrow(0, side, 1).squeeze_dim(0);
            assert_close(state(after, "layers.0.hidden"), expected);
        }
        let back = bidirectional_gru_to_burn(&ours).unwrap();
        assert_eq!(back.batch_first, batch_first);
        assert_close(back.forward(x, None).0, expected);
    }
}

#[test]
fn what_has_no_counterpart_is_refused_with_the_way_out() {
    let device = Device::flex();
    let text = |error: ConvertError| error.to_string();
    let config = BurnLstmConfig::new(4, 3, true);
    let refused =
        |config: BurnLstmConfig| text(lstm_from_burn(&[config.init(&device)]).unwrap_err());
    let error = refused(config.clone().with_reverse(true));
    assert!(error.contains("reversed_from_burn"), "{error}");
    assert!(refused(config.clone().with_clip(Some(1.0))).starts_with("clip: "));
    assert!(refused(config.clone().with_input_forget(true)).starts_with("input_forget = true"));
    let relu = config.with_hidden_activation(ActivationConfig::Relu);
    assert!(refused(relu).starts_with("hidden_activation = "));
    assert_eq!(
        text(lstm_from_burn(&[]).unwrap_err()),
        "no layers: give at least one"
    );

    let layer = BurnLstmConfig::new(4, 3, true).init(&device);
    assert!(
        text(lstm_from_burn(&[layer.clone(), layer]).unwrap_err())
            .starts_with("layer 1 reads 4 numbers: the one below gives 3")
    );
    let layer = BurnGruConfig::new(4, 3, true).init(&device);
    assert!(
        text(gru_from_burn(&[layer.clone(), layer]).unwrap_err())
            .starts_with("layer 1 reads 4 numbers: the one below gives 3")
    );

    let skipping = LstmConfig::new(3, 3).with_skip(true).init(&device);
    assert!(text(lstm_to_burn(&skipping).unwrap_err()).starts_with("layers that skip"));
    assert!(text(lstm_to_pytorch(&skipping).unwrap_err()).starts_with("layers that skip"));
    let two = LstmConfig::new(4, 3).with_n_layers(2);
    let pair = Bidirectional::new(two.init(&device), two.init(&device));
    assert!(text(bidirectional_to_burn(&pair).unwrap_err()).starts_with("2 layers"));
    assert!(
        text(bidirectional_to_pytorch(&[pair]).unwrap_err())
            .starts_with("a direction of layer 0 has 2 layers")
    );
    let cho = GruSettings {
        form: GruForm::Cho,
        ..GruSettings::default()
    };
    let cho = cho.stack(StackSizes::new(4, 3, 1), &device);
    assert!(text(gru_to_pytorch(&cho).unwrap_err()).starts_with("form = cho"));
    let pair = Bidirectional::new(cho.clone(), cho);
    assert!(text(bidirectional_gru_to_pytorch(&[pair]).unwrap_err()).starts_with("form = cho"));
    let two = GruSettings::default().stack(StackSizes::new(4, 3, 2), &device);
    let pair = Bidirectional::new(two.clone(), two);
    assert!(text(bidirectional_gru_to_burn(&pair).unwrap_err()).starts_with("2 layers"));
}

//! The GRU in both of its forms: golden numbers, gradients, laws.

use std::collections::BTreeMap;
use std::path::Path;

use adaparam::recurrent::{Cell, Gru, GruForm, GruSettings, Recurrent, StackSizes, State};
use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use safetensors::SafeTensors;

const FORMS: [GruForm; 2] = [GruForm::Cho, GruForm::Cudnn];

fn stack(form: GruForm, d_input: usize, d_hidden: usize, device: &Device) -> Gru {
    let settings = GruSettings {
        form,
        ..GruSettings::default()
    };
    settings
        .stack(StackSizes::new(d_input, d_hidden, 1), device)
        .with_batch_first(false)
}

fn tensor<const D: usize>(values: &[f64], shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), device)
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec_as().expect("floats")
}

/// A file of golden numbers, in f64.
struct Golden(BTreeMap<String, (Vec<usize>, Vec<f64>)>);

impl Golden {
    fn read(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/cells");
        let bytes = std::fs::read(folder.join(format!("{name}.safetensors"))).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = file.iter().map(|(name, view)| {
            let chunks = view.data().as_chunks::<8>().0.iter();
            let values = chunks.map(|chunk| f64::from_le_bytes(*chunk)).collect();
            (name.to_owned(), (view.shape().to_vec(), values))
        });
        Self(tensors.collect())
    }

    fn tensor<const D: usize>(&self, name: &str, device: &Device) -> Tensor<D> {
        let (shape, values) = &self.0[name];
        tensor(values, shape.as_slice().try_into().unwrap(), device)
    }

    /// The parts `r, u, n` of a parameter as the layer keeps them: `[in, 3 out]`, or side by side.
    fn parts<const D: usize>(&self, prefix: &str, device: &Device) -> Tensor<D> {
        let parts = ["r", "u", "n"].map(|gate| {
            let part: Tensor<D> = self.tensor(&format!("{prefix}_{gate}"), device);
            if D == 2 { part.transpose() } else { part }
        });
        Tensor::cat(parts.to_vec(), D - 1)
    }
}

/// 1e-5 of the largest value: sums of some dozen roundings in f32.
fn assert_close<const D: usize>(name: &str, ours: Tensor<D>, theirs: Tensor<D>) {
    let (ours, theirs) = (numbers(ours), numbers(theirs));
    assert_eq!(ours.len(), theirs.len(), "{name}");
    let largest = theirs.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    for (our, their) in ours.iter().zip(&theirs) {
        assert!(
            (our - their).abs() <= 1e-5 * largest,
            "{name}: {our} is not {their}"
        );
    }
}

#[test]
fn outputs_states_and_every_gradient_are_the_golden_ones() {
    let device = Device::flex().autodiff();
    for form in FORMS {
        let golden = Golden::read(match form {
            GruForm::Cho => "gru-cho",
            GruForm::Cudnn => "gru-cudnn",
        });
        let input: Tensor<3> = golden.tensor("input", &device).require_grad();
        let [_, _, d_input] = input.dims();
        let start: Tensor<2> = golden.tensor("state.h", &device).require_grad();
        let [_, d_hidden] = start.dims();
        let mut gru = stack(form, d_input, d_hidden, &device);
        let cell = &mut gru.layers[0];
        cell.weight_input = Param::from_tensor(golden.parts("param.W", &device));
        cell.weight_hidden = Param::from_tensor(golden.parts("param.U", &device));
        cell.bias = Some(Param::from_tensor(golden.parts("param.b", &device)));
        if form == GruForm::Cudnn {
            // Only the candidate's part is free; the others are zero.
            let of_candidate: Tensor<1> = golden.tensor("param.c_n", &device);
            let zeros = Tensor::zeros([2 * d_hidden], &device);
            let bias = Tensor::cat(vec![zeros, of_candidate], 0);
            cell.bias_hidden = Some(Param::from_tensor(bias.detach()));
        }
        let state = State::new(gru.states(), vec![start.clone()]);
        let (output, end) = gru.forward(input.clone(), Some(state), None);
        assert_close("output", output.clone(), golden.tensor("output", &device));
        let end = end["layers.0.hidden"].clone();
        assert_close("final.h", end, golden.tensor("final.h", &device));

        let gradients = (output * golden.tensor("cotangent", &device))
            .sum()
            .backward();
        let plain = device.clone().inner();
        let cell = &gru.layers[0];
        let of = |what: &str| format!("{form:?}: {what}");
        assert_close(
            &of("input"),
            input.grad(&gradients).unwrap(),
            golden.tensor("grad.input", &plain),
        );
        assert_close(
            &of("start"),
            start.grad(&gradients).unwrap(),
            golden.tensor("grad.state.h", &plain),
        );
        assert_close(
            &of("W"),
            cell.weight_input.val().grad(&gradients).unwrap(),
            golden.parts("grad.param.W", &plain),
        );
        assert_close(
            &of("U"),
            cell.weight_hidden.val().grad(&gradients).unwrap(),
            golden.parts("grad.param.U", &plain),
        );
        let bias = cell.bias.as_ref().unwrap().val();
        assert_close(
            &of("b"),
            bias.grad(&gradients).unwrap(),
            golden.parts("grad.param.b", &plain),
        );
        if let Some(bias) = &cell.bias_hidden {
            let gradient = bias.val().grad(&gradients).unwrap();
            assert_close(
                &of("c_n"),
                gradient.narrow(0, 2 * d_hidden, d_hidden),
                golden.tensor("grad.param.c_n", &plain),
            );
        }
    }
}

/// The step of one number that the equations give by hand: `r: .1 .5 .01; u: .2 −.6 .02; n: .3 .7 .03`, `b' = .06`.
#[test]
fn one_number_goes_as_the_equations_say() {
    let device = Device::flex();
    for (form, expected) in FORMS
        .into_iter()
        .zip([0.494_841_126_083, 0.508_561_550_064])
    {
        let mut gru = stack(form, 1, 1, &device);
        let cell = &mut gru.layers[0];
        cell.weight_input = Param::from_tensor(tensor(&[0.1, 0.2, 0.3], [1, 3], &device));
        cell.weight_hidden = Param::from_tensor(tensor(&[0.5, -0.6, 0.7], [1, 3], &device));
        cell.bias = Some(Param::from_tensor(tensor(
            &[0.01, 0.02, 0.03],
            [3],
            &device,
        )));
        if let Some(bias) = &mut cell.bias_hidden {
            *bias = Param::from_tensor(tensor(&[0.0, 0.0, 0.06], [3], &device));
        }
        let h = tensor(&[0.5], [1, 1], &device);
        let step = Cell::step(cell, Tensor::ones([1, 1], &device), vec![h], &[None]);
        let h = f64::from(numbers(step.output)[0]);
        assert!(
            (h - expected).abs() < 1e-6,
            "{form:?}: {h} is not {expected}"
        );
    }
}

/// A GRU whose hidden weights are diagonal, or full.
fn with_hidden_weights(form: GruForm, diagonal: bool, device: &Device) -> Gru {
    let mut gru = stack(form, 2, 3, device);
    let entry = |row: usize, column: usize| {
        let is_on = !diagonal || column % 3 == row;
        if is_on {
            (1.0 + (row * 9 + column) as f64).sin()
        } else {
            0.0
        }
    };
    let weights: Vec<f64> = (0..27).map(|i| entry(i / 9, i % 9)).collect();
    let inputs: Vec<f64> = (0..18).map(|i| f64::from(i).cos()).collect();
    let cell = &mut gru.layers[0];
    cell.weight_hidden = Param::from_tensor(tensor(&weights, [3, 9], device));
    cell.weight_input = Param::from_tensor(tensor(&inputs, [2, 9], device));
    gru
}

#[test]
fn both_forms_agree_for_diagonal_weights_without_an_inner_bias_and_not_for_full_ones() {
    let device = Device::flex();
    let input = Tensor::<3>::ones([4, 2, 2], &device);
    let difference = |diagonal| {
        let [cho, cudnn] = FORMS.map(|form| {
            let gru = with_hidden_weights(form, diagonal, &device);
            gru.forward(input.clone(), None, None).0
        });
        (cho - cudnn).abs().max().into_scalar::<f32>()
    };
    assert!(difference(true) < 1e-6);
    assert!(difference(false) > 1e-3);
}

#[test]
fn an_update_gate_of_one_copies_the_state() {
    let device = Device::flex();
    for form in FORMS {
        let mut gru = with_hidden_weights(form, false, &device);
        let open = [0.0, 0.0, 0.0, 50.0, 50.0, 50.0, 0.0, 0.0, 0.0];
        gru.layers[0].bias = Some(Param::from_tensor(tensor(&open, [9], &device)));
        let h = tensor(&[0.3, -0.2, 0.9], [1, 3], &device);
        let state = State::new(gru.states(), vec![h.clone()]);
        let (_, end) = gru.forward(Tensor::ones([5, 1, 2], &device), Some(state), None);
        let difference: f32 = (end["layers.0.hidden"].clone() - h)
            .abs()
            .max()
            .into_scalar();
        assert!(difference < 1e-6, "{form:?}: {difference}");
    }
}

#[test]
fn a_ragged_batch_equals_its_rows_run_apart() {
    let device = Device::flex();
    for form in FORMS {
        let gru = with_hidden_weights(form, false, &device);
        let values: Vec<f64> = (0..24).map(|i| (f64::from(i) * 0.7).sin()).collect();
        let input: Tensor<3> = tensor(&values, [4, 3, 2], &device);
        let lengths = [4, 1, 3];
        let (output, end) = gru.forward_ragged(input.clone(), &lengths, None, None);
        for (row, length) in lengths.into_iter().enumerate() {
            let alone = input.clone().narrow(1, row, 1).narrow(0, 0, length);
            let (expected, last) = gru.forward(alone, None, None);
            let ours = output.clone().narrow(1, row, 1);
            let difference: f32 = (ours.clone().narrow(0, 0, length) - expected)
                .abs()
                .max()
                .into_scalar();
            assert!(difference < 1e-6, "{form:?}: {difference}");
            if length < 4 {
                let behind = ours.narrow(0, length, 4 - length).abs().max();
                assert_eq!(behind.into_scalar::<f32>().to_bits(), 0);
            }
            let ends = end["layers.0.hidden"].clone().narrow(0, row, 1);
            let difference: f32 = (ends - last["layers.0.hidden"].clone())
                .abs()
                .max()
                .into_scalar();
            assert!(difference < 1e-6, "{form:?}: {difference}");
        }
    }
}

//! Files that `torch.save` has written become layers of ours through `burn-store`, and what goes back is a safetensors file
//! with the same bits.

#[path = "pytorch/given.rs"]
mod given;

use std::path::Path;

use adaparam::convert::{
    StateDict, bidirectional_from_pytorch, bidirectional_gru_from_pytorch,
    bidirectional_gru_to_pytorch, bidirectional_projected_from_pytorch,
    bidirectional_projected_to_pytorch, bidirectional_to_pytorch, gru_from_pytorch, gru_to_pytorch,
    lstm_from_pytorch, lstm_to_pytorch, projected_from_pytorch, projected_to_pytorch,
};
use adaparam::recurrent::{LstmConfig, Recurrent};
use adaparam::{AdaptLinearConfig, Adaptation, AdaptiveFeedForward};
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{DType, Device, Tensor};
use burn_store::{
    BurnpackStore, ModuleSnapshot, ModuleStore, PytorchStore, SafetensorsStore, bridge,
};
use given::{Given, given};
use safetensors::tensor::{Dtype, TensorView};

/// Of sums of a few products of order one, in f32 and in other orders.
const TOLERANCE: f32 = 2e-6;

fn furthest(found: Tensor<3>, expected: Tensor<3>) -> f32 {
    assert_eq!(found.dims(), expected.dims());
    (found - expected).abs().max().into_scalar()
}

/// All tensors of a file.
fn dict<S: ModuleStore>(store: &mut S) -> StateDict {
    let tensors = store.get_all_tensors().unwrap();
    let data = |tensor| bridge::to_data(tensor).unwrap();
    let entries = tensors.iter();
    entries.map(|(name, it)| (name.clone(), data(it))).collect()
}

fn pytorch_file(name: &str) -> StateDict {
    dict(&mut PytorchStore::from_file(given(name)))
}

/// Writes what `safetensors.torch.load_file` reads.
fn write(dict: &StateDict, path: &Path) {
    let views = dict.iter().map(|(name, data)| {
        let shape = data.shape().as_slice().to_vec();
        (
            name,
            TensorView::new(Dtype::F32, shape, data.as_bytes()).unwrap(),
        )
    });
    safetensors::serialize_to_file(views, None, path).unwrap();
}

/// Converts a file and back, and reads what went back from a file again.
fn check(
    name: &str,
    forward: impl Fn(&StateDict, Tensor<3>) -> Tensor<3>,
    back: impl Fn(&StateDict) -> StateDict,
) {
    let expected = Given::read(name);
    let dict_of_file = pytorch_file(&format!("{name}.pt"));
    assert_eq!(dict_of_file, expected.weights, "{name}");
    let output = forward(&dict_of_file, expected.tensor("input"));
    let off = furthest(output, expected.tensor("output"));
    assert!(off < TOLERANCE, "{name} is off by {off:e}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("back.safetensors");
    write(&back(&dict_of_file), &path);
    let again = dict(&mut SafetensorsStore::from_file(&path));
    assert_eq!(again, dict_of_file, "{name}");
}

#[test]
fn layers_that_torch_has_saved_give_the_same_here_and_go_back() {
    let device = Device::flex();
    for name in ["lstm", "lstm_without_bias"] {
        let lstm = |dict: &StateDict| lstm_from_pytorch(dict, &device).unwrap();
        check(
            name,
            |dict, x| lstm(dict).forward(x, None, None).0,
            |dict| lstm_to_pytorch(&lstm(dict)).unwrap(),
        );
    }
    let pairs = |dict: &StateDict| bidirectional_from_pytorch(dict, &device).unwrap();
    check(
        "lstm_bidirectional",
        |dict, x| pairs(dict).iter().fold(x, |x, pair| pair.forward(x).output),
        |dict| bidirectional_to_pytorch(&pairs(dict)).unwrap(),
    );
    let pairs = |dict: &StateDict| bidirectional_projected_from_pytorch(dict, &device).unwrap();
    check(
        "lstm_bidirectional_projected",
        |dict, x| pairs(dict).iter().fold(x, |x, pair| pair.forward(x).output),
        |dict| bidirectional_projected_to_pytorch(&pairs(dict)).unwrap(),
    );
    let pairs = |dict: &StateDict| bidirectional_gru_from_pytorch(dict, &device).unwrap();
    check(
        "gru_bidirectional",
        |dict, x| pairs(dict).iter().fold(x, |x, pair| pair.forward(x).output),
        |dict| bidirectional_gru_to_pytorch(&pairs(dict)).unwrap(),
    );
    let projected = |dict: &StateDict| projected_from_pytorch(dict, &device).unwrap();
    check(
        "lstm_projected",
        |dict, x| projected(dict).forward(x, None, None).0,
        |dict| projected_to_pytorch(&projected(dict)).unwrap(),
    );
    let gru = |dict: &StateDict| gru_from_pytorch(dict, &device).unwrap();
    check(
        "gru",
        |dict, x| gru(dict).forward(x, None, None).0,
        |dict| gru_to_pytorch(&gru(dict)).unwrap(),
    );
}

#[test]
fn half_precision_becomes_what_the_device_computes_with() {
    let device = Device::flex();
    let half = pytorch_file("lstm_bfloat16.pt");
    assert!(half.values().all(|data| data.dtype() == DType::BF16));
    let lstm = lstm_from_pytorch(&half, &device).unwrap();
    let exact = pytorch_file("lstm.pt");
    for (name, data) in lstm_to_pytorch(&lstm).unwrap() {
        let found: Vec<f32> = data.try_into_vec().unwrap();
        let whole: Vec<f32> = exact[&name].clone().try_into_vec().unwrap();
        for (found, whole) in found.iter().zip(&whole) {
            // Eight bits, to the nearest.
            assert!(
                (found - whole).abs() <= whole.abs() / 256.0,
                "{name}: {found} of {whole}"
            );
        }
        assert_ne!(found, whole, "{name} was rounded");
    }
}

/// The head of `tagger.pt`, by its name there.
#[derive(Module, Debug)]
struct Head {
    output: Linear,
}

#[test]
fn a_checkpoint_of_a_larger_model_becomes_adaptive_layers_that_give_the_same() {
    let device = Device::flex();
    let checkpoint = || PytorchStore::from_file(given("tagger.pt")).with_top_level_key("model");
    let lstm: StateDict = dict(&mut checkpoint())
        .into_iter()
        .filter_map(|(name, data)| Some((name.strip_prefix("lstm.")?.to_owned(), data)))
        .collect();
    let [lstm] = bidirectional_from_pytorch(&lstm, &device)
        .unwrap()
        .try_into()
        .unwrap();
    let mut head = Head {
        output: LinearConfig::new(6, 2).init(&device),
    };
    head.load_from(&mut checkpoint()).unwrap();

    let expected = Given::read("tagger");
    for adaptation in [
        Adaptation::Input,
        Adaptation::Output,
        Adaptation::Io,
        Adaptation::Sva { rank: None },
        Adaptation::Sva { rank: Some(1) },
    ] {
        let config = AdaptLinearConfig::new(adaptation);
        let output = AdaptiveFeedForward::from_linear(&head.output, &config);
        let hidden = lstm.forward(expected.tensor("input")).output;
        let off = furthest(output.forward(hidden), expected.tensor("output"));
        assert!(off < TOLERANCE, "{adaptation:?} is off by {off:e}");
    }
}

#[test]
fn a_converted_layer_goes_through_stores_of_burn() {
    let device = Device::flex();
    let lstm = lstm_from_pytorch(&pytorch_file("lstm.pt"), &device).unwrap();
    let expected = lstm_to_pytorch(&lstm).unwrap();
    let other = || {
        // Of the same form: two biases, as PyTorch has them.
        let plain = LstmConfig::new(4, 3).with_n_layers(2).init(&device);
        lstm_from_pytorch(&lstm_to_pytorch(&plain).unwrap(), &device).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();

    let mut store = BurnpackStore::from_file(folder.path().join("lstm.bpk"));
    lstm.save_into(&mut store).unwrap();
    let mut read = other();
    assert_ne!(lstm_to_pytorch(&read).unwrap(), expected);
    read.load_from(&mut store).unwrap();
    assert_eq!(lstm_to_pytorch(&read).unwrap(), expected);

    let mut store = SafetensorsStore::from_file(folder.path().join("lstm.safetensors"));
    lstm.save_into(&mut store).unwrap();
    let mut read = other();
    read.load_from(&mut store).unwrap();
    assert_eq!(lstm_to_pytorch(&read).unwrap(), expected);
}

#[test]
fn a_file_that_is_damaged_or_of_something_else_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.pt");
    let whole = std::fs::read(given("lstm.pt")).unwrap();
    for kept in [0, 1, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..kept]).unwrap();
        assert!(
            PytorchStore::from_file(&path).get_all_tensors().is_err(),
            "{kept} bytes of {}",
            whole.len()
        );
    }
    // Without the key under which it lies, a checkpoint is a dictionary of other names.
    let error = lstm_from_pytorch(&pytorch_file("tagger.pt"), &Device::flex()).unwrap_err();
    assert!(
        error.to_string().starts_with("weight_ih_l0 is missing"),
        "{error}"
    );
}

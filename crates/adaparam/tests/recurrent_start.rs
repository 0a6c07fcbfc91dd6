//! What a new stack says, and what it can learn from, by its depth. A device has one stream of random numbers in a
//! process, so that its seed needs a test program of its own.

use std::sync::Mutex;

use adaparam::recurrent::{
    AdaptiveLstm, AdaptiveLstmConfig, Execution, LstmConfig, PolicyStart, Recurrent,
};
use burn::tensor::{Device, Distribution, Tensor};

/// Tests share the random numbers; one after the other, each draws the same ones every time.
static RANDOM_NUMBERS: Mutex<()> = Mutex::new(());

const D_INPUT: usize = 16;
const D_HIDDEN: usize = 32;
const D_LATENT: usize = 8;

fn input(device: &Device) -> Tensor<3> {
    Tensor::random([20, 4, D_INPUT], Distribution::Normal(0.0, 1.0), device)
}

fn rms<const D: usize>(tensor: Tensor<D>) -> f64 {
    tensor.square().mean().sqrt().into_scalar()
}

fn adaptive(n_layers: usize, start: PolicyStart, device: &Device) -> AdaptiveLstm {
    AdaptiveLstmConfig::new(D_INPUT, D_HIDDEN, D_LATENT)
        .with_batch_first(false)
        .with_n_layers(n_layers)
        .with_policy_start(start)
        .init(device)
}

/// The size of a new stack's outputs.
fn says(stack: &dyn Recurrent, input: Tensor<3>) -> f64 {
    rms(stack.forward(input, None, None).0)
}

#[test]
fn from_the_identity_a_new_stack_says_as_much_as_a_plain_one_at_any_depth() {
    let _turn = RANDOM_NUMBERS.lock();
    let device = Device::flex();
    for execution in [Execution::Fused, Execution::Readable] {
        for n_layers in 1..=6 {
            device.seed(5);
            let identity = adaptive(n_layers, PolicyStart::Identity, &device);
            let plain = LstmConfig::new(D_INPUT, D_HIDDEN)
                .with_batch_first(false)
                .with_n_layers(n_layers);
            let input = input(&device);
            let ours = says(&identity.with_execution(execution), input.clone());
            let plain = says(&plain.init(&device), input);
            assert!(
                (0.5..2.0).contains(&(ours / plain)),
                "{n_layers} layers: {ours:e} beside {plain:e}"
            );
        }
    }
}

#[test]
fn in_the_papers_form_a_new_stack_says_less_with_every_layer() {
    let _turn = RANDOM_NUMBERS.lock();
    let device = Device::flex();
    let mut before = f64::INFINITY;
    for n_layers in 1..=3 {
        device.seed(5);
        let ours = says(
            &adaptive(n_layers, PolicyStart::Paper, &device),
            input(&device),
        );
        assert!(
            ours > 0.0 && ours < 1e-3 * before,
            "{n_layers} layers: {ours:e}"
        );
        before = ours;
    }
}

#[test]
fn from_the_identity_the_lowest_layer_of_six_has_gradients() {
    let _turn = RANDOM_NUMBERS.lock();
    let device = Device::flex().autodiff();
    let of_lowest = |start: PolicyStart| {
        device.seed(5);
        let lstm = adaptive(6, start, &device);
        let (output, _) = lstm.forward(input(&device), None, None);
        let gradients = output.square().sum().backward();
        let lowest = &lstm.layers[0];
        [&lowest.weight_input, &lowest.projection].map(|weight| {
            let gradient = weight.val().grad(&gradients);
            gradient.map_or(0.0, rms)
        })
    };
    for gradient in of_lowest(PolicyStart::Identity) {
        assert!(gradient > 1e-6, "{gradient:e}");
    }
    for gradient in of_lowest(PolicyStart::Paper) {
        assert!(gradient < 1e-30, "{gradient:e}");
    }
}

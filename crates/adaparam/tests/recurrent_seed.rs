//! A device has one stream of random numbers in a process, so that its seed needs a test program of its own.

use std::sync::Mutex;

use adaparam::recurrent::{AdaptiveLstmConfig, Execution, LstmConfig};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};

/// Tests share the random numbers; one after the other, each draws the same ones every time.
static RANDOM_NUMBERS: Mutex<()> = Mutex::new(());

#[test]
fn the_seed_of_the_device_decides_the_weights() {
    let _turn = RANDOM_NUMBERS.lock();
    let device = Device::flex();
    let draw = |seed: u64| {
        device.seed(seed);
        weights(
            &AdaptiveLstmConfig::new(5, 7, 3)
                .with_n_layers(2)
                .init(&device),
        )
    };
    let first = draw(3);
    assert_eq!(first, draw(3));
    assert_ne!(first, draw(4));
}

#[test]
fn a_first_window_draws_the_same_weights_however_it_is_computed() {
    let _turn = RANDOM_NUMBERS.lock();
    let device = Device::flex();
    let draw = |execution: Execution| {
        device.seed(3);
        let adaptive = AdaptiveLstmConfig::new(5, 7, 3)
            .with_n_layers(2)
            .with_execution(execution)
            .init(&device);
        let plain = LstmConfig::new(7, 4)
            .with_n_layers(2)
            .with_execution(execution)
            .init(&device);
        let (output, _) = adaptive.forward(Tensor::ones([2, 3, 5], &device), None, None);
        let _ = plain.forward(output, None, None);
        (weights(&adaptive), weights(&plain))
    };
    assert_eq!(draw(Execution::Fused), draw(Execution::Readable));
}

fn weights<M: Module>(module: &M) -> Vec<f32> {
    let mut numbers = Numbers(Vec::new());
    module.visit(&mut numbers);
    numbers.0
}

struct Numbers(Vec<f32>);

impl ModuleVisitor for Numbers {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let values: Vec<f32> = param
            .val()
            .try_to_vec_as()
            .expect("floats can be read as f32");
        self.0.extend(values);
    }
}

//! A device has one stream of random numbers in a process, so that its seed needs a test program of its own.

use std::sync::Mutex;

use adaparam::recurrent::{AdaptiveLstmConfig, Execution, LstmConfig, PolicyModel, Recurrent};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Distribution, Tensor};

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
                .with_batch_first(false)
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
            .with_batch_first(false)
            .with_n_layers(2)
            .with_execution(execution)
            .init(&device);
        let plain = LstmConfig::new(7, 4)
            .with_batch_first(false)
            .with_n_layers(2)
            .with_execution(execution)
            .init(&device);
        let (output, _) = adaptive.forward(Tensor::ones([2, 3, 5], &device), None, None);
        let _ = plain.forward(output, None, None);
        (weights(&adaptive), weights(&plain))
    };
    assert_eq!(draw(Execution::Fused), draw(Execution::Readable));
}

#[test]
fn numbers_that_are_set_are_kept_and_none_are_drawn() {
    let _turn = RANDOM_NUMBERS.lock();
    let device = Device::flex();
    device.seed(3);
    let untouched = numbers(&Tensor::<1>::random([4], Distribution::Default, &device));
    let stacks: [Box<dyn Recurrent>; 3] = [
        Box::new(
            LstmConfig::new(5, 7)
                .with_batch_first(false)
                .with_n_layers(2)
                .init(&device),
        ),
        Box::new(
            AdaptiveLstmConfig::new(5, 7, 3)
                .with_batch_first(false)
                .with_n_layers(2)
                .init(&device),
        ),
        Box::new(
            AdaptiveLstmConfig::new(5, 7, 3)
                .with_batch_first(false)
                .with_policy(PolicyModel::Static)
                .init(&device),
        ),
    ];
    for mut stack in stacks {
        device.seed(3);
        let mut given = Vec::new();
        stack.set_parameters(&mut |name, shape| {
            let count: usize = shape.iter().product();
            let numbers: Vec<f32> = (0..count).map(|n| (given.len() + n) as f32).collect();
            given.push((name.to_owned(), numbers.clone()));
            Some(Tensor::from_data(numbers.as_slice(), &device))
        });
        let mut kept = Vec::new();
        stack.visit_parameters(&mut |name, parameter| {
            kept.push((name.to_owned(), numbers(&parameter.flat())));
        });
        assert!(!given.is_empty());
        assert_eq!(kept, given);
        let after = Tensor::<1>::random([4], Distribution::Default, &device);
        assert_eq!(numbers(&after), untouched);
    }
}

fn weights<M: Module>(module: &M) -> Vec<f32> {
    let mut numbers = Numbers(Vec::new());
    module.visit(&mut numbers);
    numbers.0
}

struct Numbers(Vec<f32>);

impl ModuleVisitor for Numbers {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.extend(numbers(&param.val()));
    }
}

fn numbers<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.try_to_vec_as().expect("floats can be read as f32")
}

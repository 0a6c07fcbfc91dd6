//! A device has one stream of random numbers in a process, so that its seed needs a test program of its own.

use adaparam::recurrent::AdaptiveLstmConfig;
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};

#[test]
fn the_seed_of_the_device_decides_the_weights() {
    let device = Device::flex();
    let draw = |seed: u64| {
        device.seed(seed);
        let mut numbers = Numbers(Vec::new());
        AdaptiveLstmConfig::new(5, 7, 3)
            .with_n_layers(2)
            .init(&device)
            .visit(&mut numbers);
        numbers.0
    };
    let first = draw(3);
    assert_eq!(first, draw(3));
    assert_ne!(first, draw(4));
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

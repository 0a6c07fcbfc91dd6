//! Layers go through Burn's own records and through `burn-store`, as burnpack and as safetensors, and come back with every bit.

use adaparam::adapt::{Svf, linear_weights};
use adaparam::recurrent::{
    AdaptiveLstmConfig, Bidirectional, GruSettings, LstmConfig, ProjectedLstmConfig, Recurrent,
    StackSizes,
};
use adaparam::{AdaptLinearConfig, Adaptation, AdaptiveFeedForwardConfig};
use burn::module::Module;
use burn::nn::LinearConfig;
use burn::store::ModuleRecord;
use burn::tensor::{Device, Distribution, Tensor};
use burn_store::{BurnpackStore, ModuleSnapshot, SafetensorsStore};

fn normal<const N: usize>(shape: [usize; N], device: &Device) -> Tensor<N> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), device)
}

/// Sends a module through every form; what another of its kind then gives is what it gave.
fn check<M: Module, const N: usize>(make: impl Fn() -> M, forward: impl Fn(&M) -> Tensor<N>) {
    let module = make();
    let expected = forward(&module).into_data();
    let mut came_back = Vec::new();

    let bytes = module.clone().into_record().into_bytes().unwrap();
    came_back.push(make().load_record(ModuleRecord::from_bytes(bytes).unwrap()));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("module.bpk");
    module.clone().save_file(&path).unwrap();
    came_back.push(make().load_file(&path));

    let mut store = BurnpackStore::from_file(folder.path().join("store.bpk"));
    module.save_into(&mut store).unwrap();
    let mut read = make();
    read.load_from(&mut store).unwrap();
    came_back.push(read);

    let mut store = SafetensorsStore::from_file(folder.path().join("store.safetensors"));
    module.save_into(&mut store).unwrap();
    let mut read = make();
    read.load_from(&mut store).unwrap();
    came_back.push(read);

    assert_ne!(
        forward(&make()).into_data(),
        expected,
        "another one is another one"
    );
    for (form, read) in came_back.iter().enumerate() {
        assert_eq!(forward(read).into_data(), expected, "form {form}");
    }
}

#[test]
fn feed_forward_layers() {
    let device = Device::flex();
    let x = normal([4, 5], &device);
    check(
        || AdaptiveFeedForwardConfig::io(5, 3).init(&device),
        |layer| layer.forward(x.clone()),
    );
    let config = AdaptLinearConfig::new(Adaptation::Sva { rank: Some(2) });
    check(
        || config.wrap(&LinearConfig::new(5, 3).init(&device)),
        |layer| layer.forward(x.clone()),
    );
}

#[test]
fn recurrent_layers() {
    let device = Device::flex();
    let x = normal([2, 4, 5], &device);
    let first = |output: (Tensor<3>, _)| output.0;
    let adaptive = AdaptiveLstmConfig::new(5, 6, 3).with_n_layers(2);
    check(
        || adaptive.init(&device),
        |layers| first(layers.forward(x.clone(), None, None)),
    );
    let lstm = LstmConfig::new(5, 6).with_n_layers(2);
    check(
        || lstm.init(&device),
        |layers| first(layers.forward(x.clone(), None, None)),
    );
    check(
        || GruSettings::default().stack(StackSizes::new(5, 6, 2), &device),
        |layers| first(layers.forward(x.clone(), None, None)),
    );
    check(
        || ProjectedLstmConfig::new(5, 6, 3).init(&device),
        |layers| first(layers.forward(x.clone(), None, None)),
    );
    check(
        || Bidirectional::new(adaptive.init(&device), adaptive.init(&device)),
        |layers| layers.forward(x.clone()).output,
    );
}

#[test]
fn adapters_over_a_model() {
    let device = Device::flex();
    let x = normal([4, 5], &device);
    check(
        || {
            let model = LinearConfig::new(5, 3).init(&device);
            let group = linear_weights(&model, "").unwrap();
            model.apply_reparameterization(Svf::new(group))
        },
        |model| model.forward(x.clone()),
    );
}

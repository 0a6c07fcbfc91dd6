//! A record that would fit in shape and mean something else is refused.

use adaparam::recurrent::{
    AdaptiveLstm, AdaptiveLstmConfig, LstmAdaptation, PolicyLayout, PolicyStart,
};
use adaparam::{AdaptiveFeedForward, AdaptiveFeedForwardConfig};
use burn::module::Module;
use burn::store::ModuleRecord;
use burn::tensor::Device;

fn through_a_file<M: Module>(from: M, into: M) -> M {
    let bytes = from.into_record().into_bytes().expect("can be written");
    into.load_record(ModuleRecord::from_bytes(bytes).expect("can be read"))
}

fn adaptive(config: &AdaptiveLstmConfig) -> AdaptiveLstm {
    config.init(&Device::flex())
}

fn layer(config: &AdaptiveFeedForwardConfig) -> AdaptiveFeedForward {
    config.init(&Device::flex())
}

#[test]
fn a_record_of_the_same_form_is_loaded() {
    let config = AdaptiveLstmConfig::new(4, 4, 2);
    let saved = adaptive(&config);
    let loaded = through_a_file(saved.clone(), adaptive(&config));
    let weight = |lstm: &AdaptiveLstm| lstm.layers[0].projection.val().into_data();
    assert_eq!(weight(&loaded), weight(&saved));
    let config = AdaptiveFeedForwardConfig::input(6, 6);
    let saved = layer(&config);
    let loaded = through_a_file(saved.clone(), layer(&config));
    let weight = |layer: &AdaptiveFeedForward| layer.weights[0].val().into_data();
    assert_eq!(weight(&loaded), weight(&saved));
}

#[test]
#[should_panic(
    expected = "the record is of an AdaptiveLstm with layout = released; this one has layout = paper"
)]
fn another_layout_of_the_policy() {
    let config = AdaptiveLstmConfig::new(4, 4, 2);
    let released = config.clone().with_layout(PolicyLayout::Released);
    through_a_file(adaptive(&released), adaptive(&config));
}

#[test]
#[should_panic(
    expected = "the record is of an AdaptiveLstm with policy_start = identity; this one has policy_start = paper"
)]
fn another_start_of_the_policy() {
    let config = AdaptiveLstmConfig::new(4, 4, 2);
    let identity = config.clone().with_policy_start(PolicyStart::Identity);
    through_a_file(adaptive(&identity), adaptive(&config));
}

#[test]
#[should_panic(expected = "adaptation")]
fn another_adaptation_of_a_recurrent_layer() {
    let config = AdaptiveLstmConfig::new(4, 4, 2);
    let other = config.clone().with_adaptation(LstmAdaptation::Output);
    through_a_file(adaptive(&other), adaptive(&config));
}

#[test]
#[should_panic(
    expected = "the record is of a layer that adapts D(0) D(2); this one adapts D(0) D(1)"
)]
fn another_adaptation_of_a_feed_forward_layer() {
    let input = AdaptiveFeedForwardConfig::input(6, 6);
    let output = AdaptiveFeedForwardConfig::output(6, 6);
    through_a_file(layer(&output), layer(&input));
}

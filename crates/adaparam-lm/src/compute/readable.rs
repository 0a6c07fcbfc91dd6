//! The same through Burn's tensor operations and autodiff.

use adaparam_data::text::Window;
use burn::module::Module;

use crate::masks::WindowMasks;
use crate::model::LanguageModel;
use crate::stack::StackState;

/// Losses of a window, gradients of their mean, and the state to go on from.
pub(super) fn learn(
    model: &LanguageModel,
    window: &Window<'_>,
    state: StackState,
    masks: Option<&WindowMasks>,
) -> (Vec<f32>, Vec<Vec<f32>>, StackState) {
    let mut model = model.clone().train();
    let device = model.embedding.val().device();
    let state = state.map_named(|_, tensor| tensor.to_device(&device));
    let (losses, after) = model.losses(window, state, masks);
    let gradients = losses.clone().mean().backward();
    let gradients = model
        .parameters()
        .iter()
        .map(|parameter| parameter.gradient(&gradients))
        .collect();
    let losses = losses.into_data().try_into_vec_as();
    let after = after.map_named(|_, tensor| tensor.inner());
    (losses.expect("losses are floats"), gradients, after)
}

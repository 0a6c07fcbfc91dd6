//! Whole windows of a recurrent stack as one operation of the CPU backend, with hand-written gradients.
//!
//! The kernels compute on slices of numbers. Here tensors are taken apart into such slices, where all of them allow it, and
//! the kernels are given a place in Burn's graph of gradients. Which stack it is, nothing here knows: all of them meet the
//! kernels through [`adaparam_kernels::stack`].

pub(crate) mod adaptive_lstm;
mod arguments;
mod between;
mod engine;
mod gate_share;
pub(crate) mod lstm;
pub(crate) mod melis_lstm;
mod operation;
mod packing;
mod pointwise;
mod product;
mod workspace;

use adaparam_kernels::Precision;
use burn::tensor::Tensor;

use super::contract::Recurrent;
use super::execution::Execution;
use super::masks::Masks;
use super::state::State;
use arguments::Call;
pub(crate) use engine::engine_here;
pub use engine::{engine, on_engine, set_threads};
pub use product::{KeptWeights, one_window};
pub(crate) use product::{
    activated_in_window, between_in_window, biased_in_window, gate_share_in_window,
    outside_windows, packed_product, split_in_window, steps_in_window, window_of_unroll,
};
pub use workspace::Workspace;

/// The window and where it is computed, if it is to be fused and kernels can compute it.
///
/// Weights that have not been drawn yet are drawn in the order in which the readable version draws them.
pub(crate) fn call<'a, R: Recurrent + ?Sized>(
    layers: &'a R,
    input: &Tensor<3>,
    lengths: Option<&[usize]>,
    state: Option<&State>,
    masks: Option<&Masks>,
) -> Option<(Call, &'a Workspace)> {
    let precision = match layers.execution() {
        Execution::Fused => Precision::F32,
        Execution::FusedBf16 => Precision::Bf16,
        Execution::Readable => return None,
    };
    let workspace = layers.workspace()?;
    let mut call = Call::new(layers.fused()?, precision, input, lengths)?;
    let [_, batch_size, _] = input.dims();
    let zeros = || layers.zero_state(batch_size, &input.device());
    let state = state.cloned().unwrap_or_else(zeros);
    let mut readable = Some(());
    layers.visit_parameters(&mut |_, parameter| {
        readable = readable.and_then(|()| call.parameter(parameter));
    });
    readable?;
    call.has_all_parameters().then_some(())?;
    call.states(&state)?;
    call.masks(&layers.sites(), masks)?;
    Some((call, workspace))
}

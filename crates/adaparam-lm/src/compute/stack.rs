//! Recurrent layers as the kernels run them.

use adaparam_kernels::Engine;
use adaparam_kernels::memory::Buffer;
use burn::tensor::{Device, Tensor, TensorData};

use super::adaptive::AdaptiveKernels;
use super::lstm::LstmKernels;
use super::phases::Phases;
use crate::masks::WindowMasks;
use crate::stack::{Stack, StackState};

/// One window of inputs and the parameters that it meets, in the order of `LanguageModel::parameters`.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) weights: &'a [&'a [f32]],
    pub(super) masks: Option<&'a WindowMasks>,
    pub(super) steps: usize,
    pub(super) batch: usize,
    /// `[steps, batch, E]`.
    pub(super) x: &'a [f32],
}

/// A stack of layers with the buffers that its windows reuse, and the state between two of them.
pub(super) trait StackKernels: Send {
    /// Takes the weights for the windows that follow.
    fn pack(&mut self, engine: &Engine, weights: &[&[f32]]);

    /// The state of `batch` columns before their first step.
    fn clear(&mut self, batch: usize);

    /// The state to begin the next window with.
    fn set_state(&mut self, state: StackState);

    /// The state after the last window.
    fn state(&self, batch: usize, device: &Device) -> StackState;

    /// Runs a window and keeps what [`backward`](Self::backward) needs.
    fn forward(&mut self, engine: &Engine, input: Input<'_>, output: &mut [f32]);

    /// Runs a window and keeps nothing but the state.
    fn evaluate(&mut self, engine: &Engine, input: Input<'_>, output: &mut [f32]);

    /// The gradients of the window that was run last.
    fn backward(
        &mut self,
        engine: &Engine,
        input: Input<'_>,
        d_output: &[f32],
        d_x: &mut [f32],
        gradients: &mut [Buffer],
        phases: &mut Phases,
    );
}

/// The kernels for `stack`, if there are any.
pub(super) fn kernels_for(stack: &Stack) -> Option<Box<dyn StackKernels>> {
    match stack {
        Stack::Lstm(lstm) => Some(Box::new(LstmKernels::new(lstm.kernel_shape()?))),
        Stack::Adaptive(lstm) => Some(Box::new(AdaptiveKernels::new(lstm.kernel_shape()?))),
    }
}

pub(super) fn slices(buffers: &mut [Buffer]) -> impl Iterator<Item = &mut [f32]> {
    buffers.iter_mut().map(|buffer| &mut **buffer)
}

pub(super) fn numbers(tensor: Tensor<2>) -> Vec<f32> {
    let data = tensor.into_data();
    data.try_into_vec_as().expect("states are floats")
}

pub(super) fn tensor(values: &[f32], batch: usize, device: &Device) -> Tensor<2> {
    let shape = [batch, values.len() / batch];
    Tensor::from_data(TensorData::new(values.to_vec(), shape), device)
}

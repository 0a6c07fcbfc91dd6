//! Whole windows of a recurrent stack as one operation of the CPU backend, with hand-written gradients.
//!
//! The kernels compute on slices of numbers. Here tensors are taken apart into such slices, where all of them allow it, and
//! the kernels are given a place in Burn's graph of gradients.

pub(crate) mod adaptive_lstm;
mod adaptive_stack;
mod arguments;
mod engine;
pub(crate) mod lstm;
mod lstm_stack;
mod operation;
mod packing;
mod workspace;

use std::fmt::Debug;

use adaparam_kernels::Engine;
use arguments::{Arguments, slice};
pub use engine::{engine, set_threads};
use workspace::Buffers;
pub(crate) use workspace::Workspace;

/// A kind of stack that has kernels, with its sizes.
///
/// Numbers come and go in one order: parameters and states layer by layer, the lowest first, and within a layer as the
/// implementation says.
pub(crate) trait Stack: Debug + Send + Sync + Sized + 'static {
    /// Weights as the kernels read them.
    type Packed: Default + Send + Sync + 'static;
    /// What a forward pass leaves to its backward pass.
    type Tape: Default + Send + Sync + 'static;

    /// The width of the output.
    fn d_output(&self) -> usize;

    /// The width of each tensor of the state.
    fn state_widths(&self) -> Vec<usize>;

    /// Computes a window, writes `output` and gives the final state.
    fn forward(
        arguments: &Arguments<Self>,
        engine: &Engine,
        buffers: &mut Buffers<Self>,
        keep: Keep,
        output: &mut [f32],
    ) -> Vec<Vec<f32>>;

    /// The gradients of a window that was computed with [`Keep::Tape`], from those of its output and its final state.
    fn backward(
        arguments: &Arguments<Self>,
        engine: &Engine,
        buffers: &mut Buffers<Self>,
        d_output: &[f32],
        d_state: Vec<Vec<f32>>,
    ) -> Gradients;
}

/// What a forward pass leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// All that a backward pass needs.
    Tape,
    /// Nothing.
    Nothing,
}

/// The gradients of everything that a window was computed from, in the order of [`Arguments`].
pub(crate) struct Gradients {
    x: Vec<f32>,
    parameters: Vec<Vec<f32>>,
    state: Vec<Vec<f32>>,
}

impl Gradients {
    /// Gradients to be filled in.
    fn of<S>(arguments: &Arguments<S>) -> Self {
        let parameters = arguments.parameters.iter();
        Self {
            x: vec![0.0; slice(&arguments.x).len()],
            parameters: parameters
                .map(|parameter| vec![0.0; slice(parameter).len()])
                .collect(),
            state: Vec::new(),
        }
    }
}

use burn::module::{Module, ModuleDisplay};
use burn::tensor::Tensor;

use super::bidirectional::reversed;
use super::contract::Recurrent;
use super::masks::Masks;
use super::sequence::assert_lengths;
use super::state::State;

/// A stack of any kind that reads every sequence from its end to its beginning.
#[derive(Module, Debug)]
pub struct Reversed<R: Recurrent + Module + ModuleDisplay> {
    /// The stack.
    pub stack: R,
}

impl<R: Recurrent + Module + ModuleDisplay> Reversed<R> {
    /// The stack, from now on from the end.
    pub fn new(stack: R) -> Self {
        Self { stack }
    }

    /// [`Recurrent::forward`] from the last step to the first. Each output is at the step of its input, and the state is
    /// that after the first step.
    ///
    /// # Shapes
    ///
    /// - `input`: `[B, T, I]`, or `[T, B, I]` if the stack takes time first
    /// - output: `[B, T, O]`, or `[T, B, O]`
    pub fn forward(
        &self,
        input: Tensor<3>,
        state: Option<State>,
        masks: Option<&Masks>,
    ) -> (Tensor<3>, State) {
        let time_axis = usize::from(self.stack.batch_first());
        let turned = input.flip([time_axis]);
        let (output, state) = self.stack.forward(turned, state, masks);
        (output.flip([time_axis]), state)
    }

    /// [`Recurrent::forward_ragged`] where each row is read from its own end.
    ///
    /// # Shapes
    ///
    /// - as of [`forward`](Self::forward)
    pub fn forward_ragged(
        &self,
        input: Tensor<3>,
        lengths: &[usize],
        state: Option<State>,
        masks: Option<&Masks>,
    ) -> (Tensor<3>, State) {
        let time_axis = usize::from(self.stack.batch_first());
        let dims = input.dims();
        assert_lengths(lengths, dims[time_axis], dims[1 - time_axis]);
        let turned = reversed(input, time_axis, lengths);
        let (output, state) = self.stack.forward_ragged(turned, lengths, state, masks);
        (reversed(output, time_axis, lengths), state)
    }
}

use std::fmt::Debug;

use burn::tensor::{Device, Tensor};

use super::execution::Execution;
#[cfg(feature = "kernels")]
use super::fused;
use super::masks::Masks;
use super::sequence::{assert_lengths, unroll, unroll_ragged};
use super::slot::Slot;
use super::state::State;
use crate::parameters::Parameters;

/// A stack of recurrent layers that carries its state.
///
/// Implemented by [`Stacked`](super::Stacked) for every [`Cell`](super::Cell), and by
/// [`AdaptiveLstm`](super::AdaptiveLstm), whose layers look at each other. Whatever takes a `&dyn Recurrent` works for all
/// of them.
///
/// Sequences are time-major, `[T, B, I]`; `x.swap_dims(0, 1)` turns Burn's `[B, T, I]` into it and back.
pub trait Recurrent: Parameters + Debug + Send + Sync {
    /// The size of the input.
    fn d_input(&self) -> usize;

    /// The size of the output.
    fn d_output(&self) -> usize;

    /// What is carried from step to step.
    fn states(&self) -> Vec<Slot>;

    /// Where values can be dropped.
    fn sites(&self) -> Vec<Slot>;

    /// One step of the whole stack: the last layer's hidden state before dropout, and the new state.
    ///
    /// # Shapes
    ///
    /// - `x`: `[B, I]`
    /// - output: `[B, O]`
    ///
    /// # Panics
    ///
    /// Panics if a shape is another, or `state` or `masks` are of other layers.
    fn step(&self, x: Tensor<2>, state: State, masks: Option<&Masks>) -> (Tensor<2>, State);

    /// How windows are computed.
    fn execution(&self) -> Execution;

    /// Lets windows be computed as `execution` says from now on.
    fn set_execution(&mut self, execution: Execution);

    /// The name in files of the parameter at `path`.
    fn stored_name(&self, path: &str) -> String {
        path.to_owned()
    }

    /// The name in files of a second bias that PyTorch adds to the one at `path`, where it has one that this stack has
    /// not. It is written as zeros and read by adding it to the first.
    fn second_bias(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }

    /// The stack as the kernels describe it; none if they cannot compute it.
    #[cfg(feature = "kernels")]
    fn fused(&self) -> Option<Box<dyn adaparam_kernels::stack::Stack>> {
        None
    }

    /// Where the buffers of one window are kept for the next; none if windows are never fused.
    #[cfg(feature = "kernels")]
    fn workspace(&self) -> Option<&fused::Workspace> {
        None
    }

    /// The state before the first step: zeros.
    fn zero_state(&self, batch_size: usize, device: &Device) -> State {
        State::zeros(self.states(), batch_size, device)
    }

    /// Draws masks from the random numbers of `device`, where `rates` gives the drop probability of each kind of site.
    ///
    /// # Panics
    ///
    /// Panics if a rate is not in `[0, 1)`, or if no site is of a named kind.
    fn draw_masks(&self, batch_size: usize, rates: &[(&str, f64)], device: &Device) -> Masks {
        Masks::draw(self.sites(), batch_size, rates, device)
    }

    /// The unroll: [`step`](Self::step) for each row of a sequence, from `state` or from zeros. Gives every output and the
    /// state after the last step. On the CPU this is one fused operation where there is one; see [`Execution`].
    ///
    /// # Shapes
    ///
    /// - `input`: `[T, B, I]`, time first
    /// - output: `[T, B, O]`
    ///
    /// # Panics
    ///
    /// Panics if a shape is another, or `state` or `masks` are of other layers.
    fn forward(
        &self,
        input: Tensor<3>,
        state: Option<State>,
        masks: Option<&Masks>,
    ) -> (Tensor<3>, State) {
        forward(self, input, None, state, masks)
    }

    /// [`forward`](Self::forward) of sequences of different lengths. The output behind a row's end is zero, and its final
    /// state is that after its last real step; what `input` holds behind the end is never looked at.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward), and if a row has no length, or one that is not from 1 to `T`.
    fn forward_ragged(
        &self,
        input: Tensor<3>,
        lengths: &[usize],
        state: Option<State>,
        masks: Option<&Masks>,
    ) -> (Tensor<3>, State) {
        forward(self, input, Some(lengths), state, masks)
    }

    /// Whether [`forward`](Self::forward) of these tensors would be one fused operation; see [`Execution::Fused`]. Weights
    /// that have not been drawn yet are drawn, as `forward` would.
    fn runs_fused(&self, input: &Tensor<3>, state: Option<&State>, masks: Option<&Masks>) -> bool {
        #[cfg(feature = "kernels")]
        return fused::call(self, input, None, state, masks).is_some();
        #[cfg(not(feature = "kernels"))]
        {
            let _ = (input, state, masks);
            false
        }
    }
}

/// # Panics
///
/// Panics unless these are for `layers`, as [`Recurrent::forward`] and [`Recurrent::forward_ragged`] say.
pub(crate) fn assert_window<R: Recurrent + ?Sized>(
    layers: &R,
    input: &Tensor<3>,
    lengths: Option<&[usize]>,
    state: Option<&State>,
    masks: Option<&Masks>,
) {
    let [steps, batch_size, width] = input.dims();
    assert!(steps > 0, "a sequence must have at least one step");
    assert!(
        width == layers.d_input(),
        "the input is {:?}, [steps, rows, width]: its width must be {}, the d_input of these layers",
        input.dims(),
        layers.d_input()
    );
    if let Some(lengths) = lengths {
        assert_lengths(lengths, steps, batch_size);
    }
    if let Some(state) = state {
        state.assert_fits(&layers.states(), batch_size);
    }
    if let Some(masks) = masks {
        masks.assert_fits(&layers.sites(), batch_size);
    }
}

/// # Panics
///
/// Panics unless these are for `layers`, as [`Recurrent::step`] says.
pub(crate) fn assert_step<R: Recurrent + ?Sized>(
    layers: &R,
    x: &Tensor<2>,
    state: &State,
    masks: Option<&Masks>,
) {
    let [batch_size, width] = x.dims();
    assert!(
        width == layers.d_input(),
        "the input is {:?}, [rows, width]: its width must be {}, the d_input of these layers",
        x.dims(),
        layers.d_input()
    );
    state.assert_fits(&layers.states(), batch_size);
    if let Some(masks) = masks {
        masks.assert_fits(&layers.sites(), batch_size);
    }
}

fn forward<R: Recurrent + ?Sized>(
    layers: &R,
    input: Tensor<3>,
    lengths: Option<&[usize]>,
    state: Option<State>,
    masks: Option<&Masks>,
) -> (Tensor<3>, State) {
    assert_window(layers, &input, lengths, state.as_ref(), masks);
    let [steps, batch_size, _] = input.dims();
    // Rows without anything behind their end are a usual batch.
    let lengths = lengths.filter(|lengths| lengths.iter().any(|&length| length < steps));
    #[cfg(feature = "kernels")]
    if let Some((call, workspace)) = fused::call(layers, &input, lengths, state.as_ref(), masks) {
        return call.run(workspace);
    }
    let state = state.unwrap_or_else(|| layers.zero_state(batch_size, &input.device()));
    let step = |x, state| layers.step(x, state, masks);
    match lengths {
        None => unroll(input, state, step),
        Some(lengths) => unroll_ragged(input, lengths, state, step),
    }
}

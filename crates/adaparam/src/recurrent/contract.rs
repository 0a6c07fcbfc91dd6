use std::fmt::Debug;

use burn::tensor::{Device, Tensor};

use super::cell::kept_by_products;
use super::dropout::SiteDropout;
use super::execution::Execution;
#[cfg(feature = "kernels")]
use super::fused;
use super::masks::Masks;
use super::sequence::{assert_lengths, step_by_step, step_by_step_ragged};
use super::slot::Slot;
use super::state::State;
use crate::parameters::Parameters;

/// A stack of recurrent layers that carries its state.
///
/// Implemented by [`Stacked`](super::Stacked) for every [`Cell`](super::Cell), and by
/// [`AdaptiveLstm`](super::AdaptiveLstm), whose layers look at each other. Whatever takes a `&dyn Recurrent` works for all
/// of them.
///
/// [`forward`](Self::forward) takes sequences as Burn's own layers do, `[B, T, I]`, unless the stack was made with
/// `with_batch_first(false)`, and does the stack's dropout. [`unroll`](Self::unroll) is what lies below: always time first,
/// with the masks that it is given.
pub trait Recurrent: Parameters + Debug + Send + Sync {
    /// The size of the input.
    fn d_input(&self) -> usize;

    /// The size of the output.
    fn d_output(&self) -> usize;

    /// What is carried from step to step.
    fn states(&self) -> Vec<Slot>;

    /// Where values can be dropped.
    fn sites(&self) -> Vec<Slot>;

    /// One step of the whole stack: what the last layer gives before dropout, and the new state.
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

    /// How many numbers a step of training keeps for each row of a batch, where tensor operations compute it; see
    /// [`Cell::numbers_kept`](super::Cell::numbers_kept).
    fn numbers_kept(&self) -> usize {
        kept_by_products(self)
    }

    /// See [`Cell::numbers_shared`](super::Cell::numbers_shared).
    fn numbers_shared(&self) -> usize {
        0
    }

    /// How windows are computed.
    fn execution(&self) -> Execution;

    /// Lets windows be computed as `execution` says from now on.
    fn set_execution(&mut self, execution: Execution);

    /// Whether [`forward`](Self::forward) takes and gives `[B, T, …]`, as Burn's own layers do, or `[T, B, …]`.
    fn batch_first(&self) -> bool {
        true
    }

    /// What [`forward`](Self::forward) drops while training, where it is given no masks.
    fn dropout(&self) -> Option<&SiteDropout> {
        None
    }

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

    /// The diagonals that its policies adapted weights with at the step that gave `state`, under names such as
    /// `layers.0.policy.input`, for people who want to look; nothing where there are no policies.
    ///
    /// # Shapes
    ///
    /// - `[B, width]` each
    fn policies(&self, state: &State) -> Vec<(String, Tensor<2>)> {
        let _ = state;
        Vec::new()
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

    /// Every output of a batch of sequences, from `state` or from zeros, and the state after the last step. On the CPU this
    /// is one fused operation where there is one; see [`Execution`].
    ///
    /// Without `masks` the stack drops what [`dropout`](Self::dropout) says, drawn anew for each call, and nothing on a
    /// device without autodiff: after `valid()` there is no dropout.
    ///
    /// # Shapes
    ///
    /// - `input`: `[B, T, I]`, or `[T, B, I]` if not [`batch_first`](Self::batch_first)
    /// - output: `[B, T, O]`, or `[T, B, O]`
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

    /// [`step`](Self::step) for each row of a window, always time first, with no other dropout than `masks`.
    ///
    /// # Shapes
    ///
    /// - `input`: `[T, B, I]`, time first
    /// - output: `[T, B, O]`
    ///
    /// # Panics
    ///
    /// Panics if a shape is another, or `state` or `masks` are of other layers.
    fn unroll(
        &self,
        input: Tensor<3>,
        state: Option<State>,
        masks: Option<&Masks>,
    ) -> (Tensor<3>, State) {
        assert_input(self, input.dims(), false);
        unroll(self, input, None, state, masks)
    }

    /// [`unroll`](Self::unroll) of sequences of different lengths, as [`forward_ragged`](Self::forward_ragged).
    ///
    /// # Panics
    ///
    /// As [`unroll`](Self::unroll), and if a row has no length, or one that is not from 1 to `T`.
    fn unroll_ragged(
        &self,
        input: Tensor<3>,
        lengths: &[usize],
        state: Option<State>,
        masks: Option<&Masks>,
    ) -> (Tensor<3>, State) {
        assert_input(self, input.dims(), false);
        unroll(self, input, Some(lengths), state, masks)
    }

    /// Whether [`forward`](Self::forward) of these tensors would be one fused operation; see [`Execution::Fused`]. Weights
    /// that have not been drawn yet are drawn, as `forward` would.
    fn runs_fused(&self, input: &Tensor<3>, state: Option<&State>, masks: Option<&Masks>) -> bool {
        #[cfg(feature = "kernels")]
        return {
            let input = with_axes(self, input.clone());
            fused::call(self, &input, None, state, masks).is_some()
        };
        #[cfg(not(feature = "kernels"))]
        {
            let _ = (input, state, masks);
            false
        }
    }
}

/// # Panics
///
/// Panics unless a window of these sizes is one for `layers`.
pub(crate) fn assert_input<R: Recurrent + ?Sized>(layers: &R, dims: [usize; 3], batch_first: bool) {
    let [first, second, width] = dims;
    let (steps, axes) = if batch_first {
        (second, "[batch, steps, d_input]")
    } else {
        (first, "[steps, batch, d_input]")
    };
    assert!(
        steps > 0,
        "the input is {dims:?}, {axes}: a sequence must have at least one step"
    );
    assert!(
        width == layers.d_input(),
        "d_input is {}, got {width}: the input is {dims:?}, {axes}",
        layers.d_input()
    );
}

/// # Panics
///
/// Panics unless these are for `layers` and such an input, as [`Recurrent::unroll`] and [`Recurrent::unroll_ragged`] say.
pub(crate) fn assert_window<R: Recurrent + ?Sized>(
    layers: &R,
    input: &Tensor<3>,
    lengths: Option<&[usize]>,
    state: Option<&State>,
    masks: Option<&Masks>,
) {
    let [steps, batch_size, _] = input.dims();
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
        "d_input is {}, got {width}: the input is {:?}, [batch, d_input]",
        layers.d_input(),
        x.dims()
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
    assert_input(layers, input.dims(), layers.batch_first());
    let input = with_axes(layers, input);
    let [_, batch_size, _] = input.dims();
    let drawn = match (masks, layers.dropout()) {
        (None, Some(dropout)) => dropout.draw(layers, batch_size, &input),
        _ => None,
    };
    let (output, state) = unroll(layers, input, lengths, state, masks.or(drawn.as_ref()));
    (with_axes(layers, output), state)
}

/// A sequence as the user has it, time first; and back.
pub(crate) fn with_axes<R: Recurrent + ?Sized>(layers: &R, sequence: Tensor<3>) -> Tensor<3> {
    if layers.batch_first() {
        sequence.swap_dims(0, 1)
    } else {
        sequence
    }
}

fn unroll<R: Recurrent + ?Sized>(
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
    let window = || match lengths {
        None => step_by_step(input, state, step),
        Some(lengths) => step_by_step_ragged(input, lengths, state, step),
    };
    #[cfg(feature = "kernels")]
    return match layers.execution() {
        Execution::Readable => fused::outside_windows(window),
        // A single step too, for which packing takes longer than the step: a sequence gives the same bits however it is cut.
        Execution::Fused | Execution::FusedBf16 => fused::window_of_unroll(window),
    };
    #[cfg(not(feature = "kernels"))]
    window()
}

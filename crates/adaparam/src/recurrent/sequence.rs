use burn::tensor::{Bool, Device, Tensor, TensorData};

#[cfg(feature = "kernels")]
use super::fused;
use super::state::State;

/// Takes `step` along the time axis, which is the first, and stacks what it gives out.
///
/// # Shapes
///
/// - `input`: `[T, B, I]`
/// - output: `[T, B, O]`, where `step` gives `[B, O]`
pub(crate) fn step_by_step(
    input: Tensor<3>,
    mut state: State,
    mut step: impl FnMut(Tensor<2>, State) -> (Tensor<2>, State),
) -> (Tensor<3>, State) {
    let [length, _, _] = input.dims();
    let mut outputs = Vec::with_capacity(length);
    for x in steps(input) {
        let (output, after) = step(x, state);
        outputs.push(output);
        state = after;
    }
    (Tensor::stack(outputs, 0), state)
}

fn steps(input: Tensor<3>) -> Vec<Tensor<2>> {
    #[cfg(feature = "kernels")]
    if let Some(steps) = fused::steps_in_window(&input) {
        return steps;
    }
    input.iter_dim(0).map(|x| x.squeeze_dim(0)).collect()
}

/// [`step_by_step`] for rows of different lengths: behind its end a row gives zeros and keeps its state.
pub(crate) fn step_by_step_ragged(
    input: Tensor<3>,
    lengths: &[usize],
    state: State,
    mut step: impl FnMut(Tensor<2>, State) -> (Tensor<2>, State),
) -> (Tensor<3>, State) {
    let device = input.device();
    let mut over = (0..).map(|t| over(lengths, t, &device));
    step_by_step(input, state, |x, before| {
        let Some(is_over) = over.next().flatten() else {
            return step(x, before);
        };
        let blank = |tensor: Tensor<2>| {
            let is_over = is_over.clone().expand(tensor.dims());
            tensor.mask_fill(is_over, 0.0)
        };
        let (output, after) = step(blank(x), before.clone());
        let kept = after.parts().iter().zip(before.parts());
        let kept = kept.map(|(after, before)| {
            let is_over = is_over.clone().expand(after.dims());
            after.clone().mask_where(is_over, before.clone())
        });
        let kept = kept.collect();
        (blank(output), after.with_parts(kept))
    })
}

/// Which rows have ended before step `t`, `[B, 1]`, if there are any.
fn over(lengths: &[usize], t: usize, device: &Device) -> Option<Tensor<2, Bool>> {
    let flags: Vec<bool> = lengths.iter().map(|&length| t >= length).collect();
    let shape = [flags.len(), 1];
    flags
        .contains(&true)
        .then(|| Tensor::from_data(TensorData::new(flags, shape), device))
}

/// # Panics
///
/// Panics unless there is a length for each row, from 1 to the steps of the sequence.
pub(crate) fn assert_lengths(lengths: &[usize], steps: usize, batch_size: usize) {
    assert!(
        lengths.len() == batch_size,
        "there are {} lengths for {batch_size} rows: each row has one",
        lengths.len()
    );
    for (row, &length) in lengths.iter().enumerate() {
        assert!(
            (1..=steps).contains(&length),
            "the length of row {row} is {length}: must be from 1 to {steps}, the steps of the input"
        );
    }
}

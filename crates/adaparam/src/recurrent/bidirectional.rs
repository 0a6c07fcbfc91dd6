use burn::module::{Module, ModuleDisplay};
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::contract::Recurrent;
use super::masks::Masks;
use super::sequence::assert_lengths;
use super::state::State;

/// Two stacks of any kind over one sequence: one reads it from its beginning, the other from its end.
///
/// For PyTorch's bidirectional layers, where each layer reads both directions of the one below, chain wrappers of single
/// layers.
///
/// ```
/// use adaparam::recurrent::{Bidirectional, LstmConfig};
/// use burn::tensor::{Device, Tensor};
///
/// let device = Device::flex();
/// let config = LstmConfig::new(8, 16);
/// let lstm = Bidirectional::new(config.init(&device), config.init(&device));
/// // Three sentences, of 5, 2 and 4 words.
/// let sentences = Tensor::<3>::ones([3, 5, 8], &device); // [B, T, I]
/// let output = lstm.forward_ragged(sentences, &[5, 2, 4]);
/// assert_eq!(output.output.dims(), [3, 5, 32]);
/// ```
#[derive(Module, Debug)]
pub struct Bidirectional<R: Recurrent + Module + ModuleDisplay> {
    /// Reads from the beginning.
    pub onward: R,
    /// Reads from the end.
    pub backward: R,
}

/// What a [`Bidirectional`] stack gives.
#[derive(Debug, Clone)]
pub struct BothDirections {
    /// Both outputs side by side, at the steps of the input: `[B, T, 2 O]`, or `[T, B, 2 O]` if the stacks take time first.
    pub output: Tensor<3>,
    /// The state after a row's last step.
    pub onward: State,
    /// The state after a row's first step, the last that this direction reads.
    pub backward: State,
}

impl<R: Recurrent + Module + ModuleDisplay> Bidirectional<R> {
    /// The two stacks as one.
    ///
    /// # Panics
    ///
    /// Panics if they read inputs of different sizes, or one takes the batch first and the other time.
    pub fn new(onward: R, backward: R) -> Self {
        let (ahead, back) = (onward.d_input(), backward.d_input());
        assert!(
            ahead == back,
            "Bidirectional: both directions read the same input, got d_input = {ahead} and {back}"
        );
        let (ahead, back) = (onward.batch_first(), backward.batch_first());
        assert!(
            ahead == back,
            "Bidirectional: both directions read the same input, got batch_first = {ahead} and {back}"
        );
        Self { onward, backward }
    }

    /// Both unrolls over sequences of one length.
    ///
    /// # Shapes
    ///
    /// - `input`: `[B, T, I]`, or `[T, B, I]` if the stacks take time first
    pub fn forward(&self, input: Tensor<3>) -> BothDirections {
        let [steps, batch_size] = self.sizes(&input);
        self.forward_ragged(input, &vec![steps; batch_size])
    }

    /// Both unrolls over sequences of different lengths, as [`Recurrent::forward_ragged`]; each row is read from its own
    /// end.
    ///
    /// # Shapes
    ///
    /// - `input`: as of [`forward`](Self::forward)
    pub fn forward_ragged(&self, input: Tensor<3>, lengths: &[usize]) -> BothDirections {
        self.forward_masked(input, lengths, None, None)
    }

    /// [`forward_ragged`](Self::forward_ragged) with dropout masks for each direction.
    pub fn forward_masked(
        &self,
        input: Tensor<3>,
        lengths: &[usize],
        onward: Option<&Masks>,
        backward: Option<&Masks>,
    ) -> BothDirections {
        let [steps, batch_size] = self.sizes(&input);
        assert_lengths(lengths, steps, batch_size);
        let time_axis = self.time_axis();
        let turned = reversed(input.clone(), time_axis, lengths);
        let (ahead, end) = self.onward.forward_ragged(input, lengths, None, onward);
        let (back, start) = self
            .backward
            .forward_ragged(turned, lengths, None, backward);
        BothDirections {
            output: Tensor::cat(vec![ahead, reversed(back, time_axis, lengths)], 2),
            onward: end,
            backward: start,
        }
    }

    fn time_axis(&self) -> usize {
        usize::from(self.onward.batch_first())
    }

    /// The steps and the rows of a sequence.
    fn sizes(&self, sequence: &Tensor<3>) -> [usize; 2] {
        let (dims, time_axis) = (sequence.dims(), self.time_axis());
        [dims[time_axis], dims[1 - time_axis]]
    }
}

/// Every row from its end to its beginning; what lies behind the end stays where it is.
pub(super) fn reversed(sequence: Tensor<3>, time_axis: usize, lengths: &[usize]) -> Tensor<3> {
    let dims = sequence.dims();
    let steps = dims[time_axis];
    if lengths.iter().all(|&length| length == steps) {
        return sequence.flip([time_axis]);
    }
    let places = places(steps, lengths, &sequence.device()); // [T, B, 1]
    let places = match time_axis {
        0 => places,
        _ => places.swap_dims(0, 1),
    };
    sequence.gather(time_axis, places.expand(dims))
}

/// For each step and row, the step that takes its place: `[T, B, 1]`.
fn places(steps: usize, lengths: &[usize], device: &Device) -> Tensor<3, Int> {
    let mut places = Vec::with_capacity(steps * lengths.len());
    for t in 0..steps {
        let place = |&length: &usize| if t < length { length - 1 - t } else { t };
        places.extend(lengths.iter().map(place).map(|place| place as u32));
    }
    Tensor::from_data(TensorData::new(places, [steps, lengths.len(), 1]), device)
}

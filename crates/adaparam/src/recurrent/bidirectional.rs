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
/// let sentences = Tensor::<3>::ones([5, 3, 8], &device); // [T, B, I]
/// let output = lstm.forward_ragged(sentences, &[5, 2, 4]);
/// assert_eq!(output.output.dims(), [5, 3, 32]);
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
    /// Both outputs side by side, at the steps of the input: `[T, B, 2 O]`.
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
    /// Panics if they read inputs of different sizes.
    pub fn new(onward: R, backward: R) -> Self {
        let (ahead, back) = (onward.d_input(), backward.d_input());
        assert!(
            ahead == back,
            "Bidirectional: both directions read the same input, got d_input = {ahead} and {back}"
        );
        Self { onward, backward }
    }

    /// Both unrolls over sequences of one length.
    ///
    /// # Shapes
    ///
    /// - `input`: `[T, B, I]`, time first
    pub fn forward(&self, input: Tensor<3>) -> BothDirections {
        let [steps, batch_size, _] = input.dims();
        self.forward_ragged(input, &vec![steps; batch_size])
    }

    /// Both unrolls over sequences of different lengths, as [`Recurrent::forward_ragged`]; each row is read from its own
    /// end.
    ///
    /// # Shapes
    ///
    /// - `input`: `[T, B, I]`, time first
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
        let [steps, batch_size, _] = input.dims();
        assert_lengths(lengths, steps, batch_size);
        let turned = reversed(input.clone(), lengths);
        let (ahead, end) = self.onward.forward_ragged(input, lengths, None, onward);
        let (back, start) = self
            .backward
            .forward_ragged(turned, lengths, None, backward);
        BothDirections {
            output: Tensor::cat(vec![ahead, reversed(back, lengths)], 2),
            onward: end,
            backward: start,
        }
    }
}

/// Every row from its end to its beginning; what lies behind the end stays where it is.
fn reversed(sequence: Tensor<3>, lengths: &[usize]) -> Tensor<3> {
    let [steps, batch_size, width] = sequence.dims();
    if lengths.iter().all(|&length| length == steps) {
        return sequence.flip([0]);
    }
    let places = places(steps, lengths, &sequence.device());
    sequence.gather(0, places.expand([steps, batch_size, width]))
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

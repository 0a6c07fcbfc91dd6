use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::activation::{sigmoid, tanh};
use super::cell::{Cell, CellStep};
use super::contract::Recurrent;
use super::gates::{KEPT_BY_GATE, LstmLayerState, split};
use super::kind::RecurrentKind;
use super::masks::dropped;
use super::product::{biased, product};
use super::sizes::StackSizes;
use super::slot::Slot;
use super::stacked::{StackOutput, Stacked};
use crate::semi_orthogonal::semi_orthogonal;
use crate::settings::Kind;

/// How much an LSTM may write where it forgets little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputGate {
    /// As much as it likes, as a usual LSTM: `c = f ⊙ c + i ⊙ z`.
    Free,
    /// At most what it forgets: `c = f ⊙ c + min(1 − f, i) ⊙ z`.
    Capped,
    /// Just what it forgets: `c = f ⊙ c + (1 − f) ⊙ z`. There is no gate `i`, and a quarter of the weights less.
    Tied,
}

crate::settings! {
    /// The keys of `kind = "melis-lstm"`.
    pub struct MelisLstmSettings {
        /// the input gate: capped (by what is forgotten), tied (to it) or free
        pub input_gate: InputGate = InputGate::Capped;
        /// what the layers give together: sum (of all, projected where sizes differ) or last
        pub output: StackOutput = StackOutput::Sum;
        /// whether the layers have a bias
        pub bias: bool = true;
    }
}

impl Kind for MelisLstmSettings {
    const KIND: &'static str = "melis-lstm";
    const ABOUT: &'static str =
        "the LSTM with a capped or tied input gate and skips to the output (Melis et al., 2017)";
}

impl RecurrentKind for MelisLstmSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl MelisLstmSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> MelisLstm {
        let mut l = 0;
        Stacked::with_output(self.output, sizes, device, |d_input, d_hidden| {
            l += 1;
            self.cell(d_input, d_hidden, l > 1, device)
        })
    }

    /// One layer, its weights semi-orthogonal, its bias zero but for the forget gate's, which is 1. `reads_a_layer` says
    /// that its input is another layer's output, which has a site of dropout.
    pub fn cell(
        &self,
        d_input: usize,
        d_hidden: usize,
        reads_a_layer: bool,
        device: &Device,
    ) -> MelisLstmCell {
        let gates = self.input_gate.gates();
        let forget = gates - 3;
        let bias = || {
            let zeros = Tensor::zeros([gates * d_hidden], device);
            let of_forget_gate = forget * d_hidden..(forget + 1) * d_hidden;
            Param::from_tensor(zeros.slice_fill(of_forget_gate, 1.0))
        };
        MelisLstmCell {
            weight_input: semi_orthogonal([d_input, gates * d_hidden], device),
            weight_hidden: semi_orthogonal([d_hidden, gates * d_hidden], device),
            bias: self.bias.then(bias),
            input_gate: self.input_gate,
            reads_a_layer,
        }
    }
}

impl InputGate {
    /// The gates: `i, f, z, o`, or `f, z, o`.
    pub(super) fn gates(self) -> usize {
        match self {
            Self::Free | Self::Capped => 4,
            Self::Tied => 3,
        }
    }
}

/// A stack of such layers that carries its state. Should be created with [`MelisLstmSettings`].
pub type MelisLstm = Stacked<MelisLstmCell>;

/// One layer of Melis' LSTM, for one step:
///
/// ```text
/// u(s) = W(s) x + U(s) h + b(s),    s in {i, f, z, o}
/// c    = f ⊙ c + min(1 − f, i) ⊙ z,    or see [`InputGate`]
/// h    = o ⊙ tanh(c)
/// ```
///
/// Each layer reads the hidden state of the one below, and the stack gives the sum of them all. Dropout is on the hidden
/// state where this layer reads it (`hidden`), and on what it reads of the layer below (`inter_layer`).
#[derive(Module, Debug)]
pub struct MelisLstmCell {
    /// `W` of all gates, `[I, 4H]`, in the order `i, f, z, o`; `[I, 3H]` without `i` if it is tied.
    pub weight_input: Param<Tensor<2>>,
    /// `U` of all gates, `[H, 4H]` or `[H, 3H]`.
    pub weight_hidden: Param<Tensor<2>>,
    /// `b` of all gates, `[4H]` or `[3H]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    pub(super) input_gate: InputGate,
    #[module(skip)]
    pub(super) reads_a_layer: bool,
}

impl MelisLstmCell {
    /// One step from an input and a state that dropout has been at.
    pub(super) fn read(&self, x: Tensor<2>, h: Tensor<2>, c: Tensor<2>) -> LstmLayerState {
        let u = product(x, &self.weight_input) + product(h, &self.weight_hidden);
        let u = biased(u, self.bias.as_ref()); // [B, 4H], or [B, 3H]
        let (i, f, z, o) = match self.input_gate {
            InputGate::Tied => {
                let [f, z, o] = split(u); // [B, H] each
                let f = sigmoid(f);
                (without(&f), f, z, o)
            }
            InputGate::Free => {
                let [i, f, z, o] = split(u);
                (sigmoid(i), sigmoid(f), z, o)
            }
            InputGate::Capped => {
                let [i, f, z, o] = split(u);
                let f = sigmoid(f);
                (sigmoid(i).min_pair(without(&f)), f, z, o)
            }
        };
        let c = f * c + i * tanh(z);
        let h = sigmoid(o) * tanh(c.clone());
        LstmLayerState { hidden: h, cell: c }
    }

    /// Input and hidden state with their masks.
    pub(super) fn dropped(
        &self,
        x: Tensor<2>,
        h: Tensor<2>,
        masks: &[Option<Tensor<2>>],
    ) -> [Tensor<2>; 2] {
        let of_input = self.reads_a_layer.then(|| masks[1].as_ref()).flatten();
        [dropped(x, of_input), dropped(h, masks[0].as_ref())]
    }
}

/// `1 − f`.
fn without(f: &Tensor<2>) -> Tensor<2> {
    f.clone().neg() + 1.0
}

impl Cell for MelisLstmCell {
    fn d_input(&self) -> usize {
        self.weight_input.lazy_shape()[0]
    }

    fn states(&self) -> Vec<Slot> {
        let d_hidden = self.weight_hidden.lazy_shape()[0];
        vec![Slot::new("hidden", d_hidden), Slot::new("cell", d_hidden)]
    }

    fn sites(&self) -> Vec<Slot> {
        let of_input = || Slot::new("inter_layer", self.d_input());
        let hidden = self.states().into_iter().take(1);
        hidden.chain(self.reads_a_layer.then(of_input)).collect()
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [h, c] = state.try_into().expect("an LSTM has two states");
        let [x, h] = self.dropped(x, h, masks);
        let after = self.read(x, h, c);
        CellStep {
            output: after.hidden.clone(),
            state: vec![after.hidden, after.cell],
        }
    }

    /// What the gates of an LSTM keep; a cap keeps the gate below it too, and a byte a unit of which is the smaller.
    fn numbers_kept(&self) -> usize {
        let d_hidden = self.weight_hidden.lazy_shape()[0];
        let of_gates = KEPT_BY_GATE * d_hidden;
        match self.input_gate {
            InputGate::Free | InputGate::Tied => of_gates,
            InputGate::Capped => of_gates + d_hidden + d_hidden.div_ceil(size_of::<f32>()),
        }
    }

    fn name() -> &'static str {
        "MelisLstm"
    }

    #[cfg(feature = "kernels")]
    fn fused(layers: &[Self]) -> Option<Box<dyn adaparam_kernels::stack::Stack>> {
        Some(Box::new(super::fused::melis_lstm::stack(layers)?))
    }

    #[cfg(feature = "kernels")]
    fn fused_sum(layers: &[Self]) -> Option<Box<dyn adaparam_kernels::stack::Stack>> {
        Some(Box::new(super::fused::melis_lstm::summed(layers)?))
    }
}

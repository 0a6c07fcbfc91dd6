use burn::module::Module;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::activation::{sigmoid, tanh};
use super::cell::{Cell, CellStep};
use super::contract::Recurrent;
use super::gates::{KEPT_BY_GATE, LstmLayerState, gate, split_gates};
use super::kind::RecurrentKind;
use super::lstm_cell::{LstmBiases, LstmCell, LstmCellConfig};
use super::multiplicative::MultiplicativeState;
use super::sizes::StackSizes;
use super::slot::Slot;
use super::stacked::Stacked;
use crate::settings::Kind;

/// Where a multiplicative LSTM is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MlstmForm {
    /// As an LSTM: `c = f ⊙ c + i ⊙ tanh(z)`, `h = o ⊙ tanh(c)`, as later implementations have it.
    Standard,
    /// With a linear candidate: `c = f ⊙ c + i ⊙ z`, `h = tanh(c ⊙ o)`, as Krause et al. first had it.
    Krause,
}

crate::settings! {
    /// The keys of `kind = "mlstm"`.
    pub struct MlstmSettings {
        /// where it is bounded: standard (as an LSTM) or krause (linear candidate)
        pub form: MlstmForm = MlstmForm::Standard;
        /// whether the layers have a bias
        pub bias: bool = true;
    }
}

impl Kind for MlstmSettings {
    const KIND: &'static str = "mlstm";
    const ABOUT: &'static str =
        "the multiplicative LSTM, in both forms of its candidate (Krause et al., 2016)";
}

impl RecurrentKind for MlstmSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl MlstmSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> Mlstm {
        Stacked::new(sizes, |d_input, d_hidden| {
            self.cell(d_input, d_hidden, device)
        })
    }

    /// One layer, its weights semi-orthogonal, its bias zero but for the forget gate's, which is 1.
    pub fn cell(&self, d_input: usize, d_hidden: usize, device: &Device) -> MlstmCell {
        let main = LstmCellConfig::new(d_input, d_hidden).with_biases(if self.bias {
            LstmBiases::One
        } else {
            LstmBiases::None
        });
        MlstmCell {
            multiplicative: MultiplicativeState::new(d_input, d_hidden, device),
            main: main.init(device),
            form: self.form,
        }
    }
}

/// A stack of multiplicative LSTM layers that carries its state. Should be created with [`MlstmSettings`].
pub type Mlstm = Stacked<MlstmCell>;

/// One layer of a multiplicative LSTM, for one step:
///
/// ```text
/// m    = (W_mx x) ⊙ (W_mh h)
/// u(s) = W(s) x + U(s) m + b(s),    s in {i, f, z, o}
/// c, h from u, see [`MlstmForm`]
/// ```
#[derive(Module, Debug)]
pub struct MlstmCell {
    /// Gives `m`.
    pub multiplicative: MultiplicativeState,
    /// `W`, `U` and `b`.
    pub main: LstmCell,
    #[module(skip)]
    form: MlstmForm,
}

impl Cell for MlstmCell {
    fn d_input(&self) -> usize {
        self.main.d_input()
    }

    fn states(&self) -> Vec<Slot> {
        self.main.states()
    }

    fn sites(&self) -> Vec<Slot> {
        self.main.sites()
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [h, c] = state.try_into().expect("an LSTM has two states");
        let m = self.multiplicative.forward(x.clone(), h);
        let u = self.main.pre_activations(x, m); // [B, 4H]
        let after = match self.form {
            MlstmForm::Standard => gate(u, c),
            MlstmForm::Krause => linear_gate(u, c),
        };
        let output = after.hidden.clone();
        let after = after.dropped(masks[0].as_ref());
        CellStep {
            output,
            state: vec![after.hidden, after.cell],
        }
    }

    /// What gives `m` keeps, and the gates; those of Krause read `z` as it is.
    fn numbers_kept(&self) -> usize {
        let gates = match self.form {
            MlstmForm::Standard => KEPT_BY_GATE,
            MlstmForm::Krause => KEPT_BY_GATE - 1,
        };
        self.multiplicative.numbers_kept() + gates * self.main.d_hidden()
    }

    fn name() -> &'static str {
        "Mlstm"
    }
}

/// The gates of [`MlstmForm::Krause`].
fn linear_gate(u: Tensor<2>, cell: Tensor<2>) -> LstmLayerState {
    let [u_i, u_f, z, u_o] = split_gates(u); // [B, H] each
    let c = sigmoid(u_f) * cell + sigmoid(u_i) * z;
    let h = tanh(c.clone() * sigmoid(u_o));
    LstmLayerState { hidden: h, cell: c }
}

use burn::serde::{Deserialize, Serialize};
use burn::tensor::Tensor;

use super::activation::{sigmoid, tanh};
use super::gates::{KEPT_BY_GATE, LstmLayerState, gate, split};
use super::masks::dropped;

/// What a layer makes of its products with the input and with the hidden state: whatever is linear maps and gates can be
/// adapted by a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde", rename_all = "snake_case")]
pub enum Gating {
    /// An LSTM: the gates `i, f, z, o` and a memory cell.
    Lstm,
    /// A GRU: the gates `r, u` and the candidate `n = tanh(x(n) + r ⊙ h(n))`, where `x(n)` and `h(n)` are the products.
    Gru,
    /// A plain recurrent layer: the tanh of the sum.
    Rnn,
}

/// What an adaptive layer carries from step to step, besides its policy.
#[derive(Debug, Clone)]
pub struct MainState {
    /// The hidden state `h`, `[B, H]`, after dropout.
    pub hidden: Tensor<2>,
    /// The memory cell `c` of an LSTM, `[B, H]`; of a GRU its hidden state before dropout, where that is another.
    pub cell: Option<Tensor<2>>,
}

impl MainState {
    /// The same state with `mask`, if any, on the hidden part.
    pub(crate) fn dropped(self, mask: Option<&Tensor<2>>) -> Self {
        Self {
            hidden: dropped(self.hidden, mask),
            cell: self.cell,
        }
    }
}

impl Gating {
    /// How many products of the width of the hidden state it reads, side by side.
    pub(crate) fn parts(self) -> usize {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
            Self::Rnn => 1,
        }
    }

    /// Tensors of the width of the hidden state that a step keeps; those of a GRU as [`GruCell`](super::GruCell) has them.
    pub(crate) fn kept(self) -> usize {
        match self {
            Self::Lstm => KEPT_BY_GATE,
            Self::Gru => 6,
            Self::Rnn => 1,
        }
    }

    /// Whether it has a memory cell.
    pub(crate) fn has_memory(self) -> bool {
        self == Self::Lstm
    }

    /// Whether the hidden state is carried on as it is, by a gate: with dropout, kept units would grow with every step, so that
    /// it is dropped where it is read alone.
    pub(crate) fn carries_hidden_on(self) -> bool {
        self == Self::Gru
    }

    /// The name of a stack of such layers in print.
    pub(crate) fn stack_name(self) -> &'static str {
        match self {
            Self::Lstm => "AdaptiveLstm",
            Self::Gru => "AdaptiveGru",
            Self::Rnn => "AdaptiveRnn",
        }
    }

    /// One step from the products and the bias.
    ///
    /// # Shapes
    ///
    /// - `from_input`, `from_hidden`: `[B, P H]`
    /// - `bias`: the same, or one row for all
    pub(crate) fn step(
        self,
        from_input: Tensor<2>,
        from_hidden: Tensor<2>,
        bias: Option<Tensor<2>>,
        state: MainState,
    ) -> MainState {
        let biased = |u: Tensor<2>| match bias {
            Some(bias) => u + bias,
            None => u,
        };
        match self {
            Self::Lstm => {
                let cell = state.cell.expect("the state of an LSTM has a memory cell");
                let LstmLayerState { hidden, cell } = gate(biased(from_input + from_hidden), cell);
                MainState {
                    hidden,
                    cell: Some(cell),
                }
            }
            Self::Gru => {
                let [x_r, x_u, x_n] = split(biased(from_input)); // [B, H] each
                let [h_r, h_u, h_n] = split(from_hidden);
                let (r, u) = (sigmoid(x_r + h_r), sigmoid(x_u + h_u));
                let n = tanh(x_n + r * h_n);
                let carried = state.cell.unwrap_or(state.hidden);
                MainState {
                    hidden: u * (carried - n.clone()) + n,
                    cell: None,
                }
            }
            Self::Rnn => MainState {
                hidden: tanh(biased(from_input + from_hidden)),
                cell: None,
            },
        }
    }
}

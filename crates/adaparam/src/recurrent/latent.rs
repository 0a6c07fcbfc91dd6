use burn::module::Module;
use burn::nn::{Initializer, Linear};
use burn::serde::{Deserialize, Serialize};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

use super::cell::Cell;
use super::gates::LstmLayerState;
use super::lstm_cell::{LstmBiases, LstmCell, LstmCellConfig, RecurrentInitializer};
use super::masks::dropped;
use crate::semi_orthogonal::semi_orthogonal;

/// The model of the policy's latent variable `z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde", rename_all = "snake_case")]
pub enum PolicyModel {
    /// A feed-forward layer, `z_t = ReLU(W v_t + b)`. Paper eq. (6).
    Static,
    /// An LSTM, `z_t = m(v_t, z_{t-1})`. Paper eq. (7).
    Recurrent,
}

/// What the policy of layer `l` looks at: its summary `v` of the state of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde", rename_all = "snake_case")]
pub enum Summary {
    /// Its own layer: `v = [h(l-1)_t; h(l)_{t-1}]`.
    Own,
    /// Also the latent of the layer below, so that the policies together are a blend of LSTM and Recurrent Highway
    /// Network: `v = [h(l-1)_t; h(l)_{t-1}; z(l-1)_t]`, where `z(0)_t = z(L)_{t-1}`. Paper eq. (9).
    ///
    /// A stack of one layer has no other latent, and its summary is [`Own`](Self::Own).
    Hybrid,
}

/// The network that gives the latent variable `z`, of size `A`.
#[derive(Module, Debug)]
pub enum PolicyLatent {
    /// Paper eq. (6).
    Static(Linear),
    /// Paper eq. (7).
    Recurrent(LstmCell),
}

/// What the policy of one adaptive layer carries from step to step.
#[derive(Debug, Clone)]
pub struct LatentState {
    /// The latent `z`, `[B, A]`, after dropout.
    pub hidden: Tensor<2>,
    /// The memory cell of a recurrent policy, `[B, A]`; a static policy has none.
    pub cell: Option<Tensor<2>>,
}

impl LatentState {
    /// The same state with `mask`, if any, on the latent.
    pub(crate) fn dropped(self, mask: Option<&Tensor<2>>) -> Self {
        Self {
            hidden: dropped(self.hidden, mask),
            cell: self.cell,
        }
    }
}

impl PolicyLatent {
    pub(crate) fn new(
        model: PolicyModel,
        d_summary: usize,
        d_latent: usize,
        initializer: RecurrentInitializer,
        device: &Device,
    ) -> Self {
        match model {
            PolicyModel::Static => {
                Self::Static(static_latent(d_summary, d_latent, initializer, device))
            }
            PolicyModel::Recurrent => Self::Recurrent(
                LstmCellConfig::new(d_summary, d_latent)
                    .with_biases(LstmBiases::Two)
                    .with_initializer(initializer)
                    .init(device),
            ),
        }
    }

    /// One step: the latent for the summary `v`.
    ///
    /// # Shapes
    ///
    /// - `v`: `[B, S]`, with `S` the size of the [`Summary`]
    /// - `state` and result: `[B, A]` each
    ///
    /// # Panics
    ///
    /// Panics if a recurrent policy is given a state without a memory cell.
    pub fn step(&self, v: Tensor<2>, state: LatentState) -> LatentState {
        match self {
            Self::Static(linear) => LatentState {
                hidden: relu(linear.forward(v)),
                cell: None,
            },
            Self::Recurrent(lstm) => {
                let before = LstmLayerState {
                    hidden: state.hidden,
                    cell: state
                        .cell
                        .expect("the state of a recurrent policy has a memory cell"),
                };
                let after = lstm.step(v, before);
                LatentState {
                    hidden: after.hidden,
                    cell: Some(after.cell),
                }
            }
        }
    }

    /// Whether it has a past.
    pub fn is_recurrent(&self) -> bool {
        matches!(self, Self::Recurrent(_))
    }

    /// What a step keeps for each row besides its summary: of a static policy `z` and what its rectifier reads.
    pub(super) fn numbers_kept(&self) -> usize {
        match self {
            Self::Static(_) => 2 * self.d_latent(),
            Self::Recurrent(lstm) => lstm.numbers_kept(),
        }
    }

    /// The size `A` of the latent.
    pub fn d_latent(&self) -> usize {
        match self {
            Self::Static(linear) => linear.weight.lazy_shape()[1],
            Self::Recurrent(lstm) => lstm.weight_hidden.lazy_shape()[0],
        }
    }
}

/// The layer of eq. (6).
fn static_latent(
    d_summary: usize,
    d_latent: usize,
    initializer: RecurrentInitializer,
    device: &Device,
) -> Linear {
    let bound = 1.0 / (d_summary as f64).sqrt();
    let uniform = Initializer::Uniform {
        min: -bound,
        max: bound,
    };
    match initializer {
        RecurrentInitializer::SemiOrthogonal => Linear {
            weight: semi_orthogonal([d_summary, d_latent], device),
            bias: Some(Initializer::Zeros.init([d_latent], device)),
        },
        RecurrentInitializer::Uniform => Linear {
            weight: uniform.init([d_summary, d_latent], device),
            bias: Some(uniform.init([d_latent], device)),
        },
    }
}

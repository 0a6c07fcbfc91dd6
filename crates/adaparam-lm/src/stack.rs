//! The recurrent layers of a language model: plain or adaptive.

use adaparam::recurrent::{
    AdaptiveLstm, AdaptiveLstmConfig, AdaptiveLstmMasks, AdaptiveLstmState, Execution, Lstm,
    LstmConfig, LstmMasks, LstmState,
};
use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::config::{LayerKind, ModelSpec};

/// A stack of recurrent layers.
#[derive(Module, Debug)]
pub enum Stack {
    /// The paper's baseline.
    Lstm(Lstm),
    /// The paper's model.
    Adaptive(AdaptiveLstm),
}

/// What a [`Stack`] carries from window to window.
#[derive(Debug, Clone)]
pub enum StackState {
    /// Of an LSTM.
    Lstm(LstmState),
    /// Of an adaptive LSTM.
    Adaptive(AdaptiveLstmState),
}

/// For each layer, the lowest first, the masks of one window, or none where nothing is dropped.
#[derive(Debug, Clone)]
pub struct StackMasks {
    /// Of the latents, `[B, A]`; not used by an LSTM.
    pub latent: Vec<Option<Tensor<2>>>,
    /// Of the hidden states, `[B, H]`.
    pub hidden: Vec<Option<Tensor<2>>>,
}

impl Stack {
    /// Initialises the layers of `spec`. As in Burn, weights are drawn on first use.
    ///
    /// [`forward`](Self::forward) is the readable version; `Learner` and `Reader` drive the kernels themselves.
    pub fn new(spec: &ModelSpec, device: &Device) -> Self {
        match spec.kind {
            LayerKind::Lstm => Self::Lstm(
                LstmConfig::new(spec.embedding, spec.hidden)
                    .with_d_output(Some(spec.embedding))
                    .with_n_layers(spec.layers)
                    .with_bias(spec.bias)
                    .with_execution(Execution::Readable)
                    .init(device),
            ),
            LayerKind::AdaptiveLstm => Self::Adaptive(
                AdaptiveLstmConfig::new(spec.embedding, spec.hidden, spec.latent)
                    .with_d_output(Some(spec.embedding))
                    .with_n_layers(spec.layers)
                    .with_bias(spec.bias)
                    .with_policy(spec.policy)
                    .with_summary(spec.summary)
                    .with_adaptation(spec.adaptation)
                    .with_tying(spec.tying)
                    .with_layout(spec.layout)
                    .with_execution(Execution::Readable)
                    .init(device),
            ),
        }
    }

    /// The unroll over a window.
    ///
    /// # Shapes
    ///
    /// - `input`: `[T, B, E]`
    /// - output: `[T, B, E]`
    ///
    /// # Panics
    ///
    /// Panics if `state` is of another kind of stack.
    pub fn forward(
        &self,
        input: Tensor<3>,
        state: StackState,
        masks: Option<&StackMasks>,
    ) -> (Tensor<3>, StackState) {
        match (self, state) {
            (Self::Lstm(lstm), StackState::Lstm(state)) => {
                let masks = masks.map(|masks| LstmMasks {
                    hidden: masks.hidden.clone(),
                });
                let (output, state) = lstm.forward(input, Some(state), masks.as_ref());
                (output, StackState::Lstm(state))
            }
            (Self::Adaptive(lstm), StackState::Adaptive(state)) => {
                let masks = masks.map(|masks| AdaptiveLstmMasks {
                    latent: masks.latent.clone(),
                    hidden: masks.hidden.clone(),
                });
                let (output, state) = lstm.forward(input, Some(state), masks.as_ref());
                (output, StackState::Adaptive(state))
            }
            _ => panic!("the state is of another kind of stack"),
        }
    }

    /// The state before the first step: zeros.
    pub fn zero_state(&self, batch: usize, device: &Device) -> StackState {
        match self {
            Self::Lstm(lstm) => StackState::Lstm(lstm.zero_state(batch, device)),
            Self::Adaptive(lstm) => StackState::Adaptive(lstm.zero_state(batch, device)),
        }
    }
}

impl StackState {
    /// Replaces every tensor by `f(name, tensor)`; names are paths such as `layers.0.main.cell`.
    #[must_use]
    pub fn map_named(self, f: impl FnMut(&str, Tensor<2>) -> Tensor<2>) -> Self {
        match self {
            Self::Lstm(state) => Self::Lstm(state.map_named(f)),
            Self::Adaptive(state) => Self::Adaptive(state.map_named(f)),
        }
    }

    /// The same numbers without their history.
    #[must_use]
    pub fn detach(self) -> Self {
        self.map_named(|_, tensor| tensor.detach())
    }
}

//! Recurrent layers that adapt their weights at every step: the adaptive LSTM and the LSTM it is compared with.
//!
//! Both are [`Recurrent`]: stacks with a [`State`] and [`Masks`] of named tensors, over batches of sequences of one length
//! or of many, in one direction or, by [`Bidirectional`], in both. So is a [`Stacked`] [`Cell`] of your own.
//!
//! [`AdaptiveLstm`] has a choice for each part of the paper's section 3, and every row of its ablation, Table 4, is
//! a configuration:
//!
//! | Table 4 | [`policy`](AdaptiveLstmConfig::policy) | [`summary`](AdaptiveLstmConfig::summary) | [`adaptation`](AdaptiveLstmConfig::adaptation) |
//! |---|---|---|---|
//! | feed-forward, output | `Static` | `Own` | `Output` |
//! | LSTM, output: the HyperNetwork | `Recurrent` | `Own` | `Output` |
//! | LSTM-RHN, output | `Recurrent` | `Hybrid` | `Output` |
//! | feed-forward, IO | `Static` | `Own` | `Io` |
//! | LSTM, IO | `Recurrent` | `Own` | `Io` |
//! | LSTM-RHN, IO, the default | `Recurrent` | `Hybrid` | `Io` |
//!
//! Its first row is [`Lstm`].
//!
//! Letters in shapes: `B` batch, `T` time, `I` input, `H` hidden state, `A` latent, `P` policy vector. Sequences are
//! `[B, T, I]`, as in Burn; `with_batch_first(false)` makes it `[T, B, I]`.
//!
//! # Training in windows
//!
//! [`Recurrent::forward`] draws the masks of dropout by itself. Whoever wants to draw them, gives them instead of the last
//! `None` ([`Recurrent::draw_masks`]).
//!
//! ```
//! use adaparam::recurrent::{AdaptiveLstmConfig, Recurrent};
//! use burn::tensor::{Device, Tensor};
//!
//! let device = Device::flex();
//! let lstm = AdaptiveLstmConfig::new(8, 16, 4)
//!     .with_n_layers(2)
//!     .with_dropout(0.25) // while training, on a device with autodiff; nothing after `valid()`
//!     .with_latent_dropout(0.1)
//!     .init(&device);
//!
//! let mut state = lstm.zero_state(3, &device);
//! for _window in 0..2 {
//!     let input = Tensor::<3>::ones([3, 5, 8], &device); // [B, T, I]
//!     let (output, after) = lstm.forward(input, Some(state), None);
//!     assert_eq!(output.dims(), [3, 5, 16]);
//!     state = after.detach(); // gradients stop here, numbers go on
//! }
//! ```
//!
//! # Sequences of different lengths
//!
//! ```
//! use adaparam::recurrent::{LstmConfig, Recurrent};
//! use burn::tensor::{Device, Tensor};
//!
//! let device = Device::flex();
//! let lstm = LstmConfig::new(8, 16).init(&device);
//! let sentences = Tensor::<3>::ones([3, 5, 8], &device); // [B, T, I], of 5, 2 and 4 words
//! let (output, state) = lstm.forward_ragged(sentences, &[5, 2, 4], None, None);
//! let behind: f32 = output.narrow(0, 1, 1).narrow(1, 2, 3).abs().max().into_scalar();
//! assert_eq!(behind, 0.0);
//! assert_eq!(state["layers.0.hidden"].dims(), [3, 16]); // each row's after its own last word
//! ```
//!
//! # Fused and readable execution
//!
//! On the CPU backend, `forward` of both stacks is one operation for the whole window, forward and backward through
//! time, written for the processor's vector instructions. Nobody has to ask for it; [`Execution::Fused`] says when it
//! is possible and what happens elsewhere. To turn it off, ask for [`Execution::Readable`], in the configuration or
//! later:
//!
//! ```
//! use adaparam::recurrent::{Execution, LstmConfig, Recurrent};
//! use burn::tensor::{Device, Tensor};
//!
//! let device = Device::flex();
//! let fused = LstmConfig::new(8, 16).init(&device);
//! let readable = fused.clone().with_execution(Execution::Readable);
//!
//! let input = Tensor::<3>::ones([3, 5, 8], &device);
//! assert!(!readable.runs_fused(&input, None, None));
//! let (one, _) = fused.forward(input.clone(), None, None);
//! let (other, _) = readable.forward(input, None, None);
//! let difference: f32 = (one - other).abs().max().into_scalar();
//! assert!(difference < 1e-6);
//! ```
//!
//! A single `step`, and a `forward` that also gives the policies, are always readable.
//!
//! # A cell of your own
//!
//! [`Cell`] is one step of one layer: its states, its sites of dropout, and its equation. [`Stacked`] makes the rest of it.
//! `examples/a_cell_of_your_own.rs` has one from its equation to a trained stack.

mod activation;
mod adaptive_cell;
mod adaptive_gru;
mod adaptive_lstm;
mod adaptive_rnn;
mod between;
mod bidirectional;
mod cell;
mod contract;
mod dropout;
mod execution;
#[cfg(feature = "kernels")]
mod fused;
mod gates;
mod gating;
mod gru;
mod hyper_lstm;
mod kind;
mod latent;
mod lstm;
mod lstm_cell;
mod masks;
mod melis_lstm;
mod mi_lstm;
mod mi_rnn;
mod min_gru;
mod min_lstm;
mod mlstm;
mod mogrifier;
mod mrnn;
mod multiplicative;
mod multiplicative_integration;
mod nas;
mod policy;
mod product;
mod projected_lstm;
mod reversed;
mod rhn;
mod rnn;
mod sequence;
mod sizes;
mod slot;
mod slstm;
mod stacked;
mod state;
mod sva_lstm;

pub use adaptive_cell::{AdaptiveCell, AdaptiveLstmCell};
pub use adaptive_gru::AdaptiveGruSettings;
pub use adaptive_lstm::{
    AdaptiveConfig, AdaptiveLstm, AdaptiveLstmConfig, AdaptiveLstmSettings, AdaptiveLstmStep,
    AdaptiveStack,
};
pub use adaptive_rnn::AdaptiveRnnSettings;
pub use bidirectional::{Bidirectional, BothDirections};
pub use cell::{Cell, CellStep};
pub use contract::Recurrent;
pub use dropout::SiteDropout;
pub use execution::Execution;
#[cfg(feature = "kernels")]
pub(crate) use fused::engine_here;
#[cfg(feature = "kernels")]
pub use fused::{KeptWeights, Workspace, engine, on_engine, one_window, set_threads};
pub use gates::LstmLayerState;
pub use gating::{Gating, MainState};
pub use gru::{Gru, GruCell, GruForm, GruSettings};
pub use hyper_lstm::{
    HyperCell, HyperLstm, HyperLstmCell, HyperLstmSettings, Normalisation, Norms, Scales,
};
pub use kind::RecurrentKind;
pub use latent::{LatentState, PolicyLatent, PolicyModel, Summary};
pub use lstm::{Lstm, LstmConfig, LstmSettings};
pub use lstm_cell::{LstmBiases, LstmCell, LstmCellConfig, LstmDropout, RecurrentInitializer};
pub use masks::{Masks, dropped, variational_mask};
pub use melis_lstm::{InputGate, MelisLstm, MelisLstmCell, MelisLstmSettings};
pub use mi_lstm::{MiLstm, MiLstmCell, MiLstmSettings};
pub use mi_rnn::{MiRnn, MiRnnCell, MiRnnSettings};
pub use min_gru::{MinGru, MinGruCell, MinGruSettings, MinimalCandidate};
pub use min_lstm::{MinLstm, MinLstmCell, MinLstmSettings};
pub use mlstm::{Mlstm, MlstmCell, MlstmForm, MlstmSettings};
pub use mogrifier::{Mogrifier, MogrifierCell, MogrifierSettings, Round};
pub use mrnn::{Mrnn, MrnnCell, MrnnSettings};
pub use multiplicative::MultiplicativeState;
pub use multiplicative_integration::MultiplicativeIntegration;
pub use nas::{Nas, NasCell, NasSettings};
pub use policy::{InputTying, LstmAdaptation, PolicyLayout, PolicySplit, PolicyStart, SubPolicies};
pub use product::{product, product_of_columns};
pub use projected_lstm::{ProjectedLstm, ProjectedLstmCell, ProjectedLstmConfig};
pub use reversed::Reversed;
pub use rhn::{Rhn, RhnCell, RhnSettings};
pub use rnn::{Rnn, RnnCell, RnnSettings};
pub use sizes::StackSizes;
pub use slot::Slot;
pub use slstm::{ForgetGate, Slstm, SlstmCell, SlstmSettings};
pub use stacked::{StackOutput, Stacked};
pub use state::State;
pub use sva_lstm::{FactoredMap, SvaLstm, SvaLstmCell, SvaLstmSettings};

/// # Panics
///
/// Panics if `value`, which is `key` of a configuration, is 0.
fn assert_at_least_one(config: &str, key: &str, value: usize) {
    assert!(value > 0, "{config}: {key} = {value}: must be at least 1");
}

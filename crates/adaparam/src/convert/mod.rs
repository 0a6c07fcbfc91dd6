//! Recurrent layers of others as ours, and back: Burn's own, and the `state_dict` of PyTorch.
//!
//! | theirs | ours |
//! |---|---|
//! | Burn's `Lstm`, one after the other | [`Lstm`](crate::recurrent::Lstm): [`lstm_from_burn`], [`lstm_to_burn`] |
//! | Burn's `Lstm` with `reverse` | [`Reversed`](crate::recurrent::Reversed)`<Lstm>`: [`reversed_from_burn`], [`reversed_to_burn`] |
//! | Burn's `BiLstm` | [`Bidirectional`](crate::recurrent::Bidirectional)`<Lstm>`: [`bidirectional_from_burn`], [`bidirectional_to_burn`] |
//! | Burn's `Gru`, one after the other | [`Gru`](crate::recurrent::Gru): [`gru_from_burn`], [`gru_to_burn`] |
//! | Burn's `BiGru` | `Bidirectional<Gru>`: [`bidirectional_gru_from_burn`], [`bidirectional_gru_to_burn`] |
//! | PyTorch's `nn.LSTM` | [`Lstm`](crate::recurrent::Lstm): [`lstm_from_pytorch`], [`lstm_to_pytorch`] |
//! | the same with `bidirectional=True` | `Bidirectional<Lstm>` for each layer: [`bidirectional_from_pytorch`], [`bidirectional_to_pytorch`] |
//! | the same with `proj_size` | [`ProjectedLstm`](crate::recurrent::ProjectedLstm): [`projected_from_pytorch`], [`projected_to_pytorch`] |
//! | the same with both | `Bidirectional<ProjectedLstm>` for each layer: [`bidirectional_projected_from_pytorch`], [`bidirectional_projected_to_pytorch`] |
//! | PyTorch's `nn.GRU` | [`Gru`](crate::recurrent::Gru): [`gru_from_pytorch`], [`gru_to_pytorch`] |
//! | the same with `bidirectional=True` | `Bidirectional<Gru>` for each layer: [`bidirectional_gru_from_pytorch`], [`bidirectional_gru_to_pytorch`] |
//!
//! Values are what is converted. Whether sequences are batch first is kept for Burn's layers; PyTorch's files do not say it, so
//! that [`with_batch_first`](crate::recurrent::Stacked::with_batch_first) is the caller's to call, as is dropout.
//!
//! ```
//! use adaparam::convert::{StateDict, lstm_from_pytorch, lstm_to_pytorch};
//! use adaparam::recurrent::LstmConfig;
//! use burn::tensor::Device;
//!
//! let device = Device::flex();
//! let lstm = LstmConfig::new(8, 16).with_n_layers(2).init(&device);
//! let dict: StateDict = lstm_to_pytorch(&lstm)?; // weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l1, …
//! assert_eq!(dict["weight_ih_l0"].shape().as_slice(), [64, 8]);
//! let same = lstm_from_pytorch(&dict, &device)?;
//! # Ok::<(), adaparam::convert::ConvertError>(())
//! ```
//!
//! # Files
//!
//! A [`StateDict`] is what any of `burn-store`'s stores reads: `PytorchStore` what `torch.save` has written, `SafetensorsStore`
//! safetensors. Names that a larger model puts before those of the layer are cut off on the way, and numbers of
//! other precisions become those of the device:
//!
//! ```
//! use adaparam::convert::{StateDict, bidirectional_from_pytorch};
//! use burn_store::{ModuleStore, PytorchStore, bridge};
//!
//! // torch.save({"epoch": 3, "model": model.state_dict()}, "tagger.pt"), where model.lstm is an nn.LSTM
//! let mut store = PytorchStore::from_file("tests/pytorch/tagger.pt").with_top_level_key("model");
//! let mut dict = StateDict::new();
//! for (name, tensor) in store.get_all_tensors()? {
//!     if let Some(name) = name.strip_prefix("lstm.") {
//!         dict.insert(name.to_owned(), bridge::to_data(tensor)?);
//!     }
//! }
//! let layers = bidirectional_from_pytorch(&dict, &burn::tensor::Device::flex())?;
//! # assert_eq!(layers.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! PyTorch files are read and not written; the way back is a safetensors file, which `safetensors::serialize_to_file` makes of a
//! `StateDict` and `safetensors.torch.load_file` reads in Python.

mod from_burn;
mod matrices;
mod pytorch;

use thiserror::Error;

pub use from_burn::{
    bidirectional_from_burn, bidirectional_gru_from_burn, bidirectional_gru_to_burn,
    bidirectional_to_burn, gru_from_burn, gru_to_burn, lstm_from_burn, lstm_to_burn,
    reversed_from_burn, reversed_to_burn,
};
pub use pytorch::{
    StateDict, bidirectional_from_pytorch, bidirectional_gru_from_pytorch,
    bidirectional_gru_to_pytorch, bidirectional_projected_from_pytorch,
    bidirectional_projected_to_pytorch, bidirectional_to_pytorch, gru_from_pytorch, gru_to_pytorch,
    lstm_from_pytorch, lstm_to_pytorch, projected_from_pytorch, projected_to_pytorch,
};

/// Why a layer has no counterpart.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConvertError {
    /// It computes something that the other side has no layer for.
    #[error("{what}: {instead}")]
    NoCounterpart {
        /// What it has.
        what: String,
        /// Why that cannot be converted, and what can be done.
        instead: String,
    },
    /// A tensor is not there.
    #[error("{name} is missing: {hint}")]
    Missing {
        /// Its name.
        name: String,
        /// What was found.
        hint: String,
    },
    /// A tensor that belongs to no layer of this kind.
    #[error("{name} is no part of {of}: {hint}")]
    Unknown {
        /// Its name.
        name: String,
        /// What was to be made.
        of: &'static str,
        /// The next step.
        hint: String,
    },
    /// A tensor of another shape.
    #[error("{name} is {found:?}: must be {expected:?}")]
    Shape {
        /// Its name.
        name: String,
        /// What it has.
        found: Vec<usize>,
        /// What it must have.
        expected: Vec<usize>,
    },
}

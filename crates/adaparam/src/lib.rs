//! Neural network layers for [Burn](https://burn.dev) that adapt their weights to each input.
//!
//! A feed-forward layer `φ(W x + b)` is non-linear only through `φ`. *Adaptive parameterization*
//! (Flennerhag, Yin, Keane and Elliot, 2018) places diagonal matrices `D = diag(π(x))` around the
//! weights, where the *policy* `π` is a small network trained together with the layer, so that every
//! input is met by a weight matrix of its own.
//!
//! # Instead of `Linear`
//!
//! [`AdaptiveFeedForward`] takes the place of Burn's `Linear`: same shapes, any batch rank.
//!
//! ```
//! use adaparam::{AdaptiveFeedForward, AdaptiveFeedForwardConfig};
//! use burn::{module::Module, tensor::{Device, Tensor, activation::relu}};
//!
//! #[derive(Module, Debug)]
//! struct Classifier {
//!     hidden: AdaptiveFeedForward, // was: Linear
//!     output: burn::nn::Linear,
//! }
//!
//! let device = Device::flex();
//! let model = Classifier {
//!     hidden: AdaptiveFeedForwardConfig::io(784, 64).init(&device), // was: LinearConfig::new(784, 64)
//!     output: burn::nn::LinearConfig::new(64, 10).init(&device),
//! };
//! let images = Tensor::<2>::ones([32, 784], &device);
//! let scores = model.output.forward(relu(model.hidden.forward(images)));
//! assert_eq!(scores.dims(), [32, 10]);
//! ```
//!
//! # What is here
//!
//! | item | paper |
//! |---|---|
//! | [`AdaptiveFeedForward`], any order | eq. (2) |
//! | [`input`](AdaptiveFeedForwardConfig::input), [`output`](AdaptiveFeedForwardConfig::output), [`io`](AdaptiveFeedForwardConfig::io), [`sva`](AdaptiveFeedForwardConfig::sva) adaptation | section 2.2, eq. (3) and (4) |
//! | [`policy`]: linear, gated linear unit, small network, or your own type | section 2.1 and 3 |
//! | [`Diagonals`], [`effective_weight`](AdaptiveFeedForward::effective_weight): what a layer does to an input | Figure 1 |
//! | [`property::express`]: IO adaptation can express any matrix | Property 1 |
//! | [`recurrent`]: the adaptive LSTM and the LSTM it is compared with | section 3 |
//! | [`recurrent::Cell`]: recurrent layers of your own, with all that these have | |
//! | [`AdaptLinearConfig`]: a layer from a `Linear` that is trained already | section 2.2 |
//! | [`adapt`]: adapters over a whole model that exists | |
//! | [`convert`]: recurrent layers of Burn and PyTorch, and back | |
//! | [`parameters`], [`mod@settings`]: parameters and configurations by name | |
//!
//! On the CPU, a recurrent stack computes a whole window, and an adaptive feed-forward layer a whole batch, as one fused
//! operation with hand-written gradients. That needs the feature `kernels`, a default, and is turned off with
//! [`recurrent::Execution::Readable`].

#![cfg_attr(docsrs, feature(doc_cfg))]

// The macro `settings!` names this crate, also where it is used inside of it.
extern crate self as adaparam;

pub mod adapt;
pub mod convert;
mod feed_forward;
mod form;
mod inspection;
mod leading;
#[cfg(feature = "kernels")]
mod located;
pub mod parameters;
pub mod policy;
pub mod property;
pub mod recurrent;
mod semi_orthogonal;
pub mod settings;
mod singular_values;

pub use feed_forward::{
    AdaptLinearConfig, Adaptation, AdaptiveFeedForward, AdaptiveFeedForwardConfig,
};
pub use inspection::Diagonals;
pub use policy::{Policy, PolicyConfig};
pub use recurrent::{AdaptiveLstm, AdaptiveLstmConfig, Lstm, LstmConfig};
pub use semi_orthogonal::semi_orthogonal_with_gain;

/// The code of the guide's chapter on this crate is tested with that of these pages.
#[cfg(doctest)]
#[doc = include_str!("../../../book/src/library.md")]
mod guide {}

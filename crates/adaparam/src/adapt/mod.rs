//! Adapters over a whole model that exists, whatever it is: small parts that are trained while all else is frozen.
//!
//! These are *static*: what they have learned is the same for every input, so that it can be merged into plain weights. They
//! use the reparameterisation that Burn's own `Lora` is made of, and the model's code stays as it is. A layer whose weights
//! follow the input has to see the input: put an [`AdaptiveFeedForward`](crate::AdaptiveFeedForward) in the place of
//! the `Linear`, which [`AdaptLinearConfig`](crate::AdaptLinearConfig) makes from it.
//!
//! | adapter | the weight becomes | trained numbers of a layer |
//! |---|---|---|
//! | [`Ia3`] | `W D` or `D W`, a diagonal that starts at ones | `d_output` or `d_input` |
//! | [`Svf`] | `U (S + D) Vᵀ`, a diagonal that starts at zeros | `rank` |
//! | Burn's [`Lora`](burn::module::Lora) | `W + s A B` | `rank (d_input + d_output)` |
//!
//! ```
//! use adaparam::adapt::{Ia3, ParameterCounts, linear_weights};
//! use burn::module::Module;
//! use burn::nn::{Linear, LinearConfig};
//! use burn::tensor::Device;
//!
//! #[derive(Module, Debug)]
//! struct Mlp { hidden: Linear, output: Linear }
//!
//! let device = Device::flex().autodiff();
//! let trained = Mlp {
//!     hidden: LinearConfig::new(64, 32).init(&device),
//!     output: LinearConfig::new(32, 10).init(&device),
//! };
//! let weights = linear_weights(&trained, "hidden|output")?;
//! let adapted = trained.apply_reparameterization(Ia3::new(weights));
//! let counts = ParameterCounts::of(&adapted);
//! assert_eq!((counts.trained, counts.all), (32 + 10, 64 * 32 + 32 + 32 * 10 + 10 + 32 + 10));
//! // … train `adapted` like any model …
//! let merged = adapted.valid().materialize(); // plain weights again
//! assert_eq!(ParameterCounts::of(&merged).all, 64 * 32 + 32 + 32 * 10 + 10);
//! # Ok::<(), adaparam::adapt::NoSuchLinear>(())
//! ```
//!
//! As with `Lora`, `unfreeze()` and `set_require_grad(true)` turn the training of everything on again; to train some part
//! besides the adapters, name it: `adapted.unfreeze_group(ParamGroup::from_predicate("output.bias"))`.

mod counts;
mod ia3;
mod linear_weights;
mod svf;

pub use counts::ParameterCounts;
pub use ia3::{Ia3, Ia3Scale, ScaledSide};
pub use linear_weights::{NoSuchLinear, linear_weights};
pub use svf::{Svf, SvfShift};

//! Adaptation policies `π`: the small networks that produce the diagonals of an adaptive layer.
//!
//! A policy maps a context, usually the layer's own input, to all the adapted diagonals of the layer at
//! once, side by side in the order `D(0), D(1), …, D(q)` with the identity ones left out. One product
//! then serves every diagonal, and the layer takes its parts from the result.
//!
//! | policy | `π(c)` |
//! |---|---|
//! | [`LinearPolicy`] | `U c + u`, or `τ(U c + u)` |
//! | [`GluPolicy`] | `(A c + a) ⊙ σ(G c + g)`, stacked as often as wanted |
//! | [`MlpPolicy`] | `τ(U z)` with a latent `z` from a small network, as in section 3 of the paper |
//!
//! Any other network takes part by implementing [`Policy`]:
//!
//! ```
//! use adaparam::{AdaptiveFeedForwardConfig, Policy};
//! use burn::{module::{Module, Param}, tensor::{Device, Tensor}};
//!
//! /// Doubles or mutes a unit, whichever the sign of the context says.
//! #[derive(Module, Debug)]
//! struct Switch { direction: Param<Tensor<2>> }
//!
//! impl Policy for Switch {
//!     fn forward<const N: usize>(&self, context: Tensor<N>) -> Tensor<N> {
//!         burn::tensor::module::linear(context, self.direction.val(), None).sign() + 1.0
//!     }
//! }
//!
//! let device = Device::flex();
//! let config = AdaptiveFeedForwardConfig::output(3, 4).with_identity(vec![0, 1]);
//! let direction = Param::from_tensor(Tensor::ones([3, config.d_policy()], &device));
//! let layer = config.init_with_policy(Switch { direction }, &device);
//! assert_eq!(layer.forward(Tensor::<2>::ones([5, 3], &device)).dims(), [5, 4]);
//! ```

mod glu;
mod linear;
mod mlp;

pub use glu::{GluPolicy, GluPolicyConfig};
pub use linear::{LinearPolicy, LinearPolicyConfig};
pub use mlp::{MlpPolicy, MlpPolicyConfig};

use burn::config::Config;
use burn::module::{Module, ModuleDisplay, Param};
use burn::nn::Linear;
use burn::nn::activation::Activation;
use burn::tensor::{Device, Tensor};

/// An adaptation policy `π`, trained together with the layer that it adapts.
pub trait Policy: Module + ModuleDisplay {
    /// The diagonals for a batch of contexts.
    ///
    /// # Shapes
    ///
    /// - context: `[.., d_context]`
    /// - output: `[.., d_policy]`, where `d_policy` is
    ///   [`AdaptiveFeedForwardConfig::d_policy`](crate::AdaptiveFeedForwardConfig::d_policy)
    fn forward<const N: usize>(&self, context: Tensor<N>) -> Tensor<N>;

    /// The policy as dense layers, one after the other, so that a layer can be computed with it in one operation. None, as for
    /// any policy that does not say otherwise, leaves it to [`forward`](Self::forward).
    fn dense(&self) -> Option<Vec<Dense<'_>>> {
        None
    }
}

/// A layer of a policy: `φ(A c + a)`, or `φ(A c + a) ⊙ σ(G c + g)` with a gate.
#[derive(Debug, Clone, Copy)]
pub struct Dense<'a> {
    /// `A` and `a`.
    pub value: &'a Linear,
    /// `φ`, if there is one.
    pub activation: Option<&'a Activation>,
    /// `G` and `g`, if there is a gate.
    pub gate: Option<&'a Linear>,
}

/// The choice of a policy network, without the sizes that the layer decides.
#[derive(Config, Debug)]
pub enum PolicyConfig {
    /// See [`LinearPolicy`].
    Linear(LinearPolicyConfig),
    /// See [`GluPolicy`].
    Glu(GluPolicyConfig),
    /// See [`MlpPolicy`].
    Mlp(MlpPolicyConfig),
}

impl PolicyConfig {
    /// Initialises the chosen network from `d_context` to `d_policy` numbers.
    pub fn init(&self, d_context: usize, d_policy: usize, device: &Device) -> PolicyNetwork {
        match self {
            Self::Linear(config) => PolicyNetwork::Linear(config.init(d_context, d_policy, device)),
            Self::Glu(config) => PolicyNetwork::Glu(config.init(d_context, d_policy, device)),
            Self::Mlp(config) => PolicyNetwork::Mlp(config.init(d_context, d_policy, device)),
        }
    }
}

impl From<LinearPolicyConfig> for PolicyConfig {
    fn from(config: LinearPolicyConfig) -> Self {
        Self::Linear(config)
    }
}

impl From<GluPolicyConfig> for PolicyConfig {
    fn from(config: GluPolicyConfig) -> Self {
        Self::Glu(config)
    }
}

impl From<MlpPolicyConfig> for PolicyConfig {
    fn from(config: MlpPolicyConfig) -> Self {
        Self::Mlp(config)
    }
}

/// The policies of this crate behind one type, so that a model can choose among them at run time.
#[derive(Module, Debug)]
// A model holds a handful of these, and `Module` is not derived through a box.
#[allow(clippy::large_enum_variant)]
pub enum PolicyNetwork {
    /// See [`LinearPolicy`].
    Linear(LinearPolicy),
    /// See [`GluPolicy`].
    Glu(GluPolicy),
    /// See [`MlpPolicy`].
    Mlp(MlpPolicy),
}

impl PolicyNetwork {
    /// Lets the policy give `start`, `[d_policy]`, whatever the context, and learn from there.
    ///
    /// # Panics
    ///
    /// Panics if it squashes what it gives.
    pub(crate) fn start_at(&mut self, start: Tensor<1>) {
        match self {
            Self::Linear(policy) => policy.start_at(start),
            Self::Glu(policy) => policy.start_at(start),
            Self::Mlp(policy) => policy.start_at(start),
        }
    }
}

/// Lets a linear map give `value` for every input. What is before it learns once its weights are no longer zero, which is
/// after the first step.
fn constant(linear: &mut Linear, value: Tensor<1>) {
    let shape = linear.weight.lazy_shape();
    let weight = Tensor::<2>::zeros(shape, (&value.device(), value.dtype()));
    linear.weight = Param::from_tensor(weight);
    linear.bias = Some(Param::from_tensor(value));
}

impl Policy for PolicyNetwork {
    fn forward<const N: usize>(&self, context: Tensor<N>) -> Tensor<N> {
        match self {
            Self::Linear(policy) => policy.forward(context),
            Self::Glu(policy) => policy.forward(context),
            Self::Mlp(policy) => policy.forward(context),
        }
    }

    fn dense(&self) -> Option<Vec<Dense<'_>>> {
        match self {
            Self::Linear(policy) => policy.dense(),
            Self::Glu(policy) => policy.dense(),
            Self::Mlp(policy) => policy.dense(),
        }
    }
}

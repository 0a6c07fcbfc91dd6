//! Layers that adapt a `Linear` which has been trained already, and start as that one.

use burn::config::Config;
use burn::module::Param;
use burn::nn::Linear;
use burn::nn::activation::ActivationConfig;
use burn::serde::{Deserialize, Serialize};
use burn::tensor::{Device, Tensor};

use super::{AdaptiveFeedForward, AdaptiveFeedForwardConfig};
use crate::leading::{Leading, tensor};
use crate::policy::{LinearPolicyConfig, Policy, PolicyConfig};
use crate::recurrent::Execution;

/// How a layer adapts its weights: section 2.2 of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde", rename_all = "snake_case")]
pub enum Adaptation {
    /// `W D(1) x + D(0) b`.
    Input,
    /// `D(2) W x + D(0) b`.
    Output,
    /// `D(2) W D(1) x + D(0) b`.
    Io,
    /// `U D Vᵀ x + D(0) b`, where `W = U S Vᵀ` is the singular value decomposition and `D` starts at `S`. It is taken once, in
    /// `f64`, and its time grows with the square of the smaller side: nothing to wait for at some hundreds, felt at a thousand.
    Sva {
        /// How many of the largest singular values are adapted; all of them if nothing is said. The others stay what they
        /// are, in a remainder: `U_r D V_rᵀ x + R x + D(0) b`.
        rank: Option<usize>,
    },
}

/// How a [`Linear`] becomes an [`AdaptiveFeedForward`] layer that starts as that `Linear`, up to rounding, and learns from
/// there.
///
/// Its policy gives the same diagonals for every input at first (ones, or the singular values): the last weights of the
/// policy are zero.
///
/// ```
/// use adaparam::{AdaptLinearConfig, Adaptation, AdaptiveFeedForward};
/// use burn::{nn::LinearConfig, tensor::{Device, Distribution, Tensor}};
///
/// let device = Device::flex();
/// let trained = LinearConfig::new(8, 5).init(&device);
/// let config = AdaptLinearConfig::new(Adaptation::Sva { rank: Some(3) }).with_frozen(true);
/// let adaptive = AdaptiveFeedForward::from_linear(&trained, &config);
///
/// let x = Tensor::<2>::random([4, 8], Distribution::Normal(0.0, 1.0), &device);
/// let difference: f32 = (trained.forward(x.clone()) - adaptive.forward(x)).abs().max().into_scalar();
/// assert!(difference < 1e-5);
/// ```
///
/// Its records are loaded by a layer that was made from a `Linear` of the same shape in the same way.
#[derive(Config, Debug)]
pub struct AdaptLinearConfig {
    /// What is adapted.
    pub adaptation: Adaptation,
    /// Whether the bias, if there is one, has a diagonal too.
    #[config(default = true)]
    pub adapt_bias: bool,
    /// Whether the weights and the bias stay as they are while the policy learns.
    #[config(default = false)]
    pub frozen: bool,
    /// The policy network. One that squashes what it gives can start at no given diagonal: an
    /// [`MlpPolicy`](crate::policy::MlpPolicy) needs `with_squash(ActivationConfig::Identity)`.
    #[config(default = "PolicyConfig::Linear(LinearPolicyConfig::new())")]
    pub policy: PolicyConfig,
    /// The width of a separate context for the policy; `None` if it looks at the layer's input.
    #[config(default = "None")]
    pub d_context: Option<usize>,
    /// The activation behind the layer; none by default, as a `Linear` has none.
    #[config(default = "None")]
    pub activation: Option<ActivationConfig>,
    /// Whether a batch is one operation on the CPU's kernels, where that is possible.
    #[config(default = "Execution::Fused")]
    pub execution: Execution,
}

impl AdaptLinearConfig {
    /// The layer, with the configured policy.
    ///
    /// # Panics
    ///
    /// Panics if the rank is 0 or above the smaller side of the weight, if the weight holds a number that is not finite where
    /// its singular values are asked for, or if the policy squashes what it gives.
    pub fn wrap(&self, linear: &Linear) -> AdaptiveFeedForward {
        let parts = self.parts(linear);
        let mut policy = (parts.config.d_policy() > 0).then(|| {
            let d_context = self.d_context.unwrap_or(parts.config.widths[0]);
            let d_policy = parts.config.d_policy();
            self.policy.init(d_context, d_policy, &parts.device)
        });
        if let Some(policy) = &mut policy {
            policy.start_at(parts.start.clone());
        }
        self.assemble(parts, policy)
    }

    /// The layer with a policy of the caller's own, which `policy` makes from the diagonals that it has to start at,
    /// `[d_policy]`, side by side in the order `D(0), D(1), …`; the configured policy is ignored.
    ///
    /// # Panics
    ///
    /// As [`wrap`](Self::wrap).
    pub fn wrap_with_policy<P: Policy>(
        &self,
        linear: &Linear,
        policy: impl FnOnce(Tensor<1>) -> P,
    ) -> AdaptiveFeedForward<P> {
        let parts = self.parts(linear);
        let policy = policy(parts.start.clone());
        self.assemble(parts, Some(policy))
    }

    fn assemble<P: Policy>(&self, parts: Parts, policy: Option<P>) -> AdaptiveFeedForward<P> {
        let parameter = |tensor| Param::from_tensor(tensor).set_require_grad(!self.frozen);
        AdaptiveFeedForward {
            weights: parts.weights.into_iter().map(parameter).collect(),
            remainder: parts.remainder.map(parameter),
            bias: parts
                .bias
                .map(|bias| Param::from_tensor(bias).set_require_grad(!self.frozen)),
            ..parts.config.init_around(policy, &parts.device)
        }
    }

    fn parts(&self, linear: &Linear) -> Parts {
        let weight = linear.weight.val().detach(); // [d_1, d_q]
        let [d_input, d_output] = weight.dims();
        let bias = linear.bias.as_ref().map(|bias| bias.val().detach());
        let mut config = match self.adaptation {
            Adaptation::Input => AdaptiveFeedForwardConfig::input(d_input, d_output),
            Adaptation::Output => AdaptiveFeedForwardConfig::output(d_input, d_output),
            Adaptation::Io => AdaptiveFeedForwardConfig::io(d_input, d_output),
            Adaptation::Sva { rank } => {
                let rank = rank.unwrap_or(d_input.min(d_output));
                AdaptiveFeedForwardConfig::sva(d_input, d_output, rank)
            }
        }
        .with_bias(bias.is_some())
        .with_activation(self.activation.clone())
        .with_execution(self.execution);
        if !self.adapt_bias {
            config.identity.push(0);
        }
        let (device, dtype) = (weight.device(), weight.dtype());
        let d_bias = if self.adapt_bias && bias.is_some() {
            d_output
        } else {
            0
        };
        let (weights, remainder, start) = match self.adaptation {
            Adaptation::Sva { .. } => {
                let leading = Leading::of(weight, config.widths[1]);
                let start = [vec![1.0; d_bias], leading.values].concat();
                (leading.weights.to_vec(), leading.remainder, start)
            }
            _ => (vec![weight], None, vec![1.0; config.d_policy()]),
        };
        Parts {
            start: tensor(start, [config.d_policy()], &device, dtype),
            config,
            weights,
            remainder,
            bias,
            device,
        }
    }
}

impl AdaptiveFeedForward {
    /// A layer that adapts what `linear` has learned; see [`AdaptLinearConfig`].
    ///
    /// # Panics
    ///
    /// As [`AdaptLinearConfig::wrap`].
    pub fn from_linear(linear: &Linear, config: &AdaptLinearConfig) -> Self {
        config.wrap(linear)
    }
}

/// A layer without its policy.
struct Parts {
    config: AdaptiveFeedForwardConfig,
    weights: Vec<Tensor<2>>,
    remainder: Option<Tensor<2>>,
    bias: Option<Tensor<1>>,
    /// The diagonals at the start, side by side.
    start: Tensor<1>,
    device: Device,
}

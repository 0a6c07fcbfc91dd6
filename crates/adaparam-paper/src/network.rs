//! Feed-forward networks of static and adaptive layers, described by data.
//!
//! A [`NetworkSpec`] is what a person writes in TOML; `NetworkSpec::init` makes the Burn module of it.

use adaparam::policy::{GluPolicyConfig, LinearPolicyConfig, MlpPolicyConfig};
use adaparam::{AdaptiveFeedForward, AdaptiveFeedForwardConfig, PolicyConfig};
use adaparam_lm::draw_alone;
use adaparam_runs::RunError;
use adaparam_runs::check::check_count;
use burn::module::{Module, ModuleVisitor, Param};
use burn::nn::LinearConfig;
use burn::nn::activation::ActivationConfig;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

/// No layer of these experiments needs more; a larger number is a slip of the keyboard.
const LARGEST_WIDTH: usize = 65_536;

/// A named network: the layers from the input's side to the output's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// The name under which results are reported.
    pub name: String,
    /// The layers, the last of which gives the network's output.
    pub layers: Vec<LayerSpec>,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub enum LayerSpec {
    /// `φ(W x + b)`.
    Static {
        /// Number of outputs.
        width: usize,
        /// `φ`.
        #[serde(default)]
        activation: ActivationKind,
    },
    /// IO adaptation, `φ(D(2) W D(1) x + D(0) b)`.
    Io {
        /// Number of outputs.
        width: usize,
        /// `φ`.
        #[serde(default)]
        activation: ActivationKind,
        /// `π`.
        policy: PolicySpec,
        /// Whether the bias adapts too.
        #[serde(default)]
        bias: BiasKind,
    },
    /// Singular value adaptation, `φ(W(2) D W(1) x + D(0) b)`.
    Sva {
        /// Number of outputs.
        width: usize,
        /// Number of singular values.
        rank: usize,
        /// `φ`.
        #[serde(default)]
        activation: ActivationKind,
        /// `π`.
        policy: PolicySpec,
        /// Whether the bias adapts too.
        #[serde(default)]
        bias: BiasKind,
    },
}

/// The bias of an adaptive layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BiasKind {
    /// `D(0) b`, as in the paper's equations.
    #[default]
    Adaptive,
    /// `b`: `D(0)` is the identity.
    Static,
}

/// An activation function `φ`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActivationKind {
    /// None.
    #[default]
    Identity,
    /// `max(0, a)`.
    Relu,
    /// Hyperbolic tangent.
    Tanh,
    /// Logistic function.
    Sigmoid,
}

/// A policy network `π`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub enum PolicySpec {
    /// `U x + u`.
    Linear {
        /// The value around which diagonals start.
        #[serde(default = "one")]
        initial: f64,
    },
    /// Gated linear units, one after the other.
    Glu {
        /// Widths of the units before the last.
        #[serde(default)]
        hidden: Vec<usize>,
        /// The value around which diagonals start; left to the random initialiser if not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial: Option<f64>,
    },
    /// `τ(U z)` with a latent `z` of a small network.
    Mlp {
        /// Width of the latent.
        latent: usize,
        /// Widths of hidden layers before it.
        #[serde(default)]
        hidden: Vec<usize>,
        /// Activation of hidden layers and latent.
        #[serde(default = "relu")]
        activation: ActivationKind,
        /// `τ`.
        #[serde(default = "tanh")]
        squash: ActivationKind,
    },
}

fn one() -> f64 {
    1.0
}

fn relu() -> ActivationKind {
    ActivationKind::Relu
}

fn tanh() -> ActivationKind {
    ActivationKind::Tanh
}

/// A feed-forward network of static and adaptive layers.
#[derive(Module, Debug)]
pub(crate) struct Network {
    /// The layers in order.
    pub(crate) layers: Vec<Layer>,
}

/// A layer of a [`Network`].
#[derive(Module, Debug)]
// A network holds a handful of these, and `Module` is not derived through a box.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Layer {
    /// `φ(W x + b)`.
    Static(AdaptiveFeedForward),
    /// `φ(D(q) … D(1) x + D(0) b)`.
    Adaptive(AdaptiveFeedForward),
}

impl NetworkSpec {
    /// Makes the network for inputs of `d_input` numbers, its weights drawn from `seed` alone.
    pub(crate) fn init(&self, d_input: usize, seed: u64, device: &Device) -> Network {
        draw_alone(seed, device, || {
            let mut d_input = d_input;
            let layers = self
                .layers
                .iter()
                .map(|layer| {
                    let made = layer.init(d_input, device);
                    d_input = layer.width();
                    made
                })
                .collect();
            let network = Network { layers };
            network.visit(&mut DrawNow);
            network
        })
    }

    /// Checks every size; `place` is the key under which this network stands.
    pub(crate) fn check(&self, place: &str, d_output: usize) -> Result<(), RunError> {
        let Some(last) = self.layers.last() else {
            let rule = "a network has at least one layer";
            return Err(RunError::value(format!("{place}.layers"), "[]", rule));
        };
        for (index, layer) in self.layers.iter().enumerate() {
            layer.check(&format!("{place}.layers[{index}]"))?;
        }
        if last.width() != d_output {
            return Err(RunError::value(
                format!("{place}.layers[{}].width", self.layers.len() - 1),
                last.width(),
                format!("the last layer must give {d_output} numbers"),
            ));
        }
        Ok(())
    }
}

/// Parameters are drawn when first looked at: look at all of them.
struct DrawNow;

impl ModuleVisitor for DrawNow {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        drop(param.val());
    }
}

impl LayerSpec {
    /// Number of outputs.
    fn width(&self) -> usize {
        match self {
            Self::Static { width, .. } | Self::Io { width, .. } | Self::Sva { width, .. } => *width,
        }
    }

    fn init(&self, d_input: usize, device: &Device) -> Layer {
        let adaptive = |config: AdaptiveFeedForwardConfig,
                        activation: ActivationKind,
                        policy: &PolicySpec,
                        bias: BiasKind| {
            let mut identity = config.identity.clone();
            if bias == BiasKind::Static {
                identity.push(0);
            }
            let config = config
                .with_identity(identity)
                .with_activation(activation.config())
                .with_policy(policy.config());
            Layer::Adaptive(config.init(device))
        };
        match self {
            Self::Static { width, activation } => {
                let linear = LinearConfig::new(d_input, *width).init(device);
                let phi = activation.config().map(|phi| phi.init(device));
                Layer::Static(AdaptiveFeedForward::from(linear).with_activation(phi))
            }
            Self::Io {
                width,
                activation,
                policy,
                bias,
            } => adaptive(
                AdaptiveFeedForwardConfig::io(d_input, *width),
                *activation,
                policy,
                *bias,
            ),
            Self::Sva {
                width,
                rank,
                activation,
                policy,
                bias,
            } => adaptive(
                AdaptiveFeedForwardConfig::sva(d_input, *width, *rank),
                *activation,
                policy,
                *bias,
            ),
        }
    }

    fn check(&self, place: &str) -> Result<(), RunError> {
        check_width(&format!("{place}.width"), self.width())?;
        match self {
            Self::Static { .. } => Ok(()),
            Self::Io { policy, .. } => policy.check(place),
            Self::Sva { rank, policy, .. } => {
                check_width(&format!("{place}.rank"), *rank)?;
                policy.check(place)
            }
        }
    }
}

impl PolicySpec {
    fn config(&self) -> PolicyConfig {
        match self {
            Self::Linear { initial } => LinearPolicyConfig::new().with_initial(*initial).into(),
            Self::Glu { hidden, initial } => GluPolicyConfig::new()
                .with_hidden(hidden.clone())
                .with_initial(*initial)
                .into(),
            Self::Mlp {
                latent,
                hidden,
                activation,
                squash,
            } => MlpPolicyConfig::new(*latent)
                .with_hidden(hidden.clone())
                .with_activation(activation.config().unwrap_or(ActivationConfig::Identity))
                .with_squash(squash.config().unwrap_or(ActivationConfig::Identity))
                .into(),
        }
    }

    fn check(&self, place: &str) -> Result<(), RunError> {
        let (hidden, latent): (&[usize], Option<usize>) = match self {
            Self::Linear { .. } => (&[], None),
            Self::Glu { hidden, .. } => (hidden, None),
            Self::Mlp { latent, hidden, .. } => (hidden, Some(*latent)),
        };
        if let Some(latent) = latent {
            check_width(&format!("{place}.policy.latent"), latent)?;
        }
        for (index, &width) in hidden.iter().enumerate() {
            check_width(&format!("{place}.policy.hidden[{index}]"), width)?;
        }
        Ok(())
    }
}

fn check_width(key: &str, width: usize) -> Result<(), RunError> {
    check_count(key, width, LARGEST_WIDTH)
}

impl ActivationKind {
    fn config(self) -> Option<ActivationConfig> {
        match self {
            Self::Identity => None,
            Self::Relu => Some(ActivationConfig::Relu),
            Self::Tanh => Some(ActivationConfig::Tanh),
            Self::Sigmoid => Some(ActivationConfig::Sigmoid),
        }
    }
}

impl Network {
    /// # Shapes
    ///
    /// - input: `[B, d_input]`
    /// - output: `[B, d_output]`
    pub(crate) fn forward(&self, input: Tensor<2>) -> Tensor<2> {
        self.layers.iter().fold(input, |x, layer| layer.forward(x))
    }

    /// The first layer, where it is adaptive: the one whose diagonals a person can read.
    pub(crate) fn first_adaptive(&self) -> Option<&AdaptiveFeedForward> {
        match self.layers.first() {
            Some(Layer::Adaptive(layer)) => Some(layer),
            _ => None,
        }
    }
}

impl Layer {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Static(layer) | Self::Adaptive(layer) => layer.forward(x),
        }
    }
}

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

use crate::conventions::{Conventions, PolicyContext};

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
    /// What holds for all of them.
    #[serde(default, skip_serializing_if = "Conventions::are_usual")]
    pub conventions: Conventions,
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
    /// `τ(U x + u)`.
    Linear {
        /// Where `u` starts: without `τ`, the value around which diagonals start.
        #[serde(default = "one")]
        initial: f64,
        /// `τ`.
        #[serde(default, skip_serializing_if = "ActivationKind::is_none")]
        squash: ActivationKind,
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
        /// Where a bias behind `U` starts; no bias if not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial: Option<f64>,
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
    /// What policies look at.
    #[module(skip)]
    context: PolicyContext,
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
            let mut place = Place {
                d_network: d_input,
                d_input,
                is_last: false,
                conventions: &self.conventions,
            };
            let mut layers = Vec::new();
            for (index, layer) in self.layers.iter().enumerate() {
                place.is_last = index + 1 == self.layers.len();
                layers.extend(layer.init(&place, device));
                place.d_input = layer.width();
            }
            let network = Network {
                layers,
                context: self.conventions.context,
            };
            network.visit(&mut DrawNow);
            network
        })
    }

    /// The number of trained parameters for inputs of `d_input` numbers.
    pub(crate) fn parameters(&self, d_input: usize) -> usize {
        let mut place = Place {
            d_network: d_input,
            d_input,
            is_last: false,
            conventions: &self.conventions,
        };
        let mut sum = 0;
        for (index, layer) in self.layers.iter().enumerate() {
            place.is_last = index + 1 == self.layers.len();
            sum += layer.parameters(&place);
            place.d_input = layer.width();
        }
        sum
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
        self.conventions.check(&format!("{place}.conventions"))?;
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

/// Where a layer stands.
struct Place<'a> {
    /// The width of what the network is given.
    d_network: usize,
    /// The width of what the layer is given.
    d_input: usize,
    is_last: bool,
    conventions: &'a Conventions,
}

impl Place<'_> {
    fn has_bias(&self) -> bool {
        self.conventions.last_bias || !self.is_last
    }

    /// The layer with weights that start as the conventions say.
    fn started(
        &self,
        mut layer: AdaptiveFeedForward,
        activation: ActivationKind,
        device: &Device,
    ) -> AdaptiveFeedForward {
        self.conventions
            .start_weights(&mut layer.weights, activation, device);
        if let Some(policy) = &mut layer.policy {
            self.conventions.start_policy(policy, device);
        }
        layer
    }
}

impl LayerSpec {
    /// Number of outputs.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Static { width, .. } | Self::Io { width, .. } | Self::Sva { width, .. } => *width,
        }
    }

    /// The layer as modules, one after the other.
    fn init(&self, place: &Place<'_>, device: &Device) -> Vec<Layer> {
        let d_input = place.d_input;
        let context = place.conventions.context;
        let adaptive = |config: AdaptiveFeedForwardConfig,
                        activation: ActivationKind,
                        policy: &PolicySpec,
                        bias: BiasKind| {
            let mut identity = config.identity.clone();
            if bias == BiasKind::Static {
                identity.push(0);
            }
            let d_context = (context == PolicyContext::NetworkInput).then_some(place.d_network);
            let config = config
                .with_identity(identity)
                .with_bias(place.has_bias())
                .with_d_context(d_context)
                .with_activation(activation.config())
                .with_policy(policy.config());
            Layer::Adaptive(place.started(config.init(device), activation, device))
        };
        match self {
            Self::Static { width, activation } => {
                let linear = LinearConfig::new(d_input, *width)
                    .with_bias(place.has_bias())
                    .init(device);
                let phi = activation.config().map(|phi| phi.init(device));
                let layer = AdaptiveFeedForward::from(linear).with_activation(phi);
                vec![Layer::Static(place.started(layer, *activation, device))]
            }
            Self::Io {
                width,
                activation,
                policy,
                bias,
            } => vec![adaptive(
                AdaptiveFeedForwardConfig::io(d_input, *width),
                *activation,
                policy,
                *bias,
            )],
            Self::Sva {
                width,
                rank,
                activation,
                policy,
                bias,
            } if context == PolicyContext::Projection => {
                // W(1) by itself, so that the policy of what is behind it looks at what it gives.
                let config = AdaptiveFeedForwardConfig::new(vec![d_input, *rank])
                    .with_identity(vec![0, 1, 2])
                    .with_bias(false);
                let first = place.started(config.init(device), ActivationKind::Identity, device);
                let rest = AdaptiveFeedForwardConfig::input(*rank, *width);
                vec![
                    Layer::Static(first),
                    adaptive(rest, *activation, policy, *bias),
                ]
            }
            Self::Sva {
                width,
                rank,
                activation,
                policy,
                bias,
            } => vec![adaptive(
                AdaptiveFeedForwardConfig::sva(d_input, *width, *rank),
                *activation,
                policy,
                *bias,
            )],
        }
    }

    fn parameters(&self, place: &Place<'_>) -> usize {
        let (d_input, width) = (place.d_input, self.width());
        let (matrices, d_policy, bias) = match self {
            Self::Static { .. } => (d_input * width, 0, BiasKind::Static),
            Self::Io { bias, .. } => (d_input * width, d_input + width, *bias),
            Self::Sva { rank, bias, .. } => (rank * (d_input + width), *rank, *bias),
        };
        let d_bias = if place.has_bias() { width } else { 0 };
        let d_policy = match bias {
            BiasKind::Adaptive => d_policy + d_bias,
            BiasKind::Static => d_policy,
        };
        let d_context = match (place.conventions.context, self) {
            (PolicyContext::NetworkInput, _) => place.d_network,
            (PolicyContext::Projection, Self::Sva { rank, .. }) => *rank,
            _ => d_input,
        };
        let policy = match self {
            Self::Static { .. } => 0,
            Self::Io { policy, .. } | Self::Sva { policy, .. } => {
                policy.parameters(d_context, d_policy)
            }
        };
        matrices + d_bias + policy
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
            Self::Linear { initial, squash } => LinearPolicyConfig::new()
                .with_initial(*initial)
                .with_squash(squash.config())
                .into(),
            Self::Glu { hidden, initial } => GluPolicyConfig::new()
                .with_hidden(hidden.clone())
                .with_initial(*initial)
                .into(),
            Self::Mlp {
                latent,
                hidden,
                activation,
                squash,
                initial,
            } => MlpPolicyConfig::new(*latent)
                .with_hidden(hidden.clone())
                .with_activation(activation.config().unwrap_or(ActivationConfig::Identity))
                .with_squash(squash.config().unwrap_or(ActivationConfig::Identity))
                .with_initial(*initial)
                .into(),
        }
    }

    /// The number of its parameters, from `d_context` to `d_policy` numbers.
    fn parameters(&self, d_context: usize, d_policy: usize) -> usize {
        let affine = |pair: &[usize]| (pair[0] + 1) * pair[1];
        let chain = |hidden: &[usize], last: usize| -> usize {
            let widths = [&[d_context], hidden, &[last]].concat();
            widths.windows(2).map(affine).sum()
        };
        match self {
            Self::Linear { .. } => chain(&[], d_policy),
            Self::Glu { hidden, .. } => 2 * chain(hidden, d_policy),
            Self::Mlp {
                latent,
                hidden,
                initial,
                ..
            } => {
                let bias = if initial.is_some() { d_policy } else { 0 };
                chain(hidden, *latent) + latent * d_policy + bias
            }
        }
    }

    fn check(&self, place: &str) -> Result<(), RunError> {
        let (hidden, latent, initial): (&[usize], Option<usize>, Option<f64>) = match self {
            Self::Linear { initial, .. } => (&[], None, Some(*initial)),
            Self::Glu { hidden, initial } => (hidden, None, *initial),
            Self::Mlp {
                latent,
                hidden,
                initial,
                ..
            } => (hidden, Some(*latent), *initial),
        };
        if let Some(initial) = initial.filter(|initial| !initial.is_finite()) {
            let key = format!("{place}.policy.initial");
            return Err(RunError::value(key, initial, "must be a finite number"));
        }
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
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    fn is_none(&self) -> bool {
        *self == Self::Identity
    }

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
        let context = match self.context {
            PolicyContext::NetworkInput => Some(input.clone()),
            PolicyContext::LayerInput | PolicyContext::Projection => None,
        };
        self.layers
            .iter()
            .fold(input, |x, layer| layer.forward(x, context.clone()))
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
    fn forward(&self, x: Tensor<2>, context: Option<Tensor<2>>) -> Tensor<2> {
        match (self, context) {
            (Self::Adaptive(layer), Some(context)) => layer.forward_with_context(x, context),
            (Self::Static(layer) | Self::Adaptive(layer), _) => layer.forward(x),
        }
    }
}

use burn::config::Config;
use burn::module::Module;
use burn::nn::activation::{Activation, ActivationConfig};
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};

use super::{Dense, Policy, constant};

/// Configuration of an [`MlpPolicy`].
#[derive(Config, Debug)]
pub struct MlpPolicyConfig {
    /// The width `A` of the latent `z`.
    pub d_latent: usize,
    /// The widths of hidden layers before the latent one; none by default.
    #[config(default = "Vec::new()")]
    pub hidden: Vec<usize>,
    /// The activation behind every hidden layer and behind the latent, which must keep the width.
    #[config(default = "ActivationConfig::Relu")]
    pub activation: ActivationConfig,
    /// The activation behind the projections: `τ` in the paper.
    #[config(default = "ActivationConfig::Tanh")]
    pub squash: ActivationConfig,
    /// Where a bias of the projections starts; none by default, which is no bias, as in the paper.
    #[config(default = "None")]
    pub initial: Option<f64>,
    /// How weights and biases are initialised.
    #[config(
        default = "Initializer::KaimingUniform{gain: 1.0 / 3.0f64.sqrt(), fan_out_only: false}"
    )]
    pub initializer: Initializer,
}

/// A small network with a latent variable, projected into every diagonal:
/// `z = ReLU(W c + b)`, `π(j)(c) = τ(U(j) z)`. Paper eq. (6) and the line before it.
///
/// The projections `U(j)` stand side by side in one matrix and have no bias, as in the paper, unless one is asked for.
#[derive(Module, Debug)]
pub struct MlpPolicy {
    /// The layers up to and with the latent.
    pub layers: Vec<Linear>,
    /// The activation behind each of them.
    pub activation: Activation,
    /// All `U(j)`, side by side.
    pub projection: Linear,
    /// `τ`.
    pub squash: Activation,
}

impl MlpPolicyConfig {
    /// Initialises a policy from `d_context` to `d_policy` numbers.
    pub fn init(&self, d_context: usize, d_policy: usize, device: &Device) -> MlpPolicy {
        let widths: Vec<usize> = [&[d_context], self.hidden.as_slice(), &[self.d_latent]].concat();
        let linear = |d_input, d_output| {
            LinearConfig::new(d_input, d_output).with_initializer(self.initializer.clone())
        };
        let mut projection = linear(self.d_latent, d_policy)
            .with_bias(false)
            .init(device);
        projection.bias = self
            .initial
            .map(|value| Initializer::Constant { value }.init([d_policy], device));
        MlpPolicy {
            layers: widths
                .windows(2)
                .map(|pair| linear(pair[0], pair[1]).init(device))
                .collect(),
            activation: self.activation.init(device),
            projection,
            squash: self.squash.init(device),
        }
    }
}

impl MlpPolicy {
    /// The latent variable `z`.
    ///
    /// # Shapes
    ///
    /// - context: `[.., d_context]`
    /// - output: `[.., d_latent]`
    pub fn latent<const N: usize>(&self, context: Tensor<N>) -> Tensor<N> {
        self.layers.iter().fold(context, |input, layer| {
            self.activation.forward(layer.forward(input))
        })
    }
}

impl MlpPolicy {
    pub(super) fn start_at(&mut self, start: Tensor<1>) {
        assert!(
            matches!(self.squash, Activation::Identity(_)),
            "an MlpPolicy squashes its diagonals by {:?}, so that they cannot start where a layer is wrapped: give it \
             with_squash(ActivationConfig::Identity)",
            self.squash
        );
        constant(&mut self.projection, start);
    }
}

impl Policy for MlpPolicy {
    fn forward<const N: usize>(&self, context: Tensor<N>) -> Tensor<N> {
        let z = self.latent(context); // [.., A]
        self.squash.forward(self.projection.forward(z))
    }

    fn dense(&self) -> Option<Vec<Dense<'_>>> {
        let dense = |value, activation| Dense {
            value,
            activation: Some(activation),
            gate: None,
        };
        let layers = self.layers.iter();
        let latent = layers.map(|layer| dense(layer, &self.activation));
        let diagonals = dense(&self.projection, &self.squash);
        Some(latent.chain([diagonals]).collect())
    }
}

use burn::config::Config;
use burn::module::Module;
use burn::nn::activation::{Activation, ActivationConfig};
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};

use super::{Dense, Policy, constant};

/// Configuration of a [`LinearPolicy`].
#[derive(Config, Debug)]
pub struct LinearPolicyConfig {
    /// Where `u` starts, which is the value around which every diagonal starts, unless it is squashed: with 1, a new layer is near
    /// its static counterpart.
    #[config(default = 1.0)]
    pub initial: f64,
    /// The activation behind the map: `τ` where the paper has one; none by default.
    #[config(default = "None")]
    pub squash: Option<ActivationConfig>,
    /// How `U` is initialised.
    #[config(
        default = "Initializer::KaimingUniform{gain: 1.0 / 3.0f64.sqrt(), fan_out_only: false}"
    )]
    pub initializer: Initializer,
}

/// The simplest policy, `π(c) = U c + u`, or `τ(U c + u)`.
///
/// Even this one makes a layer quadratic in its input (section 2.1 of the paper).
#[derive(Module, Debug)]
pub struct LinearPolicy {
    /// `U` and `u`.
    pub projection: Linear,
    /// `τ`, if there is one.
    pub squash: Option<Activation>,
}

impl LinearPolicyConfig {
    /// Initialises a policy from `d_context` to `d_policy` numbers.
    pub fn init(&self, d_context: usize, d_policy: usize, device: &Device) -> LinearPolicy {
        let mut projection = LinearConfig::new(d_context, d_policy)
            .with_initializer(self.initializer.clone())
            .init(device);
        projection.bias = Some(
            Initializer::Constant {
                value: self.initial,
            }
            .init([d_policy], device),
        );
        LinearPolicy {
            projection,
            squash: self.squash.as_ref().map(|tau| tau.init(device)),
        }
    }
}

impl LinearPolicy {
    pub(super) fn start_at(&mut self, start: Tensor<1>) {
        assert!(
            self.squash.is_none(),
            "a LinearPolicy squashes its diagonals by {:?}, so that they cannot start where a layer is wrapped: give it \
             with_squash(None)",
            self.squash
        );
        constant(&mut self.projection, start);
    }
}

impl Policy for LinearPolicy {
    fn forward<const N: usize>(&self, context: Tensor<N>) -> Tensor<N> {
        let diagonals = self.projection.forward(context);
        match &self.squash {
            Some(tau) => tau.forward(diagonals),
            None => diagonals,
        }
    }

    fn dense(&self) -> Option<Vec<Dense<'_>>> {
        let value = &self.projection;
        Some(vec![Dense {
            value,
            activation: self.squash.as_ref(),
            gate: None,
        }])
    }
}

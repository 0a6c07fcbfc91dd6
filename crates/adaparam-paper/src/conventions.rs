//! What holds for every layer of a network: how weights start, what policies look at, whether the last layer has a bias.
//!
//! The usual conventions are those of the tail regression and of digits; the others are readings of what the paper leaves open.

use adaparam::policy::PolicyNetwork;
use adaparam::semi_orthogonal_with_gain;
use adaparam_runs::RunError;
use burn::module::Param;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::network::{ActivationKind, LayerSpec};

/// What holds for every layer of a network.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Conventions {
    /// How the matrices of layers start; usually drawn uniformly for static layers and semi-orthogonal for adaptive ones.
    pub weights: WeightStart,
    /// How the matrices of policies start; usually drawn uniformly.
    pub policy_weights: WeightStart,
    /// What policies look at.
    pub context: PolicyContext,
    /// Whether the last layer has a bias.
    pub last_bias: bool,
}

/// How weight matrices start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WeightStart {
    /// As the kind of layer has it.
    #[default]
    Usual,
    /// Semi-orthogonal, times this gain.
    SemiOrthogonal(f64),
    /// Semi-orthogonal, times the gain that keeps the size of what goes through the activation behind it: √2 for `ReLU`, 5/3
    /// for tanh, 1 for others and for none. Not for policies.
    SemiOrthogonalByActivation,
}

/// What the policies of a network look at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyContext {
    /// The input of their layer.
    #[default]
    LayerInput,
    /// The input of the network.
    NetworkInput,
    /// `W(1) x`, what the first matrix of a layer of singular values gives; the input of the layer for other layers.
    Projection,
}

impl Default for Conventions {
    fn default() -> Self {
        Self {
            weights: WeightStart::Usual,
            policy_weights: WeightStart::Usual,
            context: PolicyContext::LayerInput,
            last_bias: true,
        }
    }
}

impl Conventions {
    pub(crate) fn are_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Those that say something about these layers, and the usual ones for the rest: two readings that mean the same network
    /// give the same one.
    pub(crate) fn for_layers(self, layers: &[LayerSpec]) -> Self {
        let is_static = |layer: &LayerSpec| matches!(layer, LayerSpec::Static { .. });
        let is_plain = |layer: &LayerSpec| match layer {
            LayerSpec::Static { activation, .. }
            | LayerSpec::Io { activation, .. }
            | LayerSpec::Sva { activation, .. } => *activation == ActivationKind::Identity,
        };
        let weights = match self.weights {
            WeightStart::SemiOrthogonalByActivation if layers.iter().all(is_plain) => {
                WeightStart::SemiOrthogonal(1.0)
            }
            weights => weights,
        };
        let usual = Self::default();
        // Adaptive layers start semi-orthogonal anyway.
        let starts_so_anyway =
            weights == WeightStart::SemiOrthogonal(1.0) && !layers.iter().any(is_static);
        let conventions = Self {
            weights: if starts_so_anyway {
                usual.weights
            } else {
                weights
            },
            last_bias: self.last_bias,
            ..usual
        };
        if layers.iter().all(is_static) {
            return conventions;
        }
        Self {
            policy_weights: self.policy_weights,
            context: match self.context {
                PolicyContext::NetworkInput if layers.len() == 1 => PolicyContext::LayerInput,
                context => context,
            },
            ..conventions
        }
    }

    /// Checks every value; `place` is the key under which these stand.
    pub(crate) fn check(&self, place: &str) -> Result<(), RunError> {
        self.weights.check(&format!("{place}.weights"))?;
        let key = format!("{place}.policy_weights");
        if self.policy_weights == WeightStart::SemiOrthogonalByActivation {
            let rule = "is for the matrices of layers: give { semi-orthogonal = 1.0 }";
            return Err(RunError::value(key, "semi-orthogonal-by-activation", rule));
        }
        self.policy_weights.check(&key)
    }

    /// Lets the matrices of a layer with this activation behind it start as they should.
    pub(crate) fn start_weights(
        &self,
        weights: &mut [Param<Tensor<2>>],
        activation: ActivationKind,
        device: &Device,
    ) {
        let last = weights.len().saturating_sub(1);
        for (index, weight) in weights.iter_mut().enumerate() {
            let behind = if index == last {
                activation
            } else {
                ActivationKind::Identity
            };
            self.weights.start(weight, behind, device);
        }
    }

    /// Lets the matrices of a policy start as they should.
    pub(crate) fn start_policy(&self, policy: &mut PolicyNetwork, device: &Device) {
        let linears = match policy {
            PolicyNetwork::Linear(policy) => vec![&mut policy.projection],
            PolicyNetwork::Glu(policy) => {
                let pairs = policy.units.iter_mut();
                pairs
                    .flat_map(|unit| [&mut unit.value, &mut unit.gate])
                    .collect()
            }
            PolicyNetwork::Mlp(policy) => {
                let last = [&mut policy.projection];
                policy.layers.iter_mut().chain(last).collect()
            }
        };
        for linear in linears {
            self.policy_weights
                .start(&mut linear.weight, ActivationKind::Identity, device);
        }
    }
}

impl WeightStart {
    fn check(self, key: &str) -> Result<(), RunError> {
        match self {
            Self::SemiOrthogonal(gain) if !(gain > 0.0 && gain.is_finite()) => {
                let key = format!("{key}.semi-orthogonal");
                Err(RunError::value(key, gain, "must be a number above 0"))
            }
            _ => Ok(()),
        }
    }

    /// The gain with this activation behind the matrix; none if it is not semi-orthogonal by this.
    fn gain(self, behind: ActivationKind) -> Option<f64> {
        match self {
            Self::Usual => None,
            Self::SemiOrthogonal(gain) => Some(gain),
            Self::SemiOrthogonalByActivation => Some(match behind {
                ActivationKind::Relu => std::f64::consts::SQRT_2,
                ActivationKind::Tanh => 5.0 / 3.0,
                ActivationKind::Identity | ActivationKind::Sigmoid => 1.0,
            }),
        }
    }

    fn start(self, weight: &mut Param<Tensor<2>>, behind: ActivationKind, device: &Device) {
        if let Some(gain) = self.gain(behind) {
            let shape = weight.lazy_shape().dims();
            *weight = semi_orthogonal_with_gain(shape, gain, device);
        }
    }
}

#[cfg(test)]
mod tests {
    use adaparam::AdaptiveFeedForward;
    use burn::tensor::Distribution;
    use burn::tensor::activation::sigmoid;

    use super::*;
    use crate::network::{BiasKind, Layer, LayerSpec, Network, NetworkSpec, PolicySpec};

    fn network(layers: Vec<LayerSpec>, conventions: Conventions) -> (Network, Device) {
        let device = Device::flex();
        let spec = NetworkSpec {
            name: String::new(),
            layers,
            conventions,
        };
        (spec.init(6, 3, &device), device)
    }

    fn fixed(width: usize, activation: ActivationKind) -> LayerSpec {
        LayerSpec::Static { width, activation }
    }

    fn sva(width: usize, policy: PolicySpec) -> LayerSpec {
        LayerSpec::Sva {
            width,
            rank: 3,
            activation: ActivationKind::Identity,
            policy,
            bias: BiasKind::Static,
        }
    }

    fn linear(squash: ActivationKind) -> PolicySpec {
        PolicySpec::Linear {
            initial: 1.0,
            squash,
        }
    }

    fn module(layer: &Layer) -> &AdaptiveFeedForward {
        let (Layer::Static(layer) | Layer::Adaptive(layer)) = layer;
        layer
    }

    /// The gain of a matrix that is semi-orthogonal but for it, if it is.
    fn gain(matrix: Tensor<2>) -> Option<f64> {
        let [rows, columns] = matrix.dims();
        let gram = if rows <= columns {
            matrix.clone().matmul(matrix.transpose())
        } else {
            matrix.clone().transpose().matmul(matrix)
        };
        let [size, _] = gram.dims();
        let identity = Tensor::<2>::eye(size, &Device::flex());
        let trace = (gram.clone() * identity.clone()).sum();
        let square = trace.into_scalar::<f64>() / size as f64;
        let rest = gram - identity * square;
        let error = rest.abs().max().into_scalar::<f64>();
        (error < 1e-5).then(|| square.sqrt())
    }

    fn assert_gain(matrix: &Param<Tensor<2>>, expected: Option<f64>) {
        let found = gain(matrix.val());
        let is_same = match (found, expected) {
            (Some(found), Some(expected)) => (found - expected).abs() < 1e-5,
            (found, expected) => found == expected,
        };
        assert!(is_same, "{found:?} instead of {expected:?}");
    }

    #[test]
    fn static_layers_start_as_they_are_told() {
        use ActivationKind::{Identity, Relu, Tanh};
        for (weights, expected) in [
            (WeightStart::Usual, [None; 3]),
            (WeightStart::SemiOrthogonal(1.5), [Some(1.5); 3]),
            (
                WeightStart::SemiOrthogonalByActivation,
                [Some(2.0_f64.sqrt()), Some(5.0 / 3.0), Some(1.0)],
            ),
        ] {
            let conventions = Conventions {
                weights,
                ..Conventions::default()
            };
            let layers = vec![fixed(5, Relu), fixed(4, Tanh), fixed(2, Identity)];
            let (network, _) = network(layers, conventions);
            for (layer, expected) in network.layers.iter().zip(expected) {
                assert_gain(&module(layer).weights[0], expected);
            }
        }
    }

    #[test]
    fn policies_start_as_they_are_told() {
        let narrow = PolicySpec::Mlp {
            latent: 2,
            hidden: vec![4],
            activation: ActivationKind::Identity,
            squash: ActivationKind::Identity,
            initial: Some(1.0),
        };
        let glu = PolicySpec::Glu {
            hidden: vec![2],
            initial: Some(1.0),
        };
        for policy in [linear(ActivationKind::Identity), narrow, glu] {
            for (policy_weights, expected) in [
                (WeightStart::Usual, None),
                (WeightStart::SemiOrthogonal(0.7), Some(0.7)),
            ] {
                let conventions = Conventions {
                    policy_weights,
                    ..Conventions::default()
                };
                let (network, _) = network(vec![sva(4, policy.clone())], conventions);
                let layer = module(&network.layers[0]);
                for weight in &layer.weights {
                    assert_gain(weight, Some(1.0));
                }
                let linears = match layer.policy.as_ref().unwrap() {
                    PolicyNetwork::Linear(policy) => vec![&policy.projection],
                    PolicyNetwork::Glu(policy) => {
                        let pairs = policy.units.iter();
                        pairs.flat_map(|unit| [&unit.value, &unit.gate]).collect()
                    }
                    PolicyNetwork::Mlp(policy) => {
                        policy.layers.iter().chain([&policy.projection]).collect()
                    }
                };
                assert!(!linears.is_empty());
                for linear in linears {
                    assert_gain(&linear.weight, expected);
                }
            }
        }
    }

    #[test]
    fn a_last_layer_may_have_no_bias() {
        let conventions = Conventions {
            last_bias: false,
            ..Conventions::default()
        };
        let policy = linear(ActivationKind::Identity);
        for last in [fixed(2, ActivationKind::Identity), sva(2, policy)] {
            let layers = vec![fixed(5, ActivationKind::Relu), last];
            let (network, device) = network(layers, conventions);
            assert!(module(&network.layers[0]).bias.is_some());
            assert!(module(&network.layers[1]).bias.is_none());
            let x = Tensor::<2>::ones([3, 6], &device);
            assert_eq!(network.forward(x).dims(), [3, 2]);
        }
    }

    /// `W(2) diag(σ(U c + u)) W(1) x + b`, written down once more.
    fn by_hand(
        first: &Tensor<2>,
        rest: &AdaptiveFeedForward,
        c: Tensor<2>,
        x: Tensor<2>,
    ) -> Tensor<2> {
        let Some(PolicyNetwork::Linear(policy)) = &rest.policy else {
            panic!("a linear policy");
        };
        let projection = &policy.projection;
        let u = projection.bias.as_ref().unwrap().val().unsqueeze::<2>();
        let pi = sigmoid(c.matmul(projection.weight.val()) + u);
        let second = rest.weights.last().unwrap().val();
        let b = rest.bias.as_ref().unwrap().val().unsqueeze::<2>();
        (x.matmul(first.clone()) * pi).matmul(second) + b
    }

    #[test]
    fn policies_look_at_what_they_are_told() {
        for context in [
            PolicyContext::LayerInput,
            PolicyContext::NetworkInput,
            PolicyContext::Projection,
        ] {
            let conventions = Conventions {
                context,
                ..Conventions::default()
            };
            let policy = linear(ActivationKind::Sigmoid);
            let layers = vec![sva(4, policy.clone()), sva(2, policy)];
            let (network, device) = network(layers, conventions);
            let input = Tensor::<2>::random([5, 6], Distribution::Normal(0.0, 1.0), &device);
            let modules: Vec<&AdaptiveFeedForward> = network.layers.iter().map(module).collect();
            let layers: Vec<(Tensor<2>, &AdaptiveFeedForward)> = match context {
                PolicyContext::Projection => modules
                    .chunks_exact(2)
                    .map(|pair| (pair[0].weights[0].val(), pair[1]))
                    .collect(),
                _ => modules
                    .iter()
                    .map(|&it| (it.weights[0].val(), it))
                    .collect(),
            };
            assert_eq!(layers.len(), 2);
            let expected = layers.iter().fold(input.clone(), |x, (first, rest)| {
                let c = match context {
                    PolicyContext::LayerInput => x.clone(),
                    PolicyContext::NetworkInput => input.clone(),
                    PolicyContext::Projection => x.clone().matmul(first.clone()),
                };
                by_hand(first, rest, c, x)
            });
            let difference = (network.forward(input) - expected).abs().max();
            let difference = difference.into_scalar::<f64>();
            assert!(difference < 1e-5, "{context:?}: off by {difference:e}");
        }
    }

    #[test]
    fn a_start_that_is_none_is_refused_by_its_key() {
        let check = |weights, policy_weights| {
            let conventions = Conventions {
                weights,
                policy_weights,
                ..Conventions::default()
            };
            let error = conventions.check("network.conventions").err();
            error.map(|error| error.to_string()).unwrap_or_default()
        };
        let usual = WeightStart::Usual;
        assert_eq!(check(WeightStart::SemiOrthogonal(0.5), usual), "");
        for gain in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let wrong = WeightStart::SemiOrthogonal(gain);
            let place = "network.conventions.weights.semi-orthogonal = ";
            assert!(check(wrong, usual).starts_with(place), "{gain}");
            assert!(check(usual, wrong).contains("policy_weights"), "{gain}");
        }
        let by_activation = WeightStart::SemiOrthogonalByActivation;
        assert_eq!(check(by_activation, usual), "");
        assert!(check(usual, by_activation).contains("policy_weights"));
    }

    #[test]
    fn conventions_survive_toml_and_the_usual_ones_are_not_written() {
        let spec = |conventions| NetworkSpec {
            name: "n".to_owned(),
            layers: vec![fixed(2, ActivationKind::Identity)],
            conventions,
        };
        let usual = toml::to_string(&spec(Conventions::default())).unwrap();
        assert!(!usual.contains("conventions"), "{usual}");
        for weights in [
            WeightStart::SemiOrthogonal(1.5),
            WeightStart::SemiOrthogonalByActivation,
        ] {
            let spec = spec(Conventions {
                weights,
                context: PolicyContext::Projection,
                last_bias: false,
                ..Conventions::default()
            });
            let text = toml::to_string(&spec).unwrap();
            assert_eq!(
                toml::from_str::<NetworkSpec>(&text).unwrap(),
                spec,
                "{text}"
            );
        }
    }
}

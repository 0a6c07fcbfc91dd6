use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Tensor};

use super::{Dense, Policy};

/// Configuration of a [`GluPolicy`].
#[derive(Config, Debug)]
pub struct GluPolicyConfig {
    /// The widths of the gated linear units before the last one; none by default.
    #[config(default = "Vec::new()")]
    pub hidden: Vec<usize>,
    /// The value around which every diagonal starts; `None` leaves the biases to the initialiser.
    #[config(default = "Some(1.0)")]
    pub initial: Option<f64>,
    /// How weights are initialised.
    #[config(
        default = "Initializer::KaimingUniform{gain: 1.0 / 3.0f64.sqrt(), fan_out_only: false}"
    )]
    pub initializer: Initializer,
}

/// A policy of gated linear units, `π(c) = (A c + a) ⊙ σ(G c + g)`.
///
/// The tail regression of section 4.1 of the paper uses one such unit.
#[derive(Module, Debug)]
pub struct GluPolicy {
    /// The units, applied one after the other.
    pub units: Vec<GatedLinearUnit>,
}

/// One gated linear unit, `(A c + a) ⊙ σ(G c + g)`.
#[derive(Module, Debug)]
pub struct GatedLinearUnit {
    /// `A` and `a`.
    pub value: Linear,
    /// `G` and `g`.
    pub gate: Linear,
}

impl GluPolicyConfig {
    /// Initialises a policy from `d_context` to `d_policy` numbers.
    pub fn init(&self, d_context: usize, d_policy: usize, device: &Device) -> GluPolicy {
        let widths: Vec<usize> = [&[d_context], self.hidden.as_slice(), &[d_policy]].concat();
        let mut units: Vec<GatedLinearUnit> = widths
            .windows(2)
            .map(|pair| {
                let linear =
                    LinearConfig::new(pair[0], pair[1]).with_initializer(self.initializer.clone());
                GatedLinearUnit {
                    value: linear.init(device),
                    gate: linear.init(device),
                }
            })
            .collect();
        if let (Some(initial), Some(last)) = (self.initial, units.last_mut()) {
            // An open gate lets half of the value through: σ(0) = 1/2.
            last.value.bias = Some(constant(2.0 * initial, d_policy, device));
            last.gate.bias = Some(constant(0.0, d_policy, device));
        }
        GluPolicy { units }
    }
}

fn constant(value: f64, width: usize, device: &Device) -> Param<Tensor<1>> {
    Initializer::Constant { value }.init([width], device)
}

impl GatedLinearUnit {
    /// # Shapes
    ///
    /// - input: `[.., d_input]`
    /// - output: `[.., d_output]`
    pub fn forward<const N: usize>(&self, input: Tensor<N>) -> Tensor<N> {
        self.value.forward(input.clone()) * sigmoid(self.gate.forward(input))
    }
}

impl GluPolicy {
    pub(super) fn start_at(&mut self, start: Tensor<1>) {
        let last = self.units.last_mut().expect("there is at least one unit");
        // A gate that is neither open nor closed lets half of the value through: σ(0) = 1/2.
        super::constant(&mut last.gate, start.zeros_like());
        super::constant(&mut last.value, start * 2.0);
    }
}

impl Policy for GluPolicy {
    fn forward<const N: usize>(&self, context: Tensor<N>) -> Tensor<N> {
        self.units
            .iter()
            .fold(context, |input, unit| unit.forward(input))
    }

    fn dense(&self) -> Option<Vec<Dense<'_>>> {
        let units = self.units.iter().map(|unit| Dense {
            value: &unit.value,
            activation: None,
            gate: Some(&unit.gate),
        });
        Some(units.collect())
    }
}

//! What the four adaptations do to a weight matrix. Paper Figure 1, drawn from real layers.

use adaparam::policy::LinearPolicyConfig;
use adaparam::{AdaptiveFeedForward, AdaptiveFeedForwardConfig};
use adaparam_lm::draw_alone;
use burn::module::Param;
use burn::nn::Initializer;
use burn::tensor::{Device, Distribution, Tensor};

/// Rows and columns, as in the paper's figure.
pub const SIDE: usize = 9;

/// The effective matrix of one layer for one input.
#[derive(Debug, Clone, PartialEq)]
pub struct AdaptedMatrix {
    /// The adaptation.
    pub name: &'static str,
    /// Its formula.
    pub formula: &'static str,
    /// `SIDE` rows of `SIDE` numbers.
    pub values: Vec<f32>,
}

/// One matrix for each adaptation, from one seed.
///
/// The static matrix of the first three layers is about 1 everywhere, so that the pattern seen is the
/// adaptation's own. Singular value adaptation has semi-orthogonal matrices, as it has in use.
pub fn adapted_matrices(seed: u64, device: &Device) -> Vec<AdaptedMatrix> {
    draw_alone(seed, device, || {
        let context = Tensor::<2>::random([1, SIDE], Distribution::Normal(0.0, 1.0), device);
        let matrix = |name, formula, config: AdaptiveFeedForwardConfig, flat: bool| {
            let mut layer = config.with_policy(strong_policy()).init(device);
            if flat {
                flatten(&mut layer, device);
            }
            AdaptedMatrix {
                name,
                formula,
                values: layer
                    .effective_weight(context.clone())
                    .into_data()
                    .iter()
                    .collect(),
            }
        };
        vec![
            matrix(
                "output",
                "D W",
                AdaptiveFeedForwardConfig::output(SIDE, SIDE),
                true,
            ),
            matrix(
                "input",
                "W D",
                AdaptiveFeedForwardConfig::input(SIDE, SIDE),
                true,
            ),
            matrix(
                "IO",
                "D⁽²⁾ W D⁽¹⁾",
                AdaptiveFeedForwardConfig::io(SIDE, SIDE),
                true,
            ),
            matrix(
                "SVA",
                "W⁽²⁾ D W⁽¹⁾",
                AdaptiveFeedForwardConfig::sva(SIDE, SIDE, SIDE),
                false,
            ),
        ]
    })
}

fn strong_policy() -> adaparam::PolicyConfig {
    let initializer = Initializer::Normal {
        mean: 0.0,
        std: 0.3,
    };
    LinearPolicyConfig::new()
        .with_initial(0.0)
        .with_initializer(initializer)
        .into()
}

fn flatten(layer: &mut AdaptiveFeedForward, device: &Device) {
    let about_one = Distribution::Normal(1.0, 0.08);
    layer.weights[0] = Param::from_tensor(Tensor::random([SIDE, SIDE], about_one, device));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: impl Iterator<Item = f32> + Clone) -> f32 {
        let mean = values.clone().sum::<f32>() / SIDE as f32;
        values.map(|value| (value - mean).powi(2)).sum::<f32>() / SIDE as f32
    }

    #[test]
    fn output_adaptation_changes_rows_and_input_adaptation_columns() {
        let matrices = adapted_matrices(1, &Device::flex());
        let along_rows = |m: &AdaptedMatrix| -> f32 {
            (0..SIDE)
                .map(|r| spread((0..SIDE).map(move |c| m.values[r * SIDE + c])))
                .sum()
        };
        let along_columns = |m: &AdaptedMatrix| -> f32 {
            (0..SIDE)
                .map(|c| spread((0..SIDE).map(move |r| m.values[r * SIDE + c])))
                .sum()
        };
        let (output, input) = (&matrices[0], &matrices[1]);
        assert!(along_rows(output) < 0.2 * along_columns(output));
        assert!(along_columns(input) < 0.2 * along_rows(input));
    }

    #[test]
    fn the_same_seed_draws_the_same_figure() {
        let device = Device::flex();
        assert_eq!(adapted_matrices(3, &device), adapted_matrices(3, &device));
        assert_ne!(adapted_matrices(3, &device), adapted_matrices(4, &device));
    }
}

use burn::tensor::Tensor;

/// What is added to the mean loss of a window: penalties on the output of the last layer.
///
/// ```text
/// AR  = α · mean(dropped output²)
/// TAR = β · mean((output of a step − output of the step before)²)
/// ```
///
/// The output of TAR is the one before dropout; a window of one step has none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Penalties {
    /// `α`.
    pub activation: f64,
    /// `β`.
    pub temporal: f64,
}

impl Penalties {
    /// The penalties of outputs `[T, B, E]`, before and after dropout; none if there are none.
    pub(crate) fn of(self, output: &Tensor<3>, dropped: &Tensor<3>) -> Option<Tensor<1>> {
        let mean_square = |tensor: Tensor<3>| (tensor.clone() * tensor).mean();
        let activation = (self.activation > 0.0)
            .then(|| mean_square(dropped.clone()).mul_scalar(self.activation));
        let [steps, _, _] = output.dims();
        let temporal = (self.temporal > 0.0 && steps > 1).then(|| {
            let later = output.clone().narrow(0, 1, steps - 1);
            let earlier = output.clone().narrow(0, 0, steps - 1);
            mean_square(later - earlier).mul_scalar(self.temporal)
        });
        match (activation, temporal) {
            (Some(activation), Some(temporal)) => Some(activation + temporal),
            (activation, temporal) => activation.or(temporal),
        }
    }

    /// Adds the gradient of AR to `d_dropped`, by the dropped output.
    pub(super) fn add_activation(self, dropped: &[f32], d_dropped: &mut [f32]) {
        if self.activation > 0.0 {
            let factor = (2.0 * self.activation / dropped.len() as f64) as f32;
            for (d, h) in d_dropped.iter_mut().zip(dropped) {
                *d += factor * h;
            }
        }
    }

    /// Adds the gradient of TAR to `d_output`, by the output before dropout, of which a step has `row` numbers.
    pub(super) fn add_temporal(self, output: &[f32], row: usize, d_output: &mut [f32]) {
        if self.temporal > 0.0 && output.len() > row {
            let factor = (2.0 * self.temporal / (output.len() - row) as f64) as f32;
            for later in row..output.len() {
                let change = factor * (output[later] - output[later - row]);
                d_output[later] += change;
                d_output[later - row] -= change;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    fn penalty(penalties: Penalties, output: [[[f32; 2]; 1]; 3]) -> f32 {
        let output = Tensor::<3>::from_data(output, &Device::flex());
        penalties.of(&output, &output).unwrap().into_scalar()
    }

    #[test]
    fn penalties_are_means_of_squares_and_a_constant_output_has_no_change() {
        let temporal = Penalties {
            activation: 0.0,
            temporal: 3.0,
        };
        let constant = penalty(temporal, [[[1.0, 2.0]]; 3]);
        assert_eq!(constant.to_bits(), 0.0_f32.to_bits());
        // Changes 1, 0, then 0, 2: squares 1 and 4 of four numbers.
        let changing = penalty(temporal, [[[0.0, 1.0]], [[1.0, 1.0]], [[1.0, 3.0]]]);
        assert!((changing - 3.0 * 5.0 / 4.0).abs() < 1e-6, "{changing}");
        let activation = Penalties {
            activation: 2.0,
            temporal: 0.0,
        };
        let size = penalty(activation, [[[1.0, 2.0]]; 3]);
        assert!((size - 2.0 * 2.5).abs() < 1e-6, "{size}");
    }
}

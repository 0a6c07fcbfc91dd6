//! The mean cross-entropy of a batch: on the CPU as one operation with its gradient, elsewhere Burn's own.
//!
//! Of a few classes, Burn's takes a dozen small operations there and back, which for the networks of Table 1 is a tenth of a
//! training step.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients as Graph;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::{Autodiff, Flex};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::{Int, Tensor, TensorData};

/// Mean over rows of `−log softmax(logits)` at each row's label.
///
/// # Panics
/// If there are not as many labels as rows, or a label is no class.
pub(crate) fn mean_cross_entropy(logits: Tensor<2>, labels: &[u8]) -> Tensor<1> {
    let [rows, classes] = logits.dims();
    assert_eq!(rows, labels.len(), "a label for every row");
    assert!(
        labels.iter().all(|&label| usize::from(label) < classes),
        "a label of {classes} classes"
    );
    let located = logits
        .clone()
        .try_into_primitive::<Autodiff<Flex, NoCheckpointing>>();
    let Ok(located) = located else {
        return of_burn(logits, labels);
    };
    let (values, node) = located.into_parts();
    let values = values.to_contiguous();
    let Some(numbers) = values.as_slice::<f32>() else {
        return of_burn(logits, labels);
    };
    let (mean, gradient) = mean_and_gradient(numbers, classes, labels);
    let output = FlexTensor::from_data(TensorData::new(vec![mean], [1]));
    let operation = MeanCrossEntropy.prepare::<NoCheckpointing>([node]);
    let output = match operation.compute_bound().stateful() {
        OpsKind::Tracked(operation) => {
            let gradient = FlexTensor::from_data(TensorData::new(gradient, [rows, classes]));
            operation.finish(gradient, output)
        }
        OpsKind::UnTracked(operation) => operation.finish(output),
    };
    Tensor::from_primitive::<Autodiff<Flex, NoCheckpointing>>(output)
}

fn of_burn(logits: Tensor<2>, labels: &[u8]) -> Tensor<1> {
    let device = logits.device();
    let targets: Vec<i64> = labels.iter().map(|&label| i64::from(label)).collect();
    let targets = TensorData::new(targets, [labels.len()]);
    let targets = Tensor::<1, Int>::from_data(targets, &device);
    let loss = CrossEntropyLossConfig::new().init(&device);
    loss.forward(logits, targets)
}

/// The mean, and its derivative by every number.
fn mean_and_gradient(logits: &[f32], classes: usize, labels: &[u8]) -> (f32, Vec<f32>) {
    let per_row = 1.0 / labels.len() as f32;
    let mut gradient = Vec::with_capacity(logits.len());
    let mut sum = 0.0;
    for (row, &label) in logits.chunks_exact(classes).zip(labels) {
        let label = usize::from(label);
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let first = gradient.len();
        gradient.extend(row.iter().map(|&x| (x - largest).exp()));
        let of_row = &mut gradient[first..];
        let total: f32 = of_row.iter().sum();
        sum += f64::from(total.ln() + largest - row[label]);
        for probability in of_row.iter_mut() {
            *probability *= per_row / total;
        }
        of_row[label] -= per_row;
    }
    ((sum / labels.len() as f64) as f32, gradient)
}

#[derive(Debug)]
struct MeanCrossEntropy;

impl Backward<Flex, 1> for MeanCrossEntropy {
    /// The derivative by the logits.
    type State = FlexTensor;

    fn backward(self, ops: Ops<Self::State, 1>, graph: &mut Graph, _: &mut Checkpointer) {
        let above = graph.consume::<Flex>(&ops.node).to_contiguous();
        let above = above.as_slice::<f32>().map_or(f32::NAN, |above| above[0]);
        let mut gradient = ops.state;
        for number in gradient.storage_mut::<f32>() {
            *number *= above;
        }
        if let [Some(parent)] = ops.parents {
            graph.register::<Flex>(parent.id, gradient);
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Distribution, Tolerance};

    use super::*;

    /// Value and gradient of the loss times three, as either computes it.
    fn of(
        loss: impl Fn(Tensor<2>, &[u8]) -> Tensor<1>,
        logits: &TensorData,
        labels: &[u8],
    ) -> (TensorData, TensorData) {
        let device = Device::flex().autodiff();
        let logits = Tensor::<2>::from_data(logits.clone(), &device).require_grad();
        let value = loss(logits.clone() * 2.0, labels) * 3.0;
        let gradients = value.backward();
        let gradient = logits.grad(&gradients).unwrap();
        (value.into_data(), gradient.into_data())
    }

    #[test]
    fn value_and_gradient_are_those_of_burn() {
        for (rows, classes) in [(1, 1), (1, 2), (7, 10), (128, 10), (3, 256)] {
            let shape = [rows, classes];
            let normal = Distribution::Normal(0.0, 3.0);
            let logits = Tensor::<2>::random(shape, normal, &Device::flex()).into_data();
            let labels: Vec<u8> = (0..rows).map(|row| (row * 7 % classes) as u8).collect();
            let (value, gradient) = of(mean_cross_entropy, &logits, &labels);
            let (expected, expected_gradient) = of(of_burn, &logits, &labels);
            let tolerance = Tolerance::<f32>::absolute(1e-6).set_relative(1e-5);
            value.assert_approx_eq(&expected, tolerance);
            gradient.assert_approx_eq(&expected_gradient, tolerance);
        }
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        let (mean, gradient) = mean_and_gradient(&[1e4, -1e4, 3e4], 3, &[0]);
        assert_eq!(mean.to_bits(), 2e4_f32.to_bits());
        assert_eq!(gradient, [-1.0, 0.0, 1.0]);
        let (mean, _) = mean_and_gradient(&[f32::NAN, 0.0], 2, &[0]);
        assert!(mean.is_nan());
    }

    #[test]
    #[should_panic(expected = "a label of 3 classes")]
    fn a_label_that_is_no_class_is_refused() {
        mean_cross_entropy(Tensor::zeros([1, 3], &Device::flex()), &[3]);
    }
}

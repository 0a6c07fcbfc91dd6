use burn::module::{Param, ParamId};
use burn::tensor::{Device, Distribution, Tensor, TensorData};

/// How many vectors are freed of all earlier ones by one product.
const BLOCK: usize = 64;

/// A parameter drawn uniformly among the semi-orthogonal matrices: the rows are orthonormal if it is wide, the
/// columns if it is tall (Saxe et al., 2013).
///
/// Drawn on first use, from the random numbers of the device. Burn's own `Initializer::Orthogonal` gives the same
/// distribution, but takes minutes for a matrix of 1150 by 4600.
pub(crate) fn semi_orthogonal(shape: [usize; 2], device: &Device) -> Param<Tensor<2>> {
    semi_orthogonal_with_gain(shape, 1.0, device)
}

/// The same with every number times `gain`, which is then the size of all singular values: √2 keeps the size of what goes
/// through layers with `ReLU`, 5/3 through layers with tanh.
///
/// # Shapes
///
/// - output: `shape`, `[d_input, d_output]` as Burn stores weights
pub fn semi_orthogonal_with_gain(
    shape: [usize; 2],
    gain: f64,
    device: &Device,
) -> Param<Tensor<2>> {
    Param::uninitialized(
        ParamId::new(),
        move |device, require_grad| {
            let matrix = draw(shape, gain, device);
            if require_grad {
                matrix.require_grad()
            } else {
                matrix
            }
        },
        device.clone(),
        true,
        shape.into(),
    )
}

/// Gram–Schmidt over Gaussian vectors, in blocks: products on the device free a block of all earlier vectors, and
/// the little that is left to do within the block is done here.
fn draw([d_input, d_output]: [usize; 2], gain: f64, device: &Device) -> Tensor<2> {
    let count = d_input.min(d_output);
    let length = d_input.max(d_output);
    let mut basis: Vec<f64> = Vec::with_capacity(count * length);
    while basis.len() < count * length {
        let earlier = basis.len() / length;
        let size = BLOCK.min(count - earlier);
        let mut block = Tensor::random([size, length], Distribution::Normal(0.0, 1.0), device);
        if earlier > 0 {
            let data = TensorData::new(basis.clone(), [earlier, length]);
            block = without_span(block, Tensor::from_data(data, device));
        }
        let mut block = block
            .try_into_vec_as::<f64>()
            .expect("a tensor of floats can be read as f64");
        orthonormalise_rows(&mut block, length);
        basis.append(&mut block);
    }
    // Not a transposed view: products with one round otherwise than with the same numbers read from a record.
    if d_input > d_output {
        basis = transposed(&basis, length);
    }
    for number in &mut basis {
        *number *= gain;
    }
    Tensor::from_data(TensorData::new(basis, [d_input, d_output]), device)
}

fn transposed(rows: &[f64], length: usize) -> Vec<f64> {
    (0..length)
        .flat_map(|column| rows[column..].iter().step_by(length))
        .copied()
        .collect()
}

/// Takes from each row of `block` its part in the span of the orthonormal rows of `basis`. Twice, because rounding
/// errors of the first time leave a small part behind.
fn without_span(block: Tensor<2>, basis: Tensor<2>) -> Tensor<2> {
    (0..2).fold(block, |block, _| {
        let coordinates = block.clone().matmul(basis.clone().transpose());
        block - coordinates.matmul(basis.clone())
    })
}

/// Modified Gram–Schmidt, twice for each row for the same reason.
fn orthonormalise_rows(rows: &mut [f64], length: usize) {
    for row in 0..rows.len() / length {
        let (earlier, rest) = rows.split_at_mut(row * length);
        let current = &mut rest[..length];
        for _ in 0..2 {
            for basis in earlier.chunks_exact(length) {
                let coordinate = dot(current, basis);
                for (x, b) in current.iter_mut().zip(basis) {
                    *x -= coordinate * b;
                }
            }
        }
        let norm = dot(current, current).sqrt();
        for x in current {
            *x /= norm;
        }
    }
}

/// With eight sums at once, which the processor can do side by side.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a_chunks, a_rest) = a.as_chunks::<8>();
    let (b_chunks, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn furthest_from_identity(gram: Tensor<2>) -> f64 {
        let [size, _] = gram.dims();
        let identity = Tensor::eye(size, &gram.device());
        (gram - identity).abs().max().into_scalar()
    }

    #[test]
    fn wide_matrices_have_orthonormal_rows_and_tall_ones_orthonormal_columns() {
        let device = Device::flex();
        for shape in [
            [1, 1],
            [1, 7],
            [7, 1],
            [3, 12],
            [70, 71],
            [200, 130],
            [129, 520],
        ] {
            let matrix = semi_orthogonal(shape, &device).val();
            assert_eq!(matrix.dims(), shape);
            let gram = if shape[0] <= shape[1] {
                matrix.clone().matmul(matrix.transpose())
            } else {
                matrix.clone().transpose().matmul(matrix)
            };
            let error = furthest_from_identity(gram);
            assert!(error < 2e-6, "{shape:?} is off by {error:e}");
        }
    }

    #[test]
    fn a_gain_is_the_size_of_every_singular_value() {
        let device = Device::flex();
        for (shape, gain) in [([12, 3], 1.4), ([3, 12], 0.5), ([70, 71], 5.0 / 3.0)] {
            let matrix = semi_orthogonal_with_gain(shape, gain, &device).val();
            let gram = if shape[0] <= shape[1] {
                matrix.clone().matmul(matrix.transpose())
            } else {
                matrix.clone().transpose().matmul(matrix)
            };
            let error = furthest_from_identity(gram / (gain * gain));
            assert!(error < 2e-6, "{shape:?} is off by {error:e}");
        }
    }
}

use burn::tensor::{DType, Device, Tensor, TensorData};

use crate::singular_values::SingularValues;

/// A weight by its leading singular values: `W = U S Vᵀ + R`.
pub(crate) struct Leading {
    /// `[d_input, rank]` and `[rank, d_output]`, with orthonormal columns and rows.
    pub(crate) weights: [Tensor<2>; 2],
    /// The singular values, the largest first.
    pub(crate) values: Vec<f64>,
    /// `R`, what the other singular values make; none if there are no others.
    pub(crate) remainder: Option<Tensor<2>>,
}

impl Leading {
    /// # Panics
    ///
    /// Panics if the weight holds a number that is not finite, or if `rank` is not from 1 to its smaller side.
    pub(crate) fn of(weight: Tensor<2>, rank: usize) -> Self {
        let [d_input, d_output] = weight.dims();
        let all = d_input.min(d_output);
        assert!(
            (1..=all).contains(&rank),
            "rank = {rank}: a weight of {d_input} by {d_output} has 1 to {all} singular values"
        );
        let (device, dtype) = (weight.device(), weight.dtype());
        let mut numbers: Vec<f64> = weight
            .into_data()
            .convert_dtype(DType::F64)
            .try_into_vec()
            .expect("converted to f64 just before");
        let svd = SingularValues::of(&numbers, d_input, d_output);
        let (left, right) = (&svd.left[..rank], &svd.right[..rank]);
        let down: Vec<f64> = (0..d_input)
            .flat_map(|row| left.iter().map(move |column| column[row]))
            .collect();
        let up = right.concat();
        let remainder = (rank < all).then(|| {
            for (row, numbers) in numbers.chunks_exact_mut(d_output).enumerate() {
                for ((u, v), value) in left.iter().zip(right).zip(&svd.values) {
                    let scale = u[row] * value;
                    for (x, v) in numbers.iter_mut().zip(v) {
                        *x -= scale * v;
                    }
                }
            }
            tensor(numbers, [d_input, d_output], &device, dtype)
        });
        Self {
            weights: [
                tensor(down, [d_input, rank], &device, dtype),
                tensor(up, [rank, d_output], &device, dtype),
            ],
            values: svd.values[..rank].to_vec(),
            remainder,
        }
    }
}

/// A tensor of these numbers, row after row, in the precision of `dtype`.
pub(crate) fn tensor<const D: usize>(
    numbers: Vec<f64>,
    shape: [usize; D],
    device: &Device,
    dtype: DType,
) -> Tensor<D> {
    let data = TensorData::new(numbers, shape).convert_dtype(dtype);
    Tensor::from_data(data, (device, dtype))
}

use super::matrix::Matrix;

/// A diagonal of eq. (8): a part of the policy vector, or the identity.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Diagonal {
    Part { start: usize, width: usize },
    Identity,
}

impl Diagonal {
    pub(crate) fn entry(self, policy: &[f64], k: usize) -> f64 {
        match self {
            Self::Part { start, .. } => policy[start + k],
            Self::Identity => 1.0,
        }
    }

    /// Adds to the gradient of entry `k`.
    pub(crate) fn add(self, d_policy: &mut [f64], k: usize, gradient: f64) {
        if let Self::Part { start, .. } = self {
            d_policy[start + k] += gradient;
        }
    }

    /// Which entry meets `column` of `x` on its way to `gate`, where `x` has `columns` of them: gates share the
    /// entries unless there are more than columns.
    fn index(self, columns: usize, gate: usize, column: usize) -> usize {
        match self {
            Self::Part { width, .. } if width > columns => gate * columns + column,
            _ => column,
        }
    }
}

/// `D(out) W D(in) x`.
pub(crate) fn adapted(
    weight: &Matrix,
    x: &[f64],
    policy: &[f64],
    d_in: Diagonal,
    d_out: Diagonal,
) -> Vec<f64> {
    (0..weight.rows)
        .map(|row| {
            let gate = row / (weight.rows / 4);
            let product: f64 = (0..weight.columns)
                .map(|column| {
                    let k = d_in.index(weight.columns, gate, column);
                    weight.at(row, column) * d_in.entry(policy, k) * x[column]
                })
                .sum();
            d_out.entry(policy, row) * product
        })
        .collect()
}

/// The backward pass of [`adapted`]: adds to the gradients of weights and policy, gives the one of `x`.
pub(crate) fn adapted_backward(
    (weight, d_weight): (&Matrix, &mut Matrix),
    x: &[f64],
    (policy, d_policy): (&[f64], &mut [f64]),
    (d_in, d_out): (Diagonal, Diagonal),
    du: &[f64],
) -> Vec<f64> {
    let mut dx = vec![0.0; x.len()];
    for (row, du) in du.iter().enumerate() {
        let gate = row / (weight.rows / 4);
        let out = d_out.entry(policy, row);
        for column in 0..weight.columns {
            let k = d_in.index(weight.columns, gate, column);
            let inner = d_in.entry(policy, k);
            let w = weight.at(row, column);
            *d_weight.at_mut(row, column) += du * out * inner * x[column];
            dx[column] += du * out * w * inner;
            d_in.add(d_policy, k, du * out * w * x[column]);
            d_out.add(d_policy, row, du * w * inner * x[column]);
        }
    }
    dx
}

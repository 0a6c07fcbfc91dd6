//! The singular value decomposition `W = U S Vᵀ`, by one-sided Jacobi rotations in `f64`.
//!
//! Pairs of columns are rotated until all are orthogonal to each other: their lengths are the singular values then. Slower than
//! what large libraries do, but accurate for small values too, and a page long. Its time grows with the larger side and with the
//! square of the smaller one; it is done once, when a layer is wrapped.

use crate::semi_orthogonal::dot;

/// More sweeps than any matrix needs: convergence is quadratic at the end.
const MOST_SWEEPS: usize = 60;

/// `W = U S Vᵀ` of a matrix of `rows` by `columns`, with `min(rows, columns)` singular values, the largest first.
#[derive(Debug, Clone)]
pub(crate) struct SingularValues {
    /// The columns of `U`, one after the other, each `rows` long.
    pub(crate) left: Vec<Vec<f64>>,
    /// The singular values.
    pub(crate) values: Vec<f64>,
    /// The columns of `V`, one after the other, each `columns` long.
    pub(crate) right: Vec<Vec<f64>>,
}

impl SingularValues {
    /// Decomposes a matrix, row after row. Vectors of values that are zero are orthonormal to all others too.
    ///
    /// # Panics
    ///
    /// Panics if there are not `rows · columns` numbers, or if one is not finite.
    pub(crate) fn of(matrix: &[f64], rows: usize, columns: usize) -> Self {
        assert!(
            matrix.len() == rows * columns,
            "a matrix of {rows} by {columns} has {} numbers",
            matrix.len()
        );
        if let Some(value) = matrix.iter().find(|value| !value.is_finite()) {
            panic!("a weight is {value}: only a matrix of finite numbers has singular values");
        }
        if rows < columns {
            let Self {
                left,
                values,
                right,
            } = Self::of_tall(matrix.chunks_exact(columns).map(<[f64]>::to_vec).collect());
            return Self {
                left: right,
                values,
                right: left,
            };
        }
        let column = |c: usize| matrix[c..].iter().step_by(columns).copied().collect();
        Self::of_tall((0..columns).map(column).collect())
    }

    /// Decomposes a matrix that is given by its columns, none of which is shorter than their number.
    fn of_tall(mut columns: Vec<Vec<f64>>) -> Self {
        let count = columns.len();
        let length = columns.first().map_or(0, Vec::len);
        let mut right = identity(count);
        let tolerance = f64::EPSILON * (length as f64).sqrt().max(1.0);
        for _ in 0..MOST_SWEEPS {
            let mut rotated = false;
            // Taken anew in each sweep: what rotations make of them in between is rounded.
            let mut squares: Vec<f64> = columns.iter().map(|column| dot(column, column)).collect();
            for p in 0..count {
                for q in p + 1..count {
                    let product = dot(&columns[p], &columns[q]);
                    let rotation = Rotation::between([squares[p], squares[q]], product, tolerance);
                    if let Some(rotation) = rotation {
                        rotation.apply(&mut columns, p, q);
                        rotation.apply(&mut right, p, q);
                        let moved = rotation.tangent * product;
                        squares[p] = (squares[p] - moved).max(0.0);
                        squares[q] = (squares[q] + moved).max(0.0);
                        rotated = true;
                    }
                }
            }
            if !rotated {
                break;
            }
        }
        let norm = |column: &Vec<f64>| dot(column, column).sqrt();
        let norms: Vec<f64> = columns.iter().map(norm).collect();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|&a, &b| norms[b].total_cmp(&norms[a]));
        let largest = order.first().map_or(0.0, |&first| norms[first]);
        let nothing = largest * f64::EPSILON * length as f64;

        let (mut left, mut values): (Vec<Vec<f64>>, Vec<f64>) = (Vec::new(), Vec::new());
        for &column in &order {
            let norm = norms[column];
            if norm > nothing {
                left.push(columns[column].iter().map(|x| x / norm).collect());
                values.push(norm);
            } else {
                left.push(orthogonal_to(&left, length));
                values.push(0.0);
            }
        }
        Self {
            left,
            values,
            right: order
                .into_iter()
                .map(|column| std::mem::take(&mut right[column]))
                .collect(),
        }
    }
}

fn identity(size: usize) -> Vec<Vec<f64>> {
    let unit = |at: usize| (0..size).map(|k| f64::from(u8::from(k == at))).collect();
    (0..size).map(unit).collect()
}

/// A rotation of two vectors, after which they are orthogonal.
struct Rotation {
    cosine: f64,
    sine: f64,
    tangent: f64,
}

impl Rotation {
    /// Of vectors with these squared lengths and this product. None if they are orthogonal already, up to `tolerance`.
    fn between([aa, bb]: [f64; 2], ab: f64, tolerance: f64) -> Option<Self> {
        // A product too small to have a square root above zero is nothing to rotate by.
        if ab == 0.0 || ab.abs() <= tolerance * aa.sqrt() * bb.sqrt() {
            return None;
        }
        let zeta = (bb - aa) / (2.0 * ab);
        let tangent = zeta.signum() / (zeta.abs() + zeta.hypot(1.0));
        let cosine = 1.0 / tangent.hypot(1.0);
        Some(Self {
            cosine,
            sine: cosine * tangent,
            tangent,
        })
    }

    fn apply(&self, vectors: &mut [Vec<f64>], p: usize, q: usize) {
        let (before, from_q) = vectors.split_at_mut(q);
        for (a, b) in before[p].iter_mut().zip(&mut from_q[0]) {
            let (x, y) = (*a, *b);
            *a = self.cosine * x - self.sine * y;
            *b = self.sine * x + self.cosine * y;
        }
    }
}

/// A vector of length 1 that is orthogonal to fewer than `length` orthonormal ones.
fn orthogonal_to(basis: &[Vec<f64>], length: usize) -> Vec<f64> {
    // Of the unit vectors, at least one has this much of its length outside of the span.
    let enough = 0.5 / (length as f64).sqrt();
    for at in 0..length {
        let mut vector = vec![0.0; length];
        vector[at] = 1.0;
        // Twice, because rounding errors of the first time leave a small part behind.
        for _ in 0..2 {
            for other in basis {
                let coordinate = dot(&vector, other);
                for (x, y) in vector.iter_mut().zip(other) {
                    *x -= coordinate * y;
                }
            }
        }
        let norm = dot(&vector, &vector).sqrt();
        if norm > enough {
            return vector.into_iter().map(|x| x / norm).collect();
        }
    }
    unreachable!("fewer than {length} vectors cannot span all")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn furthest_from_orthonormal(vectors: &[Vec<f64>]) -> f64 {
        let mut worst = 0.0f64;
        for (i, a) in vectors.iter().enumerate() {
            for (j, b) in vectors.iter().enumerate() {
                worst = worst.max((dot(a, b) - f64::from(u8::from(i == j))).abs());
            }
        }
        worst
    }

    fn check(matrix: &[f64], rows: usize, columns: usize) {
        let svd = SingularValues::of(matrix, rows, columns);
        assert_eq!(svd.values.len(), rows.min(columns));
        assert!(svd.values.windows(2).all(|pair| pair[0] >= pair[1]));
        assert!(svd.values.iter().all(|&value| value >= 0.0));
        for vectors in [&svd.left, &svd.right] {
            let error = furthest_from_orthonormal(vectors);
            assert!(error < 1e-12, "vectors off by {error:e}");
        }
        let scale = svd.values[0].max(f64::MIN_POSITIVE);
        for r in 0..rows {
            for c in 0..columns {
                let sum: f64 = (0..svd.values.len())
                    .map(|k| svd.left[k][r] * svd.values[k] * svd.right[k][c])
                    .sum();
                let error = (sum - matrix[r * columns + c]).abs();
                assert!(error <= 1e-12 * scale, "[{r}, {c}] is off by {error:e}");
            }
        }
    }

    #[test]
    fn a_matrix_of_known_values_has_them() {
        // [[3, 0], [4, 5]] has singular values √45 and √5.
        let svd = SingularValues::of(&[3.0, 0.0, 4.0, 5.0], 2, 2);
        assert!((svd.values[0] - 45f64.sqrt()).abs() < 1e-14);
        assert!((svd.values[1] - 5f64.sqrt()).abs() < 1e-14);
    }

    #[test]
    fn matrices_without_full_rank_have_zeros_and_orthonormal_vectors() {
        check(&[0.0; 6], 3, 2);
        check(&[1.0; 12], 3, 4);
        check(&[1.0, 2.0, 2.0, 4.0, 3.0, 6.0], 3, 2);
    }

    #[test]
    #[should_panic(expected = "a weight is NaN")]
    fn a_matrix_with_a_number_that_is_none_is_refused() {
        SingularValues::of(&[1.0, f64::NAN], 2, 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_product_is_the_matrix_and_vectors_are_orthonormal(
            (rows, columns) in (1usize..12, 1usize..12),
            seed in proptest::collection::vec(-3.0f64..3.0, 121),
            size in -8i32..8,
        ) {
            let numbers: Vec<f64> =
                seed[..rows * columns].iter().map(|x| x * 10f64.powi(size)).collect();
            check(&numbers, rows, columns);
        }
    }
}

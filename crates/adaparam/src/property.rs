//! Property 1 of the paper as code: IO adaptation can express any linear map of a given input.
//!
//! For given `W` and `x` and any `G` of the same shape as `W` there are diagonals with
//! `G x = D(2) W D(1) x`. The construction is the one of the paper's appendix: pick a column `k` with
//! `x_k ≠ 0`, let `D(1)` pass that input alone, scaled to 1, and let `D(2)` turn column `k` of `W` into
//! `G x`.

use burn::tensor::{DType, Tensor};
use thiserror::Error;

/// The two diagonals found by [`express`].
#[derive(Debug, Clone)]
pub struct IoDiagonals {
    /// The diagonal of `D(1)`, as wide as the input.
    pub d1: Tensor<1>,
    /// The diagonal of `D(2)`, as wide as the output.
    pub d2: Tensor<1>,
}

/// Why there are no diagonals by the construction of Property 1.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExpressError {
    /// The shapes do not fit each other.
    #[error("G is {g:?}, W is {w:?}, x is [{x}]: G and W must both be [rows, {x}]")]
    Shape {
        /// Shape of `G`.
        g: [usize; 2],
        /// Shape of `W`.
        w: [usize; 2],
        /// Length of `x`.
        x: usize,
    },
    /// A number is infinite or not a number.
    #[error("{name} holds {value}: every number must be finite")]
    NotFinite {
        /// Which of the three arguments.
        name: &'static str,
        /// The offending number.
        value: f64,
    },
    /// No input can carry the construction.
    #[error("x is all zero: at least one input must differ from 0")]
    ZeroInput,
    /// The input of the asked column is zero.
    #[error("x[{column}] is zero: choose a column whose input differs from 0")]
    ZeroInputAt {
        /// The asked column.
        column: usize,
    },
    /// The asked column does not exist.
    #[error("column {column}: x has {inputs} inputs, so columns go from 0 to {}", inputs - 1)]
    NoSuchColumn {
        /// The asked column.
        column: usize,
        /// The number of inputs.
        inputs: usize,
    },
    /// `W` is zero where it would have to be scaled to something else.
    #[error(
        "W[{row}, {column}] is zero, but G x needs {needed} in row {row}: no scaling of a zero gives that \
         (every column with a non-zero input has such a zero; this is the first)"
    )]
    ZeroWeight {
        /// The row of the zero.
        row: usize,
        /// The column of the zero.
        column: usize,
        /// What `G x` is in that row.
        needed: f64,
    },
}

/// Diagonals with `G x = D(2) W D(1) x`, built on the best-conditioned column.
///
/// # Shapes
///
/// - g, w: `[d_output, d_input]`, one row per output as in the paper
/// - x: `[d_input]`
///
/// # Errors
///
/// Where the construction does not exist: `x` is all zero, or every usable column of `W` has a zero in a
/// row where `G x` has none.
pub fn express(g: Tensor<2>, w: Tensor<2>, x: Tensor<1>) -> Result<IoDiagonals, ExpressError> {
    let problem = Problem::read(&g, &w, &x)?;
    let usable: Vec<usize> = (0..problem.x.len())
        .filter(|&k| problem.x[k] != 0.0)
        .collect();
    let first = *usable.first().ok_or(ExpressError::ZeroInput)?;
    let best = usable
        .into_iter()
        .filter(|&k| problem.zero_weight(k).is_none())
        .max_by(|&a, &b| problem.conditioning(a).total_cmp(&problem.conditioning(b)));
    problem.solve(best.unwrap_or(first), &x)
}

/// As [`express`], on the column that the caller chooses: each usable one gives another solution.
///
/// # Errors
///
/// As [`express`], for that one column.
pub fn express_by_column(
    g: Tensor<2>,
    w: Tensor<2>,
    x: Tensor<1>,
    column: usize,
) -> Result<IoDiagonals, ExpressError> {
    let problem = Problem::read(&g, &w, &x)?;
    match problem.x.get(column) {
        None => Err(ExpressError::NoSuchColumn {
            column,
            inputs: problem.x.len(),
        }),
        Some(0.0) => Err(ExpressError::ZeroInputAt { column }),
        Some(_) => problem.solve(column, &x),
    }
}

/// The numbers of a call, in f64.
struct Problem {
    w: Vec<f64>,
    x: Vec<f64>,
    /// `y = G x`.
    y: Vec<f64>,
}

impl Problem {
    fn read(g: &Tensor<2>, w: &Tensor<2>, x: &Tensor<1>) -> Result<Self, ExpressError> {
        let [inputs] = x.dims();
        if g.dims() != w.dims() || w.dims()[1] != inputs {
            return Err(ExpressError::Shape {
                g: g.dims(),
                w: w.dims(),
                x: inputs,
            });
        }
        let g = numbers("G", g)?;
        let w = numbers("W", w)?;
        let x = numbers("x", x)?;
        let y = g
            .chunks_exact(inputs.max(1))
            .map(|row| row.iter().zip(&x).map(|(g, x)| g * x).sum())
            .collect();
        Ok(Self { w, x, y })
    }

    fn weight(&self, row: usize, column: usize) -> f64 {
        self.w[row * self.x.len() + column]
    }

    fn zero_weight(&self, column: usize) -> Option<usize> {
        (0..self.y.len()).find(|&row| self.weight(row, column) == 0.0 && self.y[row] != 0.0)
    }

    /// The smallest number that the construction divides by.
    fn conditioning(&self, column: usize) -> f64 {
        (0..self.y.len())
            .filter(|&row| self.y[row] != 0.0)
            .map(|row| self.weight(row, column).abs())
            .fold(self.x[column].abs(), f64::min)
    }

    fn solve(&self, column: usize, like: &Tensor<1>) -> Result<IoDiagonals, ExpressError> {
        if let Some(row) = self.zero_weight(column) {
            return Err(ExpressError::ZeroWeight {
                row,
                column,
                needed: self.y[row],
            });
        }
        let mut d1 = vec![0.0; self.x.len()];
        d1[column] = 1.0 / self.x[column];
        let d2: Vec<f64> = (0..self.y.len())
            .map(|row| match self.y[row] {
                0.0 => 0.0,
                y => y / self.weight(row, column),
            })
            .collect();
        let tensor = |values: Vec<f64>| {
            Tensor::from_data(
                burn::tensor::TensorData::from(values.as_slice()).convert_dtype(like.dtype()),
                (&like.device(), like.dtype()),
            )
        };
        Ok(IoDiagonals {
            d1: tensor(d1),
            d2: tensor(d2),
        })
    }
}

fn numbers<const N: usize>(
    name: &'static str,
    tensor: &Tensor<N>,
) -> Result<Vec<f64>, ExpressError> {
    let values: Vec<f64> = tensor
        .to_data()
        .convert_dtype(DType::F64)
        .try_into_vec()
        .expect("converted to f64 just before");
    match values.iter().find(|value| !value.is_finite()) {
        Some(&value) => Err(ExpressError::NotFinite { name, value }),
        None => Ok(values),
    }
}

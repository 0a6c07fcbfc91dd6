/// A matrix, `[out, in]` as in the paper, so that `W x` is [`times`](Self::times).
#[derive(Debug, Clone, Default)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) values: Vec<f64>,
}

impl Matrix {
    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.columns + column]
    }

    pub(crate) fn at_mut(&mut self, row: usize, column: usize) -> &mut f64 {
        &mut self.values[row * self.columns + column]
    }

    pub(crate) fn times(&self, x: &[f64]) -> Vec<f64> {
        let product = |row| {
            (0..self.columns)
                .map(|column| self.at(row, column) * x[column])
                .sum()
        };
        (0..self.rows).map(product).collect()
    }

    /// For `y = W x` and the gradient `dy`: adds `dy xᵀ` to `dw` and gives `Wᵀ dy`.
    pub(crate) fn backward(&self, x: &[f64], dy: &[f64], dw: &mut Matrix) -> Vec<f64> {
        let mut dx = vec![0.0; self.columns];
        for (row, dy) in dy.iter().enumerate() {
            for column in 0..self.columns {
                *dw.at_mut(row, column) += dy * x[column];
                dx[column] += self.at(row, column) * dy;
            }
        }
        dx
    }
}

pub(crate) fn add(a: &mut [f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter_mut().zip(b) {
        *a += b;
    }
}

pub(crate) fn times(a: &[f64], b: &[f64]) -> Vec<f64> {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

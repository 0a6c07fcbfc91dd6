/// Eq. (5) for one row, with what its backward pass needs.
#[derive(Debug, Clone)]
pub(crate) struct Gates {
    input: Vec<f64>,
    forget: Vec<f64>,
    candidate: Vec<f64>,
    output: Vec<f64>,
    cell_before: Vec<f64>,
    pub(crate) cell: Vec<f64>,
    pub(crate) hidden: Vec<f64>,
}

impl Gates {
    pub(crate) fn forward(u: &[f64], cell_before: &[f64]) -> Self {
        let h = cell_before.len();
        let sigmoid = |u: f64| 1.0 / (1.0 + (-u).exp());
        let input: Vec<f64> = u[..h].iter().map(|u| sigmoid(*u)).collect();
        let forget: Vec<f64> = u[h..2 * h].iter().map(|u| sigmoid(*u)).collect();
        let candidate: Vec<f64> = u[2 * h..3 * h].iter().map(|u| u.tanh()).collect();
        let output: Vec<f64> = u[3 * h..].iter().map(|u| sigmoid(*u)).collect();
        let cell: Vec<f64> = (0..h)
            .map(|k| forget[k] * cell_before[k] + input[k] * candidate[k])
            .collect();
        let hidden = (0..h).map(|k| output[k] * cell[k].tanh()).collect();
        Self {
            input,
            forget,
            candidate,
            output,
            cell_before: cell_before.to_vec(),
            cell,
            hidden,
        }
    }

    /// From the gradients of hidden state and cell, those of `u` and of the cell before.
    pub(crate) fn backward(&self, dh: &[f64], dc: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let h = self.cell.len();
        let mut du = vec![0.0; 4 * h];
        let mut dc_before = vec![0.0; h];
        for k in 0..h {
            let (i, f, z, o) = (
                self.input[k],
                self.forget[k],
                self.candidate[k],
                self.output[k],
            );
            let tanh_c = self.cell[k].tanh();
            let dc = dc[k] + dh[k] * o * (1.0 - tanh_c * tanh_c);
            du[k] = dc * z * i * (1.0 - i);
            du[h + k] = dc * self.cell_before[k] * f * (1.0 - f);
            du[2 * h + k] = dc * i * (1.0 - z * z);
            du[3 * h + k] = dh[k] * tanh_c * o * (1.0 - o);
            dc_before[k] = dc * f;
        }
        (du, dc_before)
    }
}

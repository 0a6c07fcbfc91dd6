use adaparam::recurrent::{AdaptiveLstm, Lstm, PolicyLatent};
use burn::module::Param;
use burn::tensor::{Gradients, Tensor};

use super::layer::Layer;
use super::matrix::Matrix;

/// Whether to read parameters themselves or their gradients.
pub(crate) enum Reading<'a> {
    Values,
    Gradients(&'a Gradients),
}

impl Reading<'_> {
    fn of<const D: usize>(&self, param: &Param<Tensor<D>>) -> Tensor<D> {
        match self {
            Self::Values => param.val(),
            Self::Gradients(gradients) => gradient(&param.val(), gradients),
        }
    }

    fn matrix(&self, param: &Param<Tensor<2>>) -> Matrix {
        let [columns, rows] = param.dims();
        Matrix {
            rows,
            columns,
            values: numbers(&self.of(param).transpose()),
        }
    }

    fn vector(&self, param: Option<&Param<Tensor<1>>>) -> Vec<f64> {
        param.map_or_else(Vec::new, |param| numbers(&self.of(param)))
    }
}

pub(crate) fn adaptive_layers(lstm: &AdaptiveLstm, reading: &Reading<'_>) -> Vec<Layer> {
    let layers = lstm.layers.iter();
    layers
        .map(|cell| {
            let (latent_input, latent_hidden, latent_bias, latent_bias_hidden) = match &cell.latent
            {
                PolicyLatent::Static(linear) => (
                    reading.matrix(&linear.weight),
                    Matrix::default(),
                    reading.vector(linear.bias.as_ref()),
                    Vec::new(),
                ),
                PolicyLatent::Recurrent(latent) => (
                    reading.matrix(&latent.weight_input),
                    reading.matrix(&latent.weight_hidden),
                    reading.vector(latent.bias.as_ref()),
                    reading.vector(latent.bias_hidden.as_ref()),
                ),
            };
            Layer {
                latent_input,
                latent_hidden,
                latent_bias,
                latent_bias_hidden,
                projection: reading.matrix(&cell.projection),
                weight_input: reading.matrix(&cell.weight_input),
                weight_hidden: reading.matrix(&cell.weight_hidden),
                bias: reading.vector(cell.bias.as_ref()),
            }
        })
        .collect()
}

/// Plain layers have a latent and a policy of width 0.
pub(crate) fn plain_layers(lstm: &Lstm, reading: &Reading<'_>) -> Vec<Layer> {
    let layers = lstm.layers.iter();
    layers
        .map(|cell| {
            let weight_input = reading.matrix(&cell.weight_input);
            let weight_hidden = reading.matrix(&cell.weight_hidden);
            Layer {
                latent_input: Matrix {
                    rows: 0,
                    columns: weight_input.columns + weight_hidden.columns,
                    values: Vec::new(),
                },
                weight_input,
                weight_hidden,
                bias: reading.vector(cell.bias.as_ref()),
                ..Layer::default()
            }
        })
        .collect()
}

/// The gradient of a tensor; zeros where nothing depends on it.
pub(crate) fn gradient<const D: usize>(tensor: &Tensor<D>, gradients: &Gradients) -> Tensor<D> {
    let zeros = || Tensor::zeros(tensor.dims(), &tensor.device().inner());
    tensor.grad(gradients).unwrap_or_else(zeros)
}

pub(crate) fn numbers<const D: usize>(tensor: &Tensor<D>) -> Vec<f64> {
    tensor.try_to_vec_as().expect("floats can be read as f64")
}

pub(crate) fn rows(tensor: &Tensor<2>) -> Vec<Vec<f64>> {
    let [_, width] = tensor.dims();
    numbers(tensor)
        .chunks_exact(width)
        .map(<[f64]>::to_vec)
        .collect()
}

/// One row of the batch, for each step.
pub(crate) fn sequence_row(tensor: &Tensor<3>, row: usize) -> Vec<Vec<f64>> {
    rows(&tensor.clone().narrow(1, row, 1).squeeze_dim(1))
}

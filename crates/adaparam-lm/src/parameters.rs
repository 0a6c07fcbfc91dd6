//! The parameters of a model one by one, under the names that they have in the released PyTorch code.

use adaparam::recurrent::{AdaptiveLstmCell, LstmCell, PolicyLatent};
use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::module::Param;
use burn::tensor::{Gradients, Tensor, TensorData};

use crate::model::LanguageModel;
use crate::stack::Stack;

/// One parameter of a model.
///
/// In memory its numbers are in Burn's order; in files they are in PyTorch's, where the weight of a linear map is
/// `[out, in]`.
pub struct Parameter<'a> {
    /// Its name in the released code, such as `rnns.alstm_layers.0.weight_ih`.
    pub name: String,
    place: Place<'a>,
}

enum Place<'a> {
    /// `[in, out]` here, `[out, in]` there.
    Transposed(&'a mut Param<Tensor<2>>),
    Matrix(&'a mut Param<Tensor<2>>),
    Vector(&'a mut Param<Tensor<1>>),
}

impl LanguageModel {
    /// Every parameter, in a fixed order.
    pub fn parameters(&mut self) -> Vec<Parameter<'_>> {
        let mut all = vec![
            Parameter {
                name: "encoder.weight".to_owned(),
                place: Place::Matrix(&mut self.embedding),
            },
            Parameter {
                name: "decoder.bias".to_owned(),
                place: Place::Vector(&mut self.decoder_bias),
            },
        ];
        match &mut self.stack {
            Stack::Lstm(lstm) => {
                for (l, cell) in lstm.layers.iter_mut().enumerate() {
                    all.extend(lstm_cell(cell, &format!("rnns.{l}"), "_l0"));
                }
            }
            Stack::Adaptive(lstm) => {
                for (l, cell) in lstm.layers.iter_mut().enumerate() {
                    all.extend(adaptive_cell(cell, l));
                }
            }
        }
        all
    }
}

fn transposed(name: String, param: &mut Param<Tensor<2>>) -> Parameter<'_> {
    Parameter {
        name,
        place: Place::Transposed(param),
    }
}

fn vector(name: String, param: Option<&mut Param<Tensor<1>>>) -> Option<Parameter<'_>> {
    param.map(|param| Parameter {
        name,
        place: Place::Vector(param),
    })
}

/// The names of PyTorch's own LSTM, one module for each layer.
fn lstm_cell<'a>(cell: &'a mut LstmCell, prefix: &str, suffix: &str) -> Vec<Parameter<'a>> {
    let name = |part: &str| format!("{prefix}.{part}{suffix}");
    let mut all = vec![
        transposed(name("weight_ih"), &mut cell.weight_input),
        transposed(name("weight_hh"), &mut cell.weight_hidden),
    ];
    all.extend(vector(name("bias_ih"), cell.bias.as_mut()));
    all.extend(vector(name("bias_hh"), cell.bias_hidden.as_mut()));
    all
}

fn adaptive_cell(cell: &mut AdaptiveLstmCell, l: usize) -> Vec<Parameter<'_>> {
    let latent = format!("rnns.adapt_layers.{l}");
    let main = format!("rnns.alstm_layers.{l}");
    let mut all = match &mut cell.latent {
        PolicyLatent::Recurrent(lstm) => lstm_cell(lstm, &latent, ""),
        PolicyLatent::Static(linear) => {
            let mut all = vec![transposed(format!("{latent}.weight"), &mut linear.weight)];
            all.extend(vector(format!("{latent}.bias"), linear.bias.as_mut()));
            all
        }
    };
    let projection = format!("rnns.project_layers.{l}.linear.weight");
    all.push(transposed(projection, &mut cell.projection));
    all.push(transposed(
        format!("{main}.weight_ih"),
        &mut cell.weight_input,
    ));
    all.push(transposed(
        format!("{main}.weight_hh"),
        &mut cell.weight_hidden,
    ));
    all.extend(vector(format!("{main}.bias"), cell.bias.as_mut()));
    all
}

impl Parameter<'_> {
    /// Its numbers.
    pub fn values(&self) -> Vec<f32> {
        match &self.place {
            Place::Transposed(param) | Place::Matrix(param) => numbers(param.val()),
            Place::Vector(param) => numbers(param.val()),
        }
    }

    /// Replaces its numbers.
    ///
    /// # Panics
    ///
    /// Panics if there are more or fewer of them.
    pub fn set(&mut self, values: Vec<f32>) {
        match &mut self.place {
            Place::Transposed(param) | Place::Matrix(param) => replace(param, values),
            Place::Vector(param) => replace(param, values),
        }
    }

    /// Its numbers where they lie, shared with the model.
    ///
    /// # Panics
    ///
    /// Panics if the model is not on the CPU, or records operations for autodiff.
    pub(crate) fn shared(&self) -> FlexTensor {
        match &self.place {
            Place::Transposed(param) | Place::Matrix(param) => on_cpu(param.val()),
            Place::Vector(param) => on_cpu(param.val()),
        }
    }

    /// Takes its numbers out of the model, to be changed in place and [given back](Self::give_back).
    pub(crate) fn take(&mut self) -> FlexTensor {
        match &mut self.place {
            Place::Transposed(param) | Place::Matrix(param) => take(param),
            Place::Vector(param) => take(param),
        }
    }

    /// Gives back what was [taken](Self::take).
    pub(crate) fn give_back(&mut self, numbers: FlexTensor) {
        match &mut self.place {
            Place::Transposed(param) | Place::Matrix(param) => give_back(param, numbers),
            Place::Vector(param) => give_back(param, numbers),
        }
    }

    /// The gradient of its numbers; 0 where the loss does not depend on them.
    pub fn gradient(&self, gradients: &Gradients) -> Vec<f32> {
        match &self.place {
            Place::Transposed(param) | Place::Matrix(param) => gradient(&param.val(), gradients),
            Place::Vector(param) => gradient(&param.val(), gradients),
        }
    }

    /// The shape that it has in files.
    pub(crate) fn stored_shape(&self) -> Vec<usize> {
        match &self.place {
            Place::Transposed(param) => param.dims().into_iter().rev().collect(),
            Place::Matrix(param) => param.dims().to_vec(),
            Place::Vector(param) => param.dims().to_vec(),
        }
    }

    /// `values` of this parameter, or of something of its shape, in the order of files.
    pub fn to_stored(&self, values: Vec<f32>) -> Vec<f32> {
        match &self.place {
            Place::Transposed(param) => transpose(&values, param.dims()),
            Place::Matrix(_) | Place::Vector(_) => values,
        }
    }

    /// What [`to_stored`](Self::to_stored) was given.
    pub fn from_stored(&self, values: Vec<f32>) -> Vec<f32> {
        match &self.place {
            Place::Transposed(param) => {
                let [rows, columns] = param.dims();
                transpose(&values, [columns, rows])
            }
            Place::Matrix(_) | Place::Vector(_) => values,
        }
    }
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    let data = tensor.into_data();
    data.try_into_vec_as().expect("parameters are floats")
}

fn replace<const D: usize>(param: &mut Param<Tensor<D>>, values: Vec<f32>) {
    let device = param.val().device();
    let data = TensorData::new(values, param.dims());
    put(param, Tensor::from_data(data, &device));
}

/// Replaces the tensor of a parameter and nothing else of it.
fn put<const D: usize>(param: &mut Param<Tensor<D>>, tensor: Tensor<D>) {
    *param = param.clone().map(|_| tensor);
}

fn on_cpu<const D: usize>(tensor: Tensor<D>) -> FlexTensor {
    let tensor = tensor.try_into_primitive::<Flex>();
    let tensor = tensor.expect("the model is on the CPU, without autodiff");
    tensor.to_contiguous()
}

fn take<const D: usize>(param: &mut Param<Tensor<D>>) -> FlexTensor {
    let tensor = param.val();
    put(param, Tensor::zeros([1; D], &tensor.device()));
    on_cpu(tensor)
}

fn give_back<const D: usize>(param: &mut Param<Tensor<D>>, numbers: FlexTensor) {
    put(param, Tensor::from_primitive::<Flex>(numbers));
}

fn gradient<const D: usize>(tensor: &Tensor<D>, gradients: &Gradients) -> Vec<f32> {
    match tensor.grad(gradients) {
        Some(gradient) => numbers(gradient),
        None => vec![0.0; tensor.dims().into_iter().product()],
    }
}

/// A matrix of `rows × columns`, row after row, as its transpose.
fn transpose(values: &[f32], [rows, columns]: [usize; 2]) -> Vec<f32> {
    /// Blocks of this side stay in the processor's cache.
    const SIDE: usize = 32;
    let mut result = vec![0.0; values.len()];
    for row_block in (0..rows).step_by(SIDE) {
        for column_block in (0..columns).step_by(SIDE) {
            for row in row_block..rows.min(row_block + SIDE) {
                for column in column_block..columns.min(column_block + SIDE) {
                    result[column * rows + row] = values[row * columns + column];
                }
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transpose_swaps_rows_and_columns_and_is_undone_by_another() {
        let values: Vec<f32> = (0..35 * 70).map(|i| i as f32).collect();
        let turned = transpose(&values, [35, 70]);
        assert_eq!(turned[1].to_bits(), values[70].to_bits());
        assert_eq!(transpose(&turned, [70, 35]), values);
    }
}

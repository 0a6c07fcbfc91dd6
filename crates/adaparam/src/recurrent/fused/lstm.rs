use adaparam_kernels::lstm::Shape;
use adaparam_kernels::stack::Stack;

use super::arguments::has_shape;
use crate::recurrent::lstm_cell::LstmCell;

/// The layers as the kernels describe them, if they can compute them.
pub(crate) fn stack(layers: &[LstmCell], skip: bool) -> Option<Box<dyn Stack>> {
    let first = layers.first()?;
    let shape = Shape {
        input: first.weight_input.lazy_shape()[0],
        hidden: layers
            .iter()
            .map(|cell| cell.weight_hidden.lazy_shape()[0])
            .collect(),
        bias: first.bias.is_some(),
        skip,
    };
    let mut layers = layers.iter().enumerate();
    let all_fit = layers.all(|(index, cell)| fits(cell, &shape, index));
    all_fit.then(|| Box::new(shape) as Box<dyn Stack>)
}

/// Whether a layer has the parameters that layer `index` of `shape` has. Layers are public: there may be others.
fn fits(cell: &LstmCell, shape: &Shape, index: usize) -> bool {
    let (input, hidden) = (shape.input_of(index), shape.hidden[index]);
    let bias_fits = match &cell.bias {
        Some(bias) => shape.bias && has_shape(bias, [4 * hidden]),
        None => !shape.bias,
    };
    bias_fits
        && cell.bias_hidden.is_none()
        && has_shape(&cell.weight_input, [input, 4 * hidden])
        && has_shape(&cell.weight_hidden, [hidden, 4 * hidden])
}

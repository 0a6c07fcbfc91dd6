use adaparam_kernels::lstm::{InputGate, Shape};
use adaparam_kernels::stack::{Chain, Stack, TwoBiases};

use super::arguments::has_shape;
use crate::recurrent::lstm_cell::{LstmCell, LstmDropout};

/// The layers as the kernels describe them, if they can compute them.
pub(crate) fn stack(layers: &[LstmCell], skip: bool) -> Option<Box<dyn Stack>> {
    let drops = |dropout| layers.iter().any(|cell| cell.dropout == dropout);
    match (drops(LstmDropout::Hidden), drops(LstmDropout::InterLayer)) {
        (true, false) => plain(layers, skip),
        // A layer that skips passes on what came in before dropout, which a chain of single layers does not have.
        (false, true) if skip => None,
        (false, _) => {
            let single = |cell| plain(std::slice::from_ref(cell), skip);
            let singles: Option<Vec<_>> = layers.iter().map(single).collect();
            let [first, above @ ..] = layers else {
                return None;
            };
            let fits = first.dropout == LstmDropout::Nothing
                && above
                    .iter()
                    .all(|cell| cell.dropout == LstmDropout::InterLayer);
            fits.then(|| Some(Box::new(Chain::new(singles?)) as Box<dyn Stack>))?
        }
        (true, true) => None,
    }
}

fn plain(layers: &[LstmCell], skip: bool) -> Option<Box<dyn Stack>> {
    let first = layers.first()?;
    let shape = Shape {
        input: first.weight_input.lazy_shape()[0],
        hidden: layers
            .iter()
            .map(|cell| cell.weight_hidden.lazy_shape()[0])
            .collect(),
        bias: first.bias.is_some(),
        skip,
        input_gate: InputGate::Free,
    };
    let two = first.bias_hidden.is_some();
    let mut layers = layers.iter().enumerate();
    let all_fit = layers.all(|(index, cell)| fits(cell, &shape, index, two));
    all_fit.then(|| {
        let stack: Box<dyn Stack> = Box::new(shape);
        if two {
            Box::new(TwoBiases(stack))
        } else {
            stack
        }
    })
}

/// Whether a layer has the parameters that layer `index` of `shape` has. Layers are public: there may be others.
fn fits(cell: &LstmCell, shape: &Shape, index: usize, two: bool) -> bool {
    let (input, hidden) = (shape.input_of(index), shape.hidden[index]);
    let bias_fits = match &cell.bias {
        Some(bias) => shape.bias && has_shape(bias, [4 * hidden]),
        None => !shape.bias,
    };
    let second_fits = match &cell.bias_hidden {
        Some(bias) => two && shape.bias && has_shape(bias, [4 * hidden]),
        None => !two,
    };
    bias_fits
        && second_fits
        && has_shape(&cell.weight_input, [input, 4 * hidden])
        && has_shape(&cell.weight_hidden, [hidden, 4 * hidden])
}

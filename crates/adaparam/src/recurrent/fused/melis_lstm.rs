use adaparam_kernels::lstm::{InputGate as KernelGate, Shape};
use adaparam_kernels::stack::{Chain, DroppedWhereRead, Stack};

use super::arguments::has_shape;
use crate::recurrent::melis_lstm::{InputGate, MelisLstmCell};

/// The layers as the kernels describe them, if they can compute them.
pub(crate) fn stack(layers: &[MelisLstmCell]) -> Option<Chain> {
    let numbered = layers.iter().enumerate();
    let singles: Option<Vec<_>> = numbered
        .map(|(index, cell)| {
            let is_linked = cell.reads_a_layer == (index > 0);
            is_linked.then(|| single(cell))?
        })
        .collect();
    let singles = singles?;
    let mut pairs = singles.windows(2);
    let fits = pairs.all(|pair| pair[0].d_output() == pair[1].d_input());
    (fits && !singles.is_empty()).then(|| Chain::new(singles).with_own_sites())
}

/// The same layers, if the sum of what they give is to be had.
pub(crate) fn summed(layers: &[MelisLstmCell]) -> Option<Chain> {
    let width = |cell: &MelisLstmCell| cell.weight_hidden.lazy_shape()[0];
    let mut widths = layers.windows(2);
    let of_one_width = widths.all(|pair| width(&pair[0]) == width(&pair[1]));
    of_one_width.then(|| Some(stack(layers)?.summed()))?
}

/// A layer, if it has the parameters that kernels know: layers are public, there may be others.
fn single(cell: &MelisLstmCell) -> Option<Box<dyn Stack>> {
    let [input, _] = cell.weight_input.lazy_shape().dims();
    let [hidden, _] = cell.weight_hidden.lazy_shape().dims();
    let columns = cell.input_gate.gates() * hidden;
    let bias_fits = cell
        .bias
        .as_ref()
        .is_none_or(|bias| has_shape(bias, [columns]));
    let fits = bias_fits
        && has_shape(&cell.weight_input, [input, columns])
        && has_shape(&cell.weight_hidden, [hidden, columns]);
    fits.then(|| -> Box<dyn Stack> {
        Box::new(DroppedWhereRead::new(Box::new(Shape {
            input,
            hidden: vec![hidden],
            bias: cell.bias.is_some(),
            skip: false,
            input_gate: match cell.input_gate {
                InputGate::Free => KernelGate::Free,
                InputGate::Capped => KernelGate::Capped,
                InputGate::Tied => KernelGate::Tied,
            },
        })))
    })
}

use adaparam_kernels::alstm::{Adaptation, Latent, Shape, Summary as KernelSummary};
use adaparam_kernels::stack::Stack;

use super::arguments::has_shape;
use crate::recurrent::adaptive_cell::AdaptiveLstmCell;
use crate::recurrent::adaptive_lstm::AdaptiveLstm;
use crate::recurrent::gating::Gating;
use crate::recurrent::latent::{PolicyLatent, Summary};
use crate::recurrent::policy::{InputTying, LstmAdaptation, PolicyShape};

/// The stack as the kernels describe it, if they can compute it.
pub(crate) fn stack(lstm: &AdaptiveLstm) -> Option<Box<dyn Stack>> {
    Some(Box::new(shape(lstm)?))
}

fn shape(lstm: &AdaptiveLstm) -> Option<Shape> {
    let first = lstm.layers.first()?;
    if first.gating != Gating::Lstm {
        return None;
    }
    let (kind, latent_hidden) = match &first.latent {
        PolicyLatent::Static(linear) => (Latent::Static, linear.weight.lazy_shape()[1]),
        PolicyLatent::Recurrent(cell) => (Latent::Recurrent, cell.weight_hidden.lazy_shape()[0]),
    };
    let layers = lstm.layers.iter();
    let shape = Shape {
        input: first.weight_input.lazy_shape()[0],
        hidden: layers
            .map(|cell| cell.weight_hidden.lazy_shape()[0])
            .collect(),
        latent: latent_hidden,
        kind,
        summary: match lstm.summary {
            Summary::Own => KernelSummary::Own,
            Summary::Hybrid => KernelSummary::Hybrid,
        },
        adaptation: match lstm.adaptation {
            LstmAdaptation::Output => Adaptation::Output,
            LstmAdaptation::Input => Adaptation::Input,
            LstmAdaptation::Io => Adaptation::InputOutput,
        },
        layout: lstm.layout.into(),
        start: first.start.into(),
        bias: first.bias.is_some(),
        skip: lstm.skip,
    };
    let mut layers = lstm.layers.iter().enumerate();
    layers
        .all(|(index, cell)| fits(lstm, cell, &shape, index))
        .then_some(shape)
}

/// Whether a layer has the parameters that layer `index` of `shape` has. Layers are public: there may be others.
fn fits(lstm: &AdaptiveLstm, cell: &AdaptiveLstmCell, shape: &Shape, index: usize) -> bool {
    let s = shape.layer(index);
    let gates = 4 * s.hidden;
    let tied = PolicyShape {
        d_input: s.input,
        d_hidden: s.hidden,
        n_parts: Gating::Lstm.parts(),
        bias: shape.bias,
        adaptation: lstm.adaptation,
        tying: InputTying::Tied,
        layout: lstm.layout,
    };
    let latent_fits = match (&cell.latent, shape.kind) {
        (PolicyLatent::Static(linear), Latent::Static) => {
            has_shape(&linear.weight, [s.summary, s.latent])
                && linear
                    .bias
                    .as_ref()
                    .is_some_and(|b| has_shape(b, [s.latent]))
        }
        (PolicyLatent::Recurrent(lstm), Latent::Recurrent) => {
            let mut biases = [&lstm.bias, &lstm.bias_hidden].into_iter();
            has_shape(&lstm.weight_input, [s.summary, s.latent_gates])
                && has_shape(&lstm.weight_hidden, [s.latent, s.latent_gates])
                && biases.all(|bias| {
                    bias.as_ref()
                        .is_some_and(|b| has_shape(b, [s.latent_gates]))
                })
        }
        _ => false,
    };
    let bias_fits = match &cell.bias {
        Some(bias) => shape.bias && has_shape(bias, [gates]),
        None => !shape.bias,
    };
    latent_fits
        && bias_fits
        && cell.split == tied.split()
        && shape.start == cell.start.into()
        && has_shape(&cell.projection, [s.latent, s.policy.width])
        && has_shape(&cell.weight_input, [s.input, gates])
        && has_shape(&cell.weight_hidden, [s.hidden, gates])
}

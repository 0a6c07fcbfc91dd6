//! What does not change between the windows of a stack: sizes, and the order of columns in panels.

use super::Shape;
use crate::gemm::{Common, Group, contiguous_groups, unit_groups};
use crate::memory::odd_lines;

/// A stack, ready for its windows.
pub(super) struct Plan {
    pub(super) shape: Shape,
    /// Whether matrices lie as `[out, in]`.
    pub(super) is_turned: bool,
    pub(super) layers: Vec<LayerPlan>,
}

/// A layer, ready for its windows.
pub(super) struct LayerPlan {
    pub(super) index: usize,
    pub(super) input: usize,
    pub(super) hidden: usize,
    /// Columns of all its gates.
    pub(super) columns: usize,
    /// From one row of gates on the tape to the next.
    pub(super) gates_stride: usize,
    /// Whether the input is added to what leaves the layer upwards.
    pub(super) skips: bool,
    /// Whether that goes to a layer above.
    pub(super) gives_sum: bool,
    /// Columns of the product with the input.
    pub(super) gates: Vec<Group>,
    /// Columns of the product with the hidden state, by blocks of units.
    pub(super) units: Vec<Group>,
    /// Columns of the product that gives the input's gradient.
    pub(super) to_input: Vec<Group>,
    /// Columns of the product that gives the hidden state's gradient.
    pub(super) to_hidden: Vec<Group>,
}

impl Plan {
    pub(super) fn new(shape: &Shape, is_turned: bool) -> Self {
        let layers = shape.hidden.iter().enumerate();
        let gates = shape.input_gate.gates();
        let layers = layers.map(|(index, &hidden)| LayerPlan {
            index,
            input: shape.input_of(index),
            hidden,
            columns: gates * hidden,
            gates_stride: odd_lines(gates * hidden),
            skips: shape.skips(index),
            gives_sum: shape.skips(index) && index + 1 < shape.layers(),
            gates: contiguous_groups(gates * hidden),
            units: unit_groups(hidden, &[0], gates),
            to_input: contiguous_groups(shape.input_of(index)),
            to_hidden: contiguous_groups(hidden),
        });
        Self {
            layers: layers.collect(),
            shape: shape.clone(),
            is_turned,
        }
    }

    /// Parameters of a layer.
    pub(super) fn parameters(&self) -> usize {
        2 + usize::from(self.shape.bias)
    }
}

impl LayerPlan {
    /// The gates, as the products that give the gradients of the matrices have them.
    pub(super) fn in_products<T>(&self, is_turned: bool, gates: T) -> Common<T> {
        Common {
            matrix: gates,
            stride: self.gates_stride,
            columns: self.columns,
            is_left: is_turned,
        }
    }
}

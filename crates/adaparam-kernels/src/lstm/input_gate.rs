//! How much a cell writes: from what a stack says to the types of [`cell`](crate::cell).

use crate::cell::{
    self, Block, Capped, Free, Gradients, Kept, PlainCell, PlainCellGradient, PreActivations, Tied,
};
use crate::simd::Instructions;

/// How much a cell may write of its candidate `z` where it forgets little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InputGate {
    /// As much as the gate `i` says: a usual LSTM.
    #[default]
    Free,
    /// At most what is forgotten: `min(1 − f, i)`.
    Capped,
    /// Just what is forgotten: `1 − f`. There is no gate `i`, and the others are in the order `f, z, o`.
    Tied,
}

impl InputGate {
    /// Gates that have weights.
    pub(super) fn gates(self) -> usize {
        match self {
            Self::Free | Self::Capped => 4,
            Self::Tied => 3,
        }
    }

    /// Computes a block of units.
    pub(super) fn cell(
        self,
        instructions: Instructions,
        block: Block,
        kept: Kept,
        pre_activations: PreActivations,
    ) {
        let run = Cell {
            instructions,
            block,
            kept,
            pre_activations,
        };
        match self {
            Self::Free => run.with(Free),
            Self::Capped => run.with(Capped),
            Self::Tied => run.with(Tied),
        }
    }

    /// Computes the gradients of a block of units.
    pub(super) fn gradient(self, instructions: Instructions, block: Block, gradients: Gradients) {
        let run = Gradient {
            instructions,
            block,
            gradients,
        };
        match self {
            Self::Free => run.with(Free),
            Self::Capped => run.with(Capped),
            Self::Tied => run.with(Tied),
        }
    }
}

struct Cell {
    instructions: Instructions,
    block: Block,
    kept: Kept,
    pre_activations: PreActivations,
}

impl Cell {
    fn with(self, input_gate: impl cell::InputGate) {
        self.instructions.run(PlainCell {
            input_gate,
            block: self.block,
            kept: self.kept,
            pre_activations: self.pre_activations,
        });
    }
}

struct Gradient {
    instructions: Instructions,
    block: Block,
    gradients: Gradients,
}

impl Gradient {
    fn with(self, input_gate: impl cell::InputGate) {
        self.instructions.run(PlainCellGradient {
            input_gate,
            block: self.block,
            gradients: self.gradients,
        });
    }
}

//! The weights of a stack in panels.

use super::LayerWeights;
use super::plan::{LayerPlan, Plan};
use crate::Engine;
use crate::gemm::{Panels, Source};

/// Weights packed for forward passes; made once for a window, or once for all steps of a generation.
#[derive(Default)]
pub(super) struct Packed {
    pub(super) layers: Vec<LayerPanels>,
}

/// The weights of one layer, for forward steps or, transposed, for backward ones.
#[derive(Default)]
pub(super) struct LayerPanels {
    pub(super) input: Panels,
    pub(super) hidden: Panels,
}

impl Packed {
    /// Packs the parameters of all layers, replacing what was packed before.
    pub(super) fn pack_plan(&mut self, engine: &Engine, plan: &Plan, weights: &[&[f32]]) {
        self.layers
            .resize_with(plan.layers.len(), LayerPanels::default);
        for (layer, panels) in plan.layers.iter().zip(&mut self.layers) {
            let weights = LayerWeights::of_layer(plan, layer.index, weights);
            let source = |matrix, rows| {
                let source = if plan.is_turned {
                    Source::Columns(matrix, rows)
                } else {
                    Source::Rows(matrix, layer.columns)
                };
                [(source, rows)]
            };
            let input = source(weights.input, layer.input);
            panels.input.pack(engine, &input, &layer.gates);
            let hidden = source(weights.hidden, layer.hidden);
            panels.hidden.pack(engine, &hidden, &layer.units);
        }
    }
}

impl LayerPanels {
    /// Packs the transposed parameters of a layer.
    pub(super) fn pack_transposed(
        &mut self,
        engine: &Engine,
        is_turned: bool,
        layer: &LayerPlan,
        weights: &LayerWeights<'_>,
    ) {
        let gates = layer.columns;
        let source = |matrix, columns| {
            let source = if is_turned {
                Source::Rows(matrix, columns)
            } else {
                Source::Columns(matrix, gates)
            };
            [(source, gates)]
        };
        let input = source(weights.input, layer.input);
        self.input.pack(engine, &input, &layer.to_input);
        let hidden = source(weights.hidden, layer.hidden);
        self.hidden.pack(engine, &hidden, &layer.to_hidden);
    }
}

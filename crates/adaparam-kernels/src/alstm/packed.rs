//! The weights of a stack in panels.

use super::plan::{LayerPlan, Plan};
use super::tape::Tape;
use super::weights::LayerWeights;
use crate::Engine;
use crate::gemm::{Panels, Source};
use std::mem::swap;

/// Weights packed for forward steps; made once for a window, or once for all steps of a generation.
#[derive(Default)]
pub(super) struct Packed {
    pub(super) layers: Vec<ForwardPanels>,
}

#[derive(Default)]
pub(super) struct ForwardPanels {
    /// Summary and past of the latent variable, by blocks of latent units.
    pub(super) latent: Panels,
    /// Columns of the projection for the parts of the policy that act on inputs.
    pub(super) input_policy: Panels,
    /// Columns of the projection for the parts that act on pre-activations, by blocks of units.
    pub(super) gate_policy: Panels,
    /// By blocks of units.
    pub(super) input: Panels,
    /// By blocks of units.
    pub(super) hidden: Panels,
}

impl Packed {
    /// Packs the parameters of all layers, replacing what was packed before.
    pub(super) fn pack_plan(&mut self, engine: &Engine, plan: &Plan, weights: &[&[f32]]) {
        self.layers
            .resize_with(plan.layers.len(), ForwardPanels::default);
        for (layer, panels) in plan.layers.iter().zip(&mut self.layers) {
            let weights = LayerWeights::of_layer(plan, layer.index, weights);
            panels.pack(engine, plan, layer, &weights);
        }
    }

    /// Exchanges memory with the panels of a backward pass, which are as large.
    ///
    /// Where weights are packed for every window, as in training, calling this before and after the backward pass saves a copy
    /// of all weights. What was packed is lost.
    pub(super) fn exchange_memory(&mut self, tape: &mut Tape) {
        let backward = &mut tape.backward.panels;
        backward.resize_with(self.layers.len(), BackwardPanels::default);
        for (forward, backward) in self.layers.iter_mut().zip(backward) {
            swap(&mut forward.gate_policy, &mut backward.projection);
            swap(&mut forward.input, &mut backward.input);
            swap(&mut forward.hidden, &mut backward.hidden);
        }
    }
}

impl ForwardPanels {
    fn pack(
        &mut self,
        engine: &Engine,
        plan: &Plan,
        layer: &LayerPlan,
        weights: &LayerWeights<'_>,
    ) {
        let (s, groups) = (&layer.shape, &layer.forward);
        let rows = |matrix, columns, rows| (Source::Rows(matrix, columns), rows);
        let past = if plan.is_recurrent() { s.latent } else { 0 };
        let latent = [
            rows(weights.latent_input, s.latent_gates, s.summary),
            rows(weights.latent_hidden, s.latent_gates, past),
        ];
        self.latent.pack(engine, &latent, &groups.latent);
        let projection = [rows(weights.projection, s.policy.width, s.latent)];
        self.input_policy
            .pack(engine, &projection, &groups.input_policy);
        self.gate_policy
            .pack(engine, &projection, &groups.gate_policy);
        let input = [rows(weights.input, 4 * s.hidden, s.input)];
        self.input.pack(engine, &input, &groups.products);
        let hidden = [rows(weights.hidden, 4 * s.hidden, s.hidden)];
        self.hidden.pack(engine, &hidden, &groups.products);
    }
}

/// Transposed weights packed for backward steps.
#[derive(Default)]
pub(super) struct BackwardPanels {
    /// From gradients of the latent pre-activations to those of the summary: input, hidden state and the other layer's latent variable
    /// side by side.
    pub(super) latent_input: Panels,
    /// From gradients of the latent pre-activations to those of the past latent variable.
    pub(super) latent_hidden: Panels,
    /// From gradients of the policy as kept to those of the latent variable.
    pub(super) projection: Panels,
    pub(super) input: Panels,
    pub(super) hidden: Panels,
}

impl BackwardPanels {
    pub(super) fn pack(&mut self, engine: &Engine, layer: &LayerPlan, weights: &LayerWeights<'_>) {
        /// A policy has five parts at most.
        const RUNS: usize = 5;
        let (s, groups) = (&layer.shape, &layer.backward);
        let columns = |matrix, out| [(Source::Columns(matrix, out), out)];
        let latent_input = columns(weights.latent_input, s.latent_gates);
        self.latent_input
            .pack(engine, &latent_input, &groups.summary);
        if !weights.latent_hidden.is_empty() {
            let latent_hidden = columns(weights.latent_hidden, s.latent_gates);
            self.latent_hidden
                .pack(engine, &latent_hidden, &groups.latent);
        }
        let mut parts = [(Source::Columns(&[], 0), 0); RUNS];
        let runs = &layer.policy_runs;
        for (part, run) in parts.iter_mut().zip(runs) {
            let projection = &weights.projection[run.source..];
            *part = (Source::Columns(projection, s.policy.width), run.len);
        }
        self.projection
            .pack(engine, &parts[..runs.len()], &groups.latent);
        let input = columns(weights.input, 4 * s.hidden);
        self.input.pack(engine, &input, &groups.input);
        let hidden = columns(weights.hidden, 4 * s.hidden);
        self.hidden.pack(engine, &hidden, &groups.hidden);
    }
}

//! The weights of a stack in panels.

use super::shape::{Latent, LayerShape, Shape};
use super::tape::Tape;
use super::weights::LayerWeights;
use crate::Engine;
use crate::gemm::{Group, Panels, Source, contiguous_groups, pad, unit_groups};
use std::mem::swap;

/// Weights packed for forward steps; made once for a window, or once for all steps of a generation.
#[derive(Default)]
pub struct Packed {
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

/// A run of columns of a product, and the groups of its panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// First column of the segment within what it describes.
    pub(super) column: usize,
    pub(super) count: usize,
    /// Number of the segment.
    pub(super) index: usize,
}

/// Groups of several runs of columns, each given by its start and length, and what each group holds.
pub(super) fn segments(runs: &[(usize, usize)]) -> (Vec<Group>, Vec<Segment>) {
    let mut groups = Vec::new();
    let mut segments = Vec::new();
    for (index, &(start, len)) in runs.iter().enumerate() {
        for group in contiguous_groups(len) {
            groups.push(Group {
                start: start + group.start,
                count: group.count,
            });
            segments.push(Segment {
                column: group.start,
                count: group.count,
                index,
            });
        }
    }
    (groups, segments)
}

/// The runs of columns of the projection that act on inputs: input, hidden state.
pub(super) fn input_policy_runs(layer: &LayerShape) -> Vec<(usize, usize)> {
    [layer.policy.input, layer.policy.hidden]
        .into_iter()
        .flatten()
        .map(|part| (part.source, part.len))
        .collect()
}

/// The runs of rows of the latent variable's weights: input, hidden state, other layer's latent variable.
pub(super) fn summary_runs(layer: &LayerShape) -> Vec<(usize, usize)> {
    let mut runs = vec![(0, layer.input), (layer.input, layer.hidden)];
    if layer.hybrid {
        runs.push((layer.input + layer.hidden, layer.latent));
    }
    runs
}

impl Packed {
    /// Packs `weights`, replacing what was packed before.
    ///
    /// # Panics
    /// If the weights have not the lengths that `shape` gives.
    pub fn pack(&mut self, engine: &Engine, shape: &Shape, weights: &[LayerWeights<'_>]) {
        assert_eq!(weights.len(), shape.layers(), "layers of the weights");
        self.layers
            .resize_with(weights.len(), ForwardPanels::default);
        for (index, (weights, panels)) in weights.iter().zip(&mut self.layers).enumerate() {
            weights.check(shape, index);
            let s = shape.layer(index);
            let gates = if shape.kind == Latent::Recurrent {
                4
            } else {
                1
            };
            let past = if shape.kind == Latent::Recurrent {
                s.latent
            } else {
                0
            };
            panels.latent.pack(
                engine,
                &[
                    (
                        Source::Rows(weights.latent_input, s.latent_gates),
                        s.summary,
                    ),
                    (Source::Rows(weights.latent_hidden, s.latent_gates), past),
                ],
                &unit_groups(s.latent, &[0], gates),
            );
            let projection = [(Source::Rows(weights.projection, s.policy.width), s.latent)];
            panels
                .input_policy
                .pack(engine, &projection, &segments(&input_policy_runs(&s)).0);
            let parts: Vec<usize> = s.policy.gate_parts().map(|part| part.source).collect();
            panels
                .gate_policy
                .pack(engine, &projection, &unit_groups(s.hidden, &parts, 4));
            let groups = unit_groups(s.hidden, &[0], 4);
            panels.input.pack(
                engine,
                &[(Source::Rows(weights.input, 4 * s.hidden), s.input)],
                &groups,
            );
            panels.hidden.pack(
                engine,
                &[(Source::Rows(weights.hidden, 4 * s.hidden), s.hidden)],
                &groups,
            );
        }
    }
}

impl Packed {
    /// Exchanges memory with the panels of a backward pass, which are as large.
    ///
    /// Where weights are packed for every window, as in training, calling this before and after the backward pass saves a copy
    /// of all weights. What was packed is lost.
    pub fn exchange_memory(&mut self, tape: &mut Tape) {
        let backward = &mut tape.backward.panels;
        backward.resize_with(self.layers.len(), BackwardPanels::default);
        for (forward, backward) in self.layers.iter_mut().zip(backward) {
            swap(&mut forward.gate_policy, &mut backward.projection);
            swap(&mut forward.input, &mut backward.input);
            swap(&mut forward.hidden, &mut backward.hidden);
        }
    }
}

/// Transposed weights packed for backward steps.
#[derive(Default)]
pub(super) struct BackwardPanels {
    /// From gradients of the latent pre-activations to those of the summary, [`summary_runs`] side by side.
    pub(super) latent_input: Panels,
    /// From gradients of the latent pre-activations to those of the past latent variable.
    pub(super) latent_hidden: Panels,
    /// From gradients of the policy as kept to those of the latent variable.
    pub(super) projection: Panels,
    pub(super) input: Panels,
    pub(super) hidden: Panels,
}

impl BackwardPanels {
    pub(super) fn pack(&mut self, engine: &Engine, s: &LayerShape, weights: &LayerWeights<'_>) {
        let columns = |matrix, out| [(Source::Columns(matrix, out), out)];
        let (mut summary, _) = segments(&summary_runs(s));
        pad(&mut summary);
        self.latent_input.pack(
            engine,
            &columns(weights.latent_input, s.latent_gates),
            &summary,
        );
        if !weights.latent_hidden.is_empty() {
            let groups = contiguous_groups(s.latent);
            self.latent_hidden.pack(
                engine,
                &columns(weights.latent_hidden, s.latent_gates),
                &groups,
            );
        }
        let parts: Vec<(Source<'_>, usize)> = s
            .policy
            .runs()
            .into_iter()
            .map(|run| {
                (
                    Source::Columns(&weights.projection[run.source..], s.policy.width),
                    run.len,
                )
            })
            .collect();
        self.projection
            .pack(engine, &parts, &contiguous_groups(s.latent));
        self.input.pack(
            engine,
            &columns(weights.input, 4 * s.hidden),
            &contiguous_groups(s.input),
        );
        self.hidden.pack(
            engine,
            &columns(weights.hidden, 4 * s.hidden),
            &contiguous_groups(s.hidden),
        );
    }
}

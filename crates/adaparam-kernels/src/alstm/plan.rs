//! What does not change between the windows of a stack: sizes, and the order of columns in panels.

use super::shape::{Latent, LayerShape, Part, Shape};
use crate::gemm::{Group, contiguous_groups, pad, unit_groups};

/// Most numbers in the weights of a stack whose threads divide the batch.
const SMALL: usize = 1 << 20;

/// A stack, ready for its windows.
pub(super) struct Plan {
    pub(super) shape: Shape,
    pub(super) layers: Vec<LayerPlan>,
    /// Whether threads divide the batch.
    pub(super) small: bool,
}

/// A layer, ready for its windows.
pub(super) struct LayerPlan {
    pub(super) index: usize,
    pub(super) shape: LayerShape,
    /// Whether the layer above reads the hidden state and the input together.
    pub(super) gives_sum: bool,
    /// Widths of what is carried: hidden state, cell state, latent variable and its cell state, zero if there is none.
    pub(super) part_widths: [usize; 4],
    /// What the groups of columns of the input policy are.
    pub(super) input_policy: Vec<Segment>,
    /// What the groups of columns of the summary are.
    pub(super) summary: Vec<Segment>,
    /// [`Policy::runs`](super::Policy::runs).
    pub(super) policy_runs: Vec<Part>,
    pub(super) forward: ForwardGroups,
    pub(super) backward: BackwardGroups,
}

/// The columns of [`ForwardPanels`](super::packed::ForwardPanels).
pub(super) struct ForwardGroups {
    pub(super) latent: Vec<Group>,
    pub(super) input_policy: Vec<Group>,
    pub(super) gate_policy: Vec<Group>,
    /// Of both products, by blocks of units.
    pub(super) products: Vec<Group>,
}

/// The columns of [`BackwardPanels`](super::packed::BackwardPanels).
pub(super) struct BackwardGroups {
    pub(super) summary: Vec<Group>,
    pub(super) latent: Vec<Group>,
    pub(super) input: Vec<Group>,
    pub(super) hidden: Vec<Group>,
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

impl Plan {
    pub(super) fn new(shape: &Shape) -> Self {
        let layers: Vec<LayerPlan> = (0..shape.layers())
            .map(|index| LayerPlan::new(shape, index))
            .collect();
        let recurrent = usize::from(shape.kind == Latent::Recurrent);
        let numbers = layers.iter().map(|LayerPlan { shape: s, .. }| {
            (s.summary + recurrent * s.latent) * s.latent_gates
                + s.latent * s.policy.width
                + (s.input + s.hidden) * 4 * s.hidden
        });
        Self {
            small: numbers.sum::<usize>() <= SMALL,
            shape: shape.clone(),
            layers,
        }
    }

    pub(super) fn is_recurrent(&self) -> bool {
        self.shape.kind == Latent::Recurrent
    }

    /// Parameters of a layer.
    pub(super) fn parameters(&self) -> usize {
        5 + 2 * usize::from(self.is_recurrent()) + usize::from(self.shape.bias)
    }

    /// Parts of the state of a layer.
    pub(super) fn parts(&self) -> usize {
        3 + usize::from(self.is_recurrent())
    }
}

impl LayerPlan {
    fn new(shape: &Shape, index: usize) -> Self {
        let s = shape.layer(index);
        let gates = match shape.kind {
            Latent::Static => 1,
            Latent::Recurrent => 4,
        };
        let (input_policy_groups, input_policy) = segments(&input_policy_runs(&s));
        let (mut summary_groups, summary) = segments(&summary_runs(&s));
        pad(&mut summary_groups);
        let gate_parts: Vec<usize> = s.policy.gate_parts().map(|part| part.source).collect();
        let past = match shape.kind {
            Latent::Static => 0,
            Latent::Recurrent => s.latent,
        };
        Self {
            index,
            gives_sum: s.skips && index + 1 < shape.layers(),
            part_widths: [s.hidden, s.hidden, s.latent, past],
            input_policy,
            summary,
            policy_runs: s.policy.runs(),
            forward: ForwardGroups {
                latent: unit_groups(s.latent, &[0], gates),
                input_policy: input_policy_groups,
                gate_policy: unit_groups(s.hidden, &gate_parts, 4),
                products: unit_groups(s.hidden, &[0], 4),
            },
            backward: BackwardGroups {
                summary: summary_groups,
                latent: contiguous_groups(s.latent),
                input: contiguous_groups(s.input),
                hidden: contiguous_groups(s.hidden),
            },
            shape: s,
        }
    }
}

/// Groups of several runs of columns, each given by its start and length, and what each group holds.
fn segments(runs: &[(usize, usize)]) -> (Vec<Group>, Vec<Segment>) {
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
fn input_policy_runs(layer: &LayerShape) -> Vec<(usize, usize)> {
    [layer.policy.input, layer.policy.hidden]
        .into_iter()
        .flatten()
        .map(|part| (part.source, part.len))
        .collect()
}

/// The runs of rows of the latent variable's weights: input, hidden state, other layer's latent variable.
fn summary_runs(layer: &LayerShape) -> Vec<(usize, usize)> {
    let mut runs = vec![(0, layer.input), (layer.input, layer.hidden)];
    if layer.hybrid {
        runs.push((layer.input + layer.hidden, layer.latent));
    }
    runs
}

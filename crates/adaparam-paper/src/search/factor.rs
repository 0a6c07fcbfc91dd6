//! What section 4.2 leaves open, as a list.
//!
//! A new level is a line here; a new factor is an entry, and a field of [`Choices`] that a reading's networks are made from.

use crate::conventions::{PolicyContext, WeightStart};
use crate::image::{PixelScale, Sampling};
use crate::network::ActivationKind;

/// Something that the paper leaves open.
#[derive(Debug)]
pub struct Factor {
    /// Its name, as `--factors` has it.
    pub name: &'static str,
    /// What it decides.
    pub about: &'static str,
    /// The ways to decide it; the first is the base reading's.
    pub levels: &'static [Level],
}

/// A way to decide a factor.
#[derive(Debug)]
pub struct Level {
    /// Its name.
    pub name: &'static str,
    /// Decides so.
    pub(super) set: fn(&mut Choices),
}

/// Everything that is decided.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choices {
    pub(super) context: PolicyContext,
    pub(super) weights: WeightStart,
    pub(super) policy_weights: WeightStart,
    pub(super) policy: PolicyForm,
    pub(super) start: f64,
    pub(super) small_policy: SmallPolicy,
    pub(super) activation: ActivationKind,
    pub(super) static_activation: ActivationKind,
    pub(super) depth: Depth,
    pub(super) pixels: PixelScale,
    pub(super) last_bias: bool,
    pub(super) sampling: Sampling,
}

/// What a policy computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PolicyForm {
    /// `τ(U x + u)`.
    Squashed(ActivationKind),
    /// `(A x + a) ⊙ σ(G x + g)`.
    Glu,
}

/// How the policy of the small layer saves parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SmallPolicy {
    /// Not at all: fewer singular values.
    Whole,
    /// Through a latent of this width.
    Latent(usize),
    /// The same without a bias behind it, so that it does not start where the others do.
    LatentWithoutBias(usize),
}

/// What “3-layer” counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Every layer.
    All,
    /// Layers before the last, which is static.
    Hidden,
}

/// All factors, those first that are trained first.
pub const FACTORS: &[Factor] = &[
    Factor {
        name: "context",
        about: "what a policy looks at: the input of its layer, that of the network, or what the first matrix of its layer gives",
        levels: &[
            Level {
                name: "layer",
                set: |it| it.context = PolicyContext::LayerInput,
            },
            Level {
                name: "projection",
                set: |it| it.context = PolicyContext::Projection,
            },
            Level {
                name: "network",
                set: |it| it.context = PolicyContext::NetworkInput,
            },
        ],
    },
    Factor {
        name: "weights",
        about: "how the matrices of layers start; by activation is a gain of √2 before ReLU, 5/3 before tanh, 1 elsewhere",
        levels: &[
            Level {
                name: "semi-orthogonal",
                set: |it| it.weights = WeightStart::SemiOrthogonal(1.0),
            },
            Level {
                name: "gain √2",
                set: |it| it.weights = WeightStart::SemiOrthogonal(std::f64::consts::SQRT_2),
            },
            Level {
                name: "by activation",
                set: |it| it.weights = WeightStart::SemiOrthogonalByActivation,
            },
            Level {
                name: "static uniform",
                set: |it| it.weights = WeightStart::Usual,
            },
        ],
    },
    Factor {
        name: "depth",
        about: "what “3-layer” counts: all layers, or those before the last, which is then static",
        levels: &[
            Level {
                name: "all",
                set: |it| it.depth = Depth::All,
            },
            Level {
                name: "hidden",
                set: |it| it.depth = Depth::Hidden,
            },
        ],
    },
    Factor {
        name: "small-policy",
        about: "how the policy of the small layer saves parameters",
        levels: &[
            Level {
                name: "latent of 2",
                set: |it| it.small_policy = SmallPolicy::Latent(2),
            },
            Level {
                name: "latent of 1",
                set: |it| it.small_policy = SmallPolicy::Latent(1),
            },
            Level {
                name: "whole",
                set: |it| it.small_policy = SmallPolicy::Whole,
            },
            Level {
                name: "latent of 2, no bias",
                set: |it| it.small_policy = SmallPolicy::LatentWithoutBias(2),
            },
        ],
    },
    Factor {
        name: "activation",
        about: "what stands behind the hidden layers of the 3-layer SVA network",
        levels: &[
            Level {
                name: "none",
                set: |it| it.activation = ActivationKind::Identity,
            },
            Level {
                name: "tanh",
                set: |it| it.activation = ActivationKind::Tanh,
            },
            Level {
                name: "ReLU",
                set: |it| it.activation = ActivationKind::Relu,
            },
        ],
    },
    Factor {
        name: "policy",
        about: "what a policy computes: a linear map, one behind sigmoid or tanh, or a gated linear unit",
        levels: &[
            Level {
                name: "linear",
                set: |it| it.policy = PolicyForm::Squashed(ActivationKind::Identity),
            },
            Level {
                name: "sigmoid",
                set: |it| it.policy = PolicyForm::Squashed(ActivationKind::Sigmoid),
            },
            Level {
                name: "tanh",
                set: |it| it.policy = PolicyForm::Squashed(ActivationKind::Tanh),
            },
            Level {
                name: "GLU",
                set: |it| it.policy = PolicyForm::Glu,
            },
        ],
    },
    Factor {
        name: "start",
        about: "where the bias of a policy starts, before it is squashed",
        levels: &[
            Level {
                name: "1",
                set: |it| it.start = 1.0,
            },
            Level {
                name: "0",
                set: |it| it.start = 0.0,
            },
        ],
    },
    Factor {
        name: "pixels",
        about: "how pixels become numbers: standardised over all of them, from 0 to 1, or standardised for every place",
        levels: &[
            Level {
                name: "standardised",
                set: |it| it.pixels = PixelScale::Standardised,
            },
            Level {
                name: "0 to 1",
                set: |it| it.pixels = PixelScale::ZeroToOne,
            },
            Level {
                name: "each place",
                set: |it| it.pixels = PixelScale::EachPlaceStandardised,
            },
        ],
    },
    Factor {
        name: "policy-weights",
        about: "how the matrices of policies start",
        levels: &[
            Level {
                name: "semi-orthogonal",
                set: |it| it.policy_weights = WeightStart::SemiOrthogonal(1.0),
            },
            Level {
                name: "uniform",
                set: |it| it.policy_weights = WeightStart::Usual,
            },
        ],
    },
    Factor {
        name: "static-activation",
        about: "what stands behind the hidden layers of the feed-forward network",
        levels: &[
            Level {
                name: "ReLU",
                set: |it| it.static_activation = ActivationKind::Relu,
            },
            Level {
                name: "tanh",
                set: |it| it.static_activation = ActivationKind::Tanh,
            },
        ],
    },
    Factor {
        name: "last-bias",
        about: "whether the last layer has a bias",
        levels: &[
            Level {
                name: "yes",
                set: |it| it.last_bias = true,
            },
            Level {
                name: "no",
                set: |it| it.last_bias = false,
            },
        ],
    },
    Factor {
        name: "sampling",
        about: "how batches are drawn",
        levels: &[
            Level {
                name: "without replacement",
                set: |it| it.sampling = Sampling::WithoutReplacement,
            },
            Level {
                name: "with replacement",
                set: |it| it.sampling = Sampling::WithReplacement,
            },
        ],
    },
];

/// The reading that `reproduce mnist` had before there was a search, as it differs from the base one.
pub(super) const AS_REPRODUCED_BEFORE: &[(&str, &str)] = &[
    ("weights", "static uniform"),
    ("policy-weights", "uniform"),
    ("small-policy", "latent of 2, no bias"),
];

/// The reading that it has: the nearest that the recorded search found (`results/mnist-search`) among those with every term of the
/// paper's equations, the last layer's bias too. How the policy of the small layer saves parameters does not matter there, because
/// what it looks at is narrow.
pub(super) const AS_REPRODUCED: &[(&str, &str)] = &[
    ("context", "projection"),
    ("weights", "by activation"),
    ("depth", "hidden"),
    ("small-policy", "latent of 1"),
    ("start", "0"),
    ("sampling", "with replacement"),
];

impl Default for Choices {
    /// Those of the base reading, which its levels set once more.
    fn default() -> Self {
        Self {
            context: PolicyContext::LayerInput,
            weights: WeightStart::SemiOrthogonal(1.0),
            policy_weights: WeightStart::SemiOrthogonal(1.0),
            policy: PolicyForm::Squashed(ActivationKind::Identity),
            start: 1.0,
            small_policy: SmallPolicy::Latent(2),
            activation: ActivationKind::Identity,
            static_activation: ActivationKind::Relu,
            depth: Depth::All,
            pixels: PixelScale::Standardised,
            last_bias: true,
            sampling: Sampling::WithoutReplacement,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_levels_are_the_base_and_every_other_one_changes_something() {
        let base = Choices::default();
        for factor in FACTORS {
            for (index, level) in factor.levels.iter().enumerate() {
                let mut choices = base.clone();
                (level.set)(&mut choices);
                let place = format!("{}, {}", factor.name, level.name);
                assert_eq!(choices == base, index == 0, "{place}");
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let unique = |names: Vec<&str>| {
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted.dedup();
            sorted.len() == names.len()
        };
        assert!(unique(FACTORS.iter().map(|factor| factor.name).collect()));
        for factor in FACTORS {
            let levels = factor.levels.iter().map(|level| level.name).collect();
            assert!(unique(levels), "{}", factor.name);
        }
    }
}

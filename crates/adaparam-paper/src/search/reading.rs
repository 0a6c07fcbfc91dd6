//! A reading, and the five networks of Table 1 under it.

use std::collections::BTreeMap;

use super::factor::{
    AS_REPRODUCED, AS_REPRODUCED_BEFORE, Choices, Depth, FACTORS, PolicyForm, SmallPolicy,
};
use crate::conventions::{Conventions, PolicyContext};
use crate::image::{ImageConfig, ImageModel, PixelScale, Role, Sampling};
use crate::network::{ActivationKind, BiasKind, LayerSpec, NetworkSpec, PolicySpec};
use crate::result::Scale;

/// The rows of Table 1, in its order.
pub(super) const ROWS: usize = 5;
const CLASSES: usize = 10;
/// How far the number of parameters may be from that of the paper's row, as a share. A rank of 5 of the small layer, whose
/// neighbours are 20 % away, is the furthest that is allowed.
const TOLERANCE: f64 = 0.012;

/// A level for each factor, by index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reading(Vec<usize>);

/// The sizes that networks are brought to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TableSizes {
    d_input: usize,
    /// Parameters of the small rows.
    small: usize,
    /// Parameters of the large rows.
    large: usize,
    /// Width of the hidden layers of the 3-layer SVA network.
    hidden: usize,
}

impl TableSizes {
    /// 8K and 100K for MNIST, as in the paper; in proportion for digits of 8×8 pixels.
    pub(super) fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self {
                d_input: 64,
                small: 680,
                large: 8_000,
                hidden: 24,
            },
            _ => Self {
                d_input: 784,
                small: 8_000,
                large: 100_000,
                hidden: 50,
            },
        }
    }
}

/// A row of Table 1 under a reading.
#[derive(PartialEq)]
pub(super) struct ReadRow {
    pub(super) model: ImageModel,
    pub(super) pixels: PixelScale,
    pub(super) sampling: Sampling,
    /// Whether its number of parameters is near enough to the paper's.
    pub(super) fits: bool,
}

impl Reading {
    /// The base reading: the first level of every factor.
    pub fn base() -> Self {
        Self(vec![0; FACTORS.len()])
    }

    /// The reading that `reproduce mnist` has.
    pub fn as_reproduced() -> Self {
        Self::of(AS_REPRODUCED)
    }

    /// The reading that it had before there was a search.
    pub fn as_reproduced_before() -> Self {
        Self::of(AS_REPRODUCED_BEFORE)
    }

    /// The base reading with other levels of some factors, by name.
    fn of(levels: &[(&str, &str)]) -> Self {
        let mut reading = Self::base();
        for (name, level) in levels {
            let factor = index(FACTORS.iter().map(|factor| factor.name), name);
            reading.0[factor] = index(FACTORS[factor].levels.iter().map(|it| it.name), level);
        }
        reading
    }

    /// The same reading with another level of a factor, both by index.
    #[must_use]
    pub(super) fn with(&self, factor: usize, level: usize) -> Self {
        let mut other = self.clone();
        other.0[factor] = level;
        other
    }

    /// The index of its level of a factor.
    pub(super) fn level(&self, factor: usize) -> usize {
        self.0[factor]
    }

    /// The factors that it decides otherwise than the base reading.
    pub(super) fn changes(&self) -> impl Iterator<Item = usize> + '_ {
        (0..FACTORS.len()).filter(|&factor| self.0[factor] != 0)
    }

    /// Whether a factor decides nothing in it, because another one leaves it nothing to decide.
    pub fn is_idle(&self, factor: usize) -> bool {
        let sizes = TableSizes::of(Scale::Full);
        let rows = self.rows(&sizes, None);
        let mut levels = 0..FACTORS[factor].levels.len();
        levels.all(|level| self.with(factor, level).rows(&sizes, None) == rows)
    }

    /// How it differs from the base reading.
    pub fn describe(&self) -> String {
        let changes: Vec<String> = self
            .changes()
            .filter(|&factor| !self.is_idle(factor))
            .map(|factor| format!("{}: {}", FACTORS[factor].name, self.level_name(factor)))
            .collect();
        if changes.is_empty() {
            "base".to_owned()
        } else {
            changes.join("; ")
        }
    }

    /// Every factor with its level, by name.
    pub fn levels(&self) -> BTreeMap<String, String> {
        let pair = |factor: usize| {
            let level = self.level_name(factor).to_owned();
            (FACTORS[factor].name.to_owned(), level)
        };
        (0..FACTORS.len()).map(pair).collect()
    }

    fn level_name(&self, factor: usize) -> &'static str {
        FACTORS[factor].levels[self.0[factor]].name
    }

    fn choices(&self) -> Choices {
        let mut choices = Choices::default();
        for (factor, &level) in FACTORS.iter().zip(&self.0) {
            (factor.levels[level].set)(&mut choices);
        }
        choices
    }

    /// The rows of Table 1 under this reading.
    pub(super) fn rows(&self, sizes: &TableSizes, steps: Option<usize>) -> Vec<ReadRow> {
        let choices = self.choices();
        let models = ImageConfig::full(1).models.into_iter().take(ROWS);
        let rows = models.map(|mut model| {
            let (network, target) = choices.network(model.role, sizes);
            let parameters = network.parameters(sizes.d_input) as f64;
            // A logistic regression has no size to choose.
            let fits = target.is_none_or(|target| {
                let target = target as f64;
                (parameters - target).abs() <= TOLERANCE * target
            });
            model.network = NetworkSpec {
                name: model.network.name,
                ..network
            };
            model.train.steps = steps.unwrap_or(model.train.steps);
            ReadRow {
                model,
                pixels: choices.pixels,
                sampling: choices.sampling,
                fits,
            }
        });
        rows.collect()
    }
}

fn index<'a>(mut names: impl Iterator<Item = &'a str>, name: &str) -> usize {
    names
        .position(|it| it == name)
        .expect("a name of the list of factors")
}

/// The least number from 1 to `most` that is enough, which all above it are too.
fn least(most: usize, is_enough: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (1, most);
    while low < high {
        let middle = usize::midpoint(low, high);
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

impl Choices {
    /// The network of a row, and the number of parameters that it is brought to, if there is a choice.
    fn network(&self, role: Role, sizes: &TableSizes) -> (NetworkSpec, Option<usize>) {
        let output = |activation| LayerSpec::Static {
            width: CLASSES,
            activation,
        };
        let last = output(ActivationKind::Identity);
        let make = |layers: Vec<LayerSpec>| self.with_conventions(layers);
        let (target, build): (usize, Box<dyn Fn(usize) -> Vec<LayerSpec> + '_>) = match role {
            Role::Logistic | Role::Beside => return (make(vec![last]), None),
            Role::Deep => {
                let hidden = match self.depth {
                    Depth::All => 2,
                    Depth::Hidden => 3,
                };
                let build = move |width| {
                    let layer = LayerSpec::Static {
                        width,
                        activation: self.static_activation,
                    };
                    let mut layers = vec![layer; hidden];
                    layers.push(last.clone());
                    layers
                };
                (sizes.large, Box::new(build))
            }
            Role::SmallAdaptive => {
                let policy = self.policy_of(self.small_policy);
                let build = move |rank| vec![sva(CLASSES, rank, None, &policy)];
                (sizes.small, Box::new(build))
            }
            Role::LargeAdaptive => {
                let policy = self.policy_of(SmallPolicy::Whole);
                let build = move |rank| vec![sva(CLASSES, rank, None, &policy)];
                (sizes.large, Box::new(build))
            }
            Role::DeepAdaptive => {
                let policy = self.policy_of(SmallPolicy::Whole);
                let build = move |rank| {
                    let hidden = sva(sizes.hidden, rank, Some(self.activation), &policy);
                    match self.depth {
                        Depth::All => {
                            let last = sva(CLASSES, rank, None, &policy);
                            vec![hidden.clone(), hidden, last]
                        }
                        Depth::Hidden => vec![hidden.clone(), hidden.clone(), hidden, last.clone()],
                    }
                };
                (sizes.large, Box::new(build))
            }
        };
        let count = |size: usize| make(build(size)).parameters(sizes.d_input);
        let above = least(target, |size| count(size) >= target);
        let below = (above - 1).max(1);
        let nearest = if target.abs_diff(count(below)) < target.abs_diff(count(above)) {
            below
        } else {
            above
        };
        (make(build(nearest)), Some(target))
    }

    fn policy_of(&self, size: SmallPolicy) -> PolicySpec {
        // What the first matrix gives is narrow already.
        let size = match self.context {
            PolicyContext::Projection => SmallPolicy::Whole,
            _ => size,
        };
        let (latent, start) = match size {
            SmallPolicy::Whole => (None, Some(self.start)),
            SmallPolicy::Latent(width) => (Some(width), Some(self.start)),
            SmallPolicy::LatentWithoutBias(width) => (Some(width), None),
        };
        match (self.policy, latent) {
            (PolicyForm::Glu, latent) => PolicySpec::Glu {
                hidden: latent.into_iter().collect(),
                initial: start,
            },
            (PolicyForm::Squashed(squash), None) => PolicySpec::Linear {
                initial: self.start,
                squash,
            },
            (PolicyForm::Squashed(squash), Some(latent)) => PolicySpec::Mlp {
                latent,
                hidden: Vec::new(),
                activation: ActivationKind::Identity,
                squash,
                initial: start,
            },
        }
    }

    /// A network with the conventions that say something about its layers.
    fn with_conventions(&self, layers: Vec<LayerSpec>) -> NetworkSpec {
        let conventions = Conventions {
            weights: self.weights,
            policy_weights: self.policy_weights,
            context: self.context,
            last_bias: self.last_bias,
        };
        NetworkSpec {
            name: String::new(),
            conventions: conventions.for_layers(&layers),
            layers,
        }
    }
}

/// A layer with adapted singular values, and a bias that is not adapted.
fn sva(
    width: usize,
    rank: usize,
    activation: Option<ActivationKind>,
    policy: &PolicySpec,
) -> LayerSpec {
    LayerSpec::Sva {
        width,
        rank,
        activation: activation.unwrap_or_default(),
        policy: policy.clone(),
        bias: BiasKind::Static,
    }
}

#[cfg(test)]
mod tests {
    use burn::module::Module;
    use burn::tensor::Device;

    use super::*;

    const MNIST: TableSizes = TableSizes {
        d_input: 784,
        small: 8_000,
        large: 100_000,
        hidden: 50,
    };

    fn one_change() -> impl Iterator<Item = Reading> {
        let levels =
            |factor: usize| (0..FACTORS[factor].levels.len()).map(move |level| (factor, level));
        let all = (0..FACTORS.len()).flat_map(levels);
        all.map(|(factor, level)| Reading::base().with(factor, level))
    }

    #[test]
    fn the_reading_of_reproduce_is_the_five_rows_of_reproduce() {
        let rows = Reading::as_reproduced().rows(&MNIST, None);
        let models = ImageConfig::full(1).models;
        assert_eq!(rows.len(), ROWS);
        for (row, model) in rows.iter().zip(&models) {
            assert_eq!(&row.model, model, "{}", model.network.name);
            assert!(row.fits);
            assert_eq!(row.sampling, ImageConfig::full(1).sampling);
        }
        assert_eq!(rows[0].pixels, PixelScale::Standardised);
    }

    #[test]
    fn every_level_keeps_the_papers_sizes() {
        for reading in one_change() {
            for row in reading.rows(&MNIST, None) {
                assert!(
                    row.fits,
                    "{}, {}: {} parameters",
                    reading.describe(),
                    row.model.network.name,
                    row.model.network.parameters(784)
                );
            }
        }
    }

    #[test]
    fn parameters_are_counted_as_the_networks_have_them() {
        let sizes = TableSizes::of(Scale::Quick);
        let device = Device::flex();
        for reading in one_change() {
            for row in reading.rows(&sizes, None) {
                let network = &row.model.network;
                assert_eq!(
                    network.parameters(64),
                    network.init(64, 1, &device).num_params(),
                    "{}, {}",
                    reading.describe(),
                    network.name
                );
            }
        }
    }

    #[test]
    fn a_row_changes_only_with_the_factors_that_it_has() {
        let base = Reading::base().rows(&MNIST, None);
        let changed = |name: &str, level: usize| -> Vec<bool> {
            let factor = index(FACTORS.iter().map(|factor| factor.name), name);
            let rows = Reading::base().with(factor, level).rows(&MNIST, None);
            let pairs = rows.iter().zip(&base);
            pairs
                .map(|(row, base)| row.model.network != base.model.network)
                .collect()
        };
        assert_eq!(changed("context", 1), [false, false, true, true, true]);
        assert_eq!(changed("context", 2), [false, false, false, false, true]);
        assert_eq!(changed("weights", 1), [true; 5]);
        assert_eq!(changed("weights", 2), [false, true, false, false, false]);
        assert_eq!(changed("weights", 3), [true, true, false, false, false]);
        assert_eq!(changed("depth", 1), [false, true, false, false, true]);
        assert_eq!(
            changed("small-policy", 2),
            [false, false, true, false, false]
        );
        assert_eq!(changed("activation", 1), [false, false, false, false, true]);
        assert_eq!(changed("pixels", 1), [false; 5]);
        assert_eq!(changed("last-bias", 1), [true; 5]);
    }

    #[test]
    fn a_reading_is_told_by_what_it_changes() {
        assert_eq!(Reading::base().describe(), "base");
        // What the first matrix gives is so narrow that no policy has to save anything.
        assert_eq!(
            Reading::as_reproduced().describe(),
            "context: projection; weights: by activation; depth: hidden; start: 0; sampling: with replacement"
        );
        assert_eq!(
            Reading::as_reproduced_before().describe(),
            "weights: static uniform; small-policy: latent of 2, no bias; policy-weights: uniform"
        );
        assert_eq!(Reading::base().levels()["pixels"], "standardised");
        assert!((0..FACTORS.len()).all(|factor| !Reading::base().is_idle(factor)));
    }
}

//! Heads on the CPU's kernels.

use adaparam_kernels::Engine;
use adaparam_kernels::softmax::{Gradient, Mixture, Projection, Softmax};

use super::HeadReader;
use crate::head::{HeadGradients, HeadKernels, HeadWeights, SoftmaxWeights};
use crate::model::LanguageModel;
use crate::weights::Weights;

/// The weights as kernels take them.
pub(super) struct Slices<'a> {
    pub(super) embedding: &'a [f32],
    pub(super) head: &'a [&'a [f32]],
    pub(super) layers: &'a [&'a [f32]],
}

impl<'a> Slices<'a> {
    pub(super) fn of(all: &'a [&'a [f32]], of_head: usize) -> Self {
        let (embedding, rest) = all.split_first().expect("a model has word vectors");
        let (head, layers) = rest.split_at(of_head);
        Self {
            embedding,
            head,
            layers,
        }
    }

    pub(super) fn of_head(&self, width: usize) -> HeadWeights<'a> {
        HeadWeights {
            embedding: self.embedding,
            width,
            own: self.head,
        }
    }
}

/// A head alone, whatever computes the layers.
pub(super) struct KernelHead {
    kernels: Box<dyn HeadKernels>,
    width: usize,
    vocabulary: usize,
    /// How many of the weights are its own; they come after the word vectors.
    of_head: usize,
    scores: Vec<f32>,
}

impl KernelHead {
    /// None if there are no kernels for it.
    pub(super) fn of(model: &LanguageModel) -> Option<Self> {
        Some(Self {
            kernels: model.head().kernels()?,
            width: model.width(),
            vocabulary: model.vocabulary(),
            of_head: model.head().parameter_shapes().len(),
            scores: Vec::new(),
        })
    }

    /// What each target costs; the weights are those that were taken last.
    pub(super) fn losses(
        &mut self,
        engine: &Engine,
        weights: &Weights,
        outputs: &[f32],
        targets: &[u32],
        losses: &mut Vec<f32>,
    ) {
        losses.resize(targets.len(), 0.0);
        let all = weights.slices();
        let of_head = Slices::of(&all, self.of_head).of_head(self.width);
        self.kernels
            .losses(engine, of_head, outputs, targets, losses);
    }

    /// What each target costs, and the gradients of the mean.
    pub(super) fn learn(
        &mut self,
        engine: &Engine,
        weights: &Weights,
        outputs: &[f32],
        targets: &[u32],
    ) -> Learnt {
        self.take(engine, weights);
        let all = weights.slices();
        let zeros = |weights: &&[f32]| vec![0.0; weights.len()];
        let (mut losses, mut d_outputs) = (vec![0.0; targets.len()], vec![0.0; outputs.len()]);
        let mut d_weights: Vec<Vec<f32>> = all[..=self.of_head].iter().map(zeros).collect();
        let mut slices: Vec<&mut [f32]> = d_weights.iter_mut().map(Vec::as_mut_slice).collect();
        let (d_embedding, d_own) = slices.split_first_mut().expect("a model has word vectors");
        self.kernels.gradient(
            engine,
            Slices::of(&all, self.of_head).of_head(self.width),
            outputs,
            targets,
            1.0 / targets.len() as f32,
            HeadGradients {
                losses: &mut losses,
                d_output: &mut d_outputs,
                d_embedding,
                d_own,
            },
        );
        Learnt {
            losses,
            d_inputs: vec![d_outputs],
            d_weights: d_weights.into_iter().enumerate().collect(),
        }
    }
}

/// What a head alone gives for a window.
pub(super) struct Learnt {
    pub(super) losses: Vec<f32>,
    /// Of each tensor that it was given.
    pub(super) d_inputs: Vec<Vec<f32>>,
    /// Of its weights, with their places among all.
    pub(super) d_weights: Vec<(usize, Vec<f32>)>,
}

/// The softmaxes of a mixture, whose inputs and priors are tensors.
pub(super) struct KernelMixture {
    softmax: Softmax,
    places: SoftmaxWeights,
}

impl KernelMixture {
    /// None if the head is none.
    pub(super) fn of(model: &LanguageModel) -> Option<Self> {
        Some(Self {
            softmax: Softmax::default(),
            places: model.head().softmax_weights()?,
        })
    }

    fn projection<'a>(&self, weights: &'a Weights) -> Projection<'a> {
        let SoftmaxWeights { weight, bias } = self.places;
        let all: Vec<&crate::weights::Weight> = weights.iter().collect();
        Projection {
            weight: &all[weight].values,
            bias: &all[bias].values,
            width: all[weight].shape[1],
        }
    }

    /// Takes the weights for what follows.
    pub(super) fn take(&mut self, engine: &Engine, weights: &Weights) {
        let projection = self.projection(weights);
        self.softmax.pack(engine, &projection);
    }

    /// What each target costs; the weights are those that were taken last.
    pub(super) fn losses(
        &mut self,
        engine: &Engine,
        weights: &Weights,
        [inputs, prior]: [&[f32]; 2],
        targets: &[u32],
    ) -> Vec<f32> {
        let (mixture, targets) = mixed(prior, targets);
        let projection = self.projection(weights);
        let mut of_each = vec![0.0; targets.len()];
        self.softmax
            .loss(engine, &projection, inputs, &targets, &mut of_each);
        losses_of(mixture, &of_each)
    }

    /// What each target costs, and the gradients of the mean, by inputs and priors.
    pub(super) fn learn(
        &mut self,
        engine: &Engine,
        weights: &Weights,
        [inputs, prior]: [&[f32]; 2],
        targets: &[u32],
    ) -> Learnt {
        self.take(engine, weights);
        let scale = 1.0 / targets.len() as f32;
        let (mixture, targets) = mixed(prior, targets);
        let projection = self.projection(weights);
        let zeros = |values: &[f32]| vec![0.0; values.len()];
        let (mut of_each, mut d_inputs) = (vec![0.0; targets.len()], zeros(inputs));
        let (mut d_weight, mut d_bias) = (zeros(projection.weight), zeros(projection.bias));
        let mut gradient = Gradient {
            d_input: &mut d_inputs,
            d_weight: &mut d_weight,
            d_bias: &mut d_bias,
        };
        self.softmax.mixed_gradient(
            engine,
            &projection,
            inputs,
            &targets,
            scale,
            mixture,
            &mut of_each,
            &mut gradient,
        );
        // The mean loss falls with a prior by as much as its softmax has of the likelihood.
        let mut d_prior = zeros(prior);
        mixture.posterior(&of_each, &mut d_prior);
        for d_prior in &mut d_prior {
            *d_prior *= -scale;
        }
        Learnt {
            losses: losses_of(mixture, &of_each),
            d_inputs: vec![d_inputs, d_prior],
            d_weights: vec![(self.places.weight, d_weight), (self.places.bias, d_bias)],
        }
    }
}

/// The mixture of these priors, and the target of each of its softmaxes.
fn mixed<'a>(prior: &'a [f32], targets: &[u32]) -> (Mixture<'a>, Vec<u32>) {
    let experts = prior.len() / targets.len().max(1);
    let targets = targets.iter();
    let targets = targets.flat_map(|&target| std::iter::repeat_n(target, experts));
    (Mixture { experts, prior }, targets.collect())
}

fn losses_of(mixture: Mixture<'_>, of_each: &[f32]) -> Vec<f32> {
    let mut losses = vec![0.0; of_each.len() / mixture.experts];
    mixture.losses(of_each, &mut losses);
    losses
}

impl HeadReader for KernelHead {
    fn take(&mut self, engine: &Engine, weights: &Weights) {
        let all = weights.slices();
        let of_head = Slices::of(&all, self.of_head).of_head(self.width);
        self.kernels.pack(engine, of_head);
    }

    fn scores(&mut self, engine: &Engine, weights: &Weights, outputs: &[f32]) -> &[f32] {
        let all = weights.slices();
        let of_head = Slices::of(&all, self.of_head).of_head(self.width);
        let rows = outputs.len() / self.width;
        self.scores.resize(rows * self.vocabulary, 0.0);
        self.kernels
            .scores(engine, of_head, outputs, &mut self.scores);
        &self.scores
    }
}

//! Heads on the CPU's kernels.

use adaparam_kernels::Engine;

use super::HeadReader;
use crate::head::{HeadGradients, HeadKernels, HeadWeights};
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
        let mut learnt = Learnt {
            losses: vec![0.0; targets.len()],
            d_outputs: vec![0.0; outputs.len()],
            d_weights: all[..=self.of_head].iter().map(zeros).collect(),
        };
        let d_weights = learnt.d_weights.iter_mut();
        let mut d_weights: Vec<&mut [f32]> = d_weights.map(Vec::as_mut_slice).collect();
        let (d_embedding, d_own) = d_weights
            .split_first_mut()
            .expect("a model has word vectors");
        self.kernels.gradient(
            engine,
            Slices::of(&all, self.of_head).of_head(self.width),
            outputs,
            targets,
            1.0 / targets.len() as f32,
            HeadGradients {
                losses: &mut learnt.losses,
                d_output: &mut learnt.d_outputs,
                d_embedding,
                d_own,
            },
        );
        learnt
    }
}

/// What a head alone gives for a window.
pub(super) struct Learnt {
    pub(super) losses: Vec<f32>,
    /// Of the layers' outputs.
    pub(super) d_outputs: Vec<f32>,
    /// Of the word vectors, and of the head's own weights.
    pub(super) d_weights: Vec<Vec<f32>>,
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

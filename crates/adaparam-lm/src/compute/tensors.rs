//! Windows through Burn's tensor operations, on any device.

use adaparam::recurrent::State;
use adaparam_data::text::Window;
use adaparam_kernels::Engine;
use burn::tensor::{Device, Tensor, TensorData};

use super::phases::{Phase, Phases};
use super::{Carried, HeadReader, LayerWeight, Learner, Penalties, Probe, Reader, Seen};
use crate::config::ModelSpec;
use crate::masks::WindowMasks;
use crate::model::{LanguageModel, numbers};
use crate::weights::Weights;

pub(super) struct TensorLearner {
    model: LanguageModel,
    device: Device,
    penalties: Penalties,
    losses: Vec<f32>,
    /// On their device until they are asked for.
    outputs: Option<Tensor<2>>,
    outputs_here: Vec<f32>,
    gradients: Vec<Vec<f32>>,
    phases: Phases,
}

impl TensorLearner {
    pub(super) fn new(spec: &ModelSpec, vocabulary: usize, device: &Device) -> Self {
        let device = device.clone().autodiff();
        Self {
            model: LanguageModel::new(spec, vocabulary, &device),
            device,
            penalties: Penalties::default(),
            losses: Vec::new(),
            outputs: None,
            outputs_here: Vec::new(),
            gradients: Vec::new(),
            phases: Phases::start(),
        }
    }
}

impl Learner for TensorLearner {
    fn learn(
        &mut self,
        _: &Engine,
        weights: &Weights,
        window: &Window<'_>,
        state: Option<Carried>,
        masks: Option<&WindowMasks>,
    ) -> Carried {
        self.phases = Phases::start();
        self.model.set(weights);
        let zeros = self.model.zero_state(window.batch);
        let state = state.map_or_else(
            || zeros.clone(),
            |state| to_state(&zeros, state, &self.device),
        );
        let (outputs, penalty, after) = self.model.penalised(window, state, masks, self.penalties);
        self.outputs = Some(outputs.clone().detach());
        let losses = self.model.losses_of(outputs, window.targets, masks);
        let mean = losses.clone().mean();
        let objective = match penalty {
            Some(penalty) => mean + penalty,
            None => mean,
        };
        let gradients = objective.backward();
        self.gradients = self.model.gradients(&gradients);
        self.losses = numbers(losses);
        self.phases.done(Phase::TensorOperations);
        from_state(&after, window.batch)
    }

    fn penalise(&mut self, penalties: Penalties) {
        self.penalties = penalties;
    }

    fn losses(&self) -> &[f32] {
        &self.losses
    }

    fn outputs(&mut self) -> &[f32] {
        if let Some(outputs) = self.outputs.take() {
            self.outputs_here = numbers(outputs);
        }
        &self.outputs_here
    }

    fn gradients(&self) -> Vec<&[f32]> {
        self.gradients.iter().map(Vec::as_slice).collect()
    }

    fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }
}

pub(super) struct TensorReader {
    model: LanguageModel,
    batch: usize,
    state: State,
    losses: Vec<f32>,
    /// On their device until they are asked for.
    outputs: Option<Tensor<2>>,
    outputs_here: Vec<f32>,
    scores: Vec<f32>,
}

impl TensorReader {
    pub(super) fn new(spec: &ModelSpec, weights: &Weights, batch: usize, device: &Device) -> Self {
        let vocabulary = weights.iter().next().map_or(0, |words| words.shape[0]);
        let mut model = LanguageModel::new(spec, vocabulary, device);
        model.set(weights);
        Self {
            state: model.zero_state(batch),
            model,
            batch,
            losses: Vec::new(),
            outputs: None,
            outputs_here: Vec::new(),
            scores: Vec::new(),
        }
    }
}

impl Reader for TensorReader {
    fn losses(&mut self, window: &Window<'_>) -> &[f32] {
        assert_eq!(window.batch, self.batch, "columns of the window");
        let (outputs, after) = self.model.outputs(window, self.state.clone(), None);
        self.state = after;
        self.outputs = Some(outputs.clone());
        self.losses = numbers(self.model.losses_of(outputs, window.targets, None));
        &self.losses
    }

    fn outputs(&mut self) -> &[f32] {
        if let Some(outputs) = self.outputs.take() {
            self.outputs_here = numbers(outputs);
        }
        &self.outputs_here
    }

    fn scores(&mut self, words: &[u32]) -> &[f32] {
        assert_eq!(words.len(), self.batch, "a word for each column");
        let (scores, after) = self
            .model
            .scores(words, [1, self.batch], self.state.clone());
        self.state = after;
        self.scores = numbers(scores);
        &self.scores
    }
}

/// A reader that goes step by step, so that every state can be seen, and what policies made of it.
pub(super) struct TensorProbe {
    model: LanguageModel,
    batch: usize,
    state: State,
    /// Of each step of what was read last, by name.
    seen: Vec<Vec<(String, Vec<f32>)>>,
    /// Name, shape and numbers of the matrices that policies adapt.
    adapted: Vec<(String, Vec<usize>, Vec<f32>)>,
    outputs: Vec<Tensor<2>>,
    losses: Vec<f32>,
    scores: Vec<f32>,
}

impl TensorProbe {
    pub(super) fn new(spec: &ModelSpec, weights: &Weights, batch: usize, device: &Device) -> Self {
        let TensorReader { model, state, .. } = TensorReader::new(spec, weights, batch, device);
        let adapts = !model.layers().policies(&state).is_empty();
        Self {
            adapted: if adapts { matrices(&model) } else { Vec::new() },
            model,
            batch,
            state,
            seen: Vec::new(),
            outputs: Vec::new(),
            losses: Vec::new(),
            scores: Vec::new(),
        }
    }
}

impl Probe for TensorProbe {
    fn read(&mut self, words: &[u32]) {
        assert_eq!(words.len() % self.batch, 0, "a word for each column");
        self.seen.clear();
        self.outputs.clear();
        for (start, inputs) in words.chunks(self.batch).enumerate() {
            let window = Window {
                start,
                steps: 1,
                batch: self.batch,
                inputs,
                targets: inputs,
            };
            let (outputs, after) = self.model.outputs(&window, self.state.clone(), None);
            let policies = self.model.layers().policies(&after).into_iter();
            let policies = policies.map(|(name, part)| (name, numbers(part)));
            let states = from_state(&after, self.batch).parts;
            self.seen.push(states.into_iter().chain(policies).collect());
            self.outputs.push(outputs);
            self.state = after;
        }
    }

    fn inspect(&self, see: &mut dyn FnMut(Seen<'_>)) {
        for (step, parts) in self.seen.iter().enumerate() {
            for (name, values) in parts {
                see(Seen {
                    name,
                    step,
                    width: values.len() / self.batch,
                    values,
                });
            }
        }
    }

    fn scores_of_all(&mut self) -> &[f32] {
        self.scores = if self.outputs.is_empty() {
            Vec::new()
        } else {
            numbers(self.model.scores_of(Tensor::cat(self.outputs.clone(), 0)))
        };
        &self.scores
    }

    fn losses_of(&mut self, targets: &[u32]) -> &[f32] {
        let outputs = Tensor::cat(self.outputs.clone(), 0);
        self.losses = numbers(self.model.losses_of(outputs, targets, None));
        &self.losses
    }

    fn restart(&mut self) {
        self.state = self.model.zero_state(self.batch);
    }

    fn layer_weights(&self) -> Vec<LayerWeight<'_>> {
        let adapted = self.adapted.iter();
        let weights = adapted.map(|(name, shape, values)| LayerWeight {
            name: name.clone(),
            shape: shape.clone(),
            values,
        });
        weights.collect()
    }
}

/// The two matrices of each adaptive layer, by the names that the kernels have for them.
fn matrices(model: &LanguageModel) -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let mut all = Vec::new();
    model.layers().visit_parameters(&mut |path, parameter| {
        let field = path.splitn(3, '.').nth(2);
        if matches!(field, Some("weight_input" | "weight_hidden")) {
            let name = path.replace("weight_", "");
            all.push((name, parameter.shape(), numbers(parameter.flat())));
        }
    });
    all
}

pub(super) struct TensorHead {
    model: LanguageModel,
    device: Device,
    scores: Vec<f32>,
}

impl TensorHead {
    pub(super) fn new(spec: &ModelSpec, vocabulary: usize, device: &Device) -> Self {
        Self {
            model: LanguageModel::new(spec, vocabulary, device),
            device: device.clone(),
            scores: Vec::new(),
        }
    }
}

impl HeadReader for TensorHead {
    fn take(&mut self, _: &Engine, weights: &Weights) {
        self.model.set(weights);
    }

    fn scores(&mut self, _: &Engine, _: &Weights, outputs: &[f32]) -> &[f32] {
        let width = self.model.width();
        let shape = [outputs.len() / width, width];
        let outputs = Tensor::from_data(TensorData::new(outputs.to_vec(), shape), &self.device);
        self.scores = numbers(self.model.scores_of(outputs));
        &self.scores
    }
}

/// Numbers as a state of the slots of `zeros`.
fn to_state(zeros: &State, carried: Carried, device: &Device) -> State {
    let parts = carried.parts.into_iter().map(|(_, values)| {
        let shape = [carried.batch, values.len() / carried.batch];
        Tensor::from_data(TensorData::new(values, shape), device)
    });
    zeros.with_parts(parts.collect())
}

fn from_state(state: &State, batch: usize) -> Carried {
    let parts = state.iter();
    Carried {
        batch,
        parts: parts
            .map(|(name, tensor)| (name.to_owned(), numbers(tensor.clone())))
            .collect(),
    }
}

//! Windows through Burn's tensor operations, on any device; on the CPU with kernels for what they know of a model.

use std::sync::Arc;

use adaparam::recurrent::{Execution, KeptWeights, State, on_engine};
use adaparam_data::text::Window;
use adaparam_kernels::Engine;
use burn::tensor::{Device, Tensor, TensorData};

use super::head::KernelHead;
use super::phases::{Phase, Phases};
use super::{Carried, HeadReader, LayerWeight, Learner, Penalties, Probe, Reader, Seen};
use crate::config::ModelSpec;
use crate::masks::WindowMasks;
use crate::model::{LanguageModel, numbers};
use crate::weights::Weights;

/// Where and how tensors compute.
pub(super) struct Tensors<'a> {
    pub(super) device: &'a Device,
    /// Of products and kernels, where `execution` asks for them.
    pub(super) engine: &'a Engine,
    pub(super) execution: Execution,
}

impl Tensors<'_> {
    /// The model, and its head on kernels where they are asked for and know it.
    fn model(
        &self,
        spec: &ModelSpec,
        vocabulary: usize,
        device: &Device,
    ) -> (LanguageModel, Option<KernelHead>) {
        let model = LanguageModel::new(spec, vocabulary, device).with_execution(self.execution);
        let head = match self.execution {
            Execution::Readable => None,
            Execution::Fused | Execution::FusedBf16 => KernelHead::of(&model),
        };
        (model, head)
    }
}

pub(super) struct TensorLearner {
    model: LanguageModel,
    head: Option<KernelHead>,
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
    pub(super) fn new(spec: &ModelSpec, vocabulary: usize, tensors: &Tensors<'_>) -> Self {
        let device = tensors.device.clone().autodiff();
        let (model, head) = tensors.model(spec, vocabulary, &device);
        Self {
            model,
            head,
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

/// A window up to what its layers give.
struct Read<'a> {
    outputs: Tensor<2>,
    penalty: Option<Tensor<1>>,
    targets: &'a [u32],
}

impl Read<'_> {
    /// Losses and gradients by Burn's graph alone.
    fn learn(
        self,
        model: &LanguageModel,
        masks: Option<&WindowMasks>,
    ) -> (Vec<f32>, Vec<Vec<f32>>) {
        let losses = model.losses_of(self.outputs, self.targets, masks);
        let gradients = plus(losses.clone().mean(), self.penalty).backward();
        (numbers(losses), model.gradients(&gradients))
    }

    /// The same with the head on kernels: the graph begins with the gradient that they give.
    fn learn_below(
        self,
        head: &mut KernelHead,
        model: &LanguageModel,
        weights: &Weights,
        engine: &Engine,
        device: &Device,
    ) -> (Vec<f32>, Vec<Vec<f32>>) {
        let values = numbers(self.outputs.clone().detach());
        let learnt = head.learn(engine, weights, &values, self.targets);
        let d_outputs = TensorData::new(learnt.d_outputs, self.outputs.dims());
        let d_outputs = Tensor::from_data(d_outputs, device);
        // The gradient of this by the outputs is theirs.
        let objective = (self.outputs * d_outputs).sum();
        let mut gradients = model.gradients(&plus(objective, self.penalty).backward());
        for (all, of_head) in gradients.iter_mut().zip(learnt.d_weights) {
            for (all, of_head) in all.iter_mut().zip(of_head) {
                *all += of_head;
            }
        }
        (learnt.losses, gradients)
    }
}

fn plus(objective: Tensor<1>, penalty: Option<Tensor<1>>) -> Tensor<1> {
    match penalty {
        Some(penalty) => objective + penalty,
        None => objective,
    }
}

impl Learner for TensorLearner {
    fn learn(
        &mut self,
        engine: &Engine,
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
        let (outputs, penalty, after) = on_engine(&Arc::new(engine.clone()), || {
            self.model.penalised(window, state, masks, self.penalties)
        });
        self.outputs = Some(outputs.clone().detach());
        let read = Read {
            outputs,
            penalty,
            targets: window.targets,
        };
        (self.losses, self.gradients) = match &mut self.head {
            None => read.learn(&self.model, masks),
            Some(head) => read.learn_below(head, &self.model, weights, engine, &self.device),
        };
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

/// A model in the midst of a text.
struct Position<'a> {
    model: LanguageModel,
    head: Option<KernelHead>,
    weights: &'a Weights,
    /// Those of the layers, packed.
    kept: KeptWeights,
    engine: Arc<Engine>,
    batch: usize,
    state: State,
}

impl<'a> Position<'a> {
    fn new(spec: &ModelSpec, weights: &'a Weights, batch: usize, tensors: &Tensors<'_>) -> Self {
        let vocabulary = weights.iter().next().map_or(0, |words| words.shape[0]);
        let (mut model, mut head) = tensors.model(spec, vocabulary, tensors.device);
        model.set(weights);
        if let Some(head) = &mut head {
            head.take(tensors.engine, weights);
        }
        Self {
            state: model.zero_state(batch),
            model,
            head,
            weights,
            kept: KeptWeights::default(),
            engine: Arc::new(tensors.engine.clone()),
            batch,
        }
    }

    /// Reads words, `[T, B]`; what the layers give, `[T B, D]`.
    fn read(&mut self, words: &[u32]) -> Tensor<2> {
        let window = Window {
            start: 0,
            steps: words.len() / self.batch,
            batch: self.batch,
            inputs: words,
            targets: words,
        };
        let (outputs, after) = on_engine(&self.engine, || {
            let state = self.state.clone();
            self.kept
                .during(|| self.model.outputs(&window, state, None))
        });
        self.state = after;
        outputs
    }

    fn losses(&mut self, outputs: Tensor<2>, targets: &[u32], losses: &mut Vec<f32>) {
        match &mut self.head {
            None => *losses = numbers(self.model.losses_of(outputs, targets, None)),
            Some(head) => {
                let outputs = numbers(outputs);
                head.losses(&self.engine, self.weights, &outputs, targets, losses);
            }
        }
    }

    fn scores(&mut self, outputs: Tensor<2>) -> Vec<f32> {
        match &mut self.head {
            None => numbers(self.model.scores_of(outputs)),
            Some(head) => {
                let outputs = numbers(outputs);
                head.scores(&self.engine, self.weights, &outputs).to_vec()
            }
        }
    }
}

pub(super) struct TensorReader<'a> {
    position: Position<'a>,
    losses: Vec<f32>,
    /// On their device until they are asked for.
    outputs: Option<Tensor<2>>,
    outputs_here: Vec<f32>,
    scores: Vec<f32>,
}

impl<'a> TensorReader<'a> {
    pub(super) fn new(
        spec: &ModelSpec,
        weights: &'a Weights,
        batch: usize,
        tensors: &Tensors<'_>,
    ) -> Self {
        Self {
            position: Position::new(spec, weights, batch, tensors),
            losses: Vec::new(),
            outputs: None,
            outputs_here: Vec::new(),
            scores: Vec::new(),
        }
    }
}

impl Reader for TensorReader<'_> {
    fn losses(&mut self, window: &Window<'_>) -> &[f32] {
        let position = &mut self.position;
        assert_eq!(window.batch, position.batch, "columns of the window");
        let outputs = position.read(window.inputs);
        self.outputs = Some(outputs.clone());
        position.losses(outputs, window.targets, &mut self.losses);
        &self.losses
    }

    fn outputs(&mut self) -> &[f32] {
        if let Some(outputs) = self.outputs.take() {
            self.outputs_here = numbers(outputs);
        }
        &self.outputs_here
    }

    fn scores(&mut self, words: &[u32]) -> &[f32] {
        let position = &mut self.position;
        assert_eq!(words.len(), position.batch, "a word for each column");
        let outputs = position.read(words);
        self.scores = position.scores(outputs);
        &self.scores
    }
}

/// A reader that goes step by step, so that every state can be seen.
pub(super) struct TensorProbe<'a> {
    position: Position<'a>,
    /// After each step of what was read last.
    states: Vec<Carried>,
    outputs: Vec<Tensor<2>>,
    losses: Vec<f32>,
    scores: Vec<f32>,
}

impl<'a> TensorProbe<'a> {
    pub(super) fn new(
        spec: &ModelSpec,
        weights: &'a Weights,
        batch: usize,
        tensors: &Tensors<'_>,
    ) -> Self {
        Self {
            position: Position::new(spec, weights, batch, tensors),
            states: Vec::new(),
            outputs: Vec::new(),
            losses: Vec::new(),
            scores: Vec::new(),
        }
    }
}

impl Probe for TensorProbe<'_> {
    fn read(&mut self, words: &[u32]) {
        let position = &mut self.position;
        assert_eq!(words.len() % position.batch, 0, "a word for each column");
        self.states.clear();
        self.outputs.clear();
        for inputs in words.chunks(position.batch) {
            let outputs = position.read(inputs);
            self.states
                .push(from_state(&position.state, position.batch));
            self.outputs.push(outputs);
        }
    }

    fn inspect(&self, see: &mut dyn FnMut(Seen<'_>)) {
        for (step, carried) in self.states.iter().enumerate() {
            for (name, values) in &carried.parts {
                see(Seen {
                    name,
                    step,
                    width: values.len() / carried.batch,
                    values,
                });
            }
        }
    }

    fn scores_of_all(&mut self) -> &[f32] {
        self.scores = if self.outputs.is_empty() {
            Vec::new()
        } else {
            let outputs = Tensor::cat(self.outputs.clone(), 0);
            self.position.scores(outputs)
        };
        &self.scores
    }

    fn losses_of(&mut self, targets: &[u32]) -> &[f32] {
        let outputs = Tensor::cat(self.outputs.clone(), 0);
        self.position.losses(outputs, targets, &mut self.losses);
        &self.losses
    }

    fn restart(&mut self) {
        let Position { model, batch, .. } = &self.position;
        self.position.state = model.zero_state(*batch);
    }

    fn layer_weights(&self) -> Vec<LayerWeight<'_>> {
        Vec::new()
    }
}

pub(super) struct TensorHead {
    model: LanguageModel,
    device: Device,
    scores: Vec<f32>,
}

impl TensorHead {
    pub(super) fn new(model: LanguageModel, device: &Device) -> Self {
        Self {
            model,
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

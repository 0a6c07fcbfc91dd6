//! Windows through Burn's tensor operations, on any device; on the CPU with kernels for what they know of a model.

use std::sync::Arc;

use adaparam::recurrent::{Execution, KeptWeights, State, on_engine};
use adaparam_data::text::Window;
use adaparam_kernels::Engine;
use burn::tensor::{Device, Tensor, TensorData};

use super::head::{KernelHead, KernelMixture, Learnt};
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
    /// The model, and what computes its head.
    fn model(
        &self,
        spec: &ModelSpec,
        vocabulary: usize,
        device: &Device,
    ) -> (LanguageModel, Above) {
        let model = LanguageModel::new(spec, vocabulary, device).with_execution(self.execution);
        let above = match self.execution {
            Execution::Readable => Above::Tensors,
            Execution::Fused | Execution::FusedBf16 => Above::of(&model),
        };
        (model, above)
    }
}

/// What computes the head.
enum Above {
    Tensors,
    Kernels(KernelHead),
    /// Tensors up to what its softmaxes read.
    Mixture(Box<KernelMixture>),
}

impl Above {
    fn of(model: &LanguageModel) -> Self {
        let whole = KernelHead::of(model).map(Self::Kernels);
        whole
            .or_else(|| KernelMixture::of(model).map(|mixture| Self::Mixture(Box::new(mixture))))
            .unwrap_or(Self::Tensors)
    }

    /// Takes the weights for what is read.
    fn take(&mut self, engine: &Engine, weights: &Weights) {
        match self {
            Self::Tensors => (),
            Self::Kernels(head) => head.take(engine, weights),
            Self::Mixture(mixture) => mixture.take(engine, weights),
        }
    }
}

pub(super) struct TensorLearner {
    model: LanguageModel,
    head: Above,
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
    /// Losses and gradients. Where kernels compute the head, the graph begins with the gradients that they give.
    fn learn(
        self,
        model: &LanguageModel,
        head: &mut Above,
        masks: Option<&WindowMasks>,
        weights: &Weights,
        engine: &Engine,
    ) -> (Vec<f32>, Vec<Vec<f32>>) {
        let values = |tensor: &Tensor<2>| numbers(tensor.clone().detach());
        let (inputs, learnt) = match head {
            Above::Tensors => {
                let losses = model.losses_of(self.outputs, self.targets, masks);
                let gradients = plus(losses.clone().mean(), self.penalty).backward();
                return (numbers(losses), model.gradients(&gradients));
            }
            Above::Kernels(head) => {
                let learnt = head.learn(engine, weights, &values(&self.outputs), self.targets);
                (vec![self.outputs], learnt)
            }
            Above::Mixture(mixture) => {
                let experts = model.experts_of(self.outputs, masks).expect(IS_MIXTURE);
                let (inputs, prior) = (values(&experts.inputs), values(&experts.prior));
                let learnt = mixture.learn(engine, weights, [&inputs, &prior], self.targets);
                (vec![experts.inputs, experts.prior], learnt)
            }
        };
        let Learnt {
            losses,
            d_inputs,
            d_weights,
        } = learnt;
        // Its gradient by each tensor is the one that kernels gave.
        let product = |(input, gradient): (Tensor<2>, Vec<f32>)| {
            let gradient = TensorData::new(gradient, input.dims());
            let gradient = Tensor::from_data(gradient, &input.device());
            (input * gradient).sum()
        };
        let products = inputs.into_iter().zip(d_inputs).map(product);
        let objective = products.reduce(|one, other| one + other).expect(HAS_INPUT);
        let mut gradients = model.gradients(&plus(objective, self.penalty).backward());
        for (place, of_head) in d_weights {
            for (all, of_head) in gradients[place].iter_mut().zip(of_head) {
                *all += of_head;
            }
        }
        (losses, gradients)
    }
}

const IS_MIXTURE: &str = "a head with weights of softmaxes is a mixture";
const HAS_INPUT: &str = "a head reads something";

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
        // Those of the window before would be held beside this window's otherwise.
        self.gradients.clear();
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
        let (model, head) = (&self.model, &mut self.head);
        (self.losses, self.gradients) = read.learn(model, head, masks, weights, engine);
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
    head: Above,
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
        head.take(tensors.engine, weights);
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

    /// What the policies of each layer made of the state.
    fn policies(&self) -> Vec<(String, Tensor<2>)> {
        self.model.layers().policies(&self.state)
    }

    fn losses(&mut self, outputs: Tensor<2>, targets: &[u32], losses: &mut Vec<f32>) {
        let (engine, weights) = (&self.engine, self.weights);
        match &mut self.head {
            Above::Tensors => *losses = numbers(self.model.losses_of(outputs, targets, None)),
            Above::Kernels(head) => {
                head.losses(engine, weights, &numbers(outputs), targets, losses);
            }
            Above::Mixture(mixture) => {
                let experts = self.model.experts_of(outputs, None).expect(IS_MIXTURE);
                let (inputs, prior) = (numbers(experts.inputs), numbers(experts.prior));
                *losses = mixture.losses(engine, weights, [&inputs, &prior], targets);
            }
        }
    }

    fn scores(&mut self, outputs: Tensor<2>) -> Vec<f32> {
        match &mut self.head {
            Above::Tensors | Above::Mixture(_) => numbers(self.model.scores_of(outputs)),
            Above::Kernels(head) => {
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

/// A reader that goes step by step, so that every state can be seen, and what policies made of it.
pub(super) struct TensorProbe<'a> {
    position: Position<'a>,
    /// Of each step of what was read last, by name.
    seen: Vec<Vec<(String, Vec<f32>)>>,
    /// Name, shape and numbers of the matrices that policies adapt.
    adapted: Vec<(String, Vec<usize>, Vec<f32>)>,
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
        let position = Position::new(spec, weights, batch, tensors);
        let adapts = !position.policies().is_empty();
        Self {
            adapted: if adapts {
                matrices(&position.model)
            } else {
                Vec::new()
            },
            position,
            seen: Vec::new(),
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
        self.seen.clear();
        self.outputs.clear();
        for inputs in words.chunks(position.batch) {
            let outputs = position.read(inputs);
            let policies = position.policies().into_iter();
            let policies = policies.map(|(name, part)| (name, numbers(part)));
            let states = from_state(&position.state, position.batch).parts;
            self.seen.push(states.into_iter().chain(policies).collect());
            self.outputs.push(outputs);
        }
    }

    fn inspect(&self, see: &mut dyn FnMut(Seen<'_>)) {
        for (step, parts) in self.seen.iter().enumerate() {
            for (name, values) in parts {
                see(Seen {
                    name,
                    step,
                    width: values.len() / self.position.batch,
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

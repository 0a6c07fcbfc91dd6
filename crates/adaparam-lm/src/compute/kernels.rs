//! Windows on the CPU's kernels.

use adaparam_data::text::Window;
use adaparam_kernels::Engine;
use adaparam_kernels::embedding::{Lookup, apply_mask};
use adaparam_kernels::memory::Buffer;
use adaparam_kernels::stack::{Keep, Operands, Runner, Stack, State, Weights as PackedWeights};

use super::head::Slices;
use super::phases::{Phase, Phases};
use super::{Carried, LayerWeight, Learner, Penalties, Probe, Reader, Seen};
use crate::head::{HeadGradients, HeadKernels};
use crate::masks::WindowMasks;
use crate::model::LanguageModel;
use crate::weights::Weights;

/// Every shape comes from the model that the kernels were made for.
const FITS: &str = "the kernels take what the model says";

/// A model as the kernels compute it.
pub(super) struct Plan {
    stack: Box<dyn Stack>,
    head: Box<dyn HeadKernels>,
    width: usize,
    vocabulary: usize,
    /// How many of the weights are the head's own; they come after the word vectors, and before the layers'.
    of_head: usize,
    /// The length of each parameter.
    lengths: Vec<usize>,
}

impl Plan {
    /// None if there are no kernels for the layers or for the head.
    pub(super) fn of(model: &LanguageModel) -> Option<Self> {
        let stack = model.layers().fused()?;
        let head = model.head().kernels()?;
        Some(Self {
            width: stack.d_input(),
            stack,
            head,
            vocabulary: model.vocabulary(),
            of_head: model.head().parameter_shapes().len(),
            lengths: model
                .shapes()
                .iter()
                .map(crate::weights::ParameterShape::count)
                .collect(),
        })
    }

    fn state(&self, carried: Option<Carried>, batch: usize) -> State {
        match carried {
            None => self.stack.zero_state(batch),
            Some(carried) => State {
                parts: carried.parts.into_iter().map(|(_, part)| part).collect(),
            },
        }
    }

    fn carried(&self, state: &State, batch: usize) -> Carried {
        let names = self.stack.states().into_iter().map(|slot| slot.name);
        Carried {
            batch,
            parts: names.zip(state.parts.iter().cloned()).collect(),
        }
    }
}

fn masks_of_sites(masks: Option<&WindowMasks>) -> Vec<Option<&[f32]>> {
    let sites = masks.into_iter().flat_map(|masks| &masks.sites);
    sites.map(Option::as_deref).collect()
}

pub(super) struct KernelLearner {
    plan: Plan,
    runner: Box<dyn Runner>,
    /// Word vectors, and the layers' output: `[T, B, E]`, as their gradients.
    x: Buffer,
    d_x: Buffer,
    output: Buffer,
    d_output: Buffer,
    /// The output before dropout, where a penalty needs it.
    undropped: Vec<f32>,
    penalties: Penalties,
    losses: Vec<f32>,
    gradients: Vec<Buffer>,
    phases: Phases,
}

impl KernelLearner {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            runner: plan.stack.runner(PackedWeights::Change),
            gradients: plan
                .lengths
                .iter()
                .map(|&length| Buffer::new(length))
                .collect(),
            plan,
            x: Buffer::default(),
            d_x: Buffer::default(),
            output: Buffer::default(),
            d_output: Buffer::default(),
            undropped: Vec::new(),
            penalties: Penalties::default(),
            losses: Vec::new(),
            phases: Phases::start(),
        }
    }
}

impl Learner for KernelLearner {
    fn learn(
        &mut self,
        engine: &Engine,
        weights: &Weights,
        window: &Window<'_>,
        state: Option<Carried>,
        masks: Option<&WindowMasks>,
    ) -> Carried {
        self.phases = Phases::start();
        let Self {
            plan,
            runner,
            x,
            d_x,
            output,
            d_output,
            undropped,
            penalties,
            losses,
            gradients,
            phases,
        } = self;
        let width = plan.width;
        let rows = window.targets.len();
        losses.resize(rows, 0.0);
        for buffer in [&mut *x, &mut *d_x, &mut *output, &mut *d_output] {
            buffer.resize(rows * width);
        }
        let all = weights.slices();
        let slices = Slices::of(&all, plan.of_head);
        let of_head = slices.of_head(width);
        let lookup = Lookup {
            words: window.inputs,
            batch: window.batch,
            width,
            word_mask: masks.and_then(|masks| masks.words.as_deref()),
            mask: masks.and_then(|masks| masks.embedding.as_deref()),
        };
        let output_mask = masks.and_then(|masks| masks.output.as_deref());

        lookup.forward(engine, slices.embedding, x);
        phases.done(Phase::Embedding);

        runner.pack(engine, slices.layers).expect(FITS);
        plan.head.pack(engine, of_head);
        phases.done(Phase::Packing);

        let mut state = plan.state(state, window.batch);
        let sites = masks_of_sites(masks);
        let operands = Operands {
            weights: slices.layers,
            masks: &sites,
            steps: window.steps,
            batch: window.batch,
            x,
            lengths: None,
        };
        runner
            .forward(engine, &operands, Keep::Tape, &mut state, output)
            .expect(FITS);
        let carried = plan.carried(&state, window.batch);
        if penalties.temporal > 0.0 {
            undropped.clear();
            undropped.extend_from_slice(output);
        }
        if let Some(mask) = output_mask {
            apply_mask(engine, output, mask);
        }
        phases.done(Phase::Forward);

        let mut d_all: Vec<&mut [f32]> = gradients.iter_mut().map(|buffer| &mut **buffer).collect();
        let (d_embedding, d_rest) = d_all.split_first_mut().expect("a model has word vectors");
        let (d_head, d_layers) = d_rest.split_at_mut(plan.of_head);
        plan.head.gradient(
            engine,
            of_head,
            output,
            window.targets,
            1.0 / rows as f32,
            HeadGradients {
                losses,
                d_output,
                d_embedding,
                d_own: d_head,
            },
        );
        penalties.add_activation(output, d_output);
        if let Some(mask) = output_mask {
            apply_mask(engine, d_output, mask);
        }
        penalties.add_temporal(undropped, window.batch * width, d_output);
        phases.done(Phase::Softmax);

        for part in &mut state.parts {
            part.fill(0.0);
        }
        let mut d_state = state;
        runner
            .through_time(engine, &operands, d_output, &mut d_state, d_x, d_layers)
            .expect(FITS);
        phases.done(Phase::ThroughTime);
        runner
            .weight_gradients(engine, &operands, d_layers)
            .expect(FITS);
        phases.done(Phase::WeightGradients);
        lookup.add_gradient(engine, d_x, d_embedding);
        phases.done(Phase::EmbeddingGradient);
        carried
    }

    fn penalise(&mut self, penalties: Penalties) {
        self.penalties = penalties;
    }

    fn losses(&self) -> &[f32] {
        &self.losses
    }

    fn outputs(&mut self) -> &[f32] {
        &self.output
    }

    fn gradients(&self) -> Vec<&[f32]> {
        self.gradients.iter().map(|gradient| &**gradient).collect()
    }

    fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }
}

pub(super) struct KernelReader<'a> {
    plan: Plan,
    engine: &'a Engine,
    weights: Vec<&'a [f32]>,
    runner: Box<dyn Runner>,
    /// What a window leaves behind.
    keep: Keep,
    batch: usize,
    state: State,
    x: Buffer,
    output: Buffer,
    losses: Vec<f32>,
    scores: Vec<f32>,
}

impl<'a> KernelReader<'a> {
    /// The weights are made ready for products once.
    pub(super) fn new(
        mut plan: Plan,
        engine: &'a Engine,
        weights: &'a Weights,
        batch: usize,
    ) -> Self {
        let weights = weights.slices();
        let mut runner = plan.stack.runner(PackedWeights::Stay);
        let slices = Slices::of(&weights, plan.of_head);
        runner.pack(engine, slices.layers).expect(FITS);
        plan.head.pack(engine, slices.of_head(plan.width));
        Self {
            state: plan.stack.zero_state(batch),
            plan,
            engine,
            weights,
            runner,
            keep: Keep::State,
            batch,
            x: Buffer::default(),
            output: Buffer::default(),
            losses: Vec::new(),
            scores: Vec::new(),
        }
    }

    /// The same that remembers what its last window computed.
    pub(super) fn remembering(self) -> Self {
        Self {
            keep: Keep::Tape,
            ..self
        }
    }

    /// Reads words, `[T, B]`, up to the layers' output.
    fn read_words(&mut self, words: &[u32]) {
        let width = self.plan.width;
        self.x.resize(words.len() * width);
        self.output.resize(words.len() * width);
        let slices = Slices::of(&self.weights, self.plan.of_head);
        let lookup = Lookup {
            words,
            batch: self.batch,
            width,
            word_mask: None,
            mask: None,
        };
        lookup.forward(self.engine, slices.embedding, &mut self.x);
        let operands = Operands {
            weights: slices.layers,
            masks: &[],
            steps: words.len() / self.batch,
            batch: self.batch,
            x: &self.x,
            lengths: None,
        };
        self.runner
            .forward(
                self.engine,
                &operands,
                self.keep,
                &mut self.state,
                &mut self.output,
            )
            .expect(FITS);
    }
}

impl Reader for KernelReader<'_> {
    fn losses(&mut self, window: &Window<'_>) -> &[f32] {
        assert_eq!(window.batch, self.batch, "columns of the window");
        self.losses.resize(window.targets.len(), 0.0);
        self.read_words(window.inputs);
        let of_head = Slices::of(&self.weights, self.plan.of_head).of_head(self.plan.width);
        self.plan.head.losses(
            self.engine,
            of_head,
            &self.output,
            window.targets,
            &mut self.losses,
        );
        &self.losses
    }

    fn outputs(&mut self) -> &[f32] {
        &self.output
    }

    fn scores(&mut self, words: &[u32]) -> &[f32] {
        assert_eq!(words.len(), self.batch, "a word for each column");
        self.scores.resize(self.batch * self.plan.vocabulary, 0.0);
        self.read_words(words);
        let of_head = Slices::of(&self.weights, self.plan.of_head).of_head(self.plan.width);
        self.plan
            .head
            .scores(self.engine, of_head, &self.output, &mut self.scores);
        &self.scores
    }
}

impl Probe for KernelReader<'_> {
    fn read(&mut self, words: &[u32]) {
        assert_eq!(words.len() % self.batch, 0, "a word for each column");
        self.read_words(words);
    }

    fn inspect(&self, see: &mut dyn FnMut(Seen<'_>)) {
        // Nothing is kept before the first window, and nothing is seen.
        let _ = self.runner.inspect(see);
    }

    fn scores_of_all(&mut self) -> &[f32] {
        let rows = self.output.len() / self.plan.width;
        self.scores.resize(rows * self.plan.vocabulary, 0.0);
        let of_head = Slices::of(&self.weights, self.plan.of_head).of_head(self.plan.width);
        self.plan
            .head
            .scores(self.engine, of_head, &self.output, &mut self.scores);
        &self.scores
    }

    fn losses_of(&mut self, targets: &[u32]) -> &[f32] {
        self.losses.resize(targets.len(), 0.0);
        let of_head = Slices::of(&self.weights, self.plan.of_head).of_head(self.plan.width);
        self.plan.head.losses(
            self.engine,
            of_head,
            &self.output,
            targets,
            &mut self.losses,
        );
        &self.losses
    }

    fn restart(&mut self) {
        self.state = self.plan.stack.zero_state(self.batch);
    }

    fn layer_weights(&self) -> Vec<LayerWeight<'_>> {
        let layers = Slices::of(&self.weights, self.plan.of_head).layers;
        let slots = self.plan.stack.parameters().into_iter().zip(layers);
        slots
            .map(|(slot, &values)| LayerWeight {
                name: slot.name,
                shape: slot.shape,
                values,
            })
            .collect()
    }
}

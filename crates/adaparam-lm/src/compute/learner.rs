//! Windows forward and backward.

use adaparam_data::text::Window;
use adaparam_kernels::Engine;
use adaparam_kernels::embedding::{Lookup, apply_mask};
use adaparam_kernels::memory::Buffer;
use adaparam_kernels::softmax::{Gradient, Projection, Softmax};

use super::phases::{Phase, Phases};
use super::readable;
use super::stack::{Input, StackKernels, kernels_for};
use super::weights::Weights;
use crate::masks::WindowMasks;
use crate::model::LanguageModel;
use crate::stack::StackState;

/// Computes the losses of windows and their gradients, in buffers that are made once.
pub struct Learner {
    path: Path,
    losses: Vec<f32>,
    gradients: Vec<Buffer>,
    phases: Phases,
}

enum Path {
    Kernels(Box<Kernels>),
    Readable,
}

struct Kernels {
    stack: Box<dyn StackKernels>,
    softmax: Softmax,
    /// Word vectors, and the layers' output: `[T, B, E]`, as their gradients.
    x: Buffer,
    d_x: Buffer,
    output: Buffer,
    d_output: Buffer,
}

impl Learner {
    /// A learner for `model`, or for one of its shape: on kernels, if there are any for its layers.
    pub fn new(model: &LanguageModel) -> Self {
        let path = match kernels_for(&model.stack) {
            Some(stack) => Path::Kernels(Box::new(Kernels {
                stack,
                softmax: Softmax::default(),
                x: Buffer::default(),
                d_x: Buffer::default(),
                output: Buffer::default(),
                d_output: Buffer::default(),
            })),
            None => Path::Readable,
        };
        Self::on(path, model)
    }

    /// A learner that computes with Burn's tensor operations, whatever the layers.
    pub fn readable(model: &LanguageModel) -> Self {
        Self::on(Path::Readable, model)
    }

    fn on(path: Path, model: &LanguageModel) -> Self {
        let weights = Weights::of(model);
        Self {
            path,
            losses: Vec::new(),
            gradients: weights
                .slices()
                .iter()
                .map(|values| Buffer::new(values.len()))
                .collect(),
            phases: Phases::start(),
        }
    }

    /// Reads a window from `state` on, forward and backward. The objective is the mean of the losses; gradients do not
    /// reach into the windows before.
    pub fn learn(
        &mut self,
        engine: &Engine,
        model: &LanguageModel,
        window: &Window<'_>,
        state: StackState,
        masks: Option<&WindowMasks>,
    ) -> StackState {
        self.phases = Phases::start();
        self.losses.resize(window.targets.len(), 0.0);
        match &mut self.path {
            Path::Kernels(kernels) => kernels.learn(
                engine,
                model,
                window,
                state,
                masks,
                Results {
                    losses: &mut self.losses,
                    gradients: &mut self.gradients,
                    phases: &mut self.phases,
                },
            ),
            Path::Readable => {
                let (losses, gradients, state) = readable::learn(model, window, state, masks);
                self.losses = losses;
                for (buffer, gradient) in self.gradients.iter_mut().zip(gradients) {
                    buffer.copy_from_slice(&gradient);
                }
                self.phases.done(Phase::TensorOperations);
                state
            }
        }
    }

    /// What each target of the last window costs: `−ln p(target)`.
    pub fn losses(&self) -> &[f32] {
        &self.losses
    }

    /// The gradients of every parameter, in the order of [`LanguageModel::parameters`].
    pub fn gradients(&self) -> Vec<&[f32]> {
        self.gradients.iter().map(|gradient| &**gradient).collect()
    }

    /// Where the time of the last window went.
    pub(crate) fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }
}

/// What a window gives.
struct Results<'a> {
    losses: &'a mut [f32],
    gradients: &'a mut [Buffer],
    phases: &'a mut Phases,
}

impl Kernels {
    fn learn(
        &mut self,
        engine: &Engine,
        model: &LanguageModel,
        window: &Window<'_>,
        state: StackState,
        masks: Option<&WindowMasks>,
        results: Results<'_>,
    ) -> StackState {
        let Results {
            losses,
            gradients,
            phases,
        } = results;
        let [d_embedding, d_bias, d_layers @ ..] = gradients else {
            unreachable!("a model has an embedding and a bias");
        };
        let weights = Weights::of(model);
        let weights = weights.slices();
        let [embedding, bias, layers @ ..] = weights.as_slice() else {
            unreachable!("a model has an embedding and a bias");
        };
        let [_, width] = model.embedding.dims();
        let rows = window.targets.len();
        for buffer in [
            &mut self.x,
            &mut self.d_x,
            &mut self.output,
            &mut self.d_output,
        ] {
            buffer.resize(rows * width);
        }
        let lookup = Lookup {
            words: window.inputs,
            batch: window.batch,
            width,
            word_mask: masks.and_then(|masks| masks.words.as_deref()),
            mask: masks.and_then(|masks| masks.embedding.as_deref()),
        };
        let output_mask = masks.and_then(|masks| masks.output.as_deref());
        let projection = Projection {
            weight: embedding,
            bias,
            width,
        };

        lookup.forward(engine, embedding, &mut self.x);
        phases.done(Phase::Embedding);

        self.stack.pack(engine, layers);
        self.softmax.pack(engine, &projection);
        phases.done(Phase::Packing);

        self.stack.set_state(state);
        let input = Input {
            weights: layers,
            masks,
            steps: window.steps,
            batch: window.batch,
            x: &self.x,
        };
        self.stack.forward(engine, input, &mut self.output);
        let state = self
            .stack
            .state(window.batch, &model.embedding.val().device());
        if let Some(mask) = output_mask {
            apply_mask(engine, &mut self.output, mask);
        }
        phases.done(Phase::Forward);

        let mut gradient = Gradient {
            d_input: &mut self.d_output,
            d_weight: d_embedding,
            d_bias,
        };
        let scale = 1.0 / rows as f32;
        self.softmax.gradient(
            engine,
            &projection,
            &self.output,
            window.targets,
            scale,
            losses,
            &mut gradient,
        );
        if let Some(mask) = output_mask {
            apply_mask(engine, &mut self.d_output, mask);
        }
        phases.done(Phase::Softmax);

        self.stack.backward(
            engine,
            input,
            &self.d_output,
            &mut self.d_x,
            d_layers,
            phases,
        );
        lookup.add_gradient(engine, &self.d_x, d_embedding);
        phases.done(Phase::EmbeddingGradient);
        state
    }
}

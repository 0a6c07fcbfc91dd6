//! Windows forward only.

use adaparam_data::text::Window;
use adaparam_kernels::Engine;
use adaparam_kernels::embedding::Lookup;
use adaparam_kernels::memory::Buffer;
use adaparam_kernels::softmax::{Projection, Softmax};

use super::stack::{Input, StackKernels, kernels_for};
use super::weights::Weights;
use crate::model::LanguageModel;
use crate::stack::StackState;

/// A model in the midst of a text of some columns. The weights are made ready for products once, and nothing is kept
/// of what was read but the state.
pub(crate) struct Reader<'a> {
    engine: &'a Engine,
    model: &'a LanguageModel,
    batch: usize,
    path: Path,
    losses: Vec<f32>,
    scores: Vec<f32>,
}

enum Path {
    Kernels(Box<Kernels>),
    Readable(Option<StackState>),
}

struct Kernels {
    weights: Weights,
    stack: Box<dyn StackKernels>,
    softmax: Softmax,
    x: Buffer,
    output: Buffer,
}

impl<'a> Reader<'a> {
    /// A reader before the first word of `batch` columns.
    pub(crate) fn new(engine: &'a Engine, model: &'a LanguageModel, batch: usize) -> Self {
        let path = if let Some(stack) = kernels_for(&model.stack) {
            let mut kernels = Kernels {
                weights: Weights::of(model),
                stack,
                softmax: Softmax::default(),
                x: Buffer::default(),
                output: Buffer::default(),
            };
            kernels.pack(engine, model);
            kernels.stack.clear(batch);
            Path::Kernels(Box::new(kernels))
        } else {
            let device = model.embedding.val().device();
            Path::Readable(Some(model.stack.zero_state(batch, &device)))
        };
        Self {
            engine,
            model,
            batch,
            path,
            losses: Vec::new(),
            scores: Vec::new(),
        }
    }

    /// Reads a window; what each of its targets costs.
    ///
    /// # Panics
    ///
    /// Panics if the window has another number of columns.
    pub(crate) fn losses(&mut self, window: &Window<'_>) -> &[f32] {
        assert_eq!(window.batch, self.batch, "columns of the window");
        self.losses.resize(window.targets.len(), 0.0);
        match &mut self.path {
            Path::Kernels(kernels) => {
                kernels.read(self.engine, self.model, window.inputs, self.batch);
                let weights = kernels.weights.slices();
                kernels.softmax.loss(
                    self.engine,
                    &projection(self.model, &weights),
                    &kernels.output,
                    window.targets,
                    &mut self.losses,
                );
            }
            Path::Readable(state) => {
                let before = state.take().expect("a state between windows");
                let (losses, after) = self.model.losses(window, before, None);
                *state = Some(after);
                self.losses = losses
                    .into_data()
                    .try_into_vec_as()
                    .expect("losses are floats");
            }
        }
        &self.losses
    }

    /// Reads one word of each column; the scores of every word as the next one, `[B, V]`.
    ///
    /// # Panics
    ///
    /// Panics if there are more or fewer words than columns.
    pub(crate) fn scores(&mut self, words: &[u32]) -> &[f32] {
        assert_eq!(words.len(), self.batch, "a word for each column");
        match &mut self.path {
            Path::Kernels(kernels) => {
                self.scores
                    .resize(self.batch * self.model.vocabulary(), 0.0);
                kernels.read(self.engine, self.model, words, self.batch);
                let weights = kernels.weights.slices();
                kernels.softmax.logits(
                    self.engine,
                    &projection(self.model, &weights),
                    &kernels.output,
                    &mut self.scores,
                );
            }
            Path::Readable(state) => {
                let before = state.take().expect("a state between windows");
                let (scores, after) = self.model.logits(words, [1, self.batch], before, None);
                *state = Some(after);
                self.scores = scores
                    .into_data()
                    .try_into_vec_as()
                    .expect("scores are floats");
            }
        }
        &self.scores
    }
}

impl Kernels {
    fn pack(&mut self, engine: &Engine, model: &LanguageModel) {
        let weights = self.weights.slices();
        self.stack.pack(engine, &weights[2..]);
        self.softmax.pack(engine, &projection(model, &weights));
    }

    /// Reads words, `[T, B]`, up to the layers' output.
    fn read(&mut self, engine: &Engine, model: &LanguageModel, words: &[u32], batch: usize) {
        let [_, width] = model.embedding.dims();
        self.x.resize(words.len() * width);
        self.output.resize(words.len() * width);
        let weights = self.weights.slices();
        let lookup = Lookup {
            words,
            batch,
            width,
            word_mask: None,
            mask: None,
        };
        lookup.forward(engine, weights[0], &mut self.x);
        let input = Input {
            weights: &weights[2..],
            masks: None,
            steps: words.len() / batch,
            batch,
            x: &self.x,
        };
        self.stack.evaluate(engine, input, &mut self.output);
    }
}

/// The embedding as the softmax, of parameters in the order of [`LanguageModel::parameters`].
fn projection<'a>(model: &LanguageModel, weights: &[&'a [f32]]) -> Projection<'a> {
    Projection {
        weight: weights[0],
        bias: weights[1],
        width: model.embedding.dims()[1],
    }
}

//! What a window of text costs a model, and how that cost changes with its weights.
//!
//! A [`Learner`] reads windows forward and backward, a [`Reader`] forward only. Each has two implementations: on the CPU's
//! kernels, which do in a few passes over memory what tensor operations do in hundreds, and through Burn's tensor
//! operations on any device, which is also what the kernels are tested against. The weights are plain numbers that
//! belong to neither.
//!
//! Where the kernels know a part of a model only, tensor operations compute the rest: layers that they do not know have their
//! products, layers that they know are one operation of Burn's graph below a head that they do not, and a head that they
//! know, or the softmaxes of a mixture, stand on layers that they do not.

mod head;
mod kernels;
mod penalties;
mod phases;
mod probe;
mod tensors;

use adaparam::recurrent::Execution;
use adaparam_data::text::Window;
use adaparam_kernels::simd::Instructions;
use adaparam_kernels::{Engine, Precision};
use adaparam_runs::RunError;
use burn::tensor::Device;
pub use penalties::Penalties;
pub use phases::{PHASES, Phase, Phases};
pub use probe::{LayerWeight, Probe, Seen};

use crate::LmError;
use crate::config::ModelSpec;
use crate::masks::WindowMasks;
use crate::model::LanguageModel;
use crate::weights::Weights;

#[cfg(test)]
mod tests;

/// What a model carries from window to window: numbers for each slot of its layers, `[B, width]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Carried {
    /// Rows.
    pub batch: usize,
    /// The name and the numbers of each slot.
    pub parts: Vec<(String, Vec<f32>)>,
}

impl Carried {
    /// Sets the rows to zero that are named by `true`.
    pub(crate) fn forget(&mut self, rows: &[bool]) {
        for (_, values) in &mut self.parts {
            let width = values.len() / self.batch;
            let all = values.chunks_mut(width.max(1)).zip(rows);
            all.filter(|(_, forgets)| **forgets)
                .for_each(|(row, _)| row.fill(0.0));
        }
    }
}

/// Computes the losses of windows and their gradients, in buffers that are made once.
pub trait Learner: Send {
    /// Reads a window from `state` on, or from zeros, forward and backward. The objective is the mean of the losses,
    /// with penalties where [`penalise`](Self::penalise) asks for them; gradients do not reach into the windows before. Gives the state to go on from.
    fn learn(
        &mut self,
        engine: &Engine,
        weights: &Weights,
        window: &Window<'_>,
        state: Option<Carried>,
        masks: Option<&WindowMasks>,
    ) -> Carried;

    /// From now on the objective has these penalties besides.
    fn penalise(&mut self, penalties: Penalties);

    /// What each target of the last window costs: `−ln p(target)`.
    fn losses(&self) -> &[f32];

    /// What the layers gave in the last window, after dropout: `[T B, E]`.
    fn outputs(&mut self) -> &[f32];

    /// The gradients of every parameter, in the order of the weights.
    fn gradients(&self) -> Vec<&[f32]>;

    /// Where the time of the last window went.
    fn phases(&mut self) -> &mut Phases;
}

/// A model in the midst of a text of some columns. Nothing is kept of what was read but the state.
pub trait Reader: Send {
    /// Reads a window; what each of its targets costs.
    ///
    /// # Panics
    ///
    /// Panics if the window has another number of columns.
    fn losses(&mut self, window: &Window<'_>) -> &[f32];

    /// What the layers gave for what was read last, `[T B, E]`.
    fn outputs(&mut self) -> &[f32];

    /// Reads one word of each column; the scores of every word as the next one, `[B, V]`.
    ///
    /// # Panics
    ///
    /// Panics if there are more or fewer words than columns.
    fn scores(&mut self, words: &[u32]) -> &[f32];
}

/// The head alone, for outputs of layers that something else has computed.
pub trait HeadReader: Send {
    /// Takes the weights for what follows.
    fn take(&mut self, engine: &Engine, weights: &Weights);

    /// The scores of every word for each output, `[N, V]`. The weights are those that were taken last.
    fn scores(&mut self, engine: &Engine, weights: &Weights, outputs: &[f32]) -> &[f32];
}

/// What computes: the threads and instructions of this processor, and a device for tensors.
pub struct Machine {
    /// Threads, instruction set and precision of the kernels.
    pub engine: Engine,
    /// Where tensors are.
    pub device: Device,
    /// What is preferred.
    pub means: Means,
}

/// What tensor operations are called in records.
const TENSORS: &str = "tensors";

/// What computes windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// The CPU kernels for what they know of a model, and tensors for the rest.
    Kernels,
    /// Burn's tensor operations and autodiff alone.
    #[serde(rename = "readable")]
    Tensors,
}

impl Machine {
    /// This processor, with so many threads of its best instructions.
    pub fn cpu(threads: usize) -> Self {
        Self {
            engine: Engine::new(threads),
            device: Device::flex(),
            means: Means::Kernels,
        }
    }

    /// The same machine for products in another precision.
    #[must_use]
    pub fn in_precision(&self, precision: Precision) -> Self {
        Self {
            engine: self.engine.in_precision(precision),
            device: self.device.clone(),
            means: self.means,
        }
    }

    /// The same machine for products in the precision that `key` asks for.
    ///
    /// Below a head without kernels of its own, such as a mixture of softmaxes, layers compute in `bf16` nevertheless, and so do
    /// the softmaxes of a mixture; what else such a head multiplies stays in `f32`.
    ///
    /// # Errors
    ///
    /// If tensors compute the layers of `spec` here: they know `f32` only.
    pub fn told_precision(
        &self,
        key: &str,
        precision: Precision,
        spec: &ModelSpec,
    ) -> Result<Self, LmError> {
        let has_it = match precision {
            Precision::F32 => true,
            Precision::Bf16 => self.has_kernels_for_layers(spec),
            Precision::Int8 => self.kernels(spec, 1).is_some(),
        };
        if !has_it {
            let rule = "tensor operations compute this model here, and they compute in f32: choose f32, or a cell and \
                        a device that the processor's kernels know";
            return Err(RunError::value(key, precision, rule).into());
        }
        Ok(self.in_precision(precision))
    }

    /// What computes models of `spec` here: the kernels' path, such as `avx2` or `avx2-bf16`; `tensors`; or both, such as
    /// `tensors+avx2`. Results are the same bits where this is the same.
    pub fn computes_with(&self, spec: &ModelSpec) -> String {
        let path = self.engine.path().name();
        match self.kernels(spec, 1) {
            Some(_) => path.to_owned(),
            None if self.prefers_kernels() => format!("{TENSORS}+{path}"),
            None => TENSORS.to_owned(),
        }
    }

    /// A learner for models of `spec`.
    pub fn learner(&self, spec: &ModelSpec, vocabulary: usize) -> Box<dyn Learner> {
        match self.kernels(spec, vocabulary) {
            Some(kernels) => Box::new(kernels::KernelLearner::new(kernels)),
            None => Box::new(tensors::TensorLearner::new(
                spec,
                vocabulary,
                &self.tensors(),
            )),
        }
    }

    /// A reader before the first word of `batch` columns.
    pub fn reader<'a>(
        &'a self,
        spec: &ModelSpec,
        weights: &'a Weights,
        batch: usize,
    ) -> Box<dyn Reader + 'a> {
        let vocabulary = weights.iter().next().map_or(0, |words| words.shape[0]);
        match self.kernels(spec, vocabulary) {
            Some(kernels) => Box::new(kernels::KernelReader::new(
                kernels,
                &self.engine,
                weights,
                batch,
            )),
            None => Box::new(tensors::TensorReader::new(
                spec,
                weights,
                batch,
                &self.tensors(),
            )),
        }
    }

    /// A probe before the first word of `batch` columns.
    pub fn probe<'a>(
        &'a self,
        spec: &ModelSpec,
        weights: &'a Weights,
        batch: usize,
    ) -> Box<dyn Probe + 'a> {
        let vocabulary = weights.iter().next().map_or(0, |words| words.shape[0]);
        match self.kernels(spec, vocabulary) {
            Some(kernels) => {
                let reader = kernels::KernelReader::new(kernels, &self.engine, weights, batch);
                Box::new(reader.remembering())
            }
            None => Box::new(tensors::TensorProbe::new(
                spec,
                weights,
                batch,
                &self.tensors(),
            )),
        }
    }

    /// The head of models of `spec`, alone.
    pub fn head(&self, spec: &ModelSpec, vocabulary: usize) -> Box<dyn HeadReader> {
        let model = LanguageModel::new(spec, vocabulary, &self.device);
        let kernels = self.prefers_kernels().then(|| head::KernelHead::of(&model));
        match kernels.flatten() {
            Some(kernels) => Box::new(kernels),
            None => Box::new(tensors::TensorHead::new(model, &self.device)),
        }
    }

    /// Whether kernels are asked for and tensors are where they compute.
    fn prefers_kernels(&self) -> bool {
        self.means == Means::Kernels && self.device == Device::flex()
    }

    /// What kernels need to know of a model, if they know its layers and its head.
    fn kernels(&self, spec: &ModelSpec, vocabulary: usize) -> Option<kernels::Plan> {
        self.prefers_kernels()
            .then(|| kernels::Plan::of(&LanguageModel::new(spec, vocabulary, &self.device)))
            .flatten()
    }

    /// Whether kernels compute the layers of models of `spec`, whatever computes their head.
    fn has_kernels_for_layers(&self, spec: &ModelSpec) -> bool {
        let layers_of = |model: LanguageModel| model.layers().fused().is_some();
        self.prefers_kernels() && layers_of(LanguageModel::new(spec, 1, &self.device))
    }

    /// How tensors compute models here.
    fn tensors(&self) -> tensors::Tensors<'_> {
        tensors::Tensors {
            device: &self.device,
            engine: &self.engine,
            execution: match self.engine.precision() {
                _ if !self.prefers_kernels() => Execution::Readable,
                Precision::Bf16 => Execution::FusedBf16,
                Precision::F32 | Precision::Int8 => Execution::Fused,
            },
        }
    }
}

/// Where and with what to compute, as a person says it.
#[derive(Debug, Clone)]
pub struct Place {
    /// Threads of the kernels and of tensor operations.
    pub threads: usize,
    /// The kernels' instruction set; the best that the processor has, if none is named.
    pub instructions: Option<Instructions>,
    /// Where tensors are.
    pub device: Device,
    /// What is preferred.
    pub means: Means,
}

impl Place {
    /// This processor with so many threads.
    pub fn cpu(threads: usize) -> Self {
        Self {
            threads,
            instructions: None,
            device: Device::flex(),
            means: Means::Kernels,
        }
    }

    /// The name of the instruction set that its kernels have.
    pub fn instructions_name(&self) -> &'static str {
        self.instructions.unwrap_or_else(Instructions::best).name()
    }

    /// Runs `work` on this machine, where tensor operations see a pool of as many threads.
    ///
    /// # Errors
    ///
    /// If there cannot be so many threads.
    pub fn run<R: Send>(&self, work: impl FnOnce(&Machine) -> R + Send) -> Result<R, LmError> {
        let threads = self.threads;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| RunError::value("threads", threads, error.to_string()))?;
        let engine = match self.instructions {
            Some(instructions) => Engine::with_instructions(threads, instructions),
            None => Engine::new(threads),
        };
        let machine = Machine {
            engine,
            device: self.device.clone(),
            means: self.means,
        };
        Ok(pool.install(|| work(&machine)))
    }
}

//! Everything that decides how a run goes on, and its form in files.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use adaparam_data::checksum::Checksum;
use adaparam_data::text::Vocabulary;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::LmError;
use crate::binding::Binding;
use crate::compute::Carried;
use crate::config::LanguageModelConfig;
use crate::log::LogMark;
use crate::model::LanguageModel;
use crate::optimiser::{Optimiser, Slot};
use crate::tensor_file::{LaterTensor, StoredTensor, TensorFile, to_bytes};
use crate::weights::{ParameterShape, Weight, Weights};

/// A run between two steps. The random numbers of what follows depend on the seed and the counters alone.
#[derive(Debug)]
pub struct Snapshot {
    /// The configuration.
    pub config: LanguageModelConfig,
    /// The words.
    pub vocabulary: Vocabulary,
    /// The SHA-256 of the vocabulary and all three texts as ids.
    pub corpus: String,
    /// Where the run is.
    pub counters: Counters,
    /// The weights of the network.
    pub weights: Weights,
    /// The optimiser.
    pub optimiser: Box<dyn Optimiser>,
    /// What the network carries into the next window; none at the beginning of an epoch.
    pub state: Option<Carried>,
    /// The run that this belongs to; none in checkpoints that did not state it.
    pub binding: Option<Binding>,
    /// What is remembered of the loss log; nothing in checkpoints that did not.
    pub log: Option<LogMark>,
    /// What computed the last step: the kernels' instruction set, or `tensors`. None before the first step, and in
    /// checkpoints that did not record it.
    pub computed_with: Option<String>,
}

/// Where a run is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// Epochs finished.
    pub epoch: u64,
    /// Steps finished in this epoch.
    pub step: u64,
    /// Updates of the weights, in all epochs together.
    pub updates: u64,
    /// The length of the loss log, in bytes.
    pub log_bytes: u64,
    /// The best epoch so far.
    pub best: Option<Best>,
    /// The validation loss of each finished epoch, the newest last: what optimisers and schedules decide by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub valid_losses: Vec<f64>,
}

/// An epoch whose validation loss is the lowest so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// The name of its checkpoint.
    pub checkpoint: String,
    /// Its number, counted from 1.
    pub epoch: u64,
    /// Its validation loss in nats per word.
    pub loss: f64,
}

impl Counters {
    /// The name of the checkpoint at this place.
    pub fn name(&self) -> String {
        match self.step {
            0 => format!("step-{:08}-epoch-{}", self.updates, self.epoch),
            _ => format!("step-{:08}", self.updates),
        }
    }
}

impl Snapshot {
    /// A run before its first step, with weights drawn from the seed. They are drawn on the CPU, whatever computes later.
    pub fn new(config: LanguageModelConfig, vocabulary: Vocabulary, corpus: String) -> Self {
        let model = LanguageModel::new(&config.model, vocabulary.len(), &Device::flex());
        let weights = model.draw(config.train.seed);
        Self::with_weights(config, vocabulary, corpus, weights)
    }

    /// A run before its first step, with these weights.
    pub(crate) fn with_weights(
        config: LanguageModelConfig,
        vocabulary: Vocabulary,
        corpus: String,
        weights: Weights,
    ) -> Self {
        Self {
            optimiser: config.train.new_optimiser(&weights),
            binding: Some(Binding::of(&config, &corpus, &vocabulary)),
            log: None,
            weights,
            config,
            vocabulary,
            corpus,
            counters: Counters::default(),
            state: None,
            computed_with: None,
        }
    }

    /// The weights to evaluate and export with: those that are trained, unless the optimiser keeps others for that.
    pub fn evaluation_weights(&self) -> Cow<'_, Weights> {
        match self.optimiser.evaluation_values() {
            None => Cow::Borrowed(&self.weights),
            Some(values) => Cow::Owned(self.weights.with_values(values)),
        }
    }

    /// Binds a snapshot that a program of before has written to the run that it is of.
    pub fn bind(&mut self) {
        if self.binding.is_none() {
            self.binding = Some(self.own_binding());
        }
    }

    /// The sum of what the run is made of now.
    pub(crate) fn own_binding(&self) -> Binding {
        Binding::of(&self.config, &self.corpus, &self.vocabulary)
    }

    /// The first of everything that is kept which has a number that is not finite: weights, optimiser or state.
    pub(crate) fn not_finite(&self) -> Option<&'static str> {
        let is_broken = |values: &Vec<f32>| !all_finite(values);
        let mut slots = self.optimiser.slots().into_iter();
        let mut states = self.state.iter().flat_map(|state| &state.parts);
        if self.weights.iter().any(|weight| is_broken(&weight.values)) {
            Some("new value of a weight")
        } else if slots.any(|slot| slot.values.iter().any(is_broken)) {
            Some("new state of the optimiser")
        } else if states.any(|(_, values)| is_broken(values)) {
            Some("state that the model carries")
        } else {
            None
        }
    }

    /// What the optimiser keeps, laid out as the weights are.
    pub(crate) fn optimiser_bytes(&self) -> Vec<u8> {
        let slots = self.optimiser.slots();
        let tensors = slots.iter().flat_map(|slot| {
            let kept = self.weights.iter().zip(&slot.values);
            kept.filter(|(_, values)| !values.is_empty())
                .map(|(weight, values)| {
                    let name = format!("{}.{}", slot.name, weight.name);
                    (name, stored_later(weight, values))
                })
        });
        to_bytes(tensors)
    }

    /// The weights under the released code's names and in its order.
    pub(crate) fn weights_bytes(&self) -> Vec<u8> {
        let weights = self.weights.iter();
        to_bytes(weights.map(|weight| (weight.name.clone(), stored_later(weight, &weight.values))))
    }

    /// Lets the optimiser go on from what it kept. Version 1 wrote nothing before the first update.
    pub(crate) fn set_optimiser(
        &mut self,
        path: &Path,
        mut file: TensorFile,
        scalars: BTreeMap<String, f64>,
    ) -> Result<(), LmError> {
        if self.counters.updates == 0 && file.tensors.is_empty() {
            return Ok(());
        }
        let mut slots = Vec::new();
        for slot in self.optimiser.slots() {
            let mut values = Vec::with_capacity(self.weights.len());
            for (weight, own) in self.weights.iter().zip(&slot.values) {
                let shape = weight.without_values();
                let name = format!("{}.{}", slot.name, weight.name);
                values.push(if own.is_empty() && !file.tensors.contains_key(&name) {
                    Vec::new()
                } else {
                    shape.from_stored(take(path, &mut file, &name, &shape.stored_shape())?)
                });
            }
            slots.push(Slot {
                name: slot.name.clone(),
                values,
            });
        }
        nothing_left(path, &file)?;
        let restored = self.optimiser.restore(slots, scalars);
        restored.map_err(|problem| LmError::Weights {
            path: path.to_path_buf(),
            problem,
        })
    }

    /// What the network carries into the next window.
    pub(crate) fn state_file(&self) -> TensorFile {
        let parts = self.state.iter().flat_map(|state| {
            let parts = state.parts.iter();
            parts.map(|(name, values)| {
                let tensor = StoredTensor {
                    shape: vec![state.batch, values.len() / state.batch],
                    values: values.clone(),
                };
                (name.clone(), tensor)
            })
        });
        TensorFile {
            tensors: parts.collect(),
            note: None,
        }
    }

    /// Replaces what the network carries; a file without tensors is the beginning of an epoch.
    pub(crate) fn set_state(&mut self, path: &Path, mut file: TensorFile) -> Result<(), LmError> {
        self.state = None;
        if file.tensors.is_empty() {
            return Ok(());
        }
        let batch = self.config.train.batch;
        let model = LanguageModel::new(&self.config.model, self.vocabulary.len(), &Device::flex());
        let slots = model.layers().states().into_iter();
        let parts: Result<Vec<_>, LmError> = slots
            .map(|slot| {
                let values = take(path, &mut file, &slot.name, &[batch, slot.width])?;
                Ok((slot.name, values))
            })
            .collect();
        self.state = Some(Carried {
            batch,
            parts: parts?,
        });
        nothing_left(path, &file)
    }
}

/// Whether all of these are finite numbers.
pub(crate) fn all_finite(values: &[f32]) -> bool {
    // Without a way out in the middle of a chunk, chunks are looked at all at once.
    let is_finite = |chunk: &[f32]| {
        chunk
            .iter()
            .fold(true, |all, value| all & value.is_finite())
    };
    values.chunks(1024).all(is_finite)
}

/// Weights as a file has them: under the released code's names and in its order.
pub(crate) fn weights_file(weights: &Weights) -> TensorFile {
    let tensors = weights.iter();
    TensorFile {
        tensors: tensors
            .map(|weight| (weight.name.clone(), stored(weight, &weight.values)))
            .collect(),
        note: None,
    }
}

/// The SHA-256 of the weights that a run is evaluated with, as the file of a checkpoint would have them.
pub fn weights_sum(snapshot: &Snapshot) -> String {
    Checksum::of(weights_file(&snapshot.evaluation_weights()).to_bytes()).to_string()
}

fn stored_later<'a>(weight: &'a Weight, values: &'a [f32]) -> LaterTensor<'a> {
    let shape = weight.without_values();
    LaterTensor::new(shape.stored_shape(), move || {
        Cow::Owned(shape.to_stored(values))
    })
}

fn stored(weight: &Weight, values: &[f32]) -> StoredTensor {
    let shape = weight.without_values();
    StoredTensor {
        shape: shape.stored_shape(),
        values: shape.to_stored(values),
    }
}

/// The weights of a model of `shapes` from a file that was read from `path`. Nothing is drawn, and shapes are compared
/// before anything is made of them.
///
/// # Errors
///
/// If the file does not hold exactly the parameters of such a model.
pub(crate) fn weights_from(
    path: &Path,
    mut file: TensorFile,
    shapes: Vec<ParameterShape>,
) -> Result<Weights, LmError> {
    for shape in &shapes {
        compare(path, &file, &shape.name, &shape.stored_shape())?;
    }
    let weights = shapes.into_iter().map(|shape| {
        let values = take(path, &mut file, &shape.name, &shape.stored_shape())?;
        let values = shape.from_stored(values);
        Ok(shape.with(values))
    });
    let weights: Result<Vec<Weight>, LmError> = weights.collect();
    nothing_left(path, &file)?;
    Ok(Weights::new(weights?))
}

fn compare(path: &Path, file: &TensorFile, name: &str, shape: &[usize]) -> Result<(), LmError> {
    let problem = match file.tensors.get(name) {
        Some(tensor) if tensor.shape == shape => return Ok(()),
        Some(tensor) => format!(
            "{name} is {:?}: the model of this configuration has {shape:?}; name the configuration that the weights \
             belong to",
            tensor.shape
        ),
        None => format!(
            "{name} is missing: this is a model of another architecture; name the configuration that the weights \
             belong to"
        ),
    };
    Err(LmError::Weights {
        path: path.to_path_buf(),
        problem,
    })
}

fn take(
    path: &Path,
    file: &mut TensorFile,
    name: &str,
    shape: &[usize],
) -> Result<Vec<f32>, LmError> {
    compare(path, file, name, shape)?;
    let tensor = file.tensors.remove(name);
    Ok(tensor.map(|tensor| tensor.values).unwrap_or_default())
}

fn nothing_left(path: &Path, file: &TensorFile) -> Result<(), LmError> {
    match file.tensors.keys().next() {
        None => Ok(()),
        Some(name) => Err(LmError::Weights {
            path: path.to_path_buf(),
            problem: format!(
                "{name} is no parameter of the model of this configuration; name the configuration that the weights \
                 belong to"
            ),
        }),
    }
}

//! Everything that decides how a run goes on, and its form in files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use adaparam_data::text::Vocabulary;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::LmError;
use crate::adam::Adam;
use crate::config::LanguageModelConfig;
use crate::model::LanguageModel;
use crate::stack::StackState;
use crate::tensor_file::{StoredTensor, TensorFile};

/// A run between two steps. The random numbers of what follows depend on the seed and the counters alone.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The configuration.
    pub config: LanguageModelConfig,
    /// The words.
    pub vocabulary: Vocabulary,
    /// The SHA-256 of the vocabulary and all three texts as ids.
    pub corpus: String,
    /// Where the run is.
    pub counters: Counters,
    /// The network.
    pub model: LanguageModel,
    /// The optimiser.
    pub adam: Adam,
    /// What the network carries into the next window; none at the beginning of an epoch.
    pub state: Option<StackState>,
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
    /// The name of the checkpoint at this place; names sort as the run goes.
    pub fn name(&self) -> String {
        match self.step {
            0 => format!("step-{:08}-epoch-{}", self.updates, self.epoch),
            _ => format!("step-{:08}", self.updates),
        }
    }
}

impl Snapshot {
    /// A run before its first step, with weights drawn from the seed.
    pub fn new(
        config: LanguageModelConfig,
        vocabulary: Vocabulary,
        corpus: String,
        device: &Device,
    ) -> Self {
        let model = LanguageModel::new(&config.model, vocabulary.len(), config.train.seed, device);
        Self {
            adam: Adam::new(&config.train),
            model,
            config,
            vocabulary,
            corpus,
            counters: Counters::default(),
            state: None,
        }
    }

    /// The weights, under the released code's names and in its order.
    pub(crate) fn weights(&self) -> TensorFile {
        let mut model = self.model.clone();
        let tensors = model.parameters().into_iter().map(|parameter| {
            let tensor = StoredTensor {
                shape: parameter.stored_shape(),
                values: parameter.to_stored(parameter.values()),
            };
            (parameter.name, tensor)
        });
        TensorFile {
            tensors: tensors.collect(),
            note: None,
        }
    }

    /// Replaces the weights.
    ///
    /// # Errors
    ///
    /// If `file`, read from `path`, does not hold exactly the parameters of this model.
    pub(crate) fn set_weights(&mut self, path: &Path, mut file: TensorFile) -> Result<(), LmError> {
        for mut parameter in self.model.parameters() {
            let shape = parameter.stored_shape();
            let stored = take(path, &mut file, &parameter.name, &shape)?;
            let values = parameter.from_stored(stored);
            parameter.set(values);
        }
        nothing_left(path, &file)
    }

    /// The optimiser's moments, laid out as the weights are.
    pub(crate) fn moments(&self) -> TensorFile {
        let mut model = self.model.clone();
        let mut file = TensorFile::default();
        for parameter in model.parameters() {
            for (kind, moments) in [("first", &self.adam.first), ("second", &self.adam.second)] {
                if let Some(values) = moments.get(&parameter.name) {
                    let tensor = StoredTensor {
                        shape: parameter.stored_shape(),
                        values: parameter.to_stored(values.clone()),
                    };
                    file.tensors
                        .insert(format!("{kind}.{}", parameter.name), tensor);
                }
            }
        }
        file
    }

    /// Replaces the optimiser's moments.
    pub(crate) fn set_moments(&mut self, path: &Path, mut file: TensorFile) -> Result<(), LmError> {
        let mut moments = [BTreeMap::new(), BTreeMap::new()];
        for parameter in self.model.parameters() {
            for (kind, moments) in ["first", "second"].into_iter().zip(&mut moments) {
                let name = format!("{kind}.{}", parameter.name);
                if file.tensors.contains_key(&name) {
                    let stored = take(path, &mut file, &name, &parameter.stored_shape())?;
                    moments.insert(parameter.name.clone(), parameter.from_stored(stored));
                }
            }
        }
        [self.adam.first, self.adam.second] = moments;
        self.adam.updates = self.counters.updates;
        nothing_left(path, &file)
    }

    /// What the network carries into the next window.
    pub(crate) fn carried(&self) -> TensorFile {
        let mut file = TensorFile::default();
        let _ = self.state.clone().map(|state| {
            state.map_named(|name, tensor| {
                let stored = StoredTensor {
                    shape: tensor.dims().to_vec(),
                    values: tensor
                        .to_data()
                        .try_into_vec_as()
                        .expect("states are floats"),
                };
                file.tensors.insert(name.to_owned(), stored);
                tensor
            })
        });
        file
    }

    /// Replaces what the network carries; a file without tensors is the beginning of an epoch.
    pub(crate) fn set_carried(
        &mut self,
        path: &Path,
        mut file: TensorFile,
        device: &Device,
    ) -> Result<(), LmError> {
        self.state = None;
        if file.tensors.is_empty() {
            return Ok(());
        }
        let mut fault = None;
        let zeros = self.model.stack.zero_state(self.config.train.batch, device);
        let state =
            zeros.map_named(
                |name, zeros| match take(path, &mut file, name, &zeros.dims()) {
                    Ok(values) => Tensor::from_data(TensorData::new(values, zeros.dims()), device),
                    Err(error) => {
                        fault.get_or_insert(error);
                        zeros
                    }
                },
            );
        self.state = Some(state);
        match fault {
            Some(error) => Err(error),
            None => nothing_left(path, &file),
        }
    }
}

fn take(
    path: &Path,
    file: &mut TensorFile,
    name: &str,
    shape: &[usize],
) -> Result<Vec<f32>, LmError> {
    let problem = match file.tensors.remove(name) {
        Some(tensor) if tensor.shape == shape => return Ok(tensor.values),
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

fn nothing_left(path: &Path, file: &TensorFile) -> Result<(), LmError> {
    let left: BTreeSet<&String> = file.tensors.keys().collect();
    match left.first() {
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

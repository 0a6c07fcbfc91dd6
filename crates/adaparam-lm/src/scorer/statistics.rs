//! How large the gradients of each parameter are on the training text: what dynamic evaluation scales its steps with.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use adaparam_data::checksum::Checksum;
use adaparam_data::text::Columns;
use adaparam_runs::RunError;
use adaparam_runs::whole_file::write_whole;
use serde::{Deserialize, Serialize};

use super::results::folder_of;
use crate::LmError;
use crate::compute::Machine;
use crate::snapshot::{Snapshot, weights_sum};
use crate::tensor_file::{StoredTensor, TensorFile};

const FORMAT: u64 = 1;
/// Columns that the training text is read in, as in the released code; fewer for short texts.
const COLUMNS: usize = 100;

/// `G = √(mean of g²)` of every number of every parameter, over segments of the training text.
#[derive(Debug, Clone, PartialEq)]
pub struct GradientStatistics {
    /// Of each parameter, in the order of the weights.
    pub rms: Vec<Vec<f32>>,
}

/// What decides statistics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    format: u64,
    /// The SHA-256 of the weights.
    weights: String,
    /// The SHA-256 of vocabulary and texts.
    corpus: String,
    /// Words of a segment.
    segment: usize,
}

/// What a file says of itself.
#[derive(Serialize, Deserialize)]
struct Note {
    #[serde(flatten)]
    origin: Origin,
    /// The SHA-256 of the file without this note.
    content: String,
}

/// Statistics of a model, kept in a file beside it.
pub struct KeptStatistics {
    path: PathBuf,
    origin: Origin,
}

impl GradientStatistics {
    /// Reads the training text in segments of so many words, state carried and nothing dropped, and learns nothing.
    /// `see` is told how many of all segments are read.
    ///
    /// # Errors
    ///
    /// If the text is too short for one segment, and [`RunError::Stopped`] once `stop` is set.
    pub fn measure(
        machine: &Machine,
        snapshot: &Snapshot,
        train: &[u32],
        segment: usize,
        stop: &AtomicBool,
        mut see: impl FnMut(usize, usize),
    ) -> Result<Self, LmError> {
        let weights = snapshot.evaluation_weights();
        let batch = (train.len() / (segment + 1)).clamp(1, COLUMNS);
        let columns = Columns::new(train, batch)?;
        let segments = columns.steps().div_ceil(segment);
        let spec = &snapshot.config.model;
        let mut learner = machine.learner(spec, snapshot.vocabulary.len());
        let mut squares: Vec<Vec<f64>> = weights
            .iter()
            .map(|weight| vec![0.0; weight.values.len()])
            .collect();
        let mut state = None;
        for (index, window) in columns.windows(segment).enumerate() {
            if stop.load(Ordering::Relaxed) {
                return Err(RunError::Stopped.into());
            }
            state = Some(learner.learn(&machine.engine, &weights, &window, state, None));
            for (squares, gradient) in squares.iter_mut().zip(learner.gradients()) {
                for (square, &g) in squares.iter_mut().zip(gradient) {
                    *square += f64::from(g) * f64::from(g);
                }
            }
            see(index + 1, segments);
        }
        let root = |square: f64| (square / segments as f64).sqrt() as f32;
        let rms = squares.into_iter();
        Ok(Self {
            rms: rms
                .map(|squares| squares.into_iter().map(root).collect())
                .collect(),
        })
    }

    /// `Ḡ`: the mean over parameters of the mean over their numbers.
    pub fn mean(&self) -> f64 {
        let means = self.rms.iter().map(|rms| {
            let sum: f64 = rms.iter().copied().map(f64::from).sum();
            sum / rms.len().max(1) as f64
        });
        means.sum::<f64>() / self.rms.len().max(1) as f64
    }
}

impl KeptStatistics {
    /// Of the model that was opened from `opened`: a checkpoint's folder, whose run keeps them, or a file.
    pub fn of(opened: &Path, snapshot: &Snapshot, segment: usize) -> Self {
        let origin = Origin {
            format: FORMAT,
            weights: weights_sum(snapshot),
            corpus: snapshot.corpus.clone(),
            segment,
        };
        let text = serde_json::to_string(&origin).expect("an origin has a JSON form");
        let sum = Checksum::of(text).to_string();
        Self {
            path: folder_of(opened).join(format!("dynamic-{}.safetensors", &sum[..16])),
            origin,
        }
    }

    /// Their file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in the file; none if there is no file.
    ///
    /// # Errors
    ///
    /// If the file is damaged, or of another model.
    pub fn read(&self, snapshot: &Snapshot) -> Result<Option<GradientStatistics>, LmError> {
        if !self.path.exists() {
            return Ok(None);
        }
        let fault = |problem: &str| LmError::Weights {
            path: self.path.clone(),
            problem: problem.to_owned(),
        };
        let mut file = TensorFile::read(&self.path)?;
        let note = file.note.take().unwrap_or_default();
        let note: Note =
            serde_json::from_str(&note).map_err(|_| fault("does not say what it is of"))?;
        if note.origin != self.origin {
            return Err(fault("is of another model or text"));
        }
        if Checksum::of(file.to_bytes()).to_string() != note.content {
            return Err(fault("is not what was written"));
        }
        let rms: Option<Vec<Vec<f32>>> = snapshot
            .weights
            .iter()
            .map(|weight| {
                let tensor = file.tensors.remove(&weight.name)?;
                let shape = weight.without_values();
                (tensor.shape == shape.stored_shape()).then(|| shape.from_stored(tensor.values))
            })
            .collect();
        let rms = rms.ok_or_else(|| fault("lacks a parameter of the model"))?;
        Ok(Some(GradientStatistics { rms }))
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(
        &self,
        snapshot: &Snapshot,
        statistics: &GradientStatistics,
    ) -> Result<(), RunError> {
        let mut file = TensorFile::default();
        for (weight, rms) in snapshot.weights.iter().zip(&statistics.rms) {
            let shape = weight.without_values();
            let tensor = StoredTensor {
                shape: shape.stored_shape(),
                values: shape.to_stored(rms),
            };
            file.tensors.insert(weight.name.clone(), tensor);
        }
        let note = Note {
            origin: self.origin.clone(),
            content: Checksum::of(file.to_bytes()).to_string(),
        };
        file.note = Some(serde_json::to_string(&note).expect("a note has a JSON form"));
        write_whole(&self.path, &file.to_bytes())
    }
}

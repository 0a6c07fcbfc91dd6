//! The language model of the paper's sections 4.3 to 4.6: text in, perplexity out.

mod adam;
pub mod checkpoint;
mod config;
mod data;
mod evaluate;
pub mod experiment;
mod export;
mod generate;
mod keys;
mod masks;
mod model;
mod parameters;
mod preset;
mod size;
mod snapshot;
mod stack;
mod tensor_file;
mod threads;
mod train;

pub use adam::{Adam, GradientList, clip_scale, global_norm};
pub use config::{DataSpec, LanguageModelConfig, LayerKind, ModelSpec, TextSource, TrainSpec};
pub use evaluate::{Evaluation, evaluate};
pub use export::{OpenedModel, adopt, export, open_model};
pub use generate::{Generator, Sampling};
pub use keys::{KEYS, Key};
pub use masks::{MaskPlace, WindowMasks};
pub use model::LanguageModel;
pub use parameters::Parameter;
pub use preset::{DEFAULT_PRESET, Preset, preset, presets};
pub use snapshot::{Best, Counters, Snapshot};
pub use stack::{Stack, StackMasks, StackState};
pub use tensor_file::{StoredTensor, TensorFile};
pub use threads::on_threads;
pub use train::{Finished, LOG, Outcome, TrainEvent, train};

//! Language models of plain and adaptive LSTMs: text in, perplexity out.
//!
//! A [`LanguageModelConfig`] says everything about a run; [`train()`] is its loop, from a [`Snapshot`] to the end, with
//! [`checkpoint`]s on the way. [`evaluate()`], [`Generator`] and [`export()`] are what a trained model is for, and a
//! [`sweep`] is many of them.

mod adam;
pub mod checkpoint;
mod compute;
mod config;
mod data;
mod error;
mod evaluate;
mod export;
mod forecast;
mod generate;
mod initial;
mod keys;
mod masks;
mod model;
mod parameters;
mod preset;
mod size;
mod snapshot;
mod speed;
mod stack;
pub mod sweep;
mod tensor_file;
mod threads;
mod train;

pub use adam::Adam;
pub use adaparam_kernels::Engine;
pub use adaparam_kernels::simd::Path;
pub use compute::Learner;
pub use config::{DataSpec, LanguageModelConfig, LayerKind, ModelSpec, TextSource, TrainSpec};
pub use error::LmError;
pub use evaluate::{Evaluation, evaluate};
pub use export::{OpenedModel, adopt, export, open_model};
pub use forecast::{Forecast, MemoryForecast};
pub use generate::{Generator, Sampling};
pub use initial::draw_alone;
pub use keys::{KEYS, Key};
pub use masks::WindowMasks;
pub use model::LanguageModel;
pub use parameters::Parameter;
pub use preset::{DEFAULT_PRESET, Preset, baseline, preset, presets};
pub use snapshot::{Best, Counters, Snapshot};
pub use speed::{Activity, Means, PhaseSpeed, Speed, measure};
pub use stack::{Stack, StackMasks, StackState};
pub use tensor_file::{StoredTensor, TensorFile};
pub use threads::on_threads;
pub use train::{Finished, Outcome, TrainEvent, cut_columns, train};

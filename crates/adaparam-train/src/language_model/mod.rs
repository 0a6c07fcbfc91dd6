//! The language model of the paper's sections 4.3 to 4.6: text in, perplexity out.

mod adam;
mod config;
mod data;
mod keys;
mod masks;
mod model;
mod parameters;
mod preset;
mod size;
mod stack;

pub use adam::{Adam, GradientList, clip_scale, global_norm};
pub use config::{DataSpec, LanguageModelConfig, LayerKind, ModelSpec, TextSource, TrainSpec};
pub use keys::{KEYS, Key};
pub use masks::{MaskPlace, WindowMasks};
pub use model::LanguageModel;
pub use parameters::Parameter;
pub use preset::{DEFAULT_PRESET, Preset, preset, presets};
pub use stack::{Stack, StackMasks, StackState};

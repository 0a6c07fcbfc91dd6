//! Language models of plain and adaptive LSTMs: text in, perplexity out.
//!
//! A [`LanguageModelConfig`] says everything about a run; [`train()`] is its loop, from a [`Snapshot`] to the end, with
//! [`checkpoint`]s on the way. [`evaluate()`], [`Generator`] and [`export()`] are what a trained model is for, and a
//! [`sweep`] is many of them.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod another_model;
mod binding;
mod cells;
mod change;
pub mod checkpoint;
mod choice;
mod compute;
mod config;
mod data;
mod divergence;
mod error;
mod evaluate;
mod event;
mod export;
mod forecast;
mod generate;
mod head;
mod history;
mod hub;
mod inherit;
mod initial;
mod log;
mod look;
mod masks;
mod model;
mod onnx;
mod optimiser;
mod preset;
mod published;
mod schedule;
mod scorer;
mod shapes;
mod snapshot;
mod speed;
mod stored_kind;
pub mod sweep;
mod team;
mod tensor_file;
mod train;
mod weight_drop;
mod weights;

pub use adaparam::settings::nearest;
pub use adaparam_kernels::simd::Instructions;
pub use adaparam_kernels::{Engine, Precision};
pub use another_model::model_changes;
pub use binding::{Binding, check_binding};
pub use cells::{CellChoice, CellSettings, Cells, register};
pub use change::{KeyChange, change_run, key_changes};
pub use checkpoint::share as share_snapshot;
pub use choice::{AnySettings, Choice, Family, Registered};
pub use compute::{
    Carried, HeadReader, LayerWeight, Learner, Machine, Means, PHASES, Penalties, Phase, Phases,
    Place, Probe, Reader, Seen,
};
pub use config::{
    DataSpec, DropoutSpec, KeyDoc, LanguageModelConfig, LayerSize, ModelSpec, RateScale,
    TextSource, TrainPrecision, TrainSpec,
};
pub use divergence::{divergence, forget_divergence, note_divergence};
pub use error::LmError;
pub use evaluate::{Evaluation, bits, evaluate};
pub use event::{Observer, Observers, TrainEvent, Watch};
pub use export::{FileNote, OpenedModel, adopt, export, open_model};
pub use forecast::{Forecast, MemoryForecast};
pub use generate::{Generator, Sampling};
pub use head::{
    Experts, Head, HeadChoice, HeadGradients, HeadKernels, HeadKind, HeadSizes, HeadWeights, Heads,
    MixtureSettings, SoftmaxSettings, SoftmaxWeights,
};
pub use history::{EpochHistory, RunHistory};
pub use hub::{HubCard, hub_files, is_hub_file};
pub use inherit::{Inherited, MatchedWords};
pub use initial::draw_alone;
pub use log::{LogMark, MendedLog, mend_log};
pub use look::{LayerLook, PolicyLook};
pub use masks::{Droppable, MaskPlace, MaskSharing, WindowMasks};
pub use model::LanguageModel;
pub use onnx::onnx;
pub use optimiser::{
    AdamSettings, AsgdSettings, AverageChoice, AverageSettings, Averages, Common,
    ExponentialAverage, MeanAverage, NoAverage, NtAsgdSettings, Optimiser, OptimiserChoice,
    OptimiserKind, Optimisers, SgdSettings, Slot,
};
pub use preset::{DEFAULT_PRESET, Preset, baseline, preset, presets};
pub use schedule::{Cuts, Decay, Plateau, ScheduleChoice, ScheduleSettings, Schedules};
pub use scorer::{
    BoltOnResult, BoltOnResults, CacheSettings, DynamicSettings, FlagSettings, GradientStatistics,
    Grid, KeptStatistics, Limits, PlainReading, Scored, Scorer, Scoring, ScoringKind, SearchText,
    Tuned, tune,
};
pub use shapes::{Pass, Side, StackKind, StackPoint, StackSpeed};
pub use snapshot::{Best, Counters, Snapshot, weights_sum};
pub use speed::{Activity, PhaseSpeed, Speed, Together, measure};
pub use stored_kind::StoredKind;
pub use team::{Alone, Team, Traffic};
pub use tensor_file::{StoredTensor, TensorFile, TensorHead};
pub use train::{Bits, Finished, Outcome, cut_columns, train};
pub use weights::{ParameterShape, Storage, Weight, Weights};

//! Models, objectives, training loops and records of adaparam's experiments.
//!
//! | module | what it holds |
//! |---|---|
//! | [`network`] | feed-forward networks of static and adaptive layers, described by data |
//! | [`fit`] | the training loop |
//! | [`tail`] | tail regression, paper section 4.1 |
//! | [`image`] | image classification, paper section 4.2 |
//! | [`heat_maps`] | what adaptation does to a matrix, paper Figure 1 |
//! | [`language_model`] | language models, paper sections 4.3 to 4.6: training, checkpoints, text |
//! | [`jobs`] | many independent runs on the cores of this machine |
//! | [`result`] | rows, claims and spreads: what an experiment found |
//! | [`run_folder`] | the folder that a run leaves behind |
//! | [`sweep`] | many language models from one frozen list |
//! | [`toml_file`] | reading configuration so that a misspelt key is an error with a suggestion |

mod error;
pub mod fit;
pub mod heat_maps;
pub mod image;
pub mod jobs;
pub mod language_model;
pub mod network;
pub mod optimiser;
pub mod record;
pub mod result;
pub mod run_folder;
pub mod sweep;
pub mod tail;
pub mod toml_file;

pub use error::TrainError;

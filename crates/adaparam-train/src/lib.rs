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
//! | [`result`] | rows, claims and spreads: what an experiment found |
//! | [`sweep`] | many language models from one frozen list |

mod error;
pub mod fit;
pub mod heat_maps;
pub mod image;
pub mod language_model;
pub mod network;
pub mod optimiser;
pub mod result;
pub mod sweep;
pub mod tail;

pub use error::TrainError;

//! What a trained model computes word by word, as pages to look at, to compare and to play with.
//!
//! An [`Explorer`] reads a text with the kernels that the model is evaluated with and keeps what they computed on the way; an
//! [`explainer page`](page::explained) shows it. Nothing is computed a second time: pages draw the numbers that they are given.

mod adapted;
mod background;
mod curves;
mod effect;
mod error;
mod explorer;
mod measure;
mod neighbours;
pub mod page;
mod reading;
mod rows;
pub mod serve;
mod trace;

pub use adapted::Product;
pub use background::{Background, LatentBackground, LayerBackground};
pub use curves::Curves;
pub use effect::{Activation, ActivationEffects, BINS, EffectCounts};
pub use error::ExploreError;
pub use explorer::{Explained, Explorer, Model};
pub use measure::Measure;
pub use neighbours::{LONGEST, Match, Neighbour};
pub use reading::WORDS;
pub use rows::{Rows, Writing};
pub use trace::{LayerTrace, Prediction, Trace, TracedWord, TypedText};

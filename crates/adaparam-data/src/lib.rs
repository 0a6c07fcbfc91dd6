//! Data sets on plain numbers: samplers, readers, downloads and text.
//!
//! Nothing here knows of layers, prints, or reads the environment. Numbers come as `Vec<f32>`, `u8` and `u32`;
//! faults come as [`DataError`], which names the file, what was found, the rule and the next step.
//!
//! | To … | use |
//! |---|---|
//! | draw random numbers that depend on nothing but the place in a run | [`draw`] |
//! | sample the tail regression of the paper's section 4.1 | [`tail`] |
//! | read labelled images: MNIST from a folder, or the embedded 8×8 digits | [`mnist`], [`digits`], [`images`] |
//! | read the idx format itself | [`idx`] |
//! | turn text into word ids, batch columns and windows | [`text`] |
//! | know, download and check the data sets that are not embedded | [`registry`], [`mod@fetch`], [`mod@verify`], [`data_dir`] |
//! | state a SHA-256 sum | [`checksum`] |

pub mod checksum;
pub mod data_dir;
pub mod digits;
pub mod draw;
mod error;
pub mod fetch;
pub mod idx;
pub mod images;
pub mod mnist;
pub mod registry;
pub mod tail;
pub mod text;
pub mod verify;

pub use error::{DataError, Result, SourceFailure};

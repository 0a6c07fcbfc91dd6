//! The experiments of the paper: what is run, what came out, what it says of the paper's claims, and the pages that tell
//! of it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`conventions`] | what holds for every layer of such a network: how weights start, what policies look at |
//! | [`network`] | feed-forward networks of static and adaptive layers, described by data |
//! | [`fit`] | their training loop |
//! | [`tail`] | tail regression, paper section 4.1 |
//! | [`image`] | image classification, paper section 4.2 |
//! | [`heat_maps`] | what adaptation does to a matrix, paper Figure 1 |
//! | [`search`] | readings of section 4.2, searched for the one that gives Table 1 |
//! | [`experiment`] | language models, paper sections 4.3 to 4.6 and abstract |
//! | [`claim`] | the paper's sentences that can be measured, and who judges them |
//! | [`result`] | rows, claims and spreads: what an experiment found |
//! | [`trained`] | trained networks as plain numbers, for pages to play with |
//! | [`kept`] | a finished experiment on disk, to make its report again from |
//! | [`page`] | what each experiment puts into a report |

pub mod claim;
pub mod conventions;
mod cross_entropy;
mod decision;
mod error;
pub mod experiment;
mod finding;
pub mod fit;
pub mod heat_maps;
pub mod image;
mod interval;
pub mod kept;
pub mod network;
pub mod optimiser;
pub mod page;
mod part;
pub mod result;
pub mod search;
pub mod tail;
pub mod trained;

pub use error::PaperError;
pub use finding::{Comparison, comparison_table, in_turn};
pub use part::PartReport;

//! The search for the reading of section 4.2 that gives the five rows of Table 1 at once.
//!
//! The paper fixes optimiser, learning rate, batch, steps, rough sizes and that weight matrices start semi-orthogonal. The rest
//! is open, and a *reading* is one way to fill it in: a level for each factor of a list ([`FACTORS`]).
//!
//! Readings are judged by the five training accuracies alone, and what was chosen is then confirmed on the test accuracies. The
//! search has three stages, each of which depends on what those before it have found:
//!
//! 1. **screening**: the base reading, and every reading that differs from it in one factor, with one seed;
//! 2. **combining**: readings that should be better by what the factors do one by one, each begun from the best so far;
//! 3. **confirming**: the best few with several seeds.
//!
//! What is to be trained next is a function of what has been trained ([`Search::next`]), so that a search that was stopped goes on
//! from the list of its networks. A network that several readings have in common is trained once.
//!
//! | file | what it holds |
//! |---|---|
//! | `factor.rs` | the factors and their levels |
//! | `reading.rs` | a reading, and its five networks |
//! | `design.rs` | which readings are trained |
//! | `measured.rs` | what was trained, by what decides it |
//! | `score.rs` | how far a reading is from the paper |
//! | `record.rs` | the file of a search |

mod design;
mod factor;
mod measured;
mod reading;
mod record;
mod score;

pub use design::{Round, Search, SearchSettings, Stage};
pub use factor::{FACTORS, Factor, Level};
pub use measured::{Measured, Measurements, SearchJob};
pub use reading::Reading;
pub use record::{SEARCH, SearchRecord, ToldReading};
pub use score::{RowScore, Score, Standing};

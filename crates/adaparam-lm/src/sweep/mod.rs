//! Many language models from one frozen list: planned, run in any order and by any number of processes, collected.
//!
//! A sweep is a folder. `manifest.json` says what every run is and never changes; `runs/<id>/` is the folder of a run,
//! as `adaparam train` would leave it, with an `outcome.json` once the run has ended. Nothing is shared while runs
//! are under way but the file system: each run is locked by the process that is at it, and the lock ends with the
//! process.

mod adopt;
mod as_written;
mod collect;
mod folder;
mod manifest;
mod measure;
mod outcome;
mod own;
mod pool;
mod progress;
mod run;
mod training;
mod unigram;

pub use collect::{Collected, CollectedRun};
pub use folder::Sweep;
pub use manifest::{Manifest, RunSpec};
pub use measure::words_per_second;
pub(crate) use outcome::OUTCOME;
pub use outcome::{Ending, RunOutcome};
pub use own::plan_of_file;
pub use pool::{Resources, SweepEvent, run_many};
pub use progress::{EpochScore, Progress, RunState, tally};
pub use run::{Corpora, RunReport};

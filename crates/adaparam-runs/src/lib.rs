//! Runs as folders on a disk, whatever it is that runs.
//!
//! | module | what it holds |
//! |---|---|
//! | [`run_folder`] | the folder that a run leaves behind |
//! | [`ordinary_file`] | files of other people, which may be no files |
//! | [`whole_file`] | files and folders that are whole or not there at all |
//! | [`record`] | how a run came about |
//! | [`fault`] | faults of the disk on request, for tests |
//! | [`lock`] | one process at a run |
//! | [`jobs`] | a queue of jobs on the cores of this machine |
//! | [`toml_file`] | reading configuration so that a misspelt key is an error with a suggestion |
//! | [`check`] | checks of a configuration's values |
//! | [`duration`] | spans of time as people write them |
//! | [`date`] | moments as records tell them |

pub mod check;
pub mod date;
pub mod duration;
mod error;
pub mod fault;
pub mod jobs;
pub mod lock;
pub mod ordinary_file;
pub mod record;
pub mod run_folder;
pub mod toml_file;
pub mod whole_file;

pub use error::RunError;

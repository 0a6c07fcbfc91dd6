//! Event files of TensorBoard: numbers under a tag, each at a step.
//!
//! A [`Writer`] begins a file of its own in a folder and appends to it; [`read`] gives back what a file holds. A run that
//! goes on from an earlier step has what was written after it cut off first, so that no step is there twice.
//!
//! ```
//! use adaparam_tensorboard::{Writer, read};
//!
//! # fn main() -> Result<(), adaparam_runs::RunError> {
//! let folder = tempfile::tempdir().expect("a folder");
//! let mut writer = Writer::begin(folder.path(), "a run", 0, |_, _| true)?;
//! writer.write(1, &[("train/loss", 5.5), ("train/words_per_second", 2e4)])?;
//!
//! let events = read(writer.path())?;
//! let last = events.last().expect("an event");
//! assert_eq!((last.step, last.scalars[0].tag.as_str()), (1, "train/loss"));
//! # Ok(())
//! # }
//! ```

mod crc32c;
mod event;
mod folder;
mod message;
mod record;

pub use event::{Event, Scalar};
pub use folder::{Writer, read, refuse_another};

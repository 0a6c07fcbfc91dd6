//! Text for language models: from files to windows of word ids.
//!
//! A [`Text`] is a named piece of UTF-8 whose words are separated by white space; each of its lines ends with the
//! word [`EOS`]. A [`TextSplit`] is the three texts of a data set. A [`Vocabulary`] numbers the words of the
//! training text, and a [`Corpus`] is all three texts as ids. [`Columns`] lays ids out for a batch, and
//! [`WindowLengths`] cuts an epoch into windows of truncated backpropagation.
//!
//! ```
//! use adaparam_data::text::{Columns, Corpus, moby_dick};
//!
//! let corpus = Corpus::new(&moby_dick(), 1)?;
//! let columns = Columns::new(&corpus.valid, 10)?;
//! let predictions: usize = columns.windows(70).map(|window| window.targets.len()).sum();
//! assert_eq!(predictions, columns.predictions());
//! # Ok::<(), adaparam_data::DataError>(())
//! ```

mod columns;
mod corpus;
mod split;
mod vocabulary;
mod windows;

pub use columns::{Columns, Window};
pub use corpus::{Corpus, EOS, Text, UNK};
pub use split::{TextSplit, moby_dick};
pub use vocabulary::Vocabulary;
pub use windows::{Span, WindowLengths};

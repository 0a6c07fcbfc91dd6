//! Text for language models: from files to windows of token ids.
//!
//! A [`Text`] is a named piece of UTF-8, and [`Tokens`] a way to cut it: usually into words between white space, where
//! each line ends with the word [`EOS`]. A [`TextSplit`] is the three texts of a data set. A [`Vocabulary`] numbers the
//! tokens of the training text, and a [`Corpus`] is all three texts as ids. [`Columns`] lays ids out for a batch, and
//! [`WindowLengths`] cuts an epoch into windows of truncated backpropagation. A [`Doubt`] is a sign that a text is cut
//! in a way that does not suit it.
//!
//! ```
//! use adaparam_data::text::{Columns, Corpus, Tokens, moby_dick};
//!
//! let corpus = Corpus::new(Tokens::default(), &moby_dick(), 1)?;
//! let columns = Columns::new(&corpus.valid, 10)?;
//! let predictions: usize = columns.windows(70).map(|window| window.targets.len()).sum();
//! assert_eq!(predictions, columns.predictions());
//! # Ok::<(), adaparam_data::DataError>(())
//! ```

mod columns;
mod corpus;
mod doubt;
mod file;
mod split;
mod tokens;
mod vocabulary;
mod windows;

pub use columns::{Columns, Window};
pub use corpus::{Corpus, EOS, Text, UNK};
pub use doubt::{Doubt, Sign, doubt};
pub use split::{TextSplit, moby_dick};
pub use tokens::{Token, Tokeniser, Tokens};
pub use vocabulary::Vocabulary;
pub use windows::{Span, WindowLengths};

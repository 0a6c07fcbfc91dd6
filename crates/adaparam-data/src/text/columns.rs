//! Ids laid out for a batch.

use std::ops::Range;

use crate::error::{DataError, Result};

/// A text cut into the columns of a batch.
///
/// The ids are cut into `B` pieces of equal length, the remainder at the end being dropped; piece `b` is column
/// `b`, so that a window continues in every column where the one before it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    batch: usize,
    /// `[rows, B]`.
    ids: Vec<u32>,
}

/// Some consecutive rows of the columns: what a model reads, and what it is to predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window<'a> {
    /// The first row that is read.
    pub start: usize,
    /// `T`, the number of rows.
    pub steps: usize,
    /// `B`, the number of columns.
    pub batch: usize,
    /// The ids read, `[T, B]`.
    pub inputs: &'a [u32],
    /// The ids that follow each of them, `[T, B]`.
    pub targets: &'a [u32],
}

impl Columns {
    /// Cuts `ids` into `batch` columns of at least two rows.
    pub fn new(ids: &[u32], batch: usize) -> Result<Self> {
        let rows = ids.len().checked_div(batch).unwrap_or(0);
        if rows < 2 {
            return Err(DataError::BatchColumns {
                batch,
                tokens: ids.len(),
            });
        }
        let ids = (0..rows)
            .flat_map(|row| (0..batch).map(move |column| ids[column * rows + row]))
            .collect();
        Ok(Self { batch, ids })
    }

    /// Some of the columns, all of their rows.
    ///
    /// # Panics
    /// If there are no such columns, or none of them is named.
    #[must_use]
    pub fn some(&self, columns: Range<usize>) -> Self {
        assert!(
            !columns.is_empty() && columns.end <= self.batch,
            "columns {columns:?} of {}",
            self.batch
        );
        let rows = self.ids.chunks_exact(self.batch);
        Self {
            batch: columns.len(),
            ids: rows
                .flat_map(|row| &row[columns.clone()])
                .copied()
                .collect(),
        }
    }

    /// Number of columns, `B`.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.ids.len() / self.batch
    }

    /// Number of rows that have a next one to predict.
    pub fn steps(&self) -> usize {
        self.rows() - 1
    }

    /// Number of ids predicted in one pass: all but the first row's, each once.
    pub fn predictions(&self) -> usize {
        self.steps() * self.batch
    }

    /// The window of `length` rows from `start`, or as many as are left.
    ///
    /// # Panics
    /// If `length` is zero or `start` is not below [`Columns::steps`].
    pub fn window(&self, start: usize, length: usize) -> Window<'_> {
        assert!(
            length > 0 && start < self.steps(),
            "a window of {length} rows from row {start} of {} that have a next one",
            self.steps()
        );
        let steps = length.min(self.steps() - start);
        let rows = |from: usize| &self.ids[from * self.batch..(from + steps) * self.batch];
        Window {
            start,
            steps,
            batch: self.batch,
            inputs: rows(start),
            targets: rows(start + 1),
        }
    }

    /// All windows of `length` rows in order; the last may be shorter.
    ///
    /// # Panics
    /// If `length` is zero.
    pub fn windows(&self, length: usize) -> impl Iterator<Item = Window<'_>> {
        (0..self.steps())
            .step_by(length)
            .map(move |start| self.window(start, length))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_are_consecutive_pieces_and_the_remainder_is_dropped() {
        let ids: Vec<u32> = (0..11).collect();
        let columns = Columns::new(&ids, 2).unwrap();
        assert_eq!((columns.rows(), columns.predictions()), (5, 8));
        let window = columns.window(0, 3);
        assert_eq!(window.inputs, [0, 5, 1, 6, 2, 7]);
        assert_eq!(window.targets, [1, 6, 2, 7, 3, 8]);
        let last = columns.window(3, 3);
        assert_eq!((last.steps, last.start), (1, 3));
        assert_eq!(last.inputs, [3, 8]);
        assert_eq!(last.targets, [4, 9]);
    }

    #[test]
    fn some_columns_are_read_as_in_the_whole() {
        let ids: Vec<u32> = (0..15).collect();
        let columns = Columns::new(&ids, 3).unwrap();
        let some = columns.some(1..3);
        assert_eq!((some.batch(), some.rows()), (2, 5));
        assert_eq!(some.window(1, 2).inputs, [6, 11, 7, 12]);
        assert_eq!(columns.some(0..3), columns);
    }

    #[test]
    fn a_text_shorter_than_two_rows_is_refused() {
        for (tokens, batch) in [(0, 1), (1, 1), (19, 10), (5, 0), (5, 1_000)] {
            let error = Columns::new(&vec![0; tokens], batch).unwrap_err();
            assert!(matches!(error, DataError::BatchColumns { .. }), "{error:?}");
        }
        let error = Columns::new(&[0; 19], 10).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("batch = 10: must be from 1 to 9, "),
            "{error}"
        );
        assert_eq!(Columns::new(&[0; 20], 10).unwrap().predictions(), 10);
    }

    proptest! {
        #[test]
        fn every_id_but_the_first_of_its_column_is_predicted_once(
            tokens in 2_usize..200,
            batch in 1_usize..20,
            length in 1_usize..30,
        ) {
            let ids: Vec<u32> = (0..tokens as u32).collect();
            let Ok(columns) = Columns::new(&ids, batch) else {
                prop_assert!(tokens < 2 * batch);
                return Ok(());
            };
            let mut predicted = Vec::new();
            for window in columns.windows(length) {
                prop_assert_eq!(window.inputs.len(), window.steps * batch);
                for (input, target) in window.inputs.iter().zip(window.targets) {
                    prop_assert_eq!(input + 1, *target);
                    predicted.push(*target as usize);
                }
            }
            prop_assert_eq!(predicted.len(), columns.predictions());
            predicted.sort_unstable();
            let rows = tokens / batch;
            let expected: Vec<usize> = (0..rows * batch).filter(|id| id % rows != 0).collect();
            prop_assert_eq!(predicted, expected);
        }
    }
}

//! A text in columns, for a model to read window by window.

use adaparam_lm::LmError;
use adaparam_runs::RunError;

/// Words of a text that are read.
pub const WORDS: usize = 20_000;
/// Columns that it is read in.
const COLUMNS: usize = 10;
/// Steps of a window.
const STEPS: usize = 50;

/// The first [`WORDS`] of a text in columns of equal length.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The words, column after column.
    pub(crate) ids: Vec<u32>,
    pub(crate) columns: usize,
}

impl Reading {
    /// # Errors
    ///
    /// If the text has no words.
    pub(crate) fn of(name: &str, ids: &[u32]) -> Result<Self, LmError> {
        let columns = if ids.len() >= 100 * COLUMNS {
            COLUMNS
        } else {
            1
        };
        let rows = ids.len().min(WORDS) / columns;
        if rows == 0 {
            return Err(RunError::value("text", name, "has no words to compare with").into());
        }
        Ok(Self {
            ids: ids[..rows * columns].to_vec(),
            columns,
        })
    }

    /// The length of a column.
    pub(crate) fn rows(&self) -> usize {
        self.ids.len() / self.columns
    }

    /// Windows with the columns of each step side by side, and how many words are read with each.
    pub(crate) fn windows(&self) -> impl Iterator<Item = (usize, Vec<u32>)> {
        let (rows, columns) = (self.rows(), self.columns);
        (0..rows).step_by(STEPS).map(move |start| {
            let end = rows.min(start + STEPS);
            let window = (start..end)
                .flat_map(|step| (0..columns).map(move |column| (step, column)))
                .map(|(step, column)| self.ids[column * rows + step]);
            (end * columns, window.collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_in_one_window_and_columns_stand_side_by_side() {
        let ids: Vec<u32> = (0..1_234).collect();
        let reading = Reading::of("numbers", &ids).unwrap();
        assert_eq!((reading.columns, reading.rows()), (10, 123));
        let windows: Vec<(usize, Vec<u32>)> = reading.windows().collect();
        assert_eq!(windows[0].1[..3], [0, 123, 246]);
        assert_eq!(windows.last().unwrap().0, 1_230);
        let mut all: Vec<u32> = windows.into_iter().flat_map(|(_, ids)| ids).collect();
        all.sort_unstable();
        assert_eq!(all, ids[..1_230]);
        assert!(Reading::of("nothing", &[]).is_err());
    }
}

//! How far a reading is from the paper's table.

use super::measured::Measured;
use super::reading::Reading;
use crate::image::{PaperRow, Role};
use crate::result::Spread;

/// A row of Table 1 under a reading, beside the paper's.
#[derive(Debug, Clone, PartialEq)]
pub struct RowScore {
    /// The row.
    pub role: Role,
    /// Its name.
    pub name: String,
    /// Number of trained parameters.
    pub parameters: usize,
    /// The paper's numbers, in percent.
    pub paper: PaperRow,
    pub(crate) train: Spread,
    pub(crate) test: Spread,
}

/// Sums of squared differences from the paper, in percentage points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Over the five training accuracies, by which readings are chosen.
    pub train: f64,
    /// Over the five test accuracies.
    pub test: f64,
}

/// A reading with what came out, medians over its seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The reading.
    pub reading: Reading,
    /// Its rows, in the order of the table.
    pub rows: Vec<RowScore>,
    /// Seeds behind every row.
    pub seeds: usize,
}

impl RowScore {
    /// A row of networks that differ in their seeds alone; one that diverged tells nothing right.
    pub(super) fn of(name: &str, paper: PaperRow, networks: &[&Measured]) -> Self {
        let spread = |accuracy: fn(&Measured) -> Option<f64>| {
            Spread::of(networks.iter().map(|it| accuracy(it).unwrap_or(0.0)))
        };
        Self {
            role: networks[0].row,
            name: name.to_owned(),
            parameters: networks[0].parameters,
            paper,
            train: spread(|it| it.train),
            test: spread(|it| it.test),
        }
    }

    /// Median of the training accuracy, in percent.
    pub fn train(&self) -> f64 {
        self.train.median
    }

    /// Median of the test accuracy, in percent.
    pub fn test(&self) -> f64 {
        self.test.median
    }
}

impl Score {
    /// Over all ten numbers.
    pub fn all(&self) -> f64 {
        self.train + self.test
    }
}

impl Standing {
    /// How far it is from the paper.
    pub fn score(&self) -> Score {
        let sum = |difference: fn(&RowScore) -> f64| {
            self.rows.iter().map(|row| difference(row).powi(2)).sum()
        };
        Score {
            train: sum(|row| row.train() - row.paper.train),
            test: sum(|row| row.test() - row.paper.test),
        }
    }
}

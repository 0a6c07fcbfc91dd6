//! The three statements of the paper's section 4.6 as numbers.

use adaparam_lm::TextSource;
use adaparam_lm::sweep::{Collected, CollectedRun};

use super::study::Study;

/// How two populations of random settings compare, by the best validation perplexity of each run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RobustnessNumbers {
    /// LSTMs that have ended.
    pub(crate) lstm_runs: usize,
    /// Adaptive LSTMs that have ended.
    pub(crate) alstm_runs: usize,
    /// The share of LSTMs that failed to converge.
    pub(crate) lstm_failed: f64,
    /// The share of adaptive LSTMs that failed to converge.
    pub(crate) alstm_failed: f64,
    /// The share of LSTMs that are no better than the worst adaptive LSTM.
    pub(crate) lstm_worse_than_worst: f64,
    /// The perplexity that one tenth of the adaptive LSTMs is below.
    pub(crate) alstm_10th: f64,
    /// The perplexity that nine tenths of the adaptive LSTMs are below.
    pub(crate) alstm_90th: f64,
    /// The perplexity that one tenth of the LSTMs is below.
    pub(crate) lstm_10th: f64,
    /// The perplexity that nine tenths of the LSTMs are below.
    pub(crate) lstm_90th: f64,
}

impl RobustnessNumbers {
    /// The numbers of a robustness study; nothing while no run of one of the models has ended.
    pub(crate) fn of(collected: &Collected) -> Option<Self> {
        let (lstm, alstm) = (
            collected.valid_perplexities("lstm"),
            collected.valid_perplexities("alstm"),
        );
        let worst = alstm.iter().copied().reduce(f64::max)?;
        let worse = lstm.iter().filter(|&&score| score >= worst).count();
        Some(Self {
            lstm_runs: lstm.len(),
            alstm_runs: alstm.len(),
            lstm_failed: failed(collected, "lstm")?,
            alstm_failed: failed(collected, "alstm")?,
            lstm_worse_than_worst: worse as f64 / lstm.len() as f64,
            alstm_10th: percentile(&alstm, 0.1),
            alstm_90th: percentile(&alstm, 0.9),
            lstm_10th: percentile(&lstm, 0.1),
            lstm_90th: percentile(&lstm, 0.9),
        })
    }
}

/// What the paper reports of its hundred LSTMs on one text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PaperShares {
    /// The share that failed to converge.
    pub(crate) lstm_failed: f64,
    /// The share that is no better than the worst adaptive LSTM.
    pub(crate) lstm_worse_than_worst: f64,
}

impl PaperShares {
    /// On WikiText-2 or the Penn Treebank.
    pub(crate) const fn on(wikitext_2: bool) -> Self {
        if wikitext_2 {
            Self {
                lstm_failed: 0.5,
                lstm_worse_than_worst: 0.8,
            }
        } else {
            Self {
                lstm_failed: 0.25,
                lstm_worse_than_worst: 0.45,
            }
        }
    }
}

impl Study {
    /// Whether the models learn from WikiText-2.
    pub(crate) fn is_on_wikitext_2(&self) -> bool {
        self.text() == TextSource::WikiText2
    }
}

/// The share of the runs of a row that failed to converge, of those that have ended.
fn failed(collected: &Collected, row: &str) -> Option<f64> {
    let verdicts: Vec<bool> = collected
        .runs_of(row)
        .filter_map(CollectedRun::failed_to_converge)
        .collect();
    let failed = verdicts.iter().filter(|failed| **failed).count();
    (!verdicts.is_empty()).then(|| failed as f64 / verdicts.len() as f64)
}

/// The value below which a share of the values lies, interpolated between neighbours where both are finite.
fn percentile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let place = share * (values.len() - 1) as f64;
    let (below, above) = (
        values[place.floor() as usize],
        values[place.ceil() as usize],
    );
    let fraction = place.fract();
    if fraction > 0.0 && below.is_finite() {
        below + (above - below) * fraction
    } else {
        below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_count_diverged_runs_as_the_worst() {
        let values = vec![3.0, 1.0, 2.0, f64::INFINITY, 4.0];
        for (share, expected) in [(0.0, 1.0), (0.5, 3.0), (0.25, 2.0), (0.125, 1.5)] {
            let found = percentile(&values, share);
            assert!((found - expected).abs() < 1e-12, "{share}: {found}");
        }
        assert!(percentile(&values, 0.9).is_infinite());
        assert!(percentile(&[1.0, f64::INFINITY, f64::INFINITY], 0.9) == f64::INFINITY);
    }
}

//! What an experiment has found: a row for each model, with its spread over seeds or draws.

use serde_json::{Value, json};

use super::Experiment;
use super::claims::claims;
use crate::language_model::{Finished, LanguageModelConfig};
use crate::result::{ExperimentResult, Row, Spread};
use crate::sweep::{Collected, CollectedRun, RunState};

impl Collected {
    /// The runs of one row of the table.
    pub fn runs_of<'a>(&'a self, row: &'a str) -> impl Iterator<Item = &'a CollectedRun> {
        self.runs.iter().filter(move |run| run.spec.row == row)
    }

    /// The best validation perplexity of each run of a row that has ended; infinite for those that diverged.
    pub fn valid_perplexities(&self, row: &str) -> Vec<f64> {
        self.scores(row, |finished| finished.valid_perplexity)
    }

    /// The same of test perplexities.
    pub fn test_perplexities(&self, row: &str) -> Vec<f64> {
        self.scores(row, |finished| finished.test_perplexity)
    }

    fn scores(&self, row: &str, score: impl Fn(&Finished) -> f64) -> Vec<f64> {
        let of_run = |run: &CollectedRun| match run.progress.state {
            RunState::Diverged => Some(f64::INFINITY),
            _ => run.finished().map(&score),
        };
        self.runs_of(row).filter_map(of_run).collect()
    }

    /// The seconds that all runs have taken.
    pub fn seconds(&self) -> f64 {
        let outcomes = self
            .runs
            .iter()
            .filter_map(|run| run.progress.outcome.as_ref());
        outcomes.fold(0.0, |sum, outcome| sum + outcome.seconds)
    }

    /// Rows and claims.
    pub fn summarise(&self) -> ExperimentResult {
        let (experiment, scale) = (self.manifest.experiment, self.manifest.scale);
        let rows = experiment.rows(scale);
        ExperimentResult {
            experiment: experiment.name().to_owned(),
            scale,
            rows: rows
                .iter()
                .map(|model| {
                    let mut row = self.row(model.key, model.label);
                    let mut insert = |name: &str, value: Value| {
                        row.metrics.insert(name.to_owned(), value);
                    };
                    insert("key", json!(model.key));
                    if let Some(paper) = model.paper {
                        insert("paper_size", json!(paper.size));
                        insert("paper_valid_perplexity", json!(paper.valid));
                        insert("paper_test_perplexity", json!(paper.test));
                    }
                    row
                })
                .collect(),
            claims: claims(self),
        }
    }

    fn row(&self, key: &str, label: &str) -> Row {
        let runs: Vec<&CollectedRun> = self.runs_of(key).collect();
        let valid = self.valid_perplexities(key);
        let diverged = valid.iter().filter(|score| score.is_infinite()).count();
        let parameters = runs
            .iter()
            .find_map(|run| Some(run.finished()?.parameters))
            .or_else(|| parameters(&runs.first()?.spec.config));
        let mut row = Row::new(label, parameters.unwrap_or(0), valid.len(), diverged);
        if !valid.is_empty() {
            row = row
                .with("valid_perplexity", &Spread::of(valid))
                .with("test_perplexity", &Spread::of(self.test_perplexities(key)));
        }
        let ids: Vec<&str> = runs.iter().map(|run| run.spec.id.as_str()).collect();
        row.metrics.insert("runs".to_owned(), json!(ids));
        let failed = runs
            .iter()
            .filter(|run| run.progress.state == RunState::Failed)
            .count();
        if failed > 0 {
            row.metrics.insert("failed".to_owned(), json!(failed));
        }
        row
    }
}

fn parameters(config: &LanguageModelConfig) -> Option<usize> {
    let vocabulary = config.data.set.vocabulary_size()?;
    Some(config.model.parameter_count(vocabulary))
}

impl Experiment {
    /// Its name in a report.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Ptb => "Penn Treebank",
            Self::WikiText2 => "WikiText-2",
            Self::Ablation => "Ablation",
            Self::Robustness => "Robustness",
        }
    }

    /// Where the paper has it.
    pub const fn place(self) -> &'static str {
        match self {
            Self::Ptb => "section 4.3, Table 2 and Figure 3",
            Self::WikiText2 => "section 4.4, Table 3",
            Self::Ablation => "section 4.5, Table 4",
            Self::Robustness => "section 4.6, Figure 4",
        }
    }
}

//! What an experiment has found: a row for each model, with its spread over seeds or draws.

use adaparam_lm::LanguageModelConfig;
use adaparam_lm::sweep::{Collected, CollectedRun, RunState, Sweep};
use adaparam_runs::run_folder::MANIFEST;
use serde_json::{Value, json};

use super::Experiment;
use super::claims::claims;
use crate::PaperError;
use crate::result::Scale;
use crate::result::{ExperimentResult, Row, Spread};

/// A sweep of one of the paper's experiments, with everything that it has found so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Which experiment.
    pub experiment: Experiment,
    /// How large.
    pub scale: Scale,
    /// Its runs.
    pub collected: Collected,
}

impl Study {
    /// Reads all runs of a sweep.
    ///
    /// # Errors
    ///
    /// If it is a sweep of something else.
    pub fn read(sweep: &Sweep) -> Result<Self, PaperError> {
        Ok(Self {
            experiment: Experiment::of(sweep)?,
            scale: Scale::of(sweep)?,
            collected: Collected::read(sweep),
        })
    }

    /// Rows and claims.
    pub(crate) fn summarise(&self) -> ExperimentResult {
        let (experiment, scale) = (self.experiment, self.scale);
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
        let runs: Vec<&CollectedRun> = self.collected.runs_of(key).collect();
        let valid = self.collected.valid_perplexities(key);
        let diverged = valid.iter().filter(|score| score.is_infinite()).count();
        let parameters = runs
            .iter()
            .find_map(|run| Some(run.finished()?.parameters))
            .or_else(|| parameters(&runs.first()?.spec.config));
        let mut row = Row::new(label, parameters.unwrap_or(0), valid.len(), diverged);
        if !valid.is_empty() {
            row = row.with("valid_perplexity", &Spread::of(valid)).with(
                "test_perplexity",
                &Spread::of(self.collected.test_perplexities(key)),
            );
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
    let vocabulary = config.data.vocabulary_size()?;
    Some(config.model.parameter_count(vocabulary))
}

/// The one of `all` that a sweep's manifest names.
fn named<T: Copy>(
    sweep: &Sweep,
    key: &'static str,
    name: &str,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<T, PaperError> {
    let found = all.iter().copied().find(|&one| name_of(one) == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|&one| name_of(one)).collect();
        PaperError::Unknown {
            path: sweep.path().join(MANIFEST),
            key,
            name: name.to_owned(),
            known: names.join(", "),
        }
    })
}

impl Scale {
    /// How large a sweep is.
    ///
    /// # Errors
    ///
    /// If it is a sweep of something else.
    pub fn of(sweep: &Sweep) -> Result<Self, PaperError> {
        let name = &sweep.manifest().scale;
        named(sweep, "scale", name, &Self::ALL, Self::name)
    }
}

impl Experiment {
    /// What a sweep is of.
    ///
    /// # Errors
    ///
    /// If it is a sweep of something else.
    pub fn of(sweep: &Sweep) -> Result<Self, PaperError> {
        let name = &sweep.manifest().experiment;
        named(sweep, "experiment", name, &Self::ALL, Self::name)
    }

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
    pub(crate) const fn place(self) -> &'static str {
        match self {
            Self::Ptb => "section 4.3, Table 2 and Figure 3",
            Self::WikiText2 => "section 4.4, Table 3",
            Self::Ablation => "section 4.5, Table 4",
            Self::Robustness => "section 4.6, Figure 4",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use adaparam_lm::sweep::{Manifest, RunSpec};

    use super::*;

    #[test]
    fn a_sweep_is_read_by_the_names_in_its_manifest() {
        let folder = tempfile::tempdir().unwrap();
        let planned = |experiment: &str, scale: &str| {
            let run = RunSpec::new("a", "a", "A", None, LanguageModelConfig::default());
            let path = folder.path().join(format!("{experiment}-{scale}"));
            Sweep::plan(path, Manifest::new(experiment, scale, vec![run])).unwrap()
        };
        for experiment in Experiment::ALL {
            for scale in Scale::ALL {
                let sweep = planned(experiment.name(), scale.name());
                let study = Study::read(&sweep).unwrap();
                assert_eq!((study.experiment, study.scale), (experiment, scale));
            }
        }
        let told = |sweep: &Sweep| Study::read(sweep).unwrap_err().to_string();
        let of_nothing = told(&planned("pth", "small"));
        assert!(
            of_nothing.ends_with(
                "manifest.json: experiment = pth: must be one of ptb, wikitext2, ablation, robustness"
            ),
            "{of_nothing}"
        );
        let of_no_size = told(&planned("ptb", "huge"));
        assert!(
            of_no_size.ends_with("scale = huge: must be one of full, medium, small, quick"),
            "{of_no_size}"
        );
    }

    #[test]
    fn sweeps_that_are_kept_as_results_are_still_read() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
        for (folder, experiment, scale) in [
            ("paper/ptb", Experiment::Ptb, Scale::Small),
            ("paper/wikitext2", Experiment::WikiText2, Scale::Small),
            ("paper/ablation", Experiment::Ablation, Scale::Small),
            ("paper/robustness", Experiment::Robustness, Scale::Small),
            ("ptb-17m", Experiment::Ptb, Scale::Full),
        ] {
            let study = Study::read(&Sweep::open(results.join(folder)).unwrap()).unwrap();
            assert_eq!((study.experiment, study.scale), (experiment, scale));
            let rows = study.summarise().rows;
            assert!(rows.iter().any(|row| row.seeds > 0), "{folder}");
        }
    }
}

//! What one experiment gives to a report.

use std::path::Path;

use adaparam_data::registry::Dataset;
use adaparam_lm::sweep::{CollectedRun, RunState, tally};
use adaparam_runs::RunError;
use adaparam_runs::record::{RECORD, RunRecord};
use adaparam_runs::run_folder::RunFolder;

use crate::experiment::{Experiment, Study, with_part};
use crate::finding::Comparison;
use crate::page::{self, Page};
use crate::result::ExperimentResult;

/// What an experiment leaves for the report.
pub struct PartReport {
    /// Its section.
    pub page: Page,
    /// Rows and claims, where it has some.
    pub result: Option<ExperimentResult>,
    /// What it found, a sentence each without its full stop, the most telling first.
    pub findings: Vec<String>,
    /// Static and adaptive models side by side.
    pub comparisons: Vec<Comparison>,
    /// Whether its findings belong into the sentences of the part before it.
    pub shares_a_sentence: bool,
    /// How it came about.
    pub record: RunRecord,
    /// What is not there yet.
    pub missing: Option<String>,
    /// Whether an error has ended a run.
    pub failed: bool,
}

impl PartReport {
    /// Tells of everything that a sweep has found so far, and writes it into the sweep's folder.
    pub fn of_study(study: &Study, folder: &Path, record: &RunRecord) -> Result<Self, RunError> {
        let result = study.summarise();
        let collected = &study.collected;
        let mut record = record.clone();
        record.seeds = collected.runs.iter().map(|run| run.spec.seed).collect();
        record.seeds.sort_unstable();
        record.seeds.dedup();
        record.seconds = collected.seconds();
        for run in &collected.runs {
            let text = run
                .record
                .as_ref()
                .and_then(|record| record.data.get("text"));
            let data = &run.spec.config.data;
            let name = data.set.dataset().map_or("text", Dataset::name);
            if let Some(sum) = text {
                let name = with_part(name, data.train_words);
                record.data.insert(name, sum.clone());
            }
        }
        collected.write(folder)?;
        let folder = RunFolder::at(folder);
        folder.write_json(RECORD, &record)?;
        folder.write_json("result.json", &result)?;
        let page = match study.experiment {
            Experiment::Robustness => page::robustness(study, &result),
            Experiment::Efficiency => page::efficiency(study, &result),
            _ => page::language_models(study, &result),
        };
        let missing: Vec<&CollectedRun> = collected.missing().collect();
        let failed = missing
            .iter()
            .any(|run| run.progress.state == RunState::Failed);
        let states = missing.iter().map(|run| run.progress.state);
        let comparisons = study.comparisons(&result);
        let findings = match study.experiment {
            Experiment::Robustness => page::robustness_findings(study),
            Experiment::Efficiency => page::efficiency_findings(study),
            _ => comparisons.iter().map(Comparison::clause).collect(),
        };
        let missing = (!missing.is_empty()).then(|| {
            format!(
                "{}: {} of {} runs ({})",
                study.heading(),
                missing.len(),
                collected.runs.len(),
                tally(states)
            )
        });
        Ok(Self {
            page,
            result: Some(result),
            findings,
            comparisons,
            shares_a_sentence: study.experiment == Experiment::WikiText2,
            record,
            missing,
            failed,
        })
    }
}

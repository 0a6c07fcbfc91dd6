//! The experiments with language models: a sweep each, sections 4.3 to 4.6.

use std::path::Path;
use std::sync::atomic::Ordering;

use adaparam_lm::sweep::{CollectedRun, Corpora, RunSpec, Sweep, words_per_second};
use adaparam_lm::{Forecast, MemoryForecast};
use adaparam_paper::PartReport;
use adaparam_paper::experiment::{Experiment, Study};
use adaparam_paper::result::Scale;
use adaparam_report::number::{self, duration};
use adaparam_report::{Cell, Column, Row, Table};
use adaparam_runs::record::RunRecord;
use anyhow::bail;

use super::Part;
use crate::say::remark;
use crate::sweeping::Sweeping;

/// Runs what has not ended of a sweep, and tells of everything that has. What an earlier sweep of the same command has
/// trained already is taken from there.
pub(super) fn run(
    sweep: &Sweep,
    part: &Part<'_>,
    corpora: &Corpora,
    sweeping: &Sweeping,
    record: &RunRecord,
) -> anyhow::Result<PartReport> {
    let planned = Study::read(sweep)?;
    let title = format!("{}{}", part.place, planned.heading());
    for run in planned.collected.missing() {
        if sweep.adopt(&run.spec, part.earlier)? {
            remark!(
                "{title}: {} has been trained before with this configuration and seed",
                run.spec.id
            );
        }
    }
    let before = Study::read(sweep)?;
    let left: Vec<&RunSpec> = before.collected.missing().map(|run| &run.spec).collect();
    if !left.is_empty() && !sweeping.is_out_of_time() {
        // Minutes need no forecast, and the bar tells what is left of them.
        if before.scale != Scale::Quick {
            remark!("{}", forecast(&before, &left, corpora, sweeping)?);
        }
        sweeping.run(sweep, &left, corpora, &title)?;
    }
    tell(sweep, record)
}

/// Tells of everything that a sweep has found so far.
pub(super) fn tell(sweep: &Sweep, record: &RunRecord) -> anyhow::Result<PartReport> {
    Ok(PartReport::of_study(
        &Study::read(sweep)?,
        sweep.path(),
        record,
    )?)
}

/// Parameters, words, time by measured steps and memory of what is left.
fn forecast(
    before: &Study,
    left: &[&RunSpec],
    corpora: &Corpora,
    sweeping: &Sweeping,
) -> anyhow::Result<String> {
    let (jobs, place) = (sweeping.jobs(before.scale), sweeping.place(before.scale)?);
    let threads = place.threads;
    let mut rows = Vec::new();
    let (mut seconds, mut memory) = (0.0, 0);
    let is_left = |run: &&CollectedRun| left.iter().any(|spec| spec.id == run.spec.id);
    for model in before.rows() {
        let runs = left.iter().filter(|run| run.row == model.key).count();
        let Some(run) = left.iter().find(|run| run.row == model.key) else {
            continue;
        };
        let corpus = corpora.of(&run.config.data).expect("every text was read");
        let speed = words_per_second(&run.config, corpus, &place, &sweeping.stop)?;
        if sweeping.stop.load(Ordering::Relaxed) || sweeping.is_out_of_time() {
            break;
        }
        let Some(speed) = speed else { continue };
        let words = corpus.train.len();
        let each = Forecast::of(&run.config, words, corpus.valid.len(), speed);
        let need = MemoryForecast::of(&run.config, corpus.vocabulary.len());
        let epochs_ahead = before
            .collected
            .runs_of(model.key)
            .filter(is_left)
            .map(|run| {
                let all = run.spec.config.train.epochs as f64;
                1.0 - (run.progress.epochs.len() as f64 / all).min(1.0)
            });
        seconds += each.seconds * epochs_ahead.sum::<f64>();
        memory = memory.max(need.total());
        rows.push(Row::new(vec![
            model.label.into(),
            number::grouped(run.config.model.parameter_count(corpus.vocabulary.len()) as u64)
                .into(),
            runs.to_string().into(),
            Cell::from(format!(
                "{} × {}",
                run.config.train.epochs,
                number::grouped(words as u64)
            )),
            number::grouped(speed as u64).into(),
            duration(each.seconds).into(),
            megabytes(need.total()).into(),
        ]));
    }
    let table = Table {
        caption: format!(
            "{} at scale {}: {} left, {jobs} at a time with {} each",
            before.experiment.name(),
            before.scale.name(),
            number::count(left.len(), "run"),
            number::count(threads, "thread"),
        ),
        columns: vec![
            Column::text("Model"),
            Column::number("Parameters"),
            Column::number("Runs"),
            Column::number("Epochs × words"),
            Column::number("Words/s"),
            Column::number("A run takes"),
            Column::number("Memory"),
        ],
        rows,
        notes: vec![
            format!(
                "About {} in all, by a few measured training steps of each model, more if runs at the same time \
                 hinder each other.",
                duration(seconds / jobs.min(left.len()) as f64)
            ),
            format!(
                "Memory of a run is computed from its sizes, not measured: weights, gradients and moments, what the longest \
                 window keeps, and what checkpoints and evaluation take; about {} for {jobs} at a time, program and text \
                 included.",
                megabytes(MemoryForecast::PROGRAM + memory * jobs)
            ),
        ],
    };
    Ok(table.to_terminal(110))
}

fn megabytes(bytes: usize) -> String {
    format!("{} MB", number::grouped(bytes.div_ceil(1_000_000) as u64))
}

/// The sweep of an experiment that a report without training is made from, if there is one.
pub(super) fn existing(experiment: Experiment, path: &Path) -> anyhow::Result<Option<Sweep>> {
    if !Sweep::is_in(path) {
        return Ok(None);
    }
    let sweep = Sweep::open(path)?;
    let there = Experiment::of(&sweep)?;
    if there != experiment {
        bail!(
            "{}: holds a sweep of {}: say `reproduce {}`, or name another folder with --out",
            path.display(),
            there.name(),
            there.name()
        );
    }
    Ok(Some(sweep))
}

//! The runs behind a section, one by one.

use adaparam_lm::sweep::{Collected, CollectedRun};
use adaparam_report::number::duration;
use adaparam_report::{Block, Cell, Column, Row, Section, Table};
use adaparam_runs::record::RunRecord;

use super::short_commit;

/// The section with every run folded away at its end, and with what has not ended.
pub(super) fn with_runs(section: Section, collected: &Collected) -> Section {
    let missing: Vec<&CollectedRun> = collected.missing().collect();
    let (all, left) = (collected.runs.len(), missing.len());
    let summary = match (all, left) {
        (1, 0) => "The run behind this section".to_owned(),
        (_, 0) => format!("The {all} runs behind this section"),
        _ => format!(
            "The {all} runs behind this section; {left} have not finished and count in no table"
        ),
    };
    let mut blocks = vec![Block::Table(table(collected))];
    let messages: Vec<String> = collected
        .runs
        .iter()
        .filter_map(|run| Some(format!("`{}`: {}", run.spec.id, run.message()?)))
        .collect();
    if !messages.is_empty() {
        blocks.push(Block::List(messages));
    }
    section.with(Block::Details { summary, blocks })
}

/// The commit of a program that was at the run, and below it those of others.
fn commits(record: &RunRecord) -> Cell {
    let cell = Cell::from(format!("`{}`", short_commit(&record.commit)));
    let others: Vec<String> = record
        .other_commits
        .iter()
        .map(|commit| short_commit(commit))
        .collect();
    if others.is_empty() {
        cell
    } else {
        cell.detail(format!("also {}", others.join(", ")))
    }
}

fn table(collected: &Collected) -> Table {
    let rows = collected.runs.iter().map(|run| {
        let best = run.progress.best();
        let finished = run.finished();
        let outcome = run.progress.outcome.as_ref();
        let record = run.record.as_ref();
        let perplexity = |value: Option<f64>| {
            value.map_or_else(|| Cell::from("—"), |value| format!("{value:.2}").into())
        };
        Row::new(vec![
            format!("`runs/{}`", run.spec.id).into(),
            run.progress.state.name().into(),
            format!(
                "{}/{}",
                run.progress.epochs.len(),
                run.spec.config.train.epochs
            )
            .into(),
            perplexity(best.map(|best| best.valid_perplexity)),
            perplexity(finished.map(|finished| finished.test_perplexity)),
            outcome.map_or_else(
                || Cell::from("—"),
                |outcome| duration(outcome.seconds).into(),
            ),
            record.map_or_else(|| Cell::from("—"), commits),
        ])
    });
    Table {
        caption: format!(
            "Runs of {}, each with its configuration, log and record in its folder",
            collected.manifest.experiment
        ),
        columns: vec![
            Column::text("Run"),
            Column::text("State"),
            Column::number("Epochs"),
            Column::number("Best valid"),
            Column::number("Test"),
            Column::number("Time"),
            Column::text("Commit"),
        ],
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

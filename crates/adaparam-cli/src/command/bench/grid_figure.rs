//! The record of `bench/grid.py` as heat maps of ratios.

use std::collections::BTreeMap;
use std::path::Path;

use adaparam_report::figure::{Figure, HeatMap, Matrix};
use adaparam_runs::RunError;
use anyhow::{Context, bail};
use serde::Deserialize;

/// As `bench/grid.py` writes it, what a figure needs.
#[derive(Debug, Deserialize)]
struct Record {
    machine: String,
    rows: Vec<RecordRow>,
}

#[derive(Debug, Deserialize)]
struct RecordRow {
    model: String,
    pass: String,
    hidden: usize,
    batch: usize,
    window: usize,
    /// How many times as long as our kernels each side takes.
    ratios: BTreeMap<String, f32>,
}

/// Draws the record: a matrix for each stack, pass and side, hidden sizes downwards, batches and windows to the right.
///
/// # Errors
///
/// If the file is not such a record.
pub(super) fn svg(file: &Path) -> anyhow::Result<String> {
    let place = file.display();
    let text =
        std::fs::read_to_string(file).map_err(RunError::file(file, "cannot read this file"))?;
    let record: Record = serde_json::from_str(&text)
        .with_context(|| format!("{place}: is no record of bench/grid.py"))?;
    if record.rows.is_empty() {
        bail!("{place}: has no rows yet: let bench/grid.py run first");
    }
    Ok(figure(&record).to_svg().standalone())
}

fn figure(record: &Record) -> HeatMap {
    let of = |size: fn(&RecordRow) -> usize| {
        let mut sizes: Vec<usize> = record.rows.iter().map(size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    let (hidden, batch, window) = (
        of(|row| row.hidden),
        of(|row| row.batch),
        of(|row| row.window),
    );
    let mut cells: BTreeMap<(&str, &str, &str), Vec<f32>> = BTreeMap::new();
    let columns = batch.len() * window.len();
    for row in &record.rows {
        let at = |sizes: &[usize], size| sizes.iter().position(|&one| one == size).unwrap_or(0);
        let column = at(&window, row.window) * batch.len() + at(&batch, row.batch);
        let place = at(&hidden, row.hidden) * columns + column;
        for (side, &ratio) in &row.ratios {
            let values = cells.entry((&row.model, &row.pass, side));
            values.or_insert_with(|| vec![f32::NAN; hidden.len() * columns])[place] = ratio;
        }
    }
    let matrices = cells.into_iter().map(|((model, pass, side), values)| {
        let known: Vec<f32> = values.iter().copied().filter(|x| !x.is_nan()).collect();
        let least = known.iter().copied().fold(f32::INFINITY, f32::min);
        let caption = format!("against {}, at least {least:.2}×", side.replace('_', " "));
        let name = format!("{model}, {pass}");
        // Twice as fast and half as fast are equally far from equal.
        let doublings = values.into_iter().map(f32::log2).collect();
        Matrix::new(name, caption, hidden.len(), columns, doublings)
    });
    let list = |sizes: &[usize]| {
        sizes
            .iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    HeatMap {
        title: "How many times as fast as others".to_owned(),
        description: format!(
            "Ratios of times on {}. Rows: hidden sizes {}. Columns: batches {} for windows of {} steps in turn.",
            record.machine,
            list(&hidden),
            list(&batch),
            list(&window)
        ),
        value_label: format!(
            "doublings of the other side's speed (1: twice as fast, 0: as fast, −1: half as fast); down: hidden {}; right: batch {} for window {}",
            list(&hidden),
            list(&batch),
            list(&window)
        ),
        centre: 0.0,
        matrices: matrices.collect(),
        ..HeatMap::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"machine": "one", "commit": "", "rows": [
        {"model": "lstm", "pass": "training", "hidden": 128, "batch": 1, "window": 35, "sides": {}, "ratios": {"pytorch": 1.5, "burn": 9.0}},
        {"model": "lstm", "pass": "training", "hidden": 256, "batch": 20, "window": 35, "sides": {}, "ratios": {"pytorch": 0.8}}
    ]}"#;

    #[test]
    fn every_side_of_a_stack_has_its_matrix_with_its_worst_ratio() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("grid.json");
        std::fs::write(&file, RECORD).unwrap();
        let svg = svg(&file).unwrap();
        for words in [
            "lstm, training",
            "against pytorch, at least 0.80×",
            "against burn, at least 9.00×",
        ] {
            assert!(svg.contains(words), "{words}");
        }
    }

    #[test]
    fn what_is_no_record_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("grid.json");
        for content in ["{}", r#"{"machine": "one", "rows": []}"#] {
            std::fs::write(&file, content).unwrap();
            let error = svg(&file).unwrap_err().to_string();
            assert!(error.contains("grid.json"), "{error}");
        }
    }
}

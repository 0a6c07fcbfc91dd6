//! `adaparam runs`: the runs in a folder.

use std::path::{Path, PathBuf};

use adaparam_lm::RunHistory;
use adaparam_report::number;
use adaparam_report::{Cell, Column, Row, Table};
use anyhow::bail;
use clap::Args;

use super::Verdict;
use crate::run_page::{self, Witnessed, epochs, model, perplexity, text_name};
use crate::say::{say, terminal_width};

/// List runs: model, parameters, epochs, best perplexity, when
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam runs                      the runs in the folder runs, and in folders in it
  adaparam runs results --json
  adaparam runs runs/ablation --pages   the pages of all runs, made anew
  adaparam compare runs/quick-seed-1 runs/quick-lstm-seed-1 --out compared.html")]
pub(crate) struct Runs {
    /// The folder to look in
    #[arg(default_value = "runs")]
    folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the page of every run anew, report.html in its folder, without what only the training knew: memory and
    /// samples
    #[arg(long)]
    pages: bool,
}

impl Runs {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let folder = &self.folder;
        if !folder.exists() {
            bail!(
                "{}: there is no such folder: name one that holds runs of `adaparam train`",
                folder.display()
            );
        }
        let runs = RunHistory::find(folder);
        if self.pages {
            for run in &runs {
                run_page::write(&run.path, &Witnessed::default());
            }
        }
        if self.json {
            let rows: Vec<serde_json::Value> = runs.iter().map(json).collect();
            say!("{}", serde_json::to_string_pretty(&rows)?);
        } else if runs.is_empty() {
            bail!("{}: holds no run of `adaparam train`", folder.display());
        } else {
            let width = terminal_width();
            say!(
                "{}",
                narrowed(table(folder, &runs), width).to_terminal(width)
            );
        }
        Ok(Verdict::Done)
    }
}

/// What is known of a run in a line.
pub(super) fn json(run: &RunHistory) -> serde_json::Value {
    let best = run.best();
    serde_json::json!({
        "run": run.path.display().to_string(),
        "state": run.state,
        "model": model(run),
        "parameters": run.parameters(),
        "text": text_name(run),
        "epochs_done": run.epochs_done(),
        "epochs": run.config.train.epochs,
        "best_epoch": best.map(|best| best.epoch),
        "valid_perplexity": best.and_then(|best| best.valid_loss).map(f64::exp),
        "test_perplexity": run.result.as_ref().map(|result| result.test_perplexity),
        "valid_bits_per_character": run.valid_bits_per_character(),
        "test_bits_per_character": run.test_bits_per_character(),
        "started": run.record.as_ref().map(|record| &record.started),
        "seconds": run.record.as_ref().map(|record| record.seconds),
    })
}

/// The table without what can be missed most easily, as far as it takes to fit; whole, as lists, if nothing helps.
fn narrowed(table: Table, width: usize) -> Table {
    let mut narrow = table.clone();
    let mut left_out = Vec::new();
    for column in ["Begun", "Model", "Parameters"] {
        if narrow.fits(width) {
            break;
        }
        narrow = narrow.without(column);
        left_out.push(column);
    }
    if left_out.is_empty() || !narrow.fits(width) {
        return table;
    }
    narrow.notes.push(format!(
        "Too narrow here for: {}. `adaparam runs --json` has all.",
        left_out.join(", ")
    ));
    narrow
}

fn table(folder: &Path, runs: &[RunHistory]) -> Table {
    // Of models of words there are none, and the column would be empty.
    let has_bits = runs
        .iter()
        .any(|run| run.valid_bits_per_character().is_some());
    let rows = runs.iter().map(|run| {
        let path = run.path.strip_prefix(folder).unwrap_or(&run.path);
        let path = if path.as_os_str().is_empty() {
            &run.path
        } else {
            path
        };
        let best = run.best().and_then(|best| best.valid_loss);
        let test = run.result.as_ref().map(|result| result.test_perplexity);
        let bits = run.valid_bits_per_character();
        let bits = bits.map_or_else(String::new, |bits| format!("{bits:.3}"));
        let mut cells = vec![
            Cell::from(path.display().to_string()),
            model(run).into(),
            run.parameters()
                .map_or_else(String::new, |count| number::grouped(count as u64))
                .into(),
            epochs(run).into(),
            run.state.name().into(),
            best.map_or_else(String::new, perplexity).into(),
            test.map_or_else(String::new, |test| format!("{test:.2}"))
                .into(),
        ];
        cells.extend(has_bits.then(|| bits.into()));
        let record = run.record.as_ref();
        cells.push(
            record
                .map_or_else(String::new, |it| it.started.clone())
                .into(),
        );
        Row::new(cells)
    });
    let mut columns = vec![
        Column::text("Run"),
        Column::text("Model"),
        Column::number("Parameters"),
        Column::number("Epochs"),
        Column::text("State"),
        Column::number("Valid"),
        Column::number("Test"),
    ];
    columns.extend(has_bits.then(|| Column::number("Bits/char")));
    columns.push(Column::text("Begun"));
    let mut notes = vec![
        "Valid: lowest validation perplexity so far. Test: perplexity of that epoch's model."
            .to_owned(),
    ];
    notes.extend(has_bits.then(|| {
        "Bits/char: bits for each character of the validation text, by which models of characters and of bytes are compared."
            .to_owned()
    }));
    Table {
        caption: format!("{}: {}", folder.display(), number::count(runs.len(), "run")),
        columns,
        rows: rows.collect(),
        notes,
    }
}

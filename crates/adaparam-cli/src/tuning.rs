//! `eval --tune`: numbers of what is bolted on, searched on the validation text.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use adaparam_data::text::Columns;
use adaparam_lm::{
    BoltOnResult, BoltOnResults, Evaluation, Grid, Limits, Scored, Scoring, ScoringKind,
    SearchText, Snapshot, nearest, tune, weights_sum,
};
use adaparam_report::number::{count, duration, grouped};
use adaparam_report::{Cell, Column, Row, Table};
use adaparam_runs::duration::parse_duration;
use anyhow::bail;
use clap::Args;

use crate::bolt_ons;
use crate::reading_progress::ReadingProgress;
use crate::say::{remark, terminal_width};
use crate::typed_number::whole_number;

/// The flags of a search.
#[derive(Debug, Clone, Args)]
pub(crate) struct TuneChoice {
    /// Search the numbers of these on the validation text (temperature, cache, dynamic; all three if none is named), and
    /// tell validation and test perplexity without and with them
    #[arg(long, value_name = "NAME", num_args = 0..=3, value_delimiter = ',',
          conflicts_with_all = ["tokens", "part", "cache", "temperature"])]
    tune: Option<Vec<String>>,
    /// End the search after this time, such as 10m, with the best so far
    #[arg(long, value_name = "TIME", requires = "tune", value_parser = parse_duration)]
    budget: Option<Duration>,
    /// Words of the validation text to search on; 0 for all
    #[arg(long, value_name = "N", requires = "tune", default_value_t = 50_000,
          value_parser = whole_number::<usize>(0..=u64::MAX), allow_negative_numbers = true)]
    tune_words: usize,
}

/// What is to be searched.
pub(crate) struct Search {
    kinds: Vec<ScoringKind>,
    budget: Option<Duration>,
    words: usize,
}

impl TuneChoice {
    /// What was asked for, and the model, which may have been taken for the last name.
    pub(crate) fn settle(
        &self,
        model: Option<PathBuf>,
    ) -> anyhow::Result<(Option<PathBuf>, Option<Search>)> {
        let Some(given) = &self.tune else {
            return Ok((model, None));
        };
        let mut given: Vec<&str> = given.iter().map(String::as_str).collect();
        let mut model = model;
        if let Some(&last) = given.last()
            && model.is_none()
            && searched(last).is_none()
            && Path::new(last).exists()
        {
            model = Some(PathBuf::from(last));
            given.pop();
        }
        let mut kinds = Vec::new();
        for name in given {
            let Some(known) = searched(name) else {
                let names = ScoringKind::SEARCHED.map(ScoringKind::name);
                let hint = nearest(name, names)
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                bail!("--tune {name}: must be one of {}{hint}", names.join(", "));
            };
            if !kinds.contains(&known) {
                kinds.push(known);
            }
        }
        if kinds.is_empty() {
            kinds = ScoringKind::SEARCHED.to_vec();
        }
        let search = Search {
            kinds,
            budget: self.budget,
            words: self.tune_words,
        };
        Ok((model, Some(search)))
    }
}

/// What can be searched, by the name that a person typed.
fn searched(name: &str) -> Option<ScoringKind> {
    let mut kinds = ScoringKind::SEARCHED.into_iter();
    kinds.find(|kind| kind.name() == name)
}

/// A model with its validation text as ids, and what reads whole parts.
pub(crate) struct Tuning<'a, F> {
    pub(crate) model: Scored<'a>,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) valid: &'a [u32],
    pub(crate) batch: usize,
    pub(crate) stop: &'a AtomicBool,
    /// The perplexities of validation and test text, scored so.
    pub(crate) evaluate: F,
}

/// What a search came to.
pub(crate) struct Searched {
    pub(crate) results: BoltOnResults,
    /// Of validation and test text, for each row of the results.
    pub(crate) evaluations: Vec<[Evaluation; 2]>,
}

impl Search {
    pub(crate) fn is_dynamic(&self) -> bool {
        self.kinds.contains(&ScoringKind::Dynamic)
    }

    /// The numbers that are tried on a text of so many rows; `start` is what the person says about dynamic evaluation.
    fn grid(&self, start: &Scoring, rows: usize) -> Grid {
        let mut grid = Grid::default();
        if let Some(dynamic) = &start.dynamic {
            grid.dynamic = dynamic.clone();
        }
        // A window longer than the text remembers no more than one that is as long.
        grid.windows.retain(|&window| window < rows);
        if grid.windows.is_empty() {
            grid.windows = vec![rows];
        }
        let has = |kind| self.kinds.contains(&kind);
        if !has(ScoringKind::Temperature) {
            grid.temperatures.clear();
        }
        if !has(ScoringKind::Cache) {
            grid.windows.clear();
        }
        if !has(ScoringKind::Dynamic) {
            grid.rates.clear();
        }
        grid
    }

    /// Searches, and reads both texts with the model alone and with the best of everything.
    pub(crate) fn run<F>(&self, start: &Scoring, tuning: Tuning<'_, F>) -> anyhow::Result<Searched>
    where
        F: FnMut(ScoringKind, &Scoring) -> anyhow::Result<[Evaluation; 2]>,
    {
        let Tuning {
            model,
            snapshot,
            valid,
            batch,
            stop,
            mut evaluate,
        } = tuning;
        let words = match self.words {
            0 => valid.len(),
            words => words.min(valid.len()),
        };
        if words < 2 * batch && valid.len() >= 2 * batch {
            bail!(
                "--tune-words {words}: must be at least {}, two words for each of {}; 0 is the whole validation text",
                2 * batch,
                count(batch, "column")
            );
        }
        let columns = Columns::new(&valid[..words], batch)?;
        let grid = self.grid(start, columns.rows());
        if let Some(&window) = grid.windows.last() {
            let largest = adaparam_lm::CacheSettings {
                window,
                ..adaparam_lm::CacheSettings::default()
            };
            bolt_ons::refuse_what_cannot_fit(&largest, model.spec.sizes().d_output, batch)?;
        }
        remark!("{}", told(&grid, &columns, self.budget));
        let limits = Limits {
            deadline: self.budget.map(|budget| Instant::now() + budget),
            stop,
        };
        let text = SearchText {
            columns: &columns,
            window: snapshot.config.train.window,
        };
        let mut progress: Option<(String, ReadingProgress)> = None;
        let tuned = tune(model, &grid, text, limits, |what, done, of| {
            if progress.as_ref().is_none_or(|(before, _)| before != what) {
                if let Some((_, before)) = &progress {
                    before.finish();
                }
                progress = Some((what.to_owned(), ReadingProgress::new(what)));
            }
            if let Some((_, progress)) = &mut progress {
                progress.at(done, of);
            }
        });
        if let Some((_, progress)) = &progress {
            progress.finish();
        }
        let tuned = tuned?;
        let (mut rows, mut evaluations) = (Vec::new(), Vec::new());
        let alone = (ScoringKind::Static, Scoring::default());
        for (kind, scoring) in [vec![alone], tuned.best].concat() {
            let [valid, test] = evaluate(kind, &scoring)?;
            evaluations.push([valid, test]);
            rows.push(BoltOnResult {
                kind,
                scoring,
                valid_perplexity: valid.perplexity(),
                test_perplexity: test.perplexity(),
                searched_words: None,
            });
        }
        let mut results = BoltOnResults {
            weights: weights_sum(snapshot),
            checkpoint: Some(snapshot.counters.name()),
            searched_words: columns.predictions(),
            is_complete: tuned.is_complete,
            rows,
        };
        if let Some((together, part)) = results.let_together_be_the_best() {
            evaluations[together] = evaluations[part];
        }
        Ok(Searched {
            results,
            evaluations,
        })
    }
}

/// The grid in words.
fn told(grid: &Grid, columns: &Columns, budget: Option<Duration>) -> String {
    let list = |values: &[f64]| {
        let shown = values.iter().map(|&value| {
            if value > 0.0 && value < 1e-3 {
                format!("{value:e}")
            } else {
                value.to_string()
            }
        });
        shown.collect::<Vec<String>>().join(" ")
    };
    let mut lines = vec![format!(
        "searching on {} words of the validation text{}{}",
        grouped(columns.predictions() as u64),
        match columns.batch() {
            1 => String::new(),
            batch => format!(" in {batch} columns"),
        },
        budget.map_or_else(String::new, |budget| {
            format!(", for at most {}", duration(budget.as_secs_f64()))
        }),
    )];
    if !grid.temperatures.is_empty() {
        lines.push(format!("  temperature: {}", list(&grid.temperatures)));
    }
    if !grid.windows.is_empty() {
        let windows: Vec<String> = grid.windows.iter().map(ToString::to_string).collect();
        lines.push(format!(
            "  cache: window {}; theta {}; lambda {}",
            windows.join(" "),
            list(&grid.thetas),
            list(&grid.lambdas)
        ));
    }
    if !grid.rates.is_empty() {
        lines.push(format!(
            "  dynamic: from rate {:e} along {} while it helps, then from decay {} along {}",
            grid.dynamic.rate,
            list(&grid.rates),
            grid.dynamic.decay,
            list(&grid.decays)
        ));
    }
    lines.join("\n")
}

/// What came out, for a terminal.
pub(crate) fn shown(results: &BoltOnResults) -> String {
    let rows = results.rows.iter().map(|row| {
        Row::new(vec![
            Cell::from(row.kind.name()),
            Cell::from(format!("{:.2}", row.valid_perplexity)),
            Cell::from(format!("{:.2}", row.test_perplexity)),
            Cell::from(flags(&row.scoring)),
        ])
    });
    let mut notes = vec![format!(
        "Numbers searched on {} words of the validation text; test perplexity takes no part.",
        grouped(results.searched_words as u64)
    )];
    if !results.is_complete {
        notes.push("The budget ended the search: numbers not tried may be better.".to_owned());
    }
    let table = Table {
        caption: "Perplexity without and with what is bolted on".to_owned(),
        columns: vec![
            Column::text("Scoring"),
            Column::number("Validation"),
            Column::number("Test"),
            Column::text("Flags"),
        ],
        rows: rows.collect(),
        notes,
    };
    table.to_terminal(terminal_width())
}

/// The flags that score so.
fn flags(scoring: &Scoring) -> String {
    let Scoring {
        dynamic,
        temperature,
        cache,
    } = scoring;
    let parts = [
        temperature.map(|it| format!("--temperature {it}")),
        cache.as_ref().map(|it| format!("--cache {it}")),
        dynamic.as_ref().map(|it| format!("--dynamic {it}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(tune: &[&str]) -> TuneChoice {
        TuneChoice {
            tune: Some(tune.iter().map(ToString::to_string).collect()),
            budget: None,
            tune_words: 0,
        }
    }

    #[test]
    fn a_model_after_the_flag_is_the_model() {
        let (model, search) = choice(&["cache", "."]).settle(None).unwrap();
        assert_eq!(model, Some(PathBuf::from(".")));
        assert_eq!(search.unwrap().kinds, [ScoringKind::Cache]);
        let (_, search) = choice(&[]).settle(None).unwrap();
        assert_eq!(search.unwrap().kinds, ScoringKind::SEARCHED);
        let error = choice(&["cashe"]).settle(Some(PathBuf::from("run"))).err();
        let error = error.unwrap().to_string();
        assert!(error.contains("did you mean `cache`?"), "{error}");
    }

    #[test]
    fn windows_are_not_longer_than_the_text() {
        let (_, search) = choice(&["cache"]).settle(None).unwrap();
        let windows = |rows| {
            search
                .as_ref()
                .unwrap()
                .grid(&Scoring::default(), rows)
                .windows
        };
        assert_eq!(windows(500), [100, 300]);
        assert_eq!(windows(60), [60]);
    }
}

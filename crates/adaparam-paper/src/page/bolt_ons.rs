//! What trained models come to with something bolted on.

use adaparam_lm::ScoringKind;
use adaparam_report::{Cell, Column, Row, Table};

use crate::experiment::Study;
use crate::result::Spread;

/// Perplexities with something bolted on, where any run has them.
pub(super) fn bolt_ons(study: &Study) -> Option<Table> {
    let mut is_complete = true;
    let rows = study.rows().into_iter().filter_map(|row| {
        let runs = study.collected.runs_of(row.key);
        let results: Vec<_> = runs.filter_map(|run| run.bolt_ons.as_ref()).collect();
        if results.is_empty() {
            return None;
        }
        is_complete &= results.iter().all(|results| results.is_complete);
        let scores = ScoringKind::ALL.map(|kind| {
            let found = results.iter().filter_map(|results| results.row(kind));
            let scores: Vec<[f64; 2]> = found
                .map(|row| [row.valid_perplexity, row.test_perplexity])
                .collect();
            match scores.len() {
                0 => Cell::from("—"),
                count => {
                    let median = |text: usize| Spread::of(scores.iter().map(|it| it[text])).median;
                    let cell = Cell::from(format!("{:.2} / {:.2}", median(0), median(1)));
                    if count == results.len() {
                        cell
                    } else {
                        cell.detail(format!("{count} of {} runs", results.len()))
                    }
                }
            }
        });
        let ends = [Cell::from(row.label)].into_iter().chain(scores);
        let runs = Cell::from(results.len().to_string());
        Some(Row::new(ends.chain([runs]).collect()))
    });
    let rows: Vec<Row> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    let scorings = ScoringKind::ALL.map(|kind| Column::number(kind.heading()));
    let mut notes = vec![
        "Validation / test perplexity, the median where several runs have it. Numbers of what is bolted on are searched on the \
         validation text (`adaparam eval RUN --tune`); the test text takes no part."
            .to_owned(),
    ];
    if !is_complete {
        notes.push(
            "A budget ended some of the searches: numbers not tried may be better.".to_owned(),
        );
    }
    Some(Table {
        caption: "With something bolted on".to_owned(),
        columns: [Column::text("Model")]
            .into_iter()
            .chain(scorings)
            .chain([Column::number("Runs")])
            .collect(),
        rows,
        notes,
    })
}

#[cfg(test)]
mod tests {
    use adaparam_lm::{BoltOnResult, BoltOnResults, Scoring};
    use adaparam_report::{Block, Report, Section};

    use super::*;
    use crate::page::trained::study;
    use crate::result::Scale;

    #[test]
    fn what_is_bolted_on_has_a_table_where_any_run_has_it() {
        let mut study = study(Scale::Small, "lstm,recurrent", |_| vec![5.0]);
        assert!(bolt_ons(&study).is_none());
        let row = |kind, valid_perplexity: f64| BoltOnResult {
            kind,
            scoring: Scoring::default(),
            valid_perplexity,
            test_perplexity: valid_perplexity - 1.0,
            searched_words: None,
        };
        study.collected.runs[0].bolt_ons = Some(BoltOnResults {
            weights: String::new(),
            checkpoint: None,
            searched_words: 1,
            is_complete: false,
            rows: vec![
                row(ScoringKind::Static, 90.0),
                row(ScoringKind::Cache, 80.5),
            ],
        });
        let table = bolt_ons(&study).unwrap();
        assert_eq!(table.rows.len(), 1);
        let report = Report {
            sections: vec![Section::new("").with(Block::Table(table))],
            ..Report::default()
        };
        let shown = report.to_html();
        for part in [
            "With something bolted on",
            "90.00 / 89.00",
            "80.50 / 79.50",
            "A budget ended",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}

//! What the paper says about its choices and its baseline without a table: models that differ in one choice each.

use adaparam::recurrent::LstmAdaptation::{Input, Io, Output};
use adaparam::recurrent::PolicyModel::Recurrent;
use adaparam::recurrent::{AdaptiveLstmSettings, InputTying, Summary, SvaLstmSettings};
use adaparam_lm::CellChoice;
use adaparam_lm::sweep::CollectedRun;
use adaparam_report::Verdict;

use super::judge::{Judge, NOT_ENDED};
use super::row::{LSTM, ModelRow, adaptive, hybrid, row};
use crate::claim::ClaimId;
use crate::decision;
use crate::result::{Claim, Spread};

/// “A percentage point change”.
const POINT: f64 = 0.01;
/// Overfitting is “severe” from so much higher a validation perplexity.
const SEVERE: f64 = 0.1;
/// What is “much more powerful” has at least so much lower a perplexity, which is what the ablation calls significant.
const MUCH: f64 = 0.01;

/// The models that findings set side by side.
pub(super) const COMPARED: [(&str, &str); 1] = [("lstm", "io")];

/// The LSTM with each choice that the paper speaks of, then the adaptive LSTM; the paper's own model is the last.
pub(super) fn rows() -> Vec<ModelRow> {
    let alstm = hybrid("io", "aLSTM, IO", "ptb-17m");
    vec![
        LSTM,
        LSTM.named("lstm-unclipped", "LSTM, gradients not clipped")
            .clipped(0.0),
        LSTM.named("lstm-more-dropout", "LSTM, dropout a point higher")
            .dropping_more_by(POINT),
        LSTM.named("lstm-less-dropout", "LSTM, dropout a point lower")
            .dropping_more_by(-POINT),
        LSTM.named("lstm-1", "LSTM, 1 layer")
            .made_by(&[("model.layers", "1")]),
        LSTM.named("lstm-3", "LSTM, 3 layers")
            .made_by(&[("model.layers", "3")]),
        LSTM.named("lstm-4", "LSTM, 4 layers")
            .made_by(&[("model.layers", "4")]),
        alstm
            .named("alstm-1", "aLSTM, IO, 1 layer")
            .made_by(&[("model.layers", "1")]),
        alstm
            .named("alstm-3", "aLSTM, IO, 3 layers")
            .made_by(&[("model.layers", "3")]),
        alstm
            .named("alstm-4", "aLSTM, IO, 4 layers")
            .made_by(&[("model.layers", "4")]),
        row("output", "aLSTM, output", "ptb-17m", |cell| {
            adaptive(cell, Recurrent, Summary::Hybrid, Output)
        }),
        row("input", "aLSTM, input", "ptb-17m", |cell| {
            adaptive(cell, Recurrent, Summary::Hybrid, Input)
        }),
        row("sva", "aLSTM, SVA, own layer", "ptb-17m", sva),
        row("own-io", "aLSTM, IO, own layer", "ptb-17m", |cell| {
            adaptive(cell, Recurrent, Summary::Own, Io)
        }),
        row("untied", "aLSTM, IO, untied", "ptb-17m", |cell| {
            let own = adaptive(cell, Recurrent, Summary::Hybrid, Io);
            CellChoice::of(&AdaptiveLstmSettings {
                tying: InputTying::Untied,
                ..own.get().unwrap_or_default()
            })
        }),
        alstm,
    ]
}

/// Singular values instead of rows and columns, with a policy of the same size.
fn sva(cell: &CellChoice) -> CellChoice {
    let own: AdaptiveLstmSettings = cell.get().unwrap_or_default();
    CellChoice::of(&SvaLstmSettings {
        latent: own.latent,
        ..SvaLstmSettings::default()
    })
}

impl Judge<'_> {
    pub(super) fn choices(&self) -> Vec<Claim> {
        vec![
            self.lower(
                ClaimId::ChoicesIoIsMorePowerful,
                MUCH,
                &[("io", "input"), ("io", "output")],
            ),
            self.lower(ClaimId::ChoicesLowRankHarms, 0.0, &[("own-io", "sva")]),
            self.sooner(ClaimId::ChoicesTyingConverges, "io", "untied"),
            self.all_fail(
                ClaimId::PtbLstmNeedsClipping,
                "lstm-unclipped",
                Some("lstm"),
            ),
            self.all_fail(ClaimId::PtbLstmNeedsLessDropout, "lstm", None),
            self.fragile(
                ClaimId::PtbRatesAreFragile,
                "lstm",
                &["lstm-more-dropout", "lstm-less-dropout"],
            ),
            self.lower(
                ClaimId::ChoicesMoreLayers,
                0.0,
                &[("io", "alstm-1"), ("alstm-3", "io"), ("alstm-4", "io")],
            ),
        ]
    }

    /// Whether a model is at another's best in an earlier epoch.
    fn sooner(&self, id: ClaimId, row: &str, other: &str) -> Claim {
        let rows = self.study.rows();
        let find = |key: &str| rows.iter().find(|row| row.key == key);
        let (Some(model), Some(rival)) = (find(row), find(other)) else {
            return self.open(id, NOT_ENDED);
        };
        let convergence = self.study.convergence(rival, model);
        let Some((theirs, _)) = convergence.of_other() else {
            return self.open(id, NOT_ENDED);
        };
        let epochs = |spread: &Spread| format!("{:.0}", spread.median);
        let ours = match convergence.of_model() {
            Some((ours, _, 0)) => format!("in epoch {}", epochs(&ours)),
            Some((ours, _, missing)) => {
                format!("in epoch {}, {missing} of the seeds never", epochs(&ours))
            }
            None => "never".to_owned(),
        };
        let verdict = convergence.is_earlier();
        let evidence = format!(
            "the best validation loss of “{}” comes in its epoch {}; “{}” is there {ours}{}",
            rival.label,
            epochs(&theirs),
            model.label,
            self.remarks(verdict, &[row, other])
        );
        self.verdict(id, verdict, evidence)
    }

    /// Whether every seed of a model fails to converge, and none of the other model, where there is one.
    fn all_fail(&self, id: ClaimId, row: &str, other: Option<&str>) -> Claim {
        let failures = |row: &str| -> Vec<bool> {
            let runs = self.study.collected.runs_of(row);
            runs.filter_map(CollectedRun::failed_to_converge).collect()
        };
        let (ended, others) = (failures(row), other.map(failures).unwrap_or_default());
        if ended.is_empty() || (other.is_some() && others.is_empty()) {
            return self.open(id, NOT_ENDED);
        }
        let failed = ended.iter().filter(|failed| **failed).count();
        let verdict = match (ended.len(), failed) {
            (1, _) => Verdict::NotDecided,
            (_, 0) => Verdict::NotMet,
            // Nothing is required by a model that does not converge with it either.
            (all, failed) if failed == all && !others.contains(&true) => Verdict::Met,
            _ => Verdict::NotDecided,
        };
        let beside = other.map_or_else(String::new, |other| {
            let words = self.perplexities(other).unwrap_or_default();
            format!(", beside {words} of “{}”", self.label(other))
        });
        let rows: Vec<&str> = [row].into_iter().chain(other).collect();
        let evidence = format!(
            "{failed} of {} fail to converge; validation perplexity {}{beside}{}",
            ended.len(),
            self.perplexities(row).unwrap_or_default(),
            self.remarks(verdict, &rows)
        );
        self.verdict(id, verdict, evidence)
    }

    /// Whether each neighbour of a model fails to converge or is so much worse that it overfits severely.
    fn fragile(&self, id: ClaimId, row: &str, neighbours: &[&str]) -> Claim {
        let Some(at_home) = self.spread(row) else {
            return self.open(id, NOT_ENDED);
        };
        let (mut verdicts, mut told) = (Vec::new(), Vec::new());
        for neighbour in neighbours {
            let (Some(moved), Some(words)) = (self.spread(neighbour), self.perplexities(neighbour))
            else {
                return self.open(id, NOT_ENDED);
            };
            let least = moved.map(|perplexity| perplexity / (1.0 + SEVERE));
            verdicts.push(decision::lower_by_ratio(&at_home, &least));
            told.push(format!("“{}” {words}", self.label(neighbour)));
        }
        let verdict = decision::all(verdicts);
        let rows: Vec<&str> = neighbours.iter().copied().chain([row]).collect();
        let evidence = format!(
            "validation perplexity of “{}” {}, of {}{}",
            self.label(row),
            self.perplexities(row).unwrap_or_default(),
            told.join(" and "),
            self.remarks(verdict, &rows)
        );
        self.verdict(id, verdict, evidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::made_up::{study, study_of_seeds};
    use crate::experiment::{Experiment, Study};
    use crate::result::Scale;

    use Verdict::{Met, NotDecided, NotJudged, NotMet, NotRun};

    /// Perplexities with which every sentence of the paper is right.
    fn as_the_paper_has_it(row: &str) -> f64 {
        match row {
            "lstm-unclipped" => 900.0,
            "lstm-more-dropout" | "lstm-less-dropout" => f64::INFINITY,
            "alstm-3" => 98.0,
            "alstm-4" => 97.0,
            "io" => 100.0,
            "own-io" => 105.0,
            _ => 110.0,
        }
    }

    fn of(perplexity: impl Fn(&str) -> f64) -> Study {
        study(Experiment::Choices, Scale::Small, |row, _| {
            Some(perplexity(row))
        })
    }

    fn verdict(study: &Study, id: ClaimId) -> Verdict {
        let claims = study.summarise().claims;
        let claim = claims.iter().find(|claim| claim.id == Some(id));
        claim.map(|claim| claim.verdict).unwrap()
    }

    #[test]
    fn each_sentence_is_met_by_the_papers_order_and_by_no_other() {
        let paper = of(as_the_paper_has_it);
        let opposite = of(|row| match row {
            "io" => 111.0,
            "own-io" => 112.0,
            "alstm-3" | "alstm-4" => 120.0,
            _ => 110.0,
        });
        for id in [
            ClaimId::ChoicesIoIsMorePowerful,
            ClaimId::ChoicesLowRankHarms,
            ClaimId::ChoicesTyingConverges,
            ClaimId::PtbLstmNeedsClipping,
            ClaimId::PtbRatesAreFragile,
            ClaimId::ChoicesMoreLayers,
        ] {
            assert_eq!(verdict(&paper, id), Met, "{id:?}");
            assert_eq!(verdict(&opposite, id), NotMet, "{id:?}");
        }
    }

    #[test]
    fn what_fails_to_converge_with_and_without_a_choice_says_nothing_about_it() {
        let none_converges = of(|row| match row {
            "lstm" | "lstm-unclipped" => 900.0,
            row => as_the_paper_has_it(row),
        });
        let clipping = ClaimId::PtbLstmNeedsClipping;
        assert_eq!(verdict(&none_converges, clipping), NotDecided);
        let dropout = ClaimId::PtbLstmNeedsLessDropout;
        assert_eq!(verdict(&none_converges, dropout), Met);
        assert_eq!(verdict(&of(as_the_paper_has_it), dropout), NotMet);
    }

    #[test]
    fn one_seed_decides_nothing_and_a_quick_run_judges_nothing() {
        let one = study_of_seeds(1, Experiment::Choices, Scale::Small, |row, _| {
            Some(as_the_paper_has_it(row))
        });
        let quick = study(Experiment::Choices, Scale::Quick, |row, _| {
            Some(as_the_paper_has_it(row))
        });
        let waiting = study(Experiment::Choices, Scale::Small, |_, _| None);
        for (study, expected) in [(one, NotDecided), (quick, NotJudged), (waiting, NotRun)] {
            for claim in study.summarise().claims {
                assert_eq!(
                    claim.verdict, expected,
                    "{}: {}",
                    claim.claim, claim.evidence
                );
            }
        }
    }

    #[test]
    fn a_row_differs_from_its_model_in_its_choice_alone() {
        let waiting = study(Experiment::Choices, Scale::Small, |_, _| None);
        let config = |row: &str| {
            let runs = &waiting.collected.manifest.runs;
            let run = runs.iter().find(|run| run.row == row).unwrap();
            run.config.clone()
        };
        let home = config("lstm");
        let unclipped = config("lstm-unclipped");
        assert!(home.train.clip > 0.0 && unclipped.train.clip == 0.0);
        assert_eq!(unclipped.model, home.model);
        let rates = |row: &str| config(row).train.dropout;
        let (here, more) = (rates("lstm"), rates("lstm-more-dropout"));
        for (rate, moved) in [(here.embedding, more.embedding), (here.output, more.output)] {
            assert!((moved - rate - POINT).abs() < 1e-9, "{rate} and {moved}");
        }
        assert_eq!(config("alstm-4").model.layers, 4);
        let untied: AdaptiveLstmSettings = config("untied").model.cell.get().unwrap();
        let tied: AdaptiveLstmSettings = config("io").model.cell.get().unwrap();
        assert_eq!(
            untied,
            AdaptiveLstmSettings {
                tying: InputTying::Untied,
                ..tied
            }
        );
    }
}

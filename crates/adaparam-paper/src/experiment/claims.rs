//! The paper's sentences about language models, judged by runs.

use adaparam_lm::sweep::{Collected, Manifest};
use adaparam_report::Verdict;

use super::Experiment;
use super::judge::{Judge, Published, perplexity};
use super::robustness::{PaperShares, RobustnessNumbers};
use super::study::Study;
use crate::claim::ClaimId;
use crate::decision::exceeded_if;
use crate::result::{Claim, Scale};

const AWD_LSTM_PTB: Published = Published {
    name: "AWD-LSTM",
    valid: 60.0,
    test: 57.3,
    size: 24.0,
    layers: 3,
    epochs: 500,
};
const AWD_LSTM_WIKITEXT_2: Published = Published {
    name: "AWD-LSTM",
    valid: 68.6,
    test: 65.8,
    size: 33.0,
    layers: 3,
    epochs: 700,
};
/// The test perplexity of the TG-SC LSTM of 24M parameters on the Penn Treebank.
const TG_SC_LSTM_PTB: f64 = 58.3;

/// What the paper calls significant is met from so much lower a perplexity; the least that it calls so is 1.5 %.
const SIGNIFICANT: f64 = 0.01;
/// A share "of about" so much is met within so many percentage points, and a little for rounding.
const SHARE_TOLERANCE: f64 = 0.1 + 1e-9;
/// Perplexities are "on the same level" within this share.
const LEVEL_TOLERANCE: f64 = 0.05;

pub(super) fn claims(study: &Study) -> Vec<Claim> {
    let judge = Judge { study };
    match study.experiment {
        Experiment::Ptb => judge.ptb(),
        Experiment::WikiText2 => judge.wikitext_2(),
        Experiment::Ablation => judge.ablation(),
        Experiment::Robustness => judge.robustness(),
        Experiment::Efficiency => judge.efficiency(),
        Experiment::Choices => judge.choices(),
    }
}

impl Experiment {
    /// The claims that the experiment would judge, before any of it was run.
    pub fn open_claims(self, scale: Scale) -> Vec<Claim> {
        claims(&Study {
            experiment: self,
            scale,
            collected: Collected {
                manifest: Manifest::new(self.name(), scale.name(), Vec::new()),
                runs: Vec::new(),
            },
        })
    }
}

impl Judge<'_> {
    fn ptb(&self) -> Vec<Claim> {
        vec![
            self.lower(
                ClaimId::PtbAnyAdaptation,
                0.0,
                &[("recurrent", "lstm"), ("static", "lstm")],
            ),
            self.fastest_and_best(ClaimId::PtbFastestAndBest, "recurrent", &["static", "lstm"]),
            self.lower(
                ClaimId::PtbRecurrentGeneralizesBetter,
                0.0,
                &[("recurrent", "static")],
            ),
            self.only_full(
                ClaimId::PtbFewerParameters,
                &["recurrent-14m", "lstm"],
                |judge| {
                    let (small, lstm) = (judge.valid("recurrent-14m")?, judge.valid("lstm")?);
                    let evidence = format!("validation perplexity {small:.1} against {lstm:.1}");
                    Some((small < lstm, evidence))
                },
            ),
            self.improves(
                ClaimId::PtbImprovesOnPublished,
                "recurrent",
                &AWD_LSTM_PTB,
                AWD_LSTM_PTB.epochs,
            ),
            self.only_full(ClaimId::PtbImprovesOnTgScLstm, &["recurrent"], |judge| {
                let test = judge.test("recurrent")?;
                let met = test <= (1.0 - SIGNIFICANT) * TG_SC_LSTM_PTB;
                Some((met, format!("test perplexity {test:.1}")))
            }),
            self.only_full(ClaimId::PtbAheadAfter144Epochs, &["recurrent"], |judge| {
                judge.below_by("recurrent", AWD_LSTM_PTB.valid, 144)
            }),
            self.only_full(ClaimId::PtbConvergesIn180Epochs, &["recurrent"], |judge| {
                let epoch = judge.best_epoch("recurrent")?;
                Some((epoch <= 180, format!("best epoch {epoch}")))
            }),
            self.improves(
                ClaimId::PtbStateOfTheArt,
                "recurrent",
                &AWD_LSTM_PTB,
                AWD_LSTM_PTB.epochs / 2,
            ),
            self.bolt_ons_apply(ClaimId::PtbBoltOnsApply),
        ]
    }

    fn wikitext_2(&self) -> Vec<Claim> {
        vec![
            self.lower(
                ClaimId::Wikitext2StatisticalEfficiency,
                SIGNIFICANT,
                &[("recurrent", "lstm")],
            ),
            self.only_full(
                ClaimId::Wikitext2AheadIn150Epochs,
                &["recurrent", "recurrent-32m"],
                |judge| {
                    let published = AWD_LSTM_WIKITEXT_2.valid;
                    let (small, one) = judge.below_by("recurrent", published, 150)?;
                    let (large, other) = judge.below_by("recurrent-32m", published, 150)?;
                    Some((small && large, format!("27M: {one}; 32M: {other}")))
                },
            ),
            self.only_full(
                ClaimId::Wikitext2ConvergesIn190Epochs,
                &["recurrent", "recurrent-32m"],
                |judge| {
                    let (small, large) = (judge.test("recurrent")?, judge.test("recurrent-32m")?);
                    let met = small.max(large) < AWD_LSTM_WIKITEXT_2.test;
                    Some((met, format!("test perplexity {small:.1} and {large:.1}")))
                },
            ),
            self.improves(
                ClaimId::Wikitext2StateOfTheArt,
                "recurrent",
                &AWD_LSTM_WIKITEXT_2,
                AWD_LSTM_WIKITEXT_2.epochs / 2,
            ),
        ]
    }

    fn ablation(&self) -> Vec<Claim> {
        let adaptive = [
            "static-output",
            "lstm-output",
            "hybrid-output",
            "static-io",
            "lstm-io",
            "hybrid-io",
        ];
        vec![
            self.lower(
                ClaimId::AblationAnyAdaptation,
                SIGNIFICANT,
                &adaptive.map(|row| (row, "lstm")),
            ),
            self.lower(
                ClaimId::AblationRecurrentPolicy,
                SIGNIFICANT,
                &[("lstm-output", "static-output"), ("lstm-io", "static-io")],
            ),
            self.lower(
                ClaimId::AblationHybridBoost,
                0.0,
                &[("hybrid-output", "lstm-output"), ("hybrid-io", "lstm-io")],
            ),
            self.lower(
                ClaimId::AblationIoAdaptation,
                SIGNIFICANT,
                &[
                    ("static-io", "static-output"),
                    ("lstm-io", "lstm-output"),
                    ("hybrid-io", "hybrid-output"),
                ],
            ),
        ]
    }

    fn robustness(&self) -> Vec<Claim> {
        let collected = &self.study.collected;
        let on_wikitext_2 = self.study.is_on_wikitext_2();
        let numbers = RobustnessNumbers::of(collected);
        let is_whole = collected.missing().next().is_none();
        let judged = |id: ClaimId, judge: &dyn Fn(&RobustnessNumbers) -> (Verdict, String)| {
            let Some(numbers) = &numbers else {
                return self.open(id, "no run of both models has ended");
            };
            let (verdict, evidence) = judge(numbers);
            let draws = format!("{} LSTMs, {} aLSTMs", numbers.lstm_runs, numbers.alstm_runs);
            let evidence = format!("{evidence} ({draws})");
            if is_whole {
                self.verdict(id, verdict, evidence)
            } else {
                self.open(id, &format!("{evidence}; draws are missing"))
            }
        };
        let met = |met: bool| if met { Verdict::Met } else { Verdict::NotMet };
        // Near the paper's share, or beyond it.
        let share_of = |share: f64, paper: f64| {
            let verdict = met(share >= paper - SHARE_TOLERANCE);
            exceeded_if(verdict, share > paper + SHARE_TOLERANCE)
        };
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let paper = PaperShares::on(on_wikitext_2);
        let mut claims = vec![
            judged(ClaimId::RobustnessAlstmIsTight, &|numbers| {
                let width = |low: f64, high: f64| match high {
                    high if high.is_finite() => high - low,
                    _ => f64::INFINITY,
                };
                let alstm = width(numbers.alstm_10th, numbers.alstm_90th);
                let lstm = width(numbers.lstm_10th, numbers.lstm_90th);
                let evidence = format!(
                    "validation perplexity of the aLSTMs from {} to {}, of the LSTMs from {} to {}",
                    perplexity(numbers.alstm_10th),
                    perplexity(numbers.alstm_90th),
                    perplexity(numbers.lstm_10th),
                    perplexity(numbers.lstm_90th)
                );
                (met(alstm < lstm), evidence)
            }),
            judged(ClaimId::RobustnessAlstmConverges, &|numbers| {
                let share = numbers.alstm_failed;
                let evidence = format!("{} of the aLSTMs fail to converge", percent(share));
                (met(share == 0.0), evidence)
            }),
            judged(
                if on_wikitext_2 {
                    ClaimId::RobustnessWikitext2LstmFails
                } else {
                    ClaimId::RobustnessPtbLstmFails
                },
                &|numbers| {
                    let share = numbers.lstm_failed;
                    let evidence = format!("{} of the LSTMs fail to converge", percent(share));
                    (share_of(share, paper.lstm_failed), evidence)
                },
            ),
            judged(
                if on_wikitext_2 {
                    ClaimId::RobustnessWikitext2LstmBelowWorst
                } else {
                    ClaimId::RobustnessPtbLstmBelowWorst
                },
                &|numbers| {
                    let share = numbers.lstm_worse_than_worst;
                    let evidence = format!(
                        "{} of the LSTMs are no better than the worst aLSTM",
                        percent(share)
                    );
                    (share_of(share, paper.lstm_worse_than_worst), evidence)
                },
            ),
        ];
        // The paper says nothing of percentiles on WikiText-2.
        if !on_wikitext_2 {
            claims.push(judged(ClaimId::RobustnessSameLevel, &|numbers| {
                let (alstm, lstm) = (numbers.alstm_90th, numbers.lstm_10th);
                let verdict = exceeded_if(
                    met(alstm <= (1.0 + LEVEL_TOLERANCE) * lstm),
                    alstm < (1.0 - LEVEL_TOLERANCE) * lstm,
                );
                let evidence = format!(
                    "90th percentile of the aLSTMs {}, 10th of the LSTMs {}",
                    perplexity(alstm),
                    perplexity(lstm)
                );
                (verdict, evidence)
            }));
        }
        claims
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use adaparam_lm::TextSource;
    use adaparam_lm::sweep::{CollectedRun, Ending, RunState};

    use Verdict::{Exceeded, Met, NotDecided, NotJudged, NotMet, NotRun};

    use super::*;
    use crate::claim::{JudgedBy, assert_all_judged};
    use crate::experiment::made_up::{UNIGRAM, progress, study, study_of_seeds, study_of_systems};
    use crate::experiment::scale::PAPER_EPOCHS;
    use crate::experiment::{PlanChoices, Systems};

    fn on_wikitext_2(study: &mut Study) {
        for run in &mut study.collected.manifest.runs {
            run.config.data.set = TextSource::WikiText2;
        }
    }

    fn verdicts(study: &Study) -> Vec<Verdict> {
        let claims = study.summarise().claims;
        claims.iter().map(|claim| claim.verdict).collect()
    }

    /// Table 4's validation perplexities.
    fn table_4(row: &str) -> f64 {
        match row {
            "lstm" => 71.7,
            "static-output" => 66.0,
            "lstm-output" => 59.9,
            "hybrid-output" => 59.7,
            "static-io" => 61.6,
            "lstm-io" => 59.0,
            _ => 58.5,
        }
    }

    #[test]
    fn the_papers_own_numbers_meet_its_claims() {
        let ablation = study(Experiment::Ablation, Scale::Small, |row, _| {
            Some(table_4(row))
        });
        assert_eq!(verdicts(&ablation), [Met; 4]);
        // Only the paper's sizes can judge the six claims about published models.
        let ptb = study(Experiment::Ptb, Scale::Small, |row, _| {
            Some(match row {
                "lstm" => 71.7,
                "static" => 60.2,
                _ => 58.7,
            })
        });
        assert_eq!(verdicts(&ptb)[..3], [Met; 3]);
        assert_eq!(verdicts(&ptb)[3..9], [NotJudged; 6]);
    }

    #[test]
    fn an_experiment_that_was_not_run_has_the_same_claims_without_a_verdict() {
        for experiment in Experiment::ALL {
            let open = experiment.open_claims(Scale::Small);
            let run = study(experiment, Scale::Small, |_, _| Some(60.0));
            let sentences = |claims: Vec<Claim>| -> Vec<String> {
                claims.into_iter().map(|claim| claim.claim).collect()
            };
            assert!(
                open.iter()
                    .all(|claim| matches!(claim.verdict, NotRun | NotJudged))
            );
            assert_eq!(sentences(open), sentences(run.summarise().claims));
        }
    }

    #[test]
    fn every_experiment_judges_its_sentences_and_no_other() {
        for experiment in Experiment::ALL {
            let mut run = study(experiment, Scale::Small, |_, _| Some(60.0));
            let mut judged = run.summarise().claims;
            if experiment == Experiment::Robustness {
                on_wikitext_2(&mut run);
                judged.extend(run.summarise().claims);
            }
            assert_all_judged(JudgedBy::LanguageModels(experiment), &judged);
        }
    }

    /// The paper's numbers at its sizes, and models of 17.2M parameters.
    fn of_17m(systems: &str) -> Study {
        let systems = Systems::parse(systems);
        let mut ptb = study_of_systems(systems, 2, Experiment::Ptb, Scale::Full, |row, _| {
            Some(match row {
                "lstm" => 71.7,
                "static" => 60.2,
                "recurrent-14m" => 59.6,
                "recurrent" => 57.2,
                _ => 57.6,
            })
        });
        for run in &mut ptb.collected.runs {
            let outcome = run.progress.outcome.as_mut().unwrap();
            if let Ending::Finished { result } = &mut outcome.ending {
                result.parameters = 17_200_000;
            }
        }
        ptb
    }

    #[test]
    fn the_papers_own_models_meet_the_claims_about_published_ones() {
        // The schedules of systems of others, some of which are shorter than the paper's, say nothing about its own models.
        for systems in ["all", "paper", "own"] {
            let ptb = of_17m(systems);
            assert_eq!(verdicts(&ptb)[..9], [Met; 9], "{systems}");
        }
        let shortest = |study: &Study| {
            let runs = study.collected.manifest.runs.iter();
            runs.map(|run| run.config.train.epochs).min().unwrap()
        };
        assert!(shortest(&of_17m("paper")) < PAPER_EPOCHS);
        let mut ptb = of_17m("own");
        // With as many parameters as the AWD-LSTM it is no smaller.
        for run in &mut ptb.collected.runs {
            let outcome = run.progress.outcome.as_mut().unwrap();
            if let Ending::Finished { result } = &mut outcome.ending {
                result.parameters = 24_000_000;
            }
        }
        assert_eq!(verdicts(&ptb)[4], NotMet);
        assert_eq!(verdicts(&ptb)[8], NotMet);
        // A short schedule judges the order of models, and nothing about the paper's numbers.
        for run in &mut ptb.collected.manifest.runs {
            run.config.train.epochs = 6;
        }
        assert_eq!(verdicts(&ptb)[..3], [Met; 3]);
        assert_eq!(verdicts(&ptb)[3..9], [NotJudged; 6]);
    }

    #[test]
    fn bolt_ons_apply_if_they_do_for_the_adaptive_model_what_they_do_for_the_lstm() {
        use adaparam_lm::{BoltOnResult, BoltOnResults, Scoring, ScoringKind};

        let judged = |seeds: u64, alstm_with_cache: f64| {
            let choices = PlanChoices {
                scale: Scale::Small,
                seeds,
                draws: None,
                systems: Systems::parse("lstm,lstm-mos,recurrent,recurrent-mos"),
                changes: Vec::new(),
            };
            let manifest = Experiment::Ptb.plan(&choices, Path::new("")).unwrap();
            let runs = manifest.runs.iter().map(|spec| {
                let is_adaptive = spec.row.starts_with("recurrent");
                let is_mixture = spec.row.ends_with("-mos");
                let row = |kind, test_perplexity: f64| BoltOnResult {
                    kind,
                    scoring: Scoring::default(),
                    valid_perplexity: 1.0,
                    test_perplexity,
                    searched_words: None,
                };
                let with_cache = if is_adaptive { alstm_with_cache } else { 90.0 };
                CollectedRun {
                    progress: progress(Some(if is_mixture { 97.0 } else { 101.0 })),
                    record: None,
                    bolt_ons: (!is_mixture).then(|| BoltOnResults {
                        weights: String::new(),
                        checkpoint: None,
                        searched_words: 1,
                        is_complete: true,
                        rows: vec![
                            row(ScoringKind::Static, 100.0),
                            row(ScoringKind::Cache, with_cache),
                            row(ScoringKind::Dynamic, 92.0),
                        ],
                    }),
                    spec: spec.clone(),
                }
            });
            let study = Study {
                experiment: Experiment::Ptb,
                scale: Scale::Small,
                collected: Collected {
                    runs: runs.collect(),
                    manifest: manifest.clone(),
                },
            };
            let claim = study.summarise().claims.pop().unwrap();
            assert_eq!(claim.id, Some(ClaimId::PtbBoltOnsApply));
            (claim.verdict, claim.evidence)
        };
        assert_eq!(judged(2, 91.0).0, Met);
        assert!(
            judged(2, 91.0).1.contains("a cache takes 9.0"),
            "{}",
            judged(2, 91.0).1
        );
        assert_eq!(judged(2, 97.0).0, NotMet);
        assert_eq!(judged(1, 91.0).0, NotDecided);
        let none = study(Experiment::Ptb, Scale::Small, |_, _| Some(60.0));
        let claim = none.summarise().claims.pop().unwrap();
        assert_eq!(claim.verdict, NotRun);
        assert!(
            claim.evidence.contains("not recorded for both"),
            "{claim:?}"
        );
    }

    #[test]
    fn a_gain_below_one_per_cent_is_not_significant() {
        let close = study(Experiment::Ablation, Scale::Small, |row, _| {
            Some(if row == "lstm-io" { 61.3 } else { table_4(row) })
        });
        let claim = &close.summarise().claims[1];
        assert_eq!(claim.verdict, NotMet);
        assert!(
            claim.evidence.starts_with(
                "Penn Treebank, small scale: validation perplexity of aLSTM, LSTM, output"
            ),
            "{claim:?}"
        );
        assert!(
            claim.evidence.contains(
                "aLSTM, LSTM, IO 61.3 (61.3–61.3) against aLSTM, feed-forward, IO 61.6 (61.6–61.6), 0.5\u{a0}% lower \
                 (95\u{a0}% interval of the difference −0.5 to −0.5\u{a0}%) (2 seeds of each)"
            ),
            "{claim:?}"
        );
    }

    #[test]
    fn diverged_runs_count_in_curves_and_medians() {
        // Of three LSTMs two diverge: the median one has no curve to its end, and reaches no level.
        let seeds = |diverged: &'static str| {
            let choices = PlanChoices {
                scale: Scale::Small,
                seeds: 3,
                draws: None,
                systems: Systems::Own,
                changes: Vec::new(),
            };
            let manifest = Experiment::Ptb.plan(&choices, Path::new("")).unwrap();
            let runs = manifest.runs.iter().map(|spec| CollectedRun {
                progress: progress(Some(match spec.row.as_str() {
                    row if row == diverged && spec.seed > 1 => f64::INFINITY,
                    "lstm" => 70.0,
                    "static" => 60.0,
                    _ => 50.0,
                })),
                record: None,
                bolt_ons: None,
                spec: spec.clone(),
            });
            Study {
                experiment: Experiment::Ptb,
                scale: Scale::Small,
                collected: Collected {
                    runs: runs.collect(),
                    manifest,
                },
            }
        };
        assert_eq!(verdicts(&seeds("lstm"))[..3], [Met; 3]);
        let claim = &seeds("lstm").summarise().claims[0];
        assert!(
            claim
                .evidence
                .contains("aLSTM, recurrent policy 50.0 (50.0–50.0) against LSTM ∞"),
            "{claim:?}"
        );
        assert_eq!(verdicts(&seeds("recurrent"))[..3], [NotMet; 3]);
        // A run that diverges late has good epochs, and comes to nothing all the same.
        let mut late = seeds("recurrent");
        for run in &mut late.collected.runs {
            if run.progress.state == RunState::Diverged {
                run.progress.epochs = progress(Some(40.0)).epochs;
            }
        }
        assert_eq!(verdicts(&late)[..3], [NotMet; 3]);
    }

    #[test]
    fn evidence_about_curves_is_a_sentence() {
        let whole = study(Experiment::Ptb, Scale::Small, |row, _| {
            Some(match row {
                "lstm" => 71.7,
                "static" => 60.2,
                _ => 50.0,
            })
        });
        let claims = whole.summarise().claims;
        let told = claims
            .iter()
            .map(|claim| claim.evidence.as_str())
            .find(|evidence| evidence.contains("lowest validation loss"));
        let told = told.unwrap();
        assert!(
            told.contains("the lowest validation loss of “aLSTM, recurrent policy” is ")
                && told.contains(" reaches the best of “"),
            "{told}"
        );
    }

    #[test]
    fn a_claim_that_does_not_hold_is_not_met() {
        let worse = study(Experiment::Ablation, Scale::Small, |row, _| {
            Some(if row == "hybrid-io" {
                59.5
            } else {
                table_4(row)
            })
        });
        assert_eq!(verdicts(&worse), [Met, Met, NotMet, NotMet]);
        let diverged = study(Experiment::Ablation, Scale::Small, |row, _| {
            Some(if row == "static-io" {
                f64::INFINITY
            } else {
                table_4(row)
            })
        });
        assert_eq!(verdicts(&diverged)[0], NotMet);
    }

    #[test]
    fn quick_runs_and_missing_ones_judge_nothing() {
        let quick = study(Experiment::Ablation, Scale::Quick, |row, _| {
            Some(table_4(row))
        });
        assert_eq!(verdicts(&quick), [NotJudged; 4]);
        let missing = study(Experiment::Ablation, Scale::Small, |row, _| {
            (row != "hybrid-io").then(|| table_4(row))
        });
        assert_eq!(verdicts(&missing), [NotRun, Met, NotRun, NotRun]);
    }

    #[test]
    fn the_statements_of_the_robustness_study_are_counted() {
        // Of ten LSTMs two diverge, one learns nothing, two more are no better than the worst aLSTM.
        let lstm = [
            f64::INFINITY,
            f64::INFINITY,
            UNIGRAM,
            130.0,
            120.0,
            115.0,
            112.0,
            111.0,
            110.0,
            109.0,
        ];
        let robustness = study(Experiment::Robustness, Scale::Small, |row, draw| {
            Some(if row == "lstm" {
                lstm[draw as usize]
            } else {
                111.0 + draw as f64
            })
        });
        let numbers = RobustnessNumbers::of(&robustness.collected).unwrap();
        let near = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        };
        near(numbers.lstm_failed, 0.3);
        near(numbers.alstm_failed, 0.0);
        near(numbers.lstm_worse_than_worst, 0.5);
        near(numbers.alstm_90th, 119.1);
        near(numbers.lstm_10th, 109.9);
        // The last is met only within 5 %: 119.1 / 109.9 is 8 % above.
        assert_eq!(verdicts(&robustness), [Met, Met, Met, Met, NotMet]);
    }

    #[test]
    fn on_wikitext_2_the_papers_shares_are_others() {
        // Of ten LSTMs five diverge and three more are no better than the worst aLSTM: the paper's numbers there.
        let mut robustness = study(Experiment::Robustness, Scale::Small, |row, draw| {
            Some(match (row, draw) {
                ("lstm", 0..5) => f64::INFINITY,
                ("lstm", 5..8) => 130.0,
                ("lstm", _) => 105.0,
                _ => 100.0 + draw as f64,
            })
        });
        assert_eq!(verdicts(&robustness)[2..4], [Exceeded; 2]);
        on_wikitext_2(&mut robustness);
        assert_eq!(verdicts(&robustness)[2..4], [Met; 2]);
    }

    #[test]
    fn every_lstm_below_the_worst_adaptive_one_is_more_than_the_paper_says() {
        let robustness = study(Experiment::Robustness, Scale::Small, |row, draw| {
            Some(if row == "lstm" { 380.0 } else { 340.0 } + draw as f64)
        });
        assert_eq!(verdicts(&robustness)[2..], [NotMet, Exceeded, Exceeded]);
    }

    #[test]
    fn one_seed_and_seeds_that_differ_more_than_models_decide_nothing() {
        let one = study_of_seeds(1, Experiment::Ablation, Scale::Small, |row, _| {
            Some(table_4(row))
        });
        assert_eq!(verdicts(&one), [NotDecided; 4]);
        let claim = &one.summarise().claims[0];
        assert!(
            claim
                .evidence
                .ends_with("(1 seed of each); one seed decides nothing."),
            "{claim:?}"
        );
        let mut wide = study(Experiment::Ptb, Scale::Small, |row, _| {
            Some(match row {
                "lstm" => 71.7,
                "static" => 60.2,
                _ => 60.19,
            })
        });
        assert_eq!(verdicts(&wide)[..3], [Met, NotDecided, NotDecided]);
        let claim = &wide.summarise().claims[2];
        assert!(
            claim
                .evidence
                .ends_with("the spread over seeds is larger than the difference."),
            "{claim:?}"
        );
        // The paper's sentences are about its own texts.
        for run in &mut wide.collected.manifest.runs {
            run.config.data.set = TextSource::MobyDick;
        }
        assert_eq!(verdicts(&wide)[..9], [NotJudged; 9]);
    }
}

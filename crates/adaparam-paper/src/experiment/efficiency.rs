//! How much less an adaptive LSTM needs to be as good as the LSTM: parameters, words, epochs and hours.

use adaparam_lm::sweep::{CollectedRun, RunState};
use adaparam_report::{Verdict, number};

use super::curve::{Reached, first_reached};
use super::judge::{Judge, NOT_ENDED};
use super::portion::MODELS;
use super::row::ModelRow;
use super::saving::Saving;
use super::study::{Study, parameters};
use crate::claim::ClaimId;
use crate::decision;
use crate::result::Claim;

/// The paper's “30–50 % fewer parameters”.
const PAPER_SHARE: (f64, f64) = (0.3, 0.5);
/// More than the paper says from so much above it.
const SHARE_TOLERANCE: f64 = 0.1;
const OUTSIDE: &str = "every perplexity of the LSTM lies outside of what the aLSTMs reach, and nothing is extrapolated";

/// What grows along a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Along {
    /// Parameters, on all of the text.
    Parameters,
    /// Words, in one size.
    Words,
}

impl Along {
    /// What it counts.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Words => "words",
        }
    }

    /// What an LSTM is like that has an amount of it.
    fn lstm_with(self, amount: f64) -> String {
        match self {
            Self::Parameters => format!("of {}", self.amount(amount)),
            Self::Words => format!("on {}", self.amount(amount)),
        }
    }

    /// An amount in words.
    pub(crate) fn amount(self, amount: f64) -> String {
        match self {
            Self::Parameters => number::short(amount),
            Self::Words => format!("{}\u{a0}% of the text", number::short(amount)),
        }
    }
}

impl Study {
    /// The rows of a model along a curve, by rising amounts: on all of the text, or in the size that has less of it.
    pub(crate) fn rows_along(&self, along: Along, model: &str) -> Vec<ModelRow> {
        let rows = self.rows();
        let portions = rows.iter().filter_map(|row| row.portion);
        let of_part = portions.filter(|portion| !portion.is_of_whole_text());
        let size = of_part.map(|portion| portion.size).next();
        let mut along: Vec<ModelRow> = rows
            .into_iter()
            .filter(|row| {
                row.portion.is_some_and(|portion| {
                    portion.model == model
                        && match along {
                            Along::Parameters => portion.is_of_whole_text(),
                            Along::Words => Some(portion.size) == size,
                        }
                })
            })
            .collect();
        // Sizes stand in their order; of words the whole comes before its parts.
        along.sort_by_key(|row| row.portion.map(|portion| portion.percent));
        along
    }

    /// How much of what grows along a curve a row has.
    pub(crate) fn amount(&self, along: Along, row: &ModelRow) -> Option<f64> {
        match along {
            Along::Words => Some(row.portion?.percent as f64),
            Along::Parameters => {
                let runs: Vec<&CollectedRun> = self.collected.runs_of(row.key).collect();
                let counted = runs.iter().find_map(|run| Some(run.finished()?.parameters));
                let count = counted.or_else(|| parameters(&runs.first()?.spec.config))?;
                Some(count as f64)
            }
        }
    }

    /// The best validation perplexity of the run of a row with a seed, if it has ended; infinite if it diverged.
    fn perplexity_of(&self, row: &ModelRow, seed: u64) -> Option<f64> {
        let run = self.run_of(row, seed)?;
        match run.progress.state {
            RunState::Diverged => Some(f64::INFINITY),
            _ => Some(run.finished()?.valid_perplexity),
        }
    }

    pub(super) fn run_of(&self, row: &ModelRow, seed: u64) -> Option<&CollectedRun> {
        let mut runs = self.collected.runs_of(row.key);
        runs.find(|run| run.spec.seed == seed)
    }

    pub(super) fn seeds_of(&self, row: &ModelRow) -> Vec<u64> {
        let runs = self.collected.runs_of(row.key);
        runs.map(|run| run.spec.seed).collect()
    }

    /// What a model needs for the perplexity of an LSTM, of each seed whose runs have ended as far as they tell.
    pub(crate) fn saving(&self, along: Along, model: &str, lstm: &ModelRow) -> Option<Saving> {
        let rows = self.rows_along(along, model);
        let of = self.amount(along, lstm)?;
        let of_seed = |seed: u64| {
            let level = self.perplexity_of(lstm, seed)?;
            let curve: Vec<(f64, Option<f64>)> = rows
                .iter()
                .filter_map(|row| Some((self.amount(along, row)?, self.perplexity_of(row, seed))))
                .collect();
            Some((first_reached(&curve, level)?, of))
        };
        let seeds: Vec<(Reached, f64)> = self
            .seeds_of(lstm)
            .into_iter()
            .filter_map(of_seed)
            .collect();
        (!seeds.is_empty()).then_some(Saving { along, seeds })
    }

    /// What a model needs for the perplexity of each LSTM: `40 % fewer (38–42 %) for the LSTM of 1M; …`.
    pub(crate) fn savings_in_words(&self, along: Along, model: &str) -> Option<String> {
        let parts: Vec<String> = self
            .rows_along(along, LSTM)
            .iter()
            .filter_map(|lstm| {
                let saving = self.saving(along, model, lstm)?;
                let lstm = along.lstm_with(self.amount(along, lstm)?);
                Some(format!("{} for the LSTM {lstm}", saving.in_words()))
            })
            .collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// The model of the paper's sentences.
const ALSTM: &str = MODELS[2].key;
const LSTM: &str = MODELS[0].key;

impl Judge<'_> {
    pub(super) fn efficiency(&self) -> Vec<Claim> {
        vec![
            self.fewer_parameters(ClaimId::EfficiencyFewerParameters),
            self.faster_and_more_efficient(ClaimId::EfficiencyFasterAndMoreEfficient),
        ]
    }

    /// Every LSTM with what the aLSTM needs along a curve, in words; nothing while a row of either has no run that has ended.
    fn savings(&self, along: Along) -> Option<Vec<(ModelRow, Saving)>> {
        let study = self.study;
        let rows = study.rows_along(along, LSTM);
        let adaptive = study.rows_along(along, ALSTM);
        let has_ended = |row: &ModelRow| {
            let mut runs = study.collected.runs_of(row.key);
            runs.any(|run| run.progress.state.is_ended())
        };
        if rows.is_empty() || !rows.iter().chain(&adaptive).all(has_ended) {
            return None;
        }
        let saving = |row: ModelRow| Some((row, study.saving(along, ALSTM, &row)?));
        rows.into_iter().map(saving).collect()
    }

    /// Whether the aLSTM needs at least as many parameters less as the paper says, for every LSTM whose perplexity tells.
    fn fewer_parameters(&self, id: ClaimId) -> Claim {
        let Some(savings) = self.savings(Along::Parameters) else {
            return self.open(id, NOT_ENDED);
        };
        let (fewest, most) = PAPER_SHARE;
        let judged: Vec<(&Saving, Verdict)> = savings
            .iter()
            .filter_map(|(_, saving)| Some((saving, saving.at_least(fewest)?)))
            .collect();
        let told = self.study.savings_in_words(Along::Parameters, ALSTM);
        let evidence = format!(
            "for the same validation perplexity the aLSTM needs so many parameters: {}",
            told.unwrap_or_default()
        );
        if judged.is_empty() {
            let evidence = format!("{evidence}; {OUTSIDE}");
            return self.verdict(id, Verdict::NotDecided, evidence);
        }
        let verdict = decision::all(judged.iter().map(|(_, verdict)| *verdict));
        let above: Vec<bool> = judged
            .iter()
            .filter_map(|(saving, _)| saving.is_above(most + SHARE_TOLERANCE))
            .collect();
        let exceeds = !above.is_empty() && above.iter().all(|is_above| *is_above);
        let verdict = decision::exceeded_if(verdict, exceeds);
        let evidence = format!(
            "{evidence}{}",
            self.remarks(verdict, &self.keys(Along::Parameters))
        );
        self.verdict(id, verdict, evidence)
    }

    /// Whether the aLSTM of each size is at the LSTM's best in an earlier epoch, and needs fewer words.
    fn faster_and_more_efficient(&self, id: ClaimId) -> Claim {
        let (Some(_), Some(by_words)) =
            (self.savings(Along::Parameters), self.savings(Along::Words))
        else {
            return self.open(id, NOT_ENDED);
        };
        let study = self.study;
        let pairs = study
            .rows_along(Along::Parameters, LSTM)
            .into_iter()
            .zip(study.rows_along(Along::Parameters, ALSTM));
        let (mut verdicts, mut epochs) = (Vec::new(), Vec::new());
        for (lstm, alstm) in pairs {
            let convergence = study.convergence(&lstm, &alstm);
            // An LSTM that diverged has no best to reach.
            let Some((theirs, _)) = convergence.of_other() else {
                continue;
            };
            verdicts.push(convergence.is_earlier());
            let size = lstm.portion.map_or("", |portion| portion.size);
            epochs.push(match convergence.of_model() {
                Some((ours, _, 0)) => format!(
                    "{size} in epoch {} instead of {}",
                    number::short(ours.median),
                    number::short(theirs.median)
                ),
                Some((_, _, missing)) => {
                    format!("{size} not in {}", number::count(missing, "seed"))
                }
                None => format!("{size} never"),
            });
        }
        verdicts.extend(
            by_words
                .iter()
                .filter_map(|(_, saving)| saving.at_least(0.0)),
        );
        let words = study.savings_in_words(Along::Words, ALSTM);
        let verdict = decision::all(verdicts);
        let rows = [self.keys(Along::Parameters), self.keys(Along::Words)].concat();
        let evidence = format!(
            "the aLSTM is at the best validation perplexity of the LSTM of {}; for the same validation perplexity it needs so many \
             words: {}{}",
            epochs.join(", "),
            words.unwrap_or_default(),
            self.remarks(verdict, &rows)
        );
        self.verdict(id, verdict, evidence)
    }

    /// The rows of both models along a curve.
    fn keys(&self, along: Along) -> Vec<&'static str> {
        let rows = [LSTM, ALSTM].map(|model| self.study.rows_along(along, model));
        rows.concat().iter().map(|row| row.key).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use adaparam_lm::Finished;
    use adaparam_lm::sweep::{Collected, Ending, EpochScore, Progress, RunOutcome};
    use adaparam_report::Report;

    use Verdict::{Exceeded, Met, NotDecided, NotJudged, NotMet, NotRun};

    use super::*;
    use crate::experiment::{Experiment, PlanChoices, Systems};
    use crate::page;
    use crate::result::Scale;

    /// A run of six epochs and an hour each; infinite perplexities have diverged, none are waiting.
    fn ended(spec: &adaparam_lm::sweep::RunSpec, score: Option<f64>) -> CollectedRun {
        let finite = score.filter(|score| score.is_finite());
        let epochs = (1..).zip([1.5, 1.2, 1.1, 1.05, 1.02, 1.0]);
        let epochs = epochs.filter_map(|(epoch, above)| {
            let valid_perplexity = finite? * above;
            Some(EpochScore {
                epoch,
                valid_loss: valid_perplexity.ln(),
                valid_perplexity,
            })
        });
        let ending = score.map(|_| match finite {
            Some(valid_perplexity) => Ending::Finished {
                result: Finished {
                    parameters: parameters(&spec.config).unwrap(),
                    epochs: 6,
                    best_epoch: 6,
                    checkpoint: String::new(),
                    valid_perplexity,
                    valid_words: 1,
                    test_perplexity: valid_perplexity,
                    test_words: 1,
                    bits: None,
                },
            },
            None => Ending::Diverged {
                message: String::new(),
            },
        });
        CollectedRun {
            spec: spec.clone(),
            progress: Progress {
                state: match &ending {
                    None => RunState::Waiting,
                    Some(Ending::Finished { .. }) => RunState::Finished,
                    Some(_) => RunState::Diverged,
                },
                epochs: epochs.collect(),
                step: None,
                outcome: ending.map(|ending| RunOutcome {
                    hash: String::new(),
                    ending,
                    unigram_perplexity: 500.0,
                    seconds: 6.0 * 3_600.0,
                }),
            },
            record: None,
            bolt_ons: None,
        }
    }

    /// A study in which each run has the perplexity that `score` gives to its row and seed.
    fn study(
        scale: Scale,
        seeds: u64,
        systems: &str,
        score: impl Fn(&ModelRow, u64, f64) -> Option<f64>,
    ) -> Study {
        let choices = PlanChoices {
            scale,
            seeds,
            draws: None,
            systems: Systems::parse(systems),
            changes: Vec::new(),
        };
        let manifest = Experiment::Efficiency
            .plan(&choices, Path::new(""))
            .unwrap();
        let rows = Experiment::Efficiency.rows(scale);
        let runs = manifest.runs.iter().map(|spec| {
            let row = rows.iter().find(|row| row.key == spec.row).unwrap();
            let size = parameters(&spec.config).unwrap() as f64;
            ended(spec, score(row, spec.seed, size))
        });
        Study {
            experiment: Experiment::Efficiency,
            scale,
            collected: Collected {
                runs: runs.collect(),
                manifest,
            },
        }
    }

    /// The perplexity of a model that needs `needs` times what the LSTM does, of parameters and of words.
    fn falling(row: &ModelRow, size: f64, needs: f64) -> f64 {
        let portion = row.portion.unwrap();
        let needs = if portion.model == "lstm" { 1.0 } else { needs };
        let words = portion.percent as f64 / 100.0;
        200.0 * (size / 1e6 / needs).powf(-0.3) * (words / needs).powf(-0.2)
    }

    fn small(seeds: u64, needs: impl Fn(u64) -> f64) -> Study {
        study(Scale::Small, seeds, "own", |row, seed, size| {
            Some(falling(row, size, needs(seed)))
        })
    }

    fn verdicts(study: &Study) -> Vec<Verdict> {
        let claims = study.summarise().claims;
        claims.iter().map(|claim| claim.verdict).collect()
    }

    fn share(study: &Study, along: Along, model: &str, size: usize) -> String {
        let lstm = study.rows_along(along, LSTM)[size];
        study.saving(along, model, &lstm).unwrap().in_words()
    }

    #[test]
    fn what_is_saved_is_read_off_the_curves() {
        // By a curve of one slope over parameters alone; words shift all models of a curve alike.
        let needs = |seed: u64| 0.6 + 0.02 * (seed as f64 - 2.0);
        let study = study(Scale::Small, 3, "own", |row, seed, size| {
            let portion = row.portion.unwrap();
            let needs = if portion.model == "lstm" {
                1.0
            } else {
                needs(seed)
            };
            Some(200.0 * (size / 1e6 / needs).powf(-0.3))
        });
        for size in 1..4 {
            let told = share(&study, Along::Parameters, "recurrent", size);
            assert_eq!(told, "40\u{a0}% fewer (38–42\u{a0}%)", "{size}");
        }
        let least = share(&study, Along::Parameters, "recurrent", 0);
        assert_eq!(least, "fewer than the smallest (every seed)");
        let lstm = study.rows_along(Along::Parameters, LSTM)[0];
        let saving = study.saving(Along::Parameters, "static", &lstm).unwrap();
        assert!(
            saving.needed().starts_with("less than 49"),
            "{}",
            saving.needed()
        );
    }

    #[test]
    fn the_papers_share_is_met_missed_and_exceeded() {
        assert_eq!(verdicts(&small(2, |_| 0.6)), [Met, Met]);
        assert_eq!(verdicts(&small(2, |_| 0.95))[0], NotMet);
        assert_eq!(verdicts(&small(2, |_| 0.2))[0], Exceeded);
        assert_eq!(verdicts(&small(2, |_| 1.3)), [NotMet, NotMet]);
        // Seeds on both sides, and one seed alone.
        let torn = small(2, |seed| if seed == 1 { 0.5 } else { 0.9 });
        assert_eq!(verdicts(&torn)[0], NotDecided);
        let one = small(1, |_| 0.6);
        assert_eq!(verdicts(&one), [NotDecided, NotDecided]);
        let claim = &one.summarise().claims[0];
        assert!(
            claim.evidence.contains("one seed decides nothing"),
            "{claim:?}"
        );
        assert!(
            claim
                .evidence
                .starts_with("Penn Treebank, small scale: for the same validation perplexity"),
            "{claim:?}"
        );
        let quick = study(Scale::Quick, 2, "own", |row, _, size| {
            Some(falling(row, size, 0.6))
        });
        assert_eq!(verdicts(&quick), [NotJudged, NotJudged]);
    }

    #[test]
    fn what_lies_outside_of_the_curve_decides_nothing() {
        let one_size = study(Scale::Small, 2, "lstm-1m,recurrent-1m", |row, _, size| {
            Some(falling(row, size, 0.6))
        });
        let claim = &one_size.summarise().claims[0];
        assert_eq!(claim.verdict, NotDecided);
        assert!(
            claim.evidence.contains("nothing is extrapolated"),
            "{claim:?}"
        );
        // Worse than the smallest LSTM in every size.
        let worse = study(Scale::Small, 2, "own", |row, _, _| {
            Some(if row.key.starts_with("lstm") {
                100.0
            } else {
                150.0
            })
        });
        assert_eq!(verdicts(&worse), [NotMet, NotMet]);
        let told = share(&worse, Along::Parameters, "recurrent", 2);
        assert_eq!(told, "more than the largest (every seed)");
    }

    #[test]
    fn runs_that_diverged_have_no_place_on_a_curve() {
        let diverging = |key: &'static str| {
            study(Scale::Small, 2, "own", move |row, seed, size| {
                let diverges = row.key == key && seed == 2;
                Some(if diverges {
                    f64::INFINITY
                } else {
                    falling(row, size, 0.6)
                })
            })
        };
        // What the other seed reaches below 2M, this one reaches with 4M: its run of 2M has no line to it.
        let gap = diverging("recurrent-2m");
        let told = share(&gap, Along::Parameters, "recurrent", 3);
        assert_eq!(told, "29\u{a0}% fewer (0–57\u{a0}%)");
        assert_eq!(verdicts(&gap)[0], NotDecided);
        let no_level = diverging("lstm-4m");
        let told = share(&no_level, Along::Parameters, "recurrent", 3);
        assert!(told.contains("fewer than the smallest"), "{told}");
        let lstm = no_level.rows_along(Along::Parameters, LSTM)[3];
        let alstm = no_level.rows_along(Along::Parameters, ALSTM)[3];
        let (epochs, _) = no_level.convergence(&lstm, &alstm).of_other().unwrap();
        assert_eq!(epochs.values.len(), 1, "the other has no best to reach");
    }

    #[test]
    fn epochs_and_hours_are_those_of_the_first_epoch_that_is_as_good() {
        let study = small(2, |_| 0.6);
        for size in 0..4 {
            let lstm = study.rows_along(Along::Parameters, LSTM)[size];
            let alstm = study.rows_along(Along::Parameters, ALSTM)[size];
            let convergence = study.convergence(&lstm, &alstm);
            let (theirs, their_hours) = convergence.of_other().unwrap();
            let (ours, hours, missing) = convergence.of_model().unwrap();
            assert!(
                (theirs.median - 6.0).abs() < 1e-12 && (their_hours.median - 6.0).abs() < 1e-12
            );
            // 0.6 to the power of 0.3 and of 0.2 together is 0.77, and 1.2 times that is below 1.
            assert!((ours.median - 2.0).abs() < 1e-12, "{ours:?}");
            assert!((hours.median - 2.0).abs() < 1e-12 && missing == 0);
            let back = study.convergence(&alstm, &lstm);
            assert!(back.of_model().is_none(), "the LSTM never gets there");
        }
    }

    #[test]
    fn words_are_counted_as_parameters_are() {
        let study = small(2, |_| 0.6);
        let rows = study.rows_along(Along::Words, ALSTM);
        let keys: Vec<&str> = rows.iter().map(|row| row.key).collect();
        assert_eq!(keys, ["recurrent-1m-25", "recurrent-1m-50", "recurrent-1m"]);
        // As good as by 0.6 of the words, and 0.6 of the parameters too.
        let expected = 1.0 - 0.6 * 0.6_f64.powf(0.3 / 0.2);
        let lstm = study.rows_along(Along::Words, LSTM)[2];
        let saving = study.saving(Along::Words, ALSTM, &lstm).unwrap();
        for found in saving.shares() {
            assert!((found - expected).abs() < 0.01, "{found}, not {expected}");
        }
    }

    #[test]
    fn a_study_that_was_partly_run_says_what_was_not() {
        let partly = study(Scale::Small, 2, "own", |row, seed, size| {
            let is_done = seed == 1 && !row.key.contains("4m") && !row.key.starts_with("static");
            is_done.then(|| falling(row, size, 0.6))
        });
        assert_eq!(verdicts(&partly), [NotRun, NotRun]);
        let page = page::efficiency(&partly, &partly.summarise());
        assert_eq!(page.drawings.len(), 2);
        let report = Report {
            sections: vec![page.section],
            ..Report::default()
        };
        let shown = report.to_html();
        for words in [
            "not run",
            "57\u{a0}% fewer",
            "26 of 36 runs have not ended",
            "Not run here: larger models",
            "Penn Treebank",
            "(log scale)",
            "one seed decides nothing",
        ] {
            assert!(shown.contains(words), "no {words}");
        }
        let none = study(Scale::Small, 1, "own", |_, _, _| None);
        let page = page::efficiency(&none, &none.summarise());
        assert!(
            page.drawings
                .iter()
                .all(|drawing| drawing.svg.contains("no data"))
        );
        assert!(page::efficiency_findings(&none).is_empty());
    }
}

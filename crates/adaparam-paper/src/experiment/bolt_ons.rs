//! Whether what is bolted on to a trained model does for the adaptive LSTM what it does for the LSTM.

use adaparam_lm::ScoringKind;
use adaparam_report::Verdict;

use super::judge::Judge;
use crate::claim::ClaimId;
use crate::decision;
use crate::result::{Claim, Spread};

/// What is evaluated beside the model alone.
const EVALUATED: [(ScoringKind, &str); 2] = [
    (ScoringKind::Cache, "a cache"),
    (ScoringKind::Dynamic, "dynamic evaluation"),
];

impl Judge<'_> {
    /// Whether cache, dynamic evaluation and mixture of softmaxes each take at least half as large a share off the test
    /// perplexity of the adaptive LSTM as off that of the LSTM.
    pub(super) fn bolt_ons_apply(&self, id: ClaimId) -> Claim {
        let evaluated = EVALUATED.map(|(kind, words)| {
            let gains = ["lstm", "recurrent"].map(|row| self.evaluated_ratios(row, kind));
            (words, gains)
        });
        let mixtures = [("lstm", "lstm-mos"), ("recurrent", "recurrent-mos")];
        let mixtures = mixtures.map(|(row, mixed)| self.trained_ratios(row, mixed));
        let all = evaluated
            .into_iter()
            .chain([("a mixture of softmaxes", mixtures)]);
        let (mut verdicts, mut evidence, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for (words, [lstm, alstm]) in all {
            if lstm.is_empty() || alstm.is_empty() {
                missing.push(words);
                continue;
            }
            let (lstm, alstm) = (Spread::of(lstm), Spread::of(alstm));
            let bound = f64::midpoint(1.0, lstm.median.min(1.0));
            // One seed of either decides nothing.
            let fewest = lstm.values.len().min(alstm.values.len());
            verdicts.push(match fewest {
                0 | 1 => Verdict::NotDecided,
                _ => decision::at_most(&alstm, bound),
            });
            evidence.push(format!(
                "{words} takes {} off the aLSTM's test perplexity and {} off the LSTM's",
                share(alstm.median),
                share(lstm.median)
            ));
        }
        if !missing.is_empty() {
            let mut reason = format!("{} not recorded for both models", missing.join(", "));
            if !evidence.is_empty() {
                reason = format!("{}; {reason}", evidence.join("; "));
            }
            return self.open(id, &reason);
        }
        self.verdict(id, decision::all(verdicts), evidence.join("; "))
    }

    /// Test perplexity with something bolted on by that without, for each run of a row that has both.
    fn evaluated_ratios(&self, row: &str, kind: ScoringKind) -> Vec<f64> {
        let runs = self.study.collected.runs_of(row);
        let ratios = runs.filter_map(|run| {
            let results = run.bolt_ons.as_ref()?;
            let test = |kind| Some(results.row(kind)?.test_perplexity);
            Some(test(kind)? / test(ScoringKind::Static)?)
        });
        ratios.collect()
    }

    /// Test perplexity of one row by that of another, for each seed that has both.
    fn trained_ratios(&self, row: &str, mixed: &str) -> Vec<f64> {
        let finished = |row: &str, seed: u64| {
            let mut runs = self.study.collected.runs_of(row);
            let run = runs.find(|run| run.spec.seed == seed)?;
            Some(run.finished()?.test_perplexity)
        };
        let seeds = self.study.collected.runs_of(mixed).map(|run| run.spec.seed);
        let ratios = seeds.filter_map(|seed| Some(finished(mixed, seed)? / finished(row, seed)?));
        ratios.collect()
    }
}

fn share(ratio: f64) -> String {
    format!("{:.1}\u{a0}%", 100.0 * (1.0 - ratio))
}

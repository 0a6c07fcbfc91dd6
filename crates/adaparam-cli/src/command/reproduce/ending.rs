//! What `reproduce` says at its end: at most 25 lines.

use std::path::Path;

use adaparam_paper::result::{Claim, Scale};
use adaparam_paper::{Comparison, comparison_table};
use adaparam_report::{Tally, Verdict};

/// The end of a run.
pub(super) struct Ending<'a> {
    /// Static and adaptive models side by side.
    pub(super) comparisons: &'a [Comparison],
    /// The paper's sentences, and what became of them.
    pub(super) claims: &'a [Claim],
    /// Where the report is.
    pub(super) page: &'a Path,
    pub(super) scale: Scale,
    /// Whether a quick run has left parts out on purpose.
    pub(super) left_out: bool,
    /// Whether a claim is not met.
    pub(super) is_missed: bool,
}

impl Ending<'_> {
    /// What was compared, what came out, where the report is and what to try next.
    pub(super) fn text(&self, width: usize) -> String {
        let mut lines = Vec::new();
        if !self.comparisons.is_empty() {
            lines.push(comparison_table(self.comparisons).to_terminal(width));
        }
        let tally = Tally::of(self.claims.iter().map(|claim| claim.verdict));
        let is_judged =
            |verdict: &Verdict| !matches!(verdict, Verdict::NotJudged | Verdict::NotRun);
        let judged: usize = Verdict::ALL
            .iter()
            .filter(|verdict| is_judged(verdict))
            .map(|&verdict| tally.count(verdict))
            .sum();
        if judged > 0 {
            let verdict = if self.is_missed {
                "; the report says which and why"
            } else {
                ""
            };
            lines.push(format!(
                "Claims of the paper: {}{verdict}.",
                tally.sentence()
            ));
        } else if self.scale == Scale::Quick {
            lines.push(
                "Small models on data inside the program: no claim of the paper is judged."
                    .to_owned(),
            );
        }
        lines.push(format!("report: {}", self.page.display()));
        lines.push("next:".to_owned());
        for (command, what) in self.next() {
            lines.push(format!("  {command:<42}{what}"));
        }
        lines.join("\n")
    }

    fn next(&self) -> Vec<(&'static str, &'static str)> {
        let mut next = Vec::new();
        if self.left_out {
            next.push((
                "adaparam reproduce ablation --quick",
                "each part of the adaptive LSTM by itself",
            ));
            next.push((
                "adaparam data fetch ptb",
                "then: adaparam reproduce robustness, or ptb",
            ));
            next.push((
                "adaparam train",
                "a language model of your own, and adaparam generate",
            ));
        } else {
            next.push((
                "adaparam reproduce --help",
                "other experiments, sizes and seeds",
            ));
        }
        next
    }
}

//! What `reproduce` says at its end: at most 25 lines.

use std::path::Path;

use adaparam_paper::result::{Claim, Scale};
use adaparam_paper::{Comparison, comparison_table, in_turn};
use adaparam_report::{Tally, Verdict};

const MOST_LINES: usize = 25;

/// The end of a run.
pub(super) struct Ending<'a> {
    /// Static and adaptive models side by side, by experiment.
    pub(super) comparisons: &'a [Vec<Comparison>],
    /// The paper's sentences, and what became of them.
    pub(super) claims: &'a [Claim],
    /// Where the report is.
    pub(super) page: &'a Path,
    pub(super) scale: Scale,
    /// Whether a quick run has left parts out on purpose.
    pub(super) left_out: bool,
}

impl Ending<'_> {
    /// What was compared, what came out, where the report is and what to try next: as many comparisons as leave it short,
    /// those of all experiments by turns.
    pub(super) fn text(&self, width: usize) -> String {
        let all = self.comparisons.iter().map(Vec::len).sum();
        let texts = (0..=all)
            .rev()
            .map(|most| self.with_comparisons(most, width));
        let is_short = |text: &String| text.lines().count() <= MOST_LINES;
        let mut texts = texts.filter(is_short);
        texts
            .next()
            .unwrap_or_else(|| self.with_comparisons(0, width))
    }

    fn with_comparisons(&self, most: usize, width: usize) -> String {
        let mut lines = Vec::new();
        let comparisons = in_turn(self.comparisons, most);
        if !comparisons.is_empty() {
            lines.push(comparison_table(&comparisons).to_terminal(width));
        }
        let all: usize = self.comparisons.iter().map(Vec::len).sum();
        match all - comparisons.len() {
            0 => {}
            1 => lines.push("One more comparison is in the report.".to_owned()),
            more => lines.push(format!("{more} more comparisons are in the report.")),
        }
        let tally = Tally::of(self.claims.iter().map(|claim| claim.verdict));
        let is_judged =
            |verdict: &Verdict| !matches!(verdict, Verdict::NotJudged | Verdict::NotRun);
        let mut judged = self.claims.iter().map(|claim| claim.verdict);
        if judged.any(|verdict| is_judged(&verdict)) {
            lines.push(format!("Claims of the paper: {}.", tally.sentence()));
        } else if self.scale == Scale::Quick {
            lines.push(
                "Small models on data inside the program: no claim of the paper is judged."
                    .to_owned(),
            );
        }
        lines.push(format!("report: {}", self.page.display()));
        lines.push("next:".to_owned());
        for (command, what) in self.next() {
            let beside = format!("  {command:<37}{what}");
            if beside.len() <= width {
                lines.push(beside);
            } else {
                lines.extend([format!("  {command}"), format!("    {what}")]);
            }
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
                "then: adaparam reproduce robustness",
            ));
            next.push((
                "adaparam train",
                "a language model, then: adaparam generate",
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

//! Sentences that a run can confirm or refute.

/// A measurable claim and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The sentence.
    pub text: String,
    /// What became of it.
    pub verdict: Verdict,
    /// The numbers or the run behind the verdict.
    pub evidence: String,
    /// Anchor of the section of the same report that shows the evidence.
    pub section: Option<String>,
}

impl Claim {
    /// A claim with its verdict and the reason for it.
    pub fn new(text: impl Into<String>, verdict: Verdict, evidence: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            verdict,
            evidence: evidence.into(),
            section: None,
        }
    }

    /// The same claim, pointing to the section with this anchor.
    #[must_use]
    pub fn seen_in(self, anchor: impl Into<String>) -> Self {
        Self {
            section: Some(anchor.into()),
            ..self
        }
    }
}

/// What became of a claim, in words and marks that do not rely on colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Met,
    /// It holds, and by more than it says.
    Exceeded,
    /// It does not hold.
    NotMet,
    /// It was tried, and the runs differ by more than what is to be told apart, or there is one run only.
    NotDecided,
    /// Runs of this size cannot tell.
    NotJudged,
    /// It was not tried.
    #[default]
    NotRun,
}

impl Verdict {
    /// Every verdict, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::Met,
        Self::Exceeded,
        Self::NotMet,
        Self::NotDecided,
        Self::NotJudged,
        Self::NotRun,
    ];

    /// The verdict in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Exceeded => "exceeded",
            Self::NotMet => "not met",
            Self::NotDecided => "not decided",
            Self::NotJudged => "not judged at this scale",
            Self::NotRun => "not run",
        }
    }

    pub(crate) const fn mark(self) -> &'static str {
        match self {
            Self::Met => "✓",
            Self::Exceeded => "▲",
            Self::NotMet => "✗",
            Self::NotDecided => "≈",
            Self::NotJudged => "–",
            Self::NotRun => "○",
        }
    }

    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Met | Self::Exceeded => "met",
            Self::NotMet => "missed",
            Self::NotDecided => "undecided",
            Self::NotJudged | Self::NotRun => "open",
        }
    }
}

/// How many claims have which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally([usize; Verdict::ALL.len()]);

impl Tally {
    /// Counts verdicts.
    pub fn of(verdicts: impl IntoIterator<Item = Verdict>) -> Self {
        let mut tally = Self::default();
        for verdict in verdicts {
            tally.0[verdict as usize] += 1;
        }
        tally
    }

    /// How many claims have a verdict.
    pub const fn count(&self, verdict: Verdict) -> usize {
        self.0[verdict as usize]
    }

    /// `3 met, 1 not met`; verdicts that no claim has are left out.
    pub fn sentence(&self) -> String {
        Verdict::ALL
            .into_iter()
            .filter(|verdict| self.count(*verdict) > 0)
            .map(|verdict| format!("{} {}", self.count(verdict), verdict.words()))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_counts_each_verdict() {
        use Verdict::{Exceeded, Met, NotDecided, NotJudged, NotMet, NotRun};
        let tally = Tally::of([
            NotRun, Met, NotMet, NotDecided, Met, NotJudged, Exceeded, NotRun, NotRun,
        ]);
        let counts = Verdict::ALL.map(|verdict| tally.count(verdict));
        assert_eq!(counts, [2, 1, 1, 1, 1, 3]);
        assert_eq!(
            tally.sentence(),
            "2 met, 1 exceeded, 1 not met, 1 not decided, 1 not judged at this scale, 3 not run"
        );
        assert_eq!(Tally::of([Met]).sentence(), "1 met");
    }

    #[test]
    fn no_two_verdicts_look_or_read_alike() {
        for (at, one) in Verdict::ALL.into_iter().enumerate() {
            for other in &Verdict::ALL[..at] {
                assert_ne!(one.mark(), other.mark());
                assert_ne!(one.words(), other.words());
            }
        }
    }
}

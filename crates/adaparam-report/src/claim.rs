//! Sentences that a run can confirm or refute.

/// A measurable claim and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The sentence.
    pub text: String,
    /// Whether it held; nothing if it was not tried.
    pub met: Option<bool>,
    /// The numbers or the run behind the verdict.
    pub evidence: String,
    /// Anchor of the section of the same report that shows the evidence.
    pub section: Option<String>,
}

impl Claim {
    /// A claim with its verdict and the reason for it.
    pub fn new(text: impl Into<String>, met: Option<bool>, evidence: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            met,
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

    pub(crate) const fn verdict(&self) -> Verdict {
        match self.met {
            Some(true) => Verdict::Met,
            Some(false) => Verdict::NotMet,
            None => Verdict::NotRun,
        }
    }
}

/// What became of a claim, in words and marks that do not rely on colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    NotMet,
    NotRun,
}

impl Verdict {
    pub(crate) const ALL: [Self; 3] = [Self::Met, Self::NotMet, Self::NotRun];

    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::NotRun => "not run",
        }
    }

    pub(crate) const fn mark(self) -> &'static str {
        match self {
            Self::Met => "✓",
            Self::NotMet => "✗",
            Self::NotRun => "○",
        }
    }

    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "missed",
            Self::NotRun => "open",
        }
    }
}

/// How many claims have which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Claims that held.
    pub(crate) met: usize,
    /// Claims that did not.
    pub(crate) not_met: usize,
    /// Claims that were not tried.
    pub(crate) not_run: usize,
}

impl Tally {
    /// Counts the verdicts of some claims.
    pub(crate) fn of<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Self {
        let mut tally = Self::default();
        for claim in claims {
            match claim.verdict() {
                Verdict::Met => tally.met += 1,
                Verdict::NotMet => tally.not_met += 1,
                Verdict::NotRun => tally.not_run += 1,
            }
        }
        tally
    }

    pub(crate) const fn count(&self, verdict: Verdict) -> usize {
        match verdict {
            Verdict::Met => self.met,
            Verdict::NotMet => self.not_met,
            Verdict::NotRun => self.not_run,
        }
    }

    /// `3 met, 1 not met`; verdicts that no claim has are left out.
    pub(crate) fn sentence(&self) -> String {
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
        let claims = [Some(true), Some(false), None, Some(true)].map(|met| Claim::new("", met, ""));
        let tally = Tally::of(&claims);
        assert_eq!(
            tally,
            Tally {
                met: 2,
                not_met: 1,
                not_run: 1
            }
        );
        assert_eq!(tally.sentence(), "2 met, 1 not met, 1 not run");
        assert_eq!(Tally::of(&claims[..1]).sentence(), "1 met");
    }
}

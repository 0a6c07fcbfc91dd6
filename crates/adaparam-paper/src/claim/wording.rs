//! A sentence of the paper in the words in which it is judged.

use adaparam_report::Verdict;

use super::ClaimId;
use crate::result::Claim;

/// A sentence in words, with what its judge adds to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wording {
    id: ClaimId,
    text: String,
}

impl From<ClaimId> for Wording {
    fn from(id: ClaimId) -> Self {
        let sentence = id.sentence();
        let wording = Self {
            id,
            text: sentence.text.to_owned(),
        };
        wording.with("place", sentence.place)
    }
}

impl Wording {
    /// Fills in what the sentence has in braces.
    pub(crate) fn with(mut self, name: &str, words: &str) -> Self {
        self.text = self.text.replace(&format!("{{{name}}}"), words);
        self
    }

    /// The sentence in one of its readings.
    pub(crate) fn read_as(mut self, reading: &str) -> Self {
        self.text = format!("{}: {reading}", self.text);
        self
    }

    /// Whether everything is filled in.
    pub(super) fn is_whole(&self) -> bool {
        !self.text.contains('{')
    }

    /// What became of it.
    pub(crate) fn judged(self, verdict: Verdict, evidence: String) -> Claim {
        Claim {
            id: Some(self.id),
            claim: self.text,
            verdict,
            evidence,
        }
    }
}

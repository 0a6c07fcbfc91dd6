//! The paper's sentences that can be measured: one table, an entry for each, and who judges it.
//!
//! A sentence stands in [`SENTENCES`] and nowhere else. Experiments, results and pages name it by its [`ClaimId`].

mod step_times;
mod table;
mod wording;

pub use step_times::{StepTimes, wall_clock_claims};
pub use table::{ClaimId, SENTENCES};
pub(crate) use wording::Wording;

use adaparam_report::Verdict;

use crate::experiment::Experiment;
use crate::result::Claim;

/// A sentence of the paper that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sentence {
    /// What it is named by in the program.
    pub id: ClaimId,
    /// What it is named by in files.
    pub name: &'static str,
    /// The sections, tables and figures of the paper that say so.
    pub place: &'static str,
    /// The sentence in words, where `{place}` is for the place and other names in braces are for what its judge fills in.
    pub text: &'static str,
    /// Who judges it.
    pub judged_by: JudgedBy,
}

/// Who judges a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgedBy {
    /// Tail regression.
    Tail,
    /// Image classification.
    Images,
    /// An experiment with language models.
    LanguageModels(Experiment),
    /// No experiment, but measured times of training steps.
    StepTimes,
    /// No experiment, for this reason.
    Nobody(&'static str),
}

impl ClaimId {
    /// The sentence of this name.
    pub const fn sentence(self) -> &'static Sentence {
        &SENTENCES[self as usize]
    }
}

impl JudgedBy {
    /// The sentences that it judges, in the order of the table.
    pub fn sentences(self) -> impl Iterator<Item = &'static Sentence> {
        SENTENCES
            .iter()
            .filter(move |sentence| sentence.judged_by == self)
    }

    /// The sentences that it would judge, before it was run; those of which only its configuration knows the words are
    /// left out.
    pub(crate) fn open_claims(self) -> Vec<Claim> {
        self.sentences()
            .map(|sentence| Wording::from(sentence.id))
            .filter(Wording::is_whole)
            .map(|wording| wording.judged(Verdict::NotRun, String::new()))
            .collect()
    }
}

/// The sentences that no experiment judges, with the reason.
pub(crate) fn not_judged() -> impl Iterator<Item = (ClaimId, &'static str)> {
    SENTENCES
        .iter()
        .filter_map(|sentence| match sentence.judged_by {
            JudgedBy::Nobody(reason) => Some((sentence.id, reason)),
            _ => None,
        })
}

/// Asserts that these claims, from one judge, are all of its sentences and no other, each in words.
#[cfg(test)]
pub(crate) fn assert_all_judged(by: JudgedBy, claims: &[Claim]) {
    use std::collections::BTreeSet;

    let place = |id: ClaimId| id as usize;
    let judged: BTreeSet<usize> = claims
        .iter()
        .map(|claim| place(claim.id.expect("judges name their sentences")))
        .collect();
    let expected: BTreeSet<usize> = by.sentences().map(|sentence| place(sentence.id)).collect();
    let names = |places: &BTreeSet<usize>| -> Vec<&str> {
        places.iter().map(|&at| SENTENCES[at].name).collect()
    };
    assert_eq!(names(&judged), names(&expected), "{by:?}");
    for claim in claims {
        assert!(!claim.claim.contains(['{', '}']), "{}", claim.claim);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_sentence_has_one_entry_and_a_name_of_its_own() {
        for (at, sentence) in SENTENCES.iter().enumerate() {
            assert_eq!(sentence.id as usize, at);
            assert_eq!(sentence.id.sentence(), sentence);
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(sentence.name.chars().all(is_plain), "{}", sentence.name);
            assert!(sentence.text.contains("{place}"), "{}", sentence.name);
        }
        let different = |part: fn(&Sentence) -> &str| -> usize {
            SENTENCES.iter().map(part).collect::<BTreeSet<_>>().len()
        };
        assert_eq!(different(|sentence| sentence.name), SENTENCES.len());
        assert_eq!(different(|sentence| sentence.text), SENTENCES.len());
    }

    #[test]
    fn files_name_a_sentence_as_the_table_does() {
        for sentence in SENTENCES {
            let written = serde_json::to_value(sentence.id).unwrap();
            assert_eq!(written, sentence.name);
            let read: ClaimId = serde_json::from_value(written).unwrap();
            assert_eq!(read, sentence.id);
        }
    }

    /// That the others are judged is for the tests of their judges to say, with `assert_all_judged`.
    #[test]
    fn what_nobody_judges_has_a_reason() {
        assert!(not_judged().count() > 0);
        for (id, reason) in not_judged() {
            assert!(!reason.is_empty(), "{id:?}");
            assert!(Wording::from(id).is_whole(), "{id:?}");
        }
    }

    #[test]
    fn an_experiment_that_was_not_run_tells_whole_sentences() {
        for (by, count) in [(JudgedBy::Tail, 2), (JudgedBy::Images, 3)] {
            let open = by.open_claims();
            assert_eq!(open.len(), count, "{by:?}");
            assert!(open.iter().all(|claim| claim.verdict == Verdict::NotRun));
        }
    }
}

//! What the experiments found, and every sentence of the paper that makes a measurable claim.

use adaparam_report::{Block, Claim, Section, Verdict};

use super::{Page, claims};
use crate::claim::{self, Wording};
use crate::finding::in_turn;
use crate::part::PartReport;
use crate::result;

/// As many sentences as a person reads before the tables.
const MOST_FINDINGS: usize = 5;

/// What the parts of a report found, at most five sentences. Parts that say the same of two texts share a sentence.
pub fn findings(parts: &[PartReport]) -> Vec<String> {
    let mut lists: Vec<Vec<String>> = Vec::new();
    for part in parts {
        let clauses = part.findings.clone();
        match lists.last_mut() {
            Some(before) if part.shares_a_sentence && !before.is_empty() => {
                for (one, other) in before.iter_mut().zip(clauses) {
                    *one = format!("{one}. {other}");
                }
            }
            _ => lists.push(clauses),
        }
    }
    let chosen = in_turn(&lists, MOST_FINDINGS).into_iter();
    chosen.map(|finding| format!("{finding}.")).collect()
}

/// The claims of all pages, each pointing to the section that shows its evidence, those of experiments that are not
/// there, those about wall-clock time, and those that no experiment tries.
pub fn all_claims(
    pages: &[Page],
    absent: &[(String, Vec<result::Claim>)],
    wall_clock: &[result::Claim],
) -> Section {
    let mut section = Section::new("Claims of the paper")
        .called("Claims")
        .with(Block::Paragraph(
            "Each sentence of the paper that can be measured. “Not decided”: there is one seed only, or the seeds differ by \
             more than what is compared, or the interval of the difference between medians (exact bootstrap over seeds, 95 %) \
             has zero in it. “Exceeded”: it holds, by more than the paper says. “Not judged at this scale”: \
             it is about larger models, longer training or another text."
                .into(),
        ));
    for page in pages.iter().filter(|page| !page.claims.is_empty()) {
        let claims = page.claims.iter().cloned();
        section = section
            .with(Block::Heading(page.section.heading.clone()))
            .with(Block::Claims(
                claims
                    .map(|claim| claim.seen_in(page.section.anchor.clone()))
                    .collect(),
            ));
    }
    for (heading, open) in absent.iter().filter(|(_, open)| !open.is_empty()) {
        let not_there = |claim: &result::Claim| {
            Claim::new(&claim.claim, Verdict::NotRun, "Not part of this report.")
        };
        section = section
            .with(Block::Heading(heading.clone()))
            .with(Block::Claims(open.iter().map(not_there).collect()));
    }
    let not_tried: Vec<result::Claim> = claim::not_judged()
        .map(|(id, reason)| Wording::from(id).judged(Verdict::NotRun, reason.to_owned()))
        .collect();
    section
        .with(Block::Heading("Wall-clock time".into()))
        .with(Block::Claims(claims(wall_clock)))
        .with(Block::Heading("Not part of any experiment here".into()))
        .with(Block::Claims(claims(&not_tried)))
}

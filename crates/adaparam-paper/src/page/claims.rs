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

/// The claims of all pages, and whether any of them is judged.
#[derive(Debug, Clone)]
pub struct AllClaims {
    /// Their section. Where none is judged they are folded away: it belongs behind the tables then.
    pub section: Section,
    /// Whether a verdict says more than that a claim was not tried, or cannot be at this scale.
    pub are_judged: bool,
}

/// The claims of all pages, each pointing to the section that shows its evidence, those of experiments that are not
/// there, those about wall-clock time, and those that no experiment tries.
pub fn all_claims(
    pages: &[Page],
    absent: &[(String, Vec<result::Claim>)],
    wall_clock: &[result::Claim],
) -> AllClaims {
    let mut groups: Vec<(String, Vec<Claim>)> = Vec::new();
    for page in pages.iter().filter(|page| !page.claims.is_empty()) {
        let seen = page.claims.iter().cloned();
        let seen = seen.map(|claim| claim.seen_in(page.section.anchor.clone()));
        groups.push((page.section.heading.clone(), seen.collect()));
    }
    for (heading, open) in absent.iter().filter(|(_, open)| !open.is_empty()) {
        let not_there = |claim: &result::Claim| {
            Claim::new(&claim.claim, Verdict::NotRun, "Not part of this report.")
        };
        groups.push((heading.clone(), open.iter().map(not_there).collect()));
    }
    let not_tried: Vec<result::Claim> = claim::not_judged()
        .map(|(id, reason)| Wording::from(id).judged(Verdict::NotRun, sentence(reason)))
        .collect();
    groups.push(("Wall-clock time".to_owned(), claims(wall_clock)));
    groups.push((
        "Not part of any experiment here".to_owned(),
        claims(&not_tried),
    ));

    let all = groups.iter().flat_map(|(_, claims)| claims);
    let count = all.clone().count();
    let are_judged = all
        .map(|claim| claim.verdict)
        .any(|verdict| !matches!(verdict, Verdict::NotJudged | Verdict::NotRun));
    let mut blocks = vec![Block::Paragraph(
        "Each sentence of the paper that can be measured. “Not decided”: there is one seed only, or the seeds differ by \
         more than what is compared, or the interval of the difference between medians (exact bootstrap over seeds, 95 %) \
         has zero in it. “Exceeded”: it holds, by more than the paper says. “Not judged at this scale”: \
         it is about larger models, longer training or another text."
            .into(),
    )];
    for (heading, claims) in groups {
        blocks.extend([Block::Heading(heading), Block::Claims(claims)]);
    }
    if !are_judged {
        blocks = vec![Block::Details {
            summary: format!("{count} sentences of the paper, none judged here"),
            blocks,
        }];
    }
    AllClaims {
        section: Section {
            blocks,
            ..Section::new("Claims of the paper").called("Claims")
        },
        are_judged,
    }
}

/// A reason as a sentence of its own.
fn sentence(reason: &str) -> String {
    let mut letters = reason.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    let end = if reason.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_of_which_none_is_judged_are_folded_away() {
        let claim = |verdict| Claim::new("It is so.", verdict, "Nobody has looked.");
        let page = |verdict| Page {
            section: Section::new("A table"),
            drawings: Vec::new(),
            claims: vec![claim(verdict)],
        };
        let open = all_claims(&[page(Verdict::NotJudged)], &[], &[]);
        assert!(!open.are_judged);
        let [Block::Details { summary, .. }] = &open.section.blocks[..] else {
            panic!("{:?}", open.section.blocks);
        };
        assert!(
            summary.ends_with(" sentences of the paper, none judged here"),
            "{summary}"
        );
        let judged = all_claims(&[page(Verdict::Met)], &[], &[]);
        assert!(judged.are_judged && judged.section.blocks.len() > 2);
    }

    #[test]
    fn a_reason_is_a_sentence() {
        assert_eq!(sentence("needs a GPU"), "Needs a GPU.");
        assert_eq!(sentence("It does."), "It does.");
    }
}

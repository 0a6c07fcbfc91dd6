//! Every sentence of the paper that makes a measurable claim, on one page.

use adaparam_report::{Block, Claim, Section};

use super::{Page, claims};
use crate::claim::{self, Wording};
use crate::result;

/// The claims of all pages, each pointing to the section that shows its evidence, those of experiments that are not
/// there, and those that no experiment tries.
pub fn all_claims(pages: &[Page], absent: &[(String, Vec<result::Claim>)]) -> Section {
    let mut section = Section::new("Claims of the paper").with(Block::Paragraph(
        "Each sentence with a measurable claim. “Not run” is also said of a claim that this scale cannot judge.".into(),
    ));
    for page in pages.iter().filter(|page| !page.claims.is_empty()) {
        let claims = page.claims.iter().cloned();
        section = section
            .with(Block::Paragraph(page.section.heading.clone()))
            .with(Block::Claims(
                claims
                    .map(|claim| claim.seen_in(page.section.anchor.clone()))
                    .collect(),
            ));
    }
    for (heading, open) in absent.iter().filter(|(_, open)| !open.is_empty()) {
        let not_there =
            |claim: &result::Claim| Claim::new(&claim.claim, None, "not part of this report");
        section = section
            .with(Block::Paragraph(heading.clone()))
            .with(Block::Claims(open.iter().map(not_there).collect()));
    }
    let not_tried: Vec<result::Claim> = claim::not_judged()
        .map(|(id, reason)| Wording::from(id).judged(None, reason.to_owned()))
        .collect();
    section
        .with(Block::Paragraph("Not part of any experiment here".into()))
        .with(Block::Claims(claims(&not_tried)))
}

//! Every sentence of the paper that makes a measurable claim, in one place.

use super::Page;
use crate::report::{Block, Claim, Section};

/// Claims that no experiment here can judge, with the reason.
const NOT_TRIED: [(&str, &str); 6] = [
    (
        "“For the standard LSTM to converge at all, gradient clipping is required and dropout rates must be reduced by \
         ~25 %” (section 4.3)",
        "no LSTM is trained without clipping",
    ),
    (
        "“A percentage point change to these rates cause either severe overfitting or failure to converge” (section \
         4.3)",
        "rates are moved by up to ten points in the robustness study, not by one",
    ),
    (
        "“The aLSTM converges approximately ~25 % faster in wall-clock time” than the AWD-LSTM on the Penn Treebank \
         (section 4.3)",
        "the AWD-LSTM is not part of this program",
    ),
    (
        "“The aLSTM trains ~40 % faster in wall-clock time” than the AWD-LSTM on WikiText-2 (section 4.4)",
        "the AWD-LSTM is not part of this program",
    ),
    (
        "“Using ~20–30 % fewer parameters and converging in less than half as many iterations” than the state of the \
         art (abstract, sections 1 and 5)",
        "about the AWD-LSTM, which is not part of this program; its published numbers stand in the tables",
    ),
    (
        "On WikiText-2 “half of the LSTM population” fails to converge and “80 % of the LSTM population” fails to \
         outperform the worst aLSTM (section 4.6)",
        "the robustness study reads the Penn Treebank only",
    ),
];

/// The claims of all pages, each pointing to the section that shows its evidence, and those that were not tried.
pub(crate) fn all_claims(pages: &[Page]) -> Section {
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
    let not_tried = NOT_TRIED.map(|(sentence, reason)| Claim::new(sentence, None, reason));
    section
        .with(Block::Paragraph("Not part of any experiment here".into()))
        .with(Block::Claims(not_tried.to_vec()))
}

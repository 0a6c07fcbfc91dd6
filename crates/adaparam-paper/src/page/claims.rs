//! Every sentence of the paper that makes a measurable claim, in one place.

use adaparam_report::{Block, Claim, Section};

use super::Page;
use crate::result;

/// Claims that no experiment here can judge, with the reason.
const NOT_TRIED: [(&str, &str); 8] = [
    (
        "Layers that adapt “run at minimal additional cost” (section 1)",
        "timed by `adaparam bench`, not here",
    ),
    (
        "Tying the input adaptations of all gates “approximately halves the computation time and speeds up convergence \
         considerably” (section 3)",
        "timed by `adaparam bench step --readable --set model.tying=untied`; no untied model is trained here",
    ),
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
        "The aLSTM with a feed-forward adaptation model and output adaptation “needed slightly lower dropout rates to \
         converge to good performance” (section 4.5)",
        "it is trained with the lower rates only",
    ),
    (
        "On WikiText-2 “half of the LSTM population” fails to converge and “80 % of the LSTM population” fails to \
         outperform the worst aLSTM (section 4.6)",
        "judged by `adaparam reproduce robustness --set data.set=wikitext-2`",
    ),
];

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
    let not_tried = NOT_TRIED.map(|(sentence, reason)| Claim::new(sentence, None, reason));
    section
        .with(Block::Paragraph("Not part of any experiment here".into()))
        .with(Block::Claims(not_tried.to_vec()))
}

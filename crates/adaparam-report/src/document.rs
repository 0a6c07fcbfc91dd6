//! The parts of a report.

use crate::claim::{Claim, Tally};
use crate::plate::Plate;
use crate::provenance::Provenance;
use crate::table::Table;

/// Everything there is to say about one or several runs.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Heading of the whole.
    pub title: String,
    /// What was done and what came out, in a sentence or two.
    pub lead: String,
    /// What came out, a sentence each; stands before everything else.
    pub findings: Vec<String>,
    /// The parts, in reading order.
    pub sections: Vec<Section>,
    /// How to get the same numbers again.
    pub provenance: Provenance,
}

impl Report {
    /// Every claim of every section, also inside details.
    fn claims(&self) -> impl Iterator<Item = &Claim> {
        let mut found = Vec::new();
        for section in &self.sections {
            collect_claims(&section.blocks, &mut found);
        }
        found.into_iter()
    }

    /// How many claims have which verdict.
    pub(crate) fn tally(&self) -> Tally {
        Tally::of(self.claims().map(|claim| claim.verdict))
    }

    /// One anchor a section; a name that was taken gets a number.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for section in &self.sections {
            let wanted = slug(if section.anchor.is_empty() {
                &section.heading
            } else {
                &section.anchor
            });
            let numbered = (2..).map(|number| format!("{wanted}-{number}"));
            let free = std::iter::once(wanted.clone())
                .chain(numbered)
                .find(|name| !anchors.contains(name));
            anchors.extend(free);
        }
        anchors
    }
}

fn collect_claims<'a>(blocks: &'a [Block], found: &mut Vec<&'a Claim>) {
    for block in blocks {
        match block {
            Block::Claims(claims) => found.extend(claims),
            Block::Details { blocks, .. } => collect_claims(blocks, found),
            _ => {}
        }
    }
}

/// A part of a report with its heading.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// Its name in links; made from the heading where empty.
    pub anchor: String,
    /// A word or two for the bar of links; the heading where empty.
    pub short: String,
    /// What it holds, in reading order.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section without content, its anchor made from its heading.
    pub fn new(heading: impl Into<String>) -> Self {
        let heading = heading.into();
        Self {
            anchor: slug(&heading),
            heading,
            short: String::new(),
            blocks: Vec::new(),
        }
    }

    /// The same section with a shorter name for the bar of links.
    #[must_use]
    pub fn called(self, short: impl Into<String>) -> Self {
        Self {
            short: short.into(),
            ..self
        }
    }

    /// Its name in the bar of links.
    pub(crate) fn link_name(&self) -> &str {
        if self.short.is_empty() {
            &self.heading
        } else {
            &self.short
        }
    }

    /// The same section with one more block at its end.
    #[must_use]
    pub fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }
}

/// One piece of content. All text is plain, with code between backticks.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading inside the section.
    Heading(String),
    /// A paragraph.
    Paragraph(String),
    /// Points, each a sentence or less.
    List(Vec<String>),
    /// A table.
    Table(Table),
    /// Drawings, side by side where the page is wide enough.
    Figures(Vec<Plate>),
    /// Claims with their verdicts.
    Claims(Vec<Claim>),
    /// Content that is folded away until asked for.
    Details {
        /// What stands on the fold.
        summary: String,
        /// What is behind it.
        blocks: Vec<Block>,
    },
}

/// A name for links: lower-case letters, digits and single hyphens.
pub(crate) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        "section".to_owned()
    } else {
        slug.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Verdict, sample};

    #[test]
    fn anchors_are_plain_and_unique() {
        assert_eq!(
            slug("Tail regression (4.1), Figure 2"),
            "tail-regression-4-1-figure-2"
        );
        assert_eq!(slug("«»"), "section");
        let anchors = sample::report().anchors();
        assert_eq!(&anchors[1..], ["claims", "claims-2"]);
    }

    #[test]
    fn claims_are_found_at_any_depth() {
        let folded = Block::Details {
            summary: String::new(),
            blocks: vec![Block::Claims(vec![Claim::new("deep", Verdict::Met, "")])],
        };
        let report = Report {
            sections: vec![Section::new("a").with(folded)],
            ..Report::default()
        };
        assert_eq!(report.claims().count(), 1);
        assert_eq!(report.tally().count(Verdict::Met), 1);
    }
}

//! What an experiment is in words, and what it takes: a card for each.

use adaparam_lm::TextSource;

use super::Experiment;
use crate::result::Scale;

/// An experiment apart from its models, their sizes and its claims.
#[derive(Debug, Clone, Copy)]
pub struct Card {
    /// Its name in commands and files.
    pub name: &'static str,
    /// What it is, as a line of help.
    pub about: &'static str,
    /// Its name in a report; with the text behind it, unless the text is in it.
    pub heading: &'static str,
    /// Its name in the bar of links.
    pub(super) short_name: &'static str,
    /// Where the paper has it.
    pub(crate) place: &'static str,
    /// The text that it is about; quick runs read embedded text in its place.
    pub(super) text: TextSource,
    /// Whether its name is that of its text.
    pub(super) is_named_by_text: bool,
    /// The scales that it comes in, the largest first.
    pub scales: &'static [Scale],
    /// Whether systems of others can stand beside the paper's own models.
    pub takes_systems: bool,
    /// What its comparisons are called beside those of other experiments on the same text, and how a sentence about them
    /// begins; empty for a text's main experiment.
    pub(super) aside: (&'static str, &'static str),
}

/// Sizes are part of these experiments, and no larger ones are planned.
const IN_SIZES_OF_THEIR_OWN: &[Scale] = &[Scale::Small, Scale::Quick];

const PTB: Card = Card {
    name: "ptb",
    about: "Language models on the Penn Treebank (section 4.3, Table 2, Figure 3)",
    heading: "Penn Treebank",
    short_name: "Penn Treebank",
    place: "section 4.3, Table 2 and Figure 3",
    text: TextSource::Ptb,
    is_named_by_text: true,
    scales: &Scale::ALL,
    takes_systems: true,
    aside: ("", "On"),
};

const WIKITEXT_2: Card = Card {
    name: "wikitext2",
    about: "Language models on WikiText-2 (section 4.4, Table 3)",
    heading: "WikiText-2",
    short_name: "WikiText-2",
    place: "section 4.4, Table 3",
    text: TextSource::WikiText2,
    ..PTB
};

const ABLATION: Card = Card {
    name: "ablation",
    about: "Each part of the adaptive LSTM by itself (section 4.5, Table 4)",
    heading: "Ablation",
    short_name: "Ablation",
    place: "section 4.5, Table 4",
    is_named_by_text: false,
    aside: ("ablation", "In the ablation on"),
    ..PTB
};

const ROBUSTNESS: Card = Card {
    name: "robustness",
    about: "Language models with random dropout rates (section 4.6, Figure 4)",
    heading: "Robustness",
    short_name: "Robustness",
    place: "section 4.6, Figure 4",
    is_named_by_text: false,
    takes_systems: false,
    ..PTB
};

const EFFICIENCY: Card = Card {
    name: "efficiency",
    about: "Language models of several sizes and on parts of the text: parameters, words and epochs that adaptation saves \
            (abstract, section 1); at scale small or quick",
    heading: "Statistical efficiency",
    short_name: "Efficiency",
    place: "abstract and section 1",
    is_named_by_text: false,
    scales: IN_SIZES_OF_THEIR_OWN,
    takes_systems: false,
    aside: ("efficiency", "On"),
    ..PTB
};

const CHOICES: Card = Card {
    name: "choices",
    about: "What the paper says about its choices without a table: kinds and tying of adaptation, clipping, dropout, depth \
            (sections 2 to 4); at scale small or quick",
    heading: "The paper's choices",
    short_name: "Choices",
    place: "sections 2.2, 3 and 4.3",
    is_named_by_text: false,
    scales: IN_SIZES_OF_THEIR_OWN,
    takes_systems: false,
    aside: ("choices", "Among the paper's choices on"),
    ..PTB
};

impl Experiment {
    /// What it is in words, and what it takes.
    pub const fn card(self) -> &'static Card {
        match self {
            Self::Ptb => &PTB,
            Self::WikiText2 => &WIKITEXT_2,
            Self::Ablation => &ABLATION,
            Self::Robustness => &ROBUSTNESS,
            Self::Efficiency => &EFFICIENCY,
            Self::Choices => &CHOICES,
        }
    }

    /// Its name in commands and files.
    pub const fn name(self) -> &'static str {
        self.card().name
    }

    /// The experiment of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// The text that it learns from; quick runs read embedded text in its place.
    pub(super) const fn text(self, scale: Scale) -> TextSource {
        match scale {
            Scale::Quick => TextSource::MobyDick,
            _ => self.card().text,
        }
    }
}

//! What `reproduce` can run.

use std::sync::LazyLock;

use adaparam_paper::experiment::Experiment;
use adaparam_paper::result::{Claim, Scale};
use adaparam_paper::{image, page, tail};
use clap::ValueEnum;
use clap::builder::PossibleValue;

/// An experiment, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    HeatMaps,
    Tail,
    Mnist,
    LanguageModels(Experiment),
    All,
}

/// A part that all leaves out.
pub(super) struct LeftOut {
    pub(super) what: What,
    /// The command that runs it.
    pub(super) command: String,
    pub(super) reason: &'static str,
}

impl ValueEnum for What {
    fn value_variants<'a>() -> &'a [Self] {
        static VARIANTS: LazyLock<Vec<What>> =
            LazyLock::new(|| [What::all_parts(), vec![What::All]].concat());
        &VARIANTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let about = match self {
            Self::HeatMaps => "What adaptation does to a matrix (Figure 1)",
            Self::Tail => "Extreme tail regression (section 4.1, Figure 2)",
            Self::Mnist => "Handwritten digits (section 4.2, Table 1)",
            Self::LanguageModels(experiment) => experiment.card().about,
            Self::All => "All of them",
        };
        Some(PossibleValue::new(self.name()).help(about))
    }
}

impl What {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::HeatMaps => "heat-maps",
            Self::Tail => "tail",
            Self::Mnist => "mnist",
            Self::LanguageModels(experiment) => experiment.name(),
            Self::All => "all",
        }
    }

    /// Everything that all consists of.
    pub(super) fn all_parts() -> Vec<Self> {
        let feed_forward = [Self::HeatMaps, Self::Tail, Self::Mnist];
        let language_models = Experiment::ALL.map(Self::LanguageModels);
        feed_forward.into_iter().chain(language_models).collect()
    }

    /// Its parts at a scale: of all, those that are not left out.
    pub(super) fn parts(self, scale: Scale) -> Vec<Self> {
        match self {
            Self::All => {
                let left_out = Self::left_out(scale);
                let is_there = |part: &Self| !left_out.iter().any(|left| left.what == *part);
                Self::all_parts().into_iter().filter(is_there).collect()
            }
            one => vec![one],
        }
    }

    /// The parts that all leaves out at a scale: of a quick run, what shows nothing in minutes; of a larger one, what has no such
    /// size.
    pub(super) fn left_out(scale: Scale) -> Vec<LeftOut> {
        let of = |(experiment, command, reason): (Experiment, &str, &'static str)| LeftOut {
            what: Self::LanguageModels(experiment),
            command: command.to_owned(),
            reason,
        };
        if scale == Scale::Quick {
            return LEFT_OUT_OF_QUICK.into_iter().map(of).collect();
        }
        let has_none = |it: &Experiment| !it.card().scales.contains(&scale);
        let without = Experiment::ALL.into_iter().filter(has_none);
        without
            .map(|experiment| LeftOut {
                what: Self::LanguageModels(experiment),
                command: format!("adaparam reproduce {} --scale small", experiment.name()),
                reason: "its sizes are its own, and there are no larger ones",
            })
            .collect()
    }

    /// What progress calls an experiment with feed-forward networks.
    pub(super) fn title(self, scale: Scale) -> &'static str {
        match (self, scale) {
            (Self::Tail, _) => "tail regression",
            (Self::Mnist, Scale::Quick) => "8×8 digits",
            (Self::Mnist, _) => "MNIST",
            _ => "adapted matrices",
        }
    }

    /// Its name in a report.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::LanguageModels(experiment) => experiment.card().heading,
            Self::Tail => page::TAIL_HEADING,
            Self::Mnist => page::IMAGE_HEADING,
            Self::HeatMaps | Self::All => "",
        }
    }

    /// The claims of the paper that it would judge.
    pub(super) fn open_claims(self, scale: Scale) -> Vec<Claim> {
        match self {
            Self::LanguageModels(experiment) => experiment.open_claims(scale),
            Self::Tail => tail::open_claims(),
            Self::Mnist => image::open_claims(),
            Self::HeatMaps | Self::All => Vec::new(),
        }
    }

    /// The experiment with language models, if it is one.
    pub(super) const fn experiment(self) -> Option<Experiment> {
        match self {
            Self::LanguageModels(experiment) => Some(experiment),
            _ => None,
        }
    }
}

/// What does not belong into a few minutes, with the command that runs it and why.
const LEFT_OUT_OF_QUICK: [(Experiment, &str, &str); 5] = [
    (
        Experiment::WikiText2,
        "adaparam reproduce wikitext2",
        "a second text, which is not inside the program",
    ),
    (
        Experiment::Ablation,
        "adaparam reproduce ablation --quick",
        "seven models of three seeds",
    ),
    (
        Experiment::Robustness,
        "adaparam reproduce robustness",
        "models this small fail to converge under random dropout rates, adaptive or not",
    ),
    (
        Experiment::Efficiency,
        "adaparam reproduce efficiency --quick",
        "twelve models of three seeds",
    ),
    (
        Experiment::Choices,
        "adaparam reproduce choices --quick",
        "sixteen models of three seeds",
    ),
];

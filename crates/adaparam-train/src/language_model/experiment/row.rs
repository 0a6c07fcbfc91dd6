use adaparam::recurrent::{LstmAdaptation, PolicyModel, Summary};

use super::Experiment;
use crate::language_model::config::{LayerKind, ModelSpec};
use crate::result::Scale;

/// A row of one of the paper's tables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelRow {
    /// Its name in the names of runs.
    pub key: &'static str,
    /// Its name in tables.
    pub label: &'static str,
    /// The preset with the paper's sizes.
    pub preset: &'static str,
    /// What the paper reports.
    pub paper: Option<PaperScore>,
    pub(super) variant: Variant,
}

/// What the paper reports for a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaperScore {
    /// Parameters, in words.
    pub size: &'static str,
    /// Validation perplexity.
    pub valid: f64,
    /// Test perplexity.
    pub test: f64,
}

/// What tells the models of a table apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Variant {
    Lstm,
    Adaptive(PolicyModel, Summary, LstmAdaptation),
}

const HYBRID: Variant =
    Variant::Adaptive(PolicyModel::Recurrent, Summary::Hybrid, LstmAdaptation::Io);
const STATIC: Variant = Variant::Adaptive(PolicyModel::Static, Summary::Own, LstmAdaptation::Io);

impl Variant {
    /// A model of this kind, otherwise as `model`.
    pub(super) fn applied(self, model: &ModelSpec) -> ModelSpec {
        match self {
            Self::Lstm => ModelSpec {
                kind: LayerKind::Lstm,
                ..model.clone()
            },
            Self::Adaptive(policy, summary, adaptation) => ModelSpec {
                kind: LayerKind::AdaptiveLstm,
                policy,
                summary,
                adaptation,
                ..model.clone()
            },
        }
    }

    /// Whether the paper lowers the dropout rates of this model slightly.
    pub(super) fn is_gentle(self) -> bool {
        let gentle = (PolicyModel::Static, LstmAdaptation::Output);
        matches!(self, Self::Adaptive(policy, _, adaptation) if (policy, adaptation) == gentle)
    }
}

const fn row(
    key: &'static str,
    label: &'static str,
    preset: &'static str,
    variant: Variant,
    paper: Option<PaperScore>,
) -> ModelRow {
    ModelRow {
        key,
        label,
        preset,
        paper,
        variant,
    }
}

const fn score(size: &'static str, valid: f64, test: f64) -> Option<PaperScore> {
    Some(PaperScore { size, valid, test })
}

impl Experiment {
    /// The models that are compared. Where the paper has one model in several sizes, only full scale has them all.
    pub fn rows(self, scale: Scale) -> Vec<ModelRow> {
        let is_full = scale == Scale::Full;
        match self {
            Self::Ptb if is_full => vec![
                row(
                    "lstm",
                    "LSTM",
                    "ptb-lstm-20m",
                    Variant::Lstm,
                    score("20M", 71.7, 68.9),
                ),
                row(
                    "static",
                    "aLSTM, static policy",
                    "ptb-static-17m",
                    STATIC,
                    score("17M", 60.2, 58.0),
                ),
                row(
                    "recurrent-14m",
                    "aLSTM, recurrent policy, 14M",
                    "ptb-14m",
                    HYBRID,
                    score("14M", 59.6, 57.2),
                ),
                row(
                    "recurrent",
                    "aLSTM, recurrent policy",
                    "ptb-17m",
                    HYBRID,
                    score("17M", 58.7, 56.5),
                ),
                row(
                    "recurrent-24m",
                    "aLSTM, recurrent policy, 24M",
                    "ptb-24m",
                    HYBRID,
                    score("24M", 57.6, 55.3),
                ),
            ],
            Self::Ptb => vec![
                row(
                    "lstm",
                    "LSTM",
                    "ptb-lstm-20m",
                    Variant::Lstm,
                    score("20M", 71.7, 68.9),
                ),
                row(
                    "static",
                    "aLSTM, static policy",
                    "ptb-static-17m",
                    STATIC,
                    score("17M", 60.2, 58.0),
                ),
                row(
                    "recurrent",
                    "aLSTM, recurrent policy",
                    "ptb-17m",
                    HYBRID,
                    score("17M", 58.7, 56.5),
                ),
            ],
            Self::WikiText2 => {
                let mut rows = vec![
                    row("lstm", "LSTM", "ptb-lstm-20m", Variant::Lstm, None),
                    row(
                        "static",
                        "aLSTM, static policy",
                        "ptb-static-17m",
                        STATIC,
                        None,
                    ),
                    row(
                        "recurrent",
                        "aLSTM, recurrent policy",
                        "wikitext-2-27m",
                        HYBRID,
                        score("27M", 68.1, 65.5),
                    ),
                ];
                if is_full {
                    rows.push(row(
                        "recurrent-32m",
                        "aLSTM, recurrent policy, 32M",
                        "wikitext-2-32m",
                        HYBRID,
                        score("32M", 67.5, 64.5),
                    ));
                }
                rows
            }
            Self::Ablation => ablation(),
            Self::Robustness => vec![
                row("lstm", "LSTM", "ptb-lstm-20m", Variant::Lstm, None),
                row("alstm", "aLSTM", "ptb-17m", HYBRID, None),
            ],
        }
    }
}

fn ablation() -> Vec<ModelRow> {
    use LstmAdaptation::{Io, Output};
    use PolicyModel::{Recurrent, Static};
    let adaptive = |policy, summary, adaptation| Variant::Adaptive(policy, summary, adaptation);
    vec![
        row(
            "lstm",
            "LSTM",
            "ptb-lstm-20m",
            Variant::Lstm,
            score("17M", 71.7, 68.9),
        ),
        row(
            "static-output",
            "aLSTM, feed-forward, output",
            "ablation-static-output",
            adaptive(Static, Summary::Own, Output),
            score("17M", 66.0, 63.1),
        ),
        row(
            "lstm-output",
            "aLSTM, LSTM, output (HyperNetwork)",
            "ablation-lstm-output",
            adaptive(Recurrent, Summary::Own, Output),
            score("17M", 59.9, 58.2),
        ),
        row(
            "hybrid-output",
            "aLSTM, LSTM-RHN, output",
            "ablation-hybrid-output",
            adaptive(Recurrent, Summary::Hybrid, Output),
            score("17M", 59.7, 57.3),
        ),
        row(
            "static-io",
            "aLSTM, feed-forward, IO",
            "ablation-static-io",
            adaptive(Static, Summary::Own, Io),
            score("17M", 61.6, 59.1),
        ),
        row(
            "lstm-io",
            "aLSTM, LSTM, IO",
            "ablation-lstm-io",
            adaptive(Recurrent, Summary::Own, Io),
            score("17M", 59.0, 56.9),
        ),
        row(
            "hybrid-io",
            "aLSTM, LSTM-RHN, IO",
            "ablation-hybrid-io",
            adaptive(Recurrent, Summary::Hybrid, Io),
            score("17M", 58.5, 56.5),
        ),
    ]
}

use adaparam::recurrent::{
    AdaptiveLstmSettings, LstmAdaptation, LstmSettings, PolicyModel, Summary,
};
use adaparam_lm::{CellChoice, ModelSpec};

use super::Experiment;
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

/// A row of the paper's tables that others have published, as the paper quotes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PublishedRow {
    /// The model and its authors.
    pub(crate) label: &'static str,
    /// Parameters, in words.
    pub(crate) size: Option<&'static str>,
    /// Validation perplexity.
    pub(crate) valid: Option<f64>,
    /// Test perplexity.
    pub(crate) test: f64,
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
                cell: CellChoice::of(&LstmSettings::default()),
                ..model.clone()
            },
            Self::Adaptive(policy, summary, adaptation) => ModelSpec {
                cell: CellChoice::of(&AdaptiveLstmSettings {
                    policy,
                    summary,
                    adaptation,
                    ..model.cell.get().unwrap_or_default()
                }),
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
) -> ModelRow {
    ModelRow {
        key,
        label,
        preset,
        paper: None,
        variant,
    }
}

impl ModelRow {
    /// The same row with what the paper reports.
    const fn reporting(self, size: &'static str, valid: f64, test: f64) -> Self {
        Self {
            paper: Some(PaperScore { size, valid, test }),
            ..self
        }
    }
}

/// Rows that repeat another with more or fewer parameters.
const OTHER_SIZES: [&str; 3] = ["recurrent-14m", "recurrent-24m", "recurrent-32m"];

impl Experiment {
    /// The models that are compared. Where the paper has one model in several sizes, only full scale has them all.
    pub fn rows(self, scale: Scale) -> Vec<ModelRow> {
        let mut rows = match self {
            Self::Ptb => table_2(),
            Self::WikiText2 => table_3(),
            Self::Ablation => table_4(),
            Self::Robustness => vec![
                row("lstm", "LSTM", "ptb-lstm-20m", Variant::Lstm),
                row("alstm", "aLSTM", "ptb-17m", HYBRID),
            ],
        };
        rows.retain(|row| scale == Scale::Full || !OTHER_SIZES.contains(&row.key));
        rows
    }
}

impl Experiment {
    /// The rows of the paper's table that are quoted from others.
    pub(crate) fn published(self) -> Vec<PublishedRow> {
        let row = |label, size, valid, test| PublishedRow {
            label,
            size,
            valid,
            test,
        };
        match self {
            Self::Ptb => vec![
                row("LSTM, Zaremba et al. 2015", Some("24M"), Some(82.2), 78.4),
                row("RHN, Zilly et al. 2016", Some("24M"), Some(67.9), 65.4),
                row("NAS, Zoph and Le 2016", Some("54M"), None, 62.4),
                row(
                    "TG-SC LSTM, Melis et al. 2017",
                    Some("10M"),
                    Some(62.4),
                    60.1,
                ),
                row(
                    "TG-SC LSTM, Melis et al. 2017",
                    Some("24M"),
                    Some(60.9),
                    58.3,
                ),
                row(
                    "AWD-LSTM, Merity et al. 2017",
                    Some("24M"),
                    Some(60.0),
                    57.3,
                ),
            ],
            Self::WikiText2 => vec![
                row("LSTM, Grave et al. 2016", None, None, 99.3),
                row("LSTM, Inan et al. 2016", Some("22M"), Some(91.5), 87.7),
                row(
                    "AWD-LSTM, Merity et al. 2017",
                    Some("33M"),
                    Some(68.6),
                    65.8,
                ),
                row(
                    "TG-SC LSTM, Melis et al. 2017",
                    Some("24M"),
                    Some(69.1),
                    65.9,
                ),
            ],
            Self::Ablation | Self::Robustness => Vec::new(),
        }
    }
}

fn table_2() -> Vec<ModelRow> {
    let recurrent = |key, label, preset| row(key, label, preset, HYBRID);
    vec![
        row("lstm", "LSTM", "ptb-lstm-20m", Variant::Lstm).reporting("20M", 71.7, 68.9),
        row("static", "aLSTM, static policy", "ptb-static-17m", STATIC)
            .reporting("17M", 60.2, 58.0),
        recurrent("recurrent-14m", "aLSTM, recurrent policy, 14M", "ptb-14m")
            .reporting("14M", 59.6, 57.2),
        recurrent("recurrent", "aLSTM, recurrent policy", "ptb-17m").reporting("17M", 58.7, 56.5),
        recurrent("recurrent-24m", "aLSTM, recurrent policy, 24M", "ptb-24m")
            .reporting("24M", 57.6, 55.3),
    ]
}

/// With an LSTM and a static policy of our own, which the paper's table lacks.
fn table_3() -> Vec<ModelRow> {
    let recurrent = |key, label, preset| row(key, label, preset, HYBRID);
    vec![
        row("lstm", "LSTM", "ptb-lstm-20m", Variant::Lstm),
        row("static", "aLSTM, static policy", "ptb-static-17m", STATIC),
        recurrent("recurrent", "aLSTM, recurrent policy", "wikitext-2-27m")
            .reporting("27M", 68.1, 65.5),
        recurrent(
            "recurrent-32m",
            "aLSTM, recurrent policy, 32M",
            "wikitext-2-32m",
        )
        .reporting("32M", 67.5, 64.5),
    ]
}

fn table_4() -> Vec<ModelRow> {
    use LstmAdaptation::{Io, Output};
    use PolicyModel::{Recurrent, Static};
    let adaptive = |policy, summary, adaptation| Variant::Adaptive(policy, summary, adaptation);
    vec![
        row("lstm", "LSTM", "ptb-lstm-20m", Variant::Lstm).reporting("17M", 71.7, 68.9),
        row(
            "static-output",
            "aLSTM, feed-forward, output",
            "ablation-static-output",
            adaptive(Static, Summary::Own, Output),
        )
        .reporting("17M", 66.0, 63.1),
        row(
            "lstm-output",
            "aLSTM, LSTM, output (HyperNetwork)",
            "ablation-lstm-output",
            adaptive(Recurrent, Summary::Own, Output),
        )
        .reporting("17M", 59.9, 58.2),
        row(
            "hybrid-output",
            "aLSTM, LSTM-RHN, output",
            "ablation-hybrid-output",
            adaptive(Recurrent, Summary::Hybrid, Output),
        )
        .reporting("17M", 59.7, 57.3),
        row(
            "static-io",
            "aLSTM, feed-forward, IO",
            "ablation-static-io",
            adaptive(Static, Summary::Own, Io),
        )
        .reporting("17M", 61.6, 59.1),
        row(
            "lstm-io",
            "aLSTM, LSTM, IO",
            "ablation-lstm-io",
            adaptive(Recurrent, Summary::Own, Io),
        )
        .reporting("17M", 59.0, 56.9),
        row(
            "hybrid-io",
            "aLSTM, LSTM-RHN, IO",
            "ablation-hybrid-io",
            adaptive(Recurrent, Summary::Hybrid, Io),
        )
        .reporting("17M", 58.5, 56.5),
    ]
}

//! The models of the paper's tables, an entry for each.

use adaparam::recurrent::LstmAdaptation::{self, Io, Output};
use adaparam::recurrent::PolicyModel::{self, Recurrent, Static};
use adaparam::recurrent::{AdaptiveLstmSettings, LstmSettings, Summary};
use adaparam_lm::CellChoice;

use super::Experiment;
use crate::result::Scale;

/// A row of one of the paper's tables.
///
/// Everything that is particular to a model: plans, tables and figures know rows only.
#[derive(Debug, Clone, Copy)]
pub struct ModelRow {
    /// Its name in the names of runs.
    pub key: &'static str,
    /// Its name in tables.
    pub label: &'static str,
    /// The preset with the paper's sizes.
    pub preset: &'static str,
    /// What the paper reports.
    pub paper: Option<PaperScore>,
    /// Its cell, given that of its preset or, at a smaller scale, of the paper's own model there.
    pub(super) cell: fn(&CellChoice) -> CellChoice,
    /// The norm at which its gradients are clipped, where they are.
    pub(super) clip: Option<f64>,
    /// The share of the dropout rates of the paper's own model that it is trained with, where these are strong.
    pub(super) dropout: f64,
    /// Whether it repeats another row with more or fewer parameters, which only full scale can.
    other_size: bool,
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

/// A row whose models are trained as the paper's own.
pub(super) const fn row(
    key: &'static str,
    label: &'static str,
    preset: &'static str,
    cell: fn(&CellChoice) -> CellChoice,
) -> ModelRow {
    ModelRow {
        key,
        label,
        preset,
        paper: None,
        cell,
        clip: None,
        dropout: 1.0,
        other_size: false,
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

    /// The same row with gradients clipped at this norm.
    const fn clipped(self, norm: f64) -> Self {
        Self {
            clip: Some(norm),
            ..self
        }
    }

    /// The same row with this share of strong dropout rates.
    const fn dropping(self, share: f64) -> Self {
        Self {
            dropout: share,
            ..self
        }
    }

    /// The same row as a repetition of another in another size.
    const fn in_another_size(self) -> Self {
        Self {
            other_size: true,
            ..self
        }
    }
}

/// The paper's baseline, which converges only with clipped gradients and dropout reduced by a quarter.
const LSTM: ModelRow = row("lstm", "LSTM", "ptb-lstm-20m", |_| {
    CellChoice::of(&LstmSettings::default())
})
.clipped(5.0)
.dropping(0.75);

/// An adaptive LSTM, otherwise as the cell that it is made from.
fn adaptive(
    cell: &CellChoice,
    policy: PolicyModel,
    summary: Summary,
    adaptation: LstmAdaptation,
) -> CellChoice {
    CellChoice::of(&AdaptiveLstmSettings {
        policy,
        summary,
        adaptation,
        ..cell.get().unwrap_or_default()
    })
}

/// A row of the paper's own model.
const fn hybrid(key: &'static str, label: &'static str, preset: &'static str) -> ModelRow {
    row(key, label, preset, |cell| {
        adaptive(cell, Recurrent, Summary::Hybrid, Io)
    })
}

const STATIC: ModelRow = row("static", "aLSTM, static policy", "ptb-static-17m", |cell| {
    adaptive(cell, Static, Summary::Own, Io)
});

impl Experiment {
    /// The models that are compared. Where the paper has one model in several sizes, only full scale has them all.
    pub fn rows(self, scale: Scale) -> Vec<ModelRow> {
        let mut rows = match self {
            Self::Ptb => table_2(),
            Self::WikiText2 => table_3(),
            Self::Ablation => table_4(),
            Self::Robustness => vec![LSTM, hybrid("alstm", "aLSTM", "ptb-17m")],
        };
        rows.retain(|row| scale == Scale::Full || !row.other_size);
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
    vec![
        LSTM.reporting("20M", 71.7, 68.9),
        STATIC.reporting("17M", 60.2, 58.0),
        hybrid("recurrent-14m", "aLSTM, recurrent policy, 14M", "ptb-14m")
            .reporting("14M", 59.6, 57.2)
            .in_another_size(),
        hybrid("recurrent", "aLSTM, recurrent policy", "ptb-17m").reporting("17M", 58.7, 56.5),
        hybrid("recurrent-24m", "aLSTM, recurrent policy, 24M", "ptb-24m")
            .reporting("24M", 57.6, 55.3)
            .in_another_size(),
    ]
}

/// With an LSTM and a static policy of our own, which the paper's table lacks.
fn table_3() -> Vec<ModelRow> {
    vec![
        LSTM,
        STATIC,
        hybrid("recurrent", "aLSTM, recurrent policy", "wikitext-2-27m")
            .reporting("27M", 68.1, 65.5),
        hybrid(
            "recurrent-32m",
            "aLSTM, recurrent policy, 32M",
            "wikitext-2-32m",
        )
        .reporting("32M", 67.5, 64.5)
        .in_another_size(),
    ]
}

fn table_4() -> Vec<ModelRow> {
    vec![
        LSTM.reporting("17M", 71.7, 68.9),
        // The paper: it "needed slightly lower dropout rates".
        row(
            "static-output",
            "aLSTM, feed-forward, output",
            "ablation-static-output",
            |cell| adaptive(cell, Static, Summary::Own, Output),
        )
        .dropping(0.9)
        .reporting("17M", 66.0, 63.1),
        row(
            "lstm-output",
            "aLSTM, LSTM, output (HyperNetwork)",
            "ablation-lstm-output",
            |cell| adaptive(cell, Recurrent, Summary::Own, Output),
        )
        .reporting("17M", 59.9, 58.2),
        row(
            "hybrid-output",
            "aLSTM, LSTM-RHN, output",
            "ablation-hybrid-output",
            |cell| adaptive(cell, Recurrent, Summary::Hybrid, Output),
        )
        .reporting("17M", 59.7, 57.3),
        row(
            "static-io",
            "aLSTM, feed-forward, IO",
            "ablation-static-io",
            |cell| adaptive(cell, Static, Summary::Own, Io),
        )
        .reporting("17M", 61.6, 59.1),
        row("lstm-io", "aLSTM, LSTM, IO", "ablation-lstm-io", |cell| {
            adaptive(cell, Recurrent, Summary::Own, Io)
        })
        .reporting("17M", 59.0, 56.9),
        hybrid("hybrid-io", "aLSTM, LSTM-RHN, IO", "ablation-hybrid-io")
            .reporting("17M", 58.5, 56.5),
    ]
}

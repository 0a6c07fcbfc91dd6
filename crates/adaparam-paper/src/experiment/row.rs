//! The models of the paper's tables, an entry for each.

use adaparam::recurrent::LstmAdaptation::{self, Io, Output};
use adaparam::recurrent::PolicyModel::{self, Recurrent, Static};
use adaparam::recurrent::{AdaptiveLstmSettings, LstmSettings, Summary};
use adaparam_lm::CellChoice;

use super::Experiment;
use super::choices;
use super::portion::{self, Portion};
use super::system::Group;
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
    /// The preset with the paper's sizes; empty for a system that has none, and is then as large as the paper's own model.
    pub preset: &'static str,
    /// What the paper reports.
    pub paper: Option<PaperScore>,
    /// What the paper's table has wrong about it, if anything.
    pub(crate) remark: Option<&'static str>,
    /// What it is of.
    pub(crate) group: Group,
    /// The kind of its cell where it is another than the paper's own models have; empty otherwise.
    pub(super) cell_kind: &'static str,
    /// Its cell, given that of its preset or, at a smaller scale, of the paper's own model there.
    pub(super) cell: fn(&CellChoice) -> CellChoice,
    /// What makes the system, besides its cell, wherever it is not its preset: keys with their values.
    pub(super) made_by: &'static [(&'static str, &'static str)],
    /// How many softmaxes its head mixes; 0 for the head of its preset.
    pub(super) experts: usize,
    /// The norm at which its gradients are clipped, where they are.
    pub(super) clip: Option<f64>,
    /// The share of the dropout rates of the paper's own model that it is trained with, where these are strong.
    pub(super) dropout: f64,
    /// What is added to every dropout rate besides.
    pub(super) dropout_shift: f64,
    /// Whether it repeats another row with more or fewer parameters, which only full scale can.
    other_size: bool,
    /// Its size and its share of the text, where rows differ in these.
    pub(crate) portion: Option<Portion>,
}

/// What the paper reports for a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaperScore {
    /// Parameters, in words.
    pub size: Option<&'static str>,
    /// Validation perplexity.
    pub valid: Option<f64>,
    /// Test perplexity.
    pub test: f64,
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
        remark: None,
        group: Group::Own,
        cell_kind: "",
        made_by: &[],
        experts: 0,
        cell,
        clip: None,
        dropout: 1.0,
        dropout_shift: 0.0,
        other_size: false,
        portion: None,
    }
}

impl ModelRow {
    /// The same row with what the paper reports.
    const fn reporting(self, size: &'static str, valid: f64, test: f64) -> Self {
        Self {
            paper: Some(PaperScore {
                size: Some(size),
                valid: Some(valid),
                test,
            }),
            ..self
        }
    }

    /// The same row as one that the paper quotes, with the preset that is as published.
    pub(super) const fn published(
        self,
        preset: &'static str,
        size: Option<&'static str>,
        valid: Option<f64>,
        test: f64,
    ) -> Self {
        Self {
            preset,
            paper: Some(PaperScore { size, valid, test }),
            group: Group::Quoted,
            ..self
        }
    }

    /// The same row with the preset that is as published.
    pub(super) const fn with_preset(self, preset: &'static str) -> Self {
        Self { preset, ..self }
    }

    /// The same row as one that the paper's table does not have.
    pub(super) const fn related(self) -> Self {
        Self {
            group: Group::Related,
            ..self
        }
    }

    /// The same row with a cell of this kind.
    pub(super) const fn of_cell(self, cell_kind: &'static str) -> Self {
        Self { cell_kind, ..self }
    }

    /// The same row with these keys wherever it is not its preset.
    pub(super) const fn made_by(self, made_by: &'static [(&'static str, &'static str)]) -> Self {
        Self { made_by, ..self }
    }

    /// The same row with a mixture of so many softmaxes.
    pub(super) const fn mixing(self, experts: usize) -> Self {
        Self { experts, ..self }
    }

    /// The same row with what the paper's table has wrong about it.
    pub(super) const fn remarked(self, remark: &'static str) -> Self {
        Self {
            remark: Some(remark),
            ..self
        }
    }

    /// The same row without what the paper reports.
    pub(super) const fn without_score(self) -> Self {
        Self {
            paper: None,
            remark: None,
            ..self
        }
    }

    /// The same row with gradients clipped at this norm.
    pub(super) const fn clipped(self, norm: f64) -> Self {
        Self {
            clip: Some(norm),
            ..self
        }
    }

    /// The same row with this share of strong dropout rates.
    pub(super) const fn dropping(self, share: f64) -> Self {
        Self {
            dropout: share,
            ..self
        }
    }

    /// The same row with so much more dropout at every site.
    pub(super) const fn dropping_more_by(self, shift: f64) -> Self {
        Self {
            dropout_shift: shift,
            ..self
        }
    }

    /// The same row under another name.
    pub(super) const fn named(self, key: &'static str, label: &'static str) -> Self {
        Self { key, label, ..self }
    }

    /// The same row under another name, with a size and a share of the text.
    pub(super) const fn in_portion(
        self,
        key: &'static str,
        label: &'static str,
        portion: Portion,
    ) -> Self {
        Self {
            portion: Some(portion),
            ..self.named(key, label)
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
pub(super) const LSTM: ModelRow = row("lstm", "LSTM", "ptb-lstm-20m", |_| {
    CellChoice::of(&LstmSettings::default())
})
.clipped(5.0)
.dropping(0.75);

/// An adaptive LSTM, otherwise as the cell that it is made from.
pub(super) fn adaptive(
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
pub(super) const fn hybrid(
    key: &'static str,
    label: &'static str,
    preset: &'static str,
) -> ModelRow {
    row(key, label, preset, |cell| {
        adaptive(cell, Recurrent, Summary::Hybrid, Io)
    })
}

pub(super) const STATIC: ModelRow =
    row("static", "aLSTM, static policy", "ptb-static-17m", |cell| {
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
            Self::Efficiency => portion::rows(scale),
            Self::Choices => choices::rows(),
        };
        rows.retain(|row| scale == Scale::Full || !row.other_size);
        rows
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

//! The systems that others have published, as rows that run: a line for each.
//!
//! At full scale a system is a preset, as published. Below, it is trained as the paper's own models are there, with as
//! many parameters: what its authors say about training counts only where it is part of the system.

use adaparam_lm::{CellChoice, Cells, Family, TextSource, nearest, preset};
use adaparam_runs::RunError;

use super::Experiment;
use super::row::{ModelRow, hybrid, row};
use crate::PaperError;
use crate::result::Scale;

/// Which systems a person wants in a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Systems {
    /// The paper's own models and its baseline.
    #[default]
    Own,
    /// Every row of the paper's table.
    Paper,
    /// These and the systems of the paper's related work, and newer ones.
    All,
    /// Those of these names.
    Named(Vec<String>),
}

/// Words that stand for systems, in place of names.
const ALONE: [&str; 3] = ["own", "paper", "all"];

impl Systems {
    /// What `all`, `paper`, `own` or a list of names with commas means.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "own" => Self::Own,
            "paper" => Self::Paper,
            "all" => Self::All,
            list => Self::Named(list.split(',').map(|name| name.trim().to_owned()).collect()),
        }
    }
}

/// What a row is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// The paper's own models and its baseline.
    Own,
    /// A row of the paper's table that it quotes.
    Quoted,
    /// A system of the paper's related work, or a newer one.
    Related,
}

/// A system whose cell has this name.
macro_rules! system {
    ($key:literal, $label:literal, $cell:literal) => {
        row($key, $label, "", |_| CellChoice::named($cell))
            .of_cell($cell)
            .clipped(5.0)
            .dropping(0.75)
    };
}

/// Of one layer, as published.
const ONE_LAYER: &[(&str, &str)] = &[("model.layers", "1")];
/// The network around the Mogrifier's rounds.
const MOGRIFIER: &[(&str, &str)] = &[
    ("model.cell.input_gate", "capped"),
    ("model.cell.output", "sum"),
];
/// An LSTM whose dropout is fresh at each step and between its layers only.
const DROPS_EACH_STEP: [(&str, &str); 3] = [
    ("model.cell.inter_layer", "true"),
    ("train.dropout.inter_layer", "0.1"),
    ("train.masks", "step"),
];
/// With a softmax that is not tied to the word vectors.
const ZAREMBA: &[(&str, &str)] = &[
    DROPS_EACH_STEP[0],
    DROPS_EACH_STEP[1],
    DROPS_EACH_STEP[2],
    ("model.head.kind", "softmax"),
];
/// Three layers, dropout of recurrent weights and between layers, penalties on outputs and their change.
const AWD: &[(&str, &str)] = &[
    ("model.layers", "3"),
    ("model.cell.inter_layer", "true"),
    ("train.dropout.inter_layer", "0.1"),
    ("train.dropout.weight", "0.2"),
    ("train.activation_l2", "2.0"),
    ("train.temporal_l2", "1.0"),
];

/// Rows of Table 2 that the paper quotes.
fn of_table_2(scale: Scale) -> Vec<ModelRow> {
    // Below full scale both of its LSTMs by Melis et al. are of one size, and told apart by their depth.
    let of_depth_1 = match scale {
        Scale::Full => "TG-SC LSTM, Melis et al. 2017, 10M",
        _ => "TG-SC LSTM of depth 1, Melis et al. 2017",
    };
    vec![
        system!("zaremba", "LSTM, Zaremba et al. 2015", "lstm")
            .made_by(ZAREMBA)
            .published("ptb-zaremba-large", Some("24M"), Some(82.2), 78.4)
            .remarked(
                "The size is a slip: this is the configuration of 66M; 24M is what Melis et al. print for it.",
            ),
        system!("rhn", "RHN, Zilly et al. 2016", "rhn")
            .made_by(ONE_LAYER)
            .published("ptb-rhn", Some("24M"), Some(67.9), 65.4)
            .remarked("Its authors say 23M, and the count is 23.48M."),
        system!("nas", "NAS, Zoph and Le 2016", "nas").published("ptb-nas-54m", Some("54M"), None, 62.4),
        system!("tg-sc-10m", "", "melis-lstm")
            .named("tg-sc-10m", of_depth_1)
            .made_by(ONE_LAYER)
            .published("ptb-melis-10m", Some("10M"), Some(62.4), 60.1)
            .remarked("The numbers are those of depth 4, of which no configuration is known. The best model of 10M that its \
                 authors have is of depth 1: 61.8 and 59.6. That one, `ptb-melis-10m`, is what runs at full scale; at smaller \
                 scales one of depth 1 does, as large as the others."),
        system!("tg-sc", "TG-SC LSTM, Melis et al. 2017", "melis-lstm")
            .published("ptb-melis-24m", Some("24M"), Some(60.9), 58.3),
        system!("awd-lstm", "AWD-LSTM, Merity et al. 2017", "lstm")
            .made_by(AWD)
            .published("ptb-awd", Some("24M"), Some(60.0), 57.3)
            .remarked("An early figure: the code released with it gave 56.6, and 56.5 after a repair of its dropout masks. “Less \
                 than half the iterations” is against its 500 epochs and fine-tuning. The number includes that second stage, \
                 which is not run here: `adaparam train ptb-awd-finetune --from RUN`."),
    ]
}

/// Rows of Table 3 that the paper quotes.
fn of_table_3() -> Vec<ModelRow> {
    vec![
        system!("grave", "LSTM, Grave et al. 2016", "lstm")
            .made_by(ONE_LAYER)
            .published("wikitext2-grave", None, None, 99.3),
        system!("inan", "LSTM, Inan et al. 2016", "lstm")
            .made_by(&DROPS_EACH_STEP)
            .published("wikitext2-inan", Some("22M"), Some(91.5), 87.7)
            .remarked("Other papers give 28M, and a test perplexity of 87.0 for the validation perplexity of 91.5."),
        system!("awd-lstm", "AWD-LSTM, Merity et al. 2017", "lstm")
            .made_by(AWD)
            .published("wikitext2-awd", Some("33M"), Some(68.6), 65.8)
            .remarked("The number includes a second stage, fine-tuning, which is not run here: `adaparam train \
                 wikitext2-awd-finetune --from RUN`."),
        system!("tg-sc", "TG-SC LSTM, Melis et al. 2017", "melis-lstm")
            .published("wikitext2-melis-24m", Some("24M"), Some(69.1), 65.9),
    ]
}

/// Another cell with a small network beside it, whose size, the key `size`, is that of the latent variable of the paper's own model.
fn with_latent(kind: &str, size: &str, own: &CellChoice) -> CellChoice {
    let latent = own.settings().values().remove("latent");
    let values = latent.into_iter().map(|latent| (size.to_owned(), latent));
    CellChoice::new(kind, values.collect()).unwrap_or_else(|_| CellChoice::named(kind))
}

/// Systems of the paper's related work, and newer ones, with the presets of a text where they have any.
fn related(text: TextSource) -> Vec<ModelRow> {
    let mogrifier = match text {
        TextSource::WikiText2 => "wikitext2-mogrifier-35m",
        _ => "ptb-mogrifier-24m",
    };
    let rows = vec![
        system!("rnn", "RNN", "rnn"),
        system!("gru", "GRU, Cho et al. 2014", "gru"),
        system!("mrnn", "mRNN, Sutskever et al. 2011", "mrnn"),
        system!("mlstm", "mLSTM, Krause et al. 2016", "mlstm"),
        system!("mi-rnn", "MI-RNN, Wu et al. 2016", "mi-rnn"),
        system!("mi-lstm", "MI-LSTM, Wu et al. 2016", "mi-lstm"),
        row("hyper-lstm", "HyperLSTM, Ha et al. 2016", "", |cell| {
            with_latent("hyper-lstm", "hyper", cell)
        })
        .of_cell("hyper-lstm")
        .clipped(5.0)
        .dropping(0.75),
        system!(
            "mogrifier",
            "Mogrifier LSTM, Melis et al. 2019",
            "mogrifier"
        )
        .made_by(MOGRIFIER)
        .with_preset(mogrifier),
        system!("min-gru", "minGRU, Feng et al. 2024", "min-gru"),
        system!("min-lstm", "minLSTM, Feng et al. 2024", "min-lstm"),
        system!("slstm", "sLSTM, Beck et al. 2024", "slstm"),
        system!("lstm-mos", "LSTM, mixture of softmaxes", "lstm").mixing(5),
        hybrid("recurrent-mos", "aLSTM, mixture of softmaxes", "").mixing(5),
        row("adaptive-rnn", "aRNN", "", |cell| {
            with_latent("adaptive-rnn", "latent", cell)
        })
        .of_cell("adaptive-rnn"),
        row("adaptive-gru", "aGRU", "", |cell| {
            with_latent("adaptive-gru", "latent", cell)
        })
        .of_cell("adaptive-gru"),
    ];
    let rows = rows.into_iter();
    rows.map(ModelRow::related).collect()
}

/// Why a system cannot be run at a scale, if it cannot.
fn hindrance(row: &ModelRow, scale: Scale) -> Option<String> {
    if scale == Scale::Full && !row.preset.is_empty() {
        let is_missing = preset(row.preset).is_none();
        return is_missing.then(|| {
            let name = row.preset;
            format!("there is no preset {name} to run it with at full scale")
        });
    }
    let mut kinds = Cells::kinds().into_iter().map(|kind| kind.name);
    let is_missing = !row.cell_kind.is_empty() && kinds.all(|kind| kind != row.cell_kind);
    is_missing.then(|| format!("there is no cell of the kind {}", row.cell_kind))
}

impl Experiment {
    /// Every system that can stand in its table: quoted ones, related ones, the paper's own.
    pub(crate) fn systems(self, scale: Scale) -> Vec<ModelRow> {
        let quoted = match self {
            Self::Ptb => of_table_2(scale),
            Self::WikiText2 => of_table_3(),
            // The protocol for many models: the systems of both tables.
            Self::Ablation => {
                let mut all = of_table_2(scale);
                let third = of_table_3().into_iter();
                all.extend(third.filter(|row| ["grave", "inan"].contains(&row.key)));
                // What the tables report is about other training.
                all.into_iter().map(ModelRow::without_score).collect()
            }
            Self::Robustness | Self::Efficiency | Self::Choices => Vec::new(),
        };
        let related = if self.card().takes_systems {
            related(self.text(Scale::Full))
        } else {
            Vec::new()
        };
        let mut rows = [quoted, related].concat();
        rows.extend(self.rows(scale));
        rows
    }

    /// The systems that a person wants, in the order of the table.
    ///
    /// # Errors
    ///
    /// If there is none of some name, or it cannot be run at this scale.
    pub(crate) fn chosen(
        self,
        scale: Scale,
        systems: &Systems,
    ) -> Result<Vec<ModelRow>, PaperError> {
        let all = self.systems(scale);
        // What cannot be run is quoted, where the paper has a number.
        let of = |groups: &[Group]| -> Vec<ModelRow> {
            let wanted = all.iter().filter(|row| groups.contains(&row.group));
            wanted
                .filter(|row| hindrance(row, scale).is_none())
                .copied()
                .collect()
        };
        let rows = match systems {
            Systems::Own => self.rows(scale),
            Systems::Paper => of(&[Group::Own, Group::Quoted]),
            Systems::All => of(&[Group::Own, Group::Quoted, Group::Related]),
            Systems::Named(names) => {
                for name in names {
                    if !all.iter().any(|row| row.key == name) {
                        return Err(self.no_such_system(name, scale, &all).into());
                    }
                }
                let hindered = all
                    .iter()
                    .filter(|row| names.iter().any(|name| name == row.key));
                for row in hindered {
                    if let Some(rule) = hindrance(row, scale) {
                        return Err(RunError::value("--systems", row.key, rule).into());
                    }
                }
                let is_named = |row: &&ModelRow| names.iter().any(|name| name == row.key);
                all.iter().filter(is_named).copied().collect()
            }
        };
        let fault =
            |row: &ModelRow, rule: String| Err(RunError::value("--systems", row.key, rule).into());
        for row in &rows {
            if scale == Scale::Full && !row.preset.is_empty() && preset(row.preset).is_none() {
                let rule = format!(
                    "there is no preset {} to run it with at full scale",
                    row.preset
                );
                return fault(row, rule);
            }
        }
        Ok(rows)
    }

    fn no_such_system(self, name: &str, scale: Scale, all: &[ModelRow]) -> RunError {
        let has_at_full_scale = |experiment: Self| {
            let rows = experiment.systems(Scale::Full);
            rows.iter().any(|row| row.key == name)
        };
        let others = Self::ALL.into_iter().filter(|it| *it != self);
        let others: Vec<&str> = others
            .filter(|it| it.card().takes_systems && has_at_full_scale(*it))
            .map(Self::name)
            .collect();
        let keys: Vec<&str> = all.iter().map(|row| row.key).collect();
        let keys = format!("there are own, paper, all, or of {}", keys.join(", "));
        if name.is_empty() {
            let rule =
                format!("a name is missing: leave out a comma too many, or the flag; {keys}");
            return RunError::value("--systems", "(nothing)", rule);
        }
        let rule = if ALONE.contains(&name) {
            "own, paper and all stand alone: give one of them, or names of systems".to_owned()
        } else if has_at_full_scale(self) {
            format!(
                "is another size of a system, which only --scale full has, not {}",
                scale.name()
            )
        } else if !others.is_empty() {
            let others = others.join(" and ");
            format!("is a system of {others}, not of {}; {keys}", self.name())
        } else {
            let known = all.iter().map(|row| row.key).chain(ALONE);
            let hint = nearest(name, known)
                .map_or_else(String::new, |near| format!("did you mean `{near}`? "));
            format!("{} has no system of this name; {hint}{keys}", self.name())
        };
        RunError::value("--systems", name, rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_tables_is_there_and_names_are_different() {
        for experiment in Experiment::ALL {
            let rows = experiment.systems(Scale::Full);
            for (at, row) in rows.iter().enumerate() {
                let names: Vec<&str> = rows[..at].iter().map(|row| row.key).collect();
                assert!(!names.contains(&row.key), "{}", row.key);
                assert!(!ALONE.contains(&row.key));
            }
        }
        let quoted = |experiment: Experiment| {
            let rows = experiment.systems(Scale::Full).into_iter();
            rows.filter(|row| row.group == Group::Quoted && row.paper.is_some())
                .count()
        };
        assert_eq!(quoted(Experiment::Ptb), 6);
        assert_eq!(quoted(Experiment::WikiText2), 4);
        assert_eq!(quoted(Experiment::Ablation), 0);
    }

    #[test]
    fn a_number_that_includes_fine_tuning_says_so_with_the_command() {
        for experiment in [Experiment::Ptb, Experiment::WikiText2] {
            let rows = experiment.systems(Scale::Full);
            let row = rows.iter().find(|row| row.key == "awd-lstm").unwrap();
            let second = format!("adaparam train {}-finetune --from RUN", row.preset);
            assert!(row.remark.unwrap().contains(&second), "{:?}", row.remark);
            assert!(preset(&format!("{}-finetune", row.preset)).is_some());
        }
    }

    #[test]
    fn a_number_of_another_depth_says_what_runs_at_each_scale() {
        let row = |scale: Scale| {
            let rows = Experiment::Ptb.chosen(scale, &Systems::Paper).unwrap();
            let mut rows = rows.into_iter();
            rows.find(|row| row.key == "tg-sc-10m").unwrap()
        };
        let full = row(Scale::Full);
        let remark = full.remark.unwrap();
        let told = format!("`{}`, is what runs at full scale", full.preset);
        assert!(remark.contains(&told), "{remark}");
        assert!(remark.contains("is of depth 1"), "{remark}");
        assert_eq!(preset(full.preset).unwrap().config.model.layers, 1);
        assert!(remark.ends_with("at smaller scales one of depth 1 does, as large as the others."));
        assert!(full.label.contains("10M"));
        for scale in [Scale::Medium, Scale::Small, Scale::Quick] {
            let row = row(scale);
            assert!(row.made_by.contains(&("model.layers", "1")));
            assert!(row.label.contains("of depth 1") && !row.label.contains("10M"));
        }
    }

    #[test]
    fn a_misspelt_system_is_answered_with_the_nearest() {
        let chosen = |text: &str, scale| Experiment::Ptb.chosen(scale, &Systems::parse(text));
        let keys = |text: &str| -> Vec<&str> {
            let rows = chosen(text, Scale::Small).unwrap();
            rows.iter().map(|row| row.key).collect()
        };
        assert_eq!(keys("own"), ["lstm", "static", "recurrent"]);
        assert_eq!(
            keys("recurrent, gru,zaremba"),
            ["zaremba", "gru", "recurrent"]
        );
        assert!(keys("all").len() > keys("paper").len());
        assert!(keys("paper").contains(&"awd-lstm"));
        let error = chosen("gry", Scale::Small).unwrap_err().to_string();
        assert!(error.contains("did you mean `gru`?"), "{error}");
        let error = chosen("papier", Scale::Small).unwrap_err().to_string();
        assert!(error.contains("did you mean `paper`?"), "{error}");
        let error = chosen("aLSTM", Scale::Small).unwrap_err().to_string();
        assert!(error.contains("did you mean `recurrent`?"), "{error}");
        for (typed, meant) in [
            ("mos", "lstm-mos"),
            ("melis", "tg-sc"),
            ("minlstm", "min-lstm"),
        ] {
            let error = chosen(typed, Scale::Small).unwrap_err().to_string();
            let expected = format!("did you mean `{meant}`?");
            assert!(error.contains(&expected), "{error}");
        }
        let error = chosen("all,lstm", Scale::Small).unwrap_err().to_string();
        assert!(error.contains("own, paper and all stand alone"), "{error}");
        for missing in ["", " ", "lstm,,gru", "lstm,"] {
            let error = chosen(missing, Scale::Small).unwrap_err().to_string();
            assert!(
                error.contains("--systems = (nothing): a name is missing"),
                "{error}"
            );
        }
        let error = chosen("recurrent-24m", Scale::Small)
            .unwrap_err()
            .to_string();
        assert!(error.contains("only --scale full has"), "{error}");
    }

    #[test]
    fn a_system_of_other_tables_is_told_as_one() {
        for (experiment, name, told) in [
            (
                Experiment::WikiText2,
                "rhn",
                "is a system of ptb and ablation, not of wikitext2; there are own, paper, all, or of ",
            ),
            (
                Experiment::Ptb,
                "grave",
                "is a system of wikitext2 and ablation, not of ptb; there are own, paper, all, or of ",
            ),
            (
                Experiment::Ablation,
                "recurrent",
                "is a system of ptb and wikitext2, not of ablation; there are own, paper, all, or of ",
            ),
        ] {
            let chosen = experiment.chosen(Scale::Small, &Systems::parse(name));
            let error = chosen.unwrap_err().to_string();
            assert!(
                error.contains(&format!("--systems = {name}: {told}")),
                "{error}"
            );
        }
    }
}

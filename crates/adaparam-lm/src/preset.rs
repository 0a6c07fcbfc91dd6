//! Configurations by name: every language model of the paper's tables, and small ones for small machines.

use adaparam::recurrent::{
    AdaptiveLstmSettings, LstmAdaptation, LstmSettings, PolicyModel, PolicyStart, Summary,
};

use adaparam_data::text::Tokens;

use crate::cells::CellChoice;
use crate::config::{DataSpec, DropoutSpec, LanguageModelConfig, ModelSpec, TextSource, TrainSpec};
use crate::published;

/// A named configuration.
#[derive(Debug, Clone)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Which model it is, and the paper's validation and test perplexity where there are.
    pub about: &'static str,
    /// The configuration.
    pub config: LanguageModelConfig,
    /// Whether it goes on with the weights of another run: trained from nothing it is no model of anybody's.
    pub is_second_stage: bool,
}

impl Preset {
    /// The same as the second stage of a recipe.
    pub(crate) fn second_stage(self) -> Self {
        Self {
            is_second_stage: true,
            ..self
        }
    }
}

/// The preset that is meant when none is named.
pub const DEFAULT_PRESET: &str = "quick";

/// Every preset, the small ones first.
pub fn presets() -> Vec<Preset> {
    [
        small_models(),
        tables_2_and_3(),
        table_4(),
        published::presets(),
    ]
    .concat()
}

pub(crate) fn named(
    name: &'static str,
    about: &'static str,
    config: LanguageModelConfig,
) -> Preset {
    Preset {
        name,
        about,
        config: config.settled(),
        is_second_stage: false,
    }
}

fn small_models() -> Vec<Preset> {
    vec![
        named(
            "quick",
            "adaptive LSTM on embedded Moby-Dick, minutes on two cores",
            quick(),
        ),
        named(
            "quick-lstm",
            "LSTM of the same number of parameters as quick",
            as_lstm(quick(), 278),
        ),
        named(
            "quick-deep",
            "adaptive LSTM of six layers and quick's number of parameters, with a start and skips that let them learn",
            quick_deep(),
        ),
        named(
            "quick-deep-lstm",
            "LSTM of the same depth and number of parameters as quick-deep",
            quick_deep_lstm(),
        ),
        named(
            "quick-char",
            "adaptive LSTM on the characters of embedded Moby-Dick",
            quick_char(),
        ),
        named(
            "quick-char-lstm",
            "LSTM of the same number of parameters as quick-char",
            as_lstm(quick_char(), 278),
        ),
        named(
            "small",
            "adaptive LSTM of 1.6M parameters on the Penn Treebank",
            small(),
        ),
        named(
            "small-lstm",
            "LSTM of the same number of parameters as small",
            as_lstm(small(), 278),
        ),
        named(
            "ptb-2m",
            "adaptive LSTM of 2M parameters on the Penn Treebank",
            ptb_2m(),
        ),
        named(
            "ptb-2m-lstm",
            "LSTM of the same number of parameters as ptb-2m",
            as_lstm(ptb_2m(), 324),
        ),
        named(
            "ptb-2m-deep",
            "adaptive LSTM of four layers and ptb-2m's number of parameters, with a start and skips that let them learn",
            deep(ptb_2m(), 4, 118, 32),
        ),
    ]
}

fn tables_2_and_3() -> Vec<Preset> {
    vec![
        named(
            "ptb-lstm-20m",
            "Table 2 and 4: LSTM, 71.7 / 68.9",
            lstm(1600),
        ),
        named(
            "ptb-static-17m",
            "Table 2: static policy, 60.2 / 58.0",
            adaptive(1230, PolicyModel::Static, Summary::Own, LstmAdaptation::Io),
        ),
        named(
            "ptb-14m",
            "Table 2: recurrent policy, 59.6 / 57.2",
            hybrid(920),
        ),
        named(
            "ptb-17m",
            "Table 2: recurrent policy, 58.7 / 56.5",
            hybrid(1150),
        ),
        named(
            "ptb-24m",
            "Table 2: recurrent policy, 57.6 / 55.3",
            hybrid(1570),
        ),
        named(
            "wikitext-2-27m",
            "Table 3: recurrent policy, 68.1 / 65.5",
            wikitext_2(1150),
        ),
        named(
            "wikitext-2-32m",
            "Table 3: recurrent policy, 67.5 / 64.5",
            wikitext_2(1500),
        ),
    ]
}

fn table_4() -> Vec<Preset> {
    vec![
        named(
            "ablation-static-output",
            "Table 4: feed-forward, output adaptation, 66.0 / 63.1",
            gentle(adaptive(
                1250,
                PolicyModel::Static,
                Summary::Own,
                LstmAdaptation::Output,
            )),
        ),
        named(
            "ablation-lstm-output",
            "Table 4: LSTM, output adaptation (HyperNetwork), 59.9 / 58.2",
            adaptive(
                1180,
                PolicyModel::Recurrent,
                Summary::Own,
                LstmAdaptation::Output,
            ),
        ),
        named(
            "ablation-hybrid-output",
            "Table 4: LSTM-RHN, output adaptation, 59.7 / 57.3",
            adaptive(
                1170,
                PolicyModel::Recurrent,
                Summary::Hybrid,
                LstmAdaptation::Output,
            ),
        ),
        named(
            "ablation-static-io",
            "Table 4: feed-forward, IO adaptation, 61.6 / 59.1",
            adaptive(1230, PolicyModel::Static, Summary::Own, LstmAdaptation::Io),
        ),
        named(
            "ablation-lstm-io",
            "Table 4: LSTM, IO adaptation, 59.0 / 56.9",
            adaptive(
                1160,
                PolicyModel::Recurrent,
                Summary::Own,
                LstmAdaptation::Io,
            ),
        ),
        named(
            "ablation-hybrid-io",
            "Table 4: LSTM-RHN, IO adaptation, 58.5 / 56.5",
            hybrid(1150),
        ),
    ]
}

/// The preset of this name.
pub fn preset(name: &str) -> Option<Preset> {
    presets().into_iter().find(|preset| preset.name == name)
}

/// The plain LSTM that the preset of this name is compared with: the preset itself if it is one.
pub fn baseline(name: &str) -> Option<Preset> {
    let own = preset(name)?;
    if own.config.model.cell.get::<LstmSettings>().is_some() {
        return Some(own);
    }
    let is_ptb = own.config.data.set == TextSource::Ptb;
    preset(&format!("{name}-lstm")).or_else(|| preset("ptb-lstm-20m").filter(|_| is_ptb))
}

fn adaptive(
    hidden: usize,
    policy: PolicyModel,
    summary: Summary,
    adaptation: LstmAdaptation,
) -> LanguageModelConfig {
    LanguageModelConfig {
        model: ModelSpec {
            hidden,
            cell: CellChoice::of(&AdaptiveLstmSettings {
                policy,
                summary,
                adaptation,
                ..AdaptiveLstmSettings::default()
            }),
            ..ModelSpec::default()
        },
        ..LanguageModelConfig::default()
    }
}

/// The paper's own model: recurrent policy, hybrid summary, IO adaptation.
fn hybrid(hidden: usize) -> LanguageModelConfig {
    adaptive(
        hidden,
        PolicyModel::Recurrent,
        Summary::Hybrid,
        LstmAdaptation::Io,
    )
}

fn wikitext_2(hidden: usize) -> LanguageModelConfig {
    LanguageModelConfig {
        data: DataSpec {
            set: TextSource::WikiText2,
            ..DataSpec::default()
        },
        ..hybrid(hidden)
    }
}

/// The paper's baseline, which converges only with clipped gradients and dropout reduced by a quarter.
fn lstm(hidden: usize) -> LanguageModelConfig {
    LanguageModelConfig {
        model: ModelSpec {
            cell: CellChoice::of(&LstmSettings::default()),
            hidden,
            ..ModelSpec::default()
        },
        train: TrainSpec {
            clip: 5.0,
            dropout: DropoutSpec::new(0.12, 0.45, &[("hidden", 0.19)], 0.45),
            ..TrainSpec::default()
        },
        ..LanguageModelConfig::default()
    }
}

/// Static policies with output adaptation "needed slightly lower dropout rates"; the paper does not say how low.
fn gentle(config: LanguageModelConfig) -> LanguageModelConfig {
    LanguageModelConfig {
        train: TrainSpec {
            dropout: DropoutSpec::new(0.14, 0.54, &[("latent", 0.09), ("hidden", 0.22)], 0.54),
            ..config.train
        },
        ..config
    }
}

/// Small models see little of the text: less dropout, and shorter windows for more steps.
fn short_training(epochs: u64, cut_after: Vec<u64>) -> TrainSpec {
    TrainSpec {
        epochs,
        cut_after,
        window: 35,
        dropout: DropoutSpec::new(0.05, 0.2, &[("latent", 0.05), ("hidden", 0.1)], 0.2),
        checkpoint_every: 100,
        ..TrainSpec::default()
    }
}

fn quick() -> LanguageModelConfig {
    LanguageModelConfig {
        data: DataSpec {
            set: TextSource::MobyDick,
            ..DataSpec::default()
        },
        model: ModelSpec {
            embedding: 100,
            hidden: 200,
            cell: adaptive_cell(30),
            ..ModelSpec::default()
        },
        train: short_training(6, vec![4]),
    }
}

/// A model as deep as wanted in place of `config`'s. It learns if what enters a layer is added to what leaves it, which takes one width
/// from the word vectors on, and if the rate begins low; `results/starts` has what other starts and recipes come to.
fn deep(
    config: LanguageModelConfig,
    layers: usize,
    width: usize,
    latent: usize,
) -> LanguageModelConfig {
    LanguageModelConfig {
        model: ModelSpec {
            embedding: width,
            hidden: width,
            layers,
            skip: true,
            cell: CellChoice::of(&AdaptiveLstmSettings {
                latent,
                policy_start: PolicyStart::Identity,
                ..AdaptiveLstmSettings::default()
            }),
            ..config.model
        },
        train: TrainSpec {
            warm_up: 200,
            ..config.train
        },
        ..config
    }
}

fn quick_deep() -> LanguageModelConfig {
    deep(quick(), 6, 82, 30)
}

fn quick_deep_lstm() -> LanguageModelConfig {
    let config = as_lstm(quick_deep(), 106);
    LanguageModelConfig {
        model: ModelSpec {
            embedding: 106,
            ..config.model
        },
        ..config
    }
}

/// Characters are few and seen often: no dropout of whole characters and little of anything else.
fn quick_char() -> LanguageModelConfig {
    LanguageModelConfig {
        data: DataSpec {
            tokens: Tokens::named("characters").expect("a way to cut texts"),
            ..quick().data
        },
        model: quick().model,
        train: TrainSpec {
            batch: 32,
            window: 70,
            dropout: DropoutSpec::new(0.0, 0.0, &[("latent", 0.0), ("hidden", 0.0)], 0.0),
            ..short_training(3, vec![2])
        },
    }
}

/// The paper's cell with another latent.
fn adaptive_cell(latent: usize) -> CellChoice {
    CellChoice::of(&AdaptiveLstmSettings {
        latent,
        ..AdaptiveLstmSettings::default()
    })
}

/// The model of `quick` on the Penn Treebank.
fn small() -> LanguageModelConfig {
    LanguageModelConfig {
        data: DataSpec::default(),
        model: quick().model,
        train: short_training(20, vec![14]),
    }
}

fn ptb_2m() -> LanguageModelConfig {
    LanguageModelConfig {
        data: DataSpec::default(),
        model: ModelSpec {
            embedding: 120,
            hidden: 240,
            cell: adaptive_cell(32),
            ..ModelSpec::default()
        },
        train: short_training(20, vec![14]),
    }
}

/// The baseline for `config`, with the paper's gradient clipping and the same training otherwise.
fn as_lstm(config: LanguageModelConfig, hidden: usize) -> LanguageModelConfig {
    let mut dropout = config.train.dropout;
    dropout.sites.remove("latent");
    LanguageModelConfig {
        model: ModelSpec {
            cell: CellChoice::of(&LstmSettings::default()),
            hidden,
            ..config.model
        },
        train: TrainSpec {
            clip: 5.0,
            dropout,
            ..config.train
        },
        ..config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_sound_and_has_a_name_of_its_own() {
        let mut names: Vec<&str> = Vec::new();
        for preset in presets() {
            preset.config.check().unwrap();
            names.push(preset.name);
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(preset(DEFAULT_PRESET).is_some());
    }

    #[test]
    fn parameter_counts_are_those_of_the_papers_tables() {
        for (name, millions) in [
            ("ptb-lstm-20m", 20.0),
            ("ptb-static-17m", 17.0),
            ("ptb-14m", 14.0),
            ("ptb-17m", 17.0),
            ("ptb-24m", 24.0),
            ("wikitext-2-27m", 27.0),
            ("wikitext-2-32m", 32.0),
            ("ablation-static-output", 17.0),
            ("ablation-lstm-output", 17.0),
            ("ablation-hybrid-output", 17.0),
            ("ablation-static-io", 17.0),
            ("ablation-lstm-io", 17.0),
            ("ablation-hybrid-io", 17.0),
        ] {
            let config = preset(name).unwrap().config;
            let vocabulary = config.data.vocabulary_size().unwrap();
            let count = config.model.parameter_count(vocabulary);
            assert!(
                (count as f64 / 1e6 - millions).abs() < 0.5,
                "{name}: {count} is not {millions}M"
            );
        }
        let released = preset("ptb-17m").unwrap().config.model;
        assert_eq!(released.parameter_count(10_000), 17_197_800);
    }

    #[test]
    fn adaptive_models_have_a_plain_one_beside_them() {
        for (name, plain) in [
            ("quick", Some("quick-lstm")),
            ("ptb-17m", Some("ptb-lstm-20m")),
            ("small-lstm", Some("small-lstm")),
            ("wikitext-2-27m", None),
            ("nothing", None),
        ] {
            assert_eq!(baseline(name).map(|preset| preset.name), plain);
        }
    }

    #[test]
    fn baselines_have_as_many_parameters_as_their_adaptive_models() {
        for adaptive in ["quick", "quick-char", "small", "ptb-2m"] {
            let baseline = format!("{adaptive}-lstm");
            let count = |name: &str| {
                let config = preset(name).unwrap().config;
                let vocabulary = config.data.vocabulary_size().unwrap();
                config.model.parameter_count(vocabulary) as f64
            };
            let ratio = count(adaptive) / count(&baseline);
            assert!((ratio - 1.0).abs() < 0.005, "{adaptive}: {ratio}");
        }
    }
}

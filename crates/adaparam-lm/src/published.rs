//! Systems that the paper compares with, as published: sizes, dropout, optimiser and schedule.
//!
//! Their codes sum the loss over a window, or take its mean. Here it is always the mean, so that rates of the former are
//! multiplied by the window's length, and clipping and penalties divided by it ([`Summed`]). What a source leaves open, and
//! what is another way here, stands in `docs/recipes.md`.

use adaparam::recurrent::{
    LstmSettings, MelisLstmSettings, NasSettings, RecurrentInitializer, RhnSettings,
};

use crate::cells::CellChoice;
use crate::config::{
    DataSpec, DropoutSpec, LanguageModelConfig, ModelSpec, RateScale, TextSource, TrainSpec,
};
use crate::head::{HeadChoice, SoftmaxSettings};
use crate::masks::MaskSharing;
use crate::optimiser::{AdamSettings, AsgdSettings, NtAsgdSettings, OptimiserChoice, SgdSettings};
use crate::preset::{Preset, named};
use crate::schedule::{Decay, Plateau, ScheduleChoice};

pub(crate) fn presets() -> Vec<Preset> {
    [awd(), zaremba(), other_cells(), melis(), plain_lstms()].concat()
}

fn awd() -> Vec<Preset> {
    let rates = |embedding, hidden| {
        DropoutSpec::new(0.1, embedding, &[("inter_layer", hidden)], 0.4).with_weight(0.5)
    };
    let (ptb, wikitext_2) = (rates(0.4, 0.25), rates(0.65, 0.2));
    let awd =
        |set, batch, epochs, dropout: &DropoutSpec| awd_lstm(set, batch, epochs, dropout.clone());
    vec![
        named(
            "ptb-awd",
            "Table 2: AWD-LSTM as released, 61.2 / 58.8 before fine-tuning",
            awd(TextSource::Ptb, 20, 500, &ptb),
        ),
        named(
            "ptb-awd-finetune",
            "Table 2: its second stage, with --from RUN, 58.8 / 56.5 (60.0 / 57.3 in the paper)",
            finetuning(awd(TextSource::Ptb, 20, 500, &ptb)),
        )
        .second_stage(),
        named(
            "wikitext2-awd",
            "Table 3: AWD-LSTM as released, 68.7 / 65.6 before fine-tuning",
            awd(TextSource::WikiText2, 80, 750, &wikitext_2),
        ),
        named(
            "wikitext2-awd-finetune",
            "Table 3: its second stage, with --from RUN, 67.4 / 64.7 (68.6 / 65.8 in the paper)",
            finetuning(awd(TextSource::WikiText2, 80, 750, &wikitext_2)),
        )
        .second_stage(),
    ]
}

/// 400 → 1150 → 1150 → 400, in which everything is dropped that can be.
fn awd_lstm(
    set: TextSource,
    batch: usize,
    epochs: u64,
    dropout: DropoutSpec,
) -> LanguageModelConfig {
    LanguageModelConfig {
        data: DataSpec {
            set,
            ..DataSpec::default()
        },
        model: ModelSpec {
            embedding: 400,
            hidden: 1150,
            layers: 3,
            cell: CellChoice::of(&LstmSettings {
                second_bias: true,
                inter_layer: true,
                start: RecurrentInitializer::Uniform,
                ..LstmSettings::default()
            }),
            ..ModelSpec::default()
        },
        train: TrainSpec {
            epochs,
            batch,
            window: 70,
            learning_rate: 30.0,
            rate_scale: RateScale::Drawn,
            cut_after: Vec::new(),
            l2: 1.2e-6,
            clip: 0.25,
            activation_l2: 2.0,
            temporal_l2: 1.0,
            optimiser: OptimiserChoice::of(&NtAsgdSettings::default()),
            dropout,
            ..TrainSpec::default()
        },
    }
}

/// The same from trained weights, with an average from the first update on, until the validation loss falls no more.
fn finetuning(config: LanguageModelConfig) -> LanguageModelConfig {
    LanguageModelConfig {
        train: TrainSpec {
            optimiser: OptimiserChoice::of(&AsgdSettings::default()),
            stop_interval: 5,
            ..config.train
        },
        ..config
    }
}

/// The share of each of so many steps, to twelve digits: few enough that every file gives back the same number.
fn shared_by(steps: usize, number: f64) -> f64 {
    let share = format!("{:.11e}", number / steps as f64);
    share.parse().expect("a number as it was written")
}

/// A training whose code sums losses over the steps of a window.
struct Summed {
    window: usize,
    learning_rate: f64,
    clip: f64,
    l2: f64,
}

impl Summed {
    /// The same training by the mean loss of windows of a constant length, with plain descent.
    fn descent(&self, batch: usize, epochs: u64, schedule: &Decay) -> TrainSpec {
        TrainSpec {
            epochs,
            batch,
            window: self.window,
            window_half_probability: 0.0,
            window_deviation: 0.0,
            window_minimum: 1,
            learning_rate: self.learning_rate * self.window as f64,
            cut_after: Vec::new(),
            l2: shared_by(self.window, self.l2),
            l2_in_loss: self.l2 > 0.0,
            clip: shared_by(self.window, self.clip),
            valid_batch: 20,
            optimiser: OptimiserChoice::of(&SgdSettings {}),
            schedule: ScheduleChoice::of(schedule),
            ..TrainSpec::default()
        }
    }
}

fn zaremba() -> Vec<Preset> {
    let small = Zaremba {
        hidden: 200,
        dropout: 0.0,
        bound: 0.1,
        window: 20,
        clip: 5.0,
        epochs: 13,
        schedule: Decay {
            after: 4,
            factor: 2.0,
        },
    };
    let medium = Zaremba {
        hidden: 650,
        dropout: 0.5,
        bound: 0.05,
        window: 35,
        clip: 5.0,
        epochs: 39,
        schedule: Decay {
            after: 6,
            factor: 1.25,
        },
    };
    let large = Zaremba {
        hidden: 1500,
        dropout: 0.65,
        bound: 0.04,
        window: 35,
        clip: 10.0,
        epochs: 55,
        schedule: Decay {
            after: 14,
            factor: 1.15,
        },
    };
    vec![
        named(
            "ptb-zaremba-small",
            "Zaremba et al. (2014), not regularised, 120.7 / 114.5",
            small.config(),
        ),
        named(
            "ptb-zaremba-medium",
            "Zaremba et al. (2014), medium, 86.2 / 82.7",
            medium.config(),
        ),
        named(
            "ptb-zaremba-large",
            "Table 2: LSTM of Zaremba et al. (2014), 82.2 / 78.4, there said to have 24M parameters",
            large.config(),
        ),
    ]
}

struct Zaremba {
    hidden: usize,
    dropout: f64,
    /// Of every weight and bias at the start.
    bound: f64,
    window: usize,
    clip: f64,
    epochs: u64,
    schedule: Decay,
}

impl Zaremba {
    fn config(&self) -> LanguageModelConfig {
        let summed = Summed {
            window: self.window,
            learning_rate: 1.0,
            clip: self.clip,
            l2: 0.0,
        };
        let rate = self.dropout;
        LanguageModelConfig {
            model: ModelSpec {
                embedding: self.hidden,
                embedding_bound: self.bound,
                hidden: self.hidden,
                cell: CellChoice::of(&LstmSettings {
                    inter_layer: true,
                    bound: self.bound,
                    ..LstmSettings::default()
                }),
                head: HeadChoice::of(&SoftmaxSettings { bound: self.bound }),
                ..ModelSpec::default()
            },
            train: TrainSpec {
                masks: MaskSharing::Step,
                dropout: DropoutSpec::new(0.0, rate, &[("inter_layer", rate)], rate),
                ..summed.descent(20, self.epochs, &self.schedule)
            },
            ..LanguageModelConfig::default()
        }
    }
}

/// The recurrent highway network as its code trains it, and the cell of neural architecture search, whose final sizes and
/// training were not published: sizes that give the numbers of parameters, trained as Zaremba's medium model for the 35
/// epochs of the search.
fn other_cells() -> Vec<Preset> {
    let rhn = LanguageModelConfig {
        model: ModelSpec {
            embedding: 830,
            embedding_bound: 0.04,
            bound: 0.04,
            hidden: 830,
            layers: 1,
            cell: CellChoice::of(&RhnSettings {
                depth: 10,
                transform_bias: -2.0,
            }),
            ..ModelSpec::default()
        },
        train: TrainSpec {
            dropout: DropoutSpec::new(0.25, 0.75, &[("hidden", 0.25)], 0.75),
            ..Summed {
                window: 35,
                learning_rate: 0.2,
                clip: 10.0,
                l2: 1e-7,
            }
            .descent(
                20,
                500,
                &Decay {
                    after: 20,
                    factor: 1.02,
                },
            )
        },
        ..LanguageModelConfig::default()
    };
    let nas = |hidden| LanguageModelConfig {
        model: ModelSpec {
            embedding: hidden,
            embedding_bound: 0.05,
            hidden,
            cell: CellChoice::of(&NasSettings::default()),
            ..ModelSpec::default()
        },
        train: TrainSpec {
            dropout: DropoutSpec::new(0.0, 0.5, &[("hidden", 0.25)], 0.5),
            ..Summed {
                window: 35,
                learning_rate: 1.0,
                clip: 5.0,
                l2: 0.0,
            }
            .descent(
                20,
                35,
                &Decay {
                    after: 6,
                    factor: 1.25,
                },
            )
        },
        ..LanguageModelConfig::default()
    };
    vec![
        named(
            "ptb-rhn",
            "Table 2: recurrent highway network of depth 10, 67.9 / 65.4",
            rhn,
        ),
        named(
            "ptb-nas-25m",
            "cell of neural architecture search, tied, - / 64.0; sizes and training inferred",
            nas(740),
        ),
        named(
            "ptb-nas-54m",
            "Table 2: cell of neural architecture search, tied, - / 62.4; sizes and training inferred",
            nas(1150),
        ),
    ]
}

/// The saved configurations of Melis et al. Their capped gate is what the paper calls tied.
fn melis() -> Vec<Preset> {
    let ptb_10m = Melis {
        set: TextSource::Ptb,
        hidden: 1194,
        embedding: 268,
        layers: 1,
        learning_rate: 0.004_179,
        l2: 1.243_5e-4,
        dropout: [0.579_9, 0.0, 0.215_3, 0.327_0],
        steps_of_an_epoch: 415.0,
    };
    let ptb_24m = Melis {
        hidden: 723,
        embedding: 723,
        layers: 4,
        learning_rate: 0.003_960,
        l2: 7.449e-5,
        dropout: [0.633_6, 0.309_1, 0.642_8, 0.700_9],
        ..ptb_10m
    };
    let wikitext_2_24m = Melis {
        set: TextSource::WikiText2,
        hidden: 1227,
        embedding: 149,
        layers: 2,
        learning_rate: 0.002_460,
        l2: 3.776e-5,
        dropout: [0.484_2, 0.092_0, 0.453_9, 0.391_5],
        steps_of_an_epoch: 932.0,
    };
    vec![
        named(
            "ptb-melis-10m",
            "LSTM of Melis et al. (2017), 10M, depth 1, 61.8 / 59.6; published with one word more, a reserved one",
            ptb_10m.config(),
        ),
        named(
            "ptb-melis-24m",
            "Table 2: TG-SC LSTM of Melis et al. (2017), depth 4, 60.9 / 58.3; published with one word more, a reserved one",
            ptb_24m.config(),
        ),
        named(
            "wikitext2-melis-24m",
            "Table 3: TG-SC LSTM of Melis et al. (2017), depth 2, 69.1 / 65.9; published with one word more, a reserved one",
            wikitext_2_24m.config(),
        ),
    ]
}

#[derive(Clone, Copy)]
struct Melis {
    set: TextSource,
    hidden: usize,
    embedding: usize,
    layers: usize,
    learning_rate: f64,
    l2: f64,
    /// Of the input, between layers, of the state and of the output.
    dropout: [f64; 4],
    steps_of_an_epoch: f64,
}

impl Melis {
    /// Their turns of 100 steps as whole epochs.
    fn epochs(&self, turns: f64) -> u64 {
        (100.0 * turns / self.steps_of_an_epoch).round() as u64
    }

    fn config(&self) -> LanguageModelConfig {
        const WINDOW: usize = 35;
        let [input, between, state, output] = self.dropout;
        LanguageModelConfig {
            data: DataSpec {
                set: self.set,
                ..DataSpec::default()
            },
            model: ModelSpec {
                embedding: self.embedding,
                hidden: self.hidden,
                layers: self.layers,
                cell: CellChoice::of(&MelisLstmSettings::default()),
                ..ModelSpec::default()
            },
            train: TrainSpec {
                epochs: self.epochs(1000.0),
                batch: 64,
                window: WINDOW,
                window_half_probability: 0.0,
                window_deviation: 0.0,
                window_minimum: 1,
                learning_rate: self.learning_rate,
                rate_scale: RateScale::Nothing,
                cut_after: Vec::new(),
                l2: shared_by(WINDOW, self.l2),
                l2_in_loss: true,
                clip: shared_by(WINDOW, 10.0),
                masks: MaskSharing::Step,
                forget: 0.01,
                optimiser: OptimiserChoice::of(&AdamSettings {
                    epsilon: 1e-8,
                    ..AdamSettings::default()
                }),
                schedule: ScheduleChoice::of(&Plateau {
                    patience: self.epochs(26.0),
                    factor: 10.0,
                    latest: self.epochs(900.0),
                }),
                dropout: DropoutSpec::new(
                    0.0,
                    input,
                    &[("hidden", state), ("inter_layer", between), ("sum", output)],
                    output,
                ),
                ..TrainSpec::default()
            },
        }
    }
}

/// Rows of Table 3 of which little more than the size is published; they are trained as Zaremba's medium model.
fn plain_lstms() -> Vec<Preset> {
    let medium = |hidden, layers| {
        let summed = Summed {
            window: 35,
            learning_rate: 1.0,
            clip: 5.0,
            l2: 0.0,
        };
        let schedule = Decay {
            after: 6,
            factor: 1.25,
        };
        LanguageModelConfig {
            data: DataSpec {
                set: TextSource::WikiText2,
                ..DataSpec::default()
            },
            model: ModelSpec {
                embedding: hidden,
                embedding_bound: 0.05,
                hidden,
                layers,
                cell: CellChoice::of(&LstmSettings {
                    inter_layer: true,
                    bound: 0.05,
                    ..LstmSettings::default()
                }),
                ..ModelSpec::default()
            },
            train: TrainSpec {
                dropout: DropoutSpec::new(0.0, 0.5, &[("inter_layer", 0.5)], 0.5),
                ..summed.descent(20, 39, &schedule)
            },
        }
    };
    vec![
        named(
            "wikitext2-inan",
            "Table 3: tied LSTM of Inan et al. (2016), 91.5 / 87.7, without their augmented loss; training inferred",
            medium(650, 2),
        ),
        named(
            "wikitext2-grave",
            "Table 3: LSTM of Grave et al. (2016), - / 99.3; size and training inferred",
            medium(1024, 1),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use adaparam::recurrent::{InputGate, MelisLstmSettings, MogrifierSettings, StackOutput};
    use burn::tensor::Device;

    use crate::cells::CellChoice;
    use crate::config::ModelSpec;
    use crate::head::{HeadChoice, MixtureSettings};
    use crate::model::LanguageModel;
    use crate::preset::preset;

    /// Exact numbers, with the vocabularies that their codes have.
    #[test]
    fn parameter_counts_are_the_published_ones() {
        for (name, vocabulary, expected) in [
            ("ptb-awd", 10_000, 24_221_600),
            ("ptb-awd-finetune", 10_000, 24_221_600),
            ("wikitext2-awd", 33_278, 33_556_078),
            ("wikitext2-awd-finetune", 33_278, 33_556_078),
            ("ptb-zaremba-small", 10_000, 4_651_600),
            ("ptb-zaremba-medium", 10_000, 19_775_200),
            ("ptb-zaremba-large", 10_000, 66_022_000),
            ("ptb-rhn", 10_000, 23_482_400),
            // Their vocabularies have a reserved token more.
            ("ptb-melis-10m", 10_001, 9_997_549),
            ("ptb-melis-24m", 10_001, 23_979_620),
            ("wikitext2-melis-24m", 33_279, 23_982_129),
            // As many as two layers of these sizes have: about 25M and 54M.
            ("ptb-nas-25m", 10_000, 24_933_200),
            ("ptb-nas-54m", 10_000, 53_830_000),
        ] {
            let config = preset(name).unwrap().config;
            let count = config.model.parameter_count(vocabulary);
            assert_eq!(count, expected, "{name}");
        }
    }

    /// Models that have no preset: an untied highway network, and the two of Melis et al. (2019) with two softmaxes on
    /// WikiText-2, which read the layers' sum as it is.
    #[test]
    fn counts_of_models_without_a_preset_are_the_published_ones() {
        let untied = preset("ptb-rhn").unwrap().config;
        let untied = untied.with("model.head.kind", "softmax").unwrap();
        assert_eq!(untied.model.parameter_count(10_000), 31_782_400);
        let mixed = |embedding, hidden, cell| ModelSpec {
            embedding,
            hidden,
            output: hidden,
            layers: 2,
            cell,
            head: HeadChoice::of(&MixtureSettings {
                experts: 2,
                ..MixtureSettings::default()
            }),
            ..ModelSpec::default()
        };
        let lstm = CellChoice::of(&MelisLstmSettings::default());
        let mogrifier = CellChoice::of(&MogrifierSettings {
            rounds: 6,
            rank: 48,
            input_gate: InputGate::Capped,
            output: StackOutput::Sum,
            ..MogrifierSettings::default()
        });
        // A reserved token more here too.
        for (model, expected) in [
            (mixed(428, 1211, lstm), 34_997_757),
            (mixed(272, 1366, mogrifier), 34_991_825),
        ] {
            assert_eq!(model.parameter_count(33_279), expected);
        }
    }

    #[test]
    fn second_stages_say_that_they_are() {
        for preset in crate::preset::presets() {
            let is_one = preset.name.ends_with("-finetune");
            assert_eq!(preset.is_second_stage, is_one, "{}", preset.name);
        }
    }

    /// Everything within ± 0.04, but the biases of the transform gates, which begin at −2.
    #[test]
    fn a_highway_network_begins_evenly_and_keeps_its_state() {
        let mut config = preset("ptb-rhn").unwrap().config;
        (config.model.embedding, config.model.hidden) = (12, 12);
        let weights = LanguageModel::new(&config.model, 9, &Device::flex()).draw(1);
        let numbers = weights.iter().flat_map(|weight| weight.values.iter());
        let (small, others): (Vec<f32>, Vec<f32>) = numbers.partition(|w| w.abs() <= 0.04);
        assert!(small.iter().any(|w| w.abs() > 0.039));
        assert_eq!(others, vec![-2.0; 10 * 12]);
    }

    #[test]
    fn a_second_bias_is_counted() {
        for (name, expected) in [
            ("ptb-zaremba-small", 4_653_200),
            ("ptb-zaremba-medium", 19_780_400),
            ("ptb-zaremba-large", 66_034_000),
        ] {
            let config = preset(name).unwrap().config;
            let config = config.with("model.cell.second_bias", "true").unwrap();
            assert_eq!(config.model.parameter_count(10_000), expected, "{name}");
        }
    }

    /// Learning rate 1, norm 10, both of a loss that is summed over 35 steps.
    #[test]
    fn rates_of_summed_losses_are_those_of_mean_losses() {
        let train = preset("ptb-zaremba-large").unwrap().config.train;
        assert!((train.learning_rate - 35.0).abs() < 1e-12);
        assert!((train.clip - 10.0 / 35.0).abs() < 1e-12);
        let rate = |epoch, length| train.learning_rate_at(epoch, &[], length);
        assert!((rate(13, 35) - 35.0).abs() < 1e-12);
        assert!((rate(14, 35) - 35.0 / 1.15).abs() < 1e-12);
        // A last window of 7 steps sums 7 losses.
        assert!((rate(0, 7) - 7.0).abs() < 1e-12);
    }
}

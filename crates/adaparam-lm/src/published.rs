//! Systems that the paper compares with, as published: sizes, dropout, optimiser and schedule.
//!
//! Their codes sum the loss over a window, or take its mean. Here it is always the mean, so that rates of the former are
//! multiplied by the window's length, and clipping and penalties divided by it ([`Summed`]). What a source leaves open, and
//! what is another way here, stands in `docs/recipes.md`.

use adaparam::recurrent::{
    InputGate, LstmSettings, MelisLstmSettings, MogrifierSettings, NasSettings,
    RecurrentInitializer, RhnSettings, StackOutput,
};

use crate::cells::CellChoice;
use crate::config::{
    DataSpec, DropoutSpec, LanguageModelConfig, ModelSpec, RateScale, TextSource, TrainSpec,
};
use crate::head::{HeadChoice, MixtureSettings, SoftmaxSettings};
use crate::masks::MaskSharing;
use crate::optimiser::{
    AdamSettings, AsgdSettings, AverageChoice, MeanAverage, NtAsgdSettings, OptimiserChoice,
    SgdSettings,
};
use crate::preset::{Preset, named};
use crate::schedule::{Decay, Plateau, ScheduleChoice};

pub(crate) fn presets() -> Vec<Preset> {
    [
        awd(),
        mixtures(),
        zaremba(),
        other_cells(),
        melis(),
        mogrifiers(),
        plain_lstms(),
    ]
    .concat()
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

/// AWD-LSTMs of other sizes below fifteen softmaxes.
fn mixtures() -> Vec<Preset> {
    let ptb = Mixture {
        set: TextSource::Ptb,
        sizes: [280, 960, 620],
        batch: 12,
        dropout: [0.4, 0.225],
    };
    let wikitext_2 = Mixture {
        set: TextSource::WikiText2,
        sizes: [300, 1150, 650],
        batch: 15,
        dropout: [0.55, 0.2],
    };
    vec![
        named(
            "ptb-mos",
            "AWD-LSTM with a mixture of softmaxes, Yang et al. (2017), 58.1 / 56.0 before fine-tuning",
            ptb.config(20.0),
        ),
        named(
            "ptb-mos-finetune",
            "its second stage, with --from RUN, 56.5 / 54.4",
            finetuning(ptb.config(25.0)),
        )
        .second_stage(),
        named(
            "wikitext2-mos",
            "AWD-LSTM with a mixture of softmaxes, Yang et al. (2017), 66.0 / 63.3 before fine-tuning",
            wikitext_2.config(15.0),
        ),
        named(
            "wikitext2-mos-finetune",
            "its second stage, with --from RUN, 63.9 / 61.5",
            finetuning(wikitext_2.config(20.0)),
        )
        .second_stage(),
    ]
}

struct Mixture {
    set: TextSource,
    /// Of word vectors, of the layers and of the last one.
    sizes: [usize; 3],
    batch: usize,
    /// Of the input and between layers.
    dropout: [f64; 2],
}

impl Mixture {
    fn config(&self, learning_rate: f64) -> LanguageModelConfig {
        let [embedding, hidden, output] = self.sizes;
        let [input, between] = self.dropout;
        let dropout =
            DropoutSpec::new(0.1, input, &[("inter_layer", between)], 0.4).with_weight(0.5);
        let awd = awd_lstm(self.set, self.batch, 1000, dropout);
        LanguageModelConfig {
            model: ModelSpec {
                embedding,
                hidden,
                output,
                head: HeadChoice::of(&MixtureSettings {
                    experts: 15,
                    dropout: 0.29,
                    ..MixtureSettings::default()
                }),
                ..awd.model
            },
            train: TrainSpec {
                learning_rate,
                ..awd.train
            },
            ..awd
        }
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
            bound: 0.05,
            hidden,
            cell: CellChoice::of(&NasSettings::default()),
            ..ModelSpec::default()
        },
        train: TrainSpec {
            masks: MaskSharing::Step,
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
                schedule: ScheduleChoice::of(&Plateau {
                    patience: self.epochs(26.0),
                    factor: 10.0,
                    latest: self.epochs(900.0),
                }),
                ..self.train(35)
            },
        }
    }

    /// What all their trainings have, for windows of this length.
    fn train(&self, window: usize) -> TrainSpec {
        let [input, between, state, output] = self.dropout;
        TrainSpec {
            batch: 64,
            window,
            window_half_probability: 0.0,
            window_deviation: 0.0,
            window_minimum: 1,
            learning_rate: self.learning_rate,
            rate_scale: RateScale::Nothing,
            cut_after: Vec::new(),
            l2: shared_by(window, self.l2),
            l2_in_loss: true,
            clip: shared_by(window, 10.0),
            masks: MaskSharing::Step,
            forget: 0.01,
            optimiser: OptimiserChoice::of(&AdamSettings {
                epsilon: 1e-8,
                ..AdamSettings::default()
            }),
            dropout: DropoutSpec::new(
                0.0,
                input,
                &[("hidden", state), ("inter_layer", between), ("sum", output)],
                output,
            ),
            ..TrainSpec::default()
        }
    }
}

/// The Mogrifier LSTM of Melis et al. (2019): the network above with rounds before its gates, and an average of weights in place of
/// cuts of the rate.
fn mogrifiers() -> Vec<Preset> {
    let ptb = Melis {
        set: TextSource::Ptb,
        hidden: 912,
        embedding: 912,
        layers: 2,
        learning_rate: 0.002_300,
        l2: 2.524e-4,
        dropout: [0.729_1, 0.291_0, 0.387_3, 0.715_7],
        steps_of_an_epoch: 207.5,
    };
    let wikitext_2 = Melis {
        set: TextSource::WikiText2,
        hidden: 1366,
        embedding: 272,
        learning_rate: 0.003_288,
        l2: 1.899e-4,
        dropout: [0.546_9, 0.198_8, 0.221_4, 0.347_7],
        steps_of_an_epoch: 466.0,
        ..ptb
    };
    let mixed = with_two_softmaxes(wikitext_2.mogrified(6, 48));
    vec![
        named(
            "ptb-mogrifier-24m",
            "Mogrifier LSTM of Melis et al. (2019), 51.4 / 50.1; published with one word more, a reserved one",
            ptb.mogrified(5, 84),
        ),
        named(
            "wikitext2-mogrifier-35m",
            "Mogrifier LSTM of Melis et al. (2019), two softmaxes, 57.3 / 55.1; published with one word more, a reserved one",
            mixed,
        ),
    ]
}

impl Melis {
    /// The later network, with turns of 200 steps.
    fn mogrified(&self, rounds: usize, rank: usize) -> LanguageModelConfig {
        let epochs = |turns: f64| self.epochs(2.0 * turns);
        let plain = self.config();
        LanguageModelConfig {
            model: ModelSpec {
                cell: CellChoice::of(&MogrifierSettings {
                    rounds,
                    rank,
                    input_gate: InputGate::Capped,
                    output: StackOutput::Sum,
                    ..MogrifierSettings::default()
                }),
                ..plain.model
            },
            train: TrainSpec {
                epochs: epochs(1000.0),
                average: AverageChoice::of(&MeanAverage {
                    patience: epochs(50.0),
                    after: epochs(800.0),
                }),
                ..self.train(70)
            },
            ..plain
        }
    }
}

/// The same with two softmaxes, which read the sum of the layers as it is, and drop what they make of it at the rate of the output.
fn with_two_softmaxes(config: LanguageModelConfig) -> LanguageModelConfig {
    LanguageModelConfig {
        model: ModelSpec {
            output: config.model.hidden,
            head: HeadChoice::of(&MixtureSettings {
                experts: 2,
                dropout: config.train.dropout.output,
                ..MixtureSettings::default()
            }),
            ..config.model
        },
        ..config
    }
}

/// Rows of Table 3 of which little more than the size is published; they are trained as Zaremba's medium model. Inan's LSTM has
/// variational dropout: its masks serve a whole window.
fn plain_lstms() -> Vec<Preset> {
    let medium = |hidden, layers, masks| {
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
                masks,
                dropout: DropoutSpec::new(0.0, 0.5, &[("inter_layer", 0.5)], 0.5),
                ..summed.descent(20, 39, &schedule)
            },
        }
    };
    vec![
        named(
            "wikitext2-inan",
            "Table 3: tied LSTM of Inan et al. (2016), 91.5 / 87.7, without their augmented loss; training inferred",
            medium(650, 2, MaskSharing::Window),
        ),
        named(
            "wikitext2-grave",
            "Table 3: LSTM of Grave et al. (2016), - / 99.3; size and training inferred",
            medium(1024, 1, MaskSharing::Step),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use adaparam::recurrent::MelisLstmSettings;
    use burn::tensor::Device;

    use crate::cells::CellChoice;
    use crate::config::{ModelSpec, TrainSpec};
    use crate::masks::MaskSharing;
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
            ("ptb-mogrifier-24m", 10_001, 23_987_393),
            ("wikitext2-mogrifier-35m", 33_279, 34_991_825),
            ("ptb-mos", 10_000, 21_500_620),
            ("ptb-mos-finetune", 10_000, 21_500_620),
            ("wikitext2-mos", 33_278, 34_909_528),
            ("wikitext2-mos-finetune", 33_278, 34_909_528),
            // As many as two layers of these sizes have: about 25M and 54M.
            ("ptb-nas-25m", 10_000, 24_933_200),
            ("ptb-nas-54m", 10_000, 53_830_000),
        ] {
            let config = preset(name).unwrap().config;
            let count = config.model.parameter_count(vocabulary);
            assert_eq!(count, expected, "{name}");
        }
    }

    /// Models that have no preset: an untied highway network, and the LSTMs that Melis et al. (2019) compare with.
    #[test]
    fn counts_of_models_without_a_preset_are_the_published_ones() {
        let untied = preset("ptb-rhn").unwrap().config;
        let untied = untied.with("model.head.kind", "softmax").unwrap();
        assert_eq!(untied.model.parameter_count(10_000), 31_782_400);
        // A reserved token more here too.
        for (name, embedding, hidden, vocabulary, expected) in [
            ("ptb-mogrifier-24m", 951, 951, 10_001, 23_998_976),
            ("wikitext2-mogrifier-35m", 428, 1211, 33_279, 34_997_757),
        ] {
            let mogrifier = preset(name).unwrap().config.model;
            let lstm = ModelSpec {
                embedding,
                hidden,
                output: if mogrifier.output == 0 { 0 } else { hidden },
                cell: CellChoice::of(&MelisLstmSettings::default()),
                ..mogrifier
            };
            assert_eq!(lstm.parameter_count(vocabulary), expected, "{name}");
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

    /// What nothing is published of is as in Zaremba's medium model; Inan's masks serve a window, as variational dropout has it.
    #[test]
    fn inferred_trainings_are_those_of_zarembas_medium_model() {
        let train = |name: &str| preset(name).unwrap().config.train;
        let medium = train("ptb-zaremba-medium");
        for (name, masks, epochs) in [
            ("ptb-nas-25m", MaskSharing::Step, 35),
            ("ptb-nas-54m", MaskSharing::Step, 35),
            ("wikitext2-grave", MaskSharing::Step, 39),
            ("wikitext2-inan", MaskSharing::Window, 39),
        ] {
            let found = train(name);
            assert_eq!((found.masks, found.epochs), (masks, epochs), "{name}");
            let like = TrainSpec {
                masks,
                epochs,
                dropout: found.dropout.clone(),
                ..medium.clone()
            };
            assert_eq!(found, like, "{name}");
        }
        for name in ["ptb-nas-25m", "ptb-nas-54m"] {
            let model = preset(name).unwrap().config.model;
            assert!((model.bound - 0.05).abs() < 1e-12, "{name}");
            assert!((model.embedding_bound - 0.05).abs() < 1e-12, "{name}");
        }
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

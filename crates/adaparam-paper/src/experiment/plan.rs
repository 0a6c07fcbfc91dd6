//! From an experiment to its runs.

use std::path::Path;

use adaparam_lm::LanguageModelConfig;
use adaparam_lm::LmError;
use adaparam_lm::TextSource;
use adaparam_lm::preset;
use adaparam_lm::sweep::{Manifest, RunSpec};
use adaparam_lm::{HeadChoice, MixtureSettings};
use adaparam_runs::RunError;

use super::Experiment;
use super::equal_size::with_parameters;
use super::rates::drawn;
use super::row::ModelRow;
use super::scale::training_of;
use super::system::{Group, Systems};
use crate::PaperError;
use crate::result::Scale;

/// The training words of the Penn Treebank, so that its plans need no text.
const PTB_WORDS: usize = 929_589;

/// What a person decides about an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanChoices {
    /// How large.
    pub scale: Scale,
    /// Runs of each model, with the seeds 1, 2, …
    pub seeds: u64,
    /// Draws of the dropout rates, for the robustness study.
    pub draws: Option<u64>,
    /// The models that are compared.
    pub systems: Systems,
    /// Keys of every configuration to change, with their values.
    pub changes: Vec<(String, String)>,
}

impl Experiment {
    /// Every run of this experiment: the first seed or draw of every model, then the second, and so on. The paper's own models
    /// come before those of others, so that what ends early has what the others are compared with.
    ///
    /// `data_folder` is read only where the size of the vocabulary is not known beforehand.
    pub fn plan(self, choices: &PlanChoices, data_folder: &Path) -> Result<Manifest, PaperError> {
        let scales = self.card().scales;
        if !scales.contains(&choices.scale) {
            let names: Vec<&str> = scales.iter().map(|scale| scale.name()).collect();
            let rule = format!("{} has the scales {}", self.name(), names.join(" and "));
            return Err(RunError::value("--scale", choices.scale.name(), rule).into());
        }
        let mut rows = self.chosen(choices.scale, &choices.systems)?;
        rows.sort_by_key(|row| row.group != Group::Own);
        self.plan_of(rows, choices, data_folder)
    }

    fn plan_of(
        self,
        rows: Vec<ModelRow>,
        choices: &PlanChoices,
        data_folder: &Path,
    ) -> Result<Manifest, PaperError> {
        let rows = self.configurations(rows, choices, data_folder)?;
        let draws = choices.draws.or(self.default_draws(choices.scale));
        if draws.is_some() != (self == Self::Robustness) {
            let rule = "only the robustness study draws settings";
            return Err(RunError::value("draws", draws.unwrap_or(0), rule).into());
        }
        let mut runs = Vec::new();
        for seed in 1..=choices.seeds {
            for draw in draws.map_or(vec![None], |draws| (0..draws).map(Some).collect()) {
                for (row, config) in &rows {
                    let mut config = config.clone();
                    config.train.seed = seed;
                    let mut id = format!("{}-seed-{seed}", row.key);
                    if let Some(draw) = draw {
                        config.train = drawn(&config.train, seed, draw);
                        id = format!("{id}-draw-{draw:03}");
                    }
                    config.check().map_err(in_row(*row))?;
                    runs.push(RunSpec::new(id, row.key, row.label, draw, config));
                }
            }
        }
        Ok(Manifest::new(self.name(), choices.scale.name(), runs))
    }

    /// The configuration of each row, before seeds and draws.
    fn configurations(
        self,
        rows: Vec<ModelRow>,
        choices: &PlanChoices,
        data_folder: &Path,
    ) -> Result<Vec<(ModelRow, LanguageModelConfig)>, PaperError> {
        let rows = rows.into_iter();
        let is_full = choices.scale == Scale::Full;
        if is_full {
            return rows
                .map(|row| {
                    let config = self.full_size(&row, data_folder)?;
                    let config = with_changes(config, &choices.changes, "");
                    Ok((row, config.map_err(in_row(row))?))
                })
                .collect();
        }
        let reference = with_changes(self.reference(choices.scale), &choices.changes, "")?;
        reference.check()?;
        let vocabulary = vocabulary_size(&reference, data_folder)?;
        let words = match self {
            Self::Efficiency => training_words(&reference, data_folder)?,
            _ => 0,
        };
        let rows: Vec<(ModelRow, LanguageModelConfig)> = rows
            .map(|row| {
                let reference = match row.portion {
                    Some(portion) => portion.of(&reference, words),
                    None => reference.clone(),
                };
                let parameters = reference.model.parameter_count(vocabulary);
                let mut config = made_by(&row, with_cell_of(&row, reference))?;
                if config.model.head.settings().kind() == "softmax" {
                    // Two matrices with a row for each word instead of one: rows of half the size.
                    config.model.embedding = config.model.embedding.div_ceil(2);
                }
                config.model = with_parameters(&config.model, vocabulary, parameters);
                config.train = training_of(&row, choices.scale, &config.train);
                // What a person says about training holds for every row.
                let config = with_changes(config, &choices.changes, "train.");
                Ok::<_, PaperError>((row, config.map_err(in_row(row))?))
            })
            .collect::<Result<_, _>>()?;
        refuse_same_portions(&rows)?;
        Ok(rows)
    }

    fn full_size(
        self,
        row: &ModelRow,
        data_folder: &Path,
    ) -> Result<LanguageModelConfig, PaperError> {
        let own = self
            .rows(Scale::Small)
            .pop()
            .expect("a model of the paper's own");
        let name = if row.preset.is_empty() {
            own.preset
        } else {
            row.preset
        };
        let preset = preset(name).expect("rows name presets").config;
        let mut config = match row.group {
            Group::Own => with_cell_of(row, preset),
            // As published.
            Group::Quoted => preset,
            Group::Related if !row.preset.is_empty() => preset,
            Group::Related => {
                let vocabulary = vocabulary_size(&preset, data_folder)?;
                let parameters = preset.model.parameter_count(vocabulary);
                let mut config = made_by(row, with_cell_of(row, preset))?;
                config.model = with_parameters(&config.model, vocabulary, parameters);
                config.train = training_of(row, Scale::Full, &config.train);
                config
            }
        };
        config.data.set = self.text(Scale::Full);
        if self == Self::Robustness {
            config.train.epochs = 10;
            config.train.cut_after.clear();
        }
        Ok(config)
    }
}

/// Refuses sizes and parts of a text that what was set has made the same: a curve over them would be a point.
fn refuse_same_portions(rows: &[(ModelRow, LanguageModelConfig)]) -> Result<(), RunError> {
    for (index, (row, config)) in rows.iter().enumerate() {
        let mut before = rows[..index].iter();
        let same = before.find(|(other, of_other)| {
            let models = row.portion.zip(other.portion);
            models.is_some_and(|(one, other)| one.model == other.model) && of_other == config
        });
        if let Some((other, _)) = same {
            return Err(RunError::Config {
                place: format!("{} and {}", other.key, row.key),
                message: "are the same model on the same words under what was set: give larger sizes or more words"
                    .to_owned(),
            });
        }
    }
    Ok(())
}

/// The same configuration with a row's cell, and dropout only at sites that this has.
fn with_cell_of(row: &ModelRow, mut config: LanguageModelConfig) -> LanguageModelConfig {
    config.model.cell = (row.cell)(&config.model.cell);
    if row.experts > 0 {
        config.model.head = HeadChoice::of(&MixtureSettings {
            experts: row.experts,
            dropout: config.train.dropout.output.min(0.29),
            ..MixtureSettings::default()
        });
    }
    keep_sites(&mut config);
    config
}

/// The same configuration with what makes a row's system besides its cell.
fn made_by(
    row: &ModelRow,
    mut config: LanguageModelConfig,
) -> Result<LanguageModelConfig, LmError> {
    for (key, value) in row.made_by {
        config = config.with(key, value)?;
    }
    keep_sites(&mut config);
    Ok(config)
}

/// Leaves dropout only at sites that the cell has.
fn keep_sites(config: &mut LanguageModelConfig) {
    let sites = config.model.site_kinds();
    let dropout = &mut config.train.dropout;
    dropout.sites.retain(|kind, _| sites.contains(kind));
}

fn with_changes(
    mut config: LanguageModelConfig,
    changes: &[(String, String)],
    section: &str,
) -> Result<LanguageModelConfig, LmError> {
    for (key, value) in changes.iter().filter(|(key, _)| key.starts_with(section)) {
        config = config.with(key, value)?;
    }
    Ok(config)
}

/// An error that says of which row it is: a change may fit one configuration and not another.
fn in_row(row: ModelRow) -> impl FnOnce(LmError) -> PaperError {
    move |fault| PaperError::Row {
        row: row.key,
        fault,
    }
}

/// The words that the configuration learns from.
fn training_words(config: &LanguageModelConfig, data_folder: &Path) -> Result<usize, LmError> {
    match (config.data.train_words, config.data.set) {
        (0, TextSource::Ptb) if config.data.tokens.is_default() => Ok(PTB_WORDS),
        (0, _) => Ok(config.data.corpus(data_folder)?.train.len()),
        (words, _) => Ok(words),
    }
}

fn vocabulary_size(config: &LanguageModelConfig, data_folder: &Path) -> Result<usize, LmError> {
    match config.data.vocabulary_size() {
        Some(size) if config.data.min_count == 1 => Ok(size),
        _ => Ok(config.data.corpus(data_folder)?.vocabulary.len()),
    }
}

#[cfg(test)]
mod tests {
    use adaparam::recurrent::{LstmSettings, Recurrent, RecurrentKind, StackSizes};
    use adaparam::settings::Kind;
    use adaparam_data::checksum::Checksum;
    use adaparam_lm::CellChoice;
    use burn::tensor::Device;

    use super::*;
    use crate::experiment::row::row;

    fn choices(scale: Scale) -> PlanChoices {
        PlanChoices {
            scale,
            seeds: 2,
            draws: None,
            systems: Systems::Own,
            changes: Vec::new(),
        }
    }

    fn planned(experiment: Experiment, choices: &PlanChoices) -> Manifest {
        experiment.plan(choices, Path::new("")).unwrap()
    }

    fn parameters(run: &RunSpec) -> f64 {
        let vocabulary = run.config.data.vocabulary_size().unwrap();
        run.config.model.parameter_count(vocabulary) as f64
    }

    #[test]
    fn below_full_scale_all_models_have_as_many_parameters_within_one_per_cent() {
        for experiment in Experiment::ALL {
            let below_full = experiment.card().scales.iter().copied();
            for scale in below_full.filter(|&scale| scale != Scale::Full) {
                let manifest = planned(experiment, &choices(scale));
                // The paper's own model, which stands behind the others of its size.
                for (at, run) in manifest.runs.iter().enumerate() {
                    let expected = match experiment {
                        Experiment::Efficiency => &manifest.runs[at / 3 * 3 + 2],
                        _ => &manifest.runs[manifest.runs.len() - 1],
                    };
                    let ratio = parameters(run) / parameters(expected);
                    assert!((ratio - 1.0).abs() < 0.01, "{}: {ratio}", run.id);
                }
            }
        }
    }

    #[test]
    fn systems_of_others_have_as_many_parameters_and_the_same_text() {
        for experiment in [Experiment::Ptb, Experiment::WikiText2, Experiment::Ablation] {
            for scale in [Scale::Medium, Scale::Small] {
                let choices = PlanChoices {
                    systems: Systems::All,
                    ..choices(scale)
                };
                let manifest = planned(experiment, &choices);
                let own = &manifest.runs[0];
                assert_eq!(own.row, "lstm");
                assert!(manifest.runs.iter().any(|run| run.row == "gru"));
                for run in &manifest.runs {
                    let ratio = parameters(run) / parameters(own);
                    assert!((ratio - 1.0).abs() < 0.01, "{}: {ratio}", run.id);
                    assert_eq!(run.config.data, own.config.data);
                    assert_eq!(run.config.train.epochs, own.config.train.epochs);
                }
            }
        }
    }

    /// Of a run that others have published: its row, the kind of its cell, epochs and parameters.
    type Published = (&'static str, &'static str, u64, usize);

    /// With one word less than where a reserved one is counted: 724 parameters of a Melis LSTM of 723 units.
    const OF_TABLE_2: [Published; 6] = [
        ("zaremba", "lstm", 55, 66_022_000),
        ("rhn", "rhn", 500, 23_482_400),
        ("nas", "nas", 35, 53_830_000),
        ("tg-sc-10m", "melis-lstm", 241, 9_997_549 - 269),
        ("tg-sc", "melis-lstm", 241, 23_979_620 - 724),
        ("awd-lstm", "lstm", 500, 24_221_600),
    ];
    const OF_TABLE_3: [Published; 4] = [
        ("grave", "lstm", 39, 42_502_654),
        ("inan", "lstm", 39, 28_429_178),
        ("awd-lstm", "lstm", 750, 33_556_078),
        ("tg-sc", "melis-lstm", 107, 23_982_129 - 150),
    ];
    const RELATED: [&str; 15] = [
        "rnn",
        "gru",
        "mrnn",
        "mlstm",
        "mi-rnn",
        "mi-lstm",
        "hyper-lstm",
        "mogrifier",
        "min-gru",
        "min-lstm",
        "slstm",
        "lstm-mos",
        "recurrent-mos",
        "adaptive-rnn",
        "adaptive-gru",
    ];

    fn full(experiment: Experiment, systems: Systems) -> Vec<RunSpec> {
        let choices = PlanChoices {
            systems,
            seeds: 1,
            ..choices(Scale::Full)
        };
        planned(experiment, &choices).runs
    }

    #[test]
    fn full_plans_have_the_papers_own_models_and_the_quoted_ones_as_published() {
        let of_ptb = [
            "lstm",
            "static",
            "recurrent-14m",
            "recurrent",
            "recurrent-24m",
        ];
        let of_wikitext_2 = ["lstm", "static", "recurrent", "recurrent-32m"];
        for (experiment, own, quoted) in [
            (Experiment::Ptb, &of_ptb[..], &OF_TABLE_2[..]),
            (Experiment::WikiText2, &of_wikitext_2, &OF_TABLE_3),
        ] {
            let paper = full(experiment, Systems::Paper);
            let keys: Vec<&str> = paper.iter().map(|run| run.row.as_str()).collect();
            let expected = own.iter().copied().chain(quoted.iter().map(|row| row.0));
            assert_eq!(keys, expected.collect::<Vec<&str>>());
            for run in &paper[..own.len()] {
                assert_eq!(run.config.train.epochs, 190, "{}", run.id);
            }
            for (run, expected) in paper[own.len()..].iter().zip(quoted) {
                let kind = run.config.model.cell.settings().kind();
                let found = (kind, run.config.train.epochs, parameters(run) as usize);
                assert_eq!(found, (expected.1, expected.2, expected.3), "{}", run.id);
            }
            let all = full(experiment, Systems::All);
            assert_eq!(all[..paper.len()], paper);
            let more: Vec<&str> = all[paper.len()..]
                .iter()
                .map(|run| run.row.as_str())
                .collect();
            assert_eq!(more, RELATED);
        }
    }

    #[test]
    fn full_plans_have_related_systems_as_large_as_the_papers_own_or_as_published() {
        for (experiment, own, mogrifier) in [
            // A reserved word less, as above.
            (Experiment::Ptb, 17_197_800, (964, 23_987_393 - 913)),
            (Experiment::WikiText2, 26_532_278, (429, 34_991_825 - 273)),
        ] {
            let all = full(experiment, Systems::All);
            for key in RELATED {
                let run = all.iter().find(|run| run.row == key).unwrap();
                let kind = match key {
                    "lstm-mos" => "lstm",
                    "recurrent-mos" => "adaptive-lstm",
                    key => key,
                };
                assert_eq!(run.config.model.cell.settings().kind(), kind);
                let (epochs, count) = (run.config.train.epochs, parameters(run));
                if key == "mogrifier" {
                    assert_eq!((epochs, count as usize), mogrifier);
                } else {
                    assert_eq!(epochs, 190, "{key}");
                    let ratio = count / f64::from(own);
                    assert!((ratio - 1.0).abs() < 0.01, "{key}: {ratio}");
                }
            }
        }
    }

    #[test]
    fn related_systems_are_the_same_at_full_scale_and_below() {
        for experiment in [Experiment::Ptb, Experiment::WikiText2, Experiment::Ablation] {
            let small = PlanChoices {
                systems: Systems::All,
                ..choices(Scale::Small)
            };
            let (small, full) = (
                planned(experiment, &small).runs,
                full(experiment, Systems::All),
            );
            let rows = experiment.systems(Scale::Full).into_iter();
            for row in rows.filter(|row| row.group == Group::Related) {
                let cell = |runs: &[RunSpec]| {
                    let run = runs.iter().find(|run| run.row == row.key).unwrap();
                    let mut values = run.config.model.cell.settings().values();
                    // Sizes are those of the scale, and of the preset where there is one.
                    for size in ["latent", "hyper"] {
                        values.remove(size);
                    }
                    if !row.preset.is_empty() {
                        for size in ["rounds", "rank"] {
                            values.remove(size);
                        }
                    }
                    values
                };
                assert_eq!(cell(&small), cell(&full), "{}", row.key);
                // Without a preset, too.
                let unpublished = row.with_preset("");
                let plan =
                    experiment.plan_of(vec![unpublished], &choices(Scale::Full), Path::new(""));
                assert_eq!(cell(&plan.unwrap().runs), cell(&small), "{}", row.key);
            }
        }
    }

    #[test]
    fn below_full_scale_a_system_that_the_table_has_in_two_sizes_runs_in_two_depths() {
        let both = ["tg-sc-10m", "tg-sc"];
        let choices = PlanChoices {
            systems: Systems::Named(both.map(str::to_owned).to_vec()),
            ..choices(Scale::Small)
        };
        let runs = planned(Experiment::Ptb, &choices).runs;
        let [one, two] = both.map(|key| {
            let run = runs.iter().find(|run| run.row == key).unwrap();
            &run.config.model
        });
        assert_eq!((one.layers, two.layers), (1, 2));
        // One layer is wider than two, and neither is as wide as the word vectors.
        assert_eq!((one.embedding, two.embedding), (120, 120));
        assert!(one.hidden > two.hidden, "{} {}", one.hidden, two.hidden);
        assert!(two.hidden > 120, "{}", two.hidden);
    }

    #[test]
    fn a_change_that_one_model_does_not_take_is_told_with_its_name() {
        let choices = PlanChoices {
            systems: Systems::Paper,
            changes: vec![("train.cut_after".to_owned(), "[4, 5]".to_owned())],
            ..choices(Scale::Full)
        };
        let told = Experiment::Ptb.plan(&choices, Path::new("")).unwrap_err();
        let told = told.to_string();
        let expected = "in the configuration of zaremba: train.schedule.kind = decay";
        assert!(told.starts_with(expected), "{told}");
    }

    #[test]
    fn scales_have_the_sizes_that_their_names_promise() {
        for (scale, millions) in [(Scale::Small, 1.8..2.3), (Scale::Medium, 4.0..6.0)] {
            let run = &planned(Experiment::Ptb, &choices(scale)).runs[0];
            assert!(
                millions.contains(&(parameters(run) / 1e6)),
                "{scale:?}: {}",
                parameters(run)
            );
        }
    }

    #[test]
    fn the_first_seed_of_every_model_comes_before_the_second() {
        let manifest = planned(Experiment::Ablation, &choices(Scale::Small));
        let seeds: Vec<u64> = manifest.runs.iter().map(|run| run.seed).collect();
        assert_eq!(seeds, [vec![1; 7], vec![2; 7]].concat());
    }

    #[test]
    fn the_baseline_is_clipped_and_the_adaptive_models_are_not() {
        for scale in Scale::ALL {
            for run in planned(Experiment::Ablation, &choices(scale)).runs {
                let clip = run.config.train.clip;
                let expected = if run.row == "lstm" { 5.0 } else { 0.0 };
                assert!((clip - expected).abs() < 1e-12, "{}: {clip}", run.id);
            }
        }
    }

    #[test]
    fn a_robustness_study_draws_and_others_do_not() {
        let drawn = planned(
            Experiment::Robustness,
            &PlanChoices {
                draws: Some(3),
                ..choices(Scale::Full)
            },
        );
        assert_eq!(drawn.runs.len(), 2 * 2 * 3);
        assert!(drawn.runs.iter().all(|run| run.config.train.epochs == 10));
        let error = Experiment::Ptb.plan(
            &PlanChoices {
                draws: Some(3),
                ..choices(Scale::Small)
            },
            Path::new(""),
        );
        assert!(error.unwrap_err().to_string().contains("draws = 3"));
    }

    #[test]
    fn changes_reach_every_run() {
        let mut choices = choices(Scale::Quick);
        choices.changes = vec![
            ("train.epochs".to_owned(), "1".to_owned()),
            ("train.clip".to_owned(), "0.5".to_owned()),
            ("model.embedding".to_owned(), "16".to_owned()),
        ];
        for run in planned(Experiment::Ablation, &choices).runs {
            assert_eq!(
                (run.config.train.epochs, run.config.model.embedding),
                (1, 16)
            );
            assert!((run.config.train.clip - 0.5).abs() < 1e-12);
        }
        choices.changes = vec![("train.epohcs".to_owned(), "1".to_owned())];
        let error = Experiment::Ptb.plan(&choices, Path::new("")).unwrap_err();
        assert!(error.to_string().contains("train.epochs"), "{error}");
    }

    /// Frozen: runs that were planned before are gone on with only if they are planned alike today. Whoever changes a
    /// row or a scale on purpose writes the new sum here.
    #[test]
    fn every_plan_is_the_one_that_was_planned_before() {
        let mut found = Vec::new();
        for experiment in Experiment::ALL {
            for &scale in experiment.card().scales {
                let text = serde_json::to_string(&planned(experiment, &choices(scale))).unwrap();
                let sum = Checksum::of(text).to_string();
                found.push(format!(
                    "{} {} {}",
                    experiment.name(),
                    scale.name(),
                    &sum[..16]
                ));
            }
        }
        assert_eq!(
            found,
            [
                "ptb full b3bf09fd7015edab",
                "ptb medium 8d59dc19863ad1d1",
                "ptb small b6a1c8033cf413e4",
                "ptb quick cdd0487938eb8a0f",
                "wikitext2 full c81f75a7a90c8fdc",
                "wikitext2 medium f6b99bbba9b5769f",
                "wikitext2 small 9c29a46b13c1db80",
                "wikitext2 quick 39f0cf01777fb8a8",
                "ablation full 616e49141f33ec94",
                "ablation medium 4ce3a4a6ecc14935",
                "ablation small 1e67eb8760e40962",
                "ablation quick 6dc37e1b66a9ce54",
                "robustness full 24ee9d6f5808e591",
                "robustness medium c0c24564463406cd",
                "robustness small a82ba59a59de51df",
                "robustness quick ecdd0ade4b1040ea",
                "efficiency small 640cc8aeb71eb2f3",
                "efficiency quick 82bcb6432e9cf203",
                "choices small cba92631633e9603",
                "choices quick 89823d854f0fc179"
            ]
        );
    }

    fn efficiency(changes: &[(&str, &str)]) -> Vec<RunSpec> {
        let choices = PlanChoices {
            seeds: 1,
            changes: changes
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            ..choices(Scale::Small)
        };
        planned(Experiment::Efficiency, &choices).runs
    }

    #[test]
    fn efficiency_has_four_sizes_on_the_whole_text_and_one_on_less_each_once() {
        let runs = efficiency(&[]);
        assert_eq!(runs.len(), 3 * (4 + 2));
        for (at, run) in runs.iter().enumerate() {
            let same = |other: &RunSpec| other.hash == run.hash;
            assert!(!runs[..at].iter().any(same), "{} is there twice", run.id);
            let train = &run.config.train;
            assert_eq!((train.epochs, train.window), (6, 35));
            assert_eq!(train.cut_after, [4, 5]);
        }
        let run = |row: &str| runs.iter().find(|run| run.row == row).unwrap();
        for (size, millions) in [("500k", 0.5), ("1m", 1.0), ("2m", 2.0), ("4m", 4.0)] {
            for model in ["lstm", "static", "recurrent"] {
                let run = run(&format!("{model}-{size}"));
                let ratio = parameters(run) / (millions * 1e6);
                assert!((ratio - 1.0).abs() < 0.02, "{}: {ratio}", run.id);
                assert_eq!(run.config.data.train_words, 0);
            }
        }
        for (row, words) in [("lstm-1m-25", 232_397), ("recurrent-1m-50", 464_795)] {
            assert_eq!(run(row).config.data.train_words, words);
            let whole = run(&row[..row.len() - 3]);
            assert_eq!(run(row).config.model, whole.config.model);
        }
        let model = &run("recurrent-2m").config.model;
        let ptb = planned(Experiment::Ptb, &choices(Scale::Small));
        assert_eq!(model, &ptb.runs.last().unwrap().config.model);
    }

    #[test]
    fn sizes_and_shares_are_of_what_a_person_sets() {
        let runs = efficiency(&[
            ("model.embedding", "60"),
            ("data.train_words", "10000"),
            ("train.epochs", "1"),
        ]);
        let of = |row: &str| {
            let run = runs.iter().find(|run| run.row == row).unwrap();
            (run.config.model.embedding, run.config.data.train_words)
        };
        assert_eq!(of("recurrent-2m"), (60, 10_000));
        assert_eq!(of("lstm-500k"), (19, 10_000));
        assert_eq!(of("static-1m-25"), (35, 2_500));
        assert!(runs.iter().all(|run| run.config.train.epochs == 1));
    }

    #[test]
    fn a_scale_that_an_experiment_does_not_have_is_named_with_those_that_it_has() {
        for scale in [Scale::Full, Scale::Medium] {
            let refused = Experiment::Efficiency.plan(&choices(scale), Path::new(""));
            let told = refused.unwrap_err().to_string();
            let expected = format!(
                "--scale = {}: efficiency has the scales small and quick",
                scale.name()
            );
            assert!(told.contains(&expected), "{told}");
        }
    }

    adaparam::settings! {
        /// The keys of a cell that no table of the paper has.
        pub struct OtherSettings {
            /// whether the layers have a bias
            pub bias: bool = false;
        }
    }

    impl Kind for OtherSettings {
        const KIND: &'static str = "other-than-the-papers";
        const ABOUT: &'static str = "an LSTM by another name";
    }

    impl RecurrentKind for OtherSettings {
        fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
            LstmSettings {
                bias: self.bias,
                ..LstmSettings::default()
            }
            .init(sizes, device)
        }
    }

    #[test]
    fn a_row_of_another_cell_is_planned_like_the_others() {
        adaparam_lm::register::<OtherSettings>();
        let other = row("other", "Other", "ptb-17m", |_| {
            CellChoice::of(&OtherSettings::default())
        });
        for scale in Scale::ALL {
            let rows = [Experiment::Ptb.rows(scale), vec![other]].concat();
            let choices = choices(scale);
            let manifest = Experiment::Ptb
                .plan_of(rows, &choices, Path::new(""))
                .unwrap();
            let run = |row: &str| {
                let mut runs = manifest.runs.iter();
                runs.find(|run| run.row == row).unwrap()
            };
            let (own, other) = (run("recurrent"), run("other"));
            assert!(other.config.model.cell.get::<OtherSettings>().is_some());
            let sites: Vec<&String> = other.config.train.dropout.sites.keys().collect();
            assert_eq!(sites, ["hidden"], "{scale:?}");
            assert_eq!(other.config.data, own.config.data);
            if scale != Scale::Full {
                let ratio = parameters(other) / parameters(own);
                assert!((ratio - 1.0).abs() < 0.01, "{scale:?}: {ratio}");
            }
        }
    }
}

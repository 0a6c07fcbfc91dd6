//! What an experiment has found: a row for each model, with its spread over seeds or draws.

use adaparam_lm::sweep::{Collected, CollectedRun, RunState, Sweep};
use adaparam_lm::{LanguageModelConfig, TextSource};
use adaparam_report::number;
use adaparam_runs::run_folder::MANIFEST;
use serde_json::{Value, json};

use super::Experiment;
use super::choices;
use super::claims::claims;
use super::efficiency::Along;
use super::row::ModelRow;
use super::system::{Group, Systems};
use crate::PaperError;
use crate::finding::{Comparison, PERPLEXITY};
use crate::result::Scale;
use crate::result::{ExperimentResult, Row, Spread};

/// The name of a text, with the part of it that was learned from; 0 words are all of it.
pub(crate) fn with_part(text: &str, train_words: usize) -> String {
    match train_words {
        0 => text.to_owned(),
        words => format!("{text}, first {} words", number::grouped(words as u64)),
    }
}

/// What experiments that are named by their text are called on another one.
const LANGUAGE_MODELS: &str = "Language models";

/// A sweep of one of the paper's experiments, with everything that it has found so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Which experiment.
    pub experiment: Experiment,
    /// How large.
    pub scale: Scale,
    /// Its runs.
    pub collected: Collected,
}

impl Study {
    /// Reads all runs of a sweep.
    ///
    /// # Errors
    ///
    /// If it is a sweep of something else.
    pub fn read(sweep: &Sweep) -> Result<Self, PaperError> {
        Ok(Self {
            experiment: Experiment::of(sweep)?,
            scale: Scale::of(sweep)?,
            collected: Collected::read(sweep),
        })
    }

    /// The models that are compared: those that runs are planned of.
    pub fn rows(&self) -> Vec<ModelRow> {
        let runs = &self.collected.manifest.runs;
        let mut rows = self.experiment.systems(self.scale);
        rows.retain(|row| runs.iter().any(|run| run.row == row.key));
        if rows.is_empty() {
            rows = self.experiment.rows(self.scale);
        }
        rows
    }

    /// The names of the models that it has, if they are others than those of `systems`.
    ///
    /// # Errors
    ///
    /// If there is no system of such a name.
    pub fn rows_unlike(&self, systems: &Systems) -> Result<Option<String>, PaperError> {
        let wanted = self.experiment.chosen(self.scale, systems)?;
        let here = self.rows();
        let is_in = |row: &ModelRow, rows: &[ModelRow]| rows.iter().any(|it| it.key == row.key);
        let are_same = wanted.len() == here.len() && wanted.iter().all(|row| is_in(row, &here));
        let names: Vec<&str> = here.iter().map(|row| row.key).collect();
        Ok((!are_same).then(|| names.join(", ")))
    }

    /// The rows of the paper's table that it quotes and that are not run here.
    pub(crate) fn quoted_rows(&self) -> Vec<ModelRow> {
        let own = self.rows();
        // Also those that only another scale has.
        let mut rows = self.experiment.systems(Scale::Full);
        rows.retain(|row| {
            let is_here = own.iter().any(|here| here.key == row.key);
            row.group == Group::Quoted && row.paper.is_some() && !is_here
        });
        rows
    }

    /// The text that the models have learned from.
    pub(crate) fn text(&self) -> TextSource {
        let mut runs = self.collected.manifest.runs.iter();
        let first = runs.next().map(|run| run.config.data.set);
        first.unwrap_or(self.experiment.text(self.scale))
    }

    /// That text as a title names it, with the part of it that was learned from.
    pub(crate) fn text_in_titles(&self) -> String {
        let first = self.collected.manifest.runs.first();
        let words = first.map_or(0, |run| run.config.data.train_words);
        with_part(self.text().in_words(), words)
    }

    /// Whether that is a text that the paper has numbers for.
    pub(crate) fn is_on_the_papers_text(&self) -> bool {
        let text = self.text();
        text == self.experiment.text(Scale::Full)
            || (self.experiment == Experiment::Robustness && text == TextSource::WikiText2)
    }

    /// The name of the section, which says what the models have learned from.
    pub fn heading(&self) -> String {
        let (card, on) = (self.experiment.card(), self.text().in_words());
        match (card.is_named_by_text, self.is_on_the_papers_text()) {
            (true, true) => card.heading.to_owned(),
            (true, false) => format!("{LANGUAGE_MODELS} on {on}"),
            (false, _) => format!("{} on {on}", card.heading),
        }
    }

    /// A name for the bar of links.
    pub(crate) fn short_name(&self) -> &'static str {
        let card = self.experiment.card();
        if card.is_named_by_text && !self.is_on_the_papers_text() {
            LANGUAGE_MODELS
        } else {
            card.short_name
        }
    }

    /// The name of its figure's file.
    pub(crate) fn figure_name(&self) -> String {
        let card = self.experiment.card();
        if self.is_on_the_papers_text() {
            return card.name.to_owned();
        }
        let name = if card.is_named_by_text {
            "language-models"
        } else {
            card.name
        };
        format!("{name}-on-{}", self.text().file_name())
    }

    /// What is worth a sentence, the most telling first.
    pub(crate) fn comparisons(&self, result: &ExperimentResult) -> Vec<Comparison> {
        let pairs = match self.experiment {
            Experiment::Ptb | Experiment::WikiText2 => {
                vec![("lstm", "recurrent"), ("lstm", "static")]
            }
            Experiment::Ablation => vec![("lstm", "hybrid-io"), ("lstm", "static-output")],
            Experiment::Robustness => Vec::new(),
            Experiment::Choices => choices::COMPARED.to_vec(),
            Experiment::Efficiency => {
                let keys = |model: &str| {
                    let rows = self.rows_along(Along::Parameters, model);
                    rows.into_iter().map(|row| row.key)
                };
                keys("lstm").zip(keys("recurrent")).collect()
            }
        };
        let is = |key: &'static str| {
            move |row: &Row| row.metrics.get("key").and_then(Value::as_str) == Some(key)
        };
        let (name, text) = (self.text().name_of_text(), self.text().in_words());
        let (aside, begins) = self.experiment.card().aside;
        let on = match aside {
            "" => name.to_owned(),
            aside => format!("{name}, {aside}"),
        };
        let phrase = format!("{begins} {text}");
        pairs
            .into_iter()
            .filter_map(|(plain, adaptive)| {
                Comparison::of(result, (&on, &phrase), PERPLEXITY, is(plain), is(adaptive))
            })
            .collect()
    }

    /// Rows and claims.
    pub(crate) fn summarise(&self) -> ExperimentResult {
        let (experiment, scale) = (self.experiment, self.scale);
        let rows = self.rows();
        ExperimentResult {
            experiment: experiment.name().to_owned(),
            scale,
            rows: rows
                .iter()
                .map(|model| {
                    let mut row = self.row(model.key, model.label);
                    let mut insert = |name: &str, value: Value| {
                        row.metrics.insert(name.to_owned(), value);
                    };
                    insert("key", json!(model.key));
                    // The paper's numbers are about its own texts.
                    if let Some(paper) = model.paper.filter(|_| self.is_on_the_papers_text()) {
                        if let Some(size) = paper.size {
                            insert("paper_size", json!(size));
                        }
                        if let Some(valid) = paper.valid {
                            insert("paper_valid_perplexity", json!(valid));
                        }
                        insert("paper_test_perplexity", json!(paper.test));
                    }
                    row
                })
                .collect(),
            claims: claims(self),
        }
    }

    fn row(&self, key: &str, label: &str) -> Row {
        let runs: Vec<&CollectedRun> = self.collected.runs_of(key).collect();
        let valid = self.collected.valid_perplexities(key);
        let diverged = valid.iter().filter(|score| score.is_infinite()).count();
        let parameters = runs
            .iter()
            .find_map(|run| Some(run.finished()?.parameters))
            .or_else(|| parameters(&runs.first()?.spec.config));
        let mut row = Row::new(label, parameters.unwrap_or(0), valid.len(), diverged);
        if !valid.is_empty() {
            row = row.with("valid_perplexity", &Spread::of(valid)).with(
                "test_perplexity",
                &Spread::of(self.collected.test_perplexities(key)),
            );
        }
        let ids: Vec<&str> = runs.iter().map(|run| run.spec.id.as_str()).collect();
        row.metrics.insert("runs".to_owned(), json!(ids));
        let failed = runs
            .iter()
            .filter(|run| run.progress.state == RunState::Failed)
            .count();
        if failed > 0 {
            row.metrics.insert("failed".to_owned(), json!(failed));
        }
        row
    }
}

/// The parameters of a model, where the vocabulary is known beforehand.
pub(super) fn parameters(config: &LanguageModelConfig) -> Option<usize> {
    let vocabulary = config.data.vocabulary_size()?;
    Some(config.model.parameter_count(vocabulary))
}

/// The one of `all` that a sweep's manifest names.
fn named<T: Copy>(
    sweep: &Sweep,
    key: &'static str,
    name: &str,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<T, PaperError> {
    let found = all.iter().copied().find(|&one| name_of(one) == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|&one| name_of(one)).collect();
        PaperError::Unknown {
            path: sweep.path().join(MANIFEST),
            key,
            name: name.to_owned(),
            known: names.join(", "),
        }
    })
}

impl Scale {
    /// How large a sweep is.
    ///
    /// # Errors
    ///
    /// If it is a sweep of something else.
    pub fn of(sweep: &Sweep) -> Result<Self, PaperError> {
        let name = &sweep.manifest().scale;
        named(sweep, "scale", name, &Self::ALL, Self::name)
    }
}

impl Experiment {
    /// What a sweep is of.
    ///
    /// # Errors
    ///
    /// If it is a sweep of something else.
    pub fn of(sweep: &Sweep) -> Result<Self, PaperError> {
        let name = &sweep.manifest().experiment;
        named(sweep, "experiment", name, &Self::ALL, Self::name)
    }
}

/// Texts in words.
pub(crate) trait TextInWords {
    /// As a part of a sentence.
    fn in_words(self) -> &'static str;
    /// By itself.
    fn name_of_text(self) -> &'static str;
    /// In the name of a file.
    fn file_name(self) -> &'static str;
}

impl TextInWords for TextSource {
    fn in_words(self) -> &'static str {
        match self {
            Self::MobyDick => "Moby-Dick",
            Self::Ptb => "the Penn Treebank",
            Self::WikiText2 => "WikiText-2",
            Self::Files => "a text of your own",
        }
    }

    fn name_of_text(self) -> &'static str {
        match self {
            Self::Ptb => "Penn Treebank",
            Self::Files => "Your own text",
            other => other.in_words(),
        }
    }

    fn file_name(self) -> &'static str {
        match self {
            Self::MobyDick => "moby-dick",
            Self::Ptb => "ptb",
            Self::WikiText2 => "wikitext-2",
            Self::Files => "own-text",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use adaparam_lm::sweep::{Manifest, RunSpec};
    use adaparam_report::Report;

    use super::*;
    use crate::experiment::PlanChoices;
    use crate::page;

    #[test]
    fn a_sweep_is_read_by_the_names_in_its_manifest() {
        let folder = tempfile::tempdir().unwrap();
        let planned = |experiment: &str, scale: &str| {
            let run = RunSpec::new("a", "a", "A", None, LanguageModelConfig::default());
            let path = folder.path().join(format!("{experiment}-{scale}"));
            Sweep::plan(path, Manifest::new(experiment, scale, vec![run])).unwrap()
        };
        for experiment in Experiment::ALL {
            for scale in Scale::ALL {
                let sweep = planned(experiment.name(), scale.name());
                let study = Study::read(&sweep).unwrap();
                assert_eq!((study.experiment, study.scale), (experiment, scale));
            }
        }
        let told = |sweep: &Sweep| Study::read(sweep).unwrap_err().to_string();
        let of_nothing = told(&planned("pth", "small"));
        assert!(
            of_nothing.ends_with(
                "manifest.json: experiment = pth: must be one of ptb, wikitext2, ablation, robustness, efficiency, choices"
            ),
            "{of_nothing}"
        );
        let of_no_size = told(&planned("ptb", "huge"));
        assert!(
            of_no_size.ends_with("scale = huge: must be one of full, medium, small, quick"),
            "{of_no_size}"
        );
    }

    #[test]
    fn a_study_is_named_after_the_text_that_it_was_trained_on() {
        let planned = |experiment: Experiment, scale, set: Option<&str>| {
            let choices = PlanChoices {
                scale,
                seeds: 1,
                draws: None,
                systems: Systems::Own,
                changes: set
                    .map(|set| ("data.set".to_owned(), set.to_owned()))
                    .into_iter()
                    .collect(),
            };
            let manifest = experiment.plan(&choices, Path::new("")).unwrap();
            Study {
                experiment,
                scale,
                collected: Collected {
                    manifest,
                    runs: Vec::new(),
                },
            }
        };
        for (experiment, title) in [
            (Experiment::Ptb, "the Penn Treebank"),
            (
                Experiment::Ablation,
                "the Penn Treebank, first 400,000 words",
            ),
            (Experiment::WikiText2, "WikiText-2, first 500,000 words"),
            (
                Experiment::Robustness,
                "the Penn Treebank, first 100,000 words",
            ),
        ] {
            let small = planned(experiment, Scale::Small, None);
            assert_eq!(small.text_in_titles(), title);
        }
        for experiment in Experiment::ALL {
            let quick = planned(experiment, Scale::Quick, None);
            assert!(
                quick.heading().ends_with("on Moby-Dick"),
                "{}",
                quick.heading()
            );
            assert!(
                quick.figure_name().ends_with("-on-moby-dick"),
                "{}",
                quick.figure_name()
            );
            let page = match experiment {
                Experiment::Robustness => page::robustness(&quick, &quick.summarise()),
                Experiment::Efficiency => page::efficiency(&quick, &quick.summarise()),
                _ => page::language_models(&quick, &quick.summarise()),
            };
            let report = Report {
                sections: vec![page.section],
                ..Report::default()
            };
            let shown = report.to_html();
            assert!(shown.contains("Moby-Dick"));
            for wrong in [
                "Penn Treebank",
                "WikiText-2",
                ">Paper<",
                "AWD-LSTM",
                "Compare Figure",
            ] {
                assert!(!shown.contains(wrong), "{experiment:?} says {wrong}");
            }
            let rows = quick.summarise().rows;
            assert!(
                rows.iter()
                    .all(|row| !row.metrics.contains_key("paper_size"))
            );
        }
        let small = planned(Experiment::Ptb, Scale::Small, None);
        assert_eq!(small.heading(), "Penn Treebank");
        let unlike = |systems: &str| small.rows_unlike(&Systems::parse(systems));
        assert_eq!(unlike("own").unwrap(), None);
        assert_eq!(unlike("recurrent,lstm,static").unwrap(), None);
        let here = Some("lstm, static, recurrent".to_owned());
        assert_eq!(unlike("paper").unwrap(), here);
        assert!(unlike("papier").is_err());
        let moved = planned(Experiment::Ptb, Scale::Small, Some("moby-dick"));
        assert_eq!(moved.heading(), "Language models on Moby-Dick");
        let robust = planned(Experiment::Robustness, Scale::Small, Some("wikitext-2"));
        assert_eq!(robust.heading(), "Robustness on WikiText-2");
        assert!(robust.is_on_the_papers_text());
    }

    #[test]
    fn sweeps_that_are_kept_as_results_are_still_read() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
        for (folder, experiment, scale) in [
            ("paper/ptb", Experiment::Ptb, Scale::Small),
            ("paper/wikitext2", Experiment::WikiText2, Scale::Small),
            ("paper/ablation", Experiment::Ablation, Scale::Small),
            ("paper/robustness", Experiment::Robustness, Scale::Small),
            ("ptb-2m-bolt-ons", Experiment::Ptb, Scale::Small),
            ("ptb-17m", Experiment::Ptb, Scale::Full),
            ("wall-clock/ptb", Experiment::Ptb, Scale::Small),
            ("wall-clock/wikitext2", Experiment::WikiText2, Scale::Small),
        ] {
            let study = Study::read(&Sweep::open(results.join(folder)).unwrap()).unwrap();
            assert_eq!((study.experiment, study.scale), (experiment, scale));
            let rows = study.summarise().rows;
            assert!(rows.iter().any(|row| row.seeds > 0), "{folder}");
        }
    }
}

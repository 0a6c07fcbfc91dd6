//! `adaparam train`: a language model from a preset or a file of one's own.

use std::path::{Path, PathBuf};

use adaparam_data::text::{Corpus, Tokens};
use adaparam_lm::{
    DEFAULT_PRESET, Inherited, KeyChange, LanguageModelConfig, MatchedWords, OpenedModel, Place,
    Snapshot, TextSource, checkpoint, cut_columns, model_changes, open_model, preset, weights_sum,
};
use adaparam_report::number::count;
use adaparam_runs::record::{Lineage, LineageWords, RECORD, RunRecord, Values};
use adaparam_runs::run_folder::{Purpose, RunFolder};
use adaparam_tensorboard::refuse_another;
use anyhow::{Context as _, anyhow, bail};
use clap::Args;

use super::Verdict;
use crate::compute_choice::ComputeChoice;
use crate::crew::Crew;
use crate::curves::CurvesChoice;
use crate::data_folder::data_folder;
use crate::memory::refuse_what_cannot_fit;
use crate::model_choice::{
    assignment, configuration, is_text_gone, names_a_text, refuse_two_names, with_absolute_paths,
    with_changes, without_files_of_its_maker,
};
use crate::say::{alert, remark};
use crate::training::{
    CONFIG, Session, lock, report_opened, settle_parts, shell_word, warn_of_cuts,
};
use crate::typed_number::whole_number;
use crate::{interrupt, provenance};

/// Train a language model
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam train
      the preset quick: Moby-Dick, minutes on two cores
  adaparam train ptb-17m --data ~/data
      the paper's model (adaparam show lists all)
  adaparam train quick --set train.epochs=2 --seed 7
  adaparam train quick --text my.txt
      a text of your own, cut in three
  adaparam train quick-char --text my.txt
      the same by characters, for any language
  adaparam train my.toml --out runs/mine
      begin with `adaparam show quick > my.toml`
  adaparam train ptb-17m --precision bf16
      half of the bits in products, less memory (docs/precision.md)
  adaparam train quick --tensorboard curves
      then: tensorboard --logdir curves
  adaparam train --from runs/quick-seed-1 --seed 2
      a new run that begins with the weights of another
  adaparam train --from runs/quick-seed-1 --text my.txt
      the same on a text of your own; words are matched by name
  adaparam train ptb-awd-finetune --from runs/ptb-awd-seed-1
      the second stage of a recipe
  mpirun -n 2 adaparam train ptb-17m --threads 1
      two processes, each with half of every batch (docs/clusters.md)

Ctrl-C finishes the step, saves and says how to go on. `adaparam resume` goes on with a run, also under changed keys.")]
pub(crate) struct Train {
    /// A preset's name or a TOML file [default: quick, or with --from the configuration of that run]
    model: Option<String>,
    /// Begin with the weights of this run, checkpoint or exported file of the same model; words that both texts have keep their vectors
    #[arg(long, value_name = "RUN")]
    from: Option<PathBuf>,
    /// Go on with the optimiser of that run too, instead of a new one
    #[arg(long, requires = "from")]
    keep_optimiser: bool,
    /// Seed of every random number [default: train.seed of the configuration]
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(0..=u64::MAX), allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Change a key of the configuration (adaparam show --keys lists all)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = assignment)]
    changes: Vec<(String, String)>,
    /// Train on this text; what occurs once becomes <unk> unless a count is set (data.tokens says how texts are cut)
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Validate on this text
    #[arg(long, value_name = "FILE", requires = "text", requires = "test")]
    valid: Option<PathBuf>,
    /// Test on this text
    #[arg(long, value_name = "FILE", requires = "text", requires = "valid")]
    test: Option<PathBuf>,
    /// Folder with data sets [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Folder for the run [default: runs/<MODEL>-seed-<N>, or runs/from-<RUN>-seed-<N>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    compute: ComputeChoice,
    /// What products are computed in: f32, or bf16 with sums, weights and states in f32 [default: train.precision of the
    /// configuration]
    #[arg(long, value_name = "NAME", value_parser = ["f32", "bf16"])]
    precision: Option<String>,
    #[command(flatten)]
    curves: CurvesChoice,
    /// Print a line of JSON for every step and epoch
    #[arg(long)]
    json: bool,
}

/// What a run begins with.
struct Prepared {
    snapshot: Snapshot,
    corpus: Corpus,
    place: Place,
    out: PathBuf,
    lineage: Option<Lineage>,
}

impl Train {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let crew = Crew::join()?;
        let Prepared {
            snapshot,
            corpus,
            place,
            out,
            lineage,
        } = crew.agree(self.prepare(crew))?;
        let instructions = place.instructions_name();
        crew.compare(&snapshot.config, &snapshot.corpus, instructions)?;
        let folder = RunFolder::at(&out);
        let session = Session {
            place,
            json: self.json,
            stop: interrupt::stop_flag()?,
            crew,
            curves: self.curves.folder_of(&out),
        };
        let _lock = crew.by_first(|| {
            let folder = RunFolder::open(&out, Purpose::Training)?;
            let lock = lock(&folder)?;
            // Another process may have begun one while this one read the text.
            refuse_a_second_run(folder.path())?;
            self.describe(&folder, &session, &snapshot, lineage)?;
            Ok(lock)
        })?;
        let mut snapshot = crew.share(Some(snapshot))?;
        warn_of_cuts(&snapshot.config.train, None);
        if !self.json {
            remark!(
                "{} parameters, {} to train on, vocabulary of {}",
                snapshot
                    .config
                    .model
                    .parameter_count(corpus.vocabulary.len()),
                snapshot.config.data.tokens.counted(corpus.train.len()),
                corpus.vocabulary.len()
            );
        }
        session.run(&mut snapshot, &corpus, &folder)
    }

    /// Everything that a run begins with; nothing is written yet.
    fn prepare(&self, crew: Crew) -> anyhow::Result<Prepared> {
        self.refuse_a_second_stage_of_nothing()?;
        let from = self.from.as_deref().map(open_model).transpose()?;
        if let Some(opened) = &from {
            report_opened(opened);
        }
        let mut config = self.configuration(from.as_ref())?;
        config.check()?;
        settle_parts(&mut config.train, crew)?;
        let place = self.compute.place_among(crew.neighbours)?;
        self.compute.check_training(&place, &config)?;
        let out = self.out_folder(&config);
        refuse_a_second_run(&out)?;
        let texts = data_folder(self.data.as_deref())?;
        let corpus = config.data.corpus_doubting(&texts, |doubt| {
            alert!("warning: {doubt}");
        });
        let corpus = corpus.map_err(|error| {
            let is_of_the_run = from.is_some() && self.model.is_none() && !self.names_a_text();
            if is_of_the_run && is_text_gone(&config.data) {
                anyhow!("{error}; bring the text back, or name another with --text FILE")
            } else {
                error.into()
            }
        })?;
        cut_columns(&config.train, &corpus)?;
        refuse_what_cannot_fit([(&config, corpus.vocabulary.len())], 1)?;
        let sum = corpus.checksum().to_string();
        let curves = self.curves.folder_of(&out);
        let (snapshot, lineage) = match from {
            None => {
                let vocabulary = corpus.vocabulary.clone();
                (Snapshot::new(config, vocabulary, sum), None)
            }
            Some(opened) => {
                let (snapshot, words) = self.begun_from(&opened, config, &corpus, sum)?;
                let lineage = self.lineage(&opened, &snapshot.config, words.as_ref());
                (snapshot, Some(lineage))
            }
        };
        if let (Some(curves), Some(binding)) = (&curves, &snapshot.binding) {
            refuse_another(curves, &binding.run)?;
        }
        Ok(Prepared {
            snapshot,
            corpus,
            place,
            out,
            lineage,
        })
    }

    /// Refuses a preset that goes on with weights where none are given.
    fn refuse_a_second_stage_of_nothing(&self) -> anyhow::Result<()> {
        let preset = self.model.as_deref().and_then(preset);
        match preset {
            Some(preset) if preset.is_second_stage && self.from.is_none() => bail!(
                "{}: is the second stage of a recipe: give --from RUN, the run of its first stage",
                preset.name
            ),
            _ => Ok(()),
        }
    }

    /// Writes what the run is and how it came about.
    fn describe(
        &self,
        folder: &RunFolder,
        session: &Session,
        snapshot: &Snapshot,
        lineage: Option<Lineage>,
    ) -> anyhow::Result<()> {
        let mut record = provenance::record(self.compute.device.name(), session.place.threads);
        record.ranks = session.crew.ranks();
        record.seeds = vec![snapshot.config.train.seed];
        record
            .data
            .insert("text".to_owned(), snapshot.corpus.clone());
        record.from = lineage;
        record.binding = snapshot.binding.as_ref().map(|binding| binding.run.clone());
        folder.write_json(RECORD, &record)?;
        folder.write(CONFIG, toml::to_string_pretty(&snapshot.config)?)?;
        Ok(())
    }

    /// Whether the text to train on was typed.
    fn names_a_text(&self) -> bool {
        self.text.is_some() || names_a_text(&self.changes)
    }

    /// What was typed as one configuration.
    fn configuration(&self, from: Option<&OpenedModel>) -> anyhow::Result<LanguageModelConfig> {
        let texts = [
            ("--text", "data.train", self.text.as_deref()),
            ("--valid", "data.valid", self.valid.as_deref()),
            ("--test", "data.test", self.test.as_deref()),
        ];
        refuse_two_names(&texts, &self.changes)?;
        let mut config = match (&self.model, from) {
            (Some(model), _) => configuration(model)?,
            (None, Some(opened)) if opened.is_file => {
                let config = opened.snapshot.config.clone();
                without_files_of_its_maker(&opened.path, config, self.names_a_text())?
            }
            (None, Some(opened)) => opened.snapshot.config.clone(),
            (None, None) => configuration(DEFAULT_PRESET)?,
        };
        if let Some(text) = &self.text {
            config.data.set = TextSource::Files;
            config.data.train = Some(text.clone());
            config.data.valid.clone_from(&self.valid);
            config.data.test.clone_from(&self.test);
            config.data.min_count = config.data.min_count.max(2);
            with_absolute_paths(&mut config)?;
        }
        let mut config = with_changes(config, &self.changes)?;
        if let Some(seed) = self.seed {
            config.train.seed = seed;
        }
        if let Some(precision) = &self.precision {
            config = config.with("train.precision", precision)?;
        }
        with_absolute_paths(&mut config)?;
        Ok(config)
    }

    /// A run at its beginning with what another has learnt, and how words were matched, if the two differ in them.
    fn begun_from(
        &self,
        opened: &OpenedModel,
        config: LanguageModelConfig,
        corpus: &Corpus,
        sum: String,
    ) -> anyhow::Result<(Snapshot, Option<MatchedWords>)> {
        if self.keep_optimiser && opened.path.is_file() {
            bail!(
                "--keep-optimiser: {} is an exported file, which holds weights alone: name the run that it was made of",
                opened.path.display()
            );
        }
        let inherited = if self.keep_optimiser {
            Inherited::Optimiser
        } else {
            Inherited::Weights
        };
        let (before, vocabulary) = (&opened.snapshot, corpus.vocabulary.clone());
        let tokens = config.data.tokens;
        let set: Vec<&str> = self.changes.iter().map(|(key, _)| key.as_str()).collect();
        let (snapshot, words) =
            Snapshot::inheriting(before, config, vocabulary, sum, inherited, &set)
                .with_context(|| format!("--from {}", opened.path.display()))?;
        for KeyChange { key, before, after } in model_changes(&before.config, &snapshot.config) {
            alert!(
                "warning: {key} = {after} (in the other run: {before}): its weights fit, but were learnt in another model"
            );
        }
        if words.are_all() {
            return Ok((snapshot, None));
        }
        let told = told_words(tokens, &words);
        if 2 * words.kept < words.kept + words.new.len() {
            alert!("warning: only {told}");
        } else {
            remark!("{told}");
        }
        Ok((snapshot, Some(words)))
    }

    /// Where the weights come from.
    fn lineage(
        &self,
        opened: &OpenedModel,
        config: &LanguageModelConfig,
        words: Option<&MatchedWords>,
    ) -> Lineage {
        let named = self.from.as_deref().unwrap_or(&opened.path);
        // Inside a run, `checkpoints/<name>` is two folders further down.
        let checkpoint = opened.path.is_dir().then(|| name_of(&opened.path));
        let run = match &checkpoint {
            Some(_) => opened.path.ancestors().nth(2).unwrap_or(named),
            None => named,
        };
        let record = RunRecord::read(run);
        Lineage {
            run: name_of(run),
            checkpoint,
            weights: weights_sum(&opened.snapshot),
            commit: record.as_ref().map(|record| record.commit.clone()),
            with_optimiser: self.keep_optimiser,
            words: words.map(|words| LineageWords {
                kept: words.kept,
                new: words.new.len(),
                left_out: words.left_out.len(),
            }),
            keys: model_changes(&opened.snapshot.config, config)
                .into_iter()
                .map(|KeyChange { key, before, after }| (key, Values { before, after }))
                .collect(),
            from: record.and_then(|record| record.from).map(Box::new),
        }
    }

    fn out_folder(&self, config: &LanguageModelConfig) -> PathBuf {
        self.out.clone().unwrap_or_else(|| {
            let from = self
                .from
                .as_deref()
                .map(|from| format!("from-{}", stem_of(from)));
            let model = self.model.as_deref().map(|model| stem_of(model.as_ref()));
            let parts: Vec<String> = [model, from].into_iter().flatten().collect();
            let name = if parts.is_empty() {
                DEFAULT_PRESET.to_owned()
            } else {
                parts.join("-")
            };
            Path::new("runs").join(format!("{name}-seed-{}", config.train.seed))
        })
    }
}

/// What became of the words of another run, in a sentence.
fn told_words(tokens: Tokens, words: &MatchedWords) -> String {
    let some = |all: &[String]| match all {
        [] => "0".to_owned(),
        few if few.len() <= SHOWN_WORDS => format!("{} ({})", few.len(), few.join(", ")),
        many => format!("{} ({}, ...)", many.len(), many[..SHOWN_WORDS].join(", ")),
    };
    format!(
        "{} of {} occur in the other run; {} start untrained; of those of the other run, {} are not in this text",
        words.kept,
        tokens.counted(words.kept + words.new.len()),
        some(&words.new),
        some(&words.left_out)
    )
}

/// Words that are named where there are many.
const SHOWN_WORDS: usize = 5;

/// The name of a file or folder, also of one that was named as `.`.
fn name_of(path: &Path) -> String {
    let whole = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let name = whole.file_name().unwrap_or(whole.as_os_str());
    name.to_string_lossy().into_owned()
}

fn stem_of(path: &Path) -> String {
    let name = PathBuf::from(name_of(path));
    let is_folder = path.is_dir();
    let stem = if is_folder { None } else { name.file_stem() };
    stem.unwrap_or(name.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// Refuses a folder that holds a run, and says how to go on with it.
fn refuse_a_second_run(out: &Path) -> anyhow::Result<()> {
    if !checkpoint::has_checkpoints(out) {
        return Ok(());
    }
    let (folder, word) = (out.display(), shell_word(out));
    let place = checkpoint::newest(out).ok().map(|found| {
        let snapshot = found.snapshot;
        (snapshot.counters.epoch, snapshot.config.train.epochs)
    });
    match place {
        Some((done, epochs)) if done >= epochs => bail!(
            "{folder}: holds a finished run of {}:\n  \
             adaparam resume {word} --set train.epochs={}   trains it further\n  \
             adaparam train --from {word} --out OTHER   begins a new run with its weights\n\
             or name another folder with --out",
            count(epochs as usize, "epoch"),
            2 * epochs
        ),
        Some((done, epochs)) => bail!(
            "{folder}: holds a run already, with {done} of {epochs} epochs done: `adaparam resume {word}` goes on with \
             it; or name another folder with --out"
        ),
        None => bail!(
            "{folder}: holds a run already, whose checkpoints cannot be read: name another folder with --out"
        ),
    }
}

//! What the files of a run tell of it, without its weights.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use adaparam_runs::lock::is_held;
use adaparam_runs::record::RunRecord;
use adaparam_runs::{RunError, ordinary_file};
use serde::Deserialize;

use crate::LmError;
use crate::checkpoint;
use crate::config::LanguageModelConfig;
use crate::evaluate::bits;
use crate::log::{has_log, read_log};
use crate::sweep::{OUTCOME, RunState};
use crate::train::Finished;

const CONFIG: &str = "config.toml";
const RESULT: &str = "result.json";
/// Folders within folders that are looked into for runs.
const DEEPEST: usize = 5;

/// A run, finished or not.
#[derive(Debug, Clone, PartialEq)]
pub struct RunHistory {
    /// Its folder.
    pub path: PathBuf,
    /// Its configuration.
    pub config: LanguageModelConfig,
    /// How it came about, if it says so.
    pub record: Option<RunRecord>,
    /// The number of words in its vocabulary, once it has a checkpoint.
    pub vocabulary: Option<usize>,
    /// Where it is.
    pub state: RunState,
    /// Its epochs, the last perhaps not finished.
    pub epochs: Vec<EpochHistory>,
    /// What came out, if it is finished.
    pub result: Option<Finished>,
}

/// An epoch of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpochHistory {
    /// Its number, counted from 1.
    pub epoch: u64,
    /// The mean training loss of its steps, in nats per word, dropout included.
    pub train_loss: f64,
    /// Words that were predicted in training.
    pub words: u64,
    /// The learning rate for a window of the usual length.
    pub learning_rate: f64,
    /// The validation loss, once the epoch is finished.
    pub valid_loss: Option<f64>,
}

impl RunHistory {
    /// Whether a folder holds the run of a language model.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(CONFIG).is_file() && (has_log(folder) || checkpoint::has_checkpoints(folder))
    }

    /// Reads what a run has left in its folder.
    ///
    /// # Errors
    ///
    /// If there is no such folder, if it holds no run, or if its configuration is not understood.
    pub fn read(folder: &Path) -> Result<Self, LmError> {
        if !folder.exists() {
            return Err(RunError::folder(folder, "there is no such folder").into());
        }
        if !Self::is_in(folder) {
            let rule = "holds no run: name the folder of a run of `adaparam train`";
            return Err(RunError::folder(folder, rule).into());
        }
        let path = folder.join(CONFIG);
        let text = ordinary_file::read_to_string(&path)
            .map_err(RunError::file(&path, "cannot read this file"))?;
        let config = LanguageModelConfig::parse(&path.display().to_string(), &text)?;
        let result = fs::read_to_string(folder.join(RESULT)).ok();
        let result = result.and_then(|text| serde_json::from_str(&text).ok());
        Ok(Self {
            path: folder.to_path_buf(),
            record: RunRecord::read(folder),
            vocabulary: checkpoint::vocabulary_size(folder),
            state: state(folder, result.is_some()),
            epochs: epochs(folder, &config),
            config,
            result,
        })
    }

    /// The runs in a folder and the folders in it, in the order of their paths; what cannot be read is left out.
    pub fn find(folder: &Path) -> Vec<Self> {
        let mut found = Vec::new();
        find(folder, DEEPEST, &mut found);
        found
    }

    /// The epoch with the lowest validation loss.
    pub fn best(&self) -> Option<EpochHistory> {
        let loss = |epoch: &EpochHistory| epoch.valid_loss.unwrap_or(f64::INFINITY);
        let finished = self
            .epochs
            .iter()
            .filter(|epoch| epoch.valid_loss.is_some());
        finished.copied().min_by(|a, b| loss(a).total_cmp(&loss(b)))
    }

    /// The lowest validation loss in bits per character, where tokens are characters or smaller and it is known.
    pub fn valid_bits_per_character(&self) -> Option<f64> {
        if self.config.data.tokens.unit() == "character" {
            return Some(bits(self.best()?.valid_loss?));
        }
        self.result.as_ref()?.bits.as_ref()?.valid_per_character
    }

    /// Any validation loss in bits per character, where tokens are characters or smaller and it is known how many make one.
    pub fn bits_per_character(&self, valid_loss: f64) -> Option<f64> {
        if self.config.data.tokens.unit() == "character" {
            return Some(bits(valid_loss));
        }
        let told = self.result.as_ref()?.bits.as_ref()?;
        Some(bits(valid_loss) * told.valid_per_character? / told.valid)
    }

    /// The test loss in bits per character, where tokens are characters or smaller and it is known.
    pub fn test_bits_per_character(&self) -> Option<f64> {
        let bits = self.result.as_ref()?.bits.as_ref()?;
        match bits.per.as_str() {
            "character" => Some(bits.test),
            _ => bits.test_per_character,
        }
    }

    /// Epochs that are finished.
    pub fn epochs_done(&self) -> usize {
        let finished = self
            .epochs
            .iter()
            .filter(|epoch| epoch.valid_loss.is_some());
        finished.count()
    }

    /// The number of parameters, where it is known.
    pub fn parameters(&self) -> Option<usize> {
        let of_vocabulary = || Some(self.config.model.parameter_count(self.vocabulary?));
        let of_result = self.result.as_ref().map(|result| result.parameters);
        of_result.or_else(of_vocabulary)
    }
}

fn find(folder: &Path, depth: usize, found: &mut Vec<RunHistory>) {
    if RunHistory::is_in(folder) {
        found.extend(RunHistory::read(folder).ok());
        return;
    }
    if depth == 0 {
        return;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort_unstable();
    for folder in folders {
        find(&folder, depth - 1, found);
    }
}

fn state(folder: &Path, is_finished: bool) -> RunState {
    #[derive(Deserialize)]
    struct Outcome {
        status: String,
    }
    let outcome = fs::read_to_string(folder.join(OUTCOME)).ok();
    let outcome = outcome.and_then(|text| serde_json::from_str::<Outcome>(&text).ok());
    match outcome.as_ref().map(|outcome| outcome.status.as_str()) {
        _ if is_held(folder) => RunState::Running,
        Some("diverged") => RunState::Diverged,
        Some("failed") => RunState::Failed,
        _ if is_finished => RunState::Finished,
        _ if checkpoint::has_checkpoints(folder) => RunState::Interrupted,
        _ => RunState::Waiting,
    }
}

/// A line of the log: a step or the end of an epoch.
#[derive(Deserialize)]
struct Line {
    epoch: u64,
    window: Option<usize>,
    learning_rate: Option<f64>,
    loss: Option<f64>,
    valid_loss: Option<f64>,
}

#[derive(Default)]
struct Sums {
    rows: u64,
    loss: f64,
    learning_rate: f64,
    valid_loss: Option<f64>,
}

/// The epochs of a log; a line that is still being written is passed over.
fn epochs(folder: &Path, config: &LanguageModelConfig) -> Vec<EpochHistory> {
    let log = read_log(folder);
    let mut all: BTreeMap<u64, Sums> = BTreeMap::new();
    for line in log
        .lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok())
    {
        let sums = all.entry(line.epoch).or_default();
        if let (Some(window), Some(loss), Some(rate)) = (line.window, line.loss, line.learning_rate)
        {
            sums.rows += window as u64;
            sums.loss += loss * window as f64;
            sums.learning_rate = rate / config.train.rate_scale_of(window);
        }
        sums.valid_loss = line.valid_loss.or(sums.valid_loss);
    }
    let batch = config.train.batch as u64;
    all.into_iter()
        .map(|(epoch, sums)| EpochHistory {
            epoch,
            train_loss: sums.loss / sums.rows as f64,
            words: sums.rows * batch,
            learning_rate: sums.learning_rate,
            valid_loss: sums.valid_loss,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::write::GzEncoder;

    use super::*;

    fn run(folder: &Path, log: &str) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        let config = "[train]\nepochs = 3\nbatch = 2\nwindow = 10\n";
        fs::write(folder.join(CONFIG), config).unwrap();
        fs::write(folder.join("metrics.jsonl"), log).unwrap();
        folder.to_path_buf()
    }

    const LOG_OF_TWO: &str = "\
{\"epoch\":1,\"step\":1,\"window\":10,\"learning_rate\":0.1,\"loss\":4.0,\"norm\":1.0}
{\"epoch\":1,\"step\":2,\"window\":5,\"learning_rate\":0.05,\"loss\":1.0,\"norm\":1.0}
{\"epoch\":1,\"valid_loss\":2.0,\"valid_perplexity\":7.4,\"best\":true}
{\"after_epoch\":1,\"after_step\":0,\"changed\":{\"train.epochs\":{\"before\":\"2\",\"after\":\"3\"}}}
{\"epoch\":2,\"step\":1,\"window\":10,\"learning_rate\":0.01,\"loss\":2.0,\"norm\":1.0}
{\"epoch\":2,\"valid_loss\":2.5,\"valid_perplexity\":12.2,\"best\":false}
{\"epoch\":3,\"step\":1,\"window\":10,\"learning_rate\":0.01,\"loss\":1.5,\"norm\":1.0}
{\"epoch\":3,\"step\":2,\"wind";

    #[test]
    fn a_log_gives_losses_and_rates_by_epoch() {
        let folder = tempfile::tempdir().unwrap();
        let history = RunHistory::read(&run(folder.path(), LOG_OF_TWO)).unwrap();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert_eq!(history.epochs.len(), 3);
        let first = history.epochs[0];
        assert!(
            close(first.train_loss, 3.0) && close(first.learning_rate, 0.1),
            "{first:?}"
        );
        assert_eq!((first.words, first.valid_loss), (30, Some(2.0)));
        assert_eq!(
            (history.epochs_done(), history.best().unwrap().epoch),
            (2, 1)
        );
        assert_eq!(history.epochs[2].valid_loss, None);
        assert_eq!(history.state, RunState::Waiting);
    }

    #[test]
    fn a_log_that_was_packed_away_says_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = run(folder.path(), LOG_OF_TWO);
        let plain = RunHistory::read(&path).unwrap();
        fs::remove_file(path.join("metrics.jsonl")).unwrap();
        let file = fs::File::create(path.join("metrics.jsonl.gz")).unwrap();
        let mut packed = GzEncoder::new(file, flate2::Compression::best());
        packed.write_all(LOG_OF_TWO.as_bytes()).unwrap();
        packed.finish().unwrap();
        assert_eq!(RunHistory::read(&path).unwrap(), plain);
    }

    #[test]
    fn any_loss_is_told_in_bits_per_character_where_it_is_known_how_many_tokens_make_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = run(folder.path(), LOG_OF_TWO);
        let bits_of = |tokens: &str| {
            let config = format!("[data]\ntokens = \"{tokens}\"\n");
            fs::write(path.join(CONFIG), config).unwrap();
            let history = RunHistory::read(&path).unwrap();
            history.bits_per_character(3.0 * std::f64::consts::LN_2)
        };
        let close = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-12;
        assert!(close(bits_of("characters"), 3.0));
        assert_eq!(bits_of("bytes"), None, "while the run is not finished");
        let result = r#"{"parameters": 9, "epochs": 2, "best_epoch": 1, "checkpoint": "step-1", "valid_perplexity": 4.0,
            "valid_words": 7, "test_perplexity": 4.0, "test_words": 7, "bits": {"per": "byte", "valid": 2.0, "test": 2.0,
            "valid_per_character": 5.0, "test_per_character": 5.0}}"#;
        fs::write(path.join(RESULT), result).unwrap();
        assert!(close(bits_of("bytes"), 7.5));
        fs::remove_file(path.join(RESULT)).unwrap();
        assert_eq!(bits_of("words"), None);
    }

    #[test]
    fn runs_are_found_in_folders_of_folders_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        run(&folder.path().join("b/runs/one"), "");
        run(&folder.path().join("a"), "");
        fs::create_dir_all(folder.path().join("c")).unwrap();
        fs::write(folder.path().join("c").join(CONFIG), "[server]\nport = 1\n").unwrap();
        let found = RunHistory::find(folder.path());
        let names: Vec<PathBuf> = found.into_iter().map(|run| run.path).collect();
        assert_eq!(
            names,
            [folder.path().join("a"), folder.path().join("b/runs/one")]
        );
        let error = RunHistory::read(&folder.path().join("c"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("holds no run"), "{error}");
        let error = RunHistory::read(&folder.path().join("d"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("there is no such folder"), "{error}");
    }
}

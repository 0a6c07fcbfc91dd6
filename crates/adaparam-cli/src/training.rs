//! A language model in training, as the commands that train show it.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use adaparam_data::text::{Corpus, Tokens};
use adaparam_lm::checkpoint::Damaged;
use adaparam_lm::{
    LmError, Machine, Observer, Observers, OpenedModel, Outcome, Place, Snapshot, TrainEvent,
    TrainSpec, bits, forget_divergence, note_divergence, train,
};
use adaparam_report::number::{count, duration};
use adaparam_runs::RunError;
use adaparam_runs::lock::RunLock;
use adaparam_runs::record::{RECORD, RunRecord};
use adaparam_runs::run_folder::RunFolder;
use anyhow::bail;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::command::Verdict;
use crate::crew::Crew;
use crate::curves::Curves;
use crate::memory::peak_memory;
use crate::run_page::{self, PAGE, Witnessed};
use crate::sample::samples;
use crate::say::{alert, remark, say, shows_bars};
use crate::visible::visible;

/// The configuration of a run.
pub(crate) const CONFIG: &str = "config.toml";
/// What a finished run came to.
pub(crate) const RESULT: &str = "result.json";
/// Off a terminal, a line of progress at most this often.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// As many threads as can be asked for.
const MOST_THREADS: usize = 1024;

/// What a command that trains was told.
pub(crate) struct Session {
    /// Where to compute.
    pub(crate) place: Place,
    /// Lines of JSON on standard output instead of text.
    pub(crate) json: bool,
    /// Set by Ctrl-C, SIGTERM and SIGHUP.
    pub(crate) stop: Arc<AtomicBool>,
    /// Those that train together.
    pub(crate) crew: Crew,
    /// Where curves go, if they are wanted.
    pub(crate) curves: Option<PathBuf>,
}

/// The number that was named, or that of `RAYON_NUM_THREADS`, the variable that the libraries heed too, or all cores.
pub(crate) fn threads(named: Option<u16>) -> usize {
    let variable = || std::env::var("RAYON_NUM_THREADS").ok()?.parse().ok();
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    named
        .map(usize::from)
        .or_else(variable)
        .filter(|&threads| (1..=MOST_THREADS).contains(&threads))
        .unwrap_or_else(cores)
}

/// The right to train the run in a folder, until it is dropped; nothing where the file system knows no locks.
pub(crate) fn lock(folder: &RunFolder) -> anyhow::Result<Option<RunLock>> {
    match RunLock::take(folder.path()) {
        Ok(Some(lock)) => Ok(Some(lock)),
        Ok(None) => bail!(
            "{}: another process is training this run: wait until it has ended, or name another folder",
            folder.path().display()
        ),
        Err(RunError::NoLocks { .. }) => {
            alert!("warning: this file system knows no locks: let no other process train this run");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Says which checkpoints are damaged.
pub(crate) fn report_damaged(damaged: &[Damaged]) {
    for Damaged { path, problem } in damaged {
        alert!(
            "warning: {}: damaged, passed over: {problem}",
            path.display()
        );
    }
}

/// Says what is not as it should be about a model that was opened.
pub(crate) fn report_opened(opened: &OpenedModel) {
    report_damaged(&opened.damaged);
    if let Some(edited) = &opened.edited {
        alert!("warning: {edited}");
    }
    if let Some(diverged) = &opened.diverged {
        let updates = match opened.snapshot.counters.updates {
            0 => "of the model as it was drawn, untrained".to_owned(),
            updates => format!("after {}", count(updates as usize, "update")),
        };
        alert!(
            "warning: this run has diverged ({diverged}): what is opened is {}, {updates}",
            opened.path.display()
        );
    }
}

impl Session {
    /// Trains to the end or until the user stops it.
    pub(crate) fn run(
        &self,
        snapshot: &mut Snapshot,
        corpus: &Corpus,
        folder: &RunFolder,
    ) -> anyhow::Result<Verdict> {
        let tokens = snapshot.vocabulary.tokens();
        let per_character = |ids: &[u32]| corpus.vocabulary.tokens_per_character(ids);
        let [valid, test] = [&corpus.valid, &corpus.test].map(|ids| per_character(ids));
        let told_bits = [valid, test].map(|per_character| ToldBits::new(tokens, per_character));
        let mut display = Display::new(self.json, snapshot.config.train.epochs, tokens, told_bits);
        let mut curves = self
            .curves
            .clone()
            .map(|folder| Curves::new(folder, tokens));
        let started = Instant::now();
        if self.crew.is_first() {
            forget_divergence(folder.path());
        }
        let outcome = self.place.run(|machine| {
            warn_of_other_bits(snapshot, machine);
            let mut observers = Observers::none().with(&mut display);
            if let Some(curves) = &mut curves {
                observers = observers.with(curves);
            }
            train(
                snapshot,
                corpus,
                folder.path(),
                machine,
                self.crew.team(),
                &self.stop,
                &mut observers,
            )
        })?;
        display.bar.finish_and_clear();
        if !self.crew.is_first() {
            return match outcome {
                Ok(Outcome::Finished(_)) => Ok(Verdict::Done),
                Ok(Outcome::Stopped(_)) => Ok(Verdict::Interrupted),
                Err(LmError::NonFinite { .. }) => Ok(Verdict::Diverged),
                Err(error) => Err(error.into()),
            };
        }
        add_time(folder, started.elapsed(), snapshot.computed_with.as_deref())?;
        if let Ok(Outcome::Finished(finished)) = &outcome {
            folder.write_json(RESULT, finished)?;
        }
        if let Err(error) = &outcome {
            note_divergence(folder.path(), error)?;
        }
        self.write_page(folder, matches!(outcome, Ok(Outcome::Finished(_))));
        match outcome {
            Ok(Outcome::Finished(finished)) => {
                if self.json {
                    print_json(&json!({"event": "finished", "result": finished}));
                } else {
                    say!(
                        "best epoch {}: validation perplexity {:.2}{} ({}), test perplexity {:.2}{} ({})",
                        finished.best_epoch,
                        finished.valid_perplexity,
                        told_bits[0].of(finished.valid_perplexity.ln()),
                        tokens.counted(finished.valid_words),
                        finished.test_perplexity,
                        told_bits[1].of(finished.test_perplexity.ln()),
                        tokens.counted(finished.test_words)
                    );
                    say!("{}", folder.path().display());
                    remark!("curves: {}", folder.path().join(PAGE).display());
                }
                Ok(Verdict::Done)
            }
            Ok(Outcome::Stopped(checkpoint)) => {
                if self.json {
                    print_json(
                        &json!({"event": "stopped", "checkpoint": checkpoint.display().to_string()}),
                    );
                }
                let launcher = match self.crew.ranks() {
                    1 => String::new(),
                    ranks => format!("mpirun -n {ranks} "),
                };
                alert!(
                    "interrupted: everything is saved in {}\ngo on with: {launcher}adaparam resume {}",
                    checkpoint.display(),
                    shell_word(folder.path())
                );
                Ok(Verdict::Interrupted)
            }
            Err(error @ LmError::NonFinite { .. }) => {
                alert!("error: {error}");
                Ok(Verdict::Diverged)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Session {
    /// Writes the page of the run, with texts by the model once it is finished.
    fn write_page(&self, folder: &RunFolder, is_finished: bool) {
        let samples = if is_finished {
            samples(folder.path(), &self.place).unwrap_or_default()
        } else {
            Vec::new()
        };
        let witnessed = Witnessed {
            peak_memory: peak_memory(),
            samples,
        };
        run_page::write(folder.path(), &witnessed);
    }
}

/// Lets the parts of a batch be such that the crew can share them, and says so where that is another number.
pub(crate) fn settle_parts(train: &mut TrainSpec, crew: Crew) -> anyhow::Result<()> {
    let parts = train.parts_for(crew.ranks())?;
    if parts != train.parts {
        alert!(
            "train.parts = {parts}: set for {} ranks, which do not divide train.parts = {}; the last bits of results depend \
             on it",
            crew.ranks(),
            train.parts
        );
        train.parts = parts;
    }
    Ok(())
}

/// Says which cuts of the learning rate do not fit the number of epochs, and how to give them so that they do.
pub(crate) fn warn_of_cuts(train: &TrainSpec, epochs_before: Option<u64>) {
    for doubt in doubtful_cuts(train, epochs_before) {
        alert!("warning: {doubt}");
    }
}

/// What is doubtful about the cuts of the learning rate: some were given for another number of epochs, or come after the end.
pub(crate) fn doubtful_cuts(train: &TrainSpec, epochs_before: Option<u64>) -> Vec<String> {
    if !train.cut_at.is_empty() {
        return doubtful_shares(train).into_iter().collect();
    }
    let mut doubts = Vec::new();
    let planned = epochs_before.filter(|&epochs| {
        epochs != train.epochs && train.cut_after.iter().any(|&cut| cut < epochs)
    });
    if let Some(planned) = planned {
        doubts.push(format!(
            "train.cut_after = {:?} was set for {} and stays as it is; --set 'train.cut_at=[{}]' moves the cuts with the \
             number of epochs",
            train.cut_after,
            count(planned as usize, "epoch"),
            shares(&train.cut_after, planned)
        ));
    }
    let late: Vec<String> = train
        .cut_after
        .iter()
        .filter(|&&cut| cut >= train.epochs)
        .map(ToString::to_string)
        .collect();
    if !late.is_empty() {
        let (cuts, are) = match late.len() {
            1 => ("cut", "is"),
            _ => ("cuts", "are"),
        };
        // The paper's shares, or one where there is one cut.
        let shares = if train.cut_after.len() == 1 {
            "[0.84]"
        } else {
            "[0.53, 0.84]"
        };
        let advice = if planned.is_some() {
            String::new()
        } else {
            format!(
                "; --set 'train.cut_at={shares}' gives cuts as shares of the epochs, --set 'train.cut_after=[]' none"
            )
        };
        doubts.push(format!(
            "the {cuts} after epoch {} {are} never reached: training ends with epoch {}{advice}",
            late.join(" and "),
            train.epochs
        ));
    }
    doubts
}

/// Cuts before the end of so many epochs as shares of them, with as many digits as give these cuts again.
fn shares(cuts: &[u64], epochs: u64) -> String {
    let cuts: Vec<u64> = cuts.iter().copied().filter(|&cut| cut < epochs).collect();
    let epochs = epochs as f64;
    let rounded = |digits: i32| -> Vec<f64> {
        let scale = 10_f64.powi(digits);
        let share = |&cut: &u64| (scale * cut as f64 / epochs).round() / scale;
        cuts.iter().map(share).collect()
    };
    let gives_them_again = |shares: &[f64]| {
        let mut pairs = shares.iter().zip(&cuts);
        pairs.all(|(share, &cut)| *share < 1.0 && (share * epochs).round() as u64 == cut)
    };
    let shares = (2..9).map(rounded).find(|shares| gives_them_again(shares));
    let shares = shares.unwrap_or_else(|| rounded(9));
    let named: Vec<String> = shares.iter().map(ToString::to_string).collect();
    named.join(", ")
}

/// Which cuts, given as shares of all epochs, fall on the end of training.
fn doubtful_shares(train: &TrainSpec) -> Option<String> {
    let cuts = train.cut_at.iter().zip(train.cuts());
    let late: Vec<String> = cuts
        .filter(|(_, cut)| *cut >= train.epochs)
        .map(|(share, _)| share.to_string())
        .collect();
    (!late.is_empty()).then(|| {
        format!(
            "train.cut_at = {:?}: with {}, the learning rate is never cut at {}, which is the end of training: more epochs \
             or smaller shares would change that",
            train.cut_at,
            count(train.epochs as usize, "epoch"),
            late.join(" and ")
        )
    })
}

/// Losses in bits, as additions to perplexities: for characters and bytes, whose models people measure so. For bytes also per
/// character, which models of one text can be compared by, however it is cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToldBits {
    tokens: Tokens,
    per_character: Option<f64>,
}

impl ToldBits {
    /// Of a text with so many tokens to a character.
    pub(crate) fn new(tokens: Tokens, per_character: Option<f64>) -> Self {
        Self {
            tokens,
            per_character,
        }
    }

    /// Each unit with the bits of such a loss.
    fn each(self, loss: f64) -> Vec<(&'static str, f64)> {
        let Some(per_character) = self.per_character else {
            return Vec::new();
        };
        let mut all = vec![(self.tokens.unit(), bits(loss))];
        if self.tokens.unit() != "character" {
            all.push(("character", per_character * bits(loss)));
        }
        all
    }

    /// `, 2.100 bits per byte, 2.150 bits per character`, or nothing.
    pub(crate) fn of(self, loss: f64) -> String {
        let each = self.each(loss).into_iter();
        let told: Vec<String> = each
            .map(|(unit, bits)| format!(", {bits:.3} bits per {unit}"))
            .collect();
        told.concat()
    }

    /// Adds them to a line of JSON.
    pub(crate) fn add_to(self, line: &mut serde_json::Value, loss: f64) {
        for (unit, bits) in self.each(loss) {
            line[format!("bits_per_{unit}")] = json!(bits);
        }
    }
}

/// Results are the same bits only where the same instructions compute them. Another precision was asked for, and is told of as a
/// changed key.
fn warn_of_other_bits(snapshot: &Snapshot, machine: &Machine) {
    let precision = snapshot.config.train.precision.into();
    let machine = machine.in_precision(precision);
    let now = machine.computes_with(&snapshot.config.model);
    let Some(before) = &snapshot.computed_with else {
        return;
    };
    let (before, now) = (PathName::of(before), PathName::of(&now));
    if before.precision != now.precision || before == now {
        return;
    }
    let hint = if before.is_kernels() && now.is_kernels() && before.tensors == now.tensors {
        let same = before.instructions;
        format!("; --instructions {same} goes on with the same, where the processor has them")
    } else {
        String::new()
    };
    alert!(
        "warning: this run was computed with {before} so far and goes on with {now}: its numbers will differ in their last \
         bits from those of an undisturbed run{hint}"
    );
}

/// A name of what computes: `avx2-bf16` is an instruction set and a precision, `tensors` tensor operations, and `tensors+avx2`
/// both, where kernels know a part of a model only.
#[derive(PartialEq)]
struct PathName<'a> {
    tensors: bool,
    /// Empty for none.
    instructions: &'a str,
    precision: &'a str,
}

impl<'a> PathName<'a> {
    fn of(name: &'a str) -> Self {
        let (set, precision) = name.split_once('-').unwrap_or((name, ""));
        let kernels = set.strip_prefix("tensors");
        Self {
            tensors: kernels.is_some(),
            instructions: kernels.unwrap_or(set).trim_start_matches('+'),
            precision,
        }
    }

    fn is_kernels(&self) -> bool {
        !self.instructions.is_empty()
    }
}

impl std::fmt::Display for PathName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [if self.tensors { "tensors" } else { "" }, self.instructions];
        let named = parts.into_iter().filter(|part| !part.is_empty());
        f.write_str(&named.collect::<Vec<_>>().join("+"))
    }
}

/// Adds the time that was spent to the record of a run, if it has one, what computed it, and the program's commit if it is
/// another.
fn add_time(folder: &RunFolder, time: Duration, path: Option<&str>) -> anyhow::Result<()> {
    if let Some(mut record) = RunRecord::read(folder.path()) {
        if let Some(path) = path {
            record.note_path(path);
        }
        record.seconds += time.as_secs_f64();
        record.note_commit(env!("ADAPARAM_COMMIT"));
        folder.write_json(RECORD, &record)?;
    }
    Ok(())
}

/// A path as it can be typed.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if text.chars().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn print_json(line: &serde_json::Value) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    // A reader that has gone away is no reason to stop training, nor is a full disk; that one is told of once.
    if let Err(error) = writeln!(std::io::stdout(), "{}", visible(&line.to_string()))
        && error.kind() != ErrorKind::BrokenPipe
        && !TOLD.swap(true, Ordering::Relaxed)
    {
        alert!("warning: standard output: {error}: events are lost");
    }
}

/// Live progress: a bar on a terminal, a line now and then elsewhere, or JSON.
struct Display {
    json: bool,
    epochs: u64,
    tokens: Tokens,
    /// Of the validation text and of the test text.
    told_bits: [ToldBits; 2],
    bar: ProgressBar,
    on_terminal: bool,
    started: Instant,
    last_line: Instant,
    done_before: Option<f64>,
    /// Words and nats since the epoch or this command began.
    words: usize,
    total_loss: f64,
    training_time: Duration,
    last_step: Instant,
}

impl Observer for Display {
    fn see(&mut self, event: &TrainEvent) -> Result<(), LmError> {
        self.show(event);
        Ok(())
    }
}

impl Display {
    fn new(json: bool, epochs: u64, tokens: Tokens, told_bits: [ToldBits; 2]) -> Self {
        let on_terminal = !json && shows_bars();
        let target = if on_terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let style = ProgressStyle::with_template("{bar:12.cyan/blue} {wide_msg}")
            .expect("a template that is right")
            .progress_chars("━╸─");
        let now = Instant::now();
        Self {
            json,
            epochs,
            tokens,
            told_bits,
            bar: ProgressBar::with_draw_target(Some(10_000), target).with_style(style),
            on_terminal,
            started: now,
            last_line: now,
            done_before: None,
            words: 0,
            total_loss: 0.0,
            training_time: Duration::ZERO,
            last_step: now,
        }
    }

    fn show(&mut self, event: &TrainEvent) {
        match event {
            TrainEvent::Step { words, loss, .. } => {
                self.words += words;
                self.total_loss += loss * *words as f64;
                self.training_time += self.last_step.elapsed();
                self.last_step = Instant::now();
                self.step(event);
            }
            TrainEvent::Validated {
                epoch,
                loss,
                perplexity,
                raw_perplexity,
                best,
            } => {
                self.last_step = Instant::now();
                (self.words, self.total_loss, self.training_time) = (0, 0.0, Duration::ZERO);
                let raw = raw_perplexity.map_or_else(String::new, |raw| {
                    format!(" ({raw:.2} without the average)")
                });
                let mark = if *best { "  best" } else { "" };
                self.line(&format!(
                    "epoch {epoch}/{}: validation loss {loss:.4}, perplexity {perplexity:.2}{raw}{}{mark}",
                    self.epochs,
                    self.told_bits[0].of(*loss)
                ));
            }
            TrainEvent::Validating => self.bar.set_message("validating"),
            TrainEvent::Testing => self.bar.set_message("testing"),
            TrainEvent::Saved { .. } => self.last_step = Instant::now(),
            TrainEvent::Begun { .. } | TrainEvent::Looked { .. } | TrainEvent::Tested { .. } => {}
        }
        if self.json && !matches!(event, TrainEvent::Step { .. }) {
            let mut line = json!(event);
            if let Some(loss) = line["loss"].as_f64() {
                let is_test = matches!(event, TrainEvent::Tested { .. });
                self.told_bits[usize::from(is_test)].add_to(&mut line, loss);
            }
            print_json(&line);
        }
    }

    fn step(&mut self, event: &TrainEvent) {
        let TrainEvent::Step {
            epoch,
            step,
            steps,
            done,
            loss,
            ..
        } = event
        else {
            return;
        };
        let speed = self.words as f64 / self.training_time.as_secs_f64().max(1e-9);
        let done_before = *self.done_before.get_or_insert(*done);
        let elapsed = self.started.elapsed().as_secs_f64();
        let left = if *done > done_before {
            elapsed * (1.0 - done) / (done - done_before)
        } else {
            f64::NAN
        };
        if self.json {
            let mut line = json!(event);
            if loss.exp().is_finite() {
                line["perplexity"] = json!(loss.exp());
            }
            line["words_per_second"] = json!(speed.round());
            line["seconds_left"] = json!(left.is_finite().then(|| left.round()));
            print_json(&line);
            return;
        }
        let mean = self.total_loss / self.words as f64;
        let eta = if left.is_finite() {
            format!("{} left", duration(left))
        } else {
            String::new()
        };
        let place = format!(
            "epoch {epoch}/{} step {step}/{steps}  {speed:.0} {}s/s",
            self.epochs,
            self.tokens.unit()
        );
        let perplexity = mean.exp();
        self.bar.set_position((done * 10_000.0) as u64);
        // Fits into 80 columns.
        let short = format!("{place}  ppl {perplexity:.1}  {eta}");
        self.bar.set_message(short);
        let text = format!("{place}  loss {mean:.4}  perplexity {perplexity:.1}  {eta}");
        if !self.on_terminal && (self.last_line.elapsed() >= LINE_EVERY || step == steps) {
            self.last_line = Instant::now();
            self.line(&text);
        }
    }

    fn line(&self, text: &str) {
        if !self.json {
            self.bar.suspend(|| remark!("{text}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_advised_as_shares_that_are_accepted_and_mean_the_same() {
        assert_eq!(shares(&[2], 3), "0.67");
        assert_eq!(shares(&[4, 20], 6), "0.67");
        assert_eq!(shares(&[1, 999], 1000), "0.001, 0.999");
        assert_eq!(shares(&[100, 160], 190), "0.526, 0.842");
    }

    #[test]
    fn a_cut_after_the_end_is_told_of_whatever_else_is() {
        let train = TrainSpec {
            epochs: 10,
            cut_after: vec![4, 20],
            ..TrainSpec::default()
        };
        let told = doubtful_cuts(&train, Some(6));
        assert!(told[0].contains("was set for 6 epochs"), "{told:?}");
        assert!(told[0].contains("train.cut_at=[0.67]'"), "{told:?}");
        assert_eq!(
            told[1],
            "the cut after epoch 20 is never reached: training ends with epoch 10"
        );
        let told = doubtful_cuts(&train, None);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("after epoch 20 is never"), "{told:?}");
    }

    #[test]
    fn a_path_can_be_typed_as_it_is_shown() {
        assert_eq!(shell_word("runs/quick".as_ref()), "runs/quick");
        assert_eq!(shell_word("my runs/it's".as_ref()), r"'my runs/it'\''s'");
    }
}

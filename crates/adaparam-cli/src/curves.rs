//! Curves for TensorBoard while models train.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use adaparam_data::text::Tokens;
use adaparam_lm::{LayerLook, LmError, Observer, TrainEvent, bits};
use adaparam_runs::RunError;
use adaparam_tensorboard::Writer;
use clap::Args;

use crate::say::alert;

/// Updates from one look into the layers to the next: a look reads 256 words once, an update some hundreds or thousands
/// forward and backward.
pub(crate) const LOOK_EVERY: NonZeroU64 = NonZeroU64::new(100).expect("not zero");

/// The choice of whether to write curves.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CurvesChoice {
    /// Write curves of language models for TensorBoard, in this folder into one of the run's name, or of the sweep's and the run's
    #[arg(long, value_name = "DIR")]
    tensorboard: Option<PathBuf>,
}

impl CurvesChoice {
    /// Whether there are to be any.
    pub(crate) fn are_wanted(&self) -> bool {
        self.tensorboard.is_some()
    }

    /// The folder for the curves of the run, or of the runs of the sweep, in a folder; none if they are not wanted.
    pub(crate) fn folder_of(&self, run: &Path) -> Option<PathBuf> {
        let whole = std::path::absolute(run).unwrap_or_else(|_| run.to_path_buf());
        Some(self.tensorboard.as_ref()?.join(whole.file_name()?))
    }

    /// After how many updates layers are to be looked into.
    pub(crate) fn look_every(&self) -> Option<NonZeroU64> {
        self.tensorboard.as_ref().map(|_| LOOK_EVERY)
    }
}

/// The curves of one run.
pub(crate) struct Curves {
    folder: PathBuf,
    tokens: Tokens,
    updates: u64,
    writer: Option<Writer>,
}

impl Curves {
    /// Curves of a run whose text is cut into these tokens. Nothing is written before training begins.
    pub(crate) fn new(folder: PathBuf, tokens: Tokens) -> Self {
        Self {
            folder,
            tokens,
            updates: 0,
            writer: None,
        }
    }

    /// Takes note of what happened. Curves that cannot be written are no reason to stop a training: it is said once.
    pub(crate) fn note(&mut self, event: &TrainEvent) {
        if let Err(error) = self.write(event) {
            self.writer = None;
            alert!("warning: no curves for TensorBoard any more: {error}");
        }
    }

    fn write(&mut self, event: &TrainEvent) -> Result<(), RunError> {
        match event {
            TrainEvent::Begun {
                run,
                steps,
                updates,
                ..
            } => {
                let (at, epoch_is_over) = (*updates, *steps == 0);
                self.updates = at;
                let series = run.as_deref().unwrap_or_default();
                let keeps = |step, tag: &str| step < at || step == at && told(tag, epoch_is_over);
                self.writer = Some(Writer::begin(&self.folder, series, at, keeps)?);
                Ok(())
            }
            TrainEvent::Step {
                words,
                loss,
                norm,
                learning_rate,
                seconds,
                ..
            } => {
                self.updates += 1;
                let speed = format!("train/{}s_per_second", self.tokens.unit());
                self.add(&[
                    ("train/loss", *loss),
                    ("train/perplexity", loss.exp()),
                    ("train/learning_rate", *learning_rate),
                    ("train/gradient_norm", *norm),
                    (&speed, *words as f64 / seconds.max(1e-9)),
                ])
            }
            TrainEvent::Looked { layers } => {
                let scalars: Vec<(String, f64)> = layers.iter().flat_map(of_layer).collect();
                self.add(&scalars)
            }
            TrainEvent::Validated {
                loss,
                perplexity,
                raw_perplexity,
                ..
            } => {
                let mut scalars = self.of_text("valid", *loss, *perplexity);
                let raw = raw_perplexity.iter();
                scalars.extend(raw.map(|raw| ("valid/raw_perplexity".to_owned(), *raw)));
                self.add(&scalars)
            }
            TrainEvent::Tested { loss, perplexity } => {
                self.add(&self.of_text("test", *loss, *perplexity))
            }
            TrainEvent::Validating | TrainEvent::Saved { .. } | TrainEvent::Testing => Ok(()),
        }
    }

    fn of_text(&self, text: &str, loss: f64, perplexity: f64) -> Vec<(String, f64)> {
        let mut scalars = vec![
            (format!("{text}/loss"), loss),
            (format!("{text}/perplexity"), perplexity),
        ];
        if self.tokens.is_measured_in_bits() {
            let tag = format!("{text}/bits_per_{}", self.tokens.unit());
            scalars.push((tag, bits(loss)));
        }
        scalars
    }

    fn add<T: AsRef<str>>(&mut self, scalars: &[(T, f64)]) -> Result<(), RunError> {
        match &mut self.writer {
            Some(writer) => writer.write(self.updates, scalars),
            None => Ok(()),
        }
    }
}

impl Observer for Curves {
    fn see(&mut self, event: &TrainEvent) -> Result<(), LmError> {
        self.note(event);
        Ok(())
    }

    fn looks_every(&self) -> Option<NonZeroU64> {
        Some(LOOK_EVERY)
    }
}

/// Whether what has this tag has been told at the step that a run goes on behind: what comes of reading other texts there
/// is told again, unless its epoch is over.
fn told(tag: &str, epoch_is_over: bool) -> bool {
    let is_of = |text: &str| tag.split('/').next() == Some(text);
    !is_of("test") && (epoch_is_over || !is_of("valid"))
}

fn of_layer(look: &LayerLook) -> Vec<(String, f64)> {
    let layer = look.layer;
    let policies = look.policies.iter().flat_map(|policy| {
        let tag = |what: &str| format!("policy_layer_{layer}/{}_{what}", policy.name);
        [(tag("mean"), policy.mean), (tag("spread"), policy.spread)]
    });
    let dead = look.dead_latent_units;
    let dead = dead.map(|share| (format!("policy_layer_{layer}/dead_latent_units"), share));
    policies.chain(dead).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_again_is_not_kept() {
        assert!(told("train/loss", false) && told("policy_layer_0/input_mean", false));
        assert!(!told("valid/loss", false) && told("valid/loss", true));
        assert!(!told("test/loss", false) && !told("test/loss", true));
    }
}

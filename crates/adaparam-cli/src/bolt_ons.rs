//! What a person bolts on to a trained model to evaluate it.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use adaparam_lm::{
    CacheSettings, DynamicSettings, FlagSettings, GradientStatistics, KeptStatistics, Machine,
    OpenedModel, Scoring, TextSource,
};
use adaparam_report::number;
use anyhow::bail;
use clap::Args;

use crate::data_folder::data_folder;
use crate::memory::whole_memory;
use crate::reading_progress::ReadingProgress;
use crate::say::{alert, remark};

/// The flags of what is bolted on.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct BoltOns {
    /// Mix in a cache of the last words: window (places remembered), theta (how much likeness counts), lambda (its share)
    /// [keys left out: window=500,theta=1,lambda=0.1]
    #[arg(long, value_name = "KEY=VALUE,…", value_parser = read::<CacheSettings>)]
    cache: Option<CacheSettings>,
    /// Let the weights learn from the text, a segment behind: rate, decay, segment (words between steps), epsilon
    /// [keys left out: rate=5e-5,decay=0.002,segment=5,epsilon=2e-5]
    #[arg(long, value_name = "KEY=VALUE,…", value_parser = read::<DynamicSettings>)]
    dynamic: Option<DynamicSettings>,
    /// Divide scores by T before they become probabilities: below 1 sharper, above 1 flatter
    #[arg(long, value_name = "T", value_parser = temperature, allow_negative_numbers = true)]
    temperature: Option<f64>,
}

fn read<S: FlagSettings>(text: &str) -> Result<S, String> {
    S::parse(text).map_err(|error| error.to_string())
}

fn temperature(text: &str) -> Result<f64, String> {
    // Scores are f32: what they are divided by must leave them numbers.
    match text.parse() {
        Ok(value) if (1e-6..=1e6).contains(&value) => Ok(value),
        _ => Err("must be a number above 0, from 1e-6 to 1e6".to_owned()),
    }
}

impl BoltOns {
    pub(crate) fn scoring(&self) -> Scoring {
        Scoring {
            dynamic: self.dynamic.clone(),
            temperature: self.temperature,
            cache: self.cache.clone(),
        }
    }
}

/// The scoring in a few words, after a comma; nothing if nothing is bolted on.
pub(crate) fn told(scoring: &Scoring) -> String {
    let Scoring {
        dynamic,
        temperature,
        cache,
    } = scoring;
    let parts = [
        dynamic.as_ref().map(|it| format!(", dynamic {it}")),
        temperature.map(|it| format!(", temperature {it}")),
        cache.as_ref().map(|it| format!(", cache {it}")),
    ];
    parts.into_iter().flatten().collect()
}

/// Refuses a cache that is larger than all memory of the machine.
pub(crate) fn refuse_what_cannot_fit(
    cache: &CacheSettings,
    width: usize,
    batch: usize,
) -> anyhow::Result<()> {
    let need = cache.bytes(width, batch);
    let Some(there) = whole_memory().filter(|&there| need > u128::from(there)) else {
        return Ok(());
    };
    bail!(
        "--cache window = {}: would take {} MB, and this machine has {} MB: choose a smaller window{}",
        cache.window,
        number::grouped(u64::try_from(need / 1_000_000).unwrap_or(u64::MAX)),
        number::grouped(there / 1_000_000),
        if batch > 1 {
            " or fewer columns (--batch)"
        } else {
            ""
        }
    )
}

/// How large gradients are on the training text: from the file that keeps them, or measured and kept.
pub(crate) fn statistics(
    machine: &Machine,
    opened: &OpenedModel,
    segment: usize,
    data: Option<&Path>,
    stop: &AtomicBool,
) -> anyhow::Result<GradientStatistics> {
    let snapshot = &opened.snapshot;
    let kept = KeptStatistics::of(&opened.path, snapshot, segment);
    match kept.read(snapshot) {
        Ok(Some(statistics)) => return Ok(statistics),
        Ok(None) => {}
        Err(error) => alert!("warning: {error}; measured again"),
    }
    let own = &snapshot.config.data;
    if own.set == TextSource::Files && own.train.is_none() {
        bail!(
            "--dynamic: needs the training text to know how large gradients are, and a model's file does not say which \
             text is read: evaluate the run, or bring its {} beside the file",
            kept.path().file_name().unwrap_or_default().display()
        );
    }
    let corpus = own.corpus(&data_folder(data)?)?;
    if corpus.checksum().to_string() != snapshot.corpus {
        bail!(
            "--dynamic: needs the training text to know how large gradients are, and the text is not the one that this \
             model was trained on: bring it back, or evaluate without --dynamic"
        );
    }
    let mut progress = ReadingProgress::new("gradients of the training text");
    let measured = GradientStatistics::measure(
        machine,
        snapshot,
        &corpus.train,
        segment,
        stop,
        |done, of| progress.at(done, of),
    );
    progress.finish();
    let measured = measured?;
    match kept.write(snapshot, &measured) {
        Ok(()) => remark!("kept for the next time: {}", kept.path().display()),
        Err(error) => alert!("warning: {error}; they will be measured again the next time"),
    }
    Ok(measured)
}

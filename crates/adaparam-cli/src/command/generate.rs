//! `adaparam generate`: text by a trained model.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::PathBuf;

use adaparam_data::text::{UNK, Vocabulary};
use adaparam_lm::{Generator, Sampling, open_model};
use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::Verdict;
use crate::compute_choice::ComputeChoice;
use crate::say::remark;
use crate::shown_bytes::ShownBytes;
use crate::training::report_damaged;

/// Generate text with a trained language model
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam generate runs/quick-seed-1 --prompt \"call me\"
  adaparam generate model.safetensors --temperature 0.8 --top-k 50 --seed 3 --max-words 200
  adaparam generate runs/quick-char-seed-1 --top-p 0.9 --samples 3 --json

The same model, prompt and seed give the same text, whatever the number of samples. A model of bytes may write what is
no UTF-8: a terminal shows it as \u{fffd}, a file or pipe gets the bytes as they are, and --json has them as numbers.")]
pub(crate) struct Generate {
    /// A run's folder (its best checkpoint), a checkpoint's folder or an exported file
    model: PathBuf,
    /// Text to begin with, cut as the model's own text is
    #[arg(long, value_name = "TEXT", default_value = "")]
    prompt: String,
    /// Below 1 for likelier words, above 1 for rarer ones, 0 for the likeliest
    #[arg(long, value_name = "T", default_value_t = 1.0)]
    temperature: f64,
    /// Draw from the K likeliest words only; 0 for all
    #[arg(long, value_name = "K", default_value_t = 0)]
    top_k: usize,
    /// Draw from the likeliest words only that together have the probability P; 1 for all
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    top_p: f64,
    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of texts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    samples: u64,
    /// Number of words, or of characters, bytes or pieces, if these are the model's tokens [default: 100; 500
    /// characters or bytes]
    #[arg(long, value_name = "N", visible_alias = "max-tokens")]
    max_words: Option<usize>,
    /// Draw <unk> like any word, instead of never
    #[arg(long)]
    unk: bool,
    /// Print a line of JSON for each text: its tokens and what they spell
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    compute: ComputeChoice,
}

impl Generate {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            bail!(
                "--temperature = {}: must be a number of at least 0",
                self.temperature
            );
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            bail!("--top-p = {}: must be above 0 and at most 1", self.top_p);
        }
        let opened = open_model(&self.model)?;
        report_damaged(&opened.damaged);
        let vocabulary = &opened.snapshot.vocabulary;
        let prompt = self.prompt_ids(vocabulary);
        let spec = &opened.snapshot.config.model;
        let weights = opened.snapshot.evaluation_weights();
        let written = self.compute.place()?.run(|machine| {
            (0..self.samples).try_for_each(|sample| {
                let sampling = Sampling {
                    temperature: self.temperature,
                    top_k: self.top_k,
                    top_p: self.top_p,
                    seed: self.seed,
                    sample,
                };
                let generator = Generator::new(machine, spec, &weights, sampling);
                if self.json {
                    self.write_json(vocabulary, &prompt, generator, sample)
                } else {
                    self.write(vocabulary, &prompt, generator, sample)
                }
            })
        })?;
        match written {
            // Whoever reads has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Verdict::Done),
            other => Ok(other.map(|()| Verdict::Done)?),
        }
    }

    /// Streams a text.
    fn write(
        &self,
        vocabulary: &Vocabulary,
        prompt: &[u32],
        generator: Generator<'_>,
        sample: u64,
    ) -> std::io::Result<()> {
        let mut out = std::io::stdout();
        let mut shown = out.is_terminal().then(ShownBytes::default);
        if self.samples > 1 {
            writeln!(out, "== sample {} of {} ==", sample + 1, self.samples)?;
        }
        let mut before = None;
        self.draw(vocabulary, prompt, generator, |id| {
            let bytes = vocabulary.spelling(id, before.replace(id));
            match &mut shown {
                Some(shown) => out.write_all(shown.add(&bytes).as_bytes())?,
                None => out.write_all(&bytes)?,
            }
            out.flush()
        })?;
        writeln!(out, "{}", shown.as_mut().map_or("", ShownBytes::end))
    }

    /// Prints a text as a line of JSON.
    fn write_json(
        &self,
        vocabulary: &Vocabulary,
        prompt: &[u32],
        generator: Generator<'_>,
        sample: u64,
    ) -> std::io::Result<()> {
        let (mut names, mut text, mut before) = (Vec::new(), Vec::new(), None);
        self.draw(vocabulary, prompt, generator, |id| {
            names.push(vocabulary.word(id).unwrap_or_default());
            text.extend(vocabulary.spelling(id, before.replace(id)));
            Ok(())
        })?;
        let mut line = json!({
            "sample": sample + 1, "seed": self.seed, "prompt": self.prompt,
            "text": String::from_utf8_lossy(&text), "tokens": names,
        });
        if str::from_utf8(&text).is_err() {
            line["bytes"] = json!(text);
        }
        writeln!(std::io::stdout(), "{line}")
    }

    /// Gives each token of a text, the prompt's first.
    fn draw(
        &self,
        vocabulary: &Vocabulary,
        prompt: &[u32],
        mut generator: Generator<'_>,
        mut put: impl FnMut(u32) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let excluded = if self.unk { None } else { vocabulary.unk() };
        // A text begins where a line has ended.
        let mut word = generator.next(vocabulary.line_end(), excluded);
        for &id in prompt {
            put(id)?;
            word = generator.next(id, excluded);
        }
        for _ in 0..self.length(vocabulary) {
            put(word)?;
            word = generator.next(word, excluded);
        }
        Ok(())
    }

    fn length(&self, vocabulary: &Vocabulary) -> usize {
        let is_of_letters = vocabulary.tokens().is_measured_in_bits();
        self.max_words
            .unwrap_or(if is_of_letters { 500 } else { 100 })
    }

    /// The prompt as ids; unknown tokens are reported, and read as `<unk>` where the vocabulary has it.
    fn prompt_ids(&self, vocabulary: &Vocabulary) -> Vec<u32> {
        let tokens = vocabulary.tokens().cut_open(&self.prompt).into_iter();
        tokens
            .filter_map(|token| {
                vocabulary.id(&token.name).or_else(|| {
                    let instead = match vocabulary.unk() {
                        Some(_) => format!("read as {UNK}"),
                        None => "left out".to_owned(),
                    };
                    remark!(
                        "--prompt: `{}` is not in the vocabulary: {instead}",
                        token.name
                    );
                    vocabulary.unk()
                })
            })
            .collect()
    }
}

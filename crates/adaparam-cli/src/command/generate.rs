//! `adaparam generate`: text by a trained model.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use adaparam_data::text::{EOS, UNK, Vocabulary};
use adaparam_lm::{Generator, Sampling, open_model};
use anyhow::bail;
use clap::Args;

use super::Verdict;
use crate::compute_choice::ComputeChoice;
use crate::say::remark;
use crate::training::report_damaged;

/// Generate text with a trained language model
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam generate runs/quick-seed-1 --prompt \"call me\"
  adaparam generate model.safetensors --temperature 0.8 --top-k 50 --seed 3 --max-words 200

The same model, prompt and seed give the same text.")]
pub(crate) struct Generate {
    /// A run's folder (its best checkpoint), a checkpoint's folder or an exported file
    model: PathBuf,
    /// Words to begin with, separated by white space
    #[arg(long, value_name = "TEXT", default_value = "")]
    prompt: String,
    /// Below 1 for likelier words, above 1 for rarer ones, 0 for the likeliest
    #[arg(long, value_name = "T", default_value_t = 1.0)]
    temperature: f64,
    /// Draw from the K likeliest words only; 0 for all
    #[arg(long, value_name = "K", default_value_t = 0)]
    top_k: usize,
    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of words
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_words: usize,
    /// Draw <unk> like any word, instead of never
    #[arg(long)]
    unk: bool,
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
        let opened = open_model(&self.model)?;
        report_damaged(&opened.damaged);
        let vocabulary = &opened.snapshot.vocabulary;
        let prompt = self.prompt_ids(vocabulary);
        let spec = &opened.snapshot.config.model;
        let weights = opened.snapshot.evaluation_weights();
        let written = self.compute.place()?.run(|machine| {
            self.write(&mut std::io::stdout(), vocabulary, &prompt, || {
                Generator::new(
                    machine,
                    spec,
                    &weights,
                    Sampling {
                        temperature: self.temperature,
                        top_k: self.top_k,
                        seed: self.seed,
                    },
                )
            })
        })?;
        match written {
            // Whoever reads has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Verdict::Done),
            other => Ok(other.map(|()| Verdict::Done)?),
        }
    }

    /// Streams the words.
    fn write<'a>(
        &self,
        out: &mut dyn Write,
        vocabulary: &Vocabulary,
        prompt: &[u32],
        generator: impl FnOnce() -> Generator<'a>,
    ) -> std::io::Result<()> {
        let excluded = if self.unk { None } else { vocabulary.unk() };
        let mut generator = generator();
        let mut at_line_start = true;
        let mut put = |id: u32| {
            let word = vocabulary.word(id).unwrap_or_default();
            if word == EOS {
                writeln!(out)?;
            } else if at_line_start {
                write!(out, "{word}")?;
            } else {
                write!(out, " {word}")?;
            }
            at_line_start = word == EOS;
            out.flush()
        };
        // A text begins where a line has ended.
        let mut word = generator.next(vocabulary.eos(), excluded);
        for &id in prompt {
            put(id)?;
            word = generator.next(id, excluded);
        }
        for _ in 0..self.max_words {
            put(word)?;
            word = generator.next(word, excluded);
        }
        put(vocabulary.eos())
    }

    /// The prompt as ids; unknown words are reported, and read as `<unk>` where the vocabulary has it.
    fn prompt_ids(&self, vocabulary: &Vocabulary) -> Vec<u32> {
        let words = self.prompt.split_whitespace();
        words
            .filter_map(|word| {
                vocabulary.id(word).or_else(|| {
                    let instead = match vocabulary.unk() {
                        Some(_) => format!("read as {UNK}"),
                        None => "left out".to_owned(),
                    };
                    remark!("--prompt: `{word}` is not in the vocabulary: {instead}");
                    vocabulary.unk()
                })
            })
            .collect()
    }
}

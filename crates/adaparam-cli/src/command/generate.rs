//! `adaparam generate`: text by a trained model.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use adaparam_data::text::{UNK, Vocabulary};
use adaparam_lm::{Generator, LmError, Sampling, open_model};
use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::Verdict;
use crate::compute_choice::{ComputeChoice, ReadingPrecision};
use crate::say::remark;
use crate::shown_bytes::ShownBytes;
use crate::training::report_opened;
use crate::typed_number::{number, whole_number};
use crate::visible::{refuse_raw_on_a_terminal, visible};

/// Most texts that are drawn at once: they share the reading of the weights.
const AT_ONCE: u64 = 16;

/// Generate text with a trained language model
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam generate runs/quick-seed-1 --prompt \"call me\"
  adaparam generate model.safetensors --temperature 0.8 --top-k 50 --seed 3
  adaparam generate runs/quick-char-seed-1 --top-p 0.9 --samples 3 --json
  adaparam generate runs/ptb-17m-seed-1 --precision int8
      faster: weights of a byte

The same model, prompt and seed give the same text, whatever the number of samples. A model of bytes may write what is \
no UTF-8, and any model may write terminal control codes: the first is shown as \u{fffd}, the second as escapes such as \
\\u001b. --raw gives a file or pipe the bytes as they are, and --json has those that are no UTF-8 as numbers.")]
pub(crate) struct Generate {
    /// A run's folder (its best checkpoint), a checkpoint's folder or an exported file
    model: PathBuf,
    /// Text to begin with, cut as the model's own text is
    #[arg(long, value_name = "TEXT", default_value = "")]
    prompt: String,
    /// Below 1 for likelier words, above 1 for rarer ones, 0 for the likeliest
    #[arg(
        long,
        value_name = "T",
        default_value_t = 1.0,
        value_parser = number,
        allow_negative_numbers = true
    )]
    temperature: f64,
    /// Draw from the K likeliest words only; 0 for all
    #[arg(long, value_name = "K", default_value_t = 0,
          value_parser = whole_number::<u64>(0..=u64::MAX), allow_negative_numbers = true)]
    top_k: u64,
    /// Draw from the likeliest words only that together have the probability P; 1 for all
    #[arg(
        long,
        value_name = "P",
        default_value_t = 1.0,
        value_parser = number,
        allow_negative_numbers = true
    )]
    top_p: f64,
    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = whole_number::<u64>(0..=u64::MAX), allow_negative_numbers = true)]
    seed: u64,
    /// Number of texts
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = whole_number::<u64>(1..=1_000_000), allow_negative_numbers = true)]
    samples: u64,
    /// Number of words, or of characters, bytes or pieces, if these are the model's tokens [default: 100; 500
    /// characters or bytes]
    #[arg(long, value_name = "N", visible_alias = "max-tokens",
          value_parser = whole_number::<u64>(0..=u64::MAX), allow_negative_numbers = true)]
    max_words: Option<u64>,
    /// Draw <unk> like any word, instead of never
    #[arg(long)]
    unk: bool,
    /// What products are computed in: bf16 and int8 read fewer bytes for every word [default: what the model was trained in]
    #[arg(long, value_enum)]
    precision: Option<ReadingPrecision>,
    /// Into a file or pipe: bytes as they are, also control characters and what is no UTF-8
    #[arg(long, conflicts_with = "json")]
    raw: bool,
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
        refuse_raw_on_a_terminal(self.raw)?;
        let opened = open_model(&self.model)?;
        report_opened(&opened);
        let vocabulary = &opened.snapshot.vocabulary;
        let prompt = self.read_prompt(vocabulary);
        let spec = &opened.snapshot.config.model;
        let weights = opened.snapshot.evaluation_weights();
        let own = opened.snapshot.config.train.precision.into();
        let precision = self.precision.map_or(own, Into::into);
        self.compute.check_precision(precision)?;
        let written = self.compute.place()?.run(|machine| {
            let machine = machine.told_precision("--precision", precision, spec)?;
            let first = (0..self.samples).step_by(AT_ONCE as usize);
            let written: std::io::Result<()> = first.into_iter().try_for_each(|sample| {
                let sampling = Sampling {
                    temperature: self.temperature,
                    top_k: usize::try_from(self.top_k).unwrap_or(usize::MAX),
                    top_p: self.top_p,
                    seed: self.seed,
                    sample,
                };
                let texts = AT_ONCE.min(self.samples - sample) as usize;
                let generator = Generator::several(&machine, spec, &weights, sampling, texts);
                self.write_all(vocabulary, &prompt, generator, sample, texts)
            });
            Ok::<_, LmError>(written)
        })??;
        match written {
            // Whoever reads has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Verdict::Done),
            other => Ok(other.map(|()| Verdict::Done)?),
        }
    }

    /// Writes texts that are drawn at once, the first of them while it is drawn.
    fn write_all(
        &self,
        vocabulary: &Vocabulary,
        prompt: &Prompt,
        generator: Generator<'_>,
        first: u64,
        texts: usize,
    ) -> std::io::Result<()> {
        let mut rest: Vec<Vec<u32>> = vec![Vec::new(); texts - 1];
        let mut streamed = self.text(vocabulary, prompt, first)?;
        self.draw(vocabulary, &prompt.ids, generator, texts, |words| {
            streamed.put(words[0])?;
            for (text, &word) in rest.iter_mut().zip(&words[1..]) {
                text.push(word);
            }
            Ok(())
        })?;
        streamed.end()?;
        for (sample, words) in (first + 1..).zip(rest) {
            let mut text = self.text(vocabulary, prompt, sample)?;
            words.into_iter().try_for_each(|word| text.put(word))?;
            text.end()?;
        }
        Ok(())
    }

    fn text<'a>(
        &'a self,
        vocabulary: &'a Vocabulary,
        prompt: &Prompt,
        sample: u64,
    ) -> std::io::Result<Written<'a>> {
        let mut out = std::io::stdout();
        if !self.json && self.samples > 1 {
            writeln!(out, "== sample {} of {} ==", sample + 1, self.samples)?;
        }
        Ok(Written {
            asked: self,
            vocabulary,
            sample,
            typed: prompt.first.clone(),
            before: None,
            shown: (!self.raw).then(ShownBytes::default),
            names: Vec::new(),
            bytes: Vec::new(),
        })
    }

    /// Gives the next token of each text, those of the prompt first.
    fn draw(
        &self,
        vocabulary: &Vocabulary,
        prompt: &[u32],
        mut generator: Generator<'_>,
        texts: usize,
        mut put: impl FnMut(&[u32]) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let excluded = if self.unk { None } else { vocabulary.unk() };
        // A text begins where a line has ended.
        let mut words = generator.next_of_each(&vec![vocabulary.line_end(); texts], excluded);
        for &id in prompt {
            let all = vec![id; texts];
            put(&all)?;
            words = generator.next_of_each(&all, excluded);
        }
        for _ in 0..self.length(vocabulary) {
            put(&words)?;
            words = generator.next_of_each(&words, excluded);
        }
        Ok(())
    }

    fn length(&self, vocabulary: &Vocabulary) -> usize {
        let is_of_letters = vocabulary.tokens().is_measured_in_bits();
        let usual = if is_of_letters { 500 } else { 100 };
        usize::try_from(self.max_words.unwrap_or(usual)).unwrap_or(usize::MAX)
    }

    /// The prompt as ids; unknown tokens are reported, and read as `<unk>` where the vocabulary has it.
    fn read_prompt(&self, vocabulary: &Vocabulary) -> Prompt {
        let mut prompt = Prompt::default();
        for (token, id) in vocabulary.read_open(&self.prompt) {
            // As it was typed: a name has signs for white space.
            let typed = vocabulary.tokens().spelling(&token.name, None);
            let typed = typed.unwrap_or_else(|| token.name.as_bytes().to_vec());
            if let Some(id) = id {
                if vocabulary.word(id) != Some(&*token.name) {
                    prompt.first = Some(typed);
                }
                prompt.ids.push(id);
                continue;
            }
            let instead = match vocabulary.unk() {
                Some(_) => format!("read as {UNK}"),
                None => "left out".to_owned(),
            };
            let typed = String::from_utf8_lossy(&typed);
            let shown = match typed.trim() {
                "" => &*token.name,
                word => word,
            };
            remark!("--prompt: `{shown}` is not in the vocabulary: {instead}");
            prompt.ids.extend(vocabulary.unk());
        }
        prompt
    }
}

/// What the model reads before it draws.
#[derive(Default)]
struct Prompt {
    ids: Vec<u32>,
    /// What was typed for the first of them, where the vocabulary knows it by the name only that it has within a line.
    first: Option<Vec<u8>>,
}

/// A text on its way out: word by word, or as a line of JSON at its end.
struct Written<'a> {
    asked: &'a Generate,
    vocabulary: &'a Vocabulary,
    sample: u64,
    /// What the first token spells, where that is not what the vocabulary says.
    typed: Option<Vec<u8>>,
    before: Option<u32>,
    shown: Option<ShownBytes>,
    names: Vec<&'a str>,
    bytes: Vec<u8>,
}

impl Written<'_> {
    fn put(&mut self, id: u32) -> std::io::Result<()> {
        let spelled = self.vocabulary.spelling(id, self.before.replace(id));
        let bytes = self.typed.take().unwrap_or(spelled);
        if self.asked.json {
            self.names
                .push(self.vocabulary.word(id).unwrap_or_default());
            self.bytes.extend(bytes);
            return Ok(());
        }
        let mut out = std::io::stdout();
        match &mut self.shown {
            Some(shown) => out.write_all(visible(&shown.add(&bytes)).as_bytes())?,
            None => out.write_all(&bytes)?,
        }
        out.flush()
    }

    fn end(mut self) -> std::io::Result<()> {
        let mut out = std::io::stdout();
        if !self.asked.json {
            return writeln!(out, "{}", self.shown.as_mut().map_or("", ShownBytes::end));
        }
        let mut line = json!({
            "sample": self.sample + 1, "seed": self.asked.seed, "prompt": self.asked.prompt,
            "text": String::from_utf8_lossy(&self.bytes), "tokens": self.names,
        });
        if str::from_utf8(&self.bytes).is_err() {
            line["bytes"] = json!(self.bytes);
        }
        writeln!(out, "{}", visible(&line.to_string()))
    }
}

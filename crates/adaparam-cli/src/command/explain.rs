//! `adaparam explain`: a page on what a model computes at every word of a text.

use std::path::PathBuf;

use adaparam_data::text::Text;
use adaparam_explore::{Explorer, Writing, page};
use adaparam_runs::whole_file::write_whole;
use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};

use super::Verdict;
use crate::exploring::{self, Comparing, Looking};
use crate::interrupt::stop_flag;
use crate::say::{remark, say};
use crate::typed_number::whole_number;
use crate::{browser, provenance};

/// The name of the page in a run's folder.
const PAGE: &str = "explain.html";

/// Look into a trained language model: a page on what it computes at every word of a text
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam explain runs/quick-seed-1 --prompt \"call me ishmael\" --open
  adaparam explain runs/quick-seed-1 --text letter.txt --out letter.html
  adaparam explain runs/quick-seed-1 runs/quick-lstm-seed-1 --prompt \"the white whale\"   side by side
  adaparam explain runs/quick-seed-1 --prompt \"the sea\" --json     every number, for a program

The page needs nothing else and can be sent about. It shows each word with its surprise, the policies that adapted the \
layers at it beside their mean over the validation text, the adapted matrices, what the model took for likeliest next, and \
the words of the validation text with the nearest policies. All numbers are those that were computed on the way.")]
pub(crate) struct Explain {
    /// Folders of runs (their best checkpoints), checkpoints' folders or exported files
    #[arg(required = true, value_name = "RUN")]
    models: Vec<PathBuf>,
    /// The text
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// A file with the text
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    text: Option<PathBuf>,
    /// The page [default: explain.html in the first run's folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Read so many words of the text, or characters, bytes or pieces, if these are the model's tokens
    #[arg(long, value_name = "N", default_value_t = 200, visible_alias = "max-tokens",
          value_parser = whole_number::<u64>(1..=2000), allow_negative_numbers = true)]
    max_words: u64,
    /// Show the page in a browser
    #[arg(long, conflicts_with = "json")]
    open: bool,
    /// Print JSON with every number instead of a page
    #[arg(long, conflicts_with = "out")]
    json: bool,
    #[command(flatten)]
    comparing: Comparing,
    #[command(flatten)]
    looking: Looking,
}

impl Explain {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let text = self.read_text()?;
        let models = Looking::open(&self.models)?;
        let out = self.out()?;
        let stop = stop_flag()?;
        let place = self.looking.compute.place()?;
        let runs: Vec<Value> = place.run(|machine| {
            models
                .iter()
                .map(|model| {
                    let machine = self.looking.machine_for(machine, model)?;
                    let mut explorer = self.looking.explorer(model, &machine, &self.comparing, &stop)?;
                    let explained = explorer.explain(&text, self.max_words as usize);
                    if explained.is_cut {
                        let unit = model.vocabulary().tokens().counted(self.max_words as usize);
                        remark!(
                            "{}: only the first {unit} of the text are read (--max-words)",
                            model.name
                        );
                    }
                    if explained.left_out > 0 {
                        let left_out = model.vocabulary().tokens().counted(explained.left_out);
                        remark!(
                            "{}: {left_out} of the text left out, because the model has no way to read them",
                            model.name
                        );
                    }
                    let writing = if self.json {
                        Writing::Digits
                    } else {
                        Explorer::page_writing(&explained)
                    };
                    Ok(explorer.to_json(&explained, writing))
                })
                .collect::<anyhow::Result<_>>()
        })??;
        if self.json {
            say!("{}", json!({"format": 1, "runs": runs}));
            return Ok(Verdict::Done);
        }
        let record = provenance::record("cpu", place.threads);
        let made =
            json!({"command": record.command, "version": record.version, "commit": record.commit});
        let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
        let title = exploring::title(&names);
        let data = json!({"format": 1, "made": made, "runs": runs});
        let html = page::explained(&title, LEAD, &data);
        write_whole(&out, html.as_bytes())?;
        remark!("{} ({} kB)", out.display(), html.len().div_ceil(1000));
        if self.open {
            browser::show(&out);
        }
        Ok(Verdict::Done)
    }

    fn read_text(&self) -> anyhow::Result<String> {
        match (&self.prompt, &self.text) {
            (Some(prompt), _) => Ok(prompt.clone()),
            (None, Some(path)) => Ok(Text::read(path).context("--text")?.content().to_owned()),
            (None, None) => bail!("--prompt: name a text, or a file with --text"),
        }
    }

    fn out(&self) -> anyhow::Result<PathBuf> {
        match &self.out {
            Some(out) if out.extension().is_none_or(|it| it != "html") => {
                bail!("--out {}: must end with .html", out.display())
            }
            Some(out) => Ok(out.clone()),
            None if self.json || self.models[0].is_dir() => Ok(self.models[0].join(PAGE)),
            None => bail!(
                "--out: name the page to write: {} is no run's folder to write it into",
                self.models[0].display()
            ),
        }
    }
}

/// What the page is about.
const LEAD: &str = "Each word with what the model computed when it read it: choose a colour, then a word. Shift and click, or \
                    Shift and an arrow key, sets a second word beside it.";

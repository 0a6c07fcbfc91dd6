//! Progress on standard error: a bar on a terminal, plain lines elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::say::{remark, shows_bars};

/// Progress of an experiment of many runs.
pub(crate) struct Progress {
    bar: ProgressBar,
    title: String,
    runs: usize,
    on_terminal: bool,
}

impl Progress {
    /// Progress over `steps` steps of all `runs` runs together.
    pub(crate) fn new(title: &str, runs: usize, steps: usize) -> Self {
        let on_terminal = shows_bars();
        let target = if on_terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target).with_style(bar_style());
        bar.set_prefix(title.to_owned());
        if on_terminal {
            bar.enable_steady_tick(Duration::from_millis(200));
        } else {
            remark!("{title}: {runs} runs, {steps} steps in all");
        }
        Self {
            bar,
            title: title.to_owned(),
            runs,
            on_terminal,
        }
    }

    /// `steps` more steps are done; `what` tells of the run that did them.
    pub(crate) fn advance(&self, steps: usize, what: impl FnOnce() -> String) {
        if self.on_terminal {
            self.bar.set_message(what());
        }
        self.bar.inc(steps as u64);
    }

    /// A run is done, the `finished`th of all.
    pub(crate) fn run_done(&self, finished: usize, what: &str) {
        if !self.on_terminal {
            remark!("{}: {finished}/{}: {what}", self.title, self.runs);
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A line as wide as the terminal with what is under way, how much of it is done and the time that is left, and below it
/// what the last run has come to.
pub(crate) fn bar_style() -> ProgressStyle {
    ProgressStyle::with_template(
        "{prefix}  {wide_bar:.cyan/blue}  {percent:>3} %  {eta_precise} left\n  {wide_msg}",
    )
    .expect("a template that is right")
    .progress_chars("━╸─")
}

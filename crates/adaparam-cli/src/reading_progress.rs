//! How far a text is read: a bar on a terminal, a line now and then elsewhere, nothing for what takes a second.

use std::time::{Duration, Instant};

use adaparam_report::number::duration;
use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::progress::bar_style;
use crate::say::{remark, shows_bars};

/// What is over sooner than this is not told of.
const SOON: Duration = Duration::from_secs(1);
/// Off a terminal, a line at most this often.
const LINE_EVERY: Duration = Duration::from_secs(10);

pub(crate) struct ReadingProgress {
    title: String,
    bar: Option<ProgressBar>,
    started: Instant,
    last_line: Instant,
}

impl ReadingProgress {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        let now = Instant::now();
        Self {
            title: title.into(),
            bar: None,
            started: now,
            last_line: now,
        }
    }

    /// So many of all parts are done.
    pub(crate) fn at(&mut self, done: usize, of: usize) {
        let elapsed = self.started.elapsed();
        if elapsed < SOON {
            return;
        }
        if shows_bars() {
            let bar = self.bar.get_or_insert_with(|| {
                let target = ProgressDrawTarget::stderr();
                let bar = ProgressBar::with_draw_target(Some(of as u64), target);
                let bar = bar.with_style(bar_style()).with_elapsed(elapsed);
                bar.set_prefix(self.title.clone());
                bar
            });
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        } else if self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            let left = elapsed.as_secs_f64() * (of - done) as f64 / done.max(1) as f64;
            remark!(
                "{}: {} %, {} left",
                self.title,
                100 * done / of.max(1),
                duration(left)
            );
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

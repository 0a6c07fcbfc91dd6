//! A text whose columns are read by several ranks.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use adaparam_data::text::{Columns, Window};

use super::share::numbers;
use super::{Team, begin};
use crate::compute::{Machine, Reader};
use crate::config::ModelSpec;
use crate::scorer::Scorer;
use crate::weights::Weights;

/// The model as it is; each rank reads some columns, as evenly as can be, and knows the losses of all.
///
/// A column's losses do not depend on those that are read beside it, so they are those of one rank alone.
pub(crate) struct SharedReading<'a> {
    team: &'a dyn Team,
    batch: usize,
    /// The columns of this rank; none where there are more ranks than columns.
    own: Option<(Columns, Box<dyn Reader + 'a>)>,
    losses: Vec<f32>,
    /// What this rank is told.
    stop: &'a AtomicBool,
    /// What all are told, once one is.
    agreed: &'a AtomicBool,
}

impl<'a> SharedReading<'a> {
    /// Before the first word. When `stop` is set at one rank, `agreed` is set at all of them after the same window.
    pub(crate) fn new(
        machine: &'a Machine,
        spec: &ModelSpec,
        weights: &'a Weights,
        columns: &Columns,
        team: &'a dyn Team,
        stop: &'a AtomicBool,
        agreed: &'a AtomicBool,
    ) -> Self {
        let own = columns_of(columns.batch(), team.rank(), team.ranks());
        let own = (!own.is_empty()).then(|| {
            let reader = machine.reader(spec, weights, own.len());
            (columns.some(own), reader)
        });
        Self {
            team,
            batch: columns.batch(),
            own,
            losses: Vec::new(),
            stop,
            agreed,
        }
    }
}

fn columns_of(batch: usize, rank: usize, ranks: usize) -> Range<usize> {
    begin(batch, rank, ranks)..begin(batch, rank + 1, ranks)
}

impl Scorer for SharedReading<'_> {
    fn score(&mut self, window: &Window<'_>) -> &[f32] {
        assert_eq!(window.batch, self.batch, "columns of the window");
        let mut message = vec![u8::from(self.stop.load(Ordering::Relaxed))];
        if let Some((columns, reader)) = &mut self.own {
            let own = columns.window(window.start, window.steps);
            let losses = reader.losses(&own).iter();
            message.extend(losses.flat_map(|loss| loss.to_le_bytes()));
        }
        self.losses.resize(window.targets.len(), 0.0);
        let ranks = self.team.ranks();
        for (rank, said) in self.team.gather(&message).iter().enumerate() {
            if said[0] == 1 {
                self.agreed.store(true, Ordering::Relaxed);
            }
            let columns = columns_of(self.batch, rank, ranks);
            if columns.is_empty() {
                continue;
            }
            let losses = numbers(&said[1..]);
            let rows = self.losses.chunks_exact_mut(self.batch);
            for (row, own) in rows.zip(losses.chunks_exact(columns.len())) {
                row[columns.clone()].copy_from_slice(own);
            }
        }
        &self.losses
    }
}

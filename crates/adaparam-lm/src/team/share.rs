//! Which columns of a batch a rank computes.

use std::ops::Range;

use super::Team;
use crate::compute::Carried;
use crate::config::TrainSpec;

/// The parts of a batch that a rank computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Share {
    /// Parts of the whole batch.
    pub(super) parts: usize,
    /// Those of this rank.
    pub(super) own: Range<usize>,
    /// Columns of each part.
    columns: usize,
}

impl Share {
    /// The share of this rank.
    ///
    /// # Panics
    ///
    /// Panics unless the ranks divide the parts, and these the columns.
    pub(crate) fn of(train: &TrainSpec, team: &dyn Team) -> Self {
        let (parts, ranks) = (train.parts, team.ranks());
        assert!(
            parts.is_multiple_of(ranks),
            "{ranks} ranks for {parts} parts"
        );
        assert!(
            train.batch.is_multiple_of(parts),
            "{parts} parts of {} columns",
            train.batch
        );
        let each = parts / ranks;
        Self {
            parts,
            own: team.rank() * each..(team.rank() + 1) * each,
            columns: train.batch / parts,
        }
    }

    /// Of a process alone, one column in each part.
    #[cfg(test)]
    pub(super) fn of_all(parts: usize) -> Self {
        Self {
            parts,
            own: 0..parts,
            columns: 1,
        }
    }

    /// The columns of each part of this rank.
    pub(crate) fn columns(&self) -> impl Iterator<Item = Range<usize>> {
        let columns = self.columns;
        self.own
            .clone()
            .map(move |part| part * columns..(part + 1) * columns)
    }

    /// What each part of this rank carries, of what the whole batch does.
    pub(super) fn split(&self, whole: Option<Carried>) -> Vec<Option<Carried>> {
        self.columns()
            .map(|columns| whole.as_ref().map(|whole| whole.some(columns)))
            .collect()
    }

    /// What the whole batch carries, of what each part of this rank does; all ranks come together for that. Nothing
    /// before the first window.
    pub(super) fn join(&self, own: &[Option<Carried>], team: &dyn Team) -> Option<Carried> {
        let own: Option<Vec<&Carried>> = own.iter().map(Option::as_ref).collect();
        let own = own?;
        let first = *own.first()?;
        let mut parts = Vec::with_capacity(first.parts.len());
        for (slot, (name, _)) in first.parts.iter().enumerate() {
            let values = own.iter().flat_map(|carried| &carried.parts[slot].1);
            let bytes: Vec<u8> = values.flat_map(|value| value.to_le_bytes()).collect();
            let all = team.gather(&bytes).concat();
            parts.push((name.clone(), numbers(&all)));
        }
        Some(Carried {
            batch: self.columns * self.parts,
            parts,
        })
    }
}

impl Carried {
    /// What some of the columns carry.
    fn some(&self, columns: Range<usize>) -> Self {
        let parts = self.parts.iter().map(|(name, values)| {
            let width = values.len() / self.batch;
            let own = &values[columns.start * width..columns.end * width];
            (name.clone(), own.to_vec())
        });
        Self {
            batch: columns.len(),
            parts: parts.collect(),
        }
    }
}

/// Numbers of their bytes.
pub(super) fn numbers(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect()
}

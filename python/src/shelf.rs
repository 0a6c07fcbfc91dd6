//! What waits for the next call of the module that it belongs to.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most things that wait for one module. As many were in use at once.
const MOST: usize = 16;

/// Things with memory of the last call, by the number of their owner.
pub(crate) struct Shelf<T>(Mutex<HashMap<u64, Vec<T>>>);

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Shelf<T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Vec<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the last thing of this owner that is `best`, or else one that `fits`.
    pub(crate) fn take(
        &self,
        owner: u64,
        best: impl Fn(&T) -> bool,
        fits: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let mut all = self.lock();
        let own = all.entry(owner).or_default();
        let found = own.iter().rposition(best);
        let found = found.or_else(|| own.iter().rposition(fits))?;
        Some(own.remove(found))
    }

    /// Lets a thing wait, unless its owner is gone.
    pub(crate) fn put(&self, owner: u64, thing: T) {
        let mut all = self.lock();
        let Some(own) = all.get_mut(&owner) else {
            drop(all);
            drop(thing);
            return;
        };
        own.push(thing);
        // The one that has waited longest goes, after the lock.
        let oldest = (own.len() > MOST).then(|| own.remove(0));
        drop(all);
        drop(oldest);
    }

    /// Everything of an owner that is gone.
    pub(crate) fn remove(&self, owner: u64) -> Option<Vec<T>> {
        self.lock().remove(&owner)
    }

    /// Everything of everybody.
    pub(crate) fn take_all(&self) -> Vec<T> {
        self.lock().values_mut().flat_map(std::mem::take).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().values().map(Vec::len).sum()
    }
}

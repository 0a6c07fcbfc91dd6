use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use super::Stack;
use super::packing::Packing;

/// The memory in which a window is computed. Hundreds of megabytes for a large model: to get them anew for every window would
/// cost a page fault for every page.
pub(crate) struct Buffers<S: Stack> {
    pub(super) packing: Packing<S::Packed>,
    pub(super) tape: S::Tape,
}

impl<S: Stack> Default for Buffers<S> {
    fn default() -> Self {
        Self {
            packing: Packing::default(),
            tape: S::Tape::default(),
        }
    }
}

/// Keeps the buffers of one window for the next. Clones share them.
pub(crate) struct Workspace<S: Stack>(Arc<Mutex<Option<Buffers<S>>>>);

impl<S: Stack> Workspace<S> {
    /// The buffers of the last window, or new ones if they are in use.
    pub(super) fn borrow(&self) -> Loan<S> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        Loan {
            buffers: kept.unwrap_or_default(),
            home: self.clone(),
        }
    }
}

impl<S: Stack> Default for Workspace<S> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<S: Stack> Clone for Workspace<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Stack> fmt::Debug for Workspace<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").finish_non_exhaustive()
    }
}

/// Buffers that go back to their workspace on drop.
pub(super) struct Loan<S: Stack> {
    buffers: Buffers<S>,
    home: Workspace<S>,
}

impl<S: Stack> Drop for Loan<S> {
    fn drop(&mut self) {
        let buffers = std::mem::take(&mut self.buffers);
        *self.home.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(buffers);
    }
}

impl<S: Stack> Deref for Loan<S> {
    type Target = Buffers<S>;

    fn deref(&self) -> &Buffers<S> {
        &self.buffers
    }
}

impl<S: Stack> DerefMut for Loan<S> {
    fn deref_mut(&mut self) -> &mut Buffers<S> {
        &mut self.buffers
    }
}

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use adaparam_kernels::stack::{Runner, Stack, Weights};

use super::packing::PackedWeights;

/// The memory in which a window is computed. Hundreds of megabytes for a large model: to get them anew for every window would
/// cost a page fault for every page.
pub(super) struct Buffers {
    /// Which stack the runner is for.
    stack: String,
    pub(super) runner: Box<dyn Runner>,
    pub(super) packed: PackedWeights,
}

/// Keeps the buffers of one window for the next. Clones share them.
#[derive(Clone, Default)]
pub struct Workspace(Arc<Mutex<Option<Buffers>>>);

impl Workspace {
    /// The buffers of the last window, or new ones if they are in use or for another stack.
    pub(super) fn borrow(&self, stack: &dyn Stack) -> Loan {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let description = format!("{stack:?}");
        let kept = kept.filter(|buffers| buffers.stack == description);
        Loan {
            buffers: Some(kept.unwrap_or_else(|| Buffers {
                runner: stack.runner(Weights::Stay),
                packed: PackedWeights::default(),
                stack: description,
            })),
            home: self.clone(),
        }
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").finish_non_exhaustive()
    }
}

/// Buffers that go back to their workspace when it ends.
pub(super) struct Loan {
    buffers: Option<Buffers>,
    home: Workspace,
}

impl Drop for Loan {
    fn drop(&mut self) {
        // What a panic leaves half done is for nobody.
        if std::thread::panicking() {
            return;
        }
        let buffers = self.buffers.take();
        *self.home.0.lock().unwrap_or_else(PoisonError::into_inner) = buffers;
    }
}

impl Deref for Loan {
    type Target = Buffers;

    fn deref(&self) -> &Buffers {
        self.buffers
            .as_ref()
            .expect("a loan has its buffers until it ends")
    }
}

impl DerefMut for Loan {
    fn deref_mut(&mut self) -> &mut Buffers {
        self.buffers
            .as_mut()
            .expect("a loan has its buffers until it ends")
    }
}

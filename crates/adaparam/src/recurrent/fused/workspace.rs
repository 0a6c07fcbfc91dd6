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

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use adaparam_kernels::lstm::{InputGate, Shape};

    use super::*;

    fn stack(input: usize) -> Shape {
        Shape {
            input,
            hidden: vec![3],
            bias: true,
            skip: false,
            input_gate: InputGate::Free,
        }
    }

    fn address(loan: &Loan) -> usize {
        (&raw const *loan.runner).addr()
    }

    #[test]
    fn buffers_go_from_window_to_window_of_the_same_stack() {
        let workspace = Workspace::default();
        let first = workspace.borrow(&stack(2));
        let at_once = workspace.clone().borrow(&stack(2));
        assert_ne!(address(&first), address(&at_once));
        drop(first);
        let kept = address(&at_once);
        drop(at_once);
        assert_eq!(address(&workspace.borrow(&stack(2))), kept);
        assert_eq!(workspace.borrow(&stack(4)).stack, format!("{:?}", stack(4)));
    }

    #[test]
    fn buffers_that_a_panic_leaves_half_done_are_not_used_again() {
        let workspace = Workspace::default();
        let unfinished = catch_unwind(AssertUnwindSafe(|| {
            let _loan = workspace.borrow(&stack(2));
            panic!("in the midst of a window");
        }));
        assert!(unfinished.is_err());
        assert!(workspace.0.lock().is_ok_and(|kept| kept.is_none()));
    }
}

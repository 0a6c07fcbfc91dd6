//! Runners that wait for the next window of the module that they belong to.
//!
//! A runner has the memory of its last window and the packed weights, which cost more than many a window to make again.

use adaparam_kernels::stack::{Runner, Weights};
use std::sync::{Arc, LazyLock};

use crate::packed::Packed;
use crate::shelf::Shelf;
use crate::stack::Stack;

/// A runner, and what it has packed.
pub(crate) struct Owned {
    pub(crate) runner: Box<dyn Runner>,
    owner: u64,
    stack: Arc<str>,
    mode: Weights,
    /// The weights that are packed, if they are known to be there.
    pub(crate) packed: Option<Packed>,
}

pub(crate) static WAITING: LazyLock<Shelf<Owned>> = LazyLock::new(Shelf::default);

impl Owned {
    /// A runner of this owner for this stack: one that has these weights packed, if there is one.
    pub(crate) fn take(owner: u64, stack: &Stack, mode: Weights, packed: Option<&Packed>) -> Self {
        let fits = |one: &Owned| one.mode == mode && one.stack == stack.key;
        let best = |one: &Owned| fits(one) && packed.is_some() && one.packed.as_ref() == packed;
        WAITING.take(owner, best, fits).unwrap_or_else(|| Self {
            runner: stack.kernels.runner(mode),
            owner,
            stack: Arc::clone(&stack.key),
            mode,
            packed: None,
        })
    }

    /// Lets the runner wait for the next window, unless its module is gone.
    pub(crate) fn give_back(self) {
        WAITING.put(self.owner, self);
    }
}

//! Runners that wait for the next window of the module that they belong to.
//!
//! A runner has the memory of its last window and the packed weights, which cost more than many a window to make again.

use adaparam_kernels::Path;
use adaparam_kernels::stack::{Runner, Weights};
use std::sync::{Arc, LazyLock};

use crate::numbers::Numbers;
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

/// Which weights are packed, and for what.
#[derive(PartialEq)]
pub(crate) struct Packed {
    path: Path,
    weights: Vec<Identity>,
}

/// Which numbers a tensor holds: where they are, how often they were written through PyTorch, and a sample of them, for those who
/// write past that count (`tensor.data`).
#[derive(PartialEq)]
struct Identity {
    address: usize,
    version: i64,
    sample: u64,
}

/// Numbers of a tensor that are compared.
const SAMPLE: usize = 32;

impl Packed {
    /// Of weights that have these versions; none if a version is not known.
    pub(crate) fn new(path: Path, weights: &[Numbers], versions: &[i64]) -> Option<Self> {
        if weights.len() != versions.len() || versions.iter().any(|version| *version < 0) {
            return None;
        }
        let weights = weights.iter().zip(versions);
        let weights = weights.map(|(numbers, &version)| Identity {
            address: numbers.address(),
            version,
            // SAFETY: these are weights of the call at hand.
            sample: sample(unsafe { numbers.read() }),
        });
        Some(Self {
            path,
            weights: weights.collect(),
        })
    }
}

/// A number that some of these numbers decide, from all over them.
fn sample(numbers: &[f32]) -> u64 {
    let step = numbers.len().div_ceil(SAMPLE).max(1);
    let chosen = numbers.iter().step_by(step).chain(numbers.last());
    chosen.fold(numbers.len() as u64, |sum, number| {
        (sum ^ u64::from(number.to_bits()))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    })
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
